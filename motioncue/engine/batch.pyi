from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.core.interfaces import Algorithm
from motioncue.output.actuation import OutputChain
from motioncue.safety.limiter import CueLimits

__all__ = ["Batch"]

@disjoint_base
class Batch:
    def __init__(
        self, algorithms: Iterable[Algorithm], limits: Iterable[CueLimits] = (), chains: Iterable[OutputChain] = ()
    ) -> None: ...
    @property
    def parked(self) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    @property
    def unconstrained(self) -> NDArray[np.bool_]: ...
    def reset(self, rigs: Iterable[int] | None = None) -> None: ...
    def step(
        self, motion: NDArray[np.void], cue: NDArray[np.void], actuation: NDArray[np.void] | None = None
    ) -> None: ...
    def process(self, motion: NDArray[np.void], out: NDArray[np.void] | None = None) -> NDArray[np.void]: ...
