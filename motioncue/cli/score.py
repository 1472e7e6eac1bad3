"""``motioncue score``, ``compare`` and ``omct``: how good a cueing is, alone, beside others, and by sines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt

from motioncue.cli.common import (
    changes_option,
    echo,
    json_option,
    print_json,
    progress,
    report_option,
    set_option,
    system_options,
    write_report,
)
from motioncue.cli.terminal import print_summary
from motioncue.cueing.settings import ALGORITHMS
from motioncue.drive.courses import COURSES
from motioncue.engine.assembly import algorithm_of, load_profile_on
from motioncue.errors import ConfigError, PacketError
from motioncue.profile.profile import Profile
from motioncue.recording.packages import quoted
from motioncue.recording.recording import read, sample_recording
from motioncue.scoring.omct import ACCELERATIONS, RATES_DEG_S, TESTS, TURNS, Response, boundaries_of, omct
from motioncue.scoring.reports import omct_report, score_report
from motioncue.scoring.score import Score, Traces, against_one, apart, trace
from motioncue.virtual.installation import SAMPLE, drive_motion

DRIVES = f"A recording, or a virtual drive: {', '.join(COURSES)}; `{SAMPLE}` is the drive in the package."

drive_options = system_options(
    "System of a recording, or a profile that describes it; found by content.",
    "Frames per second of a recording without times.",
)


def drive_of(name: str, system: str | None, rate: float | None, option: str = "--drive") -> npt.NDArray[np.void]:
    """Return the frames of a drive: a recording's, the sample's or a virtual one's.

    Units: `rate` [Hz].
    """
    if name in COURSES and not Path(name).exists():
        return drive_motion(name)
    path = sample_recording() if name == SAMPLE and not Path(name).exists() else Path(name)
    if not path.exists():
        raise ConfigError(
            f"{option}: found no file {quoted(path)}, allowed are recordings and {', '.join((*COURSES, SAMPLE))}"
        )
    motion = read(path, system=system, rate_hz=rate).motion
    if not len(motion):
        raise PacketError(f"{option}: {quoted(path)} has no frames")
    return motion


@click.command()
@click.argument("profiles", metavar="PROFILE...", nargs=-1, required=True)
@click.option(
    "--drive",
    "drives",
    metavar="FILE|NAME",
    multiple=True,
    required=True,
    help=f"{DRIVES}  Repeatable.",
)
@click.option("--platform", metavar="NAME|FILE", help="Platform to use instead of the profile's own.")
@drive_options
@changes_option("Change a key of every profile; repeatable.")
@click.option(
    "--preview",
    is_flag=True,
    help="Let the algorithm know the drive some seconds in advance (predictive): what knowing it would be worth.",
)
@report_option
@json_option
def command(
    profiles: tuple[str, ...],
    drives: tuple[str, ...],
    platform: str | None,
    system: str | None,
    rate: float | None,
    overrides: tuple[str, ...],
    preview: bool,
    path: str | None,
    as_json: bool,
) -> None:
    """Score cueings: 0 as standing still, 100 as the best that the platform could do.

    `fits` scores the cue made smaller until it fits the platform, `stopped` what the platform does, whose actuators
    keep their bounds.  Rankings depend on how turning weighs against forces, so both weightings are shown.

    \b
    Example:  motioncue score ccd-dk-washout --drive sample --platform hexapod-dim
              pip install "motioncue[score]" brings what it needs
    """
    loaded = [(name, load_profile_on(name, platform, *overrides)) for name in profiles]
    for name, profile in loaded:
        if preview and not algorithm_of(profile).sees_ahead:
            raise ConfigError(f"--preview: found {name!r}, whose algorithm makes no use of it; allowed is 'predictive'")
    motions = [(name, drive_of(name, system, rate)) for name in drives]
    found: list[tuple[str, str, Traces]] = []
    for profile_name, profile in loaded:
        for drive_name, motion in motions:
            with progress(f"{profile_name}, {drive_name}") as tell:
                traces = trace(profile, motion, platform=platform, preview=preview, progress=tell)
            found.append((profile_name, drive_name, traces))
    for profile_name, drive_name, traces in found:
        print_summary(f"{profile_name} on {drive_name}", _rows(traces.score))
    if path is not None:
        write_report(path, lambda: score_report(found), [platform or each.platform_name for _, each in loaded])
    if as_json:
        about: dict[str, Any] = {} if platform is None else {"platform": platform}
        about = {**about, "preview": True} if preview else about
        print_json(
            [{"profile": name, "drive": drive, **about, **_plain(traces.score)} for name, drive, traces in found]
        )


def _rows(score: Score) -> list[tuple[str, str]]:
    def pair(values: Sequence[float]) -> str:
        return "fits {:.0f}, stopped {:.0f}".format(*values)

    fits, best = score.motions["fits"], score.motions["best"]
    asked = {name: max(shares) for name, shares in score.asked.items() if not np.isnan(shares).all()}
    smaller = {name: factor for name, factor in score.turned_down.items() if name in asked and factor < 1.0}
    return [
        ("score", f"{pair((score.score, score.stopped))}; with rates first {pair(score.rates_first)}"),
        ("asks for", f"{_percent(asked)} of what each has alone"),
        ("turned down to", _percent(smaller) or "nothing: it fits"),
        *((sense.replace("_", " "), _sense_row(sense, score)) for sense in score.still),
        *(
            (
                f"worst in {lag}",
                f"{told.mismatch:.2f} m/s² in {told.sense} at {told.time:.1f} s, best {best.worst[lag].mismatch:.2f}",
            )
            for lag, told in fits.worst.items()
        ),
        ("wrong way", f"{100 * fits.wrong_way:.0f} % of the time, best {100 * best.wrong_way:.0f} %"),
        ("missed of rest", ", ".join(f"{name} {100 * share:.0f} %" for name, share in apart(score).items())),
        (
            "sickness",
            f"dose {fits.sickness.dose:.2f} of the car's {score.car_sickness.dose:.2f} m/s^1.5; vertical conflict "
            f"{fits.sickness.conflict:.2f}, car {score.car_sickness.conflict:.2f} m/s²",
        ),
        ("fast tilt", f"{100 * fits.fast_tilt:.0f} % of the time, best {100 * best.fast_tilt:.0f} %"),
        (
            "above 3 Hz",
            ", ".join(
                f"{sense} {value:.2f} of {score.car_jolts[sense]:.2f} m/s²" for sense, value in fits.jolts.items()
            ),
        ),
    ]


def _percent(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name.removesuffix('_displacement')} {100 * share:.0f} %" for name, share in shares.items())


def _sense_row(sense: str, score: Score) -> str:
    fits, best = score.motions["fits"], score.motions["best"]
    told = [f"error {fits.error[sense]:.2f} thresholds, still {score.still[sense]:.2f}, best {best.error[sense]:.2f}"]
    if not np.isnan(fits.correlation[sense]):
        told.append(f"correlation {fits.correlation[sense]:.2f}, opposite {100 * fits.opposite[sense]:.0f} %")
    if not np.isnan(fits.lag_s[sense]):
        told.append(f"late by {1e3 * fits.lag_s[sense]:.0f} ms")
    return "; ".join(told)


def _plain(value: Any) -> Any:
    """Return named tuples as mappings, for JSON."""
    if hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


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


@click.command("compare")
@click.argument("profiles", metavar="PROFILE...", nargs=-1, required=True)
@click.option("--drive", "drives", metavar="FILE|NAME", multiple=True, required=True, help=f"{DRIVES}  Repeatable.")
@click.option("--platform", metavar="NAME|FILE", help="Platform to use instead of the profiles' own.")
@click.option("--algorithms", is_flag=True, help="Also with several profiles: every algorithm on the rig of each.")
@drive_options
@changes_option("Change a key of every profile.")
@json_option
def compare(
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
    as standing still, 100 as the best that the platform could do; compare them on one platform only.  Of what is best
    there, each profile may have found another motion: all are held against the best of these.

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
    if all(profile.platform == chosen[0][1].platform for _, profile in chosen):
        columns = [against_one(column) for column in zip(*(row.scores for row in rows), strict=True)]
        rows = [row._replace(scores=[column[at] for column in columns]) for at, row in enumerate(rows)]
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


@click.command("omct")
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
def measure(
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
