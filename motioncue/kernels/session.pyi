from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

from motioncue.kernels.body import BodyStage
from motioncue.kernels.codec import Table

__all__ = ["Session"]

@disjoint_base
class Session:
    def __new__(
        cls,
        messages: Sequence[tuple[Table, int, str, bytes]],
        unknown_reply: bytes,
        stage: BodyStage,
        *,
        patience_s: float = 1.0,
    ) -> Self: ...
    def watch(
        self,
        *,
        acceleration: float = 80.0,
        rate: float = 10.5,
        frozen_s: float = 1.0,
        slack_s: float = 0.1,
        frame_jump_s: float = 2.0,
    ) -> None: ...
    def begin(self, now_ns: int) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview, now_ns: int) -> tuple[bytes, bool]: ...
    def newest(self) -> NDArray[np.void] | None: ...
    def events(self) -> list[tuple[int, str, int]]: ...
    @property
    def discontinuities(self) -> dict[str, int]: ...
    @property
    def replies_lost(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def sessions(self) -> int: ...
    @property
    def replies(self) -> int: ...
    @property
    def events_lost(self) -> int: ...
    @property
    def rejected(self) -> dict[str, int]: ...
