"""Lag and dead time from replies: those of the software drives' own equation, through noise, steps and lost replies."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motioncue.check.exercise import SINES, STEPS_S, Found, bump, identified, refuse_unheard, slowed
from motioncue.drive.courses import swell, swing
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError
from motioncue.platforms.build import build, platform_named
from motioncue.platforms.settings import Hexapod
from motioncue.virtual.platform_twin import Drive, VirtualPlatform

DT = 0.00300003


def asked(size_m=0.005, dt=DT):
    """Return four posts' commands in sines and steps, two of them the other way."""
    parts = [swing(np.arange(0.0, s + 0.5, dt), s, hz)[0] for hz, s in SINES]
    parts += [bump(np.arange(0.0, s + 0.5, dt), s)[0] for s in STEPS_S]
    return size_m * np.concatenate(parts)[:, None] * [1.0, -1.0, 1.0, -0.5]


def heard_of(sent, drive):
    """Return what the software drives reply at once: where they are at a tick, before its packet has come."""
    return VirtualPlatform(platform_named("posts-4"), 1.0 / DT, drive).positions(sent)


@pytest.mark.parametrize("shape", [swell, bump, lambda time, s: swing(time, s, 1.5)])
def test_the_shapes_are_derivatives_of_one_another_and_end_at_rest(shape):
    time = np.linspace(-0.5, 3.0, 350_001)
    at, speed, bent = shape(time, 2.5)
    inner = (time > 0.01) & (time < 2.49)
    np.testing.assert_allclose(np.gradient(at, time)[inner], speed[inner], atol=1e-5)
    np.testing.assert_allclose(np.gradient(speed, time)[inner], bent[inner], atol=2e-3)
    for each in (at, speed):
        np.testing.assert_allclose(each[(time <= 0.0) | (time >= 2.5)], 0.0, atol=1e-9)
    np.testing.assert_allclose(bent[(time < 0.0) | (time > 2.5)], 0.0, atol=1e-9)


@pytest.mark.check
@settings(max_examples=4, deadline=None)
@given(lag_s=st.floats(0.002, 0.2), dead_s=st.floats(0.0, 0.1), every=st.integers(1, 16))
def test_lag_and_dead_time_are_those_of_the_drive(lag_s, dead_s, every):
    sent = asked()
    heard = heard_of(sent, Drive(lag_s, None, dead_s))
    heard = heard[np.arange(len(heard)) // every * every]  # a reply at every so many ticks
    found = identified(sent, heard, np.arange(len(sent)), DT)
    # The largest error is the finest grid's, and a dead time between two ticks that the drive itself interpolates.
    assert found.lag_s == pytest.approx(lag_s, abs=3e-4)
    assert found.dead_time_s == pytest.approx(dead_s, abs=3e-4)
    assert found.unexplained < 0.01
    assert found.speed is None


@pytest.mark.check
def test_noise_and_coarse_positions_cost_little():
    """Positions in 256 steps of the range and noise of a step, as SMC3's replies have them, 20 a second."""
    sent = asked(0.02)
    heard = heard_of(sent, Drive(0.05, None, 0.02))
    random = np.random.default_rng(1)
    step = 0.2 / 256
    heard = np.round((heard + random.uniform(-step, step, heard.shape)) / step) * step
    heard = heard[np.arange(len(heard)) // 17 * 17]
    found = identified(sent, heard, np.arange(len(sent)), DT)
    assert found.lag_s + found.dead_time_s == pytest.approx(0.07, abs=0.004)
    assert found.lag_s == pytest.approx(0.05, abs=0.012)


def test_ticks_that_were_left_out_are_known():
    sent = asked()
    heard = heard_of(sent, Drive(0.04, None, 0.01))
    kept = np.flatnonzero(np.random.default_rng(2).random(len(sent)) > 0.02)
    held = sent[kept[np.searchsorted(kept, np.arange(len(sent)), side="right") - 1]]  # a packet stays in force
    heard = heard_of(held, Drive(0.04, None, 0.01))
    found = identified(sent[kept], heard[kept], kept, DT)
    assert found.lag_s == pytest.approx(0.04, abs=5e-4)
    assert found.dead_time_s == pytest.approx(0.01, abs=5e-4)


def slow_drive(sent, lag_s, dead_s, speed, acceleration=None, dt=DT):
    """Return positions before each tick, by small steps of x' = (u - x) / T within a speed; the dead time is ticks.

    With an acceleration, x' changes by no more than that, and is never more than what can still be stopped in time.
    """
    late, step = round(dead_s / dt), dt / 30
    u = np.concatenate([np.zeros((late, sent.shape[1])), sent])[: len(sent)]
    change = math.inf if acceleration is None else acceleration * step
    heard = []
    for commands in u.T.tolist():  # plain numbers: arrays of four would take ten times as long
        x, v, places = 0.0, 0.0, []
        for command in commands:
            places.append(x)
            for _ in range(30):
                gap = command - x
                most = speed if acceleration is None else min(speed, math.sqrt(2.0 * acceleration * abs(gap)))
                v += min(max(min(max(gap / lag_s, -most), most) - v, -change), change)
                x += v * step
        heard.append(places)
    return np.transpose(heard)


@pytest.mark.check
@pytest.mark.parametrize(
    ("share", "lag_s", "late"),
    [
        (0.4, 0.02, 0),
        *(pytest.param(share, 0.05, 10, marks=pytest.mark.check) for share in (0.7, 0.15)),
    ],
)
def test_drives_that_are_slower_than_asked_tell_their_speed(share, lag_s, late):
    sent = asked()
    speed = share * np.abs(np.diff(sent, axis=0)).max() / DT
    found = identified(sent, slow_drive(sent, lag_s, late * DT, speed), np.arange(len(sent)), DT)
    assert found.speed == pytest.approx(speed, rel=0.01)
    assert found.lag_s == pytest.approx(lag_s, abs=2e-3)
    assert found.dead_time_s == pytest.approx(late * DT, abs=2e-3)


SLOWLY = 0.006  # ticks of these drives [s], because grids of drives take a while


@pytest.mark.check
@pytest.mark.parametrize(
    ("speeds", "share", "lag_s", "late"),
    [
        (None, 0.4, 0.03, 0),
        pytest.param(None, 0.15, 0.05, 4, marks=pytest.mark.search),
        pytest.param(0.4, 0.5, 0.05, 2, marks=pytest.mark.search),
    ],
)
def test_drives_that_accelerate_less_than_asked_tell_it(speeds, share, lag_s, late):
    sent = asked(dt=SLOWLY)
    most = [np.abs(np.diff(sent, order, axis=0)).max() / SLOWLY**order for order in (1, 2)]
    speed, acceleration = 1e3 if speeds is None else speeds * most[0], share * most[1]
    heard = slow_drive(sent, lag_s, late * SLOWLY, speed, acceleration, SLOWLY)
    found = identified(sent, heard, np.arange(len(sent)), SLOWLY)
    assert found.acceleration == pytest.approx(acceleration, rel=0.04)
    assert found.speed == (None if speeds is None else pytest.approx(speed, rel=0.02))
    assert found.lag_s == pytest.approx(lag_s, abs=4e-3)
    assert found.dead_time_s == pytest.approx(late * SLOWLY, abs=4e-3)


@pytest.mark.search
def test_inertia_is_no_bound_of_the_acceleration():
    found = identified(sent := asked(), heard_of(sent, Drive(0.1, 1.0, 0.0)), np.arange(len(sent)), DT)
    assert (found.speed, found.acceleration) == (None, None)
    assert found.unexplained > 0.01


@pytest.mark.search
def test_what_no_such_drive_does_is_said():
    sent = asked()
    heard = np.cumsum(np.random.default_rng(3).normal(size=sent.shape), axis=0)
    with pytest.raises(ConfigError, match="beyond what the drives can do"):
        identified(sent, heard, np.arange(len(sent)), DT)


def found_at(actuator, speed, acceleration=None):
    return Found(0.05, 0.0, 0.001, speed, actuator, acceleration)


def test_speeds_that_were_found_bound_their_kind_of_actuator():
    hexapod = platform_named("hexapod-on-yaw-table")
    table = next(iter(hexapod.axes))
    found = [found_at(0, None), found_at(2, 0.1), found_at(1, 0.07654), found_at(6, 0.5)]
    values = {"platform": msgspec.to_builtins(hexapod)}
    for key, value in slowed(hexapod, found).items():
        values["platform"][key.partition(".")[2]] = value
    built = build(msgspec.convert(values["platform"], Hexapod))
    before = build(hexapod)
    assert [each.speed for each in built.bounds[:6]] == [0.0765] * 6  # never faster than what was found
    assert built.bounds[6].speed == pytest.approx(0.5, rel=0.01)
    assert built.bounds[6].speed <= 0.5
    for old, new in zip(before.bounds, built.bounds, strict=True):
        assert old._replace(speed=new.speed) == new
    assert table.name == built.names[6]
    assert slowed(hexapod, [found_at(3, None)]) == {}


def test_accelerations_that_were_found_bound_their_kind_and_are_never_raised():
    posts = platform_named("posts-4")
    before = posts.post
    (value,) = slowed(posts, [found_at(0, None, 1.2345), found_at(3, 0.07654, 2.0)]).values()
    own = {key: each for key, each in msgspec.to_builtins(before).items() if each is not None}
    assert value == {**own, "speed_m_s": 0.0765, "acceleration_m_s2": 1.23}
    (value,) = slowed(posts, [found_at(1, None, 1e3)]).values()
    assert value["acceleration_m_s2"] == before.acceleration_m_s2


@pytest.mark.parametrize("what", ["still", "silent"])
def test_nothing_is_made_of_nothing(what):
    sent = asked() * (what != "still")
    heard = np.zeros_like(sent)
    with pytest.raises(ConfigError, match="nothing was moved" if what == "still" else "found 0 replies that moved"):
        identified(sent, heard, np.arange(len(sent)), DT)


def test_a_rig_that_says_nothing_is_refused():
    with pytest.raises(ConfigError, match="no replies that say where the actuators are"):
        refuse_unheard(load_profile("ccd-dk"))
