"""What settings are worth on a drive: a program beside the engine's, at the lowest priority.

It reads requests, which are pickled by the process that started it, and writes answers, a line of JSON each; before
each step a line with no more than the request's number, which says that it is at work.  It ends with that process.
"""

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import MotioncueError
from motioncue.profile.profile import Profile

__all__ = ["Request", "judged", "main", "run"]

LOWEST = 19  # niceness

SCORES = {
    ("best", "fits"): "fits",
    ("best", "stopped"): "stopped",
    ("rates", "fits"): "rates",
    ("rates", "stopped"): "rates_stopped",
}
"""Names of scores by weighting and motion; `best` is forces first."""


class Request(NamedTuple):
    """What is to be judged."""

    number: int
    profiles: Mapping[str, Profile]
    """Settings by a name."""
    motion: npt.NDArray[np.void]
    """Frames of the drive, MOTION_DTYPE, as the ticks read them."""


class _Case:
    """Settings on a drive, as far as the best motion is not needed."""

    def __init__(self, profile: Profile, motion: npt.NDArray[np.void]) -> None:
        from motioncue.scoring.quality import fast_tilt
        from motioncue.scoring.scene import Scene, poses_of, with_platform

        source = msgspec.structs.replace(profile.source, bridge="hold")  # the frames are bridged already
        self.scene = scene = Scene(with_platform(msgspec.structs.replace(profile, source=source)), motion)
        cues = scene.cues(scene.profile.cueing)
        asked = poses_of(cues)
        if not np.isfinite(asked).all():
            raise ArithmeticError("the cue is not finite on this drive")
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


def judged(
    request: Request, known: dict[tuple[bytes, str], Any], stale: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """Yield what settings are worth on a drive: first against rest, then as scores, which take longer.

    Parameters
    ----------
    request : Request
        The settings and the drive.
    known : dict
        Keeps errors of best motions for other settings of the same drive.
    stale : callable
        Says whether the answer is no longer wanted.

    Yields
    ------
    dict
        ``number``; ``done``, whether nothing follows; ``why``, why there are no scores; and ``columns``: of each name
        either ``why`` it cannot be judged, or ``ratio`` and ``ratio_rates`` (error of what the platform does as a
        share of that at rest), ``fast_tilt``, and with a score ``fits``, ``stopped``, ``rates``, ``rates_stopped``.
    """
    from motioncue.scoring.score import FORCES_FIRST, RATES_FIRST, WEIGHTINGS, need

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
        columns[name] = {
            "ratio": _total(FORCES_FIRST, case.errors["stopped"]) / _total(FORCES_FIRST, case.scene.still),
            "ratio_rates": _total(RATES_FIRST, case.errors["stopped"]) / _total(RATES_FIRST, case.scene.still),
            "fast_tilt": case.fast_tilt,
        }
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


def _scores(case: _Case, weighting: str, best: Any, beside: Sequence[_Case]) -> dict[str, float]:
    """Return the scores of settings, on one scale with others of the same platform.

    That holds even if one of them is better than the best motion that was found.
    """
    from motioncue.scoring.score import WEIGHTINGS, weighed

    weights = WEIGHTINGS[weighting]
    for errors in (each for other in beside for each in other.errors.values()):
        best = errors if _total(weights, errors) < _total(weights, best) else best
    return {
        SCORES[weighting, made]: weighed(weights, case.scene.still, errors, best)
        for made, errors in case.errors.items()
    }


def _best(case: _Case, weighting: str) -> Any:
    """Return the errors of the best motion, by sense; kept in memory only."""
    from motioncue.scoring import optimum
    from motioncue.scoring.score import WEIGHTINGS
    from motioncue.scoring.senses import sampled

    scene = case.scene
    motion = optimum.best_motion(sampled(scene.car.slow, scene.rate_hz), scene.built, WEIGHTINGS[weighting])
    poses = optimum.poses_at(motion, scene.built, np.arange(len(scene.ticks)) / scene.rate_hz)
    return scene.errors(scene.felt(poses))


def _total(weights: Any, errors: Any) -> float:
    """Return the error over all senses; infinite where a pose is out of reach."""
    total = float(np.sqrt(np.sum((weights * errors) ** 2)))
    return total if np.isfinite(total) else np.inf


def main(requests: IO[bytes], answers: IO[str]) -> None:
    """Answer requests until there are no more; of those that wait, only the newest.

    Parameters
    ----------
    requests, answers : file
        Where they come from and go to.
    """
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
            for answer in judged(request, known, stale):
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
