"""``motioncue mend``: makes a killed or damaged recording whole for other programs."""

from pathlib import Path

import click

from motioncue.cli.common import progress, refuse_source
from motioncue.recording.mcap_writer import mend


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File to write, else FILE-mended.mcap.",
)
@click.option("--force", is_flag=True, help="Replace the file that is written, if it exists.")
def command(file: Path, target: Path | None, force: bool) -> None:
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
