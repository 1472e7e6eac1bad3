from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from motioncue.kernels.actuation import OutputChain
from motioncue.kernels.algorithm import Algorithm
from motioncue.kernels.limiter import CueLimits

__all__ = ["Stepper"]

@final
class Stepper:
    def __new__(
        cls,
        algorithm: Algorithm,
        limits: CueLimits,
        motion: NDArray[np.void] | None = None,
        cue: NDArray[np.void] | None = None,
        *,
        period_ns: int,
        chain: OutputChain | None = None,
        actuation: NDArray[np.void] | None = None,
    ) -> Self: ...
    @property
    def motion(self) -> NDArray[np.void]: ...
    @property
    def cue(self) -> NDArray[np.void]: ...
    @property
    def actuation(self) -> NDArray[np.void] | None: ...
    @property
    def period_ns(self) -> int: ...
    def step(self) -> bool: ...
    def reset(self) -> None: ...
