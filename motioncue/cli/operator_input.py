"""What a person or the system asks of a running command: keys, signals and Windows' equivalents."""

import codecs
import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import FrameType
from typing import Any

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
        """Return the keys in what came since the last look, as lowercase letters; Esc is ``"\\x1b"``."""
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

    On POSIX the terminal is in cbreak mode meanwhile: keys come at once and are not echoed; Ctrl-C is still a signal.
    A process in the background leaves the terminal to the one in the foreground.
    """

    def __init__(self) -> None:
        self.active = False  # whether keys can be read
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

    def __exit__(self, *_: object) -> None:
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


CLOSE, LOGOFF, SHUTDOWN = 2, 5, 6
"""Console events after which the system ends the process as soon as their handler returns."""


def event_name(run: str, word: str) -> str:
    """Return the name of the event that requests an operation from a run."""
    return f"motioncue-{run}-{word}"


class Closing:
    """Reports that the console window closes or the user logs off, and delays the end: a context manager.

    Windows ends the process as soon as every handler has returned, or after some seconds.  So this handler returns only
    when the context has been left, after all necessary work.
    """

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note
        self._left = threading.Event()
        self._handler: Any = None

    def handle(self, event: int) -> bool:
        """Handle a console event; return whether it was one that ends the process."""
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
    """Events by which other programs of the same user request operations from a run: a context manager."""

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


ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")  # the last one is Ctrl-Break on Windows
LEAVINGS = ("SIGTERM", "SIGHUP")
"""Those of them that the system sends, at a log-off or shutdown: it does not wait long."""

REQUESTS = {"SIGUSR1": "hold", "SIGUSR2": "engage", "SIGTSTP": "park", "SIGALRM": "keep"}
"""What the operator's signals ask for.  Ctrl-Z is one: a suspended engine would stop a platform in mid-motion."""

WORDS = ("engage", "hold", "park", "quit", "keep", "next")
"""What can be asked for by an event of Windows."""

KEPT = 16  # requests kept until they are read


def operation(system: str) -> str:
    """Return the help text on operating and ending a run without a keyboard."""
    if system == "win32":
        return (
            "Ctrl-C, Ctrl-Break, closing the window, logging off or shutting down fades\n"
            "to neutral and ends, exit status 0; after the last three the platform is at\n"
            "rest within supervisor.leave_s (4 s).  Any program of the same user may set an\n"
            f"event instead: {event_name('NAME', 'hold')}, -engage, -park, -quit, -keep or -next;\n"
            "NAME is the profile's, of a file without its folder and .toml.  In PowerShell:\n"
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

    Handlers only record: setting an event object could deadlock with the thread that waits for it, and an exception
    could interrupt a fade.  Loops poll this object.  A hang-up or suspension that is ignored (``nohup``) stays ignored.
    """

    def __init__(self, *, operator: str = "") -> None:
        self.count = 0  # signals that requested the end
        self.leaving = False  # whether one was the system's: the platform has to be at rest in ``supervisor.leave_s``
        # Exit status of a program that a signal has stopped from finishing, as in shells: 128 plus the newest number.
        self.status = 0
        self.requests: deque[str] = deque(maxlen=KEPT)  # "engage", "hold", "park" or "keep", oldest first
        # Set it when only printing is left: a signal then ends the process at once, even while nobody reads the output.
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

    def __exit__(self, *_: object) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        self._open.close()
