"""Machines made by chance: what is planned for one is what its actuators then do, and it is felt."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from motioncue.engine.assembly import load_profile_on
from motioncue.platforms.settings import platform_presets
from motioncue.scoring.scene import Scene, poses_of
from motioncue.virtual.installation import drive_motion
from motioncue.virtual.platform_twin import sensed

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
    np.testing.assert_allclose(made[:, moved], asked[:, moved], atol=1e-6)  # [m, rad]
    assert np.sum(scene.errors(scene.felt(made)) ** 2) < np.sum(scene.still**2)


@pytest.mark.check
@pytest.mark.parametrize("drive", ["brake", "turns"])
def test_a_plan_that_rides_on_a_bound_is_followed(drive):
    # Tilt may accelerate by 100 deg/s^2, and a plan does: by rounding it is beyond that by a share of 1e-12.
    turn = {"min_deg": -25.0, "max_deg": 25.0, "speed_deg_s": 30.0, "acceleration_deg_s2": 100.0}
    slide = {"min_m": -1.1, "max_m": 1.1, "speed_m_s": 1.5, "acceleration_m_s2": 10.0}
    parts = {name: {"travel": slide} if "displacement" in name else {"turn": turn} for name in AXES}
    axes = [{"name": f"{name}_axis", "channel": name, **part} for name, part in parts.items()]
    profile = load_profile_on("ccd-dk-washout", {"kind": "axes", "axes": axes})
    scene = Scene(profile, drive_motion(drive))
    cues = scene.cues(profile.cueing)
    asked = poses_of(cues)
    bend = np.abs(np.diff(asked[:, 3:], n=2, axis=0)).max() * scene.rate_hz**2
    assert np.degrees(bend) == pytest.approx(100.0, rel=1e-6)
    np.testing.assert_allclose(scene.stopped(cues), asked, rtol=0, atol=1e-9)


@pytest.mark.check
@pytest.mark.parametrize("half", [0.1, 0.3])
def test_a_short_sled_does_not_shake_at_its_end(half):
    # Its legs go on where it ends: it ends for the plan too, but not at once (1.8 m/s^2 a tick, ten times a second).
    table = dict(platform_presets()["hexapod-on-sled"])
    travel = {"min_m": -half, "max_m": half, "speed_m_s": 0.5, "acceleration_m_s2": 5.0}
    table["axes"] = [{**table["axes"][0], "travel": travel}]
    profile = load_profile_on("ccd-dk-washout", table)
    scene = Scene(profile, drive_motion("brake"))
    force, _ = sensed(scene.stopped(scene.cues(profile.cueing)), 1.0 / scene.rate_hz)
    assert np.abs(np.diff(force, axis=0)).max() < 0.25


@pytest.mark.check
@pytest.mark.parametrize(("preset", "push"), [("hexapod-simona", 3.0), ("hexapod-dim", 2.0)])
def test_a_plan_for_weak_legs_is_followed(preset, push):
    # One leg comes to its end while another is fast: to stop together they would need as long as that one.
    table = dict(platform_presets()[preset])
    table["leg"] = {**table["leg"], "acceleration_m_s2": push}
    profile = load_profile_on("ccd-dk-washout", table)
    scene = Scene(profile, drive_motion("turns"))
    cues = scene.cues(profile.cueing)
    np.testing.assert_allclose(scene.stopped(cues), poses_of(cues), rtol=0, atol=1e-9)
