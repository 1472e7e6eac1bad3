"""Punctuality of the emitter, compared with a bare loop on the same machine in the same minute."""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.bench.floor import pace
from motioncue.core.clock import MonotonicClock, now_ns, prepare_thread
from motioncue.engine.assembly import algorithm_of
from motioncue.engine.emitter import Emitter
from motioncue.engine.retune import Settings
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import MOTION, STREAMS
from motioncue.profile.profile import Output, Profile
from motioncue.recording.read import read_packages, sample_recording

__all__ = [
    *("EDGES_US", "LEVELS", "Block", "Loop"),
    *("bare", "emitter", "figures", "histogram", "quantiles_us", "run_block", "spin_ns", "summary"),
]

FIRST = 5  # start-up ticks, not counted
LEVELS = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""The quantiles in the report."""
EDGES_US = np.array([0.0, *(round(m * 10.0**e, 2) for e in range(-1, 5) for m in (1, 1.5, 2, 3, 5, 7)), 1e5, np.inf])
"""Lower edges of a histogram's intervals [us]; the last interval has no end."""


Integers: TypeAlias = npt.NDArray[np.int64]
Loop: TypeAlias = Callable[[int, int, socket.socket, int], tuple[Integers, Integers]]
"""Called with period [ns], ticks, socket and port; sends, and returns lateness [ns] and grid index."""


@dataclass(frozen=True)
class Block:
    """One stretch of a loop's ticks."""

    period_ns: int
    late: Integers  # lateness of each packet [ns]
    index: Integers  # grid index of each packet
    granted: dict[str, bool] = field(default_factory=dict)

    @property
    def interval_error(self) -> Integers:
        """Deviation of the time between successive packets from their distance on the grid [ns]."""
        return np.abs(np.diff(self.late))

    @property
    def skipped(self) -> int:
        """Number of deadlines without a packet."""
        return int(self.index[-1] - self.index[0] + 1 - len(self.index))

    @property
    def rate_error_ppm(self) -> float:
        """Magnitude of the mean rate's deviation from the grid's."""
        sent = self.index + self.late / self.period_ns
        return abs(float(np.polyfit(self.index, sent, 1)[0]) - 1.0) * 1e6


def bare(output: Output) -> Loop:
    """Return the bare loop: the emitter's clock and packet, and nothing else."""

    def run(period_ns: int, ticks: int, out: socket.socket, port: int) -> tuple[Integers, Integers]:
        return pace(MonotonicClock(spin_ns(output)), period_ns, ticks, out, port, MOTION.encode())

    return run


def emitter(profile: Profile, beside: Callable[[Emitter], AbstractContextManager[Any]] = nullcontext) -> Loop:
    """Return the emitter's loop: the profile's cueing of the real drive's last frame, with one output.

    `beside` is entered with the emitter while it runs.
    """

    def run(period_ns: int, ticks: int, out: socket.socket, port: int) -> tuple[Integers, Integers]:
        module = sources.source("city-car-driving")
        intake = module.intake(module.Options())
        intake.begin(now_ns())
        for package in read_packages(sample_recording()):
            intake.feed(package, now_ns())
        algorithm = algorithm_of(profile, 1e9 / period_ns)
        clock = MonotonicClock(spin_ns(profile.outputs[0]))
        settings = Settings(algorithm, chains=[OutputChain([UpVector()])], period_ns=period_ns, hold_s=1e6)
        loop = Emitter(intake, settings, clock, trace=ticks)
        loop.add_output(out, ("127.0.0.1", port, 0), STREAMS["motion"].table(), MOTION.encode())
        with beside(loop):
            loop.run(ticks=ticks)
        return loop.trace["lateness"].copy(), loop.trace["index"].copy()

    return run


def spin_ns(output: Output) -> int:
    """Return the busy-waiting before each deadline of an output [ns]."""
    return round(1e3 * output.spin_us)


def run_block(loop: Loop, output: Output, period_ns: int, ticks: int) -> Block:
    """Run a loop in a thread of its own, prepared as in the engine.

    Parameters
    ----------
    loop : Loop
        The loop to run.
    output : Output
        The output with the requests to the system.
    period_ns : int
        Period of the grid [ns].
    ticks : int
        Ticks to keep; a few more are run before.
    """
    found: list[Block] = []
    refused: list[BaseException] = []

    def run() -> None:
        try:
            granted = {**MonotonicClock().granted, **prepare_thread(output.core, output.lock_memory)}
            late, index = loop(period_ns, ticks + FIRST, out, sink.getsockname()[1])
            found.append(Block(period_ns, late[FIRST:], index[FIRST:], granted))
        except BaseException as error:
            refused.append(error)

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        sink.bind(("127.0.0.1", 0))  # never read: what does not fit is dropped, at the same cost for every loop
        out.setblocking(False)
        thread = threading.Thread(target=run, name="motioncue bench")
        thread.start()
        thread.join()
    if refused:
        raise refused[0]
    return found[0]


def quantiles_us(ns: Integers) -> dict[str, float]:
    """Return the reported quantiles [us]."""
    return {name: float(np.quantile(ns, level)) / 1e3 for name, level in LEVELS.items()}


def figures(block: Block) -> dict[str, dict[str, float]]:
    """Return quantiles of a block's lateness and interval error [us]."""
    return {"lateness_us": quantiles_us(block.late), "interval_error_us": quantiles_us(block.interval_error)}


def summary(blocks: Sequence[Block]) -> dict[str, object]:
    """Return the combined figures of several blocks of one loop.

    p50 and p99 are medians over the blocks, so that a single bad moment does not decide; p99.9 and the maximum are
    those of all ticks together.
    """
    each = [figures(block) for block in blocks]
    together = {
        "lateness_us": quantiles_us(np.concatenate([block.late for block in blocks])),
        "interval_error_us": quantiles_us(np.concatenate([block.interval_error for block in blocks])),
    }
    for name, quantiles in together.items():
        for level in ("p50", "p99"):
            quantiles[level] = float(np.median([one[name][level] for one in each]))
    return {
        **together,
        "ticks": sum(len(block.late) for block in blocks),
        "skipped": sum(block.skipped for block in blocks),
        "rate_error_ppm": float(np.median([block.rate_error_ppm for block in blocks])),
    }


def histogram(blocks: Sequence[Block]) -> list[int]:
    """Return the number of ticks with a lateness in each interval of `EDGES_US`."""
    late = np.concatenate([block.late for block in blocks]) / 1e3
    return [int(count) for count in np.histogram(late, EDGES_US)[0]]
