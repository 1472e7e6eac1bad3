"""Bars and traces of one terminal line: numbers as cells, in the characters that the terminal has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from rich.style import Style
from rich.text import Text

__all__ = ["ASCII", "BLOCKS", "SMOOTH", "Glyphs", "bar", "glyphs_for", "trace"]

Cell: TypeAlias = tuple[str, Style]

TRACK = "#262b33"
CENTER = "#6b7480"
LEFT_EIGHTHS = "▏▎▍▌▋▊▉"  # the left 1/8 to 7/8 of a cell


@dataclass(frozen=True)
class Glyphs:
    """The characters to draw with."""

    name: str
    center: str
    dot: str
    rising: str  # characters of a trace above zero, lowest to highest
    hanging: str  # characters of a trace below zero, shortest to longest
    plain: Mapping[int, str]  # replacements for text

    def text(self, text: str) -> str:
        """Return `text` in characters that can be printed."""
        return text.translate(self.plain)


_ASCII_TEXT = str.maketrans(
    {"²": "2", "µ": "u", "°": "deg", "±": "+-", "→": "->", "·": "-", "–": "-", "…": "...", "×": "x"}
)

SMOOTH = Glyphs("smooth", "│", "●", " ▁▂▃▄▅▆▇█", " ▁▂▃▄▅▆▇█", {})
"""Eighths of a cell, drawn with foreground and background colors; hanging parts have the colors swapped."""
BLOCKS = Glyphs("blocks", "│", "●", " ▁▂▃▄▅▆▇█", " ▔▔▀▀▀▀██", {})
"""Halves of a cell, for terminals without colors."""
ASCII = Glyphs("ascii", "|", "*", "-''\"\"", "-..__", _ASCII_TEXT)
"""Whole cells and plain letters, for encodings without block characters."""


def glyphs_for(encoding: str | None, *, colors: bool) -> Glyphs:
    """Return the finest glyphs that a terminal can display."""
    try:
        "".join((SMOOTH.rising, BLOCKS.hanging, SMOOTH.center, SMOOTH.dot, LEFT_EIGHTHS, "▐±²µ°→·")).encode(
            encoding or "ascii"
        )
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


def trace(values: Sequence[float], scale: float, width: int, color: str, glyphs: Glyphs) -> Text:
    """Return the newest `width` values as a line of levels, the newest at the right.

    Positive values rise from the bottom, negative ones hang from the top.
    """
    newest = values[-width:] if width else ()
    smooth = glyphs is SMOOTH
    up = Style(color=color, bgcolor=TRACK if smooth else None)
    down = Style(color=TRACK, bgcolor=color) if smooth else up
    cells: list[Cell] = [(" ", up)] * (width - len(newest))
    for value in newest:
        share = max(-1.0, min(value / scale, 1.0)) if math.isfinite(value) else 0.0
        levels = glyphs.hanging if share < 0 else glyphs.rising
        level = round(abs(share) * (len(levels) - 1))
        inside_out = smooth and share < 0 and level
        cells.append((levels[len(levels) - 1 - level], down) if inside_out else (levels[level], up))
    return _line(cells)
