"""``motioncue replay``, ``export`` and ``mend``: what is done with a recording; a profile is exported too."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.cli.common import (
    drive_in,
    echo,
    force_option,
    json_option,
    pick_options,
    print_json,
    progress,
    refuse_source,
    set_option,
    shown_by,
    source_options,
    view_option,
)
from motioncue.cli.terminal import print_summary
from motioncue.engine.assembly import load_profile
from motioncue.engine.fitting import gains_for
from motioncue.engine.fmu import VERSIONS, export_fmu
from motioncue.engine.replay import (
    Difference,
    Progress,
    first_difference,
    keep,
    missing_ticks,
    pieces,
    profile_of,
    repeat,
)
from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.profile.profile import Profile, overridden
from motioncue.recording.drive import FORMATS, WHAT, Drive, export, hole_text
from motioncue.recording.mcap_writer import mend
from motioncue.recording.recording import read_pieces
from motioncue.safety.supervisor import State
from motioncue.scoring.changes import changes
from motioncue.view.access import Address
from motioncue.view.playback import Played


@click.command("replay")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--profile", metavar="NAME|FILE", help="Profile to use instead of the recording's own.")
@set_option
@click.option(
    "--verify",
    is_flag=True,
    help="Compare every bit with the recorded ticks; exit status 1 if one differs or is missing.",
)
@click.option("--record", "answer", metavar="FILE", type=click.Path(path_type=Path), help="Record the replay.")
@force_option
@view_option
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    files: tuple[Path, ...],
    profile: str | None,
    overrides: tuple[str, ...],
    verify: bool,
    answer: Path | None,
    force: bool,
    view: Address | None,
    as_json: bool,
) -> None:
    """Take a recording of `motioncue run` through the whole engine once more.

    Every tick reads the same frames as in the run.  With the recording's own settings the ticks are the same, bit for
    bit; with other settings, a table shows the differences.  A run that was rolled over takes all its files.  The last
    seconds of a run are replayed from rest.

    With --view 8765, the drive plays on a page in the browser; what is tuned there is replayed at once.
    Ctrl-C ends it.

    \b
    Example:  motioncue replay drive.mcap --verify
              motioncue replay drive.mcap --profile other.toml --record new.mcap
    """
    file = files[0]
    if answer is not None:
        refuse_source("--record", answer, files)
    drive = drive_in(
        files,
        "found no recording of `motioncue run --record`, which alone can be replayed; `motioncue check` and "
        "`motioncue score` read other recordings",
    )
    settings = _settings(drive, profile, overrides)
    if view is not None and (verify or answer is not None):
        raise ConfigError("--view: allowed is without --verify and --record")
    if verify and settings is not None:
        raise ConfigError("--verify: allowed is the recording's own profile, without --profile and --set")
    missing, holes = missing_ticks(drive), drive.holes
    if verify and missing:
        raise PacketError(f"--verify: {missing}; allowed is a whole run, of a rolled one all files together")
    if missing:
        click.echo(f"{file}: {missing}: replayed from rest, the platform's state at that time is not known", err=True)
    if view is not None:
        _play(drive, settings, view, profile)
        return
    gap = ""
    if holes:
        gap = f"{hole_text(holes[0], drive.zero)}{f', and {len(holes) - 1} more holes' if holes[1:] else ''}"
    if verify and gap:
        drive = drive.between(end_s=1e-9 * (holes[0].begin - drive.zero))
    elif gap:
        click.echo(f"{file}: {gap}: from there on, ticks read the packages that had arrived", err=True)
    difference: Difference | None = None
    states: Counter[int] = Counter()
    with progress(f"replaying {file.name}") as tell:
        if settings is None and answer is None:
            for recorded, ticks in _beside(drive, tell):
                states.update(ticks["state"].tolist())
                difference = difference or first_difference(recorded, ticks)
        else:
            replayed = repeat(drive, settings, progress=tell)
            states.update(replayed.ticks["state"].tolist())
            difference = first_difference(drive.ticks, replayed.ticks) if verify else None
    result: dict[str, Any] = {"ticks": states.total(), "unreadable": list(drive.unreadable)}
    rows = [("ticks", str(states.total())), ("states", _states(states))]
    if drive.unreadable:
        rows.append(("unreadable", "; ".join(drive.unreadable[:3])))
    if verify:
        result |= {
            "identical": difference is None and not gap,
            "hole": gap or None,
            "first_difference": None if difference is None else difference._asdict(),
        }
        rows.append(
            (
                "identical",
                f"{'up to a hole' if gap else 'yes'}, every bit{gap and f': {gap}'}"
                if difference is None
                else f"no: tick {difference.tick}, {difference.channel}: "
                f"recorded {difference.recorded!r}, replayed {difference.replayed!r}",
            )
        )
    if answer is not None:
        with progress(f"writing {answer.name}") as tell:
            written = keep(replayed, answer, force=force, about={"replay of": file.name}, progress=tell)
        rows.append(("recorded", str(written)))
        result["recorded"] = str(written)
    print_summary(f"motioncue replay · {file.name}", rows)
    if settings is not None:
        found = changes(drive, replayed)
        result["changed"] = [row._asdict() for row in found.channels]
        echo("\n".join(found.lines() or ["nothing is different"]))
    if as_json:
        print_json(result)
    if verify and not result["identical"]:
        ctx.exit(1)


def _play(drive: Drive, settings: Profile | None, view: Address, profile: str | None) -> None:
    """Play a recording on a page until Ctrl-C."""
    with progress("replaying") as tell:
        played = Played(drive, settings, progress=tell)
    with shown_by(view, played, profile, plays=True), suppress(KeyboardInterrupt):
        while True:
            time.sleep(1.0)


def _settings(drive: Drive, profile: str | None, overrides: tuple[str, ...]) -> Profile | None:
    """Return the requested profile; None if it is the recording's own."""
    if profile is not None:
        return load_profile(profile, *overrides)
    if not overrides:
        return None
    if not drive.settings:
        raise PacketError("the recording has no settings, allowed is one of a run")
    return overridden(profile_of(drive.settings[0].profile), overrides, gains_for)


def _beside(drive: Drive, tell: Progress) -> Iterator[tuple[npt.NDArray[np.void], npt.NDArray[np.void]]]:
    """Yield recorded and replayed ticks, some thousand at a time."""
    done = 0
    for piece in pieces(drive, progress=tell):
        yield drive.ticks[done : done + len(piece.ticks)], piece.ticks
        done += len(piece.ticks)


def _states(ticks: Counter[int]) -> str:
    """Return a text of the share of ticks in each state."""
    shares = [(State(state).name.lower(), count / ticks.total()) for state, count in sorted(ticks.items())]
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares)


@click.command("export")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write; its ending selects the format: .csv, .parquet or .mf4; .fmu of a profile.",
)
@click.option(
    "--fmi",
    metavar="VERSION",
    default="2",
    show_default=True,
    help=f"Of the standard for .fmu: {' or '.join(VERSIONS)}.",
)
@click.option("--what", metavar="WHAT", default="ticks", show_default=True, help=f"One of {', '.join(WHAT)}.")
@source_options
@pick_options
@click.option("--force", is_flag=True, help="Replace the file that --to names, if it exists.")
def export_recording(
    files: tuple[Path, ...],
    target: Path,
    fmi: str,
    what: str,
    system: str | None,
    rate: float | None,
    ports: tuple[int, ...],
    sender: str | None,
    force: bool,
) -> None:
    """Write a recording as CSV, Parquet (pyarrow) or MDF4 (asammdf); one row a tick, a frame or an event.

    A run that was rolled over takes all its files.  `t` is 0 at the first tick in every table.

    A profile becomes an FMU for co-simulation (Linux; needs a C compiler and python3-dev): motion in, the cue and the
    positions of the platform's actuators out.  It runs where motioncue is installed.

    \b
    Example:  motioncue export drive.mcap --to drive.csv
              motioncue export rig.toml --to rig.fmu --fmi 3
              pip install "motioncue[export]" brings what Parquet and MDF4 need
    """
    refuse_source("--to", target, files)
    if target.suffix not in (allowed := [*FORMATS, ".fmu"]):
        raise ConfigError(f"--to: {not_among(target.suffix, allowed)}")
    given = [name for name in ("fmi", "what", "system", "rate", "ports", "sender") if _is_given(name)]
    for name in given:
        if (target.suffix == ".fmu") != (name == "fmi"):
            option = {"ports": "port", "sender": "from"}.get(name, name)
            raise click.UsageError(f"--{option} is not for {target.suffix}")
    if target.suffix == ".fmu":
        if len(files) > 1:
            raise ConfigError(f"FILE: found {len(files)}, allowed is one profile for an FMU")
        click.echo(export_fmu(load_profile(str(files[0])), target, fmi, force=force))
        return
    if system is not None:
        sources.source(system, "--system")
    said: list[str] = []

    def noted(pieces: Iterator[Drive]) -> Iterator[Drive]:
        for piece in pieces:
            said.extend(piece.unreadable)
            yield piece

    with progress(f"writing {target.name}") as tell:
        pieces = read_pieces(*files, system=system, rate_hz=rate, port=ports, sender=sender, progress=tell)
        done = export(noted(pieces), target, what, force=force)
    for line in said:
        click.echo(line if len(files) > 1 else f"{files[0]}: {line}", err=True)
    began = "" if done.began is None else f"; t = 0 is {done.began:%Y-%m-%d %H:%M:%S.%f} UTC"
    click.echo(f"{done.rows} {what} in {done.path}{began}")


def _is_given(name: str) -> bool:
    """Say whether an option was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


@click.command("mend")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File to write, else FILE-mended.mcap.",
)
@click.option("--force", is_flag=True, help="Replace the file that is written, if it exists.")
def mend_recording(file: Path, target: Path | None, force: bool) -> None:
    """Write a recording anew, whole and with an index, so that every program opens it.

    A process that was killed leaves an MCAP file without its end.  motioncue reads it as it is; Foxglove, PlotJuggler
    and `ros2 bag` may refuse it.  Every message that can be read is kept, bit for bit; the file itself is not changed.

    \b
    Example:  motioncue mend drive.mcap
    """
    target = file.with_name(f"{file.stem}-mended{file.suffix}") if target is None else target
    refuse_source("--to", target, [file])
    with progress(f"mending {file.name}"):
        done = mend(file, target, force=force)
    for line in done.damage:
        click.echo(f"{file}: {line}", err=True)
    was = "it was whole" if done.ended and not done.damage else "it had no end" if not done.ended else "it was damaged"
    click.echo(f"{done.messages} messages in {done.path}; {was}")
