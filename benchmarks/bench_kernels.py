"""Cost of a step: against plain C, against SciPy over the same arrays, against pure Python."""

import msgspec
import numpy as np
import pytest
from conftest import CAR, RATE_HZ, WORLD, assert_same, raw
from references import ScipyPipeline, empty_packets

from motioncue import cueing, load_profile
from motioncue.core import interfaces
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.cueing.optimal.design import CANAL_S, OTOLITH_S, laws_of, limits_of
from motioncue.frames.convert import BodyStage

VECTORS = ("orientation", "velocity", "acceleration", "angular_velocity", "angular_acceleration")


def samples(telemetry, n):
    """Return the first rows as plain Python, as a pure-Python engine would have them."""
    return [[row[name].tolist() for name in VECTORS] for row in telemetry[:n]]


# --- both sides must give the same numbers, or their ratio means nothing --------------------------------------------


def test_floor_gives_the_kernels_numbers(rig, loops):
    telemetry, packets = np.zeros_like(rig.telemetry), empty_packets(rig.n)
    motion, cue = np.zeros_like(rig.motion), np.zeros_like(rig.cue)
    assert loops.unpack(rig.decoding, rig.frames, telemetry) == 0
    assert_same(telemetry, rig.telemetry, 0.0)
    assert not rig.stage.process(rig.telemetry, motion).any()
    assert_same(motion, rig.motion)
    rig.algorithm.process(rig.motion, cue)
    assert_same(cue, rig.cue)
    rig.algorithm.reset()
    loops.step(rig.stage, rig.algorithm, rig.chain, rig.encoding, rig.telemetry, raw(packets))
    rig.floor.step(rig.telemetry, rig.packets)
    assert_same(packets, rig.packets, 1e-6)
    rig.floor.pack(rig.cue, rig.packets)
    assert_same(packets, rig.packets, 1e-6)


def test_pure_python_gives_the_kernels_numbers(rig):
    packet = bytearray(empty_packets(1).tobytes())
    rig.floor.step(rig.telemetry, rig.packets)
    for row, sample in zip(rig.packets, samples(rig.telemetry, 100), strict=False):
        rig.python.step(packet, *sample)
        assert_same(np.frombuffer(packet, rig.packets.dtype), row.reshape(1), 1e-6)


def test_scipy_gives_the_kernels_numbers_for_what_it_covers(rig):
    # No limits, no rotation (its Euler rates ignore the platform's attitude), a start from zero, no displacement.
    tilt = msgspec.structs.replace(rig.cueing.tilt, rate_limit_deg_s=None)
    settings = msgspec.structs.replace(rig.cueing, tilt=tilt)
    pipeline = ScipyPipeline(settings, RATE_HZ, WORLD, CAR)
    motion, ours, theirs = (np.zeros(rig.n, dtype) for dtype in (MOTION_DTYPE, CUE_DTYPE, CUE_DTYPE))
    pipeline.body(rig.telemetry, motion)
    BodyStage().process(rig.telemetry, rig.motion)
    for name in MOTION_DTYPE.names[:10]:
        np.testing.assert_allclose(motion[name], rig.motion[name], rtol=0, atol=1e-12, err_msg=name)
    motion["roll_rate"] = motion["pitch_rate"] = motion["yaw_rate"] = 0.0
    motion[0] = 0
    pipeline.washout(motion, theirs)
    cueing.design(settings, RATE_HZ).process(motion, ours)
    for name in CUE_DTYPE.names[:10]:
        np.testing.assert_allclose(theirs[name], ours[name], rtol=0, atol=1e-10, err_msg=name)


# --- one whole step: telemetry to packet ----------------------------------------------------------------------------


@pytest.mark.benchmark(group="whole step")
def test_whole_step_in_a_loop_against_c(versus, rig, loops):
    versus(
        "whole step in a loop: body frame, washout, encode",
        "plain C",
        lambda: loops.step(rig.stage, rig.algorithm, rig.chain, rig.encoding, rig.telemetry, raw(rig.packets)),
        lambda: rig.floor.step(rig.telemetry, rig.packets),
        items=rig.n,
        target=1.05,
    )


@pytest.mark.benchmark(group="whole step")
def test_whole_step_in_a_loop_against_scipy(versus, rig, loops):
    versus(
        "whole step in a loop",
        "SciPy over the same arrays: Rotation, sosfilt",
        lambda: loops.step(rig.stage, rig.algorithm, rig.chain, rig.encoding, rig.telemetry, raw(rig.packets)),
        lambda: rig.scipy.run(rig.telemetry, rig.packets),
        items=rig.n,
        target=7.0,
        faster=True,
    )


@pytest.mark.benchmark(group="whole step")
def test_whole_step_in_a_loop_against_pure_python(versus, rig, loops):
    few = samples(rig.telemetry, 100)
    packet = bytearray(empty_packets(1).tobytes())
    versus(
        "whole step in a loop",
        "pure Python, a sample at a time",
        lambda: loops.step(rig.stage, rig.algorithm, rig.chain, rig.encoding, rig.telemetry, raw(rig.packets)),
        lambda: [rig.python.step(packet, *sample) for sample in few],
        items=rig.n,
        floor_items=len(few),
        target=25.0,
        faster=True,
    )


# --- batches, stage by stage ----------------------------------------------------------------------------------------


@pytest.mark.benchmark(group="body frame")
def test_body_frame_batch_against_c(versus, rig):
    versus(
        "body frame, batch",
        "plain C",
        lambda: rig.stage.process(rig.telemetry, rig.motion),
        lambda: rig.floor.body(rig.telemetry, rig.motion),
        items=rig.n,
        target=1.05,
    )


@pytest.mark.benchmark(group="body frame")
def test_body_frame_batch_against_scipy(versus, rig):
    versus(
        "body frame, batch",
        "SciPy Rotation",
        lambda: rig.stage.process(rig.telemetry, rig.motion),
        lambda: rig.scipy.body(rig.telemetry, rig.motion),
        items=rig.n,
        faster=True,
    )


@pytest.fixture
def long(rig, smoke):
    """The drive repeated to a million ticks, more than any cache holds."""
    motion = np.resize(rig.motion, rig.n if smoke else 1_000_000)
    return motion, np.zeros(len(motion), CUE_DTYPE)


@pytest.mark.parametrize("machine", interfaces.machines())
@pytest.mark.benchmark(group="washout")
def test_washout_batch_against_c(versus, rig, long, machine):
    motion, cue = long
    interfaces.choose_machine(machine)
    algorithm = cueing.design(rig.cueing, RATE_HZ)
    interfaces.choose_machine(interfaces.machines()[0])
    versus(
        f"washout, batch of 10⁶ ticks, `out=` given ({machine})",
        "plain C",
        lambda: algorithm.process(motion, cue),
        lambda: rig.floor.washout(motion, cue),
        items=len(motion),
        target=0.6 if machine == interfaces.machines()[0] else None,
    )


@pytest.mark.benchmark(group="washout")
def test_washout_batch_against_scipy(versus, rig):
    versus(
        "washout, batch, `out=` given",
        "SciPy over the same arrays: sosfilt, Rotation",
        lambda: rig.algorithm.process(rig.motion, rig.cue),
        lambda: rig.scipy.washout(rig.motion, rig.cue),
        items=rig.n,
        target=7.0,
        faster=True,
    )


@pytest.fixture
def optimal(rig, modules):
    """The linear-quadratic washout of a large platform, and the same in plain C."""
    settings = load_profile("ccd-dk-classical", "cueing.algorithm=optimal", "cueing.preset=large").cueing
    laws, limits = laws_of(settings, RATE_HZ), [limits_of(settings, pair) for pair in range(3)]
    floor = modules[0].Optimal(settings, laws, limits, (OTOLITH_S, CANAL_S), RATE_HZ)
    return cueing.design(settings, RATE_HZ), floor


def test_floor_gives_the_numbers_of_optimal(rig, optimal):
    ours, floor = optimal
    found, expected = np.zeros(rig.n, CUE_DTYPE), np.zeros(rig.n, CUE_DTYPE)
    ours.process(rig.motion, found)
    floor.process(rig.motion, expected)
    assert_same(found, expected, 1e-9)


@pytest.mark.benchmark(group="washout")
def test_optimal_against_c(versus, rig, optimal):
    versus(
        "linear-quadratic washout",
        "plain C",
        lambda: optimal[0].process(rig.motion, rig.cue),
        lambda: optimal[1].process(rig.motion, rig.cue),
        items=rig.n,
        target=1.1,
    )


@pytest.mark.benchmark(group="washout")
def test_optimal_against_classical(versus, rig, optimal, loops):
    cue = np.zeros(1, CUE_DTYPE)
    n = 1000
    versus(
        "linear-quadratic washout, one tick",
        "classical washout, one tick",
        lambda: loops.washout_repeat(optimal[0], rig.motion[:1], cue, n),
        lambda: loops.washout_repeat(rig.algorithm, rig.motion[:1], cue, n),
        items=n,
        target=2.0,
    )
