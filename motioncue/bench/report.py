"""A measurement in words, and as a file: self-contained HTML, or a picture."""

import importlib.util
from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from motioncue.errors import ConfigError

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


COSTS = {
    "package": "a package taken: framed, decoded, body frame, published (one call from Python each)",
    "tick": "a tick, all of it but the sending",
    "tick_sent": "a tick and one packet to this machine",
    "batch": "a tick of a batch over a whole recording",
}
"""The measured operations."""
LOOPS = {"emitter": "#1f77b4", "bare": "#ff7f0e"}
NAMES = {"emitter": "emitter", "bare": "bare loop", "cyclictest": "cyclictest"}
LOADS = {"idle": "idle", "loaded": "under load"}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
td, th { padding: .15em .8em; text-align: right; border-bottom: 1px solid #ddd }
td:first-child { text-align: left }
figure { display: inline-block; margin: 0 1em 1em 0 }
"""
WIDTH, HEIGHT, MARGIN = 420, 230, 44  # size and margin of a plot [px]
DECADES_X, DECADES_Y = (0, 4), (-5, 0)  # 1 us to 10 ms; one tick in 100,000 to all


def check_report(path: Path) -> None:
    """Refuse a file to which no report can be written."""
    if path.suffix not in (".html", ".png"):
        raise ConfigError(f"--report: found {str(path)!r}, allowed are names that end in .html or .png")
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise ConfigError(f"--report: found {str(path)!r}, allowed is a file in a folder that exists")
    if path.suffix == ".png" and importlib.util.find_spec("matplotlib") is None:
        raise ConfigError('--report: a .png needs matplotlib (pip install "motioncue[report]"); .html needs nothing')


def write_report(result: Mapping[str, Any], path: Path) -> None:
    """Write the result of `measure` to a file."""
    try:
        if path.suffix == ".png":
            _picture(result, path)
        else:
            path.write_text(_page(result), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--report: {str(path)!r} cannot be written: {error.strerror}") from error


def later_than(edges_us: Sequence[float], counts: Sequence[int]) -> list[tuple[float, float]]:
    """Return the share of ticks later than each edge [us], up to the latest tick."""
    total, left = sum(counts), sum(counts)
    points = []
    for edge, count in zip(edges_us, counts, strict=True):
        if left:
            points.append((edge, left / total))
        left -= count
    return points


def _picture(result: Mapping[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    rows = result["pacing"]
    rates = sorted({row["rate_hz"] for row in rows})
    figure = Figure(figsize=(10, 3.6 * len(rates)), layout="constrained")
    axes = figure.subplots(len(rates), 2, sharex=True, sharey=True, squeeze=False)
    for row in rows:
        side = axes[rates.index(row["rate_hz"]), list(LOADS).index(row["load"])]
        for loop, color in LOOPS.items():
            points = later_than(row["histogram"]["from_us"], row["histogram"][loop])
            side.step(
                [max(x, 0.1) for x, _ in points], [y for _, y in points], where="post", color=color, label=NAMES[loop]
            )
        side.axvline(1e6 / row["rate_hz"], color="0.5", linestyle=":", label="a period")
        side.set(xscale="log", yscale="log", title=f"{row['rate_hz']:g} Hz, {LOADS[row['load']]}")
        side.grid(True, alpha=0.3)
    axes[0, 0].legend()
    figure.supxlabel("later than [µs]")
    figure.supylabel("share of ticks")
    figure.suptitle("\n".join(f"{rate} Hz: {found['grade']}" for rate, found in result["verdict"].items()))
    figure.savefig(path, dpi=120)


def _page(result: Mapping[str, Any]) -> str:
    machine = result["machine"]
    about = [f"{machine['processor']}, {machine['processors']} processors", machine["system"]]
    about += [f"Python {machine['python']}", f"motioncue {result['motioncue']}"]
    granted = ", ".join(f"{name}: {'yes' if yes else 'no'}" for name, yes in result["granted"].items())
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>motioncue bench</title>",
        f"<style>{STYLE}</style><h1>motioncue bench</h1>",
        f"<p>{escape(', '.join(about))}<br>granted: {escape(granted)}<br>",
        f"settings: {escape(str(result['settings']))}</p>",
        "<h2>Verdict</h2><ul>",
    ]
    for rate, found in result["verdict"].items():
        parts.append(f"<li><b>{escape(rate)} Hz: {escape(found['grade'])}.</b> {escape(found['words'])}")
    parts += [f"<li>{escape(words)}" for words in result["advice"]]
    heads = ("late p50", "p99", "p99.9", "max", "jitter p50", "p99", "p99.9", "max", "skipped")
    parts.append("</ul><h2>Lateness and period jitter [µs]</h2>")
    parts.append(_table(heads, [_loop(row, loop) for row in result["pacing"] for loop in NAMES if row[loop]]))
    parts.append("<h2>How many ticks are later than …</h2>")
    parts += [_curves(row) for row in result["pacing"]]
    parts.append("<h2>From the arrival of a frame [µs]</h2>")
    parts.append(_table(("p50", "p99", "p99.9", "max"), [row for found in result["latency"] for row in _delays(found)]))
    parts.append("<h2>Cost [ns]</h2>")
    parts.append(_table(("",), [[COSTS[name], f"{cost:,.0f}"] for name, cost in result["cost_ns"].items()]))
    parts += [f"<p>No {escape(name)}: {escape(why)}.</p>" for name, why in result["absent"].items()]
    return "\n".join([*parts, "</html>\n"])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column has no header."""
    lines = ["<tr><th>" + "".join(f"<th>{escape(head)}" for head in heads)]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows]
    return "<table>" + "\n".join(lines) + "</table>"


def _loop(row: Mapping[str, Any], loop: str) -> list[str]:
    found = row[loop]
    values = [*found["lateness_us"].values(), *found.get("interval_error_us", {}).values()]
    cells = [*(f"{value:,.1f}" for value in values), str(found.get("skipped", ""))]
    return [f"{row['rate_hz']:g} Hz, {LOADS[row['load']]}: {NAMES[loop]}", *cells]


def _delays(row: Mapping[str, Any]) -> list[list[str]]:
    names = {
        "published_us": "to the engine",
        "bare_us": "to a bare receiving loop",
        "shown_us": f"to the first packet, at {row['rate_hz']:g} Hz",
    }
    return [
        [f"{LOADS[row['load']]}: {name}", *(f"{value:,.1f}" for value in row[key].values())]
        for key, name in names.items()
    ]


def _curves(row: Mapping[str, Any]) -> str:
    """Return a plot of the share of ticks later than a time, with logarithmic axes."""

    def x_of(us: float) -> float:
        return MARGIN + WIDTH * min(1.0, max(0.0, (log10(max(us, 0.1)) - DECADES_X[0]) / (DECADES_X[1] - DECADES_X[0])))

    def y_of(share: float) -> float:
        return HEIGHT * min(1.0, (DECADES_Y[1] - log10(share)) / (DECADES_Y[1] - DECADES_Y[0])) + 10

    title = f"{row['rate_hz']:g} Hz, {LOADS[row['load']]}"
    size = f'width="{WIDTH + MARGIN + 10}" height="{HEIGHT + 40}"'
    parts = [f"<figure><figcaption>{escape(title)}</figcaption><svg {size}>"]

    def line(path: str, label: str, x: float, y: float) -> None:
        parts.append(f'<path d="{path}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" fill="#555">{label}</text>')

    for decade in range(DECADES_X[0], DECADES_X[1] + 1):
        x = x_of(10.0**decade)
        label = f"{10**decade} µs" if decade < 3 else f"{10 ** (decade - 3)} ms"
        line(f"M{x:.1f} 10V{HEIGHT + 10}", label, x - 12, HEIGHT + 26)
    for decade in range(DECADES_Y[0], DECADES_Y[1] + 1):
        y = y_of(10.0**decade)
        line(f"M{MARGIN} {y:.1f}h{WIDTH}", f"1e{decade}", 2, y + 4)
    for place, (loop, color) in enumerate(LOOPS.items()):
        path, level = "", y_of(1.0)
        for us, share in later_than(row["histogram"]["from_us"], row["histogram"][loop]):
            path += f"{'L' if path else 'M'}{x_of(us):.1f} {level:.1f}L{x_of(us):.1f} {y_of(share):.1f}"
            level = y_of(share)
        parts.append(f'<path d="{path}V{HEIGHT + 10}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        parts.append(f'<text x="{WIDTH - 30}" y="{26 + 14 * place}" font-size="12" fill="{color}">{NAMES[loop]}</text>')
    return "".join([*parts, "</svg></figure>"])
