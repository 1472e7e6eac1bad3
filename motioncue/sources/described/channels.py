"""What the fields of a described source can carry, and which descriptions are refused."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CHASSIS, GRAVITY
from motioncue.errors import ConfigError, not_among
from motioncue.wire.description import SourceField, SourcePacket

KEY = "source.packet"
UNITS: Mapping[str, Mapping[str, float]] = {
    "length": {"m": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0, "ft": 0.3048},
    "speed": {"m/s": 1.0, "km/h": 1.0 / 3.6, "mph": 0.44704, "kn": 1852.0 / 3600.0, "ft/s": 0.3048},
    "acceleration": {"m/s^2": 1.0, "g": GRAVITY, "ft/s^2": 0.3048},
    "angle": {"rad": 1.0, "deg": math.pi / 180.0},
    "rate": {"rad/s": 1.0, "deg/s": math.pi / 180.0},
    "angular acceleration": {"rad/s^2": 1.0, "deg/s^2": math.pi / 180.0},
    "engine speed": {"rpm": 1.0, "rad/s": 30.0 / math.pi, "Hz": 60.0},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "share": {"": 1.0},
    "travel": {"m": 1.0, "cm": 0.01, "mm": 0.001, "ft": 0.3048},
    "travel speed": {"m/s": 1.0, "mm/s": 0.001, "ft/s": 0.3048},
    "amount": {"": 1.0},
}
"""Factors to the SI unit, or rpm, by quantity; the first is the unit of a field that names none."""

LEAST_SCALE = 1e-12
"""Least magnitude of a field's scale: no packet has numbers that are so much larger than their channel."""

LIMITS = {
    "length": 1e7,
    "speed": 500.0,
    "acceleration": 2000.0,
    "angle": 10.0,
    "rate": 100.0,
    "angular acceleration": 20000.0,
    "engine speed": 1e5,
    "time": 1e9,
    "share": 2.0,
    "travel": 5.0,
    "travel speed": 100.0,
    "amount": 1000.0,
}
"""Largest plausible magnitudes: no vehicle is faster and no crash is harder; a packet beyond them is broken."""


class Channel(NamedTuple):
    """What a field can carry."""

    vector: str  # field of the telemetry
    element: int  # of the vector: x, y, z, or the index of an angle; w is 0
    quantity: str  # key of UNITS
    along: str = ""  # direction of the car's axis, if the channel has one of its own
    optional: bool = False


def _channels() -> dict[str, Channel]:
    body = ("roll", "pitch", "yaw")
    out = {
        "surge": Channel("acceleration", 0, "acceleration", "forward"),
        "sway": Channel("acceleration", 1, "acceleration", "right"),
        "heave": Channel("acceleration", 2, "acceleration", "up"),
    }
    out |= {name: Channel("angles", place, "angle") for place, name in enumerate(body)}
    for suffix, vector, quantity in (
        ("rate", "angular_velocity", "rate"),
        ("acceleration", "angular_acceleration", "angular acceleration"),
    ):
        for place, (name, along) in enumerate(zip(body, ("forward", "right", "down"), strict=True)):
            out[f"{name}_{suffix}"] = Channel(vector, place, quantity, along)
    out["speed"] = Channel("speed", 0, "speed", optional=True)
    out["engine_speed"] = Channel("engine_speed", 0, "engine speed", optional=True)
    out["time"] = Channel("stamp", 0, "time")
    out["frame_duration"] = Channel("frame_duration", 0, "time")
    for vector, quantity in (
        ("position", "length"),
        ("velocity", "speed"),
        ("acceleration", "acceleration"),
        ("angular_velocity", "rate"),
        ("angular_acceleration", "angular acceleration"),
        ("forward", "share"),
        ("right", "share"),
        ("up", "share"),
    ):
        out |= {f"{vector}_{axis}": Channel(vector, place, quantity) for place, axis in enumerate("xyz")}
    out |= {f"quaternion_{axis}": Channel("orientation", place, "share") for place, axis in enumerate("wxyz")}
    quantities = {"m": "travel", "m/s": "travel speed", "1": "amount", "rad": "angle"}
    for place, channel in enumerate(CHASSIS):
        out[channel.name] = Channel("chassis", place, quantities[channel.unit], optional=True)
    return out


CHANNELS: Mapping[str, Channel] = _channels()
"""Channels that a field of a source can carry, by name."""

WORLD = {
    "north": (1, 0, 0),
    "east": (0, 1, 0),
    "down": (0, 0, 1),
    "south": (-1, 0, 0),
    "west": (0, -1, 0),
    "up": (0, 0, -1),
}
CAR = {
    "forward": (1, 0, 0),
    "right": (0, 1, 0),
    "down": (0, 0, 1),
    "back": (-1, 0, 0),
    "left": (0, -1, 0),
    "up": (0, 0, -1),
}

Matrix = npt.NDArray[np.float64]


def directions(names: Sequence[str] | None, known: Mapping[str, tuple[int, int, int]], key: str) -> Matrix:
    """Return the directions of x, y and z as rows; raise ConfigError unless they are at right angles."""
    rows = np.array([known[name] for name in names] if names is not None else np.eye(3), dtype=np.float64)
    if abs(round(float(np.linalg.det(rows)))) != 1:
        raise ConfigError(f"{KEY}.{key}: found {names}, allowed are three directions at right angles to each other")
    return rows


def in_car(name: str, channel: Channel, table: SourcePacket) -> bool:
    """Say whether a channel is in the car's axes."""
    if channel.along or channel.vector == "angles":
        return True
    if channel.vector == "velocity":
        return table.velocity == "car"
    if channel.vector == "acceleration":
        return table.acceleration == "car"
    if channel.vector in ("angular_velocity", "angular_acceleration"):
        return table.rates != "world"
    return False


def checked(table: SourcePacket) -> dict[str, SourceField]:
    """Return the fields of the motion by channel, those of parts included."""
    channels = _by_channel(table.fields, f"{KEY}.fields")
    parts: dict[str, SourceField] = {}
    for index, form in enumerate(table.forms):
        own = _by_channel(form.fields, f"{KEY}.forms[{index}].fields")
        if form.role == "motion":
            twice = [name for name in own if name in channels]
            if twice:
                raise ConfigError(
                    f"{KEY}.forms[{index}].fields: found {', '.join(twice)}, which {KEY}.fields has for it already; "
                    f"allowed are others"
                )
            _refuse_contradictions(table, {**channels, **own})
            continue
        parts |= own
    every = {**parts, **channels}
    _refuse_contradictions(table, every)
    return every


def _by_channel(fields: Iterable[SourceField], key: str) -> dict[str, SourceField]:
    out: dict[str, SourceField] = {}
    for index, field in enumerate(fields):
        where = f"{key}[{index}]"
        if field.channel is None:
            continue
        if field.channel not in CHANNELS:
            raise ConfigError(f"{where}.channel: {not_among(field.channel, CHANNELS)}")
        if field.channel in out:
            raise ConfigError(f"{where}.channel: found {field.channel!r} a second time, allowed is one field of each")
        units = UNITS[CHANNELS[field.channel].quantity]
        if field.unit is not None and field.unit not in units:
            raise ConfigError(f"{where}.unit: {not_among(field.unit, units)} for {field.channel}")
        if not field.scale:
            raise ConfigError(f"{where}.scale: found 0, allowed is any other number")
        if abs(field.scale) < LEAST_SCALE:
            raise ConfigError(
                f"{where}.scale: found {field.scale:g}, allowed are magnitudes of {LEAST_SCALE:g} and more"
            )
        out[field.channel] = field
    return out


def _refuse_contradictions(table: SourcePacket, channels: Mapping[str, SourceField]) -> None:
    """Refuse channels that say a thing twice, or by half, or not at all."""
    for vector, names in _groups().items():
        found = [name for name in names if name in channels]
        if found and len(found) < len(names):
            missing = [name for name in names if name not in channels]
            count = {3: "three", 4: "four"}[len(names)]
            raise ConfigError(
                f"{KEY}.fields: found {', '.join(found)} without {', '.join(missing)}, allowed are all {count} "
                f"together or none"
            )
        needed = "world" if vector in ("position", "forward", "right", "up", "quaternion") else None
        if found and vector.startswith(("velocity", "acceleration", "angular")):
            needed = "car" if in_car(found[0], CHANNELS[found[0]], table) else "world"
        if found and needed is not None and getattr(table, needed) is None:
            raise ConfigError(f"{KEY}.{needed}: missing, the directions of x, y and z of {', '.join(found)}")
    for one, other in (("surge", "acceleration_x"), ("roll_rate", "angular_velocity_x")):
        both = [name for name in channels if CHANNELS[name].vector == CHANNELS[one].vector]
        if other in both and any(CHANNELS[name].along for name in both):
            raise ConfigError(f"{KEY}.fields: found {', '.join(both)}, allowed are either named axes or x, y and z")
    _refuse_attitudes(table, channels)
    if "velocity_x" not in channels:
        lacks = [name for name in ("surge", "sway", "heave") if name not in channels]
        if lacks and "acceleration_x" not in channels:
            raise ConfigError(f"{KEY}.fields: found neither {', '.join(lacks)} nor a velocity to derive it from")
    partly = [name for name in ("surge", "sway", "heave") if name in channels]
    if table.gravity == "included" and 0 < len(partly) < 3:
        raise ConfigError(
            f"{KEY}.gravity: found 'included' with {', '.join(partly)} alone, allowed is 'excluded', since what is "
            f"derived from the velocity has none"
        )
    if partly and table.acceleration == "world":
        raise ConfigError(f"{KEY}.acceleration: found 'world' with {', '.join(partly)}, allowed is 'car'")
    named = [name for name in ("roll_rate", "roll_acceleration") if name in channels]
    if named and table.rates == "world":
        raise ConfigError(f"{KEY}.rates: found 'world' with {named[0]}, allowed are 'car', 'angles'")


def _groups() -> dict[str, list[str]]:
    """Return the channels that only make sense together."""
    vectors = ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")
    out = {name: [f"{name}_{axis}" for axis in "xyz"] for name in (*vectors, "forward", "right", "up")}
    out["quaternion"] = [f"quaternion_{axis}" for axis in "wxyz"]
    for suffix in ("rate", "acceleration"):
        out[f"turns {suffix}"] = [f"{name}_{suffix}" for name in ("roll", "pitch", "yaw")]
    return out


def _refuse_attitudes(table: SourcePacket, channels: Mapping[str, SourceField]) -> None:
    """Refuse anything but one attitude."""
    angles = [name for name in ("roll", "pitch", "yaw") if name in channels]
    ways = {
        ", ".join(angles): angles,
        "a quaternion": "quaternion_w" in channels,
        "vectors of the car's axes": [name for name in ("forward", "right", "up") if f"{name}_x" in channels],
    }
    found = [name for name, way in ways.items() if way]
    allowed = "allowed is one of: roll, pitch and yaw; quaternion_w, _x, _y, _z; forward_x, _y, _z with right_ or up_"
    if len(found) != 1:
        raise ConfigError(f"{KEY}.fields: found {' and '.join(found) or 'no attitude'}, {allowed}")
    vectors = ways["vectors of the car's axes"]
    if vectors and not (isinstance(vectors, list) and "forward" in vectors and len(vectors) == 2):
        raise ConfigError(f"{KEY}.fields: found the vectors {', '.join(vectors)}, {allowed}")  # type: ignore[arg-type]
    if angles and not {"roll", "pitch"} <= set(angles):
        raise ConfigError(f"{KEY}.fields: found {', '.join(angles)}, {allowed}")
    if angles and "yaw" not in angles and ("velocity_x" in channels and table.velocity == "world"):
        raise ConfigError(f"{KEY}.fields: found no yaw, which a velocity in world axes needs")
    turning = [name for name in channels if CHANNELS[name].vector == "angular_velocity"]
    if table.rates == "angles" and turning and (not angles or "angular_velocity_x" in turning):
        raise ConfigError(
            f"{KEY}.rates: found 'angles' with {', '.join((*turning, *found))}, allowed with roll_rate, pitch_rate, "
            f"yaw_rate and angles"
        )
    if len(set(table.order)) < 3:
        raise ConfigError(f"{KEY}.order: found {', '.join(table.order)}, allowed are yaw, pitch and roll in any order")
    if table.rates == "angles" and turning and table.order != ("yaw", "pitch", "roll"):
        raise ConfigError(
            f"{KEY}.order: found {', '.join(table.order)} with rates of angles, allowed is yaw, pitch, roll"
        )
    if "quaternion_w" in channels and table.car is None:
        raise ConfigError(f"{KEY}.car: missing, the directions of the car's x, y and z that the quaternion turns")
