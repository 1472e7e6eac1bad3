"""The search itself: CMA-ES by ask and tell, over what is scored by any number of workers; of one aim, or as a front.

A front has the best settings at each share of a bound.  Each of its points is a search with a tighter bound than the
one before (the epsilon-constraint method), which begins at the best settings that are known to keep it.  All searches
know what the others have scored.

Needs the package ``cma``, from the extra ``tune``.

References
----------
N. Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772.
"""

import hashlib
import json
import math
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile
from motioncue.tuning.evaluator import Orders, Outcome, Parameter, Workers, in_order

STEP = 0.3  # of the first generation: in doublings of a frequency, in the first value of a gain
PENALTY = 300.0  # [points of score] per share of time beyond a bound, or for a use of e = 2.7
WORST = 1e6  # what settings cost that cannot be designed


class Bounds(NamedTuple):
    """What must hold on every drive."""

    use: float = 1.0
    """Largest share of the platform's travel, speed or acceleration that a cue may ask for."""
    fast_tilt: float = 0.25
    """Largest share of time in which the platform may roll or pitch more than 3 deg/s faster than the car."""
    opposite: float = 0.25
    """Largest share of time in which a sense may feel the platform against the car, by more than a threshold."""

    def excess(self, outcomes: Sequence[Outcome]) -> dict[str, float]:
        """Return by how much settings exceed each bound, on the drive where most; 0 if they keep it."""
        return {
            "use": max(0.0, *(math.log(max(each.use, 1e-9) / self.use) for each in outcomes)),
            "fast_tilt": max(0.0, *(each.fast_tilt - self.fast_tilt for each in outcomes)),
            "opposite": max(0.0, *(each.opposite - self.opposite for each in outcomes)),
        }

    def rank(self, outcomes: Sequence[Outcome], cost: float) -> tuple[bool, float]:
        """Return what is smaller for better settings; those that keep the bounds come first."""
        return any(self.excess(outcomes).values()), cost

    def cost(self, outcomes: Sequence[Outcome]) -> float:
        """Return what the search makes small: the mean score, negative, and a penalty for each bound exceeded."""
        found = PENALTY * sum(self.excess(outcomes).values()) - mean_score(outcomes)
        return min(found, WORST) if not math.isnan(found) else WORST


class Found(NamedTuple):
    """Settings and what they are worth."""

    values: dict[str, float]
    """By key."""
    outcomes: list[Outcome]
    """One per drive."""
    cost: float
    """What the search makes small."""


class State(Protocol):
    """What was scored before, kept so that a search can go on later."""

    def outcomes_of(self, values: Mapping[str, float]) -> list[Outcome] | None:
        """Return what settings were worth; None if they were not scored."""

    def add(self, settings: Sequence[Mapping[str, float]], outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Add what settings are worth."""


class Task(NamedTuple):
    """What is searched for, and by whom."""

    parameters: Sequence[Parameter]
    pool: Workers
    bounds: Bounds
    seed: int
    others: Sequence[Mapping[str, float]] = ()
    """Settings to try first, beside the parameters' own values."""
    state: State | None = None
    orders: Orders = ()


class Search:
    """A search for the settings that score best within bounds."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.best: Found | None = None  # of those that keep the bounds, if there are any
        self.first: list[Outcome] = []  # what the first settings are worth, one per drive
        self.evaluations = 0  # settings that were scored
        self._wide = max(2, len(task.parameters))  # the strategy is not made for one number alone

    def run(self, evaluations: int) -> Iterator[int]:
        """Score generations of settings; yield after each the number of settings scored."""
        starts = [np.zeros(self._wide), *map(self._place, self.task.others)][:evaluations]
        costs = self._scored(starts)
        yield self.evaluations
        with delayed_interrupt():
            strategy = self._strategy(starts[int(np.argmin(costs))], evaluations - self.evaluations)
        while self.evaluations < evaluations:
            with delayed_interrupt():
                if strategy.stop():
                    return
                size = min(strategy.popsize, evaluations - self.evaluations)
                places = strategy.ask(size)
            costs = self._scored(places)
            if size == strategy.popsize:  # a part of a generation is scored, but teaches nothing
                with delayed_interrupt():
                    strategy.tell(places, costs)
            yield self.evaluations

    def _place(self, values: Mapping[str, float]) -> Any:
        """Return where values are in the search; within bounds, and at the first value of a key that is not given."""
        place = np.zeros(self._wide)
        for index, each in enumerate(self.task.parameters):
            value = min(max(values.get(each.key, each.value), each.low), each.high)
            place[index] = each.to_search(value)
        return place

    def _strategy(self, start: Any, evaluations: int) -> Any:
        """Return the evolution strategy; a search shorter than a generation has a smaller one."""
        import cma

        random = np.random.default_rng(self.task.seed)
        low = [each.to_search(each.low) if math.isfinite(each.low) else None for each in self.task.parameters]
        high = [each.to_search(each.high) if math.isfinite(each.high) else None for each in self.task.parameters]
        idle = [None] * (self._wide - len(self.task.parameters))
        options = {
            "bounds": [low + idle, high + idle],
            "seed": math.nan,  # the generator of NumPy that all share is left alone
            "randn": lambda *size: random.standard_normal(size),
            "verbose": -9,
        }
        usual = 4 + int(3 * math.log(len(self.task.parameters)))
        return cma.CMAEvolutionStrategy(start, STEP, {**options, "popsize": max(2, min(usual, evaluations))})

    def _scored(self, places: Sequence[Any]) -> list[float]:
        """Score settings, keep the best, and return their costs."""
        asked = [
            {each.key: each.from_search(float(place)) for each, place in zip(self.task.parameters, row, strict=False)}
            for row in places
        ]
        settings = [in_order(values, self.task.orders) for values in asked]
        outcomes = self._outcomes(settings)
        self.evaluations += len(settings)
        self.first = self.first or outcomes[0]
        costs, rank = [self.task.bounds.cost(each) for each in outcomes], self.task.bounds.rank
        for values, own, cost in zip(settings, outcomes, costs, strict=True):
            if self.best is None or rank(own, cost) < rank(self.best.outcomes, self.best.cost):
                self.best = Found(values, own, cost)
        return costs

    def _outcomes(self, settings: list[dict[str, float]]) -> list[list[Outcome]]:
        """Return what settings are worth; those that were scored before are not scored again."""
        before = [self.task.state.outcomes_of(values) if self.task.state is not None else None for values in settings]
        new = [values for values, own in zip(settings, before, strict=True) if own is None]
        found = self.task.pool(new) if new else []
        if self.task.state is not None and new:
            self.task.state.add(new, found)
        later = iter(found)
        return [next(later) if own is None else own for own in before]


@contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait until a short piece of work is done; only in the main thread, to which Python gives it.

    `cma` evaluates its options as texts, and Python ends by SIGINT after a KeyboardInterrupt in a text, even if it was
    caught and everything was written.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


def mean_score(outcomes: Sequence[Outcome], name: str = "score") -> float:
    """Return the mean over drives of a score."""
    return float(np.mean([getattr(each, name) for each in outcomes]))


def neighbors(
    parameters: Sequence[Parameter], found: Mapping[str, float], step: float, orders: Orders = ()
) -> list[dict[str, float]]:
    """Return settings in which one parameter differs: two for each, smaller and larger.

    Values that must be in order follow it.
    """
    settings = []
    for each in parameters:
        about = Parameter(each.key, found[each.key], each.low, each.high, each.scale)
        settings += [in_order({**found, each.key: about.from_search(way)}, orders) for way in (-step, step)]
    return settings


AIMS = Bounds._fields
"""What a score can be weighed against: the bounds."""

SHARES = (1.0, 0.75, 0.5, 0.25)
"""Of the bound, for each point; in the order of the search."""


class Point(NamedTuple):
    """Settings of a front: nothing that was scored has a better score without more of the aim."""

    share: float
    """Of the bound that was searched within."""
    bound: float
    """The same as the aim is counted."""
    values: dict[str, float]
    """By key."""
    score: float
    """Mean over the drives of the search, forces first."""
    hold_out: float | None
    """Mean over drives that the search did not see; None if there are none."""
    use: float
    fast_tilt: float
    opposite: float
    """What is bounded, on the drive of the search where it is largest."""


class Front(NamedTuple):
    """The score against one of the bounds."""

    aim: str
    """Name of the bound: ``use``, ``fast_tilt`` or ``opposite``."""
    points: tuple[Point, ...]
    """From little of the aim to much."""
    missed: tuple[float, ...]
    """Shares of the bound within which no settings were found."""
    scored: tuple[tuple[float, float], ...]
    """The aim and the mean score of all settings scored that keep the other bounds."""
    before: tuple[float, float]
    """The same of the settings before."""


class Archive:
    """Every setting that was scored, and the best within each of several bounds.

    It is the state of several searches, which so know what the others have scored.
    """

    def __init__(self, aim: str, bounds: Sequence[Bounds], state: State | None = None) -> None:
        self.best: list[Found | None] = [None] * len(bounds)  # of those that keep each of the bounds, if there are any
        self.scored: list[list[Outcome]] = []  # what each setting was worth, as they were asked for
        self._aim, self._bounds, self._state = aim, list(bounds), state
        self._known: dict[tuple[float, ...], list[Outcome]] = {}

    def outcomes_of(self, values: Mapping[str, float]) -> list[Outcome] | None:
        """Return what settings were worth; None if they were not scored."""
        place = tuple(values.values())
        if place not in self._known:
            before = None if self._state is None else self._state.outcomes_of(values)
            if before is None:
                return None
            self._add(values, before)
        return self._known[place]

    def add(self, settings: Sequence[Mapping[str, float]], outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Add what settings are worth."""
        if self._state is not None:
            self._state.add(settings, outcomes)
        for values, own in zip(settings, outcomes, strict=True):
            if tuple(values.values()) not in self._known:
                self._add(values, list(own))

    def _add(self, values: Mapping[str, float], outcomes: list[Outcome]) -> None:
        self._known[tuple(values.values())] = outcomes
        self.scored.append(outcomes)
        for index, bounds in enumerate(self._bounds):
            found, before = Found(dict(values), outcomes, bounds.cost(outcomes)), self.best[index]
            if before is None or self._rank(bounds, found) < self._rank(bounds, before):
                self.best[index] = found

    def _rank(self, bounds: Bounds, found: Found) -> tuple[bool, float, float]:
        """Return the rank of settings within bounds; of equal ones, that with less of the aim comes first."""
        return *bounds.rank(found.outcomes, found.cost), largest(found.outcomes, self._aim)


class FrontSearch:
    """Searches for the settings that score best within each share of a bound."""

    def __init__(self, aim: str, task: Task) -> None:
        self.aim, self.task, self.bound = aim, task, float(getattr(task.bounds, aim))
        self._bounds = [task.bounds._replace(**{aim: share * self.bound}) for share in SHARES]
        self._archive = Archive(aim, self._bounds, task.state)
        self.first: list[Outcome] = []
        self.evaluations = 0

    @property
    def best(self) -> Found | None:
        """The best settings within the whole bound."""
        return self._archive.best[0]

    def run(self, evaluations: int) -> Iterator[int]:
        """Score generations of settings; yield after each the number of settings scored."""
        task = self.task._replace(state=self._archive)
        for index, bounds in enumerate(self._bounds):
            if (known := self._archive.best[index]) is not None:
                begin = [each._replace(value=known.values[each.key]) for each in self.task.parameters]
                task = task._replace(parameters=begin, others=())
            search = Search(task._replace(bounds=bounds))
            before = self.evaluations
            for done in search.run(evaluations):
                self.first = self.first or search.first
                self.evaluations = before + done
                yield self.evaluations

    def found(self) -> tuple[list[tuple[float, Found]], list[float]]:
        """Return the points with their shares, from little of the aim to much, and shares missed."""
        points: list[tuple[float, Found]] = []
        missed = []
        for share, bounds, best in reversed(list(zip(SHARES, self._bounds, self._archive.best, strict=True))):
            if best is None or any(bounds.excess(best.outcomes).values()):
                missed.append(share)
            elif not points or points[-1][1].values != best.values:
                points.append((share, best))
        return points, missed

    def scored(self) -> list[tuple[float, float]]:
        """Return the aim and the mean score of all possible settings that keep the other bounds."""
        found = []
        for own in self._archive.scored:
            beyond = self._bounds[0].excess(own)
            score = mean_score(own)
            if math.isfinite(score) and not any(beyond[key] for key in AIMS if key != self.aim):
                found.append((largest(own, self.aim), score))
        return found


def largest(outcomes: Sequence[Outcome], aim: str) -> float:
    """Return what is bounded, on the drive where it is largest."""
    return float(max(getattr(each, aim) for each in outcomes))


def staircase(scored: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return those of which none has a better score without more of the aim, from little to much."""
    steps: list[tuple[float, float]] = []
    for aim, score in sorted(scored, key=lambda each: (each[0], -each[1])):
        if not steps or score > steps[-1][1]:
            steps.append((aim, score))
    return steps


def content_of(
    profile: Profile,
    motions: Sequence[npt.NDArray[np.void]],
    parameters: Sequence[Parameter],
    bounds: Bounds,
    seed: int,
    front: str | None = None,
) -> dict[str, Any]:
    """Return what a search is about: two searches with the same content find the same."""
    tables = msgspec.to_builtins(profile)
    told = {key: tables[key] for key in ("source", "cueing", "limits", "platform")}
    return {
        "search": 1,
        "profile": hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest(),
        "drives": [hashlib.sha256(np.ascontiguousarray(motion).tobytes()).hexdigest() for motion in motions],
        "parameters": {each.key: [each.value, each.low, each.high, each.scale] for each in parameters},
        "bounds": bounds._asdict(),
        "seed": seed,
        "front": None if front is None else [front, *SHARES],
    }


class FileState:
    """What a search has scored, in a file."""

    def __init__(self, path: Path, content: Mapping[str, Any], *, resume: bool = False) -> None:
        self._path, self._keys = path, list(content["parameters"])
        self._known: dict[tuple[float, ...], list[Outcome]] = {}
        if resume:
            self._read(content)
        self._write("w", [content, *self._known.items()])  # without a line whose end is missing

    def outcomes_of(self, values: Mapping[str, float]) -> list[Outcome] | None:
        """Return what settings were worth, one outcome per drive; None if they were not scored."""
        return self._known.get(self._place(values))

    def add(self, settings: Sequence[Mapping[str, float]], outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Add what settings are worth."""
        self._write("a", [[self._place(values), own] for values, own in zip(settings, outcomes, strict=True)])
        for values, own in zip(settings, outcomes, strict=True):
            self._known[self._place(values)] = list(own)

    def _place(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(values[key] for key in self._keys)

    def _read(self, content: Mapping[str, Any]) -> None:
        try:
            first, *lines = self._path.read_text(encoding="utf-8").splitlines()
            about = json.loads(first)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--resume: {str(self._path)!r} is no search that can go on: {error}") from error
        for key, value in content.items():
            if not isinstance(about, dict) or about.get(key) != json.loads(json.dumps(value)):
                raise ConfigError(f"--resume: found other {key} in {str(self._path)!r}, allowed is the same search")
        for line in lines:
            try:
                place, outcomes = msgspec.convert(json.loads(line), tuple[tuple[float, ...], list[Outcome]])
            except (ValueError, msgspec.ValidationError):  # such as the line being written when the search ended
                continue
            if outcomes:
                self._known[place] = outcomes

    def _write(self, mode: str, rows: Sequence[Any]) -> None:
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write("".join(f"{json.dumps(row)}\n" for row in rows))
        except OSError as error:
            raise ConfigError(f"--out: {str(self._path)!r} cannot be written: {error.strerror or error}") from error
