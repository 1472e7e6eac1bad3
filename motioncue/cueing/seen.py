"""What an algorithm may know of the platform at its design."""

from collections.abc import Sequence
from typing import Protocol

from motioncue.platforms.kinematics import Kinematics
from motioncue.platforms.settings import ActuatorBounds

__all__ = ["Platform"]


class Platform(Protocol):
    """A platform in the form that the kernels take, such as `motioncue.platforms.build.Built`."""

    @property
    def kinematics(self) -> Kinematics:
        """Its kinematics."""

    @property
    def bounds(self) -> Sequence[ActuatorBounds]:
        """Those of each actuator."""

    @property
    def neutral(self) -> Sequence[float]:
        """Positions at neutral [m or rad]."""
