"""Machines made by chance: what is planned for one is what its actuators then do, and it is felt."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from motioncue.engine.assembly import load_profile_on
from motioncue.scoring.scene import Scene, poses_of
from motioncue.virtual.installation import drive_motion

AXES = {
    "surge_displacement": (0.1, 1.0),
    "sway_displacement": (0.1, 0.6),
    "heave_displacement": (0.05, 0.3),
    "roll": (5.0, 25.0),
    "pitch": (5.0, 25.0),
    "yaw": (5.0, 40.0),
}
"""Half a range, least and most [m, deg]."""


def axis(channel, chance):
    half = float(chance.uniform(*AXES[channel]))
    key, unit, fast = ("travel", "m", 1.0) if channel.endswith("displacement") else ("turn", "deg", 60.0)
    bounds = {f"min_{unit}": -half, f"max_{unit}": half, f"speed_{unit}_s": fast * float(chance.uniform(0.5, 1.5))}
    return {
        "name": f"{channel}_axis",
        "channel": channel,
        key: bounds | {f"acceleration_{unit}_s2": fast * float(chance.uniform(4.0, 10.0))},
    }


def machine(chance):
    """Return the table of a platform: two to four posts, or none, and single axes that may stand beside them."""
    count = int(chance.choice([0, 2, 3, 4]))
    free = [name for name in AXES if not count or name not in ("heave_displacement", "roll", "pitch")]
    # One axis alone that slides leaves a force that lasts to nothing: such a machine also leans.
    leans = [] if count else [str(chance.choice(["roll", "pitch"]))]
    axes = [axis(name, chance) for name in free if name in leans or chance.random() < 0.4]
    if not count:
        return {"kind": "axes", "axes": axes}
    x, y = (chance.uniform(0.3, 0.8, count) for _ in range(2))
    ends = {2: ((-1, 1), (-1, -1)), 3: ((1, 1), (-1, 0), (1, -1)), 4: ((1, 1), (1, -1), (-1, 1), (-1, -1))}[count]
    half = float(chance.uniform(0.03, 0.1))
    post = {"min_m": -half, "max_m": half, "speed_m_s": 0.3, "acceleration_m_s2": float(chance.uniform(3.0, 8.0))}
    at = [(float(a * s), float(b * t)) for a, b, (s, t) in zip(x, y, ends, strict=True)]
    return {"kind": "posts", "at_m": at, "post": post, "axes": axes}


@pytest.mark.parametrize("number", [*range(3), *(pytest.param(n, marks=pytest.mark.search) for n in range(3, 30))])
@pytest.mark.check
def test_what_is_planned_for_a_machine_is_what_it_does(number):
    table = machine(np.random.default_rng(number))
    profile = load_profile_on("ccd-dk-washout", table)
    scene = Scene(profile, drive_motion("turns"))
    cues = scene.cues(profile.cueing)
    asked, made = poses_of(cues), scene.stopped(cues)
    moved = np.abs(scene.built.kinematics.jacobian(np.zeros((1, 6)))[0]).max(axis=0) > 1e-9
    np.testing.assert_allclose(made[:, moved], asked[:, moved], atol=0.005)  # [m, rad]
    assert np.sum(scene.errors(scene.felt(made)) ** 2) < np.sum(scene.still**2)
