from typing_extensions import disjoint_base

from motioncue.core.interfaces import Algorithm
from motioncue.cueing.classical.settings import Classical

__all__ = ["ClassicalWashout"]

@disjoint_base
class ClassicalWashout(Algorithm):
    def __init__(self, settings: Classical, rate_hz: float) -> None: ...
