"""The meaning of the figures in words."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["GRADES", "advice", "bearable", "punctual", "verdict"]

GRADES = ("on time", "on time when idle", "mostly on time", "not on time")
"""The grades from best to worst."""

CLOSE = 0.1  # in periods: a packet later than this shows in the platform's own sampling
RARE = 1e-3  # share of ticks
AS_GOOD = 1.25  # ratio to the bare loop's p99 that counts as equal,
NEGLIGIBLE = 0.005  # as does a difference of this many periods


def punctual(row: Mapping[str, Any]) -> bool:
    """Say whether 999 packets of 1,000 leave close to their deadline, and none is skipped."""
    ours = row["emitter"]
    return bool(ours["skipped"] == 0 and ours["lateness_us"]["p999"] <= CLOSE * 1e6 / row["rate_hz"])


def bearable(row: Mapping[str, Any]) -> bool:
    """Say whether 99 packets of 100 leave close to their deadline, and few are skipped."""
    ours = row["emitter"]
    late = ours["lateness_us"]["p99"]
    return bool(late <= CLOSE * 1e6 / row["rate_hz"] and ours["skipped"] <= RARE * ours["ticks"])


def verdict(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the grade of one rate, and its reason."""
    if all(map(punctual, rows)):
        grade = GRADES[0]
    elif punctual(rows[0]):
        grade = GRADES[1]
    elif all(map(bearable, rows)):
        grade = GRADES[2]
    else:
        grade = GRADES[3]
    return {"grade": grade, "words": " ".join(sentence(row) for row in rows)}


def sentence(row: Mapping[str, Any]) -> str:
    """Return one row in words."""
    ours, floor = row["emitter"], row["bare"]
    late, floor_late = ours["lateness_us"], floor["lateness_us"]
    share = 100.0 * late["p999"] * 1e-6 * row["rate_hz"]
    kind = {"idle": "Idle", "loaded": "Under load"}[row["load"]]
    skipped = f"{ours['skipped']} of {ours['ticks'] + ours['skipped']} ticks were" if ours["skipped"] else "none was"
    more = late["p99"] - floor_late["p99"]
    if late["p99"] <= AS_GOOD * floor_late["p99"] or more <= NEGLIGIBLE * 1e6 / row["rate_hz"]:
        beside = "a bare loop does no better"
    else:
        beside = f"99 of 100 within {duration(late['p99'])}, where a bare loop manages {duration(floor_late['p99'])}"
    percent = f"{share:.0f}" if share >= 9.5 else f"{share:.1g}"
    within = f"{duration(late['p999'])} ({percent} % of a period)"
    return f"{kind}: 999 of 1,000 packets leave within {within}, {skipped} skipped; {beside}."


def duration(us: float) -> str:
    """Return a time in words, with about two digits."""
    return f"{us:.3g} µs" if us < 999.5 else f"{us / 1e3:.3g} ms"


def advice(granted: Mapping[str, bool], settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return measures that would help this machine, the most effective first."""
    found = []
    if granted.get("fifo") is False:
        found.append(
            "No real-time priority was granted: under load this is what decides. docs/timing.md says how to grant it."
        )
    if granted.get("high_resolution_timer") is False:
        found.append("No high-resolution timer: this needs Windows 10 1803 or newer.")
    if granted.get("mmcss") is False:
        found.append("The Multimedia Class Scheduler refused: its service may be switched off.")
    asked = settings["keep_awake"]
    if asked and granted.get("keep_awake") is False:
        found.append("The processors may not be kept awake: /dev/cpu_dma_latency is not open to this user.")
    idle = next((row for row in rows if row["load"] == "idle"), None)
    slow = idle is not None and idle["emitter"]["lateness_us"]["p50"] > 20.0
    if slow and not asked and "fifo" in granted:
        found.append("Half of the packets wait for a processor to wake: output.keep_awake = true, if power permits.")
    if settings["spin_us"] and not (granted.get("fifo") or granted.get("mmcss") or granted.get("time_critical")):
        found.append("output.spin_us makes ticks later without a real-time priority: leave it at 0.")
    return found
