from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.core.interfaces import Algorithm
from motioncue.cueing.optimal.settings import Optimal

__all__ = ["OptimalWashout"]

@disjoint_base
class OptimalWashout(Algorithm):
    def __init__(
        self,
        settings: Optimal,
        laws: NDArray[np.float64],
        limits: Sequence[tuple[float, float]],
        organs_s: tuple[float, float],
        rate_hz: float,
    ) -> None: ...
