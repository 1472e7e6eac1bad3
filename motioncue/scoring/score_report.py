"""Scores drawn on one page of HTML; needs matplotlib (the extra ``report``)."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from motioncue.platforms.build import CHANNELS
from motioncue.scoring.page import figure_of, image, page, table
from motioncue.scoring.score import Score, Traces
from motioncue.scoring.senses import RATE_HZ, SENSES, Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["felt_figure", "poses_figure", "report"]

COLORS = {"car": "0.3", "asked": "0.75", "fits": "C0", "stopped": "C3", "best": "C2"}
HOW = (
    "Score: 0 as a platform at rest, 100 as the best motion of this platform that knows the whole drive in advance. "
    "fits: the cue made smaller until it fits the platform; stopped: what the platform does: its actuators keep "
    "their bounds. "
    "Rates first: the thresholds of turning halved."
)


def report(found: Sequence[tuple[str, str, Traces]]) -> str:
    """Return the page as HTML that needs no other file.

    Parameters
    ----------
    found : sequence of (str, str, Traces)
        Names of profile and drive, and what `motioncue.scoring.score.trace` returned.
    """
    heads = ["", "fits", "stopped", "fits, rates first", "stopped, rates first", "fast tilt"]
    rows = [
        [
            f"{profile} on {drive}",
            *(f"{value:.1f}" for value in (of.score.score, of.score.stopped, *of.score.rates_first)),
            f"{100 * of.score.motions['fits'].fast_tilt:.0f} %",
        ]
        for profile, drive, of in found
    ]
    parts = [
        f"<h2>{escape(profile)} on {escape(drive)}</h2>{_senses_table(traces.score)}{image(felt_figure(traces))}"
        f"{image(poses_figure(traces))}{_use_table(traces.score)}"
        for profile, drive, traces in found
    ]
    return page("How it feels", f"<p>{HOW}</p>{table(heads, rows)}{''.join(parts)}")


def felt_figure(traces: Traces) -> "Figure":
    """Draw what the organs report in the car and on the platform.

    Parameters
    ----------
    traces : Traces
        What `motioncue.scoring.score.trace` returned.

    Returns
    -------
    matplotlib.figure.Figure
        One row per sense, in thresholds.
    """
    curves = {
        name: (np.arange(len(traces.felt[name])) / RATE_HZ, traces.felt[name])
        for name in ("car", "best", "stopped", "fits")
    }
    figure = _rows("what the organs report [thresholds of perception]", SENSES, curves)
    for side in figure.axes:
        side.axhspan(-1.0, 1.0, color="0.95", zorder=0)
    return figure


def poses_figure(traces: Traces) -> "Figure":
    """Draw the poses of the platform.

    Parameters
    ----------
    traces : Traces
        What `motioncue.scoring.score.trace` returned.

    Returns
    -------
    matplotlib.figure.Figure
        One row per channel, in m and degrees.
    """
    scale = np.array([1.0, 1.0, 1.0, *np.degrees([1.0, 1.0, 1.0])])
    curves = {name: (traces.time, scale * traces.poses[name]) for name in ("asked", "best", "stopped", "fits")}
    labels = [
        f"{channel.removesuffix('_displacement')} [{'m' if k < 3 else 'deg'}]" for k, channel in enumerate(CHANNELS)
    ]
    figure = _rows("the pose of the platform", labels, curves)
    for place, side in enumerate(figure.axes):  # what is asked for may be far beyond
        most = 1.1 * max(np.abs(curves[name][1][:, place]).max() for name in ("best", "stopped", "fits")) + 1e-3
        side.set_ylim(-most, most)
    return figure


def _rows(title: str, labels: Sequence[str], curves: Mapping[str, tuple[Array, Array]]) -> "Figure":
    """Return a figure with a row for each column of the curves, which are times [s] and values by name."""
    figure = figure_of(9.0)
    sides = figure.subplots(len(labels), 1, sharex=True)
    for place, (side, label) in enumerate(zip(sides, labels, strict=True)):
        for name, (time, values) in curves.items():
            side.plot(time, values[:, place], color=COLORS[name], linewidth=0.9, label=name)
        side.set_ylabel(label.replace("_", " ").replace(" ", "\n"), fontsize="small")
        side.grid(True, alpha=0.3)
    sides[0].legend(fontsize="small", ncols=4, loc="upper right")
    sides[0].set_title(title, fontsize="medium")
    sides[-1].set_xlabel("time [s]")
    return figure


def _senses_table(score: Score) -> str:
    heads = ["", "still", "fits", "stopped", "best", "correlation", "late by", "opposite"]
    motions = score.motions
    fits = motions["fits"]
    return table(
        heads,
        [
            [
                sense.replace("_", " "),
                f"{at_rest:.2f}",
                *(f"{motions[name].error[sense]:.2f}" for name in ("fits", "stopped", "best")),
                f"{fits.correlation[sense]:.2f}",
                f"{1e3 * fits.lag_s[sense]:.0f} ms",
                f"{100 * fits.opposite[sense]:.0f} %",
            ]
            for sense, at_rest in score.still.items()
        ],
    )


def _use_table(score: Score) -> str:
    """Return the use of channels by the cue and of actuators by the motions, in percent."""
    heads = ["share used", "travel", "speed", "acceleration"]
    rows = [(f"{channel}, asked for", shares) for channel, shares in score.asked.items()]
    rows += [
        (f"{name}, {motion}", use) for motion, quality in score.motions.items() for name, use in quality.use.items()
    ]
    return table(heads, [[name, *(f"{100 * share:.0f} %" for share in shares)] for name, shares in rows])
