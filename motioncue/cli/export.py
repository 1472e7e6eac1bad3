"""``motioncue export`` and ``mend``: what becomes of a recording, or of a profile, in other programs."""

from collections.abc import Iterator
from pathlib import Path

import click

from motioncue import sources
from motioncue.cli.common import pick_options, progress, refuse_source, source_options
from motioncue.engine.assembly import load_profile
from motioncue.engine.fmu import VERSIONS, export_fmu
from motioncue.errors import ConfigError, not_among
from motioncue.recording.drive import WHAT, Drive
from motioncue.recording.export import FORMATS, export
from motioncue.recording.mcap_writer import mend
from motioncue.recording.recording import read_pieces


@click.command()
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
def command(
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
