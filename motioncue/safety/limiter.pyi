from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.core.interfaces import Stage

__all__ = ["CueLimits", "Limiter", "OutputLimits"]

@disjoint_base
class Limiter:
    def __init__(
        self,
        value: float,
        rate: float | None = None,
        acceleration: float | None = None,
        jerk: float | None = None,
        *,
        dt: float,
    ) -> None: ...
    def retune(
        self,
        value: float,
        rate: float | None = None,
        acceleration: float | None = None,
        jerk: float | None = None,
        *,
        dt: float,
        fade_s: float,
    ) -> None: ...
    @property
    def easing(self) -> bool: ...
    def process(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]: ...

@disjoint_base
class CueLimits:
    def __new__(cls) -> Self: ...
    def add(
        self,
        channel: str,
        value: float,
        rate: float | None = None,
        acceleration: float | None = None,
        jerk: float | None = None,
        *,
        dt: float,
    ) -> None: ...
    def process(self, cue: NDArray[np.void]) -> None: ...
    def shares(self) -> dict[str, float]: ...

@disjoint_base
class OutputLimits(Stage):
    def __new__(cls, limits: CueLimits) -> Self: ...
    @property
    def limits(self) -> CueLimits: ...
    def shares(self) -> dict[str, float]: ...
