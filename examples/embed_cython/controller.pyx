"""A controller with a loop of its own, without the GIL: nothing in Python's threads moves a tick."""

from libc.math cimport M_PI, sin
from libc.stdint cimport int64_t

from motioncue.core.clock cimport Clock
from motioncue.core.records cimport Cue, Motion
from motioncue.engine.embed cimport Stepper, cueing_step

import sys

import numpy as np

import motioncue
from motioncue.core.clock import MonotonicClock

ROW = np.dtype([("motion", motioncue.MOTION_DTYPE), ("cue", motioncue.CUE_DTYPE)])


ctypedef struct Row:
    Motion motion
    Cue cue


cdef void read_car(Motion* motion, double t) noexcept nogil:
    """Fill `motion` with what the car does at `t` [s]; here a slalom, in yours the telemetry."""
    motion.surge = sin(0.4 * M_PI * t)
    motion.sway = 3.0 * sin(M_PI * t)
    motion.yaw_rate = 0.15 * sin(M_PI * t)
    motion.speed = 20.0


def run(Stepper stepper not None, Clock clock not None, Row[::1] log not None):
    """Do one tick per row, on an absolute grid; return the number of accepted steps and the largest lateness [ns]."""
    cdef int64_t steps = 0
    cdef int64_t late = 0
    cdef int64_t start, deadline, now
    cdef Row* row
    cdef Py_ssize_t i
    with nogil:
        start = deadline = clock.calls.now(clock.calls.memory)
        for i in range(log.shape[0]):
            row = &log[i]
            deadline += stepper.period_ns
            clock.calls.sleep_until(clock.calls.memory, deadline)
            now = clock.calls.now(clock.calls.memory)
            late = max(late, now - deadline)
            read_car(&row.motion, (deadline - start) * 1e-9)
            row.motion.time = deadline
            steps += cueing_step(stepper.cueing, &row.motion, &row.cue)
    return steps, late


def main(profile="ccd-dk-washout", ticks=5000):
    log = np.zeros(int(ticks), ROW)
    steps, late = run(motioncue.bind(profile, rate_hz=1000), MonotonicClock(), log)
    print(f"{steps} steps of {profile}, at worst {late / 1000:.0f} us late")


if __name__ == "__main__":
    main(*sys.argv[1:])
