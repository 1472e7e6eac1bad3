"""The search itself: CMA-ES by ask and tell, over what is scored by any number of workers.

Needs the package ``cma``, from the extra ``tune``.

References
----------
N. Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772.
"""

import math
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

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


class Search:
    """A search for the settings that score best within bounds."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        pool: Workers,
        bounds: Bounds,
        seed: int,
        others: Sequence[Mapping[str, float]] = (),
        state: State | None = None,
        orders: Orders = (),
    ) -> None:
        self.parameters, self.pool, self.bounds, self.state = list(parameters), pool, bounds, state
        self.best: Found | None = None  # of those that keep the bounds, if there are any
        self.first: list[Outcome] = []  # what the first settings are worth, one per drive
        self.evaluations = 0  # settings that were scored
        self._seed, self._others, self._orders = seed, others, orders
        self._wide = max(2, len(self.parameters))  # the strategy is not made for one number alone

    def run(self, evaluations: int) -> Iterator[int]:
        """Score generations of settings; yield after each the number of settings scored."""
        starts = [np.zeros(self._wide), *map(self._place, self._others)][:evaluations]
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
        for index, each in enumerate(self.parameters):
            value = min(max(values.get(each.key, each.value), each.low), each.high)
            place[index] = each.to_search(value)
        return place

    def _strategy(self, start: Any, evaluations: int) -> Any:
        """Return the evolution strategy; a search shorter than a generation has a smaller one."""
        import cma

        random = np.random.default_rng(self._seed)
        low = [each.to_search(each.low) if math.isfinite(each.low) else None for each in self.parameters]
        high = [each.to_search(each.high) if math.isfinite(each.high) else None for each in self.parameters]
        idle = [None] * (self._wide - len(self.parameters))
        options = {
            "bounds": [low + idle, high + idle],
            "seed": math.nan,  # the generator of NumPy that all share is left alone
            "randn": lambda *size: random.standard_normal(size),
            "verbose": -9,
        }
        usual = 4 + int(3 * math.log(len(self.parameters)))
        return cma.CMAEvolutionStrategy(start, STEP, {**options, "popsize": max(2, min(usual, evaluations))})

    def _scored(self, places: Sequence[Any]) -> list[float]:
        """Score settings, keep the best, and return their costs."""
        asked = [
            {each.key: each.from_search(float(place)) for each, place in zip(self.parameters, row, strict=False)}
            for row in places
        ]
        settings = [in_order(values, self._orders) for values in asked]
        outcomes = self._outcomes(settings)
        self.evaluations += len(settings)
        self.first = self.first or outcomes[0]
        costs, rank = [self.bounds.cost(each) for each in outcomes], self.bounds.rank
        for values, own, cost in zip(settings, outcomes, costs, strict=True):
            if self.best is None or rank(own, cost) < rank(self.best.outcomes, self.best.cost):
                self.best = Found(values, own, cost)
        return costs

    def _outcomes(self, settings: list[dict[str, float]]) -> list[list[Outcome]]:
        """Return what settings are worth; those that were scored before are not scored again."""
        before = [self.state.outcomes_of(values) if self.state is not None else None for values in settings]
        new = [values for values, own in zip(settings, before, strict=True) if own is None]
        found = self.pool(new) if new else []
        if self.state is not None and new:
            self.state.add(new, found)
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
