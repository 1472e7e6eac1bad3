"""Timed packages fed to an intake, for recordings, replays, checks and virtual drives."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from motioncue.frames.intake import Intake

__all__ = ["START_NS", "Timed", "arriving", "feed"]

START_NS = 1
"""Time of a recording's first package where no clock runs beside it [ns]; a time of 0 would mean never."""


class Timed(NamedTuple):
    """A package and its arrival time."""

    time_ns: int
    package: bytes  # empty: the simulator leaves


def feed(
    packages: Iterable[Timed], *intakes: Intake, before: Callable[[int], object] = lambda time_ns: None
) -> Iterator[bool]:
    """Feed packages at their times; yield whether each one gave the first intake a frame.

    Parameters
    ----------
    packages : iterable of Timed
        In order of time; each is read when the one before has been fed and its result yielded.
    *intakes : Intake
        Each gets every package; a session begins with the first package, and with the first one after the simulator
        left.
    before : callable, optional
        Called with each package's time before it is fed, for example to run an emitter until then.
    """
    connected = False
    for time_ns, package in packages:
        before(time_ns)
        accepted = intakes[0].accepted
        for intake in intakes:
            if package and not connected:
                intake.begin(time_ns)
            if package:
                intake.feed(package, time_ns)
        connected = bool(package)
        yield intakes[0].accepted > accepted


def arriving(
    packages: Iterable[bytes], times_s: Sequence[float] | None, rate_hz: float | None, intake: Intake
) -> Iterator[Timed]:
    """Yield packages with the given times, else at a rate of frames, else all at once.

    Parameters
    ----------
    packages : iterable of bytes
        In order of arrival.
    times_s : sequence of float or None
        Arrival times [s].
    rate_hz : float or None
        Frames per second [Hz].
    intake : Intake
        Must be fed each package before the next one is requested: a package without a frame takes no time.
    """
    for place, package in enumerate(packages):
        if times_s is not None:
            seconds = times_s[place] - times_s[0]
        elif rate_hz is not None:
            seconds = intake.accepted / rate_hz
        else:
            seconds = 0.0
        yield Timed(START_NS + round(seconds * 1e9), package)
