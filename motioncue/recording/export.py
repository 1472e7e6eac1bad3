"""Export of recordings to CSV, Parquet and MDF4, with one row per tick, frame or event."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CUE, MOTION
from motioncue.errors import ConfigError, not_among
from motioncue.recording.atomic_file import write_whole
from motioncue.recording.recording import Drive
from motioncue.recording.schema import Event

__all__ = ["FORMATS", "WHAT", "Exported", "columns", "export"]

ROWS = 10_000  # rows at a time, which bounds the memory

UNITS = {
    **{channel.name: channel.unit for channel in (*MOTION, *CUE)},
    "deadline": "ns",
    "lateness": "ns",
    "value": "",
    "limit": "",
}

WHAT = ("ticks", "frames", "events")
"""Parts of a recording that can be exported."""


def columns(rows: npt.NDArray[np.void]) -> list[tuple[str, str, npt.NDArray[Any]]]:
    """Return name, unit and values of each column of records.

    Nested records give columns such as ``motion_surge``, arrays such as ``actuator_1``.

    Parameters
    ----------
    rows : ndarray of MOTION_DTYPE or TICK_DTYPE, shape (n,)
        Frames or ticks.
    """
    assert rows.dtype.names is not None
    found = []
    for name in rows.dtype.names:
        if rows.dtype[name].shape:
            several = enumerate(rows[name].T, 1)
            found += [(f"{name.removesuffix('s')}_{number}", UNITS.get(name, ""), values) for number, values in several]
        elif rows.dtype[name].names is None:
            found.append((name, UNITS.get(name, ""), rows[name]))
        else:
            found += [(f"{name}_{inner}", unit, values) for inner, unit, values in columns(rows[name])]
    return found


def _table(drive: Drive, what: str) -> tuple[list[tuple[str, str, npt.NDArray[Any]]], npt.NDArray[np.int64]]:
    """Return the columns, and the monotonic time of each row [ns]."""
    if what == "events":
        rows = drive.events
        table = [(name, UNITS.get(name, ""), np.array([getattr(row, name) for row in rows])) for name in Event._fields]
        return table, np.array([row.time for row in rows], np.int64)
    rows_of = drive.ticks if what == "ticks" else drive.motion
    return columns(rows_of), rows_of["deadline" if what == "ticks" else "time"]


class Exported(NamedTuple):
    """What has been exported."""

    rows: int
    path: Path


def export(
    drive: Drive,
    path: str | Path,
    what: str = "ticks",
    *,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a recording for other programs; return how many rows there are, and where.

    Parameters
    ----------
    drive : Drive
        What `motioncue.read` returned.
    path : str or Path
        Its ending says the format: .csv, .parquet (needs pyarrow) or .mf4 (needs asammdf).  A number is added to a name
        in use.
    what : {"ticks", "frames", "events"}
        One row each.
    force : bool
        Replace an existing file.
    progress : callable, optional
        Called with rows done and rows in all.

    Returns
    -------
    Exported
        The file appears when it is whole.

    Raises
    ------
    ConfigError
        If the ending or `what` is not one of these, there is nothing to export, a library is not installed, or the
        file cannot be written.

    Notes
    -----
    Columns carry their unit: in the header of a CSV (``surge [m/s^2]``), in the field's metadata of Parquet, as the
    channel's unit of MDF4.  ``t`` [s] counts from the first row.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ConfigError(f"--to: {not_among(path.suffix, FORMATS)}")
    if what not in WHAT:
        raise ConfigError(f"--what: {not_among(what, WHAT)}")
    table, times = _table(drive, what)
    if not len(times):
        raise ConfigError(
            f"--what: the recording has no {what}"
            + (", only what a simulator said: --what frames" if what == "ticks" and len(drive.motion) else "")
        )
    table = [("t", "s", (times - times[0]) * 1e-9), *table]
    if path.is_dir():
        raise ConfigError(f"--to: {str(path)!r} cannot be written: found a folder, allowed is a file")
    try:
        write = FORMATS[path.suffix]
        written = write_whole(path, lambda part: write(part, table, progress or (lambda *_: None)), force=force)
    except ImportError as error:
        raise ConfigError(f'--to: {path.suffix} needs {error.name}: pip install "motioncue[export]"') from error
    except OSError as error:
        raise ConfigError(f"--to: {str(path)!r} cannot be written: {error.strerror or error}") from error
    return Exported(len(times), written)


def _pieces(table: list[tuple[str, str, npt.NDArray[Any]]]) -> Iterator[tuple[int, list[npt.NDArray[Any]]]]:
    for first in range(0, len(table[0][2]), ROWS):
        yield first, [values[first : first + ROWS] for _, _, values in table]


def _csv(path: Path, table: list[tuple[str, str, npt.NDArray[Any]]], progress: Callable[[int, int], None]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([f"{name} [{unit}]" if unit else name for name, unit, _ in table])
        for first, piece in _pieces(table):
            writer.writerows(zip(*(values.tolist() for values in piece), strict=True))
            progress(first + len(piece[0]), len(table[0][2]))


def _parquet(path: Path, table: list[tuple[str, str, npt.NDArray[Any]]], progress: Callable[[int, int], None]) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [pyarrow.field(name, pyarrow.array(values[:0]).type, metadata={"unit": unit}) for name, unit, values in table]
    )
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for first, piece in _pieces(table):
            writer.write_table(pyarrow.table([np.ascontiguousarray(values) for values in piece], schema=schema))
            progress(first + len(piece[0]), len(table[0][2]))


def _mdf4(path: Path, table: list[tuple[str, str, npt.NDArray[Any]]], progress: Callable[[int, int], None]) -> None:
    from asammdf import MDF, Signal

    times = table[0][2]
    signals = [
        Signal(
            samples=np.char.encode(values, "utf-8") if values.dtype.kind == "U" else np.ascontiguousarray(values),
            timestamps=times,
            name=name,
            unit=unit,
            encoding="utf-8" if values.dtype.kind == "U" else None,
        )
        for name, unit, values in table[1:]
    ]
    with MDF(version="4.10") as file:
        file.append(signals, comment="motioncue")
        file.save(path, overwrite=True, compression=2)
    progress(len(times), len(times))


FORMATS = {".csv": _csv, ".parquet": _parquet, ".mf4": _mdf4}
"""What can be written, by the ending of the file."""
