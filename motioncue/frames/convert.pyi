from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

__all__ = ["BodyStage", "TelemetryStages", "body_motion"]

@disjoint_base
class BodyStage:
    def __init__(
        self,
        *,
        world_north: Sequence[float] = (0.0, 0.0, -1.0),
        world_up: Sequence[float] = (0.0, 1.0, 0.0),
        car_forward: Sequence[float] = (0.0, 0.0, 1.0),
        car_up: Sequence[float] = (0.0, 1.0, 0.0),
        head_m: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Literal["car_to_world", "world_to_car"] = "car_to_world",
        rates: Literal["world", "car"] = "world",
        gravity: Literal["excluded", "included"] = "excluded",
    ) -> None: ...
    def process(self, telemetry: NDArray[np.void], out: NDArray[np.void]) -> NDArray[np.int32]: ...

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

def body_motion(
    orientation: ArrayLike,
    velocity: ArrayLike,
    acceleration: ArrayLike,
    angular_velocity: ArrayLike,
    angular_acceleration: ArrayLike | None = None,
    **axes: Any,
) -> NDArray[np.void]: ...
