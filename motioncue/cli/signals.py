"""Signals that ask a run to end: noted, never raised, so that nothing can break the way to neutral."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last one is Ctrl-Break on Windows


class Interrupts:
    """Counts the signals that ask to end, while it is entered.

    Notes
    -----
    Handlers only count: an event object could dead-lock with the thread that waits for it, and an exception could
    break off a fade.  Loops look at `count`.  A hang-up that is ignored (``nohup``) stays ignored.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, Any] = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    def __enter__(self) -> "Interrupts":
        """Begin to count."""
        if threading.current_thread() is threading.main_thread():  # elsewhere signals never arrive
            for name in NAMES:
                number = getattr(signal, name, None)
                if number is None or (name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN):
                    continue
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Put back what was there before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
