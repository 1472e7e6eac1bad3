"""The settings of the stages that all systems share; the steps themselves are in the pxd."""

from libc.string cimport memset

from motioncue.errors import ConfigError
from motioncue.motion import TELEMETRY_DTYPE

__all__ = ["DELAY_S", "TelemetryStages"]

DELAY_S = 0.04
"""Delay of what is derived from velocity or attitude, where nothing else is said [s]."""

RATES = {"said": RATES_SAID, "angles": RATES_OF_ANGLES, "derived": RATES_DERIVED}
ACCELERATIONS = ("native", "from_velocity")


def place_of(field):
    """Return the place of a field among the doubles of a telemetry record, and its number of doubles."""
    dtype, offset = TELEMETRY_DTYPE.fields[field][:2]
    return offset // 8, dtype.itemsize // 8


cdef class TelemetryStages:
    """What a source's telemetry needs before the body stage.

    Parameters
    ----------
    attitude : {"quaternion", "angles"}
        Which field holds it.
    velocity, acceleration_axes : {"world", "car"}
        The axes they come in.
    gravity : sequence of 3 numbers
        Of an acceleration in the car's axes, forward, right, down: 1 where it is what an accelerometer reads, else 0; in
        a world with another gravity, that in units of standard gravity.
    rates : {"said", "angles", "derived"}
        Angular velocity as it comes; rates of roll, pitch, yaw; or derived from the attitude, as they are where no
        package has said any.  The last two give the car's axes, so the body stage has ``rates="car"``.
    acceleration : {"native", "from_velocity"}
        As it comes, or derived from the velocity.
    delay_s : float
        Delay of what is derived [s]: the time constant of s / (1 + s delay).
    same : pair of str
        First and last field of the telemetry that, all identical again, show that the simulator repeats itself.

    Raises
    ------
    ConfigError
        If a word is not one of the allowed ones, or the delay is not between 0.001 and 1 s.
    """

    def __init__(
        self,
        *,
        str attitude="quaternion",
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
            ("attitude", attitude, ("quaternion", "angles")),
            ("velocity", velocity, ("world", "car")),
            ("acceleration_axes", acceleration_axes, ("world", "car")),
            ("rates", rates, tuple(RATES)),
            ("acceleration", acceleration, ACCELERATIONS),
        ):
            if value not in allowed:
                raise ConfigError(f"{name}: found {value!r}, allowed are {', '.join(map(repr, allowed))}")
        if not 0.001 <= delay_s <= 1.0:
            raise ConfigError(f"delay_s: found {delay_s}, allowed is 0.001 to 1 s")
        s.angles = attitude == "angles"
        s.velocity_in_car = velocity == "car"
        s.acceleration_in_car = acceleration_axes == "car"
        for i in range(3):
            s.gravity[i] = float(gravity[i])
        s.rates = RATES[rates]
        s.from_velocity = acceleration == "from_velocity"
        s.delay = delay_s
        s.same_from = place_of(same[0])[0]
        s.same_count = sum(place_of(same[1])) - s.same_from
