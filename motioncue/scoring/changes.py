"""Differences between two recordings of the same ticks: channels, first tick, size; and events."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.recording.drive import columns
from motioncue.recording.recording import Drive
from motioncue.recording.schema import Event

TOLERANCE = 1e-9
"""Of a channel's scale: well above what rounding comes to in a drive, far below what anybody sends or feels.

Compilers, C libraries and the lanes of NumPy differ in the last bit of a result (2^-53, about 1e-16).  The slowest
filter of a profile has a pole that is 1e-3 away from 1: it makes a thousand times as much of an error that stays
(1e-13), and one with two such poles a million times as much of an error of its coefficients (1e-10).  Drives of five
seconds through a build by MinGW and one by gcc were at most 1e-14 apart.
"""

LEAST_SCALE = 1e-3  # in a channel's own unit, so that rounding does not count as a change of a channel at rest


class Change(NamedTuple):
    """A channel that differs."""

    channel: str
    """Name such as ``cue_surge``."""
    unit: str
    tick: int
    """Index of the first tick that differs."""
    time: float
    """Time of that tick since the first [s]."""
    before: float
    """Value of that tick in the first recording."""
    after: float
    """The same in the second recording."""
    largest: float
    """Largest difference of all ticks [unit of the channel]; infinity if only one of the values is finite."""
    largest_tick: int
    """Index of the tick with the largest difference."""


class Changes(NamedTuple):
    """The differences between two recordings."""

    counts: list[tuple[str, int, int]]
    """Numbers of ticks and frames, if they differ: what, before, after."""
    channels: list[Change]
    """The changed channels, the earliest first."""
    gone: list[Event]
    """Events in the first recording only."""
    new: list[Event]
    """Events in the second recording only."""
    began: int
    """Deadline of the first tick [ns]."""

    @property
    def found(self) -> bool:
        """Whether anything differs."""
        return bool(self.counts or self.channels or self.gone or self.new)

    def lines(self) -> list[str]:
        """Return a table as lines of text; empty if nothing differs."""
        out = [f"{what}: {before} before, {after} now" for what, before, after in self.counts]
        if self.channels:
            values = f"{'before':>13} {'now':>13} {'differs most by':>17} {'at tick':>9}"
            out.append(f"{'channel':24} {'first tick':>10} {'at':>9} {values}")
        for row in self.channels:
            most = f"{row.largest:.4g} {row.unit}".rstrip()
            out.append(
                f"{row.channel:24} {row.tick:10} {row.time:7.3f} s {row.before:13.6g} {row.after:13.6g} {most:>17} "
                f"{row.largest_tick:9}"
            )
        marked = [(event.time, "before", event) for event in self.gone] + [
            (event.time, "now", event) for event in self.new
        ]
        for time, when, event in sorted(marked):
            out.append(f"{(time - self.began) * 1e-9:8.3f} s {when:>6}: {_words(event)}")
        return out


def _words(event: Event) -> str:
    if event.what == "transition":
        return (
            f"{event.before} to {event.after}, {event.reason.replace('_', ' ')} "
            f"({event.value:.4g}, allowed {event.limit:.4g})"
        )
    return f"{event.reason or event.what} ({event.detail})".replace("_", " ")


def changes(before: Drive, after: Drive, tolerance: float = TOLERANCE) -> Changes:
    """Return the differences between two recordings of the same ticks: a run, and the result of `repeat`."""
    ticks = min(len(before.ticks), len(after.ticks))
    both = (before.ticks[:ticks], after.ticks[:ticks])
    began = int(before.ticks["deadline"][0]) if len(before.ticks) else 0
    found = []
    for (name, unit, old), (_, _, new) in zip(*(columns(rows) for rows in both), strict=True):
        apart = _apart(old, new, tolerance)
        wrong = np.flatnonzero(apart)
        if name != "lateness" and len(wrong):
            first, worst = wrong[0], wrong[np.argmax(apart[wrong])]
            rows = both[0]
            time = (int(rows["deadline"][first]) - began) * 1e-9
            values = float(old[first]), float(new[first]), float(apart[worst]), int(rows["index"][worst])
            found.append(Change(name, unit, int(rows["index"][first]), time, *values))
    counts = [
        (what, len(old), len(new))
        for what, old, new in (("ticks", before.ticks, after.ticks), ("frames", before.motion, after.motion))
        if len(old) != len(new)
    ]
    gone, new_events = _unmatched(before.events, after.events, tolerance)
    return Changes(counts, sorted(found, key=lambda change: change.tick), gone, new_events, began)


def _apart(old: npt.NDArray[Any], new: npt.NDArray[Any], tolerance: float) -> npt.NDArray[np.float64]:
    """Return the differences of a channel, 0 within the tolerance."""
    if old.dtype.kind == "i":
        return np.asarray(np.abs(old - new), np.float64)
    finite = np.isfinite(old)
    scale = max(float(np.abs(old[finite]).max(initial=0.0)), LEAST_SCALE)
    with np.errstate(invalid="ignore"):
        apart = np.asarray(np.abs(new - old), np.float64)
    apart[(old == new) | (np.isnan(old) & np.isnan(new))] = 0.0
    apart[np.isnan(apart)] = np.inf
    apart[apart <= tolerance * scale] = 0.0
    return apart


def _unmatched(before: list[Event], after: list[Event], tolerance: float) -> tuple[list[Event], list[Event]]:
    """Return the events in one recording only; measured values may differ by the tolerance."""
    waiting: dict[Event, list[Event]] = {}
    for event in after:
        waiting.setdefault(_key(event), []).append(event)
    gone = []
    for event in before:
        same = waiting.get(_key(event), [])
        match = next((place for place, other in enumerate(same) if _close(event, other, tolerance)), None)
        if match is None:
            gone.append(event)
        else:
            del same[match]
    return gone, sorted(event for events in waiting.values() for event in events)


def _key(event: Event) -> Event:
    return event._replace(value=0.0, limit=0.0)


def _close(one: Event, other: Event, tolerance: float) -> bool:
    old, new = (np.array([event.value, event.limit]) for event in (one, other))
    return not (_apart(old, new, tolerance)).any()
