"""Signals, and Windows' equivalents: recorded, never raised, so that none interrupts a fade."""

import os
import signal
import threading
from collections import deque
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any

from motioncue.cli.console import Closing, Events, event_name

__all__ = ["ENDINGS", "REQUESTS", "Interrupts", "operation"]

ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")  # the last one is Ctrl-Break on Windows
LEAVINGS = ("SIGTERM", "SIGHUP")
"""Those of them that the system sends, at a log-off or shutdown: it does not wait long."""

REQUESTS = {"SIGUSR1": "hold", "SIGUSR2": "engage", "SIGTSTP": "park", "SIGALRM": "keep"}
"""What the operator's signals ask for.  Ctrl-Z is one: a suspended engine would stop a platform in mid-motion."""

WORDS = ("engage", "hold", "park", "quit", "keep")
"""What can be asked for by an event of Windows."""

KEPT = 16  # requests kept until they are read


def operation(system: str) -> str:
    """Return the help text on operating and ending a run without a keyboard.

    Parameters
    ----------
    system : str
        As in ``sys.platform``.
    """
    if system == "win32":
        return (
            "Ctrl-C, Ctrl-Break, closing the window, logging off or shutting down fades\n"
            "to neutral and ends, exit status 0; after the last three the platform is at\n"
            "rest within supervisor.leave_s (4 s).  Any program of the same user may set an\n"
            f"event instead: {event_name('NAME', 'hold')}, -engage, -park, -quit or -keep; NAME is\n"
            "the profile's, of a file without its folder and .toml.  In PowerShell:\n"
            f"  [Threading.EventWaitHandle]::OpenExisting('{event_name('ccd-dk', 'quit')}').Set()"
        )
    return (
        "Signals do the same: SIGUSR1 holds, SIGUSR2 engages, SIGTSTP (Ctrl-Z) parks,\n"
        "SIGALRM writes what --record-last has in memory.\n"
        "Ctrl-C, SIGTERM, SIGHUP or SIGQUIT fades to neutral and ends, exit status 0,\n"
        "however often it comes; at SIGTERM and SIGHUP the platform is at rest within\n"
        "supervisor.leave_s (4 s).  Only SIGKILL stops at once, with the platform in\n"
        "mid-motion."
    )


class Interrupts:
    """Counts signals that request the end, and keeps other requests, while entered.

    Parameters
    ----------
    operator : str
        Name of a run that an operator may control by signals, or on Windows by events with this name; empty: not
        controlled.

    Attributes
    ----------
    count : int
        Number of signals that requested the end.
    leaving : bool
        Whether one of them was the system's, so that the platform has to be at rest within ``supervisor.leave_s``.
    status : int
        Exit status of a program that such a signal has stopped from finishing, as in shells: 128 plus the newest
        signal's number; 0 without a signal.
    requests : deque of str
        What signals have asked for: "engage", "hold", "park" or "keep", oldest first.
    over : bool
        Set it when only printing is left: from then on a signal ends the process at once, with `status`, even while
        nobody reads the output.

    Notes
    -----
    Handlers only record: setting an event object could deadlock with the thread that waits for it, and an exception
    could interrupt a fade.  Loops poll this object.  A hang-up or suspension that is ignored (``nohup``) stays ignored.
    """

    def __init__(self, *, operator: str = "") -> None:
        self.count = 0
        self.leaving = False
        self.status = 0
        self.requests: deque[str] = deque(maxlen=KEPT)
        self.over = False
        self._operator = operator
        self._before: dict[int, Any] = {}
        self._closing = Closing(lambda: self._note(signal.SIGTERM))
        self._events = Events({word: event_name(operator, word) for word in WORDS if operator})
        self._open = ExitStack()

    def asked(self) -> list[str]:
        """Return the operations requested since the last call, oldest first; "quit" stays requested."""
        asked = [self.requests.popleft() for _ in range(len(self.requests))] + self._events.asked()
        self.count += "quit" in asked
        return ["quit"] if self.count else asked

    def _note(self, number: int, frame: FrameType | None = None) -> None:
        self.count += 1
        self.status = 128 + number
        self.leaving |= signal.Signals(number).name in LEAVINGS
        if self.over:
            os._exit(self.status)

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requests.append(REQUESTS[signal.Signals(number).name])

    def __enter__(self) -> "Interrupts":
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():  # signals arrive only in the main thread
            handlers: dict[str, Any] = dict.fromkeys(ENDINGS, self._note)
            if self._operator:
                handlers |= dict.fromkeys(REQUESTS, self._request)
            for name, handler in handlers.items():
                number = getattr(signal, name, None)
                ignored = name in ("SIGHUP", "SIGTSTP") and number and signal.getsignal(number) is signal.SIG_IGN
                if number is not None and not ignored:
                    self._before[number] = signal.signal(number, handler)
        self._open.enter_context(self._events)
        self._open.enter_context(self._closing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        self._open.close()
