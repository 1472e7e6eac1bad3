"""What a recording holds, as arrays and as flat tables with a time axis, names and units, also as files for others."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CHASSIS, CHASSIS_DTYPE, CUE, MOTION
from motioncue.core.table import card
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import build
from motioncue.profile.profile import platform_table
from motioncue.recording.atomic_file import write_atomically
from motioncue.recording.mcap_reader import Settings
from motioncue.recording.schema import HOLE, Event, Hole, Laps, Package
from motioncue.safety.supervisor import State

WHAT = ("ticks", "frames", "chassis", "events")
"""Tables of a recording."""

KILLED = "the run was killed before the first second of it was written: there is nothing but its settings"
"""What is said of a file of which nothing but the beginning was written."""

LOST_WHY = {"disk": "the file could not be written", "memory": "the disk was too slow"}

UNITS = {
    **{channel.name: channel.unit for channel in (*MOTION, *CUE, *CHASSIS)},
    "deadline": "ns",
    "lateness": "ns",
    "value": "",
    "limit": "",
}

_STATES = np.array([state.name.lower() for state in sorted(State)])


class Column(NamedTuple):
    """A column of a table."""

    name: str
    unit: str
    values: npt.NDArray[Any]


def columns(rows: npt.NDArray[np.void]) -> list[Column]:
    """Return the columns of records.

    Nested records give columns such as ``motion_surge``, arrays such as ``actuator_1``.
    """
    assert rows.dtype.names is not None
    found = []
    for name in rows.dtype.names:
        if rows.dtype[name].shape:
            several = enumerate(rows[name].T, 1)
            found += [
                Column(f"{name.removesuffix('s')}_{number}", UNITS.get(name, ""), each) for number, each in several
            ]
        elif rows.dtype[name].names is None:
            found.append(Column(name, UNITS.get(name, ""), rows[name]))
        else:
            found += [inner._replace(name=f"{name}_{inner.name}") for inner in columns(rows[name])]
    return found


def hole_text(hole: Hole, zero: int) -> str:
    """Return a text on a hole.

    Units: `zero` [ns].
    """
    begin, end = (1e-9 * (time - zero) for time in (hole.begin, hole.end))
    why = LOST_WHY.get(hole.reason, hole.reason)
    return f"{hole.records} records are missing between {begin:.3f} s and {end:.3f} s: {why}"


class Drive(NamedTuple):
    """The contents of a recording."""

    motion: npt.NDArray[np.void]
    """The motion of each frame: MOTION_DTYPE."""
    ticks: npt.NDArray[np.void]
    """The ticks: TICK_DTYPE."""
    packages: list[Package]
    """The simulator's packages, as they arrived."""
    events: list[Event]
    """The events, in order of time."""
    settings: list[Settings]
    """The profile in force at the beginning, then after each change."""
    about: dict[str, str]
    """How the recording was made: versions, host, what the system granted."""
    unreadable: tuple[str, ...]
    """What is missing or could not be read, and where; empty for an undamaged file."""
    chassis: npt.NDArray[np.void] = np.zeros(0, CHASSIS_DTYPE)
    """What each frame says of wheels, suspension and cab: CHASSIS_DTYPE; empty if the source says nothing of them."""
    laps: tuple[Laps, ...] = ()
    """What the run went on from of earlier ones (`[laps]`)."""

    @property
    def profile(self) -> dict[str, Any] | None:
        """The tables of the profile at the beginning; None if the recording has none."""
        return self.settings[0].profile if self.settings else None

    @property
    def holes(self) -> list[Hole]:
        """Where records are missing, because the disk was full, gone or too slow."""
        return [Hole.of(event) for event in self.events if event.what == HOLE]

    @property
    def zero(self) -> int:
        """When `t` of all tables is 0 [ns, monotonic clock]: at the first tick, else at the first frame."""
        firsts = (self.ticks["deadline"], self.motion["time"], [row.time for row in (self.packages or self.events)[:1]])
        return next((int(times[0]) for times in firsts if len(times)), 0)

    @property
    def began(self) -> datetime | None:
        """The time of day when `t` is 0, UTC; None if the recording does not know it."""
        epoch = self.about.get("epoch_ns", "")
        if not epoch.isdecimal() or not 0 < int(epoch) < 1 << 62:
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=(int(epoch) + self.zero) // 1000)

    def __repr__(self) -> str:
        """Return three lines: what there is, of what, and what is wrong."""
        rows = dict(self._rows())
        return f"Drive of {rows['holds']}\n  {rows['made by']}\n  {rows['missing'] or 'nothing is missing'}"

    def _repr_html_(self) -> str:
        return card("Drive", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        times = [rows for rows in (self.ticks["deadline"], self.motion["time"]) if len(rows)]
        length = max((1e-9 * float(rows[-1] - rows[0]) for rows in times), default=0.0)
        counts = [len(rows) for rows in (self.ticks, self.motion, self.packages, self.events)]
        names = ("ticks", "frames", "packages", "events")
        holds = ", ".join(f"{count} {name}" for count, name in zip(counts, names, strict=True) if count) or "nothing"
        return [
            ("holds", f"{length:.1f} s: {holds}"),
            ("made by", self._maker() + ("" if self.began is None else f", begun {self.began:%Y-%m-%d %H:%M:%S} UTC")),
            ("missing", "; ".join(self.unreadable[:3]) + (" …" if self.unreadable[3:] else "")),
        ]

    def _maker(self) -> str:
        """Return what profile, simulator, algorithm and platform the drive is of."""
        profile = self.profile
        if profile is None:
            return self.about.get("system", "another program")
        parts = ((profile.get("source"), "system"), (profile.get("cueing"), "algorithm"))
        named = [str(table.get(key)) for table, key in parts if isinstance(table, dict) and table.get(key)]
        platform = profile.get("platform")
        if isinstance(platform, dict):
            named.append(str(platform.get("preset") or platform.get("kind")))
        return f"{profile.get('name') or 'a profile'}: {' → '.join(named)}"

    def between(self, start_s: float = -np.inf, end_s: float = np.inf) -> "Drive":
        """Return the part of a drive from one time up to another, with the settings in force there.

        Parameters
        ----------
        start_s, end_s : float
            As `t` of the tables [s]; what happened at `end_s` is left out.

        Examples
        --------
        >>> fault = next(event for event in drive.events if event.reason == "input_lost")  # doctest: +SKIP
        >>> around = drive.between(drive.at(fault) - 2, drive.at(fault) + 2)               # doctest: +SKIP
        """
        start, end = (self.zero + 1e9 * seconds for seconds in (start_s, end_s))
        motion, ticks, chassis = ((self.motion, "time"), (self.ticks, "deadline"), (self.chassis, "time"))
        earlier = [row for row in self.settings if row.time < start]
        return self._replace(
            motion=_within(*motion, start, end),
            ticks=_within(*ticks, start, end),
            chassis=_within(*chassis, start, end),
            packages=[row for row in self.packages if start <= row.time < end],
            events=[row for row in self.events if start <= row.time < end],
            settings=[*earlier[-1:], *(row for row in self.settings if start <= row.time < end)],
            laps=tuple(row for row in self.laps if start <= row.time < end),
        )

    def at(self, event: Event) -> float:
        """Return when something happened, as `t` of the tables [s].

        Parameters
        ----------
        event : Event
            One of the drive's, or a package or settings.
        """
        return 1e-9 * (event.time - self.zero)

    def columns(self, what: str = "ticks", *, zero: int | None = None) -> list[Column]:
        """Return name, unit and values of each column of a table; the first is `t`.

        Parameters
        ----------
        what : {"ticks", "frames", "chassis", "events"}
            One row each.
        zero : int, optional
            When `t` is 0 [ns], for a part of a drive.

        Raises
        ------
        ConfigError
            If there is no such table.
        """
        if what not in WHAT:
            raise ConfigError(f"what: {not_among(what, WHAT)}")
        if what == "events":
            table = [Column(name, UNITS.get(name, ""), _values(self.events, name)) for name in Event._fields]
            times = _values(self.events, "time")
        elif what == "frames":
            table, times = columns(self.motion), self.motion["time"]
        elif what == "chassis":
            table, times = columns(self.chassis), self.chassis["time"]
        else:
            table, times = self._named(columns(self.ticks)), self.ticks["deadline"]
        return [Column("t", "s", (times - (self.zero if zero is None else zero)) * 1e-9), *table]

    def _named(self, table: list[Column]) -> list[Column]:
        """Return the columns of ticks with names of states, and with those actuators only that the platform has."""
        actuators, found = actuators_of(self.profile), []
        for column in table:
            number = column.name.removeprefix("actuator_")
            if column.name == "state":
                column = column._replace(values=_STATES[np.clip(column.values, 0, len(_STATES) - 1)])
            elif number != column.name and actuators is not None:
                if int(number) > len(actuators):
                    continue
                name, unit = actuators[int(number) - 1]
                column = Column(name, unit, column.values)
            found.append(column)
        return found

    def table(self, what: str = "ticks") -> dict[str, npt.NDArray[Any]]:
        """Return a flat table: an array a column, `t` [s] first.

        Parameters
        ----------
        what : {"ticks", "frames", "chassis", "events"}
            One row each.

        Examples
        --------
        >>> drive.table()["cue_surge"], polars.DataFrame(drive.table("frames"))            # doctest: +SKIP
        """
        return {column.name: np.ascontiguousarray(column.values) for column in self.columns(what)}

    def units(self, what: str = "ticks") -> dict[str, str]:
        """Return the unit of each column of a table; empty where there is none."""
        return {column.name: column.unit for column in self.columns(what)}

    def to_pandas(self, what: str = "ticks") -> Any:
        """Return a table as a pandas.DataFrame with the index `t` [s] and the units in ``attrs["units"]``."""
        import pandas

        frame = pandas.DataFrame(self.table(what)).set_index("t")
        frame.attrs["units"] = self.units(what)
        return frame

    def to_polars(self, what: str = "ticks") -> Any:
        """Return a table as a polars.DataFrame."""
        import polars

        return polars.DataFrame(self.table(what))

    def to_xarray(self, what: str = "ticks") -> Any:
        """Return a table as an xarray.Dataset with the coordinate `t` [s]; each variable has its unit."""
        import xarray

        (_, _, times), *table = self.columns(what)
        values = {name: ("t", np.ascontiguousarray(rows), {"units": unit}) for name, unit, rows in table}
        began = self.began
        about = {} if began is None else {"began": began.isoformat()}
        return xarray.Dataset(values, {"t": ("t", times, {"units": "s"})}, about)


def _within(rows: npt.NDArray[np.void], key: str, start: float, end: float) -> npt.NDArray[np.void]:
    return rows[(rows[key] >= start) & (rows[key] < end)]


def _values(events: list[Event], name: str) -> npt.NDArray[Any]:
    kind = {"time": "i8", "detail": "i8", "value": "f8", "limit": "f8"}.get(name, "U")
    return np.array([getattr(row, name) for row in events], kind)


def actuators_of(profile: Mapping[str, Any] | None) -> list[tuple[str, str]] | None:
    """Return name and unit of the actuators of a recorded profile's platform; None if it does not say."""
    table = None if profile is None else profile.get("platform")
    if table is None:
        return None if profile is None else []
    try:
        platform = platform_table(table)
        names = build(platform).names
    except ConfigError:  # of another version
        return None
    turning = {axis.name for axis in platform.axes if axis.turn is not None}
    return [(name, "rad" if name.startswith("crank") or name in turning else "m") for name in names]


ROWS = 10_000  # rows at a time, which bounds the memory

Tables: TypeAlias = Iterator[list[Column]]
"""The rows of a table in pieces, which all have the same columns."""


class Exported(NamedTuple):
    """What has been exported."""

    rows: int
    path: Path
    began: datetime | None
    """The time of day when `t` is 0, UTC; None if the recording does not know it."""


def export(
    drive: Drive | Iterable[Drive],
    path: str | Path,
    what: str = "ticks",
    *,
    force: bool = False,
    progress: Callable[[int], object] = lambda rows: None,
) -> Exported:
    """Write a recording for other programs; return how many rows there are, and where.

    Columns carry their unit: in the header of a CSV (``surge [m/s^2]``), in the field's metadata of Parquet, as the
    channel's unit of MDF4.  ``t`` [s] counts from the first tick in every table of a recording, and from the first
    frame where there are no ticks.  Parquet (``began`` in its metadata) and MDF4 have the time of day of that.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ConfigError(f"--to: {not_among(path.suffix, FORMATS)}")
    if what not in WHAT:
        raise ConfigError(f"--what: {not_among(what, WHAT)}")
    if path.is_dir():
        raise ConfigError(f"--to: {str(path)!r} cannot be written: found a folder, allowed is a file")
    pieces = iter([drive] if isinstance(drive, Drive) else drive)
    first = next(pieces, None)
    if first is None:
        raise ConfigError(f"--what: the recording has no {what}")
    rows, frames = 0, 0

    def tables() -> Tables:
        nonlocal rows, frames
        for piece in chain([first], pieces):
            table = piece.columns(what, zero=first.zero)
            frames += len(piece.motion)
            for start in range(0, len(table[0].values), ROWS):
                part = [column._replace(values=column.values[start : start + ROWS]) for column in table]
                yield part
                rows += len(part[0].values)
                progress(rows)
        if not rows:
            but = ", only what a simulator said: --what frames" if what == "ticks" and frames else ""
            but = f": {KILLED}" if KILLED in first.unreadable else but
            raise ConfigError(f"--what: the recording has no {what}{but}")

    try:
        write = FORMATS[path.suffix]
        written = write_atomically(path, lambda part: write(part, tables(), first.began), force=force)
    except ImportError as error:
        raise ConfigError(f'--to: {path.suffix} needs {error.name}: pip install "motioncue[export]"') from error
    except OSError as error:
        raise ConfigError(f"--to: {str(path)!r} cannot be written: {error.strerror or error}") from error
    return Exported(rows, written, first.began)


def _csv(path: Path, tables: Tables, began: datetime | None) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for number, table in enumerate(tables):
            if not number:
                writer.writerow([f"{name} [{unit}]" if unit else name for name, unit, _ in table])
            writer.writerows(zip(*(values.tolist() for _, _, values in table), strict=True))


def _parquet(path: Path, tables: Tables, began: datetime | None) -> None:
    import pyarrow
    import pyarrow.parquet

    writer = None
    try:
        for table in tables:
            if writer is None:
                fields = [
                    pyarrow.field(name, pyarrow.array(values[:0]).type, metadata={"unit": unit})
                    for name, unit, values in table
                ]
                schema = pyarrow.schema(fields, None if began is None else {"began": began.isoformat()})
                writer = pyarrow.parquet.ParquetWriter(path, schema, compression="zstd")
            arrays = [np.ascontiguousarray(values) for _, _, values in table]
            writer.write_table(pyarrow.table(arrays, schema=schema))
    finally:
        if writer is not None:
            writer.close()


TEXT = "S96"  # of MDF4, whose texts all have the same length: longer than any name of a state or reason


def _mdf4(path: Path, tables: Tables, began: datetime | None) -> None:
    from asammdf import MDF, Signal

    with MDF(version="4.10") as file:
        if began is not None:
            file.header.start_time = began
        for number, ((_, _, times), *table) in enumerate(tables):
            samples = [
                np.char.encode(values, "utf-8").astype(TEXT)
                if values.dtype.kind == "U"
                else np.ascontiguousarray(values)
                for _, _, values in table
            ]
            if number:
                file.extend(0, [(times, None), *((each, None) for each in samples)])
                continue
            signals = [
                # `time` is the name of every group's own axis.
                Signal(each, times, unit, "monotonic_time" if name == "time" else name, encoding=_encoding(each))
                for (name, unit, _), each in zip(table, samples, strict=True)
            ]
            file.append(signals, comment="motioncue")
        file.save(path, overwrite=True, compression=2)


def _encoding(samples: Any) -> str | None:
    return "utf-8" if samples.dtype.kind == "S" else None


FORMATS = {".csv": _csv, ".parquet": _parquet, ".mf4": _mdf4}
"""What can be written, by the ending of the file."""
