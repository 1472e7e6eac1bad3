"""No cueing: the body-frame motion is the cue."""

from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.core.interfaces import Direct as DirectKernel
from motioncue.cueing.direct.settings import Direct

__all__ = ["design", "theory"]


def design(settings: Direct, rate_hz: float) -> DirectKernel:
    """Return the algorithm that passes every channel."""
    return DirectKernel()


def theory(
    settings: Direct, channel: str, s: npt.NDArray[np.complex128], rate_hz: float | None = None
) -> dict[str, Any]:
    """Return the response of a channel: 1 to the same channel, nothing else.

    Units: `s` [rad/s].
    """
    return {channel: np.ones(s.shape, dtype=np.complex128)}
