"""How fast the predictive algorithm tilts, and how often: the slow limit, bursts, their share, turning with the car."""

import numpy as np
import pytest
from predictive_drives import RATE_HZ, profile

from motioncue import cueing
from motioncue.core.channels import GRAVITY, MOTION_DTYPE
from motioncue.cueing.predictive import design as predictive
from motioncue.platforms import build as platforms


def test_tilt_stays_below_its_rate_limit():
    never = "cueing.tilt.burst_deg=180", "cueing.tilt.rate_limit_deg_s=3"
    motion = np.zeros(round(20 * RATE_HZ), MOTION_DTYPE)
    motion["surge"][300:4000] = 3.0
    motion["sway"][2000:] = -4.0
    cues = cueing.design(profile("cueing.preset=large", *never).cueing, RATE_HZ).process(motion)
    assert 2.8 < np.degrees(np.abs(cues["pitch_rate"]).max()) <= 3.0
    assert 2.8 < np.degrees(np.abs(cues["roll_rate"]).max()) <= 3.0
    assert np.degrees(cues["pitch"].max()) > 8.0  # nose up presents forward force
    assert np.degrees(cues["roll"].max()) > 8.0  # right side down presents force to the left


@pytest.mark.parametrize(
    ("name", "weight", "expected"),
    [
        ("box-small", 0.0, 2.3),  # slides 0.15 m
        ("box-large", 0.0, 3.5),  # 1.1 m
        ("hexapod-on-sled", 0.0, (3.5 + 2.3) / 2),  # 0.95 m forward, 0.24 m sideways
        ("posts-3", 0.0, 2.3),  # does not slide
        ("box-small", 1.0, 2.3 / 2),
        ("box-large", 2.0, 3.5 / 3),
        ("box-large", 9.0, 3.5 / 3),
    ],
)
def test_how_much_tilt_waits_follows_the_slides_and_the_weight_of_the_conflict(name, weight, expected):
    settings = profile(f"cueing.weights.conflict={weight}", platform=name).cueing
    bounds, _ = predictive._bounds(settings.workspace, platforms.build(platforms.platform_named(name)))
    assert predictive._burst_deg(settings, bounds) == pytest.approx(expected, rel=1e-3)


NO_CREDIT = "cueing.tilt.rate_limit_deg_s=3", "cueing.tilt.fast_share=0"  # which would make bursts sooner


def test_tilt_is_fast_in_bursts_where_more_is_waiting_than_a_slow_tilt_brings():
    motion = np.zeros(round(120 * RATE_HZ), MOTION_DTYPE)
    time = np.arange(len(motion)) / RATE_HZ
    motion["surge"] = np.where(time < 60.0, 0.6, 3.0) * np.sign(np.sin(0.5 * time))  # 3.5 and 18 deg each way
    rates = {}
    for burst in (0, 3, 180):
        keys = "cueing.preset=large", f"cueing.tilt.burst_deg={burst}", *NO_CREDIT
        rates[burst] = np.degrees(np.abs(cueing.design(profile(*keys).cueing, RATE_HZ).process(motion)["pitch_rate"]))
    gentle = (time > 1.0) & (time < 60.0)
    assert rates[180].max() <= 3.0
    assert rates[3][gentle].max() <= 3.05 < rates[0][gentle].max()
    assert rates[3][time > 60.0].max() > 8.0
    assert 0.02 < (rates[3] > 3.05).mean() < (rates[0] > 3.05).mean()


def test_what_a_slow_tilt_brings_in_time_opens_no_burst():
    """Of 2.5 deg/s with steps of 0.6 deg, 2 deg are wanted in half a second; 3 deg/s bring 1.6, and 0.5 may wait."""
    time = np.arange(round(12 * RATE_HZ)) / RATE_HZ
    leans = (time > 5.0) & (time < 11.0)
    degrees = 2.5 * np.clip(time - 5.0, 0.0, 6.0) + 0.6 * (leans & (np.sin(2.0 * np.pi * time) > 0.0))
    motion = np.zeros(len(time), MOTION_DTYPE)
    motion["surge"] = GRAVITY * np.sin(np.radians(degrees))
    keys = "cueing.preset=large", "cueing.tilt.burst_deg=0.5", *NO_CREDIT
    cues = cueing.design(profile(*keys).cueing, RATE_HZ).process(motion)
    rates = np.degrees(np.abs(cues["pitch_rate"]))
    assert 2.5 < rates.max() <= 3.0


@pytest.mark.check
def test_tilt_is_fast_for_the_share_of_the_time_that_is_set():
    motion = np.zeros(round(300 * RATE_HZ), MOTION_DTYPE)
    time = np.arange(len(motion)) / RATE_HZ
    motion["surge"] = 0.6 * np.sign(np.sin(time))  # 3.5 deg each way, which no burst of 3 deg waits for
    for share in (0.0, 0.05, 0.1, 0.2):
        keys = "cueing.tilt.burst_deg=3", f"cueing.tilt.fast_share={share}"
        rates = np.degrees(
            np.abs(cueing.design(profile("cueing.preset=large", *keys).cueing, RATE_HZ).process(motion)["pitch_rate"])
        )
        assert (rates[time > 100.0] > 3.0).mean() == pytest.approx(share, rel=0.06), share  # the rest fills the account


def test_turning_with_the_car_is_no_tilt():
    time = np.arange(round(30 * RATE_HZ)) / RATE_HZ
    motion = np.zeros(len(time), MOTION_DTYPE)
    motion["roll"] = np.radians(1.5) * np.sin(6.0 * time)  # up to 9 deg/s
    motion["roll_rate"] = np.radians(9.0) * np.cos(6.0 * time)
    motion["sway"] = GRAVITY * np.sin(motion["roll"])  # such that no lateral force acts
    cues = cueing.design(
        profile("cueing.preset=large", "cueing.tilt.burst_deg=180", "cueing.tilt.rate_limit_deg_s=3").cueing, RATE_HZ
    ).process(motion)
    rates, own = np.degrees(cues["roll_rate"][3000:]), np.degrees(motion["roll_rate"][3000:])
    assert abs(rates).max() > 5.0
    assert (rates < np.maximum(own, 0.0) + 3.5).all()  # half a degree for what was foreseen otherwise
    assert (rates > np.minimum(own, 0.0) - 3.5).all()
