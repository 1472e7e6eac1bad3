from collections.abc import Sequence

from typing_extensions import Self, disjoint_base

__all__ = ["Clock", "FakeClock", "MonotonicClock", "now_ns"]

def now_ns() -> int: ...

@disjoint_base
class Clock:
    def now_ns(self) -> int: ...

class MonotonicClock(Clock): ...

@disjoint_base
class FakeClock(Clock):
    def __new__(cls, time_ns: int = 1_000_000_000, wake_ns: int = 0, stalls: Sequence[int] = ()) -> Self: ...
    def advance(self, ns: int) -> None: ...
