"""The classical washout, one tick of it on one screen.

Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
"""

from motioncue.kernels.algorithm cimport Algorithm, Calls
from motioncue.kernels.filters cimport (
    FirstOrder, Integrals, SecondOrder, SecondOrderState, high_pass_1, high_pass_2, prime_1, prime_2,
)
from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.trigonometry cimport arc_sine, sin_cos


ctypedef struct HighPassAxis:
    double gain
    double limit            # of the scaled input [m/s^2 or rad/s]
    FirstOrder outer        # third order only; passes everything otherwise
    SecondOrder inner
    double outer_state
    SecondOrderState state
    Integrals integrals     # translation: velocity, displacement; rotation: angle, its integral


ctypedef struct TiltAxis:
    SecondOrder low_pass
    SecondOrderState state
    double step_limit       # largest change of the angle in a tick [rad]
    double angle            # [rad]


ctypedef struct Attitude:
    double sin_roll
    double cos_roll
    double sin_pitch
    double cos_pitch
    double sin_yaw
    double cos_yaw


ctypedef struct Washout:
    HighPassAxis translation[3]
    HighPassAxis rotation[3]
    TiltAxis tilt[2]        # of surge (pitch) and of sway (roll)
    Attitude platform       # of the tick before
    double gravity          # [m/s^2]
    double ticks_per_second
    bint primed


cdef inline double saturate(double x, double limit) noexcept nogil:
    return limit if x > limit else (-limit if x < -limit else x)


cdef inline double scale(const HighPassAxis* axis, double u) noexcept nogil:
    return saturate(axis.gain * u, axis.limit)


cdef inline double high_pass(HighPassAxis* axis, double u) noexcept nogil:
    return high_pass_2(&axis.inner, &axis.state, high_pass_1(&axis.outer, &axis.outer_state, u), &axis.integrals)


cdef inline double tilt(TiltAxis* axis, double g_sin) noexcept nogil:
    """Return the tilt angle whose sine follows `g_sin`, low-passed and rate-limited."""
    cdef Integrals low
    cdef double target
    cdef double change
    high_pass_2(&axis.low_pass, &axis.state, g_sin, &low)
    target = arc_sine(saturate(axis.low_pass.c0 * low.x, 1.0))
    change = saturate(target - axis.angle, axis.step_limit)
    axis.angle += change
    return change


cdef inline void attitude(Attitude* a, double roll, double pitch, double yaw) noexcept nogil:
    sin_cos(roll, &a.sin_roll, &a.cos_roll)
    sin_cos(pitch, &a.sin_pitch, &a.cos_pitch)
    sin_cos(yaw, &a.sin_yaw, &a.cos_yaw)


cdef inline void prime(Washout* w, const double* a, const double* euler, const double* g_sin) noexcept nogil:
    """Start every filter from rest at this tick's input, so that engaging rings nothing."""
    cdef int i
    for i in range(3):
        prime_1(&w.translation[i].outer, &w.translation[i].outer_state, a[i])
        prime_2(&w.translation[i].inner, &w.translation[i].state, a[i])
        prime_1(&w.rotation[i].outer, &w.rotation[i].outer_state, euler[i])
        prime_2(&w.rotation[i].inner, &w.rotation[i].state, euler[i])
    for i in range(2):
        prime_2(&w.tilt[i].low_pass, &w.tilt[i].state, g_sin[i])
    w.primed = True


cdef inline void washout_step(Washout* w, const Motion* m, Cue* cue) noexcept nogil:
    cdef double sr, cr, sp, cp
    cdef Attitude* t = &w.platform
    cdef double g = w.gravity
    cdef double g_sin[2]
    cdef double level[3]
    cdef double euler[3]
    cdef double ax, ay, az, p, q, r, c
    cdef int i

    sin_cos(m.roll, &sr, &cr)
    sin_cos(m.pitch, &sp, &cp)

    # Sustained: specific force f = a - g in body axes, as a fraction of g.
    g_sin[0] = scale(&w.translation[0], m.surge + g * sp) / g
    g_sin[1] = scale(&w.translation[1], m.sway - g * sr * cp) / g

    # Onset: acceleration in level axes that turn with the heading (f rotated to inertial, + g).
    ax = scale(&w.translation[0], m.surge)
    ay = scale(&w.translation[1], m.sway)
    az = scale(&w.translation[2], -m.heave)
    c = ay * sr + az * cr
    level[0] = ax * cp + c * sp
    level[1] = ay * cr - az * sr
    level[2] = c * cp - ax * sp

    # Rotation: body rates to Euler rates at the platform's attitude.
    p = scale(&w.rotation[0], m.roll_rate)
    q = scale(&w.rotation[1], m.pitch_rate)
    r = scale(&w.rotation[2], m.yaw_rate)
    c = (q * t.sin_roll + r * t.cos_roll) / (t.cos_pitch if t.cos_pitch > 0.2 else 0.2)
    euler[0] = p + c * t.sin_pitch
    euler[1] = q * t.cos_roll - r * t.sin_roll
    euler[2] = c

    if not w.primed:
        prime(w, level, euler, g_sin)
    ax = high_pass(&w.translation[0], level[0])
    ay = high_pass(&w.translation[1], level[1])
    az = high_pass(&w.translation[2], level[2])
    # Nose up presents forward force; left side down presents force to the right.
    q = tilt(&w.tilt[0], g_sin[0]) * w.ticks_per_second + high_pass(&w.rotation[1], euler[1])
    p = -tilt(&w.tilt[1], g_sin[1]) * w.ticks_per_second + high_pass(&w.rotation[0], euler[0])
    r = high_pass(&w.rotation[2], euler[2])

    cue.roll = w.rotation[0].integrals.v - w.tilt[1].angle
    cue.pitch = w.rotation[1].integrals.v + w.tilt[0].angle
    cue.yaw = w.rotation[2].integrals.v
    attitude(t, cue.roll, cue.pitch, cue.yaw)
    cue.roll_rate = p - r * t.sin_pitch
    cue.pitch_rate = q * t.cos_roll + r * t.sin_roll * t.cos_pitch
    cue.yaw_rate = r * t.cos_roll * t.cos_pitch - q * t.sin_roll

    # What the occupant feels beyond rest: (a - g) in platform axes, plus g.
    az -= g
    c = t.cos_yaw * ax + t.sin_yaw * ay
    ay = t.cos_yaw * ay - t.sin_yaw * ax
    ax = c
    c = t.sin_pitch * ax + t.cos_pitch * az
    cue.surge = t.cos_pitch * ax - t.sin_pitch * az
    cue.sway = t.cos_roll * ay + t.sin_roll * c
    cue.heave = -(t.cos_roll * c - t.sin_roll * ay + g)
    cue.speed = m.speed
    cue.engine_speed = m.engine_speed
    cue.surge_displacement = w.translation[0].integrals.x
    cue.sway_displacement = w.translation[1].integrals.x
    cue.heave_displacement = -w.translation[2].integrals.x


cdef class ClassicalWashout(Algorithm):
    cdef Washout washout
