"""Which change of a source's options would correct what is wrong; untried changes are not advised.

Every change is examined with all questions, alone and together with others, before it is advised.  It must turn a wrong
answer into one that is shown to be right: hiding a wrong one does not count, and no answer that held may become worse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from motioncue.check.compare import OPEN, Finding
from motioncue.check.description import axes_changed, is_twofold
from motioncue.sources.described.source import DescribedSource

TOGETHER = 4  # readings to change at once, at most, of which each corrects something alone
SEEDS = 4  # readings to combine with any other, of different kinds
USEFUL = 6  # of those readings, the most to combine
TRIED = 20_000  # frames to examine of each other reading, at most
DERIVED = "derived"  # value of options that ignore what the source reports
SOURCE = "source.acceleration"
PACKET = "source.packet"  # a correction of the description, in words
FELT = (
    "acceleration",
    "gravity",
    "surge",
    "sway",
    "heave",
)  # prefixes of options without effect if the acceleration is derived
WORSE = 0.02  # increase of a misfit that counts: an eighth more error of the slope
SAME = 1e-6  # difference of misfits that rounding makes
WORSE_DERIVED = 0.1  # the same for what is derived, which is smoother and later
WORSE_SHARE = 0.2  # the same as a share of a misfit that is noise: over 100 windows this is uncertain by 14 %
BETTER = 0.1  # share of a misfit that another reading leaves if it explains a drive decisively better
LOOSE = 0.1  # misfit from which on an answer that holds may hold better in another reading
COURSES = ("attitude and course", "yaw and course", "pitch and climb")  # findings that confirm the attitude
STEP_S = 0.0005  # physics step of a simulator, whose clock advances by whole steps [s]

# What a change must leave as it is unless it is about that: without frames that follow each other in time, no other
# question can be asked, and a wrong answer would vanish with its question.
GROUND = ("frames", "continuity", "frame time")

# The questions about accelerations and rates rest on these.
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

ACCELERATIONS = ("surge and speed", "sway and turning", "heave and climb")

Change = dict[str, Any]
Found = Mapping[str, Finding]


Findings = Callable[[Any, str, int | None, str], Sequence[Finding]]
"""Takes options, how the acceleration is had, the most frames, and a correction of the description."""


class OptionFinding(NamedTuple):
    """What the drive shows about one option of the source."""

    key: str
    value: Any  # the present value
    verdict: Literal["ok", "wrong", "unknown"]
    evidence: str
    better: Any = None  # the value that explains the drive


class Advice(NamedTuple):
    """Changes to make, and what the drive shows about each option."""

    options: list[OptionFinding]
    changes: dict[str, Any]  # by profile key
    either: list[dict[str, Any]]  # if there are none: changes that correct as much, of which the drive settles none
    mended: list[str]  # findings that the changes correct
    left: list[str]  # wrong findings that no change corrects


class _Trials:
    """Results of each change of the options, examined once."""

    def __init__(self, findings: Findings, now: Any, acceleration: str, module: Any, packages: int) -> None:
        self._findings, self._now, self._acceleration, self._module = findings, now, acceleration, module
        self._is_long = packages > TRIED
        self._seen: dict[tuple[tuple[str, Any], ...], Found] = {}

    def axes_changed(self, change: Change) -> tuple[str, int]:
        """Return whose directions of axes a change of the description turns, if any, and how many, options counted."""
        key, turned = axes_changed(change[PACKET], self._module) if PACKET in change else ("", 0)
        return key, turned + len(change) - 1 if key else 0

    def is_twofold(self, change: Change) -> bool:
        """Say whether a change of the description corrects two mistakes."""
        return PACKET in change and is_twofold(change[PACKET], self._module)

    def of(self, change: Change, most: int | None = TRIED) -> Found:
        """Return the findings with a change, by name."""
        most = most if self._is_long else None
        key = (*sorted(change.items()), ("frames", most))
        if key not in self._seen:
            fields = {name: value for name, value in change.items() if name not in (SOURCE, PACKET)}
            options = msgspec.structs.replace(self._now, **fields)
            found = self._findings(options, change.get(SOURCE, self._acceleration), most, change.get(PACKET, ""))
            self._seen[key] = {finding.name: finding for finding in found}
        return self._seen[key]


def choices(module: Any, now: Any, acceleration: str) -> dict[str, tuple[Any, ...]]:
    """Return the possible values of each option that a drive can settle."""
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
    named |= {name: (getattr(now, name), *values) for name, values in numbers.items()}
    derived = acceleration != "native"
    return {name: values for name, values in named.items() if not (derived and name.startswith(FELT))}


def _clock(module: Any, now: Any, before: Found) -> list[Change]:
    """Return the change that makes the simulator's clock as fast as the car moves, if any."""
    name: str | None = getattr(module, "CLOCK", None)
    pace = max((finding.pace or 0.0 for finding in before.values()), default=0.0)
    if name is None or not pace:
        return []
    value = getattr(now, name) / pace
    steps = round(value / STEP_S)
    return [{name: steps * STEP_S if steps and abs(steps * STEP_S / value - 1.0) < 0.03 else float(f"{value:.3g}")}]


def advise(
    findings_of: Findings,
    module: Any,
    now: Any,
    acceleration: str,
    findings: Sequence[Finding],
    corrections: Iterable[str] = (),
    *,
    packages: int = TRIED + 1,
) -> Advice:
    """Return the changes to advise, corrections of the description among them."""
    values = {**choices(module, now, acceleration), SOURCE: ("native", "from_velocity")}
    base = {**{name: getattr(now, name) for name in values if name != SOURCE}, SOURCE: acceleration}
    trials = _Trials(findings_of, now, acceleration, module, packages)
    before = {finding.name: finding for finding in findings}
    singles = [{name: value} for name, many in values.items() for value in many if value != base[name]]
    if _another_unit(module, findings):
        singles = [change for change in singles if change.get(SOURCE) != "from_velocity"]
    singles += [{PACKET: words} for words in corrections]
    vectors: Sequence[Set[str]] = getattr(module, "VECTORS", ())
    best = _best(trials, [*singles, *_clock(module, now, before)], vectors, before)
    # What is derived agrees with its source whatever the description says, so that it shows no correction to be right.
    best = [change for change in best if not (PACKET in change and _derives(change))]
    settling: Mapping[str, str] = getattr(module, "SETTLED_BY", {})
    best = [_refined(trials, change, singles) for change in best or [{}]]
    best = [change for change in best if change]
    sure = len(best) == 1 and _sure(before, best[0], trials.of(best[0], None), settling)
    changes = best[0] if sure else {}
    after = trials.of(changes, None) if changes else before
    wrong = [name for name, finding in before.items() if finding.verdict == "wrong"]
    left = [name for name in wrong if not changes or (name in after and after[name].verdict == "wrong")]
    options = _settled(trials, settling, values, base, changes, before, after)
    return Advice(
        options,
        _keyed(changes),
        [] if sure else [_keyed(change) for change in best],
        [name for name in wrong if name not in left],
        left,
    )


def _refined(trials: _Trials, change: Change, singles: Sequence[Change]) -> Change:
    """Return a change together with each other reading that explains what holds with it decisively better."""
    found = trials.of(change)
    loose = [name for name, then in found.items() if then.verdict == "ok" and then.misfit > LOOSE]
    for other in singles if loose and not any(_is(found, name, "wrong") for name in GROUND) else ():
        if _derives(other) or PACKET in other or other.keys() & change.keys():
            continue
        after = trials.of({**change, **other})
        worse = any(then.verdict == "wrong" and not _is(found, name, "wrong") for name, then in after.items())
        lost = any(name not in after or _lost(was, after[name]) for name, was in found.items())
        # An answer about which the other reading says nothing stays as loose as it is.
        about = [name for name in loose if _is(after, name, "ok") and not _is_as_loose(found[name], after[name])]
        better = about and all(after[name].misfit < BETTER * found[name].misfit for name in about)
        if better and not worse and not lost:
            return _refined(trials, {**change, **other}, singles)
    return change


def _is_as_loose(was: Finding, then: Finding) -> bool:
    """Say whether an answer deviates as much as before, but for noise and other windows."""
    return abs(then.misfit - was.misfit) <= max(WORSE, WORSE_SHARE * was.misfit)


def _another_unit(module: Any, findings: Sequence[Finding]) -> bool:
    """Say whether an acceleration is wrong by a factor that deriving it from the velocity would only hide.

    It hides a velocity of another unit if no position confirms the velocity; a description can say the unit itself.
    """
    confirmed = any(finding.name == "velocity and position" and finding.verdict == "ok" for finding in findings)
    scaled = any(finding.times and finding.name in ACCELERATIONS for finding in findings)
    return scaled and (not confirmed or isinstance(module, DescribedSource))


def _sure(before: Found, change: Change, after: Found, settling: Mapping[str, str]) -> bool:
    """Say whether only the change explains the drive.

    It may not if the drive leaves open what settles it, or if a wrong position or attitude explains as much.  Where no
    position confirms the velocity, that may be what is wrong, and an acceleration derived from it would be too; so may
    an attitude that no course confirms, and rates derived from it.
    """
    if change.get(SOURCE) == "from_velocity" and not _is(after, "velocity and position", "ok"):
        return False
    if DERIVED in change.values() and not any(_is(after, name, "ok") for name in COURSES):
        return False
    settled = not any(_is(after, settling[name], "unknown") for name in change if name in settling)
    mended = [was for name, was in before.items() if was.verdict == "wrong" and not _is(after, name, "wrong")]
    blames = {was.blames for was in mended if was.name not in GROUND}
    confirmed = any(
        then.verdict == "ok" and name in before and before[name].verdict == "unknown" for name, then in after.items()
    )
    # A rate of the opposite sign may mean that the angle's is wrong, unless something else agrees with the rate now.
    either = {*OPEN} if confirmed else {*OPEN, "attitude"}
    return settled and not (blames and blames <= either)


def _keyed(change: Change) -> dict[str, Any]:
    return {(name if name in (SOURCE, PACKET) else f"source.options.{name}"): value for name, value in change.items()}


def _derives(change: Change) -> bool:
    """Say whether a change derives what the source reports, or the reverse."""
    return SOURCE in change or DERIVED in change.values()


def _best(trials: _Trials, singles: list[Change], vectors: Sequence[Set[str]], before: Found) -> list[Change]:
    """Return the smallest changes that correct everything, or else most; more than one if indistinguishable.

    One other reading is tried first, then elements of one vector turned together, then any two, then several that each
    correct something, then a derived quantity, then two with these.  Of several changes together, each is also replaced
    by every other reading, and two axes of the description are reversed, which may explain as much.  A derived quantity
    always agrees with its source, so any other readings that explain as much are preferred.
    """
    wrong = {name for name, finding in before.items() if finding.verdict == "wrong"}
    if not wrong:
        return []
    partly: list[tuple[int, list[Change]]] = []
    for group in _groups(trials, singles, vectors, before, wrong):
        most, equal = _most(trials, group, before, wrong)
        if equal and most == len(wrong):
            return _most(trials, [*equal, *_neighbors(trials, equal, singles)], before, wrong)[1]
        equal = [change for change in equal if not _baseless(before, trials.of(change))]
        if equal:
            partly.append((most, equal))
    return max(partly, key=lambda row: row[0], default=(0, []))[1]


def _groups(
    trials: _Trials, singles: list[Change], vectors: Sequence[Set[str]], before: Found, wrong: set[str]
) -> Iterable[list[Change]]:
    """Yield groups of changes to try, the smallest first."""
    blamed = {finding.blames for finding in before.values()}
    readings = [change for change in singles if not _derives(change)]
    ways_out = [change for change in singles if _derives(change) and not _source_of(change) & blamed]
    twofold = [change for change in readings if trials.is_twofold(change)]
    yield [change for change in readings if change not in twofold]
    mending = [change for change in readings if _helps(before, trials.of(change))][:USEFUL]
    of_one = [[change for change in readings if change.keys() <= names] for names in vectors]
    for count in range(2, TOGETHER):
        yield _several(of_one, count)
    yield [*_several([mending], 2), *twofold]
    legible = [change for change in readings if PACKET not in change and not _garbles(before, trials.of(change))]
    yield _distinct([*_with_any(_seeds(trials, readings, before), readings), *_pairs(legible, legible), *twofold])
    for count in range(3, TOGETHER + 1):
        yield _several([mending], count)
    yield ways_out
    both = (*readings, *ways_out)
    useful = [change for change in both if _mended(before, trials.of(change), wrong, _derives(change))]
    yield _pairs(useful, useful)


def _neighbors(trials: _Trials, changes: Sequence[Change], singles: Sequence[Change]) -> list[Change]:
    """Return changes of several options with one of them replaced by any other reading, and what is as much.

    Half a turn of the world or of the car about a level axis is described by two axes, and as much as two options.
    """
    readings = [change for change in singles if not _derives(change) and PACKET not in change]
    several = any(len(change) > 1 and not _derives(change) for change in changes)
    out = [change for change in singles if several and trials.is_twofold(change)]
    for change in changes:
        for name in change if len(change) > 1 and not _derives(change) else ():
            rest = {key: value for key, value in change.items() if key != name}
            out += [{**rest, **other} for other in readings if not other.keys() & change.keys()]
    return _distinct(out)


def _seeds(trials: _Trials, readings: Sequence[Change], before: Found) -> list[Change]:
    """Return the readings with which the least is wrong or lost, one of each kind, to be combined with any others."""

    def left(change: Change) -> tuple[int, float]:
        found = trials.of(change)
        wrong = [finding for finding in found.values() if finding.verdict == "wrong"]
        lost = sum(was.verdict == "ok" and _is(found, name, "unknown") for name, was in before.items())
        unasked = sum(name not in found for name in before)
        return len(wrong) + lost - unasked, sum(min(one.misfit, 10.0) for one in wrong)

    now = sum(finding.verdict == "wrong" for finding in before.values())
    ranked = sorted((left(change), n) for n, change in enumerate(readings))
    best: dict[str, Change] = {}
    for (wrong, _), n in ranked:
        if wrong < now or now > 1:
            best.setdefault(_kind(readings[n]), readings[n])
    return list(best.values())[:SEEDS]


def _kind(change: Change) -> str:
    """Return what a reading is about: the option, or what a correction of the description begins with."""
    ((name, value),) = change.items()
    return str(value).partition(" = ")[0].partition(":")[0] if name == PACKET else name


def _with_any(seeds: Sequence[Change], readings: Sequence[Change]) -> list[Change]:
    """Return each seed with each other reading; two corrections of a description become one."""
    out = []
    for one in seeds:
        for two in readings:
            if one.keys() == two.keys() == {PACKET}:
                if one[PACKET].partition(" = ")[0] != two[PACKET].partition(" = ")[0]:
                    out.append({PACKET: "; ".join(sorted((one[PACKET], two[PACKET])))})
            elif not one.keys() & two.keys():
                out.append({**one, **two})
    return _distinct(out)


def _garbles(before: Found, after: Found) -> bool:
    """Say whether a change makes packets unreadable or their clock wrong; a second change would not correct that."""
    return any(_is(after, name, "wrong") and not _is(before, name, "wrong") for name in ("frames", "frame time"))


def _source_of(change: Change) -> set[str]:
    """Return the quantities from which a change derives something; the attitude turns the velocity into car axes."""
    return ({"velocity"} if SOURCE in change else set()) | ({"attitude"} if _derives(change) else set())


def _several(groups: Sequence[Sequence[Change]], count: int) -> list[Change]:
    """Return all combinations of so many changes of different options, out of each group."""
    merged = (
        {key: value for change in some for key, value in change.items()}
        for group in groups
        for some in combinations(group, count)
    )
    return _distinct(change for change in merged if len(change) == count)


def _pairs(some: list[Change], others: list[Change]) -> list[Change]:
    pairs = ({**one, **two} for one in some for two in others if not one.keys() & two.keys())
    return _distinct(pairs)


def _distinct(changes: Iterable[Change]) -> list[Change]:
    return list({tuple(sorted(change.items())): change for change in changes}.values())


def _most(trials: _Trials, group: list[Change], before: Found, wrong: set[str]) -> tuple[int, list[Change]]:
    """Return how many wrong findings the best changes of a group correct, and these changes."""
    mended = [(_mended(before, trials.of(change), wrong, _derives(change)), change) for change in group]
    most = max((count for count, _ in mended), default=0)
    equal = [change for count, change in mended if most and count == most]
    equal = [c for c in equal if _mended(before, trials.of(c, None), wrong, _derives(c)) == most]
    shown = max((_right(trials.of(change)) for change in equal), default=0)
    equal = [change for change in equal if _right(trials.of(change)) == shown]
    # Of axes that explain as much, those that leave most as it is described.
    fewest = {
        key: min((turned for k, turned in map(trials.axes_changed, equal) if k == key))
        for key in {trials.axes_changed(change)[0] for change in equal}
    }
    return most, _different(
        trials, [c for c in equal if trials.axes_changed(c)[1] == fewest[trials.axes_changed(c)[0]]]
    )


def _different(trials: _Trials, changes: list[Change]) -> list[Change]:
    """Return the changes, without others that give the same motion."""
    out: dict[float, Change] = {}
    for change in changes:
        digest = next(iter(trials.of(change, None).values())).digest
        if not any(abs(digest - other) <= SAME * max(1.0, abs(other)) for other in out):
            out[digest] = change
    return list(out.values())


def _baseless(before: Found, after: Found) -> bool:
    """Say whether a change is unfounded: what the others rest on is still wrong, or it corrects nothing else."""
    shown = any(_is(before, name, "wrong") and _is(after, name, "ok") for name in before if name not in GROUND)
    return not shown or any(_is(after, name, "wrong") and after[name].blames != "position" for name in BASES)


def _right(found: Found) -> int:
    return sum(finding.verdict == "ok" for finding in found.values())


def _mended(before: Found, after: Found, wrong: set[str], derived: bool = False) -> int:
    """Return how many wrong findings a change corrects; 0 if it explains less than all that it affects.

    It explains nothing if other answers become worse, if a wrong answer changes and is still wrong, or if no answer is
    shown to be right.
    """
    mended = right = 0
    # Of other frames, or of other windows of them, answers weaker or stronger say nothing.
    other = _is(before, "frames", "wrong") or _is(before, "frame time", "wrong")
    worse = np.inf if other else WORSE_DERIVED if derived else WORSE
    for name, then in after.items():
        was = before.get(name)
        if was is None:  # a question that could not be asked before
            if then.verdict == "wrong":
                return 0
            continue
        if was.verdict != "wrong" and (then.verdict == "wrong" or _lost(was, then, worse)):
            return 0
        if was.verdict == "wrong" and then.verdict == "wrong" and abs(then.misfit - was.misfit) > SAME:
            return 0
        if was.verdict == "wrong" and then.verdict == "unknown" and then.shown:
            return 0  # hidden, not corrected
        if name == COURSES[0] and not was.shown and then.verdict == "unknown" and then.shown:
            return 0  # the car would reverse throughout
        if was.verdict == "wrong" and then.verdict == "ok" and 0.0 < was.misfit < then.misfit - worse:
            return 0  # what was late, say, deviates more now
        if name in wrong and then.verdict != "wrong":
            right += then.verdict == "ok"
            mended += then.verdict == "ok" or not then.shown
    # A derived quantity need not be shown to be right: it is as right as its source.
    return mended if right or derived else 0


def _helps(before: Found, after: Found) -> bool:
    """Say whether a change corrects some answer and makes none worse; others may stay wrong."""
    worse = any(
        name in before and before[name].verdict != "wrong" and then.verdict == "wrong" for name, then in after.items()
    )
    lost = any(name in before and _lost(before[name], then, WORSE_DERIVED) for name, then in after.items())
    return not worse and not lost and any(_is(before, name, "wrong") and _is(after, name, "ok") for name in after)


def _lost(was: Finding, then: Finding, worse: float = WORSE) -> bool:
    """Say whether an answer that held is weaker now, or is missing although its question is still asked."""
    if was.verdict != "ok":
        return False
    if then.verdict == "ok":
        return then.misfit > was.misfit + max(worse, WORSE_SHARE * was.misfit)
    return then.verdict == "unknown" and (then.shown or then.name in GROUND)


def _contradicts(after: Found, other: Found) -> bool:
    """Say whether a reading is refuted: it makes an answer wrong or lost that another reading shows to be right."""
    new = any(then.verdict == "wrong" and not _is(after, name, "wrong") for name, then in other.items())
    lost = any(was.verdict == "ok" and (name not in other or _lost(was, other[name])) for name, was in after.items())
    return new or lost


def _is(found: Found, name: str, verdict: str) -> bool:
    return name in found and found[name].verdict == verdict


def _settled(
    trials: _Trials,
    settling: Mapping[str, str],
    values: Mapping[str, tuple[Any, ...]],
    base: Mapping[str, Any],
    changes: Change,
    before: Found,
    after: Found,
) -> list[OptionFinding]:
    """Return what the drive shows about each option that is a reading, not a choice."""
    out = []
    for name, many in values.items():
        key = name if name == SOURCE else f"source.options.{name}"
        if name in changes:
            contradicts = any(finding.verdict == "wrong" for finding in before.values())
            what = "what contradicts" if contradicts else "the drive decisively better"
            evidence = f"{changes[name]!r} explains {what}"
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
            evidence = settled.evidence + (f"; to settle it: {settled.maneuver}" if settled.maneuver else "")
            out.append(OptionFinding(key, base[name], "unknown", evidence))
        elif open_:
            allowed = ", ".join(map(repr, open_))
            out.append(OptionFinding(key, base[name], "unknown", f"{allowed} would explain the drive as well"))
        else:
            out.append(OptionFinding(key, base[name], "ok", f"the drive contradicts {', '.join(map(repr, others))}"))
    return out
