"""``motioncue tune``: the settings that score best on drives and a platform."""

import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from motioncue.cli.common import json_option, print_json, report_option, set_option, write_report
from motioncue.cli.score import DRIVES, drive_of, drive_options
from motioncue.cli.terminal import print_summary
from motioncue.engine.assembly import load_profile_on
from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile, profile_text
from motioncue.profile.tables import parsed
from motioncue.tuning.evaluator import with_values
from motioncue.tuning.search import AIMS, SHARES, Point
from motioncue.tuning.tune import STATE, Bounds, Sensitivity, Tuned, front_rows, report, tune, tuned_text, written_out

SHOWN = 8  # sensitivities in the summary
LEAST = 0.5  # points that count as a difference
SAID_S = 10.0  # from line to line of progress without a terminal


@click.command()
@click.argument("profile", metavar="PROFILE")
@click.option(
    "--drive", "drives", metavar="FILE|NAME", multiple=True, required=True, help=f"To tune on.  {DRIVES}  Repeatable."
)
@click.option(
    "--hold-out",
    "held",
    metavar="FILE|NAME",
    multiple=True,
    help="To judge on, before and after, unseen by the search; repeatable.",
)
@click.option("--platform", metavar="NAME|FILE", help="Platform to use instead of the profile's own.")
@drive_options
@set_option
@click.option(
    "--parameter",
    "parameters",
    metavar="KEY",
    multiple=True,
    help="What to search: surge.gain, a table such as tilt, or a pattern such as *.cutoff_hz; all numbers of the "
    "algorithm if not given; repeatable.",
)
@click.option(
    "--evaluations",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    metavar="N",
    help="Settings to score; with --front for each of the four bounds.",
)
@click.option(
    "--seed",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="The same seed finds the same settings.",
)
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Processes that score."
)
@click.option(
    "--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster whose workers score, such as tcp://10.0.0.1:8786."
)
@click.option(
    "--use",
    type=click.FloatRange(0, min_open=True),
    default=Bounds().use,
    show_default=True,
    metavar="SHARE",
    help="Bound: what the cue asks of the platform's travel, speed and acceleration; below 1 leaves room for drives "
    "that ask for more.",
)
@click.option(
    "--fast-tilt",
    type=click.FloatRange(0, 1),
    default=Bounds().fast_tilt,
    show_default=True,
    metavar="SHARE",
    help="Bound: share of time with tilt that is faster than the car's by 3 deg/s.",
)
@click.option(
    "--opposite",
    type=click.FloatRange(0, 1),
    default=Bounds().opposite,
    show_default=True,
    metavar="SHARE",
    help="Bound: share of time in which a sense feels the platform against the car.",
)
@click.option(
    "--front",
    type=click.Choice([name.replace("_", "-") for name in AIMS]),
    help="Also the best settings within 25, 50 and 75 % of this bound: the score against what it costs.",
)
@click.option("--save-front", is_flag=True, help="Write them too: beside FILE.toml, as FILE-use-25.toml, and so on.")
@click.option("--out", "file", metavar="FILE.toml", required=True, help="The profile with what was found.")
@click.option("--force", is_flag=True, help="Replace that file, if it exists.")
@click.option("--resume", is_flag=True, help=f"Go on with the search kept in FILE.toml{STATE}.")
@report_option
@json_option
def command(
    profile: str,
    drives: tuple[str, ...],
    held: tuple[str, ...],
    platform: str | None,
    system: str | None,
    rate: float | None,
    overrides: tuple[str, ...],
    parameters: tuple[str, ...],
    evaluations: int,
    seed: int,
    workers: int,
    dask: str | None,
    use: float,
    fast_tilt: float,
    opposite: float,
    front: str | None,
    save_front: bool,
    file: str,
    force: bool,
    resume: bool,
    path: str | None,
    as_json: bool,
) -> None:
    """Search for the settings of a profile's algorithm that score best on drives and a platform.

    The file is the profile with other values, its comments kept.  The bounds hold on every drive of --drive; what was
    found is judged on those of --hold-out.  Ctrl-C ends the search and keeps the best.

    \b
    Example:  motioncue tune rig.toml --drive drive.mcap --out tuned.toml
              pip install "motioncue[tune]" brings what it needs
    """
    loaded = load_profile_on(profile, platform, *overrides)
    aim = front and front.replace("-", "_")
    out = _target(file, force or resume)
    if save_front and not front:
        raise ConfigError("--save-front: allowed with --front")
    beside = {share: _target(_name(out, front, share), force or resume) for share in SHARES[1:] if save_front}
    changed = dict(map(parsed, overrides))
    text = partial(_text, profile_text(profile), changed)
    text(loaded, {}, [])  # refused before the search if it cannot be written after it
    with _progress(evaluations) as tell:
        found = tune(
            loaded,
            {name: drive_of(name, system, rate) for name in drives},
            hold_out={name: drive_of(name, system, rate, "--hold-out") for name in held},
            platform=platform,
            parameters=parameters,
            evaluations=evaluations,
            seed=seed,
            workers=workers,
            dask=dask,
            bounds=Bounds(use, fast_tilt, opposite),
            front=aim,
            state=f"{out}{STATE}",
            resume=resume,
            progress=tell,
        )
    values = {key: after for key, (_, after) in found.changes.items()}
    _write(out, text(found.profile, values, _remarks(found, platform)))
    if found.front is not None and save_front:
        for share, each in beside.items():
            within = [point for point in found.front.points if point.share <= share]
            if within:  # the last is the best
                _write(each, text(found.profile, within[-1].values, _point_remarks(found, within[-1], platform)))
            else:
                each.unlink(missing_ok=True)  # of another search, which --force or --resume replaces
    print_summary(f"{profile}, tuned: {file}", _rows(found))
    if path is not None:
        write_report(path, lambda: report(found), [platform or found.profile.platform_name])
    if as_json:
        print_json(_plain(found))


def _text(
    text: str,
    changed: Mapping[str, Any],
    tuned: Profile,
    values: Mapping[str, float],
    remarks: Sequence[str],
) -> str:
    """Return a profile's text with what --set changed and with values found."""
    tuned = msgspec.structs.replace(tuned, cueing=with_values(tuned.cueing, values))
    if getattr(tuned.cueing, "preset", None) != "auto":
        return tuned_text(text, {**changed, **values}, remarks, tuned)
    plain, written = written_out(tuned)
    return tuned_text(text, {**changed, **written}, remarks, plain)


def _write(file: Path, text: str) -> None:
    """Write a profile."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out: {str(file)!r} cannot be written: {error.strerror or error}") from error


def _name(out: Path, aim: str | None, share: float) -> str:
    """Return the file of a point of a front."""
    return str(out.with_name(f"{out.stem}-{aim}-{100 * share:.0f}{out.suffix}"))


def _target(file: str, replace: bool) -> Path:
    """Return the file to write; refuse one that exists, or cannot be a profile."""
    out = Path(file)
    if out.suffix != ".toml":
        raise ConfigError(f"--out: found {file!r}, allowed is a name that ends in .toml")
    if out.is_dir():
        raise ConfigError(f"--out: {file!r} is a folder; allowed is a file")
    if out.exists() and not replace:
        raise ConfigError(f"--out: {file!r} exists; allowed are another name, --force, or --resume")
    if not out.parent.is_dir():
        raise ConfigError(f"--out: found no folder {str(out.parent)!r}")
    return out


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, int, float], None]]:
    """Yield what shows progress on stderr: a bar on a terminal, a line now and then elsewhere."""
    console = Console(stderr=True)
    said = -SAID_S
    began: tuple[int, float] | None = None  # the first call: settings scored, and when
    columns = (
        TextColumn("best {task.fields[best]}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} settings, {task.fields[rate]} a second"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, best="-", rate="-")

        def tell(done: int, total: int, best: float) -> None:
            nonlocal began, said
            now = time.monotonic()
            began = began or (done, now)
            rate = (done - began[0]) / max(now - began[1], 1e-9)
            bar.update(task, completed=done, total=total, best=f"{best:.1f}", rate=f"{rate:.1f}")
            if not console.is_terminal and (now - said > SAID_S or done == total):
                said = now
                left = f", {rate:.1f} a second, {(total - done) / rate:.0f} s left" if rate > 0.0 else ""
                click.echo(f"{done} of {total} settings, best {best:.1f}{left}", err=True)

        yield tell


def _remarks(found: Tuned, platform: str | None) -> list[str]:
    """Return what the file says of where its values come from."""
    seen = [each.drive for each in found.drives if not each.held_out]
    unseen = [each.drive for each in found.drives if each.held_out]
    lines = [
        shlex.join(["motioncue", *sys.argv[1:]]),
        f"score {found.before:.1f} -> {found.after:.1f} on {', '.join(seen)}"
        + (f", on {platform}" if platform is not None else ""),
    ]
    if unseen:
        lines.append(
            f"score {found.hold_out_before:.1f} -> {found.hold_out_after:.1f} on {', '.join(unseen)}, "
            "which the search did not see"
        )
    return lines


def _point_remarks(found: Tuned, point: Point, platform: str | None) -> list[str]:
    """Return what the file of a point of a front says of where its values come from."""
    assert found.front is not None
    aim = found.front.aim
    command, _, *_ = _remarks(found, platform)
    seen = [each.drive for each in found.drives if not each.held_out]
    unseen = "" if point.hold_out is None else f", {point.hold_out:.1f} on drives that the search did not see"
    return [
        command,
        f"{aim.replace('_', ' ')} of {getattr(point, aim):.3g} within {point.bound:.3g}: score {point.score:.1f} on "
        f"{', '.join(seen)}" + (f", on {platform}" if platform is not None else "") + unseen,
    ]


def _rows(found: Tuned) -> list[tuple[str, str]]:
    rows = [("scored", f"{found.evaluations} settings" + ("" if found.ended == "evaluations" else f", {found.ended}"))]
    for each in found.drives:
        fits = [side.motions["fits"] for side in (each.before, each.after)]
        rows.append(
            (
                each.drive + (" (held out)" if each.held_out else ""),
                f"score {each.before.score:.1f} -> {each.after.score:.1f}, "
                f"rates first {each.before.rates_first.score:.1f} -> {each.after.rates_first.score:.1f}, "
                f"stopped {each.before.stopped:.1f} -> {each.after.stopped:.1f}; "
                f"fast tilt {100 * fits[0].fast_tilt:.0f} -> {100 * fits[1].fast_tilt:.0f} %",
            )
        )
    rows.append(("bounds", f"{_exceeded(found.excess)}; before: {_exceeded(found.excess_before)}"))
    if found.front is not None:
        heads, lines = front_rows(found.front)
        rows += [(f"{heads[0]} {line[0]}", _point_row(heads[1:], line[1:])) for line in lines]
    if found.idle:
        rows.append(("no effect", ", ".join(key.removeprefix("cueing.") for key in found.idle)))
    rows += [(each.key.removeprefix("cueing."), _matters(each)) for each in found.sensitivities[:SHOWN]]
    if (more := len(found.sensitivities) - SHOWN) > 0:
        rows.append(("", f"{more} more matter less: --report and --json have them all"))
    return [*rows, ("verdict", _verdict(found))]


def _verdict(found: Tuned) -> str:
    """Return in a sentence whether the settings found are worth using, and what to do next."""
    more = f"; go on with --resume --evaluations {3 * found.evaluations}" if found.ended == "evaluations" else ""
    beyond = [key.replace("_", " ") for key, value in found.excess.items() if value > 0.0]
    if beyond:
        return f"a bound is not kept ({', '.join(beyond)}): do not use it as it is{more}"
    if found.after - found.before < LEAST and not any(value > 0.0 for value in found.excess_before.values()):
        near = _near(found)
        return f"nothing better was found: keep the old one{f', or try {near}' if near else ''}{more}"
    kept = [key.replace("_", " ") for key, value in found.excess_before.items() if value > 0.0]
    said = f"within the bounds, which the old one exceeded ({', '.join(kept)})" if kept else "better on what you drove"
    worse = [
        f"{each.drive} {each.before.score:.1f} -> {each.after.score:.1f}"
        for each in found.drives
        if not each.held_out and each.after.score < each.before.score - LEAST
    ]
    but = f", but worse on one or more of its drives ({', '.join(worse)})" if worse else ""
    if found.hold_out_before is None or found.hold_out_after is None:
        return f"{said}{but}; no drive was held out (--hold-out), so nothing says that it holds elsewhere{more}"
    gain = found.hold_out_after - found.hold_out_before
    if gain < LEAST:
        judged = "worse" if gain < -LEAST else "no better"
        return f"{said}{but}, {judged} on the held-out drive: keep the old one{more}"
    return f"{said}{but}, and on the held-out drive too: use the new one"


def _near(found: Tuned) -> str:
    """Return the one change that was tried last and scores better within the bounds, in words; empty if none does."""
    sides = [
        (by, f"{each.key}={value:.3g}")
        for each in found.sensitivities
        for value, by, beyond in (
            (each.smaller, each.by_smaller, each.beyond_smaller),
            (each.larger, each.by_larger, each.beyond_larger),
        )
        if by >= LEAST and not beyond
    ]
    return "{1}, alone worth {0:+.1f}".format(*max(sides)) if sides else ""


def _point_row(heads: Sequence[str], cells: Sequence[str]) -> str:
    """Return a point of a front as a line."""
    return ", ".join(f"{head} {cell}" for head, cell in zip(heads, cells, strict=True) if cell not in ("", "-"))


def _exceeded(excess: Mapping[str, float]) -> str:
    """Return in words which bounds are exceeded."""
    beyond = [key.replace("_", " ") for key, value in excess.items() if value > 0.0]
    return f"NOT kept ({', '.join(beyond)})" if beyond else "kept"


def _beyond(names: Sequence[str]) -> str:
    """Return in words which bounds a setting would exceed."""
    return f" beyond the bound on {' and '.join(names).replace('_', ' ')}" if names else ""


def _matters(each: Sensitivity) -> str:
    """Return in words what a parameter matters."""
    sides = [
        f"{value:.3g} the score changes by {by:+.1f}{_beyond(names)}"
        if math.isfinite(by)
        else f"{value:.3g} nothing is possible"
        for value, by, names in (
            (each.smaller, each.by_smaller, each.beyond_smaller),
            (each.larger, each.by_larger, each.beyond_larger),
        )
    ]
    return f"{each.value:.3g}; with {sides[0]}, with {sides[1]}"


def _plain(found: Tuned) -> dict[str, Any]:
    """Return the result as JSON has it: the profile is in the file."""
    drives = [
        {
            "drive": each.drive,
            "held_out": each.held_out,
            **{
                side: {
                    "score": of.score,
                    "stopped": of.stopped,
                    "rates_first": of.rates_first._asdict(),
                    "fast_tilt": of.motions["fits"].fast_tilt,
                    "use": max(max(shares) for shares in of.motions["fits"].use.values()),
                }
                for side, of in (("before", each.before), ("after", each.after))
            },
        }
        for each in found.drives
    ]
    plain = found._asdict()
    del plain["profile"], plain["course"]
    if found.front is not None:
        front = found.front._asdict()
        del front["scored"]
        plain["front"] = {**front, "points": [each._asdict() for each in found.front.points]}
    return {
        **plain,
        "verdict": _verdict(found),
        "drives": drives,
        "sensitivities": [each._asdict() for each in found.sensitivities],
    }
