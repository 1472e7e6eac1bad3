"""What settings are worth on a drive: a program beside the engine's, at the lowest priority.

It reads requests, which are pickled by the process that started it, and writes answers, a line of JSON each; before
each step a line with no more than the request's number, which says that it is at work.  It ends with that process.
"""

import base64
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError, MotioncueError
from motioncue.platforms.build import CHANNELS as POSE
from motioncue.profile.profile import Profile
from motioncue.view.model import CHANNELS, PAST_HZ, used_of
from motioncue.view.playback import LEAST_S, Minute, Recent

LOWEST = 19  # niceness

EVALUATIONS = 60
"""Settings that a search tries for each of its four shares of the travel."""

SCORES = {
    ("best", "fits"): "fits",
    ("best", "stopped"): "stopped",
    ("rates", "fits"): "rates",
    ("rates", "stopped"): "rates_stopped",
}
"""Names of scores by weighting and motion; `best` is forces first."""


class Request(NamedTuple):
    """What is to be scored."""

    number: int
    profiles: Mapping[str, Profile]
    """Settings by a name."""
    motion: npt.NDArray[np.void]
    """Frames of the drive, MOTION_DTYPE, as the ticks read them."""
    stretch: tuple[float, float] | None = None
    """Only what is from and to these times is scored, by `corner`; from the first frame [s]."""
    tunes: bool = False
    """Whether better settings than those named ``now`` are looked for."""


def _held(profile: Profile) -> Profile:
    """Return a profile that takes frames as they are: those of a minute are bridged already."""
    return msgspec.structs.replace(profile, source=msgspec.structs.replace(profile.source, bridge="hold"))


class _Case:
    """Settings on a drive, as far as the best motion is not needed."""

    def __init__(self, profile: Profile, motion: npt.NDArray[np.void]) -> None:
        from motioncue.scoring.quality import fast_tilt
        from motioncue.scoring.scene import Scene, poses_of, with_platform

        self.scene = scene = Scene(with_platform(_held(profile)), motion)
        cues = scene.cues(scene.profile.cueing)
        asked = poses_of(cues)
        if not np.isfinite(asked).all():
            raise ArithmeticError("what is asked is not finite on this drive")
        felt = {
            "fits": scene.felt(scene.made(asked * scene.fitted(asked).factors)),
            "stopped": scene.felt(scene.stopped(cues)),
        }
        self.errors = {name: scene.errors(each) for name, each in felt.items()}
        self.fast_tilt = fast_tilt(scene.car, felt["stopped"])
        assert scene.profile.platform is not None
        self.platform = msgspec.json.encode(
            [msgspec.structs.replace(scene.profile.platform, description="", source=""), scene.profile.rate_hz]
        )


def scores_of(
    request: Request, known: dict[tuple[bytes, str], Any], stale: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """Yield what settings are worth on a drive: first against rest, then as scores, which take longer."""
    if request.stretch is not None:
        yield from _corners(request, stale)
        return
    from motioncue.scoring.score import FORCES_FIRST, RATES_FIRST, WEIGHTINGS, need, total_error

    cases: dict[str, _Case] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, profile in request.profiles.items():
        if stale():
            return
        try:
            case = cases[name] = _Case(profile, request.motion)
        except (MotioncueError, ArithmeticError, ValueError) as error:
            columns[name] = {"why": str(error)}
            continue
        forces, rates = (
            total_error(weights, case.errors["stopped"]) / total_error(weights, case.scene.still)
            for weights in (FORCES_FIRST, RATES_FIRST)
        )
        columns[name] = {"ratio": forces, "ratio_rates": rates, "fast_tilt": case.fast_tilt}
    why = ""
    try:
        need()
    except MotioncueError as error:
        why = str(error)
    answer = {"number": request.number, "columns": columns, "why": why}
    yield {**answer, "done": bool(why) or not cases}
    if why or not cases:
        return
    last = list(WEIGHTINGS)[-1]
    for weighting in WEIGHTINGS:
        for name, case in cases.items():
            if stale():
                return
            key = case.platform, weighting
            try:
                best = known[key] = known[key] if key in known else _best(case, weighting)
                beside = [other for other in cases.values() if other.platform == case.platform]
                columns[name] |= _scores(case, weighting, best, beside)
            except MotioncueError as error:
                columns[name]["why"] = str(error)
        yield {**answer, "done": weighting == last}


def _corners(request: Request, stale: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Yield what settings do on a stretch, once all are known."""
    assert request.stretch is not None
    columns: dict[str, dict[str, Any]] = {}
    for name, profile in request.profiles.items():
        if stale():
            return
        try:
            columns[name] = corner(profile, request.motion, *request.stretch)
        except (MotioncueError, ArithmeticError, ValueError) as error:
            columns[name] = {"why": str(error)}
    yield {"number": request.number, "columns": columns, "why": "", "done": True}


def search(request: Request, tell: Callable[[dict[str, Any]], object]) -> None:
    """Tell how far a search for better settings is, and then what it has found: a front over the use of travel."""
    from motioncue.tuning.tune import tune

    about = {"number": request.number, "why": ""}

    def progress(done: int, total: int, best: float) -> None:
        tell({**about, "found": {"done": done, "total": total, "best": best}, "done": False})

    try:
        tuned = tune(
            _held(request.profiles["now"]),
            [request.motion],
            evaluations=EVALUATIONS,
            front="use",
            progress=progress,
        )
    except (MotioncueError, ArithmeticError, ValueError) as error:
        tell({"number": request.number, "why": str(error), "done": True})
        return
    assert tuned.front is not None
    points = [point._asdict() for point in tuned.front.points]
    tell({**about, "found": {"before": tuned.before, "use": tuned.front.before[0], "points": points}, "done": True})


def _scores(case: _Case, weighting: str, best: Any, beside: Sequence[_Case]) -> dict[str, float]:
    """Return the scores of settings, on one scale with others of the same platform.

    That holds even if one of them is better than the best motion that was found.
    """
    from motioncue.scoring.score import WEIGHTINGS, total_error, weighed

    weights = WEIGHTINGS[weighting]
    for errors in (each for other in beside for each in other.errors.values()):
        best = errors if total_error(weights, errors) < total_error(weights, best) else best
    return {
        SCORES[weighting, made]: weighed(weights, case.scene.still, errors, best)
        for made, errors in case.errors.items()
    }


def _best(case: _Case, weighting: str) -> Any:
    """Return the errors of the best motion, by sense; kept in memory only."""
    from motioncue.cueing.senses import sampled
    from motioncue.scoring import optimum
    from motioncue.scoring.score import WEIGHTINGS

    scene = case.scene
    motion = optimum.best_motion(sampled(scene.car.slow, scene.rate_hz), scene.built, WEIGHTINGS[weighting])
    poses = optimum.poses_at(motion, scene.built, np.arange(len(scene.ticks)) / scene.rate_hz)
    return scene.errors(scene.felt(poses))


def main(requests: IO[bytes], answers: IO[str]) -> None:
    """Answer requests until there are no more; of those that wait, only the newest."""
    waiting: queue.Queue[Request] = queue.Queue()

    def read() -> None:
        try:
            while True:
                waiting.put(pickle.load(requests))
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)  # whoever asked has ended, also in the middle of a computation

    threading.Thread(target=read, daemon=True).start()
    known: dict[tuple[bytes, str], Any] = {}
    drive = b""
    while True:
        request = waiting.get()
        while not waiting.empty():
            request = waiting.get()
        if request.motion.tobytes() != drive:
            drive = request.motion.tobytes()
            known.clear()

        def stale(number: int = request.number) -> bool:
            _tell(answers, {"number": number})  # a word before each step, for who waits
            return not waiting.empty()

        try:
            if request.tunes:
                search(request, partial(_tell, answers))
                continue
            for answer in scores_of(request, known, stale):
                _tell(answers, answer)
        except Exception as error:  # the next settings may do
            why = f"{type(error).__name__}: {error}"
            _tell(answers, {"number": request.number, "columns": {}, "why": why, "done": True})


def _tell(answers: IO[str], answer: Mapping[str, Any]) -> None:
    answers.write(msgspec.json.encode(answer).decode() + "\n")
    answers.flush()


def run() -> None:
    """Be the process that judges: requests come from standard input, answers go to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    if hasattr(os, "nice"):
        os.nice(LOWEST)
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # only answers are written there
    # On Windows, a library that looks at standard input while it is loaded, as SciPy's does, waits for whoever reads it
    # (https://github.com/numpy/numpy/issues/24290): requests are read from a copy, and standard input is empty.
    asked = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    main(asked, told)


CALM_S = 0.6  # after the last change, before it is scored
RENEW_S = 20.0  # by which a minute is older than the newest one before it is replaced
SILENCE_S = 300.0  # without a word of the process, ten times what a best motion takes on a quiet machine

PROGRAM = "from motioncue.view.scorer import run; run()"
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

NO_PLATFORM = "the profile has no [platform]: there is nothing to compare the drive with"
NO_POSES = "{} gives no pose, it asks for the car's own motion: there is nothing to judge"
NO_STRETCH = "on this stretch the platform was not driven all the time, or it is too long ago"
WHOLE = "; driven without a break it was from {:.1f} to {:.1f} s: mark that"
TOO_SHORT = f"less than {LEAST_S:g} s driven yet: it is scored as soon as there are"
ENDED = "the search was ended"
TUNED = "tuned"  # name of the best settings that a search has found
DIED = "the process that judges has ended; the next change starts another"
SILENT = (
    "the process that judges said nothing for {:.0f} s and was ended: it hangs, was stopped, or other programs leave "
    "it no time; the next change, or M, starts another"
)
NOT_STARTED = "the process that judges cannot be started: {}"


class Scorer:
    """Judges settings on the last minute, beside the engine.

    The arithmetic is that of `motioncue.score`, in a process of its own at the lowest priority: in this one it would
    keep other threads from the interpreter.  The ticks need neither.  One minute is kept for several changes, so that
    they are compared on the same drive, and because its best motion takes longest.  A process that says nothing for
    `SILENCE_S` is ended; it says a word before each of its steps.
    """

    def __init__(self, recent: Recent, compared: Callable[[], Mapping[str, Profile]]) -> None:
        self._recent = recent
        self._compared = compared
        self._minute: Minute | None = None
        self._due: float | None = None
        self._renew = False
        self._stretch: tuple[float, float] | None = None
        self._tunes = False  # whether what is asked for is a search
        self._found: dict[str, Any] | None = None  # how far a search is, or what the newest one has found
        self._searching = False  # until it is done; no change of settings ends it
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._answer: dict[str, Any] = {"why": "", "columns": {}, "busy": False}
        self._heard: float | None = None  # when it said a word, or was asked; None while it has nothing to do
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._closed = False
        self.version = 0  # grows with each `answer`

    def changed(self) -> None:
        """Have the settings scored when they have been left alone for a moment."""
        self._due = time.monotonic() + CALM_S

    def ask(self, stretch: tuple[float, float] | None = None) -> None:
        """Have the settings scored now, and after each change: on the newest minute, or on a stretch.

        Units: `stretch` [s].
        """
        if self._searching:
            self._give_up(ENDED)
        self._stretch, self._tunes = stretch, False
        self._due, self._renew = time.monotonic(), True

    def tune(self, stretch: tuple[float, float] | None = None) -> None:
        """Have better settings looked for, on the newest minute or a stretch; `ask` ends it.

        Units: `stretch` [s].
        """
        self.ask(stretch)
        self._tunes = True

    def found(self, point: int) -> tuple[dict[str, float], str]:
        """Return settings that the newest search has found, and the reason to take them; refuse others."""
        with self._lock:
            found = self._found or {}
        points = found.get("points", [])
        if point >= len(points):
            raise ConfigError(f"try: found {point}, allowed are the {len(points)} settings that a search has found")
        share, score = points[point]["share"], points[point]["score"]
        why = f"tuned on a drive: score {found['before']:.0f} to {score:.0f} within {100 * share:.0f} % of the travel"
        return points[point]["values"], why

    def answer(self) -> dict[str, Any]:
        """Return what is known, as the page is told."""
        with self._lock:
            return {**self._answer, "found": self._found}

    def poll(self, now: float) -> None:
        """Begin what is due; end a process that is silent.

        Units: `now` [s].
        """
        if self._heard is not None and now - self._heard > SILENCE_S:
            self._give_up(SILENT.format(SILENCE_S))
        if self._due is None or now < self._due or self._closed or self._searching:
            return
        profiles = self._profiles()
        profile = profiles["now"]
        if profile.platform is None or not profile.cueing.poses:
            algorithm = profile.cueing.__struct_config__.tag
            self._due = None
            self._number += 1  # what is being computed is not wanted any more
            self._say(why=NO_PLATFORM if profile.platform is None else NO_POSES.format(algorithm))
            return
        if self._stretch is not None:
            self._due = None
            self._begin_stretch(profiles, now)
            return
        newest = self._recent.minute()
        if newest is None:
            if self._answer["why"] != TOO_SHORT:
                self._say(why=TOO_SHORT)
            return
        self._due = None
        if self._renew or self._old(newest):
            self._minute = newest
        self._renew = False
        assert self._minute is not None
        begin_s, end_s = self._minute.begin_s, self._minute.end_s
        request = Request(self._number + 1, dict(profiles), self._minute.motion, tunes=self._tunes)
        self._begin(request, now, begin_s=begin_s, end_s=end_s)

    def _profiles(self) -> dict[str, Profile]:
        """Return the settings to compare, beside those in force the best that a search has found."""
        profiles = dict(self._compared())
        now = profiles.pop("now")
        with self._lock:
            points = (self._found or {}).get("points")
        if points:
            from motioncue.tuning.evaluator import with_values

            with suppress(ConfigError, KeyError, TypeError):  # of another algorithm by now
                found = msgspec.structs.replace(now, cueing=with_values(now.cueing, points[-1]["values"]))
                if found not in (now, *profiles.values()):
                    profiles[TUNED] = found
        return {**profiles, "now": now}

    def _begin_stretch(self, profiles: Mapping[str, Profile], now: float) -> None:
        """Have the marked stretch scored, with what was driven before it."""
        assert self._stretch is not None
        begin_s, end_s = self._stretch
        drive = self._recent.stretch(begin_s, end_s, LEAD_S)
        if not isinstance(drive, Minute):
            self._number += 1
            whole = "" if drive is None else WHOLE.format(*drive)
            self._say(why=NO_STRETCH + whole)
            return
        inside = begin_s - drive.begin_s, end_s - drive.begin_s
        request = Request(self._number + 1, dict(profiles), drive.motion, inside, self._tunes)
        self._begin(request, now, begin_s=begin_s, end_s=end_s, first_s=drive.begin_s)

    def _begin(self, request: Request, now: float, **about: Any) -> None:
        """Have a request computed."""
        self._number = request.number
        self._tunes, self._searching = False, request.tunes
        self._found = {"done": 0, "total": 0} if request.tunes else self._found
        self._heard = now if self._heard is None else self._heard
        self._say(busy=True, **about)
        threading.Thread(target=self._send, args=(request,), daemon=True, name="motioncue judging").start()

    def _old(self, newest: Minute) -> bool:
        """Say whether the minute that is held should give way to the newest one."""
        held = self._minute
        if held is None:
            return True
        if self._answer["busy"]:  # what has been computed of it would be lost
            return False
        longer = newest.end_s - newest.begin_s > 1.5 * (held.end_s - held.begin_s)
        return longer or abs(newest.end_s - held.end_s) > RENEW_S

    def _give_up(self, why: str) -> None:
        """End the process, and drop what it was asked."""
        with self._lock:
            process, self._process = self._process, None
            self._number += 1  # so that what still waits to be sent is not
            self._heard = None
            self._answer = {**self._answer, "why": why, "busy": False}
            self._searching, self._found = False, None if self._searching else self._found
            self.version += 1
        if process is not None:
            process.kill()  # `_read` sees its end

    def close(self) -> None:
        """End the process."""
        self._closed = True
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()  # it keeps nothing, and one that reads nothing would not see that its input ends
        process.wait()
        _hang_up(process)

    def _say(self, *, why: str = "", busy: bool = False, **more: Any) -> None:
        with self._lock:
            self._heard = self._heard if busy else None
            columns = self._answer["columns"] if busy else {}
            self._answer = {"why": why, "busy": busy, "columns": columns, **more}
            self.version += 1

    def _send(self, request: Request) -> None:
        """Pass a request on; start the process if there is none."""
        with self._sending:  # writing waits for the process, so the answer has a lock of its own
            with self._lock:
                if self._closed or request.number != self._number:
                    return
                try:
                    process = self._process = self._process or self._begun()
                except OSError as error:
                    process, why = None, error.strerror or str(error)
            if process is None:
                self._say(why=NOT_STARTED.format(why))
                return
            assert process.stdin is not None
            with suppress(OSError, ValueError):  # it has ended, which `_read` tells
                pickle.dump(request, process.stdin)
                process.stdin.flush()

    def _begun(self) -> "subprocess.Popen[bytes]":
        """Start a process, and a thread that takes its answers."""
        process = _started()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        """Take the answers of a process until it ends."""
        assert process.stdout is not None
        for line in process.stdout:
            if not line.endswith(b"\n"):  # it was ended in the middle
                break
            told = msgspec.json.decode(line)
            with self._lock:
                if self._process is process and self._heard is not None:
                    self._heard = time.monotonic()
                if told.pop("number") == self._number and told:
                    done = told.pop("done")
                    self._heard = None if done else self._heard
                    if self._searching:
                        self._found, self._searching = told.pop("found", None), not done
                        self._due = time.monotonic() if done and self._found else self._due
                    self._answer = {**self._answer, **told, "busy": not done}
                    self.version += 1
        _hang_up(process)
        process.wait()
        with self._lock:
            ended = self._process is process
            if ended:
                self._process = None
        if ended and not self._closed:
            self._found, self._searching = None if self._searching else self._found, False
            self._say(why=DIED)


def _started() -> "subprocess.Popen[bytes]":
    """Start the process that judges, with the modules of this one, whatever lies in the present folder."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {PROGRAM}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ONE_CORE},
        creationflags=getattr(subprocess, "IDLE_PRIORITY_CLASS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def _hang_up(process: "subprocess.Popen[bytes]") -> None:
    """Let a process know that nothing more comes."""
    with suppress(OSError):  # what it has not read is lost with it
        if process.stdin is not None:
            process.stdin.close()


LEAD_S = 20.0  # driven before the stretch, so that its beginning is felt as it was
MOST = 500  # rows of a picture
AROUND_S = 0.5  # beside the worst moment, where its reason is looked for
FULL = 0.97  # share of travel, or of a rate, that counts as used up


def corner(profile: Profile, motion: npt.NDArray[np.void], begin_s: float, end_s: float) -> dict[str, Any]:
    """Return what settings do on a stretch."""
    from motioncue.cueing.senses import RATE_HZ, SENSES
    from motioncue.scoring.quality import rms
    from motioncue.scoring.scene import Scene, with_platform

    scene = Scene(with_platform(_held(profile)), motion)
    cues = scene.cues(scene.profile.cueing)
    positions = scene.positions(cues)
    poses = scene.built.kinematics.forward(positions)
    felt = scene.felt(poses)
    part = slice(round(begin_s * RATE_HZ), max(round(begin_s * RATE_HZ) + 1, round(end_s * RATE_HZ)))
    car, platform = scene.car.told[part], felt.told[part]
    errors, rest = rms(car - platform), rms(car)
    row, sense = divmod(int(np.argmax(np.abs(car - platform))), len(SENSES))
    worst_s = begin_s + row / RATE_HZ
    used = np.array([list(used_of(each, scene.built).values()) for each in positions])
    first, last = (min(len(cues) - 1, max(0, round(at * scene.rate_hz))) for at in (begin_s, end_s))
    around = slice(max(0, round((worst_s - AROUND_S) * scene.rate_hz)), round((worst_s + AROUND_S) * scene.rate_hz) + 2)
    why = _ended(scene.profile, SENSES[sense], cues[around], poses[around], np.abs(used[around]).max(axis=0), scene)
    return {
        "errors": errors.tolist(),
        "rest": rest.tolist(),
        "ratio": float(np.linalg.norm(errors)) / max(1e-9, float(np.linalg.norm(rest))),
        "worst_s": worst_s,
        "worst": SENSES[sense],
        "why": why or _meant(SENSES[sense], float(car[row, sense]), float(platform[row, sense])),
        "travel": float(np.abs(used[first : last + 1]).max()),
        **_picture(scene, cues, poses, positions, used, first, last),
    }


LEANS = ("surge", "sway")
"""Senses for which a platform leans."""


def _ended(profile: Profile, sense: str, cues: npt.NDArray[np.void], poses: Any, used: Any, scene: Any) -> str:
    """Return which end was met around a moment at which a sense is wrong; empty if none was."""
    if used.max() >= FULL:
        return f"{scene.built.names[int(used.argmax())].replace('_', ' ')} is at the end of its travel"
    for name, bounds in profile.bounds().items():
        most = bounds[0]
        if most is not None and name in (cues.dtype.names or ()) and np.abs(cues[name]).max() >= 0.999 * most:
            return f"the limit of {name.replace('_', ' ')} is met"
    rate = getattr(getattr(profile.cueing, "tilt", None), "rate_limit_deg_s", None)
    turns = np.abs(np.gradient(poses[:, 3:5], 1.0 / scene.rate_hz, axis=0)).max()
    if rate is not None and sense in LEANS and turns >= FULL * math.radians(rate):
        return f"leaning is as quick as it may be, {rate:g} °/s"
    return ""


def _meant(sense: str, car: float, platform: float) -> str:
    """Return what is wrong with a sense where no end was met; in thresholds."""
    if sense in ("roll_rate", "pitch_rate") and abs(platform) > abs(car):
        return "it leans so fast that it is felt as turning: a slower lean"
    if car * platform < 0.0 and abs(platform) > 1.0:
        return "it is felt against the car: the return to neutral is too quick"
    if abs(platform) < abs(car):
        lean = "more lean, " * (sense in LEANS)
        return f"too little arrives: stronger, {lean}or a slower return"
    return "too much arrives: weaker, or smoother"


def _picture(scene: Any, cues: Any, poses: Any, positions: Any, used: Any, first: int, last: int) -> dict[str, Any]:
    """Return names and rows of what a page would have been sent."""
    step = max(round(scene.rate_hz / PAST_HZ), (last - first) // MOST, 1)
    at = np.arange(first, last + 1, step)
    names = ["time", *(f"cue.{channel.name}" for channel in CHANNELS), *(f"pose.{name}" for name in POSE)]
    names += [f"{kind}.{name}" for kind in ("at", "used") for name in scene.built.names]
    asked = np.column_stack([cues[channel.name][at] for channel in CHANNELS])
    rows = np.column_stack([at / scene.rate_hz, asked, poses[at], positions[at], used[at]])
    return {"names": names, "rows": base64.b64encode(rows.astype("<f4").tobytes()).decode()}
