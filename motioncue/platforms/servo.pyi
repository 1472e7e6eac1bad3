from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from motioncue.platforms.settings import ActuatorBounds

__all__ = ["Servos"]

@disjoint_base
class Servos:
    def __new__(
        cls,
        bounds: Sequence[ActuatorBounds],
        dt: float,
        lag_s: float,
        damping: float | None = None,
        dead_time_s: float = 0.0,
        friction: float = 0.0,
    ) -> Self: ...
    @property
    def count(self) -> int: ...
    @property
    def dt(self) -> float: ...
    def reset(self) -> None: ...
    def process(self, positions: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    def stats(self) -> dict[str, npt.NDArray[np.float64]]: ...
