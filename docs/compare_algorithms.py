"""Print a table of the documentation: algorithms on drives and platforms.

Run it from the repository's root:  python docs/compare_algorithms.py [--table NAME] [--drive FILE|NAME]…
[--platform NAME]…  `rally` is the stage of tests/data/rally.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import motioncue
from motioncue.cli.score import drive_of
from motioncue.core.channels import MOTION_DTYPE
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.assembly import load_profile_on
from motioncue.errors import MotioncueError
from motioncue.scoring.quality import fast_tilt, worst
from motioncue.scoring.scene import Scene
from motioncue.scoring.score import WEIGHTINGS, best_poses, weighed

PROFILE = "ccd-dk-classical"
DRIVES = ("sample", "tour", "turns", "brake")
SIZES = ("small", "medium", "large")
PLATFORMS = ("box-large", "hexapod-simona", "box-small", "hexapod-dim")
CONFLICT = ("cueing.weights.conflict=2",)
RARER_DEG, OFTENER_DEG = (4.0, 6.0, 180.0), (1.5, 0.6, 0.2)  # for less fast tilt than with the default, and for more


def drive(name: str) -> np.ndarray:
    """Return a drive by its name or file."""
    if name != "rally":
        return drive_of(name, None, None)
    tests = Path(__file__).parents[1] / "tests"
    sys.path[:0] = [str(tests), str(tests / "support")]
    import rally
    from helpers import truth

    states, _ = rally.stage()
    rows = np.zeros(len(states), MOTION_DTYPE)
    for channel, values in truth(states).items():
        rows[channel] = values
    rows["frame_time"] = states["time"] - states["time"][0]
    rows["time"] = np.round(1e9 * rows["frame_time"])
    return rows


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


class Felt(NamedTuple):
    """What is felt of a cue on the platform, whose actuators keep their bounds."""

    by_sense: np.ndarray
    """Root mean square of what is missed, by sense [thresholds]."""
    fast: float
    """Share of the time with fast tilt."""
    worst: tuple[float, float]
    """The worst moment behind lags of 1 s and 5 s [m/s^2]."""
    conflict: float
    """Conflict about the vertical [m/s^2]."""


def felt(platform: str, motion: np.ndarray, *overrides: str) -> Felt:
    """Return what is felt of a drive with some settings."""
    scene = Scene(load_profile_on(PROFILE, platform, *overrides), motion)
    poses = scene.stopped(scene.cues(scene.profile.cueing))
    found = scene.felt(poses)
    moments = tuple(worst(scene.car, found, scene.rate_hz, lag_s)[0] for lag_s in (1.0, 5.0))
    return Felt(scene.errors(found), fast_tilt(scene.car, found), moments, scene.sickness(poses).conflict)


def conflict_row(platform: str, drives: dict[str, np.ndarray], overrides: tuple[str, ...]) -> str:
    """Return conflict as it is and with other settings, by how much it falls, and what the score loses."""
    weights = WEIGHTINGS["best"]
    cells = []
    for motion in drives.values():
        before, after = (felt(platform, motion, "cueing.algorithm=predictive", *each) for each in ((), overrides))
        scene = Scene(load_profile_on(PROFILE, platform), motion)
        best = scene.errors(scene.felt(best_poses(scene, weights)))
        lost = np.subtract(*(weighed(weights, scene.still, each.by_sense, best) for each in (before, after)))
        falls = 100 * (1 - after.conflict / before.conflict)
        cells.append(f"{before.conflict:.3f} → {after.conflict:.3f}, {-falls:+.0f} % ({lost:.1f})")
    return f"| `{platform}` | {' | '.join(cells)} |"


def worst_row(platform: str, drives: dict[str, np.ndarray]) -> str:
    """Return worst moments of `optimal`, and of `predictive` as it is and with as much fast tilt, at most."""
    cells = []
    for motion in drives.values():
        other = felt(platform, motion, "cueing.algorithm=optimal", "cueing.preset=auto")
        plain = felt(platform, motion, "cueing.algorithm=predictive")
        same = plain, "as it is"
        for burst in OFTENER_DEG if plain.fast < other.fast else RARER_DEG:
            tried = felt(platform, motion, "cueing.algorithm=predictive", f"cueing.tilt.burst_deg={burst}")
            if same[0].fast > other.fast or same[0].fast < tried.fast <= other.fast:
                same = tried, f"{burst:g}°"
        each = [
            f"{found.worst[0]:.2f}, {found.worst[1]:.2f} @ {100 * found.fast:.0f}" for found in (other, plain, same[0])
        ]
        cells.append(f"{each[0]}; {each[1]}; {each[2]} ({same[1]})")
    return f"| `{platform}` | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drive", action="append", help=f"as for `motioncue score`; by default {', '.join(DRIVES)}")
    parser.add_argument("--platform", action="append", help=f"name or profile; by default {', '.join(PLATFORMS)}")
    parser.add_argument("--table", choices=("score", "conflict", "worst"), default="score", help="what to compare")
    parser.add_argument("--set", action="append", help=f"for conflict: KEY=VALUE, by default {CONFLICT[0]}")
    chosen = parser.parse_args()
    drives = {name: drive(name) for name in chosen.drive or DRIVES}
    if chosen.table != "score":
        print(f"| platform | {' | '.join(f'`{name}`' for name in drives)} |")
        print(f"|{'---|' * (len(drives) + 1)}")
        for platform in chosen.platform or PLATFORMS:
            conflict = chosen.table == "conflict"
            overrides = tuple(chosen.set or CONFLICT)
            print(conflict_row(platform, drives, overrides) if conflict else worst_row(platform, drives), flush=True)
        return
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
