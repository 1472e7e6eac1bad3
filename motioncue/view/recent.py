"""The last minute that was driven, as the ticks read it."""

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import MOTION_DTYPE
from motioncue.safety.supervisor import State
from motioncue.view.watched import Watched

__all__ = ["LEAST_S", "LOOKS_HZ", "MINUTE_S", "Minute", "Recent"]

MINUTE_S = 60.0
LEAST_S = 3.0  # shortest drive that is judged
LOOKS_HZ = 100.0
GAP_S = 0.3  # without a new frame, after which another drive begins


class Minute(NamedTuple):
    """Frames of a drive, in order of their time."""

    motion: npt.NDArray[np.void]
    """MOTION_DTYPE."""
    begin_s: float
    """On the engine's grid of ticks [s], as is `end_s`."""
    end_s: float


class Recent:
    """Keeps the last minute of motion that the platform was driven with.

    Parameters
    ----------
    engine : Watched
        A running engine, or a recording that plays.

    Notes
    -----
    It looks at the newest tick, as the page does, and takes nothing from the ticks.  A drive ends where the platform is
    not driven, frames are missing, or time goes back; until the next one is long enough, the one before is the newest.
    """

    def __init__(self, engine: Watched) -> None:
        self._engine = engine
        self._rows: deque[tuple[float, int, bytes]] = deque(maxlen=round(1.2 * MINUTE_S * LOOKS_HZ))
        self._before: Minute | None = None
        self._index = -1
        self._ended = False

    def look(self) -> None:
        """Take the frame of the newest tick, if it is new."""
        tick = self._engine.newest()
        index = int(tick["index"][0])
        if index == self._index:
            return
        back, self._index = index < self._index, index
        if int(tick["state"][0]) != int(State.RUNNING):
            self._ended = True
            return
        profile = self._engine.profile
        motion = tick["motion"]
        if not motion["time"][0]:  # no frame yet
            return
        # Between frames, what a tick reads belongs to the tick; otherwise it is the frame, at its own time.
        time = int((motion["time"] if profile.bridge == "hold" else tick["deadline"])[0])
        last = self._rows[-1][1] if self._rows else time
        if back or self._ended or not 0 <= time - last <= 1e9 * GAP_S:
            self._before = self.minute()
            self._rows.clear()
        self._ended = False
        if self._rows and time == last:
            return
        motion["time"] = time
        self._rows.append((index / profile.rate_hz, time, motion.tobytes()))

    def minute(self) -> Minute | None:
        """Return the last minute of the newest drive of 3 s or more; None if there is none yet."""
        rows = list(self._rows)
        rows = [row for row in rows if row[1] >= rows[-1][1] - 1e9 * MINUTE_S]
        if not rows or rows[-1][1] - rows[0][1] < 1e9 * LEAST_S:
            return self._before
        motion = np.frombuffer(b"".join(row[2] for row in rows), MOTION_DTYPE)
        return Minute(motion, rows[0][0], rows[-1][0])
