"""Files that appear under their name only when they are whole."""

import os
import platform
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def numbered(path: Path, number: int) -> Path:
    """Return a path with a number added to its name."""
    return path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path


def write_atomically(path: Path, write: Callable[[Path], object], *, force: bool = False) -> Path:
    """Write a file beside its place, move it there when it is whole, and return where that is.

    Whatever ends the writing, an error or Ctrl-C, leaves the folder as it was.  A process that is killed leaves a
    hidden file that ends with ``.part`` and the file's own ending; the next one that writes to this place removes it.
    """
    _remove_left(path)
    begin, end = _part_name(path)
    part = path.with_name(f"{begin}{os.getpid()}-{threading.get_ident()}{end}")
    try:
        write(part)
        return _moved(part, path, force)
    finally:
        part.unlink(missing_ok=True)


def _part_name(path: Path) -> tuple[str, str]:
    """Return what the name of a part file begins with on this machine, before the process, and what it ends with."""
    # A long name is cut, so that it fits with what is added.
    stem = os.fsencode(path.stem)[:64].decode(errors="ignore")
    return f".{stem}-{re.sub('[^0-9A-Za-z]', '', platform.node())[:32]}-", f".part{path.suffix}"


def _remove_left(path: Path) -> None:
    """Remove what killed processes of this machine have left of files for the same place."""
    begin, end = map(re.escape, _part_name(path))
    with suppress(OSError):  # the folder cannot be listed: writing will tell
        for name in os.listdir(path.parent):
            found = re.fullmatch(rf"{begin}(\d+)-\d+{end}", name)
            if found is not None and not _runs(int(found[1])):
                with suppress(OSError):  # on Windows, it is still being written
                    path.with_name(name).unlink()


def _runs(process: int) -> bool:
    """Say whether a process exists; on Windows, where an open file cannot be removed anyway, only this one counts."""
    if process == os.getpid():
        return True
    if sys.platform == "win32":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's; no number of a process
        pass
    return True


def _moved(part: Path, path: Path, force: bool) -> Path:
    """Move a file to its place, or to the first free name; return its path."""
    number = 0
    while not force:
        try:
            return _linked(part, numbered(path, number))
        except FileExistsError:
            number += 1
    return part.replace(path)


def _linked(part: Path, place: Path) -> Path:
    """Give a file another name; raise FileExistsError if there is one."""
    try:
        os.link(part, place)
        return place
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        place.open("xb").close()  # claims the name
    try:
        return part.replace(place)
    except OSError:
        place.unlink(missing_ok=True)  # the claim
        raise
