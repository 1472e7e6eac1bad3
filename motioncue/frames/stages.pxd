"""Conversions of a source's telemetry before the body stage; the same steps for every system.

They convert an attitude given as angles, a velocity or acceleration in the car's axes, and rates of the angles; they
derive acceleration from velocity and rates from attitude if the source lacks them.  The car's axes are forward, right,
down here, and the world's north, east, down; protocols choose their signs accordingly.

Derivatives: y += (1 - exp(-dt / d)) (change / dt - y), a first-order lag s / (1 + s d) of the line through the samples,
exact for any spacing of frames.  Its delay at low frequency is d; a steady ramp gives its exact slope.
"""

from libc.math cimport cos, exp, isfinite, sin

from motioncue.core.records cimport Telemetry
from motioncue.core.rotation cimport between, from_angles, from_axes, from_ordered_angles


cdef enum:
    SHORTEST_US = 100       # frames closer together count as this far apart
    STOOD = 4               # frames in a row without a change that counts, after which what is derived has stood still
    SETTLED = 5             # delays after which what is derived has left the zero with which it begins


cdef enum Rates:
    RATES_SAID              # angular velocity as received, in the axes of the body stage
    RATES_OF_ANGLES         # rates and accelerations of roll, pitch and yaw
    RATES_DERIVED           # from the attitude; also if no package has reported any


cdef enum Attitude:
    ATTITUDE_QUATERNION
    ATTITUDE_ANGLES         # roll, pitch, yaw, turned in the order yaw, pitch, roll
    ATTITUDE_ORDERED        # likewise, turned in another order
    ATTITUDE_FORWARD_UP     # the car's axes as vectors in world axes
    ATTITUDE_FORWARD_RIGHT  # likewise; the telemetry's `up` holds the right axis


ctypedef struct Stages:
    Attitude attitude
    int order[3]            # of ATTITUDE_ORDERED: 0 roll, 1 pitch, 2 yaw
    bint velocity_in_car
    bint acceleration_in_car
    double gravity[3]       # contained in an acceleration in the car's axes: g for an accelerometer's reading, else 0
    Rates rates
    bint from_velocity      # derive the acceleration from the velocity
    double delay            # delay of derived quantities [s]
    int same_from           # first and number of the telemetry's doubles that, if all repeat, mark a repeated state
    int same_count
    bint running            # a frame to compare with is stored
    int stood               # successive frames whose change says nothing; the first of a bunch is only one
    double settled          # for how long there was one, and what is derived has moved, in delays
    double orientation[4]   # attitude of that frame
    double velocity[3]
    double rate[3]          # derived so far: car's axes [rad/s]
    double acceleration[3]  # derived so far: world axes [m/s^2]


cdef inline bint derives_rates(const Stages* s, const Telemetry* said) noexcept nogil:
    return s.rates == RATES_DERIVED or said.angular_velocity[0] != said.angular_velocity[0]


cdef inline bint derives_axis(const Telemetry* said) noexcept nogil:
    """Say whether the acceleration along one of the axes is not reported, and so derived from the velocity.

    Without a velocity it counts as 0.
    """
    return (
        said.acceleration[0] != said.acceleration[0]
        or said.acceleration[1] != said.acceleration[1]
        or said.acceleration[2] != said.acceleration[2]
    ) and isfinite(said.velocity[0] + said.velocity[1] + said.velocity[2])


cdef inline bint derives(const Stages* s, const Telemetry* said) noexcept nogil:
    return s.from_velocity or derives_rates(s, said) or derives_axis(said)


cdef inline void rotate(const double* q, const double* v, double* out) noexcept nogil:
    """Rotate `v` by the unit quaternion `q`: v + 2 w (u x v) + 2 u x (u x v)."""
    cdef double tx = 2.0 * (q[2] * v[2] - q[3] * v[1])
    cdef double ty = 2.0 * (q[3] * v[0] - q[1] * v[2])
    cdef double tz = 2.0 * (q[1] * v[1] - q[2] * v[0])
    cdef double x = v[0] + q[0] * tx + q[2] * tz - q[3] * ty
    cdef double y = v[1] + q[0] * ty + q[3] * tx - q[1] * tz
    out[2] = v[2] + q[0] * tz + q[1] * ty - q[2] * tx
    out[0] = x
    out[1] = y


cdef inline void rates_of_angles(
    const double* angles, const double* rate, const double* acceleration, double* omega, double* alpha
) noexcept nogil:
    """Convert rates and accelerations of roll, pitch, yaw into the car's angular velocity and acceleration."""
    cdef double sr = sin(angles[0])
    cdef double cr = cos(angles[0])
    cdef double sp = sin(angles[1])
    cdef double cp = cos(angles[1])
    cdef double r = rate[0]
    cdef double p = rate[1]
    cdef double y = rate[2]
    cdef double rr = acceleration[0]
    cdef double pp = acceleration[1]
    cdef double yy = acceleration[2]
    omega[0] = r - y * sp
    omega[1] = p * cr + y * sr * cp
    omega[2] = y * cr * cp - p * sr
    alpha[0] = rr - yy * sp - y * p * cp
    alpha[1] = pp * cr - p * r * sr + yy * sr * cp + y * r * cr * cp - y * p * sr * sp
    alpha[2] = yy * cr * cp - y * r * sr * cp - y * p * cr * sp - pp * sr - p * r * cr


cdef inline void to_world(const Stages* s, const Telemetry* said, Telemetry* out) noexcept nogil:
    """Fill `out` with the telemetry, its attitude as a quaternion and its velocity in world axes."""
    out[0] = said[0]
    if s.attitude == ATTITUDE_ANGLES:
        from_angles(said.angles[0], said.angles[1], said.angles[2], out.orientation)
    elif s.attitude == ATTITUDE_ORDERED:
        from_ordered_angles(said.angles, s.order, out.orientation)
    elif s.attitude != ATTITUDE_QUATERNION:
        from_axes(said.forward, said.up, s.attitude == ATTITUDE_FORWARD_RIGHT, out.orientation)
    if s.velocity_in_car:
        rotate(out.orientation, said.velocity, out.velocity)


cdef inline void claims_to_world(const Stages* s, const Telemetry* said, Telemetry* out) noexcept nogil:
    """Fill acceleration and rates of `out`, which has the attitude, with what is reported or has been derived so far."""
    cdef double down[3]
    cdef double derived[3]
    cdef double back[4]
    cdef bint lacks_axis = derives_axis(said)
    cdef int i
    if s.from_velocity:
        for i in range(3):
            out.acceleration[i] = s.acceleration[i]
    elif s.acceleration_in_car:
        back[0] = out.orientation[0]
        for i in range(3):
            back[i + 1] = -out.orientation[i + 1]
            down[i] = 0.0
        down[2] = 1.0
        rotate(back, down, down)        # the world's down axis in the car's axes
        if lacks_axis:
            rotate(back, s.acceleration, derived)
        else:
            derived[0] = derived[1] = derived[2] = 0.0
        for i in range(3):
            out.acceleration[i] = derived[i] if said.acceleration[i] != said.acceleration[i] else said.acceleration[i]
            out.acceleration[i] += s.gravity[i] * down[i]
        rotate(out.orientation, out.acceleration, out.acceleration)
    else:
        for i in range(3):
            if said.acceleration[i] != said.acceleration[i]:
                out.acceleration[i] = s.acceleration[i] if lacks_axis else 0.0
    if derives_rates(s, said):
        for i in range(3):
            out.angular_velocity[i] = s.rate[i]
    elif s.rates == RATES_OF_ANGLES:
        rates_of_angles(
            said.angles, said.angular_velocity, said.angular_acceleration, out.angular_velocity, out.angular_acceleration
        )


cdef inline void derive(Stages* s, const Telemetry* t, double dt, double sure) noexcept nogil:
    """Take a frame that is not a repeat, `dt` seconds after the one before; the first begins with zeros.

    What has changed counts for as long as is `sure` to have passed [s]: after a stall, one frame shows little or nothing.
    """
    cdef double turn[3]
    cdef double share
    cdef int i
    if dt < 1e-6 * SHORTEST_US:
        dt = 1e-6 * SHORTEST_US
    if s.running:
        share = 1.0 - exp(-(sure if sure < dt else dt) / s.delay)
        s.stood = 0 if sure > 0.0 else s.stood + 1
        s.settled = s.settled + dt / s.delay if s.stood < STOOD else 0.0
        between(s.orientation, t.orientation, turn)
        for i in range(3):
            s.rate[i] += share * (turn[i] / dt - s.rate[i])
            s.acceleration[i] += share * ((t.velocity[i] - s.velocity[i]) / dt - s.acceleration[i])
    else:
        s.settled = 0.0
        for i in range(3):
            s.rate[i] = s.acceleration[i] = 0.0
    for i in range(3):
        s.velocity[i] = t.velocity[i]
    for i in range(4):
        s.orientation[i] = t.orientation[i]
    s.running = True


cdef class TelemetryStages:
    cdef Stages stages
