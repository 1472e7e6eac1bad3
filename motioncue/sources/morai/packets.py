"""MORAI: the ego vehicle status over UDP, optionally the IMU, and every other message.

Layout: see `motioncue.sources.morai.messages`.  A datagram is identified by its header, not by its port.

Meaning of the status, and how well it is known:

==================  ==================================================================================================
position            on the map: x east, y north, z up [m]
heading             counterclockwise from east [deg]; like roll and pitch it may be sent with a turn too much
roll, pitch         + right side down, + nose down [deg]: inferred from what MORAI is made of (`roll`, `pitch`)
velocity            of the car: x forward, y left, z up, in km/h: measured (`velocity`)
acceleration        of the car: x forward, y RIGHT, z up, without gravity: measured on a parked car that rocked, where
                    y had the opposite sign of the change of the velocity's y (`acceleration_y`)
angular velocity    in deg/s, but along the world's axes and left-handed: in the usual sense x south, y east, z down
                    (axes measured, sense inferred, z never seen: `angular_velocity`).  Not used unless wanted
                    (`rates`): rates come from the attitude, by a filter whose delay is ``source.derivative_delay_s``.
sec, nsec           the clock on the wall when the packet was put together, 0 to 39 ms after the one before at a step
                    of 20 ms: not a time to differentiate by.  Frames are timed by their arrival.
==================  ==================================================================================================

A few packets in a hundred hold the physics of the one before under a new stamp: velocity, acceleration and angular
velocity identical to the bit.  They are counted as repeats, and nothing is derived from them.

Rates from attitude: if the time from a step of the physics to its arrival varies by J, an angle that grows at w
arrives up to w J / 2 beside a steady line.  The filter s / (1 + s d), d its delay, makes at most 2 / d of that: the
error of the rate is never above w J / d, and up to w J / (3.5 d) in the mean square if arrivals are spread evenly: 14 %
with MORAI's J of 20 ms and a delay of 40 ms, 7 % with 80 ms.  What all arrivals have in common is delay, not error.

The status without a header (108 bytes) is read likewise; that its signs and axes are the same, nobody has proved.  So
is version 1 without its tail (121 bytes), the size that its document states.  Where the document's sums contradict it
elsewhere, what it states is taken too: objects of 1472 bytes, and a camera_index of 2 bytes, of a setting of 681.

With ``imu = true`` acceleration and rates are the IMU's (x forward, y left, z up, gravity included, rad/s), at the
place where that is mounted; the status stays the motion, and still gives attitude, position and velocity.  A status
that comes before any IMU, or longer after one than frames may come apart (``watch.jitter_s``), is no motion: it is
counted as `incomplete`, the platform holds and fades as if nothing had come, and goes on when the IMU is back.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from motioncue.errors import PacketError
from motioncue.frames.intake import Intake, datagram_intake
from motioncue.sources.morai.messages import (
    AS_STATED,
    COMMANDS,
    EGO_VEHICLE_STATUS,
    FEWER_OBJECTS,
    HEADERLESS_STATUS,
    IMU,
    MESSAGES,
    TAIL,
    UNTAILED_STATUS,
)
from motioncue.wire.commands import composed
from motioncue.wire.packet import NATIVE, Derivation, Message, Packet, Take, vector

SCHEMES = ("udp",)
"""Transports that the simulator uses."""

VELOCITY_IN_CAR = True
"""The velocity is in the car's axes by default, so a wrong attitude turns it too and the two still agree."""

READINGS = ("velocity", "acceleration_y", "roll", "pitch", "rates", "angular_velocity")
"""Options that a drive can settle; the others are a matter of choice."""

IDLE = {"angular_velocity": {"rates": "derived"}, "acceleration_y": {"imu": True}}
"""Options without effect, with the values of other options that make them so."""

KM_H = 1.0 / 3.6
DEG = math.pi / 180.0


class Sending(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Conventions of commands that are in doubt; the defaults are MORAI's own."""

    steering: Literal["right", "left"] = "right"
    """Direction of a positive steering command: right in MORAI's example, left as measured by a team."""
    auto: Literal[16, 2] = 16
    """Code of automatic control in a multi ego setting: 16 in the document, 2 in MORAI's Python structures."""


DEFAULT = Sending()


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Readings that the document leaves open; the defaults are measured, or else the likeliest."""

    velocity: Literal["car", "world"] = "car"
    """Axes of the status's velocity."""
    acceleration_y: Literal["right", "left"] = "right"
    """Positive direction of y in the status's acceleration."""
    roll: Literal["right_side_down", "left_side_down"] = "right_side_down"
    pitch: Literal["nose_down", "nose_up"] = "nose_down"
    """Positive directions of the status's angles."""
    rates: Literal["derived", "native"] = "derived"
    """Derive the rates from the attitude, or use the status's angular velocity.

    Versions 1 and 2 carry none, so they are refused unless rates are derived.
    """
    angular_velocity: Literal["south_east_down", "north_west_up", "south_east_up", "north_west_down"] = (
        "south_east_down"
    )
    """World axes about which the status's angular velocity is positive, in the right-handed sense."""
    imu: bool = False
    """Whether to take acceleration and rates from the IMU."""


def takes(packet: Packet, options: Options) -> list[Take]:
    """Return how a status is decoded; the only place where its axes and signs are converted.

    World axes become east, south, down; the car's become forward, right, down.
    """
    roll = 1.0 if options.roll == "right_side_down" else -1.0
    pitch = -1.0 if options.pitch == "nose_down" else 1.0
    right = 1.0 if options.acceleration_y == "right" else -1.0
    found = [
        Take("angles", 0, "roll", scale=roll * DEG),
        Take("angles", 1, "pitch", scale=pitch * DEG),
        Take("angles", 2, "heading", scale=-DEG),  # clockwise from east
        *vector("position", "position", scale=(1.0, -1.0, -1.0)),
        *vector("velocity", "velocity", scale=(KM_H, -KM_H, -KM_H)),  # the signs are the same for both axes
    ]
    if options.imu:
        return found
    found += vector("acceleration", "acceleration", scale=(1.0, right, -1.0))
    if "angular_velocity" in packet.fields:  # always decoded, because identical bits reveal a repeat
        level = DEG if options.angular_velocity.startswith("south_east") else -DEG
        turning = DEG if options.angular_velocity.endswith("down") else -DEG
        rates = vector("angular_velocity", "angular_velocity", (1, 0, 2), (level, level, turning))
        found += [take._replace(optional=options.rates == "derived") for take in rates]
    return found


# The IMU's forward, left, up become forward, right, down.
IMU_TAKES = (
    *vector("acceleration", "acceleration", scale=(1.0, -1.0, -1.0)),
    *vector("angular_velocity", "angular_velocity", scale=(1.0, -1.0, -1.0)),
)


def intake(
    options: Options, head_m: tuple[float, float, float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE
) -> Intake:
    """Return an intake for what the simulator sends."""
    derived = options.rates == "derived" or options.imu
    messages = []
    for packet in (*MESSAGES, *FEWER_OBJECTS, *AS_STATED, HEADERLESS_STATUS):
        if packet in (*EGO_VEHICLE_STATUS, HEADERLESS_STATUS, UNTAILED_STATUS):
            if derived or "angular_velocity" in packet.fields:
                messages.append(Message(packet, "motion", takes(packet, options)))
        elif packet in IMU and options.imu:
            messages.append(Message(packet, "needed", IMU_TAKES))
        else:
            messages.append(Message(packet, "other"))
    return datagram_intake(
        (message.compiled() for message in messages),
        head_m,
        derivation,
        body={"world_north": (0, -1, 0), "rates": "car" if derived else "world"},
        attitude="angles",
        velocity=options.velocity,
        gravity=(options.imu,) * 3,
        rates="derived" if derived and not options.imu else "said",
        same=("position", "velocity") if options.imu else ("velocity", "angular_velocity"),
    )


def command(name: str, values: Mapping[str, Any], sending: Sending = DEFAULT) -> bytes:
    """Return the bytes of a command for the simulator, checked against its document."""
    if name not in COMMANDS:
        raise PacketError(f"morai: found command {name!r}, allowed are {', '.join(COMMANDS)}")
    modes = {"keyboard": 1, "auto": sending.auto}
    values = dict(values)
    for key in {"steering", "rear_steering"} & values.keys():
        values[key] = values[key] if sending.steering == "right" else -values[key]
    if name == "multi_ego_setting":
        values |= {key: _with_modes(egos, modes) for key, egos in values.items() if key == "egos"}
    return composed(COMMANDS[name], values)


def _with_modes(egos: Any, modes: Mapping[str, int]) -> Any:
    """Return the egos with their control modes as numbers; what is no list or mapping of egos is refused later."""
    if isinstance(egos, list | tuple):
        return [_with_modes(ego, modes) for ego in egos]
    if not isinstance(egos, Mapping):
        return egos
    if "ctrl_mode" in egos:
        return {**egos, "ctrl_mode": modes.get(egos["ctrl_mode"], egos["ctrl_mode"])}
    return {place: _with_modes(ego, modes) for place, ego in egos.items()}


def framed(data: bytes) -> Iterator[bytes]:
    """Split concatenated datagrams by their own lengths."""
    start = 0
    while start < len(data):
        if _is_headerless(data[start : start + HEADERLESS_STATUS.size]):
            yield data[start : start + HEADERLESS_STATUS.size]
            start += HEADERLESS_STATUS.size
            continue
        header, mark, rest = data[start : start + 64].partition(b"$")
        length = int.from_bytes(rest[:4], "little", signed=True)
        if not (header.startswith(b"#") and mark and len(rest) >= 4 and length >= 0):
            found = data[start : start + 16].hex(" ")
            raise PacketError(f"morai: found {found} at offset {start}, allowed is '#Name$' and the length of the data")
        size = len(header) + 1 + 16 + length + 2
        if UNTAILED_STATUS.identifies(data[start:]) and data[start + size - 2 : start + size] != TAIL:
            size = UNTAILED_STATUS.size
        if start + size > len(data):
            left = len(data) - start
            raise PacketError(f"morai: found {left} bytes at offset {start}, the packet has {size}")
        yield data[start : start + size]
        start += size


def _is_headerless(data: bytes) -> bool:
    """Say whether a datagram can be the status without a header: a time, and a name in plain text; not only zeros."""
    if len(data) != HEADERLESS_STATUS.size or data.startswith(b"#") or not any(data):
        return False
    sec, nsec = (int.from_bytes(data[at:end], "little", signed=True) for at, end in ((0, 8), (8, 12)))
    name = data[12:36].rstrip(b"\0")
    return 0 <= sec < 1 << 32 and 0 <= nsec < 1_000_000_000 and name.isascii() and name.decode().isprintable()


def identify(data: bytes) -> Packet:
    """Return the layout of one datagram, by its header and the length of its data."""
    if _is_headerless(data):
        return HEADERLESS_STATUS
    near = [packet for packet in MESSAGES if data.startswith(packet.constants["header"])]
    for packet in near:
        if len(data) == packet.size and packet.identifies(data):
            return packet
    for packet in (*FEWER_OBJECTS, *AS_STATED):
        if len(data) == packet.size and packet.identifies(data):
            return packet
    if not near:
        known = sorted({packet.constants["header"].decode() for packet in MESSAGES})
        raise PacketError(f"morai: found {len(data)} bytes beginning {data[:20]!r}, allowed are {', '.join(known)}")
    fields = near[0].fields
    length = int.from_bytes(data[fields["data_length"].offset : fields["aux"].offset], "little", signed=True)
    forms = " or ".join(f"{packet.size} bytes with {packet.constants['data_length']}" for packet in near)
    raise PacketError(
        f"morai: found {data[: fields['data_length'].offset].decode()} of {len(data)} bytes with data_length {length}, "
        f"ending {data[-2:].hex(' ')}; allowed are {forms}, ending 0d 0a"
    )
