"""``motioncue export``: converts a recording for other programs."""

from pathlib import Path

import click

from motioncue import sources
from motioncue.cli.common import pick_options, progress, refuse_source, source_options
from motioncue.recording.export import WHAT, export
from motioncue.recording.recording import read

__all__ = ["command"]


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write; its ending selects the format: .csv, .parquet or .mf4.",
)
@click.option("--what", metavar="WHAT", default="ticks", show_default=True, help=f"One of {', '.join(WHAT)}.")
@source_options
@pick_options
@click.option("--force", is_flag=True, help="Replace the file that --to names, if it exists.")
def command(
    file: Path,
    target: Path,
    what: str,
    system: str | None,
    rate: float | None,
    ports: tuple[int, ...],
    sender: str | None,
    force: bool,
) -> None:
    """Write a recording as CSV, Parquet (pyarrow) or MDF4 (asammdf); one row a tick, a frame or an event.

    \b
    Example:  motioncue export drive.mcap --to drive.csv
              pip install "motioncue[export]" brings what Parquet and MDF4 need
    """
    refuse_source("--to", target, [file])
    if system is not None:
        sources.source(system, "--system")
    with progress(f"reading {file.name}"):
        drive = read(file, system=system, rate_hz=rate, port=ports, sender=sender)
    for line in drive.unreadable:
        click.echo(f"{file}: {line}", err=True)
    with progress(f"writing {target.name}") as tell:
        done = export(drive, target, what, force=force, progress=tell)
    click.echo(f"{done.rows} {what} in {done.path}")
