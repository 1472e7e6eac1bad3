from typing_extensions import disjoint_base

from motioncue.core.interfaces import Algorithm
from motioncue.cueing.adaptive.settings import Adaptive

__all__ = ["AdaptiveWashout"]

@disjoint_base
class AdaptiveWashout(Algorithm):
    def __init__(self, settings: Adaptive, rate_hz: float) -> None: ...
    @property
    def parameters(self) -> dict[str, float]: ...
