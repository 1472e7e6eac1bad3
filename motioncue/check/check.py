"""The check of a source: whether its frames are a drive, whether its clock is right, and every question behind that.

If a clock runs k times too fast, the integral of velocity is k times the change of position, that of surge k times the
change of speed, and that of the yaw rate k times the turn of the attitude.  A wrong unit affects one of these relations
only.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from motioncue import sources
from motioncue.check.advice import Advice, OptionFinding, advise
from motioncue.check.compare import (
    FELT,
    SLOW_M_S,
    WINDOW_S,
    WINDOWS,
    Array,
    Drive,
    Finding,
    Mask,
    axes,
    integral,
    turns,
    windows_of,
)
from motioncue.check.description import corrected, corrections, suspected
from motioncue.check.forces import Going, suspension_of
from motioncue.check.signs import examine
from motioncue.core.channels import WHEELS
from motioncue.core.table import Watch
from motioncue.errors import ConfigError, PacketError
from motioncue.frames.intake import read_frames
from motioncue.sources import DescribedSource
from motioncue.wire.packet import Derivation

FRAME_TIME = "frame time"
SLOWEST_S = 0.4  # no simulator's frame interval is as long
FASTEST_S = 0.0002  # nor as short
FRAMES = 25  # length of a window without a reliable clock
RIGHT = (0.8, 1.25)  # pace of a correct clock
AGREED = 1.2  # largest ratio of two paces that agree
GROWN = 3.0  # growth of reported durations that shows that they are times


def judge_clocks(own: Array | None, arrival: Array | None, drive: Drive) -> tuple[Finding, Array | None]:
    """Judge the simulator's clock.

    Units: `own` [s], `arrival` [s].
    """
    clock = arrival if own is None else own
    if clock is None:
        return Finding(FRAME_TIME, "unknown", "no time at all"), None
    steps = np.diff(clock)
    typical = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    wrong = _absurd(steps, typical)
    paces = {} if wrong else _paces(drive, clock, typical)
    came = None if own is None or arrival is None else _median_ratio(own, arrival)
    pace = _agreed(paces) or _confirmed(paces, came)
    evidence = f"a frame takes {1e3 * typical:.3g} ms"
    if paces:
        evidence += ", " + ", ".join(f"{name} {value:.2f}" for name, value in paces.items()) + " times the pace"
    if not wrong and pace is not None and not RIGHT[0] < pace < RIGHT[1]:
        wrong = f"it runs {pace:.3g} times as fast as the car moves"
    if came is not None:
        evidence += f", {came:.2f} seconds in each of arrival"
        if not wrong and pace is None and not 0.5 < came < 2.0:
            return Finding(FRAME_TIME, "unknown", f"{evidence}: slow motion, or another unit", "drive", False), clock
    if not wrong:
        told = any(RIGHT[0] < value < RIGHT[1] for value in paces.values()) or came is not None
        return Finding(
            FRAME_TIME, "ok" if told else "unknown", evidence, "" if told else "accelerate and turn", told
        ), clock
    other = arrival if own is not None else None
    if other is None and pace is not None:
        other = clock / pace
    return Finding(FRAME_TIME, "wrong", f"{evidence}: {wrong}", pace=pace), other


def _absurd(steps: Array, typical: float) -> str:
    """Return why the frames' durations cannot be right by themselves; empty if they can."""
    forward = steps[steps >= 0.0]
    tenth = max(1, len(forward) // 10)
    grows = len(forward) >= 20 and float(np.mean(np.diff(forward) >= 0.0)) > 0.95
    if grows and np.median(forward[-tenth:]) > GROWN * max(float(np.median(forward[:tenth])), 1e-9):
        unit = ", in milliseconds" if np.median(np.diff(forward)) > 1.0 else ""
        return f"it grows from frame to frame: it is the time of the frame, not its duration{unit}"
    if typical > SLOWEST_S:
        plausible = typical * 1e-3 < SLOWEST_S
        return f"a frame cannot take {typical:.3g} s" + (": milliseconds, taken as seconds" if plausible else "")
    if 0.0 < typical < FASTEST_S:
        return f"a frame cannot take {typical * 1e3:.3g} ms"
    return ""


def _median_ratio(own: Array, arrival: Array) -> float:
    """Return the pace of one clock relative to the other, robust against single jumps."""
    a, b = np.diff(own), np.diff(arrival)
    good = (a >= 0.0) & (b >= 0.0) & (a < 1.0)
    return float(a[good].sum() / b[good].sum()) if b[good].sum() > 0.0 else 0.0


def _paces(drive: Drive, clock: Array, typical: float) -> dict[str, float]:
    """Return the clock's pace by each relation that the drive shows clearly."""
    if typical <= 0.0:
        return {}
    scale = WINDOW_S / FRAMES / typical
    drive = drive._replace(time=clock * scale)
    w = windows_of(drive)
    out: dict[str, float] = {}
    if np.isfinite(drive.position).all() and np.isfinite(drive.velocity).all():
        moved = drive.position[w.last] - drive.position[w.first]
        said = np.array([integral(drive, w, axis) for axis in drive.velocity.T]).T.reshape(-1, 3)
        moving = np.linalg.norm(moved, axis=1) > SLOW_M_S * WINDOW_S
        _add(out, "velocity", said[moving].ravel(), moved[moving].ravel(), moving)
    if "surge" in drive.felt:
        speed = drive.motion["speed"]
        change = speed[w.last] - speed[w.first]
        fast = (np.minimum(speed[w.last], speed[w.first]) > SLOW_M_S) & (np.abs(change) > 0.3)
        _add(out, "surge", integral(drive, w, drive.motion["surge"])[fast], change[fast], fast)
    if drive.rates_are_independent:
        total = turns(*axes(drive.motion))[:, 2]
        turned = total[w.last] - total[w.first]
        turning = np.abs(turned) > 0.02
        _add(out, "yaw rate", integral(drive, w, drive.motion["yaw_rate"])[turning], turned[turning], turning)
    return {name: value / scale for name, value in out.items()}


def _add(out: dict[str, float], name: str, found: Array, expected: Array, shown: Mask) -> None:
    """Add the slope of a relation if it has enough windows and little scatter."""
    if shown.sum() < WINDOWS:
        return
    size = float(np.sqrt((found @ found) * (expected @ expected)))
    if size > 0.0 and float(found @ expected) / size > 0.9:
        out[name] = float(found @ expected) / float(expected @ expected)


def _agreed(paces: dict[str, float]) -> float | None:
    """Return the pace that at least two relations agree on; of several, the nearest to 1."""
    values = list(paces.values())
    pairs = [(a * b) ** 0.5 for n, a in enumerate(values) for b in values[n + 1 :] if 1 / AGREED < a / b < AGREED]
    return min(pairs, key=lambda pace: abs(np.log(pace)), default=None)


def _confirmed(paces: dict[str, float], came: float | None) -> float | None:
    """Return the pace by the arrivals if a relation shows it too; slow motion shows in none."""
    if came is None or RIGHT[0] < came < RIGHT[1]:
        return None
    return came if any(1 / AGREED < came / pace < AGREED for pace in paces.values()) else None


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


MOVED = ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate")
REFUSED_CORRECTION = [Finding("frames", "wrong", "the corrections contradict each other")]
NO_TIMING = Timing(0, None, {}, None, 0, 0, None, {}, "")


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
    suspected: Sequence[str] = ()  # mistakes of the simulator, in words, of which each explains what no option mends
    wheels: Sequence[Finding] = ()  # about the suspension's sense, if the source says something of it


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
    """Examine the packages of a source."""
    module = sources.source(system)
    now = msgspec.convert(dict(options or {}), module.Options)
    source = _Source(module, packages, times_s, rate_hz, watch or Watch())
    findings, timing = source.examined(now, acceleration)
    advice = advise(source.findings, module, now, acceleration, findings, source.corrections, packages=len(packages))
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
    overall = _overall([*findings, *(found for found in source.wheels if found.verdict == "wrong")], advice)
    suspects = source.suspected(findings) if advice.left and not (advice.changes or advice.either) else []
    return Report(timing, findings, *advice, overall, suspects, source.wheels)


def _other_sizes(module: Any, packages: Sequence[bytes]) -> str:
    """Return in words which sizes came and which a description allows; empty if some of them are the same."""
    if not isinstance(module, DescribedSource):
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
        self._sources: dict[str, DescribedSource | None] = {}
        self._packages = packages
        self._timed = times_s is not None or rate_hz is not None
        self._came = None if times_s is None else [1 + round((time - times_s[0]) * 1e9) for time in times_s]
        self._period = 1e9 / rate_hz if rate_hz else 0.0  # [ns]
        self._watch = watch
        self._drive: Drive | None = None  # as it was read at first
        self.wheels: list[Finding] = []  # of that reading

    @cached_property
    def corrections(self) -> list[str]:
        """The corrections of the description that make sense; none for a built-in source."""
        words = corrections(self.module) if isinstance(self.module, DescribedSource) else ()
        return [each for each in words if self._corrected(each) is not None]

    def _corrected(self, words: str) -> DescribedSource | None:
        """Return the source with corrections, separated by semicolons; None if they contradict each other."""
        if words not in self._sources:
            self._sources[words] = corrected(self.module, words)
        return self._sources[words]

    def suspected(self, findings: Sequence[Finding]) -> list[str]:
        """Return which mistakes of the simulator explain the drive as it was read at first."""
        return [] if self._drive is None else suspected(self._drive, {finding.name: finding for finding in findings})

    def findings(self, options: Any, acceleration: str, most: int | None = None, correction: str = "") -> list[Finding]:
        """Return the findings of a reading, from its first `most` frames."""
        return self.examined(options, acceleration, most, correction)[0]

    def examined(
        self, options: Any, acceleration: str, most: int | None = None, correction: str = ""
    ) -> tuple[list[Finding], Timing]:
        """Return the findings of a reading, and its timing."""
        module: Any = self._corrected(correction) if correction else self.module
        if module is None:
            return REFUSED_CORRECTION, NO_TIMING
        try:
            intake = module.intake(options, derivation=Derivation(acceleration))
        except ConfigError:
            if not correction:
                raise
            return REFUSED_CORRECTION, NO_TIMING
        intake.watch(self._watch)
        intake.begin(1)
        motion, places, part, held, chassis = read_frames(intake, self._packages, self._came, self._period, most)
        arrival, own = self._clocks(motion)
        read = _read(intake.rejected, len(motion))._replace(digest=_digest(motion))
        steady = _steady(intake.discontinuities, held, len(motion))
        timing = _timing(motion, arrival, own, intake)
        if len(motion) < 2:
            return [read], timing
        if timing.rate_hz is None:
            return [read, Finding(FRAME_TIME, "wrong", "it stands still")], timing
        drive = Drive(
            motion["frame_time"],
            motion,
            places[:, 0],
            places[:, 1],
            part if steady.verdict == "ok" else np.zeros(len(motion), np.intp),
            _velocity_in_world(module, options),
            _felt(module, acceleration),
            getattr(options, "rates", "") != "derived" and not getattr(module, "RATES_DERIVED", False),
            None if chassis is None else chassis[:, : len(WHEELS)],
        )
        timed, clock = judge_clocks(own, arrival, drive)
        drive = drive._replace(time=motion["frame_time"] * np.nan if clock is None else clock)
        found = examine(drive)
        if self._drive is None:
            self._drive = drive
            going = Going(drive, *axes(drive.motion), windows_of(drive), None)
            self.wheels = suspension_of(going, {finding.name: finding for finding in found})
        return [read, steady, timed, *found], timing

    def _clocks(self, motion: Any) -> tuple[Any, Any]:
        """Return the frames' arrival times and their own times; None for missing ones."""
        arrival = motion["time"] * 1e-9
        own = motion["frame_time"]
        said = not self._timed or not np.allclose(own - own[:1], arrival - arrival[:1], atol=1e-6)
        return arrival if self._timed else None, own if said else None


def _digest(motion: Any) -> float:
    """Return a number that differs between motions which a platform would follow differently."""
    return float(sum(weight * np.cos(motion[name]).sum() + motion[name].sum() for weight, name in enumerate(MOVED, 2)))


def _velocity_in_world(module: Any, options: Any) -> bool:
    """Say whether the velocity does not depend on the attitude."""
    described = module.table.velocity if isinstance(module, DescribedSource) else "car"
    return not getattr(module, "VELOCITY_IN_CAR", False) or getattr(options, "velocity", described) == "world"


def _felt(module: Any, acceleration: str) -> frozenset[str]:
    """Return which of surge, sway and heave the source reports; a description may leave some to be derived."""
    if acceleration != "native":
        return frozenset()
    return FELT if "acceleration_x" in (channels := getattr(module, "channels", FELT)) else FELT & set(channels)


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
