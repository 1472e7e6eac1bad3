"""The score of many settings on the same drives; what does not depend on them is computed once."""

import math
import multiprocessing
import pickle
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile
from motioncue.scoring.quality import fast_tilt, opposite
from motioncue.scoring.scene import Scene, poses_of
from motioncue.scoring.score import WEIGHTINGS, best_poses, weighed
from motioncue.scoring.senses import Array
from motioncue.tuning.parameters import with_values

__all__ = ["IMPOSSIBLE", "Judge", "Outcome", "team_of"]


class Outcome(NamedTuple):
    """What settings are worth on one drive."""

    score: float
    """With forces first, of the cue made smaller until it fits the platform."""
    rates_first: float
    """The same with the thresholds of turning halved."""
    use: float
    """Largest share of the platform's travel, speed or acceleration that the cue asks for; above 1 it does not fit."""
    fast_tilt: float
    """Share of time in which the platform rolls or pitches more than 3 deg/s faster than the car, or against it."""
    opposite: float
    """Share of time in which a sense feels the platform against the car, by more than a threshold; the largest of all
    senses."""


IMPOSSIBLE = Outcome(-math.inf, -math.inf, math.inf, 1.0, 1.0)
"""Of settings that cannot be designed."""


class Judge:
    """Scores settings of a profile's algorithm on drives.

    Notes
    -----
    Scores equal those of `motioncue.score`, but where a profile's own motion is better than the best one known: there
    that takes the profile's as the best, and this gives more than 100.  It can be pickled: another process prepares
    the drives again, and takes the errors of the best motion as they are.
    """

    def __init__(
        self,
        profile: Profile,
        motions: Sequence[npt.NDArray[np.void]],
        best: Sequence[Mapping[str, Array]] | None = None,
    ) -> None:
        self.profile = profile
        self.motions = tuple(motions)
        self._scenes = [Scene(profile, motion) for motion in self.motions]
        self._best = [_best_errors(scene) for scene in self._scenes] if best is None else list(best)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the same judge in another process."""
        return Judge, (self.profile, self.motions, self._best)

    def __call__(self, values: Mapping[str, float]) -> list[Outcome]:
        """Return what settings are worth on each drive."""
        try:
            cueing = with_values(self.profile.cueing, values)
            return [self._outcome(scene, best, cueing) for scene, best in zip(self._scenes, self._best, strict=True)]
        except ConfigError:  # such as a frequency above half the rate
            return [IMPOSSIBLE] * len(self._scenes)

    def _outcome(self, scene: Scene, best: Mapping[str, Array], cueing: Any) -> Outcome:
        asked = poses_of(scene.cues(cueing))
        if not np.isfinite(asked).all():
            return IMPOSSIBLE
        _, factors, use = scene.fitted(asked)
        felt = scene.felt(scene.made(asked * factors))
        errors = scene.errors(felt)
        scores = [weighed(weights, scene.still, errors, best[name]) for name, weights in WEIGHTINGS.items()]
        return Outcome(scores[0], scores[1], use, fast_tilt(scene.car, felt), float(np.max(opposite(scene.car, felt))))


def _best_errors(scene: Scene) -> dict[str, Array]:
    """Return the errors of the best motion with each weighting, by sense."""
    return {name: scene.errors(scene.felt(best_poses(scene, weights))) for name, weights in WEIGHTINGS.items()}


WAIT_S = 10  # for a cluster to answer

_judge: Judge | None = None  # of a worker process


class Team(Protocol):
    """Whoever scores settings: this process, or several."""

    def __call__(self, settings: Sequence[Mapping[str, float]]) -> list[list[Outcome]]:
        """Return the outcomes of each, in the same order."""


@contextmanager
def team_of(judge: Judge, workers: int = 1, cluster: str | None = None) -> Iterator[Team]:
    """Yield what scores settings, and end what it needed for that."""
    if cluster is not None:
        with _cluster(judge, cluster) as team:
            yield team
    elif workers > 1:
        with _processes(judge, workers) as team:
            yield team
    else:
        yield lambda settings: [judge(values) for values in settings]


@contextmanager
def _processes(judge: Judge, workers: int) -> Iterator[Team]:
    """Yield what scores settings in processes of this machine."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(pickle.dumps(judge),))
    try:
        yield lambda settings: list(pool.map(_score, settings))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(judge: bytes) -> None:
    """Begin a worker process; Ctrl-C is for the process that started it, also while the judge prepares its drives."""
    global _judge
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _judge = pickle.loads(judge)


def _score(values: Mapping[str, float]) -> list[Outcome]:
    assert _judge is not None
    return _judge(values)


@contextmanager
def _cluster(judge: Judge, address: str) -> Iterator[Team]:
    """Yield what scores settings on a Dask cluster.

    The judge is the result of a task there, so that it is made again if the worker that holds it is lost.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError(f'--dask: {error.name} is missing: pip install "motioncue[dask]"') from error
    try:
        client = Client(address, timeout=WAIT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--dask: found no scheduler at {address!r}: {error}") from error
    with client:
        make, given = judge.__reduce__()
        there = client.submit(make, *given, pure=False)

        def score(settings: Sequence[Mapping[str, float]]) -> list[list[Outcome]]:
            return list(client.gather(client.map(_asked, list(settings), judge=there, pure=False)))

        yield score


def _asked(values: Mapping[str, float], judge: Judge) -> list[Outcome]:
    return judge(values)
