"""A platform drawn on one page of HTML; needs matplotlib (the extra ``report``)."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from motioncue.platforms.build import CHANNELS, carriers_of
from motioncue.platforms.machine import MotionPlatform, Workspace
from motioncue.scoring.page import figure_of, image, page, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ranges_figure", "report", "side_figure", "workspace_figure"]

GRID = 121  # points along each side of a section of the workspace
WORDS = {channel: channel.removesuffix("_displacement") for channel in CHANNELS}

BODY = """{description}<p>Source: {source}</p>
<h2>Where the actuators are</h2>{side}
<h2>How far it goes</h2>{table}{ranges}
<p>{together}</p>
<h2>Workspace</h2>{sections}<p>{volume}</p>
<h2>Actuators</h2>{actuators}"""


def report(name: str, platform: MotionPlatform, workspace: Workspace) -> str:
    """Return the page as HTML that needs no other file.

    Parameters
    ----------
    name : str
        Title.
    platform : MotionPlatform
        The platform.
    workspace : Workspace
        Its workspace.
    """
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
                [each, *(f"{value:.4g}" for value in (low, high, at, speed, acceleration))]
                for each, (low, high, speed, acceleration), at in zip(
                    platform.names, platform.bounds, platform.neutral, strict=True
                )
            ],
        ),
    )
    return page(name, body)


def side_figure(platform: MotionPlatform) -> "Figure":
    """Draw the actuators at neutral, from above and from the right.

    Parameters
    ----------
    platform : MotionPlatform
        The platform.

    Returns
    -------
    matplotlib.figure.Figure
    """
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
    """Draw the ranges alone and together as bars.

    Parameters
    ----------
    platform : MotionPlatform
        The platform.
    workspace : Workspace
        Its workspace.

    Returns
    -------
    matplotlib.figure.Figure
    """
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
    """Draw sections through the workspace: pairs of channels, the others at neutral.

    Parameters
    ----------
    platform : MotionPlatform
        The platform.

    Returns
    -------
    matplotlib.figure.Figure
        Up to six sections of channels that have ends, in reach shaded.
    """
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
