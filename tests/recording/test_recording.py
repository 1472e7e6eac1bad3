"""Recordings: their contents, the motion at each tick, and a replay with the engine's own ticks."""

import math
import struct
import sys

import numpy as np
import pytest
from helpers import FRAMES, INIT_PACKAGE, PACKAGES, SAMPLE, expected_motion, frame, init
from same_bits import assert_same_bits

import motioncue
from motioncue.bridge.bridge import KINDS
from motioncue.core.channels import MOTION_DTYPE
from motioncue.engine.replay import START_NS, replay
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.recording import at_ticks, read_motion, read_packages
from motioncue.sources.city_car_driving.packets import FRAME

PERIOD = 3_000_030
HELD = motioncue.load_profile("ccd-dk", "source.bridge=hold", "limits=none")
"""Every tick shows the newest frame as it is."""


@pytest.fixture(scope="module")
def wire():
    return np.frombuffer(b"".join(FRAMES), FRAME.dtype)


@pytest.fixture(scope="module")
def motion():
    return read_motion(SAMPLE)


def write(folder, *packages):
    path = folder / "recording.bin"
    path.write_bytes(b"".join(packages))
    return path


# Reading.


def test_the_sample_is_a_minute_of_driving_with_one_init_package():
    assert len(INIT_PACKAGE) == 39
    assert {len(package) for package in FRAMES} == {107}
    assert len(FRAMES) * (1 / 60) == pytest.approx(59.9, abs=0.02)


def test_motion_is_the_body_frame_of_every_frame(motion, wire):
    assert motion.dtype == MOTION_DTYPE
    assert len(motion) == len(FRAMES)
    for name, values in expected_motion(wire).items():
        np.testing.assert_allclose(motion[name], values, rtol=0, atol=1e-12, err_msg=name)


def test_a_frame_that_no_car_can_be_in_is_read_as_it_was_said(tmp_path):
    """A recording is the simulator's report; the engine would continue with the frame before."""
    accelerations = [0.0, 500.0, 1.0]
    path = write(tmp_path, init(), *(frame(acceleration=(0.0, a, 0.0)) for a in accelerations))
    assert read_motion(path)["heave"].tolist() == accelerations


def test_times_are_the_simulators_from_the_first_frame(motion, wire):
    expected = np.cumsum(wire["frame_time"])
    np.testing.assert_allclose(motion["frame_time"], expected, rtol=1e-12)
    assert motion["time"][0] == 0
    assert np.abs(motion["time"] - (expected - expected[0]) * 1e9).max() <= 1.0


def test_several_sessions_in_one_recording_follow_each_other(tmp_path):
    frames = [frame(frame_time=0.5, acceleration=(0, 0, float(number))) for number in range(6)]
    path = write(tmp_path, init(), *frames[:3], init((1, 0, 0), (0, 0, 1)), init(), *frames[3:])
    motion = read_motion(path)
    assert motion["surge"].tolist() == [0, 1, 2, 3, 4, 5]
    assert motion["time"].tolist() == [500_000_000 * number for number in range(6)]
    assert motion["frame_time"].tolist() == [0.5, 1.0, 1.5, 0.5, 1.0, 1.5]


def test_a_recording_without_a_frame_has_no_motion(tmp_path):
    motion = read_motion(write(tmp_path, init()))
    assert motion.dtype == MOTION_DTYPE
    assert motion.shape == (0,)


def test_options_say_how_to_read_it(tmp_path):
    path = write(tmp_path, init(), frame(orientation=(0.8, 0.0, 0.6, 0.0)))
    # Read as w, x, y, z it is a turn of 2 acos 0.8 about the vertical.
    assert read_motion(path, quaternion="wxyz")["yaw"][0] == pytest.approx(math.pi - 2 * math.acos(0.8), abs=1e-6)


def test_packages_are_the_bytes_of_the_file():
    assert b"".join(read_packages(SAMPLE)) == SAMPLE.read_bytes()


DATA = SAMPLE.read_bytes()
BROKEN = {
    "empty": (b"", "found no bytes"),
    "one byte": (b"\x27", "found size 39 at offset 0|found 1 bytes at offset 0"),
    "cut inside the first package": (DATA[:20], "found 20 bytes at offset 0, the package has 39"),
    "zeros": (bytes(1000), "found size 0 at offset 0"),
    "many zeros": (bytes(5000), "found 5000 bytes that are all zero"),
    "text": (b"This is not a recording at all, it is a letter." * 100, "offset 0|refused"),
    "big-endian, cut": (struct.pack(">HB", 39, 1) + DATA[3:20], "found 20 bytes at offset 0, the package has 39"),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("read", [read_packages, read_motion, lambda path: replay("ccd-dk", path)])
def test_a_broken_file_is_refused_with_its_name_and_place(tmp_path, read, case):
    data, message = BROKEN[case]
    path = write(tmp_path, data)
    with pytest.raises(PacketError, match=message) as refusal:
        read(path)
    assert f"'{path}'" in str(refusal.value)
    assert "\n" not in str(refusal.value)


PARTLY = {
    "cut inside a frame": (DATA[: 39 + 107 + 50], "found 50 bytes at offset 146, the package has 107"),
    "cut inside a size field": (DATA[: 39 + 107 + 1], "found 1 bytes at offset 146"),
    "size of 2": (DATA[: 39 + 107] + b"\x02\x00" + DATA[39:], "found size 2 at offset 146"),
}


@pytest.mark.parametrize("case", PARTLY)
def test_a_file_that_goes_wrong_is_read_up_to_there_and_the_rest_is_logged(tmp_path, caplog, case):
    data, message = PARTLY[case]
    path = write(tmp_path, data)
    assert b"".join(read_packages(path)) == DATA[:146]
    assert f"'{path}': byte 146: {len(data) - 146} bytes were not read: " in caplog.text
    assert message in caplog.text
    assert len(read_motion(path)) == 1
    assert len(replay("ccd-dk", path))


REFUSED = {
    "no init package": ([frame()], 0, "before_init"),
    "NaN": ([init(), frame(), frame(velocity=(math.nan, 0, 0)), frame()], 2, "not_finite"),
    "unknown type": ([init(), struct.pack("<HB", 5, 9) + b"ab"], 1, "type"),
    "wrong size": ([init(), frame(), struct.pack("<HB", 50, 2) + bytes(47)], 2, "size"),
    "axes": ([init((0, 0, 0)), frame()], 0, "axes"),
    "quaternion": ([init(), frame(orientation=(0, 0, 0, 0))], 1, "quaternion"),
    "package too large": ([init(), struct.pack("<HB", 600, 2) + bytes(597)], 1, "framing"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("read", [read_motion, lambda path: replay("ccd-dk", path)])
def test_a_refused_package_is_named_by_place_and_reason(tmp_path, read, case):
    packages, place, reason = REFUSED[case]
    path = write(tmp_path, *packages)
    with pytest.raises(PacketError, match=f"package {place} refused: {reason}"):
        read(path)


@pytest.mark.parametrize("read", [read_packages, read_motion, lambda path: replay("ccd-dk", path)])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, read):
    with pytest.raises(PacketError, match="No such file"):
        read(tmp_path / "missing.bin")
    with pytest.raises(PacketError, match="Permission denied" if sys.platform == "win32" else "directory"):
        read(tmp_path)


def test_an_unknown_system_is_refused():
    with pytest.raises(ConfigError, match="nowhere"):
        read_packages(SAMPLE, "nowhere")
    with pytest.raises(ConfigError, match="dk"):
        read_motion(SAMPLE, "dk")


# At ticks.


def test_a_tick_reads_the_newest_frame(motion):
    ticks = at_ticks(motion, 333.33)
    times = motion["time"].tolist()
    count = times[-1] // PERIOD + 1
    assert len(ticks) == count
    newest = 0
    for index in range(count):
        while newest + 1 < len(times) and times[newest + 1] <= index * PERIOD:
            newest += 1
        assert ticks["time"][index] == times[newest]
    assert_same_bits(ticks[:1], motion[:1])


def test_a_frame_that_comes_with_the_tick_is_read():
    motion = np.zeros(3, MOTION_DTYPE)
    motion["time"] = [5, 10_000_005, 20_000_005]
    assert at_ticks(motion, 100.0)["time"].tolist() == [5, 10_000_005, 20_000_005]
    assert at_ticks(motion, 200.0)["time"].tolist() == [5, 5, 10_000_005, 10_000_005, 20_000_005]
    assert at_ticks(motion, 50.0)["time"].tolist() == [5, 20_000_005]
    assert at_ticks(motion[:1], 50.0)["time"].tolist() == [5]


@pytest.mark.parametrize("rate_hz", [0.0, -1.0, math.inf, math.nan])
def test_an_impossible_rate_is_refused(motion, rate_hz):
    with pytest.raises(ValueError, match="rate above 0"):
        at_ticks(motion, rate_hz)


def test_frames_out_of_order_or_none_are_refused(motion):
    with pytest.raises(ValueError, match="in order of time"):
        at_ticks(motion[::-1])
    with pytest.raises(ValueError, match="in order of time"):
        at_ticks(motion[:0])


# Replay: the engine's own ticks.


@pytest.fixture(scope="module", params=["ccd-dk", "ccd-dk-classical"])
def profile(request):
    return motioncue.load_profile(request.param)


@pytest.fixture(scope="module")
def trace(profile):
    return replay(profile, SAMPLE)


def test_a_replay_ticks_on_the_whole_grid(trace, motion):
    end = START_NS + motion["time"][-1] + 2_000_000_000
    expected = np.arange(START_NS + PERIOD, end, PERIOD)
    assert_same_bits(trace["deadline"], expected)
    assert trace["index"].tolist() == list(range(len(expected)))
    assert not trace["lateness"].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_reads_what_at_ticks_reads(motion, kind):
    ticks = at_ticks(motion, bridge=kind)[1:]  # the grid's first tick is a period after the first frame
    trace = replay(motioncue.load_profile("ccd-dk", f"source.bridge={kind}"), SAMPLE, tail_s=0.0)
    read = trace["motion"][: len(ticks)].copy()
    read["time"] -= START_NS
    assert_same_bits(read, ticks)


def test_a_replay_gives_the_offline_cue_bit_for_bit_while_the_weight_is_one(profile):
    profile = motioncue.load_profile(profile.name, "limits=none")  # a bound's memory reaches back into the fade
    trace = replay(profile, SAMPLE)
    assert trace["weight"][0] > 0  # engaged at the first tick
    cues = motioncue.cue(profile, trace["motion"])
    whole = trace["weight"] == 1.0
    assert np.count_nonzero(whole) > 19_000
    for name in motioncue.CUE_DTYPE.names:
        if name != "time":
            assert_same_bits(trace["cue"][name][whole], cues[name][whole], name)
            np.testing.assert_array_equal(trace["cue"][name], cues[name] * trace["weight"], err_msg=name)


def test_the_offline_cue_does_not_depend_on_how_often_it_is_asked(profile, trace):
    first = motioncue.cue(profile, trace["motion"])
    out = np.zeros(len(trace), motioncue.CUE_DTYPE)
    assert motioncue.cue(profile.name, trace["motion"], out) is out
    assert_same_bits(first, out)


def test_a_replay_is_the_same_every_time(profile, trace):
    assert_same_bits(replay(profile, SAMPLE), trace)
    assert_same_bits(replay(profile.name, str(SAMPLE)), trace)


def test_a_replay_ends_at_neutral_after_hold_and_fade(profile, trace, motion):
    fading = np.flatnonzero(trace["weight"] < 1.0)
    out = fading[fading > len(trace) // 2]
    last = START_NS + motion["time"][-1]
    # The first tick more than hold_s after the last frame begins the fade; fade_s later it is over.
    assert trace["deadline"][out[0]] - PERIOD <= last + 100_000_000 < trace["deadline"][out[0]]
    assert np.count_nonzero(trace["weight"][out] > 0) == math.ceil(1e9 / PERIOD) - 1
    assert trace["weight"][-1] == 0.0
    assert not any(trace["cue"][name][-1] for name in motioncue.CUE_DTYPE.names if name not in ("time", "engine_speed"))


def test_a_frame_that_comes_with_a_tick_is_replayed_in_that_tick(tmp_path):
    path = write(tmp_path, init(), *(frame(frame_time=0.04) for _ in range(20)))
    trace = replay(motioncue.load_profile("ccd-dk", "output.rate_hz=50"), path, tail_s=0.1)
    # Ticks are 20 ms apart, and every other one meets a frame.
    age = trace["deadline"] - trace["motion"]["time"]
    assert age[:38].tolist() == [20_000_000, 0] * 19


def test_direct_replays_the_body_frame_of_the_wire(wire):
    trace = replay(HELD, SAMPLE, tail_s=0.05)
    expected = expected_motion(wire)
    frame_of = np.searchsorted(np.cumsum(wire["frame_time"]) - 1e-6, trace["motion"]["frame_time"], side="right") - 1
    whole = trace["weight"] == 1.0
    for name, values in expected.items():
        np.testing.assert_allclose(trace["cue"][name][whole], values[frame_of][whole], rtol=0, atol=1e-12, err_msg=name)


def test_a_frame_after_a_second_init_package_is_replayed_in_its_place(tmp_path):
    frames = [frame(frame_time=0.05, acceleration=(0, 0, float(number))) for number in range(60)]
    trace = replay(HELD, write(tmp_path, init(), *frames[:40], init(), *frames[40:]))
    plain = replay(HELD, write(tmp_path, init(), *frames))
    assert_same_bits(trace["cue"], plain["cue"])


def test_a_recording_without_a_frame_cannot_be_replayed(tmp_path):
    with pytest.raises(PacketError, match="found no frame"):
        replay("ccd-dk", write(tmp_path, init()))


def test_the_rate_of_the_profile_is_that_of_the_replay():
    trace = replay(motioncue.load_profile("ccd-dk", "output.rate_hz=50"), SAMPLE, tail_s=0.0)
    assert (np.diff(trace["deadline"]) == 20_000_000).all()
    assert len(trace) == len(range(20_000_000, int(trace["deadline"][-1]) - START_NS + 1, 20_000_000))


@pytest.mark.parametrize("count", [2, 60])
def test_a_short_recording_is_replayed_too(tmp_path, count):
    trace = replay("ccd-dk-classical", write(tmp_path, *PACKAGES[:count]))
    assert trace["motion"]["frame_time"].max() == pytest.approx((count - 1) / 60, rel=1e-6)
    assert trace["weight"][-1] == 0.0
