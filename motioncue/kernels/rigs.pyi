from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.kernels.limiter import CueLimits
from motioncue.kernels.washout import ClassicalWashout

__all__ = ["Washouts"]

@disjoint_base
class Washouts:
    def __init__(self, washouts: Iterable[ClassicalWashout], limits: Iterable[CueLimits] = ()) -> None: ...
    def __len__(self) -> int: ...
    def reset(self, rigs: Iterable[int] | None = None) -> None: ...
    def step(self, motion: NDArray[np.void], cue: NDArray[np.void]) -> None: ...
    def process(self, motion: NDArray[np.void], out: NDArray[np.void] | None = None) -> NDArray[np.void]: ...
