"""Settings that score best on drives and a platform, judged on drives that the search did not see; a page of them.

Needs the extra ``tune``; the page needs matplotlib (the extra ``report``).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.cueing.settings import Cueing
from motioncue.engine.fitting import gains_for
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile, parse_profile
from motioncue.profile.tables import changed_text, flat
from motioncue.scoring.reports import figure_of, image, page, table
from motioncue.scoring.scene import with_platform
from motioncue.scoring.score import Score, need, score
from motioncue.tuning.evaluator import (
    Evaluator,
    Orders,
    Parameter,
    Workers,
    orders_of,
    parameters_of,
    with_values,
    workers_of,
)
from motioncue.tuning.search import (
    AIMS,
    SHARES,
    FileState,
    Found,
    Front,
    FrontSearch,
    Point,
    Search,
    Task,
    content_of,
    largest,
    mean_score,
    neighbors,
    staircase,
)
from motioncue.tuning.search import Bounds as Bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Motion: TypeAlias = npt.NDArray[np.void]
Drives: TypeAlias = Mapping[str, Motion] | Sequence[Motion]

PROBE = 1.0  # step after which a parameter that changes nothing counts as one without effect
STEP = 0.3  # of the sensitivities: a factor of 1.23, or 0.3 of the first value
STATE = ".search"  # ending of the file in which a search is kept


class DriveScores(NamedTuple):
    """A drive before and after tuning."""

    drive: str
    """Its name."""
    held_out: bool
    """Whether the search did not see it."""
    before: Score
    after: Score


class Sensitivity(NamedTuple):
    """What a parameter matters around the settings found, on the drives of the search."""

    key: str
    value: float
    """What was found."""
    smaller: float
    larger: float
    """Values that were tried beside it, nothing else changed."""
    by_smaller: float
    by_larger: float
    """Change of the mean score with them; minus infinity where they are not possible."""
    beyond_smaller: tuple[str, ...] = ()
    beyond_larger: tuple[str, ...] = ()
    """Names of the bounds that they exceed: what keeps the search from them, where the score would rise."""


class Tuned(NamedTuple):
    """What a search has found; scores are means over drives, forces first."""

    profile: Profile
    """The profile with the values found, and with the platform of the search."""
    before: float
    after: float
    """On the drives of the search."""
    hold_out_before: float | None
    hold_out_after: float | None
    """On drives that the search did not see; None if there are none."""
    evaluations: int
    """Settings that were scored."""
    ended: str
    """Why the search ended: ``evaluations``, ``converged`` or ``interrupted``."""
    excess_before: dict[str, float]
    excess: dict[str, float]
    """By how much the first settings, and those found, exceed each bound on the drives of the search: 0 where they keep
    it, else a share of time, or the logarithm of the use."""
    changes: dict[str, tuple[float, float]]
    """Values before and after, by key; all that were searched."""
    idle: tuple[str, ...]
    """Parameters that were left out because they change nothing on these drives."""
    drives: list[DriveScores]
    """Every drive."""
    sensitivities: list[Sensitivity]
    """What matters most first; empty if the search was interrupted."""
    course: list[tuple[int, float]]
    """Settings scored and best mean score, after each generation."""
    front: Front | None = None
    """The best settings with less of one of the bounds, if they were asked for."""


def tune(
    profile: Profile | str | Path,
    drives: Drives,
    *,
    hold_out: Drives = (),
    platform: Platform | Mapping[str, Any] | str | Path | None = None,
    parameters: Sequence[str] = (),
    evaluations: int = 300,
    seed: int = 1,
    workers: int = 1,
    dask: str | None = None,
    bounds: Bounds = Bounds(),  # noqa: B008 - a named tuple does not change
    front: str | None = None,
    state: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int, float], object] = lambda done, total, best: None,
) -> Tuned:
    """Return a profile with the settings that score best on drives and a platform.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `motioncue.load_profile` takes.
    drives : mapping of str to ndarray of MOTION_DTYPE, or sequence of them
        The frames of each drive, such as ``motioncue.read(file).motion``.
    hold_out : mapping or sequence, optional
        Drives that the search does not see, and that are judged before and after.
    platform : Platform, mapping, str or Path, optional
        As for `motioncue.platform`; the profile's if not given.
    parameters : sequence of str, optional
        Keys below ``cueing``, tables of them, or patterns: ``surge.gain``, ``tilt``, ``*.cutoff_hz``.  All numbers of
        the algorithm if not given.
    evaluations : int, optional
        Settings to score; with `front`, for each of its points.
    seed : int, optional
        The same seed finds the same settings, with any number of workers.
    workers : int, optional
        Processes; a program that uses more than one needs ``if __name__ == "__main__":``.
    dask : str, optional
        Address of a Dask scheduler, whose workers score instead; they need the same version of motioncue.
    bounds : Bounds, optional
        What must hold on every drive of the search.
    front : str, optional
        Name of a bound, such as ``use``: the best settings are found within 25, 50, 75 and 100 % of it.
    state : str or Path, optional
        File in which the search is kept while it runs.
    resume : bool, optional
        Go on with the search in that file.
    progress : callable, optional
        Called with the settings scored, their total, and the best mean score so far.

    Returns
    -------
    Tuned

    Raises
    ------
    ConfigError
        If a profile, a drive, the platform or a number is refused, there is nothing to search, or a library is missing.

    Notes
    -----
    CMA-ES by ask and tell over the parameters within the bounds that their settings declare, from the profile's values
    or, if one is better, those of a preset of the algorithm.  What exceeds `bounds` is charged, and the result is the
    best of those settings that keep them.  Ctrl-C ends the search and keeps the best.

    Examples
    --------
    >>> drive = motioncue.read("drive.mcap").motion                                               # doctest: +SKIP
    >>> motioncue.tune("ccd-dk-washout", [drive], platform="hexapod-dim").changes                 # doctest: +SKIP
    """
    _need()
    for name, value in (("evaluations", evaluations), ("workers", workers), ("seed", seed)):
        if not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name}: found {value!r}, allowed are whole numbers from 1")
    for name, share in bounds._asdict().items():
        if not (share > 0.0 if name == "use" else share >= 0.0):  # also refuses what is not a number
            raise ConfigError(f"{name}: found {share!r}, allowed are numbers {'above' if name == 'use' else 'from'} 0")
    if front is not None and front not in AIMS:
        raise ConfigError(f"front: {not_among(front, AIMS)}")
    if front is not None and not getattr(bounds, front) > 0.0:
        raise ConfigError(f"{front}: found 0, allowed with front are numbers above 0")
    profile = with_platform(profile, platform)
    named = parameters_of(profile.cueing, parameters)
    own, others = _named(drives, "drive"), _named(hold_out, "hold-out")
    if not own:
        raise ConfigError("drives: found none, allowed are one or more")
    if same := own.keys() & others.keys():
        raise ConfigError(f"hold_out: found {min(same)!r}, on which is tuned; allowed are other drives")
    evaluator = Evaluator(profile, list(own.values()))
    with workers_of(evaluator, workers, dask) as pool:
        ended, course = "evaluations", []
        orders = orders_of(profile.cueing)
        active, idle = _active(pool, named, orders, every=not parameters)
        content = content_of(profile, list(own.values()), active, bounds, seed, front)
        kept = None if state is None else FileState(Path(state), content, resume=resume)
        task = Task(active, pool, bounds, seed, _presets(profile.cueing), kept, orders)
        search = Search(task) if front is None else FrontSearch(front, task)
        total = evaluations * (1 if front is None else len(SHARES))
        try:
            for done in search.run(evaluations):
                assert search.best is not None
                course.append((done, mean_score(search.best.outcomes)))
                progress(done, total, course[-1][1])
            ended = "evaluations" if search.evaluations >= total else "converged"
            best = _best(search)
            sensitivities = _sensitivities(pool, active, orders, best, bounds)
        except KeyboardInterrupt:
            best, sensitivities, ended = _best(search), [], "interrupted"
    found = msgspec.structs.replace(profile, cueing=with_values(profile.cueing, best.values))
    judged = [
        DriveScores(name, name in others, score(profile, motion), score(found, motion))
        for name, motion in {**own, **others}.items()
    ]
    return Tuned(
        found,
        *_means([each for each in judged if not each.held_out]),
        *_means([each for each in judged if each.held_out]),
        search.evaluations,
        ended,
        bounds.excess(search.first),
        bounds.excess(best.outcomes),
        {each.key: (each.value, best.values[each.key]) for each in active},
        idle,
        judged,
        sensitivities,
        course,
        _front(search, profile, own, others) if isinstance(search, FrontSearch) else None,
    )


def _need() -> None:
    """Raise ConfigError if a library is missing."""
    need()
    try:
        import cma  # noqa: F401
    except ImportError as error:
        raise ConfigError(f'tune: {error.name} is missing: pip install "motioncue[tune]"') from error


def _named(drives: Drives, word: str) -> dict[str, Motion]:
    """Return drives by name; a number for those without."""
    if isinstance(drives, Mapping):
        return dict(drives)
    return {f"{word} {number}": motion for number, motion in enumerate(drives, 1)}


def _best(search: Search | FrontSearch) -> Found:
    """Return the best settings of a search; a Ctrl-C before there are any ends the program."""
    if search.best is None:
        raise KeyboardInterrupt
    return search.best


def _presets(cueing: Cueing) -> list[dict[str, float]]:
    """Return the numbers of the algorithm's published parameter sets, by key."""
    return [
        {key: float(value) for key, value in flat({"cueing": preset}) if isinstance(value, int | float)}
        for preset in type(cueing).presets.values()
    ]


def _active(
    pool: Workers, parameters: list[Parameter], orders: Orders, *, every: bool
) -> tuple[list[Parameter], tuple[str, ...]]:
    """Return the parameters that change something, and the keys of the others; all if they were chosen by name."""
    if not every:
        return parameters, ()
    start = {each.key: each.value for each in parameters}
    first, *others = pool([start, *neighbors(parameters, start, PROBE, orders)])
    changes = [others[2 * place] != first or others[2 * place + 1] != first for place in range(len(parameters))]
    active = [each for each, changed in zip(parameters, changes, strict=True) if changed]
    if not active:
        tried = ", ".join(each.key for each in parameters)
        raise ConfigError(
            f"parameters: found none of {tried} that changes anything on these drives and this platform, "
            "allowed is at least one"
        )
    return active, tuple(each.key for each in parameters if each not in active)


def _sensitivities(
    pool: Workers, parameters: list[Parameter], orders: Orders, best: Found, bounds: Bounds
) -> list[Sensitivity]:
    """Return what each parameter matters around the settings found, what matters most first."""
    settings = neighbors(parameters, best.values, STEP, orders)
    outcomes = list(pool(settings))
    changes = [mean_score(each) - mean_score(best.outcomes) for each in outcomes]
    beyond = [tuple(name for name, by in bounds.excess(each).items() if by > 0.0) for each in outcomes]
    rows = [
        Sensitivity(
            each.key,
            best.values[each.key],
            smaller=settings[i][each.key],
            larger=settings[i + 1][each.key],
            by_smaller=changes[i],
            by_larger=changes[i + 1],
            beyond_smaller=beyond[i],
            beyond_larger=beyond[i + 1],
        )
        for i, each in zip(range(0, len(settings), 2), parameters, strict=True)
    ]

    def most(row: Sensitivity) -> float:
        return max((abs(by) for by in (row.by_smaller, row.by_larger) if math.isfinite(by)), default=0.0)

    return sorted(rows, key=most, reverse=True)


def _front(search: FrontSearch, profile: Profile, own: Mapping[str, Motion], others: Mapping[str, Motion]) -> Front:
    """Return the points of a search, judged on all drives."""
    points, missed = search.found()
    settings = [best.values for _, best in points]
    found = [msgspec.structs.replace(profile, cueing=with_values(profile.cueing, values)) for values in settings]
    judged = [
        Point(
            share,
            share * search.bound,
            best.values,
            _mean(tuned, own),
            _mean(tuned, others) if others else None,
            *(largest(best.outcomes, name) for name in AIMS),
        )
        for (share, best), tuned in zip(points, found, strict=True)
    ]
    before = largest(search.first, search.aim), mean_score(search.first)
    return Front(search.aim, tuple(judged), tuple(missed), tuple(search.scored()), before)


def _mean(profile: Profile, motions: Mapping[str, Motion]) -> float:
    """Return the mean score of a profile on drives."""
    return float(np.mean([score(profile, motion).score for motion in motions.values()]))


def _means(judged: Sequence[DriveScores]) -> tuple[Any, Any]:
    """Return the mean scores before and after; None if there are no drives."""
    if not judged:
        return None, None
    return tuple(float(np.mean([getattr(each, side).score for each in judged])) for side in ("before", "after"))  # type: ignore[return-value]


MARK = "# tuned: "


def tuned_text(text: str, values: Mapping[str, Any], remarks: Sequence[str], tuned: Profile) -> str:
    """Return the text of a profile with some values changed."""
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(MARK)]
    text = "".join(lines)
    try:
        changed = changed_text(text, {**_of_another_algorithm(text, values), **values})
    except ImportError as error:
        raise ConfigError(f'tune: {error.name} is missing: pip install "motioncue[tune]"') from error
    found = "".join(f"{MARK}{_printable(remark)}\n" for remark in remarks) + changed
    if parse_profile(found, name=tuned.name, scaled=gains_for).cueing != tuned.cueing:
        raise ConfigError(
            "--out: the values found cannot be put into this profile; allowed is one that names its cueing"
        )
    return found


def written_out(profile: Profile) -> tuple[Profile, dict[str, Any]]:
    """Return a profile whose cueing says every value itself, and these values for `tuned_text`.

    What the preset ``auto`` gave is kept as plain values, without the preset: in a file it means the platform in that
    file, and what it gives may depend on the values beside it.
    """
    cueing = msgspec.structs.replace(profile.cueing, preset=None)
    found = flat({"cueing": msgspec.to_builtins(cueing)}, lists=False)
    values = {key: value for key, value in found if value is not None}
    return msgspec.structs.replace(profile, cueing=cueing), {**values, "cueing.preset": None}


def _of_another_algorithm(text: str, values: Mapping[str, Any]) -> dict[str, None]:
    """Return the keys of ``cueing`` that go if the values change the algorithm: they are settings of the one before."""
    import tomlkit

    table = tomlkit.parse(text).get("cueing", {})
    if values.get("cueing.algorithm", table.get("algorithm")) == table.get("algorithm"):
        return {}
    return {f"cueing.{key}": None for key in table}


def _printable(remark: str) -> str:
    """Return a remark as one line of a comment: a file's name may hold anything."""
    return "".join(each if each.isprintable() else "?" for each in remark)


HOW = (
    "Score: 0 as a platform at rest, 100 as the best motion of this platform that knows the whole drive in advance. "
    "fits: the cue made smaller until it fits the platform; stopped: what the platform does. Rates first: the "
    "thresholds of turning halved. A held-out drive was not seen by the search."
)

FRONT = (
    "Front: the best settings within shares of a bound; none that was scored has a better score without more of it. "
    "use: largest share of the platform's travel, speed or acceleration; fast tilt, opposite: shares of the time."
)


def report(found: Tuned) -> str:
    """Return the page as HTML that needs no other file."""
    heads = ["before -> after", "fits", "fits, rates first", "stopped", "fast tilt"]
    parts = [f"<p>{HOW}</p>", table(heads, [_row(each) for each in found.drives]), image(course_figure(found))]
    if found.front is not None:
        parts += [f"<p>{FRONT}</p>", table(*front_rows(found.front)), image(front_figure(found.front))]
    if found.sensitivities:
        parts.append(image(sensitivities_figure(found.sensitivities)))
    values = [[key, f"{before:.5g}", f"{after:.5g}"] for key, (before, after) in found.changes.items()]
    return page("Tuned", "".join([*parts, table(["", "before", "after"], values)]))


def course_figure(found: Tuned) -> "Figure":
    """Draw the best score over the settings scored."""
    figure = figure_of(3.0)
    side = figure.subplots()
    side.step(*zip(*found.course, strict=True), where="post", color="C0")
    side.set_xlabel("settings scored")
    side.set_ylabel("best score that keeps the bounds")
    side.grid(True, alpha=0.3)
    return figure


def front_rows(front: Front) -> tuple[list[str], list[list[str]]]:
    """Return the points of a front as a table: its heads, and its rows."""
    heads = [f"{_word(front)} at most", "score", "held out", "use", "fast tilt", "opposite"]
    found = [each.share for each in front.points]
    rows = [
        [
            f"{each.bound:.3g} ({_shares(each.share, found)})",
            f"{each.score:.1f}",
            "-" if each.hold_out is None else f"{each.hold_out:.1f}",
            f"{each.use:.2f}",
            f"{100 * each.fast_tilt:.0f} %",
            f"{100 * each.opposite:.0f} %",
        ]
        for each in front.points
    ]
    whole = front.points[-1].bound / front.points[-1].share if front.points else math.nan
    # What is missed comes first: with less of the aim than the least that was found.
    missed = [
        f"{share * whole:.3g} ({100 * share:.0f} %)" if front.points else f"{100 * share:.0f} %"
        for share in front.missed
    ]
    return heads, [[each, "none found", *[""] * 4] for each in missed] + rows


def front_figure(front: Front) -> "Figure":
    """Draw the score against what it costs."""
    figure = figure_of(4.0)
    side = figure.subplots()
    if front.scored:
        side.plot(*zip(*front.scored, strict=True), ".", color="0.75", markersize=3, label="scored")
        steps = staircase(front.scored)
        side.step(*zip(*steps, strict=True), where="post", color="C0", label="none scored is better with less")
    side.plot(*front.before, "kx", label="before")
    for each in front.points:
        at = getattr(each, front.aim), each.score
        side.plot(*at, "o", color="C1", label="found" if each is front.points[0] else None)
        side.annotate(f"{100 * each.share:.0f} %", at, xytext=(4, -12), textcoords="offset points", fontsize="small")
    marked = [front.before, *((getattr(each, front.aim), each.score) for each in front.points)]
    aims, scores = ([value for value in column if math.isfinite(value)] for column in zip(*marked, strict=True))
    if aims and scores:  # what was scored on the way may be far away
        room = 0.15 * (max(scores) - min(scores)) or 1.0
        side.set_xlim(0.0, 1.1 * max(aims) or None)
        side.set_ylim(min(scores) - room, max(scores) + room)
    side.set_xlabel(f"{_word(front)} [share of the {'platform' if front.aim == 'use' else 'time'}]")
    side.set_ylabel("mean score")
    side.grid(True, alpha=0.3)
    side.legend(fontsize="small")
    return figure


def sensitivities_figure(sensitivities: Sequence[Sensitivity]) -> "Figure":
    """Draw what each parameter matters around the settings found."""
    figure = figure_of(1.0 + 0.28 * len(sensitivities))
    side = figure.subplots()
    names = [f"{each.key.removeprefix('cueing.')} = {each.value:.3g}" for each in sensitivities]
    places = range(len(names))
    for shift, label in ((-0.2, "smaller"), (0.2, "larger")):
        changes = [getattr(each, f"by_{label}") for each in sensitivities]
        beyond = [getattr(each, f"beyond_{label}") for each in sensitivities]
        side.barh(
            [place + shift for place in places], [by if math.isfinite(by) else 0.0 for by in changes], 0.38, label=label
        )
        for place, by, names_beyond in zip(places, changes, beyond, strict=True):
            if not math.isfinite(by):
                side.text(0.0, place + shift, f" {label}: not possible", va="center", fontsize="x-small")
            elif names_beyond:
                words = f" beyond {', '.join(names_beyond)}".replace("_", " ")
                side.text(max(by, 0.0), place + shift, words, va="center", fontsize="x-small")
    side.set_yticks(list(places), names, fontsize="small")
    side.margins(y=0.01)
    side.invert_yaxis()
    side.axvline(0.0, color="0.3", linewidth=0.8)
    side.set_xlabel("change of the mean score")
    side.legend(fontsize="small")
    side.grid(True, axis="x", alpha=0.3)
    return figure


def _word(front: Front) -> str:
    """Return what the bound of a front is called."""
    return front.aim.replace("_", " ")


def _shares(share: float, found: Sequence[float]) -> str:
    """Return the share of a point, and up to which nothing better was found."""
    after = min((each for each in found if each > share), default=math.inf)
    same = max((each for each in SHARES if share < each < after), default=None)
    return f"{100 * share:.0f} %" + ("" if same is None else f", no better up to {100 * same:.0f} %")


def _row(each: DriveScores) -> list[str]:
    """Return a drive's row."""

    def pair(before: float, after: float) -> str:
        return f"{before:.1f} -> {after:.1f}"

    fits = [100.0 * side.motions["fits"].fast_tilt for side in (each.before, each.after)]
    return [
        each.drive + (" (held out)" if each.held_out else ""),
        pair(each.before.score, each.after.score),
        pair(each.before.rates_first.score, each.after.rates_first.score),
        pair(each.before.stopped, each.after.stopped),
        "{:.0f} -> {:.0f} %".format(*fits),
    ]
