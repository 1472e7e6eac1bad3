"""The standard drives, against which a profile's algorithm and its platform are measured at load.

They are drives of the virtual car, kept in ``data/standard_drives.bin`` so that loading a profile computes no car.
``python -m motioncue.virtual.standard`` writes the file again.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from motioncue import data
from motioncue.drive.car import drive
from motioncue.drive.rotations import angles_and_rates, body_axes
from motioncue.engine.fitting import CHANNELS_KEPT, DRIVES, KEPT_HZ, KEPT_TYPE

__all__ = ["standard_drive"]


def standard_drive(name: str, rate_hz: float = KEPT_HZ) -> npt.NDArray[np.float64]:
    """Return what a passenger's body does on a standard drive.

    Parameters
    ----------
    name : str
        One of `motioncue.drive.car.DRIVES`.
    rate_hz : float
        Rows per second [Hz].

    Returns
    -------
    ndarray of float64, shape (n, 8)
        The channels of `motioncue.engine.fitting.CHANNELS_KEPT`.
    """
    states = drive(name, rate_hz)
    acceleration, rates = body_axes(states, "acceleration"), body_axes(states, "angular_velocity")
    roll, pitch, _ = angles_and_rates(states)[0]
    columns = (acceleration[:, 0], acceleration[:, 1], -acceleration[:, 2], roll, pitch, *rates.T)
    assert len(columns) == len(CHANNELS_KEPT)
    return np.stack(columns, axis=1)


if __name__ == "__main__":
    rows = np.concatenate([standard_drive(name) for name in DRIVES])
    (Path(data.__file__).parent / "standard_drives.bin").write_bytes(rows.astype(KEPT_TYPE).tobytes())
