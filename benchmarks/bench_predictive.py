"""Time of a tick of predictive cueing, by the thread's processor time: ``python benchmarks/bench_predictive.py``."""

import sys
import time

import numpy as np

import motioncue
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.engine.assembly import algorithm_of
from motioncue.virtual.installation import drive_motion

PLATFORMS = ("box-small", "box-large", "hexapod-dim", "hexapod-simona", "hexapod-cranks")
CAP = 200  # default of cueing.iterations


def hostile(rng, rows):
    """Return a motion whose every channel jumps to another end every tenth of a second."""
    motion = np.zeros(rows, MOTION_DTYPE)
    for name, size in (("surge", 20.0), ("sway", 20.0), ("heave", 20.0), ("roll", 1.0), ("pitch", 1.0)):
        motion[name] = size * np.repeat(rng.choice([-1.0, 1.0], rows // 33 + 1), 33)[:rows]
    for name in ("roll_rate", "pitch_rate", "yaw_rate"):
        motion[name] = 3.0 * np.repeat(rng.choice([-1.0, 1.0], rows // 33 + 1), 33)[:rows]
    return motion


def ticks_us(platform, motion):
    """Return the time of each tick [us], and what the plans took."""
    keys = "cueing.algorithm=predictive", {"platform": {"preset": platform}}
    algorithm = algorithm_of(motioncue.load_profile("ccd-dk-classical", *keys))
    cue, times = np.zeros(1, CUE_DTYPE), np.zeros(len(motion))
    for i in range(len(motion)):
        row = motion[i : i + 1]
        begun = time.thread_time_ns()
        algorithm.step(row, cue)
        times[i] = time.thread_time_ns() - begun
    return 1e-3 * times, algorithm.counts


def report(rows, runs=1):
    """Print the least time of each tick in some runs, which are the same but for what else the machine does."""
    rng = np.random.default_rng(1)
    drives = {"tour": np.repeat(drive_motion("tour"), 6)[:rows], "hostile": hostile(rng, rows)}
    for platform in PLATFORMS:
        for name, motion in drives.items():
            found = [ticks_us(platform, motion) for _ in range(runs)]
            times, counts = np.min([times for times, _ in found], axis=0), found[0][1]
            shares = np.quantile(times, [0.5, 0.99, 0.999, 1.0])
            said = "  ".join(
                f"{word} {value:6.1f}" for word, value in zip(("p50", "p99", "p999", "max"), shares, strict=True)
            )
            print(f"{platform:15s}{name:8s} us per tick: {said}   {counts}", flush=True)
            yield counts


def test_no_tick_takes_more_steps_than_allowed():
    for counts in report(1000):
        assert 0 < counts["most_steps"] <= CAP


def test_a_tick_that_plans(counted_singly):
    keys = "cueing.algorithm=predictive", {"platform": {"preset": "hexapod-dim"}}
    algorithm = algorithm_of(motioncue.load_profile("ccd-dk-classical", *keys))
    motion, cue = np.repeat(drive_motion("tour"), 6)[2000:2183], np.zeros(1, CUE_DTYPE)
    for i in range(len(motion)):  # a plan is made every third tick
        plans, step = algorithm.counts["plans"], lambda row=motion[i : i + 1]: algorithm.step(row, cue)
        if i % 3:
            step()
        else:
            counted_singly("predictive cueing of a hexapod, a tick that plans", i, step)
        assert algorithm.counts["plans"] - plans == (i % 3 == 0)


if __name__ == "__main__":
    list(report(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, runs=3))
