from collections.abc import Sequence

from typing_extensions import disjoint_base

__all__ = ["TelemetryStages"]

@disjoint_base
class TelemetryStages:
    def __init__(
        self,
        *,
        attitude: str = "quaternion",
        order: Sequence[str] = ...,
        velocity: str = "world",
        acceleration_axes: str = "world",
        gravity: Sequence[float] = ...,
        rates: str = "said",
        acceleration: str = "native",
        delay_s: float = ...,
        same: Sequence[str] = ...,
    ) -> None: ...
