"""The settings of the stages that all systems share; the pxd has the steps."""

from libc.string cimport memset

from motioncue.core.channels import GRAVITY, TELEMETRY_DTYPE
from motioncue.errors import ConfigError
from motioncue.wire.packet import DELAY_S

__all__ = ["TelemetryStages"]

RATES = {"said": RATES_SAID, "angles": RATES_OF_ANGLES, "derived": RATES_DERIVED}
ATTITUDES = {
    "quaternion": ATTITUDE_QUATERNION,
    "angles": ATTITUDE_ANGLES,
    "forward_up": ATTITUDE_FORWARD_UP,
    "forward_right": ATTITUDE_FORWARD_RIGHT,
}
STRAIGHT = ("yaw", "pitch", "roll")
ACCELERATIONS = ("native", "from_velocity")


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
