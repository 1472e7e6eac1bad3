"""A connected page: its requests, what it is sent, and the changes that wait."""

import asyncio
import math
import time
from collections import deque
from typing import Annotated, Any, TypeAlias

import msgspec

from motioncue.errors import ConfigError
from motioncue.view.editor import Editor
from motioncue.view.model import (
    CHANNELS,
    SAYS,
    STATES,
    Frames,
    Verdict,
    Watched,
    grade,
    path_of,
    replied,
    scene_of,
    verdict,
)

Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=100)]


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    pass


class DrawnFrames(_Request, frozen=True, tag="seen"):
    """The page has drawn this many frames."""

    frames: Annotated[int, msgspec.Meta(ge=0)]


class Operate(_Request, frozen=True):
    """Engage, hold or park."""

    what: Annotated[str, msgspec.Meta(pattern=r"^(engage|hold|park)\Z")]


class AcquireControl(_Request, frozen=True, tag="take"):
    """Steer from now on."""


class ReleaseControl(_Request, frozen=True, tag="give"):
    """Steer no longer."""


class Set(_Request, frozen=True):
    """Set a parameter; None for one that may be left out."""

    key: Annotated[str, msgspec.Meta(max_length=100)]
    value: float | bool | Word | Annotated[list[Word], msgspec.Meta(max_length=32)] | None
    gesture: int = 0
    """Changes of one gesture are undone together."""
    number: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Grows with each setting of a page, which is told the newest one that has been made or refused."""
    sure: bool = False
    """Whether a person was asked about it, as about every change that a slip of the hand could mean."""


class SetSeveral(_Request, frozen=True, tag="turn"):
    """Set several numbers together."""

    values: Annotated[dict[Word, float], msgspec.Meta(min_length=1, max_length=40)]
    gesture: int = 0
    sure: bool = False
    why: Word = ""
    """Reason that a saved profile gives, as for `Swap`."""


class Mute(_Request, frozen=True):
    """Silence these axes, and no others."""

    axes: Annotated[list[Word], msgspec.Meta(max_length=6)]


class Undo(_Request, frozen=True):
    """Return to the settings before the last gesture."""

    sure: bool = False


class Swap(_Request, frozen=True):
    """Go from settings A to B, or back."""

    sure: bool = False
    to: Annotated[str, msgspec.Meta(pattern=r"^[AB]\Z")] | None = None
    """Which of them; the other one if not given."""
    why: Word = ""


class Save(_Request, frozen=True):
    """Write the settings as a profile."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}\.toml\Z")]


Stretch: TypeAlias = tuple[Annotated[float, msgspec.Meta(ge=0)], Annotated[float, msgspec.Meta(ge=0)]]
"""From and to, on the engine's grid of ticks [s]."""


class ScoreSettings(_Request, frozen=True, tag="judge"):
    """Score the settings on the last minute, or on a stretch."""

    stretch: Stretch | None = None


class Tune(_Request, frozen=True):
    """Search for better settings on the last minute, or on a stretch."""

    stretch: Stretch | None = None


class TryFound(_Request, frozen=True, tag="try"):
    """Apply settings that a search has found."""

    point: Annotated[int, msgspec.Meta(ge=0)]
    """Which of them, from the first."""
    sure: bool = False


class Wave(_Request, frozen=True):
    """Move one axis by a test wave."""

    axis: Word
    sure: bool = False


Request: TypeAlias = (
    DrawnFrames
    | Operate
    | AcquireControl
    | ReleaseControl
    | Set
    | SetSeveral
    | Mute
    | Undo
    | Swap
    | Save
    | ScoreSettings
    | Tune
    | TryFound
    | Wave
)
"""Any request; its key ``do`` says which."""

_DECODER = msgspec.json.Decoder(Request)


def parse_request(message: str | bytes) -> Request:
    """Return the request in a message; raise ValueError, which says why, if it is none."""
    try:
        request: Request = _DECODER.decode(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"no request: {error}") from error
    return request


WAITING = Verdict("none", "the platform has not been driven yet")
"""The verdict on a run that has frames and has not engaged."""

STATISTICS = (
    "state",
    "rate_hz",
    "frames_received",
    "packets_sent",
    "skipped",
    "lateness_us",
    "latency_s",
    "rejected",
    "events",
    "limited",
)
"""Statistics of the engine that the page shows."""

SHOWN = 40  # transitions


def to_json(kind: str, said: dict[str, Any]) -> str:
    """Return a message as strict JSON, in which numbers that it does not have are null."""
    return msgspec.json.encode({"kind": kind, **said}).decode()  # writes NaN and infinity as null


def hello(engine: Watched, frames: Frames, number: int, *, run: str, plays: bool) -> str:
    """Return what a page is told first."""
    profile = engine.profile
    said = {
        "you": number,
        "run": run,
        "names": frames.names,
        "states": STATES,
        "says": [[int(flag), words, loud] for flag, words, loud in SAYS],
        "channels": [channel._asdict() for channel in CHANNELS],
        "plays": plays,
        "scene": scene_of(profile, frames.built()),
        "rate_hz": profile.rate_hz,
    }
    return to_json("hello", said)


def controls(engine: Watched, editor: Editor) -> str:
    """Return what the settings are, and what depends on the algorithm."""
    profile, fixed = engine.requested, editor.fixed()
    parameters = [{**each._asdict(), "fixed": fixed.get(each.key, "")} for each in editor.parameters()]
    return to_json("controls", {"title": path_of(profile), "poses": profile.cueing.poses, "parameters": parameters})


def statistics(engine: Watched) -> str:
    """Return the statistics of a run."""
    stats, rate_hz = engine.stats(), engine.profile.rate_hz
    driven = any(move["to"] == "RUNNING" for move in stats["transitions"])
    found = verdict(stats, rate_hz) if driven or not stats["frames_received"] else WAITING
    said = {key: stats[key] for key in STATISTICS} | {
        "transitions": stats["transitions"][-SHOWN:],
        "verdict": found._asdict(),
        "grade": grade(stats, rate_hz),
        "chassis": stats.get("chassis", {}),
        "platform": replied(stats, int(engine.newest()["operation"][0])),
    }
    return to_json("stats", said)


REPLIES = 32  # most replies kept for a page; the oldest go first
WAITING_CHANGES = 32  # most changes of settings of a page that wait for the ones before


class Client:
    """A browser's page that is connected."""

    def __init__(self, connection: Any, number: int, name: str) -> None:
        self.connection = connection
        self.number = number
        self.name = name
        self.replies: deque[str] = deque(maxlen=REPLIES)
        self.sent = self.seen = self.bad = 0
        self.dropped = False
        self.seen_at = time.monotonic()  # since when it has not drawn what it was sent
        self.told_at = -math.inf  # when even a slow link has brought it what the settings are
        self.stats_at = -math.inf
        self.sent_at: deque[float] = deque()  # when the frames were sent that it has not drawn
        self.delay_s = 0.0  # from sending a frame until it said that it drew it
        self.frame = 0  # number of the newest frame that it was sent
        self.known = (-1, -1, -1)  # versions of the settings, the hands and the judgment that it has been sent
        self.controls = ""  # what it was told of the settings
        self.answered = self.told = 0  # number of its newest setting that was made or refused; which it was told
        self._changes: deque[Request] = deque()
        self._changed = asyncio.Event()

    def put(self, request: Request) -> None:
        """Note a change of settings; a newer value of the same parameter replaces one that still waits."""
        last = self._changes[-1] if self._changes else None
        if isinstance(last, Set) and isinstance(request, Set) and last.key == request.key:
            self._changes.pop()
        if len(self._changes) >= WAITING_CHANGES:
            raise ConfigError(f"found {WAITING_CHANGES} changes waiting already, try again")
        self._changes.append(request)
        self._changed.set()

    async def next_change(self) -> Request:
        """Wait for a change of settings."""
        while not self._changes:
            self._changed.clear()
            await self._changed.wait()
        return self._changes.popleft()

    def refuse(self, request: Request, error: Exception) -> None:
        """Tell the page why a request was refused."""
        key, number = (request.key, request.number) if isinstance(request, Set) else (None, 0)
        self.reply("refused", key=key, number=number, why=str(error))

    def reply(self, kind: str, **said: Any) -> None:
        """Note a message for the page."""
        self.replies.append(to_json(kind, said))
