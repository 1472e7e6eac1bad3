"""The floor for Python: arrays in, arrays out, with nothing but a C call in between."""

from libc.math cimport INFINITY, M_PI
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

import math

import numpy as np

from motioncue.motion import CUE_DTYPE, MOTION_DTYPE, TELEMETRY_DTYPE


cdef extern from "floor.h" nogil:
    enum:
        FRAME_SIZE
        PACKET_SIZE
    ctypedef struct telemetry_t:
        pass
    ctypedef struct motion_t:
        pass
    ctypedef struct cue_t:
        pass
    ctypedef struct filter_t:
        pass
    ctypedef struct rig_t:
        double world[3][3]
        double car[3][3]
        double head[3]
        filter_t translation[3]
        filter_t rotation[3]
        filter_t lean[2]
        double lean_step
        double rate_hz
    ctypedef struct hexapod_t:
        double top[6][3]
        double bottom[6][3]
        double low
        double high
        double speed
        double acceleration
        double leg[6]
        double move[6]
    void floor_legs(const hexapod_t*, const double*, double*, int64_t)
    int64_t floor_hexapod(rig_t*, hexapod_t*, const motion_t*, uint8_t*, int64_t)
    int64_t floor_hexapod_repeat(rig_t*, hexapod_t*, const motion_t*, uint8_t*, int64_t)
    void floor_filter(filter_t*, int, double, double, double, double, double, double)
    void floor_reset(rig_t*)
    void floor_unpack(const uint8_t*, telemetry_t*, int64_t)
    void floor_body(const rig_t*, const telemetry_t*, motion_t*, int64_t)
    void floor_washout(rig_t*, const motion_t*, cue_t*, int64_t)
    void floor_washout_repeat(rig_t*, const motion_t*, cue_t*, int64_t)
    void floor_pack(const cue_t*, uint8_t*, int64_t)
    void floor_step(rig_t*, const telemetry_t*, uint8_t*, int64_t)
    int64_t floor_tick(rig_t*, const motion_t*, uint8_t*, int, int, int64_t)
    void floor_pace(int64_t, int, int, int64_t*, int64_t)
    int64_t floor_receive(int, int64_t*, int64_t)


def _sizes():
    assert sizeof(telemetry_t) == TELEMETRY_DTYPE.itemsize
    assert sizeof(motion_t) == MOTION_DTYPE.itemsize
    assert sizeof(cue_t) == CUE_DTYPE.itemsize


_sizes()


cdef uint8_t* bytes_of(array, Py_ssize_t row):
    """Return the address of a contiguous array, after checking that its rows have the size that C expects."""
    if not array.flags.c_contiguous or array.nbytes != len(array) * row:
        raise ValueError(f"floor: found {array.dtype} of shape {array.shape}, allowed are contiguous rows of {row} bytes")
    return <uint8_t*><size_t>array.ctypes.data


cdef class Floor:
    """One rig in plain C, with the numbers of a classical profile."""

    cdef rig_t rig

    def __init__(self, cueing, double rate_hz, world, car, head_m=(0.0, 0.0, 0.0)):
        cdef int i, j
        memset(&self.rig, 0, sizeof(rig_t))
        for i in range(3):
            for j in range(3):
                self.rig.world[i][j] = world[i][j]
                self.rig.car[i][j] = car[i][j]
        self.rig.head[0], self.rig.head[1], self.rig.head[2] = head_m[0], head_m[1], -head_m[2]
        self.rig.rate_hz = rate_hz
        for i, axis in enumerate((cueing.surge, cueing.sway, cueing.heave)):
            self.set_filter(&self.rig.translation[i], axis, axis.limit_m_s2)
        for i, axis in enumerate((cueing.roll, cueing.pitch, cueing.yaw)):
            self.set_filter(&self.rig.rotation[i], axis, axis.limit_deg_s and math.radians(axis.limit_deg_s))
        tilt = cueing.tilt
        for i, cutoff_hz in enumerate((tilt.surge_cutoff_hz, tilt.sway_cutoff_hz)):
            floor_filter(&self.rig.lean[i], 2, 1, INFINITY, 2 * M_PI * cutoff_hz, tilt.damping, 0, 1 / rate_hz)
        limit = tilt.rate_limit_deg_s
        self.rig.lean_step = INFINITY if limit is None else math.radians(limit) * (1 / rate_hz)
        floor_reset(&self.rig)

    cdef set_filter(self, filter_t* f, axis, limit):
        floor_filter(
            f, axis.order, axis.gain, INFINITY if limit is None else limit, 2 * M_PI * axis.cutoff_hz, axis.damping,
            2 * M_PI * (axis.break_hz or 0.0), 1 / self.rig.rate_hz,
        )

    def reset(self):
        floor_reset(&self.rig)

    def unpack(self, frames, telemetry):
        floor_unpack(bytes_of(frames, FRAME_SIZE), <telemetry_t*>bytes_of(telemetry, sizeof(telemetry_t)), len(frames))

    def body(self, telemetry, motion):
        floor_body(
            &self.rig, <telemetry_t*>bytes_of(telemetry, sizeof(telemetry_t)),
            <motion_t*>bytes_of(motion, sizeof(motion_t)), len(telemetry),
        )

    def washout(self, motion, cue):
        floor_washout(
            &self.rig, <motion_t*>bytes_of(motion, sizeof(motion_t)), <cue_t*>bytes_of(cue, sizeof(cue_t)), len(motion)
        )

    def washout_repeat(self, motion, cue, int64_t n):
        floor_washout_repeat(
            &self.rig, <motion_t*>bytes_of(motion, sizeof(motion_t)), <cue_t*>bytes_of(cue, sizeof(cue_t)), n
        )

    def pack(self, cue, packets):
        floor_pack(<cue_t*>bytes_of(cue, sizeof(cue_t)), bytes_of(packets, PACKET_SIZE), len(cue))

    def step(self, telemetry, packets):
        floor_step(
            &self.rig, <telemetry_t*>bytes_of(telemetry, sizeof(telemetry_t)), bytes_of(packets, PACKET_SIZE),
            len(telemetry),
        )

    def tick(self, motion, packet, int64_t n, int fd=-1, int port=0):
        return floor_tick(
            &self.rig, <motion_t*>bytes_of(motion, sizeof(motion_t)), bytes_of(packet, PACKET_SIZE), fd, port, n
        )


cdef class Hexapod:
    """A hexapod with legs in plain C."""

    cdef hexapod_t hexapod

    def __init__(self, actuators, bounds, double dt):
        low, high, speed, acceleration = bounds
        self.hexapod.low, self.hexapod.high = low, high
        self.hexapod.speed, self.hexapod.acceleration = speed * dt, acceleration * dt * dt
        for i, row in enumerate(actuators):
            for j in range(3):
                self.hexapod.top[i][j], self.hexapod.bottom[i][j] = row["platform"][j], row["base"][j]
        self.reset()

    def reset(self):
        cdef double pose[6]
        memset(pose, 0, sizeof(pose))
        memset(self.hexapod.move, 0, sizeof(self.hexapod.move))
        floor_legs(&self.hexapod, pose, self.hexapod.leg, 1)

    def legs(self, const double[:, ::1] poses, double[:, ::1] out):
        floor_legs(&self.hexapod, &poses[0, 0], &out[0, 0], poses.shape[0])

    def step(self, Floor floor, motion, packets):
        """Do a tick a row; return how many ticks broke a bound."""
        cdef motion_t* rows = <motion_t*>bytes_of(motion, sizeof(motion_t))
        return floor_hexapod(&floor.rig, &self.hexapod, rows, bytes_of(packets, 24), len(motion))

    def repeat(self, Floor floor, motion, packet, int64_t n):
        """Do `n` ticks with the same motion; return how many broke a bound."""
        cdef motion_t* rows = <motion_t*>bytes_of(motion, sizeof(motion_t))
        return floor_hexapod_repeat(&floor.rig, &self.hexapod, rows, bytes_of(packet, 24), n)


def pace(int64_t period_ns, int64_t ticks, int fd, int port):
    """Run the bare loop; return the lateness of each packet [ns].  Releases the GIL."""
    late = np.full(ticks, 0, np.int64)      # full, not zeros, touches its pages
    cdef int64_t[::1] view = late
    with nogil:
        floor_pace(period_ns, fd, port, &view[0], ticks)
    return late


def receive(clock, sock, int64_t room):
    """Run the loop that only receives, on the shared clock; return when each datagram was received [ns]."""
    received = np.full(room, 0, np.int64)
    cdef int64_t[::1] view = received
    cdef int fd = sock.fileno()
    with nogil:
        room = floor_receive(fd, &view[0], room)
    return received[:room]
