import numpy as np
from typing_extensions import disjoint_base

__all__ = ["HEAD_DTYPE", "KINDS", "RecordRing"]

HEAD_DTYPE: np.dtype[np.void]
KINDS: dict[str, int]

@disjoint_base
class RecordRing:
    def __init__(self, room: int) -> None: ...
    def write(self, kind: int, time: int, data: bytes | bytearray | memoryview) -> bool: ...
    def take(self) -> bytes: ...
    @property
    def lost(self) -> int: ...
