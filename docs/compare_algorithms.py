"""Print the table of ``docs/algorithms.md``: every registered algorithm on drives and platforms.

Run it from the repository's root:  python docs/compare_algorithms.py [--drive FILE|NAME]… [--platform NAME]…
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np

import motioncue
from motioncue.cli.score import drive_of
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.assembly import load_profile_on
from motioncue.errors import MotioncueError

PROFILE = "ccd-dk-classical"
DRIVES = ("sample", "tour", "turns", "brake")
SIZES = ("small", "medium", "large")
PLATFORMS = ("box-large", "hexapod-simona", "box-small", "hexapod-dim")


def settings() -> Iterator[tuple[str, ...]]:
    """Yield the overrides of every algorithm that gives a pose, with each preset but those named for a size."""
    for name, kind in ALGORITHMS.items():
        if kind.poses:
            presets = [preset for preset in kind.presets if preset not in SIZES] + ["auto"] * (kind.auto is not None)
            for choice in [f"cueing.preset={preset}" for preset in presets] or [""]:
                yield tuple(filter(None, (f"cueing.algorithm={name}", choice)))


def row(platform: str, overrides: tuple[str, ...], drives: dict[str, np.ndarray]) -> str:
    """Return the line of one algorithm on one platform."""
    profile = load_profile_on(PROFILE, platform, *overrides)
    found = [motioncue.score(profile, motion) for motion in drives.values()]
    cells = [
        f"{each.score:.0f} / {each.stopped:.0f} ({each.rates_first.score:.0f} / {each.rates_first.stopped:.0f})"
        for each in found
    ]
    means = [np.mean([each.score for each in found]), np.mean([each.stopped for each in found])]
    fast = [100 * each.motions["stopped"].fast_tilt for each in found]
    asked = [np.nanmax(list(each.asked.values())) for each in found]
    name = " ".join(f"`{override.partition('=')[2]}`" for override in overrides)
    ends = f"**{means[0]:.0f} / {means[1]:.0f}** | {max(asked):.1f} | {', '.join(f'{each:.0f}' for each in fast)}"
    return f"| `{platform}` | {name} | {' | '.join(cells)} | {ends} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drive", action="append", help=f"as for `motioncue score`; by default {', '.join(DRIVES)}")
    parser.add_argument("--platform", action="append", help=f"name or profile; by default {', '.join(PLATFORMS)}")
    chosen = parser.parse_args()
    drives = {name: drive_of(name, None, None) for name in chosen.drive or DRIVES}
    print(f"| platform | algorithm | {' | '.join(f'`{name}`' for name in drives)} | mean | asks for | fast tilt [%] |")
    print(f"|{'---|' * (len(drives) + 5)}")
    for platform in chosen.platform or PLATFORMS:
        for overrides in settings():
            print(row(platform, overrides, drives), flush=True)


if __name__ == "__main__":
    try:
        main()
    except MotioncueError as error:
        sys.exit(f"error: {error}")
