from collections.abc import Sequence

from numpy.typing import DTypeLike
from typing_extensions import Self, disjoint_base

__all__ = ["Table"]

@disjoint_base
class Table:
    def __new__(
        cls,
        size: int,
        rows: Sequence[
            tuple[int, DTypeLike, int, float, float, float]
            | tuple[int, DTypeLike, int, float, float, float, bool]
            | tuple[int, DTypeLike, int, float, float, float, bool, float]
            | tuple[int, DTypeLike, int, float, float, float, bool, float, bool]
        ],
    ) -> Self: ...
    @property
    def n(self) -> int: ...
    @property
    def size(self) -> int: ...
