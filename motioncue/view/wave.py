"""A test wave on one axis, asked for on the page: the frames of a virtual car, sent while no simulator sends any."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from motioncue import sources
from motioncue.drive.courses import AXES, STILL_S, STOP_S, WAVE, WAVE_HZ, WAVE_S
from motioncue.drive.peers import FedSimulator
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError, MotioncueError, not_among
from motioncue.safety.supervisor import State
from motioncue.view.editor import Doubtful
from motioncue.view.model import PARKS, WANTED, Watched
from motioncue.virtual.installation import drive_packages, make_simulator

QUIET_S = 0.5  # without a frame, until a simulator counts as silent
SPARE_S = 4.0  # beyond rising and fading in, before the wave begins
LOOK_S = 0.05
OTHERS = 20  # frames that were not sent here, from which on a simulator counts as there
LATE_S = 5.0  # of an engine that takes no frame
FOLLOWS = (int(State.RUNNING), int(State.HOLDING))
NEWS_S = 20.0  # that is said how it ended
STOPS_S = 1.0  # without following: a frame that is late ends no wave

WAITS = "the virtual car stops for it, and drives on when it is over"
ASKED = ["within all limits; then it parks by itself, and Park ends it at once", "is everybody clear of it?"]
PURPOSE = "{}: the platform rises, engages, and follows a car that is moved on this axis alone, {:g} s at {:g} Hz"

Player: TypeAlias = Callable[[str, float], Any]
"""Makes what stops a car, lets it stand for a time [s], moves it by a wave on an axis and drives on; it has ``run``,
``stop`` and ``sent`` as a simulator has."""


class TestWave:
    """Moves one axis and parks, by frames at the engine's own endpoint: all that guards a drive guards it.

    A virtual simulator plays it itself, by `player`, and its car stands for it; any other one must not send meanwhile.
    """

    __test__ = False  # it is no test, whatever its name

    def __init__(self, engine: Watched, player: Player | None = None) -> None:
        self._engine = engine
        self._player = player
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self.told = ""  # what is going on, or why the newest one ended
        self._over_at = math.inf

    def news(self) -> str:
        """Return what is going on, or for a while why the newest one ended."""
        return self.told if time.monotonic() - self._over_at < NEWS_S else ""

    def start(self, axis: str, *, sure: bool = False) -> None:
        """Begin a wave; raise ConfigError if that is not possible now, and Doubtful if nobody was asked."""
        if axis not in AXES:
            raise ConfigError(f"wave: {not_among(axis, AXES)}")
        engine = self._engine
        if not isinstance(engine, Engine):
            raise ConfigError("wave: found a recording, allowed is with an engine that runs")
        if self._thread is not None and self._thread.is_alive():
            raise ConfigError("wave: found one under way, allowed is one at a time")
        if (state := State(int(engine.newest()["state"][0]))) is not State.OFFLINE:
            raise ConfigError(f"wave: found {state.name.lower()}, allowed is while parked")
        before = engine.stats()["frames_received"]
        if self._player is None:
            time.sleep(QUIET_S)
            if engine.stats()["frames_received"] != before:
                raise ConfigError("wave: found frames of a simulator, allowed is without: end it first")
        profile = engine.profile
        rise_s = 0.0 if profile.platform is None else profile.platform.rise_s
        lead_s = max(rise_s, profile.supervisor.engage_s) + profile.supervisor.fade_s + SPARE_S
        player = None if self._player is None else self._player(axis, lead_s)
        if not sure:
            waits = [] if self._player is None else [WAITS]
            raise Doubtful([PURPOSE.format(axis, WAVE_S, WAVE_HZ), *waits, *ASKED])
        if player is None:
            system, urls = sources.system_of(profile.source), profile.source.endpoints
            packages = drive_packages(system, WAVE + axis, duration_s=lead_s + WAVE_S + STILL_S)
            to = [_reachable(url) for url in urls]
            player = make_simulator(system, to, packages) if urls else FedSimulator(engine.feed, packages)
        self._ended.clear()
        self._over_at = math.inf
        self._thread = threading.Thread(target=self._run, args=(engine, axis, player, lead_s), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait until it has."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, engine: Engine, axis: str, player: Any, lead_s: float) -> None:
        """Play the car, watch over it, and park."""
        sends = threading.Thread(target=player.run, name="motioncue test wave", daemon=True)
        try:
            sends.start()
            why = "" if self._player is None else self._stopped(engine, axis, sends)
            if not why:
                engine.engage()
                why = self._watch(engine, axis, player, sends, lead_s)
        except (MotioncueError, RuntimeError) as error:  # such as an engine that ends
            why = str(error)
        with suppress(MotioncueError, RuntimeError):
            engine.park()
        while sends.is_alive() and not self._ended.is_set() and not _parked(engine) and not why:
            time.sleep(LOOK_S)
        player.stop()
        if sends.ident is not None:
            sends.join()
        self.told, self._over_at = f"Test wave on {axis}: {why or 'done, parked'}", time.monotonic()

    def _stopped(self, engine: Engine, axis: str, sends: threading.Thread) -> str:
        """Wait until a virtual car stands; return why it ended before, or nothing."""
        engine.hold()  # which leaves it parked, and shows who parks meanwhile
        asked_at = time.monotonic()
        while (waited := time.monotonic() - asked_at) < STOP_S + 2.0 * LOOK_S:
            self.told = f"Test wave on {axis}: the virtual car stops · Park ends it"
            time.sleep(LOOK_S)
            if self._ended.is_set() or not sends.is_alive():
                return "ended"
            if waited > 2.0 * LOOK_S and _wanted(engine) in PARKS:
                return "parked before its end"
        return ""

    def _watch(self, engine: Engine, axis: str, player: Any, sends: threading.Thread, lead_s: float) -> str:
        """Wait for the end of the wave; return why it ended before, or nothing."""
        before, sent = engine.stats()["frames_received"], player.sent
        begun, asked_at = None, time.monotonic()
        followed_at = asked_at
        while sends.is_alive() and not self._ended.is_set():
            time.sleep(LOOK_S)
            now, tick = time.monotonic(), engine.newest()
            came = engine.stats()["frames_received"] - before
            begun = now if begun is None and came else begun
            if begun is None:
                if now - asked_at > LATE_S:
                    return "the engine took no frame of it"
                continue
            if came > player.sent - sent + OTHERS:
                return "a simulator sends frames: ended"
            if _wanted(engine) in PARKS and now - asked_at > 2.0 * LOOK_S:
                return "parked before its end"
            moves, state = now - begun >= lead_s, int(tick["state"][0])
            followed_at = now if state in FOLLOWS else followed_at
            if state == int(State.FAULT) or (moves and now - followed_at > STOPS_S):
                return "the platform did not engage, or stopped"
            if now - begun >= lead_s + WAVE_S:
                return ""
            self.told = f"Test wave on {axis}: {'moving' if moves else 'the platform rises'} · Park ends it"
        return "" if not self._ended.is_set() else "ended"


def _wanted(engine: Engine) -> int:
    return int(engine.newest()["operation"][0]) % WANTED


def _parked(engine: Engine) -> bool:
    return int(engine.newest()["state"][0]) == int(State.OFFLINE)


def _reachable(url: str) -> str:
    """Return an endpoint at this machine, for one at which all its addresses are listened to."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
