"""A whole drive through an intake at once."""

from libc.stdint cimport int64_t

import numpy as np

from motioncue.core.records cimport Motion
from motioncue.core.threads cimport mc_load
from motioncue.frames.intake cimport Intake, IntakeState

from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.threads import NAMES

__all__ = ["read_frames"]


def read_frames(Intake intake not None, packages, came, double period_ns, most):
    """Return frames, places and velocities [m, m/s], discontinuities up to each, and frames held."""
    motion = np.zeros(len(packages), dtype=MOTION_DTYPE)
    world = np.zeros((len(packages), 2, 3))
    part = np.zeros(len(packages), dtype=np.intp)
    cdef Motion[::1] motions = motion
    cdef double[:, :, ::1] places = world
    cdef Py_ssize_t[::1] parts = part
    cdef IntakeState* s = intake.intake
    cdef Py_ssize_t index, n = 0, limit = len(packages) if most is None else most
    cdef int held = 0, kinds = len(NAMES), row, i, code
    cdef int64_t before
    cdef const double* vector
    for index in range(len(packages)):
        if n >= limit:
            break
        before = mc_load(&s.counters.accepted)
        # Without arrival times, a package that is not a frame takes no time.
        intake.feed(packages[index], 1 + round(n * period_ns) if came is None else came[index])
        if mc_load(&s.counters.accepted) == before:
            continue
        motions[n] = s.motion
        for row in range(2):
            vector = &s.telemetry.velocity[0] if row else &s.telemetry.position[0]
            for i in range(3):
                places[n, row, i] = (
                    s.frame.world[i][0] * vector[0] + s.frame.world[i][1] * vector[1] + s.frame.world[i][2] * vector[2]
                )
        for code in range(kinds):
            parts[n] += mc_load(&s.counters.events[code])
        held += s.publication.frozen
        n += 1
    return motion[:n], world[:n], part[:n], held
