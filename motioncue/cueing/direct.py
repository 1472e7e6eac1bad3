"""No cueing: the body frame straight through."""

from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.kernels.algorithm import Direct as DirectKernel
from motioncue.settings.direct import Direct

__all__ = ["design", "theory"]


def design(settings: Direct, rate_hz: float) -> DirectKernel:
    """Return the algorithm that passes everything.

    Parameters
    ----------
    settings : Direct
        It has none.
    rate_hz : float
        Ticks a second [Hz]; any will do.
    """
    return DirectKernel()


def theory(settings: Direct, channel: str, s: npt.NDArray[np.complex128]) -> dict[str, Any]:
    """Return the responses to a channel: 1 of the same channel, nothing else.

    Parameters
    ----------
    settings : Direct
        It has none.
    channel : str
        Of the motion.
    s : ndarray of complex128, shape (n,)
        Complex frequencies [rad/s].
    """
    return {channel: np.ones(s.shape, dtype=np.complex128)}
