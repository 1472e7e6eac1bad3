"""One case of the campaign: a source, a drive and a fault; its true state and the verdict of `motioncue check`."""

import dataclasses
from collections import Counter
from functools import cache

import numpy as np

from campaign.drives import states_of
from campaign.faults import FAULTS
from campaign.truth import choices, evidence, harm, mends, read_with
from campaign.wires import WIRES, options_of, say
from motioncue.errors import PacketError

__all__ = ["Case", "Outcome", "all_cases", "confusion", "described", "run"]

SEEN = 2.0  # evidence that counts as clear, in units of `truth.evidence`
UNSEEN = 0.5
UNHARMED = 0.5  # harm below which a fault does not count, in tolerances
MENDED = 1.0  # remaining harm that counts as corrected, in tolerances


@dataclasses.dataclass(frozen=True)
class Case:
    """A case to try."""

    source: str
    drive: str
    fault: str
    options: tuple = ()  # options of the profile, if the packets need other than the defaults


@dataclasses.dataclass
class Outcome:
    """The true state of a case, and what was reported."""

    case: Case
    kind: str  # "harmless", "evident", "hidden" or "between"
    verdict: str  # "ok", "unknown", "wrong" or "refused"
    harmed: dict
    shown: dict
    accused: list  # findings that are wrong although the fault does not affect them
    mendable: bool
    advice: str  # "none", "mends", "partly", "either", "leaves", "worsens"
    changes: dict
    findings: dict

    @property
    def false_ok(self):
        """Whether an evident fault that harms is not called wrong, or any other fault is called ok."""
        if self.kind == "evident" and max(self.harmed.values(), default=0.0) > 1.0 and self.verdict == "unknown":
            return True
        return self.kind in ("evident", "hidden") and self.verdict == "ok"

    @property
    def false_accusation(self):
        return (self.kind == "harmless" and self.verdict in ("wrong", "refused")) or bool(self.accused)

    @property
    def bad_advice(self):
        return self.advice in ("leaves", "worsens")

    @property
    def silent(self):
        """Whether one option would correct an evident fault and is not named."""
        return self.kind == "evident" and self.mendable and self.advice in ("none", "leaves", "worsens")

    @property
    def misled(self):
        return self.false_ok or self.false_accusation or self.bad_advice


def all_cases(drives):
    """Return every source with every fault on these drives."""
    return [Case(source, drive, fault) for source in WIRES for drive in drives for fault in FAULTS]


@cache
def _clean(source, drive):
    wire = WIRES[source]
    said = say(wire, drive)
    reading = read_with(wire, said, options_of(wire, drive))
    return said, reading, evidence(reading, states_of(drive)["time"][reading.about])


def quantities(wire):
    """Return the channel of each finding."""
    place = {"position", "velocity"} | ({"attitude"} if "velocity" in wire.in_car else set())
    course = {"attitude", "velocity"} | ({"position"} if "velocity" in wire.in_car else set())
    felt = {"acceleration", "velocity", "attitude"} | ({"position"} if "velocity" in wire.in_car else set())
    return {
        "velocity and position": place,
        "attitude and course": course,
        "yaw and course": course,
        "pitch and climb": course,
        "up": {"attitude"},
        "surge and speed": {"acceleration", "velocity", "attitude"},
        "sway and turning": felt,
        "heave and climb": felt,
        "roll and leaning": {"acceleration", "attitude"},
        "gravity": {"acceleration", "attitude"},
        "gravity at rest": {"acceleration", "attitude"},
        "rates and attitude": {"angular_velocity", "attitude"},
        "roll rate": {"angular_velocity", "attitude"},
        "pitch rate": {"angular_velocity", "attitude"},
        "yaw rate": {"angular_velocity", "attitude"},
        "frame time": {"time", "missing", "repeated"},
        "continuity": {"attitude", "angular_velocity", "velocity", "acceleration", "position", "time", "missing"},
        "frames": {"attitude", "angular_velocity", "velocity", "acceleration", "position"},
    }


def _harmed(finding, harmed):
    """Say whether a finding's first channel is affected."""
    return any(finding.startswith(channel.replace("_", " ")) for channel, size in harmed.items() if size > 1.0)


def _kind(case, wire, harmed, shown, clean):
    fault = FAULTS[case.fault]
    harmful = max(harmed.values(), default=0.0) > 1.0
    moves = np.ptp(states_of(case.drive)["position"], axis=0).max() > 20.0
    if "time" in fault.touches or {"frame_time", wire.step} & {name for name, _ in case.options}:
        return "evident" if fault.arrivals or moves or "three" not in case.fault else "hidden"
    apart = {name: size for name, size in shown.items() if size > SEEN and size > 2.5 * clean.get(name, 0.0)}
    if apart:
        return "evident"
    near = all(size <= max(UNSEEN, 1.2 * clean.get(name, 0.0)) for name, size in shown.items())
    if fault.touches & {"missing", "repeated"} or fault.small:
        return "between"
    if not fault.touches:
        return "harmless" if near else "between"
    if harmful:
        return "hidden" if near else "between"
    return "harmless" if near and max(harmed.values(), default=0.0) <= UNHARMED else "between"


def run(case, check):
    """Return the outcome of a case; None if the source's packets cannot express it."""
    wire, fault = WIRES[case.source], FAULTS[case.fault]
    clean, right, before = _clean(case.source, case.drive)
    states = states_of(case.drive)
    said = fault.change(wire, clean.copy(), states)
    if said is None:
        return None
    suits = options_of(wire, case.drive)
    base = {**suits, **dict(case.options)}
    found = read_with(wire, said, base)
    harmed = harm(found, right)
    shown = evidence(found, states["time"][found.about])
    kind = _kind(case, wire, harmed, shown, before)
    packages = [*wire.first, *(row.tobytes() for row in said.rows)]
    times = [*said.times[:1].repeat(len(wire.first)), *said.times] if fault.arrivals or not wire.clock else None
    options = {name: value for name, value in base.items() if "." not in name}
    acceleration = base.get("source.acceleration", "native")
    outcome = Outcome(case, kind, "refused", harmed, shown, [], False, "none", {}, {})
    singles = choices(wire.system, base)
    if kind == "evident" and max(harmed.values()) > 1.0:
        effects = (mends(wire, said, clean, base, suits, change, harmed) for change in singles)
        outcome.mendable = any(left < MENDED and added <= 1.0 for left, added in effects)
    try:
        report = check(wire.system, packages, times, options, acceleration=acceleration)
    except PacketError as error:
        outcome.findings = {"error": str(error)}
        return outcome
    outcome.verdict = report.verdict
    outcome.findings = {finding.name: (finding.verdict, finding.evidence) for finding in report.findings}
    touched = set(fault.touches)
    if case.options:
        touched = {"attitude", "velocity", "acceleration", "angular_velocity", "time"}
    about = quantities(wire)
    outcome.accused = [
        finding.name
        for finding in report.findings
        if finding.verdict == "wrong" and not touched & about[finding.name] and not _harmed(finding.name, harmed)
    ]
    outcome.changes = {name.removeprefix("source.options."): value for name, value in report.changes.items()}
    if outcome.changes:
        left, added = mends(wire, said, clean, base, suits, outcome.changes, harmed)
        outcome.advice = "worsens" if added > 1.0 else "mends" if left < MENDED else "leaves"
        if outcome.advice == "leaves" and left < max(harmed.values()):
            rest = read_with(wire, said, {**base, **outcome.changes})
            rest = evidence(rest, states["time"][rest.about])
            if not any(size > max(SEEN, 1.2 * before.get(name, 0.0)) for name, size in rest.items()):
                outcome.advice = "partly"  # the drive does not show the rest
    for change in report.either:
        change = {name.removeprefix("source.options."): value for name, value in change.items()}
        if mends(wire, said, clean, base, suits, change, harmed)[0] < MENDED:
            outcome.advice = "either"
    return outcome


def confusion(outcomes):
    """Return a table of true states against verdicts."""
    counts = Counter((outcome.kind, outcome.verdict) for outcome in outcomes)
    advice = Counter((outcome.kind, outcome.advice) for outcome in outcomes)
    head = f"{'truth':<10}{'ok':>7}{'open':>7}{'wrong':>7}{'refused':>9}"
    lines = [f"{head}   advice: none, mends, partly, either, leaves, worsens"]
    for kind in ("harmless", "evident", "hidden", "between"):
        said = [counts[kind, verdict] for verdict in ("ok", "unknown", "wrong", "refused")]
        given = [advice[kind, word] for word in ("none", "mends", "partly", "either", "leaves", "worsens")]
        lines.append(f"{kind:<10}{said[0]:>7}{said[1]:>7}{said[2]:>7}{said[3]:>9}   {given}")
    lines.append(f"cases {len(outcomes)}")
    lines.append(f"false ok {sum(outcome.false_ok for outcome in outcomes)}")
    lines.append(f"false accusations {sum(outcome.false_accusation for outcome in outcomes)}")
    lines.append(f"bad advice {sum(outcome.bad_advice for outcome in outcomes)}")
    silent = sum(outcome.silent for outcome in outcomes)
    lines.append(f"evident, one option would mend it, and it is not named {silent}")
    return "\n".join(lines)


def described(outcome):
    """Return one line about a case: what happened, the reported findings, and the largest harm and evidence."""
    errors = ("false_ok", "false_accusation", "bad_advice", "silent")
    words = [name.upper() for name in errors if getattr(outcome, name)]
    case = outcome.case
    words += [f"{case.source} / {case.drive} / {case.fault} {dict(case.options) or ''}:", outcome.kind]
    words += [outcome.verdict, outcome.advice, str(outcome.changes or "")]
    words += [f"wrong: {[name for name, (verdict, _) in outcome.findings.items() if verdict == 'wrong']}"]
    for title, sizes, least in (("harm", outcome.harmed, 1.0), ("evidence", outcome.shown, 1.0)):
        words += [title, str({name: round(float(size), 1) for name, size in sizes.items() if size > least})]
    return " ".join(words)
