"""The packets of a described source, made of its fields, marks and bytes as the intake takes them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.sources.described.channels import (
    CAR,
    CHANNELS,
    KEY,
    LIMITS,
    UNITS,
    WORLD,
    Channel,
    directions,
    in_car,
)
from motioncue.wire.description import (
    LARGEST,
    Gather,
    Mark,
    SharedMemory,
    SourceField,
    SourcePacket,
    SourceWindow,
    Window,
)
from motioncue.wire.messages import CIPHER_BYTES, Cipher, CompiledMessage, Echo, Heartbeat
from motioncue.wire.packet import Field, Message, Packet, Take

LONGEST_REPLY = 512
"""Largest size of an answer [bytes]."""

LONGEST_MARK = 24
"""Largest number of bytes of one mark."""

GATHERED = 4096
"""Largest size of a packet that is read from shared memory [bytes]."""

LONGEST_BEAT = 64
"""Largest size of a heartbeat [bytes]."""

STILL = ("stamp", "frame_duration", "speed", "engine_speed", "chassis")
"""Channels that may stand while the car moves, or are counted apart from it."""


def marks_of(
    constants: Sequence[Mark], size: int, key: str, name: str = "constants"
) -> tuple[list[Field], dict[str, Any], tuple[tuple[int, bytes, bytes], ...]]:
    """Return the fields and values of a packet's marks, and those of which some bits count.

    Units: `size` [bytes].
    """
    parts, values, masked = [], {}, []
    for index, constant in enumerate(constants):
        data = _hexadecimal(constant.bytes, range(1, LONGEST_MARK + 1), f"{key}.{name}[{index}].bytes")
        if constant.offset + len(data) > size:
            raise ConfigError(
                f"{key}.{name}[{index}].offset: found {constant.offset}, allowed is up to {size - len(data)} for "
                f"{len(data)} bytes in a packet of {size} bytes"
            )
        if constant.mask is not None:
            masked.append((constant.offset, data, _mask_of(constant.mask, data, f"{key}.{name}[{index}].mask")))
            continue
        parts.append(Field(f"constant_{index}", constant.offset, f"S{len(data)}"))
        values[f"constant_{index}"] = data.rstrip(b"\0")  # as NumPy compares text
    if len(parts) + len(masked) > 7:
        raise ConfigError(f"{key}.{name}: found {len(parts) + len(masked)}, allowed are up to 7")
    return parts, values, tuple(masked)


def refuse_always_paused(table: SourcePacket) -> None:
    """Refuse marks of paused packets that every packet of the motion has."""
    running, paused = (_bits(marks) for marks in (table.constants, table.paused))
    if paused and paused.items() <= running.items():
        raise ConfigError(
            f"{KEY}.paused: found only what {KEY}.constants says of every packet; allowed is what differs"
        )


def _bits(marks: Sequence[Mark]) -> dict[tuple[int, int], bool]:
    """Return the bits that marks say, by byte and place."""
    out: dict[tuple[int, int], bool] = {}
    for mark in marks:
        data = bytes.fromhex(mark.bytes)
        counts = bytes([0xFF] * len(data)) if mark.mask is None else bytes.fromhex(mark.mask)
        for at, (byte, bits) in enumerate(zip(data, counts, strict=True)):
            out |= {(mark.offset + at, bit): bool(byte >> bit & 1) for bit in range(8) if bits >> bit & 1}
    return out


def _mask_of(text: str, data: bytes, key: str) -> bytes:
    """Return a mask; raise ConfigError unless it has as many bytes as `data` and every bit that is set there."""
    mask = _hexadecimal(text, range(len(data), len(data) + 1), key)
    if not any(mask):
        raise ConfigError(f"{key}: found {text!r}, in which no bit counts; allowed is a mask with at least one bit set")
    if any(byte & ~bits for byte, bits in zip(data, mask, strict=True)):
        raise ConfigError(
            f"{key}: found {text!r} beside the bytes {data.hex(' ')!r}, which have bits set that do not count; allowed "
            f"is a mask with these bits"
        )
    return mask


def reply_of(table: SourcePacket) -> tuple[bytes, Echo]:
    """Return the answer to a packet, and what it repeats of it; raise ConfigError if it cannot be."""
    answer = table.reply
    if answer is None:
        return b"", Echo()
    own = _hexadecimal(answer.bytes, range(LONGEST_REPLY + 1), f"{KEY}.reply.bytes")
    smallest = min((table.size,) if isinstance(table.size, int) else table.size)
    if answer.echo > smallest:
        raise ConfigError(f"{KEY}.reply.echo: found {answer.echo}, allowed are up to {smallest}, the packet's bytes")
    reply = bytes(answer.echo) + own * answer.repeat
    if not 0 < len(reply) <= LONGEST_REPLY:
        raise ConfigError(f"{KEY}.reply: found {len(reply)} bytes, allowed are 1 to {LONGEST_REPLY}")
    return reply, Echo(0, 0, answer.echo)


def heartbeat_of(table: SourcePacket) -> Heartbeat | None:
    """Return the datagram that the simulator has to hear, if any."""
    beat = table.heartbeat
    if beat is None:
        return None
    return Heartbeat(
        _hexadecimal(beat.bytes, range(1, LONGEST_BEAT + 1), f"{KEY}.heartbeat.bytes"), beat.port, beat.every_s
    )


def gather_of(table: SourcePacket, fits: Callable[[bytes], bool]) -> Gather | None:
    """Return how the packet is read from shared memory, if it is."""
    memory = table.memory
    if memory is None:
        return None
    key, total, state, ends = f"{KEY}.memory", 0, 0, list[int]()
    fields = [*table.fields, *(field for form in table.forms for field in form.fields)]
    for index, part in enumerate(memory.gather):
        where = f"{key}.gather[{index}]"
        if (part.index is None) != (part.stride is None):
            raise ConfigError(f"{where}: found one of index and stride, allowed are both or none")
        if (part.offset is None) == (part.name is None) or (part.name is None) != (memory.gather[0].name is None):
            found = f"found offset {part.offset} and name {part.name}"
            raise ConfigError(f"{where}: {found}, allowed is an offset in all parts, or a name in all")
        if part.optional and part.name is None:
            raise ConfigError(f"{where}.optional: found true with an offset, allowed is a name")
        if part.name is not None and part.index is not None:
            raise ConfigError(f"{where}.index: found beside a name, allowed is an offset")
        whole = part.size * (memory.samples if part.sampled else 1)
        if part.block is not None:
            _refuse_block(memory, part, where)
            total, state = total + part.size, state + whole
            ends.append(total)
            continue
        for name, at, size in (("offset", part.offset or 0, whole), ("index", part.index or 0, int(part.type[1]))):
            if at + size > memory.size:
                raise ConfigError(f"{where}.{name}: found {at}, allowed is up to {memory.size - size} for {size} bytes")
        if (part.sampled and memory.samples == 1) or (part.between and (part.sampled or part.size != 4)):
            found = f"found sampled = {str(part.sampled).lower()} and between {part.between}, {part.size} bytes"
            raise ConfigError(f"{where}: {found}; allowed are the first with samples, or the second for 4 bytes")
        for field in fields if part.optional else ():
            inside = total - int(field.type[1]) < field.offset < total + part.size
            if inside and field.type[0] != "f":
                found = f"found true for what the {field.type} at {field.offset} is read from"
                raise ConfigError(f"{where}.optional: {found}; allowed are floats, which are no number without it")
        total += part.size
        state += whole
        ends.append(total)
    if state > GATHERED:
        raise ConfigError(f"{key}.gather: found {state} bytes with all samples, allowed are {GATHERED}")
    if (memory.samples > 1) != (memory.sample_hz is not None) or (memory.samples > 1) != (memory.time is not None):
        found = f"found {memory.samples} with sample_hz {memory.sample_hz} and time {memory.time}"
        raise ConfigError(f"{key}.samples: {found}, allowed are 2 to 16 with both, or 1 with none")
    if total > GATHERED or table.size != total or table.longer:
        raise ConfigError(
            f"{KEY}.size: found {table.size}, allowed are the {total} bytes of {key}.gather, {GATHERED} at most"
        )
    counter_size = int(memory.type[1])
    for name, place in (("counter", memory.counter), ("end", memory.end), ("time", memory.time)):
        size = 8 if name == "time" else counter_size
        if place is not None and not any(
            end - part.size <= place <= end - size
            and not (part.sampled or part.optional or (part.block and name != "time"))
            for end, part in zip(ends, memory.gather, strict=True)
        ):
            words = (
                f"allowed is a place for {size} bytes in one part of gather, neither sampled, optional nor of a block"
            )
            raise ConfigError(f"{key}.{name}: found {place}, {words}")
    if table.cipher is not None or table.reply is not None or table.heartbeat is not None:
        raise ConfigError(f"{key}: found beside a cipher, a reply or a heartbeat, allowed is none of them")
    windows = tuple(
        Window(
            part.offset or 0,
            part.size,
            -1 if part.index is None else part.index,
            int(part.type[1]),
            part.stride or 0,
            part.name or "",
            part.sampled,
            part.between or "",
            part.block or "",
            part.optional,
        )
        for part in memory.gather
    )
    end = -1 if memory.end is None else memory.end
    counted = (memory.counter, counter_size, end, memory.odd)
    gather = Gather(memory.size, windows, *counted, memory.poll_hz, memory.still_s, fits, player=memory.player)
    if memory.sample_hz is None or memory.time is None:
        # What lists its variables is written in turn with others, and whole before it is counted.
        plain = end < 0 and not memory.odd and memory.gather[0].name is None
        return gather._replace(tail=_tail(table) if plain else 0)
    return gather._replace(samples=memory.samples, sample_hz=memory.sample_hz, time=memory.time)


def _refuse_block(memory: SharedMemory, part: SourceWindow, where: str) -> None:
    """Refuse a part of the player's block that cannot be one, or blocks that do not lie within their mapping."""
    player = memory.player
    if player is None:
        raise ConfigError(f"{where}.block: found {part.block}, allowed is none without {KEY}.memory.player")
    if part.offset is None or part.index is not None or part.sampled or part.between:
        raise ConfigError(f"{where}.block: found beside a name, an index or samples, allowed is an offset")
    for name, blocks, size in (("here", player.here, memory.size), ("there", player.there, player.size)):
        inside = max(blocks.id + 4, player.mark + 1 if name == "there" else 0)
        if blocks.first + blocks.stride * blocks.most > size or blocks.count + 4 > size or inside > blocks.stride:
            found = f"found {blocks.most} blocks of {blocks.stride} bytes from {blocks.first} on"
            raise ConfigError(f"{KEY}.memory.player.{name}: {found}, allowed is what lies within {size} bytes")
    blocks = player.here if part.block == "player" else player.there
    if not blocks.first <= part.offset <= blocks.first + blocks.stride - part.size:
        most = blocks.first + blocks.stride - part.size
        allowed = f"allowed are {blocks.first} to {most}, the first block's"
        raise ConfigError(f"{where}.offset: found {part.offset}, {allowed}")
    if max(player.begin, player.end) + 4 > player.size:
        found = f"found counters at {player.begin} and {player.end}"
        raise ConfigError(f"{KEY}.memory.player: {found}, allowed is up to {player.size - 4}")


def _tail(table: SourcePacket) -> int:
    """Return where the last number of the motion ends in the packet."""
    moving = (field for field in table.fields if field.channel and CHANNELS[field.channel].vector not in STILL)
    return max((field.offset + int(field.type[1]) for field in moving), default=0)


def cipher_of(table: SourcePacket, sizes: Sequence[int]) -> Cipher | None:
    """Return the cipher of the packets, if any.

    Units: `sizes` [bytes].
    """
    cipher = table.cipher
    if cipher is None:
        return None
    key = f"{KEY}.cipher"
    smallest, largest = (pick(sizes) for pick in (min, max))
    if largest > CIPHER_BYTES:
        raise ConfigError(f"{KEY}.size: found {largest} with a cipher, allowed are up to {CIPHER_BYTES} bytes then")
    if max(cipher.nonce) + 4 > smallest:
        raise ConfigError(
            f"{key}.nonce: found {max(cipher.nonce)}, allowed is up to {smallest - 4} for 4 bytes in a packet of "
            f"{smallest} bytes"
        )
    return Cipher(
        _hexadecimal(cipher.key, range(32, 33), f"{key}.key"),
        cipher.nonce,
        _hexadecimal(cipher.mask, range(8, 9), f"{key}.mask"),
    )


def _hexadecimal(text: str, sizes: range, key: str) -> bytes:
    """Return bytes; raise ConfigError unless they are as many as allowed."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = None
    if data is None or len(data) not in sizes:
        many = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        raise ConfigError(f"{key}: found {text!r}, allowed are {many} pairs of hexadecimal digits")
    return data


Matrix = npt.NDArray[np.float64]


class Axes(NamedTuple):
    """Matrices from a source's axes to the telemetry's; columns are the source's x, y, z."""

    world: Matrix
    car: Matrix
    car_directions: Matrix  # columns: the car's forward, right, down in the telemetry's car axes
    north: tuple[float, ...]  # in the telemetry's world axes

    def take(self, name: str, channel: Channel, table: SourcePacket) -> tuple[str, int, float]:
        """Return the telemetry field, the element and the sign that a channel fills."""
        turns = channel.vector in ("angular_velocity", "angular_acceleration")
        if channel.along or channel.vector == "angles":
            if not channel.along or (turns and table.rates == "angles"):
                return channel.vector, channel.element, 1.0
            direction = self.car_directions @ np.array(CAR[channel.along])
        elif channel.vector == "orientation" and channel.element == 0:
            return "orientation", 0, 1.0
        elif channel.vector in STILL:
            return channel.vector, channel.element, 1.0
        else:
            matrix = self.car if in_car(name, channel, table) else self.world
            axis = channel.element - (channel.vector == "orientation")
            direction = matrix[:, axis]
            if turns or channel.vector == "orientation":
                direction = direction * np.linalg.det(matrix)
        element = int(np.flatnonzero(np.round(direction))[0])
        sign = float(np.round(direction[element]))
        if channel.vector == "orientation":
            return "orientation", element + 1, sign
        return ("up" if channel.vector == "right" else channel.vector), element, sign


class Form(NamedTuple):
    """One of the source's packets."""

    packet: Packet
    largest: int
    role: str
    takes: tuple[Take, ...]
    masked: tuple[tuple[int, bytes, bytes], ...]  # offset, bytes and mask of marks of which some bits count

    def fits(self, data: bytes) -> bool:
        """Say whether a packet, deciphered, is one of this form."""
        sized = self.packet.size <= len(data) <= self.largest
        return sized and self.packet.identifies(data[: self.packet.size]) and not any(self._wrong_bits(data))

    def _wrong_bits(self, data: bytes) -> Iterator[int]:
        """Yield for each byte of the masked marks the bits that differ."""
        for at, own, mask in self.masked:
            yield from ((a ^ b) & bits for a, b, bits in zip(data[at:], own, mask, strict=False))

    def compiled(self, reply: bytes, echo: Echo) -> CompiledMessage:
        """Return the form as an intake takes it; only a motion is answered."""
        message = Message(self.packet, self.role, self.takes, largest=self.largest)
        if self.role == "motion":
            message = message._replace(reply=reply, echo=echo)
        compiled = message.compiled()
        return compiled._replace(constants=[*compiled.constants, *self.masked])


def axes_of(table: SourcePacket, channels: Mapping[str, SourceField]) -> Axes:
    """Return the matrices from the source's axes to the telemetry's."""
    heading = np.array(WORLD[table.heading_from], dtype=np.float64)
    down = np.array(WORLD["down"], dtype=np.float64)
    frame = np.stack([heading, np.cross(down, heading), down])  # rows: yaw 0, right of it, down
    world = frame @ directions(table.world, WORLD, "world").T
    own = directions(table.car, CAR, "car").T
    north = tuple((frame @ np.array(WORLD["north"])).tolist())
    if "quaternion_w" not in channels:
        return Axes(world, own, np.eye(3), north)
    if np.linalg.det(world) * np.linalg.det(own) < 0:
        raise ConfigError(
            f"{KEY}.car: found {list(table.car or ())} beside world {list(table.world or ())}, one of them "
            f"left-handed; allowed with a quaternion are both right-handed or both left-handed"
        )
    return Axes(world, world, world @ own.T, north)


def forms_of(table: SourcePacket, axes: Axes) -> Iterator[Form]:
    """Yield the source's packets: paused ones first, because they may have no other mark."""
    shapes = [(KEY, table.size, table.longer, table.fields, table.constants, "motion")]
    for index, form in enumerate(table.forms):
        if form.role == "motion":
            fields, constants = (*table.fields, *form.fields), (*table.constants, *form.constants)
            shapes.append((f"{KEY}.forms[{index}]", form.size, form.longer, fields, constants, form.name))
    for key, size, longer, _, constants, _ in shapes if table.paused else ():
        marks = (*table.paused, *(each for each in constants if not any(_share(each, mark) for mark in table.paused)))
        for smallest, largest in _sizes(size, longer, key):
            marks_of(table.paused, smallest, KEY, "paused")
            parts, values, masked = marks_of(marks, smallest, KEY)
            yield Form(_packet("paused", smallest, parts, values), largest, "other", (), masked)
    for key, size, longer, fields, constants, name in shapes:
        for smallest, largest in _sizes(size, longer, key):
            for block in range(1 if table.blocks is None else table.blocks.count):
                body = _form(table, axes, name, fields, constants, smallest, block, key)
                yield body._replace(largest=largest, role="motion")
    for index, form in enumerate(table.forms):
        key = f"{KEY}.forms[{index}]"
        for smallest, largest in _sizes(form.size, form.longer, key) if form.role != "motion" else ():
            body = _form(table, axes, form.name, form.fields, form.constants, smallest, None, key)
            yield body._replace(largest=largest, role=form.role)


def _share(one: Mark, other: Mark) -> bool:
    """Say whether two constants cover the same bytes, at least some."""
    ends = [constant.offset + len(constant.bytes.replace(" ", "")) // 2 for constant in (one, other)]
    return one.offset < ends[1] and other.offset < ends[0]


def _sizes(size: int | tuple[int, ...], longer: bool, key: str) -> list[tuple[int, int]]:
    """Return the smallest and the largest size of each form."""
    if isinstance(size, int):
        return [(size, LARGEST if longer else size)]
    if longer:
        raise ConfigError(f"{key}.longer: found true with several sizes, allowed is one size then")
    return [(each, each) for each in dict.fromkeys(size)]


def _form(
    table: SourcePacket,
    axes: Axes,
    name: str,
    fields: Sequence[SourceField],
    constants: Sequence[Mark],
    size: int,
    block: int | None,
    key: str,
) -> Form:
    """Return one packet of the source, with the takes that fill the telemetry; `block` is None if it has no blocks."""
    order = "<" if table.byte_order == "little" else ">"
    parts, fixed, masked = marks_of(constants, size, key)
    blocks = None if block is None else table.blocks
    if blocks is not None:
        kind = np.dtype(order + blocks.type)
        parts.append(Field("block", blocks.index, kind.str))
        fixed["block"] = block
    takes = []
    for index, field in enumerate(fields):
        moved = 0 if blocks is None or field.offset < blocks.first else (block or 0) * blocks.stride
        dtype = np.dtype(order + field.type)
        where = f"{key}.fields[{index}].offset"
        if field.offset + moved + dtype.itemsize > size:
            raise ConfigError(
                f"{where}: found {field.offset}{f' in block {block}' if moved else ''}, allowed is up to "
                f"{size - dtype.itemsize - moved} for {field.type} in a packet of {size} bytes"
            )
        label = field.name or field.channel or f"field_{index}"
        unit, limit = field.unit or "", math.inf
        if field.channel is not None:
            channel = CHANNELS[field.channel]
            units = UNITS[channel.quantity]
            factor = units[field.unit or next(iter(units))]
            unit = field.unit or next(iter(units))
            telemetry, element, sign = axes.take(field.channel, channel, table)
            scale = sign * (field.scale * factor)
            limit = (LIMITS[channel.quantity] + abs(field.bias * factor)) / abs(scale)
            bias = sign * field.bias * factor if field.bias else -0.0
            optional = field.optional or channel.optional
            takes.append(Take(telemetry, element, label, scale=scale, optional=optional, bias=bias))
        parts.append(Field(label, field.offset + moved, dtype.str, unit, field.limit or limit))
    return Form(_packet(name, size, parts, fixed, key), size, "motion", tuple(takes), masked)


def _packet(name: str, size: int, parts: Iterable[Field], constants: Mapping[str, Any], key: str = KEY) -> Packet:
    try:
        return Packet(name, size, parts, constants)
    except ValueError as error:
        raise ConfigError(f"{key}.fields: {error}; allowed are fields that do not share bytes or names") from error
