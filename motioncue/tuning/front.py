"""Several aims as a front: the best settings at each share of a bound, found in one search.

Each point is a search with a tighter bound than the one before (the epsilon-constraint method), which begins at the
best settings that are known to keep it.  All searches know what the others have scored.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile
from motioncue.tuning.evaluator import Orders, Outcome, Parameter, Workers
from motioncue.tuning.search import Bounds, Found, Search, State, mean_score

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

    def __init__(
        self,
        aim: str,
        parameters: Sequence[Parameter],
        pool: Workers,
        bounds: Bounds,
        seed: int,
        others: Sequence[Mapping[str, float]] = (),
        state: State | None = None,
        orders: Orders = (),
    ) -> None:
        self.aim, self.bound = aim, float(getattr(bounds, aim))
        self._bounds = [bounds._replace(**{aim: share * self.bound}) for share in SHARES]
        self._archive = Archive(aim, self._bounds, state)
        self._parameters, self._team, self._seed, self._others = parameters, pool, seed, others
        self._orders = orders
        self.first: list[Outcome] = []
        self.evaluations = 0

    @property
    def best(self) -> Found | None:
        """The best settings within the whole bound."""
        return self._archive.best[0]

    def run(self, evaluations: int) -> Iterator[int]:
        """Score generations of settings; yield after each the number of settings scored."""
        parameters, others = list(self._parameters), self._others
        for index, bounds in enumerate(self._bounds):
            if (known := self._archive.best[index]) is not None:
                parameters = [each._replace(value=known.values[each.key]) for each in self._parameters]
                others = ()
            search = Search(parameters, self._team, bounds, self._seed, others, self._archive, self._orders)
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
