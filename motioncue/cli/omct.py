"""``motioncue omct``: the Objective Motion Cueing Test of a cueing and its platform."""

from collections.abc import Sequence

import click

from motioncue.cli.common import json_option, print_json, progress, report_option, set_option, write_report
from motioncue.cli.terminal import print_summary
from motioncue.engine.assembly import load_profile_on
from motioncue.scoring.omct import ACCELERATIONS, RATES_DEG_S, TESTS, TURNS, Response, boundaries_of, omct
from motioncue.scoring.reports import omct_report


@click.command()
@click.argument("profile", metavar="PROFILE")
@click.option("--platform", metavar="NAME|FILE", help="Platform to use instead of the profile's own.")
@set_option
@click.option(
    "--acceleration",
    "accelerations",
    type=float,
    multiple=True,
    default=ACCELERATIONS,
    show_default=True,
    metavar="M/S2",
    help="Amplitude of surge, sway and heave; repeatable.",
)
@click.option(
    "--rate",
    "rates",
    type=float,
    multiple=True,
    default=RATES_DEG_S,
    show_default=True,
    metavar="DEG/S",
    help="Amplitude of the rates of roll, pitch and yaw; repeatable.",
)
@click.option("--boundaries", "file", metavar="FILE.toml", help="Boundaries of gain and phase, with their source.")
@report_option
@json_option
def command(
    profile: str,
    platform: str | None,
    overrides: tuple[str, ...],
    accelerations: tuple[float, ...],
    rates: tuple[float, ...],
    file: str | None,
    path: str | None,
    as_json: bool,
) -> None:
    """Measure how a cueing responds to sines: the Objective Motion Cueing Test.

    Ten tests at twelve frequencies, at a small amplitude and at those of driving.  `residual` is what is not at the
    sine's frequency: limits at work make it large.

    \b
    Example:  motioncue omct ccd-dk-washout --report omct.html
    """
    loaded = load_profile_on(profile, platform, *overrides)
    boundaries = None if file is None else boundaries_of(file)
    with progress(f"{profile}, sines") as tell:
        rows = omct(
            loaded,
            platform=platform,
            boundaries=boundaries,
            accelerations=accelerations,
            rates_deg_s=rates,
            progress=tell,
        )
    name = profile if platform is None else f"{profile} on {platform}"
    for test in TESTS:
        own = [row for row in rows if row.test == test.number]
        unit = "" if test.unit == "1" else f" [{test.unit}]"
        print_summary(f"{test.number}: {test.channel_out} due to {test.channel_in}{unit}", _lines(own))
    if path is not None:
        write_report(path, lambda: omct_report(name, rows, boundaries), [platform or loaded.platform_name])
    if as_json:
        print_json([row._asdict() for row in rows])


def _lines(rows: Sequence[Response]) -> list[tuple[str, str]]:
    """Return a test's lines: frequencies, then gain and phase by amplitude, then residual and what is outside."""
    unit = "deg/s" if rows[0].channel_in in TURNS else "m/s²"
    levels = list(dict.fromkeys(row.level for row in rows))
    lines = [("rad/s", " ".join(f"{row.frequency_rad_s:8.3g}" for row in rows if row.level == levels[0]))]
    for level in levels:
        own = [row for row in rows if row.level == level]
        lines.append((f"{level:g} {unit}", " ".join(f"{row.gain:8.3g}" for row in own)))
        lines.append(("  phase [deg]", " ".join(f"{row.phase_deg:8.1f}" for row in own)))
        lines.append(("  residual", " ".join(f"{row.residual:8.2g}" for row in own)))
        if any(row.inside is not None for row in own):
            words = {True: "inside", False: "OUTSIDE", None: "-"}
            lines.append(("  boundaries", " ".join(f"{words[row.inside]:>8}" for row in own)))
    return lines
