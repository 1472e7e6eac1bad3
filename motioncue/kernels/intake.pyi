from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

from motioncue.kernels.body import BodyStage
from motioncue.kernels.codec import Table
from motioncue.kernels.stages import TelemetryStages

__all__ = ["Intake"]

@disjoint_base
class Intake:
    def __new__(
        cls,
        messages: Sequence[
            tuple[Table, tuple[int, int], Sequence[tuple[int, bytes]], str, bytes, tuple[int, int, int]]
        ],
        stage: BodyStage,
        stages: TelemetryStages | None = None,
        *,
        unknown_reply: bytes = b"",
        patience_s: float = 1.0,
        reply_port: int = 0,
    ) -> Self: ...
    @property
    def reply_port(self) -> int: ...
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
    def others(self) -> int: ...
    @property
    def repeats(self) -> int: ...
    @property
    def sessions(self) -> int: ...
    @property
    def replies(self) -> int: ...
    @property
    def events_lost(self) -> int: ...
    @property
    def rejected(self) -> dict[str, int]: ...
