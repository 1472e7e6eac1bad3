from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from motioncue.core.interfaces import Algorithm
from motioncue.platforms.kinematics import Kinematics

__all__ = ["MOST_BEATS", "MOST_KNOTS", "MOST_ROWS", "NODE_COUNT", "Predictive"]

MOST_BEATS: int
MOST_KNOTS: int
MOST_ROWS: int
NODE_COUNT: int

@disjoint_base
class Predictive(Algorithm):
    def __init__(
        self,
        groups: Sequence[tuple[Sequence[int], Sequence[int], Any]],
        lengths: Sequence[int],
        rate_hz: float,
        period: int,
        gain: float,
        organs_s: Sequence[float],
        guard: npt.NDArray[np.float64],
        geared: tuple[
            Kinematics,
            npt.NDArray[np.float64],
            npt.NDArray[np.float64],
            npt.NDArray[np.float64],
            npt.NDArray[np.float64],
        ]
        | None,
        iterations: int,
        outlook: Mapping[str, Any],
        tilt: tuple[float, float, float],
        softness: tuple[float, float],
    ) -> None: ...
    @property
    def counts(self) -> dict[str, int]: ...
