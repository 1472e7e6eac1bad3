from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import DTypeLike
from typing_extensions import Self, disjoint_base

__all__ = ["Number", "Table"]

class Number(NamedTuple):
    offset: int
    dtype: DTypeLike
    place: int
    scale: float = 1.0
    limit: float = ...
    absent: float = 0.0
    optional: bool = False
    bias: float = -0.0
    whole: bool = False

@disjoint_base
class Table:
    def __new__(
        cls,
        size: int,
        numbers: Sequence[Number],
    ) -> Self: ...
    @property
    def n(self) -> int: ...
    @property
    def size(self) -> int: ...
