"""What the built-in profiles read of wheels, suspension and cab, on real packets where there are some."""

from pathlib import Path

import numpy as np
import pytest

from motioncue.core.channels import CHASSIS, WHEELS
from motioncue.recording.recording import read
from motioncue.sources import by_profile
from motioncue.sources.described.channels import CHANNELS
from motioncue.sources.described.twin import Car

STAGE = Path(__file__).parents[1] / "data" / "packets" / "described" / "dirt_rally_2.bin"


@pytest.fixture(scope="module")
def stage():
    return read(STAGE, system="dirt-rally-dk")


def test_on_a_real_stage_a_wheel_that_comes_nearer_to_the_body_is_positive(stage):
    """Loads go to the front in braking, to the left in a turn to the right, and to all where the car is pushed up."""
    surge, sway = stage.motion["surge"], stage.motion["sway"]
    travel = {wheel: stage.chassis[f"suspension_{wheel}"] for wheel in WHEELS}
    front = travel["front_left"] + travel["front_right"] - travel["rear_left"] - travel["rear_right"]
    left = travel["front_left"] + travel["rear_left"] - travel["front_right"] - travel["rear_right"]
    assert np.corrcoef(front, surge)[0, 1] < -0.5
    assert np.corrcoef(left, sway)[0, 1] > 0.8
    every = sum(travel.values())
    pushed = np.convolve(stage.motion["heave"], np.ones(5) / 5, "same")
    assert np.corrcoef(every[20:-20], pushed[20:-20])[0, 1] > 0.4
    assert 0.02 < max(np.abs(values).max() for values in travel.values()) < 0.2  # metres


def test_on_a_real_stage_the_velocity_is_the_slope_of_the_travel(stage):
    time = stage.motion["frame_time"]
    step = np.diff(time)
    usual = (step > 0.005) & (step < 0.05)
    for wheel in WHEELS:
        slope = np.diff(stage.chassis[f"suspension_{wheel}"])[usual] / step[usual]
        said = stage.chassis[f"suspension_velocity_{wheel}"]
        mean = (0.5 * (said[1:] + said[:-1]))[usual]
        assert np.corrcoef(slope, mean)[0, 1] > 0.7
        assert 0.7 < np.polyfit(mean, slope, 1)[0] < 1.5


@pytest.mark.parametrize(
    ("name", "offset", "format", "wire", "channel", "value"),
    [
        ("assetto-corsa-dk", 188, "<f4", 0.0625, "suspension_front_right", 0.0625),
        ("automobilista-2-memory-dk", 120, "<f4", -0.5, "suspension_velocity_rear_right", -0.5),
        ("dirt-rally-dk", 68, "<f4", 25.0, "suspension_rear_left", 0.025),
        ("dirt-rally-dk", 96, "<f4", -500.0, "suspension_velocity_front_right", -0.5),
        ("forza-dk", 196, "<f4", 0.125, "suspension_front_left", 0.125),
        ("forza-dk", 188, "<f4", 1.5, "slip_rear_left", 1.5),
        ("forza-dk", 160, "<f4", 0.5, "rumble_rear_right", 0.5),
        ("truck-simulator-dk", 96, "<f4", 0.125, "cabin_forward", -0.125),  # the field is backwards
        ("truck-simulator-dk", 104, "<f4", 0.25, "cabin_pitch", 0.5 * np.pi),
        ("truck-simulator-dk", 108, "<f4", 0.125, "cabin_roll", -0.25 * np.pi),  # counter-clockwise, seen forwards
    ],
)
def test_each_field_is_read_at_its_place_in_its_unit_and_sense(name, offset, format, wire, channel, value):
    source = by_profile(name)
    intake = source.intake()
    package = bytearray(next(paced.package for paced in Car(source).driven("tour", duration_s=1.0) if paced.motion))
    package[offset : offset + 4] = np.array(wire, format).tobytes()
    intake.feed(bytes(package), 1_000_000_000)
    assert intake.accepted == 1
    assert dict(zip([each.name for each in CHASSIS], intake.chassis(), strict=True))[channel] == pytest.approx(value)


def test_a_field_can_carry_every_channel():
    assert {channel.name for channel in CHASSIS} <= set(CHANNELS)
