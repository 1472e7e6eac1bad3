"""MotionSim and OutGauge, the packets of BeamNG.drive, which DK reads too.

Layout: BeamNG's ``lua/vehicle/protocols/motionSim.lua`` and ``outgauge.lua`` (0.32) and documentation.beamng.com
(modding/protocols); "BeamNG Telemetry Scheme", DK's document, for the short forms; SpaceMonkey's BeamNG mod for BNG2.
DK's table and its C# sample disagree about offsets 28 and 32; captured packets show that the table is right: in a
braking car offset 32 holds the deceleration.  Checked against captured 88-byte packets (tests/data/packets).

| form | mark | bytes |
|---|---|---|
| MotionSim | ``BNG1`` at 0 | 88 or more; 60 to 87: the 60 that DK reads |
| MotionSim with engine, suspension and wheels | ``BNG2`` at 0 | 176; the additional fields are not used |
| MotionSim of a DK emitter | zeros at 0 | 60 to 1472, but not 92 or 96, which are OutGauge's |
| OutGauge | ``beam`` at 4 | 96; 92 (no id); 20 or more (what DK reads) |
| OutGauge of a DK emitter | zeros at 4 | 96; 92; 20 to 59 |

A packet may be longer than its form, because DK reads by offset; a packet without a mark is identified by its size.
"""

from collections.abc import Iterator
from typing import NamedTuple

from motioncue.errors import PacketError
from motioncue.wire.packet import UNFRAGMENTED, Field, Packet

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


class Form(NamedTuple):
    """A form in which a packet comes: the whole, or its beginning, with a mark or without."""

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
        return Packet(self.whole.name, size, self.whole.fields.values(), self.packet.constants)


def _form(whole: Packet, size: int, kind: str, *, mark: bytes | None = None, largest: int = DATAGRAM) -> Form:
    """Return the form of a packet's first `size` bytes, with its mark or another one in its place."""
    ((name, own),) = whole.constants.items()
    mark = own if mark is None else mark
    packet = whole
    if mark != own or size < whole.size:
        packet = Packet(whole.name, size, whole.cut(size).fields.values(), {name: mark})
    return Form(packet, largest, kind, *packet.fixed()[0], whole)


FORMS = (
    _form(MOTION, 88, "whole"),
    _form(MOTION_2, 176, "whole"),
    _form(MOTION_2, 88, "whole"),
    _form(MOTION, 60, "short"),
    _form(MOTION_2, 60, "short"),
    _form(GAUGES, 96, "gauges"),
    _form(GAUGES, 20, "gauges"),
    # Forms without a mark come last: they are not tried for a packet that has one.
    *(_form(MOTION, size, "short", mark=b"", largest=most) for size, most in ((60, 91), (93, 95), (97, UNFRAGMENTED))),
    _form(GAUGES, 96, "gauges", mark=b"", largest=96),
    _form(GAUGES, 92, "gauges", mark=b"", largest=92),
    _form(GAUGES, 20, "gauges", mark=b"", largest=59),
)
_MARKED = tuple(form for form in FORMS if any(form.mark))
_SIZES = {b"BNG1": (88, 60), b"BNG2": (176,), b"beam": (96, 92, 20)}
"""Sizes that programs are known to send, the largest first, by mark."""
_LEAST = {b"BNG1": 60, b"BNG2": 60, b"beam": 20}


MARKED = 8  # bytes from a datagram's beginning to the end of its mark


def framed(data: bytes) -> Iterator[bytes]:
    """Split concatenated datagrams.

    Each ends where the next mark stands, at the end of the data, or before a rest that is too short for a mark.  Data
    that has no mark, or cannot be split even once, is one datagram.
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
    """Return the layout of one datagram."""
    for form in _MARKED if _marks(data) else FORMS:
        if form.fits(data):
            return form.layout(len(data))
    raise PacketError(
        f"{system}: found {len(data)} bytes beginning {data[:8].hex(' ') or 'nowhere'}, allowed are motion ('BNG1' or "
        f"'BNG2' at offset 0 and 60 bytes or more, zeros and 60 to 1472 but not 92 or 96) and gauges ('beam' at offset "
        f"4 and 20 bytes or more, zeros and 96, 92 or 20 to 59)"
    )


def is_certain(data: bytes) -> bool:
    """Say whether a datagram is known by its bytes alone: by a mark, or by a size that DK's emitters use."""
    return bool(_marks(data)) or len(data) <= MOTION.size or len(data) in _SIZES[b"beam"]
