"""The records that flow through motioncue, and the table of the meaning of each channel.

`Motion` is what the vehicle does, `Cue` is what the platform is asked to do.  Both are flat C structs
(``core/records.pxd``) and NumPy structured dtypes of the same layout, so a stream of them is an array.

Axes inside kernels are x forward, y right, z down; surge, sway and heave are (x, y, -z).  Angles are aerospace
roll, pitch, yaw (z-y-x).  A channel that the source lacks is NaN in `Motion`; that is allowed for `speed` and
`engine_speed` only.
"""

from typing import NamedTuple

import numpy as np

__all__ = [
    "ACTUATION",
    "ACTUATION_DTYPE",
    "ACTUATORS",
    "AHEAD_S",
    "CUE",
    "CUE_DTYPE",
    "GRAVITY",
    "MOTION",
    "MOTION_DTYPE",
    "TELEMETRY_DTYPE",
    "TICK_DTYPE",
    "Channel",
]

GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s^2]."""


AHEAD_S = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0)
"""How far ahead each row of a preview is [s]: what the car will do then."""


class Channel(NamedTuple):
    """One channel of a record: its name, unit, positive sense, and storage."""

    name: str
    unit: str
    positive: str
    format: str = "f8"


_BODY = (
    Channel("surge", "m/s^2", "forward; acceleration without gravity"),
    Channel("sway", "m/s^2", "right; acceleration without gravity"),
    Channel("heave", "m/s^2", "up; acceleration without gravity"),
    Channel("roll", "rad", "right side down"),
    Channel("pitch", "rad", "nose up"),
    Channel("yaw", "rad", "nose right; from the world's north, in (-pi, pi]"),
    Channel("roll_rate", "rad/s", "about the body's forward axis, right side going down"),
    Channel("pitch_rate", "rad/s", "about the body's right axis, nose going up"),
    Channel("yaw_rate", "rad/s", "about the body's down axis, nose going right"),
    Channel("speed", "m/s", "magnitude of velocity; NaN if the source has none"),
    Channel("engine_speed", "rpm", "engine turning; NaN if the source has none"),
)

MOTION = (
    *_BODY,
    Channel("time", "ns", "when it was received, monotonic clock", "i8"),
    Channel("frame_time", "s", "the simulator's own time since its session began"),
)
"""Channels of `Motion`, at the motion reference point (or the occupant's head, if a lever arm is set)."""

CUE = (
    *_BODY,
    Channel("surge_displacement", "m", "forward of the neutral pose"),
    Channel("sway_displacement", "m", "right of the neutral pose"),
    Channel("heave_displacement", "m", "above the neutral pose"),
    Channel("time", "ns", "deadline of the tick, monotonic clock", "i8"),
)
"""Channels of `Cue`.  After a washout, surge, sway and heave are the specific force in the platform frame less its
value at rest, the angles are the platform's attitude, and the rates its body rates."""

MOTION_DTYPE = np.dtype([(channel.name, channel.format) for channel in MOTION])
CUE_DTYPE = np.dtype([(channel.name, channel.format) for channel in CUE])

ACTUATORS = 12
"""Largest number of a platform's actuators."""

_UP = (
    Channel("up_east", "1", "the body's up axis leans east"),
    Channel("up_north", "1", "the body's up axis leans north"),
    Channel("up_up", "1", "the body stands on its wheels"),
)

ACTUATION = (
    *CUE,
    *_UP,
    *(Channel(f"actuator_{number}", "m or rad", "as the platform says") for number in range(1, ACTUATORS + 1)),
)
"""Channels from which a packet can be encoded: the cue's, then those that an output's stages add."""

ACTUATION_DTYPE = np.dtype(
    [*((channel.name, channel.format) for channel in (*CUE, *_UP)), ("actuators", "f8", ACTUATORS)]
)
"""What one output is sent; ``actuators[0]`` is the channel ``actuator_1``."""

TICK_DTYPE = np.dtype(
    [
        ("index", "i8"),  # index on the time grid; a gap is a skipped tick
        ("deadline", "i8"),  # [ns], monotonic clock
        ("lateness", "i8"),  # [ns] from the deadline to just before sending
        ("state", "i8"),  # state of the supervisor (motioncue.safety.supervisor.State)
        ("frames", "i8"),  # number of frames published when the tick read its motion; a replay feeds as many before it
        ("operation", "i8"),  # 0 engage, 1 hold, 2 park, 3 end, 4 leave; plus 8: engaged since, 16: output lost
        ("settings", "i8"),  # number of the newest settings taken: 0 at the beginning, then that of the newest change
        ("weight", "f8"),  # weight of the fade: 0 neutral, 1 the whole cue
        ("motion", MOTION_DTYPE),  # motion interpolated from the frames so far; times are the newest frame's
        ("cue", CUE_DTYPE),  # cue sent by the tick
        ("actuators", "f8", ACTUATORS),  # positions sent to the first output with a platform [m or rad]; else 0
    ]
)
"""One tick of the emitter, in traces, recordings and the live view."""

TELEMETRY_DTYPE = np.dtype(
    [
        ("orientation", "f8", 4),  # quaternion w, x, y, z: rotates the car's axes into the world's
        ("angles", "f8", 3),  # [rad], roll, pitch, yaw (z-y-x), for sources without a quaternion
        ("position", "f8", 3),  # [m], world axes
        ("velocity", "f8", 3),  # [m/s], world axes
        ("acceleration", "f8", 3),  # [m/s^2], world axes, gravity excluded
        ("angular_velocity", "f8", 3),  # [rad/s], world axes
        ("angular_acceleration", "f8", 3),  # [rad/s^2], world axes
        ("forward", "f8", 3),  # the car's forward axis in its own coordinates; in world axes if it gives the attitude
        ("up", "f8", 3),  # the car's up axis likewise; or its right axis, as the stages say
        ("engine_speed", "f8"),  # [rpm]
        ("speed", "f8"),  # [m/s], for sources without a velocity; NaN if unknown
        ("frame_duration", "f8"),  # [s]; NaN if unknown
        ("stamp", "f8"),  # [s], the simulator's own time; NaN if it gives none
    ]
)
"""What a simulator reports, in SI units and fixed order but in its own axes; input of the body stage."""
