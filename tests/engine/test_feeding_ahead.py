"""What a program says that the car will do: it reaches the plan at its time, is recorded, is refused if it is none."""

from threading import Event

import numpy as np
import pytest
from helpers import Sink
from same_bits import assert_same_bits
from test_feeding import fed, sent_to

import motioncue
from motioncue.core.channels import AHEAD_MARK, AHEAD_S, MOTION_DTYPE
from motioncue.engine.assembly import load_profile
from motioncue.engine.replay import first_difference, repeat
from motioncue.errors import ConfigError

RIDE = ("cueing.algorithm=predictive", "platform.preset=box-small", "limits=none")


def future(time):
    """Return the car's motion at some times: at rest for ten seconds, then bends and brakes; time in `engine_speed`."""
    rows = np.zeros(np.shape(time), MOTION_DTYPE)
    driven = np.clip(time - 10.0, 0.0, None)
    rows["surge"] = 2.0 * np.sin(1.1 * driven) * np.clip(driven, 0.0, 1.0)
    rows["sway"] = 3.0 * np.sin(0.7 * driven) * np.clip(driven, 0.0, 1.0)
    rows["engine_speed"] = rows["frame_time"] = time
    rows["speed"] = np.nan
    return rows


def package(time, known=True):
    rows = future(np.array([time]))
    return rows.tobytes() + (AHEAD_MARK + future(time + np.array(AHEAD_S)).tobytes() if known else b"")


@pytest.mark.parametrize("bridge", ["hold", "linear"])
@pytest.mark.parametrize("rate_hz", [20.0, 100.0])
@pytest.mark.check
def test_a_plan_sees_what_a_program_says_at_its_time(bridge, rate_hz):
    """As the same ticks offline, told what straight lines between the rows are at the time that each tick shows."""
    no_credit = "cueing.tilt.fast_share=0"  # else the time at rest before, which offline lacks, makes bursts sooner
    profile = load_profile("program-dk", *RIDE, f"source.bridge={bridge}", no_credit)
    times = np.arange(0.0, 18.0, 1.0 / rate_hz)
    pipeline, _ = fed(profile, [package(time) for time in times], rate_hz)
    ticks = pipeline.emitter.trace
    ticks = ticks[ticks["weight"] == 1.0]
    shown, newest = ticks["motion"]["engine_speed"], ticks["motion"]["frame_time"]
    from_rest = int(np.argmax(shown > 5.0))
    ticks, shown, newest = ticks[from_rest:], shown[from_rest:], newest[from_rest:]
    nodes = np.array([0.0, *AHEAD_S])
    ahead = np.zeros((len(ticks), len(AHEAD_S)), MOTION_DTYPE)
    for name in ("surge", "sway"):
        for row, (time, frame) in enumerate(zip(shown, newest, strict=True)):
            known = future(frame + nodes)[name]
            ahead[name][row] = np.interp(np.array(AHEAD_S) + time - frame, nodes, known)
    expected = motioncue.cue(profile, np.ascontiguousarray(ticks["motion"]), ahead=ahead)
    without = motioncue.cue(profile, np.ascontiguousarray(ticks["motion"]))
    for name in ("surge_displacement", "pitch", "roll"):
        size = np.abs(expected[name]).max()
        assert np.abs(ticks["cue"][name] - expected[name]).max() < 0.02 * size, name
        assert np.abs(without[name] - expected[name]).max() > 0.1 * size, name


def test_what_is_not_known_or_too_old_is_foreseen_as_always():
    """Rows of NaN, and frames without rows, give the bits of a program that knows nothing; so does what has stopped."""
    profile = load_profile("program-dk", *RIDE)
    times = np.arange(0.0, 12.0, 0.02)
    unknown = np.zeros(len(AHEAD_S), MOTION_DTYPE)
    unknown["roll"] = np.nan
    plain, empty = (
        fed(profile, [package(time, known=False) + tail for time in times], 50.0)[0].emitter
        for tail in (b"", AHEAD_MARK + unknown.tobytes())
    )
    assert first_difference(plain.trace, empty.trace) is None
    silent, empty = (  # after it has been said until the car moved
        fed(profile, [package(time, time < 11.0) + tail * (time >= 11.0) for time in times.tolist()], 50.0)[0].emitter
        for tail in (b"", AHEAD_MARK + unknown.tobytes())
    )
    assert first_difference(plain.trace, silent.trace) is not None
    assert first_difference(silent.trace, empty.trace) is None
    told, stopped = (
        fed(profile, [package(time, known) for time in times] + 50 * [b""], 50.0)[0].emitter for known in (True, False)
    )
    assert first_difference(told.trace, stopped.trace) is not None
    for emitter in (told, stopped):
        emitter.run(until_ns=emitter.trace["deadline"][-1] + 5_000_000_000)
        assert emitter.trace["cue"]["surge_displacement"][-1] == 0.0


def test_a_tail_without_the_mark_is_a_packet_of_the_wrong_size():
    rows = future(np.arange(len(AHEAD_S) + 1.0))
    pipeline, feeder = fed(load_profile("program-dk"), [], 50.0)
    assert not feeder.feed(rows.tobytes())
    assert not feeder.feed(rows[:1].tobytes() + b"mcahead2" + rows[1:].tobytes())
    assert not feeder.feed(AHEAD_MARK + rows[1:].tobytes())
    assert feeder.feed(rows[:1].tobytes() + AHEAD_MARK + rows[1:].tobytes())
    assert pipeline.intake.rejected == {"type": 3}


def test_a_network_tells_no_future():
    """A packet that comes to an endpoint and ends as a program's does has the wrong size, whoever sent it."""
    rows = future(np.arange(len(AHEAD_S) + 1.0))
    heard = load_profile("program-dk", "source.endpoint=udp://127.0.0.1:4444")
    _, feeder = fed(heard, [], 50.0)
    assert not feeder.feed(rows[:1].tobytes() + AHEAD_MARK + rows[1:].tobytes())
    assert feeder.feed(rows[:1].tobytes())


@pytest.mark.rt
@pytest.mark.check
def test_a_recording_of_it_gives_the_same_bits(tmp_path):
    with Sink() as sink, motioncue.Engine(sent_to(sink, *RIDE), record=tmp_path / "fed.mcap") as engine:
        for bad in (future(np.zeros(6)), np.zeros(7), [1.0], "no"):
            with pytest.raises(ConfigError, match=r"ahead: found .*, allowed is MOTION_DTYPE, shape \(7,\)"):
                engine.feed(future(np.zeros(1)), ahead=bad)
        for time in np.arange(8.0, 11.0, 0.02):
            known = None if time > 10.5 else future(time + np.array(AHEAD_S))
            assert engine.feed(future(np.array([time])), ahead=known)
            Event().wait(0.02)
    recorded = motioncue.read(tmp_path / "fed.mcap")
    assert {len(each.data) for each in recorded.packages} == {len(package(0.0, known)) for known in (True, False)}
    assert len(recorded.motion) == len(recorded.packages)
    assert first_difference(recorded.ticks, repeat(recorded).ticks) is None
    assert np.abs(recorded.ticks["cue"]["surge_displacement"]).max() > 1e-3


@pytest.mark.parametrize("platform", ["box-small", "box-large", "hexapod-dim"])
def test_what_is_known_now_and_then_is_no_jolt(platform):
    """Force changes from tick to tick no more than with a plan that knows nothing, or all of it, of the same drive."""
    profile = load_profile("program-dk", RIDE[0], f"platform.preset={platform}", "limits=none")
    time = np.arange(2000) / profile.rate_hz

    def braking(at):
        rows = np.zeros(np.shape(at), MOTION_DTYPE)
        rows["surge"], rows["sway"] = (
            by * np.clip((at - begin) / 0.3, 0, 1) for by, begin in ((-3.0, 4.0), (2.0, 5.0))
        )
        return rows

    def abrupt(*unknown):
        ahead = braking(time[:, None] + AHEAD_S)
        for ticks in unknown:
            ahead["surge"][ticks] = np.nan
        cues = motioncue.cue(profile, braking(time), ahead=ahead)
        places = np.stack([cues[f"{axis}_displacement"] for axis in ("surge", "sway")])
        return np.abs(np.diff(places, 3)).max()

    most = 1.5 * max(abrupt(slice(None)), abrupt())
    assert abrupt(np.arange(len(time)) // 5 % 2 == 1) < most
    assert abrupt(slice(1101, 1250)) < most


@pytest.mark.parametrize("platform", ["box-small", "box-large"])
def test_a_lie_of_a_moment_is_no_blow(platform):
    """A car stands; for five ticks 3 g are said.  No car gets there within 0.2 s, so no plan does in those ticks."""
    profile = load_profile("program-dk", RIDE[0], f"platform.preset={platform}", "limits=none")
    ahead = np.zeros((2000, len(AHEAD_S)), MOTION_DTYPE)
    ahead["surge"][1000:1005] = ahead["sway"][1000:1005] = 30.0
    cues = motioncue.cue(profile, np.zeros(len(ahead), MOTION_DTYPE), ahead=ahead)
    believed = 30.0 * 5 / (0.2 * profile.rate_hz)
    for axis in ("surge", "sway"):
        pushed = np.diff(cues[f"{axis}_displacement"], 2) * profile.rate_hz**2
        assert 0.0 < np.abs(np.diff(pushed)).max() < believed / 3  # a plan is made every 3 ticks


def test_a_fade_that_turns_far_from_neutral_is_no_blow():
    """3 g are said that never come, frames stop and return: a displacement's acceleration keeps its default bound."""
    profile = load_profile("program-dk", "cueing.algorithm=predictive", "platform.preset=hexapod-simona")
    lie = np.zeros(len(AHEAD_S), MOTION_DTYPE)
    lie["surge"], lie["speed"] = 30.0, np.nan
    frames = [future(np.array([0.02 * number])).tobytes() + AHEAD_MARK + lie.tobytes() for number in range(700)]
    frames[400:425] = 25 * [b""]
    ticks = fed(profile, frames, 50.0)[0].emitter.trace
    places, rate_hz = ticks["cue"]["surge_displacement"], 1e9 / np.median(np.diff(ticks["deadline"]))
    assert np.abs(places).max() > 1.0
    assert ticks["weight"][2700:].min() < 0.95
    assert np.abs(np.diff(places, 3)).max() * rate_hz**3 < 2500.0 * 1.001


def test_nothing_is_foreseen_with_frames_that_are_not_followed():
    """They are no motion of a car, so where they say that it goes is none either; the motion before is what is held."""
    profile = load_profile("program-dk", *RIDE, "watch.max_acceleration_m_s2=50")
    lie = np.zeros(len(AHEAD_S), MOTION_DTYPE)
    lie["surge"], lie["speed"] = 9.0, np.nan
    cues = []
    for tail in (b"", AHEAD_MARK + lie.tobytes()):
        frames = [package(time) for time in np.arange(0.0, 14.0, 0.02)]
        absurd = future(np.arange(14.0, 14.5, 0.02))
        absurd["surge"] = 1000.0
        frames += [row.tobytes() + tail for row in absurd]
        pipeline, _ = fed(profile, frames, 50.0)
        assert pipeline.intake.discontinuities
        cues.append(pipeline.emitter.trace)
    assert first_difference(*cues) is None


def test_what_a_frame_says_that_is_set_aside_is_not_of_the_motion_before_it():
    """It counts as lost, and so does what it says: that begins where the car is then, not where it was a frame ago."""
    profile = load_profile("program-dk", *RIDE, "watch.max_acceleration_m_s2=50")
    cues = []
    for lost in (False, True):
        frames = [package(time) for time in np.arange(0.0, 13.0, 0.02)]
        absurd = future(np.array([10.4]))
        absurd["surge"] = 1000.0
        frames[520] = b"" if lost else absurd.tobytes() + package(10.4)[absurd.nbytes :]
        pipeline, _ = fed(profile, frames, 50.0)
        assert pipeline.intake.discontinuities == ({} if lost else {"spike": 1})
        cues.append(pipeline.emitter.trace["cue"])
    assert np.abs(cues[0]["surge_displacement"]).max() > 0.01
    assert_same_bits(*cues)
