from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Self

from typing_extensions import disjoint_base

__all__ = [
    "Clock",
    "FakeClock",
    "MonotonicClock",
    "machine_awake",
    "now_ns",
    "prepare_receiver",
    "prepare_thread",
    "processors_awake",
]

def now_ns() -> int: ...
def prepare_thread(core: int | None = None, lock_memory: bool = False) -> dict[str, bool]: ...
def prepare_receiver() -> dict[str, bool]: ...
def processors_awake() -> AbstractContextManager[bool]: ...
def machine_awake() -> AbstractContextManager[dict[str, bool]]: ...

@disjoint_base
class Clock:
    @property
    def granted(self) -> dict[str, bool]: ...
    def now_ns(self) -> int: ...

@disjoint_base
class MonotonicClock(Clock):
    def __new__(cls, spin_ns: int = 0) -> Self: ...

@disjoint_base
class FakeClock(Clock):
    def __new__(
        cls,
        time_ns: int = 1_000_000_000,
        wake_ns: int = 0,
        stalls: Sequence[int] = (),
        lead_ns: int = 0,
        meanwhile: Callable[[int], object] | None = None,
    ) -> Self: ...
    def advance(self, ns: int) -> None: ...
