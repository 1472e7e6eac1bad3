"""Vehicle Physics Pro: its data bus and the vehicle's motion, in a UDP packet of our own exporter.

The bus (`motioncue.sources.vehicle_physics_pro.bus`) is an array inside the simulator: it is not sent over a network,
and it has no attitude, acceleration or rates.  The vendor defines no packet, so this layout is our own; the component
``contrib/unity/MotioncueExporter.cs`` sends it from the vehicle's physics step.  It was checked against that component
run on stand-ins for Unity and the SDK; no packet from a real game was available.

Version 1, 356 bytes, little-endian, without gaps:

======  ======  ==========================================================================
offset  format  what
======  ======  ==========================================================================
0       4 char  ``MCVP``
4       u16     version of this layout: 1
6       u16     size of the whole packet [bytes]: 356
8       2 char  SDK whose ids the integers have: ``OL`` old, ``NW`` newer
10      u8      what is carried, one bit each: 1 motion, 2 Input, 4 Vehicle, 8 Settings
11      u8      the same, every bit inverted
12      u32     counter of packets, from 0
16      f64     simulated time of the physics step [s] (Unity's fixedTime)
24      4 f32   attitude, a quaternion x, y, z, w
40      3 f32   position of the center of mass, world axes [m]
52      3 f32   velocity of the center of mass, car axes [m/s]
64      3 f32   its acceleration, gravity excluded, car axes [m/s^2]
76      3 f32   angular velocity, car axes [rad/s]
88      3 f32   angular acceleration, car axes [rad/s^2]
100     16 i32  channel Input, raw integers by id
164     32 i32  channel Vehicle
292     16 i32  channel Settings
======  ======  ==========================================================================

If it is told to (its field *more*), the exporter sends a second packet after each, with the rest of the bus; it is
counted and decoded, and the motion does not need it.  Version 1, 504 bytes:

======  ======  ==========================================================================
0       4 char  ``MCVX``
4       u16     version of this layout: 1
6       u16     size of the whole packet [bytes]: 504
8       2 char  SDK, as above
10      u8      what is carried, one bit each: 1 RaceInput, 2 Custom, 4 the named settings
11      u8      the same, every bit inverted
12      u32     counter of the packet before
16      f64     its time [s]
24      4 i32   settings known by name alone (`NAMED`); NaN if the SDK has none
40      16 i32  channel RaceInput, raw integers by id
104     100 i32 channel Custom
======  ======  ==========================================================================

* Any two valid headers differ in more than one byte, so one corrupted byte cannot turn one into another.
* Parts that are not carried are ignored.  A packet without motion completes the next one that has it.
* Integers beyond the end of the SDK's array are NaN (-2147483647).
* Any change of the layout, even a field added at its end, is a new version.  A packet of another version is refused, as
  is one of another size.
* Values known only by name (`bus` module) have no place in the first packet; a channel's unnamed ids have.  The
  exporter finds their ids, where the SDK has them, by their names.

All vectors are as Unity gives them, in its left-handed axes: x right, y up, z forward; in the world, y up.  Only
`MOTION` converts them: forward and north = z, right and east = x, down = -y.  That mirrors space, so rotations
(quaternion, angular velocity, angular acceleration) change their sign as well: a positive turn about Unity's z lifts
the right side (roll = -z), about x lowers the nose (pitch = -x), about y goes right (yaw = +y).

The speed is the length of the velocity.  The bus's own speed is absolute in the document but longitudinal in the newer
source; it is decoded, but not used.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

import msgspec
import numpy as np

from motioncue.errors import PacketError
from motioncue.frames.intake import Intake, datagram_intake
from motioncue.sources.vehicle_physics_pro.bus import CHANNELS, NAN, SDKS, Bus, Sdk
from motioncue.wire.packet import NATIVE, Derivation, Field, Message, Packet, Take, vector

SCHEMES = ("udp",)
"""Transports that the exporter uses."""

VELOCITY_IN_CAR = True
"""The velocity is in the car's axes, so a wrong attitude turns it in the world too and the two still agree."""

VERSION = 1
"""Version of the layout."""

SIZE = 356
"""Size of the packet [bytes]."""

CODES: dict[Sdk, bytes] = {"old": b"OL", "newer": b"NW"}
"""Names of the SDKs in a packet."""

CARRIED = {"motion": 1, "Input": 2, "Vehicle": 4, "Settings": 8}
"""Bits of the parts that a packet carries."""

EVERYTHING = sum(CARRIED.values())
"""All bits of `CARRIED`."""

PLACES = {"Input": (100, 16), "Vehicle": (164, 32), "Settings": (292, 16)}
"""Offset [bytes] and number of integers of each channel."""

MORE_SIZE = 504
"""Size of the packet with the rest of the bus [bytes]."""

MORE_CARRIED = {"RaceInput": 1, "Custom": 2, "Settings": 4}
"""Bits of the parts that it carries."""

NAMED = ("FrontDifferentialLock", "RearDifferentialLock", "MinGearOverride", "MaxGearOverride")
"""Settings in it that are known by name alone, in their order."""

MORE_PLACES = {"RaceInput": (40, 16), "Custom": (104, 100)}
"""Offset [bytes] and number of integers of its channels."""

_LIMITS = {"Vehicle.EngineRpm": 50_000e3}  # raw integers


def _integers(channel: str, sdk: Sdk, places: Mapping[str, tuple[int, int]] = PLACES) -> list[Field]:
    """Return a channel's fields: one for each named value, and one for each run of unnamed ids."""
    offset, count = places[channel]
    known = CHANNELS[channel].by_id(sdk)
    fields, start = [], 0
    while start < count:
        end = start + 1
        if start in known:
            name, value = f"{channel}.{known[start].name}", known[start]
            fields.append(
                Field(name, offset + 4 * start, "<i4", value.wire_unit(), _LIMITS.get(name, 2.0**31), words=value.words)
            )
        else:
            while end < count and end not in known:
                end += 1
            fields.append(Field(f"{channel}.{start}-{end - 1}", offset + 4 * start, f"{end - start}<i4"))
        start = end
    return fields


def _state(sdk: Sdk) -> Packet:
    return Packet(
        f"state_{sdk}",
        SIZE,
        [
            Field("magic", 0, "S4"),
            Field("version", 4, "<u2"),
            Field("size", 6, "<u2", "bytes"),
            Field("sdk", 8, "S2"),
            Field("carried", 10, "|u1"),
            Field("not_carried", 11, "|u1"),
            Field("counter", 12, "<u4"),
            Field("time", 16, "<f8", "s", 1e9),
            Field("attitude", 24, "4<f4", "", 2.0),
            Field("position", 40, "3<f4", "m", 1e7),
            Field("velocity", 52, "3<f4", "m/s", 500.0),
            Field("acceleration", 64, "3<f4", "m/s^2", 2000.0),
            Field("angular_velocity", 76, "3<f4", "rad/s", 100.0),
            Field("angular_acceleration", 88, "3<f4", "rad/s^2", 20000.0),
            *(field for channel in PLACES for field in _integers(channel, sdk)),
        ],
        {"magic": b"MCVP", "version": VERSION, "size": SIZE, "sdk": CODES[sdk]},
    )


STATES: dict[Sdk, Packet] = {sdk: _state(sdk) for sdk in SDKS}
"""The packet's layout for each SDK, with its names of the integers."""


def _more(sdk: Sdk) -> Packet:
    named = CHANNELS["Settings"].by_name(sdk)
    settings = (
        Field(f"Settings.{name}", 24 + 4 * place, "<i4", named[name].wire_unit(), words=named[name].words)
        for place, name in enumerate(NAMED)
    )
    return Packet(
        f"more_{sdk}",
        MORE_SIZE,
        [
            *(field for field in STATES[sdk].fields.values() if field.offset < 24),
            *settings,
            *(field for channel in MORE_PLACES for field in _integers(channel, sdk, MORE_PLACES)),
        ],
        {"magic": b"MCVX", "version": VERSION, "size": MORE_SIZE, "sdk": CODES[sdk]},
    )


MORE: dict[Sdk, Packet] = {sdk: _more(sdk) for sdk in SDKS}
"""The layout of the packet with the rest of the bus, for each SDK."""

_TURNS = (-1.0, -1.0, 1.0)  # signs of turns about z, x, y

MOTION = (
    Take("stamp", 0, "time"),
    Take("orientation", 0, "attitude", 3),
    *(Take("orientation", 1 + n, "attitude", index, _TURNS[n]) for n, index in enumerate((2, 0, 1))),
    *vector("position", "position", (2, 0, 1), (1.0, 1.0, -1.0)),
    *vector("velocity", "velocity", (2, 0, 1), (1.0, 1.0, -1.0)),
    *vector("acceleration", "acceleration", (2, 0, 1), (1.0, 1.0, -1.0)),
    *vector("angular_velocity", "angular_velocity", (2, 0, 1), _TURNS),
    *vector("angular_acceleration", "angular_acceleration", (2, 0, 1), _TURNS),
)
"""Takes that convert Unity's axes into north, east, down and forward, right, down."""

GAUGES = (Take("engine_speed", 0, "Vehicle.EngineRpm", scale=1e-3, optional=True),)
"""Takes from the bus."""


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Readings that the simulator's documents leave open; the default is the likeliest."""

    gravity: Literal["excluded", "included"] = "excluded"  # as contained in the vehicle's localAcceleration


def intake(
    options: Options, head_m: tuple[float, float, float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE
) -> Intake:
    """Return an intake for the exporter's packets."""
    return datagram_intake(_messages(), head_m, derivation, body={"gravity": options.gravity}, velocity="car")


@cache
def _messages() -> list[Any]:
    """Return the compiled messages, one for each SDK and each set of parts carried, largest sets first."""
    states = [_message(sdk, carried) for carried in range(EVERYTHING, 0, -1) for sdk in SDKS]
    return [message.compiled() for message in (*states, *(Message(MORE[sdk], "other") for sdk in SDKS))]


def saying(carried: int) -> dict[str, int]:
    """Return the values of the two header fields for the parts carried."""
    return {"carried": carried, "not_carried": 255 - carried}


def _message(sdk: Sdk, carried: int) -> Message:
    """Return the message for packets that carry exactly these parts."""
    state = STATES[sdk]
    packet = Packet(state.name, SIZE, state.fields.values(), {**state.constants, **saying(carried)})
    takes = GAUGES if carried & CARRIED["Vehicle"] else ()
    if carried & CARRIED["motion"]:
        return Message(packet, "motion", MOTION + takes)
    return Message(packet, "part", takes)


def blank(sdk: Sdk, rows: int = 1) -> np.ndarray:
    """Return packets to be filled by field name: all parts carried, standing still, the bus empty."""
    packets = np.frombuffer(bytearray(STATES[sdk].encode(saying(EVERYTHING)) * rows), STATES[sdk].dtype)
    packets["attitude"][:, 3] = 1.0
    integers = packets.view(np.int32).reshape(rows, SIZE // 4)
    for channel, (offset, count) in PLACES.items():
        integers[:, offset // 4 + CHANNELS[channel].length(sdk) : offset // 4 + count] = NAN
    return packets


def bus_of(data: bytes) -> Bus:
    """Return the bus in a packet; channels that it does not carry are NaN."""
    packet = identify(data)
    bus = Bus(next(sdk for sdk in SDKS if packet in (STATES[sdk], MORE[sdk])))
    if packet is MORE[bus.sdk]:
        return _rest_of(bus, data)
    for channel, (offset, _) in PLACES.items():
        values = bus.raw_channel(channel)
        carried = data[10] & CARRIED[channel]
        values[:] = np.frombuffer(data, "<i4", len(values), offset) if carried else NAN
    return bus


def _rest_of(bus: Bus, data: bytes) -> Bus:
    """Return the bus with what a packet of the rest carries; everything else is NaN."""
    for channel in CHANNELS:
        if CHANNELS[channel].id(bus.sdk) is not None:
            values = bus.raw_channel(channel)
            values[:] = NAN
            if channel in MORE_PLACES and data[10] & MORE_CARRIED[channel]:
                values[:] = np.frombuffer(data, "<i4", len(values), MORE_PLACES[channel][0])
    for name, raw in zip(NAMED, np.frombuffer(data, "<i4", len(NAMED), 24).tolist(), strict=True):
        bus.set_raw("Settings", name, raw if data[10] & MORE_CARRIED["Settings"] else NAN)
    return bus


def framed(data: bytes) -> Iterator[bytes]:
    """Split concatenated packets."""
    start = 0
    while start < len(data):
        size = int.from_bytes(data[start + 6 : start + 8], "little")
        if size < 8 or start + size > len(data):
            left = len(data) - start
            raise PacketError(
                f"vehicle-physics-pro: found {left} bytes with size field {size} at offset {start}, allowed is a "
                f"packet of {SIZE} bytes"
            )
        yield data[start : start + size]
        start += size


def identify(data: bytes) -> Packet:
    """Return the layout of one packet, with the names of its SDK."""
    name = "vehicle-physics-pro"
    if len(data) < 12 or data[:4] not in (b"MCVP", b"MCVX"):
        raise PacketError(
            f"{name}: found {len(data)} bytes beginning {data[:8].hex(' ') or 'nowhere'}, allowed are {SIZE} bytes "
            f"beginning with 'MCVP' and {MORE_SIZE} with 'MCVX'"
        )
    first = data[:4] == b"MCVP"
    whole, parts, layouts = (SIZE, CARRIED, STATES) if first else (MORE_SIZE, MORE_CARRIED, MORE)
    version, size = (int.from_bytes(data[at : at + 2], "little") for at in (4, 6))
    sdk, carried, rest = data[8:10], data[10], data[11]
    if version != VERSION:
        newer = ": the exporter is newer than this motioncue" if version > VERSION else ""
        raise PacketError(f"{name}: found version {version}, allowed is {VERSION}{newer}")
    if not size == len(data) == whole:
        raise PacketError(f"{name}: found {len(data)} bytes with size field {size}, allowed are {whole}")
    if not 1 <= carried <= sum(parts.values()) or carried + rest != 255:
        raise PacketError(
            f"{name}: found {carried:#04x} carried and {rest:#04x} not, allowed are sums of {parts} and 255 less"
        )
    for known, code in CODES.items():
        if sdk == code:
            return layouts[known]
    raise PacketError(f"{name}: found SDK {sdk!r}, allowed are {', '.join(map(repr, CODES.values()))}")
