"""``motioncue bench``: measures how punctual this machine is."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from motioncue.bench.measure import FULL, QUICK, measure
from motioncue.bench.report import COSTS, LOADS, NAMES, check_report, write_report
from motioncue.cli.common import folded, json_option, print_json, set_option
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import ASCII, Glyphs, console, glyphs_of, microseconds, percent
from motioncue.engine.assembly import load_profile

CELL = 8  # characters per figure
BAR = 7  # length of a histogram's longest bar
COLUMN = BAR + 9  # width of a histogram


class Stopped(Exception):
    """A signal came before the measurement was complete."""


@click.command()
@click.option(
    "--profile", metavar="NAME|FILE", default="ccd-dk-washout", show_default=True, help="Profile whose tick to measure."
)
@set_option
@click.option("--quick", is_flag=True, help="Take about ten seconds, to see that it runs.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Keep the result: .html, or .png.")
@json_option
def command(profile: str, overrides: tuple[str, ...], quick: bool, report: Path | None, as_json: bool) -> None:
    """Measure how punctual this machine is, idle and under a load of its own.

    The emitter runs at 333.33 and 1000 Hz, in turn with a bare loop that only sleeps and sends, which separates the
    machine's share of the lateness from motioncue's.  Takes two minutes; leave the machine alone, or use it as when
    driving.  A signal that ends it leaves no result: exit status 128 plus its number, 130 for Ctrl-C.

    \b
    Example:  motioncue bench --set output.keep_awake=true --report machine.html
    """
    settings = load_profile(profile, *overrides)
    if report is not None:
        check_report(report)
    with Interrupts() as interrupts:
        try:
            with shown_progress() as progress:

                def unless_stopped(share: float, what: str) -> None:
                    if interrupts.count:
                        raise Stopped
                    progress(share, what)

                result = measure(settings, QUICK if quick else FULL, unless_stopped)
        except Stopped:
            click.echo("ended by a signal before everything was measured: there is no result", err=True)
            raise SystemExit(interrupts.status) from None
    show(result)
    if quick:
        click.echo("  A quick look: for a verdict to rely on, run it without --quick.")
    if report is not None:
        write_report(result, report)
        click.echo(f"report: {report}", err=True)
    if as_json:
        print_json(result)


@contextmanager
def shown_progress() -> Iterator[Callable[[float, str], None]]:
    """Show progress on stderr: a bar on a terminal, elsewhere a line for each new step."""
    errors = Console(stderr=True, highlight=False, emoji=False, markup=False)
    if not errors.is_terminal:
        said: list[str] = []

        def say(share: float, what: str) -> None:
            if what not in said[-1:]:
                said.append(what)
                click.echo(f"{100 * share:3.0f} %  {what}", err=True)

        yield say
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda done, what: progress.update(task, completed=done, description=f"{what:<24}")


def show(result: Mapping[str, Any]) -> None:
    """Print the result as text."""
    output = console()
    glyphs = glyphs_of(output)

    def line(text: str = "", style: str = "", indent: int = 0) -> None:
        text = glyphs.text(text)
        output.print(Text(folded(text, indent) if indent else text, style), soft_wrap=True)

    machine = result["machine"]
    about = f"{machine['processor']}, {machine['processors']} processors, {machine['system']}"
    line(f"motioncue bench · {about}", "bold", 2)
    granted = ", ".join(f"{name} {'yes' if yes else 'no'}" for name, yes in result["granted"].items())
    line(f"  granted: {granted}", indent=4)
    for rate_hz in sorted({row["rate_hz"] for row in result["pacing"]}):
        rows = [row for row in result["pacing"] if row["rate_hz"] == rate_hz]
        line()
        for first, heads in (
            (f"{rate_hz:g} Hz", ("late", "", "", "", "jitter", "", "")),
            ("", ("p50", "p99", "p99.9", "max", "p50", "p99", "skipped")),
        ):
            line(f"{first:<24}" + "".join(f"{head:>{CELL}}" for head in heads).rstrip(), "bold")
        for row in rows:
            for loop in ("emitter", "bare", "cyclictest"):
                if row[loop] is not None:
                    line(figures_line(row, loop))
        line()
        for text in histogram_lines(rows, glyphs):
            line(text)
    line()
    columns = "".join(f"{head:>{CELL}}" for head in ("p50", "p99", "p99.9", "max", "lost"))
    line(f"{'from the arrival of a frame':<40}{columns}", "bold")
    for row in result["latency"]:
        for name, key, lost in (
            ("to the engine", "published_us", row["lost"]["engine"]),
            ("to a bare receiving loop", "bare_us", row["lost"]["bare"]),
            (f"to first packet, {row['rate_hz']:g} Hz", "shown_us", ""),
        ):
            cells = "".join(f"{microseconds(value):>{CELL}}" for value in row[key].values())
            line(f"  {LOADS[row['load']]:<11}{name:<27}{cells}{lost:>{CELL}}".rstrip())
    line()
    line("cost", "bold")
    for name, cost in result["cost_ns"].items():
        line(f"  {microseconds(cost / 1e3):>9}  {COSTS[name]}", indent=13)
    for name, why in result["absent"].items():
        line(f"  no {name}: {why}", "dim", 4)
    line()
    line("verdict", "bold")
    for rate, found in result["verdict"].items():
        line(f"  {rate} Hz: {found['grade']}. {found['words']}", indent=4)
    for words in result["advice"]:
        line(f"  · {words}", indent=4)


def figures_line(row: Mapping[str, Any], loop: str) -> str:
    """Return one line of the table."""
    found = row[loop]
    cells = "".join(f"{microseconds(value):>{CELL}}" for value in found["lateness_us"].values())
    jitter = found.get("interval_error_us")
    if jitter is not None:
        shown = (microseconds(jitter["p50"]), microseconds(jitter["p99"]), found["skipped"])
        cells += "".join(f"{value:>{CELL}}" for value in shown)
    return f"  {LOADS[row['load']]:<11}{NAMES[loop]:<11}{cells}"


def histogram_lines(rows: list[Mapping[str, Any]], glyphs: Glyphs) -> list[str]:
    """Return the histograms of one rate side by side: number of ticks by lateness."""
    columns = [(row, loop) for row in rows for loop in ("emitter", "bare")]
    counts = [row["histogram"][loop] for row, loop in columns]
    edges = rows[0]["histogram"]["from_us"]
    heads = ("later than", [LOADS[row["load"]] for row, _ in columns]), ("", [NAMES[loop] for _, loop in columns])
    lines = [f"  {head:<12}" + "".join(f"{name:<{COLUMN}}" for name in names).rstrip() for head, names in heads]
    for place, edge in enumerate(edges):
        cells = "".join(f"{cell(count[place], sum(count), max(count), glyphs):<{COLUMN}}" for count in counts)
        if cells.strip():
            lines.append(f"  {microseconds(edge) if edge else '0 µs':>10}  {cells.rstrip()}")
    return lines


def cell(count: int, total: int, most: int, glyphs: Glyphs) -> str:
    """Return a bar and a share; any count above zero is visible."""
    if not count:
        return ""
    full = "#" if glyphs is ASCII else "█"
    thin = "." if glyphs is ASCII else "▏"
    return f"{full * round(BAR * count / most) or thin} {percent(count / total)}"
