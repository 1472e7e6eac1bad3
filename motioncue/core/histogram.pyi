import numpy as np
from numpy.typing import NDArray

__all__ = ["quantiles"]

def quantiles(values: NDArray[np.int64], levels: list[float]) -> list[int]: ...
