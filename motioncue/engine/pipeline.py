"""The connected parts of an engine, without threads and sockets."""

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from motioncue.core.clock import Clock
from motioncue.core.threads import RecordRing
from motioncue.engine.assembly import intake_of
from motioncue.engine.changes import Change, Tuner
from motioncue.engine.emitter import Emitter
from motioncue.engine.retune import Settings
from motioncue.profile.profile import Profile, Record

if TYPE_CHECKING:
    from motioncue.recording.recorder import Recorder

__all__ = ["Pipeline"]

TRANSITIONS = 10_000  # transitions to keep


class Pipeline:
    """The connected parts of an engine, without threads and sockets, for live and simulated runs."""

    def __init__(self, profile: Profile, clock: Clock, trace: int = 0) -> None:
        self._tuner = Tuner(profile)
        self.intake = intake_of(profile)
        self.recorder: Recorder | None = None
        self._moves: deque[dict[str, Any]] = deque(maxlen=TRANSITIONS)
        self._collected = 0
        self._collecting = threading.Lock()  # the logging thread and callers of `stats` both collect transitions
        self.emitter = Emitter(self.intake, self._tuner.settings, clock, trace=trace)

    @property
    def profile(self) -> Profile:
        """The profile whose settings are in force."""
        profile: Profile = self.emitter.settings.profile
        return profile

    @property
    def requested(self) -> Profile:
        """The profile requested last."""
        return self._tuner.profile

    def retune(self, change: Change) -> None:
        """Change settings while it runs; see `Engine.retune`."""
        self._tuner(change, self._post)

    def _post(self, settings: Settings) -> None:
        """Pass settings to both loops; one thread at a time calls it."""
        profile: Profile = settings.profile
        self.emitter.retune(settings)
        self.intake.retune(profile.watch, profile.source.head_m, profile.supervisor.fade_s, settings.number)
        if self.recorder is not None:
            self.recorder.retuned(time.monotonic_ns(), settings.number, msgspec.to_builtins(profile))

    def record(self, record: Record, about: dict[str, str]) -> "Recorder":
        """Record both loops; return the recorder, which the caller enters before they begin."""
        from motioncue.recording.recorder import RING_BYTES, Recorder, tick_ring_bytes  # loads MCAP

        ticks, source = RecordRing(tick_ring_bytes(self.profile.rate_hz)), RecordRing(RING_BYTES)
        self.emitter.record(ticks)
        self.intake.record(source)
        self.recorder = Recorder(record, [ticks, source], msgspec.to_builtins(self.profile), about=about)
        return self.recorder

    def transitions(self, known: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Return the kept transitions and retunes, and how many there were in all."""
        with self._collecting:
            new = _gathered(self.emitter.transitions())
            self._moves.extend(new)
            self._collected += len(new)
            missing = min(self._collected - known, len(self._moves))
            return list(self._moves)[len(self._moves) - missing :], self._collected

    def stats(self) -> dict[str, Any]:
        """Return the statistics so far; the keys are those of ``motioncue run --json``."""
        moves, _ = self.transitions()
        began = self.emitter.counts()["first_ns"]
        counts = self.emitter.counts()
        algorithm = self.emitter.settings.algorithm.counts
        return {
            "frames_received": self.intake.accepted,
            "packets_sent": counts["packets"],
            "rate_hz": counts["rate_hz"],
            "skipped": counts["skipped"],
            "rejected": self.intake.rejected,
            "lateness_us": self.emitter.lateness_us(),
            "latency_s": self.emitter.latency_s,
            "sessions": self.intake.sessions,
            "others_received": self.intake.others,
            "repeats": self.intake.repeats,
            "replies_sent": self.intake.replies,
            "replies_lost": self.intake.replies_lost,
            "datagrams_sent": counts["datagrams"],
            "send_errors": counts["send_errors"],
            "unheard": sum(output["unheard"] for output in self.emitter.outputs()),
            "state": self.emitter.state,
            "retunes": counts["retunes"],
            "transitions": [
                {
                    "t": (move["time"] - began) * 1e-9,
                    **{key: move[key] for key in ("from", "to", "reason", "count") if key in move},
                }
                for move in moves
            ],
            "events": self.intake.discontinuities,
            "limits": self._bounds() or "none",
            "limited": self.emitter.settings.limits.shares() | self._output_shares(),
            **({"algorithm": algorithm} if algorithm else {}),
            **({} if self.recorder is None else {"recorded": self.recorder.counts()}),
        }

    def _bounds(self) -> dict[str, list[float | None]]:
        """Return the bounds on the cue; those on a single output have its number."""
        return self.profile.bounds() | {
            f"output[{index}].{channel}": bounds
            for index, output in enumerate(self.profile.outputs)
            for channel, bounds in output.limits.bounds().items()
        }

    def _output_shares(self) -> dict[str, float]:
        """Return the share of ticks in which each bound on a single output or an actuator acted."""
        return {
            f"output[{index}].{name}": share
            for index, chain in enumerate(self.emitter.settings.chains)
            for stage in chain.stages
            for name, share in stage.shares().items()
        }


def _gathered(moves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the transitions with consecutive retunes merged into one that says how many they are."""
    out: list[dict[str, Any]] = []
    for move in moves:
        if move["reason"] != "retuned":
            out.append(move)
        elif out and out[-1]["reason"] == "retuned":
            out[-1]["count"] += 1
        else:
            out.append({**move, "count": 1})
    return out
