"""A search drawn on one page of HTML; needs matplotlib (the extra ``report``)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from motioncue.scoring.reports import figure_of, image, page, table
from motioncue.tuning.front import SHARES, Front, staircase
from motioncue.tuning.tune import DriveScores, Sensitivity, Tuned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
