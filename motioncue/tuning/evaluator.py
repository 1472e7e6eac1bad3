"""The numbers that a search may change, and the score of many settings of them on the same drives."""

import math
import multiprocessing
import pickle
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import inspect

from motioncue.core.table import Table
from motioncue.cueing import name_of
from motioncue.cueing.senses import Array
from motioncue.cueing.settings import Cueing
from motioncue.errors import ConfigError, meant
from motioncue.profile.profile import Profile
from motioncue.scoring.quality import fast_tilt, opposite
from motioncue.scoring.scene import Scene, poses_of
from motioncue.scoring.score import WEIGHTINGS, best_poses, weighed


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


class Evaluator:
    """Scores settings of a profile's algorithm on drives.

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
        """Return what makes the same evaluator in another process."""
        return Evaluator, (self.profile, self.motions, self._best)

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

_evaluator: Evaluator | None = None  # of a worker process


class Workers(Protocol):
    """Whoever scores settings: this process, or several."""

    def __call__(self, settings: Sequence[Mapping[str, float]]) -> list[list[Outcome]]:
        """Return the outcomes of each, in the same order."""


@contextmanager
def workers_of(evaluator: Evaluator, workers: int = 1, cluster: str | None = None) -> Iterator[Workers]:
    """Yield what scores settings, and end what it needed for that."""
    if cluster is not None:
        with _cluster(evaluator, cluster) as pool:
            yield pool
    elif workers > 1:
        with _processes(evaluator, workers) as pool:
            yield pool
    else:
        yield lambda settings: [evaluator(values) for values in settings]


@contextmanager
def _processes(evaluator: Evaluator, workers: int) -> Iterator[Workers]:
    """Yield what scores settings in processes of this machine."""
    context = multiprocessing.get_context("spawn")
    processes = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(pickle.dumps(evaluator),))
    try:
        yield lambda settings: list(processes.map(_score, settings))
    finally:
        processes.shutdown(wait=True, cancel_futures=True)


def _begin(evaluator: bytes) -> None:
    """Begin a worker process; Ctrl-C is for the process that started it, also while its drives are prepared."""
    global _evaluator
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _evaluator = pickle.loads(evaluator)


def _score(values: Mapping[str, float]) -> list[Outcome]:
    assert _evaluator is not None
    return _evaluator(values)


@contextmanager
def _cluster(evaluator: Evaluator, address: str) -> Iterator[Workers]:
    """Yield what scores settings on a Dask cluster.

    The evaluator is the result of a task there, so that it is made again if the worker that holds it is lost.
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
        make, given = evaluator.__reduce__()
        there = client.submit(make, *given, pure=False)

        def score(settings: Sequence[Mapping[str, float]]) -> list[list[Outcome]]:
            return list(client.gather(client.map(_asked, list(settings), evaluator=there, pure=False)))

        yield score


def _asked(values: Mapping[str, float], evaluator: Evaluator) -> list[Outcome]:
    return evaluator(values)


DIGITS = 5  # of a value, so that a profile holds exactly what was scored
DOUBLINGS = 6.0  # that a logarithmic parameter may leave its first value, either way
INSIDE = 1e-4  # of a bound that is not allowed itself: how far from it a value stays

Orders: TypeAlias = Sequence[Mapping[str, float]]
"""Keys, each with the value of the settings, of which none may be above the next one."""


class Parameter(NamedTuple):
    """A number that a search may change."""

    key: str
    """Dotted key in the profile, such as ``cueing.surge.gain``."""
    value: float
    """The value to begin from."""
    low: float
    high: float
    """What is searched: what the settings declare, on the side of 0 on which the first value is."""
    scale: float
    """Step that counts as one in the search; 0 for a logarithmic parameter, where one is a factor of 2."""

    def to_search(self, value: float) -> float:
        """Return a value as the search sees it: 0 at the first value."""
        return (value - self.value) / self.scale if self.scale else math.log2(value / self.value)

    def from_search(self, place: float) -> float:
        """Return the value that the search means, within bounds and, but for the first one, of five digits."""
        if place == 0.0:
            return self.value
        value = self.value + self.scale * place if self.scale else self.value * 2.0**place
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)


def parameters_of(cueing: Cueing, names: Sequence[str] = ()) -> list[Parameter]:
    """Return the parameters of an algorithm's settings."""
    found = dict(_numbers_in(inspect.type_info(type(cueing)), cueing, "cueing"))
    having = {key: parameter for key, parameter in found.items() if parameter is not None}
    if not having:
        raise ConfigError(f"cueing.algorithm: found {name_of(cueing)!r}, which has no numbers to search")
    if not names:
        return [parameter for key, parameter in having.items() if key.removeprefix("cueing.") not in cueing.unsearched]
    chosen: dict[str, Parameter] = {}
    for name in names:
        path = name if name.startswith("cueing.") else f"cueing.{name}"
        fits = [key for key in found if key == path or key.startswith(f"{path}.") or fnmatchcase(key, path)]
        if not fits:
            shown = [key.removeprefix("cueing.") for key in having]
            raise ConfigError(f"parameter: found {name!r}, allowed are {', '.join(shown)}{meant(name, shown)}")
        if not any(key in having for key in fits):
            raise ConfigError(
                f"parameter: found {name!r}, which has no value to begin from; allowed is one with a value, such as "
                f"after --set {fits[0]}=VALUE"
            )
        chosen |= {key: having[key] for key in fits if key in having}
    return list(chosen.values())


def orders_of(cueing: Cueing) -> list[dict[str, float]]:
    """Return which numbers of an algorithm's settings must be in order."""
    found = []
    tables: list[tuple[str, Any]] = [("cueing", cueing)]
    for path, table in tables:  # grows on the way
        values = msgspec.structs.asdict(table)
        tables += [(f"{path}.{key}", value) for key, value in values.items() if isinstance(value, Table)]
        if table.ordered:
            found.append({f"{path}.{key}": float(values[key]) for key in table.ordered})
    return found


def in_order(values: Mapping[str, float], orders: Orders) -> dict[str, float]:
    """Return values of which none is above one that it must not exceed.

    A searched value that is too high is lowered, or else the other one raised.  Without this, hardly any settings that
    a search asks for would be possible.
    """
    found = dict(values)
    for order in orders:
        keys = list(order)
        for lower, upper in reversed(list(pairwise(keys))):
            if lower in found:
                found[lower] = min(found[lower], found.get(upper, order[upper]))
        for lower, upper in pairwise(keys):
            if upper in found:
                found[upper] = max(found[upper], found.get(lower, order[lower]))
    return found


def with_values(cueing: Cueing, values: Mapping[str, float]) -> Cueing:
    """Return settings with some numbers changed."""
    tables: dict[str, Any] = {"cueing": msgspec.to_builtins(cueing)}
    for key, value in values.items():
        *path, name = key.split(".")
        table = tables
        for step in path:
            table = table[step]
        table[name] = value
    try:
        changed: Cueing = msgspec.convert(tables["cueing"], type(cueing))
    except msgspec.ValidationError as error:
        raise ConfigError(f"cueing: {error}") from error
    return changed


def _numbers_in(kind: inspect.Type, value: Any, path: str) -> Iterator[tuple[str, Parameter | None]]:
    """Yield every number below a key with its parameter; None for one that has no value."""
    kinds = _alternatives(kind)
    for each in kinds:
        if isinstance(each, inspect.StructType) and (value is None or isinstance(value, each.cls)):
            for field in each.fields:
                yield from _numbers_in(field.type, getattr(value, field.name, None), f"{path}.{field.encode_name}")
        elif isinstance(each, inspect.FloatType):
            known = isinstance(value, int | float) and not isinstance(value, bool)
            yield path, _parameter(path, float(value), each) if known else None


def _alternatives(kind: inspect.Type) -> Iterable[inspect.Type]:
    """Return the types that a key may have."""
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _parameter(key: str, value: float, kind: inspect.FloatType) -> Parameter:
    """Return the parameter of a number, with what its type declares."""
    low = _end(kind.ge, kind.gt, -math.inf, 1.0)
    high = _end(kind.le, kind.lt, math.inf, -1.0)
    if low >= 0.0 and value > 0.0:
        most = 2.0**DOUBLINGS
        return Parameter(key, value, min(max(low, value / most), value), max(min(high, value * most), value), 0.0)
    scale = abs(value) or (0.1 * (high - low) if math.isfinite(high - low) else 1.0)
    if value > 0.0:
        low = max(low, 0.0)  # a search does not turn a sign
    elif value < 0.0:
        high = min(high, 0.0)
    return Parameter(key, value, low, high, scale)


def _end(inclusive: float | None, exclusive: float | None, none: float, inwards: float) -> float:
    """Return the last value that is searched on one side."""
    if inclusive is not None:
        return float(inclusive)
    return none if exclusive is None else exclusive + inwards * INSIDE * (abs(exclusive) or INSIDE)
