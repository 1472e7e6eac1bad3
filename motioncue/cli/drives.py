"""Drives that commands take by name: recordings, the sample, and those of the virtual car."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
import numpy.typing as npt

from motioncue.cli.common import positive
from motioncue.drive.courses import COURSES
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.load import read
from motioncue.recording.packages import quoted
from motioncue.recording.read import sample_recording
from motioncue.virtual.offline import drive_motion
from motioncue.virtual.simulators import SAMPLE

__all__ = ["DRIVES", "drive_of", "drive_options"]

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

    Parameters
    ----------
    name : str
        A file, or the name of a drive.
    system : str or None
        The option ``--system``.
    rate : float or None
        The option ``--rate`` [Hz].
    option : str
        What the name was given as, for messages.
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
