"""The live view: a picture computed from a run's state and the terminal's size alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import NamedTuple

from rich.console import Group
from rich.style import Style
from rich.text import Text

from motioncue.cli.bars import Glyphs, Line, bar, plot
from motioncue.view.watched import CHANNELS, Channel

__all__ = [
    "STATES",
    "Series",
    "Transition",
    "View",
    "clock",
    "microseconds",
    "percent",
    "render",
]


STATES = {
    "offline": "#8b95a3",
    "engaging": "#e8c547",
    "running": "#5fd068",
    "holding": "#e8c547",
    "parking": "#ff8f5a",
    "fault": "#ff5f5f",
    "waiting": "#8b95a3",
    "receiving": "#5fd068",
}
"""The states and their colors: the supervisor's, then those of a listener."""

COLORS = {"car": "#4cc2ff", "felt": "#b79cff", "cue": "#ffb454"}
LETTERS = {"car": "o", "felt": "+", "cue": "x"}
CAUGHT = Style(color="#ff8f5a")
DIM = Style(color="#8b95a3")
OFF = Style(color="#ff5f5f", reverse=True, bold=True)
STRONG = Style(bold=True)

MOVES, MESSAGES = 8, 3  # most transitions and messages to show
USUAL, LEAST = 8, 5  # lines below the channels: before blank lines, and before what is felt in the car
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
    scales: Mapping[str, float] = field(default_factory=dict)  # as shown, by channel, if not the smallest one
    caught: Mapping[str, int] = field(default_factory=dict)  # number of events by name
    limited: Mapping[str, float] = field(default_factory=dict)  # share of ticks, by channel
    travel: Sequence[tuple[str, str]] = ()  # displacements or actuators, and how far they are from neutral
    transitions: Sequence[Transition] = ()  # newest last
    messages: Sequence[str] = ()
    hint: str = ""
    off: Sequence[str] = ()  # bounds that are off, in words


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

    Notes
    -----
    Where a line stands depends on the terminal's size, never on what has happened.  In a narrow terminal, charts are
    left out first, then bars.  In a low one, the charts' additional rows go first, then blank lines, then most of the
    lines below the channels, then what is felt in the car, then the travel, then the rest; the title before the state,
    then the band that says which bounds are off, and last of all the hint, which says how to park.
    """
    hint = [Text(f" {glyphs.text(view.hint)}", DIM)] if view.hint else []
    band = [_band(view.off, width, glyphs)] if view.off else []
    kept = [*band, *hint][-height:]
    height -= len(kept)
    band = kept[: len(kept) - len(hint)]
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
    blank = min(max(spare, 0), len(CHANNELS))
    taller = max(spare - blank, 0) // len(CHANNELS)
    lines = list(head)
    for index, channel in enumerate(CHANNELS):
        lines += [Text()] * (index < blank)
        lines += _channel(channel, shown, taller, width, glyphs)
    lines += axis + travel
    foot = _foot(view, width, max(0, height - len(lines)), glyphs)
    if len(foot) < height - len(lines):
        lines.append(Text())
    return Group(*(_cut(line, width) for line in [*band, *[*lines, *foot][:height], *hint]))


def _band(off: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """Return a line across the terminal that says which bounds are off."""
    more = f" (and {len(off) - 1} more)" if len(off) > 1 else ""
    return Text(f" BOUNDS OFF{more}: {glyphs.text(off[0])}".ljust(width), OFF)


def _rows(view: View) -> int:
    """Return the rows that all channels need."""
    return sum(len(_series(channel, view)) for channel in CHANNELS)


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
    rows = []
    for index in range(max(len(series), min(len(series) + taller, TALLEST))):
        name, style = names[index] if index < len(names) else ("", DIM)
        line = Text.assemble((_name(name, view, glyphs), style))
        if index < len(series):
            rows.append(_row(line, channel, scale, series[index], width, glyphs))
        else:
            rows.append(line)
    long = _split(_room(view, width))
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
    """Return `line`, which holds the channel's name, with series, bar and value added."""
    color = COLORS[series.role]
    value = series.values.get(channel.name)
    shown = None if value is None else value * channel.factor
    line.append(f"{series.label:<4}", Style(color=color))
    number = f"{'-' if shown is None or not isfinite(shown) else format(round(shown, 2) + 0.0, '+.2f'):>7}"
    room = width - len(line) - len(number) - 1
    long = _split(room)
    bar_cells = room - long - (2 if long else 0)
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
    return name.replace("_", " ")


def _transition(transition: Transition, glyphs: Glyphs) -> Text:
    return Text.assemble(
        (f" {transition.time_s:6.1f} s  ", DIM),
        _words(transition.reason),
        (glyphs.text(" → "), DIM),
        (transition.to, Style(color=STATES[transition.to])),
    )
