"""A profile's cueing bound to two arrays: step by step the numbers of `motioncue.cue`, without further cost."""

import itertools
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from same_bits import assert_same_bits

import motioncue
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.errors import ConfigError
from motioncue.recording.recording import at_ticks, read_motion, sample_recording

BODY = MOTION_DTYPE.names[:9]  # the channels that move the platform

PROFILES = {
    "direct": ("ccd-dk",),
    "classical": ("ccd-dk-classical",),
    "limited": (
        "ccd-dk-classical",
        "limits.surge={ value_m_s2 = 0.5, rate_m_s3 = 5.0 }",
        "limits.pitch={ value_deg = 2, rate_deg_s = 3, acceleration_deg_s2 = 300, jerk_deg_s3 = 100000 }",
    ),
}


@pytest.fixture(params=PROFILES)
def profile(request):
    return motioncue.load_profile(*PROFILES[request.param])


@pytest.fixture(scope="module")
def drive():
    """Return the first 20 s of the real drive, one row a tick."""
    return at_ticks(read_motion(sample_recording()), 333.33)[:6667]


def stepped(stepper, motion):
    """Return the cues of as many steps as there are rows."""
    out = np.zeros(len(motion), CUE_DTYPE)
    for i, row in enumerate(motion):
        stepper.motion[0] = row
        assert stepper.step() is True
        out[i] = stepper.cue[0]
    return out


def test_steps_give_the_bits_of_cue(profile, drive):
    stepper = motioncue.bind(profile)
    expected = motioncue.cue(profile, drive)
    assert_same_bits(stepped(stepper, drive), expected)
    assert np.ptp(expected["surge"]) > 0.4


def test_profile_is_loaded_by_name():
    assert motioncue.bind("ccd-dk-classical").period_ns == round(1e9 / 333.33)


def test_steppers_of_one_profile_do_not_move_each_other(drive):
    profile = motioncue.load_profile("ccd-dk-classical")
    first, second = motioncue.bind(profile), motioncue.bind(profile)
    assert stepped(first, drive[:100]).tobytes() == stepped(second, drive[:100]).tobytes()


def test_reset_begins_anew_with_its_limits(profile, drive):
    stepper = motioncue.bind(profile)
    first = stepped(stepper, drive[2000:3000])
    stepper.reset()
    assert_same_bits(stepped(stepper, drive[2000:3000]), first)


def test_rate_is_that_of_the_caller(drive):
    profile = motioncue.load_profile("ccd-dk-classical")
    faster = msgspec.structs.replace(profile, output=msgspec.structs.replace(profile.output, rate_hz=1000.0))
    stepper = motioncue.bind(profile, rate_hz=1000)
    assert stepper.period_ns == 1_000_000
    assert_same_bits(stepped(stepper, drive[:500]), motioncue.cue(faster, drive[:500]))


@pytest.mark.parametrize("rate_hz", [0, -1, 5000, float("nan"), float("inf"), "fast"])
def test_impossible_rates_are_refused(rate_hz):
    with pytest.raises(ConfigError, match="rate_hz: found"):
        motioncue.bind("ccd-dk", rate_hz=rate_hz)


def test_rate_too_low_for_a_filter_is_refused():
    profile = motioncue.load_profile("ccd-dk-classical", "cueing.surge.cutoff_hz=6")
    with pytest.raises(ConfigError, match=r"cueing\.surge\.cutoff_hz: found 6"):
        motioncue.bind(profile, rate_hz=10)


def test_rows_of_larger_arrays_are_used_in_place(drive):
    motions, cues = drive[:5].copy(), np.zeros(5, CUE_DTYPE)
    motions.flags.writeable = False  # only cues are written
    stepper = motioncue.bind("ccd-dk", motions[2:3], cues[3:4])
    assert stepper.step()
    assert cues["surge"].tolist() == [0, 0, 0, motions["surge"][2], 0]
    assert cues["time"][3] == motions["time"][2]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"motion": np.zeros(1, CUE_DTYPE)}, "motion: found .*allowed is MOTION_DTYPE, shape"),
        ({"motion": np.zeros(2, MOTION_DTYPE)}, r"motion: found .* of shape \(2,\)"),
        ({"motion": [0.0]}, "motion: found list"),
        ({"cue": np.zeros(1, MOTION_DTYPE)}, "cue: found .*allowed is CUE_DTYPE, shape"),
        ({"cue": np.zeros((), CUE_DTYPE)}, r"cue: found .* of shape \(\)"),
        ({"cue": np.frombuffer(bytes(CUE_DTYPE.itemsize), CUE_DTYPE)}, "cue: found .*read-only.* and writeable"),
        ({"cue": np.zeros(129, "u1")[4:124].view(CUE_DTYPE)}, "not aligned to 8 bytes"),
    ],
)
def test_arrays_of_another_kind_are_refused(arrays, message):
    with pytest.raises(ConfigError, match=message):
        motioncue.bind("ccd-dk", **arrays)


def test_arrays_in_the_same_memory_are_refused_and_fields_of_one_row_are_not():
    memory = np.zeros(120, "u1")
    with pytest.raises(ConfigError, match="cue: found memory of motion"):
        motioncue.bind("ccd-dk", memory[:104].view(MOTION_DTYPE), memory.view(CUE_DTYPE))
    row = np.zeros(3, [("motion", MOTION_DTYPE), ("cue", CUE_DTYPE)])[1:2]
    row["motion"]["surge"] = 1.5
    assert motioncue.bind("ccd-dk", row["motion"], row["cue"]).step()
    assert row["cue"]["surge"] == 1.5


def test_bound_arrays_outlive_their_names_and_cannot_be_resized():
    stepper = motioncue.bind("ccd-dk", np.ones(1, MOTION_DTYPE), np.zeros(1, CUE_DTYPE))
    assert stepper.step()
    assert stepper.cue["surge"] == 1.0
    for array in (stepper.motion, stepper.cue):
        with pytest.raises(ValueError, match="resize"):
            array.resize(1000)


@pytest.mark.parametrize("channel", BODY)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e7, -1e300])
def test_motion_that_cannot_be_is_refused_and_leaves_no_trace(channel, value, drive):
    motion = drive[2000:2100]
    stepper = motioncue.bind("ccd-dk-classical")
    first = stepped(stepper, motion[:50])
    stepper.motion[channel] = value
    stepper.motion["time"] = 7
    assert stepper.step() is False
    assert_same_bits(stepper.cue, first[-1:])
    assert_same_bits(stepped(stepper, motion[50:]), motioncue.cue("ccd-dk-classical", motion)[50:])


@pytest.mark.parametrize("speed", [np.nan, np.inf, -1e300])  # absent, or nonsense that has no effect
def test_speeds_go_through_unlooked_at(speed):
    stepper = motioncue.bind("ccd-dk-classical")
    stepper.motion["speed"] = stepper.motion["engine_speed"] = speed
    assert stepper.step()
    np.testing.assert_array_equal([stepper.cue["speed"][0], stepper.cue["engine_speed"][0]], [speed, speed])


@given(motions=st.lists(st.lists(st.floats(), min_size=len(BODY), max_size=len(BODY)), min_size=1, max_size=30))
def test_cue_is_finite_whatever_comes(motions):
    stepper = motioncue.bind("ccd-dk-classical")
    for values in motions:
        for name, value in zip(BODY, values, strict=True):
            stepper.motion[name] = value
        stepper.step()
        assert np.isfinite([stepper.cue[name] for name in CUE_DTYPE.names]).all()


def test_caller_keeps_its_denormals():
    tiny = np.array([5e-324])
    stepper = motioncue.bind("ccd-dk-classical", np.full(1, 1e-310, MOTION_DTYPE))
    assert stepper.step()
    assert (tiny * np.ones(1))[0] == 5e-324


def test_steps_allocate_nothing():
    step = motioncue.bind("ccd-dk-classical", np.ones(1, MOTION_DTYPE)).step
    turns = itertools.repeat(None, 10_000)
    before = sys.getallocatedblocks()
    for _ in turns:
        step()
    grown = sys.getallocatedblocks() - before
    assert grown < 10  # the two counts are objects themselves


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the faults of one thread")
def test_steps_touch_no_new_page():
    import resource

    step = motioncue.bind("ccd-dk-classical", np.ones(1, MOTION_DTYPE)).step

    def faults():
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        return usage.ru_minflt + usage.ru_majflt

    def of_ten_thousand_ticks():
        turns = itertools.repeat(None, 10_000)
        before = faults()
        for _ in turns:
            step()
        return faults() - before

    # The system may disturb a round, so one clean round shows that the steps allocate nothing.
    assert 0 in [of_ten_thousand_ticks() for _ in range(5)]
