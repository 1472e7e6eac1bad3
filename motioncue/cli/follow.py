"""Following a profile's file: a saved change is applied while the engine runs."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from motioncue.errors import MotioncueError

__all__ = ["Follower"]

log = logging.getLogger("motioncue")

PERIOD_S = 0.2  # interval between looks at the file


class Follower:
    """Applies a file each time it is saved; a context manager around the thread that looks at it.

    A file counts as saved when two successive looks find the same new contents.  So a half-written file does not count,
    and a file that an editor has put in place of the old one does.

    Parameters
    ----------
    path : Path
        The file; its present contents are in use already.
    apply : callable
        Uses the file's contents; if it raises a MotioncueError, that is logged as the reason why nothing changed.
    """

    def __init__(self, path: Path, apply: Callable[[], None]) -> None:
        self._path = path.resolve()
        self._apply = apply
        self._known = self._found = self._read()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motioncue follower", daemon=True)

    def look(self) -> bool:
        """Look at the file once, and apply it if it was saved; return whether it was."""
        found = self._read()
        settled = found is not None and found == self._found and found != self._known
        self._found = found
        if not settled:
            return False
        self._known = found
        try:
            self._apply()
        except MotioncueError as error:
            log.warning("%s is saved but not used, what was in use stays: %s", self._path.name, error)
        else:
            log.info("%s is saved and used", self._path.name)
        return True

    def _read(self) -> bytes | None:
        """Return the file's contents; None while it does not exist, as when an editor replaces it."""
        try:
            return self._path.read_bytes()
        except OSError:
            return None

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self.look()

    def __enter__(self) -> "Follower":
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()
