"""The numbers of an algorithm's settings that a search may change, and their bounds."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import inspect

from motioncue.core.table import Table
from motioncue.cueing import name_of
from motioncue.cueing.settings import Cueing
from motioncue.errors import ConfigError, meant

__all__ = ["Orders", "Parameter", "in_order", "orders_of", "parameters_of", "with_values"]

DIGITS = 5  # of a value, so that a profile holds exactly what was scored
DOUBLINGS = 6.0  # that a logarithmic parameter may leave its first value, either way
INSIDE = 1e-4  # of a bound that is not allowed itself: how far from it a value stays

Orders: TypeAlias = Sequence[Mapping[str, float]]
"""Keys, each with the value of the settings, of which none may be above the next one."""


class Parameter(NamedTuple):
    """A number that a search may change."""

    key: str
    """Dotted key in the profile, such as ``cueing.surge.gain``."""
    value: float
    """The value to begin from."""
    low: float
    high: float
    """What is searched: what the settings declare, on the side of 0 on which the first value is."""
    scale: float
    """Step that counts as one in the search; 0 for a logarithmic parameter, where one is a factor of 2."""

    def to_search(self, value: float) -> float:
        """Return a value as the search sees it: 0 at the first value."""
        return (value - self.value) / self.scale if self.scale else math.log2(value / self.value)

    def from_search(self, place: float) -> float:
        """Return the value that the search means, within bounds and, but for the first one, of five digits."""
        if place == 0.0:
            return self.value
        value = self.value + self.scale * place if self.scale else self.value * 2.0**place
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)


def parameters_of(cueing: Cueing, names: Sequence[str] = ()) -> list[Parameter]:
    """Return the parameters of an algorithm's settings."""
    found = dict(_walk(inspect.type_info(type(cueing)), cueing, "cueing"))
    having = {key: parameter for key, parameter in found.items() if parameter is not None}
    if not having:
        raise ConfigError(f"cueing.algorithm: found {name_of(cueing)!r}, which has no numbers to search")
    if not names:
        return [parameter for key, parameter in having.items() if key.removeprefix("cueing.") not in cueing.unsearched]
    chosen: dict[str, Parameter] = {}
    for name in names:
        path = name if name.startswith("cueing.") else f"cueing.{name}"
        fits = [key for key in found if key == path or key.startswith(f"{path}.") or fnmatchcase(key, path)]
        if not fits:
            shown = [key.removeprefix("cueing.") for key in having]
            raise ConfigError(f"parameter: found {name!r}, allowed are {', '.join(shown)}{meant(name, shown)}")
        if not any(key in having for key in fits):
            raise ConfigError(
                f"parameter: found {name!r}, which has no value to begin from; allowed is one with a value, such as "
                f"after --set {fits[0]}=VALUE"
            )
        chosen |= {key: having[key] for key in fits if key in having}
    return list(chosen.values())


def orders_of(cueing: Cueing) -> list[dict[str, float]]:
    """Return which numbers of an algorithm's settings must be in order."""
    found = []
    tables: list[tuple[str, Any]] = [("cueing", cueing)]
    for path, table in tables:  # grows on the way
        values = msgspec.structs.asdict(table)
        tables += [(f"{path}.{key}", value) for key, value in values.items() if isinstance(value, Table)]
        if table.ordered:
            found.append({f"{path}.{key}": float(values[key]) for key in table.ordered})
    return found


def in_order(values: Mapping[str, float], orders: Orders) -> dict[str, float]:
    """Return values of which none is above one that it must not exceed.

    A searched value that is too high is lowered, or else the other one raised.  Without this, hardly any settings that
    a search asks for would be possible.
    """
    found = dict(values)
    for order in orders:
        keys = list(order)
        for lower, upper in reversed(list(pairwise(keys))):
            if lower in found:
                found[lower] = min(found[lower], found.get(upper, order[upper]))
        for lower, upper in pairwise(keys):
            if upper in found:
                found[upper] = max(found[upper], found.get(lower, order[lower]))
    return found


def with_values(cueing: Cueing, values: Mapping[str, float]) -> Cueing:
    """Return settings with some numbers changed."""
    tables: dict[str, Any] = {"cueing": msgspec.to_builtins(cueing)}
    for key, value in values.items():
        *path, name = key.split(".")
        table = tables
        for step in path:
            table = table[step]
        table[name] = value
    try:
        changed: Cueing = msgspec.convert(tables["cueing"], type(cueing))
    except msgspec.ValidationError as error:
        raise ConfigError(f"cueing: {error}") from error
    return changed


def _walk(kind: inspect.Type, value: Any, path: str) -> Iterator[tuple[str, Parameter | None]]:
    """Yield every number below a key with its parameter; None for one that has no value."""
    kinds = _alternatives(kind)
    for each in kinds:
        if isinstance(each, inspect.StructType) and (value is None or isinstance(value, each.cls)):
            for field in each.fields:
                yield from _walk(field.type, getattr(value, field.name, None), f"{path}.{field.encode_name}")
        elif isinstance(each, inspect.FloatType):
            known = isinstance(value, int | float) and not isinstance(value, bool)
            yield path, _parameter(path, float(value), each) if known else None


def _alternatives(kind: inspect.Type) -> Iterable[inspect.Type]:
    """Return the types that a key may have."""
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _parameter(key: str, value: float, kind: inspect.FloatType) -> Parameter:
    """Return the parameter of a number, with what its type declares."""
    low = _end(kind.ge, kind.gt, -math.inf, 1.0)
    high = _end(kind.le, kind.lt, math.inf, -1.0)
    if low >= 0.0 and value > 0.0:
        most = 2.0**DOUBLINGS
        return Parameter(key, value, min(max(low, value / most), value), max(min(high, value * most), value), 0.0)
    scale = abs(value) or (0.1 * (high - low) if math.isfinite(high - low) else 1.0)
    if value > 0.0:
        low = max(low, 0.0)  # a search does not turn a sign
    elif value < 0.0:
        high = min(high, 0.0)
    return Parameter(key, value, low, high, scale)


def _end(inclusive: float | None, exclusive: float | None, none: float, inwards: float) -> float:
    """Return the last value that is searched on one side."""
    if inclusive is not None:
        return float(inclusive)
    return none if exclusive is None else exclusive + inwards * INSIDE * (abs(exclusive) or INSIDE)
