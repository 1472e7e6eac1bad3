"""How late the emitter's packets go, beside a bare C loop on the same machine in the same minute.

    python benchmarks/jitter.py                 # 10 pairs of 2 s each, main thread idle, then busy with pure Python
    python benchmarks/jitter.py --smoke         # the same in a few seconds, to see that it runs
    python benchmarks/jitter.py --fifo          # both under SCHED_FIFO, if the system allows it

The bare loop sleeps to an absolute deadline, reads the clock and sends; the emitter does its whole tick in between.
Blocks of both alternate.  What is compared: lateness (from the deadline to just before sending) and interval error
(how far two packets are from one period apart).  p99.9 and the worst case belong to the machine's other tenants: they
are shown beside the bare loop's and have no target.
"""

import argparse
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from building import build
from pairs import row

from motioncue import cueing, load_profile, protocols
from motioncue.kernels.clock import MonotonicClock, now_ns
from motioncue.protocols.dk import MOTION, STREAMS
from motioncue.recording.read import read_packages, sample_recording
from motioncue.runtime.emitter import Emitter

FIRST = 5  # ticks that belong to starting, not to running
FIFO_PRIORITY = 50
QUIET = 0.1  # a pair counts as quiet if everybody else took less than this of one core


class Block(NamedTuple):
    """What one block of either loop did."""

    late: Any  # ndarray of int64 [ns], one a packet
    index: Any  # ndarray of int64: the packet's place on the grid
    switches: float  # voluntary context switches a tick
    foreign: float  # how much of one core everybody else took


def pace_bare(period_ns: int, ticks: int, out: socket.socket, port: int) -> tuple[Any, Any]:
    """Run the bare C loop."""
    floor, _ = build()
    return floor.pace(period_ns, ticks, out.fileno(), port), np.arange(ticks)


def pace_emitter(period_ns: int, ticks: int, out: socket.socket, port: int) -> tuple[Any, Any]:
    """Run the emitter: washout of the real drive's last frame, one output."""
    module = protocols.source("city-car-driving")
    session = module.session(module.Options())
    session.begin(now_ns())
    for package in read_packages(sample_recording()):
        session.feed(package, now_ns())
    algorithm = cueing.design(load_profile("ccd-dk-washout").cueing, 1e9 / period_ns)
    emitter = Emitter(session, algorithm, MonotonicClock(), period_ns=period_ns, hold_s=1e6, trace=ticks)
    emitter.add_output(out, ("127.0.0.1", port, 0), STREAMS["motion"].table(), MOTION.encode())
    emitter.prepare_thread()
    emitter.run(ticks=ticks)
    return emitter.trace["lateness"].copy(), emitter.trace["index"].copy()


def fifo_allowed() -> bool:
    """Say whether the system lets this process use SCHED_FIFO."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        return False
    return True


def cores_used() -> tuple[float, float]:
    """Return how long all cores have been busy, and how long for this process [s]."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, soft_irq, steal = map(int, stat.readline().split()[1:9])
    own = os.times()
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK"), own.user + own.system


def in_thread(pace: Callable[..., tuple[Any, Any]], period_ns: int, ticks: int, *, busy: bool, fifo: bool) -> Block:
    """Run one block in a thread of its own, while the main thread waits or computes in pure Python."""
    found: list[Any] = []

    def run() -> None:
        try:
            if fifo:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
            found.extend(pace(period_ns, ticks, out, sink.getsockname()[1]))
            found.append((resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before) / ticks)
        except BaseException as error:
            found[:] = [error]

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        began, used = time.monotonic(), cores_used()
        sink.bind(("127.0.0.1", 0))  # never read: what does not fit is dropped, at the same cost for both
        out.setblocking(False)
        thread = threading.Thread(target=run)
        thread.start()
        total = 0
        while busy and thread.is_alive():
            total += sum(range(1000))
        thread.join()
        everybody, own = (after - before for after, before in zip(cores_used(), used, strict=True))
        foreign = max(0.0, everybody - own) / (time.monotonic() - began)
    if isinstance(found[0], BaseException):
        raise found[0]
    late, index, switches = found
    return Block(late[FIRST:], index[FIRST:], switches, foreign)


def figures(block: Block, period_ns: int) -> dict[str, float]:
    """Return the figures of a block [us, ppm, 1]."""
    sent = block.index * period_ns + block.late
    interval_error = np.abs(np.diff(sent) - period_ns)
    slope = np.polyfit(block.index, sent / period_ns, 1)[0]
    return {
        "lateness p50": float(np.quantile(block.late, 0.5)) / 1e3,
        "lateness p99": float(np.quantile(block.late, 0.99)) / 1e3,
        "lateness p99.9": float(np.quantile(block.late, 0.999)) / 1e3,
        "lateness max": float(block.late.max()) / 1e3,
        "interval error p99": float(np.quantile(interval_error, 0.99)) / 1e3,
        "rate error ppm": abs(float(slope) - 1.0) * 1e6,
        "skipped": float(block.index[-1] - block.index[0] + 1 - len(block.index)),
        "switches": block.switches,
        "others, of a core": block.foreign,
    }


TARGETS = {"lateness p50": 1.1, "lateness p99": 1.25, "interval error p99": 1.5}


def compare(
    *, rate_hz: float = 333.33, seconds: float = 2.0, pairs: int = 10, busy: bool = False, fifo: bool = False
) -> tuple[list[dict[str, Any]], dict[str, tuple[float, float]]]:
    """Run blocks of both loops in turn.

    Under SCHED_FIFO neighbours weigh little.  Without it, pairs in which everybody else took more than a tenth of a
    core are repeated, up to as many as were asked for; if that is not enough, they count after all, and the rows say
    so.

    Returns
    -------
    rows : list of dict
        For the table: ratios of the emitter's figures to the bare loop's.
    shown : dict of str to (float, float)
        Medians over the blocks of every figure: the emitter's, the bare loop's.
    """
    period_ns = round(1e9 / rate_hz)
    ticks = max(int(seconds * rate_hz), 4 * FIRST)
    taken: list[tuple[dict[str, float], dict[str, float]]] = []
    quiet: list[tuple[dict[str, float], dict[str, float]]] = []
    while len(taken) < 2 * pairs and len(quiet) < pairs:
        both = [{}, {}]
        for side in (0, 1) if len(taken) % 2 else (1, 0):
            pace = (pace_emitter, pace_bare)[side]
            block = in_thread(pace, period_ns, ticks, busy=busy, fifo=fifo)
            assert len(block.late) == ticks - FIRST
            both[side] = figures(block, period_ns)
        taken.append((both[0], both[1]))
        if fifo or all(side["others, of a core"] < QUIET for side in both):
            quiet.append(taken[-1])
    chosen = quiet if len(quiet) >= pairs else taken
    medians = {
        name: (
            float(np.median([pair[0][name] for pair in chosen])),
            float(np.median([pair[1][name] for pair in chosen])),
        )
        for name in chosen[0][0]
    }
    kind = f"emitter, {rate_hz:g} Hz, main thread {'busy in Python' if busy else 'idle'}"
    if chosen is not quiet:
        kind += f" (and others at {100 * max(medians['others, of a core']):.0f} % of a core)"
    rows = [
        row(
            f"{kind}: {name}",
            f"bare C loop, both under {'SCHED_FIFO' if fifo else 'SCHED_OTHER'}",
            [pair[0][name] for pair in chosen],
            [pair[1][name] for pair in chosen],
            target=target,
            unit="us",
        )
        for name, target in TARGETS.items()
    ]
    return rows, medians


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Lateness of the emitter beside a bare C loop.")
    parser.add_argument("--rate", type=float, default=333.33, help="ticks a second [Hz]")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a block [s]")
    parser.add_argument("--pairs", type=int, default=10, help="blocks of each kind")
    parser.add_argument("--fifo", action="store_true", help="both under SCHED_FIFO")
    parser.add_argument("--smoke", action="store_true", help="two short pairs")
    options = parser.parse_args()
    if options.smoke:
        options.seconds, options.pairs = 0.2, 2
    for busy in (False, True):
        rows, shown = compare(
            rate_hz=options.rate, seconds=options.seconds, pairs=options.pairs, busy=busy, fifo=options.fifo
        )
        print(f"main thread {'busy in Python' if busy else 'idle'}, {options.rate:g} Hz, {options.pairs} pairs")
        ratios = {entry["figure"].rpartition(": ")[2]: entry["ratio"] for entry in rows}
        for name, (ours, bare) in shown.items():
            ratio = f"{ratios[name]:8.2f}" if name in ratios else ""
            print(f"  {name:20s} emitter {ours:10.2f}   bare loop {bare:10.2f} {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
