"""Watch a running engine to its end: show it, and take it to neutral when time is up or a signal asks."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from motioncue.cli.history import History, Rate, state_of
from motioncue.cli.live import CHANNELS, View, microseconds
from motioncue.cli.screen import PERIOD_S, Screen
from motioncue.cli.signals import Interrupts
from motioncue.profile import Profile
from motioncue.runtime.engine import Engine

__all__ = ["EngineView", "path_of", "values_of", "watch"]

PATIENCE = 3.0  # fades that the way to neutral may take before the engine is stopped anyway


def path_of(profile: Profile) -> str:
    """Return in one line what is connected with what."""
    algorithm = type(profile.cueing).__name__.lower()
    return f"{profile.name}: {profile.source.system} → {algorithm} → {profile.output.system}"


def values_of(record: Any) -> dict[str, float]:
    """Return the channels that the view shows, from a record of shape (1,) or a mapping of fields."""
    if isinstance(record, Mapping):
        return {channel.name: float(record[channel.name]) for channel in CHANNELS if channel.name in record}
    return {channel.name: float(record[channel.name][0]) for channel in CHANNELS}


class EngineView:
    """Makes views of an engine.

    Parameters
    ----------
    engine : Engine
        Running.
    title : str
        Of the view.
    total_s : float or None
        How long it will run [s].
    messages : sequence of str
        Log lines; the newest are shown.
    label : str
        Of the cue.
    cue : callable, optional
        Returns the cue as the platform received it, and how many packets it received; the engine's own if not given.
    """

    def __init__(
        self,
        engine: Engine,
        title: str,
        total_s: float | None,
        messages: Sequence[str],
        *,
        label: str = "cue",
        cue: Callable[[], tuple[Mapping[str, float], int]] | None = None,
    ) -> None:
        self._engine = engine
        self._title = title
        self._total_s = total_s
        self._messages = messages
        self._cue = cue
        self._history = History([("car", "car"), ("cue", label)])
        self._in, self._out = Rate(), Rate()

    def __call__(self, elapsed_s: float, *, parked: bool) -> View:
        """Return the view now."""
        tick, stats = self._engine.newest(), self._engine.stats()
        cue, packets = self._cue() if self._cue else (values_of(tick["cue"]), stats["packets_sent"])
        received = tick["motion"]["time"][0]
        weight = float(tick["weight"][0])
        late = stats["lateness_us"]
        facts = [
            [
                ("in", f"{self._in.add(elapsed_s, stats['frames_received']):5.1f} frames/s"),
                ("out", f"{self._out.add(elapsed_s, packets):5.1f} packets/s"),
                ("cue", f"{100 * weight:3.0f} %"),
            ],
            [
                ("late p50", f"{microseconds(late['p50']):>7}"),
                ("p99", f"{microseconds(late['p99']):>7}"),
                ("max", f"{microseconds(late['max']):>7}"),
                ("skipped", str(stats["skipped"])),
                ("rejected", str(sum(stats["rejected"].values()))),
            ],
        ]
        age_s = float(tick["deadline"][0] - received) * 1e-9 if received else None
        motion = values_of(tick["motion"]) if received else {}
        return View(
            title=self._title,
            state=state_of(weight, age_s, self._engine.profile.source.hold_s, parked=parked),
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            facts=facts,
            series=self._history.add(elapsed_s, (motion, cue)),
            scales=self._history.scales,
            messages=tuple(self._messages),
            hint="Ctrl-C ends with a fade to neutral",
        )


def watch(
    engine: Engine, view: Callable[..., View], screen: Screen, interrupts: Interrupts, duration_s: float | None
) -> float:
    """Wait until time is up or a signal comes, then fade to neutral; return how long it all took [s].

    Parameters
    ----------
    engine : Engine
        Running; still running afterwards, at neutral or nearly so.
    view : callable
        Takes the elapsed time [s] and whether the engine is parked; returns what to show.
    screen : Screen
        Where to show it.
    interrupts : Interrupts
        Entered.
    duration_s : float or None
        The whole time, fade included [s]; None is until a signal.
    """
    fade_s = engine.profile.source.fade_s
    start = time.monotonic()
    park_at, end_at = (float("inf"),) * 2 if duration_s is None else (max(0.0, duration_s - fade_s), duration_s)
    parked = hurried = False
    while (elapsed := time.monotonic() - start) < end_at:
        if interrupts.count and not hurried:
            hurried = True
            park_at, end_at = elapsed, min(end_at, elapsed + PATIENCE * fade_s)
        if not parked and elapsed >= park_at:
            engine.park()
            parked = True
        elif hurried and engine.newest()["weight"][0] == 0.0:
            break
        if screen.live:
            screen.show(view(elapsed, parked=parked))
        elapsed = time.monotonic() - start
        next_at = min(elapsed + PERIOD_S, end_at if parked else park_at)
        time.sleep(max(0.0, next_at - elapsed))
    return time.monotonic() - start
