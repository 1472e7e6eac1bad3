"""`motioncue.cue` gives the engine's cues offline, for every algorithm."""

import numpy as np
import pytest
from same_bits import assert_same_bits

import motioncue
from motioncue import cueing
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.engine.replay import replay
from motioncue.errors import ConfigError
from motioncue.recording.recording import at_ticks, read_motion, sample_recording

PROFILES = {
    "direct": ("ccd-dk",),
    "classical simona": ("ccd-dk-classical",),
    "classical utias": ("ccd-dk-classical", "cueing.preset=utias"),
}
RATE_HZ = 333.33


@pytest.fixture(params=PROFILES)
def profile(request):
    return motioncue.load_profile(*PROFILES[request.param], "limits=none")


def drive(rng, n):
    """Return a busy drive: every channel moves."""
    motion = np.zeros(n, MOTION_DTYPE)
    for name in MOTION_DTYPE.names:
        size = {"surge": 3, "sway": 3, "heave": 2, "time": 1e9, "speed": 30, "engine_speed": 3000}.get(name, 0.3)
        motion[name] = size * rng.normal(size=n)
    return motion


def test_offline_cues_are_those_of_the_algorithm_at_the_rate_of_the_grid(rng, profile):
    motion = drive(rng, 300)
    algorithm = cueing.design(profile.cueing, 1e9 / round(1e9 / profile.output.rate_hz))
    assert_same_bits(motioncue.cue(profile, motion), algorithm.process(motion))


def test_each_call_starts_afresh(rng, profile):
    motion = drive(rng, 100)
    assert_same_bits(motioncue.cue(profile, motion), motioncue.cue(profile, motion))


def test_a_profile_may_be_given_by_name_or_file(rng, tmp_path):
    motion = drive(rng, 50)
    by_name = motioncue.cue("ccd-dk-classical", motion)
    file = tmp_path / "rig.toml"
    file.write_text(motioncue.profile.profile.profile_text("ccd-dk-classical"), encoding="utf-8")
    assert_same_bits(motioncue.cue(file, motion), by_name)
    assert_same_bits(motioncue.cue(motioncue.load_profile("ccd-dk-classical"), motion), by_name)


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
    assert_same_bits(out, motioncue.cue(profile, motion))


def test_a_slice_with_gaps_is_taken_as_it_is(rng, profile):
    motion = drive(rng, 60)
    assert_same_bits(motioncue.cue(profile, motion[::3]), motioncue.cue(profile, motion[::3].copy()))


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
            assert_same_bits(trace["cue"][heard:][name][whole], offline[name][whole], name)


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
