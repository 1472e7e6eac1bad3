from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from motioncue.intake.intake import Intake
from motioncue.kernels.actuation import OutputChain
from motioncue.kernels.algorithm import Algorithm
from motioncue.kernels.clock import Clock
from motioncue.kernels.codec import Table
from motioncue.kernels.limiter import CueLimits
from motioncue.kernels.seal import Seal

__all__ = ["Relay"]

@final
class Relay:
    def __new__(
        cls,
        source: Intake,
        algorithm: Algorithm,
        limits: CueLimits,
        packets: Mapping[str, tuple[Table, bytes, Seal | None]],
        chain: OutputChain,
        clock: Clock,
    ) -> Self: ...
    @property
    def packets(self) -> dict[str, NDArray[np.uint8]]: ...
    @property
    def source(self) -> Intake: ...
    @property
    def reply(self) -> bytes: ...
    def step(self, package: bytes | bytearray | memoryview) -> bool: ...
    def reset(self) -> None: ...
