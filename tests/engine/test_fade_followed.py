"""A fade takes as long as the platform needs: its actuators follow it, and nobody on the seat is hit at its end.

What an occupant gets is worked out from where the actuators are sent, not from the cue.
"""

import numpy as np
import pytest

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.leaving import check_leaving, leaving_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.platforms.build import CHANNELS, build
from motioncue.profile.profile import overridden, parse_profile
from motioncue.safety.supervisor import State
from motioncue.virtual.installation import drive_packages
from motioncue.virtual.platform_twin import sensed

MOMENTS = 8  # of each drive at which the simulator stops
MOST = 0.25  # [m/s^2] from tick to tick; the drives themselves: 0.1


def driven(profile, drive, seconds, silent=(), doings=()):
    """Drive for some seconds, but for the silent ones, and six more without the simulator.

    Returns the ticks, and the first of those; `doings` are functions of the run by their times.
    """
    clock = FakeClock(1_000_000_000)
    run = Pipeline(profile, clock, trace=int((seconds + 7.0) * profile.rate_hz))
    began = now = clock.now_ns()
    run.intake.begin(now)
    waiting = sorted(doings, key=lambda each: each[0])
    for each in drive_packages("city-car-driving", drive):
        now += round(1e9 * each.duration)
        while waiting and began + 1e9 * waiting[0][0] <= now:
            at, do = waiting.pop(0)
            run.emitter.run(until_ns=began + round(1e9 * at))
            do(run)
        run.emitter.run(until_ns=now)
        if now - began > 1e9 * seconds:
            break
        if not any(since <= 1e-9 * (now - began) < until for since, until in silent):
            run.intake.feed(each.package, now)
    alone = len(run.emitter.trace)
    run.emitter.run(until_ns=now + 6_000_000_000)
    return run.emitter.trace, alone


def poses_of(ticks):
    return np.stack([ticks["cue"][name] for name in CHANNELS], axis=1)


def jolts(profile, ticks):
    """Return the change of specific force at the seat from one tick to the next, of the positions that are sent."""
    built = build(profile.platform)
    places = np.ascontiguousarray(ticks["actuators"][:, : len(built.names)])
    made = built.kinematics.forward(places, poses_of(ticks[:1])[0])
    force, _ = sensed(made, 1.0 / profile.rate_hz)
    return np.abs(np.diff(force, axis=0)).max(axis=1)


def fade_s(profile, ticks):
    """Return how long the last way of the weight from 1 to 0 took."""
    away = np.flatnonzero((ticks["weight"] < 1.0) & (ticks["weight"] > 0.0))
    return len(away) / profile.rate_hz


def of(platform):
    """Return a profile that plans for a platform and sends where an actuator is; ticks have all of them."""
    return parse_profile(f"""
        [source]
        system = "city-car-driving"
        endpoint = "unix:///tmp/none"
        [cueing]
        algorithm = "predictive"
        [platform]
        preset = "{platform}"
        [output]
        motion = "udp://127.0.0.1:9999"
        packet = {{ size = 8, fields = [{{ offset = 0, type = "f8", channel = "actuator_1" }}] }}
    """)


PLATFORMS = ["hexapod-simona", "hexapod-dim", "hexapod-cranks", "hexapod-on-sled", "box-small"]
EACH = [
    *(pytest.param(name, "brake", marks=pytest.mark.check) for name in PLATFORMS),
    *(pytest.param(name, drive, marks=pytest.mark.search) for name in PLATFORMS for drive in ("turns", "tour")),
]


@pytest.mark.parametrize(("platform", "drive"), EACH)
def test_a_simulator_that_stops_at_any_moment_hits_nobody(platform, drive):
    profile = of(platform)
    for seconds in np.linspace(4.0, 25.0, MOMENTS):
        ticks, alone = driven(profile, drive, seconds)
        assert ticks["weight"][alone] == 1.0
        assert ticks["state"][-1] == State.OFFLINE
        neutral = alone + int(np.flatnonzero(ticks["weight"][alone:] == 0.0)[0])
        assert jolts(profile, ticks[alone - 5 : neutral + 30]).max() < MOST, seconds


@pytest.mark.check
@pytest.mark.parametrize("seconds", [9.0, 15.0, 18.0])
def test_a_stutter_that_turns_the_fade_half_way_hits_nobody(seconds):
    # Half a minute of driving with a gap: out, and back to the whole cue before it was at neutral.
    profile = of("hexapod-simona")
    ticks, alone = driven(profile, "brake", seconds + 4.0, silent=[(seconds, seconds + 0.7)])
    since = int(seconds * profile.rate_hz)
    assert 0.0 < ticks["weight"][since:alone].min() < 0.95
    assert ticks["weight"][alone - 1] == 1.0
    assert jolts(profile, ticks[since:alone]).max() < MOST


@pytest.mark.check
@pytest.mark.parametrize("again", [0.3, 0.5])
def test_who_falls_silent_again_while_the_cue_comes_back_hits_nobody(again):
    profile = of("hexapod-simona")
    ticks, alone = driven(profile, "brake", 16.5 + 0.5 + again, silent=[(16.5, 17.0)])
    assert 0.05 < ticks["weight"][alone] < 1.0
    neutral = alone + int(np.flatnonzero(ticks["weight"][alone:] == 0.0)[0])
    assert jolts(profile, ticks[alone - 5 : neutral + 30]).max() < MOST


@pytest.mark.check
def test_another_platform_in_the_middle_of_a_fade_is_faded_as_it_needs():
    # Slow legs take half a minute; with quick ones the end that the system asks for is in time all the same.
    slow = [f"platform.leg.{key}" for key in ("speed_m_s=0.05", "acceleration_m_s2=1.0")]
    quick = {"platform.leg.speed_m_s": 1.0, "platform.leg.acceleration_m_s2": 10.0, "supervisor.leave_s": 3.5}
    profile = overridden(of("hexapod-simona"), slow)
    after = overridden(profile, quick)
    park, stop = 16.5, 18.0
    doings = [
        (park, lambda run: run.emitter.park()),
        (park + 0.5, lambda run: run.retune(quick)),
        (stop, lambda run: run.emitter.stop(True)),
    ]
    ticks, _ = driven(profile, "brake", 19.0, doings=doings)
    assert leaving_of(profile).any_fade_s > 10.0
    assert leaving_of(after).leave_s <= 3.5
    assert (ticks["deadline"][-1] - ticks["deadline"][0]) * 1e-9 < stop + leaving_of(after).leave_s
    assert ticks["weight"][-1] == 0.0


def test_a_controller_of_its_own_is_waited_for_too():
    # DK's packet is the cue: what the platform needs for a fade counts for the end of a run as well.
    slow = [f"platform.leg.{key}" for key in ("speed_m_s=0.05", "acceleration_m_s2=1.0")]
    profile = motioncue.load_profile("ccd-dk", "cueing.algorithm=predictive", "platform.preset=hexapod-simona", *slow)
    assert leaving_of(profile).stop_s > leaving_of(profile).any_fade_s > 10.0
    with pytest.raises(
        ConfigError, match=r"supervisor\.leave_s: found 4, allowed is at least 3.* platform: leg_5 needs 26 s"
    ):
        check_leaving(overridden(profile, ["supervisor.leave_s=4"]))


def test_the_actuators_are_where_the_faded_cue_asks_for_them():
    profile = of("hexapod-simona")
    ticks, alone = driven(profile, "brake", 16.5)
    built = build(profile.platform)
    away = np.flatnonzero(ticks["weight"][alone:] > 0.0) + alone
    poses = poses_of(ticks[away])
    assert abs(poses[0, 0]) > 1.0  # [m]
    assert fade_s(profile, ticks[alone:]) > 1.2  # fade_s is 1.0
    asked = built.kinematics.inverse(poses)
    assert np.abs(asked - ticks["actuators"][away, :6]).max() < 1e-9
    speeds = np.abs(np.diff(asked, axis=0)) * profile.rate_hz
    assert 0.5 < speeds.max() / built.bounds[0].speed < 1.0


def table(speed, **slower):
    """Return a platform of six free axes whose sliding ones move at this speed [m/s]; yaw has far to go and is slow."""
    slides = {"min_m": -1.5, "max_m": 1.5, "speed_m_s": speed, "acceleration_m_s2": 12.0, **slower}
    turns = {"min_deg": -25.0, "max_deg": 25.0, "speed_deg_s": 60.0, "acceleration_deg_s2": 500.0}
    yaw = {**turns, "min_deg": -170.0, "max_deg": 170.0, "speed_deg_s": 40.0}
    parts = {**{key: {"travel": slides} for key in CHANNELS[:3]}, "roll": {"turn": turns}, "pitch": {"turn": turns}}
    parts["yaw"] = {"turn": yaw}
    return {"kind": "axes", "axes": [{"name": f"{name}_axis", "channel": name, **part} for name, part in parts.items()]}


EASE = {
    "preset": "hexapod-simona",
    "leg": {"min_m": 2.081, "max_m": 3.331, "speed_m_s": 1.5, "acceleration_m_s2": 12.0},
}


@pytest.mark.parametrize(
    ("platform", "usual_s", "seconds", "longer"),
    [
        (table(4.0), 1.0, 16.5, False),
        (table(0.5), 1.0, 16.5, True),
        (table(0.3), 1.0, 16.5, True),
        (table(4.0, acceleration_m_s2=1.0), 1.0, 16.5, True),
        (table(4.0, jerk_m_s3=8.0), 1.0, 16.5, True),
        (EASE, 0.4, 8.0, True),
    ],
    ids=["quick", "slow", "slower", "weak", "smooth", "legs"],
)
def test_its_duration_is_what_the_curve_needs(platform, usual_s, seconds, longer):
    # The curve x^3 (10 - 15 x + 6 x^2) has the largest slope 15/8, the largest bend 10 / sqrt(3), the largest third
    # derivative 60; a fifth is added, 0.3 s in which the pose goes on as it does, and half of its speed to the slope.
    # Legs are not linear in the pose: the larger half of their way counts twice.
    changed = {"platform": platform, "cueing": {"algorithm": "predictive"}, "supervisor": {"fade_s": usual_s}}
    profile = motioncue.load_profile("ccd-dk", changed)
    ticks, alone = driven(profile, "brake", seconds)
    first = int(np.flatnonzero(ticks["weight"][alone:] < 1.0)[0]) + alone
    before, now = poses_of(ticks[first - 2 : first])
    whole = now + 0.3 * profile.rate_hz * (now - before)
    built = build(profile.platform)
    last, at, middle, far = built.kinematics.inverse(np.array([before, now, 0.5 * whole, whole]))
    way = 2.0 * np.maximum(np.abs(far - middle), np.abs(middle - built.neutral))
    speed, acceleration, jerk = (
        np.array([getattr(each, name) for each in built.bounds]) for name in ("speed", "acceleration", "jerk")
    )
    left = np.maximum(speed - 0.5 * profile.rate_hz * np.abs(at - last), 0.25 * speed)
    needed = [1.875 * way / left, np.sqrt(10.0 / np.sqrt(3.0) * way / acceleration), np.cbrt(60.0 * way / jerk)]
    expected = max(usual_s, 1.2 * np.max(needed))
    assert (expected > 1.05 * usual_s) == longer
    assert expected < leaving_of(profile).any_fade_s
    assert fade_s(profile, ticks[alone:]) == pytest.approx(expected, abs=2.1 / profile.rate_hz)


def test_a_pose_that_cranks_do_not_reach_has_as_long_as_any():
    changed = {"cueing.preset": "utias", "cueing.surge.gain": 3.0, "supervisor.fade_s": 0.3}
    profile = motioncue.load_profile("ccd-dk", "cueing.algorithm=classical", "platform.preset=hexapod-cranks", changed)
    ticks, alone = driven(profile, "brake", 16.5)
    assert not np.isfinite(build(profile.platform).kinematics.inverse(poses_of(ticks[alone : alone + 1]))).all()
    assert fade_s(profile, ticks[alone:]) == pytest.approx(leaving_of(profile).any_fade_s, abs=2.1 / profile.rate_hz)


def test_a_platform_with_a_controller_of_its_own_has_as_much_time():
    # DK's packet is the cue: what moves the actuators is beyond it, and follows no quicker.
    weights = []
    for name in ("ccd-dk", "ccd-hexapod"):
        profile = motioncue.load_profile(name, "platform.preset=hexapod-simona", "cueing.algorithm=predictive")
        ticks, alone = driven(profile, "brake", 16.5)
        away = ticks["weight"][alone:]
        weights.append(away[(away > 0.0) & (away < 1.0)])
    np.testing.assert_array_equal(*weights)
