"""A controller with a loop of its own, 1000 times a second: python controller.py [PROFILE] [TICKS] [LOG]."""

import math
import sys
import time

import numpy as np

import motioncue

RATE_HZ = 1000
ROW = np.dtype([("motion", motioncue.MOTION_DTYPE), ("cue", motioncue.CUE_DTYPE)])


def read_car(motion, t):
    """Fill `motion` with what the car does at `t` [s]; here a slalom, in yours the telemetry."""
    motion["surge"] = math.sin(0.4 * math.pi * t)
    motion["sway"] = 3.0 * math.sin(math.pi * t)
    motion["yaw_rate"] = 0.15 * math.sin(math.pi * t)
    motion["speed"] = 20.0


def run(profile="ccd-dk-washout", ticks=5000, clock=time.monotonic_ns, sleep=time.sleep):
    """Run the loop; return motion and cue, one row per tick, and the largest lateness [ns]."""
    stepper = motioncue.bind(profile, rate_hz=RATE_HZ)  # all lookups, checks and allocations happen here
    step, period = stepper.step, stepper.period_ns
    motion, cue = stepper.motion[0], stepper.cue[0]  # views of the arrays that each step reads and fills
    log = np.zeros(ticks, ROW)
    late = 0
    start = deadline = clock()
    for tick in range(ticks):
        deadline += period  # on an absolute grid, never "now plus a period"
        while (left := deadline - clock()) > 0:
            sleep(left * 1e-9)
        late = max(late, -left)
        read_car(motion, (deadline - start) * 1e-9)
        motion["time"] = deadline
        if not step():
            raise RuntimeError(f"tick {tick}: the car's motion is not a number")  # yours would park the platform
        log[tick] = motion, cue  # yours would drive the actuators by `cue`
    return log, late


if __name__ == "__main__":
    profile, ticks, path = [*sys.argv[1:], *["ccd-dk-washout", "5000", ""][len(sys.argv) - 1 :]]
    log, late = run(profile, int(ticks))
    if path:
        log.tofile(path)
    print(f"{len(log)} steps of {profile}, at worst {late / 1000:.0f} us late")
