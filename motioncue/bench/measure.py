"""The whole measurement, block by block."""

import os
import platform
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from motioncue._version import __version__
from motioncue.bench.latency import Delays, bare_receiver, costs_ns, engine
from motioncue.bench.pacing import (
    EDGES_US,
    Block,
    available_processors,
    bare,
    burning,
    cyclictest,
    emitter,
    figures,
    histogram,
    quantiles_us,
    run_block,
    summary,
)
from motioncue.bench.report import advice, verdict
from motioncue.core.clock import processors_awake
from motioncue.errors import EndpointError, MotioncueError
from motioncue.profile.profile import Profile


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
