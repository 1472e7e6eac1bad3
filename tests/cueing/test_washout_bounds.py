"""Bounds on the angles of the classical washout: a yaw that lasts, on a platform that turns little."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_washout import PERIOD, body_rates, measured_gain, motion_of, profile, turned

import motioncue

YAW = ("cueing.yaw.order=1", "cueing.yaw.gain=1")


def yaw_of(rate, *overrides):
    return motioncue.cue(profile("simona", *YAW, *overrides), motion_of(len(rate), yaw_rate=rate))["yaw"]


@pytest.mark.parametrize("rate", [0.1, -0.5, 2.0])
def test_a_constant_rate_approaches_the_bound_as_a_hyperbolic_tangent(rate):
    """Without washout, angle' = r (1 - (angle / limit)^2) is solved by limit tanh(r t / limit)."""
    limit = np.radians(15.0)
    n = round(4.0 * limit / abs(rate) / PERIOD)
    found = yaw_of(np.full(n, rate), "cueing.yaw.cutoff_hz=1e-6", "cueing.yaw.angle_limit_deg=15")
    right = limit * np.tanh(rate * PERIOD * np.arange(n) / limit)
    assert found == pytest.approx(right, abs=2.0 * PERIOD * abs(rate))  # a state that is a tick old
    assert abs(found[-1]) > 0.99 * limit


def test_a_turn_back_begins_at_once():
    """At the bound nothing is wound up: a rate towards 0 is followed in full."""
    rate = np.repeat([0.5, -0.5], [4000, 100])
    found = yaw_of(rate, "cueing.yaw.cutoff_hz=1e-6", "cueing.yaw.angle_limit_deg=15")
    assert np.diff(found[4001:]) == pytest.approx(-0.5 * PERIOD, rel=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_small_angle_has_the_response_without_a_bound(order):
    """At a hundredth of the limit the square is 1e-4."""
    settings = (
        "cueing.yaw.gain=1",
        f"cueing.yaw.order={order}",
        "cueing.yaw.cutoff_hz=0.05",
        "cueing.yaw.break_hz=0.02",
    )
    for omega in (0.2, 1.0, 5.0):
        bounded, free = (
            measured_gain(profile("simona", *settings, *more), "yaw_rate", omega, amplitude=2e-3 * omega)
            for more in (("cueing.yaw.angle_limit_deg=12",), ())
        )
        assert abs(bounded - free) < 3e-4


AXES = {"roll": 0, "pitch": 1, "yaw": 2}


@pytest.mark.search
@settings(max_examples=60)
@given(
    axis=st.sampled_from(sorted(AXES)),
    order=st.integers(1, 3),
    limit=st.floats(0.5, 60.0),
    cutoff=st.floats(0.005, 2.0),
    returned=st.none() | st.floats(0.1, 50.0),
    dead_zone=st.floats(0.0, 30.0),
    rates=st.lists(st.tuples(st.floats(-100.0, 100.0), st.integers(1, 300)), min_size=1, max_size=12),
)
def test_no_rate_turns_beyond_the_bound(axis, order, limit, cutoff, returned, dead_zone, rates):
    rate = np.concatenate([np.full(ticks, value) for value, ticks in rates])
    bound = [f"cueing.{axis}.{key}" for key in (f"order={order}", f"angle_limit_deg={limit}", f"cutoff_hz={cutoff}")]
    bound.append(f"cueing.{axis}.dead_zone_deg_s={dead_zone}")
    if returned is not None:
        bound.append(f"cueing.{axis}.return_deg_s={returned}")
    cue = motioncue.cue(
        profile("simona", *bound, f"cueing.{axis}.gain=1", f"cueing.{axis}.break_hz=0.05"),
        motion_of(len(rate), **{f"{axis}_rate": rate}),
    )
    assert np.abs(np.degrees(cue[axis])).max() <= limit * (1 + 1e-9)


def test_rates_are_those_of_the_bounded_attitude():
    n = 3000
    waves = np.sin(np.outer([1.0, 0.7, 0.5], PERIOD * np.arange(n)) + np.array([[0.0], [1.0], [2.0]]))
    bounds = [f"cueing.{axis}.{key}" for axis in AXES for key in ("angle_limit_deg=8", "gain=1")]
    cue = motioncue.cue(
        profile("simona", *bounds), motion_of(n, roll_rate=0.5 * waves[0], pitch_rate=0.4 * waves[1], yaw_rate=waves[2])
    )
    rates = body_rates(cue)
    assert np.abs(turned(cue) - 0.5 * (rates[:-1] + rates[1:])).max() < 20 * PERIOD**2
    assert np.degrees(np.abs(cue["yaw"]).max()) > 5.0
