"""The keyboard of a terminal: keys as they are pressed, without waiting."""

import codecs
import os
import re
import sys
from types import TracebackType

__all__ = ["ENTER", "ESC", "Keys"]

ESC = "\x1b"
ENTER = "\r\n"

# What terminals send for cursor and function keys, and in reply to programs; it may hold letters that are keys here.
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[0-9;]*[A-Za-z]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\))")
BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O[0-9;]*|[]PX^_][^\x07\x1b]*\x1b?)?")
LONGEST = 200  # characters of a sequence that is waited for

PLACES = str.maketrans(dict.fromkeys("зπפحㅔせยპպ", "p"))
"""The letters that the key P has on other keyboards; a terminal says the letter only, not the key."""


class Decoder:
    """Tells keys from the sequences of other keys, which begin like the key Esc.

    A sequence may come in pieces.  Esc is reported as soon as nothing more has come until the next look: parking twice
    harms nobody, waiting may.  What still comes of a sequence after that is no key.
    """

    def __init__(self) -> None:
        self._begun = ""  # what may be the beginning of a sequence
        self._said = False  # whether it has been reported as Esc

    def feed(self, text: str) -> str:
        """Return the keys in what came since the last look, as lowercase letters; Esc is ``"\\x1b"``.

        Parameters
        ----------
        text : str
            Empty if nothing came.
        """
        if not text:
            keys = ESC if self._begun and not self._said else ""
            self._said = bool(self._begun)
            return keys
        if self._said and self._begun == ESC and text[0] not in "[O":  # it was the key
            self._begun, self._said = "", False
        text, said = self._begun + text, self._said
        self._begun, self._said = "", False
        keys, place = "", 0
        while place < len(text):
            first = said and place == 0
            if text[place] != ESC:
                keys, place = keys + text[place], place + 1
            elif found := SEQUENCE.match(text, place):
                place = found.end()
            elif BEGUN.fullmatch(text, place) and len(text) - place <= LONGEST:
                self._begun, self._said = text[place:], first
                break
            else:  # Esc and another key at once, which is Alt and that key: only Esc counts
                keys += "" if first else ESC
                place += 1 if text[place + 1 : place + 2] == ESC else 2
        return keys.lower().translate(PLACES)


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
        self._decoder = Decoder()
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

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
        """Return the keys pressed since the last call, oldest first, as lowercase letters; Esc is ``"\\x1b"``."""
        return self._decoder.feed(self._read()) if self.active else ""

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
            return self._bytes.decode(data)

        def _foreground(self) -> bool:
            """Say whether this process may read the terminal; the system stops a background process that does."""
            try:
                return os.tcgetpgrp(self._fd) == os.getpgrp()
            except OSError:  # not the controlling terminal: reading it stops nobody
                return True
