"""The floor for Python: arrays in, arrays out, with nothing but a C call in between."""

from libc.math cimport INFINITY, M_PI
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

import math

import numpy as np

from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE, TELEMETRY_DTYPE


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
    ctypedef struct pair_t:
        double gain[2]
        double limit[2]
        double gravity
        double slack
        double otolith
        double canal
        double roll_off
        double law[2][8]
    ctypedef struct optimal_t:
        pair_t pairs[3]
        double cosine[3]
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
    ctypedef struct parameter_t:
        double start
        double span
        double low
        double high
    ctypedef struct section_t:
        double c0
        double b
        double k
        double d
    ctypedef struct adaptive_pair_t:
        double force_gain
        double force_limit
        double rate_gain
        double rate_limit
        double tilt_limit
        double tilt_rate
        double smoothing
        double weights[4]
        section_t travel
        section_t by[3]
        parameter_t p[3]
    ctypedef struct adaptive_t:
        adaptive_pair_t pairs[2]
        double heave_gain
        double heave_limit
        double outer_g
        double outer_d
        double heave_weights[3]
        section_t heave
        section_t heave_by
        parameter_t heave_p
        parameter_t yaw_p
        double yaw_gain
        double yaw_limit
        double yaw_corner
        double yaw_d
        double yaw_weights[2]
        double k
        double descent
        double back
        double pace
        double cosine[3]
    void floor_adaptive(adaptive_t*, const motion_t*, cue_t*, int64_t)
    void floor_adaptive_repeat(adaptive_t*, const motion_t*, cue_t*, int64_t)
    void floor_legs(const hexapod_t*, const double*, double*, int64_t)
    int64_t floor_hexapod(rig_t*, hexapod_t*, const motion_t*, uint8_t*, int64_t)
    int64_t floor_hexapod_repeat(rig_t*, hexapod_t*, const motion_t*, uint8_t*, int64_t)
    void floor_filter(filter_t*, int, double, double, double, double, double, double)
    void floor_reset(rig_t*)
    uint64_t floor_crowded(int64_t)
    void floor_unpack(const uint8_t*, telemetry_t*, int64_t)
    void floor_body(const rig_t*, const telemetry_t*, motion_t*, int64_t)
    void floor_washout(rig_t*, const motion_t*, cue_t*, int64_t)
    void floor_washout_repeat(rig_t*, const motion_t*, cue_t*, int64_t)
    void floor_optimal(optimal_t*, const motion_t*, cue_t*, int64_t)
    void floor_pack(const cue_t*, uint8_t*, int64_t)
    void floor_step(rig_t*, const telemetry_t*, uint8_t*, int64_t)
    int64_t floor_tick(rig_t*, const motion_t*, uint8_t*, int, int, int64_t)


def crowded():
    """Do some 15 microseconds of work that a processor shared with another guest is slower at."""
    return floor_crowded(10_000)


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


cdef section_t section_of(axis, double dt):
    cdef section_t s
    memset(&s, 0, sizeof(section_t))
    omega = 2 * M_PI * axis.cutoff_hz
    s.c0 = omega * omega
    s.k = math.tan(0.5 * omega * dt) / omega
    s.b = 2 * axis.damping * omega + s.c0 * s.k
    s.d = 1 / (1 + s.b * s.k)
    return s


cdef parameter_t parameter_of(double start, double least, double most):
    cdef parameter_t p
    memset(&p, 0, sizeof(parameter_t))
    p.start, p.span = start, most - least
    if p.span > 0:
        p.low, p.high = (least - start) / p.span, (most - start) / p.span
    return p


cdef class Adaptive:
    """One rig of the adaptive washout in plain C."""

    cdef adaptive_t rig

    def __init__(self, cueing, double rate_hz):
        cdef double dt = 1 / rate_hz
        cdef adaptive_pair_t* pair
        cdef int i
        memset(&self.rig, 0, sizeof(adaptive_t))
        weights, known = cueing.weights, cueing.thresholds
        for i, (force, turning) in enumerate((("surge", "pitch"), ("sway", "roll"))):
            pair = &self.rig.pairs[i]
            f, q = getattr(cueing, force), getattr(cueing, turning)
            pair.force_gain, pair.force_limit = f.gain, f.limit_m_s2
            pair.rate_gain, pair.rate_limit = q.gain, math.radians(q.limit_deg_s)
            pair.tilt_limit = math.radians(q.tilt_deg)
            limit = cueing.tilt.rate_limit_deg_s
            pair.tilt_rate = INFINITY if limit is None else math.radians(limit)
            smooth = 2 * M_PI * cueing.tilt.smooth_hz
            pair.smoothing = smooth / (1 + 0.5 * dt * smooth)
            pair.weights[0] = weights.force / known[force]
            pair.weights[1] = weights.rate / math.radians(known[turning])
            pair.weights[2] = weights.travel / f.range_m
            pair.weights[3] = weights.speed / (f.range_m * 2 * M_PI * f.cutoff_hz)
            pair.travel = section_of(f, dt)
            for j in range(3):
                pair.by[j] = pair.travel
            w, ratio = 2 * M_PI * q.cutoff_hz, q.cutoff_ratio
            pair.p[0] = parameter_of(f.start, f.least, f.most)
            pair.p[1] = parameter_of(w, w / ratio, w * ratio)
            pair.p[2] = parameter_of(q.start, q.least, q.most)
        h, y = cueing.heave, cueing.yaw
        self.rig.heave_gain, self.rig.heave_limit = h.gain, h.limit_m_s2
        self.rig.outer_g = math.tan(M_PI * h.break_hz * dt)
        self.rig.outer_d = 1 / (1 + self.rig.outer_g)
        self.rig.heave_weights[0] = weights.force / known["heave"]
        self.rig.heave_weights[1] = weights.travel / h.range_m
        self.rig.heave_weights[2] = weights.speed / (h.range_m * 2 * M_PI * h.cutoff_hz)
        self.rig.heave = self.rig.heave_by = section_of(h, dt)
        self.rig.heave_p = parameter_of(h.start, h.least, h.most)
        self.rig.yaw_p = parameter_of(y.start, y.least, y.most)
        self.rig.yaw_gain, self.rig.yaw_limit = y.gain, math.radians(y.limit_deg_s)
        self.rig.yaw_corner = 2 * M_PI * y.cutoff_hz
        self.rig.yaw_d = 1 / (1 + 0.5 * dt * self.rig.yaw_corner)
        self.rig.yaw_weights[0] = weights.rate / math.radians(known["yaw"])
        self.rig.yaw_weights[1] = weights.travel / math.radians(y.range_deg)
        self.rig.k = 0.5 * dt
        self.rig.descent, self.rig.back = cueing.adaptation * dt, dt / cueing.return_s
        self.rig.pace = dt / 0.2  # a parameter takes a fifth of a second from one bound to the other at least
        for i in range(3):
            self.rig.cosine[i] = 1.0

    def washout(self, motion, cue):
        floor_adaptive(
            &self.rig, <motion_t*>bytes_of(motion, sizeof(motion_t)), <cue_t*>bytes_of(cue, sizeof(cue_t)), len(motion)
        )

    def washout_repeat(self, motion, cue, int64_t n):
        floor_adaptive_repeat(
            &self.rig, <motion_t*>bytes_of(motion, sizeof(motion_t)), <cue_t*>bytes_of(cue, sizeof(cue_t)), n
        )


cdef class Optimal:
    """The linear-quadratic washout in plain C."""

    cdef optimal_t rig

    def __init__(self, cueing, laws, limits, organs_s, double rate_hz):
        cdef pair_t* p
        memset(&self.rig, 0, sizeof(optimal_t))
        self.rig.rate_hz = rate_hz
        limit = cueing.tilt.rate_limit_deg_s
        for i, (translation, rotation) in enumerate(cueing.pairs):
            p = &self.rig.pairs[i]
            p.gain[0], p.gain[1] = translation.gain, rotation.gain
            p.limit[0], p.limit[1] = limits[i]
            p.gravity = 9.80665 if i < 2 else 0.0
            p.slack = INFINITY if limit is None or i == 2 else math.radians(limit) / rate_hz
            p.otolith, p.canal = 0.5 / (rate_hz * organs_s[0] + 0.5), 0.5 / (rate_hz * organs_s[1] + 0.5)
            p.roll_off = 0.5 / (rate_hz / (2.0 * math.pi * cueing.roll_off_hz) + 0.5)
            self.rig.cosine[i] = 1.0
            for j in range(8):
                p.law[0][j], p.law[1][j] = laws[i, 0, j], laws[i, 1, j]

    def process(self, motion, cue):
        floor_optimal(
            &self.rig, <motion_t*>bytes_of(motion, sizeof(motion_t)), <cue_t*>bytes_of(cue, sizeof(cue_t)), len(motion)
        )


cdef class Hexapod:
    """A hexapod with legs in plain C."""

    cdef hexapod_t hexapod

    def __init__(self, actuators, bounds, double dt):
        low, high, speed, acceleration, *_ = bounds
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
