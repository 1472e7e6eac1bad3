"""No cueing: the body frame straight through."""

from motioncue.kernels.algorithm import Direct as DirectKernel
from motioncue.profile import Direct

__all__ = ["design"]


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
