"""Output that never blocks the writer, even if a full pipe or a frozen terminal accepts nothing."""

import os
import threading
import time
from collections import deque
from typing import TextIO

__all__ = ["Unblocked"]

ROOM = 1000  # texts waiting to be written
PATIENCE_S = 1.0  # for the remaining texts at the end


class Unblocked:
    """Writes to a stream in a thread of its own; has the methods that `logging` and rich call.

    Parameters
    ----------
    stream : text stream
        For example ``sys.stderr``; it is not closed.

    Attributes
    ----------
    dropped : int
        Texts that did not fit because nobody read those before them.

    Notes
    -----
    It writes to the file below the stream's buffer.  The buffer has a lock, and flushing it, as the interpreter does at
    its end, would wait for a thread that holds the lock while it is blocked.
    """

    def __init__(self, stream: TextIO) -> None:
        self.dropped = 0
        self._stream = stream
        self._raw = getattr(getattr(stream, "buffer", None), "raw", None)
        self._texts: deque[str] = deque()
        self._unsaid = 0  # dropped texts that have not been reported on the stream yet
        self._busy = self._closing = self._broken = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="motioncue output", daemon=True)
        self._thread.start()

    @property
    def encoding(self) -> str:
        """The stream's encoding."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def pending(self) -> bool:
        """Whether anything still has to be written."""
        return self._busy or bool(self._texts)

    def isatty(self) -> bool:
        """Say whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the stream's descriptor."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Queue a text; if there is no room, drop and count it.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        int
            Its length.
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
        """Do nothing, because queued texts are written anyway."""

    def close(self, patience_s: float = PATIENCE_S) -> bool:
        """Write the remaining texts, as far as the reader takes them in time.

        Parameters
        ----------
        patience_s : float
            Longest wait for the reader [s].

        Returns
        -------
        bool
            Whether everything was written.
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
                if written is None:  # another process has made it non-blocking
                    time.sleep(0.01)
                data = data[written or 0 :]
        except (OSError, ValueError):  # the reader has gone
            self._broken = True
