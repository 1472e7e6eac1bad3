"""What a run came to, as a short table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from motioncue.cli.live import microseconds
from motioncue.cli.screen import console, glyphs_of

__all__ = ["engine_rows", "lateness", "platform_rows", "print_summary", "reasons"]


def print_summary(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a title and a table of names and values, in characters that the output can show."""
    output = console()
    glyphs = glyphs_of(output)
    table = Table.grid(padding=(0, 3, 0, 0))
    for name, value in rows:
        table.add_row(Text(f"  {name}", "dim"), Text(glyphs.text(value), overflow="fold"))
    output.print(Text(glyphs.text(title), "bold"))
    output.print(table)


def reasons(rejected: Mapping[str, int]) -> str:
    """Return what was rejected and why."""
    return ", ".join(f"{count} {reason}" for reason, count in rejected.items()) or "0"


def lateness(quantiles: Mapping[str, float]) -> str:
    """Return quantiles of lateness in words."""
    names = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
    return ", ".join(f"{names[key]} {microseconds(quantiles[key])}" for key in names if key in quantiles)


def engine_rows(stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows that say what an engine did."""
    return [
        ("duration", f"{stats['duration_s']:.1f} s"),
        ("frames in", f"{stats['frames_received']}"),
        ("packets out", f"{stats['packets_sent']} at {stats['rate_hz']:.2f} Hz"),
        ("late by", lateness(stats["lateness_us"])),
        ("skipped", str(stats["skipped"])),
        ("rejected", reasons(stats["rejected"])),
    ]


def platform_rows(name: str, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows that say what a platform received."""
    rows = []
    for stream, values in stats["streams"].items():
        interval = values["interval_us"]
        spread = "" if interval["p50"] is None else f", every {lateness(interval)}"
        rows.append(
            (f"{name} received", f"{stream}: {values['packets_received']} at {values['rate_hz']:.2f} Hz{spread}")
        )
    if not rows:
        rows.append((f"{name} received", "nothing"))
    return rows
