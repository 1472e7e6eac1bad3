"""What the loops have counted and queued, as lines of the log; repetitions as a number."""

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from motioncue.transports.udp import error_text

__all__ = ["Journal", "Outputs"]

log = logging.getLogger("motioncue")

AT_ONCE = 3  # lines of a kind that are logged as they come
WINDOW_S = 10.0  # since the first of them; the others are counted until it is over
HEARD_S = 3.0  # without word that nobody listens, somebody does: hosts far away say it once a second only


class Journal:
    """Logs lines; of those of one kind the first few, then how many more there were.

    Parameters
    ----------
    clock : callable
        Returns the time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[Hashable, _Kind] = {}

    def say(self, kind: Hashable, level: int, text: str) -> None:
        """Log a line, or count it if there were several of its kind already.

        Parameters
        ----------
        kind : hashable
            The same for lines that differ in their numbers only.
        level : int
            Of the line, as `logging` has it.
        text : str
            The line.
        """
        known = self._kinds.setdefault(kind, _Kind(self._clock()))
        known.lines += 1
        known.newest = (level, text)
        if known.lines <= AT_ONCE:
            log.log(level, "%s", text)

    def tell(self, *, end: bool = False) -> None:
        """Say how many lines were counted; call it a few times a second, and at the end.

        Parameters
        ----------
        end : bool
            Whether to say it before the window is over.
        """
        now = self._clock()
        for kind, known in list(self._kinds.items()):
            age = now - known.since
            if age < WINDOW_S and not end:
                continue
            del self._kinds[kind]
            if known.lines > AT_ONCE:
                level, text = known.newest
                log.log(level, "%s ... %d more in the last %.0f s", text, known.lines - AT_ONCE, max(age, 1.0))
                # Whoever goes on like this has had its first lines.
                self._kinds[kind] = _Kind(now, AT_ONCE)


class _Kind:
    """Lines that differ in their numbers only."""

    def __init__(self, since: float, lines: int = 0) -> None:
        self.since = since
        self.lines = lines
        self.newest = (logging.NOTSET, "")


class Outputs:
    """Says when an output's packets cannot be sent or are not listened to, and when they are again.

    Parameters
    ----------
    journal : Journal
        Where to say it.
    endpoints : sequence of str
        Of the outputs.
    clock : callable
        Returns the time [s].
    """

    def __init__(self, journal: Journal, endpoints: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._journal = journal
        self._clock = clock
        self._outputs = [_Output(endpoint) for endpoint in endpoints]

    def look(self, counts: Sequence[dict[str, int]]) -> None:
        """Say what has changed since the last call.

        Parameters
        ----------
        counts : sequence of dict
            As `Emitter.outputs` returns them.
        """
        now = self._clock()
        for output, count in zip(self._outputs, counts, strict=True):
            refused, unheard, sent = (count[name] - output.counts[name] for name in ("refused", "unheard", "sent"))
            output.counts = dict(count)
            if refused:
                self._change(output, now, "refused", f"sending fails: {error_text(count['error'])}")
            elif unheard:
                self._change(output, now, "unheard", "nobody listens there, what is sent is lost")
            elif sent and now - output.since > HEARD_S:
                better = "somebody listens there now" if output.trouble == "unheard" else "sending works again"
                self._change(output, now, "", better)

    def _change(self, output: "_Output", now: float, trouble: str, text: str) -> None:
        output.since = now
        if trouble != output.trouble:
            output.trouble = trouble
            level = logging.WARNING if trouble else logging.INFO
            self._journal.say((output.endpoint, trouble), level, f"{output.endpoint}: {text}")


class _Output:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.trouble = ""  # "", "unheard" or "refused"
        self.since = 0.0  # when it was last seen [s]
        self.counts: dict[str, Any] = {"refused": 0, "unheard": 0, "sent": 0}
