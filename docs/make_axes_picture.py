"""Draw ``docs/axes.svg``: what is positive, and which leg is which, from the geometry that the engine uses.

Run it from the repository's root:  python docs/make_axes_picture.py [FILE]
"""

import sys
from pathlib import Path

import motioncue
from motioncue.platforms.geometry import joints_of
from motioncue.platforms.settings import Hexapod

SCALE = 95.0  # pixels in a meter
STYLE = (
    "text{font:15px sans-serif;fill:#222}.n{font-weight:bold;fill:#b06300}.b{fill:none;stroke:#888;stroke-width:2}"
    ".l{stroke:#b06300;stroke-width:4}.a{stroke:#007cbc;stroke-width:3;fill:none;marker-end:url(#h)}.h{fill:#007cbc}"
)
HEAD = '<marker id="h" viewBox="0 0 9 9" refX="7" refY="4.5" markerWidth="5" markerHeight="5" orient="auto">'
VIEWS = (  # center, title, what is drawn, positive directions as paths, labels
    (
        (120, 160),
        "from above",
        "M-35,60 v-95 q35,-35 70,0 v95 z",
        ("M0,-70 v-40", "M45,0 h45", "M-22,-8 a26,26 0 1 1 40,20"),
        ((-18, -118, "surge: forward"), (40, -12, "sway: right"), (-75, 90, "yaw: nose to the right")),
    ),
    (
        (360, 160),
        "from the right",
        "M-60,20 v-25 h30 l18,-25 h30 l14,25 h38 v25 z",
        ("M0,-40 v-50", "M42,38 a48,48 0 0 0 20,-62"),
        ((8, -80, "heave: up"), (-30, 90, "pitch: nose up")),
    ),
    (
        (560, 160),
        "from behind",
        "M-38,20 v-26 l10,-24 h56 l10,24 v26 z",
        ("M30,-55 a62,62 0 0 1 28,52",),
        ((-60, 90, "roll: right side down"),),
    ),
)


def svg() -> str:
    """Return the drawing."""
    parts = [f'<defs>{HEAD}<path class="h" d="M0,0 L9,4.5 L0,9 z"/></marker><style>{STYLE}</style></defs>']
    parts.append('<rect width="1000" height="290" fill="#fff"/>')
    for (x, y), title, body, ways, labels in VIEWS:
        inside = [f'<text x="-45" y="-135">{title}</text><path class="b" d="{body}"/>']
        inside += [f'<path class="a" d="{way}"/>' for way in ways]
        inside += [f'<text x="{at}" y="{down}">{label}</text>' for at, down, label in labels]
        parts.append(f'<g transform="translate({x},{y})">{"".join(inside)}</g>')
    table = motioncue.platform("hexapod-dim").table
    assert isinstance(table, Hexapod)
    legs = []
    for number, (top, bottom) in enumerate(joints_of(table), 1):
        # Forward is up in the picture, right is right.
        (x1, y1), (x2, y2) = ((SCALE * joint[1], -SCALE * joint[0]) for joint in (top, bottom))
        legs.append(f'<line class="l" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>')
        legs.append(f'<text class="n" x="{1.16 * x2 - 4:.0f}" y="{1.12 * y2 + 5:.0f}">{number}</text>')
    corners = " ".join(f"{SCALE * top[1]:.0f},{-SCALE * top[0]:.0f}" for top, _ in joints_of(table))
    title = '<text x="-110" y="-135">legs of a hexapod, from above</text>'
    parts.append(f'<g transform="translate(830,160)">{title}<polygon class="b" points="{corners}"/>{"".join(legs)}</g>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 290">{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/axes.svg").write_text(svg(), encoding="utf-8")
