"""What an algorithm may know of the platform at its design."""

from collections.abc import Sequence
from typing import Protocol

from motioncue.platforms.kinematics import Kinematics

__all__ = ["Platform"]


class Platform(Protocol):
    """A platform in the form that the kernels take, such as `motioncue.platforms.build.Built`."""

    @property
    def kinematics(self) -> Kinematics:
        """Its kinematics."""

    @property
    def bounds(self) -> Sequence[tuple[float, float, float, float]]:
        """Of each actuator: lowest and highest position, speed [per s], acceleration [per s^2]; m or rad."""

    @property
    def neutral(self) -> Sequence[float]:
        """Positions at neutral [m or rad]."""
