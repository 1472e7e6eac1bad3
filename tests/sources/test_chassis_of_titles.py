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
        ("automobilista-2-dk", 316, "<f4", 0.0625, "suspension_front_right", 0.0625),
        ("automobilista-2-dk", 336, "<f4", -0.5, "suspension_velocity_rear_left", -0.5),
        ("assetto-corsa-dk", 60, "<f4", 0.75, "slip_front_right", 0.75),
        ("ea-wrc-dk", 121, "<f4", 0.0625, "suspension_rear_left", 0.0625),  # bl, br, fl, fr; + up
        ("ea-wrc-dk", 133, "<f4", 0.125, "suspension_front_right", 0.125),
        ("ea-wrc-dk", 145, "<f4", -0.5, "suspension_velocity_front_left", -0.5),
        ("iracing-dk", 70, "<f4", 0.0625, "suspension_front_right", 0.0625),
        ("iracing-dk", 90, "<f4", -0.5, "suspension_velocity_rear_left", -0.5),
        ("iracing-dk", 110, "<f4", 31.0, "rumble_rear_right", 31.0),
        ("raceroom-dk", 392 - 8, "<f8", 0.0625, "suspension_front_left", 0.0625),  # the page, less a part left out
        ("raceroom-dk", 424 + 16 - 8, "<f8", -0.5, "suspension_velocity_rear_left", -0.5),
        # The motion begins at 510 and has 70 bytes; a tire has 72: slip at 8, the spring at 40 and 44.
        ("wreckfest-2-dk", 580 + 72 + 8, "<f4", -0.75, "slip_front_right", -0.75),
        ("wreckfest-2-dk", 580 + 2 * 72 + 40, "<f4", 0.5, "suspension_velocity_rear_left", 0.5),
        ("wreckfest-2-dk", 580 + 3 * 72 + 44, "<f4", 0.0625, "suspension_rear_right", 0.0625),
        ("truck-simulator-dk", 96, "<f4", 0.125, "cabin_forward", -0.125),  # the field is backwards
        ("truck-simulator-dk", 104, "<f4", 0.25, "cabin_pitch", 0.5 * np.pi),
        ("truck-simulator-dk", 108, "<f4", 0.125, "cabin_roll", -0.25 * np.pi),  # counter-clockwise, seen forwards
    ],
)
def test_each_field_is_read_at_its_place_in_its_unit_and_sense(name, offset, format, wire, channel, value):
    source = by_profile(name)
    intake = source.intake()
    package = bytearray(next(paced.package for paced in Car(source).driven("tour", duration_s=1.0) if paced.motion))
    package[offset : offset + int(format[2])] = np.array(wire, format).tobytes()
    intake.feed(bytes(package), 1_000_000_000)
    assert intake.accepted == 1
    assert dict(zip([each.name for each in CHASSIS], intake.chassis(), strict=True))[channel] == pytest.approx(value)


def said_of(intake):
    return dict(zip([each.name for each in CHASSIS], intake.chassis(), strict=True))


@pytest.mark.parametrize("name", ["f1-dk", "f1-2026-dk"])
def test_f1_s_packet_of_the_players_wheels_counts_for_the_next_motion(name):
    """A packet of the README of the project f1-2021-udp (MIT), braking at 0.52 g: RL, RR, FL, FR in mm and mm/s."""
    source = by_profile(name)
    ex, motion = (each.package for each in list(Car(source).driven("tour", duration_s=0.1))[:2])
    packet = bytearray(ex)
    position, velocity = (-1.0038451, -0.8956505, 11.218057, 10.869819), (-28.209932, -16.867018, -21.131245, -9.901635)
    slip = (0.000074, 0.000118, 0.00041, 0.000407)
    for offset, values in ((29, position), (45, velocity), (93, slip)):
        packet[offset : offset + 16] = np.array(values, "<f4").tobytes()
    intake = source.intake()
    intake.feed(bytes(packet) + bytes(100), 1_000_000_000)  # those of later years are longer
    intake.feed(motion, 1_000_000_001)
    said = said_of(intake)
    assert said["suspension_rear_left"] == pytest.approx(-0.0010038451)
    assert said["suspension_front_right"] == pytest.approx(0.010869819)
    assert said["suspension_velocity_front_left"] == pytest.approx(-0.021131245)
    assert said["slip_rear_right"] == pytest.approx(0.000118)
    assert intake.accepted == 1


def test_live_for_speed_says_it_in_the_longer_packet_alone():
    """OutSim Opts 8c: the packet without it, then of rear left, rear right, front left, front right 40 bytes each."""
    source = by_profile("live-for-speed-dk")
    intake = source.intake()
    package = next(paced.package for paced in Car(source).driven("tour", duration_s=1.0) if paced.motion)
    intake.feed(package, 1_000_000_000)
    assert np.isnan(intake.chassis()).all()
    wheels = np.zeros((4, 10), "<f4")
    wheels[:, 0], wheels[:, 8] = (0.0625, 0.125, 0.1875, 0.25), (-1.0, -0.5, 0.5, 1.0)
    intake.feed(package + wheels.tobytes(), 1_016_000_000)
    said = said_of(intake)
    assert [said[f"suspension_{wheel}"] for wheel in WHEELS] == [0.1875, 0.25, 0.0625, 0.125]
    assert [said[f"slip_{wheel}"] for wheel in WHEELS] == [0.5, 1.0, -1.0, -0.5]
    assert np.isnan(said["suspension_velocity_front_left"])
    assert intake.accepted == 2


def test_of_a_car_whose_shocks_iracing_does_not_list_nothing_is_said():
    source = by_profile("iracing-dk")
    intake = source.intake()
    package = bytearray(next(paced.package for paced in Car(source).driven("tour", duration_s=1.0) if paced.motion))
    package[66:98] = b"\xff" * 32
    assert source.gather.fits(bytes(package))
    intake.feed(bytes(package), 1_000_000_000)
    assert intake.accepted == 1
    said = said_of(intake)
    assert all(np.isnan(said[f"{name}_{wheel}"]) for name in ("suspension", "suspension_velocity") for wheel in WHEELS)
    assert said["rumble_front_left"] == 0.0


def test_a_field_can_carry_every_channel():
    assert {channel.name for channel in CHASSIS} <= set(CHANNELS)
