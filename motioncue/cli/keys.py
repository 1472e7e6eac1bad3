"""The keyboard of a terminal: keys as they are pressed, without waiting."""

import os
import re
import sys
from types import TracebackType

__all__ = ["Keys"]

# Sequences of cursor and function keys, which may end in a letter that is a command here.
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[0-9;]*[A-Za-z])")


class Keys:
    """Reads keys from standard input while entered; gives none if that is not a terminal.

    Attributes
    ----------
    active : bool
        Whether keys can be read.

    Notes
    -----
    On POSIX the terminal is in cbreak mode meanwhile: keys come at once and are not echoed; Ctrl-C is still a signal.
    A process in the background leaves the terminal to the one in the foreground.
    """

    def __init__(self) -> None:
        self.active = False
        self._fd = -1

    def __enter__(self) -> "Keys":
        """Start to read keys."""
        try:
            if sys.stdin is not None and sys.stdin.isatty():
                self._fd = sys.stdin.fileno()
        except (OSError, ValueError):  # closed, or not a file
            return self
        if self._fd >= 0:
            self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the terminal."""
        if self.active:
            self._end()
        self.active = False

    def pressed(self) -> str:
        """Return the keys pressed since the last call, oldest first, as lowercase letters."""
        if not self.active:
            return ""
        return SEQUENCE.sub("", self._read()).lower()

    if sys.platform == "win32":

        def _begin(self) -> None:
            import ctypes
            import msvcrt

            # The null device claims to be a terminal on Windows, but only a console has a mode.
            mode, handle = ctypes.c_ulong(), ctypes.c_void_p(msvcrt.get_osfhandle(self._fd))
            self.active = bool(ctypes.windll.kernel32.GetConsoleMode(handle, ctypes.byref(mode)))

        def _end(self) -> None:
            pass

        def _read(self) -> str:
            import msvcrt

            text = ""
            while msvcrt.kbhit():
                key = msvcrt.getwch()
                if key in "\0\xe0":  # a key without a character: its code follows
                    msvcrt.getwch()
                else:
                    text += key
            return text

    else:

        def _begin(self) -> None:
            import termios
            import tty

            try:
                if not self._foreground():
                    return
                self._before = termios.tcgetattr(self._fd)
                self.active = True  # set first, so that the mode is restored whatever happens next
                tty.setcbreak(self._fd, termios.TCSANOW)
            except termios.error:
                self.active = False

        def _end(self) -> None:
            import termios

            try:
                if self._foreground():
                    termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
            except termios.error:  # the terminal has gone
                pass

        def _read(self) -> str:
            import select

            try:
                if not self._foreground() or not select.select([self._fd], [], [], 0.0)[0]:
                    return ""
                data = os.read(self._fd, 1024)
            except (OSError, ValueError):
                data = b""
            if not data:  # the terminal has gone
                self.active = False
            return data.decode("latin-1")

        def _foreground(self) -> bool:
            """Say whether this process may read the terminal; the system stops a background process that does."""
            try:
                return os.tcgetpgrp(self._fd) == os.getpgrp()
            except OSError:  # not the controlling terminal: reading it stops nobody
                return True
