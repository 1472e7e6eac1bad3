"""Bars and charts in a terminal: numbers as cells, in the characters that the terminal has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from rich.style import Style
from rich.text import Text

__all__ = ["ASCII", "BLOCKS", "SMOOTH", "Glyphs", "Line", "bar", "glyphs_for", "plot"]

Cell: TypeAlias = tuple[str, Style]

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # bits of a braille character, by column and row
TRACK = "#262b33"
CENTER = "#6b7480"
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
    """Return a bar that grows from the center: right if positive, left if negative.

    Parameters
    ----------
    value : float
        The value; nothing is drawn if it is not finite.
    scale : float
        The value at the end of the bar, in the same unit; > 0; larger values are cut off.
    width : int
        Number of cells; an odd number includes a cell for the center, an even one leaves its last cell empty.
    color : str
        Color of the bar.
    glyphs : Glyphs
        Characters to draw with.
    """
    side = max(0, (width - 1) // 2)
    share = min(abs(value) / scale, 1.0) * side if math.isfinite(value) else 0.0
    smooth = glyphs is SMOOTH
    track = Style(bgcolor=TRACK) if smooth else Style(color=color)
    empty = (" ", track)
    if smooth:
        cells = _smooth(share, value < 0, color)
    elif glyphs is ASCII:
        cells = [("#", track)] * round(share)
    else:
        halves = round(2 * share)
        cells = [("█", track)] * (halves // 2) + [("▐" if value < 0 else "▌", track)] * (halves % 2)
    cells += [empty] * (side - len(cells))
    middle = (glyphs.center, Style(color=CENTER, bgcolor=TRACK if smooth else None))
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
        cells.append((LEFT_EIGHTHS[7 - eighths], Style(color=TRACK, bgcolor=color)))
    elif eighths:
        cells.append((LEFT_EIGHTHS[eighths - 1], Style(color=color, bgcolor=TRACK)))
    return cells


class Line(NamedTuple):
    """One line of a chart."""

    values: Sequence[float]  # newest last; nothing is drawn for one that is not finite
    color: str
    letter: str  # to draw with, where there are no dots


def plot(lines: Sequence[Line], scale: float, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Return the rows of a chart over time: the newest values at the right, zero in the middle.

    Parameters
    ----------
    lines : sequence of Line
        The lines; a later one covers an earlier one.
    scale : float
        The value at the upper edge, in the unit of the lines; > 0; larger values are drawn at the edge.
    width, height : int
        Number of cells.
    glyphs : Glyphs
        Characters to draw with; with dots, a cell is two values wide.
    """
    ground = TRACK if glyphs is SMOOTH else None
    zero = Style(color=CENTER, bgcolor=ground)
    rows: list[list[Cell]] = [[(" ", zero)] * width for _ in range(height)]
    rows[height // 2] = [(glyphs.zero[height % 2 == 0], zero)] * width
    for line in lines:
        style = Style(color=line.color, bgcolor=ground)
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
