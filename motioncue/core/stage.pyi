from typing import ClassVar

from typing_extensions import disjoint_base

__all__ = ["Stage"]

@disjoint_base
class Stage:
    fills: ClassVar[tuple[str, ...]]
    def shares(self) -> dict[str, float]: ...
