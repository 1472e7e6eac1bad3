"""Watches a running engine to its end: shows it, passes on requests, takes it to neutral."""

import logging
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from motioncue.cli.operator_input import ENTER, ESC, Interrupts, Keys
from motioncue.cli.tell import Hearing, Profiles
from motioncue.cli.terminal import PERIOD_S, STATES, History, Rate, Screen, Transition, View, microseconds
from motioncue.engine.engine import Engine
from motioncue.engine.leaving import leaving_of
from motioncue.platforms.build import Built
from motioncue.profile.explain import bounds_off
from motioncue.view.model import PlatformInForce, felt_of, positions_of, replied, used_of, values_of

log = logging.getLogger("motioncue")

SHOWN = 20  # most transitions in a view

PARKS = ("p", ESC)
"""Keys that park, at once and whatever was pressed before."""

APART_S = 1.0  # from one key to the next, if they are not a word
WAITS_S = 5.0  # how long a key waits for Enter

KEYS = {"e": "engage", "h": "hold", "q": "quit", "r": "keep", "n": "next"}
"""Operation that each of the other keys requests, if Enter follows: one that was hit by mistake, or a word that was
meant for another window, asks for nothing else than to park.  "quit" parks and ends, "next" is the folder's next
profile."""

LOST = {"send_errors": "not sent", "unheard": "nobody there"}
"""Labels of packets that did not arrive, by their statistic."""

# The view shows transitions itself, so the log's lines about them are left out.
TRANSITION = re.compile(rf" ({'|'.join(STATES)}) to ({'|'.join(STATES)}): ")


def travel_of(tick: npt.NDArray[np.void], built: Built | None, *, heard: bool = False) -> list[tuple[str, str]]:
    """Return how far each actuator is from neutral, as a share of its travel; without a platform, displacements.

    With `heard`, the platform says where they are: that follows what is sent.
    """
    if built is None:
        names = ("surge", "sway", "heave")
        return [(name, f"{tick['cue'][f'{name}_displacement'][0]:+.3f} m") for name in names]
    asked = used_of(positions_of(tick, built), built)
    found = used_of(tick["feedback"][0, : len(asked)], built) if heard else {}
    return [
        (name, f"{100.0 * share:+4.0f} %" + (f" at {100.0 * found[name]:+4.0f} %" if found else ""))
        for name, share in asked.items()
    ]


class EngineView:
    """Makes views of an engine."""

    def __init__(
        self,
        engine: Engine,
        title: str,
        total_s: float | None,
        messages: Sequence[str],
        *,
        address: str = "",
        refused: Callable[[], str] = str,
        cue: Callable[[], tuple[Mapping[str, float], int]] | None = None,
        profiles: Profiles | None = None,
        seats: Mapping[str, Engine] | None = None,
    ) -> None:
        self._seats = seats or {}
        self._engine = engine
        self._title = title
        self._total_s = total_s
        self._messages = messages
        self._address = address
        self._refused = refused
        self._cue = cue
        self._profiles = profiles
        self._history = History([("car", "car"), ("felt", "felt"), ("cue", "ask")])  # the page says "asked"
        self._platform = PlatformInForce()
        self._in, self._out = Rate(), Rate()

    def __call__(self, elapsed_s: float, *, operator: str = "engage", keys: bool = False, chosen: str = "") -> View:
        """Return the current view."""
        tick, stats = self._engine.newest(), self._engine.stats()
        cue, packets = self._cue() if self._cue else (values_of(tick["cue"]), stats["packets_sent"])
        weight = float(tick["weight"][0])
        late = stats["lateness_us"]
        facts = [
            [
                ("in", f"{self._in.add(elapsed_s, stats['frames_received']):5.1f} frames/s"),
                ("out", f"{self._out.add(elapsed_s, packets):5.1f} packets/s"),
                ("asked", f"{100 * weight:3.0f} %"),
                *([("operator", operator)] if operator != "engage" else []),
                *([("profile", self._profiles.used)] if self._profiles is not None else []),
            ],
            [
                ("late p50", f"{microseconds(late['p50']):>7}"),
                ("p99", f"{microseconds(late['p99']):>7}"),
                ("max", f"{microseconds(late['max']):>7}"),
                ("skipped", str(stats["skipped"])),
                ("rejected", str(sum(stats["rejected"].values()))),
                *((text, str(stats[name])) for name, text in LOST.items() if stats[name]),
            ],
        ]
        if self._seats:
            facts.append([(name, seat.stats()["state"].lower()) for name, seat in self._seats.items()])
        if says := replied(stats, int(tick["operation"][0])):
            facts.append([("platform", ", ".join(says))])
        poses = self._engine.profile.cueing.poses
        motion = values_of(tick["motion"]) if tick["motion"]["time"][0] else {}
        felt = felt_of(tick["motion"]) if motion and poses else {}
        state = stats["state"].lower()
        placed = any(output.get("replies", {}).get("positions") for output in stats["outputs"])
        return View(
            title=self._title,
            state=state,
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            facts=facts,
            series=self._history.add(elapsed_s, (motion, felt, cue)),
            scales=self._history.scales,
            caught={**stats["events"], **stats["rejected"]},
            limited={name: share for name, share in stats["limited"].items() if share > 0.0},
            travel=travel_of(tick, self._platform(self._engine.profile), heard=placed) if poses else (),
            transitions=[
                Transition(move["t"], move["reason"], move["to"].lower()) for move in stats["transitions"][-SHOWN:]
            ],
            messages=[line for line in list(self._messages) if not TRANSITION.search(line)],
            hint=_hint(state, operator, keys, chosen, self._profiles is not None),
            off=bounds_off(self._engine.profile),
            address=self._address,
            refused=self._refused(),
        )


def _hint(state: str, operator: str, keys: bool, chosen: str = "", several: bool = False) -> str:
    """Return a text of what the operator can do now; how to park comes first, as it is what stays if there is no room.

    `chosen` is the key that waits for Enter.
    """
    if operator == "quit":
        return "ending with a fade to neutral"
    if not keys:
        return "Ctrl-C ends with a fade to neutral"
    if chosen:
        return f"p or Esc parks  ·  Enter: {_word(chosen)}"
    what = "  ".join(f"{key} {_word(key)}" for key in KEYS if several or KEYS[key] != "next")
    after = "  ·  after a fault only e goes on" if state == "fault" else ""
    return f"p or Esc parks  ·  with Enter: {what}{after}"


def _word(key: str) -> str:
    """Return what a key asks for, in words."""
    return {"quit": "park and quit", "next": "next profile"}.get(KEYS[key], KEYS[key])


class Operator:
    """Understands keys: those that park at once, and those that ask for something else if Enter follows."""

    def __init__(self) -> None:
        self.chosen = ""  # the key that waits for Enter; empty if none does
        self._word = False  # whether the newest keys are a word, which asks for nothing
        self._at = -math.inf  # when the newest key came [s]

    def asked(self, keys: str, now: float) -> list[str]:
        """Return the operations that keys request, oldest first.

        Units: `now` [s].
        """
        asked = []
        if now - self._at >= WAITS_S:
            self.chosen = ""
        if keys and now - self._at >= APART_S and not self.chosen:
            self._word = False
        for key in keys:
            self._at = now
            if key in ENTER:
                asked += [KEYS[self.chosen]] if self.chosen else []
                self.chosen, self._word = "", False
                continue
            if key in PARKS:
                asked.append("park")
            self.chosen = "" if self._word or self.chosen or key not in KEYS else key
            self._word = self._word or not self.chosen
        return asked


def watch(
    engine: Engine,
    view: Callable[..., View],
    screen: Screen,
    interrupts: Interrupts,
    duration_s: float | None,
    profiles: Profiles | None = None,
) -> float:
    """Carry out the operator's requests until the end is requested or time is up, then fade to neutral."""
    with Keys() as keys, Hearing(engine, interrupts, profiles):
        return _watch(engine, view, screen, interrupts, keys, duration_s, profiles)


def _watch(
    engine: Engine,
    view: Callable[..., View],
    screen: Screen,
    interrupts: Interrupts,
    keys: Keys,
    duration_s: float | None,
    profiles: Profiles | None,
) -> float:
    start = time.monotonic()
    end_at = float("inf") if duration_s is None else duration_s
    operator = "engage"
    typing = Operator()
    hurried = leaving = False
    while (elapsed := time.monotonic() - start) < end_at:
        profile = engine.profile
        way_s = profile.supervisor.fade_s
        if profile.platform is not None and any(output.packet is not None for output in profile.outputs):
            way_s += profile.platform.rise_s  # DK's packets say no actuators
        if not hurried:
            park_at = max(0.0, end_at - way_s)
        asked = _asked(interrupts, typing.asked(keys.pressed(), elapsed))
        if "keep" in asked:
            engine.keep()
            asked = [name for name in asked if name != "keep"]
        for _ in range(asked.count("next")):
            if profiles is None:
                log.warning("next: this run has one profile; --profile FOLDER gives it several")
            else:
                profiles.next()
        asked = [name for name in asked if name != "next"]
        if "quit" in asked and not hurried:
            hurried = True
            park_at, end_at = elapsed, min(end_at, elapsed + leaving_of(profile).stop_s)
        if elapsed >= park_at and (operator != "quit" or interrupts.leaving != leaving):
            leaving = interrupts.leaving
            engine.stop(wait=False, leave=leaving)
            operator = "quit"
        elif hurried and engine.over:
            break
        if operator != "quit":  # the end cannot be revoked
            for operator in asked:
                getattr(engine, operator)()
        if screen.live:
            screen.show(view(elapsed, operator=operator, keys=keys.active, chosen=typing.chosen))
        elapsed = time.monotonic() - start
        next_at = min(elapsed + PERIOD_S, end_at if operator == "quit" else park_at)
        time.sleep(max(0.0, next_at - elapsed))
    return time.monotonic() - start


def _asked(interrupts: Interrupts, typed: list[str]) -> list[str]:
    """Return the operations requested by signals and keys since the last call, oldest first."""
    asked = interrupts.asked() + typed
    return ["quit"] if "quit" in asked else asked
