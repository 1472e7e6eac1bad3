import numpy as np
import numpy.typing as npt
from typing_extensions import Self, disjoint_base

__all__ = ["HEAD_DTYPE", "KINDS", "PLACE_DTYPE", "RecordRing", "record_places"]

HEAD_DTYPE: np.dtype[np.void]
KINDS: dict[str, int]
PLACE_DTYPE: np.dtype[np.void]

def record_places(data: bytes | bytearray | memoryview) -> npt.NDArray[np.void]: ...

@disjoint_base
class RecordRing:
    def __new__(cls, room: int) -> Self: ...
    def write(self, kind: int, time: int, data: bytes | bytearray | memoryview) -> bool: ...
    def take(self) -> bytes: ...
    @property
    def waiting(self) -> int: ...
    @property
    def lost(self) -> int: ...
