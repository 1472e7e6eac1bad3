"""``motioncue export``: converts a recording for other programs."""

from collections.abc import Iterator
from pathlib import Path

import click

from motioncue import sources
from motioncue.cli.common import pick_options, progress, refuse_source, source_options
from motioncue.recording.drive import WHAT, Drive
from motioncue.recording.export import export
from motioncue.recording.recording import read_pieces


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
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
    files: tuple[Path, ...],
    target: Path,
    what: str,
    system: str | None,
    rate: float | None,
    ports: tuple[int, ...],
    sender: str | None,
    force: bool,
) -> None:
    """Write a recording as CSV, Parquet (pyarrow) or MDF4 (asammdf); one row a tick, a frame or an event.

    A run that was rolled over takes all its files.  `t` is 0 at the first tick in every table.

    \b
    Example:  motioncue export drive.mcap --to drive.csv
              pip install "motioncue[export]" brings what Parquet and MDF4 need
    """
    refuse_source("--to", target, files)
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
        click.echo(f"{files[0]}: {line}", err=True)
    began = "" if done.began is None else f"; t = 0 is {done.began:%Y-%m-%d %H:%M:%S.%f} UTC"
    click.echo(f"{done.rows} {what} in {done.path}{began}")
