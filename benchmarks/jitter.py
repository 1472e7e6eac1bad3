"""Lateness of the emitter's packets, beside the bare loop of `motioncue bench` in the same minute.

    python benchmarks/jitter.py                     # everything, about five minutes
    python benchmarks/jitter.py --only loaded spin  # some of it
    python benchmarks/jitter.py --smoke             # everything in a few seconds, to see that it runs

The bare loop sleeps to an absolute deadline, reads the clock and sends; the emitter does its whole tick in between.
Blocks of both alternate, and both ask the system for the same things.  What is compared: lateness (from the deadline
to just before sending) and interval error (how far two packets are from one period apart).  p99.9 and the worst case
belong to the machine's other tenants: they are shown beside the bare loop's and have no target.
"""

import argparse
import io
import os
import resource
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from pairs import fact, row

from motioncue import load_profile
from motioncue.bench.floor import receive
from motioncue.bench.measure import bare_receiver, costs_ns, engine
from motioncue.bench.pacing import Loop, bare, burning, emitter, figures, run_block, running
from motioncue.core.clock import MonotonicClock, prepare_thread, processors_awake
from motioncue.core.threads import RecordRing
from motioncue.engine.emitter import Emitter
from motioncue.engine.pipeline import Tuner
from motioncue.engine.tick import Settings
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.profile.profile import Record
from motioncue.recording.recorder import Recorder, tick_ring_bytes

PROFILE = load_profile("ccd-dk-classical")
SPINNING = load_profile("ccd-dk-classical", "output.spin_us=200")
QUIET = 0.1  # a pair is quiet if other processes took less than this of one core
Condition = Callable[[], AbstractContextManager[Any]]


class Side(NamedTuple):
    """One of the two loops that are compared."""

    loop: Loop
    condition: Condition = nullcontext


class Sizes(NamedTuple):
    """Extent of a measurement."""

    pairs: int = 6
    block_s: float = 2.0
    long_s: float = 30.0
    frames: int = 200


SMOKE = Sizes(pairs=2, block_s=0.1, long_s=0.5, frames=10)


def granted() -> bool:
    """Say whether the system allows a thread of this process SCHED_FIFO."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(prepare_thread()["fifo"]))
    thread.start()
    thread.join()
    return found[0]


def cores_used() -> tuple[float, float]:
    """Return how long all cores have been busy, and how long for this process [s]."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, soft_irq, steal = map(int, stat.readline().split()[1:9])
    own = os.times()
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK"), own.user + own.system


def measured(side: Side, period_ns: int, ticks: int) -> tuple[dict[str, float], float]:
    """Run one block of a loop; return its figures [us, ppm], and the share of a core that other processes took."""
    with side.condition():
        began, used = time.monotonic(), cores_used()
        block = run_block(side.loop, PROFILE.outputs[0], period_ns, ticks)
        everybody, own = (after - before for after, before in zip(cores_used(), used, strict=True))
        foreign = max(0.0, everybody - own) / (time.monotonic() - began)
    names = {"lateness_us": "lateness", "interval_error_us": "interval error"}
    levels = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
    found = {
        f"{names[name]} {levels[level]}": value
        for name, quantiles in figures(block).items()
        for level, value in quantiles.items()
    }
    return {**found, "rate error ppm": block.rate_error_ppm, "skipped": float(block.skipped)}, foreign


def compare(
    figure: str,
    against: str,
    ours: Side,
    theirs: Side,
    targets: Mapping[str, float],
    *,
    rate_hz: float,
    sizes: Sizes,
    quiet: bool = True,
) -> tuple[list[dict[str, Any]], dict[str, tuple[float, float]]]:
    """Run blocks of both loops in turn.

    If `quiet`, pairs in which other processes took more than a tenth of a core are repeated, at most as many as were
    requested; if that is not enough, they count after all, and the rows say so.

    Returns
    -------
    rows : list of dict
        For the table: ratios of our figures to theirs, for each that has a target.
    shown : dict of str to (float, float)
        Medians over the blocks of every figure of both loops: ours, theirs.
    """
    period_ns = round(1e9 / rate_hz)
    ticks = max(int(sizes.block_s * rate_hz), 20)
    taken: list[tuple[dict[str, float], dict[str, float]]] = []
    calm: list[tuple[dict[str, float], dict[str, float]]] = []
    foreign: list[float] = []
    while len(taken) < 2 * sizes.pairs and len(calm) < sizes.pairs:
        both: list[tuple[dict[str, float], float]] = [({}, 0.0), ({}, 0.0)]
        for side in (0, 1) if len(taken) % 2 else (1, 0):
            both[side] = measured((ours, theirs)[side], period_ns, ticks)
        taken.append((both[0][0], both[1][0]))
        foreign.append(max(both[0][1], both[1][1]))
        if not quiet or foreign[-1] < QUIET:
            calm.append(taken[-1])
    chosen = calm if len(calm) >= sizes.pairs else taken
    if chosen is not calm:
        figure += f" (and others at {100 * float(np.median(foreign)):.0f} % of a core)"
    medians = {
        name: (float(np.median([a[name] for a, _ in chosen])), float(np.median([b[name] for _, b in chosen])))
        for name in chosen[0][0]
    }
    rows = [
        row(
            f"{figure}: {name}",
            against,
            [a[name] for a, _ in chosen],
            [b[name] for _, b in chosen],
            target=target,
            unit="us",
        )
        for name, target in targets.items()
    ]
    return rows, medians


UNLOADED = {"lateness p50": 1.1, "lateness p99": 1.25, "interval error p99": 1.5}
LOADED = {"lateness p50": 1.1, "lateness p99": 1.5}
RECORDED = {"lateness p50": 1.05, "lateness p99": 1.05}
STALL_S = 2.0
CONDITIONS: Mapping[str, tuple[str, Condition, Mapping[str, float]]] = {
    "idle": ("main thread idle", nullcontext, UNLOADED),
    "busy": ("a thread busy in Python", partial(burning, 0), UNLOADED),
    "loaded": ("all cores loaded, a thread busy in Python", burning, LOADED),
}
Found = tuple[list[dict[str, Any]], dict[str, tuple[float, float]]]


def beside_bare_loop(condition: str, rate_hz: float, sizes: Sizes) -> Found:
    """Compare the emitter with the bare loop in one of `CONDITIONS`."""
    words, load, targets = CONDITIONS[condition]
    fifo = granted()
    kind = "SCHED_FIFO" if fifo else "SCHED_OTHER"
    quiet = condition != "loaded" and not fifo  # under SCHED_FIFO neighbors weigh little
    with load():
        return compare(
            f"emitter, {rate_hz:g} Hz, {words}",
            f"bare C loop, both under {kind}",
            Side(emitter(PROFILE)),
            Side(bare(PROFILE.outputs[0])),
            targets,
            rate_hz=rate_hz,
            sizes=sizes,
            quiet=quiet,
        )


def with_spin(sizes: Sizes) -> Found:
    """Compare an emitter that spins for the last 200 us with one that only sleeps."""
    return compare(
        *("emitter with a final spin of 200 µs, 333.33 Hz", "the emitter, sleeping alone"),
        *(Side(emitter(SPINNING)), Side(emitter(PROFILE))),
        {"lateness p50": 0.01},
        rate_hz=333.33,
        sizes=sizes,
        quiet=not granted(),
    )


def kept_awake(sizes: Sizes) -> Found:
    """Compare the emitter while the processors are kept awake with the emitter while they are not."""
    with processors_awake() as allowed:
        if not allowed:
            return [], {}
    return compare(
        *("emitter with the processors kept awake, 333.33 Hz", "the emitter without"),
        *(Side(emitter(PROFILE), processors_awake), Side(emitter(PROFILE))),
        {"lateness p50": 0.5},
        rate_hz=333.33,
        sizes=sizes,
        quiet=not granted(),
    )


@contextmanager
def retuning(loop: Emitter, done: list[float] | None = None) -> Iterator[None]:
    """Change a gain of a running emitter a thousand times a second, through the public `retune`."""
    tuner, ended, period_ns = Tuner(PROFILE), threading.Event(), round(1e9 / PROFILE.rate_hz)

    def post(settings: Settings) -> None:
        chains = [OutputChain([UpVector()])]  # those of the emitter
        loop.retune(Settings(settings.algorithm, settings.limits, chains=chains, period_ns=period_ns, hold_s=1e6))

    def change() -> None:
        began, count = time.monotonic(), 0
        while not ended.is_set():
            tuner(f"cueing.surge.gain={0.3 + 0.01 * (count % 30):.2f}", post)
            count += 1
            time.sleep(max(0.0, began + count * 1e-3 - time.monotonic()))
        if done is not None:
            done.append(count / (time.monotonic() - began))

    with running(change, ended.set):
        yield


def while_retuned(sizes: Sizes) -> Found:
    """Compare an emitter whose settings change a thousand times a second with one whose settings do not."""
    done: list[float] = []
    rows, shown = compare(
        *(
            "emitter retuned a thousand times a second, 333.33 Hz",
            "the emitter without, a thread busy in Python beside",
        ),
        *(Side(emitter(PROFILE, partial(retuning, done=done))), Side(emitter(PROFILE), partial(burning, 0))),
        UNLOADED,
        rate_hz=333.33,
        sizes=sizes,
        quiet=not granted(),
    )
    shown["changes a second"] = float(np.median(done)), 0.0
    return rows, shown


class Disk(io.FileIO):
    """A file whose writes do not return before a time of the monotonic clock [s], as on a disk that stalls."""

    stalls_until = 0.0

    def write(self, data: Any) -> int:
        """Wait, without the GIL as the system does, then write."""
        time.sleep(max(0.0, self.stalls_until - time.monotonic()))
        return super().write(data)


@contextmanager
def recording(loop: Emitter, rate_hz: float, lost: list[int]) -> Iterator[None]:
    """Record a running emitter as the engine does, to a disk that stalls at once; add how many records were lost."""
    ring = RecordRing(tick_ring_bytes(rate_hz))
    loop.record(ring)
    with tempfile.TemporaryDirectory() as folder:
        disks: list[Disk] = []

        def stalling(path: Path, mode: str) -> io.BufferedWriter:
            disks.append(Disk(str(path), mode))
            return io.BufferedWriter(disks[-1])

        recorder = Recorder(Record(file=str(Path(folder) / "disk.mcap")), [ring], {})
        with ExitStack() as running:
            with patch.object(Path, "open", stalling):
                running.enter_context(recorder)
            disks[-1].stalls_until = time.monotonic() + STALL_S
            yield
        counts = recorder.counts()
        assert counts["ticks"]
        lost.append(counts["lost"])


def while_recorded(rate_hz: float, sizes: Sizes) -> Found:
    """Compare the emitter while it is recorded to a disk that stalls with one that nobody records."""
    lost: list[int] = []
    with burning(0):
        rows, shown = compare(
            *(
                f"emitter recorded to a disk that stalls for {STALL_S:g} s, {rate_hz:g} Hz, a thread busy in Python",
                "the emitter, not recorded",
            ),
            Side(emitter(PROFILE, partial(recording, rate_hz=rate_hz, lost=lost))),
            Side(emitter(PROFILE)),
            RECORDED,
            rate_hz=rate_hz,
            sizes=sizes._replace(block_s=2.0 * sizes.block_s),  # the stall, then what has to be caught up with
            quiet=not granted(),
        )
    figure = f"emitter recorded to a disk that stalls for {STALL_S:g} s, {rate_hz:g} Hz: records lost"
    return [*rows, fact(figure, "those of a run", float(max(lost)), "", 0.0)], shown


def in_the_long_run(sizes: Sizes) -> list[dict[str, Any]]:
    """Run the emitter for a while, with a loop that receives; return facts about its packets and its thread."""
    period_ns = round(1e9 / 333.33)
    ticks = max(int(sizes.long_s * 333.33), 20)
    used: list[Any] = []

    def counted(period_ns: int, ticks: int, out: socket.socket, port: int) -> tuple[Any, Any]:
        before = resource.getrusage(resource.RUSAGE_THREAD)
        found = emitter(PROFILE)(period_ns, ticks, out, sink.getsockname()[1])
        after = resource.getrusage(resource.RUSAGE_THREAD)
        used.append(after.ru_nvcsw - before.ru_nvcsw)
        return found

    received: list[Any] = []
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ends,
    ):
        sink.bind(("127.0.0.1", 0))
        hear = partial(receive, MonotonicClock(), sink, 2 * ticks)
        with running(lambda: received.append(hear()), lambda: ends.sendto(b".", sink.getsockname())):
            block = run_block(counted, PROFILE.outputs[0], period_ns, ticks)
    first = block.index[0]  # ticks before it were sent but not kept
    sent = len(block.index) + first
    slots = (block.index * period_ns + block.late) // period_ns
    what = f"emitter, 333.33 Hz, over {ticks / 333.33:.3g} s"
    return [
        fact(f"{what}: rate error", "the grid", block.rate_error_ppm, "ppm", 10.0),
        fact(f"{what}: packets lost", "those sent", float(sent - len(received[0])), "", 0.0),
        fact(f"{what}: sent in a burst", "one a period", float(np.sum(np.diff(slots) < 1)), "", 0.0),
        fact(f"{what}: voluntary context switches a tick", "1", used[0] / sent, "", 1.02),
    ]


def arrival(condition: str, sizes: Sizes) -> list[dict[str, Any]]:
    """Compare how soon the engine and a C loop receive a datagram, from the system's stamp of its arrival."""
    words, load, _ = CONDITIONS[condition]
    package_ns = costs_ns(PROFILE)["package"]  # from the receiver's stamp to the motion published
    ours, theirs = [], []
    with load():
        for pair in range(sizes.pairs):
            for side in (0, 1) if pair % 2 else (1, 0):
                if side == 0:
                    found = engine(PROFILE, sizes.frames)
                    ours.append((float(np.median(found.published)) + package_ns) / 1e3)
                else:
                    found = bare_receiver(sizes.frames)
                    theirs.append(float(np.median(found.published)) / 1e3)
                assert found.lost == 0
    figure = f"from the arrival of a datagram to its motion published, {words}: p50"
    return [row(figure, "C receive loop on such a socket", ours, theirs, target=1.15, unit="us")]


RUNS: Mapping[str, Callable[[Sizes], Sequence[dict[str, Any]] | Found]] = {
    **{
        f"{condition}-{rate_hz:g}": partial(beside_bare_loop, condition, rate_hz)
        for rate_hz in (333.33, 1000.0)
        for condition in CONDITIONS
    },
    "spin": with_spin,
    "awake": kept_awake,
    "retuned": while_retuned,
    **{f"recorded-{rate_hz:g}": partial(while_recorded, rate_hz) for rate_hz in (333.33, 1000.0)},
    "long": in_the_long_run,
    "arrival-idle": partial(arrival, "idle"),
    "arrival-busy": partial(arrival, "busy"),
}
"""Run all measurements: rows of the table, and further figures."""


def run(name: str, sizes: Sizes) -> Found:
    """Run one of `RUNS`."""
    found = RUNS[name](sizes)
    return found if isinstance(found, tuple) else (list(found), {})


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Lateness of the emitter beside a bare C loop.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"names, or beginnings of names: {', '.join(RUNS)}")
    parser.add_argument("--seconds", type=float, default=Sizes().block_s, help="length of a block [s]")
    parser.add_argument("--pairs", type=int, default=Sizes().pairs, help="blocks of each kind")
    parser.add_argument("--smoke", action="store_true", help="everything, short")
    options = parser.parse_args()
    sizes = SMOKE if options.smoke else Sizes(pairs=options.pairs, block_s=options.seconds)
    for name in RUNS:
        if options.only and not name.startswith(tuple(options.only)):
            continue
        rows, shown = run(name, sizes)
        print(f"{name}" if rows else f"{name}: not granted here")
        for entry in rows:
            ratio = entry.get("ratio", entry.get("value"))
            quartiles = "{:.3g} … {:.3g}".format(*entry["quartiles"]) if "quartiles" in entry else ""
            print(f"  {entry['figure']:90s} {ratio:8.3f}  {quartiles:18s} target {entry['target']:g}", flush=True)
        for figure, (ours, theirs) in shown.items():
            print(f"    {figure:20s} {ours:10.2f}   beside {theirs:10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
