"""What the terminal shows: a live view of a run, and a table of its result."""

import math
import os
import re
import sys
import textwrap
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import IO, Any, NamedTuple, TypeAlias, cast

from rich.console import Console, Group
from rich.live import Live
from rich.style import Style
from rich.text import Text

from motioncue.cli.common import NonblockingOutput, folded
from motioncue.core.channels import WHEELS
from motioncue.engine.journal import CALM
from motioncue.view.model import CHANNELS, Channel, verdict

Cell: TypeAlias = tuple[str, Style]

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # bits of a braille character, by column and row
CENTER = "#6b7787"
LEFT_EIGHTHS = "▏▎▍▌▋▊▉"  # the left 1/8 to 7/8 of a cell


@dataclass(frozen=True)
class Glyphs:
    """The characters to draw with."""

    name: str
    center: str
    dot: str
    zero: tuple[str, str]  # the zero line of a chart: in the middle of a cell, and at its upper edge
    braille: bool  # whether charts are drawn in dots, two by four in a cell; otherwise in whole cells
    plain: Mapping[int, str]  # replacements for text

    def text(self, text: str) -> str:
        """Return `text` in characters that can be printed."""
        return text.translate(self.plain)


_ASCII_TEXT = str.maketrans(
    {"²": "2", "µ": "u", "°": "deg", "±": "+-", "→": "->", "·": "-", "–": "-", "…": "...", "×": "x"}
)

SMOOTH = Glyphs("smooth", "│", "●", ("─", "▔"), True, {})
"""Bars in eighths of a cell, drawn with foreground and background colors."""
BLOCKS = Glyphs("blocks", "│", "●", ("─", "▔"), True, {})
"""Bars in halves of a cell, for terminals without colors."""
ASCII = Glyphs("ascii", "|", "*", ("-", "-"), False, _ASCII_TEXT)
"""Whole cells and plain letters, for encodings without block characters."""


def glyphs_for(encoding: str | None, *, colors: bool) -> Glyphs:
    """Return the finest glyphs that a terminal can display."""
    try:
        "".join((*SMOOTH.zero, SMOOTH.center, SMOOTH.dot, LEFT_EIGHTHS, "█▐⣿±²µ°→·")).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return SMOOTH if colors else BLOCKS


def bar(value: float, scale: float, width: int, color: str, glyphs: Glyphs) -> Text:
    """Return a bar that grows from the center: right if positive, left if negative."""
    side = max(0, (width - 1) // 2)
    share = min(abs(value) / scale, 1.0) * side if math.isfinite(value) else 0.0
    smooth = glyphs is SMOOTH
    track = Style() if smooth else Style(color=color)
    empty = (" ", track)
    if smooth:
        cells = _smooth(share, value < 0, color)
    elif glyphs is ASCII:
        cells = [("#", track)] * round(share)
    else:
        halves = round(2 * share)
        cells = [("█", track)] * (halves // 2) + [("▐" if value < 0 else "▌", track)] * (halves % 2)
    cells += [empty] * (side - len(cells))
    middle = (glyphs.center, Style(color=CENTER))
    whole = [*reversed(cells), middle, *[empty] * side] if value < 0 else [*[empty] * side, middle, *cells]
    return _line([*whole[:width], *[(" ", Style())] * (width - len(whole))])


def _line(cells: Sequence[Cell]) -> Text:
    """Return cells as text, with neighbors of one style joined."""
    text = Text(no_wrap=True, end="")
    for style, run in groupby(cells, key=itemgetter(1)):
        text.append("".join(character for character, _ in run), style)
    return text


def _smooth(share: float, left: bool, color: str) -> list[Cell]:
    """Return the filled cells from the center outwards; a left end has its colors swapped."""
    full, eighths = divmod(round(8 * share), 8)
    cells = [(" ", Style(bgcolor=color))] * full
    if eighths and left:
        cells.append((LEFT_EIGHTHS[7 - eighths], Style(color=color, reverse=True)))
    elif eighths:
        cells.append((LEFT_EIGHTHS[eighths - 1], Style(color=color)))
    return cells


class Line(NamedTuple):
    """One line of a chart."""

    values: Sequence[float]  # newest last; nothing is drawn for one that is not finite
    color: str
    letter: str  # to draw with, where there are no dots


def plot(lines: Sequence[Line], scale: float, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Return the rows of a chart over time: the newest values at the right, zero in the middle."""
    zero = Style(color=CENTER)
    rows: list[list[Cell]] = [[(" ", zero)] * width for _ in range(height)]
    rows[height // 2] = [(glyphs.zero[height % 2 == 0], zero)] * width
    for line in lines:
        style = Style(color=line.color)
        for (row, column), bits in _dots(line.values, scale, width, height, glyphs.braille).items():
            rows[row][column] = (chr(0x2800 + bits) if glyphs.braille else line.letter, style)
    return [_line(cells) for cells in rows]


def _dots(values: Sequence[float], scale: float, width: int, height: int, braille: bool) -> dict[tuple[int, int], int]:
    """Return the dots of a line as bits of a braille character, by row and column; neighbors are connected."""
    across, down = (2, 4) if braille else (1, 1)
    newest = values[-across * width :]
    found: dict[tuple[int, int], int] = {}
    before: int | None = None
    for place, value in enumerate(newest, across * width - len(newest)):
        if not math.isfinite(value):
            before = None
            continue
        level = round((0.5 - 0.5 * max(-1.0, min(value / scale, 1.0))) * (height * down - 1))
        ends = (level, level) if before is None or before == level else (before + (1 if level > before else -1), level)
        for at in range(min(ends), max(ends) + 1):
            cell = (at // down, place // across)
            found[cell] = found.get(cell, 0) | DOTS[place % across][at % down]
        before = level
    return found


# Every color has a contrast of 4.5 on black and on white: nobody has to say which one the terminal has.
STATES = {
    "offline": "#6b7787",
    "engaging": "#8e7312",
    "running": "#28872f",
    "holding": "#8e7312",
    "parking": "#d44400",
    "fault": "#ee0000",
    "waiting": "#6b7787",
    "receiving": "#28872f",
}
"""The states and their colors: the supervisor's, then those of a listener."""

COLORS = {"car": "#007cbc", "felt": "#8253ff", "cue": "#b06300"}
LETTERS = {"car": "o", "felt": "+", "cue": "x"}
CAUGHT = Style(color="#d44400")
DIM = Style(color="#6b7787")
OFF = Style(color="#ee0000", reverse=True, bold=True)
STRONG = Style(bold=True)

MOVES, MESSAGES = 8, 3  # most transitions and messages to show
USUAL, LEAST = 8, 5  # lines below the channels: before blank lines, and before what is felt in the car
ROOMY = 20  # lines of a terminal in which what the operator can do may take several
TALLEST = 9  # most rows of a channel
BUCKET_S = 0.2  # time between the values of a trace


@dataclass(frozen=True)
class Series:
    """One of the compared things: a row in each channel."""

    role: str  # "car", "felt" or "cue"; determines its color
    label: str  # up to four letters
    values: Mapping[str, float]  # newest, SI, by channel; one that is missing is shown as a dash, or left out if felt
    traces: Mapping[str, Sequence[float]]  # a few seconds, SI, newest last


class Transition(NamedTuple):
    """A change of state."""

    time_s: float
    reason: str
    to: str  # one of `STATES`


@dataclass(frozen=True)
class View:
    """The contents of one picture."""

    title: str
    state: str
    elapsed_s: float
    total_s: float | None
    facts: Sequence[Sequence[tuple[str, str]]]  # name and value; each group begins a line
    series: Sequence[Series]
    channels: Sequence[Channel] = CHANNELS
    scales: Mapping[str, float] = field(default_factory=dict)  # as shown, by channel, if not the smallest one
    caught: Mapping[str, int] = field(default_factory=dict)  # number of events by name
    limited: Mapping[str, float] = field(default_factory=dict)  # share of ticks, by channel
    travel: Sequence[tuple[str, str]] = ()  # displacements or actuators, and how far they are from neutral
    transitions: Sequence[Transition] = ()  # newest last
    messages: Sequence[str] = ()
    hint: str = ""
    off: Sequence[str] = ()  # bounds that are off, in words
    address: str = ""  # of the page, if one is served
    refused: str = ""  # why a saved profile is not used


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if necessary."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def microseconds(value: float) -> str:
    """Return a time given in microseconds, in a suitable unit."""
    for limit, unit in ((1.0, "ns"), (1e3, "µs"), (1e6, "ms")):
        if value < limit * 0.9995:
            shown = value * 1e3 / limit
            return f"{shown:#.3g} {unit}" if shown < 99.95 else f"{shown:.0f} {unit}"
    return f"{value * 1e-6:#.3g} s"


def percent(share: float) -> str:
    """Return a share as a percentage that reads as zero only if it is."""
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0095 else f"{100 * share:.0f} %"


def render(view: View, width: int, height: int, glyphs: Glyphs) -> Group:
    """Return the picture: at most `height` lines, each at most `width` cells.

    Where a line stands depends on the terminal's size, never on what has happened.  In a narrow terminal, charts are
    left out first, then bars.  In a low one, the charts' additional rows go first, then blank lines, then most of the
    lines below the channels, then what is felt in the car, then the travel, then the rest; the title before the state,
    then the band that says which bounds are off and why a saved profile is not used, the page's address, and last of
    all the hint, which says how to park.
    """
    hint = [*_address(view.address, width), *_hint(view.hint, width, height, glyphs)]
    band = [*([_band(view.off, width, glyphs)] if view.off else []), *_refusal(view.refused, width, height, glyphs)]
    hint = hint[-height:]
    band = band[: height - len(hint)]
    height -= len(band) + len(hint)
    facts = _facts(view, width, glyphs)
    head = [_title(view, width, glyphs), *facts] if height > 2 else facts
    travel = _travel(view, width, glyphs)
    shown = view
    if height - len(head) - len(travel) - _rows(view) < LEAST:
        shown = replace(view, series=[series for series in view.series if series.role != "felt"])
    if height - len(head) - len(travel) - _rows(shown) < 0:
        travel = []
    spare = height - len(head) - len(travel) - _rows(shown) - max(USUAL, height // 4)
    axis = _axis(shown, width, glyphs) if spare > 0 else []
    spare -= len(axis)
    blank = min(max(spare, 0), len(view.channels))
    taller = max(spare - blank, 0) // max(1, len(view.channels))
    lines = list(head)
    for index, channel in enumerate(view.channels):
        lines += [Text()] * (index < blank)
        lines += _channel(channel, shown, taller, width, glyphs)
    lines += axis + travel
    foot = _foot(view, width, max(0, height - len(lines)), glyphs)
    if len(foot) < height - len(lines):
        lines.append(Text())
    return Group(*(_cut(line, width) for line in [*band, *[*lines, *foot][:height], *hint]))


def _hint(hint: str, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Return what the operator can do, whole; in a low terminal only the first line, which says how to park."""
    lines = textwrap.wrap(glyphs.text(hint), max(1, width - 1))
    return [Text(f" {line}", DIM) for line in (lines if height >= ROOMY else lines[:1])]


def _band(off: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """Return a line across the terminal that says which bounds are off."""
    more = f" (and {len(off) - 1} more)" if len(off) > 1 else ""
    return Text(f" BOUNDS OFF{more}: {glyphs.text(off[0])}".ljust(width), OFF)


def _refusal(refused: str, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Return why a saved profile is not used, in up to a third of the lines; it stays until the next valid save."""
    lines = textwrap.wrap(glyphs.text(refused), max(1, width - 2))[: max(1, height // 3)]
    return [Text(f" {line}".ljust(width), CAUGHT + Style(reverse=True, bold=True)) for line in lines]


def _address(address: str, width: int) -> list[Text]:
    """Return the page's address, whole on any width: in as many lines as it takes, so that it can be copied."""
    text = f" page: {address}" if len(address) + 7 < width else address
    return [Text(text[at : at + width], STRONG) for at in range(0, len(text), width)] if address else []


def _rows(view: View) -> int:
    """Return the rows that all channels need."""
    return sum(len(_series(channel, view)) for channel in view.channels)


def _series(channel: Channel, view: View) -> list[Series]:
    """Return the series of a channel."""
    return [series for series in view.series if series.role != "felt" or channel.name in series.values]


def _cut(line: Text, width: int) -> Text:
    line.no_wrap = True
    line.overflow = "crop"
    line.truncate(width, overflow="crop")
    return line


def _title(view: View, width: int, glyphs: Glyphs) -> Text:
    time = clock(view.elapsed_s) + (f" / {clock(view.total_s)}" if view.total_s is not None else "")
    room = max(0, width - len(time) - 3)
    title = f" {glyphs.text(view.title)[:room]}"
    return Text.assemble((title, STRONG), (time.rjust(width - 1 - len(title)), DIM))


def _facts(view: View, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the state and the facts, in as many lines as the width requires."""
    color = STATES[view.state]
    state = Text.assemble((f"{glyphs.dot} ", Style(color=color)), (view.state.ljust(10), Style(color=color, bold=True)))
    lines = []
    for index, group in enumerate(view.facts):
        items = [Text.assemble((f"{glyphs.text(name)} ", DIM), glyphs.text(value)) for name, value in group]
        lines += _flow(items if index else [state, *items], width)
    return lines


def _flow(items: Sequence[Text], width: int) -> list[Text]:
    """Return items side by side, in as many lines as the width requires."""
    lines: list[Text] = []
    for item in items:
        if lines and len(lines[-1]) + 2 + len(item) <= width - 1:
            lines[-1].append("  ").append_text(item)
        else:
            lines.append(Text(" ").append_text(item))
    return lines


def _channel(channel: Channel, view: View, taller: int, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the rows of a channel: name, series, bar and value of each, and beside them one chart of all."""
    scale = max(channel.scale, view.scales.get(channel.name, 0.0))
    series = _series(channel, view)
    several = len(view.series) > 1
    names = [(channel.label, STRONG), (f"±{scale:g} {channel.unit}", DIM)] if several else []
    names = names or [(f"{channel.label} {channel.unit}", STRONG)]
    long, rows = _split(_room(view, width)), []
    before = width - long - 2 if long else width
    for index in range(max(len(series), min(len(series) + taller, TALLEST))):
        name, style = names[index] if index < len(names) else ("", DIM)
        line = Text.assemble((_name(name, view, glyphs), style))
        if index < len(series):
            rows.append(_row(line, channel, scale, series[index], before, glyphs))
        else:
            rows.append(line)
    if long:
        lines = [
            Line(
                [number * channel.factor for number in each.traces.get(channel.name, ())],
                COLORS[each.role],
                LETTERS[each.role],
            )
            for each in series
        ]
        for row, chart in zip(rows, plot(lines, scale, long, len(rows), glyphs), strict=True):
            row.pad_right(max(0, width - 1 - long - len(row)))
            row.append_text(chart)
    return rows


def _name(text: str, view: View, glyphs: Glyphs) -> str:
    return f" {glyphs.text(text):<{11 if len(view.series) > 1 else 15}}"


def _room(view: View, width: int) -> int:
    """Return the cells for bar and chart."""
    return width - (16 if len(view.series) > 1 else 20) - 7 - 1


def _row(line: Text, channel: Channel, scale: float, series: Series, width: int, glyphs: Glyphs) -> Text:
    """Return `line`, which holds the channel's name, with series, bar and value added, in front of the chart."""
    color = COLORS[series.role]
    value = series.values.get(channel.name)
    shown = None if value is None else value * channel.factor
    line.append(f"{series.label:<4}", Style(color=color))
    number = f"{'-' if shown is None or not math.isfinite(shown) else format(round(shown, 2) + 0.0, '+.2f'):>7}"
    bar_cells = width - len(line) - len(number) - 1
    if bar_cells >= 9:
        line.append_text(bar(float("nan") if shown is None else shown, scale, bar_cells, color, glyphs))
    line.append(number)
    return line


def _axis(view: View, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the charts' time axis, if there are charts."""
    long = _split(_room(view, width))
    if not long:
        return []
    seconds = long * BUCKET_S * (2 if glyphs.braille else 1)
    return [Text(f"{f'{seconds:.0f} s ago':<{long - 3}}now".rjust(width - 1), DIM)]


def _travel(view: View, width: int, glyphs: Glyphs) -> list[Text]:
    """Return how far displacements or actuators are from neutral, in as many lines as the width requires."""
    items = [Text.assemble((f"{_words(name)} ", DIM), glyphs.text(value)) for name, value in view.travel]
    return _flow([Text("travel ", DIM), *items], width) if items else []


def _split(room: int) -> int:
    """Return the cells of the chart: 0 if the bar needs them all; the bar gets an odd number."""
    if room < 36:
        return 0
    cells = room * 2 // 5
    return cells if (room - cells) % 2 else cells + 1


def _foot(view: View, width: int, room: int, glyphs: Glyphs) -> list[Text]:
    """Return the lines below the channels, at most `room`, with the least important left out."""
    counts = [(f"{_words(name)} ", str(count)) for name, count in view.caught.items()]
    shares = [(f"{_words(name)} ", f"{percent(share)}") for name, share in view.limited.items()]
    known = []
    for title, items, style in (("caught", counts, CAUGHT), ("limited", shares, CAUGHT)):
        texts = [Text.assemble((glyphs.text(name), style), value) for name, value in items]
        known += _flow([Text(f"{title:<7}", DIM), *texts], width) if texts else []
    moves = [_transition(transition, glyphs) for transition in view.transitions]
    messages = [Text(f" {glyphs.text(line)}", DIM) for line in view.messages]
    kept_moves = moves[max(0, len(moves) - min(room, max(1, room - len(known)), MOVES)) :] if room else []
    room -= len(kept_moves)
    known = known[:room]
    room -= len(known)
    kept_messages = messages[max(0, len(messages) - min(room, MESSAGES)) :]
    return [*known, *kept_moves, *kept_messages]


def _words(name: str) -> str:
    """Return a name as words; a bound of the first output without saying so."""
    found = re.match(r"output\[(\d+)\]\.", name)
    place = f"output {int(found[1]) + 1} " if found and found[1] != "0" else ""
    return place + name[found.end() if found else 0 :].replace("_", " ")


def _transition(transition: Transition, glyphs: Glyphs) -> Text:
    return Text.assemble(
        (f" {transition.time_s:6.1f} s  ", DIM),
        _words(transition.reason),
        (glyphs.text(" → "), DIM),
        (transition.to, Style(color=STATES[transition.to])),
    )


BUCKETS = 600
WINDOW_S = 2.0  # time that a rate is averaged over


class Rate:
    """Growth rate of a count over the last two seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, time_s: float, count: int) -> float:
        """Add a count and return its rate [1/s]; 0 until it is known."""
        self._seen.append((time_s, count))
        while time_s - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        first_time, first = self._seen[0]
        return (count - first) / (time_s - first_time) if time_s - first_time > 0.2 else 0.0


class History:
    """The past values from which traces are drawn."""

    def __init__(self, series: Sequence[tuple[str, str]], channels: Sequence[Channel] = CHANNELS) -> None:
        self._series, self.channels = series, channels
        self._traces = [{channel.name: deque[float](maxlen=BUCKETS) for channel in channels} for _ in series]
        self._bucket: int | None = None
        self.scales = {channel.name: channel.scale for channel in channels}

    def add(self, time_s: float, values: Sequence[Mapping[str, float]]) -> tuple[Series, ...]:
        """Add the newest values of every series [SI] at `time_s` and return the series to show.

        A value of a trace is the largest magnitude in its time, so that no bump is lost.
        """
        bucket = int(time_s / BUCKET_S)
        fresh = bucket != self._bucket
        self._bucket = bucket
        for traces, row in zip(self._traces, values, strict=True):
            for channel in self.channels:
                value = row.get(channel.name, math.nan)
                cells = traces[channel.name]
                if fresh or not cells:
                    cells.append(value)
                elif not abs(value) <= abs(cells[-1]):
                    cells[-1] = value
                self._grow(channel.name, value * channel.factor)
        return tuple(
            Series(role, label, row, {name: tuple(cells) for name, cells in traces.items()})
            for (role, label), row, traces in zip(self._series, values, self._traces, strict=True)
        )

    def _grow(self, name: str, shown: float) -> None:
        """Raise the scale to the next of 1, 2, 5, 10, … that holds the value."""
        while math.isfinite(shown) and abs(shown) > self.scales[name]:
            scale = self.scales[name]
            self.scales[name] = scale * (2.5 if f"{scale:e}"[0] == "2" else 2.0)


PERIOD_S = 1 / 15
"""Time between pictures [s]."""


def console(output: NonblockingOutput | None = None) -> Console:
    """Return a rich console on standard output, or on `output`."""
    return Console(file=cast(IO[str], output or sys.stdout), highlight=False, emoji=False, markup=False)


def wanted() -> bool:
    """Say whether standard output is a terminal that can show moving pictures."""
    return sys.stdout is not None and sys.stdout.isatty() and not console().is_dumb_terminal


def glyphs_of(output: Console) -> Glyphs:
    """Return the glyphs for a console."""
    return glyphs_for(output.encoding, colors=output.color_system is not None and not output.no_color)


class Screen:
    """Shows views on a screen of its own, which it restores at the end; does nothing if not `live`.

    A frozen terminal, which accepts no more output, blocks nobody.
    """

    def __init__(self, *, live: bool) -> None:
        self.live = live
        self._output = NonblockingOutput(sys.stdout) if live else None
        self._console = console(self._output)
        self._glyphs = glyphs_of(self._console)
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> "Screen":
        """Take over the screen."""
        if self.live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the screen."""
        if self._output is not None:
            self._live.stop()
            if not self._output.close():  # anything else printed would wait forever
                sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def show(self, view: View) -> None:
        """Draw a view, unless the terminal has not accepted the last one yet."""
        if self._output is not None and not self._output.pending:
            width, height = self._console.size
            self._live.update(render(view, width, height, self._glyphs), refresh=True)


CHASSIS = (("suspension", 1e3, "mm"), ("suspension_velocity", 1e3, "mm/s"), ("slip", 1.0, ""), ("rumble", 1.0, ""))
"""What a source says of each wheel, as it is shown: channel, factor, unit."""


def chassis_facts(said: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return facts about the wheels, from front left to rear right, and the cab, as far as they are said."""
    out = []
    for name, factor, unit in CHASSIS:
        values = [said.get(f"{name}_{wheel}") for wheel in WHEELS]
        if any(value is not None for value in values):
            each = " ".join("-" if value is None else f"{factor * value:.3g}" for value in values)
            out.append((name.replace("_", " "), f"{each} {unit}".strip()))
    cab = [f"{name.removeprefix('cabin_')} {value:.2g}" for name, value in said.items() if name.startswith("cabin_")]
    return [*out, *([("cab", ", ".join(cab))] if cab else [])]


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


def trouble(stats: Mapping[str, Any]) -> dict[str, int]:
    """Return how often something was caught, or changed the state without being asked for, as the list of events shows.

    What is caught may change the state, too, and counts once.
    """
    moved = Counter(move["reason"] for move in stats["transitions"] if move["reason"] not in CALM)
    return {name: max(moved[name], stats["events"].get(name, 0)) for name in {**stats["events"], **moved}}


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
        *reply_rows(stats["outputs"]),
        *([("late by", lateness(stats["lateness_us"])), ("skipped", str(stats["skipped"]))] if heard else []),
        ("rejected", reasons(stats["rejected"])),
        ("state", changes(stats)),
        ("events", reasons(trouble(stats))),
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
    lost += f"; {counts['removed']} older files were removed" if counts.get("removed") else ""
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


UNUSED_REPLIES = {"refused": "with numbers that cannot be", "skipped": "bytes of no reply"}
"""Labels of what was not used, by its counter."""


def reply_rows(outputs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return rows about what controllers have answered; none if no reply is described."""
    rows = []
    for output in outputs:
        if said := output.get("replies"):
            more = "".join(f", {said[key]} {text}" for key, text in UNUSED_REPLIES.items() if said[key])
            rows.append(("replies", f"{said['received']} from {output['endpoint']}{more}"))
    return rows


def platform_rows(name: str, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows about what a platform received."""
    rows = []
    for stream, values in stats["streams"].items():
        longest = values["interval_us"]["max"]
        gap = "" if longest is None else f", longest gap {microseconds(longest)}"
        rows.append((f"{name} received", f"{values['packets_received']} {stream} at {values['rate_hz']:.2f} Hz{gap}"))
        if values["in_turn"]:
            rows.append((f"{name} senders", f"{len(values['in_turn'])} in turn: {', '.join(values['in_turn'])}"))
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
