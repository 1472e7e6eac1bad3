"""The Objective Motion Cueing Test drawn on one page of HTML; needs matplotlib (the extra ``report``)."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from motioncue.scoring.omct import TESTS, TURNS, Response, Test
from motioncue.scoring.omct_boundaries import Boundaries, Boundary
from motioncue.scoring.page import image, page, table
from motioncue.scoring.plots import plot_response

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure", "report"]

HOW = (
    "Ten tests, each with sines of several amplitudes. Points are measured on the running kernels, lines are the "
    "algorithm's equations, which know no limits. The residual is what is not at the sine's frequency: limits at work "
    "make it large."
)


def report(name: str, rows: Sequence[Response], boundaries: Boundaries | None = None) -> str:
    """Return the page as HTML that needs no other file.

    Parameters
    ----------
    name : str
        Name of the profile, and of the platform if there is one.
    rows : sequence of Response
        What `motioncue.omct` returned.
    boundaries : Boundaries, optional
        Those that it was given; they are shaded, and their source is named.
    """
    judged = "" if boundaries is None else f"<p>Boundaries: {escape(boundaries.source)}</p>"
    parts = [f"<h2>{title(test)}</h2>{image(figure(test, rows, boundaries))}{_residuals(test, rows)}" for test in TESTS]
    return page(f"Objective Motion Cueing Test: {escape(name)}", f"<p>{HOW}</p>{judged}{''.join(parts)}")


def title(test: Test) -> str:
    """Return the heading of a test.

    Parameters
    ----------
    test : Test
        One of `TESTS`.
    """
    return f"{test.number}: {test.channel_out} due to {test.channel_in}"


def figure(test: Test, rows: Sequence[Response], boundaries: Boundaries | None = None) -> "Figure":
    """Draw modulus and phase of a test over frequency.

    Parameters
    ----------
    test : Test
        One of `TESTS`.
    rows : sequence of Response
        What `motioncue.omct` returned; those of other tests are left out.
    boundaries : Boundaries, optional
        Shaded.

    Returns
    -------
    matplotlib.figure.Figure
    """
    own = [row for row in rows if row.test == test.number]
    levels = list(dict.fromkeys(row.level for row in own))
    omega = np.array([row.frequency_rad_s for row in own if row.level == levels[0]])
    curves = {f"{level:g} {_unit(test)}": [row for row in own if row.level == level] for level in levels}
    measured = {
        label: np.array([row.gain * np.exp(1j * np.radians(row.phase_deg)) for row in of])
        for label, of in curves.items()
    }
    first = next(iter(curves))
    phases = np.nan_to_num([row.theory_phase_deg for row in curves[first]])  # a gain of 0 has none
    theory = np.array([row.theory_gain for row in curves[first]]) * np.exp(1j * np.radians(phases))
    drawn = plot_response(omega, measured, theory=None if np.isnan(theory).any() else {first: theory})
    gain = drawn.axes[0]
    gain.set_ylabel("gain" if test.unit == "1" else f"gain [{test.unit}]")
    limits = None if boundaries is None else boundaries.of(test.number)
    _turn(drawn, limits)
    if limits is not None:
        _shade(drawn, limits)
    return drawn


def _turn(drawn: "Figure", limits: Boundary | None) -> None:
    """Draw phases by whole turns nearest to the middle of their boundaries, or to the first curve."""
    phase = drawn.axes[1]
    middle = np.asarray(phase.lines[0].get_ydata())
    at = np.asarray(phase.lines[0].get_xdata())
    if limits is not None and limits.phase_low_deg is not None and limits.phase_high_deg is not None:
        corners = 0.5 * (np.array(limits.phase_low_deg) + np.array(limits.phase_high_deg))
        middle = np.interp(np.log(at), np.log(limits.frequency_rad_s), corners)
    for line in phase.lines:
        drawn_deg = np.asarray(line.get_ydata())
        line.set_ydata(drawn_deg + 360.0 * np.round((middle - drawn_deg) / 360.0))
    phase.relim()
    phase.autoscale_view()


def _shade(drawn: "Figure", limits: Boundary) -> None:
    """Shade what is inside the boundaries."""
    gain, phase = drawn.axes
    at = limits.frequency_rad_s
    if limits.gain_low is not None or limits.gain_high is not None:
        _, top = gain.get_ylim()
        high = limits.gain_high or [max(top, *(limits.gain_low or ()))] * len(at)
        gain.fill_between(at, limits.gain_low or [0.0] * len(at), high, color="C2", alpha=0.15)
    if limits.phase_low_deg is not None and limits.phase_high_deg is not None:
        phase.fill_between(at, limits.phase_low_deg, limits.phase_high_deg, color="C2", alpha=0.15)


def _unit(test: Test) -> str:
    return "deg/s" if test.channel_in in TURNS else "m/s²"


def _residuals(test: Test, rows: Sequence[Response]) -> str:
    """Return a table of the largest residual, and of what is outside of boundaries, by amplitude."""
    own = [row for row in rows if row.test == test.number]
    lines = []
    for level in dict.fromkeys(row.level for row in own):
        of = [row for row in own if row.level == level]
        worst = max(of, key=lambda row: row.residual)
        judged = [row for row in of if row.inside is not None]
        outside = [f"{row.frequency_rad_s:.3g}" for row in judged if not row.inside]
        lines.append(
            [
                f"{level:g} {_unit(test)}",
                f"{worst.residual:.2g} at {worst.frequency_rad_s:.3g} rad/s, where the gain is {worst.gain:.2g}",
                "not judged" if not judged else ", ".join(outside) or "none",
            ]
        )
    return table(["amplitude", "largest residual", "outside of the boundaries at [rad/s]"], lines)
