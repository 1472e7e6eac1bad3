from typing import NamedTuple

from typing_extensions import disjoint_base

__all__ = ["CHECKSUMS", "CheckedBytes", "CheckedText", "Crc", "Seal", "SealedNumber", "SealedState", "Sum"]

class Sum(NamedTuple):
    bits: int
    exclusive: bool = False
    final: int = 0
    negated: bool = False

class Crc(NamedTuple):
    bits: int
    polynomial: int
    initial: int
    reflected: bool
    final: int

CHECKSUMS: dict[str, Sum | Crc]

class SealedNumber(NamedTuple):
    offset: int
    size: int
    big: bool = False
    unit_ns: int = 1_000_000

class SealedState(NamedTuple):
    offset: int
    size: int
    big: bool
    words: tuple[int, ...]

class CheckedBytes(NamedTuple):
    kind: str
    offset: int
    first: int
    end: int
    big: bool = False
    extra: bytes = b""

class CheckedText(NamedTuple):
    kind: str
    tail: int
    first: int = 0
    end: int = 0
    lower: bool = False
    extra: bytes = b""

@disjoint_base
class Seal:
    def __init__(
        self,
        counter: SealedNumber | None = None,
        checksum: CheckedBytes | CheckedText | None = None,
        clock: SealedNumber | None = None,
        state: SealedState | None = None,
    ) -> None: ...
    def sealed(self, packet: bytes | bytearray | memoryview, now_ns: int = 0, state: int = 0) -> bytes: ...
