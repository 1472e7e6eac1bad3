"""When the system ends a run, the platform is at rest within `supervisor.leave_s`, whatever it does at that moment."""

import msgspec
import numpy as np
import pytest
from emitter_rig import START, Rig
from helpers import frame
from test_platforms import PRESETS, assert_within, profile_for

import motioncue
from motioncue.core.channels import CUE_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.core.table import UNWATCHED
from motioncue.engine.assembly import check, limits_of
from motioncue.engine.leaving import LEAVE_S, leaving_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.profile.profile import overridden
from motioncue.virtual.installation import drive_packages

PERIOD = 3_000_030
LONG_S = 700


def left(pipeline, now, leave=True):
    """End the run at this time; return the ticks from then on."""
    pipeline.emitter.stop(leave)
    pipeline.emitter.run(until_ns=now + LONG_S * 10**9)
    ticks = pipeline.emitter.trace
    assert pipeline.emitter.rested
    return ticks[ticks["deadline"] >= now]


def lasts_s(ticks, now):
    return (ticks["deadline"][-1] - now) * 1e-9


def assert_smooth(cues, peak, fade_s):
    """Assert that no channel changes more from tick to tick than a fade of its peak does."""
    assert np.abs(np.diff(cues)).max() <= 15 / 8 * peak * PERIOD * 1e-9 / fade_s * (1 + 1e-9)


# ---- a cue alone -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fade_s", [0.1, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("leave_s", [None, 1.0, 2.5, 5.0])
def test_a_cue_is_at_neutral_in_time_without_a_step(fade_s, leave_s):
    keys = [] if leave_s is None else [f"supervisor.leave_s={leave_s}"]
    profile = motioncue.load_profile("ccd-dk", f"supervisor.fade_s={fade_s}", "supervisor.hold_s=5", *keys)
    rig = Rig(profile, trace=60_000).frames_for(fade_s + 1.0)
    assert rig.trace["weight"][-1] == 1.0
    ticks = left(rig.pipeline, rig.now)
    assert lasts_s(ticks, rig.now) <= min(leave_s or LEAVE_S, 1.2 * fade_s + 1.0)
    assert not any(ticks["cue"][name][-1] for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"))
    surge = ticks["cue"]["surge"]
    assert_smooth(surge, abs(surge[0]), leaving_of(profile).fade_s)
    assert leaving_of(profile).fade_s <= fade_s  # never slower than without hurry


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_fade_under_way_is_hurried_in_time(share, way):
    """Also one that has just turned round, which is the latest."""
    profile = motioncue.load_profile("ccd-dk", "supervisor.fade_s=20", "supervisor.leave_s=2", "supervisor.hold_s=5")
    rig = Rig(profile, trace=60_000)
    rig.frames_for(20.0 * share if way == "up" else 21.0)
    if way == "down":
        rig.emitter.stop()
        rig.frames_for(20.0 * share)
    before = rig.trace["cue"]["surge"][-1:]
    ticks = left(rig.pipeline, rig.now)
    assert lasts_s(ticks, rig.now) <= 2.0
    surge = np.concatenate([before, ticks["cue"]["surge"]])
    # The hurried fade turns without overshoot, so it is never faster than a whole one.
    assert_smooth(surge, abs(rig.trace["motion"]["surge"]).max(), leaving_of(profile).fade_s)
    assert surge[-1] == 0.0


def test_an_ordinary_stop_is_not_hurried_and_cannot_slow_a_hurried_one():
    profile = motioncue.load_profile("ccd-dk", "supervisor.fade_s=20", "supervisor.leave_s=2", "supervisor.hold_s=5")
    rig = Rig(profile, trace=60_000).frames_for(21.0)
    assert lasts_s(left(rig.pipeline, rig.now, leave=False), rig.now) > 19.9
    rig = Rig(profile, trace=60_000).frames_for(21.0)
    rig.emitter.stop(leave=True)
    assert lasts_s(left(rig.pipeline, rig.now, leave=False), rig.now) <= 2.0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.check
def test_limits_alone_need_no_longer_than_told(seed):
    """Bounds drawn at random, behind a cue that jumps between their ends: the fade is what they have to follow."""
    draw = np.random.default_rng(seed)
    value, rate = 10.0 ** draw.uniform(0, 1.5), 10.0 ** draw.uniform(0.5, 3)
    acceleration = rate * 10.0 ** draw.uniform(0, 2)
    jerk = acceleration * 10.0 ** draw.uniform(0, 2)
    profile = motioncue.load_profile(
        "ccd-dk", f"limits.surge={{value_m_s2={value}, rate_m_s3={rate}, "
        f"acceleration_m_s4={acceleration}{f', jerk_m_s5={jerk}' if seed % 2 else ''}}}",
    )  # fmt: skip
    told = leaving_of(profile)
    pace = PERIOD * 1e-9 / told.fade_s
    down = np.clip(1.0 - np.arange(round(LONG_S / 10 / (PERIOD * 1e-9))) * pace, 0.0, 1.0)
    down = down**3 * (10.0 - 15.0 * down + 6.0 * down**2)
    for interval_s in (0.01, 0.1, 1.0, 10.0):
        times = np.arange(6000) * PERIOD * 1e-9
        ends = value * np.sign(np.sin(np.pi * times / interval_s + 0.5))
        for length in draw.integers(1000, len(ends), 4):
            cues = np.zeros(length + len(down), CUE_DTYPE)
            cues["surge"] = np.concatenate([ends[:length], ends[length - 1] * down])
            limits_of(profile).process(cues)
            moves = np.flatnonzero(np.abs(cues["surge"]) > 1e-12)
            assert (moves[-1] + 1 - length) * PERIOD * 1e-9 <= told.leave_s - 0.2 * told.fade_s


# ---- with a platform -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.check
def test_a_platform_is_down_in_time_within_its_bounds(preset):
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    parked = platforms.parked_of(profile.platform, built)
    pipeline, now = Pipeline(profile, FakeClock(START), trace=60_000), START
    pipeline.intake.begin(now)
    for package in drive_packages("beamng", "turns", 60.0):
        now += round(package.duration * 1e9)
        if now > START + 8 * 10**9:
            break
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(package.package, now)
    ticks = left(pipeline, now)
    sent = pipeline.emitter.trace["actuators"][:, : len(built.names)]
    assert lasts_s(ticks, now) <= LEAVE_S
    np.testing.assert_array_equal(sent[-1], parked)
    assert_within(sent, built)


CAR = 'source={system="city-car-driving", endpoint="tcp://127.0.0.1:4567"}'


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("leave_s", [None, 6.0])
@pytest.mark.check
def test_a_platform_thrown_about_is_down_in_time(preset, leave_s):
    """A car that jumps between hard accelerations and turns, all of which are followed: the pose is out of reach."""
    keys = [] if leave_s is None else [f"supervisor.leave_s={leave_s}"]
    profile = profile_for(preset, CAR, "supervisor.hold_s=5", "platform.rise_s=20", *keys)
    profile = msgspec.structs.replace(profile, watch=UNWATCHED)
    built = platforms.build(profile.platform)
    draw = np.random.default_rng(len(preset))
    for _ in range(4):
        rig = Rig(profile, trace=60_000).frames_for(24.0)
        for _ in range(40):
            rig.package = frame(
                acceleration=tuple(draw.uniform(-60, 60, 3)), velocity=(0.0, 0.0, 12.0),
                angular_velocity=tuple(draw.uniform(-2, 2, 3)),
            )  # fmt: skip
            rig.frames_for(10.0 ** draw.uniform(-1.5, 0))
        assert rig.emitter.state == "RUNNING"
        ticks = left(rig.pipeline, rig.now)
        assert lasts_s(ticks, rig.now) <= (leave_s or LEAVE_S)
        sent = rig.trace["actuators"][:, : len(built.names)]
        np.testing.assert_array_equal(sent[-1], platforms.parked_of(profile.platform, built))
        assert_within(sent, built)


def test_compensated_lag_is_over_in_time():
    profile = profile_for("hexapod-dim", "platform.lag_s=0.05", "platform.lag_damping=0.7", CAR, "supervisor.hold_s=5")
    rig = Rig(profile, trace=60_000).frames_for(8.0)
    told = leaving_of(profile)
    assert lasts_s(left(rig.pipeline, rig.now), rig.now) <= told.leave_s


# ---- what cannot be kept is said -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        # 1.875 * 180 deg / (20 deg/s) = 16.9 s
        ({"limits.yaw.rate_deg_s": 20.0}, "limits.yaw needs"),
        # 1.875 * 2 m/s^2 / (0.5 m/s^3) = 7.5 s
        ({"output.limits.surge": {"value_m_s2": 2.0, "rate_m_s3": 0.5}}, r"output\[0\].limits.surge needs"),
    ],
)  # fmt: skip
def test_a_time_that_the_limits_do_not_allow_is_refused_with_the_shortest(keys, named):
    refusal = rf"supervisor\.leave_s: found 4, allowed is at least [0-9.]+ .*{named}"
    with pytest.raises(ConfigError, match=refusal) as no:
        motioncue.load_profile("ccd-dk", {**keys, "supervisor.leave_s": 4.0})
    least = float(str(no.value).partition("at least ")[2].split()[0])
    assert least > (16.9 if "yaw" in named else 7.5)
    allowed = motioncue.load_profile("ccd-dk", {**keys, "supervisor.leave_s": least})
    assert leaving_of(allowed).leave_s <= least
    # Without the key it takes what it needs, and says so before it starts.
    told = leaving_of(motioncue.load_profile("ccd-dk", keys))
    assert told.leave_s == pytest.approx(least, abs=0.1)
    assert "up to" in told.late()


def test_a_time_that_the_actuators_do_not_allow_is_refused():
    hexapod = profile_for("hexapod-dim").platform
    leg = hexapod.leg if not isinstance(hexapod.leg, tuple) else hexapod.leg[0]
    slow = {"platform.leg": {"min_m": leg.min_m, "max_m": leg.max_m, "speed_m_s": 0.05, "acceleration_m_s2": 1.0}}
    with pytest.raises(ConfigError, match=r"supervisor\.leave_s: .*platform: leg_\d needs .* s down"):
        overridden_checked(profile_for("hexapod-dim"), {**slow, "supervisor.leave_s": 4.0})


def overridden_checked(profile, keys):
    profile = overridden(profile, keys)
    check(profile)
    return profile


def test_the_default_is_silent():
    for name in ("ccd-dk", "ccd-dk-classical"):
        assert leaving_of(motioncue.load_profile(name)).late() == ""
    for preset in PRESETS:
        assert leaving_of(profile_for(preset)).late() == ""


def test_a_running_engine_refuses_bounds_that_it_could_not_leave_within():
    rig = Rig(motioncue.load_profile("ccd-dk", "supervisor.leave_s=3")).frames_for(0.5)
    with pytest.raises(ConfigError, match=r"supervisor\.leave_s: found 3"):
        rig.pipeline.retune("limits.yaw.rate_deg_s=20")
    rig.pipeline.retune("supervisor.leave_s=2")
    rig.frames_for(0.5)
    assert rig.pipeline.profile.supervisor.leave_s == 2.0
