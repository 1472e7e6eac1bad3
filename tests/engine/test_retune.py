"""Settings that change under the emitter: the cue continues in every state, and the settings in force are visible."""

import gc
import math
import sys

import numpy as np
import pytest
from test_nothing_jolts import package
from test_supervisor import FADE_S, HOLD_S, SLOW
from test_supervisor import Rig as LooseRig
from trouble_helpers import BOUNDED, MOVERS, Bench, broken, driven

import motioncue
from motioncue import ConfigError, cueing
from motioncue.core.table import Watch
from motioncue.engine.embed import Stepper
from motioncue.engine.tick import Settings
from motioncue.safety.supervisor import State

DT = 3_000_030e-9
OVERLAP = 3


def ride(*overrides, profile="ccd-dk-classical", changes=(), frames=1200, name="tour"):
    """Return a bench after a virtual drive; `changes` are (frame, change)."""
    bench = Bench(*overrides, profile=profile).connect()
    drive = driven(name, 60)[:frames]
    begin = 0
    for at, change in (*changes, (frames, None)):
        bench.play(drive[begin:at], np.arange(at - begin) / 60)
        bench.run(1 / 60)
        if change is not None:
            bench.pipeline.retune(change)
        begin = at
    return bench


def sent(trace):
    """Return the bits of ticks, without the number of the settings that they took."""
    return b"".join(np.ascontiguousarray(trace[name]).tobytes() for name in trace.dtype.names if name != "settings")


def retuned(bench):
    return [move for move in bench.pipeline.transitions()[0] if move["reason"] == "retuned"]


# ---- what is sent ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_the_same_settings_give_the_bits_of_none(profile):
    changes = [(at, motioncue.load_profile(profile, *BOUNDED)) for at in range(1, 600, 13)]
    one = ride(*BOUNDED, profile=profile, changes=[(at, None) for at, _ in changes], frames=600)
    two = ride(*BOUNDED, profile=profile, changes=changes, frames=600)
    three = ride(*BOUNDED, profile=profile, changes=[(at, "description=another") for at, _ in changes], frames=600)
    assert sent(one.trace) == sent(two.trace) == sent(three.trace)
    assert two.pipeline.stats()["retunes"] == three.pipeline.stats()["retunes"] == len(changes)


CHANGES = {
    "gain": "cueing.surge.gain=0.1",
    "preset": "cueing.preset=utias",
    "algorithm": "cueing.algorithm=direct",
    "filters": "cueing.filters=hold",
    "limited": {"cueing": {"limited": "after_turn", "surge": {"limit_m_s2": 0.5}, "yaw": {"limit_deg_s": 3.0}}},
    "optimal": {"cueing": {"algorithm": "optimal", "preset": "small"}},
    "limits": {"limits": {"surge": {"value_m_s2": 0.3}, "pitch": {"value_deg": 0.5}}},
    "free": "limits=none",
    "fade": {"supervisor": {"fade_s": 0.3}, "cueing": {"surge": {"gain": 0.1}}},
    "hold": "source.bridge=hold",
    "linear": "source.bridge=linear",
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_sent_is_that_of_before_until_the_change_is_in_force_and_has_no_step_after(what):
    plain = ride(changes=[(600, None)])
    bench = ride(changes=[(600, CHANGES[what])])
    trace, n = bench.trace, len(plain.trace)
    first = next(i for i in range(n) if sent(trace[i : i + 1]) != sent(plain.trace[i : i + 1]))
    (event,) = retuned(bench)
    assert (trace["deadline"] == event["time"]).argmax() in (first, first - 1)
    assert event["from"] == event["to"] == "RUNNING"
    assert bench.pipeline.stats()["transitions"][-1].get("count", 1) == 1
    fade = DT / bench.pipeline.profile.supervisor.fade_s
    other = ride(changes=[(1, CHANGES[what]), (600, None)])  # with the new settings all the time
    for name in MOVERS:
        own, new, found = (np.abs(np.diff(each.trace["cue"][name])).max() for each in (plain, other, bench))
        size = np.abs(plain.trace["cue"][name]).max() + np.abs(trace["cue"][name]).max()
        assert found <= 1.7 * max(own, new) + 15 / 8 * fade * size + 1e-9, name


def test_bounds_that_are_tightened_hold_when_the_value_has_come_in():
    bounds = {"surge": {"value_m_s2": 0.2, "rate_m_s3": 2.0}, "pitch": {"value_deg": 0.4, "rate_deg_s": 2.0}}
    bench = ride(changes=[(600, {"limits": bounds})])
    new = bench.pipeline.profile.bounds()
    at = next(i for i, row in enumerate(bench.trace) if row["deadline"] == retuned(bench)[0]["time"])
    cue = bench.trace["cue"]
    assert broken(cue, ride().pipeline.profile.bounds(), DT) == []  # the wider ones, all the time
    assert broken(cue[at + 700 :], new, DT, fresh=False) == []
    assert np.abs(cue["surge"][:at]).max() > 0.2


def test_gains_of_zero_and_back_move_nothing_at_once():
    gains = [f"cueing.{axis}.gain=0" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")]
    bench = ride(changes=[(600, gains), (800, "cueing.preset=simona")])
    cue = bench.trace["cue"]
    plain = ride().trace["cue"]
    for name in MOVERS:
        size = np.abs(cue[name]).max() + np.abs(plain[name]).max()
        assert np.abs(np.diff(cue[name])).max() <= 2 * np.abs(np.diff(plain[name])).max() + 15 / 8 * DT * size


# ---- in every state --------------------------------------------------------------------------------------------------


def reached(state, *overrides, before=None):
    """Return a bench with a leaning, accelerating car, in a state of the supervisor."""
    # A limited tilt has rates that switch from one tick to the next.
    bench = Bench("cueing.tilt.rate_limit_deg_s=1000", *overrides, profile="ccd-dk-classical").connect()
    if before is not None:
        bench.pipeline.retune(before)
    began = bench.now

    def drive(seconds):
        for _ in range(round(60 * seconds)):
            bench.run(1 / 60)
            t = (bench.now - began) * 1e-9
            speed, place = 15.0 + 3.0 * t, 15.0 * t + 1.5 * t * t
            bench.feed(package(place, 0.15, velocity=(0.0, 0.0, speed), acceleration=(0.0, 0.0, 3.0)))

    if state == "OFFLINE":
        bench.run(0.5)
    else:
        drive(0.5 if state == "ENGAGING" else 2.0)
    if state == "HOLDING":
        bench.emitter.hold()
        bench.run(0.05)
    elif state == "PARKING":
        bench.emitter.park()
        bench.run(0.3)
    assert bench.state == state
    return bench, drive


def through(state, before=None, change=None):
    """Return a bench that entered a state, changed settings there, drove on and parked."""
    bench, drive = reached(state, before=before)
    if change is not None:
        bench.pipeline.retune(change)
    bench.run(0.05)
    assert bench.state == state
    bench.emitter.engage()
    drive(1.0)
    bench.emitter.park()
    bench.run(3.0)
    assert bench.state == "OFFLINE"
    return bench


@pytest.mark.parametrize("state", ["OFFLINE", "ENGAGING", "RUNNING", "HOLDING", "PARKING"])
@pytest.mark.parametrize("what", ["gain", "preset", "algorithm", "limits", "free"])
def test_a_change_in_any_state_makes_no_step_and_does_not_move_the_state(state, what):
    bench = through(state, change=CHANGES[what])
    (event,) = retuned(bench)
    assert (event["from"], event["to"]) == (state, state)
    at = int(np.searchsorted(bench.trace["deadline"], event["time"]))
    cue = bench.trace["cue"]
    cues = (
        cue,
        through(state).trace["cue"],
        through(state, before=CHANGES[what]).trace["cue"],
        motioncue.cue(bench.pipeline.profile, bench.trace["motion"][at:]),  # from rest at that moment
    )
    for name in MOVERS:
        size = sum(np.abs(each[name]).max() for each in cues)
        own = max(np.abs(np.diff(each[name])).max() for each in cues[1:])
        # The cue's own steps, those of the fades that all have, and those of the join.
        assert np.abs(np.diff(cue[name])).max() <= 1.5 * own + 15 / 8 * DT * size, name
        assert cue[name][-1] == 0.0


def test_a_change_while_the_platform_is_parked_moves_nothing_and_counts_when_it_engages():
    bench, drive = reached("OFFLINE")
    bench.pipeline.retune(["cueing.algorithm=direct", "limits=none"])
    bench.run(0.5)
    assert not any(bench.trace["cue"][name].any() for name in MOVERS)
    drive(2.0)
    expected = motioncue.cue(bench.pipeline.profile, bench.trace["motion"])
    assert bench.trace["weight"][-1] == 1.0
    for name in MOVERS:
        assert bench.trace["cue"][name][-1] == expected[name][-1]


def test_a_change_during_a_fault_goes_on_to_neutral_along_the_fade_and_engages_with_the_new_settings():
    rig = LooseRig("limits=none", profile="ccd-dk").drive(2.0)
    rig.feed(acceleration=(-1.2e308, 1.2e308, 1.2e308)).run(0.3)
    assert rig.emitter.state == "FAULT"
    before = len(rig.emitter.trace)
    profile = motioncue.load_profile("ccd-dk-classical")
    rig.emitter.retune(
        Settings(cueing.design(profile.cueing, 1 / DT), period_ns=3_000_030, hold_s=HOLD_S, fade_s=FADE_S)
    )
    rig.run(0.1)
    assert rig.emitter.state == "FAULT"
    weight = rig.emitter.trace["weight"]
    surge = rig.emitter.trace["cue"]["surge"]
    faded = weight[before:] > 0
    assert faded.sum() > 10
    np.testing.assert_allclose(
        surge[before:][faded] / weight[before:][faded], surge[before] / weight[before], rtol=1e-9
    )
    rig.run(1.2)
    assert rig.emitter.newest()["weight"][0] == 0.0
    rig.operate("engage").run(0.1)
    assert rig.emitter.state == "OFFLINE"
    assert rig.emitter.counts()["not_finite"] == 1


def test_a_join_that_a_fault_has_cut_short_is_forgotten():
    rig = LooseRig("limits=none", profile="ccd-dk").drive(2.0)
    profile = motioncue.load_profile("ccd-dk-classical", "limits=none")
    rig.emitter.retune(
        Settings(cueing.design(profile.cueing, 1 / DT), period_ns=3_000_030, hold_s=HOLD_S, fade_s=FADE_S)
    )
    rig.drive(0.1)
    assert rig.emitter.counts()["retunes"] == 1
    rig.feed(acceleration=(-1.2e308, 1.2e308, 1.2e308)).run(1.5)
    assert rig.emitter.state == "FAULT"
    before = len(rig.emitter.trace)
    rig.operate("engage").drive(0.5)
    trace = rig.emitter.trace[before:]
    trace = trace[trace["state"] == State.ENGAGING]
    assert len(trace) > 100
    expected = motioncue.cue(profile, trace["motion"])  # from rest, and nothing beside it
    for name in MOVERS:
        np.testing.assert_allclose(trace["cue"][name], expected[name] * trace["weight"], rtol=1e-12, atol=1e-15)


def test_an_algorithm_that_gives_no_number_ends_in_a_fault_and_not_in_a_jolt():
    # A washout whose displacement overflows, taken while another runs.
    rig = LooseRig("limits=none", profile="ccd-dk").drive(40)
    slow = motioncue.load_profile("ccd-dk-classical", *SLOW)
    rig.feed(acceleration=(0.0, 0.0, 1.4e308))
    rig.run(0.05)
    rig.emitter.retune(Settings(cueing.design(slow.cueing, 1 / DT), period_ns=3_000_030, hold_s=1e3, fade_s=FADE_S))
    rig.run(3.0)
    cue = rig.emitter.trace["cue"]
    assert all(np.isfinite(cue[name]).all() for name in MOVERS)


@pytest.mark.parametrize("channel", MOVERS)
def test_no_channel_is_sent_without_a_number(probe, channel):
    """Neither an acceleration nor a displacement: a pose that is no number would throw the actuators."""
    rig = LooseRig("limits=none", profile="ccd-dk").drive(2.0)
    broken = probe.Broken(motioncue.CUE_DTYPE.names.index(channel), 100)
    rig.emitter.retune(Settings(broken, period_ns=3_000_030, hold_s=HOLD_S, fade_s=FADE_S))
    rig.drive(1.0)
    assert rig.emitter.state == "FAULT"
    assert rig.emitter.counts()["not_finite"] == 1
    cue = rig.emitter.trace["cue"]
    assert [name for name in MOVERS if not np.isfinite(cue[name]).all()] == []


def test_a_channel_left_unwritten_is_neutral(probe):
    """In a run, in a loop of one's own, offline: not what stood there before."""
    rig = LooseRig("limits=none", profile="ccd-dk").drive(2.0)
    rig.emitter.retune(Settings(probe.Sparse(), period_ns=3_000_030, hold_s=HOLD_S, fade_s=FADE_S))
    rig.drive(3.0)
    offline = np.ones(4, motioncue.CUE_DTYPE)
    probe.Sparse().process(np.zeros(4, motioncue.MOTION_DTYPE), offline)
    for sent in (rig.emitter.trace["cue"][-100:], offline):
        assert [name for name in MOVERS if name != "surge" and sent[name].any()] == []


def test_a_change_under_way_when_neutral_is_reached_is_done_there_and_keeps_no_other_waiting():
    rig = LooseRig("limits=none", profile="ccd-dk").drive(2.0).operate("park").run(0.5 * FADE_S)
    assert 0.0 < rig.emitter.newest()["weight"][0] < 1.0
    for name in ("ccd-dk-classical", "ccd-dk"):
        algorithm = cueing.design(motioncue.load_profile(name).cueing, 1 / DT)
        rig.emitter.retune(Settings(algorithm, period_ns=3_000_030, hold_s=HOLD_S, fade_s=FADE_S))
        rig.run(0.6 * FADE_S)  # less than the change itself takes, enough to be at neutral
        assert rig.emitter.newest()["weight"][0] == 0.0
    assert rig.emitter.counts()["retunes"] == 2


@pytest.mark.parametrize("channel", ["roll", "yaw"])
def test_an_angle_that_crosses_half_a_turn_during_the_fade_goes_on_and_is_sent_within_half_a_turn(probe, channel):
    motion = np.zeros(round(FADE_S / DT) + 10, motioncue.MOTION_DTYPE)
    turned = 3.0 + 2.0 * DT * np.arange(len(motion))  # what it fades from; 0 is what it fades to
    motion[channel] = np.remainder(turned + math.pi, 2 * math.pi) - math.pi
    direct, sparse = (
        Settings(each, period_ns=3_000_030, fade_s=FADE_S)
        for each in (cueing.design(motioncue.load_profile("ccd-dk").cueing, 1 / DT), probe.Sparse())
    )
    stepper = Stepper(direct, tune=lambda change, post: post(change))
    stepper.retune(sparse)
    sent = np.zeros(len(motion))
    for i in range(len(motion)):
        stepper.motion[0] = motion[i]
        assert stepper.step()
        sent[i] = stepper.cue[channel][0]
    x = np.clip((np.arange(len(motion)) - OVERLAP + 1) * DT / FADE_S, 0.0, 1.0)
    faded = turned * (1.0 - x**3 * (10 - 15 * x + 6 * x**2))
    assert faded.max() > math.pi
    np.testing.assert_allclose(sent, np.remainder(faded + math.pi, 2 * math.pi) - math.pi, atol=1e-9)


# ---- the supervisor's and the receiver's -----------------------------------------------------------------------------


def test_the_time_of_holding_changes():
    bench, _ = reached("RUNNING")
    bench.pipeline.retune("supervisor.hold_s=0.5")
    bench.run(0.35)
    assert bench.state == "RUNNING"  # overdue after three quarters of it
    bench.run(0.1)
    assert bench.state == "HOLDING"
    bench.run(0.1)
    assert bench.state == "PARKING"


def test_the_time_of_fading_changes_on_the_way_without_a_corner():
    bench, _ = reached("RUNNING")
    bench.emitter.park()
    bench.run(0.3)
    begun = len(bench.trace)
    bench.pipeline.retune("supervisor.fade_s=4")
    bench.run(1.2 * 4.0)
    assert bench.state == "OFFLINE"
    weight = bench.trace["weight"]
    rest = 0.7 - DT * np.arange(len(weight) - begun)  # of the fade of before
    assert (weight[begun:] >= rest**3 * (10.0 - 15.0 * rest + 6.0 * rest**2) * (rest > 0.0) - 2 * DT).all()
    # Never faster than the faster fade; the way to the other pace keeps the slope.
    assert np.abs(np.diff(weight)).max() <= 15 / 8 * DT
    assert np.abs(np.diff(weight, 2)).max() <= 1.5 * 10 / 3**0.5 * DT**2


def test_thresholds_of_the_watch_change_with_the_settings_of_the_ticks():
    bench, drive = reached("RUNNING")
    drive(0.2)
    bench.pipeline.retune("watch.max_acceleration_m_s2=2")
    assert bench.intake.discontinuities == {}
    drive(0.2)
    assert set(bench.intake.discontinuities) == {"impossible_acceleration"}
    assert bench.state == "PARKING"
    bench.pipeline.retune("watch.max_acceleration_m_s2=80")
    drive(2.0)
    assert bench.state == "RUNNING"


def test_the_receiver_waits_for_the_fade_of_a_change_before_as_the_ticks_do():
    bench, drive = reached("RUNNING")
    drive(0.2)
    bench.pipeline.retune("cueing.surge.gain=0.1")
    drive(0.2)
    bench.pipeline.retune("watch.max_acceleration_m_s2=2")
    drive(0.2)
    assert bench.intake.discontinuities == {}
    drive(1.0)
    assert set(bench.intake.discontinuities) == {"impossible_acceleration"}


def test_the_head_moves_to_its_new_place_along_a_fade():
    # A car that turns on the spot at 0.3 rad/s: at r ahead of the reference point, its head is pulled back by r.
    bench = Bench("limits=none", "source.bridge=hold").connect()
    began = bench.now

    def drive(frames):
        for _ in range(frames):
            bench.run(1 / 60)
            bench.feed(package(heading=0.3 * (bench.now - began) * 1e-9, angular_velocity=(0.0, 0.3, 0.0)))

    drive(90)
    assert bench.trace["motion"]["surge"][-1] == pytest.approx(0.0, abs=1e-6)
    bench.pipeline.retune({"source.head_m": [2.0, 0.0, 0.0]})
    before = len(bench.trace)
    drive(90)
    surge = bench.trace["motion"]["surge"][before:]
    assert surge[-1] == pytest.approx(-(0.3**2) * 2.0, rel=1e-5)
    assert np.abs(np.diff(surge)).max() <= 15 / 8 / 60 * 0.18 * 1.01  # a frame's part of a fade of 1 s
    assert (np.diff(surge) <= 1e-9).all()


# ---- visibility ------------------------------------------------------------------------------------------------------


def test_profile_is_the_one_in_force_and_a_refused_change_leaves_it():
    bench, drive = reached("RUNNING")
    pipeline = bench.pipeline
    old = pipeline.profile
    with pytest.raises(ConfigError, match=r"output\.rate_hz: found 250"):
        pipeline.retune(["cueing.surge.gain=0.3", "output.rate_hz=250"])
    pipeline.retune("cueing.surge.gain=0.3")
    assert pipeline.profile is old
    bench.emitter.run(ticks=OVERLAP)
    assert pipeline.profile.cueing.surge.gain == 0.3
    assert pipeline.profile.cueing.sway == old.cueing.sway
    drive(0.1)
    assert len(retuned(bench)) == 1


def test_limited_and_limits_are_those_in_force():
    bench, drive = reached("RUNNING")
    bench.pipeline.retune({"limits": {"surge": {"value_m_s2": 0.01}}})
    drive(4.0)
    stats = bench.pipeline.stats()
    assert stats["limits"]["surge"][0] == 0.01
    assert stats["limited"]["surge"] > 0.3
    bench.pipeline.retune("limits=none")
    drive(2.0)
    assert bench.pipeline.stats()["limits"] == "none"


def test_many_changes_between_two_looks_are_one_entry_with_their_number():
    bench, _ = reached("RUNNING", "supervisor.hold_s=5", "supervisor.fade_s=0.1")
    for i in range(10):
        bench.pipeline.retune(f"cueing.surge.gain={0.1 + i / 20}")
        bench.emitter.run(ticks=40)  # the fade of one
    (move,) = [move for move in bench.pipeline.stats()["transitions"] if move["reason"] == "retuned"]
    assert move["count"] == bench.pipeline.stats()["retunes"] == 10
    assert math.isfinite(move["t"])


@pytest.mark.check
def test_ticks_that_take_settings_allocate_nothing_and_ten_thousand_changes_keep_memory():
    bench, _ = reached("RUNNING")
    changes = [f"cueing.surge.gain={0.1 + i / 100:.2f}" for i in range(20)]

    def change(times):
        for i in range(times):
            bench.pipeline.retune(changes[i % 20])
            bench.emitter.run(ticks=1)
            if i % 50 == 0:
                bench.pipeline.transitions()

    change(200)
    gc.collect()
    before = sys.getallocatedblocks()
    change(3000)
    gc.collect()
    grown = sys.getallocatedblocks() - before
    assert grown < 60 * 12 + 300  # the entries about what has changed, one in fifty
    bench.pipeline.retune(changes[0])
    before = sys.getallocatedblocks()
    bench.emitter.run(ticks=200)
    assert sys.getallocatedblocks() - before < 10


def test_watch_of_a_profile_is_used_from_the_start():
    assert Bench("watch.max_acceleration_m_s2=5").profile.watch == Watch(max_acceleration_m_s2=5.0)
