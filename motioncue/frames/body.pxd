"""From the simulator's axes to the body frame: the stage that every source with world-frame vectors uses."""

from libc.math cimport sqrt

from motioncue.core.records cimport Motion, Telemetry
from motioncue.core.rotation cimport angle_of
from motioncue.core.threads cimport ACCEPTED, QUATERNION


ctypedef struct BodyFrame:
    double world[3][3]      # rows north, east, down in world coordinates
    double car[3][3]        # rows forward, right, down in car coordinates
    double head[3]          # forward, right, down of the motion reference point [m]
    double sense            # direction of the quaternion: 1 rotates car to world, -1 world to car
    double gravity          # g if the acceleration includes it, as an accelerometer reads (up at rest); else 0 [m/s^2]
    bint rates_in_car       # angular velocity and acceleration are given in car coordinates


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
    motion.pitch = angle_of(-level[0][2], sqrt(level[1][2] * level[1][2] + level[2][2] * level[2][2]))
    motion.roll = angle_of(level[1][2], level[2][2])
    motion.yaw = angle_of(level[0][1], level[0][0])
    return ACCEPTED


cdef inline void claims_to_body(
    const BodyFrame* frame, const double (*axes)[3], const double (*level)[3], const Telemetry* telemetry, Motion* motion
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


cdef class BodyStage:
    cdef BodyFrame frame
