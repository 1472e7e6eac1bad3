"""A recording that plays as if it were running and can be tuned, and the last minute of either."""

import math
import threading
import time
from collections import Counter, deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import MOTION_DTYPE
from motioncue.engine.journal import CALM, REFUSED
from motioncue.engine.pipeline import Change, Tuner
from motioncue.engine.replay import Progress, profile_of, repeat
from motioncue.profile.profile import Profile
from motioncue.recording.recording import Drive
from motioncue.recording.schema import Event
from motioncue.safety.supervisor import State
from motioncue.view.model import PAST_HZ, PAST_S, Frames, Watched

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

    It looks at the newest tick, as the page does, and takes nothing from the ticks.  A drive ends where the platform is
    not driven, frames are missing, or time goes back; until the next one is long enough, the one before is the newest.
    """

    def __init__(self, engine: Watched) -> None:
        self._engine = engine
        self._rows: deque[tuple[float, int, bytes]] = deque(maxlen=round(1.2 * MINUTE_S * LOOKS_HZ))
        self._all: deque[tuple[int, float, int, bytes]] = deque(maxlen=round(PAST_S * LOOKS_HZ))  # also earlier drives
        self._drive = 0
        self._before: Minute | None = None
        self._index = -1
        self._ended = False

    def poll(self) -> None:
        """Take the frame of the newest tick, if it is new."""
        tick = self._engine.newest()
        index = int(tick["index"][0])
        if index == self._index:
            return
        back, self._index = index < self._index, index
        state = int(tick["state"][0])
        if state != int(State.RUNNING):
            self._ended = self._ended or state != int(State.HOLDING)  # a frame that is late ends no drive
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
            self._drive += 1
        if back:
            self._all.clear()
        self._ended = False
        if self._rows and time == last:
            return
        motion["time"] = time
        self._rows.append((index / profile.rate_hz, time, motion.tobytes()))
        self._all.append((self._drive, *self._rows[-1]))

    def minute(self) -> Minute | None:
        """Return the last minute of the newest drive of 3 s or more; None if there is none yet."""
        rows = list(self._rows)
        rows = [row for row in rows if row[1] >= rows[-1][1] - 1e9 * MINUTE_S]
        if not rows or rows[-1][1] - rows[0][1] < 1e9 * LEAST_S:
            return self._before
        motion = np.frombuffer(b"".join(row[2] for row in rows), MOTION_DTYPE)
        return Minute(motion, rows[0][0], rows[-1][0])

    def stretch(self, begin_s: float, end_s: float, lead_s: float) -> Minute | tuple[float, float] | None:
        """Return what was driven from and to a time, and up to `lead_s` before.

        If that is not one drive, from and to when the longest one in it goes; None if there is none.
        """
        rows = _driven(self._engine) if isinstance(self._engine, Played) else list(self._all)
        parts: dict[int, tuple[float, float]] = {}
        for drive, time_s, *_ in rows:
            if begin_s - GAP_S <= time_s <= end_s:
                parts[drive] = parts.get(drive, (time_s, time_s))[0], time_s
        if not parts:
            return None
        (longest, (first, last)), *others = sorted(parts.items(), key=lambda part: part[1][0] - part[1][1])
        if others or first > begin_s + GAP_S or last < end_s - GAP_S:
            return max(first, begin_s), last
        rows = [row for row in rows if row[0] == longest and begin_s - lead_s <= row[1] <= end_s]
        return Minute(np.frombuffer(b"".join(row[3] for row in rows), MOTION_DTYPE), rows[0][1], rows[-1][1])


def _driven(played: "Played") -> list[tuple[int, float, int, bytes]]:
    """Return the motion of a recording's ticks that drove the platform: drive, time [s], time [ns], bytes."""
    profile, ticks, drive = played.profile, played.ticks, 0
    rows: list[tuple[int, float, int, bytes]] = []
    for tick in ticks[ticks["state"] == int(State.RUNNING)]:
        motion = tick["motion"].copy()
        time = int(motion["time"] if profile.bridge == "hold" else tick["deadline"])
        if rows and not 0 <= time - rows[-1][2] <= 1e9 * GAP_S:
            drive += 1
        if not rows or time != rows[-1][2]:
            motion["time"] = time
            rows.append((drive, int(tick["index"]) / profile.rate_hz, time, motion.tobytes()))
    return rows


QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}


class Played:
    """Plays the ticks of a recording in their own time, over and over; the page takes it for an engine.

    A change of the settings takes the whole recording through the engine again, in the caller's thread; the ticks shown
    go on at the same moment of the drive.
    """

    def __init__(
        self, drive: Drive, profile: Profile | None = None, *, progress: Progress = lambda done, total: None
    ) -> None:
        self._drive = drive
        self._shown = repeat(drive, profile, progress=progress)
        if profile is None:
            profile = profile_of(drive.settings[0].profile)
        self._tuner = Tuner(profile)
        self._retunes = 0
        self._lock = threading.Lock()
        self._passed_s, self._since = 0.0, time.monotonic()
        self._playing = True
        first, last = (int(self._shown.ticks["index"][at]) for at in (0, -1))
        self._first, self._length_s = first, max((last - first) / profile.rate_hz, 1.0 / profile.rate_hz)

    @property
    def profile(self) -> Profile:
        """The profile whose ticks are shown."""
        return self._tuner.profile

    requested = profile

    @property
    def ticks(self) -> npt.NDArray[np.void]:
        """The ticks that are shown, ndarray of TICK_DTYPE."""
        return self._shown.ticks

    def retune(self, change: Change) -> None:
        """Replay with other settings."""

        def replayed(settings: Any) -> None:
            self._shown = repeat(self._drive, settings.profile)
            self._retunes += 1

        self._tuner(change, replayed)

    def engage(self) -> None:
        """Play on."""
        self._move(self._at_s(), playing=True)

    def hold(self) -> None:
        """Stop at this moment."""
        self._move(self._at_s(), playing=False)

    def park(self) -> None:
        """Stop at the beginning."""
        self._move(0.0, playing=False)

    def _move(self, at_s: float, *, playing: bool) -> None:
        with self._lock:
            self._passed_s, self._since, self._playing = at_s, time.monotonic(), playing

    def _at_s(self) -> float:
        """Return the moment shown, from the beginning of the recording [s]."""
        with self._lock:
            passed = self._passed_s + (time.monotonic() - self._since if self._playing else 0.0)
        return passed % self._length_s

    def newest(self) -> npt.NDArray[np.void]:
        """Return the tick of this moment, ndarray of TICK_DTYPE and shape (1,)."""
        ticks = self._shown.ticks
        index = self._first + self._at_s() * self.profile.rate_hz
        place = max(0, int(np.searchsorted(ticks["index"], index, side="right")) - 1)
        return ticks[place : place + 1].copy()

    def frames(self) -> bytes:
        """Return `Frames` of the whole recording, one after the other, 25 of a second or fewer."""
        ticks, made = self._shown.ticks, Frames(self)
        step = max(round(self.profile.rate_hz / PAST_HZ), math.ceil(len(ticks) / (PAST_S * PAST_HZ)))
        return b"".join(made.frame(ticks[at : at + 1]) for at in range(0, len(ticks), step))

    def stats(self) -> dict[str, Any]:
        """Return statistics of the whole recording, of those that `Engine.stats` has.

        Lateness and skipped ticks are those of the recorded run; ``events`` are the reasons why the platform parked.
        """
        shown, recorded = self._shown, self._drive.ticks
        late = np.sort(recorded["lateness"]) * 1e-3
        lost = int(recorded["index"][-1] - recorded["index"][0]) + 1 - len(recorded)
        moves = [event for event in shown.events if event.what == "transition"]
        caught = [event for event in shown.events if event.what == "intake"]
        return {
            "state": State(int(self.newest()["state"][0])).name,
            "rate_hz": self.profile.rate_hz,
            "frames_received": len(shown.motion),
            "packets_sent": len(recorded),
            "skipped": lost,
            "lateness_us": {
                name: float(late[min(len(late) - 1, int(part * len(late)))]) for name, part in QUANTILES.items()
            },
            "latency_s": 0.0,
            "rejected": dict(Counter(event.reason for event in caught if event.reason in REFUSED)),
            "events": dict(Counter(move.reason for move in moves if move.reason not in CALM)),
            "limited": {},
            "outputs": [{"refused": 0, "unheard": 0}],
            "transitions": [self._transition(event) for event in moves],
            "retunes": self._retunes,
        }

    def _transition(self, event: Event) -> dict[str, Any]:
        began = int(self._drive.ticks["deadline"][0]) - round(1e9 * self._first / self.profile.rate_hz)
        return {
            "t": (event.time - began) * 1e-9,
            "from": event.before,
            "to": event.after,
            "reason": event.reason,
        }
