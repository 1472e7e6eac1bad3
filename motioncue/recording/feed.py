"""Timed packages fed to an intake, for recordings, replays, checks and virtual drives."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from motioncue.intake.intake import Intake

__all__ = ["START_NS", "Timed", "arriving", "feed"]

START_NS = 1
"""When the first package of a recording comes, where no clock runs beside it [ns]; a clock's 0 stands for never."""


class Timed(NamedTuple):
    """A package, and when it comes."""

    time_ns: int
    package: bytes  # empty: the simulator leaves


def feed(
    packages: Iterable[Timed], *intakes: Intake, before: Callable[[int], object] = lambda time_ns: None
) -> Iterator[bool]:
    """Feed packages at their times; yield whether each gave the first intake a frame.

    Parameters
    ----------
    packages : iterable of Timed
        In order of time; read one by one, each when the one before it has been fed and yielded.
    *intakes : Intake
        Each is given every package; the simulator connects with its first one, and with the next after it has left.
    before : callable, optional
        Called with each time before the package is fed, such as what runs an emitter until then.
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
    """Yield packages with the times given, else at a rate of frames, else all at once.

    Parameters
    ----------
    packages : iterable of bytes
        In the order in which they came.
    times_s : sequence of float or None
        When each came [s].
    rate_hz : float or None
        Frames a second [Hz].
    intake : Intake
        Is fed with these packages before the next one is asked for: a package that gives no frame takes no time.
    """
    for place, package in enumerate(packages):
        if times_s is not None:
            seconds = times_s[place] - times_s[0]
        elif rate_hz is not None:
            seconds = intake.accepted / rate_hz
        else:
            seconds = 0.0
        yield Timed(START_NS + round(seconds * 1e9), package)
