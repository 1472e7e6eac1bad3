"""What the pages are told, as messages."""

from typing import Any

import msgspec

from motioncue.view.desk import Desk
from motioncue.view.frames import STATES, Frames
from motioncue.view.scene import scene_of
from motioncue.view.watched import CHANNELS, Verdict, Watched, grade, path_of, verdict

__all__ = ["controls", "hello", "statistics", "to_json"]

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
    """Return a message as strict JSON, in which numbers that it does not have are null.

    Parameters
    ----------
    kind : str
        What the message is about.
    said : dict
        Its contents.
    """
    return msgspec.json.encode({"kind": kind, **said}).decode()  # writes NaN and infinity as null


def hello(engine: Watched, frames: Frames, number: int, *, plays: bool) -> str:
    """Return what a page is told first.

    Parameters
    ----------
    engine : Watched
        A running engine, or a recording that plays.
    frames : Frames
        Makes its frames.
    number : int
        The page's.
    plays : bool
        Whether `engine` is a recording.
    """
    profile = engine.profile
    said = {
        "you": number,
        "names": frames.names,
        "states": STATES,
        "channels": [channel._asdict() for channel in CHANNELS],
        "plays": plays,
        "scene": scene_of(profile, frames.built()),
        "rate_hz": profile.rate_hz,
    }
    return to_json("hello", said)


def controls(engine: Watched, desk: Desk) -> str:
    """Return what the settings are, and what depends on the algorithm.

    Parameters
    ----------
    engine : Watched
        A running engine, or a recording that plays.
    desk : Desk
        Changes its settings.
    """
    profile, fixed = engine.requested, desk.fixed()
    parameters = [{**each._asdict(), "fixed": fixed.get(each.key, "")} for each in desk.parameters()]
    return to_json("controls", {"title": path_of(profile), "poses": profile.cueing.poses, "parameters": parameters})


def statistics(engine: Watched) -> str:
    """Return the statistics of a run.

    Parameters
    ----------
    engine : Watched
        A running engine, or a recording that plays.
    """
    stats, rate_hz = engine.stats(), engine.profile.rate_hz
    driven = any(move["to"] == "RUNNING" for move in stats["transitions"])
    found = verdict(stats, rate_hz) if driven or not stats["frames_received"] else WAITING
    said = {key: stats[key] for key in STATISTICS} | {
        "transitions": stats["transitions"][-SHOWN:],
        "verdict": found._asdict(),
        "grade": grade(stats, rate_hz),
    }
    return to_json("stats", said)
