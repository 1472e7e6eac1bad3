from collections.abc import Callable, Mapping
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.core.clock import Clock
from motioncue.engine.tick import Settings
from motioncue.frames.intake import Intake
from motioncue.wire.checksum import Seal
from motioncue.wire.codec import Table

__all__ = ["Feeder", "Relay", "Stepper"]

@disjoint_base
class Feeder:
    def __new__(cls, intake: Intake, clock: Clock) -> Self: ...
    def feed(self, package: Any) -> bool: ...
    def stop(self) -> None: ...

@disjoint_base
class Cued:
    parked: bool
    @property
    def profile(self) -> Any: ...
    def reset(self) -> None: ...
    def retune(self, change: Any) -> None: ...

@final
class Stepper(Cued):
    def __new__(
        cls,
        settings: Settings,
        motion: NDArray[np.void] | None = None,
        cue: NDArray[np.void] | None = None,
        *,
        actuation: NDArray[np.void] | None = None,
        ahead: NDArray[np.void] | None = None,
        chassis: NDArray[np.void] | None = None,
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
    def chassis(self) -> NDArray[np.void] | None: ...
    @property
    def period_ns(self) -> int: ...
    def step(self) -> bool: ...

@final
class Relay(Cued):
    def __new__(
        cls,
        source: Intake,
        settings: Settings,
        packets: Mapping[str, tuple[Table, bytes, Seal | None]],
        clock: Clock,
        *,
        tune: Callable[[Any, Callable[[Settings], None]], None] | None = None,
        claims: object = None,
    ) -> Self: ...
    @property
    def packets(self) -> dict[str, NDArray[np.uint8]]: ...
    @property
    def source(self) -> Intake: ...
    @property
    def reply(self) -> bytes: ...
    def step(self, package: bytes | bytearray | memoryview) -> bool: ...
