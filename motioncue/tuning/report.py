"""A search drawn on one page of HTML; needs matplotlib (the extra ``report``)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from motioncue.analysis.page import figure_of, image, page, table
from motioncue.tuning.tune import Judged, Sensitivity, Tuned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["course_figure", "report", "sensitivities_figure"]

HOW = (
    "Score: 0 as a platform at rest, 100 as the best motion of this platform that knows the whole drive in advance. "
    "fits: the cue made smaller until it fits the platform; stopped: what leaves the platform. Rates first: the "
    "thresholds of turning halved. A held-out drive was not seen by the search."
)


def report(found: Tuned) -> str:
    """Return the page as HTML that needs no other file.

    Parameters
    ----------
    found : Tuned
        What `motioncue.tune` returned.
    """
    heads = ["before -> after", "fits", "fits, rates first", "stopped", "fast tilt"]
    parts = [f"<p>{HOW}</p>", table(heads, [_row(each) for each in found.drives]), image(course_figure(found))]
    if found.sensitivities:
        parts.append(image(sensitivities_figure(found.sensitivities)))
    values = [[key, f"{before:.5g}", f"{after:.5g}"] for key, (before, after) in found.changes.items()]
    return page("Tuned", "".join([*parts, table(["", "before", "after"], values)]))


def course_figure(found: Tuned) -> "Figure":
    """Draw the best score over the settings scored.

    Parameters
    ----------
    found : Tuned
        What `motioncue.tune` returned.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = figure_of(3.0)
    side = figure.subplots()
    side.step(*zip(*found.course, strict=True), where="post", color="C0")
    side.set_xlabel("settings scored")
    side.set_ylabel("best score that keeps the bounds")
    side.grid(True, alpha=0.3)
    return figure


def sensitivities_figure(sensitivities: Sequence[Sensitivity]) -> "Figure":
    """Draw what each parameter matters around the settings found.

    Parameters
    ----------
    sensitivities : sequence of Sensitivity
        What matters most first.

    Returns
    -------
    matplotlib.figure.Figure
        A bar to each side per parameter: the change of the mean score with a smaller and a larger value.
    """
    figure = figure_of(1.0 + 0.28 * len(sensitivities))
    side = figure.subplots()
    names = [f"{each.key.removeprefix('cueing.')} = {each.value:.3g}" for each in sensitivities]
    places = range(len(names))
    side.barh([place - 0.2 for place in places], [each.by_smaller for each in sensitivities], 0.38, label="smaller")
    side.barh([place + 0.2 for place in places], [each.by_larger for each in sensitivities], 0.38, label="larger")
    side.set_yticks(list(places), names, fontsize="small")
    side.invert_yaxis()
    side.axvline(0.0, color="0.3", linewidth=0.8)
    side.set_xlabel("change of the mean score")
    side.legend(fontsize="small")
    side.grid(True, axis="x", alpha=0.3)
    return figure


def _row(each: Judged) -> list[str]:
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
