"""The connected parts of an engine, without threads and sockets, and how changes of their settings are made."""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from motioncue.core.clock import Clock
from motioncue.core.threads import RecordRing
from motioncue.engine.along import Recalled
from motioncue.engine.assembly import check_pose, intake_of, load_profile, settings_of
from motioncue.engine.emitter import Emitter
from motioncue.engine.fitting import gains_for
from motioncue.engine.journal import LOG, Log
from motioncue.engine.leaving import check_leaving
from motioncue.engine.tick import Settings
from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile, Record, differences, overridden

if TYPE_CHECKING:
    from motioncue.recording.recorder import Recorder

__all__ = ["Change", "Pipeline", "Tuner", "changed", "fixed_because", "refuse_fixed"]

TRANSITIONS = 10_000  # transitions to keep


Change: TypeAlias = Profile | str | Path | Mapping[str, Any] | Iterable[str]
"""A profile, its name or path, or overrides: ``"KEY=VALUE"``, several of these, or a mapping."""

LIVE = (
    "cueing",
    "limits",
    "watch",
    "supervisor",
    "source.bridge",
    "source.head_m",
    "output.limits",
    *(
        f"platform.{key}"
        for key in (
            *("preset", "description", "source", "gives_way", "park", "rise_s"),
            *("lag_s", "lag_damping", "dead_time_s"),
        )
    ),
    *(f"platform.{key}" for key in ("leg", "crank", "post", "axes.travel", "axes.turn")),
    "cars",
    "description",
    "name",
)
"""Tables and keys of a profile that may change while it runs; those of every output and of every axis."""

CONNECTED = "how the systems are connected"

REASONS = {
    "platform": "the platform's geometry",
    "record": "what is recorded",
    "laps": "where laps are kept",
    **dict.fromkeys(("output.rate_hz", "output.spin_us", "output.keep_awake"), "how the sending thread runs"),
    **dict.fromkeys(("output.core", "output.lock_memory"), "how the sending thread runs"),
    "output.pose": "how the platform's pose is known",
    "output.tactile": "what the tactile signal is made of",
    **dict.fromkeys(("source.acceleration", "source.derivative_delay_s"), "how packets become motion"),
    **dict.fromkeys(("source.options", "source.packet", "source.car"), "how packets become motion"),
}
"""Why keys are fixed while it runs; others by `CONNECTED`."""

RANGES = ("min_m", "max_m", "min_deg", "max_deg")


def refuse_fixed(old: Profile, new: Profile) -> None:
    """Refuse a change of settings that are fixed while the engine runs."""
    for key, (allowed, found) in differences(old, new).items():
        turned = key.startswith("platform.axes[") and (allowed is None or found is None)  # from travel to turn
        if turned or fixed_because(old, key):
            words = ["nothing" if value is None else repr(value) for value in (found, allowed)]
            raise ConfigError(f"{key}: found {words[0]}, allowed is {words[1]} while it runs")


def fixed_because(profile: Profile, key: str) -> str:
    """Return why a key is fixed while the engine runs; empty if it is not."""
    place = re.sub(r"\[\d+\]", "", key)
    if not any(place == live or place.startswith(f"{live}.") for live in LIVE):
        return next((why for key, why in REASONS.items() if place == key or place.startswith(f"{key}.")), CONNECTED)
    shares = any(output.packet is not None and output.packet.uses_ranges for output in profile.outputs)
    if shares and place.startswith("platform.") and place.endswith(RANGES):
        return "the numbers in the output's packet depend on this range"
    axis = re.match(r"platform\.axes\[(\d+)\]", key)
    axes = () if profile.platform is None else profile.platform.axes
    if axis and place.endswith(RANGES) and axes[int(axis[1])].carries_below_hz is not None:
        return "the legs go the other way as a sled is sent back, each within bounds of its own"
    return ""


def changed(profile: Profile, change: Mapping[str, Any] | Iterable[str]) -> Profile:
    """Return a profile with some values changed; a preset that becomes ``auto`` is scaled."""
    was_auto = getattr(profile.cueing, "preset", None) == "auto"
    return overridden(profile, change, None if was_auto else gains_for)


class Tuner:
    """Turns requested changes of a profile into settings, one after the other: `settings` are those of `profile`."""

    def __init__(self, profile: Profile, adapt: Callable[[Profile], Profile] = lambda profile: profile) -> None:
        self.profile = profile
        self._adapt = adapt
        self.settings = settings_of(profile)
        self._one_by_one = threading.Lock()

    def __call__(self, change: Change, post: Callable[[Settings], Any]) -> None:
        """Check a change, design its settings and pass them on."""
        with self._one_by_one:
            profile = self._changed(change)
            refuse_fixed(self.profile, profile)
            check_pose(profile)
            check_leaving(profile)
            settings = settings_of(profile, self.settings)
            post(settings)
            self.profile, self.settings = profile, settings

    def recall(self, recalled: Recalled, post: Callable[[Settings], Any]) -> None:
        """Pass on the settings requested last with what an earlier session felt."""
        with self._one_by_one:
            settings = settings_of(self.profile, self.settings, recalled)
            post(settings)
            self.settings = settings

    def _changed(self, change: Change) -> Profile:
        """Return the profile that results from a change; raise ConfigError if it is not valid by itself."""
        if isinstance(change, str) and "=" in change:
            return changed(self.profile, [change])
        if isinstance(change, str | Path):
            change = load_profile(change)
        return self._adapt(change) if isinstance(change, Profile) else changed(self.profile, change)


class Pipeline:
    """The connected parts of an engine, without threads and sockets, for live and simulated runs."""

    def __init__(
        self, profile: Profile, clock: Clock, trace: int = 0, adapt: Callable[[Profile], Profile] = lambda it: it
    ) -> None:
        self._tuner = Tuner(profile, adapt)
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

    def recall(self, data: bytes) -> Recalled:
        """Go on from what an earlier session felt along the way; return it, to be asked when that has happened.

        PacketError if these bytes are not what `Along.data` returns.
        """
        recalled = Recalled(data)

        def post(settings: Settings) -> None:
            self._post(settings)
            if self.recorder is not None:
                self.recorder.recalled(time.monotonic_ns(), settings.number, data)

        self._tuner.recall(recalled, post)
        return recalled

    def _post(self, settings: Settings) -> None:
        """Pass settings to the ticks, which pass on what the receiver uses of them; one thread at a time calls it."""
        self.emitter.retune(settings)
        if self.recorder is not None:
            self.recorder.retuned(time.monotonic_ns(), settings.number, msgspec.to_builtins(settings.profile))

    def record(self, record: Record, about: dict[str, str], log: Log = LOG) -> "Recorder":
        """Record both loops; return the recorder, which the caller enters before they begin."""
        from motioncue.recording.recorder import RING_BYTES, Recorder, tick_ring_bytes  # loads MCAP

        ticks, source = RecordRing(tick_ring_bytes(self.profile.rate_hz)), RecordRing(RING_BYTES)
        self.emitter.record(ticks)
        self.intake.record(source)
        self.recorder = Recorder(record, [ticks, source], msgspec.to_builtins(self.profile), about=about, log=log)
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
            **({"chassis": said} if (said := self.intake.chassis_said()) else {}),
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
