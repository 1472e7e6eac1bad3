"""Which change of a source's options would mend what is wrong: nothing is advised that has not been tried.

Every change is examined over all questions, alone and together with others, before it is named.  It has to turn what
was wrong into what is shown to be right; a wrong that is only hidden is not mended, and nothing that held may be worse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from motioncue.analysis.compare import Finding

__all__ = ["Advice", "OptionFinding", "advise"]

TRIED = 20_000  # frames at most, for each other reading
DERIVED = "derived"  # the value of an option that makes nothing of what the source says
SOURCE = "source.acceleration"
STEP_S = 0.0005  # of a simulator's physics: its clock goes on by whole ones

# What the questions about accelerations and rates stand on.
BASES = (
    "frames",
    "continuity",
    "frame time",
    "velocity and position",
    "attitude and course",
    "pitch and climb",
    "yaw and course",
    "up",
)

Change = dict[str, Any]
Found = Mapping[str, Finding]


class OptionFinding(NamedTuple):
    """What the drive says about one option of the source."""

    key: str
    value: Any  # as it is
    verdict: Literal["ok", "wrong", "unknown"]
    evidence: str
    better: Any = None  # what explains the drive


class Advice(NamedTuple):
    """What to change, and what the drive says of each option."""

    options: list[OptionFinding]
    changes: dict[str, Any]  # profile key to value
    either: list[dict[str, Any]]  # changes that would mend as much, where the drive does not tell them apart
    mended: list[str]  # findings that the changes mend
    left: list[str]  # findings that are wrong, and that no change mends


class _Trials:
    """What each change of the options gives, examined once."""

    def __init__(
        self, findings: Callable[[Any, str, int | None], Sequence[Finding]], now: Any, acceleration: str
    ) -> None:
        self._findings, self._now, self._acceleration = findings, now, acceleration
        self._seen: dict[tuple[tuple[str, Any], ...], Found] = {}

    def of(self, change: Change, most: int | None = TRIED) -> Found:
        """Return what is found with a change, by name."""
        key = (*sorted(change.items()), ("frames", most))
        if key not in self._seen:
            fields = {name: value for name, value in change.items() if name != SOURCE}
            options = msgspec.structs.replace(self._now, **fields)
            found = self._findings(options, change.get(SOURCE, self._acceleration), most)
            self._seen[key] = {finding.name: finding for finding in found}
        return self._seen[key]


def choices(module: Any, now: Any) -> dict[str, tuple[Any, ...]]:
    """Return the values that each option of a source can have, for those that a drive can settle."""
    hints = get_type_hints(module.Options)
    idle: Mapping[str, Mapping[str, Any]] = getattr(module, "IDLE", {})
    readings: Iterable[str] = getattr(module, "READINGS", hints)
    named = {
        name: get_args(hints[name])
        for name in readings
        if get_origin(hints[name]) is Literal
        and not any(getattr(now, other) == value for other, value in idle.get(name, {}).items())
    }
    numbers: Mapping[str, Sequence[float]] = getattr(module, "NUMBERS", {})
    return {**named, **{name: (getattr(now, name), *values) for name, values in numbers.items()}}


def _clock(module: Any, now: Any, before: Found) -> list[Change]:
    """Return the option that makes the simulator's clock as fast as the car moves, if there is one."""
    name: str | None = getattr(module, "CLOCK", None)
    pace = max((finding.pace or 0.0 for finding in before.values()), default=0.0)
    if name is None or not pace:
        return []
    value = getattr(now, name) / pace
    steps = round(value / STEP_S)
    return [{name: steps * STEP_S if steps and abs(steps * STEP_S / value - 1.0) < 0.03 else float(f"{value:.3g}")}]


def advise(
    findings_of: Callable[[Any, str, int | None], Sequence[Finding]],
    module: Any,
    now: Any,
    acceleration: str,
    findings: Sequence[Finding],
) -> Advice:
    """Return what to change.

    Parameters
    ----------
    findings_of : callable
        Takes options, where the acceleration comes from and how many frames at most; returns what is found.
    module : module
        The source's.
    now : Options
        Of the profile.
    acceleration : str
        As ``source.acceleration`` of the profile.
    findings : sequence of Finding
        What is found with those.
    """
    values = {**choices(module, now), SOURCE: ("native", "from_velocity")}
    base = {**{name: getattr(now, name) for name in values if name != SOURCE}, SOURCE: acceleration}
    trials = _Trials(findings_of, now, acceleration)
    before = {finding.name: finding for finding in findings}
    singles = [{name: value} for name, many in values.items() for value in many if value != base[name]]
    best = _best(trials, [*singles, *_clock(module, now, before)], before)
    changes = best[0] if len(best) == 1 else {}
    after = trials.of(changes, None) if changes else before
    wrong = [name for name, finding in before.items() if finding.verdict == "wrong"]
    left = [name for name in wrong if not changes or (name in after and after[name].verdict == "wrong")]
    options = _settled(trials, module, values, base, changes, after)
    return Advice(
        options,
        _keyed(changes),
        [_keyed(change) for change in best] if len(best) > 1 else [],
        [name for name in wrong if name not in left],
        left,
    )


def _keyed(change: Change) -> dict[str, Any]:
    return {(name if name == SOURCE else f"source.options.{name}"): value for name, value in change.items()}


def _derives(change: Change) -> bool:
    """Say whether a change takes what is derived in place of what the source says, or the other way round."""
    return SOURCE in change or DERIVED in change.values()


def _best(trials: _Trials, singles: list[Change], before: Found) -> list[Change]:
    """Return the smallest change that mends everything, or else most; several if the drive does not tell them apart.

    One other reading is tried first, then what is derived, then two of them.  What is derived agrees by nature with
    what it is derived from, so that any other reading that explains as much is better.
    """
    wrong = {name for name, finding in before.items() if finding.verdict == "wrong"}
    if not wrong:
        return []
    blamed = {finding.blames for finding in before.values()}
    readings = [change for change in singles if not _derives(change)]
    ways_out = [change for change in singles if _derives(change) and not _source_of(change) & blamed]
    useful = [change for change in (*readings, *ways_out) if _mended(before, trials.of(change), wrong)]
    groups = (readings, ways_out, _pairs(readings, readings), _pairs(useful, useful))
    partly: list[tuple[int, list[Change]]] = []
    for group in groups:
        most, equal = _most(trials, group, before, wrong)
        if equal and most == len(wrong):
            return equal
        equal = [change for change in equal if not _baseless(trials.of(change))]
        if equal:
            partly.append((most, equal))
    return max(partly, key=lambda row: row[0], default=(0, []))[1]


def _source_of(change: Change) -> set[str]:
    """Return what a change derives something from."""
    return ({"velocity"} if SOURCE in change else set()) | ({"attitude"} if DERIVED in change.values() else set())


def _pairs(some: list[Change], others: list[Change]) -> list[Change]:
    pairs = ({**one, **two} for one in some for two in others if not one.keys() & two.keys())
    return list({tuple(sorted(pair.items())): pair for pair in pairs}.values())


def _most(trials: _Trials, group: list[Change], before: Found, wrong: set[str]) -> tuple[int, list[Change]]:
    """Return how many wrongs the best changes of a group mend, and which those are."""
    mended = [(_mended(before, trials.of(change), wrong), change) for change in group]
    most = max((count for count, _ in mended), default=0)
    equal = [change for count, change in mended if most and count == most]
    equal = [change for change in equal if _mended(before, trials.of(change, None), wrong) == most]
    shown = max((_right(trials.of(change)) for change in equal), default=0)
    return most, [change for change in equal if _right(trials.of(change)) == shown]


def _baseless(found: Found) -> bool:
    """Say whether something is still wrong that the other answers stand on: then what seems mended may be no better."""
    return any(_is(found, name, "wrong") and found[name].blames != "position" for name in BASES)


def _right(found: Found) -> int:
    return sum(finding.verdict == "ok" for finding in found.values())


def _mended(before: Found, after: Found, wrong: set[str]) -> int:
    """Return how many wrongs a change mends; 0 if anything else is worse for it, or nothing is shown to be right."""
    mended = right = 0
    for name, then in after.items():
        was = before.get(name)
        if was is None:  # a question that could not be asked before
            if then.verdict == "wrong":
                return 0
            continue
        if was.verdict != "wrong" and (then.verdict == "wrong" or _lost(was, then)):
            return 0
        if was.verdict == "wrong" and then.verdict == "unknown" and then.shown:
            return 0  # it is hidden, not mended
        if name in wrong and then.verdict != "wrong":
            right += then.verdict == "ok"
            mended += then.verdict == "ok" or not then.shown
    return mended if right else 0


def _lost(was: Finding, then: Finding) -> bool:
    """Say whether an answer that held is not given any more, though the question is still asked."""
    return was.verdict == "ok" and then.verdict == "unknown" and then.shown


def _contradicts(after: Found, other: Found) -> bool:
    """Say whether a reading is refuted: it makes wrong, or takes away, what another one shows to be right."""
    new = any(then.verdict == "wrong" and not _is(after, name, "wrong") for name, then in other.items())
    lost = any(was.verdict == "ok" and (name not in other or _lost(was, other[name])) for name, was in after.items())
    return new or lost


def _is(found: Found, name: str, verdict: str) -> bool:
    return name in found and found[name].verdict == verdict


def _settled(
    trials: _Trials,
    module: Any,
    values: Mapping[str, tuple[Any, ...]],
    base: Mapping[str, Any],
    changes: Change,
    after: Found,
) -> list[OptionFinding]:
    """Return what the drive says of each option that is a reading, not a choice."""
    out = []
    settling: Mapping[str, str] = getattr(module, "SETTLED_BY", {})
    for name, many in values.items():
        key = name if name == SOURCE else f"source.options.{name}"
        if name in changes:
            evidence = f"{changes[name]!r} explains what contradicts"
            out.append(OptionFinding(key, base[name], "wrong", evidence, changes[name]))
            continue
        if name == SOURCE or base[name] == DERIVED:
            continue  # both may be right
        others = [value for value in many if value not in (base[name], DERIVED)]
        open_ = [value for value in others if not _contradicts(after, trials.of({**changes, name: value}))]
        settled = after.get(settling.get(name, ""))
        if not others:
            continue
        if settled is not None and settled.verdict != "ok":
            evidence = f"{settled.evidence}; to settle it: {settled.manoeuvre}"
            out.append(OptionFinding(key, base[name], "unknown", evidence))
        elif open_:
            allowed = ", ".join(map(repr, open_))
            out.append(OptionFinding(key, base[name], "unknown", f"{allowed} would explain the drive as well"))
        else:
            out.append(OptionFinding(key, base[name], "ok", f"the drive contradicts {', '.join(map(repr, others))}"))
    return out
