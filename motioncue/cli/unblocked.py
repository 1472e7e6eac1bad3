"""Output that nobody waits for, because a full pipe or a frozen terminal takes none."""

import os
import threading
import time
from collections import deque
from typing import TextIO

__all__ = ["Unblocked"]

ROOM = 1000  # texts that have not been written yet
PATIENCE_S = 1.0  # for what is left at the end


class Unblocked:
    """Writes to a stream in a thread of its own; has what `logging` and rich call of a stream.

    Parameters
    ----------
    stream : text stream
        Such as ``sys.stderr``; stays open.

    Attributes
    ----------
    dropped : int
        Texts that found no room because nobody read those before them.

    Notes
    -----
    It writes to the file below the stream's buffer.  The buffer has a lock, and whoever flushes it, such as the
    interpreter at its end, would wait for the thread that holds it while it is stuck.
    """

    def __init__(self, stream: TextIO) -> None:
        self.dropped = 0
        self._stream = stream
        self._raw = getattr(getattr(stream, "buffer", None), "raw", None)
        self._texts: deque[str] = deque()
        self._unsaid = 0  # of those dropped, how many the stream has not been told of
        self._busy = self._closing = self._broken = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="motioncue output", daemon=True)
        self._thread.start()

    @property
    def encoding(self) -> str:
        """Of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def pending(self) -> bool:
        """Whether something has not been written yet."""
        return self._busy or bool(self._texts)

    def isatty(self) -> bool:
        """Say whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the stream's descriptor."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Take a text to be written; drop and count it if there is no room.

        Parameters
        ----------
        text : str
            What a stream is given.

        Returns
        -------
        int
            How many characters were given.
        """
        with self._changed:
            if len(self._texts) < ROOM:
                self._texts.append(text)
            else:
                self.dropped += 1
                self._unsaid += 1
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Do nothing: what is written is on its way."""

    def close(self, patience_s: float = PATIENCE_S) -> bool:
        """Write what is left, as far as it is taken in time.

        Parameters
        ----------
        patience_s : float
            How long to wait for whoever reads [s].

        Returns
        -------
        bool
            Whether all of it was taken.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: self._texts or self._closing)
                if not self._texts:
                    return
                self._busy = True
                text = self._texts.popleft()
            self._put(text)
            if self._unsaid:
                with self._changed:
                    unsaid, self._unsaid = self._unsaid, 0
                self._put(f"... {unsaid} more were dropped: nobody read them in time\n")

    def _put(self, text: str) -> None:
        try:
            if self._broken:
                return
            if self._raw is None:
                self._stream.write(text)
                self._stream.flush()
                return
            data = memoryview(text.replace("\n", os.linesep).encode(self.encoding, self._stream.errors or "strict"))
            while data:
                written = self._raw.write(data)
                if written is None:  # somebody else has made it one that does not block
                    time.sleep(0.01)
                data = data[written or 0 :]
        except (OSError, ValueError):  # nobody reads it any more
            self._broken = True
