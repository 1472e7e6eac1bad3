from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.core.interfaces import Stage

__all__ = ["OutputChain", "UpVector"]

class UpVector(Stage):
    def __new__(cls) -> Self: ...

@disjoint_base
class OutputChain:
    def __new__(cls, stages: Iterable[Stage] = ()) -> Self: ...
    @property
    def stages(self) -> tuple[Stage, ...]: ...
    @property
    def fills(self) -> tuple[str, ...]: ...
    def reset(self) -> None: ...
    def process(self, cue: NDArray[np.void]) -> NDArray[np.void]: ...
