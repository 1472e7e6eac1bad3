import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = ["KINDS", "Bridge"]

KINDS: dict[str, int]

@disjoint_base
class Bridge:
    def __init__(self, kind: str, *, fade_s: float = 1.0) -> None: ...
    def reset(self) -> None: ...
    def process(
        self, frames: NDArray[np.void], ticks: NDArray[np.int64], out: NDArray[np.void] | None = None
    ) -> NDArray[np.void]: ...
    @property
    def interval_s(self) -> float: ...
    @property
    def latency_s(self) -> float: ...
