from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = ["KINDS", "Kinematics"]

KINDS: dict[str, int]

@disjoint_base
class Kinematics:
    def __new__(cls, actuators: Sequence[Mapping[str, Any]]) -> Self: ...
    @property
    def count(self) -> int: ...
    @property
    def kinds(self) -> tuple[str, ...]: ...
    def inverse(self, poses: npt.ArrayLike, *, held: bool = False) -> npt.NDArray[np.float64]: ...
    def jacobian(self, poses: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    def forward(
        self, positions: npt.ArrayLike, start: Sequence[float] | npt.NDArray[np.float64] | None = None
    ) -> npt.NDArray[np.float64]: ...
