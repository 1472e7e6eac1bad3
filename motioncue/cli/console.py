"""Windows' equivalents of signals: closing of the window, and events that other programs can set."""

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Closing", "Events", "event_name"]

CLOSE, LOGOFF, SHUTDOWN = 2, 5, 6
"""Console events after which the system ends the process as soon as their handler returns."""


def event_name(run: str, word: str) -> str:
    """Return the name of the event that requests an operation from a run.

    Parameters
    ----------
    run : str
        Name of the run.
    word : str
        The operation.
    """
    return f"motioncue-{run}-{word}"


class Closing:
    """Reports that the console window closes or the user logs off, and delays the end: a context manager.

    Parameters
    ----------
    note : callable
        Called in a thread of the system.

    Notes
    -----
    Windows ends the process as soon as every handler has returned, or after some seconds.  So this handler returns only
    when the context has been left, after all necessary work.
    """

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note
        self._left = threading.Event()
        self._handler: Any = None

    def handle(self, event: int) -> bool:
        """Handle a console event; return whether it was one that ends the process.

        Parameters
        ----------
        event : int
            Number of the event.
        """
        if event not in (CLOSE, LOGOFF, SHUTDOWN):
            return False
        self._note()
        self._left.wait()
        return True

    def __enter__(self) -> "Closing":
        """Install the handler."""
        if sys.platform == "win32":
            import ctypes

            self._handler = ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_ulong)(self.handle)
            ctypes.windll.kernel32.SetConsoleCtrlHandler(self._handler, True)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the system end the process."""
        self._left.set()
        if sys.platform == "win32":
            import ctypes

            ctypes.windll.kernel32.SetConsoleCtrlHandler(self._handler, False)


class Events:
    """Events by which other programs of the same user request operations from a run: a context manager.

    Parameters
    ----------
    names : mapping of str to str
        Event name of each operation.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._handles: Mapping[str, Any] = {}

    def __enter__(self) -> "Events":
        """Create the events."""
        if sys.platform == "win32":
            import ctypes

            create = ctypes.windll.kernel32.CreateEventW
            create.restype = ctypes.c_void_p
            made = {word: create(None, False, False, name) for word, name in self._names.items()}
            self._handles = {word: ctypes.c_void_p(handle) for word, handle in made.items() if handle}
        return self

    def __exit__(self, *_: object) -> None:
        """Close the events."""
        if sys.platform == "win32":
            import ctypes

            for handle in self._handles.values():
                ctypes.windll.kernel32.CloseHandle(handle)
        self._handles = {}

    def asked(self) -> list[str]:
        """Return the operations requested since the last call; none on systems without such events."""
        if sys.platform == "win32":
            import ctypes

            wait = ctypes.windll.kernel32.WaitForSingleObject
            return [word for word, handle in self._handles.items() if wait(handle, 0) == 0]
        return []
