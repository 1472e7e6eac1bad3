"""The records that flow through motioncue, and the one table that says what each channel means.

`Motion` is what the vehicle does, `Cue` is what the platform is asked to do.  Both are flat C structs
(``kernels/records.pxd``) and NumPy structured dtypes of the same layout, so a stream of them is an array.

Axes inside kernels are x forward, y right, z down; surge, sway and heave are (x, y, -z).  Angles are aerospace
roll, pitch, yaw (z-y-x).  A channel that the source does not have is NaN in `Motion`, and only `speed` and
`engine_speed` may be.
"""

from typing import NamedTuple

import numpy as np

__all__ = [
    "ACTUATION",
    "ACTUATION_DTYPE",
    "ACTUATORS",
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
"""Channels of `Cue`.  After a washout surge, sway and heave are the deviation of the specific force in the platform
frame from rest, the angles are the platform's attitude, the rates its body rates."""

MOTION_DTYPE = np.dtype([(channel.name, channel.format) for channel in MOTION])
CUE_DTYPE = np.dtype([(channel.name, channel.format) for channel in CUE])

ACTUATORS = 12
"""How many actuators a platform can have."""

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
"""Channels that a packet can be filled from: the cue's, then those that the stages of its output fill."""

ACTUATION_DTYPE = np.dtype(
    [*((channel.name, channel.format) for channel in (*CUE, *_UP)), ("actuators", "f8", ACTUATORS)]
)
"""What one output is sent; ``actuators[0]`` is the channel ``actuator_1``."""

TICK_DTYPE = np.dtype(
    [
        ("index", "i8"),  # place on the time grid; a gap is a skipped tick
        ("deadline", "i8"),  # [ns], monotonic clock
        ("lateness", "i8"),  # [ns] from the deadline to just before the packet is sent
        ("state", "i8"),  # of the supervisor (motioncue.kernels.supervisor.State)
        ("frames", "i8"),  # that the source had given when the tick read the newest: what a replay feeds before it
        ("operation", "i8"),  # what the operator wants: 0 engage, 1 hold, 2 park, 3 the end; 8 more if engaged just now
        ("settings", "i8"),  # number of the newest ones taken: 0 at the beginning, then that of a change
        ("weight", "f8"),  # of the fade: 0 neutral, 1 the whole cue
        ("motion", MOTION_DTYPE),  # what the tick made of the frames until then; times are those of the newest
        ("cue", CUE_DTYPE),  # what the tick sent
        ("actuators", "f8", ACTUATORS),  # what the first output with a platform sent [m or rad]; else 0
    ]
)
"""One tick of the emitter, as traces and the live view see it."""

TELEMETRY_DTYPE = np.dtype(
    [
        ("orientation", "f8", 4),  # quaternion w, x, y, z: rotates the car's axes into the world's
        ("angles", "f8", 3),  # [rad], roll, pitch, yaw (z-y-x), where a source says those instead
        ("position", "f8", 3),  # [m], world axes
        ("velocity", "f8", 3),  # [m/s], world axes
        ("acceleration", "f8", 3),  # [m/s^2], world axes, gravity excluded
        ("angular_velocity", "f8", 3),  # [rad/s], world axes
        ("angular_acceleration", "f8", 3),  # [rad/s^2], world axes
        ("forward", "f8", 3),  # the car's forward axis in its own coordinates
        ("up", "f8", 3),  # the car's up axis in its own coordinates
        ("engine_speed", "f8"),  # [rpm]
        ("speed", "f8"),  # [m/s], where there is no velocity; NaN if unknown
        ("frame_duration", "f8"),  # [s]; NaN if unknown
        ("stamp", "f8"),  # [s], the simulator's own time; NaN if it says none
    ]
)
"""What a simulator says, in SI units and fixed order but still in its own axes; the body-frame stage reads it."""
