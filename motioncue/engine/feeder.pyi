from typing import Any

from typing_extensions import Self, disjoint_base

from motioncue.core.clock import Clock
from motioncue.frames.intake import Intake

__all__ = ["Feeder"]

@disjoint_base
class Feeder:
    def __new__(cls, intake: Intake, clock: Clock) -> Self: ...
    def feed(self, package: Any) -> bool: ...
    def stop(self) -> None: ...
