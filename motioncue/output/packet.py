"""A platform without built-in support: its packet is described by the profile's ``[output.packet]``.

The packet is sent to ``output.motion`` at every tick, like a built-in one.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from motioncue.core.channels import ACTUATION, ACTUATORS
from motioncue.errors import ConfigError, not_among
from motioncue.output.sinks import CLAIMS, Claimed, Expected, Replies
from motioncue.safety.supervisor import State
from motioncue.wire.checksum import CHECKSUMS, CheckedBytes, CheckedText, Seal, SealedLife, SealedNumber, SealedState
from motioncue.wire.codec import DecimalSpec, Number, Table, longest
from motioncue.wire.description import (
    Actuated,
    Checksum,
    Clock,
    Counter,
    Layout,
    LifeBit,
    OtherPacket,
    PacketField,
    PacketLayout,
    PacketTable,
    ReplyField,
    ReplyTable,
    ReplyValue,
    StateWord,
    Value,
)
from motioncue.wire.packet import ACTUATION_PLACES, Encoding, Field, Packet

__all__ = ["CHANNELS", "LARGEST", "MAX_RATE_HZ", "checked_text", "checksum_of", "encoding", "layout_of", "pieces_of"]

MAX_RATE_HZ = 2000.0
"""The highest rate that a profile may set [Hz]."""

CHANNELS = tuple(channel.name for channel in ACTUATION if channel.name != "time")
"""Channels that a field can carry."""

LARGEST = 512
"""Size of the largest packet [bytes]."""

LARGEST_IN_TEXT = 99_999.0
"""Numbers of a text are kept within this and its negative if the profile does not say otherwise."""

NUMBERED = tuple(f"actuator_{number}" for number in range(1, ACTUATORS + 1))
"""Names of the platform's actuators by their number."""


class Term(NamedTuple):
    """One channel's part of a number: `factor` times the channel."""

    channel: str
    factor: float


class Inserted(NamedTuple):
    """A number of a text packet."""

    name: str
    at: int
    """Its offset in the text without numbers."""
    spec: DecimalSpec
    hexadecimal: str = ""
    """Of a checksum: its digits and their case, such as "2X"."""


def encoding(table: PacketTable, actuators: Mapping[str, Actuated] | None = None) -> Encoding:
    """Return how the packet that a profile describes is encoded."""
    motion = _encoding(table, actuators or {})
    others = []
    for index, other in enumerate(table.others):
        try:
            others.append((_encoding(other, actuators or {}), other.every_s or 0.0))
        except ConfigError as error:
            raise ConfigError(str(error).replace("output.packet", f"output.packet.others[{index}]")) from error
    reads = motion.reads.union(*(each.reads for each, _ in others))
    return motion._replace(reads=reads, others=tuple(others))


def _encoding(table: PacketLayout, actuators: Mapping[str, Actuated]) -> Encoding:
    """Return how a packet is encoded by itself."""
    if (table.size is None) == (table.text is None):
        raise ConfigError("output.packet: allowed is one of size (of a binary packet) and text")
    if not table.scale:
        preset = getattr(table, "preset", None)
        hint = f"; `motioncue profiles packets {preset}` says what it is" if preset else ""
        raise ConfigError(f"output.packet.scale: found 0, allowed is any other number{hint}")
    return _binary(table, actuators) if table.text is None else _text(table, table.text, actuators)


def layout_of(table: PacketLayout | ReplyTable) -> Packet:
    """Return the layout of a binary packet, with a field for each of its parts."""
    assert table.size is not None
    fields: tuple[PacketField | ReplyField, ...] = table.fields
    parts = [
        Field(f"fields[{index}]", field.offset, np.dtype(_order(table, field) + field.type).str)
        for index, field in enumerate(fields)
    ]
    if isinstance(table, ReplyTable):  # several of its fields may read the same number
        parts = list({(part.offset, part.format): part for part in parts}.values())
    for index, constant in enumerate(table.constants):
        data = _bytes(constant.bytes, f"output.packet.constants[{index}].bytes")
        parts.append(Field(f"constants[{index}]", constant.offset, f"V{len(data)}"))
    for name in ("counter", "clock", "state"):
        number = getattr(table, name, None)
        if number is not None:
            parts.append(Field(name, number.offset, np.dtype(_order(table, number) + number.type).str))
    if table.checksum is not None:
        if table.checksum.offset is None:
            raise ConfigError("output.packet.checksum.offset: missing, allowed is 0 to 511 in a binary packet")
        size = CHECKSUMS[table.checksum.kind].bits // 8
        parts.append(Field("checksum", table.checksum.offset, f"{_order(table, table.checksum)}u{size}"))
    try:
        return Packet("output.packet", table.size, parts)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def pieces_of(text: str) -> tuple[bytes, list[Inserted]]:
    """Return a text packet's bytes without numbers, and its numbers."""
    literal, numbers = "", []
    for plain, braces in re.findall(r"((?:[^{}]|{{|}})*)([{}][^{}]*}?)?", text):
        literal += plain.replace("{{", "{").replace("}}", "}")
        if not braces:
            continue
        checked = re.fullmatch(r"{checksum:0(\d[xX])}", braces, re.ASCII)
        if checked is not None:
            numbers.append(Inserted("checksum", len(literal), DecimalSpec(), checked[1]))
            continue
        match = re.fullmatch(r"{(\w+)(?::(\+?)(0?)(\d{0,2})(?:\.(\d)f|d?))?}", braces, re.ASCII)
        if match is None:
            raise ConfigError(
                f"output.packet.text: found {braces!r}, allowed are a name and a format such as {{surge:+08.3f}}; "
                "{{ and }} for braces"
            )
        name, plus, zero, width, digits = match.groups()
        spec = DecimalSpec(int(digits or 0), int(width or 0), bool(zero), bool(plus))
        numbers.append(Inserted(name, len(literal), spec))
    try:
        return literal.encode("latin-1"), numbers
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"output.packet.text: found {literal[error.start]!r}, allowed are characters up to U+00FF, one byte each"
        ) from error


def _binary(table: PacketLayout, actuators: Mapping[str, Actuated]) -> Encoding:
    """Return how a binary packet is encoded."""
    if table.values:
        raise ConfigError("output.packet.values: allowed in a text packet, this one has fields")
    if not table.fields and not isinstance(table, OtherPacket):
        raise ConfigError("output.packet.fields: missing, allowed is a list of tables, one or more")
    numbers: list[Number] = []
    for index, field in enumerate(table.fields):
        key = f"output.packet.fields[{index}]"
        dtype = np.dtype(_order(table, field) + field.type)
        number = Number(field.offset, dtype, 0)
        numbers += _terms(field, _ranged(number, field, key, *_range(dtype)), table, actuators, key)
    packet = layout_of(table)
    template = bytearray(packet.size)
    for index, constant in enumerate(table.constants):
        start = packet.fields[f"constants[{index}]"].offset
        data = bytes.fromhex(constant.bytes)
        template[start : start + len(data)] = data
    seal = Seal(
        _sealed(table, table.counter),
        checksum_of(table),
        _sealed(table, table.clock),
        _state(table, table.state),
        _life(table.life, packet),
    )
    return Encoding(Table(packet.size, numbers), bytes(template), seal, _reads(numbers))


def _text(table: PacketLayout, text: str, actuators: Mapping[str, Actuated]) -> Encoding:
    """Return how a text packet is encoded."""
    for key in ("fields", "constants", "counter", "clock", "state", "life"):
        if getattr(table, key):
            raise ConfigError(f"output.packet.{key}: allowed in a binary packet, this one is a text")
    literal, inserted = pieces_of(text)
    literal, checksum = checked_text(table, literal, inserted)
    inserted = [each for each in inserted if not each.hexadecimal]
    unused = [name for name in table.values if name not in {each.name for each in inserted}]
    if unused or not (inserted or isinstance(table, OtherPacket)):
        raise ConfigError(f"output.packet.text: found {text!r}, in which {{{(unused or ['a number'])[0]}}} is missing")
    numbers: list[Number] = []
    size, before, before_varies = len(literal), -1, False
    for each in inserted:
        value = table.values.get(each.name) or Value(channel=each.name)
        key = f"output.packet.{f'values.{each.name}' if each.name in table.values else 'text'}"
        number = _ranged(
            Number(each.at, "S1", 0, spec=each.spec), value, key, *_text_range(value, table, actuators, key)
        )
        characters = longest(number)
        if characters > 24 or max(-number.low, number.high) * 10**each.spec.digits > 1e15:
            raise ConfigError(
                f"{key}: found {characters} characters of which {each.spec.digits} are after the point, allowed are "
                "up to 15 digits and 24 characters"
            )
        if each.at == before and before_varies:
            raise ConfigError(
                f"output.packet.text: found {{{each.name}}} right behind a number whose length varies, allowed is "
                "something between them, or a width that min and max do not exceed"
            )
        before, before_varies = each.at, characters > each.spec.width
        if literal[each.at : each.at + 1].isdigit() and not each.spec.digits:
            raise ConfigError(
                f"output.packet.text: found a digit right behind {{{each.name}}}, allowed is anything else"
            )
        size += characters
        numbers += _terms(value, number, table, actuators, key)
    if size > LARGEST:
        raise ConfigError(f"output.packet.text: found up to {size} bytes, allowed are {LARGEST}")
    seal = None if checksum is None else Seal(None, checksum)
    return Encoding(Table(len(literal), numbers, True), literal, seal, _reads(numbers))


def replies_of(table: PacketTable, actuators: Mapping[str, Actuated], *, stream: bool) -> Replies | None:
    """Return what reads a controller's replies, from a line (`stream`) or datagrams; None if it gives none."""
    expected = []
    for index, reply in enumerate(table.reply):
        try:
            expected.append(_expected(reply, actuators, stream, table.scale))
        except ConfigError as error:
            raise ConfigError(str(error).replace("output.packet", f"output.packet.reply[{index}]")) from error
    said = {claim.number for each in expected for claim in each.claims if not claim.says}
    if said and (missing := [name for number, name in enumerate(actuators) if number not in said]):
        raise ConfigError(f"output.packet.reply: found no {', '.join(missing)}, allowed are all actuators or none")
    return Replies(expected, len(actuators) if said else 0) if expected else None


def _expected(table: ReplyTable, actuators: Mapping[str, Actuated], stream: bool, unit: float) -> Expected:
    """Return how a reply is found, and what its numbers say; `unit` is the factor on positions in all packets."""
    if (table.size is None) == (table.text is None):
        raise ConfigError("output.packet: allowed is one of size (of a binary reply) and text")
    if table.text is not None:
        literal, inserted = pieces_of(table.text)
        literal, checked = checked_text(table, literal, inserted)
        inserted = [each for each in inserted if not each.hexadecimal]
        ends = bool(inserted) and inserted[-1].at == len(literal)
        if not literal or ends or any(a.at == b.at for a, b in itertools.pairwise(inserted)):
            raise ConfigError(
                f"output.packet.text: found {table.text!r}, "
                "allowed is something behind each number, which shows its end"
            )
        found = [(table.values.get(each.name) or ReplyValue(channel=each.name), each.at) for each in inserted]
        claims = [_claimed(value, actuators, "output.packet.text", unit)._replace(at=at) for value, at in found]
        seal = None if checked is None else Seal(None, checked)
        if table.length is not None:
            raise ConfigError("output.packet.length: allowed in a binary reply, this one is a text")
        return Expected(None, len(literal), literal, [], seal, claims, stream and seal is None, table.lost_s)
    packet, checksum = layout_of(table), checksum_of(table)
    if stream and not table.constants and checksum is None:
        raise ConfigError("output.packet: found neither constants nor a checksum, allowed over a line is one of them")
    claims = [_claimed(each, actuators, f"output.packet.fields[{n}]", unit) for n, each in enumerate(table.fields)]
    numbers = [
        Number(field.offset, np.dtype(_order(table, field) + field.type), place)
        for place, field in enumerate(table.fields)
    ]
    marks = [(each.offset, bytes.fromhex(each.bytes)) for each in table.constants]
    seal = None if checksum is None else Seal(None, checksum)
    rows = Table(packet.size, numbers)
    length = _length(table, packet.size, checksum)
    return Expected(rows, packet.size, b"", marks, seal, claims, stream and seal is None, table.lost_s, length)


def _length(table: ReplyTable, size: int, checksum: CheckedBytes | None) -> tuple[int, int] | None:
    """Return where a reply says its payload's length, and where that begins; None if it has always the same."""
    if table.length is None:
        return None
    key, offset, first = "output.packet.length", table.length.offset, table.length.first
    last = size - CHECKSUMS[checksum.kind].bits // 8 if checksum is not None else 0
    if checksum is None or (checksum.offset, checksum.end) != (last, last) or not checksum.first < first:
        raise ConfigError(
            f"{key}: allowed with a checksum at the end of the reply that covers all from before the payload"
        )
    if not offset < first < last or last - first > 255:
        raise ConfigError(
            f"{key}: found {offset} and {first}, allowed are an offset before that of the payload's first byte"
        )
    for constant in table.constants:
        if constant.offset + len(bytes.fromhex(constant.bytes)) > first:
            raise ConfigError(f"{key}: found a constant at {constant.offset}, allowed are those before the payload")
    return offset, first


BEYOND = 0.25  # share of an actuator's range beyond its ends in which a reported position is believed


def _claimed(value: ReplyValue, actuators: Mapping[str, Actuated], key: str, unit: float) -> Claimed:
    """Return what a number of a reply says."""
    if value.channel in CLAIMS:
        mask = 0xFFFFFFFF if value.mask is None else value.mask
        return Claimed(value.channel, mask=mask, among=value.among or ())
    if value.mask is not None or value.among is not None:
        raise ConfigError(f"{key}: found mask or among, allowed for {', '.join(CLAIMS)}")
    if not value.scale:
        raise ConfigError(f"{key}.scale: found 0, allowed is any other number")
    if value.channel == "temperature":
        return Claimed(value.channel, scale=1.0 / value.scale, bias=-value.bias / value.scale)
    names = list(actuators)
    known = {**{name: n for n, name in enumerate(names)}, **{NUMBERED[n]: n for n in range(len(names))}}
    if value.channel in NUMBERED and value.channel not in known:
        return Claimed("nothing")  # an actuator that the platform does not have
    if value.channel not in known:
        raise ConfigError(f"{key}.channel: {not_among(value.channel, (*CLAIMS, 'temperature', *names))}")
    actuator = actuators[names[known[value.channel]]]
    term, constant = _measured(value.channel, value, actuators, f"{key}.channel", f"{key}.measure")
    assert term is not None
    # The reply's number is scale (factor position + constant) + bias.
    scale = 1.0 / (unit * value.scale * term.factor)
    bias = -(value.bias / (unit * value.scale) + constant) / term.factor
    room = BEYOND * (actuator.high - actuator.low)
    place = NUMBERED.index(actuator.channel)
    return Claimed("", place, scale=scale, bias=bias, low=actuator.low - room, high=actuator.high + room)


def checked_text(table: Layout, literal: bytes, inserted: Sequence[Inserted]) -> tuple[bytes, CheckedText | None]:
    """Return a text's bytes without numbers, with room for its checksum, and the checksum for the seal."""
    c, places = table.checksum, [each for each in inserted if each.hexadecimal]
    if c is None or not places:
        if places:
            raise ConfigError("output.packet.checksum: missing, and the text has a place for it")
        if c is not None:
            raise ConfigError("output.packet.text: found no place for the checksum, such as {checksum:02X}")
        return literal, None
    digits = CHECKSUMS[c.kind].bits // 4
    at, case = places[0].at, places[0].hexadecimal
    if len(places) > 1 or inserted[-1] is not places[0]:
        raise ConfigError("output.packet.text: found something in braces behind {checksum}, allowed is plain text")
    if case[0] != str(digits):
        raise ConfigError(
            f"output.packet.text: found {{checksum:0{case}}}, allowed is {{checksum:0{digits}{case[1]}}} for {c.kind}"
        )
    for key, found in (("offset", c.offset), ("byte_order", c.byte_order)):
        if found is not None:
            raise ConfigError(
                f"output.packet.checksum.{key}: found {found!r}, allowed in a binary packet, this is a text"
            )
    back = c.end or 0
    shortest = at + len(inserted) - 1  # a digit for each number
    if not -shortest <= back <= 0 or not c.first < shortest + back:
        raise ConfigError(
            f"output.packet.checksum: found bytes from {c.first} to {back} counted back from it, allowed are one or "
            f"more of the {shortest} bytes or more in front of it, with an end of 0 or below"
        )
    room = literal[:at] + b"0" * digits + literal[at:]
    extra = _extra(c)
    return room, CheckedText(c.kind, len(room) - at, c.first, back, case[1] == "x", extra)


def _terms(
    value: Value, number: Number, table: PacketLayout, actuators: Mapping[str, Actuated], key: str
) -> list[Number]:
    """Return the rows that compute a value: one for each channel that exists, in the place of `number`."""
    if (value.channel is None) == (value.sum is None):
        raise ConfigError(f"{key}: allowed is one of channel and sum")
    scale = value.scale * table.scale
    if not scale:
        raise ConfigError(f"{key}.scale: found 0, allowed is any other number")
    where = "channel" if value.sum is None else "sum"
    bias, terms = value.bias, []
    for name, weight in (value.sum or {str(value.channel): 1.0}).items():
        if not weight:
            raise ConfigError(f"{key}.sum.{name}: found 0, allowed is any other number")
        term, constant = _measured(name, value, actuators, f"{key}.{where}", f"{key}.measure")
        bias += scale * weight * constant
        if term is not None:
            terms.append(term._replace(factor=scale * weight * term.factor))
            if not 1e-100 <= abs(terms[-1].factor) <= 1e100:
                raise ConfigError(f"{key}: found {name} times {terms[-1].factor:g} in all, allowed are 1e-100 to 1e100")
    if not terms:  # none of these actuators exists: a channel that is always 0 at no weight
        return [number._replace(place=ACTUATION_PLACES["surge"], scale=math.inf, bias=bias)]
    rows = [
        number._replace(place=ACTUATION_PLACES[each.channel], scale=1.0 / each.factor, absent=value.absent, more=True)
        for each in terms
    ]
    # A bias of 0 would take the sign of a zero.
    return [*rows[:-1], rows[-1]._replace(more=False, bias=bias or -0.0)]


def _measured(
    name: str, value: Value | ReplyValue, actuators: Mapping[str, Actuated], channel_key: str, measure_key: str
) -> tuple[Term | None, float]:
    """Return a channel's term for the value's measure, and the constant that is added to it."""
    actuator = actuators.get(name)
    if actuator is None and name in NUMBERED and actuators:
        number = NUMBERED.index(name)
        if number >= len(actuators):
            assert isinstance(value, Value)
            return None, value.absent
        actuator = list(actuators.values())[number]
    if actuator is None:
        if name not in CHANNELS:
            raise ConfigError(f"{channel_key}: {not_among(name, (*actuators, *CHANNELS))}")
        if value.measure != "position":
            lacks = "" if actuators else ", and the profile has no [platform]"
            raise ConfigError(f"{measure_key}: found {value.measure!r}, which is for actuators of a platform{lacks}")
        return Term(name, 1.0), 0.0
    sign, shift = actuator.sign, actuator.shift
    if value.measure == "share":
        span = actuator.high - actuator.low
        return Term(actuator.channel, sign / span), (shift - actuator.low) / span
    return Term(actuator.channel, sign), shift - (actuator.neutral if value.measure == "stroke" else 0.0)


def _ranged(number: Number, value: Value, key: str, low: float, high: float) -> Number:
    """Return the number with the range in which it is sent: the value's own within that of its type."""
    steps = 10.0**number.spec.digits if number.spec else 0.0 if np.dtype(number.dtype).kind == "f" else 1.0
    if value.wrap is not None:
        if value.min is not None or value.max is not None:
            raise ConfigError(f"{key}.wrap: allowed is none beside min or max")
        if low > 0.0 or value.wrap - (1.0 / steps if steps else 0.0) > high:
            raise ConfigError(f"{key}.wrap: found {value.wrap:g}, which its type cannot hold")
        if steps and not math.isclose(value.wrap * steps, round(value.wrap * steps), rel_tol=1e-12):
            raise ConfigError(f"{key}.wrap: found {value.wrap:g}, allowed are whole numbers of {1 / steps:g}")
        return number._replace(wrap=value.wrap, low=0.0, high=value.wrap)
    for name, bound in (("min", value.min), ("max", value.max)):
        if bound is not None and number.spec is None and not low <= bound <= high:
            raise ConfigError(f"{key}.{name}: found {bound:g}, allowed is {low:g} to {high:g}, which its type can hold")
    low = low if value.min is None else value.min
    high = high if value.max is None else value.max
    if not low < high:
        raise ConfigError(f"{key}: found {low:g} to {high:g}, allowed is min below max")
    return number._replace(low=low, high=high)


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the smallest and the largest number of a type."""
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def _text_range(value: Value, table: PacketLayout, actuators: Mapping[str, Actuated], key: str) -> tuple[float, float]:
    """Return the range in which a text's number is kept: that of its actuator if it has one."""
    named = {**actuators, **dict(zip(NUMBERED, actuators.values(), strict=False))}
    if value.wrap is not None:
        return -math.inf, math.inf
    if value.channel not in named:
        return -LARGEST_IN_TEXT, LARGEST_IN_TEXT
    term, constant = _measured(str(value.channel), value, actuators, key, key)
    assert term is not None
    scale = value.scale * table.scale
    actuator = named[str(value.channel)]
    low, high = sorted(scale * (term.factor * end + constant) + value.bias for end in (actuator.low, actuator.high))
    return low, high


def _reads(numbers: list[Number]) -> frozenset[str]:
    """Return the channels that rows read."""
    names = {place: name for name, place in ACTUATION_PLACES.items()}
    return frozenset(names[number.place] for number in numbers)


def _order(table: Layout, part: PacketField | ReplyField | Counter | Checksum) -> str:
    """Return NumPy's sign of the byte order of a part."""
    return "<" if (part.byte_order or table.byte_order) == "little" else ">"


def _sealed(table: PacketLayout, number: Counter | None) -> SealedNumber | None:
    """Return a counter or a clock for the seal."""
    if number is None:
        return None
    unit_ns = round(1e9 * number.unit_s) if isinstance(number, Clock) else 1
    return SealedNumber(number.offset, int(number.type[1:]), _order(table, number) == ">", unit_ns)


def _state(table: PacketLayout, state: StateWord | None) -> SealedState | None:
    """Return the word for the supervisor's state; refuse one that its type cannot hold."""
    if state is None:
        return None
    size = int(state.type[1:])
    words = {each.name.lower(): getattr(state, each.name.lower()) for each in State if each is not State.STATES}
    words["rising"] = state.engaging if state.rising is None else state.rising
    for name, word in words.items():
        if word >= 256**size:
            raise ConfigError(f"output.packet.state.{name}: found {word}, allowed is 0 to {256**size - 1}")
    return SealedState(state.offset, size, _order(table, state) == ">", tuple(words.values()))


def _life(life: LifeBit | None, packet: Packet) -> SealedLife | None:
    """Return the life bit for the seal; refuse one in bytes that are written otherwise."""
    if life is None:
        return None
    over = [
        name
        for name, part in packet.fields.items()
        if not name.startswith("constants") and 0 <= life.offset - part.offset < part.dtype.itemsize
    ]
    if over or life.offset >= packet.size:
        found = f"that of {over[0]}" if over else f"{life.offset} in {packet.size} bytes"
        raise ConfigError(f"output.packet.life.offset: found {found}, allowed is a byte with nothing but constants")
    return SealedLife(life.offset, life.bit, round(1e9 * life.every_s))


def checksum_of(table: Layout) -> CheckedBytes | None:
    """Return a packet's checksum for the seal; None if it has none."""
    c = table.checksum
    if c is None:
        return None
    assert table.size is not None
    assert c.offset is not None
    end = c.offset if c.end is None else c.end + c.offset * (c.end < 0)
    over_itself = c.first < c.offset + CHECKSUMS[c.kind].bits // 8 and c.offset < end
    if not c.first < end <= table.size or over_itself:
        raise ConfigError(
            f"output.packet.checksum: found bytes {c.first} to {end}, allowed are one or more of the packet's "
            f"{table.size}, the checksum's own at {c.offset} not among them"
        )
    return CheckedBytes(c.kind, c.offset, c.first, end, _order(table, c) == ">", _extra(c))


def _extra(checksum: Checksum) -> bytes:
    """Return the bytes that a checksum covers and that are not sent."""
    extra = _bytes(checksum.extra, "output.packet.checksum.extra") if checksum.extra else b""
    if len(extra) > 8:
        raise ConfigError(f"output.packet.checksum.extra: found {len(extra)} bytes, allowed are up to 8")
    return extra


def _bytes(digits: str, key: str) -> bytes:
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = b""
    if not data:
        raise ConfigError(f"{key}: found {digits!r}, allowed are pairs of hexadecimal digits, one or more")
    return data
