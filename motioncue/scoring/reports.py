"""Reports as one page of HTML, and plots; needs matplotlib (extra ``report`` or ``notebooks``)."""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CUE
from motioncue.cueing.senses import RATE_HZ, SENSES, Array, felt_in_car
from motioncue.platforms.build import CHANNELS, carriers_of
from motioncue.platforms.machine import MotionPlatform, Workspace
from motioncue.scoring.omct import TESTS, TURNS, Boundaries, Boundary, Response, Test
from motioncue.scoring.quality import Sickness
from motioncue.scoring.score import Score, Traces, apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
table {{ border-collapse: collapse; margin: 1rem 0 }} td, th {{ padding: .2rem .8rem; border-bottom: 1px solid #ddd }}
td {{ text-align: right }} td:first-child, th:first-child {{ text-align: left }} img {{ max-width: 100% }}
</style></head><body>
<h1>{title}</h1>{body}
</body></html>
"""


def page(title: str, body: str) -> str:
    """Return a whole page."""
    return PAGE.format(title=escape(title), body=body)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def figure_of(height: float) -> "Figure":
    """Return an empty figure of a page's width."""
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(10.0, height), layout="constrained")


def image(figure: "Figure") -> str:
    """Return a figure as an HTML image that holds its own data, and close it."""
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    plt.close(figure)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


FORCES = ("surge", "sway", "heave")
UNITS = {channel.name: channel.unit for channel in CUE}
SHOWN_IN = {"rad": ("deg", 180.0 / np.pi), "rad/s": ("deg/s", 180.0 / np.pi)}  # plots show degrees


def plot_traces(
    time: npt.NDArray[np.float64],
    motion: Any,
    cue: Any,
    channels: Sequence[str] = ("surge", "sway", "heave", "roll", "pitch", "yaw"),
    *,
    title: str = "",
    felt: bool = False,
) -> "Figure":
    """Plot what the car does and what the platform is asked to do over each other, one row per channel.

    Units: `time` [s].
    """
    import matplotlib.pyplot as plt

    figure, rows = plt.subplots(
        len(channels), 1, figsize=(9.0, 1.5 * len(channels) + 0.9), sharex=True, squeeze=False, layout="constrained"
    )
    under: dict[str, Any] = {"color": "C0", "linewidth": 2.2, "alpha": 0.5}  # so that a cue over it does not hide it
    car = dict(zip(FORCES, felt_in_car(motion).T, strict=False)) if felt else {}
    for row, name in zip(rows[:, 0], channels, strict=True):
        unit, factor = SHOWN_IN.get(UNITS[name], (UNITS[name], 1.0))
        row.grid(True, alpha=0.3)
        row.axhline(0.0, color="k", linewidth=0.5)
        if name in car:
            row.plot(time, car[name], label="felt in the car", **under)
        elif name in motion.dtype.names:
            row.plot(time, factor * motion[name], label="car", **under)
        row.plot(time, factor * cue[name], color="C1", linewidth=0.9, label="cue")
        row.set_ylabel(f"{name.replace('_', chr(10))}\n[{unit}]", fontsize="small")
        row.legend(loc="upper right", fontsize="small", ncols=2)
    rows[-1, 0].set_xlabel("time [s]")
    if title:
        figure.suptitle(title)
    return figure


def plot_response(
    omega: npt.NDArray[np.float64],
    measured: Mapping[str, npt.NDArray[np.complex128]],
    *,
    theory_omega: npt.NDArray[np.float64] | None = None,
    theory: Mapping[str, npt.NDArray[np.complex128]] | None = None,
    title: str = "",
) -> "Figure":
    """Plot gain and phase over frequency: measurements as points, theory as lines.

    Units: `omega` [rad/s], `theory_omega` [rad/s].
    """
    import matplotlib.pyplot as plt

    figure, (gain, phase) = plt.subplots(2, 1, figsize=(7.5, 5.0), sharex=True, layout="constrained")
    colors = {name: f"C{index}" for index, name in enumerate(dict.fromkeys([*measured, *(theory or {})]))}
    for name, values in (theory or {}).items():
        at = omega if theory_omega is None else theory_omega
        label = None if name in measured else name
        gain.plot(at, np.abs(values), color=colors[name], linewidth=1.2, label=label)
        phase.plot(at, _phase_deg(values), color=colors[name], linewidth=1.2)
    for name, values in measured.items():
        gain.plot(omega, np.abs(values), "o", color=colors[name], markersize=4, label=name)
        phase.plot(omega, _phase_deg(values), "o", color=colors[name], markersize=4)
    gain.set_xscale("log")
    gain.set_ylabel("gain")
    phase.set_ylabel("phase [deg]")
    phase.set_xlabel("frequency [rad/s]")
    for side in (gain, phase):
        side.grid(True, which="both", alpha=0.3)
    gain.legend(fontsize="small")
    if title:
        figure.suptitle(title)
    return figure


def _phase_deg(values: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return the phase [deg], unwrapped from the highest frequency, where a high-pass filter's phase is small."""
    return np.degrees(np.unwrap(np.angle(values)[::-1])[::-1])


COLORS = {"car": "0.3", "asked": "0.75", "fits": "C0", "stopped": "C3", "best": "C2"}
HOW_SCORED = (
    "Score: 0 as a platform at rest, 100 as the best motion of this platform that knows the whole drive in advance. "
    "fits: the cue made smaller until it fits the platform; stopped: what the platform does: its actuators keep "
    "their bounds. "
    "Rates first: the thresholds of turning halved."
)


def score_report(found: Sequence[tuple[str, str, Traces]]) -> str:
    """Return the page as HTML that needs no other file."""
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
        f"<h2>{escape(profile)} on {escape(drive)}</h2>{_senses_table(traces.score)}{_drivers_table(traces.score)}"
        f"{image(felt_figure(traces))}"
        f"{image(poses_figure(traces))}{_use_table(traces.score)}"
        for profile, drive, traces in found
    ]
    return page("How it feels", f"<p>{HOW_SCORED}</p>{table(heads, rows)}{''.join(parts)}")


def felt_figure(traces: Traces) -> "Figure":
    """Draw what the organs report in the car and on the platform."""
    curves = {
        name: (np.arange(len(traces.felt[name])) / RATE_HZ, traces.felt[name])
        for name in ("car", "best", "stopped", "fits")
    }
    figure = _rows("what the organs report [thresholds of perception]", SENSES, curves)
    for side in figure.axes:
        side.axhspan(-1.0, 1.0, color="0.95", zorder=0)
    return figure


def poses_figure(traces: Traces) -> "Figure":
    """Draw the poses of the platform."""
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
                f"{fits.correlation[sense]:.2f}" if np.isfinite(fits.correlation[sense]) else "unknown",
                f"{1e3 * fits.lag_s[sense]:.0f} ms" if np.isfinite(fits.lag_s[sense]) else "unknown",
                f"{100 * fits.opposite[sense]:.0f} %",
            ]
            for sense, at_rest in score.still.items()
        ],
    )


def _drivers_table(score: Score) -> str:
    """Return what drivers speak of: the worst moment, wrong ways, forces and turning apart, sickness."""
    heads = [
        "",
        "worst in 1 s",
        "worst in 5 s",
        "wrong way",
        "forces missed",
        "turning missed",
        "dose",
        "conflict",
        "sick",
    ]

    def sick(of: Sickness) -> list[str]:
        return [f"{of.dose:.2f} m/s^1.5", f"{of.conflict:.2f} m/s²", f"{of.incidence:.1f} %"]

    rows = [["car", *5 * [""], *sick(score.car_sickness)]]
    for name, of in score.motions.items():
        moments = [f"{each.mismatch:.2f} m/s², {each.sense} at {each.time:.1f} s" for each in of.worst.values()]
        missed = [f"{100 * share:.0f} %" for share in apart(score, name).values()]
        rows.append([name, *moments, f"{100 * of.wrong_way:.0f} %", *missed, *sick(of.sickness)])
    return table(heads, rows)


def _use_table(score: Score) -> str:
    """Return the use of channels by the cue and of actuators by the motions, in percent."""
    heads = ["share used", "travel", "speed", "acceleration"]
    rows = [(f"{WORDS[channel]}, asked for", shares) for channel, shares in score.asked.items()]
    rows += [
        (f"{name}, {motion}", use) for motion, quality in score.motions.items() for name, use in quality.use.items()
    ]
    told = [["no actuator" if np.isnan(share) else f"{100 * share:.0f} %" for share in shares] for _, shares in rows]
    return table(heads, [[name, *each] for (name, _), each in zip(rows, told, strict=True)])


GRID = 121  # points along each side of a section of the workspace
WORDS = {channel: channel.removesuffix("_displacement") for channel in CHANNELS}

BODY = """{description}<p>Source: {source}</p>
<h2>Where the actuators are</h2>{side}
<h2>How far it goes</h2>{table}{ranges}
<p>{together}</p>
<h2>Workspace</h2>{sections}<p>{volume}</p>
<h2>Actuators</h2>{actuators}"""


def platform_report(name: str, platform: MotionPlatform, workspace: Workspace) -> str:
    """Return the page as HTML that needs no other file."""
    volume = "" if workspace.volume_m3 is None else f"The motion reference point reaches {workspace.volume_m3:.3g} m³ "
    body = BODY.format(
        description=f"<p>{escape(description)}</p>" if (description := platform.table.description) else "",
        source=escape(platform.table.source or "the profile"),
        side=image(side_figure(platform)),
        table=_ranges_table(platform, workspace),
        ranges=image(ranges_figure(platform, workspace)),
        together=(
            f"Together: all channels at once, within {100 * workspace.share:.0f} % of the ranges alone. Of the poses "
            f"within the ranges alone, {100 * workspace.in_reach:.3g} % are in reach."
        ),
        sections=image(workspace_figure(platform)),
        volume=(
            f"{volume + 'with a level frame. ' if volume else ''}The least singular value of the Jacobian is "
            f"{workspace.singular:.2g} of the largest at worst."
        ),
        actuators=table(
            ["", "lowest", "highest", "neutral", "speed", "acceleration"],
            [
                [name, *(f"{value:.4g}" for value in (each.low, each.high, at, each.speed, each.acceleration))]
                for name, each, at in zip(platform.names, platform.bounds, platform.neutral, strict=True)
            ],
        ),
    )
    return page(name, body)


def side_figure(platform: MotionPlatform) -> "Figure":
    """Draw the actuators at neutral, from above and from the right."""
    figure = figure_of(4.6)
    above, right = figure.subplots(1, 2)
    rows, _ = carriers_of(platform.table)
    tops = np.array([row["platform"] for row in rows] or [(0.0, 0.0, 0.0)], dtype=float)
    bottoms = np.array([row.get("base", row.get("platform")) for row in rows] or [(0.0, 0.0, 0.0)], dtype=float)
    for name, row, top, bottom in zip(platform.names, rows, tops, bottoms, strict=False):
        points = [bottom, top]
        if row["kind"] == "crank":
            at = platform.neutral[platform.names.index(name)]
            out = row["crank"] * np.array(
                [np.cos(at) * np.cos(row["azimuth"]), np.cos(at) * np.sin(row["azimuth"]), -np.sin(at)]
            )
            points = [bottom, bottom + out, top]
        x, y, z = np.array(points).T
        above.plot(y, x, "o-", color="C0", markersize=4)
        right.plot(x, -z, "o-", color="C0", markersize=4)
        above.annotate(name, (y[-1], x[-1]), textcoords="offset points", xytext=(4, 4), fontsize=8)
    for side, across, up in ((above, tops[:, 1], tops[:, 0]), (right, tops[:, 0], -tops[:, 2])):
        closed = [*range(len(across)), 0]
        side.plot(across[closed], up[closed], color="C1", linewidth=2, label="frame")
        side.plot(0, 0, "k+", markersize=10, label="motion reference point")
        side.set_aspect("equal", "datalim")
        side.grid(True, alpha=0.3)
    above.set(title="from above", xlabel="right [m]", ylabel="forward [m]")
    right.set(title="from the right", xlabel="forward [m]", ylabel="up [m]")
    above.legend(fontsize="small")
    return figure


def ranges_figure(platform: MotionPlatform, workspace: Workspace) -> "Figure":
    """Draw the ranges alone and together as bars."""
    figure = figure_of(2.6)
    for side, channels, unit, scale in zip(
        figure.subplots(1, 2), (CHANNELS[:3], CHANNELS[3:]), ("m", "deg"), (1.0, np.degrees(1.0)), strict=True
    ):
        for ends, color, height, label in (
            (platform.ranges, "0.8", 0.7, "alone"),
            (workspace.together, "C0", 0.35, "together"),
        ):
            for place, channel in enumerate(channels):
                low, high = ends[channel]
                if low is not None and high is not None:
                    side.barh(
                        place,
                        scale * (high - low),
                        left=scale * low,
                        color=color,
                        height=height,
                        label=None if place else label,
                    )
        side.set_yticks(range(3), [WORDS[channel] for channel in channels])
        side.set_ylim(2.6, -0.6)
        side.set_xlabel(f"[{unit}]")
        side.locator_params(axis="x", nbins=7)
        side.axvline(0.0, color="0.3", linewidth=0.8)
        side.grid(True, axis="x", alpha=0.3)
        if side.get_legend_handles_labels()[0]:
            side.legend(fontsize="small")
    return figure


def workspace_figure(platform: MotionPlatform) -> "Figure":
    """Draw sections through the workspace: pairs of channels, the others at neutral."""
    able = [place for place, channel in enumerate(CHANNELS) if None not in platform.ranges[channel]]
    wanted = [(0, 1), (0, 2), (1, 2), (3, 4), (0, 4), (1, 3), (2, 4), (2, 3)]
    pairs = [pair for pair in wanted if {*pair} <= {*able}][:6]
    figure = figure_of(3.1 * max(1, -(-len(pairs) // 3)))
    axes = np.ravel(figure.subplots(max(1, -(-len(pairs) // 3)), 3))
    for side in axes[len(pairs) :]:
        side.set_axis_off()
    for side, (first, second) in zip(axes, pairs, strict=False):
        steps = [1.6 * np.linspace(*_ends(platform, place), GRID) for place in (first, second)]
        poses = np.zeros((GRID * GRID, 6))
        poses[:, first], poses[:, second] = (grid.ravel() for grid in np.meshgrid(*steps))
        reached = platform.reaches(poses).reshape(GRID, GRID)
        scales = [1.0 if place < 3 else np.degrees(1.0) for place in (first, second)]
        across, up = (step * scale for step, scale in zip(steps, scales, strict=True))
        side.contourf(across, up, reached, levels=[0.5, 1.5], colors=["C0"], alpha=0.4)
        side.contour(across, up, reached, levels=[0.5], colors=["C0"])
        side.plot(0, 0, "k+")
        units = ["m" if place < 3 else "deg" for place in (first, second)]
        side.set_xlabel(f"{WORDS[CHANNELS[first]]} [{units[0]}]")
        side.set_ylabel(f"{WORDS[CHANNELS[second]]} [{units[1]}]")
        side.grid(True, alpha=0.3)
    return figure


def _ends(platform: MotionPlatform, place: int) -> tuple[float, float]:
    low, high = platform.ranges[CHANNELS[place]]
    assert low is not None
    assert high is not None
    return low, high


def _ranges_table(platform: MotionPlatform, workspace: Workspace) -> str:
    rows = []
    for channel in CHANNELS:
        scale, unit = (1.0, "m") if channel.endswith("displacement") else (float(np.degrees(1.0)), "deg")
        ends = [
            "no actuator"
            if workspace.speeds[channel] is None
            else "no end"
            if None in (low, high)
            else f"{scale * low:+.3f} to {scale * high:+.3f}"  # type: ignore[operator]
            for low, high in (platform.ranges[channel], workspace.together[channel])
        ]
        most: list[Any] = [workspace.speeds[channel], workspace.accelerations[channel]]
        shown = ["no actuator" if value is None else f"{scale * value:.3g}" for value in most]
        rows.append([f"{WORDS[channel]} [{unit}]", *ends, *shown])
    return table(["", "alone", "together", "speed [1/s]", "acceleration [1/s²]"], rows)


HOW_MEASURED = (
    "Ten tests, each with sines of several amplitudes. Points are measured on the running kernels, lines are the "
    "algorithm's equations, which know no limits. The residual is what is not at the sine's frequency: limits at work "
    "make it large."
)


def omct_report(name: str, rows: Sequence[Response], boundaries: Boundaries | None = None) -> str:
    """Return the page as HTML that needs no other file."""
    judged = "" if boundaries is None else f"<p>Boundaries: {escape(boundaries.source)}</p>"
    parts = [
        f"<h2>{_title(test)}</h2>{image(omct_figure(test, rows, boundaries))}{_residuals(test, rows)}" for test in TESTS
    ]
    return page(f"Objective Motion Cueing Test: {escape(name)}", f"<p>{HOW_MEASURED}</p>{judged}{''.join(parts)}")


def _title(test: Test) -> str:
    """Return the heading of a test."""
    return f"{test.number}: {test.channel_out} due to {test.channel_in}"


def omct_figure(test: Test, rows: Sequence[Response], boundaries: Boundaries | None = None) -> "Figure":
    """Draw modulus and phase of a test over frequency."""
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
