"""Files that appear under their name only when they are whole."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["numbered", "write_whole"]


def numbered(path: Path, number: int) -> Path:
    """Return a path with a number added to its name.

    Parameters
    ----------
    path : Path
        The path.
    number : int
        0 adds none.
    """
    return path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path


def write_whole(path: Path, write: Callable[[Path], object], *, force: bool = False) -> Path:
    """Write a file beside its place, move it there when it is whole, and return where that is.

    Whatever ends the writing, an error or Ctrl-C, leaves the folder as it was.

    Parameters
    ----------
    path : Path
        The place; a number is added to its name if it exists.
    write : callable
        Is given the path to write to, with the same ending.
    force : bool
        Replace an existing file.

    Raises
    ------
    OSError
        If the file cannot be written or moved.
    """
    # A long name is cut, so that it fits with what is added.
    part = path.with_name(f".{path.stem[:64]}-{os.getpid()}-{threading.get_ident()}{path.suffix}")
    try:
        write(part)
        return _moved(part, path, force)
    finally:
        part.unlink(missing_ok=True)


def _moved(part: Path, path: Path, force: bool) -> Path:
    """Move a file to its place, or to the first free name; return its path."""
    number = 0
    while not force:
        try:
            numbered(path, number).open("xb").close()  # claims the name
            break
        except FileExistsError:
            number += 1
    place = numbered(path, number)
    try:
        return part.replace(place)
    except OSError:
        if not force:
            place.unlink(missing_ok=True)  # the claim
        raise
