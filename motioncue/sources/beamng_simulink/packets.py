"""BeamNG.tech's coupling with Simulink: each message is answered without controlling the car.

Layout: "BeamNG Simulink generic interface" (Bank A to H), its leading message id and the loop from BeamNG's
``lua/vehicle/controller/tech/vehicleSystemsCoupling.lua`` (0.33).  The document's banks leave the id out, and bank G's
names say rear left where they mean rear right.  No captured packets are public.

Messages are arrays of doubles, little-endian, without a mark; their size tells them apart:

* state, 111 doubles, to port 64890: id and banks A to H.  Ids count up from 0, one per message, 200 a simulated second.
* control, 64 doubles, to port 64891: the id of the message that is answered, and banks A and B.  NaN leaves a field
  unchanged, so an id with NaN controls nothing; 0.0 would release the pedals and center the wheel.

BeamNG waits up to 2 s for the answer before it sends the next message, and accepts only an answer whose id is larger
than those before: the answer to message 0 is discarded, so the simulator stalls once, at the start.  Messages refused
as motion are answered too.  A control sent by another program takes effect only with an id that BeamNG has not been
answered yet.

Signs as sent; here they are converted to those of `Motion` (forward, right, down; world north, east, down):

* Position and velocity: world X east, Y north, Z up.
* Acceleration: the sensors' values, which are the negated acceleration to the right, forward and up (`acceleration`);
  only the last one includes gravity, about -9.81 m/s^2 at rest on the flat (its sign is inferred).
* Roll: left side down.  Pitch: nose up.  Yaw: nose left, from north.
* No rates: they are derived from the attitude.  The simulator's time is the id times the length of a step.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.errors import PacketError
from motioncue.frames.intake import Intake, datagram_intake
from motioncue.wire.messages import Echo
from motioncue.wire.packet import NATIVE, Derivation, Field, Message, Packet, Take

SCHEMES = ("udp",)
"""Transports that the simulator uses."""

READINGS = ("acceleration",)
"""Options that a drive can settle; the others describe how the simulator is set up and answered."""

NUMBERS = {"gravity_m_s2": (9.81, 0.0)}
"""Numerical options that a drive can settle, with the values to try."""

CLOCK = "simulink_time_s"
"""Option to which the simulator's time is proportional."""

RATES_DERIVED = True
"""The messages carry no rates, so they are derived."""

REPLY_PORT = 64891
"""Port on which BeamNG expects the answers by default."""

WHEELS = ("wheel_fl", "wheel_fr", "wheel_rl", "wheel_rr")
"""The wheels in the order of banks D to G."""

LARGEST_ID = 2.0**53  # above it, a double cannot hold every whole number
FREE_RUN_ID = 1e15

# Limits: no road vehicle is faster and no crash is harder; a message beyond them is broken.
_ID = Field("id", 0, "<f8", "", LARGEST_ID, 0.0, LARGEST_ID)
_BANKS_A_TO_C: list[str | tuple[Any, ...]] = [
    *("throttle", "throttle_input", "brake", "brake_input", "clutch", "clutch_input"),
    *("parkingbrake", "parkingbrake_input", "steering", "steering_input"),
    *((f"pos_{axis}", "m", 1e7) for axis in "xyz"),
    *((f"vel_{axis}", "m/s", 500.0) for axis in "xyz"),
    ("groundspeed", "m/s"),
    *((f"acc_{axis}", "m/s^2", 2000.0) for axis in "xyz"),
    *((angle, "rad", 10.0) for angle in ("roll", "pitch", "yaw")),
    ("altitude", "m"),
    *("ignition_level", "gear", "fuel", "engine_load", "highbeam", "lowbeam"),
    ("maxrpm", "rpm"),
    "reverse",
    ("rpm", "rpm", 1e5),
    *("signal_l", "signal_r"),
    ("wheelspeed", "m/s"),
]
_WHEEL = [
    ("angular_velocity", "rad/s"),
    ("wheel_speed", "m/s"),
    ("braking_torque", "N m"),
    ("propulsion_torque", "N m"),
    ("friction_torque", "N m"),
    ("down_force", "N"),
]
_BANKS_D_TO_G = [(f"{wheel}_{name}", unit) for wheel in WHEELS for name, unit in _WHEEL]


def _doubles(first: int, rows: Iterable[str | tuple[Any, ...]]) -> list[Field]:
    """Return fields of consecutive doubles from number `first` on: names, with unit and limit if given."""
    named = ((row,) if isinstance(row, str) else row for row in rows)
    return [Field(name, 8 * place, "<f8", *more) for place, (name, *more) in enumerate(named, start=first)]


STATE = Packet(
    "state",
    888,
    [
        _ID,
        *_doubles(1, [*_BANKS_A_TO_C, *_BANKS_D_TO_G]),
        Field("custom", 488, "50<f8"),
    ],
)

CONTROL = Packet(
    "control",
    512,
    [
        _ID,
        Field("engine_throttle", 8, "<f8", low=0.0, high=1.0),
        Field("brake_pedal", 16, "<f8", low=0.0, high=1.0),
        Field("steering", 24, "<f8", low=-1.0, high=1.0),
        Field("reserved", 32, "<f8"),
        *_doubles(5, [(f"{wheel}_braking_torque", "N m") for wheel in WHEELS]),
        *_doubles(9, [(f"{wheel}_propulsion_torque", "N m") for wheel in WHEELS]),
        Field("drive_mode", 104, "<f8", low=0.0, high=1.0, among=(0, 1)),  # 0 pedals, 1 torques
        Field("custom", 112, "50<f8"),
    ],
    absent=math.nan,
)

COMMANDS: Mapping[str, Packet] = {"control": CONTROL}
"""Commands that can be sent to the simulator, on request only."""

COUNTER = "id"
"""The field that numbers the commands; it is required, and must grow from one command to the next."""


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How BeamNG is set up and answered."""

    reply: Literal["echo", "free_run", "none"] = "echo"
    """Answer with the id and NaN; or with NaN and an id so large that BeamNG never waits again, even if nobody listens
    any more, and ignores all control; or not at all, because another program answers."""
    reply_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = REPLY_PORT
    """Port on which BeamNG listens, `udpReceivePort` of its controller; 0: the port the message came from."""
    simulink_time_s: Annotated[float, msgspec.Meta(ge=0.0005, le=1.0)] = 0.005
    """Simulated time between messages [s], `simulinkTime` of its controller."""
    acceleration: Literal["left_back_down", "right_forward_up", "left_back_up", "right_forward_down"] = "left_back_down"
    """Positive directions of the acceleration's x, y and z; the sensors of BeamNG's source negate it."""
    gravity_m_s2: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 9.81
    """Gravity contained in the acceleration's z [m/s^2], that of the simulated world; 0 if not contained."""


# The telemetry's world axes are north, east, down, its car axes forward, right, down.
_TAKES = (
    Take("position", 0, "pos_y"),
    Take("position", 1, "pos_x"),
    Take("position", 2, "pos_z", scale=-1.0),
    Take("velocity", 0, "vel_y"),
    Take("velocity", 1, "vel_x"),
    Take("velocity", 2, "vel_z", scale=-1.0),
    Take("angles", 0, "roll", scale=-1.0),
    Take("angles", 1, "pitch"),
    Take("angles", 2, "yaw", scale=-1.0),
    Take("engine_speed", 0, "rpm", optional=True),
)


def _acceleration(positive: str) -> tuple[Take, ...]:
    """Return the takes of an acceleration whose x, y and z are positive in the named directions."""
    right, forward, up = positive.split("_")
    return (
        Take("acceleration", 0, "acc_y", scale=1.0 if forward == "forward" else -1.0),
        Take("acceleration", 1, "acc_x", scale=1.0 if right == "right" else -1.0),
        Take("acceleration", 2, "acc_z", scale=-1.0 if up == "up" else 1.0),
    )


def intake(options: Options, head_m: Sequence[float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE) -> Intake:
    """Return an intake for BeamNG's messages that also answers them."""
    stamp = Take("stamp", 0, "id", scale=options.simulink_time_s, whole=True)
    takes = [stamp, *_TAKES, *_acceleration(options.acceleration)]
    reply, echo = b"", Echo()
    if options.reply == "echo":
        reply, echo = CONTROL.encode({"id": 0.0}), Echo(0, 0, 8)
    elif options.reply == "free_run":
        reply = CONTROL.encode({"id": FREE_RUN_ID})
    return datagram_intake(
        [Message(STATE, "motion", takes, reply, echo).compiled()],
        head_m,
        derivation,
        reply_port=options.reply_port,
        attitude="angles",
        gravity=(0.0, 0.0, options.gravity_m_s2 / GRAVITY),
        rates="derived",
    )


SURE = 8
"""States with growing ids that are no coincidence."""


def framed(data: bytes) -> Iterator[bytes]:
    """Split concatenated messages of one kind; data that cannot be split is one datagram."""
    fitting = (size for size in (STATE.size, CONTROL.size) if len(data) % size == 0 and _are_ids(_ids(data, size)))
    size, end = next(fitting, len(data)), len(data)
    if size == len(data) and (states := _states(data)):
        size, end = STATE.size, states * STATE.size
    for start in range(0, end, size or 1):
        yield data[start : start + size]
    if end < len(data):
        raise PacketError(f"beamng-simulink: found {len(data) - end} bytes at offset {end} that are not whole states")


def _ids(data: bytes, size: int) -> npt.NDArray[np.float64]:
    """Return what would be the id of every whole piece of a size."""
    return np.frombuffer(data, "<f8", len(data) // size * size // 8)[:: size // 8]


def _are_ids(ids: npt.NDArray[np.float64]) -> bool:
    """Say whether numbers can be ids."""
    with np.errstate(invalid="ignore"):  # NaN is no id
        return bool(np.all((ids >= 0.0) & (ids <= LARGEST_ID) & (ids == np.trunc(ids))))


def _states(data: bytes) -> int:
    """Return how many states of one session the data begins with, by their ids; 0 if they are too few to be sure.

    In messages of another size, what lies there does not grow.
    """
    ids = _ids(data, STATE.size)
    ends = np.flatnonzero(~((ids[1:] > ids[:-1]) & (ids[1:] <= LARGEST_ID)))
    states = int(ends[0]) if len(ends) else len(ids)  # before an end, the last one may be cut
    return states if states >= SURE and _are_ids(ids[:states]) else 0


def is_certain(data: bytes) -> bool:
    """Say whether a message is the simulator's; a file of controls alone may be anything of their size."""
    return len(data) == STATE.size


def identify(data: bytes) -> Packet:
    """Return the layout of one message."""
    for packet in (STATE, CONTROL):
        if len(data) == packet.size:
            if _are_ids(_ids(data, packet.size)):
                return packet
            number = float(np.frombuffer(data, "<f8", count=1)[0])
            raise PacketError(
                f"beamng-simulink: found id {number!r} at offset 0, allowed are whole numbers from 0 to 2^53"
            )
    raise PacketError(
        f"beamng-simulink: found {len(data)} bytes, allowed are state (888 bytes, 111 doubles) and control (512 bytes, "
        f"64 doubles)"
    )
