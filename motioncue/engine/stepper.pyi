from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from motioncue.engine.retune import Settings

__all__ = ["Stepper"]

@final
class Stepper:
    def __new__(
        cls,
        settings: Settings,
        motion: NDArray[np.void] | None = None,
        cue: NDArray[np.void] | None = None,
        *,
        actuation: NDArray[np.void] | None = None,
        ahead: NDArray[np.void] | None = None,
        tune: Callable[[Any, Callable[[Settings], None]], None] | None = None,
    ) -> Self: ...
    @property
    def motion(self) -> NDArray[np.void]: ...
    @property
    def cue(self) -> NDArray[np.void]: ...
    @property
    def actuation(self) -> NDArray[np.void] | None: ...
    @property
    def ahead(self) -> NDArray[np.void] | None: ...
    @property
    def period_ns(self) -> int: ...
    parked: bool
    @property
    def profile(self) -> Any: ...
    def step(self) -> bool: ...
    def reset(self) -> None: ...
    def retune(self, change: Any) -> None: ...
