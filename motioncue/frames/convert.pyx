"""The settings of a source's conversion, and body-frame motion of arrays."""

from libc.math cimport NAN, fabs, isfinite, sqrt
from libc.string cimport memset

import numpy as np

from motioncue.core.interfaces cimport Machine, chosen_machine
from motioncue.core.threads cimport ACCEPTED, AXES, QUATERNION

from motioncue.core.channels import GRAVITY, MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.errors import ConfigError
from motioncue.wire.packet import DELAY_S

__all__ = ["BodyStage", "TelemetryStages", "body_motion"]

cdef extern from "motioncue/frames/angles_lanes.h" nogil:
    three_angles angles_of "mc_three_angles"[3]


RATES = {"said": RATES_SAID, "angles": RATES_OF_ANGLES, "derived": RATES_DERIVED}
ATTITUDES = {
    "quaternion": ATTITUDE_QUATERNION,
    "angles": ATTITUDE_ANGLES,
    "forward_up": ATTITUDE_FORWARD_UP,
    "forward_right": ATTITUDE_FORWARD_RIGHT,
}
STRAIGHT = ("yaw", "pitch", "roll")
ACCELERATIONS = ("native", "from_velocity")


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
    cdef double axes[3][3]
    cdef double level[3][3]
    if attitude_to_body(frame, telemetry.orientation, axes, level, motion) != ACCEPTED:
        return QUATERNION
    claims_to_body(frame, axes, level, telemetry, motion)
    car_to_body(telemetry, motion)
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
        cdef Machine machine = chosen_machine()
        self.frame.angles = angles_of[machine.index + (machine.lanes == 8)]     # three angles leave half of eight lanes idle

    def process(self, const Telemetry[::1] telemetry not None, Motion[::1] out not None):
        """Convert telemetry into motion and return the reason for each refused row.

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


def place_of(field):
    """Return the index of a field among the doubles of a telemetry record, and its number of doubles."""
    dtype, offset = TELEMETRY_DTYPE.fields[field][:2]
    return offset // 8, dtype.itemsize // 8


cdef class TelemetryStages:
    """Conversions of a source's telemetry before the body stage."""

    def __init__(
        self,
        *,
        str attitude="quaternion",
        order=STRAIGHT,
        str velocity="world",
        str acceleration_axes="world",
        gravity=(0.0, 0.0, 0.0),
        str rates="said",
        str acceleration="native",
        double delay_s=DELAY_S,
        same=("orientation", "angular_acceleration"),
    ):
        cdef Stages* s = &self.stages
        memset(s, 0, sizeof(Stages))
        for name, value, allowed in (
            ("attitude", attitude, tuple(ATTITUDES)),
            ("velocity", velocity, ("world", "car")),
            ("acceleration_axes", acceleration_axes, ("world", "car")),
            ("rates", rates, tuple(RATES)),
            ("acceleration", acceleration, ACCELERATIONS),
        ):
            if value not in allowed:
                raise ConfigError(f"{name}: found {value!r}, allowed are {', '.join(map(repr, allowed))}")
        if not 0.001 <= delay_s <= 1.0:
            raise ConfigError(f"delay_s: found {delay_s}, allowed is 0.001 to 1 s")
        s.attitude = ATTITUDES[attitude]
        if sorted(order) != sorted(STRAIGHT):
            raise ConfigError(f"order: found {', '.join(order)}, allowed are yaw, pitch and roll in any order")
        if attitude == "angles" and tuple(order) != STRAIGHT:
            if rates == "angles":
                raise ConfigError(f"order: found {', '.join(order)} with rates of angles, allowed is yaw, pitch, roll")
            s.attitude = ATTITUDE_ORDERED
            for i in range(3):
                s.order[i] = ("roll", "pitch", "yaw").index(order[i])
        s.velocity_in_car = velocity == "car"
        s.acceleration_in_car = acceleration_axes == "car"
        for i in range(3):
            s.gravity[i] = GRAVITY * float(gravity[i])
        s.rates = RATES[rates]
        s.from_velocity = acceleration == "from_velocity"
        s.delay = delay_s
        s.same_from = place_of(same[0])[0]
        s.same_count = sum(place_of(same[1])) - s.same_from


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
