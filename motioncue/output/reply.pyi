from collections.abc import Sequence
from enum import IntFlag
from typing import Any, NamedTuple

from motioncue.wire.checksum import Seal
from motioncue.wire.codec import Table

__all__ = ["CLAIMS", "Claimed", "Expected", "Platform", "Replies"]

CLAIMS: dict[str, int]

class Platform(IntFlag):
    UNREADY = 32
    UNENGAGED = 64
    FAULTY = 128
    STOPPED = 256
    SILENT = 512
    STANDS = 1024

class Claimed(NamedTuple):
    says: str
    number: int = 0
    mask: int = 0xFFFFFFFF
    among: tuple[int, ...] = ()
    scale: float = 1.0
    bias: float = 0.0
    low: float = ...
    high: float = ...
    at: int = 0

class Expected(NamedTuple):
    table: Table | None
    size: int
    text: bytes
    marks: list[tuple[int, bytes]]
    seal: Seal | None
    claims: list[Claimed]
    doubted: bool = False
    lost_s: float | None = None

class Replies:
    def __init__(self, expected: Sequence[Expected] = (), actuators: int = 0) -> None: ...
    def hear(self, data: bytes, now_ns: int, stream: bool = False) -> None: ...
    def flags(self, now_ns: int) -> int: ...
    @property
    def positions(self) -> list[float]: ...
    def said(self) -> dict[str, Any]: ...
    def text(self) -> str: ...
