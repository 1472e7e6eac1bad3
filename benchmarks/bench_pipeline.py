"""Cost of a whole tick, and the speed of a recording through the engine."""

import socket
import time

import numpy as np
import pytest
from conftest import RATE_HZ
from pairs import row
from references import empty_packets

from motioncue import cueing, load_profile, sources
from motioncue.core.channels import CUE_DTYPE, TICK_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.core.threads import RecordRing
from motioncue.engine.emitter import Emitter
from motioncue.engine.replay import replay
from motioncue.engine.tick import Settings
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import STREAMS
from motioncue.recording.recording import read_packages, sample_recording


def made(rig):
    """Return an emitter that has faded in and holds the drive's last frame for ever, on a clock that takes no time."""
    clock = FakeClock()
    module = sources.source("city-car-driving")
    intake = module.intake(module.Options())
    intake.begin(clock.now_ns())
    for package in read_packages(sample_recording()):
        intake.feed(package, clock.now_ns())
    settings = Settings(
        cueing.design(rig.cueing, RATE_HZ),
        chains=[OutputChain([UpVector()])],
        period_ns=round(1e9 / RATE_HZ),
        hold_s=9e9,
    )
    emitter = Emitter(intake, settings, clock)
    emitter.run(ticks=400)
    assert emitter.newest()["weight"] == 1.0
    return emitter


@pytest.fixture
def emitter(rig):
    """An emitter without outputs."""
    return made(rig)


@pytest.fixture
def sink():
    """A bound socket that receives packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        yield sock


def drained(sock):
    """Receive all waiting packets; return their number."""
    count = 0
    while True:
        try:
            sock.recv(2048)
        except BlockingIOError:
            return count
        count += 1


@pytest.mark.benchmark(group="tick")
def test_tick_without_outputs_against_c(versus, rig, emitter):
    n, motion, cue = rig.n, rig.motion[-1:].copy(), np.zeros(1, CUE_DTYPE)
    versus(
        "tick without outputs: newest motion, fade, washout, publish, statistics",
        "plain C: washout",
        lambda: emitter.run(ticks=n),
        lambda: rig.floor.washout_repeat(motion, cue, n),
        items=n,
    )
    assert emitter.counts()["skipped"] == 0


@pytest.mark.benchmark(group="tick")
def test_recorded_tick_against_one_that_is_not(versus, rig, emitter):
    n, recorded, ring = rig.n, made(rig), RecordRing(2 * rig.n * TICK_DTYPE.itemsize)
    recorded.record(ring)
    versus(
        "tick without outputs, recorded",
        "not recorded",
        lambda: recorded.run(ticks=n),
        lambda: emitter.run(ticks=n),
        items=n,
        between=lambda: ring.take() and None,
    )
    assert ring.lost == 0


@pytest.mark.benchmark(group="tick")
def test_tick_with_one_output_against_c(versus, rig, emitter, sink):
    n, motion, packet, port = 200, rig.motion[-1:].copy(), empty_packets(1), sink.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        emitter.add_output(out, ("127.0.0.1", port, 0), STREAMS["motion"].table(), empty_packets(1).tobytes())
        emitter.run(ticks=n)
        assert drained(sink) == n
        assert rig.floor.tick(motion, packet, n, out.fileno(), port) == n
        assert drained(sink) == n
        versus(
            "tick with one UDP output on loopback",
            "plain C: washout, encode, sendto",
            lambda: emitter.run(ticks=n),
            lambda: rig.floor.tick(motion, packet, n, out.fileno(), port),
            items=n,
            between=lambda: drained(sink) and None,
        )
    assert emitter.counts()["send_errors"] == 0


@pytest.mark.benchmark(group="replay")
def test_replay_of_the_real_drive_against_real_time(benchmark, smoke):
    profile, path = load_profile("ccd-dk-classical"), sample_recording()

    def run():
        began = time.thread_time()
        ticks = replay(profile, path)
        return 1e3 * (time.thread_time() - began), (int(ticks["deadline"][-1]) - int(ticks["deadline"][0])) * 1e-6

    if smoke:
        _, driven_ms = benchmark(run)
        assert driven_ms > 60e3
        return
    times = [run() for _ in range(8)]
    took, driven = zip(*times, strict=True)
    benchmark.extra_info["rows"] = [
        row("replay of the real drive: bytes to ticks", "real time", took, driven, faster=True, unit="ms")
    ]
    benchmark.pedantic(run, rounds=5)
