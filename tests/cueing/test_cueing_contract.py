"""The contract of every cueing algorithm: a case for each row of the registry and each preset."""

import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits

import motioncue
from motioncue import ConfigError, cueing
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.batch import Batch
from motioncue.scoring import frequency_response, transfer_function
from motioncue.scoring.omct import INPUTS, OUTPUTS

# More settings than the presets, where an algorithm has branches that no preset takes.
VARIANTS = {
    "classical": {
        "limited": (
            *("preset=simona", "surge.limit_m_s2=2", "yaw.limit_deg_s=5"),
            *("sway.order=1", "roll.order=3", "roll.break_hz=0.03"),
        ),
        "tilting": (
            *("preset=utias", "tilt.surge_gain=0.8", "tilt.sway_gain=-0.2", "tilt.surge_limit_m_s2=3"),
            *("tilt.rate_limit_deg_s=5", "tilt.acceleration_limit_deg_s2=30"),
        ),
        "bounded": (
            *("preset=utias", "yaw.order=1", "yaw.cutoff_hz=0.04", "yaw.gain=1", "yaw.angle_limit_deg=20"),
            "roll.angle_limit_deg=10",
        ),
        "curved": (
            *("preset=simona", "surge.scaling.largest_m_s2=100", "surge.scaling.share=0.4"),
            *("yaw.scaling.largest_deg_s=600", "yaw.scaling.share=0.6", "yaw.scaling.slope=0.2"),
        ),
        "laws": (
            *("preset=utias", "turned_by=platform", "tilt.law=linear", "tilt.pitch_share=0.5", "tilt.roll_share=1.5"),
        ),
        "forced": (
            "preset=utias",
            "turned=specific_force",
            "turned_by=platform",
            "heave.gain=0.8",
            "tilt.pitch_share=0.5",
        ),
        "forced by the car": ("preset=simona", "turned=specific_force", "heave.gain=0.4", "filters=hold"),
        "shaped": (
            *("preset=simona", "surge.negative_share=0.5", "sway.dead_zone_m_s2=0.2", "heave.return_m_s2=0.1"),
            *("yaw.dead_zone_deg_s=1", "yaw.return_deg_s=2", "yaw.angle_limit_deg=20", "sway.return_m_s2=0.2"),
        ),
        "held": ("preset=utias", "filters=hold", "texture.sway_gain=0.3", "texture.cutoff_hz=1", "texture.limit_m=0.2"),
        "textured": (
            *("preset=simona", "texture.sway_gain=0.5", "texture.roll_gain=1", "texture.pitch_gain=0.3"),
            *("texture.cutoff_hz=0.8", "texture.limit_m=0.2"),
        ),
    },
    "adaptive": {
        "fixed": ("preset=medium", "adaptation=0"),
        "fast": ("preset=small", "adaptation=1", "tilt.rate_limit_deg_s=5", "surge.start=0.5"),
    },
}
CASES = {
    f"{name} {case}".strip(): (f"cueing.algorithm={name}", *(f"cueing.{each}" for each in overrides))
    for name, kind in ALGORITHMS.items()
    for case, overrides in {
        **({preset: (f"preset={preset}",) for preset in kind.presets} or {"": ()}),
        **VARIANTS.get(name, {}),
    }.items()
}
RATE_HZ = 1e9 / round(1e9 / 333.33)  # the grid of the built-in profiles


FIRST = {name.split()[0]: name for name in reversed(CASES)}
"""One case of each algorithm, for a quick run."""


@pytest.fixture(
    params=[name if name in FIRST.values() else pytest.param(name, marks=pytest.mark.search) for name in CASES]
)
def case(request):
    return request.param


@pytest.fixture
def profile(case):
    return motioncue.load_profile("ccd-dk", *CASES[case])


@pytest.fixture
def algorithm(profile):
    return cueing.design(profile.cueing, RATE_HZ)


def drive(rng, n):
    """Return a drive in which every channel moves."""
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


def test_every_row_of_the_registry_has_a_case():
    assert {name.split()[0] for name in CASES} == set(ALGORITHMS)
    for name, kind in ALGORITHMS.items():
        assert kind.__struct_config__.tag == name
        assert ("preset" in kind.__struct_fields__) == bool(kind.presets)


def test_name_is_that_of_the_profile(profile, case):
    assert cueing.name_of(profile.cueing) == case.split()[0]


def test_rest_is_neutral(algorithm):
    cue = algorithm.process(np.zeros(2000, MOTION_DTYPE))
    for channel in CUE_DTYPE.names:
        assert not cue[channel].any(), channel


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 63, 64, 65, 500])
def test_block_size_does_not_change_a_bit(rng, algorithm, size):
    motion = drive(rng, 500)
    one_by_one = stepped(algorithm, motion)
    algorithm.reset()
    blocks = [algorithm.process(motion[i : i + size]) for i in range(0, 500, size)]
    assert_same_bits(np.concatenate(blocks), one_by_one)


def test_reset_forgets(rng, algorithm, profile):
    motion, other = drive(rng, 200), drive(rng, 200)
    fresh = cueing.design(profile.cueing, RATE_HZ).process(motion)
    algorithm.process(other)
    algorithm.reset()
    assert_same_bits(algorithm.process(motion), fresh)


def test_two_instances_are_independent(rng, profile):
    motion, other = drive(rng, 200), drive(rng, 200)
    alone = cueing.design(profile.cueing, RATE_HZ).process(motion)
    one, two = (cueing.design(profile.cueing, RATE_HZ) for _ in range(2))
    blocks = []
    for i in range(0, 200, 20):
        blocks.append(one.process(motion[i : i + 20]))
        two.process(other[i : i + 20])
    assert_same_bits(np.concatenate(blocks), alone)


@pytest.mark.parametrize("n", [1, 3, 9])
def test_rigs_give_the_bits_of_each_alone(rng, profile, n):
    motion = np.stack([drive(rng, 120) for _ in range(n)], axis=1)
    together = Batch([cueing.design(profile.cueing, RATE_HZ) for _ in range(n)]).process(motion)
    for i in range(n):
        alone = cueing.design(profile.cueing, RATE_HZ).process(np.ascontiguousarray(motion[:, i]))
        assert_same_bits(np.ascontiguousarray(together[:, i]), alone)


def test_declared_latency_equals_the_measured_one(rng, algorithm):
    motion = drive(rng, 400)
    plain = algorithm.process(motion)
    waits = []
    for start in range(200, 210):  # what plans every few ticks reads the motion at some of these
        algorithm.reset()
        changed = motion.copy()
        for name in INPUTS:
            changed[name][start:] += 0.01
        for name in ("speed", "engine_speed"):  # pass any algorithm at once
            changed[name] = motion[name]
        cues = algorithm.process(changed)
        waits.append(next(i for i in range(400) if cues[i : i + 1].tobytes() != plain[i : i + 1].tobytes()) - start)
    assert min(waits) / RATE_HZ == pytest.approx(algorithm.latency_s, abs=0.5 / RATE_HZ)


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("omega", [0.4, 2.0])
def test_theory_equals_measurement(case, profile, omega):
    try:
        cueing.theory(profile.cueing, "surge", np.array([1j]))
    except ConfigError:
        pytest.skip("the algorithm has no closed form")
    # Small angles are those of the amplitude, and a rate made of a difference of angles lags by half a tick.
    for channel_in in INPUTS:
        for channel_out in OUTPUTS:
            measured = frequency_response(profile, channel_in, channel_out, omega, settle_s=100.0, periods=2)
            expected = transfer_function(profile, channel_in, channel_out, omega)
            np.testing.assert_allclose(
                measured, expected, rtol=1e-3 + omega * 0.5 / RATE_HZ, atol=1e-4, err_msg=f"{channel_in} {channel_out}"
            )


def test_own_state_can_go_on_under_the_same_settings(profile):
    one, two = (cueing.design(profile.cueing, RATE_HZ) for _ in range(2))
    assert one.continues(two)


def test_no_state_goes_on_in_another_algorithm():
    designed = {
        name: cueing.design(motioncue.load_profile("ccd-dk", *overrides).cueing, RATE_HZ)
        for name, overrides in CASES.items()
    }
    for one in designed:
        for two in designed:
            if one.split()[0] != two.split()[0]:
                assert not designed[one].continues(designed[two])


def test_output_is_filled_and_returned(rng, algorithm):
    motion = drive(rng, 100)
    expected = algorithm.process(motion)
    algorithm.reset()
    out = np.full(100, 7).astype(CUE_DTYPE)
    assert algorithm.process(motion, out) is out
    assert_same_bits(out, expected)


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
    assert_same_bits(algorithm.process(motion), expected)


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


@pytest.mark.check
def test_ten_thousand_steps_allocate_nothing_that_stays(rng, algorithm):
    motion, cue = drive(rng, 1), np.zeros(1, CUE_DTYPE)

    def run(n):
        for _ in range(n):
            algorithm.step(motion, cue)

    def grown():
        blocks, before = sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]
        run(3_400)
        return sys.getallocatedblocks() - blocks, tracemalloc.get_traced_memory()[0] - before

    run(100)
    tracemalloc.start()
    try:
        run(100)
        # What stays does so each time; a thread of whatever runs the tests may allocate in one of them.
        blocks, traced = np.min([grown() for _ in range(3)], axis=0)
    finally:
        tracemalloc.stop()
    assert blocks < 50
    assert traced < 4096


LIMITS = {"surge": 2e3, "sway": 2e3, "heave": 2e3, "speed": 500.0, "engine_speed": 1e5}
VALUES = st.tuples(
    *(
        st.floats(-LIMITS.get(name, 100.0), LIMITS.get(name, 100.0))
        for name in MOTION_DTYPE.names
        if name not in ("time", "frame_time")
    )
)


@pytest.mark.search
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60)
@given(rows=st.lists(VALUES, min_size=1, max_size=20), repeat=st.integers(1, 60))
def test_finite_in_gives_finite_out(name, rows, repeat):
    algorithm = cueing.design(motioncue.load_profile("ccd-dk", *CASES[name]).cueing, RATE_HZ)
    motion = np.array([(*row, 0, 0.0) for row in rows], MOTION_DTYPE).repeat(repeat)
    cue = algorithm.process(motion)
    for channel in CUE_DTYPE.names:
        assert np.isfinite(cue[channel]).all(), channel
    # After the car has come to rest, the platform becomes level and feels nothing.
    rest = algorithm.process(np.zeros(100_000, MOTION_DTYPE))[-1]
    for channel in CUE_DTYPE.names:
        if not channel.endswith("displacement"):  # a first-order axis keeps some displacement
            assert abs(rest[channel]) < 1e-6, channel


@pytest.mark.check
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
            time.sleep(1e-4)  # releases the GIL, and gets it back only when it is free

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(100.0)  # no thread is forced to release the GIL between two instructions
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
