from collections.abc import Sequence
from typing import Any

from typing_extensions import Self, disjoint_base

from motioncue.core.interfaces import Algorithm
from motioncue.output.actuation import OutputChain
from motioncue.safety.limiter import CueLimits

__all__ = ["Cueing", "Settings"]

@disjoint_base
class Settings:
    def __new__(
        cls,
        algorithm: Algorithm,
        limits: CueLimits | None = None,
        chains: Sequence[OutputChain] = (),
        *,
        period_ns: int,
        bridge: str = "hold",
        hold_s: float = 0.1,
        fade_s: float = 1.0,
        engage_s: float = 0.0,
        leave_s: tuple[float, float] = (1e9, 1e9),
        profile: Any = None,
    ) -> Self: ...
    @property
    def algorithm(self) -> Algorithm: ...
    @property
    def limits(self) -> CueLimits: ...
    @property
    def chains(self) -> tuple[OutputChain, ...]: ...
    @property
    def period_ns(self) -> int: ...
    @property
    def profile(self) -> Any: ...
    @property
    def number(self) -> int: ...

@disjoint_base
class Cueing:
    def __new__(cls, settings: Settings) -> Self: ...
    def retune(self, settings: Settings) -> None: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def retunes(self) -> int: ...
