"""Kinematics over arrays of poses."""

from libc.math cimport NAN
from libc.string cimport memcpy, memset

import numpy as np

__all__ = ["KINDS", "MOST_ACTUATORS", "MOST_STRAIGHT", "Kinematics"]

KINDS = {"leg": LEG, "crank": CRANK, "post": POST, "axis": AXIS, "table": TABLE}
"""Kinds of actuators; see kinematics.h."""

MOST_ACTUATORS = ACTUATORS
"""Actuators of one platform at most."""

MOST_STRAIGHT = STRAIGHT
"""Straightness of a crank and its rod that no wanted pose may be beyond."""

cdef enum:
    STEPS = 20      # Newton steps at most; from neutral a hexapod needs five


cdef class Kinematics:
    """The actuators of a platform, for arrays of poses.

    Tables that carry the frame come last, and take all of their channel that they reach: as at rest.

    A pose is the displacement surge, sway, heave [m; forward, right, up] of the motion reference point from neutral, and
    roll, pitch, yaw [rad].
    Positions are lengths [m] of legs, angles [rad] of cranks above the horizontal, heights [m] of posts above neutral.
    Real time: the kernels of kinematics.h neither allocate nor fail; these methods allocate what they return.

    Units: `actuators` [m].
    """

    def __cinit__(self, actuators, line=(0.0, 0.0)):
        cdef Actuator* a
        cdef Table* t
        if not 0 < len(actuators) <= <int>ACTUATORS:
            raise ValueError(f"actuators: found {len(actuators)}, allowed are 1 to {<int>ACTUATORS}")
        memset(&self.geometry, 0, sizeof(Geometry))
        self.geometry.line[0], self.geometry.line[1] = line
        for given in actuators:
            if given["kind"] == "table":
                if self.geometry.tables == <int>TABLES:
                    raise ValueError(f"actuators: found more than {<int>TABLES} tables")
                self.geometry.kinds[self.geometry.count + self.geometry.tables] = TABLE
                t = &self.geometry.table[self.geometry.tables]
                t.channel, t.low, t.high = given["channel"], given["low"], given["high"]
                t.room, t.below = given["room"], given["below"]
                self.geometry.tables += 1
                continue
            if self.geometry.tables:
                raise ValueError("actuators: found another after a table, allowed are tables last")
            a = &self.geometry.actuators[self.geometry.count]
            self.geometry.kinds[self.geometry.count] = KINDS[given["kind"]]
            for i in range(3):
                a.platform[i] = given.get("platform", (0.0, 0.0, 0.0))[i]
                a.base[i] = given.get("base", (0.0, 0.0, 0.0))[i]
            for i in range(6):
                a.share[i] = given.get("share", (0.0, 0.0, float(given["kind"] == "post"), 0.0, 0.0, 0.0))[i]
            a.plane[0] = np.cos(given.get("azimuth", 0.0))
            a.plane[1] = np.sin(given.get("azimuth", 0.0))
            a.crank = given.get("crank", 0.0)
            a.rod = given.get("rod", 0.0)
            self.geometry.count += 1

    @property
    def count(self):
        """Number of actuators, tables counted."""
        return self.geometry.count + self.geometry.tables

    @property
    def kinds(self):
        """The kind of each actuator, a key of `KINDS`."""
        names = {number: name for name, number in KINDS.items()}
        return tuple([names[self.geometry.kinds[i]] for i in range(self.count)])

    def inverse(self, poses, *, bint held=False):
        """Return the positions of the actuators at each pose."""
        cdef const double[:, ::1] p = _rows("poses", poses, 6)
        out = np.empty((p.shape[0], self.count))
        cdef double[:, ::1] o = out
        cdef Py_ssize_t i
        with nogil:
            for i in range(p.shape[0]):
                if held:
                    inverse_held(&self.geometry, &p[i, 0], &o[i, 0], NULL)
                else:
                    inverse(&self.geometry, &p[i, 0], &o[i, 0], NULL)
        return out

    def straightness(self, poses):
        """Return how near to one line each crank and its rod are, and its derivatives by the channels of the pose.

        At the frame's own poses: the sine of their angle's difference from 90 deg, shape (n, actuators), and
        (n, actuators, 6); surge, sway, heave up, roll, pitch, yaw.  Beyond 1 out of reach; 0 for other actuators.
        """
        cdef const double[:, ::1] p = _rows("poses", poses, 6)
        found, rows = np.zeros((len(p), self.count)), np.zeros((len(p), self.count, 6))
        cdef double[:, ::1] f = found
        cdef double[:, :, ::1] o = rows
        cdef Py_ssize_t i
        with nogil:
            for i in range(len(p)):
                straightness(&self.geometry, &p[i, 0], &f[i, 0], &o[i, 0, 0])
        return found, rows

    def of_frame(self, poses):
        """Return the frame's own pose at each pose: what its tables leave."""
        cdef const double[:, ::1] p = _rows("poses", poses, 6)
        out = np.array(p)
        cdef double[:, ::1] o = out
        cdef double positions[12]
        cdef Py_ssize_t i
        if self.geometry.tables:
            for i in range(p.shape[0]):
                inverse(&self.geometry, &p[i, 0], positions, NULL)
                on_tables(&self.geometry, &p[i, 0], positions + self.geometry.count, &o[i, 0])
        return out

    def jacobian(self, poses):
        """Return the derivatives of the actuators' positions by the platform's motion."""
        cdef const double[:, ::1] p = _rows("poses", poses, 6)
        out = np.empty((p.shape[0], self.count, 6))
        cdef double[:, :, ::1] o = out
        cdef double positions[12]
        cdef Py_ssize_t i
        with nogil:
            for i in range(p.shape[0]):
                inverse(&self.geometry, &p[i, 0], positions, &o[i, 0, 0])
        return out

    def forward(self, positions, start=None):
        """Return the pose at which the actuators have these positions."""
        cdef const double[:, ::1] p = _rows("positions", positions, self.count)
        out = np.empty((p.shape[0], 6))
        cdef double[:, ::1] o = out
        cdef double pose[6]
        cdef double first[6]
        cdef Py_ssize_t i
        cdef int k
        for k in range(6):
            first[k] = pose[k] = 0.0 if start is None else start[k]
        # From row to row the guess is the frame's own pose: its tables may be anywhere else.
        if start is not None and self.geometry.tables and p.shape[0]:
            on_tables(&self.geometry, pose, &p[0, self.geometry.count], first)
            memcpy(pose, first, sizeof(pose))
        with nogil:
            for i in range(p.shape[0]):
                if frame_forward(&self.geometry, &p[i, 0], pose, STEPS) < 0:
                    for k in range(6):
                        pose[k] = first[k]
                    if frame_forward(&self.geometry, &p[i, 0], pose, STEPS) < 0:
                        for k in range(6):
                            pose[k] = first[k]
                            o[i, k] = NAN
                        continue
                for k in range(6):
                    o[i, k] = pose[k]
                if self.geometry.tables:
                    off_tables(&self.geometry, &p[i, self.geometry.count], &o[i, 0])
        return out


def _rows(name, values, columns):
    rows = np.ascontiguousarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f"{name}: found shape {rows.shape}, allowed is (n, {columns})")
    return rows
