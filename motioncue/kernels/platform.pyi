from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = ["KINDS", "Kinematics"]

KINDS: dict[str, int]

@disjoint_base
class Kinematics:
    def __init__(self, actuators: Sequence[Mapping[str, Any]]) -> None: ...
    @property
    def count(self) -> int: ...
    def inverse(self, poses: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    def jacobian(self, poses: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    def forward(
        self, positions: npt.ArrayLike, start: Sequence[float] | npt.NDArray[np.float64] | None = None
    ) -> npt.NDArray[np.float64]: ...
