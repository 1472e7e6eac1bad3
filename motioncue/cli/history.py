"""From samples to a view: rates over the last seconds, traces, and scales that never shrink."""

import math
from collections import deque
from collections.abc import Mapping, Sequence

from motioncue.cli.live import BUCKET_S, Series
from motioncue.view.watched import CHANNELS

__all__ = ["History", "Rate"]

BUCKETS = 600
WINDOW_S = 2.0  # time that a rate is averaged over


class Rate:
    """Growth rate of a count over the last two seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, time_s: float, count: int) -> float:
        """Add a count and return its rate [1/s]; 0 until it is known."""
        self._seen.append((time_s, count))
        while time_s - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        first_time, first = self._seen[0]
        return (count - first) / (time_s - first_time) if time_s - first_time > 0.2 else 0.0


class History:
    """The past values from which traces are drawn.

    Parameters
    ----------
    series : sequence of (str, str)
        Role ("car", "felt" or "cue") and label of each series.
    """

    def __init__(self, series: Sequence[tuple[str, str]]) -> None:
        self._series = series
        self._traces = [{channel.name: deque[float](maxlen=BUCKETS) for channel in CHANNELS} for _ in series]
        self._bucket: int | None = None
        self.scales = {channel.name: channel.scale for channel in CHANNELS}

    def add(self, time_s: float, values: Sequence[Mapping[str, float]]) -> tuple[Series, ...]:
        """Add the newest values of every series [SI] at `time_s` and return the series to show.

        A value of a trace is the largest magnitude in its time, so that no bump is lost.
        """
        bucket = int(time_s / BUCKET_S)
        fresh = bucket != self._bucket
        self._bucket = bucket
        for traces, row in zip(self._traces, values, strict=True):
            for channel in CHANNELS:
                value = row.get(channel.name, math.nan)
                cells = traces[channel.name]
                if fresh or not cells:
                    cells.append(value)
                elif not abs(value) <= abs(cells[-1]):
                    cells[-1] = value
                self._grow(channel.name, value * channel.factor)
        return tuple(
            Series(role, label, row, {name: tuple(cells) for name, cells in traces.items()})
            for (role, label), row, traces in zip(self._series, values, self._traces, strict=True)
        )

    def _grow(self, name: str, shown: float) -> None:
        """Raise the scale to the next of 1, 2, 5, 10, … that holds the value."""
        while math.isfinite(shown) and abs(shown) > self.scales[name]:
            scale = self.scales[name]
            self.scales[name] = scale * (2.5 if f"{scale:e}"[0] == "2" else 2.0)
