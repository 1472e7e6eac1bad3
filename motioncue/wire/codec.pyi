from collections.abc import Sequence
from typing import NamedTuple, Self

from numpy.typing import DTypeLike
from typing_extensions import disjoint_base

__all__ = ["DecimalSpec", "Number", "Table", "longest"]

class DecimalSpec(NamedTuple):
    digits: int = 0
    width: int = 0
    zeros: bool = False
    plus: bool = False
    def written(self, number: float) -> str: ...

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
    low: float = ...
    high: float = ...
    wrap: float = 0.0
    more: bool = False
    spec: DecimalSpec | None = None

@disjoint_base
class Table:
    def __new__(
        cls,
        size: int,
        numbers: Sequence[Number],
        text: bool = False,
    ) -> Self: ...
    @property
    def n(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def largest(self) -> int: ...
    @property
    def text(self) -> bool: ...

def longest(n: Number) -> int: ...
