"""The whole measurement, block by block: punctuality, delay of frames, cost of a tick."""

import os
import platform
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue._version import __version__
from motioncue.bench.floor import receive, send
from motioncue.bench.pacing import (
    EDGES_US,
    Block,
    Integers,
    available_processors,
    bare,
    burning,
    cyclictest,
    emitter,
    fed,
    figures,
    histogram,
    quantiles_us,
    run_block,
    running,
    sockets,
    spin_ns,
    summary,
)
from motioncue.bench.report import COSTS, advice, verdict
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import Clock, FakeClock, MonotonicClock, prepare_receiver, prepare_thread, processors_awake
from motioncue.core.table import UNWATCHED
from motioncue.engine.assembly import algorithm_of
from motioncue.engine.emitter import Emitter
from motioncue.engine.receiver import DatagramReceiver
from motioncue.engine.tick import Settings
from motioncue.errors import EndpointError, MotioncueError
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import MOTION, STREAMS
from motioncue.profile.profile import Profile
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving.packets import FRAME

INTERVAL_NS = 5_137_000  # between frames, so that they meet every phase of the grid, and never two between two ticks
FIRST = 5  # start-up frames, not counted
LAST_S = 0.05  # wait for the last frame to be shown
CLOCKS_NS = 100_000  # largest difference between two clocks read one after the other
REPEATS = 9  # of what is timed


@dataclass(frozen=True)
class Plan:
    """Extent of a measurement."""

    rates_hz: tuple[float, ...] = (333.33, 1000.0)
    pairs: int = 6
    """Alternating blocks of the emitter and the bare loop, for each rate and load."""
    block_s: float = 1.5
    """Duration of a block [s]."""
    latency_pairs: int = 4
    """Alternating stretches of frames to the engine and to the bare loop, for each load."""
    frames: int = 200
    """Frames per stretch."""


FULL = Plan()
QUICK = Plan(pairs=2, block_s=0.4, latency_pairs=1, frames=60)

Progress = Callable[[float, str], None]
"""Called with the completed share and a text about the next step."""


def measure(profile: Profile, plan: Plan = FULL, progress: Progress = lambda share, what: None) -> dict[str, Any]:
    """Measure this machine, idle and under a load of its own."""
    check_loopback()
    output, began = profile.outputs[0], time.monotonic()
    pacing: list[dict[str, Any]] = []
    latency: list[dict[str, Any]] = []
    with ExitStack() as held:
        granted = {"keep_awake": held.enter_context(processors_awake())} if output.keep_awake else {}
        progress(0.0, "what a tick costs")
        costs = costs_ns(profile)
        parts = [(load, rate_hz) for load in ("idle", "loaded") for rate_hz in (*plan.rates_hz, None)]
        for part, (load, rate_hz) in enumerate(parts):
            if part == len(parts) // 2:
                held.enter_context(burning())

            def report(share: float, what: str, part: int = part) -> None:
                progress((part + share) / len(parts), what)

            if rate_hz is None:
                latency.append(delay(profile, load, plan, costs["package"], report))
            else:
                row, found = pace_rate(profile, rate_hz, load, plan, report)
                granted = {**found, **granted}
                row["cyclictest"] = reference(row, granted, plan)
                pacing.append(row)
    pacing.sort(key=lambda row: (row["rate_hz"], row["load"]))
    settings = {key: getattr(output, key) for key in ("spin_us", "keep_awake", "core", "lock_memory")}
    return {
        "motioncue": __version__,
        "machine": machine(),
        "profile": profile.name,
        "settings": settings,
        "granted": granted,
        "pacing": pacing,
        "latency": latency,
        "cost_ns": costs,
        "absent": absences(pacing, latency),
        "verdict": {
            f"{rate_hz:g}": verdict([row for row in pacing if row["rate_hz"] == rate_hz]) for rate_hz in plan.rates_hz
        },
        "advice": advice(granted, settings, pacing),
        "duration_s": time.monotonic() - began,
    }


def check_loopback() -> None:
    """Refuse a machine on which every packet would be lost; raises as `measure` does."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hears,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sends,
    ):
        hears.settimeout(1.0)
        try:
            hears.bind(("127.0.0.1", 0))
            sends.sendto(b".", hears.getsockname())
            hears.recv(1)
        except OSError as error:
            raise EndpointError(f"udp://127.0.0.1: cannot send to this machine itself: {error}") from error


def pace_rate(
    profile: Profile, rate_hz: float, load: str, plan: Plan, progress: Progress
) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the lateness of the emitter and the bare loop, in alternating blocks, and what the system granted."""
    period_ns = round(1e9 / rate_hz)
    ticks = max(int(plan.block_s * rate_hz), 20)
    loops = (emitter(profile), bare(profile.outputs[0]))
    blocks: tuple[list[Block], list[Block]] = ([], [])
    for pair in range(plan.pairs):
        progress(pair / plan.pairs, f"{rate_hz:g} Hz, {load}")
        for side in (0, 1) if pair % 2 else (1, 0):
            blocks[side].append(run_block(loops[side], profile.outputs[0], period_ns, ticks))
    ours, floor = summary(blocks[0]), summary(blocks[1])
    row = {
        "rate_hz": rate_hz,
        "load": load,
        "emitter": ours,
        "bare": floor,
        "ratio": {
            name: {level: ratio(blocks, name, level) for level in ("p50", "p99")}
            for name in ("lateness_us", "interval_error_us")
        },
        "histogram": {
            "from_us": [float(edge) for edge in EDGES_US[:-1]],
            "emitter": histogram(blocks[0]),
            "bare": histogram(blocks[1]),
        },
    }
    return row, blocks[0][0].granted


def reference(row: Mapping[str, Any], granted: Mapping[str, bool], plan: Plan) -> dict[str, Any] | None:
    """Return cyclictest's result at the row's rate, in the emitter's scheduling class; None if it cannot run."""
    period_ns, ticks = round(1e9 / row["rate_hz"]), max(int(plan.block_s * row["rate_hz"]), 20)
    awake = granted.get("keep_awake", False)
    found = cyclictest(period_ns, ticks, real_time=granted.get("fifo", False), keep_awake=awake)
    return None if found is None else {"lateness_us": found}


class Delays(NamedTuple):
    """Results of one stretch of frames."""

    published: Integers  # from each frame's arrival to the receiver's stamp of that frame or a newer one [ns]
    shown: Integers  # from arrival to just before the first packet with that motion [ns]
    lost: int  # frames that were not received
    by_kernel: bool  # whether arrivals are the system's stamps; otherwise they are times of sending


def delay(profile: Profile, load: str, plan: Plan, package_ns: float, progress: Progress) -> dict[str, Any]:
    """Return the delay of frames to the engine and to its first packet with them, and to a bare receiving loop."""
    loops: tuple[Callable[[], Delays], ...] = (lambda: engine(profile, plan.frames), lambda: bare_receiver(plan.frames))
    taken: tuple[list[Delays], list[Delays]] = ([], [])
    for pair in range(plan.latency_pairs):
        progress(pair / plan.latency_pairs, f"latency, {load}")
        for side in (0, 1) if pair % 2 else (1, 0):
            taken[side].append(loops[side]())
    published, shown, received = (
        [found.published + round(package_ns) for found in taken[0]],
        [found.shown for found in taken[0]],
        [found.published for found in taken[1]],
    )
    if not all(map(len, (*published, *shown, *received))):
        raise MotioncueError(
            "bench: found runs in which no frame came through; this machine is too busy to be measured"
        )
    ratios = [np.median(a) / np.median(b) for a, b in zip(published, received, strict=True)]
    return {
        "load": load,
        "rate_hz": profile.rate_hz,
        "arrival": "stamped by the system" if all(found.by_kernel for found in (*taken[0], *taken[1])) else "when sent",
        "published_us": quantiles_us(np.concatenate(published)),
        "shown_us": quantiles_us(np.concatenate(shown)),
        "bare_us": quantiles_us(np.concatenate(received)),
        "ratio": float(np.median(ratios)),
        "frames": plan.latency_pairs * plan.frames,
        "lost": {"engine": sum(found.lost for found in taken[0]), "bare": sum(found.lost for found in taken[1])},
    }


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


def absences(pacing: Sequence[Mapping[str, Any]], latency: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what could not be measured here, with the reason."""
    absent = {}
    if any(row["cyclictest"] is None for row in pacing):
        absent["cyclictest"] = "not installed, or refused to run"
    if any(row["arrival"] == "when sent" for row in latency):
        absent["arrival stamps"] = "this system does not tell when it took a datagram; latencies begin with the sending"
    return absent


def ratio(blocks: tuple[list[Block], list[Block]], name: str, level: str) -> float:
    """Return the median over the pairs of the ratio of the emitter's figure to the bare loop's."""
    pairs = [(figures(a)[name][level], figures(b)[name][level]) for a, b in zip(*blocks, strict=True)]
    return float(np.median([a / b if b > 0 else np.nan for a, b in pairs]))


def machine() -> dict[str, Any]:
    """Return a description of this machine."""
    return {
        "processor": processor_name(),
        "processors": len(available_processors()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def processor_name() -> str:
    """Return the processor's name, if the system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
