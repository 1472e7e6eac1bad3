"""Delay of a frame from its arrival to the engine, and to the first packet that shows it."""

import socket
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.bench.floor import receive, send
from motioncue.bench.pacing import Integers, fed, running, sockets, spin_ns
from motioncue.bench.report import COSTS
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import Clock, FakeClock, MonotonicClock, prepare_receiver, prepare_thread
from motioncue.core.table import UNWATCHED
from motioncue.engine.assembly import algorithm_of
from motioncue.engine.emitter import Emitter
from motioncue.engine.receiver import DatagramReceiver
from motioncue.engine.tick import Settings
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import MOTION, STREAMS
from motioncue.profile.profile import Profile
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving.packets import FRAME

INTERVAL_NS = 5_137_000  # between frames, so that they meet every phase of the grid, and never two between two ticks
FIRST = 5  # start-up frames, not counted
LAST_S = 0.05  # wait for the last frame to be shown
CLOCKS_NS = 100_000  # largest difference between two clocks read one after the other


class Delays(NamedTuple):
    """Results of one stretch of frames."""

    published: Integers  # from each frame's arrival to the receiver's stamp of that frame or a newer one [ns]
    shown: Integers  # from arrival to just before the first packet with that motion [ns]
    lost: int  # frames that were not received
    by_kernel: bool  # whether arrivals are the system's stamps; otherwise they are times of sending


def sample_frames(count: int) -> npt.NDArray[np.uint8]:
    """Return frames of the real drive, one per row, repeated if it is too short."""
    frames = [package for package in read_packages(sample_recording()) if len(package) == FRAME.size]
    rows = np.frombuffer(b"".join(frames), np.uint8).reshape(-1, FRAME.size)
    return np.resize(rows, (count, FRAME.size))


def engine(profile: Profile, count: int) -> Delays:
    """Send frames to a receiver and an emitter that run in threads with sockets, as in the engine."""
    module = sources.source("city-car-driving")
    intake = module.intake(module.Options())
    intake.watch(UNWATCHED)
    period_ns = round(1e9 / profile.rate_hz)
    output, frames = profile.outputs[0], sample_frames(count + FIRST)
    ticks = 1000 + 2 * len(frames) * INTERVAL_NS // period_ns  # with time to start
    algorithm, clock = algorithm_of(profile, 1e9 / period_ns), MonotonicClock(spin_ns(output))
    settings = Settings(algorithm, chains=[OutputChain([UpVector()])], period_ns=period_ns, fade_s=1e-3)
    loop = Emitter(intake, settings, clock, trace=ticks)
    with sockets() as (hears, sends, sink):
        loop.add_output(sends, ("127.0.0.1", sink.getsockname()[1], 0), STREAMS["motion"].table(), MOTION.encode())
        hears.setblocking(False)
        receiver = DatagramReceiver(intake, [hears], MonotonicClock())

        def emit() -> None:
            loop.prepare_thread(output.core, output.lock_memory)
            loop.run()

        def hear() -> None:
            prepare_receiver()
            receiver.run()

        with running(hear, receiver.stop), running(emit, loop.stop):
            sends.sendto(read_packages(sample_recording())[0], hears.getsockname())  # announces the car's axes
            sent, arrived = play(frames, sends, hears)
            time.sleep(LAST_S)
    trace = loop.trace
    first = np.flatnonzero(np.diff(trace["motion"]["time"], prepend=0))  # ticks with a new motion
    received = trace["motion"]["time"][first]
    shown = (trace["deadline"] + trace["lateness"])[first]
    return delays(sent, arrived, received, shown, len(sent) - intake.accepted)


def bare_receiver(count: int, loop: Callable[[Clock, socket.socket, int], npt.NDArray[np.int64]] = receive) -> Delays:
    """Send the same frames to a loop that only receives and reads the clock."""
    found: list[Integers] = []
    frames = sample_frames(count + FIRST)
    with sockets() as (hears, sends, _):

        def hear() -> None:
            prepare_receiver()
            found.append(loop(MonotonicClock(), hears, len(frames)))

        def stop() -> None:
            sends.sendto(b".", hears.getsockname())

        with running(hear, stop):
            sent, arrived = play(frames, sends, hears)
    return delays(sent, arrived, found[0], found[0], len(sent) - len(found[0]))


def play(frames: npt.NDArray[np.uint8], sends: socket.socket, hears: socket.socket) -> tuple[Integers, Integers]:
    """Send frames from a thread as punctual as the engine's; return the results of `send`."""
    found: list[tuple[Integers, Integers]] = []

    def run() -> None:
        prepare_thread()
        found.append(send(MonotonicClock(), INTERVAL_NS, frames, sends, hears.getsockname()[1], hears))

    with running(run):
        pass
    return found[0]


def delays(sent: Integers, arrived: Integers, received: Integers, shown: Integers, lost: int) -> Delays:
    """Match each arrival with the first motion received after it: that of the same frame, or of a newer one.

    The system gives the stamp of the newest received datagram only.  A frame not yet received when asked counts from
    its sending, some microseconds earlier: leaving it out would leave out the slow ones.
    """
    told = arrived >= sent - CLOCKS_NS
    begin = np.where(told, arrived, sent)[FIRST:]
    place = np.searchsorted(received, begin)
    there = place < len(received)
    place, begin = place[there], begin[there]
    return Delays(received[place] - begin, shown[place] - begin, lost, bool(told.any()))


REPEATS = 9


def costs_ns(profile: Profile) -> dict[str, float]:
    """Return the median cost of each operation in `COSTS` [ns]."""
    period_ns = round(1e9 / profile.rate_hz)
    packages, clock = read_packages(sample_recording()), FakeClock()
    settings = Settings(
        algorithm_of(profile, 1e9 / period_ns),
        chains=[OutputChain([UpVector()])],
        period_ns=period_ns,
        hold_s=1e9,
    )
    loop = Emitter(fed(packages, clock.now_ns), settings, clock)
    motion = np.zeros(100_000, MOTION_DTYPE)
    motion[:] = loop.newest()["motion"]
    batch, cues = algorithm_of(profile, 1e9 / period_ns), np.zeros(len(motion), CUE_DTYPE)
    loop.run(ticks=1000)  # ends the fade
    found = {
        "package": per_item(lambda: fed(packages, lambda: 0), len(packages)),
        "tick": per_item(lambda: loop.run(ticks=20_000), 20_000),
        "batch": per_item(lambda: batch.process(motion, cues), len(motion)),
    }
    with sockets() as (_, out, sink):
        out.setblocking(False)
        loop.add_output(out, ("127.0.0.1", sink.getsockname()[1], 0), STREAMS["motion"].table(), MOTION.encode())
        found["tick_sent"] = per_item(lambda: loop.run(ticks=2000), 2000)
    return {name: found[name] for name in COSTS}


def per_item(call: Callable[[], object], items: int) -> float:
    """Return the cost of a call per item, median of several calls [ns]."""
    call()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - began) / items)
    return median(times)
