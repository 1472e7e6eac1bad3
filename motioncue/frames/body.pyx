"""World-frame quaternion, velocity, acceleration and rates to body-frame `Motion`."""

from libc.math cimport NAN, fabs, isfinite, sqrt
from libc.string cimport memset

import numpy as np

from motioncue.core.threads cimport ACCEPTED, AXES, QUATERNION
from motioncue.core.rotation cimport angle_of

from motioncue.core.channels import GRAVITY, MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.errors import ConfigError

__all__ = ["BodyStage", "body_motion"]


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


cdef int orthonormal(const double* first, const double* second, double (*out)[3]) noexcept nogil:
    """Fill `out` with the rows first, first x second, -second, made orthonormal; return AXES if they span no plane."""
    cdef double n1 = sqrt(dot(first, first))
    cdef double n2 = sqrt(dot(second, second))
    cdef double c
    cdef int i
    if not (isfinite(n1) and isfinite(n2)) or n1 < 1e-3 or n2 < 1e-3:
        return AXES
    c = dot(first, second) / (n1 * n2)
    if fabs(c) > 0.1:       # more than 6 degrees from a right angle is a wrong field, not rounding
        return AXES
    for i in range(3):
        out[0][i] = first[i] / n1
        out[2][i] = -(second[i] / n2 - c * out[0][i])
    n2 = sqrt(dot(out[2], out[2]))
    for i in range(3):
        out[2][i] /= n2
    cross(out[2], out[0], out[1])
    return ACCEPTED


cdef int set_car_axes(BodyFrame* frame, const double* forward, const double* up) noexcept nogil:
    """Take the axes that a simulator announced; return AXES and keep the old ones if they are zero or oblique."""
    return orthonormal(forward, up, frame.car)


cdef int to_body(const BodyFrame* frame, const Telemetry* telemetry, Motion* motion) noexcept nogil:
    """Fill every channel of `motion` except its times; return QUATERNION if the orientation is not a rotation."""
    cdef double w = telemetry.orientation[0]
    cdef double x = telemetry.orientation[1]
    cdef double y = telemetry.orientation[2]
    cdef double z = telemetry.orientation[3]
    cdef double n = sqrt(w * w + x * x + y * y + z * z)
    cdef double r[3][3]         # car to world
    cdef double axes[3][3]      # rows forward, right, down in world coordinates
    cdef const double (*turning)[3]     # the axes that angular velocity and acceleration are projected on
    cdef double a[3]
    cdef double omega[3]
    cdef double alpha[3]
    cdef double arm[3]
    cdef double whirl[3]
    cdef double down[3]         # the world's down axis in body axes
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

    project(axes, frame.world[2], down)
    project(axes, telemetry.acceleration, a)
    turning = <const double (*)[3]>frame.car if frame.rates_in_car else <const double (*)[3]>axes
    project(turning, telemetry.angular_velocity, omega)
    project(turning, telemetry.angular_acceleration, alpha)
    for i in range(3):
        a[i] += frame.gravity * down[i]     # gravity in body axes is g times the world's down axis

    # Rigid body: a + alpha x r + omega x (omega x r) at the occupant's head.
    cross(alpha, frame.head, arm)
    cross(omega, frame.head, whirl)
    for i in range(3):
        a[i] += arm[i]
    cross(omega, whirl, arm)
    motion.pitch = angle_of(-down[0], sqrt(down[1] * down[1] + down[2] * down[2]))     # asin loses 8 digits there
    motion.roll = angle_of(down[1], down[2])
    motion.yaw = angle_of(dot(axes[0], frame.world[1]), dot(axes[0], frame.world[0]))
    motion.surge = a[0] + arm[0]
    motion.sway = a[1] + arm[1]
    motion.heave = -(a[2] + arm[2])
    motion.roll_rate = omega[0]
    motion.pitch_rate = omega[1]
    motion.yaw_rate = omega[2]
    motion.speed = sqrt(dot(telemetry.velocity, telemetry.velocity))
    motion.engine_speed = telemetry.engine_speed
    return ACCEPTED


cdef object numbers(str name, object value):
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: found {value!r}, allowed are numbers") from error


cdef int vector3(object value, str name, double* out) except -1:
    array = numbers(name, value)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise ConfigError(f"{name}: found {value!r}, allowed are three finite numbers")
    out[0], out[1], out[2] = array
    return 0


cdef class BodyStage:
    """Turns a source's telemetry into body-frame motion."""

    def __init__(
        self,
        *,
        world_north=(0.0, 0.0, -1.0),
        world_up=(0.0, 1.0, 0.0),
        car_forward=(0.0, 0.0, 1.0),
        car_up=(0.0, 1.0, 0.0),
        head_m=(0.0, 0.0, 0.0),
        str rotation="car_to_world",
        str rates="world",
        str gravity="excluded",
    ):
        cdef double first[3]
        cdef double second[3]
        memset(&self.frame, 0, sizeof(BodyFrame))
        vector3(world_north, "world_north", first)
        vector3(world_up, "world_up", second)
        if orthonormal(first, second, self.frame.world) != ACCEPTED:
            raise ConfigError(f"world axes: found north {world_north!r}, up {world_up!r}; they must be orthogonal")
        vector3(car_forward, "car_forward", first)
        vector3(car_up, "car_up", second)
        if set_car_axes(&self.frame, first, second) != ACCEPTED:
            raise ConfigError(f"car axes: found forward {car_forward!r}, up {car_up!r}; they must be orthogonal")
        vector3(head_m, "head_m", self.frame.head)
        self.frame.head[2] = -self.frame.head[2]
        for name, value, allowed in (
            ("rotation", rotation, ("car_to_world", "world_to_car")),
            ("rates", rates, ("world", "car")),
            ("gravity", gravity, ("excluded", "included")),
        ):
            if value not in allowed:
                raise ConfigError(f"{name}: found {value!r}, allowed are {' and '.join(map(repr, allowed))}")
        self.frame.sense = -1.0 if rotation == "world_to_car" else 1.0
        self.frame.gravity = GRAVITY if gravity == "included" else 0.0
        self.frame.rates_in_car = rates == "car"

    def process(self, const Telemetry[::1] telemetry not None, Motion[::1] out not None):
        """Convert telemetry into motion and return the reason for each refused row.

        Notes
        -----
        A row with a broken quaternion leaves the same row of `out` unchanged.  Real time: releases the GIL.
        """
        cdef Py_ssize_t i, n = telemetry.shape[0]
        if out.shape[0] != n:
            raise ValueError(f"out: found {out.shape[0]} rows, allowed are {n}, as many as telemetry has")
        status = np.zeros(n, dtype=np.int32)
        cdef int[::1] codes = status
        with nogil:
            for i in range(n):
                codes[i] = to_body(&self.frame, &telemetry[i], &out[i])
        return status


def body_motion(
    orientation,
    velocity,
    acceleration,
    angular_velocity,
    angular_acceleration=None,
    **axes,
):
    """Return body-frame motion from world-frame vehicle state.

    Parameters
    ----------
    orientation : quaternion array of shape (n,), or float array of shape (n, 4)
        Rotates car axes into world axes; floats are w, x, y, z.  Normalized here.
    velocity, acceleration : array_like of shape (n, 3)
        World axes [m/s, m/s^2]; acceleration without gravity.
    angular_velocity, angular_acceleration : array_like of shape (n, 3)
        World axes [rad/s, rad/s^2], right-handed.  Angular acceleration defaults to zero.
    **axes
        As `BodyStage`: world_north, world_up, car_forward, car_up, head_m, rotation, rates, gravity.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (n,)
        Engine speed is NaN, times are zero.

    Raises
    ------
    ConfigError
        If shapes disagree, a value is not finite, or a quaternion is zero or far from unit length; the error names the
        row.

    Examples
    --------
    >>> import numpy as np, motioncue
    >>> m = motioncue.body_motion([[1, 0, 0, 0]], [[0, 0, 10]], [[0, 0, 2]], [[0, 0, 0]])
    >>> float(m["surge"][0]), float(m["speed"][0])
    (2.0, 10.0)
    """
    stage = BodyStage(**axes)
    q = np.asarray(orientation)
    if q.dtype.name == "quaternion":
        import quaternion   # loaded already by whoever made the array; takes two seconds, since SciPy comes with it

        q = quaternion.as_float_array(q)
    q = np.atleast_2d(numbers("orientation", q))
    if q.ndim != 2 or q.shape[1] != 4:
        raise ConfigError(f"orientation: found shape {q.shape}, allowed is (n,) of quaternions or (n, 4) of floats")
    telemetry = np.zeros(len(q), dtype=TELEMETRY_DTYPE)
    telemetry["orientation"] = q
    telemetry["engine_speed"] = NAN
    for name, value in (
        ("velocity", velocity),
        ("acceleration", acceleration),
        ("angular_velocity", angular_velocity),
        ("angular_acceleration", angular_acceleration),
    ):
        if value is None:
            continue
        vectors = np.atleast_2d(numbers(name, value))
        if vectors.shape != (len(q), 3):
            raise ConfigError(f"{name}: found shape {vectors.shape}, allowed is ({len(q)}, 3)")
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise ConfigError(f"{name}: found {vectors[row]} in row {row}, allowed are finite numbers")
        telemetry[name] = vectors
    motion = np.zeros(len(q), dtype=MOTION_DTYPE)
    rejected = np.flatnonzero(stage.process(telemetry, motion))
    if rejected.size:
        row = int(rejected[0])
        raise ConfigError(f"orientation: found {q[row]} in row {row}, allowed is a quaternion of length 0.9 to 1.1")
    return motion
