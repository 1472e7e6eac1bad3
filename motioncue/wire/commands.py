"""Commands to a simulator: named values, checked against the document before they are encoded."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from motioncue.errors import PacketError, not_among
from motioncue.wire.packet import Field, Packet

_STEP = re.compile(r"(\w+)((?:\[\d+\])?)")


def composed(packet: Packet, values: Mapping[str, Any]) -> bytes:
    """Return the bytes of a command."""
    return packet.encode(_checked(packet, values, f"{packet.name}: "))


def assigned(packet: Packet, assignments: Iterable[str]) -> dict[str, Any]:
    """Return the values of ``FIELD=VALUE`` texts, for `composed`."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise PacketError(f"{packet.name}: found {assignment!r}, allowed is FIELD=VALUE")
        _assign(packet, values, path.strip(), text)
    return values


def _assign(packet: Packet, values: dict[Any, Any], path: str, text: str) -> None:
    """Store the value of one assignment at its path."""
    where = f"{packet.name}: {path}"
    steps = path.split(".")
    inner: Packet | None = packet
    for number, step in enumerate(steps):
        match = _STEP.fullmatch(step)
        if match is None or inner is None:
            raise PacketError(f"{where}: allowed are paths such as name, name[0] and name[0].field")
        field = _find(inner, match[1], f"{packet.name}: ")
        keys: list[Any] = [match[1]]
        if match[2]:
            keys.append(int(match[2][1:-1]))
            if not field.dtype.shape:
                raise PacketError(f"{where}: {match[1]} is not repeated")
        if number + 1 < len(steps):
            values = _inside(values, keys, where)
            inner = field.slot
        else:
            values = _inside(values, keys[:-1], where)
            if keys[-1] in values:
                raise PacketError(f"{where}: given twice")
            values[keys[-1]] = _read(field, text, where)


def _inside(values: dict[Any, Any], keys: Iterable[Any], where: str) -> dict[Any, Any]:
    for key in keys:
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise PacketError(f"{where}: given twice")
    return values


def _read(field: Field, text: str, where: str) -> Any:
    if field.slot is None and field.dtype.base.kind == "S":
        return text
    if text.strip() in field.words.values():
        return text.strip()
    try:
        return json.loads("NaN" if text.strip().lower() == "nan" else text)
    except (ValueError, RecursionError) as error:
        raise PacketError(f"{where}: found {text[:100]!r}, allowed is {_allowed(field)}, as in JSON") from error


def _find(packet: Packet, name: Any, where: str) -> Field:
    if name not in packet.fields or name in packet.constants:
        allowed = (name for name in packet.fields if name not in packet.constants)
        raise PacketError(f"{where}{not_among(name, allowed, 'field ')}")
    return packet.fields[name]


def _checked(packet: Packet, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values in the form that `Packet.encode` takes."""
    out = {}
    for name, value in values.items():
        field = _find(packet, name, where)
        out[name] = _field_value(packet, field, value, where + name)
    for name, field in packet.fields.items():
        _refuse_inactive(field, out, where)
        zero = _absent(packet, field)
        allowed = zero != zero or (field.low <= zero <= field.high and not field.needed)
        if not (name in out or name in packet.constants or allowed):
            raise PacketError(f"{where}{name}: missing, allowed is {_allowed(field)}")
    return out


def _refuse_inactive(field: Field, values: Mapping[str, Any], where: str) -> None:
    """Refuse a value that another one makes inactive: the simulator would ignore it without a word."""
    if field.when is not None and values.get(field.name):
        key, active = field.when
        if values.get(key, active) != active:
            raise PacketError(
                f"{where}{field.name}: found {values[field.name]!r} with {key} {values[key]}, allowed is none but with "
                f"{key} {active}"
            )


def _absent(packet: Packet, field: Field) -> float:
    return packet.absent if field.dtype.base.kind == "f" else 0.0


def _field_value(packet: Packet, field: Field, value: Any, where: str) -> Any:
    """Return the checked value of a field, repeated or not."""
    if not field.dtype.shape:
        return _one(packet, field, value, where)
    (count,) = field.dtype.shape
    if isinstance(value, list | tuple):
        if len(value) > count or (field.slot is None and len(value) < count):
            few = "up to " if field.slot else ""
            raise PacketError(f"{where}: found {len(value)} values, allowed are {few}{count}")
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        raise PacketError(f"{where}: found {value!r}, allowed is a list of {count}")
    beyond = [index for index in value if isinstance(index, bool) or index not in range(count)]
    if beyond:
        raise PacketError(f"{where}: found index {beyond[0]!r}, allowed are 0 to {count - 1}")
    out: list[Any] = [{}] * (max(value, default=-1) + 1) if field.slot else [_absent(packet, field)] * count
    for index, item in value.items():
        out[index] = _one(packet, field, item, f"{where}[{index}]")
    return out


def _one(packet: Packet, field: Field, value: Any, where: str) -> Any:
    """Return a checked slot, text, truth value or number."""
    kind = field.dtype.base.kind
    if field.slot is not None:
        if isinstance(value, Mapping):
            return _checked(field.slot, value, f"{where}.") if value else {}
    elif kind == "S":
        if isinstance(value, str | bytes):
            data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            if len(data) <= field.dtype.base.itemsize and b"\0" not in data:
                return data
    elif isinstance(value, str) and value in field.words.values():
        return next(number for number, word in field.words.items() if word == value)
    elif kind == "b":
        if value in (0, 1):
            return bool(value)
    elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        low, high = _range(field)
        between = low <= value <= high and (kind == "f" or float(value).is_integer())
        if between and (not field.among or value in field.among):
            return value if kind == "f" else int(value)
        if value != value and packet.absent != packet.absent:  # given as absent
            return value
    raise PacketError(f"{where}: found {value!r}, allowed is {_allowed(field)}")


def _range(field: Field) -> tuple[float, float]:
    """Return the smallest and the largest value allowed by the document, plausibility and the format."""
    base = field.dtype.base
    form = np.finfo(base) if base.kind == "f" else np.iinfo(base)
    return max(field.low, -field.limit, float(form.min)), min(field.high, field.limit, float(form.max))


def _allowed(field: Field) -> str:
    """Return a text of what a field allows."""
    if field.slot is not None:
        return f"a table of {', '.join(field.slot.fields)}"
    base = field.dtype.base
    if base.kind == "S":
        return f"a text of up to {base.itemsize} bytes"
    if base.kind == "b":
        return "true or false"
    words = ", ".join(f"{number} {word}" for number, word in field.words.items())
    if field.among:
        return f"any of {words or ', '.join(map(str, field.among))}"
    low, high = _range(field)
    whole = "" if base.kind == "f" else "whole "
    unit = f" {field.unit}" if field.unit else ""
    return f"a {whole}number from {low:.9g} to {high:.9g}{unit}{f' ({words})' if words else ''}"
