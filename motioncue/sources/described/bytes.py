"""Bytes in a source's description: marks, answer, heartbeat, cipher, parts of shared memory."""

from collections.abc import Callable, Sequence
from typing import Any

from motioncue.errors import ConfigError
from motioncue.sources.described.channels import KEY
from motioncue.wire.cipher import CIPHER_BYTES, Cipher
from motioncue.wire.gather import Gather, Window
from motioncue.wire.messages import Echo, Heartbeat
from motioncue.wire.packet import Field
from motioncue.wire.source_description import Mark, SourcePacket

__all__ = ["cipher_of", "gather_of", "heartbeat_of", "marks_of", "refuse_always_paused", "reply_of"]

LONGEST_REPLY = 512
"""Largest size of an answer [bytes]."""

LONGEST_MARK = 24
"""Largest number of bytes of one mark."""

GATHERED = 4096
"""Largest size of a packet that is read from shared memory [bytes]."""

LONGEST_BEAT = 64
"""Largest size of a heartbeat [bytes]."""


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
    key, total, ends = f"{KEY}.memory", 0, []
    for index, part in enumerate(memory.gather):
        where = f"{key}.gather[{index}]"
        if (part.index is None) != (part.stride is None):
            raise ConfigError(f"{where}: found one of index and stride, allowed are both or none")
        for name, at, size in (("offset", part.offset, part.size), ("index", part.index or 0, int(part.type[1]))):
            if at + size > memory.size:
                raise ConfigError(f"{where}.{name}: found {at}, allowed is up to {memory.size - size} for {size} bytes")
        total += part.size
        ends.append(total)
    if total > GATHERED or table.size != total or table.longer:
        raise ConfigError(
            f"{KEY}.size: found {table.size}, allowed are the {total} bytes of {key}.gather, {GATHERED} at most"
        )
    size = int(memory.type[1])
    for name, place in (("counter", memory.counter), ("end", memory.end)):
        if place is not None and not any(
            end - part.size <= place <= end - size for end, part in zip(ends, memory.gather, strict=True)
        ):
            raise ConfigError(f"{key}.{name}: found {place}, allowed is a place in one part of gather for {size} bytes")
    if table.cipher is not None or table.reply is not None or table.heartbeat is not None:
        raise ConfigError(f"{key}: found beside a cipher, a reply or a heartbeat, allowed is none of them")
    windows = tuple(
        Window(part.offset, part.size, -1 if part.index is None else part.index, int(part.type[1]), part.stride or 0)
        for part in memory.gather
    )
    end = -1 if memory.end is None else memory.end
    return Gather(memory.size, windows, memory.counter, size, end, memory.odd, memory.poll_hz, memory.still_s, fits)


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
