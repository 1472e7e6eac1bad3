"""What a retune of the predictive algorithm may do to the motion."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from predictive_drives import PERIOD, RATE_HZ, drive, pose_of, profile
from trouble_helpers import Bench, driven, turns

import motioncue
from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.cueing.predictive import design as predictive
from motioncue.cueing.predictive.settings import PRESETS
from motioncue.engine.assembly import load_profile
from motioncue.engine.pipeline import Pipeline
from motioncue.virtual.installation import drive_packages


def poses_of(rows, begin, changes=(), at=None):
    """Return the poses of a drive with settings that change at ticks."""
    stepper = motioncue.bind(begin)
    poses = []
    for number, row in enumerate(rows):
        for change in (each for each, tick in zip(changes, at or (), strict=True) if tick == number):
            stepper.retune({f"cueing.{key}": value for key, value in change.items()})
        stepper.motion[0] = row
        stepper.step()
        poses.append(pose_of(stepper.cue)[0])
    return np.array(poses)


def jerks_of(poses):
    """Return the changes of acceleration from tick to tick of translations and of rotations [m/s^2, rad/s^2]."""
    return abs(np.diff(poses, 3, axis=0)).reshape(-1, 2, 3).max(axis=2) * RATE_HZ**2


SMALL = PRESETS["small"]["workspace"]
NARROW = {
    "slow": {"workspace.surge": {**SMALL["surge"], "speed_m_s": 0.01}},
    "short": {"workspace.surge": {**SMALL["surge"], "range_m": 0.02}},
    "weak": {"workspace.surge": {**SMALL["surge"], "acceleration_m_s2": 0.2}},
    "flat": {"workspace.pitch": {**SMALL["pitch"], "range_deg": 1.0}},
    "still": {"workspace.heave": {**SMALL["heave"], "range_m": 0.01}},
}
CHANGES = {
    "speed": {"weights.speed": 1000.0},
    "travel": {"weights.travel": 1000.0},
    "effort": {"weights.effort": 1000.0},
    "surge": {"weights.surge": 30.0},
    "gain": {"gain": 0.1},
    "strong": {"gain": 2.0},
    "mute": {"gains.surge": 0.0, "gains.roll": 0.0},
    "heave": {"weights.heave": 0.0},
    "conflict": {"weights.conflict": 4.0},
    "lean": {"tilt.acceleration_limit_deg_s2": 1.0},
    "slow lean": {"tilt.rate_limit_deg_s": 0.1},
    **NARROW,
}


@pytest.mark.parametrize("name", [*CHANGES])
@pytest.mark.parametrize("at", [1500, pytest.param(2222, marks=pytest.mark.search)])
@pytest.mark.check
def test_changed_settings_take_hold_without_a_jolt(name, at, rng):
    motion = drive(rng, 3600, 2.0)
    change = {f"cueing.{key}": value for key, value in CHANGES[name].items()}
    begin, after = profile("cueing.preset=small"), profile("cueing.preset=small", change)
    own = np.maximum(*(jerks_of(poses_of(motion, each)).max(axis=0) for each in (begin, after)))
    changed = jerks_of(poses_of(motion, begin, [CHANGES[name]], [at]))[at - 3 :]
    # A plan may be the opposite of the one before; a channel goes over to it in half a second: 1.875 / 0.5 s at most.
    most = np.array([2.0 * 6.0, 2.0 * np.radians(500.0)])
    # One that pulls the platform to neutral a thousand times as hard runs into its largest speed, and is stopped there.
    most[0] *= 8.0 if name == "travel" else 1.0
    # Any plan may turn the largest tilt acceleration round until the next one.
    own[1] = max(own[1], 2.0 * np.radians(300.0) / PERIOD)
    assert (changed.max(axis=0) <= own + most * 1.875 / 0.5 / RATE_HZ).all()


@pytest.mark.parametrize("name", [*NARROW])
def test_narrower_bounds_take_hold_in_two_seconds_and_the_former_ones_hold_till_then(name, rng):
    motion = drive(rng, 3000, 2.0)
    poses = poses_of(motion, profile("cueing.preset=small"), [NARROW[name]], [1500])
    after = 1500 + round(2.0 * RATE_HZ) + PERIOD
    ((key, axis),) = NARROW[name].items()
    channel = predictive.AXES.index(key.partition(".")[2])
    unit = 1.0 if channel < 3 else np.radians(1.0)
    place = poses[:, channel] / unit
    speed, push = np.diff(place) * RATE_HZ, np.diff(place, 2) * RATE_HZ**2
    for bounds, part in ((SMALL[key.partition(".")[2]], slice(0, None)), (axis, slice(after, None))):
        for size, values in zip(bounds.values(), (place, speed, push), strict=True):
            assert abs(values[part]).max() <= size * (1.0 + 1e-5) + 1e-6


@pytest.mark.parametrize("platform", ["hexapod-dim", "box-small"])
def test_an_axis_whose_gain_is_0_rests_and_the_others_move_as_before(platform):
    """Surge without sway, or sway without surge; heave is both times what the platform's lean makes of it."""
    pushed = np.zeros(600, MOTION_DTYPE)
    pushed["time"] = np.round(1e9 * np.arange(600) / RATE_HZ)
    named = [f"platform.preset={platform}", "cueing.algorithm=predictive"]
    for axis, other in (("surge", "sway"), ("sway", "surge")):
        motion = pushed.copy()
        motion[axis][100:] = 2.0
        silent, deaf, whole = (
            pose_of(motioncue.cue(load_profile("ccd-dk", *named, *more), motion))
            for more in ([f"cueing.gains.{axis}=0"], [f"cueing.gains.{other}=0"], [])
        )
        assert not silent.any()
        assert np.array_equal(deaf, whole)
        assert abs(whole).max() > 0.01


@pytest.mark.check
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.search), 3])
def test_who_changes_settings_all_the_time_does_not_keep_the_platform_on_an_old_plan(every):
    """Bursts begin within a tenth of a second: of 10 m/s^2 at most, what 3 ms may change is 0.3 m/s^2."""
    chance, clock = np.random.default_rng(5), FakeClock(1_000_000_000)
    pipeline = Pipeline(load_profile("ccd-dk-washout", "cueing.preset=large"), clock, trace=2000)
    now = clock.now_ns()
    pipeline.intake.begin(now)
    for number, paced in enumerate(drive_packages("city-car-driving", "turns", duration_s=6.0)):
        now += round(1e9 * paced.duration)
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(paced.package, now)
        if number > 200 and number % every == 0:
            pipeline.retune(f"cueing.weights.surge={chance.uniform(0.1, 1.0)}")
    assert abs(np.diff(pipeline.emitter.trace["cue"]["surge"])).max() < 0.3


@pytest.mark.check
@pytest.mark.parametrize("platform", ["hexapod-simona", "box-large"])
@pytest.mark.parametrize("at_s", [7.62, 10.58, 15.76])
@pytest.mark.parametrize("change", ["gains.yaw", "gain"])
def test_changed_settings_turn_the_seat_no_more_abruptly_than_a_drive_does(platform, at_s, change):
    """The bound is that of a smooth drive, test_predictive_knocks; in a bend, where the new plan is another one."""
    frames = driven("turns", 60)[: round((at_s + 2.0) * 60)]
    bench = Bench(f"platform.preset={platform}", profile="ccd-dk-washout").connect()
    before = round(at_s * 60)
    bench.play(frames[:before], np.arange(before) / 60)
    ticks = len(bench.trace)
    bench.pipeline.retune({f"cueing.{change}": 0.3 if change == "gain" else 0.0})
    bench.play(frames[before:], np.arange(len(frames) - before) / 60)
    after = bench.trace[ticks - 3 :]
    assert abs(after["cue"]["yaw"]).max() > 1e-3
    assert turns(after).max() < 1.25
