"""How late the packets of a loop leave, beside a bare loop and cyclictest, on an idle machine and under load."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.bench.floor import pace
from motioncue.core.clock import MonotonicClock, now_ns, prepare_thread
from motioncue.engine.assembly import algorithm_of
from motioncue.engine.emitter import Emitter
from motioncue.engine.tick import Settings
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import MOTION, STREAMS
from motioncue.profile.profile import Output, Profile
from motioncue.recording.recording import read_packages, sample_recording

# Each process ends with its parent, however that ends, because its standard input closes.
BURN = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print(flush=True)
while True:
    pass
"""

# Ctrl-C must reach the measuring program only; each system ignores the other one's option.
APART: dict[str, Any] = {
    "start_new_session": True,
    "creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
}


@contextmanager
def burning(processes: int | None = None) -> Iterator[None]:
    """Keep processors and the interpreter busy while a block runs."""
    count = processes if processes is not None else len(available_processors())
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute, name="motioncue bench load", daemon=True)
    burners = []
    try:
        for _ in range(count):
            burners.append(
                subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **APART)
            )
        for burner in burners:
            assert burner.stdout is not None
            burner.stdout.readline()  # waits until it runs
        thread.start()
        yield
    finally:
        done.set()
        if thread.ident is not None:
            thread.join()
        for burner in burners:
            burner.kill()
            burner.communicate()


def available_processors() -> list[int]:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def sockets() -> Iterator[tuple[socket.socket, socket.socket, socket.socket]]:
    """Open three datagram sockets: a bound one that receives, one that sends, and a bound one that nobody reads."""
    with ExitStack() as opened:
        hears, sends, sink = (opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(3))
        for sock in (hears, sink):
            sock.bind(("127.0.0.1", 0))
        yield hears, sends, sink


@contextmanager
def running(work: Callable[[], object], stop: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Run `work` in a thread beside a block, then call `stop`, join it, and raise its exception if any."""
    refused: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            refused.append(error)

    thread = threading.Thread(target=run, name="motioncue bench", daemon=True)  # must not block the exit
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join()
    if refused:
        raise refused[0]


HISTOGRAM_US = 20_000


def cyclictest(period_ns: int, ticks: int, *, real_time: bool, keep_awake: bool) -> dict[str, Any] | None:
    """Return quantiles of the lateness that cyclictest measures [us]; None if it does not run here."""
    program = shutil.which("cyclictest")
    if program is None:
        return None
    policy = ["--policy=fifo", "--priority=10"] if real_time else ["--policy=other"]
    awake = [] if keep_awake else ["--default-system"]
    where = ["--quiet", "--threads=1", f"--interval={period_ns // 1000}", f"--loops={ticks}"]
    done = subprocess.run(
        [program, *where, *policy, *awake, f"--histogram={HISTOGRAM_US}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return parse_histogram(done.stdout) if done.returncode == 0 else None


def parse_histogram(text: str) -> dict[str, Any] | None:
    """Return quantiles [us] from cyclictest's output with a histogram; None if it contains none.

    A wake-up beyond the histogram's end counts as the latest one.
    """
    rows = [(int(late), int(count)) for late, count in re.findall(r"^(\d{6}) (\d+)$", text, re.M) if int(count)]
    latest = re.search(r"^# Max Latencies: (\d+)", text, re.M)
    over = re.search(r"^# Histogram Overflows: (\d+)", text, re.M)
    if not rows or latest is None:
        return None
    rows.append((int(latest[1]), int(over[1]) if over else 0))
    late = np.repeat([row[0] for row in rows], [row[1] for row in rows])
    return {name: float(np.quantile(late, level, method="inverted_cdf")) for name, level in LEVELS.items()} | {
        "max": float(latest[1])
    }


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
        found: tuple[Integers, Integers]
        found = pace(MonotonicClock(spin_ns(output)), period_ns, ticks, out, port, MOTION.encode())
        return found

    return run


def fed(packages: Sequence[bytes], now: Callable[[], int]) -> Any:
    """Return an intake that has taken packages of City Car Driving, each at the time `now` [ns]."""
    module = sources.source("city-car-driving")
    intake = module.intake(module.Options())
    intake.begin(now())
    for package in packages:
        intake.feed(package, now())
    return intake


def emitter(profile: Profile, beside: Callable[[Emitter], AbstractContextManager[Any]] = nullcontext) -> Loop:
    """Return the emitter's loop: the profile's cueing of the real drive's last frame, with one output.

    `beside` is entered with the emitter while it runs.
    """

    def run(period_ns: int, ticks: int, out: socket.socket, port: int) -> tuple[Integers, Integers]:
        intake = fed(read_packages(sample_recording()), now_ns)
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
    """Run a loop in a thread of its own, prepared as in the engine."""
    found: list[Block] = []

    def run() -> None:
        granted = {**MonotonicClock().granted, **prepare_thread(output.core, output.lock_memory)}
        late, index = loop(period_ns, ticks + FIRST, out, sink.getsockname()[1])
        found.append(Block(period_ns, late[FIRST:], index[FIRST:], granted))

    with sockets() as (_, out, sink):  # never read: what does not fit is dropped, at the same cost for every loop
        out.setblocking(False)
        with running(run):
            pass
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
