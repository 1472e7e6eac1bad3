"""Print a table of the documentation: algorithms on drives and platforms.

Run it from the repository's root:  python docs/compare_algorithms.py [--table NAME] [--drive FILE|NAME]…
[--platform NAME]…  `rally` is the stage of tests/data/rally; `city-7`, `residential-7` and `hard-7` are drives of the
virtual car by scripts made from that number.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import signal

import motioncue
from motioncue.cli.score import drive_of
from motioncue.core.channels import MOTION_DTYPE
from motioncue.cueing.settings import ALGORITHMS
from motioncue.drive import car
from motioncue.engine.assembly import load_profile_on
from motioncue.errors import MotioncueError
from motioncue.scoring.quality import fast_tilt, worst
from motioncue.scoring.scene import Scene
from motioncue.scoring.score import WEIGHTINGS, best_poses, weighed

PROFILE = "ccd-dk-classical"
DRIVES = ("sample", "tour", "turns", "brake")
SIZES = ("small", "medium", "large")
PLATFORMS = ("box-large", "hexapod-simona", "box-small", "hexapod-dim")
CONFLICT = ("cueing.weights.conflict=1.8",)
SHARES = 1.0, 0.8, 0.6, 0.4, 0.2, 0.0  # of the fast tilt of `optimal`, that `predictive` is to have


ROADS = {
    "city": (16.0, (1.0, 3.0), (1.0, 3.5)),
    "residential": (12.0, (0.8, 2.2), (1.0, 3.0)),
    "hard": (30.0, (2.5, 7.0), (4.0, 8.0)),
}
"""Of drives made from a number: the largest speed [m/s], and accelerations along and across the road [m/s^2]."""
ROUGH = {"city": (0.25, 1.0), "residential": (0.35, 1.5), "hard": (0.8, 3.0)}
"""Noise of their accelerations [m/s^2] and rates [deg/s] at speed, 0.5 to 8 Hz."""


def invented(road: str, number: int) -> tuple[np.ndarray, np.random.Generator]:
    """Return states of the virtual car on a script of chance: legs, turns in threes at most, humps."""
    most, along, across = ROADS[road]
    chance = np.random.default_rng([number, len(road)])
    time, speed, legs, turns, humps = 2.0, 0.0, [], [], []
    while time < 63.0:
        target = 0.0 if speed > 0.0 and chance.random() < 0.25 else float(chance.uniform(most / 3.0, most))
        if abs(target - speed) > 1.5:
            ramp = float(chance.uniform(0.35, 0.9))
            took = abs(target - speed) / float(chance.uniform(*along)) + ramp
            legs.append(car.Leg(time, time + max(took, 2.0 * ramp + 0.1), target, ramp))
            time, speed = legs[-1].end, target
        time += float(chance.uniform(0.1, 1.5) if speed > 0.0 else chance.uniform(1.0, 4.0))
        for _ in range(int(chance.integers(0, 4)) if speed > 0.0 else 0):
            share, took = float(chance.uniform(0.12, 0.4)), float(chance.uniform(1.5, 5.0))
            angle = float(chance.choice([-1, 1]) * chance.uniform(*across) / speed * took * (1.0 - share))
            turns.append(car.Feature(time, time + took, angle, share))
            time += took + float(chance.uniform(0.0, 1.5))
        if speed > 0.0 and chance.random() < 0.3:
            humps.append(time)
            time += 0.8
    if speed > 0.0:
        legs.append(car.Leg(time, time + speed / along[1] + 1.0, 0.0, 0.5))
    name = f"{road}-{number}"
    script = car.Script(
        description=name, duration=time + 20.0, legs=tuple(legs), turns=tuple(turns), humps=tuple(humps)
    )
    car.SCRIPTS[name] = script
    return car.drive(name, 60.0), chance


def roughened(rows: np.ndarray, road: str, chance: np.random.Generator) -> None:
    """Add the noise of a road, as far as the car drives."""
    filtered = signal.butter(2, [0.5, 8.0], "band", fs=60.0)
    drives = np.clip(rows["speed"] / 8.0, 0.0, 1.0)
    push, turn = ROUGH[road][0], np.radians(ROUGH[road][1])
    sizes = {"surge": 0.7 * push, "sway": push, "heave": 1.5 * push}
    for channel, size in {**sizes, "roll_rate": turn, "pitch_rate": turn, "yaw_rate": 0.4 * turn}.items():
        noise = signal.lfilter(*filtered, chance.standard_normal(len(rows)))
        rows[channel] += size * drives * noise / noise.std()


def drive(name: str) -> np.ndarray:
    """Return a drive by its name or file."""
    road, _, number = name.partition("-")
    made = road in ROADS and number.isdecimal()
    if name != "rally" and not made:
        return drive_of(name, None, None)
    tests = Path(__file__).parents[1] / "tests"
    sys.path[:0] = [str(tests), str(tests / "support")]
    import rally
    from helpers import truth

    states, chance = invented(road, int(number)) if made else (rally.stage()[0], None)
    rows = np.zeros(len(states), MOTION_DTYPE)
    for channel, values in truth(states).items():
        rows[channel] = values
    rows["frame_time"] = states["time"] - states["time"][0]
    rows["time"] = np.round(1e9 * rows["frame_time"])
    if chance is not None:
        rows["speed"] = np.linalg.norm(states["velocity"], axis=1)
        roughened(rows, road, chance)
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

    score: float
    """With the weights of the best motion, of what the platform then does."""
    fast: float
    """Share of the time with fast tilt."""
    worst: tuple[float, float]
    """The worst moment behind lags of 1 s and 5 s [m/s^2]."""
    conflict: float
    """Conflict about the vertical [m/s^2]."""


def felt(platform: str, motion: np.ndarray, *overrides: str) -> Felt:
    """Return what is felt of a drive with some settings."""
    scene = Scene(load_profile_on(PROFILE, platform, *overrides), motion)
    weights = WEIGHTINGS["best"]
    poses = scene.stopped(scene.cues(scene.profile.cueing))
    found = scene.felt(poses)
    best = scene.errors(scene.felt(best_poses(scene, weights)))
    return Felt(
        score=weighed(weights, scene.still, scene.errors(found), best),
        fast=fast_tilt(scene.car, found),
        worst=(worst(scene.car, found, scene.rate_hz, 1.0)[0], worst(scene.car, found, scene.rate_hz, 5.0)[0]),
        conflict=scene.sickness(poses).conflict,
    )


def conflict_row(platform: str, drives: dict[str, np.ndarray], overrides: tuple[str, ...]) -> str:
    """Return conflict as it is and with other settings, by how much it falls, and what the score loses."""
    cells = []
    for motion in drives.values():
        before, after = (felt(platform, motion, "cueing.algorithm=predictive", *each) for each in ((), overrides))
        falls = 100 * (1 - after.conflict / before.conflict)
        lost = before.score - after.score
        cells.append(f"{before.conflict:.3f} → {after.conflict:.3f}, {-falls:+.0f} % ({lost:.1f})")
    return f"| `{platform}` | {' | '.join(cells)} |"


def tilt_row(platform: str, drives: dict[str, np.ndarray]) -> str:
    """Return score, worst moments and fast tilt: of `optimal`, of `predictive`, and of it with no more fast tilt."""
    cells = []
    for motion in drives.values():
        other = felt(platform, motion, "cueing.algorithm=optimal", "cueing.preset=auto")
        plain = felt(platform, motion, "cueing.algorithm=predictive")
        for part in SHARES:
            share = f"{part * other.fast:.2f}"
            same = felt(platform, motion, "cueing.algorithm=predictive", f"cueing.tilt.fast_share={share}")
            if same.fast <= other.fast:
                break
        each = [
            f"{found.score:.0f}, {found.worst[0]:.2f}, {found.worst[1]:.2f} @ {100 * found.fast:.0f}"
            for found in (other, plain, same)
        ]
        cells.append(f"{each[0]}; {each[1]}; {each[2]} ({share})")
    return f"| `{platform}` | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drive", action="append", help=f"as for `motioncue score`; by default {', '.join(DRIVES)}")
    parser.add_argument("--platform", action="append", help=f"name or profile; by default {', '.join(PLATFORMS)}")
    parser.add_argument("--table", choices=("score", "conflict", "tilt"), default="score", help="what to compare")
    parser.add_argument("--set", action="append", help=f"for conflict: KEY=VALUE, by default {CONFLICT[0]}")
    chosen = parser.parse_args()
    drives = {name: drive(name) for name in chosen.drive or DRIVES}
    if chosen.table != "score":
        print(f"| platform | {' | '.join(f'`{name}`' for name in drives)} |")
        print(f"|{'---|' * (len(drives) + 1)}")
        for platform in chosen.platform or PLATFORMS:
            conflict = chosen.table == "conflict"
            overrides = tuple(chosen.set or CONFLICT)
            print(conflict_row(platform, drives, overrides) if conflict else tilt_row(platform, drives), flush=True)
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
