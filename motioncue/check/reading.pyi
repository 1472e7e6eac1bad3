from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from motioncue.frames.intake import Intake

__all__ = ["read_frames"]

def read_frames(
    intake: Intake, packages: Sequence[bytes], came: Sequence[int] | None, period_ns: float, most: int | None
) -> tuple[NDArray[np.void], NDArray[np.float64], NDArray[np.intp], int]: ...
