"""``motioncue compare``: profiles side by side, or every algorithm on the rig of one."""

from collections.abc import Sequence
from typing import NamedTuple

import click

from motioncue.cli.common import echo, json_option, print_json, progress
from motioncue.cli.score import DRIVES, drive_of, drive_options
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.assembly import load_profile_on
from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile
from motioncue.scoring.score import Score, trace

NO_POSE = "direct"  # moves no platform
EQUAL = 1.0  # scores that are nearer are told apart by no driver


class Row(NamedTuple):
    """One line of the table: what was compared, and its score on each drive."""

    name: str
    scores: list[Score]

    @property
    def mean(self) -> float:
        """Mean score over the drives."""
        return sum(score.score for score in self.scores) / len(self.scores)


@click.command()
@click.argument("profiles", metavar="PROFILE...", nargs=-1, required=True)
@click.option("--drive", "drives", metavar="FILE|NAME", multiple=True, required=True, help=f"{DRIVES}  Repeatable.")
@click.option("--platform", metavar="NAME|FILE", help="Platform to use instead of the profiles' own.")
@click.option("--algorithms", is_flag=True, help="Also with several profiles: every algorithm on the rig of each.")
@drive_options
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a key of every profile.")
@json_option
def command(
    profiles: tuple[str, ...],
    drives: tuple[str, ...],
    platform: str | None,
    algorithms: bool,
    system: str | None,
    rate: float | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show profiles side by side; of one profile, itself and every algorithm on its rig.

    Each algorithm has the settings that it suits to the platform by itself.  Scores are those of `motioncue score`: 0
    as standing still, 100 as the best that the platform could do; compare them on one platform only.

    \b
    Example:  motioncue compare rig.toml tuned.toml --drive drive.mcap
              motioncue compare rig.toml --drive tour
              pip install "motioncue[score]" brings what it needs
    """
    chosen: list[tuple[str, Profile]] = []
    for name in profiles:
        own = load_profile_on(name, platform, *overrides)
        chosen.append((name, own))
        if algorithms or len(profiles) == 1:
            others = (
                (f"{name}, {each}", load_profile_on(name, platform, *overrides, f"cueing={{ algorithm = '{each}' }}"))
                for each in ALGORITHMS
                if each != NO_POSE
            )
            chosen += [(said, other) for said, other in others if other.cueing != own.cueing]
    motions = [drive_of(name, system, rate) for name in drives]
    rows, refused = [], []
    with progress("compare") as tell:
        for done, (name, profile) in enumerate(chosen):
            tell(done, len(chosen))
            try:
                rows.append(Row(name, [trace(profile, motion, platform=platform).score for motion in motions]))
            except ConfigError as error:  # an algorithm that does not suit this rig leaves the others
                if name in profiles:
                    raise
                refused.append(f"{name}: {error}")
    rows.sort(key=lambda row: -row.mean)
    for line in _table(rows, drives):
        echo(line)
    for line in refused:
        echo(f"left out: {line}")
    echo(_verdict(rows))
    if as_json:
        print_json(
            [
                {
                    "name": row.name,
                    "mean": row.mean,
                    "drives": {
                        drive: {"score": each.score, "stopped": each.stopped, "fast_tilt": _fast_tilt(each)}
                        for drive, each in zip(drives, row.scores, strict=True)
                    },
                }
                for row in rows
            ]
        )


def _fast_tilt(score: Score) -> float:
    """Return the share of time with a tilt that is faster than the car's by 3 deg/s."""
    return float(score.motions["fits"].fast_tilt)


def _table(rows: Sequence[Row], drives: Sequence[str]) -> list[str]:
    """Return the lines of the table, the best first."""
    heads = ["", "score", *(drives if len(drives) > 1 else ()), "fast tilt", "asks for"]
    cells = []
    for row in rows:
        asked = max(max(shares) for score in row.scores for shares in score.asked.values() if max(shares) >= 0.0)
        tilt = max(map(_fast_tilt, row.scores))
        each = [f"{score.score:.0f}" for score in row.scores] if len(drives) > 1 else []
        cells.append([row.name, f"{row.mean:.0f}", *each, f"{100 * tilt:.0f} %", f"{100 * asked:.0f} %"])
    widths = [max(len(line[at]) for line in [heads, *cells]) for at in range(len(heads))]
    return [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in [heads, *cells]
    ]


def _verdict(rows: Sequence[Row]) -> str:
    """Return in a sentence which is best."""
    best, *rest = rows
    near = [row.name for row in rest if best.mean - row.mean < EQUAL]
    if near:
        return f"No clear winner: {best.name} and {', '.join(near)} are within {EQUAL:g} point of each other."
    return f"{best.name} is best" + (f", by {best.mean - rest[0].mean:.0f} points." if rest else ".")
