import numpy as np
from typing_extensions import Self, disjoint_base

__all__ = ["HEAD_DTYPE", "KINDS", "RecordRing"]

HEAD_DTYPE: np.dtype[np.void]
KINDS: dict[str, int]

@disjoint_base
class RecordRing:
    def __new__(cls, room: int) -> Self: ...
    def write(self, kind: int, time: int, data: bytes | bytearray | memoryview) -> bool: ...
    def take(self) -> bytes: ...
    @property
    def lost(self) -> int: ...
