"""What Windows has in place of signals: a window that closes, and events that other programs can set."""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Closing", "Events", "event_name"]

CLOSE, LOGOFF, SHUTDOWN = 2, 5, 6
"""Events of a console that end the process when whoever handles them returns."""


def event_name(pid: int | str, word: str) -> str:
    """Return the name of the event that asks a process for something.

    Parameters
    ----------
    pid : int or str
        Of the process.
    word : str
        What is asked for.
    """
    return f"motioncue-{pid}-{word}"


class Closing:
    """Notes that the console's window closes, or the user logs off, and delays it: a context manager.

    Parameters
    ----------
    note : callable
        Called in a thread of the system's.

    Notes
    -----
    Windows ends the process as soon as every handler has returned, or after some seconds.  So this one returns when the
    context has been left: what has to be done first is done by then.
    """

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note
        self._left = threading.Event()
        self._handler: Any = None

    def handle(self, event: int) -> bool:
        """Handle an event of the console; return whether it was one of these.

        Parameters
        ----------
        event : int
            As the system numbers them.
        """
        if event not in (CLOSE, LOGOFF, SHUTDOWN):
            return False
        self._note()
        self._left.wait()
        return True

    def __enter__(self) -> "Closing":
        """Begin to listen."""
        if sys.platform == "win32":
            import ctypes

            self._handler = ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_ulong)(self.handle)
            ctypes.windll.kernel32.SetConsoleCtrlHandler(self._handler, True)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the system go on."""
        self._left.set()
        if sys.platform == "win32":
            import ctypes

            ctypes.windll.kernel32.SetConsoleCtrlHandler(self._handler, False)


class Events:
    """Events by which other programs of the same user ask this process for something: a context manager.

    Parameters
    ----------
    words : sequence of str
        What can be asked for; `event_name` names the event.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._handles: Mapping[str, Any] = {}

    def __enter__(self) -> "Events":
        """Make the events."""
        if sys.platform == "win32":
            import ctypes

            create = ctypes.windll.kernel32.CreateEventW
            create.restype = ctypes.c_void_p
            made = {word: create(None, False, False, event_name(os.getpid(), word)) for word in self._words}
            self._handles = {word: ctypes.c_void_p(handle) for word, handle in made.items() if handle}
        return self

    def __exit__(self, *_: object) -> None:
        """Let them go."""
        if sys.platform == "win32":
            import ctypes

            for handle in self._handles.values():
                ctypes.windll.kernel32.CloseHandle(handle)
        self._handles = {}

    def asked(self) -> list[str]:
        """Return what has been asked for since the last call; never anything where there are no such events."""
        if sys.platform == "win32":
            import ctypes

            wait = ctypes.windll.kernel32.WaitForSingleObject
            return [word for word, handle in self._handles.items() if wait(handle, 0) == 0]
        return []
