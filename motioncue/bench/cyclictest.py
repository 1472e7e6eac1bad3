"""Wake-up latency of this machine by cyclictest of rt-tests, if installed."""

import re
import shutil
import subprocess
from typing import Any

import numpy as np

from motioncue.bench.pacing import LEVELS

__all__ = ["cyclictest", "parse_histogram"]

HISTOGRAM_US = 20_000


def cyclictest(period_ns: int, ticks: int, *, real_time: bool, keep_awake: bool) -> dict[str, Any] | None:
    """Return quantiles of the lateness that cyclictest measures [us]; None if it does not run here.

    Parameters
    ----------
    period_ns : int
        Time between wake-ups [ns].
    ticks : int
        Number of wake-ups.
    real_time : bool
        Run under SCHED_FIFO, as the emitter does if that is granted.
    keep_awake : bool
        Keep the processors awake, as cyclictest does by itself if it may.
    """
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
