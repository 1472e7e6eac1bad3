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
    "AHEAD_MARK",
    "AHEAD_S",
    "CAR",
    "CHASSIS",
    "CHASSIS_DTYPE",
    "CUE",
    "CUE_DTYPE",
    "GRAVITY",
    "MOTION",
    "MOTION_DTYPE",
    "MOVERS",
    "POSE",
    "TELEMETRY_DTYPE",
    "TEXTURE",
    "TICK_DTYPE",
    "WHEELS",
    "Channel",
]

GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s^2]."""


AHEAD_S = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0)
"""How far ahead each row of a preview is [s]: what the car will do then."""

AHEAD_MARK = b"mcahead1"
"""What stands between a package and the rows of a preview behind it."""


class Channel(NamedTuple):
    """One channel of a record: its name, unit, positive sense or meaning, and storage."""

    name: str
    unit: str
    positive: str
    format: str = "f8"
    size: int = 1


def _dtype(channels: tuple[Channel, ...]) -> np.dtype[np.void]:
    records = {"Motion": lambda: MOTION_DTYPE, "Cue": lambda: CUE_DTYPE}
    formats = [records[each.format]() if each.format in records else each.format for each in channels]
    return np.dtype(
        [(each.name, form, each.size)[: 2 + (each.size > 1)] for each, form in zip(channels, formats, strict=True)]
    )


MOVING = (
    Channel("surge", "m/s^2", "forward; acceleration without gravity"),
    Channel("sway", "m/s^2", "right; acceleration without gravity"),
    Channel("heave", "m/s^2", "up; acceleration without gravity"),
    Channel("roll", "rad", "right side down"),
    Channel("pitch", "rad", "nose up"),
    Channel("yaw", "rad", "nose right; from the world's north, in (-pi, pi]"),
    Channel("roll_rate", "rad/s", "about the body's forward axis, right side going down"),
    Channel("pitch_rate", "rad/s", "about the body's right axis, nose going up"),
    Channel("yaw_rate", "rad/s", "about the body's down axis, nose going right"),
)
"""The channels that a motion and a cue have in common and that move the platform: the first of both."""

BODY = (
    *MOVING,
    Channel("speed", "m/s", "magnitude of velocity; NaN if the source has none"),
    Channel("engine_speed", "rpm", "engine turning; NaN if the source has none"),
)
"""All that a motion and a cue have in common."""

MOTION = (
    *BODY,
    Channel("time", "ns", "when it was received, monotonic clock", "i8"),
    Channel("frame_time", "s", "the simulator's own time since its session began"),
)
"""Channels of `Motion`, at the motion reference point (or the occupant's head, if a lever arm is set)."""

CUE = (
    *BODY,
    Channel("surge_displacement", "m", "forward of the neutral pose"),
    Channel("sway_displacement", "m", "right of the neutral pose"),
    Channel("heave_displacement", "m", "above the neutral pose"),
    Channel("time", "ns", "deadline of the tick, monotonic clock", "i8"),
)
"""Channels of `Cue`.  After a washout, surge, sway and heave are the specific force in the platform frame less its
value at rest, the angles are the platform's attitude, and the rates its body rates."""

MOTION_DTYPE = _dtype(MOTION)
CUE_DTYPE = _dtype(CUE)

MOVERS = tuple(channel.name for channel in (*MOVING, *CUE[len(BODY) : -1]))
"""Names of a cue's channels that move the platform: those that can be bounded."""

ACTUATORS = 12
"""Largest number of a platform's actuators."""

CAR = tuple(each._replace(name=f"car_{each.name}", positive=each.positive.partition(";")[0]) for each in BODY)
"""The car's own motion as an output that asks for it gets it: faded and bounded as the cue is, but not washed out; 0
where the source has none."""

WHEELS = ("front_left", "front_right", "rear_left", "rear_right")
"""The wheels in their order everywhere, as they end the names of channels."""


def _each_wheel(name: str, unit: str, positive: str) -> tuple[Channel, ...]:
    return tuple(Channel(f"{name}_{wheel}", unit, positive) for wheel in WHEELS)


CHASSIS = (
    *_each_wheel("suspension", "m", "travel; the wheel comes nearer to the body"),
    *_each_wheel("suspension_velocity", "m/s", "of the travel; the wheel comes nearer to the body"),
    *_each_wheel("slip", "1", "as the simulator says; 0 rolls without slip"),
    *_each_wheel("rumble", "1", "as the simulator says; 0 on a smooth road"),
    Channel("cabin_forward", "m", "offset of a cab on springs, ahead"),
    Channel("cabin_right", "m", "offset of a cab on springs, to the right"),
    Channel("cabin_up", "m", "offset of a cab on springs, up"),
    Channel("cabin_roll", "rad", "of a cab on springs, right side down"),
    Channel("cabin_pitch", "rad", "of a cab on springs, nose up"),
    Channel("cabin_yaw", "rad", "of a cab on springs, nose right"),
)
"""What a source may say of wheels, suspension and cab, beside the motion; NaN where it says nothing.

It is a record of its own, because most sources have none of it: a motion that carried it would cost everybody."""

CHASSIS_DTYPE = _dtype((Channel("time", "ns", "when it was received, monotonic clock", "i8"), *CHASSIS))
"""The chassis of one frame, as recordings have it."""

TEXTURE = (
    *(each._replace(name=f"car_{each.name}") for each in CHASSIS),
    Channel("tactile", "1", "road and engine as one signal from -1 to 1; the wheels come nearer to the body"),
)
"""The same as an output that asks for it gets it, faded and bounded as the cue is, 0 where the source has none; and the
signal for shakers that is made of it."""

POSE = (
    Channel("pose_forward", "m", "along the platform's own axis, ahead of the neutral pose"),
    Channel("pose_right", "m", "along the platform's own axis, right of the neutral pose"),
    Channel("pose_up", "m", "along the platform's own axis, above the neutral pose"),
    Channel("pose_roll", "rad", "right side down"),
    Channel("pose_pitch", "rad", "nose up"),
    Channel("pose_yaw", "rad", "nose right"),
)
"""The pose that the platform has, as an output that asks for it gets it: as it replies, or as its drives follow."""

_UP = (
    Channel("up_east", "1", "the body's up axis leans east"),
    Channel("up_north", "1", "the body's up axis leans north"),
    Channel("up_up", "1", "the body stands on its wheels"),
)

ACTUATION = (
    *CUE,
    *_UP,
    *(Channel(f"actuator_{number}", "m or rad", "as the platform says") for number in range(1, ACTUATORS + 1)),
    *CAR,
    *POSE,
    *TEXTURE,
)
"""Channels from which a packet can be encoded: the cue's, then those that an output's stages add."""

ACTUATION_DTYPE = _dtype((*CUE, *_UP, Channel("actuators", "", "", "f8", ACTUATORS), *CAR, *POSE, *TEXTURE))
"""What one output is sent; ``actuators[0]`` is the channel ``actuator_1``."""

OUTPUT = (
    Channel("cue", "", "within the output's own limits", "Cue"),
    *_UP,
    Channel("actuators", "", "positions of the platform's actuators, in their units; unused ones 0", "f8", ACTUATORS),
    *CAR,
    *POSE,
    *TEXTURE,
)
"""The same with the cue as a record of its own, as C has it."""

TICK = (
    Channel("index", "", "index on the time grid; a gap is a skipped tick", "i8"),
    Channel("deadline", "ns", "monotonic clock", "i8"),
    Channel("lateness", "ns", "from the deadline to just before sending", "i8"),
    Channel("state", "", "state of the supervisor (motioncue.safety.supervisor.State)", "i8"),
    Channel("frames", "", "frames published when the tick read its motion; a replay feeds as many before it", "i8"),
    Channel(
        "operation",
        "",
        "0 engage, 1 hold, 2 park, 3 end, 4 leave; +8: engaged since, +16: output lost; more: Platform",
        "i8",
    ),
    Channel("settings", "", "number of the newest settings taken, from 0; a replay posts them before the tick", "i8"),
    Channel("weight", "", "weight of the fade: 0 neutral, 1 the whole cue"),
    Channel("motion", "", "interpolated from the frames so far; times are the newest frame's", "Motion"),
    Channel("cue", "", "as sent by the tick", "Cue"),
    Channel("actuators", "m or rad", "sent to the first output with a platform; else 0", "f8", ACTUATORS),
    Channel("feedback", "m or rad", "where these are as the platform replies; 0 if it does not", "f8", ACTUATORS),
)
TICK_DTYPE = _dtype(TICK)
"""One tick of the emitter, in traces, recordings and the live view."""

TELEMETRY = (
    Channel("orientation", "1", "quaternion w, x, y, z: rotates the car's axes into the world's", "f8", 4),
    Channel("angles", "rad", "roll, pitch, yaw (z-y-x), for sources without a quaternion", "f8", 3),
    Channel("position", "m", "world axes", "f8", 3),
    Channel("velocity", "m/s", "world axes", "f8", 3),
    Channel("acceleration", "m/s^2", "world axes, gravity excluded", "f8", 3),
    Channel("angular_velocity", "rad/s", "world axes", "f8", 3),
    Channel("angular_acceleration", "rad/s^2", "world axes", "f8", 3),
    Channel("forward", "1", "the car's forward axis in its own coordinates; in world axes as attitude", "f8", 3),
    Channel("up", "1", "the car's up axis likewise; or its right axis, as the stages say", "f8", 3),
    Channel("engine_speed", "rpm", "engine turning"),
    Channel("speed", "m/s", "for sources without a velocity; NaN if unknown"),
    Channel("frame_duration", "s", "NaN if unknown"),
    Channel("stamp", "s", "the simulator's own time; NaN if it gives none"),
)
TELEMETRY_DTYPE = _dtype(TELEMETRY)
"""What a simulator reports, in SI units and fixed order but in its own axes; input of the body stage."""
