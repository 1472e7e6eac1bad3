from collections.abc import Sequence
from typing import Self

from typing_extensions import disjoint_base

from motioncue.core.interfaces import Stage
from motioncue.platforms.kinematics import Kinematics
from motioncue.platforms.settings import ActuatorBounds

__all__ = ["PARTS_OF_A_POSE", "Actuators"]

PARTS_OF_A_POSE: tuple[str, ...]

@disjoint_base
class Actuators(Stage):
    def __new__(
        cls,
        kinematics: Kinematics,
        names: Sequence[str],
        bounds: Sequence[ActuatorBounds],
        parked: Sequence[float],
        rise_s: float,
        gives_way: Sequence[str],
        dt: float,
        lag_s: float = 0.0,
        lag_damping: float = 0.0,
        planned: bool = False,
    ) -> Self: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def fills(self) -> tuple[str, ...]: ...  # type: ignore[override]
    def shares(self) -> dict[str, float]: ...
