"""Actuators within position, speed and acceleration: no input breaks a bound, and they come to rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from same_bits import assert_same_bits

ROUNDING = 1e-9  # allowed excess, as a share of a bound


# Lowest and highest position [m], speed [m per tick], acceleration [m per tick^2].
ACTUATOR = st.tuples(st.floats(-2.0, -0.01), st.floats(0.01, 2.0), st.floats(1e-5, 1.0), st.floats(1e-5, 1.0))


def between(bounds, where):
    """Return positions, given as shares of the way from the lowest to the highest."""
    low, high = bounds[:, 0], bounds[:, 1]
    return np.clip(low + np.array(where) * (high - low), low, high)


@st.composite
def platforms(draw, most=6):
    """Return bounds of some actuators, one row each, and their positions at rest."""
    bounds = np.array(draw(st.lists(ACTUATOR, min_size=1, max_size=most)))
    where = draw(st.lists(st.floats(0.0, 1.0), min_size=len(bounds), max_size=len(bounds)))
    return bounds, between(bounds, where)


def keep(probe, bounds, start, targets, part=False):
    """Return the positions of every tick, start first, which ticks were changed, and how often each held others
    back; whether they may `part`."""
    positions = np.array(targets, np.float64, ndmin=2)
    changed, acted = probe.kept(np.ascontiguousarray(bounds), np.ascontiguousarray(start), positions, part)
    return np.vstack([start, positions]), np.array(changed, bool), acted


def assert_kept(bounds, positions):
    """Assert that every position, speed and acceleration is within its bound, starting from rest."""
    low, high, speed, acceleration = bounds.T
    assert np.isfinite(positions).all()
    assert (positions >= low).all()
    assert (positions <= high).all()
    speeds = np.diff(positions, axis=0, prepend=positions[:1])
    slack = ROUNDING * (np.abs(bounds).max(axis=1) + speed)
    assert (np.abs(speeds) <= speed + slack).all()
    assert (np.abs(np.diff(speeds, axis=0)) <= acceleration + slack).all()


WANTED = st.one_of(
    st.floats(-3.0, 3.0),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 9e8, -9e8, 0.0, 5e-324]),
)


APART = pytest.mark.parametrize("part", [False, True], ids=["together", "apart"])


@APART
@given(platforms(), st.data())
def test_no_sequence_of_targets_breaks_a_bound(probe, part, platform, data):
    bounds, start = platform
    row = st.lists(WANTED, min_size=len(start), max_size=len(start))
    stretches = data.draw(st.lists(st.tuples(row, st.integers(1, 30)), min_size=1, max_size=12))
    targets = np.vstack([np.tile(values, (ticks, 1)) for values, ticks in stretches])
    assert_kept(bounds, keep(probe, bounds, start, targets, part)[0])


@APART
@pytest.mark.parametrize("kind", ["noise", "ends", "walk", "sine", "bursts"])
def test_no_long_drive_of_targets_breaks_a_bound(probe, rng, kind, part):
    bounds = np.column_stack([[-0.3] * 6, [0.2] * 6, np.geomspace(1e-4, 1e-2, 6), np.geomspace(1e-6, 1e-3, 6)])
    n = 20_000
    targets = {
        "noise": lambda: rng.uniform(-0.5, 0.5, (n, 6)),
        "ends": lambda: np.repeat(rng.choice([-5.0, 5.0], (n // 100, 6)), 100, axis=0),
        "walk": lambda: np.cumsum(rng.normal(0.0, 2e-3, (n, 6)), axis=0),
        "sine": lambda: 0.4 * np.sin(np.outer(np.arange(n), np.geomspace(1e-3, 1.0, 6))),
        "bursts": lambda: np.where(rng.random((n, 1)) < 0.5, np.nan, rng.uniform(-0.5, 0.5, (n, 6))),
    }[kind]()
    positions, _, acted = keep(probe, bounds, np.zeros(6), targets, part)
    assert_kept(bounds, positions)
    assert sum(acted) > 0


@st.composite
def steps(draw):
    """Return bounds, a start at rest and a target within the positions, and ticks enough to get there."""
    bounds, start = draw(platforms())
    bounds[:, 2:] = np.maximum(bounds[:, 2:], 1e-3)
    where = draw(st.lists(st.floats(0.0, 1.0), min_size=len(start), max_size=len(start)))
    goal = between(bounds, where)
    way = np.abs(goal - start)
    # At full speed, and up to it and down again with half of the acceleration; the slowest actuator after the other.
    ticks = (
        (way / bounds[:, 2]).sum() + 4.0 * np.sqrt(way / bounds[:, 3]).sum() + 4.0 * (bounds[:, 2] / bounds[:, 3]).max()
    )
    return bounds, start, goal, int(ticks) + 50


@APART
@given(steps())
def test_at_a_constant_target_they_come_to_rest_there(probe, part, step):
    bounds, start, goal, ticks = step
    positions, _, _ = keep(probe, bounds, start, np.tile(goal, (ticks, 1)), part)
    assert_kept(bounds, positions)
    assert positions[-10:] == pytest.approx(np.tile(goal, (10, 1)), abs=1e-12)


@given(steps())
def test_a_step_is_overshot_by_less_than_three_ticks_of_acceleration(probe, step):
    bounds, start, goal, ticks = step
    positions, _, _ = keep(probe, bounds, start, np.tile(goal, (ticks, 1)))
    beyond = ((positions - goal) * np.sign(goal - start)).max(axis=0)
    assert (beyond <= 3.0 * bounds[:, 3] * (1 + 1e-9) + 1e-12).all()


def test_a_long_step_is_overshot_by_no_more_than_2_3_percent(probe):
    # 3 A of the way d, for d of 131 A and more: 0.39 m at 100 m/s^2, or 4 mm at 1 m/s^2, at 333.33 Hz.
    for ratio in np.geomspace(131.0, 1e5, 60):
        bounds = np.array([[-1.0, 2.0, 1.0, 1.0 / ratio]])
        positions, _, _ = keep(probe, bounds, np.zeros(1), np.ones((int(20 * np.sqrt(ratio)) + 50, 1)))
        assert positions.max() <= 1.023
        assert positions[-1, 0] == 1.0


def test_actuators_whose_bounds_are_in_proportion_to_their_ways_stay_on_one_line(probe, rng):
    ways = np.array([0.3, -0.2, 0.1, 0.05])
    bounds = np.column_stack([-np.abs(ways), np.abs(ways), np.abs(ways) / 100, np.abs(ways) / 3000])
    targets = np.repeat(rng.uniform(-1.5, 1.5, 40), 50)[:, None] * ways
    along = keep(probe, bounds, np.zeros(4), targets)[0] / ways
    assert np.ptp(along, axis=0).min() > 0.5
    assert np.ptp(along, axis=1).max() < 1e-9


@APART
def test_one_that_comes_to_its_end_while_another_is_fast_passes_where_they_may_part(probe, part):
    # The first needs ten ticks to stop, and rests at its end then; to stop with the second, which needs a hundred, it
    # would take ten times as far.
    push = 2.0**-10
    up, down = np.arange(1, 11), np.arange(9, -1, -1)
    slow = np.concatenate([np.zeros(100), up, np.full(30, 10), down, np.zeros(20)])
    fast = np.concatenate([np.arange(1, 101), np.full(len(slow) - 100, 100)])
    targets = push * np.cumsum(np.column_stack([slow, fast]), axis=0)
    bounds = np.array([[-1.0, targets[-1, 0], 1.0, push], [-100.0, 100.0, 1.0, push]])
    positions, changed, acted = keep(probe, bounds, np.zeros(2), targets, part)
    assert_kept(bounds, positions)
    assert changed.any() == (acted[0] > 0) == (not part)
    if part:
        assert_same_bits(positions[1:], targets)


@pytest.mark.parametrize("speed", [0, 4, 9])
def test_what_has_parted_stops_within_its_ends_whenever_the_target_jumps(probe, speed):
    # As above, and then the targets turn back while the first is on its way to its end.
    push = 2.0**-10
    slow = np.concatenate([np.zeros(100), np.arange(1, 11), np.full(30, 10), np.arange(9, speed, -1)])
    fast = np.concatenate([np.arange(1, 101), np.full(len(slow) - 100, 100)])
    targets = push * np.cumsum(np.column_stack([slow, fast]), axis=0)
    end = targets[-1, 0] + push * speed * (speed + 1) / 2  # where it can just stop
    targets = np.vstack([targets, np.tile([-0.5, -50.0], (900, 1))])
    bounds = np.array([[-1.0, end, 1.0, push], [-100.0, 100.0, 1.0, push]])
    positions, changed, _ = keep(probe, bounds, np.zeros(2), targets, True)
    assert not changed[: len(slow)].any()
    assert changed[len(slow)]
    assert_kept(bounds, positions)
    assert positions[-1] == pytest.approx(targets[-1], abs=1e-9)


def test_targets_that_keep_the_bounds_pass_bit_for_bit(probe):
    bounds = np.array([[-1.0, 1.0, 0.01, 1e-3], [-0.5, 0.5, 0.02, 1e-3]])
    t = np.arange(5000)[:, None]
    # a sin^3: from rest; its speed and acceleration per tick are at most a w 1.16 and 3 a w^2.
    targets = np.array([0.3, 0.2]) * np.sin(t * [0.01, 0.02]) ** 3
    positions, changed, acted = keep(probe, bounds, targets[0], targets)
    assert_same_bits(positions[1:], targets)
    assert not changed.any()
    assert acted == [0, 0]


@pytest.mark.parametrize("step", [-0.1, -1.2e-3, 1.2e-3, 0.1])
def test_a_step_after_targets_that_passed_goes_towards_the_target_at_once(probe, step):
    bounds = np.array([[-1.0, 1.0, 0.01, 1e-3]])
    passing = 0.25 - 0.25 * np.cos(np.arange(315) * 0.01)  # to 0.5, where it rests
    passing = np.append(passing, [passing[-1]] * 5)[:, None]
    targets = np.vstack([passing, np.full((100, 1), passing[-1, 0] + step)])
    positions, changed, _ = keep(probe, bounds, passing[0], targets)
    assert not changed[: len(passing)].any()
    assert positions[len(passing) + 1] - passing[-1] == pytest.approx(np.sign(step) * 1e-3, rel=1e-6)
    assert positions[-1] == pytest.approx(targets[-1], abs=1e-9)


def test_a_target_beyond_an_end_stops_at_the_end_and_holds_the_others_back(probe):
    bounds = np.array([[-0.1, 0.1, 0.01, 1e-3], [-1.0, 1.0, 0.01, 1e-3]])
    positions, changed, acted = keep(probe, bounds, np.zeros(2), np.tile([0.2, 0.4], (2000, 1)))
    assert_kept(bounds, positions)
    assert positions[-1, 0] == pytest.approx(0.1, abs=1e-9)
    assert 0.2 <= positions[-1, 1] < 0.4  # short of its target because of the other
    assert np.abs(np.diff(positions[-100:], axis=0)).max() < 1e-9
    assert changed.all()
    assert acted[0] > acted[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e9, -1e308])
def test_one_position_that_is_no_number_keeps_the_targets_of_before_for_all(probe, bad):
    bounds = np.array([[-1.0, 1.0, 0.01, 1e-3], [-1.0, 1.0, 0.01, 1e-3]])
    good = np.tile([0.3, -0.2], (400, 1))
    spoiled = good.copy()
    spoiled[5:200, 1] = bad
    spoiled[5:200, 0] = 0.9
    expected, _, _ = keep(probe, bounds, np.zeros(2), good)
    found, changed, _ = keep(probe, bounds, np.zeros(2), spoiled)
    assert_same_bits(found, expected)
    assert changed[5:200].all()
    assert not changed[-1]


FREE = [-1.0, 1.0, 1.0, 0.1, np.inf]


@pytest.mark.parametrize(
    ("position", "speed", "low", "high"),
    [
        (0.0, 0.0, -0.5, 0.4),  # within the new ends
        (-0.7, 0.0, -0.7, 0.4),  # at rest beyond one of them: no farther out
        (0.6, 0.0, -0.5, 0.6),
        (-0.3, -0.3, -0.6, 0.4),  # on its way past one: with 0.1 a tick it stops after 0.2 and 0.1
        (0.3, 0.3, -0.5, 0.6),
        (-0.7, 0.3, -0.7, 0.4),  # on its way back
    ],
)
def test_ends_come_in_as_far_as_a_stop_allows(probe, position, speed, low, high):
    bounds = np.array([FREE])
    assert probe.tightened(np.array([[-0.5, 0.4, 1.0, 0.1, np.inf]]), bounds, [[position], [speed]], True) == -1
    assert bounds[0, :2] == pytest.approx([low, high], abs=1e-15)
    bounds = np.array([FREE])
    assert probe.tightened(np.array([[-0.5, 0.4, 1.0, 0.1, np.inf]]), bounds, [[position], [speed]], False) == -1
    assert bounds[0].tolist() == FREE


@pytest.mark.parametrize("moving", [0, 1, 2])
def test_an_acceleration_is_not_taken_that_the_way_to_the_end_is_too_short_for(probe, moving):
    """From 0.3 a tick, 0.1 stops within 0.3 and 0.05 within 0.75; the end is 0.5 away."""
    bounds, positions, speeds = np.array([FREE] * 3), np.zeros(3), np.zeros(3)
    goal = bounds.copy()
    goal[:, 3] = 0.05
    positions[moving], speeds[moving] = 0.5, 0.3
    assert probe.tightened(goal, bounds, [positions, speeds], True) == moving
    assert bounds.tolist() == [FREE] * 3
    speeds[moving] = 0.2  # 0.15, 0.1 and 0.05
    assert probe.tightened(goal, bounds, [positions, speeds], True) == -1
    assert bounds[:, 3].tolist() == [0.05] * 3
