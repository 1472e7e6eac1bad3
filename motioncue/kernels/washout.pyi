from collections.abc import Mapping, Sequence

from typing_extensions import disjoint_base

from motioncue.kernels.algorithm import Algorithm

__all__ = ["ClassicalWashout"]

@disjoint_base
class ClassicalWashout(Algorithm):
    def __init__(
        self,
        translation: Sequence[dict[str, float]],
        rotation: Sequence[dict[str, float]],
        tilt: Sequence[Mapping[str, float]],
        rate_hz: float,
    ) -> None: ...
