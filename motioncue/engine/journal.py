"""Lines of the log for what the loops have counted and queued; repetitions become a number."""

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from motioncue.frames.intake import Intake
from motioncue.output.sinks import HEARD_S
from motioncue.transports.handles import error_text

__all__ = ["CALM", "LOG", "MESSAGES", "REFUSED", "Journal", "Log", "Outputs", "SeatLog", "SourceLog", "event_line"]

LOG = logging.getLogger("motioncue")
"""Where everything is logged."""

AT_ONCE = 3  # lines of a kind that are logged at once
WINDOW_S = 10.0  # from the first line of a kind; more than AT_ONCE are counted until this has passed


class SeatLog(logging.LoggerAdapter[logging.Logger]):
    """Logs what one of several seats has to say: its name stands before each line."""

    def __init__(self, seat: str) -> None:
        super().__init__(LOG)
        self.seat = seat

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line."""
        self.logger.log(level, f"seat %s: {msg}", self.seat, *args, **kwargs)


Log: TypeAlias = logging.Logger | SeatLog
"""What an engine and its parts log with."""


class Journal:
    """Logs lines: the first few of a kind, then how many more there were.

    Units: `clock` [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, log: Log = LOG) -> None:
        self._clock, self._log = clock, log
        self._kinds: dict[Hashable, _Kind] = {}
        self._newest: dict[Hashable, tuple[int, str]] = {}

    def say(self, kind: Hashable, level: int, text: str) -> None:
        """Log a line, or only count it if there were several of its kind already."""
        known = self._kinds.setdefault(kind, _Kind(self._clock()))
        known.lines += 1
        self._newest[kind] = (level, text)
        if known.lines <= AT_ONCE:
            self._log.log(level, "%s", text)

    def count(self, kind: Hashable, lines: int) -> None:
        """Count lines that nobody has written, of a kind of which one has been logged."""
        if kind in self._newest:
            self._kinds.setdefault(kind, _Kind(self._clock(), AT_ONCE)).lines += lines

    def tell(self, *, end: bool = False) -> None:
        """Log how many lines were counted; call it a few times a second, and at the end."""
        now = self._clock()
        for kind, known in list(self._kinds.items()):
            age = now - known.since
            if age < WINDOW_S and not end:
                continue
            del self._kinds[kind]
            if known.lines > AT_ONCE:
                level, text = self._newest[kind]
                self._log.log(level, "%s ... %d more in the last %.0f s", text, known.lines - AT_ONCE, max(age, 1.0))
                # A kind that continues gets no first lines again.
                self._kinds[kind] = _Kind(now, AT_ONCE)


class _Kind:
    """Lines that differ only in their numbers."""

    def __init__(self, since: float, lines: int = 0) -> None:
        self.since = since
        self.lines = lines


class SourceLog:
    """Logs what a source's intake has queued, and how often that was without an event of its own."""

    def __init__(self, journal: Journal, system: object, intake: Intake) -> None:
        self._journal, self._system, self._intake = journal, system, intake
        self._not_queued: dict[str, int] = {}

    def look(self) -> None:
        """Log what has come since the last call."""
        for _, reason, detail in self._intake.events():
            level, text = event_line(reason, detail)
            self._journal.say(reason, level, f"{self._system}: {text}")
        before, self._not_queued = self._not_queued, self._intake.not_queued
        for reason, count in self._not_queued.items():
            if count > before.get(reason, 0):
                self._journal.count(reason, count - before.get(reason, 0))


class Outputs:
    """Logs when an output's packets cannot be sent or are not heard, and when they are again.

    Units: `clock` [s].
    """

    def __init__(self, journal: Journal, endpoints: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._journal = journal
        self._clock = clock
        self._outputs = [_Output(endpoint) for endpoint in endpoints]

    def look(self, counts: Sequence[dict[str, int]]) -> None:
        """Log what has changed since the last call."""
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
        self.since = 0.0  # when the trouble was last seen [s]
        self.counts: dict[str, Any] = {"refused": 0, "unheard": 0, "sent": 0}


CALM = (
    *("input_overdue", "input_back"),
    *("input", "cue_reached", "neutral_reached", "operator_engage", "operator_hold", "operator_park", "end_of_run"),
)
"""Reasons that are expected: logged as information, the first two for debugging, all others as warnings."""

REFUSED = {
    "size": "another size than this type has",
    "type": "none of this system's packets",
    "envelope": "a length field or an end mark that does not fit",
    "not_finite": "a value that is not a number",
    "implausible": "a value that no vehicle reaches",
    "quaternion": "an orientation that is not a rotation",
    "before_init": "a frame before the session's init package",
    "incomplete": "a frame without the other package that it needs",
    "late": "a frame older than the newest by its own time stamp",
}
"""Why a package was refused, in words."""

MESSAGES = {
    **{why: (logging.WARNING, f"package refused: {why}, {text} ({{}} bytes)") for why, text in REFUSED.items()},
    "spike": (logging.WARNING, "a value came once and was not followed: {}"),
    "acceleration_contradicted": (
        logging.WARNING,
        "acceleration and velocity do not agree, so the platform parks: {}; `motioncue check` says what to change",
    ),
    "rate_contradicted": (
        logging.WARNING,
        "angular rates and attitude do not agree, so the platform parks: {}; `motioncue check` says what to change",
    ),
    "not_allowed": (logging.WARNING, "something came from a host that is not in source.allow, and was not heard"),
    "session_began": (logging.INFO, "a simulator connected (session {})"),
    "session_ended": (logging.INFO, "the simulator left (session {})"),
    "second_simulator": (logging.WARNING, "a second simulator was refused: one drives at a time"),
    "taken_over": (logging.WARNING, "another simulator takes over: the one before sent no frame for {} ms"),
    "no_descriptor": (logging.ERROR, "the system has no file descriptor left: a simulator that connects has to wait"),
    "big_endian": (
        logging.ERROR,
        "the size field has its bytes swapped (read as {}): set source.options.byte_order = 'big'; connection closed",
    ),
    "framing": (logging.ERROR, "a size field of {} cannot be: framing is lost; connection closed"),
    "stalled": (logging.WARNING, "the rest of a package never came ({} bytes did); connection closed"),
    "torn": (logging.WARNING, "the simulator was writing at every look; the state is looked at again"),
    "seen_late": (
        logging.WARNING,
        "states are seen too late to show that they are whole: the machine is too busy, or their last numbers do not "
        "change with each; until they do, one that stays the same is taken",
    ),
    "receive_failed": (logging.ERROR, "the system gives nothing of what comes to the endpoint: {}; it is tried again"),
    "reply_lost": (logging.WARNING, "the simulator does not read its replies; some were dropped, no frame was"),
    "axes": (
        logging.WARNING,
        "the announced car axes are zero or not orthogonal; using forward (0, 0, 1), up (0, 1, 0)",
    ),
}
"""How the source's events are logged."""


def event_line(reason: str, detail: int | str) -> tuple[int, str]:
    """Return level and text of an event of the source; words for which its text has no place follow in brackets."""
    level, text = MESSAGES[reason]
    if reason == "receive_failed":
        detail = error_text(int(detail))
    if isinstance(detail, str) and "{" not in text:
        return level, f"{text} ({detail})"
    return level, text.format(detail)
