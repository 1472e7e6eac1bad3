"""Examination of a source: how evenly its frames come, whether its signs hold, what to change.

The packages are fed once with the profile's options, and once more with each other reading that the options allow.  An
option is settled if the drive refutes all its other values; it stays open if another value explains the drive as well.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from motioncue import sources
from motioncue.check import clocks
from motioncue.check.advice import Advice, OptionFinding, advise
from motioncue.check.compare import Finding
from motioncue.check.signs import examine
from motioncue.check.windows import Drive
from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import PacketError
from motioncue.frames.settings import Watch
from motioncue.wire.packet import Derivation

__all__ = ["Report", "Timing", "check"]

SIZES = 3  # sizes of packages to name
REFUSED_BY_SIZE = ("size", "type")
GAP = 2.5  # in usual intervals
BROKEN = ("not_finite", "implausible", "quaternion", "before_init", "big_endian", "framing")
SELDOM = 20  # discontinuities that an honest drive may have
STANDING = 0.5  # share of frames for which an honest drive may be paused
REFUSED = 0.05  # share of refused frames above which it is no accident


class Timing(NamedTuple):
    """How evenly frames came."""

    frames: int
    rate_hz: float | None  # mean
    interval_ms: Mapping[str, float]  # p50, p99, max
    jitter_ms: float | None  # 99 % of the intervals are within this of the median
    repeats: int  # frames that repeat the one before
    gaps: int  # intervals of more than 2.5 times the median
    longest_gap_s: float | None
    rejected: Mapping[str, int]
    clock: str  # the clock of these times


class Report(NamedTuple):
    """The report of `motioncue check`."""

    timing: Timing
    findings: list[Finding]
    options: list[OptionFinding]
    changes: dict[str, Any]  # by profile key
    either: list[dict[str, Any]]  # if there are none: changes that correct as much, of which the drive settles none
    mended: list[str]  # findings that the changes correct
    left: list[str]  # wrong findings that no change corrects
    verdict: Literal["ok", "wrong", "unknown"]


def check(
    system: sources.System,
    packages: Sequence[bytes],
    times_s: Sequence[float] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    acceleration: str = "native",
    watch: Watch | None = None,
    rate_hz: float | None = None,
) -> Report:
    """Examine the packages of a source.

    Parameters
    ----------
    system : str
        The source's name.
    packages : sequence of bytes
        The packages in order of arrival.
    times_s : sequence of float, optional
        Arrival times [s]; the packages' own times are used if not given.
    options : mapping, optional
        As ``source.options`` of a profile.
    acceleration : {"native", "from_velocity"}
        As ``source.acceleration`` of a profile.
    watch : Watch, optional
        As ``[watch]`` of a profile; its defaults if not given.
    rate_hz : float, optional
        Frames per second [Hz], needed if neither `times_s` nor the packages give times.

    Raises
    ------
    ConfigError
        If the source does not exist.
    PacketError
        If no reading gives two frames, or there are no times.
    """
    module = sources.source(system)
    now = msgspec.convert(dict(options or {}), module.Options)
    source = _Source(module, packages, times_s, rate_hz, watch or Watch())
    findings, timing = source.examined(now, acceleration)
    advice = advise(source.findings, module, now, acceleration, findings)
    if timing.frames < 2 and not advice.changes:
        because = ", ".join(
            (reason in REFUSED_BY_SIZE and _other_sizes(module, packages)) or f"{count} {reason.replace('_', ' ')}"
            for reason, count in timing.rejected.items()
        )
        raise PacketError(
            f"{system}: found {timing.frames} frames{f' ({because})' if because else ''}, allowed are 2 or more"
        )
    if timing.frames >= 2 and timing.rate_hz is None:
        raise PacketError(f"{system}: found no times in the packages or beside them; give the frames' rate (--rate)")
    return Report(timing, findings, *advice, _overall(findings, advice))


def _other_sizes(module: Any, packages: Sequence[bytes]) -> str:
    """Return in words which sizes came and which a description allows; empty if some of them are the same."""
    if not isinstance(module, sources.DescribedSource):
        return ""
    sizes = sorted({(form.packet.size, form.largest) for form in module.forms})
    if any(least <= len(package) <= most for package in packages for least, most in sizes):
        return ""
    came = ", ".join(f"{size} bytes" for size, _ in Counter(map(len, packages)).most_common(SIZES))
    described = ", ".join(f"{least}" if least == most else f"{least} to {most}" for least, most in sizes)
    return f"packages of {came}, and described are {described}"


def _overall(findings: Sequence[Finding], advice: Advice) -> Literal["ok", "wrong", "unknown"]:
    verdicts = {finding.verdict for finding in findings} | {option.verdict for option in advice.options}
    return "wrong" if "wrong" in verdicts else "unknown" if "unknown" in verdicts else "ok"


class _Source:
    """The packages of a source, which can be read with any options."""

    def __init__(
        self,
        module: Any,
        packages: Sequence[bytes],
        times_s: Sequence[float] | None,
        rate_hz: float | None,
        watch: Watch,
    ) -> None:
        self.module = module
        self._packages = packages
        self._timed = times_s is not None or rate_hz is not None
        self._came = None if times_s is None else [1 + round((time - times_s[0]) * 1e9) for time in times_s]
        self._period = 1e9 / rate_hz if rate_hz else 0.0  # [ns]
        self._watch = watch

    def findings(self, options: Any, acceleration: str, most: int | None = None) -> list[Finding]:
        """Return the findings of a reading, from its first `most` frames."""
        return self.examined(options, acceleration, most)[0]

    def examined(self, options: Any, acceleration: str, most: int | None = None) -> tuple[list[Finding], Timing]:
        """Return the findings of a reading, and its timing."""
        intake = self.module.intake(options, derivation=Derivation(acceleration))
        intake.watch(self._watch)
        intake.begin(1)
        rows: list[bytes] = []
        world: list[Any] = []
        part: list[int] = []
        held = 0  # frames that an engine would not follow
        for index, package in enumerate(self._packages):
            if most is not None and len(rows) >= most:
                break
            before = intake.accepted
            # Without arrival times, a package that is not a frame takes no time.
            intake.feed(package, 1 + round(len(rows) * self._period) if self._came is None else self._came[index])
            if intake.accepted > before:
                rows.append(intake.frame().tobytes())
                world.append(intake.world())
                part.append(sum(intake.discontinuities.values()))
                held += intake.frozen
        motion = np.frombuffer(b"".join(rows), MOTION_DTYPE)
        places = np.array(world).reshape(-1, 2, 3)
        arrival, own = self._clocks(motion)
        read = _read(intake.rejected, len(motion))
        steady = _steady(intake.discontinuities, held, len(motion))
        timing = _timing(motion, arrival, own, intake)
        if len(motion) < 2:
            return [read], timing
        if timing.rate_hz is None:
            return [read, Finding(clocks.NAME, "wrong", "it stands still")], timing
        drive = Drive(
            motion["frame_time"],
            motion,
            places[:, 0],
            places[:, 1],
            np.array(part, np.intp) if steady.verdict == "ok" else np.zeros(len(motion), np.intp),
            not getattr(self.module, "VELOCITY_IN_CAR", False) or getattr(options, "velocity", "car") == "world",
            acceleration == "native",
            getattr(options, "rates", "") != "derived" and not getattr(self.module, "RATES_DERIVED", False),
        )
        timed, clock = clocks.judged(own, arrival, drive)
        drive = drive._replace(time=motion["frame_time"] * np.nan if clock is None else clock)
        return [read, steady, timed, *examine(drive)], timing

    def _clocks(self, motion: Any) -> tuple[Any, Any]:
        """Return the frames' arrival times and their own times; None for missing ones."""
        arrival = motion["time"] * 1e-9
        own = motion["frame_time"]
        said = not self._timed or not np.allclose(own - own[:1], arrival - arrival[:1], atol=1e-6)
        return arrival if self._timed else None, own if said else None


def _read(rejected: Mapping[str, int], frames: int) -> Finding:
    """Judge whether the frames can be read at all."""
    broken = {reason: count for reason, count in rejected.items() if reason in BROKEN}
    total = frames + sum(broken.values())
    evidence = f"{frames} of {total} can be read"
    if broken:
        evidence += f", the others are refused ({', '.join(f'{n} {reason}' for reason, n in broken.items())})"
    if frames > 1 and sum(broken.values()) <= REFUSED * total:
        return Finding("frames", "ok", evidence)
    return Finding("frames", "wrong", f"{evidence}: another unit, order of bytes or form than is read")


def _steady(discontinuities: Mapping[str, int], held: int, frames: int) -> Finding:
    """Judge whether the frames are one drive: an engine parks the platform at every discontinuity."""
    evidence = ", ".join(f"{count} {reason}" for reason, count in discontinuities.items())
    evidence = f"{evidence or 'no discontinuity'} in {frames} frames"
    if sum(discontinuities.values()) <= max(SELDOM, REFUSED * frames) and held <= SELDOM + STANDING * frames:
        return Finding("continuity", "ok", evidence)
    return Finding("continuity", "wrong", f"{evidence}: an engine with these thresholds would park all the time")


def _timing(motion: Any, arrival: Any, own: Any, intake: Any) -> Timing:
    time = own if arrival is None else arrival
    interval = np.diff(time) * 1e3
    interval = interval[interval >= 0]
    rejected, repeats = dict(intake.rejected), intake.repeats
    if not len(interval) or not interval.any():
        return Timing(len(motion), None, {}, None, repeats, 0, None, rejected, "")
    median = float(np.median(interval))
    quantiles = {"p50": median, "p99": float(np.quantile(interval, 0.99)), "max": float(interval.max())}
    gaps = interval[interval > GAP * median] if median > 0 else interval[:0]
    return Timing(
        len(motion),
        len(interval) / (float(interval.sum()) * 1e-3),
        quantiles,
        float(np.quantile(np.abs(interval - median), 0.99)),
        repeats,
        len(gaps),
        float(gaps.max()) * 1e-3 if len(gaps) else None,
        rejected,
        "the simulator's" if arrival is None else "arrival",
    )
