"""Draw ``docs/demo.svg``: the live view in the middle of a real demo run, `motioncue demo --drive trouble`.

Run it from the repository's root:  python docs/make_demo_picture.py [FILE]
"""

import io
import re
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from motioncue.cli.run import installation_view
from motioncue.cli.terminal import PERIOD_S, SMOOTH, View, render
from motioncue.virtual.installation import Installation

PROFILE = "ccd-hexapod"
DRIVE = "trouble"
MOMENT_S = 26.3  # a teleport was caught, the cue is whole again, the second corner begins
WIDTH, HEIGHT = 92, 36
FONT_SIZE, LINE_HEIGHT = 20.0, 24.4  # of rich's SVG
SEAM = 0.4

WHITE, BLACK = (214, 220, 228), (15, 18, 24)
COLORS = [
    BLACK,
    (255, 107, 107),
    (95, 208, 104),
    (232, 197, 71),
    (76, 194, 255),
    (200, 140, 255),
    (90, 215, 215),
    WHITE,
]
THEME = TerminalTheme(BLACK, WHITE, COLORS)

RUN = re.compile(r'<text class="([^"]+)" x="([^"]+)" y="([^"]+)" textLength="([^"]+)"[^>]*>((?:&#160;|[▁-▏])+)</text>')


def run_to(moment_s: float) -> View:
    """Drive until `moment_s` after the start and return the view then."""
    with Installation(PROFILE, DRIVE) as installation:
        view = installation_view(installation)
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < moment_s:
            picture = view(elapsed, keys=True)
            time.sleep(PERIOD_S)
    return picture


def svg(picture: View) -> str:
    """Return the view as an SVG that refers to no other host."""
    console = Console(
        record=True, file=io.StringIO(), width=WIDTH, height=HEIGHT, force_terminal=True, color_system="truecolor"
    )
    console.print(render(picture, WIDTH, HEIGHT, SMOOTH))
    drawn = console.export_svg(title="motioncue demo", theme=THEME, unique_id="motioncue")
    drawn = re.sub(r"\s*@font-face \{.*?\}|\s*<!--.*?-->", "", drawn, flags=re.S)
    fonts = "ui-monospace, 'Cascadia Mono', 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    return RUN.sub(_rectangles, drawn.replace("Fira Code, monospace", fonts))


def _rectangles(run: re.Match[str]) -> str:
    """Return a run of block characters as rectangles: fonts disagree about where such characters end."""
    style, left, baseline, length, text = run.groups()
    characters = text.replace("&#160;", " ")
    cell = float(length) / len(characters)
    top = float(baseline) - FONT_SIZE + 1.5  # where rich puts the background
    found = []
    for index, character in enumerate(characters):
        if character == " ":
            continue
        lower = character <= "█"  # lower eighths, then left ones
        share = (ord(character) - ord("▁") + 1 if lower else ord("▏") - ord(character) + 1) / 8
        x, width = float(left) + index * cell, cell if lower else cell * share
        height = LINE_HEIGHT * share if lower else LINE_HEIGHT
        y = top + LINE_HEIGHT - height
        # A little overlap hides the seams between cells.
        found.append(
            f'<rect class="{style}" x="{x - SEAM:.2f}" y="{y - SEAM * (not lower):.2f}" '
            f'width="{width + 2 * SEAM:.2f}" height="{height + SEAM * (3 - lower):.2f}"/>'
        )
    return "".join(found)


def main() -> None:
    """Write the picture."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("demo.svg")
    target.write_text(svg(run_to(MOMENT_S)), encoding="utf-8")


if __name__ == "__main__":
    main()
