from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

from motioncue.kernels.limiter import CueLimits

__all__ = ["OutputChain", "OutputLimits", "Stage", "UpVector"]

@disjoint_base
class Stage:
    fills: ClassVar[tuple[str, ...]]
    def shares(self) -> dict[str, float]: ...

class UpVector(Stage):
    def __new__(cls) -> Self: ...

@disjoint_base
class OutputLimits(Stage):
    def __new__(cls, limits: CueLimits) -> Self: ...
    @property
    def limits(self) -> CueLimits: ...
    def shares(self) -> dict[str, float]: ...

@disjoint_base
class OutputChain:
    def __new__(cls, stages: Iterable[Stage] = ()) -> Self: ...
    @property
    def stages(self) -> tuple[Stage, ...]: ...
    @property
    def fills(self) -> tuple[str, ...]: ...
    def reset(self) -> None: ...
    def process(self, cue: NDArray[np.void]) -> NDArray[np.void]: ...
