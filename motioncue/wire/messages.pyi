from collections.abc import Sequence
from typing import NamedTuple

from motioncue.wire.codec import Table

__all__ = ["CompiledMessage", "Echo", "Heartbeat"]

class Echo(NamedTuple):
    start: int = 0
    to: int = 0
    size: int = 0

class Heartbeat(NamedTuple):
    data: bytes
    port: int
    every_s: float

class CompiledMessage(NamedTuple):
    table: Table
    smallest: int
    largest: int
    constants: Sequence[tuple[int, bytes] | tuple[int, bytes, bytes]]
    role: str
    reply: bytes = b""
    echo: Echo = ...
