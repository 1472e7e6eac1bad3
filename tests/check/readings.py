"""Wrong readings of every system's honest packets, the motion that is right, and what `motioncue check` says of them.

A fault is a wrong option, or, of a described source, a mistake in the description: a sign, exchanged channels, a unit,
the order of a quaternion or of angles, an axis.  The packets are the virtual car's, so the right motion is known;
whether the drive can show a fault is measured by `campaign.truth`, which does not use `motioncue check`.

``python tests/check/readings.py [STEP [OFFSET]]`` prints the counts and every case that is not as it should be.
"""

import sys
import time
from collections import Counter
from functools import cache
from itertools import combinations
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "support")]

import msgspec
import numpy as np
from campaign import truth
from campaign.drives import by_phone, states_of, with_turned_roll
from campaign.wires import INVENTED, WIRES, options_of

from motioncue import sources
from motioncue.check.check import check
from motioncue.check.description import corrected
from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import ConfigError, PacketError
from motioncue.sources import DescribedSource
from motioncue.sources.described.channels import CHANNELS, UNITS
from motioncue.sources.described.twin import Car, channel_values, encode
from motioncue.wire.packet import Derivation

__all__ = [
    "GOOD",
    "SOURCES",
    "Case",
    "Outcome",
    "campaign",
    "counts",
    "faults_of",
    "outcome_of",
    "pairs",
    "shown_of",
    "singles",
]

SOURCES = (*(name for name in WIRES if name not in INVENTED), *sources.described_profiles())
DRIVES = ("tour", "turns", "eight", "town", "rally", "tour without a stop", "eight, banked")
PHONES = ("town by phone", "eight by phone", "town by GPS", "rally by GPS", "town by slow GPS")
SOURCE = "source.acceleration"


@cache
def driven(drive):
    """Return the states of a drive, as a phone, a receiver of GPS or a simulator says it if its name says so."""
    name, _, how = drive.partition(" by ")
    states = states_of(name)
    if how == "turned roll":
        return with_turned_roll(states)
    return by_phone(states, *{"phone": (1.0, 0.0), "GPS": (10.0, 0.1), "slow GPS": (1.0, 0.4)}[how]) if how else states


class Case(NamedTuple):
    """Faults in the reading of a source's packets of a drive."""

    source: str
    drive: str
    faults: tuple[str, ...]


class Outcome(NamedTuple):
    """What was said of a case, and what is true."""

    case: Case
    kind: str  # "harmless", "hidden", "evident", "between"
    verdict: str
    # "none", "right", "rest" (the drive does not show what is left of two), "partly", "open" (it is among several) or
    # "wrong".
    advice: str
    words: str
    wrong: tuple[str, ...]
    seconds: float
    shown: bool = False  # whether the drive shows each fault alone
    after: str = ""  # what is said of the reading that was advised, if something is left of the faults

    @property
    def is_wrong_ok(self):
        return self.kind in ("hidden", "evident", "between") and "ok" in (self.verdict, self.after)

    @property
    def is_accused(self):
        return self.kind == "harmless" and not self.case.faults and self.verdict in ("wrong", "refused")

    @property
    def is_unseen(self):
        return self.kind == "evident" and self.verdict in ("ok", "unknown")


# The packets.


@cache
def sent(source, drive):
    """Return the packages of a drive, when each came [s], and the index of its state."""
    states = driven(drive)
    if source in WIRES:
        wire = WIRES[source]
        rows = wire.encode(states)
        first = list(wire.first)
        time = states["time"]
        return [*first, *(row.tobytes() for row in rows)], [*time[:1].repeat(len(first)), *time], len(first)
    module = sources.by_profile(source)
    table = module.table
    values = channel_values(table, states) | {"time": states["time"]}
    values["frame_duration"] = np.diff(states["time"], prepend=states["time"][0])
    forms = [*(form for form in table.forms if form.role in ("part", "needed")), table]
    rows = [encode(table, form, values, len(states)) for form in forms]
    car = Car(module)
    packages = [car._enciphered(row[index], index) for index in range(len(states)) for row in rows]
    return packages, states["time"].repeat(len(rows)).tolist(), 0


def honest(source, drive):
    """Return the module or name of a source, and the options of its right reading."""
    if source in WIRES:
        return WIRES[source].system, options_of(WIRES[source], drive.partition(" by ")[0])
    return sources.by_profile(source), {}


def read(system, packages, times, options, about):
    """Return the motion that a reading makes of packages; `about` is the first of them that has a state."""
    options = dict(options)
    acceleration = options.pop(SOURCE, "native")
    module = sources.source(system)
    intake = module.intake(msgspec.convert(options, module.Options), derivation=Derivation(acceleration))
    intake.begin(1)
    motion, world, states = [], [], []
    for index, (package, arrival) in enumerate(zip(packages, times, strict=True)):
        before = intake.accepted
        intake.feed(package, 1 + round(arrival * 1e9))
        if intake.accepted > before:
            motion.append(intake.frame().tobytes())
            world.append(intake.world())
            states.append(index)
    places = np.array(world).reshape(-1, 2, 3)
    every = np.unique(np.array(times)[about:], return_inverse=True)[1]  # packages of one time are of one state
    states = every[np.array(states, np.intp) - about]
    rows = np.frombuffer(b"".join(motion), MOTION_DTYPE)
    return truth.Reading(rows, places[:, 0], places[:, 1], states, len(np.unique(every)) - len(rows))


@cache
def right(source, drive, chosen=()):
    """Return the right reading, with quantities derived or reported as another reading has them, and the evidence
    against it."""
    system, options = honest(source, drive)
    packages, times, about = sent(source, drive)
    reading = read(system, packages, times, {**options, **dict(chosen)}, about)
    return reading, truth.evidence(reading, driven(drive)["time"][reading.about])


def chosen_of(case, options):
    """Return what a reading derives although the right one does not, or the reverse, by option.

    Both are right, and what is derived is smoother and later: a reading is compared with the right one that derives
    the same.
    """
    system, right_options = honest(case.source, case.drive)
    usual = {SOURCE: "native", **msgspec.to_builtins(sources.source(system).Options()), **right_options}
    return tuple(
        (name, value)
        for name, value in options.items()
        if (name == SOURCE or "derived" in (value, usual[name])) and value != usual[name]
    )


# The faults.


def _exchanged(table, one, other):
    names = {one: other, other: one}
    return _each(table, lambda f: msgspec.structs.replace(f, channel=names.get(f.channel, f.channel)))


def _each(table, change):
    """Return a description with each field changed."""
    forms = tuple(msgspec.structs.replace(form, fields=tuple(map(change, form.fields))) for form in table.forms)
    return msgspec.structs.replace(table, fields=tuple(map(change, table.fields)), forms=forms)


def _in_unit(table, vectors, unit):
    def change(field):
        if field.channel is None or not CHANNELS[field.channel].vector.startswith(vectors):
            return field
        units = UNITS[CHANNELS[field.channel].quantity]
        was = field.unit or next(iter(units))
        now = unit if was != unit else next(iter(units))
        return msgspec.structs.replace(field, unit=now)

    return _each(table, change)


def _turned(table, channel):
    return _each(
        table,
        lambda f: msgspec.structs.replace(f, scale=-f.scale, bias=-f.bias) if f.channel == channel else f,
    )


QUATERNION = [f"quaternion_{axis}" for axis in "wxyz"]


def _rolled(table, by):
    names = dict(zip(QUATERNION, QUATERNION[by:] + QUATERNION[:by], strict=True))
    return _each(table, lambda f: msgspec.structs.replace(f, channel=names.get(f.channel, f.channel)))


OPPOSITE = dict(
    zip(
        ("north", "east", "up", "south", "west", "down", "forward", "right", "back", "left"),
        ("south", "west", "down", "north", "east", "up", "back", "left", "forward", "right"),
        strict=True,
    )
)


def _mistakes(table, channels):
    """Yield mistakes in a description: name and wrong description."""
    for one, other in (
        ("surge", "sway"),
        ("sway", "heave"),
        ("roll", "pitch"),
        ("roll_rate", "pitch_rate"),
        ("acceleration_x", "acceleration_z"),
        ("velocity_x", "velocity_z"),
        ("angular_velocity_x", "angular_velocity_z"),
        ("position_x", "position_z"),
    ):
        if one in channels and other in channels:
            yield f"{one} and {other} exchanged", _exchanged(table, one, other)
    for vectors, unit in (
        ("angles", "deg"),
        ("angular_velocity", "deg/s"),
        ("acceleration", "g"),
        ("velocity", "km/h"),
        ("position", "cm"),
    ):
        if any(CHANNELS[name].vector == vectors for name in channels):
            yield f"{vectors} in {unit}", _in_unit(table, vectors, unit)
    for channel in channels:
        if CHANNELS[channel].vector in ("forward", "right", "up", "position") or channel in QUATERNION[1:]:
            yield f"{channel} turned", _turned(table, channel)
    if "quaternion_w" in channels:
        yield "quaternion w taken for x", _rolled(table, 1)
        yield "quaternion x taken for w", _rolled(table, 3)
    if table.world is not None:
        x, y, z = table.world
        yield "world mirrored", msgspec.structs.replace(table, world=(OPPOSITE[x], y, z))
        yield "world turned", msgspec.structs.replace(table, world=(OPPOSITE[x], y, OPPOSITE[z]))
        yield "world's x and z exchanged", msgspec.structs.replace(table, world=(z, y, x))
    if table.car is not None:
        x, y, z = table.car
        yield "car mirrored", msgspec.structs.replace(table, car=(OPPOSITE[x], y, z))
        yield "car turned", msgspec.structs.replace(table, car=(OPPOSITE[x], y, OPPOSITE[z]))
        yield "car's x and z exchanged", msgspec.structs.replace(table, car=(z, y, x))
    if "yaw" in channels:
        yield "yaw from east", msgspec.structs.replace(table, heading_from="east")
        if "roll_rate" not in channels or table.rates != "angles":
            yield "angles in another order", msgspec.structs.replace(table, order=("roll", "pitch", "yaw"))


@cache
def faults_of(source):
    """Return every fault of a source: name and what is read wrongly, an option or a function of a description."""
    system, options = honest(source, "tour")
    out = {}
    for change in truth.choices(system, options):
        ((name, value),) = change.items()
        if name != SOURCE and value != "derived":
            out[f"{name} = {value}"] = change
    if isinstance(system, DescribedSource):
        for name, _ in _mistakes(system.table, system.channels):
            try:
                module = DescribedSource(dict(_mistakes(system.table, system.channels))[name])
                module.intake()
            except ConfigError:
                continue  # refused before anything is read
            out[name] = None
    return out


def misread(case):
    """Return the system and the options of a case; None if it is refused or contradicts itself."""
    system, options = honest(case.source, case.drive)
    known = faults_of(case.source)
    for name in case.faults:
        if known[name] is None:
            table = dict(_mistakes(system.table, system.channels)).get(name)
            try:
                system = DescribedSource(table, system.name)
            except (ConfigError, TypeError):
                return None
    for name in case.faults:
        options = {**options, **(known[name] or {})}
    try:
        msgspec.convert({k: v for k, v in options.items() if k != SOURCE}, sources.source(system).Options)
        sources.source(system).intake(msgspec.convert(options, sources.source(system).Options))
    except (msgspec.ValidationError, ConfigError):
        return None
    return system, options


# What is said of them.


def _left(case, system, options):
    """Return how far a reading is from the right one, in tolerances, and whether the drive shows that."""
    packages, times, about = sent(case.source, case.drive)
    try:
        base, _ = right(case.source, case.drive, chosen_of(case, options))
        reading = read(system, packages, times, options, about)
    except (ConfigError, msgspec.ValidationError):
        return np.inf, True
    if len(reading.motion) < 2:
        return np.inf, True
    _, clean = right(case.source, case.drive)
    return max(truth.harm(reading, base).values()), _is_evident(reading, case.drive, clean)


def _is_evident(reading, drive, clean):
    """Say whether the drive contradicts a reading clearly, and much more than the right one."""
    shown = truth.evidence(reading, driven(drive)["time"][reading.about])
    return any(strength > 2.0 and strength > 2.5 * clean.get(name, 0.0) for name, strength in shown.items())


@cache
def _is_shown(source, drive, fault):
    """Say whether the drive contradicts a reading with this fault alone."""
    system, options = misread(Case(source, drive, (fault,)))
    left, evident = _left(Case(source, drive, (fault,)), system, options)
    return left > 1.0 and evident


def outcome_of(case):
    """Return the outcome of a case; None if no such reading is possible."""
    begun = time.perf_counter()
    wrong = misread(case)
    if wrong is None:
        return None
    system, options = wrong
    packages, times, about = sent(case.source, case.drive)
    _, clean = right(case.source, case.drive)
    base, _ = right(case.source, case.drive, chosen_of(case, options))
    reading = read(system, packages, times, options, about)
    harmed = truth.harm(reading, base)
    shown = truth.evidence(reading, driven(case.drive)["time"][reading.about])
    harmful = max(harmed.values()) > 1.0
    if not harmful:
        kind = "harmless"
    elif not len(reading.motion) or any(s > 2.0 and s > 2.5 * clean.get(n, 0.0) for n, s in shown.items()):
        kind = "evident"
    elif all(s <= max(0.5, 1.2 * clean.get(n, 0.0)) for n, s in shown.items()):
        kind = "hidden"
    else:
        kind = "between"
    acceleration = options.get(SOURCE, "native")
    said = {name: value for name, value in options.items() if name != SOURCE}
    try:
        report = check(system, packages, times, said, acceleration=acceleration)
    except PacketError as error:
        return Outcome(case, kind, "refused", "none", str(error), (), time.perf_counter() - begun)
    accused = tuple(finding.name for finding in report.findings if finding.verdict == "wrong")

    def applied(changes):
        module, said = system, dict(options)
        for key, value in changes.items():
            if key == "source.packet":
                module = corrected(system, value)
            else:
                said[key.removeprefix("source.options.")] = value
        left, evident = _left(case, module, said)
        return "right" if left < 1.0 else "" if evident else "rest"

    def said_after(changes):
        """Return what is said of a reading with these changes."""
        fields = {key.removeprefix("source.options."): value for key, value in changes.items()}
        module = corrected(system, fields.pop("source.packet")) if "source.packet" in fields else system
        fields = {**options, **fields}
        how = fields.pop(SOURCE, "native")
        return check(module, packages, times, fields, acceleration=how).verdict

    advice = "none"
    if report.changes:
        advice = applied(report.changes) or ("partly" if report.left else "wrong")
    elif len(report.either) == 1:  # "this would mend it"
        advice = applied(report.either[0]) or ("partly" if len(case.faults) > 1 else "wrong")
    elif report.either:
        found = {applied(each) for each in report.either}
        advice = "open" if "right" in found else "rest" if "rest" in found else "wrong"
    if advice == "rest" and len(case.faults) < 2:
        advice = "wrong"  # of one mistake nothing may be left
    words = str(report.changes or report.either or "")
    seconds = time.perf_counter() - begun
    shown = all(_is_shown(case.source, case.drive, fault) for fault in case.faults)
    after = said_after(report.changes) if report.changes and advice == "rest" else ""
    return Outcome(case, kind, report.verdict, advice, words, accused, seconds, shown, after)


def singles():
    """Return every case of no fault on every drive, and of one fault on one drive each."""
    out = [Case(source, drive, ()) for source in SOURCES for drive in (*DRIVES, *PHONES)]
    for source in SOURCES:
        out += [Case(source, DRIVES[n % len(DRIVES)], (fault,)) for n, fault in enumerate(faults_of(source))]
    return out


def pairs(step=1):
    """Return every `step`-th case of two faults, each pair on one drive; two values of one option are no pair."""
    every = [
        (source, two)
        for source in SOURCES
        for two in combinations(faults_of(source), 2)
        if len({name.partition(" = ")[0] for name in two}) == 2
    ]
    return [Case(source, DRIVES[n % len(DRIVES)], two) for n, (source, two) in enumerate(every)][::step]


def is_chosen(case):
    """Say whether all faults of a case are options, which options mend."""
    return all(faults_of(case.source)[fault] for fault in case.faults)


def campaign():
    """Return the cases of the whole campaign: some 1000, of which a part is every so many of them."""
    every = pairs()
    chosen, others = ([case for case in every if is_chosen(case) == is_option] for is_option in (True, False))
    return [*singles(), *chosen[::12], *others[::150]]


GOOD = ("right", "rest", "open")
"""Advice after which nothing is left that the drive shows, or that names what mends it among others."""


def shown_of(outcomes):
    """Return the outcomes of which the drive shows each fault alone: of two, one may hide the other."""
    return [o for o in outcomes if o.shown]


def counts(outcomes):
    """Return a table of what is true against what was said."""
    lines = []
    for title, chosen in (("options", True), ("descriptions", False)):
        rows = [o for o in outcomes if o.case.faults and is_chosen(o.case) == chosen]
        for kind in ("harmless", "hidden", "between", "evident"):
            of = [o for o in rows if o.kind == kind]
            said = Counter(o.verdict for o in of)
            lines.append(f"{title}, {kind}: {len(of)} said {dict(said)}, advice {dict(Counter(o.advice for o in of))}")
        every = [o for o in rows if o.kind == "evident"]
        for which, of in (("all evident", every), ("those of which the drive shows each fault", shown_of(every))):
            good, right_ = sum(o.advice in GOOD for o in of), sum(o.advice == "right" for o in of)
            share = 100.0 * good / max(1, len(of))
            lines.append(f"{title}, {which}: advice mends or names {good} of {len(of)} ({share:.1f} %), alone {right_}")
    honest_ = [o for o in outcomes if not o.case.faults]
    lines.append(f"honest {len(honest_)}, accused {sum(o.is_accused for o in outcomes)}")
    lines.append(f"wrong ok {sum(o.is_wrong_ok for o in outcomes)}, unseen {sum(o.is_unseen for o in outcomes)}")
    lines.append(f"wrong advice {sum(o.advice == 'wrong' for o in outcomes)}")
    lines.append(f"cases {len(outcomes)}, {sum(o.seconds for o in outcomes):.0f} s")
    return "\n".join(lines)


def main(step="1", offset="0"):
    """Print the counts, and each case that is not as it should be, of every `step`-th case of the campaign."""
    cases = campaign()[int(offset) :: int(step)]
    with Pool(2) as pool:
        outcomes = [o for o in pool.map(outcome_of, cases, chunksize=2) if o is not None]
    print(counts(outcomes))
    for o in outcomes:
        good = o.advice == "right" if o.kind == "evident" else o.advice != "wrong" and not o.is_wrong_ok
        if not good or o.is_accused:
            print(o.kind, o.verdict, o.advice, f"{o.seconds:.1f}", *o.case, list(o.wrong), "->", o.words)


if __name__ == "__main__":
    main(*sys.argv[1:])
