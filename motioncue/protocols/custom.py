"""A platform without built-in support: its packet is described by the profile's ``[output.packet]``.

The packet is sent to ``output.motion`` at every tick, like a built-in one.
"""

from collections.abc import Mapping

import numpy as np

from motioncue.errors import ConfigError, not_among
from motioncue.kernels.codec import Number, Table
from motioncue.kernels.seal import CHECKSUMS, Seal
from motioncue.motion import ACTUATION
from motioncue.packets import Actuated, PacketTable
from motioncue.protocols.layout import ACTUATION_PLACES, Encoding, Field, Packet

__all__ = ["CHANNELS", "MAX_RATE_HZ", "encoding"]

MAX_RATE_HZ = 2000.0
"""The highest rate that a profile may set [Hz]."""

CHANNELS = tuple(channel.name for channel in ACTUATION if channel.name != "time")
"""Channels that a field can carry."""


def encoding(table: PacketTable, actuators: Mapping[str, Actuated] | None = None) -> Encoding:
    """Return how the packet that a profile describes is encoded.

    Parameters
    ----------
    table : PacketTable
        The packet's table in the profile.
    actuators : mapping of str to Actuated, optional
        Those of the profile's platform, by name.

    Raises
    ------
    ConfigError
        If parts overlap or do not fit, a channel does not exist, or bytes are not hexadecimal; names the part.
    """
    order = "<" if table.byte_order == "little" else ">"
    parts: list[Field] = []
    numbers = []
    channels = set()
    for index, field in enumerate(table.fields):
        name = f"fields[{index}]"
        actuator = (actuators or {}).get(field.channel)
        channel = actuator.channel if actuator is not None else field.channel
        if channel not in CHANNELS:
            raise ConfigError(f"output.packet.{name}.channel: {not_among(channel, (*(actuators or {}), *CHANNELS))}")
        if actuator is None and field.measure != "position":
            raise ConfigError(
                f"output.packet.{name}.measure: found {field.measure!r}, which is for actuators of a platform"
            )
        if not field.scale:
            raise ConfigError(f"output.packet.{name}.scale: found 0, allowed is any other number")
        dtype = np.dtype(order + field.type)
        parts.append(Field(name, field.offset, dtype.str))
        channels.add(channel)
        scale, bias = field.scale, field.bias
        if actuator is not None and field.measure == "share":
            scale /= actuator.high - actuator.low
            bias -= scale * actuator.low
        elif actuator is not None and field.measure == "stroke":
            bias -= scale * actuator.neutral
        place = ACTUATION_PLACES[channel]
        numbers.append(Number(field.offset, dtype, place, 1.0 / scale, absent=field.absent, bias=bias))
    constants = {}
    for index, constant in enumerate(table.constants):
        name = f"constants[{index}]"
        constants[name] = _bytes(constant.bytes, f"output.packet.{name}.bytes")
        parts.append(Field(name, constant.offset, f"V{len(constants[name])}"))
    counter = checksum = None
    if table.counter is not None:
        counter = table.counter.offset, int(table.counter.type[1:])
        parts.append(Field("counter", counter[0], f"V{counter[1]}"))
    if table.checksum is not None:
        c = table.checksum
        end = c.offset if c.end is None else c.end
        parts.append(Field("checksum", c.offset, f"V{CHECKSUMS[c.kind]}"))
        over_itself = c.first < c.offset + CHECKSUMS[c.kind] and c.offset < end
        if not c.first < end <= table.size or over_itself:
            raise ConfigError(
                f"output.packet.checksum: found bytes {c.first} to {end}, allowed are one or more of the packet's "
                f"{table.size}, the checksum's own at {c.offset} not among them"
            )
        checksum = c.kind, c.offset, c.first, end
    try:
        packet = Packet("output.packet", table.size, parts)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    template = bytearray(table.size)
    for name, data in constants.items():
        start = packet.fields[name].offset
        template[start : start + len(data)] = data
    seal = Seal(counter, checksum, order == ">")
    return Encoding(Table(table.size, numbers), bytes(template), seal, frozenset(channels))


def _bytes(digits: str, key: str) -> bytes:
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = b""
    if not data:
        raise ConfigError(f"{key}: found {digits!r}, allowed are pairs of hexadecimal digits, one or more")
    return data
