import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = ["VERSION", "Solver", "missing"]

VERSION: str

def missing() -> str: ...

@disjoint_base
class Solver:
    def __init__(
        self,
        hessian: npt.NDArray[np.float64],
        rows: npt.NDArray[np.float64],
        softness: npt.NDArray[np.float64],
        iterations: int,
    ) -> None: ...
    def pose(
        self, linear: npt.NDArray[np.float64], low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
    ) -> None: ...
    def solve(self) -> bool: ...
    @property
    def solution(self) -> npt.NDArray[np.float64]: ...
    @property
    def iterations(self) -> int: ...
