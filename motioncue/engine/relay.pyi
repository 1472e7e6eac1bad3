from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from motioncue.core.clock import Clock
from motioncue.engine.retune import Settings
from motioncue.frames.intake import Intake
from motioncue.wire.checksum import Seal
from motioncue.wire.codec import Table

__all__ = ["Relay"]

@final
class Relay:
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
    parked: bool
    @property
    def reply(self) -> bytes: ...
    def step(self, package: bytes | bytearray | memoryview) -> bool: ...
    @property
    def profile(self) -> Any: ...
    def reset(self) -> None: ...
    def retune(self, change: Any) -> None: ...
