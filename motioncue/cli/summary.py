"""The result of a run as a short table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from motioncue.cli.common import folded
from motioncue.cli.live import microseconds, percent
from motioncue.cli.screen import console, glyphs_of
from motioncue.view.watched import verdict

__all__ = ["engine_rows", "lateness", "platform_rows", "print_summary", "reasons"]


def print_summary(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a title, then names and values, in characters that the output can display."""
    output = console()
    glyphs = glyphs_of(output)
    width = max(len(name) for name, _ in rows)
    output.print(Text(folded(glyphs.text(title), indent=2), "bold"), soft_wrap=True)
    for name, value in rows:
        line = Text(folded(f"  {name:<{width}}  {glyphs.text(value)}", indent=width + 4))
        line.stylize("dim", 0, width + 4)
        output.print(line, soft_wrap=True)


def reasons(rejected: Mapping[str, int]) -> str:
    """Return a text of names and counts, of refusals or events."""
    return ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in rejected.items()) or "0"


def lateness(quantiles: Mapping[str, float]) -> str:
    """Return a text of lateness quantiles."""
    names = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
    return ", ".join(f"{names[key]} {microseconds(quantiles[key])}" for key in names if key in quantiles)


def changes(stats: Mapping[str, Any]) -> str:
    """Return a text of the final state and the number of transitions."""
    count = len(stats["transitions"])
    return f"{stats['state'].lower()}, after {count} change{'' if count == 1 else 's'}"


def engine_rows(stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows about an engine."""
    limited = ", ".join(
        f"{name.replace('_', ' ')} {percent(share)}" for name, share in stats["limited"].items() if share
    )
    unbounded = stats["limits"] == "none"
    heard = stats["frames_received"] > 0
    return [
        ("verdict", verdict(stats).words),
        ("duration", f"{stats['duration_s']:.1f} s"),
        ("frames in", str(stats["frames_received"] or none_received(stats["rejected"]))),
        ("packets out", f"{stats['packets_sent']} at {stats['rate_hz']:.2f} Hz" if stats["packets_sent"] else "0"),
        *lost_rows(stats["outputs"]),
        *([("late by", lateness(stats["lateness_us"])), ("skipped", str(stats["skipped"]))] if heard else []),
        ("rejected", reasons(stats["rejected"])),
        ("state", changes(stats)),
        ("events", reasons(stats["events"])),
        ("limited", "nothing is bounded" if unbounded else limited or "0"),
        *([("algorithm", reasons(stats["algorithm"]))] if "algorithm" in stats else []),
        *([("recorded", recorded(stats["recorded"]))] if "recorded" in stats else []),
    ]


def none_received(rejected: Mapping[str, int]) -> str:
    """Return a text of why no frame was received."""
    if any(rejected.values()):
        return f"0: packages were heard, and refused ({reasons(rejected)}); `motioncue listen` shows what arrives"
    return "0: no simulator was heard; `motioncue listen` shows what arrives"


def recorded(counts: Mapping[str, Any]) -> str:
    """Return a text of what a recording holds, and of its files."""
    lost = f"; {counts['lost']} records were lost" if counts["lost"] else ""
    files = counts["files"] or ["no file"]
    where = ", ".join(files) if len(files) < 4 else f"{files[0]} and {len(files) - 1} more, the last {files[-1]}"
    return f"{counts['ticks']} ticks, {counts['frames']} frames, {counts['packages']} packages in {where}{lost}"


def lost_rows(outputs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return rows about packets that were not sent or not heard, by output; none if all arrived."""
    return [
        *(
            ("not sent", f"{output['refused']} to {output['endpoint']}: {output['error']}")
            for output in outputs
            if output["refused"]
        ),
        *(
            ("nobody there", f"for {output['unheard']} to {output['endpoint']}")
            for output in outputs
            if output["unheard"]
        ),
    ]


def platform_rows(name: str, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows about what a platform received."""
    rows = []
    for stream, values in stats["streams"].items():
        longest = values["interval_us"]["max"]
        gap = "" if longest is None else f", longest gap {microseconds(longest)}"
        rows.append((f"{name} received", f"{values['packets_received']} {stream} at {values['rate_hz']:.2f} Hz{gap}"))
    if not rows:
        rows.append((f"{name} received", "nothing"))
    return rows + drive_rows(stats)


def drive_rows(stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows about the drives of a virtual platform; none if it has none."""
    drives = stats.get("actuators", {})
    if stats.get("unmoved"):
        return [("drives", f"none: no field of the packet holds {', '.join(stats['unmoved'])} by itself")]
    if not drives:
        return []
    hits = {name: drive["hits"] for name, drive in drives.items() if drive["hits"]}
    overruns = {name: drive["overruns"] for name, drive in drives.items() if drive["overruns"]}
    delays = {"the packets": stats["delay_s"], "the cue": stats.get("behind_cue_s")}
    late = [f"{value * 1e3:.1f} ms behind {what}" for what, value in delays.items() if value is not None]
    return [
        ("travel used", ", ".join(f"{name} {percent(drive['travel'])}" for name, drive in drives.items())),
        ("end stops hit", counts_of(hits)),
        ("overruns", f"{counts_of(overruns)} (ticks beyond an actuator's speed or acceleration)"),
        ("drives late by", ", ".join(late) or "unknown: they do not move"),
    ]


def counts_of(counts: Mapping[str, int]) -> str:
    """Return a text of how often something happened to each actuator."""
    return ", ".join(f"{name}: {count}" for name, count in counts.items()) or "0"
