"""The usual mistakes in a description: what its packet may mean instead, by the correction to make.

A unit, two channels exchanged, the order of a quaternion or of angles, the directions of axes, the sign of an element.
The usual mistakes of a simulator, which no option mends, are tried on the frames as they were read.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations, permutations, product
from typing import Any

import msgspec
import numpy as np

from motioncue.check.compare import Array, Drive, Finding, axes, turns
from motioncue.check.signs import examine
from motioncue.errors import ConfigError
from motioncue.sources.described.channels import CAR, CHANNELS, UNITS, WORLD
from motioncue.sources.described.source import DescribedSource
from motioncue.wire.description import SourceField, SourcePacket

SCALED = {"angles": (), "angular_velocity": (), "acceleration": (), "velocity": (), "position": ("m", "cm", "ft")}
"""Vectors whose unit is often another, and the units to try; all if none are named."""

TURNED = ("forward", "right", "up", "position", "orientation")
"""Vectors whose elements have a sign that is no option."""

QUATERNION = tuple(f"quaternion_{axis}" for axis in "wxyz")


def axes_changed(words: str, source: DescribedSource) -> tuple[str, int]:
    """Return whose directions of axes a correction turns, and how many; none if it is of another kind.

    Two level ones that are reversed are half a turn, which is as simple a mistake as one.
    """
    key, _, said = words.partition(" = ")
    now = getattr(source.table, key, None) if key in ("world", "car") else None
    if now is None or ";" in said:
        return "", 0
    known = WORLD if key == "world" else CAR
    other = [(name, axis) for name, axis in zip(json.loads(said), now, strict=True) if name != axis]
    turned = all(known[name] == tuple(-n for n in known[axis]) and not known[name][2] for name, axis in other)
    return key, 1 if turned and len(other) == 2 else len(other)


def is_twofold(words: str, source: DescribedSource) -> bool:
    """Say whether a correction reverses two axes or three where they are, each of which is a mistake of its own.

    Two level ones that are reversed are half a turn, which is one.
    """
    key, _, said = words.partition(" = ")
    if axes_changed(words, source)[1] < 2:
        return False
    known = WORLD if key == "world" else CAR
    pairs = zip(json.loads(said), getattr(source.table, key), strict=True)
    return all(name == axis or known[name] == tuple(-n for n in known[axis]) for name, axis in pairs)


def corrected(source: DescribedSource, words: str) -> DescribedSource | None:
    """Return the source with corrections, separated by semicolons; None if they contradict each other."""
    for each in words.split("; "):
        table = corrections(source).get(each)
        try:
            source = DescribedSource(table, source.name) if table is not None else source
        except ConfigError:
            return None
        if table is None:
            return None
    return source


def corrections(source: DescribedSource) -> dict[str, SourcePacket]:
    """Return other descriptions of a source's packet, by what was changed in words for its author."""
    table, channels = source.table, source.channels
    out: dict[str, SourcePacket] = {}
    for name, other in (*_units(table, channels), *_exchanges(table, channels), *_signs(table, channels)):
        out.setdefault(name, other)
    for key, value in _axes(table, channels):
        text = f'"{value}"' if isinstance(value, str) else str(list(value)).replace("'", '"')
        out[f"{key} = {text}"] = msgspec.structs.replace(table, **{key: value})
    return out


def _each(table: SourcePacket, change: Callable[[SourceField], SourceField]) -> SourcePacket:
    """Return a description with all its fields changed."""
    forms = tuple(msgspec.structs.replace(form, fields=tuple(map(change, form.fields))) for form in table.forms)
    return msgspec.structs.replace(table, fields=tuple(map(change, table.fields)), forms=forms)


def _named(table: SourcePacket, names: dict[str, str]) -> SourcePacket:
    """Return a description with channels renamed."""
    return _each(
        table, lambda field: msgspec.structs.replace(field, channel=names.get(field.channel or "", field.channel))
    )


def _of(vector: str, channels: dict[str, SourceField]) -> list[str]:
    return [name for name in channels if CHANNELS[name].vector == vector]


def _units(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, SourcePacket]]:
    """Yield the description with a vector in each other unit."""
    for vector, tried in SCALED.items():
        names = _of(vector, channels)
        if not names:
            continue
        units = UNITS[CHANNELS[names[0]].quantity]
        now = channels[names[0]].unit or next(iter(units))
        for unit in tried or units:
            if unit != now:
                yield f"{', '.join(names)}: unit = '{unit}'", _in_unit(table, names, unit)


def _in_unit(table: SourcePacket, names: list[str], unit: str) -> SourcePacket:
    """Return the description with channels in a unit."""
    return _each(table, lambda f: msgspec.structs.replace(f, unit=unit) if f.channel in names else f)


def _exchanges(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, SourcePacket]]:
    """Yield the description with two elements of a vector exchanged, or a quaternion's w moved."""
    for vector in (*SCALED, "forward", "right", "up"):
        for one, other in combinations(_of(vector, channels), 2):
            yield f"{one} and {other} exchanged", _named(table, {one: other, other: one})
    if "quaternion_w" in channels:
        fields = sorted((channels[name].offset, name) for name in QUATERNION)
        order = [name for _, name in fields]
        for turned in (order[1:] + order[:1], order[-1:] + order[:-1]):
            said = ", ".join(name[-1] for name in turned)
            yield f"the quaternion's numbers are {said}", _named(table, dict(zip(order, turned, strict=True)))


def _signs(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, SourcePacket]]:
    """Yield the description with the sign of an element turned that is no option."""
    for name in channels:
        if CHANNELS[name].vector in TURNED and name != "quaternion_w":
            yield f"{name}: the opposite sign (scale = {-channels[name].scale:g})", _turned(table, name)


def _turned(table: SourcePacket, name: str) -> SourcePacket:
    """Return the description with the sign of a channel turned."""
    return _each(table, lambda f: msgspec.structs.replace(f, scale=-f.scale, bias=-f.bias) if f.channel == name else f)


def _axes(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    """Yield other directions of the axes, and other orders of angles: key and value."""
    for key, known, now in (("world", WORLD, table.world), ("car", CAR, table.car)):
        yield from ((key, each) for each in _directions(known) if now is not None and each != now)
    if "yaw" in channels:
        yield from (("heading_from", side) for side in ("north", "east", "south", "west") if side != table.heading_from)
        if table.rates != "angles" or "roll_rate" not in channels:
            yield from (("order", order) for order in permutations(("yaw", "pitch", "roll")) if order != table.order)


def _directions(known: dict[str, tuple[int, int, int]]) -> Iterator[tuple[str, ...]]:
    """Yield the 48 ways in which x, y and z can point along a world's or a car's directions."""
    opposite = {name: next(o for o, d in known.items() if d == tuple(-n for n in way)) for name, way in known.items()}
    halves = list(known)[:3]
    for some in permutations(halves):
        yield from product(*((name, opposite[name]) for name in some))


Suspect = Callable[[Drive], Drive]

ATTITUDES: dict[str, Callable[[Array, Array, Array], tuple[Array, Array, Array]]] = {
    "roll and pitch are exchanged": lambda roll, pitch, yaw: (pitch, roll, yaw),
    "roll has the opposite sign": lambda roll, pitch, yaw: (-roll, pitch, yaw),
    "pitch has the opposite sign": lambda roll, pitch, yaw: (roll, -pitch, yaw),
    "yaw has the opposite sign": lambda roll, pitch, yaw: (roll, pitch, -yaw),
    "roll and pitch have opposite signs": lambda roll, pitch, yaw: (-roll, -pitch, yaw),
    "yaw is half a turn off": lambda roll, pitch, yaw: (roll, pitch, yaw + np.pi),
    "yaw is a quarter turn too far right": lambda roll, pitch, yaw: (roll, pitch, yaw - np.pi / 2),
    "yaw is a quarter turn too far left": lambda roll, pitch, yaw: (roll, pitch, yaw + np.pi / 2),
}
"""What a simulator may do to the attitude, and how to undo it."""

ACCELERATION, RATES = ("surge", "sway", "heave"), ("roll_rate", "pitch_rate", "yaw_rate")
SCALES = (
    ("the velocity is in km/h", ("velocity",), UNITS["speed"]["km/h"]),
    ("the velocity is in mph", ("velocity",), UNITS["speed"]["mph"]),
    ("the acceleration is in g", ACCELERATION, UNITS["acceleration"]["g"]),
    ("the acceleration is in m/s^2 and taken as g", ACCELERATION, 1.0 / UNITS["acceleration"]["g"]),
    ("the rates are in degrees", RATES, UNITS["rate"]["deg/s"]),
    ("the rates are in radians and taken as degrees", RATES, 1.0 / UNITS["rate"]["deg/s"]),
    ("the acceleration has the opposite sign", ACCELERATION, -1.0),
    ("the rates have the opposite sign", RATES, -1.0),
)
SEEDS = 4  # suspicions with which least is wrong, to be combined with any other


def suspected(drive: Drive, before: Mapping[str, Finding]) -> list[str]:
    """Return in words which usual mistakes of a simulator, one or two, would explain a drive that no option does."""
    singles = list(_suspects())
    found = [(words, undo, _left(undo(drive), before)) for words, undo in singles]
    whole = [words for words, _, left in found if left == 0]
    if not whole:
        best = sorted((left, n) for n, (_, _, left) in enumerate(found) if left is not None)[:SEEDS]
        whole = [
            f"{words}, and {other}"
            for words, undo, _ in (found[n] for _, n in best)
            for other, also in singles
            if other != words and _left(also(undo(drive)), before) == 0
        ]
    return list({" ".join(sorted(words.split(", and "))): words for words in whole}.values())


def _left(drive: Drive, before: Mapping[str, Finding]) -> int | None:
    """Return how many answers are wrong of a drive that is read otherwise; None if one that held is lost."""
    after = examine(drive)
    lost = any(then.verdict != "ok" and before[then.name].verdict == "ok" for then in after if then.name in before)
    right = any(then.verdict == "ok" and before[then.name].verdict == "wrong" for then in after if then.name in before)
    return None if lost or not right else sum(then.verdict == "wrong" for then in after)


def _suspects() -> Iterator[tuple[str, Suspect]]:
    """Yield each mistake in words, and what undoes it; of vectors only the source knows whose axes they were along."""
    for words, change in ATTITUDES.items():
        for world in ((), ACCELERATION, (*ACCELERATION, *RATES)):
            yield words, partial(_otherwise_turned, change=change, world=world)
    for name in (*ACCELERATION, *RATES):
        yield f"{name.replace('_', ' ')} has the opposite sign", partial(_scaled, factors={name: -1.0})
    for words, names, factor in SCALES:
        yield words, partial(_scaled, factors=dict.fromkeys(names, factor))
    for surge, sway in product((1.0, -1.0), repeat=2):
        yield "surge and sway are exchanged", partial(_exchanged, signs=(surge, sway))
    yield "the world is mirrored: east and west are exchanged", partial(_scaled, factors={"east": -1.0})


def _copied(drive: Drive, **channels: Array) -> Drive:
    motion = drive.motion.copy()
    for name, values in channels.items():
        motion[name] = values
    return drive._replace(motion=motion)


def _scaled(drive: Drive, factors: Mapping[str, float]) -> Drive:
    """Return the drive with channels, the velocity, or what points east times a factor."""
    every, east = factors.get("velocity", 1.0), np.array([1.0, factors.get("east", 1.0), 1.0])
    own = {name: factor * drive.motion[name] for name, factor in factors.items() if name in (*ACCELERATION, *RATES)}
    out = _copied(drive, **own, speed=every * drive.motion["speed"])
    return out._replace(position=drive.position * east, velocity=every * drive.velocity * east)


def _exchanged(drive: Drive, signs: tuple[float, float]) -> Drive:
    return _copied(drive, surge=signs[0] * drive.motion["sway"], sway=signs[1] * drive.motion["surge"])


def _matrices(motion: Any) -> Array:
    """Return the rotations from forward, right, down to north, east, down."""
    forward, down = axes(motion)
    return np.stack([forward, np.cross(down, forward), down], axis=-1)


def _otherwise_turned(drive: Drive, change: Callable[..., tuple[Array, ...]], world: tuple[str, ...]) -> Drive:
    """Return the drive in another attitude; the vectors in `world` came along the world's axes."""
    motion = drive.motion
    angles = change(*(motion[name] for name in ("roll", "pitch", "yaw")))
    out = _copied(drive, **dict(zip(("roll", "pitch", "yaw"), angles, strict=True)))
    was, now = _matrices(motion), _matrices(out.motion)
    turn = np.einsum("nji,njk->nik", now, was)  # from the axes of before to those of now
    for names, sign in ((ACCELERATION, np.array([1.0, 1.0, -1.0])), (RATES, np.ones(3))):
        if names[0] in world:
            vectors = np.stack([motion[name] for name in names], axis=-1) * sign
            turned = np.einsum("nij,nj->ni", turn, vectors) * sign
            out = _copied(out, **dict(zip(names, turned.T, strict=True)))
    if not drive.rates_are_independent:
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = np.gradient(turns(*axes(out.motion)), axis=0) / np.gradient(drive.time)[:, None]
        out = _copied(out, **dict(zip(RATES, np.nan_to_num(rates).T, strict=True)))
    if not drive.velocity_is_independent:
        out = out._replace(velocity=np.einsum("nij,nkj,nk->ni", now, was, drive.velocity))
    return out
