"""BeamNG.drive: MotionSim and OutGauge by UDP, to one port or two, and the short forms that DK reads.

Layout: BeamNG's ``lua/vehicle/protocols/motionSim.lua`` and ``outgauge.lua`` (0.32) and documentation.beamng.com
(modding/protocols); "BeamNG Telemetry Scheme", DK's document, for the short forms; SpaceMonkey's BeamNG mod for BNG2.
DK's table and its C# sample disagree about offsets 28 and 32; captured packets show that the table is right: in a
braking car offset 32 holds the deceleration.  Checked against captured 88-byte packets (tests/data/packets).

| form | mark | bytes |
|---|---|---|
| MotionSim | ``BNG1`` at 0 | 88 or more; 60 to 87: the 60 that DK reads |
| MotionSim with engine, suspension and wheels | ``BNG2`` at 0 | 176; the additional fields are not used |
| MotionSim of a DK emitter | zeros at 0 | 60 to 88 |
| OutGauge | ``beam`` at 4 | 96; 92 (no id); 20 or more (what DK reads) |
| OutGauge of a DK emitter | zeros at 4 | 96; 92; 20 to 59 |

A packet with a mark may be longer than its form, because DK reads by offset; a packet without a mark is identified by
its size.  Signs are `Motion`'s:

* World: X east, Y north, Z up; position and velocity.  Acceleration: car axes right, forward, up, gravity excluded.
* Roll right side down, pitch nose up, yaw as a compass: turns about the car's forward, right and down axes.
* Rates and angular accelerations: of those angles, unless set otherwise.
* The short forms and those without a mark carry acceleration, roll and pitch only: rates are derived from the attitude,
  and the speed is OutGauge's, or unknown.  In the other forms it is the velocity's, because OutGauge's is the wheels'.
* Packets carry no time: frames are timed as they arrive.  Nothing is sent while the game is paused.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from motioncue.errors import PacketError
from motioncue.intake.intake import Intake
from motioncue.intake.stages import TelemetryStages
from motioncue.kernels.body import BodyStage
from motioncue.protocols.layout import NATIVE, Derivation, Field, Message, Packet, Take

__all__ = ["GAUGES", "MOTION", "MOTION_2", "SCHEMES", "Options", "framed", "identify", "intake"]

SCHEMES = ("udp",)
"""Transports that the simulator uses."""

DATAGRAM = 65_507
"""Largest size of a datagram [bytes]."""

# Limits: no road vehicle is faster and no crash is harder; a packet beyond them is broken.
MOTION = Packet(
    "motion",
    88,
    [
        Field("magic", 0, "S4"),
        Field("position_x", 4, "<f4", "m", 1e7),
        Field("position_y", 8, "<f4", "m", 1e7),
        Field("position_z", 12, "<f4", "m", 1e7),
        Field("velocity_x", 16, "<f4", "m/s", 500.0),
        Field("velocity_y", 20, "<f4", "m/s", 500.0),
        Field("velocity_z", 24, "<f4", "m/s", 500.0),
        Field("sway", 28, "<f4", "m/s^2", 2000.0),
        Field("surge", 32, "<f4", "m/s^2", 2000.0),
        Field("heave", 36, "<f4", "m/s^2", 2000.0),
        Field("up_x", 40, "<f4"),
        Field("up_y", 44, "<f4"),
        Field("up_z", 48, "<f4"),
        Field("roll", 52, "<f4", "rad", 10.0),
        Field("pitch", 56, "<f4", "rad", 10.0),
        Field("yaw", 60, "<f4", "rad", 10.0),
        Field("roll_rate", 64, "<f4", "rad/s", 100.0),
        Field("pitch_rate", 68, "<f4", "rad/s", 100.0),
        Field("yaw_rate", 72, "<f4", "rad/s", 100.0),
        Field("roll_acceleration", 76, "<f4", "rad/s^2", 20000.0),
        Field("pitch_acceleration", 80, "<f4", "rad/s^2", 20000.0),
        Field("yaw_acceleration", 84, "<f4", "rad/s^2", 20000.0),
    ],
    {"magic": b"BNG1"},
)

_CORNERS = ("rear_left", "rear_right", "front_left", "front_right")
_EVERY_CORNER = [
    (f"{name}_{corner}", unit)
    for name, unit in (
        ("suspension_position", "m"),
        ("suspension_velocity", "m/s"),
        ("suspension_acceleration", "m/s^2"),
        ("wheel_speed", "m/s"),
    )
    for corner in _CORNERS
]

MOTION_2 = Packet(
    "motion_2",
    176,
    [
        *MOTION.fields.values(),
        Field("engine_speed", 88, "<f4", "rpm"),
        Field("idle_speed", 92, "<f4", "rpm"),
        Field("engine_speed_limit", 96, "<f4", "rpm"),
        Field("gear", 100, "<i4"),
        Field("gears", 104, "<i4"),
        *(Field(name, 108 + 4 * place, "<f4", unit) for place, (name, unit) in enumerate(_EVERY_CORNER)),
        Field("time", 172, "<f4", "s"),
    ],
    {"magic": b"BNG2"},
)

GAUGES = Packet(
    "gauges",
    96,
    [
        Field("time", 0, "<u4", "ms"),
        Field("car", 4, "S4"),
        Field("flags", 8, "<u2"),
        Field("gear", 10, "|u1"),  # 0 reverse, 1 neutral, 2 first
        Field("player", 11, "|u1"),
        Field("speed", 12, "<f4", "m/s", 500.0),
        Field("engine_speed", 16, "<f4", "rpm", 1e5),
        Field("turbo", 20, "<f4", "bar"),
        Field("engine_temperature", 24, "<f4", "degC"),
        Field("fuel", 28, "<f4"),
        Field("oil_pressure", 32, "<f4", "bar"),
        Field("oil_temperature", 36, "<f4", "degC"),
        Field("dash_lights", 40, "<u4"),
        Field("show_lights", 44, "<u4"),
        Field("throttle", 48, "<f4"),
        Field("brake", 52, "<f4"),
        Field("clutch", 56, "<f4"),
        Field("display_1", 60, "S16"),
        Field("display_2", 76, "S16"),
        Field("id", 92, "<i4"),
    ],
    {"car": b"beam"},
)


class _Form(NamedTuple):
    packet: Packet
    largest: int  # largest size [bytes]; the smallest is the packet's size
    kind: str
    offset: int
    mark: bytes  # zeros in a form without a mark
    whole: Packet  # the packet of which this form is the beginning

    def fits(self, data: bytes) -> bool:
        """Say whether a datagram has the mark and an allowed size."""
        return self.packet.size <= len(data) <= self.largest and data.startswith(self.mark, self.offset)

    def layout(self, size: int) -> Packet:
        """Return the layout of a datagram of this form; bytes behind the whole packet have no field."""
        if size == self.packet.size:
            return self.packet
        if size <= self.whole.size:
            return self.whole.cut(size)
        return Packet(self.whole.name, size, self.whole.fields.values(), self.whole.constants)


def _form(whole: Packet, size: int, kind: str, *, mark: bytes | None = None, largest: int = DATAGRAM) -> _Form:
    """Return the form of a packet's first `size` bytes, with its mark or another one in its place."""
    ((name, own),) = whole.constants.items()
    mark = own if mark is None else mark
    packet = whole
    if mark != own or size < whole.size:
        packet = Packet(whole.name, size, whole.cut(size).fields.values(), {name: mark})
    return _Form(packet, largest, kind, *packet.fixed()[0], whole)


_FORMS = (
    _form(MOTION, 88, "whole"),
    _form(MOTION_2, 176, "whole"),
    _form(MOTION_2, 88, "whole"),
    _form(MOTION, 60, "short"),
    _form(MOTION_2, 60, "short"),
    _form(GAUGES, 96, "gauges"),
    _form(GAUGES, 20, "gauges"),
    # Forms without a mark come last: they are not tried for a packet that has one.
    _form(MOTION, 60, "short", mark=b"", largest=88),
    _form(GAUGES, 96, "gauges", mark=b"", largest=96),
    _form(GAUGES, 92, "gauges", mark=b"", largest=92),
    _form(GAUGES, 20, "gauges", mark=b"", largest=59),
)
_MARKED = tuple(form for form in _FORMS if any(form.mark))
_SIZES = {b"BNG1": (88, 60), b"BNG2": (176,), b"beam": (96, 92, 20)}
"""Sizes that programs are known to send, the largest first, by mark."""
_LEAST = {b"BNG1": 60, b"BNG2": 60, b"beam": 20}

# The telemetry's world axes are north, east, down, its car axes forward, right, down.
_SHORT = [
    Take("acceleration", 0, "surge"),
    Take("acceleration", 1, "sway"),
    Take("acceleration", 2, "heave", scale=-1.0),
    Take("angles", 0, "roll"),
    Take("angles", 1, "pitch"),
]
_WHOLE = [
    *_SHORT,
    Take("angles", 2, "yaw"),
    Take("position", 0, "position_y"),
    Take("position", 1, "position_x"),
    Take("position", 2, "position_z", scale=-1.0),
    Take("velocity", 0, "velocity_y"),
    Take("velocity", 1, "velocity_x"),
    Take("velocity", 2, "velocity_z", scale=-1.0),
]
_RATES = [
    Take("angular_velocity", 0, "roll_rate"),
    Take("angular_velocity", 1, "pitch_rate"),
    Take("angular_velocity", 2, "yaw_rate"),
    Take("angular_acceleration", 0, "roll_acceleration"),
    Take("angular_acceleration", 1, "pitch_acceleration"),
    Take("angular_acceleration", 2, "yaw_acceleration"),
]
_GAUGES = [
    Take("speed", 0, "speed", optional=True),
    Take("engine_speed", 0, "engine_speed", optional=True),
]


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Readings that the documents leave open."""

    rates: Literal["angles", "car", "derived"] = "angles"
    """Meaning of the angular velocity: rates of roll, pitch and yaw, rates about the car's axes, or ignored in favor
    of rates derived from the attitude."""


def intake(options: Options, head_m: Sequence[float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE) -> Intake:
    """Return an intake for BeamNG's datagrams.

    Parameters
    ----------
    options : Options
        How to read what the documents leave open.
    head_m : sequence of 3 floats
        The occupant's head from the car's reference point: forward, right, up [m].
    derivation : Derivation
        Source of the acceleration, and delay of derived quantities.
    """
    takes = {
        "whole": _WHOLE if options.rates == "derived" else _WHOLE + _RATES,
        "short": _SHORT,
        "gauges": _GAUGES,
    }
    messages = [
        Message(form.packet, "part" if form.kind == "gauges" else "motion", takes[form.kind], largest=form.largest)
        for form in _FORMS
    ]
    stage = BodyStage(
        world_north=(1, 0, 0), world_up=(0, 0, -1), car_forward=(1, 0, 0), car_up=(0, 0, -1), head_m=head_m, rates="car"
    )
    stages = TelemetryStages(
        attitude="angles",
        acceleration_axes="car",
        rates="said" if options.rates == "car" else options.rates,
        acceleration=derivation.acceleration,
        delay_s=derivation.delay_s,
    )
    return Intake([message.compiled() for message in messages], stage, stages)


MARKED = 8  # bytes from a datagram's beginning to the end of its mark


def framed(data: bytes) -> Iterator[bytes]:
    """Split concatenated datagrams.

    Each ends where the next mark stands, at the end of the data, or before a rest that is too short for a mark.  Data
    that has no mark, or cannot be split even once, is one datagram.

    Raises
    ------
    PacketError
        If the last datagram is shorter than the others with its mark, or has no mark; names the offset.
    """
    start, seen = 0, dict[bytes, set[int]]()
    while start < len(data):
        marks = _marks(data, start)
        ends = (start + size for mark in marks for size in _SIZES[mark])
        end = next((end for end in ends if end == len(data) or _marks(data, end)), None)
        if end is None:
            least = min((_LEAST[mark] for mark in marks), default=len(data))
            furthest = min(len(data), start + DATAGRAM + 1)
            end = next((end for end in range(start + least, furthest) if _marks(data, end)), None)
        if start and (end is None or end == len(data)):
            end = _last(data, start, {size for mark in marks for size in seen.get(mark, ())})
        end = len(data) if end is None else end
        for mark in marks:
            seen.setdefault(mark, set()).add(end - start)
        yield data[start:end]
        start = end


def _last(data: bytes, start: int, seen: set[int]) -> int:
    """Return where the last datagram ends, from the sizes of others with its mark; raise PacketError if it is cut."""
    left = len(data) - start
    marks = _marks(data, start)
    if left in seen or any(left in _SIZES[mark] for mark in marks):
        return len(data)
    size = max((size for size in seen if size < left < size + MARKED), default=0)
    if size:
        return start + size
    if not marks or left > DATAGRAM or left < min(seen, default=0):
        raise PacketError(
            f"beamng: found {left} bytes beginning {data[start : start + 8].hex(' ')} at offset {start}, allowed is a "
            "whole datagram"
        )
    return len(data)


def _marks(data: bytes, start: int = 0) -> list[bytes]:
    """Return the marks of the datagram that begins here."""
    found = (data[start : start + 4], data[start + 4 : start + 8])
    return [mark for place, mark in enumerate(found) if mark in _SIZES and (mark == b"beam") == place]


def identify(data: bytes, system: str = "beamng") -> Packet:
    """Return the layout of one datagram.

    Parameters
    ----------
    data : bytes
        The datagram.
    system : str
        Name of the system, used in errors.

    Raises
    ------
    PacketError
        If it matches no form.
    """
    for form in _MARKED if _marks(data) else _FORMS:
        if form.fits(data):
            return form.layout(len(data))
    raise PacketError(
        f"{system}: found {len(data)} bytes beginning {data[:8].hex(' ') or 'nowhere'}, allowed are motion ('BNG1' or "
        f"'BNG2' at offset 0 and 60 bytes or more, zeros and 60 to 88) and gauges ('beam' at offset 4 and 20 bytes or "
        f"more, zeros and 96, 92 or 20 to 59)"
    )
