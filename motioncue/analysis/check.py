"""What a source says, examined: how steadily it comes, whether its signs hold, what to change.

The packages are fed once with the profile's options, and once more with each other reading that the options allow.  An
option is settled when the drive refutes every other value of it; where another value explains the drive as well, it
cannot be told yet.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from motioncue import protocols
from motioncue.analysis.signs import Finding, examine
from motioncue.analysis.windows import Drive
from motioncue.errors import PacketError
from motioncue.motion import MOTION_DTYPE
from motioncue.profile import Watch
from motioncue.protocols.layout import Derivation
from motioncue.runtime.feed import arriving, feed

__all__ = ["Report", "Timing", "check"]

GAP = 2.5  # times the usual interval
TRIED = 20_000  # frames at most, for each other reading
DERIVED = "derived"  # the value of an option that makes nothing of what the source says
COST = {"ok": 0, "unknown": 0, "wrong": 1}


class Timing(NamedTuple):
    """How steadily frames came."""

    frames: int
    rate_hz: float | None  # mean
    interval_ms: Mapping[str, float]  # p50, p99, max
    jitter_ms: float | None  # 99 % of the intervals are within this of the median
    repeats: int  # frames that say the same as the one before
    gaps: int  # intervals of more than 2.5 times the median
    longest_gap_s: float | None
    rejected: Mapping[str, int]
    clock: str  # whose times these are


class OptionFinding(NamedTuple):
    """What the drive says about one option of the source."""

    key: str
    value: Any  # as it is
    verdict: Literal["ok", "wrong", "unknown"]
    evidence: str
    better: Any = None  # what explains the drive


class Report(NamedTuple):
    """Everything that `motioncue check` says."""

    timing: Timing
    findings: list[Finding]
    options: list[OptionFinding]
    changes: dict[str, Any]  # profile key to value
    verdict: Literal["ok", "wrong", "unknown"]


def check(
    system: str,
    packages: Sequence[bytes],
    times_s: Sequence[float] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    acceleration: str = "native",
    watch: Watch | None = None,
    rate_hz: float | None = None,
) -> Report:
    """Examine what a source sent.

    Parameters
    ----------
    system : str
        The source's.
    packages : sequence of bytes
        In the order in which they came.
    times_s : sequence of float, optional
        When each came [s]; the packages' own times are used if not given.
    options : mapping, optional
        As ``source.options`` of the profile.
    acceleration : {"native", "from_velocity"}
        As ``source.acceleration`` of the profile.
    watch : Watch, optional
        As ``[watch]`` of the profile; the defaults of the type if not given.
    rate_hz : float, optional
        Frames a second [Hz], where neither `times_s` nor the packages say when they came.

    Raises
    ------
    ConfigError
        If there is no such source.
    PacketError
        If there are fewer than two frames, or nothing says when they came.
    """
    module = protocols.source(system)
    now = msgspec.convert(dict(options or {}), module.Options)
    source = _Source(module, packages, times_s, rate_hz, watch or Watch())
    drive, timing = source.read(now, acceleration)
    if timing.frames < 2:
        because = ", ".join(f"{count} {reason}" for reason, count in timing.rejected.items())
        raise PacketError(
            f"{system}: found {timing.frames} frames{f' ({because})' if because else ''}, allowed are 2 or more"
        )
    if not np.ptp(drive.time):
        raise PacketError(f"{system}: found no times in the packages or beside them; give the frames' rate (--rate)")
    findings = examine(drive)
    readings, changes = _options(source, now, acceleration, findings)
    verdicts = {finding.verdict for finding in findings} | {reading.verdict for reading in readings}
    overall: Literal["ok", "wrong", "unknown"] = (
        "wrong" if "wrong" in verdicts else "unknown" if "unknown" in verdicts else "ok"
    )
    return Report(timing, findings, readings, changes, overall)


class _Source:
    """The packages of a source, read as often as one likes."""

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
        self._times = times_s
        self._rate_hz = rate_hz
        self._watch = watch

    def read(self, options: Any, acceleration: str, most: int | None = None) -> tuple[Drive, Timing]:
        """Return the drive under a reading, and its timing."""
        intake = self.module.session(options, derivation=Derivation(acceleration))
        intake.watch(self._watch)
        rows: list[Any] = []
        world: list[Any] = []
        part: list[int] = []
        for is_frame in feed(arriving(self._packages, self._times, self._rate_hz, intake), intake):
            if is_frame:
                rows.append(intake.frame())
                world.append(intake.world())
                part.append(sum(intake.discontinuities.values()))
            if len(rows) == most:
                break
        motion = np.concatenate(rows) if rows else np.zeros(0, MOTION_DTYPE)
        places = np.array(world).reshape(-1, 2, 3)
        repeated = intake.repeats
        own = motion["frame_time"]
        arrival = motion["time"] * 1e-9
        timed = self._times is not None or self._rate_hz is not None
        own_clock = not timed or not np.allclose(own - own[:1], arrival - arrival[:1], atol=1e-6)
        independent = not getattr(self.module, "VELOCITY_IN_CAR", False)
        time = own if own_clock else arrival
        drive = Drive(
            time, motion, places[:, 0], places[:, 1], np.array(part, np.intp), independent, acceleration == "native"
        )
        return drive, _timing(arrival if timed else own, timed, repeated, intake.rejected)


def _timing(time: Any, arrived: bool, repeats: int, rejected: Mapping[str, int]) -> Timing:
    interval = np.diff(time) * 1e3
    interval = interval[interval >= 0]
    if not len(interval):
        return Timing(len(time), None, {}, None, repeats, 0, None, dict(rejected), "")
    median = float(np.median(interval))
    quantiles = {"p50": median, "p99": float(np.quantile(interval, 0.99)), "max": float(interval.max())}
    gaps = interval[interval > GAP * median] if median > 0 else interval[:0]
    span = float(interval.sum()) * 1e-3
    return Timing(
        len(time),
        len(interval) / span if span > 0 else None,
        quantiles,
        float(np.quantile(np.abs(interval - median), 0.99)),
        repeats,
        len(gaps),
        float(gaps.max()) * 1e-3 if len(gaps) else None,
        dict(rejected),
        "arrival" if arrived else "the simulator's",
    )


def _choices(module: Any) -> dict[str, tuple[Any, ...]]:
    """Return the values that each option of a source can have, for those that can be counted."""
    hints = get_type_hints(module.Options)
    readings: Iterable[str] = getattr(module, "READINGS", hints)
    out = {name: get_args(hints[name]) for name in readings if get_origin(hints[name]) is Literal}
    return {**out, "source.acceleration": ("native", "from_velocity")}


def _derives(change: Mapping[str, Any]) -> bool:
    """Say whether a change takes what is derived in place of what the source says, or the other way round."""
    return "source.acceleration" in change or DERIVED in change.values()


def _cost(findings: Sequence[Finding]) -> int:
    return sum(COST[finding.verdict] for finding in findings)


def _options(
    source: _Source, now: Any, acceleration: str, findings: Sequence[Finding]
) -> tuple[list[OptionFinding], dict[str, Any]]:
    """Return what the drive says of each option, and the smallest change that explains it better."""
    choices = _choices(source.module)
    base = {**{name: getattr(now, name) for name in choices if "." not in name}, "source.acceleration": acceleration}
    cost = _cost(findings)
    seen: dict[tuple[tuple[str, Any], ...], Sequence[Finding]] = {}

    def found_by(change: dict[str, Any]) -> Sequence[Finding]:
        key = tuple(sorted(change.items()))
        if key not in seen:
            fields = {name: value for name, value in change.items() if "." not in name}
            drive, timing = source.read(
                msgspec.structs.replace(now, **fields), change.get("source.acceleration", acceleration), TRIED
            )
            seen[key] = () if timing.frames < 2 else examine(drive)
        return seen[key]

    def costs(change: dict[str, Any]) -> int:
        return _cost(found_by(change)) if found_by(change) else 100

    def mends(change: dict[str, Any]) -> bool:
        after = {finding.name: finding.verdict for finding in found_by(change)}
        return all(after.get(finding.name) == "ok" for finding in findings if finding.verdict == "wrong")

    singles = [{name: value} for name, values in choices.items() for value in values if value != base[name]]
    changes: dict[str, Any] = {}
    if cost:
        # What is derived agrees by nature with what it is derived from: a way out when no reading explains the drive,
        # and only if it answers what was wrong, for it hides a wrong attitude.
        readings = [change for change in singles if not _derives(change)]
        ways_out = [change for change in singles if _derives(change) and mends(change)]
        pairs = [{**a, **b} for a, b in itertools.combinations(readings, 2) if not a.keys() & b.keys()]
        for group, most in ((readings, 0), (pairs, 0), (ways_out, 0), (readings, cost - 1)):
            best = min(group, key=costs, default=None)
            if best is not None and costs(best) <= most:
                equal = [change for change in group if costs(change) == costs(best)]
                changes = best if len(equal) == 1 else {}
                break
    found = []
    verdicts = {finding.name: finding for finding in findings}
    settling: Mapping[str, str] = getattr(source.module, "SETTLED_BY", {})
    least = costs(changes) if changes else cost
    for name, values in choices.items():
        if name not in changes and (name == "source.acceleration" or base[name] == DERIVED):
            continue  # both may be right: it is a choice, not a reading
        others = [value for value in values if value not in (base[name], DERIVED)]
        key = name if "." in name else f"source.options.{name}"
        if name in changes:
            evidence = f"{changes[name]!r} leaves fewer contradictions"
            found.append(OptionFinding(key, base[name], "wrong", evidence, changes[name]))
            continue
        open_ = [value for value in others if costs({**changes, name: value}) <= least]
        settled = verdicts.get(settling.get(name, ""))
        if settled is not None and settled.verdict != "ok" and not changes:
            evidence = f"{settled.evidence}; to settle it: {settled.manoeuvre}"
            found.append(OptionFinding(key, base[name], "unknown", evidence))
        elif open_:
            allowed = ", ".join(map(repr, open_))
            found.append(OptionFinding(key, base[name], "unknown", f"{allowed} would explain the drive as well"))
        else:
            found.append(OptionFinding(key, base[name], "ok", f"contradicts {', '.join(map(repr, others))}"))
    return found, {(name if "." in name else f"source.options.{name}"): value for name, value in changes.items()}
