import socket
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from motioncue.intake.intake import Intake
from motioncue.kernels.actuation import OutputChain
from motioncue.kernels.algorithm import Algorithm
from motioncue.kernels.clock import Clock
from motioncue.kernels.codec import Table
from motioncue.kernels.limiter import CueLimits
from motioncue.kernels.seal import Seal

__all__ = ["Emitter"]

@disjoint_base
class Emitter:
    def __init__(
        self,
        intake: Intake,
        algorithm: Algorithm,
        clock: Clock,
        *,
        period_ns: int,
        limits: CueLimits | None = None,
        chains: Sequence[OutputChain] = (),
        bridge: str = "hold",
        hold_s: float = 0.1,
        fade_s: float = 1.0,
        trace: int = 0,
    ) -> None: ...
    def add_output(
        self,
        sock: socket.socket,
        address: tuple[str, int, int],
        table: Table,
        packet: bytes,
        seal_with: Seal | None = None,
        output: int = 0,
    ) -> None: ...
    def run(self, ticks: int = -1, until_ns: int = 0x7FFFFFFFFFFFFFFF) -> None: ...
    def prepare_thread(self, core: int | None = None, lock_memory: bool = False) -> dict[str, bool]: ...
    def engage(self) -> None: ...
    def hold(self) -> None: ...
    def park(self) -> None: ...
    def stop(self) -> None: ...
    def transitions(self) -> list[dict[str, Any]]: ...
    @property
    def state(self) -> str: ...
    @property
    def latency_s(self) -> float: ...
    def newest(self) -> NDArray[np.void]: ...
    @property
    def trace(self) -> NDArray[np.void]: ...
    def outputs(self) -> list[dict[str, int]]: ...
    def counts(self) -> dict[str, float]: ...
    def lateness_us(self) -> dict[str, float]: ...
