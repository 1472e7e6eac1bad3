"""One maneuver through every simulator: whatever a system's axes, signs, units and form, the motion is the same.

The virtual car is the truth.  What a system does not report is derived; then the truth is passed through the same
first-order lag, and compared within the error of the frames' spacing.
"""

import dataclasses
import math

import numpy as np
import pytest
from reference.rigid_body import Axes, by_matrices

from motioncue import sources
from motioncue.drive.car import SCRIPTS, drive
from motioncue.virtual.installation import SIMULATORS, Course, drive_packages
from motioncue.wire.packet import Derivation

NED = Axes((1, 0, 0), (0, 0, -1), (1, 0, 0), (0, 0, -1))

ANGLES = ("roll", "pitch", "yaw")
RATES = ("roll_rate", "pitch_rate", "yaw_rate")
ACCELERATIONS = ("surge", "sway", "heave")
DELAY_S = 0.02
RATE_HZ = 200.0


@dataclasses.dataclass
class System:
    """How to compare a system's motion."""

    derives_rates: bool = False
    has_engine_speed: bool = True
    uneven: bool = False  # frames come up to one frame too early or late, and are timed by arrival
    options: dict = dataclasses.field(default_factory=dict)


SYSTEMS = {
    "city-car-driving": System(has_engine_speed=False),
    "beamng": System(),
    "beamng-simulink": System(derives_rates=True),
    "morai": System(derives_rates=True, has_engine_speed=False, uneven=True),
    "vehicle-physics-pro": System(),
}


def truth(name):
    """Return the states of a drive, and its motion by rotation matrices."""
    states = drive(name, RATE_HZ)
    arguments = (
        states[field]
        for field in ("orientation", "velocity", "acceleration", "angular_velocity", "angular_acceleration")
    )
    return states, by_matrices(*arguments, NED)


def lagged(values, dt, delay_s):
    """Return the exact response of 1 / (1 + s d), from 0, to a line through the samples' mean rates."""
    out = np.zeros_like(values)
    share = 1.0 - math.exp(-dt / delay_s)
    for index in range(1, len(values)):
        mean = (values[index] + values[index - 1]) / 2
        out[index] = out[index - 1] + share * (mean - out[index - 1])
    return out


def through(system, name, acceleration="native"):
    """Return the motion that a system's packages give, one row a frame, and which of them say something new."""
    module = sources.source(system)
    options = module.Options(**SYSTEMS[system].options)
    intake = module.intake(options, derivation=Derivation(acceleration, DELAY_S))
    now, rows, new = 1_000_000_000, [], []
    intake.begin(now)
    for frame in drive_packages(system, name, RATE_HZ):
        now += round(frame.duration * 1e9)
        before, repeats = intake.accepted, intake.repeats
        intake.feed(frame.package, now)
        if intake.accepted > before:
            rows.append(intake.newest())
            new.append(intake.repeats == repeats)
    assert intake.rejected == {}
    assert intake.discontinuities == {}
    return np.concatenate(rows), np.array(new)


def derived_bound(system, truth, even):
    """Return how far a derived channel may be off: a change seen dt early or late is off by dt / d of itself."""
    return even + (np.abs(truth).max() / (RATE_HZ * DELAY_S) if SYSTEMS[system].uneven else 0.0)


def test_every_system_is_compared():
    assert set(SYSTEMS) == set(SIMULATORS)


@pytest.mark.parametrize("name", ["tour", "turns"])
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.check
def test_the_same_maneuver_gives_the_same_motion(system, name):
    states, expected = truth(name)
    found, new = through(system, name)
    assert len(found) == len(states)
    assert new.sum() > 0.8 * len(new)
    new[1:] &= new[:-1]  # the frame after a repeat may bring the motion of the repeated one
    derived = SYSTEMS[system].derives_rates

    def apart(channel, truth):
        return np.abs(found[channel] - truth)[new].max()

    for channel in ANGLES:
        turned = np.angle(np.exp(1j * (found[channel] - expected[channel])))
        assert np.abs(turned)[new].max() < 2e-6, channel
    for channel in ACCELERATIONS:
        assert apart(channel, expected[channel]) < 2e-4, channel
    for channel in RATES:
        rate = lagged(expected[channel], 1 / RATE_HZ, DELAY_S) if derived else expected[channel]
        assert apart(channel, rate) < (derived_bound(system, rate, 0.02) if derived else 2e-5), channel
    assert apart("speed", expected["speed"]) < 1e-4  # [m/s]
    if SYSTEMS[system].has_engine_speed:
        assert apart("engine_speed", states["engine_speed"]) < 0.1
    else:
        assert np.isnan(found["engine_speed"]).all()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.check
def test_an_acceleration_from_velocity_is_the_native_one_with_the_stated_delay(system):
    _, expected = truth("turns")
    found, _ = through(system, "turns", "from_velocity")
    # The lag acts on the acceleration in world axes; over its 20 ms the car turns by less than half a degree.
    for channel in ("surge", "sway"):
        late = lagged(expected[channel], 1 / RATE_HZ, DELAY_S)
        assert np.abs(found[channel] - late).max() < derived_bound(system, late, 0.15), channel


@pytest.mark.check
@pytest.mark.parametrize("name", [*SYSTEMS, *sources.described_profiles()])
def test_laps_follow_each_other_without_a_jump(name):
    intake, _, speeds = endless(name, 3.0 * SCRIPTS["brake"].duration)
    assert (intake.rejected, intake.discontinuities) == ({}, {})
    for lap in np.array_split(speeds, 3):
        assert (lap.max(), lap[-1]) == pytest.approx((30.0, 0.0), abs=0.1)


@pytest.mark.check
@pytest.mark.grid
@pytest.mark.parametrize("name", [*SYSTEMS, *sources.described_profiles()])
def test_a_car_that_stops_for_a_wave_at_any_moment_and_drives_on_does_not_jump(name):
    # A wave takes 33 s and delays the drive of 28 s by 25: twice in a lap, as it ends, and as the next one begins.
    moments = [6.0, 40.0, 77.9, 111.5]
    intake, times, speeds = endless(name, 110.9 + 28.0 + 25.0 + 28.0, moments)
    assert (intake.rejected, intake.discontinuities) == ({}, {})
    for moment in moments:  # 8 s until it stands, 4 at a stand, then a sine of 0.4 m/s at most
        assert speeds[(times > moment + 8.1) & (times < moment + 12.0)].max() < 0.01
        assert speeds[(times > moment + 12.0) & (times < moment + 22.0)].max() == pytest.approx(0.4, abs=0.02)
    assert speeds[times > 164.0].max() == pytest.approx(30.0, abs=0.1)


def endless(name, duration_s, waves=()):
    """Return the intake of a drive without an end in which waves begin at some moments, times, and speeds."""
    system = name if name in SYSTEMS else sources.by_profile(name)
    module = sources.source(system)
    intake = module.intake(module.Options())
    begun = now = 1_000_000_000
    waves, rows = list(waves), []
    intake.begin(now)
    course = Course(system, "brake", None, endless=True)
    for frame in course.packages():
        now += round(frame.duration * 1e9)
        intake.feed(frame.package, now)
        if (newest := intake.newest()) is not None:
            rows.append((1e-9 * (now - begun), newest["speed"][0]))
        if waves and now - begun > 1e9 * waves[0]:
            course.detour = course.wave("sway", 4.0)
            waves.pop(0)
        if now - begun > 1e9 * duration_s:
            return intake, *np.transpose(rows)
