from typing_extensions import disjoint_base

from motioncue.kernels.algorithm import Algorithm
from motioncue.settings.classical import Classical

__all__ = ["ClassicalWashout"]

@disjoint_base
class ClassicalWashout(Algorithm):
    def __init__(self, settings: Classical, rate_hz: float) -> None: ...
