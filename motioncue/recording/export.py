"""Export of recordings to CSV, Parquet and MDF4, with one row per tick, frame or event."""

import csv
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from motioncue.errors import ConfigError, not_among
from motioncue.recording.atomic_file import write_atomically
from motioncue.recording.drive import KILLED, WHAT, Column, Drive

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
