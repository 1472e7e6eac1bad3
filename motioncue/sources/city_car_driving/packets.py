"""City Car Driving: motion data through the pipe ``DynamicCabPipe``.

Layout: "Technical specification of City Car Driving Enterprise Edition data export functionality for use in motion
platforms" (Forward Development, from version 2.3.0).  No captured packets are public; byte order, packing and the order
of the quaternion are assumptions, stated here and settable (`Options`).

* The driver application is the server; one simulator drives at a time.
* Every package begins with its own size (2 bytes, counting itself) and its type (1 byte), packed, little-endian.
* The simulator sends an init package, then frames, and waits for the reply to each: init is answered with type 0,
  a frame with type 1, a refused package too.
* World: right-handed, Y up.  Car axes: as the init package announces them.  Heading zero: -Z, so that X is east.
* Quaternion: x, y, z, w unless told otherwise, rotating car axes into world axes.
* Linear acceleration: kinematic, gravity excluded.  Angular velocity and acceleration: world axes, right-handed.
* Last frame time: how long the frame took, in seconds.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from motioncue.errors import PacketError
from motioncue.frames.convert import BodyStage, TelemetryStages
from motioncue.frames.intake import Session
from motioncue.wire.packet import NATIVE, Derivation, Field, Message, Packet, Take, vector

SCHEMES = ("pipe", "unix", "tcp")
"""Transports over which the simulator connects."""


class Packets(NamedTuple):
    """The four packages, in one byte order."""

    init: Packet
    init_reply: Packet
    frame: Packet
    frame_reply: Packet


def _packets(order: str) -> Packets:
    head = (Field("size", 0, f"{order}u2", "bytes"), Field("type", 2, "|u1"))
    f4, f8 = f"{order}f4", f"{order}f8"
    init = [
        *head,
        Field("driver_position", 3, f"3{f4}", "m"),  # car axes; unused by the simulator
        Field("forward", 15, f"3{f4}"),
        Field("up", 27, f"3{f4}"),
    ]
    # Limits: no road vehicle is faster and no crash is harder; a package beyond them is broken.
    frame = [
        *head,
        Field("frame_time", 3, f8, "s", 1e9),
        Field("position", 11, f"3{f4}", "m", 1e7),
        Field("unused", 23, f"3{f4}", "m"),
        Field("orientation", 35, f"4{f4}", "", 2.0),
        Field("velocity", 51, f"3{f4}", "m/s", 500.0),
        Field("acceleration", 63, f"3{f4}", "m/s^2", 2000.0),
        Field("angular_velocity", 75, f"3{f4}", "rad/s", 100.0),
        Field("angular_acceleration", 87, f"3{f4}", "rad/s^2", 20000.0),
        Field("force_feedback_frequency", 99, f4, "Hz"),
        Field("force_feedback_amplitude", 103, f4, "m"),
    ]
    init_reply = [*head, Field("identifier", 3, f"{order}u2"), Field("protocol_version", 5, "|u1")]
    frame_reply = [*head, Field("code", 3, "|u1")]
    return Packets(
        Packet("init", 39, init, {"type": 1, "size": 39}),
        Packet("init_reply", 6, init_reply, {"type": 0, "size": 6}),
        Packet("frame", 107, frame, {"type": 2, "size": 107}),
        Packet("frame_reply", 4, frame_reply, {"type": 1, "size": 4}),
    )


PACKETS: Mapping[Literal["little", "big"], Packets] = {"little": _packets("<"), "big": _packets(">")}
"""The packages in both byte orders."""

INIT, INIT_REPLY, FRAME, FRAME_REPLY = PACKETS["little"]

SETTLED_BY = {"quaternion": "attitude and course", "rotation": "attitude and course"}
"""Options that only this question of `motioncue check` settles, because a straight drive fits any of them."""

# The size field tells the byte order; little-endian comes first.
FROM_SIMULATOR = tuple(packet for packets in PACKETS.values() for packet in (packets.init, packets.frame))
FROM_DRIVER = tuple(packet for packets in PACKETS.values() for packet in (packets.init_reply, packets.frame_reply))


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the document leaves open; the defaults are the likeliest reading."""

    quaternion: Literal["xyzw", "wxyz"] = "xyzw"
    rotation: Literal["car_to_world", "world_to_car"] = "car_to_world"
    rates: Literal["world", "car", "derived"] = "world"
    """Axes of angular velocity and acceleration; or derive the rates from the attitude instead."""
    gravity: Literal["excluded", "included"] = "excluded"
    frame_time: Literal["duration", "duration_ms", "time", "time_ms"] = "duration"
    """Meaning of "last frame time": how long the frame took, or when it was, in seconds or milliseconds."""
    byte_order: Literal["little", "big"] = "little"


def intake(
    options: Options, head_m: tuple[float, float, float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE
) -> Session:
    """Return a session for the driver's side of the protocol."""
    packets, derived = PACKETS[options.byte_order], options.rates == "derived"
    order = (3, 0, 1, 2) if options.quaternion == "xyzw" else (0, 1, 2, 3)
    when = "frame_duration" if options.frame_time.startswith("duration") else "stamp"
    axes = [*vector("forward", "forward"), *vector("up", "up")]
    motion = [
        Take(when, 0, "frame_time", scale=1e-3 if options.frame_time.endswith("ms") else 1.0),
        *vector("position", "position"),
        *vector("orientation", "orientation", order),
        *vector("velocity", "velocity"),
        *vector("acceleration", "acceleration"),
    ]
    if not derived:
        motion += vector("angular_velocity", "angular_velocity")
        motion += vector("angular_acceleration", "angular_acceleration")
    stage = BodyStage(
        world_north=(0, 0, -1),
        world_up=(0, 1, 0),
        head_m=head_m,
        rotation=options.rotation,
        rates="world" if options.rates == "world" and not derived else "car",
        gravity=options.gravity,
    )
    frame_reply = packets.frame_reply.encode()
    messages = (
        Message(packets.init, "axes", axes, packets.init_reply.encode({"protocol_version": 1})),
        Message(packets.frame, "motion", motion, frame_reply),
    )
    return Session(
        [message.compiled() for message in messages],
        stage,
        TelemetryStages(
            rates="derived" if derived else "said",
            acceleration=derivation.acceleration,
            delay_s=derivation.delay_s,
        ),
        unknown_reply=frame_reply,
        byte_order=options.byte_order,
    )


def framed(data: bytes) -> Iterator[bytes]:
    """Split a recorded stream into its packages."""
    start, order = 0, _byte_order(data)
    while start < len(data):
        size = int.from_bytes(data[start : start + 2], order)
        if size < 3:
            raise PacketError(f"city-car-driving: found size {size} at offset {start}, allowed is 3 or more")
        if start + size > len(data):
            left = len(data) - start
            raise PacketError(f"city-car-driving: found {left} bytes at offset {start}, the package has {size}")
        yield data[start : start + size]
        start += size


def _byte_order(data: bytes) -> Literal["little", "big"]:
    """Return the byte order: big-endian if the stream begins with a big-endian package of the simulator's."""
    big = (PACKETS["big"].init, PACKETS["big"].frame)
    return "big" if any(data[:3] == packet.encode()[:3] for packet in big) else "little"


def identify(data: bytes) -> Packet:
    """Return the layout of one package, by its size and type."""
    for packet in (*FROM_SIMULATOR, *FROM_DRIVER):
        if len(data) == packet.size and packet.identifies(data):
            return packet
    announced = int.from_bytes(data[:2], "little") if len(data) >= 2 else None
    if announced is not None and announced != len(data):
        raise PacketError(
            f"city-car-driving: found {len(data)} bytes with size field {announced}, allowed are packages whose size "
            f"field counts their bytes"
        )
    kinds = ", ".join(f"{p.name} ({p.size} bytes, type {p.constants['type']})" for p in PACKETS["little"])
    found = f"{len(data)} bytes" + (f", type {data[2]}" if len(data) > 2 else "")
    raise PacketError(f"city-car-driving: found {found}, allowed are {kinds}")
