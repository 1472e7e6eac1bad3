"""From a source's telemetry to body-frame motion; the same steps for every system.

To the world's axes (`Stages`): an attitude given as angles or axes, a velocity or acceleration in the car's axes, rates
of the angles; acceleration is derived from velocity and rates from attitude if the source lacks them.  The car's axes
are forward, right, down there, and the world's north, east, down; sources choose their signs accordingly.  Then to the
body's axes, at the occupant's head (`BodyFrame`).

Derivatives: y += (1 - exp(-dt / d)) (change / dt - y), a first-order lag s / (1 + s d) of the line through the samples,
exact for any spacing of frames.  Its delay at low frequency is d; a steady ramp gives its exact slope.
"""

from libc.math cimport cos, exp, isfinite, sin, sqrt

from motioncue.core.records cimport Motion, Telemetry
from motioncue.core.rotation cimport between, from_angles, from_axes, from_ordered_angles
from motioncue.core.threads cimport ACCEPTED, QUATERNION


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
    int stood               # successive frames whose change says little; the first of a bunch is only one
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
    """Fill `out` with what the body stage reads: attitude as a quaternion, place, velocity in world axes, claims as said."""
    cdef int i
    # One by one: a wide read of what has just been decoded in parts would wait until all of it is in the cache.
    for i in range(4):
        out.orientation[i] = said.orientation[i]
    for i in range(3):
        out.position[i] = said.position[i]
        out.velocity[i] = said.velocity[i]
        out.acceleration[i] = said.acceleration[i]
        out.angular_velocity[i] = said.angular_velocity[i]
        out.angular_acceleration[i] = said.angular_acceleration[i]
    out.engine_speed = said.engine_speed
    out.frame_duration = said.frame_duration
    if s.attitude == ATTITUDE_ANGLES:
        from_angles(said.angles[0], said.angles[1], said.angles[2], out.orientation)
    elif s.attitude == ATTITUDE_ORDERED:
        from_ordered_angles(said.angles, s.order, out.orientation)
    elif s.attitude != ATTITUDE_QUATERNION:
        from_axes(said.forward, said.up, s.attitude == ATTITUDE_FORWARD_RIGHT, out.orientation)
    if s.velocity_in_car:
        rotate(out.orientation, said.velocity, out.velocity)


cdef inline void claims_to_world(const Stages* s, const Telemetry* said, Telemetry* out) noexcept nogil:
    """Fill acceleration and rates of `out`, which has the attitude: as reported, or as derived so far."""
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


cdef inline void derive_anew(Stages* s) noexcept nogil:
    """Forget the frame to compare with, and what was derived: until the next frames tell, it is zero."""
    cdef int i
    s.running = False
    s.settled = 0.0
    for i in range(3):
        s.rate[i] = s.acceleration[i] = 0.0


cdef inline void derive(Stages* s, const Telemetry* t, double dt, double sure, bint lost) noexcept nogil:
    """Take a frame that is not a repeat, `dt` seconds after the one before; the first begins with zeros.

    What has changed counts for as long as is `sure` to have passed [s]: after a stall, one frame shows little or nothing.
    What has changed while frames were `lost` for long is of the middle of that time, and catches up faster than the drive.
    """
    cdef double turn[3]
    cdef double share
    cdef int i
    if dt < 1e-6 * SHORTEST_US:
        dt = 1e-6 * SHORTEST_US
    if s.running:
        share = 1.0 - exp(-(sure if sure < dt else dt) / s.delay)
        s.stood = 0 if 2.0 * sure > dt else s.stood + 1
        s.settled = 0.0 if s.stood >= STOOD or lost else s.settled + dt / s.delay
        between(s.orientation, t.orientation, turn)
        for i in range(3):
            s.rate[i] += share * (turn[i] / dt - s.rate[i])
            if isfinite(t.velocity[i] - s.velocity[i]):     # a velocity may be missing
                s.acceleration[i] += share * ((t.velocity[i] - s.velocity[i]) / dt - s.acceleration[i])
    else:
        derive_anew(s)
    for i in range(3):
        s.velocity[i] = t.velocity[i]
    for i in range(4):
        s.orientation[i] = t.orientation[i]
    s.running = True


# Fill three angles [rad] of vectors y, x; see angles_lanes.h.
ctypedef void (*three_angles)(
    double ya, double xa, double yb, double xb, double yc, double xc, double* out
) noexcept nogil


ctypedef struct BodyFrame:
    double world[3][3]      # rows north, east, down in world coordinates
    double car[3][3]        # rows forward, right, down in car coordinates
    double head[3]          # forward, right, down of the motion reference point [m]
    double sense            # direction of the quaternion: 1 rotates car to world, -1 world to car
    double gravity          # g if the acceleration includes it, as an accelerometer reads (up at rest); else 0 [m/s^2]
    bint rates_in_car       # angular velocity and acceleration are given in car coordinates
    three_angles angles     # for this processor


cdef inline double dot(const double* a, const double* b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline void cross(const double* a, const double* b, double* out) noexcept nogil:
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


cdef inline void project(const double (*axes)[3], const double* v, double* out) noexcept nogil:
    out[0] = dot(axes[0], v)
    out[1] = dot(axes[1], v)
    out[2] = dot(axes[2], v)


cdef inline int attitude_to_body(
    const BodyFrame* frame, const double* orientation, double (*axes)[3], double (*level)[3], Motion* motion
) noexcept nogil:
    """Fill roll, pitch and yaw, and the car's axes; return QUATERNION if the orientation is not a rotation.

    The rows forward, right, down are in the source's world axes in `axes`, north, east and down in `level`.
    """
    cdef double w = orientation[0]
    cdef double x = orientation[1]
    cdef double y = orientation[2]
    cdef double z = orientation[3]
    cdef double n = sqrt(w * w + x * x + y * y + z * z)
    cdef double r[3][3]         # car to world
    cdef int i
    if not 0.9 < n < 1.1:       # NaN fails this too; a unit quaternion in single precision is within 1e-6
        return QUATERNION
    n = 1.0 / n
    w *= frame.sense * n
    x *= n
    y *= n
    z *= n
    r[0][0] = 1.0 - 2.0 * (y * y + z * z)
    r[0][1] = 2.0 * (x * y - w * z)
    r[0][2] = 2.0 * (x * z + w * y)
    r[1][0] = 2.0 * (x * y + w * z)
    r[1][1] = 1.0 - 2.0 * (x * x + z * z)
    r[1][2] = 2.0 * (y * z - w * x)
    r[2][0] = 2.0 * (x * z - w * y)
    r[2][1] = 2.0 * (y * z + w * x)
    r[2][2] = 1.0 - 2.0 * (x * x + y * y)
    for i in range(3):
        project(r, frame.car[i], axes[i])
    project(frame.world, axes[0], level[0])
    project(frame.world, axes[1], level[1])
    project(frame.world, axes[2], level[2])
    # The arc sine of the nose's height would lose 8 digits near the vertical.
    frame.angles(
        level[1][2], level[2][2],
        -level[0][2], sqrt(level[1][2] * level[1][2] + level[2][2] * level[2][2]),
        level[0][1], level[0][0],
        &motion.roll,       # and pitch, and yaw
    )
    return ACCEPTED


cdef inline void claims_to_body(
    const BodyFrame* frame, const double (*axes)[3], const double (*level)[3], const Telemetry* telemetry,
    Motion* motion
) noexcept nogil:
    """Fill the acceleration at the occupant's head and the rates."""
    cdef const double (*turning)[3]     # the axes that angular velocity and acceleration are projected on
    cdef double a[3]
    cdef double omega[3]
    cdef double alpha[3]
    cdef double arm[3]
    cdef double whirl[3]
    cdef int i
    turning = <const double (*)[3]>frame.car if frame.rates_in_car else axes
    project(axes, telemetry.acceleration, a)
    project(turning, telemetry.angular_velocity, omega)
    project(turning, telemetry.angular_acceleration, alpha)
    for i in range(3):
        a[i] += frame.gravity * level[i][2]     # gravity in body axes is g times the world's down axis

    # Rigid body: a + alpha x r + omega x (omega x r) at the occupant's head.
    cross(alpha, frame.head, arm)
    cross(omega, frame.head, whirl)
    for i in range(3):
        a[i] += arm[i]
    cross(omega, whirl, arm)
    motion.surge = a[0] + arm[0]
    motion.sway = a[1] + arm[1]
    motion.heave = -(a[2] + arm[2])
    motion.roll_rate = omega[0]
    motion.pitch_rate = omega[1]
    motion.yaw_rate = omega[2]


cdef inline void car_to_body(const Telemetry* telemetry, Motion* motion) noexcept nogil:
    """Fill the speeds of the car and of its engine."""
    motion.speed = sqrt(dot(telemetry.velocity, telemetry.velocity))
    motion.engine_speed = telemetry.engine_speed


cdef int set_car_axes(BodyFrame* frame, const double* forward, const double* up) noexcept nogil
cdef int to_body(const BodyFrame* frame, const Telemetry* telemetry, Motion* motion) noexcept nogil


cdef class TelemetryStages:
    cdef Stages stages


cdef class BodyStage:
    cdef BodyFrame frame
