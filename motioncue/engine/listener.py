"""The listener: the engine's receiving side, without cueing and without a platform."""

import logging
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from motioncue import sources
from motioncue.core.threads import RecordRing
from motioncue.engine.journal import MESSAGES, Journal
from motioncue.engine.reception import Reception, check_endpoints

__all__ = ["Listener"]

log = logging.getLogger("motioncue")


class Listener:
    """Serves a simulator and shows what it reports: a context manager.

    Parameters
    ----------
    system : str
        The simulator's name.
    *urls : str
        Endpoints to listen at.
    allow : sequence of str
        Hosts that are heard.  If empty: only this machine if the endpoints are local, else nobody.

    Raises
    ------
    ConfigError
        If there is no such source.
    EndpointError
        If a URL is not valid; on entering, if it is in use.
    """

    def __init__(self, system: sources.System, *urls: str, allow: Sequence[str] = ()) -> None:
        module = sources.source(system)
        check_endpoints(module, urls)
        self.system, self.urls, self._allow = system, urls, allow
        options, derivation = sources.read_as(system)
        self._intake = module.intake(options, derivation=derivation)
        self._journal = Journal()
        self._motion: Any = None
        self._first = self._last = (0, 0)  # frames so far, arrival of the newest one [ns]

    def __enter__(self) -> "Listener":
        """Start to listen."""
        self._receiver = Reception(self._intake, self.urls, allow=self._allow)
        self._thread = threading.Thread(target=self._receiver.run, name="motioncue driver", daemon=True)
        self._thread.start()
        log.info("waiting for %s at %s", self.system, ", ".join(self.urls))
        if self._receiver.deaf:
            log.warning(
                "no host is allowed: nothing that comes from other machines will be heard; name it with --allow"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening and close everything."""
        self._receiver.stop()
        self._thread.join()
        self._receiver.close()
        self.poll()
        self._journal.tell(end=True)

    def record(self, ring: RecordRing) -> None:
        """Put packages, frames and events into a ring as they come; call it before entering.

        Parameters
        ----------
        ring : RecordRing
            The recorder reads it.
        """
        self._intake.record(ring)

    def poll(self) -> Any:
        """Log what has happened, and return the newest motion: ndarray of MOTION_DTYPE, shape (1,), or None.

        Call it a few times a second, from one thread.
        """
        for _, reason, detail in self._intake.events():
            level, text = MESSAGES[reason]
            self._journal.say(reason, level, f"{self.system}: {text.format(detail)}")
        self._journal.tell()
        motion = self._intake.newest()
        if motion is not None:
            self._motion = motion
            self._last = (self._intake.accepted, int(motion["time"][0]))
            if self._first[0] == 0:
                self._first = self._last
        return self._motion

    def rate_hz(self) -> float:
        """Return the mean rate of frames between the first and the newest poll that found a frame [Hz]."""
        span = self._last[1] - self._first[1]
        return (self._last[0] - self._first[0]) * 1e9 / span if span > 0 else 0.0

    def stats(self) -> dict[str, Any]:
        """Return the statistics so far; the keys are those of ``motioncue listen --json``."""
        motion = self.poll()
        names = () if motion is None else motion.dtype.names
        return {
            "frames_received": self._intake.accepted,
            "rate_hz": self.rate_hz(),
            "rejected": self._intake.rejected,
            "sessions": self._intake.sessions,
            "others_received": self._intake.others,
            "repeats": self._intake.repeats,
            "replies_sent": self._intake.replies,
            "motion": {name: np.asarray(motion[name]).item() for name in names} or None,
        }
