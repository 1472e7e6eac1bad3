from typing_extensions import disjoint_base

from motioncue.kernels.algorithm import Algorithm
from motioncue.settings.adaptive import Adaptive

__all__ = ["AdaptiveWashout"]

@disjoint_base
class AdaptiveWashout(Algorithm):
    def __init__(self, settings: Adaptive, rate_hz: float) -> None: ...
    @property
    def parameters(self) -> dict[str, float]: ...
