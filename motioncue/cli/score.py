"""``motioncue score``: how good a cueing is on drives that are taken by name."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress, TaskID

from motioncue.cli.common import json_option, positive, print_json, report_option, write_report
from motioncue.cli.terminal import print_summary
from motioncue.drive.courses import COURSES
from motioncue.engine.assembly import algorithm_of, load_profile_on
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.packages import quoted
from motioncue.recording.recording import read, sample_recording
from motioncue.scoring.reports import score_report
from motioncue.scoring.score import Score, Traces, apart, trace
from motioncue.virtual.installation import drive_motion
from motioncue.virtual.simulators import SAMPLE

DRIVES = f"A recording, or a virtual drive: {', '.join(COURSES)}; `{SAMPLE}` is the drive in the package."

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def drive_options(command: Decorated) -> Decorated:
    """Add ``--system`` and ``--rate``, which say what a recording does not say itself."""
    for option in (
        click.option(
            "--rate",
            type=float,
            callback=positive,
            metavar="HZ",
            help="Frames per second of a recording without times.",
        ),
        click.option(
            "--system",
            metavar="SYSTEM",
            help="System of a recording, or a profile that describes it; found by content.",
        ),
    ):
        command = option(command)
    return command


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
@click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a key of every profile; repeatable."
)
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
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for profile_name, profile in loaded:
            for drive_name, motion in motions:
                task = progress.add_task(f"{profile_name}, {drive_name}")

                def tell(done: int, total: int, task: TaskID = task) -> None:
                    progress.update(task, completed=done, total=total)

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
