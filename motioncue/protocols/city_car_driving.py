"""City Car Driving: motion data through the pipe ``DynamicCabPipe``.

Layout: "Technical specification of City Car Driving Enterprise Edition data export functionality for use in motion
platforms" (Forward Development, from version 2.3.0).  No captured packets are public; byte order, packing and the order
of the quaternion are assumptions, stated here and settable where a source of doubt remains.

* The driver application is the server; one simulator drives at a time.
* Every package begins with its own size (2 bytes, counting itself) and its type (1 byte), packed, little-endian.
* The simulator sends an init package, then frames, and waits for the reply to each: init is answered with type 0,
  a frame with type 1, a refused package too.
* World: right-handed, Y up.  Car axes: as the init package announces them.  Heading zero: -Z, so that X is east.
* Quaternion: x, y, z, w unless told otherwise, rotating car axes into world axes.
* Linear acceleration: kinematic, gravity excluded.  Angular velocity and acceleration: world axes, right-handed.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from motioncue.errors import PacketError
from motioncue.intake.session import Session
from motioncue.intake.stages import TelemetryStages
from motioncue.kernels.body import BodyStage
from motioncue.protocols.layout import NATIVE, Derivation, Field, Message, Packet, Take, vector

__all__ = ["FRAME", "FRAME_REPLY", "INIT", "INIT_REPLY", "SCHEMES", "Options", "framed", "identify", "session"]

SCHEMES = ("pipe", "unix", "tcp")
"""Where the simulator connects to."""

_HEAD = (Field("size", 0, "<u2", "bytes"), Field("type", 2, "|u1"))

INIT = Packet(
    "init",
    39,
    [
        *_HEAD,
        Field("driver_position", 3, "3<f4", "m"),  # car axes; unused by the simulator
        Field("forward", 15, "3<f4"),
        Field("up", 27, "3<f4"),
    ],
    {"type": 1, "size": 39},
)

INIT_REPLY = Packet(
    "init_reply",
    6,
    [*_HEAD, Field("identifier", 3, "<u2"), Field("protocol_version", 5, "|u1")],
    {"type": 0, "size": 6},
)

# Limits: nothing on wheels is faster, and no crash is harder; what lies beyond is a broken package.
FRAME = Packet(
    "frame",
    107,
    [
        *_HEAD,
        Field("frame_time", 3, "<f8", "s", 1e9),
        Field("position", 11, "3<f4", "m", 1e7),
        Field("unused", 23, "3<f4", "m"),
        Field("orientation", 35, "4<f4", "", 2.0),
        Field("velocity", 51, "3<f4", "m/s", 500.0),
        Field("acceleration", 63, "3<f4", "m/s^2", 2000.0),
        Field("angular_velocity", 75, "3<f4", "rad/s", 100.0),
        Field("angular_acceleration", 87, "3<f4", "rad/s^2", 20000.0),
        Field("force_feedback_frequency", 99, "<f4", "Hz"),
        Field("force_feedback_amplitude", 103, "<f4", "m"),
    ],
    {"type": 2, "size": 107},
)

FRAME_REPLY = Packet("frame_reply", 4, [*_HEAD, Field("code", 3, "|u1")], {"type": 1, "size": 4})

SETTLED_BY = {"quaternion": "attitude and course", "rotation": "attitude and course"}
"""Options that only the answer to that question of `motioncue check` settles: a straight drive fits any of them."""

FROM_SIMULATOR = (INIT, FRAME)
FROM_DRIVER = (INIT_REPLY, FRAME_REPLY)


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the document leaves open; the defaults are the likeliest reading."""

    quaternion: Literal["xyzw", "wxyz"] = "xyzw"
    rotation: Literal["car_to_world", "world_to_car"] = "car_to_world"
    rates: Literal["world", "car"] = "world"
    gravity: Literal["excluded", "included"] = "excluded"


def session(
    options: Options, head_m: tuple[float, float, float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE
) -> Session:
    """Return the driver's side of the protocol.

    Parameters
    ----------
    options : Options
        How to read what the document leaves open.
    head_m : tuple of 3 floats
        The occupant's head from the car's reference point: forward, right, up [m].
    derivation : Derivation
        Where the acceleration comes from.
    """
    order = (3, 0, 1, 2) if options.quaternion == "xyzw" else (0, 1, 2, 3)
    axes = [*vector("forward", "forward"), *vector("up", "up")]
    motion = [
        Take("frame_duration", 0, "frame_time"),
        *vector("position", "position"),
        *vector("orientation", "orientation", order),
        *vector("velocity", "velocity"),
        *vector("acceleration", "acceleration"),
        *vector("angular_velocity", "angular_velocity"),
        *vector("angular_acceleration", "angular_acceleration"),
    ]
    stage = BodyStage(
        world_north=(0, 0, -1),
        world_up=(0, 1, 0),
        head_m=head_m,
        rotation=options.rotation,
        rates=options.rates,
        gravity=options.gravity,
    )
    frame_reply = FRAME_REPLY.encode()
    messages = (
        Message(INIT, "axes", axes, INIT_REPLY.encode({"protocol_version": 1})),
        Message(FRAME, "motion", motion, frame_reply),
    )
    return Session(
        [message.compiled() for message in messages],
        stage,
        TelemetryStages(acceleration=derivation.acceleration, delay_s=derivation.delay_s),
        unknown_reply=frame_reply,
    )


def framed(data: bytes) -> Iterator[bytes]:
    """Split a recorded stream into its packages.

    Raises
    ------
    PacketError
        If a size field cannot be, or the last package is cut short: says at which offset.
    """
    start = 0
    while start < len(data):
        size = int.from_bytes(data[start : start + 2], "little")
        if size < 3:
            raise PacketError(f"city-car-driving: found size {size} at offset {start}, allowed is 3 or more")
        if start + size > len(data):
            left = len(data) - start
            raise PacketError(f"city-car-driving: found {left} bytes at offset {start}, the package has {size}")
        yield data[start : start + size]
        start += size


def identify(data: bytes) -> Packet:
    """Return the layout of one package, by its size and type.

    Raises
    ------
    PacketError
        If there is no such package.
    """
    for packet in (*FROM_SIMULATOR, *FROM_DRIVER):
        if len(data) == packet.size and packet.identifies(data):
            return packet
    announced = int.from_bytes(data[:2], "little") if len(data) >= 2 else None
    if announced is not None and announced != len(data):
        raise PacketError(
            f"city-car-driving: found {len(data)} bytes with size field {announced}, allowed are packages whose size "
            f"field counts their bytes" + (" (big-endian?)" if data[:2] == len(data).to_bytes(2, "big") else "")
        )
    kinds = ", ".join(f"{p.name} ({p.size} bytes, type {p.constants['type']})" for p in FROM_SIMULATOR + FROM_DRIVER)
    found = f"{len(data)} bytes" + (f", type {data[2]}" if len(data) > 2 else "")
    raise PacketError(f"city-car-driving: found {found}, allowed are {kinds}")
