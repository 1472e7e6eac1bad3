"""What a run says at load of how a cue fits its platform: where it reaches, and how quickly it has to move there."""

import numpy as np
import pytest

from motioncue.engine.assembly import load_profile_on
from motioncue.engine.fitting import CHANNELS, RATE_HZ, cues_of, fit

SLIDES = CHANNELS[:3]


def on_axes(speed_m_s, acceleration_m_s2, *overrides):
    """Return a profile with a washout on six free axes that go farther than it does; those that slide have bounds."""
    slide = {"min_m": -3.0, "max_m": 3.0, "speed_m_s": speed_m_s, "acceleration_m_s2": acceleration_m_s2}
    turn = {"min_deg": -90.0, "max_deg": 90.0, "speed_deg_s": 900.0, "acceleration_deg_s2": 90_000.0}
    parts = {name: {"travel": slide} if name in SLIDES else {"turn": turn} for name in CHANNELS}
    axes = [{"name": f"{name}_axis", "channel": name, **part} for name, part in parts.items()]
    return load_profile_on("ccd-dk-classical", {"kind": "axes", "axes": axes}, "cueing.preset=medium", *overrides)


@pytest.fixture(scope="module")
def most():
    """Return the largest speed and acceleration of what slides, on the standard drives [m/s, m/s^2]."""
    speeds, accelerations = [], []
    for cues in cues_of(on_axes(50.0, 500.0).cueing, None):
        places = np.stack([cues[name] for name in SLIDES])
        speeds.append(float(np.abs(np.diff(places)).max()) * RATE_HZ)
        accelerations.append(float(np.abs(np.diff(places, n=2)).max()) * RATE_HZ**2)
    return max(speeds), max(accelerations)


def test_a_platform_that_follows_is_said_to_reach(most):
    found = fit(on_axes(1.01 * most[0], 1.01 * most[1]))
    assert (found.beyond, found.too_slow, found.gains) == (0.0, 0.0, {})
    assert found.lines()[0].startswith(
        "on the standard drives every pose is within the platform's reach; they use up to"
    )


@pytest.mark.parametrize(("speed", "acceleration"), [(0.7, 2.0), (2.0, 0.7)])
def test_a_pose_within_reach_for_which_an_actuator_is_too_slow_is_said(most, speed, acceleration):
    bounds = speed * most[0], acceleration * most[1]
    found = fit(on_axes(*bounds))
    assert found.beyond == 0.0 < found.too_slow < 0.2
    share = f"{100 * found.too_slow:.2g} % of the time an actuator is asked for more speed or acceleration than it has"
    assert f"every pose is within the platform's reach, but {share}: cueing." in found.lines()[0]
    assert found.lines()[0].endswith("would fit")
    assert found.gains
    assert fit(on_axes(*bounds, *(f"{key}={value}" for key, value in found.gains.items()))).too_slow == 0.0


def test_a_pose_beyond_a_range_that_leaning_legs_reach_is_not_said_to_use_more_than_all_of_it():
    # On its own from neutral surge goes less far than where the rest of a plan's pose makes room for it.
    found = fit(load_profile_on("ccd-dk-washout", "hexapod-simona"))
    least, most = found.ranges["surge_displacement"]
    assert found.beyond == 0.0
    assert not least <= found.needs["surge_displacement"][0] < found.needs["surge_displacement"][1] <= most
    assert found.lines()[0].endswith(
        "along surge beyond the range that it has alone, where the rest of the pose makes room"
    )
