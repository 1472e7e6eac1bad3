"""The life of every cueing algorithm: reset, step, process; and `motioncue.cue`, the same offline."""

import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import motioncue
from motioncue import cueing
from motioncue.errors import ConfigError
from motioncue.motion import CUE_DTYPE, MOTION_DTYPE
from motioncue.recording.read import at_ticks, read_motion, sample_recording
from motioncue.recording.replay import replay

# Every algorithm, and what tells its variants apart.
ALGORITHMS = {
    "direct": ("ccd-dk",),
    "classical simona": ("ccd-dk-washout",),
    "classical utias": ("ccd-dk-washout", "cueing.preset=utias"),
    "classical limited": (
        "ccd-dk-washout",
        "cueing.surge.limit_m_s2=2",
        "cueing.yaw.limit_deg_s=5",
        "cueing.sway.order=1",
        "cueing.roll.order=3",
        "cueing.roll.break_hz=0.03",
    ),
}
RATE_HZ = 333.33


@pytest.fixture(params=ALGORITHMS)
def profile(request):
    return motioncue.load_profile(*ALGORITHMS[request.param], "limits=none")


@pytest.fixture
def algorithm(profile):
    return cueing.design(profile.cueing, RATE_HZ)


def drive(rng, n):
    """Return a busy drive: every channel moves."""
    motion = np.zeros(n, MOTION_DTYPE)
    for name in MOTION_DTYPE.names:
        size = {"surge": 3, "sway": 3, "heave": 2, "time": 1e9, "speed": 30, "engine_speed": 3000}.get(name, 0.3)
        motion[name] = size * rng.normal(size=n)
    return motion


def stepped(algorithm, motion):
    """Return the cues of as many single steps."""
    out = np.zeros(len(motion), CUE_DTYPE)
    for i in range(len(motion)):
        algorithm.step(motion[i : i + 1], out[i : i + 1])
    return out


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 500])
def test_block_size_does_not_change_a_bit(rng, algorithm, size):
    motion = drive(rng, 500)
    one_by_one = stepped(algorithm, motion)
    algorithm.reset()
    blocks = [algorithm.process(motion[i : i + size]) for i in range(0, 500, size)]
    assert np.concatenate(blocks).tobytes() == one_by_one.tobytes()


def test_reset_restores_the_beginning(rng, algorithm):
    motion = drive(rng, 200)
    first = algorithm.process(motion)
    again = algorithm.process(motion)
    algorithm.reset()
    assert algorithm.process(motion).tobytes() == first.tobytes()
    if type(algorithm).__name__ == "ClassicalWashout":
        assert again.tobytes() != first.tobytes()  # there was something to forget


def test_two_instances_are_independent(rng, profile):
    motion, other = drive(rng, 200), drive(rng, 200)
    alone = cueing.design(profile.cueing, RATE_HZ).process(motion)
    one, two = (cueing.design(profile.cueing, RATE_HZ) for _ in range(2))
    blocks = []
    for i in range(0, 200, 20):
        blocks.append(one.process(motion[i : i + 20]))
        two.process(other[i : i + 20])
    assert np.concatenate(blocks).tobytes() == alone.tobytes()


def test_output_is_filled_and_returned(rng, algorithm):
    motion = drive(rng, 100)
    expected = algorithm.process(motion)
    algorithm.reset()
    out = np.full(100, 7).astype(CUE_DTYPE)
    assert algorithm.process(motion, out) is out
    assert out.tobytes() == expected.tobytes()


def test_input_is_left_alone(rng, algorithm):
    motion = drive(rng, 100)
    before = motion.tobytes()
    motion.flags.writeable = False  # a recording may be read-only
    algorithm.process(motion)
    assert motion.tobytes() == before


def test_no_rows_give_no_rows_and_change_nothing(rng, algorithm):
    motion = drive(rng, 50)
    expected = algorithm.process(motion)
    algorithm.reset()
    assert algorithm.process(motion[:0]).shape == (0,)
    assert algorithm.process(motion).tobytes() == expected.tobytes()


def test_another_length_of_output_is_refused(rng, algorithm):
    with pytest.raises(ValueError, match="out: found 4 rows, allowed are 5"):
        algorithm.process(drive(rng, 5), np.zeros(4, CUE_DTYPE))


@pytest.mark.parametrize(("rows", "cues"), [(2, 1), (1, 2), (0, 1), (1, 0)])
def test_a_step_of_anything_but_one_row_is_refused(rng, algorithm, rows, cues):
    with pytest.raises(ValueError, match=rf"step: found shapes \({rows},\) and \({cues},\), allowed is \(1,\)"):
        algorithm.step(drive(rng, rows), np.zeros(cues, CUE_DTYPE))


@pytest.mark.parametrize(
    "motion", [np.zeros(5), np.zeros(5, CUE_DTYPE), np.zeros((2, 3), MOTION_DTYPE), np.zeros(10, MOTION_DTYPE)[::2]]
)
def test_the_kernel_refuses_an_array_that_is_not_motion(algorithm, motion):
    with pytest.raises(ValueError, match=r"Buffer|ndarray is not C-contiguous"):
        algorithm.process(motion)


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        (np.zeros(5), r"Buffer dtype mismatch, .*'Cue\."),
        (np.zeros(5, MOTION_DTYPE), "Buffer dtype mismatch, expected"),
        (np.zeros((5, 1), CUE_DTYPE), "Buffer has wrong number of dimensions"),
        (np.zeros(10, CUE_DTYPE)[::2], "ndarray is not C-contiguous"),
    ],
)
def test_the_kernel_refuses_an_output_that_is_not_cues(algorithm, out, reason):
    with pytest.raises(ValueError, match=reason):
        algorithm.process(np.zeros(5, MOTION_DTYPE), out)


def test_time_is_that_of_the_motion(rng, algorithm):
    motion = drive(rng, 30)
    np.testing.assert_array_equal(algorithm.process(motion)["time"], motion["time"])


def test_ten_thousand_steps_allocate_nothing_that_stays(rng, algorithm):
    motion, cue = drive(rng, 1), np.zeros(1, CUE_DTYPE)

    def run(n):
        for _ in range(n):
            algorithm.step(motion, cue)

    run(100)
    tracemalloc.start()
    try:
        run(100)
        blocks, before = sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]
        run(10_000)
        grown, traced = sys.getallocatedblocks() - blocks, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 50
    assert traced < 4096


LIMITS = {"surge": 2e3, "sway": 2e3, "heave": 2e3, "speed": 500.0, "engine_speed": 1e5}
VALUES = st.tuples(
    *(
        st.floats(-LIMITS.get(name, 100.0), LIMITS.get(name, 100.0))
        for name in MOTION_DTYPE.names
        if name not in ("time", "frame_time")
    )
)


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=60)
@given(rows=st.lists(VALUES, min_size=1, max_size=20), repeat=st.integers(1, 60))
def test_anything_a_simulator_may_say_gives_finite_cues(name, rows, repeat):
    algorithm = cueing.design(motioncue.load_profile(*ALGORITHMS[name]).cueing, RATE_HZ)
    motion = np.array([(*row, 0, 0.0) for row in rows], MOTION_DTYPE).repeat(repeat)
    cue = algorithm.process(motion)
    for channel in CUE_DTYPE.names:
        assert np.isfinite(cue[channel]).all(), channel
    # And it comes to itself: the car at rest again, after a while the platform is level and feels nothing.
    rest = algorithm.process(np.zeros(100_000, MOTION_DTYPE))[-1]
    for channel in CUE_DTYPE.names:
        if not channel.endswith("displacement"):  # of which a first-order axis keeps some
            assert abs(rest[channel]) < 1e-6, channel


def test_silence_after_a_drive_is_the_same_for_ever(rng, algorithm):
    algorithm.process(drive(rng, 1000))
    rest = np.zeros(200_000, MOTION_DTYPE)
    algorithm.process(rest)
    one, two = algorithm.process(rest[:1]), algorithm.process(rest)[-1:]
    for channel in CUE_DTYPE.names:
        assert two[channel][0] == pytest.approx(one[channel][0], abs=1e-9)


@pytest.mark.rt
def test_another_thread_runs_while_a_block_is_processed(rng, algorithm):
    motion = drive(rng, 1000).repeat(300)
    out = np.zeros(len(motion), CUE_DTYPE)
    inside = done = False
    seen = 0

    def other():
        nonlocal seen
        while not done:
            seen += inside
            time.sleep(1e-4)  # gives the GIL away, so it is had again only when it is free

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(100.0)  # nobody is made to give the GIL away between two instructions
    try:
        for _ in range(200):
            inside = True
            algorithm.process(motion, out)
            inside = False
            if seen:
                break
    finally:
        done = True
        sys.setswitchinterval(interval)
        thread.join()
    assert seen > 0


# ---- motioncue.cue ---------------------------------------------------------------------------------------------------


def test_offline_cues_are_those_of_the_algorithm_at_the_rate_of_the_grid(rng, profile):
    motion = drive(rng, 300)
    algorithm = cueing.design(profile.cueing, 1e9 / round(1e9 / profile.output.rate_hz))
    assert motioncue.cue(profile, motion).tobytes() == algorithm.process(motion).tobytes()


def test_each_call_starts_afresh(rng, profile):
    motion = drive(rng, 100)
    assert motioncue.cue(profile, motion).tobytes() == motioncue.cue(profile, motion).tobytes()


def test_a_profile_may_be_given_by_name_or_file(rng, tmp_path):
    motion = drive(rng, 50)
    by_name = motioncue.cue("ccd-dk-washout", motion)
    file = tmp_path / "rig.toml"
    file.write_text(motioncue.profile.profile_text("ccd-dk-washout"), encoding="utf-8")
    assert motioncue.cue(file, motion).tobytes() == by_name.tobytes()
    assert motioncue.cue(motioncue.load_profile("ccd-dk-washout"), motion).tobytes() == by_name.tobytes()


def test_direct_passes_the_body_frame_through(rng):
    motion = drive(rng, 100)
    cue = motioncue.cue(motioncue.load_profile("ccd-dk", "limits=none"), motion)
    for name in MOTION_DTYPE.names:
        if name != "frame_time":
            np.testing.assert_array_equal(cue[name], motion[name])
    for name in ("surge_displacement", "sway_displacement", "heave_displacement"):
        assert not cue[name].any()


def test_offline_output_is_filled_and_returned(rng, profile):
    motion, out = drive(rng, 20), np.zeros(20, CUE_DTYPE)
    assert motioncue.cue(profile, motion, out) is out
    assert out.tobytes() == motioncue.cue(profile, motion).tobytes()


def test_a_slice_with_gaps_is_taken_as_it_is(rng, profile):
    motion = drive(rng, 60)
    assert motioncue.cue(profile, motion[::3]).tobytes() == motioncue.cue(profile, motion[::3].copy()).tobytes()


@pytest.mark.parametrize(
    "motion", [np.zeros(5), np.zeros(5, CUE_DTYPE), np.zeros((2, 3), MOTION_DTYPE), [1.0, 2.0], None]
)
def test_offline_motion_of_another_kind_is_refused_by_name(motion):
    with pytest.raises(ConfigError, match=r"^motion: found .*allowed is MOTION_DTYPE, shape \(n,\)"):
        motioncue.cue("ccd-dk", motion)


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(5),
        np.zeros(4, CUE_DTYPE),
        np.zeros(5, MOTION_DTYPE),
        np.zeros((5, 1), CUE_DTYPE),
        np.zeros(10, CUE_DTYPE)[::2],
        read_only(np.zeros(5, CUE_DTYPE)),
        [0.0] * 5,
    ],
)
def test_offline_output_of_another_kind_is_refused_by_name(out):
    with pytest.raises(ConfigError, match=r"^out: found .*allowed is CUE_DTYPE, shape \(5,\)"):
        motioncue.cue("ccd-dk", np.zeros(5, MOTION_DTYPE), out)


# ---- the same as the engine ------------------------------------------------------------------------------------------


def test_engine_and_offline_give_the_same_bits_for_a_real_drive(profile):
    trace = replay(profile, sample_recording(), tail_s=0.0)
    heard = np.flatnonzero(trace["weight"] > 0)[0]  # the tick that engaged: the algorithm starts there
    offline = motioncue.cue(profile, trace["motion"][heard:])
    whole = trace["weight"][heard:] == 1.0
    assert whole.sum() > 10_000
    for name in CUE_DTYPE.names:
        if name != "time":
            assert trace["cue"][heard:][name][whole].tobytes() == offline[name][whole].tobytes(), name


def test_the_engine_reads_what_arrived_before_each_tick():
    trace = replay(motioncue.load_profile("ccd-dk", "source.bridge=hold"), sample_recording(), tail_s=0.0)
    motion = read_motion(sample_recording())
    ticks = at_ticks(motion, RATE_HZ)
    # The engine's first tick is one period after the first frame arrived.
    read = trace["motion"]
    n = min(len(ticks) - 1, len(read))
    assert n > 19_000
    for name in ("surge", "roll", "yaw_rate", "frame_time"):
        np.testing.assert_array_equal(read[name][:n], ticks[name][1 : n + 1])
