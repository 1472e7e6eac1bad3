"""Cost of a step from a controller's own loop: in Python with bound arrays, in C through the function table."""

from itertools import repeat

import msgspec
import numpy as np
import pytest
from bench_platform import TEXT
from conftest import HEAD_M, RATE_HZ, assert_same

import motioncue
from motioncue import cueing
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE, MOVERS, TELEMETRY_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.embed import Stepper
from motioncue.engine.tick import Settings
from motioncue.output.dk import MOTION
from motioncue.profile.profile import Output, profile_text
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.safety.limiter import CueLimits

PROFILE = "ccd-dk-classical"
FRAME_NS = 16_666_667  # frame interval of the real drive


@pytest.fixture
def bound(rig):
    """The profile's whole cueing, bound to one row of the real drive."""
    return motioncue.bind(PROFILE, rig.motion[:1].copy())


def calls(stepper, n):
    """Return a function that steps `n` times, in the loop that timeit uses."""
    step = stepper.step

    def run():
        for _ in repeat(None, n):
            step()

    return run


def test_steps_give_the_floors_numbers(rig, loops, tmp_path):
    # The floor has no limits.
    path = tmp_path / "free.toml"
    path.write_text(profile_text(PROFILE).partition("[limits]")[0], encoding="utf-8")
    path.write_text('limits = "none"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    bound = motioncue.bind(path, rig.motion[:1].copy())
    expected, found = np.zeros_like(rig.cue), np.zeros_like(rig.cue)
    rig.floor.washout(rig.motion, expected)
    for i in range(rig.n):
        bound.motion[0] = rig.motion[i]
        assert bound.step()
        found[i] = bound.cue[0]
    assert_same(found, expected)
    motion, last = rig.motion[:1].copy(), np.zeros((2, 1), CUE_DTYPE)
    rig.floor.reset()
    rig.floor.washout_repeat(motion, last[0], 100)
    loops.Embedded(motioncue._capi, str(path).encode()).repeat(motion, last[1], 100)
    assert_same(last[1], last[0])


@pytest.mark.benchmark(group="step from Python")
def test_step_from_python_against_c(versus, rig, bound):
    n, motion, cue = rig.n, rig.motion[:1].copy(), np.zeros(1, CUE_DTYPE)
    versus(
        "`step` from Python, arrays bound: washout, limits",
        "plain C: washout",
        calls(bound, n),
        lambda: rig.floor.washout_repeat(motion, cue, n),
        items=n,
        target=1.3,
    )


@pytest.mark.benchmark(group="step from Python")
def test_step_without_limits_from_python_against_c(versus, rig):
    n, motion, cue = rig.n, rig.motion[:1].copy(), np.zeros(1, CUE_DTYPE)
    stepper = Stepper(Settings(cueing.design(rig.cueing, RATE_HZ), period_ns=round(1e9 / RATE_HZ)), motion)
    versus(
        "`step` from Python, arrays bound: washout",
        "plain C: washout",
        calls(stepper, n),
        lambda: rig.floor.washout_repeat(motion, cue, n),
        items=n,
        target=1.3,
    )


@pytest.mark.benchmark(group="step from Python")
def test_step_from_python_against_pure_python(versus, rig, bound):
    n = 200
    motion = [rig.motion[name][0].item() for name in MOTION_DTYPE.names[:9]]
    sample = ([*motion[:2], -motion[2]], motion[3:6], motion[6:9])
    versus(
        "`step` from Python, arrays bound",
        "pure Python",
        calls(bound, n),
        lambda: [rig.python.washout(*sample) for _ in range(n)],
        items=n,
        target=25.0,
        faster=True,
    )


@pytest.mark.benchmark(group="step from Python")
def test_step_from_python_against_scipy_a_sample(versus, rig, bound):
    # SciPy would also have to carry the filters' states from call to call, which this leaves out.
    n, motion, cue = 10, rig.motion[:1].copy(), np.zeros(1, CUE_DTYPE)
    versus(
        "`step` from Python, arrays bound",
        "SciPy, a sample at a time",
        calls(bound, 10 * n),
        lambda: [rig.scipy.washout(motion, cue) for _ in range(n)],
        items=10 * n,
        floor_items=n,
        target=1000.0,
        faster=True,
    )


@pytest.mark.benchmark(group="step from C")
def test_step_through_the_table_against_c(versus, rig, loops):
    n, motion, cue = rig.n, rig.motion[:1].copy(), np.zeros(1, CUE_DTYPE)
    embedded = loops.Embedded(motioncue._capi, PROFILE.encode())
    versus(
        "`step` of motioncue.h in a C loop: washout, limits",
        "plain C: washout",
        lambda: embedded.repeat(motion, cue, n),
        lambda: rig.floor.washout_repeat(motion, cue, n),
        items=n,
    )


def test_a_hexapod_through_the_table_and_limits_by_themselves(rig, loops, counted, tmp_path):
    """A hexapod through motioncue.h; the limits by themselves while none acts, and while all do."""
    path = tmp_path / "hexapod.toml"
    path.write_text(TEXT, encoding="utf-8")
    embedded = loops.Embedded(motioncue._capi, str(path).encode())
    limits, ticks = CueLimits(), np.arange(5000)
    for name, bounds in motioncue.load_profile(PROFILE).bounds().items():
        limits.add(name, *bounds, dt=1.0 / RATE_HZ)
    calm, wild, work = (np.zeros(len(ticks), CUE_DTYPE) for _ in range(3))
    for name in MOVERS:
        calm[name] = 0.01 * np.cos(2 * np.pi * ticks / 100) - 0.01
        wild[name] = 100.0 * (-1.0) ** (ticks // 30)

    def limited(cues):
        work[:] = cues
        limits.process(work)

    figures = [
        ("`step`, `actuate` of motioncue.h in a C loop: washout, limits, hexapod", embedded.drive, rig.motion),
        ("limits of twelve channels, none acting", limited, calm),
        ("limits of twelve channels, all acting", limited, wild),
    ]
    for figure, run, rows in figures:
        if counted:
            counted(figure, lambda run=run, rows=rows: run(rows), len(rows))
        else:
            run(rows)


# --- bytes in, bytes out --------------------------------------------------------------------------------------------


def made(*overrides, clock=None):
    """Return the same from a simulator's package to a platform's packet; its simulator has begun."""
    profile = motioncue.load_profile(PROFILE, f"source.head_m={list(HEAD_M)}", *overrides)
    assert isinstance(profile.output, Output)
    alone = msgspec.structs.replace(profile.output, gauges=None)  # the floor makes one packet too
    relay = motioncue.relay(msgspec.structs.replace(profile, output=alone), clock=clock)
    relay.step(read_packages(sample_recording())[0])
    assert relay.reply
    return relay


@pytest.fixture
def relay():
    """A relay with the profile's limits."""
    return made()


@pytest.fixture
def floor(rig):
    """Return a function that converts frames to packets in C."""
    telemetry = np.zeros(rig.n, TELEMETRY_DTYPE)

    def run():
        rig.floor.unpack(rig.frames, telemetry)
        rig.floor.step(telemetry, rig.packets)

    return run


def test_relay_gives_the_floors_packets(rig, floor):
    clock = FakeClock(1_000_000_000)
    relay = made("limits=none", clock=clock)  # as the floor
    floor()
    found = np.zeros_like(rig.packets)
    for i, frame in enumerate(rig.frames):
        clock.advance(FRAME_NS)  # a watch follows frames that come when the simulator says
        assert relay.step(frame)
        found[i] = relay.packets["motion"].view(MOTION.dtype)[0]
    assert_same(found, rig.packets, 1e-6)
    assert not relay.source.rejected


@pytest.mark.benchmark(group="bytes to bytes from Python")
def test_bytes_to_bytes_from_python_against_c(versus, rig, relay, floor):
    step, packages = relay.step, [frame.tobytes() for frame in rig.frames]

    def run():
        for package in packages:
            step(package)

    versus(
        "bytes in to bytes out from Python: checks, decode, body frame, watch, washout, limits, encode",
        "plain C: unpack, body frame, washout, encode",
        run,
        floor,
        items=rig.n,
        target=2.0,
    )
    assert not relay.source.rejected
