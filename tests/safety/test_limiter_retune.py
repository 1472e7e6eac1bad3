"""Changing bounds: each order keeps the wider bound until the output keeps the new ones, and nothing steps."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits

import motioncue
from motioncue.errors import ConfigError
from motioncue.safety.limiter import Limiter

DT = 0.003
FADE_S = 0.3
EPS = np.finfo(np.float64).eps

optional = st.none() | st.floats(0.0, 1.0)


def scaled(value, rate, acceleration, jerk):
    """Return bounds, each from a ten-thousandth to ten times what the value allows a tick; None: unbounded."""
    bounds = [value]
    for size, order in ((rate, 1), (acceleration, 2), (jerk, 3)):
        bounds.append(None if size is None else value / DT**order * 10.0 ** (-4.0 + 5.0 * size))
    return tuple(bounds)


bounds_strategy = st.builds(scaled, st.floats(0.5, 20.0), optional, optional, optional)
input_strategy = st.one_of(
    st.builds(lambda size: np.full(150, size), st.floats(-30, 30)),
    st.builds(
        lambda size, hz: size * np.sin(2 * np.pi * hz * DT * np.arange(150)), st.floats(-30, 30), st.floats(0.2, 40)
    ),
    st.builds(
        lambda size, seed: size * np.random.default_rng(seed).normal(size=150), st.floats(0, 20), st.integers(0, 99)
    ),
    st.builds(lambda size: size * np.repeat([1.0, -1.0, 0.0], 50), st.floats(-30, 30)),
)


def wider(one, two):
    """Return the wider bound of each kind; none is wider than any."""
    return tuple(None if a is None or b is None else max(a, b) for a, b in zip(one, two, strict=True))


def assert_kept(path, allowed):
    """Assert that every difference of a path keeps the widest of the bounds in play at its ticks."""
    path = np.concatenate([np.zeros(3), path]).astype(np.longdouble)
    allowed = [allowed[0]] * 3 + allowed
    for order in range(4):
        differences = np.abs(np.diff(path, order))
        for i, size in enumerate(differences):
            spans = [bounds[order] for bounds in allowed[i : i + order + 1]]
            if None not in spans:
                assert size <= max(spans) * DT**order * (1 + 4 * EPS) + 2**order * EPS * 40.0, (order, i)


SWINGING = 7.0 * np.sin(2 * np.pi * 8.0 * DT * np.arange(150))


# A bound on jerk before or after, where other bounds make it idle; and a value far beyond the new one, accelerated to
# stay there, whose new bounds would stop it in a tick.
@example(changes=[((2.0, None, None, 6.6e6), SWINGING, True), ((1.0, 0.167, None, 1.85e7), np.zeros(150), False)])
@example(changes=[((1.0, 0.167, None, 1.85e7), SWINGING, True), ((2.0, None, None, 6.6e6), SWINGING, False)])
@example(changes=[((1.0, 5.0, None, 1.85e7), SWINGING, True), ((2.0, None, None, 3e5), -SWINGING, False)])
@example(
    changes=[
        ((25.0, 25.0 / DT, 60.0 / DT**2, None), np.array([-21.5, 2.9, -2.9]), False),
        ((3.0, 10.0 / DT, 24.0 / DT**2, None), np.zeros(150), False),
    ]
)
@pytest.mark.search
@settings(max_examples=150)
@given(changes=st.lists(st.tuples(bounds_strategy, input_strategy, st.booleans()), min_size=1, max_size=6))
def test_wider_bounds_hold_until_the_new_ones_do(changes):
    first = changes[0][0]
    limiter, now, path, allowed = Limiter(*first, dt=DT), first, [], []
    for bounds, values, early in changes:
        # While it is easing, the old bounds are still in play.
        now = wider(now, bounds)
        limiter.retune(*bounds, dt=DT, fade_s=FADE_S)
        for value in values[:20] if early else values:
            now = now if limiter.easing else bounds
            path.append(limiter.process(np.array([value]))[0][0])
            allowed.append(now)
    assert np.isfinite(path).all()
    assert_kept(np.array(path), allowed)


@example((1.0, None, None, None), (1.0, 0.167, None, None), SWINGING, 1.0)
@example((1.0, None, None, None), (0.5, None, None, None), np.ones(150), 0.0)
@pytest.mark.search
@settings(max_examples=60)
@given(old=bounds_strategy, new=bounds_strategy, values=input_strategy, rest=st.floats(-1.0, 1.0))
def test_easing_ends_in_bounded_time_within_the_new_bounds(old, new, values, rest):
    limiter = Limiter(*old, dt=DT)
    limiter.process(values)
    limiter.retune(*new, dt=DT, fade_s=FADE_S)
    # A fade, plus the time in which a limiter with either bounds reaches its input: see test_limiter.way_back.
    ticks = math.ceil(FADE_S / DT) + 2 * (way_back(old) + way_back(new)) + 20
    path, _ = limiter.process(np.full(ticks, rest * new[0]))
    assert not limiter.easing
    assert path[-1] == pytest.approx(rest * new[0], abs=1e-2 * new[0])
    after, _ = limiter.process(np.full(200, rest * new[0]))
    assert_kept_from(after, new)


def way_back(bounds):
    filled = []
    for order, bound in enumerate(bounds):
        step = math.inf if bound is None else bound * DT**order
        filled.append(step if not filled else min(step, 2 * filled[-1]))
    x, v, a, j = filled
    return math.ceil(2 * x / v + 2 * v / a + 2 * a / j + 6 * (2 * x / j) ** (1 / 3) + 6 * (2 * x / a) ** 0.5 + 12)


def assert_kept_from(path, bounds):
    for order, bound in enumerate(bounds):
        if bound is not None:
            worst = np.abs(np.diff(path.astype(np.longdouble), order)).max()
            assert worst <= bound * DT**order * (1 + 4 * EPS) + 2**order * EPS * 40.0, order


def test_same_bounds_keep_the_bits(rng):
    values = np.cumsum(rng.normal(size=2000)) * 0.1
    one, two = (Limiter(3.0, 20.0, 300.0, 2e4, dt=DT) for _ in range(2))
    out = []
    for i in range(0, 2000, 10):
        two.retune(3.0, 20.0, 300.0, 2e4, dt=DT, fade_s=FADE_S)
        out.append(two.process(values[i : i + 10])[0])
    assert_same_bits(np.concatenate(out), one.process(values)[0])


def test_bounds_that_are_kept_already_hold_at_once_and_the_input_still_passes_bit_for_bit():
    values = np.sin(2 * np.pi * 0.5 * DT * np.arange(2000))
    limiter = Limiter(10.0, 100.0, 1e4, 1e7, dt=DT)
    limiter.process(values[:900])
    limiter.retune(2.0, 10.0, 1e3, 1e6, dt=DT, fade_s=FADE_S)
    assert not limiter.easing
    path, acted = limiter.process(values[900:])
    assert_same_bits(path, values[900:])
    assert not acted.any()


def test_a_tightened_value_is_approached_along_the_fade():
    limiter = Limiter(10.0, dt=DT)
    limiter.process(np.full(100, 8.0))
    limiter.retune(2.0, dt=DT, fade_s=FADE_S)
    path, _ = limiter.process(np.full(300, 8.0))
    # From 8 to 2 (a thousandth within) as 1 - x^3 (10 - 15 x + 6 x^2): no tick moves by more than 15/8 of its pace.
    assert path[0] == pytest.approx(8.0, abs=1e-3)
    assert (np.diff(path) <= 1e-12).all()
    assert np.abs(np.diff(path)).max() <= 15 / 8 * 6.01 * DT / FADE_S
    assert np.abs(np.diff(path, 2)).max() <= 10 / math.sqrt(3) * 6.01 * (DT / FADE_S) ** 2 * 1.2
    assert path[100] == pytest.approx(2.0, rel=2e-3)
    assert (path[101:] <= 2.0).all()


@pytest.mark.parametrize(("old", "new", "rest"), [(10.0, 2.0, 8.0), (10.0, 2.0, -8.0), (2.0, 20.0, 8.0)])
def test_from_rest_what_is_sent_goes_to_the_new_bound_along_the_polynomial(old, new, rest):
    limiter = Limiter(old, dt=DT)
    before = limiter.process(np.full(300, rest))[0][-1]
    after = min(0.999 * new, abs(rest)) * math.copysign(1.0, rest)  # a thousandth of a bound is left as a margin
    limiter.retune(new, dt=DT, fade_s=FADE_S)
    path, _ = limiter.process(np.full(120, rest))
    x = np.minimum(DT / FADE_S * np.arange(1, 121), 1.0)
    np.testing.assert_allclose(path, after + (before - after) * (1 - x**3 * (10 - 15 * x + 6 * x**2)), atol=1e-9)


@pytest.mark.parametrize("more", [(), (100.0, 3e4), (100.0, None), (None, 3e4), (100.0, 3e4, 2e7)])
@pytest.mark.parametrize(("old", "new", "rest"), [(2.0, 20.0, 8.0), (2.0, 5.0, -8.0), (10.0, 2.0, 12.0)])
def test_a_bound_on_the_value_that_acts_is_moved_along_the_fade_whatever_else_is_bounded(more, old, new, rest):
    """The input stays far beyond the bound: what is sent goes from bound to bound, no faster than a fade."""
    limiter = Limiter(old, *more, dt=DT)
    path = limiter.process(np.full(2000, rest))[0][-3:]
    limiter.retune(new, *more, dt=DT, fade_s=FADE_S)
    path = np.append(path, limiter.process(np.full(2000, rest))[0])
    height, pace = abs(path[-1] - path[0]), DT / FADE_S
    assert abs(path[-1]) == pytest.approx(min(new, abs(rest)), rel=2e-3)
    assert np.abs(np.diff(path)).max() <= 15 / 8 * pace * height * 1.01
    assert np.abs(np.diff(path, 2)).max() <= 10 / math.sqrt(3) * pace**2 * height * 1.1


MOVING = {
    "a rate that acts becomes wider": ((50.0, 2.0), (50.0, 100.0)),
    "a rate that acts is given up": ((50.0, 2.0, 600.0), (50.0,)),
    "a value that acts becomes wider": ((5.0, 100.0, 3e4), (50.0, 100.0, 3e4)),
    "a value far below where it goes": ((50.0, 100.0, 3e4), (2.0, 100.0, 3e4)),
    "a value far below where it goes, and nothing else": ((50.0,), (2.0,)),
}


@pytest.mark.parametrize("slope", [5.0, -5.0])
@pytest.mark.parametrize("case", MOVING)
def test_bounds_that_change_while_the_input_moves_make_no_corner(case, slope):
    """What is sent goes on as fast as it was: its slope changes no faster than the polynomial that leads to the input.

    From a difference D of slope S that one's bend is at most 10/sqrt(3) D + 3.94 S.
    """
    old, new = MOVING[case]
    values = 8.0 + slope * DT * np.arange(-800, 101)
    limiter = Limiter(*old, dt=DT)
    path = limiter.process(values[:801])[0][-3:]
    before = path[-1], (path[-1] - path[-2]) / DT
    limiter.retune(*new, dt=DT, fade_s=FADE_S)
    path = np.append(path, limiter.process(values[801:])[0])
    after = min(new[0], 8.0), slope if new[0] > 8.0 else 0.0
    apart, faster = abs(before[0] - after[0]), abs(before[1] - after[1])
    most = (10 / math.sqrt(3) * apart / FADE_S + 3.94 * faster) / FADE_S
    assert np.abs(np.diff(path, 2)).max() <= 1.1 * most * DT**2


@pytest.mark.parametrize("input_", ["stairs", "a jump"])
@pytest.mark.parametrize("value", [20.0, 1e9], ids=["wider", "given up"])
def test_an_input_that_moves_in_steps_is_not_taken_for_a_fast_one(input_, value):
    """A quintic from slope 1 rises by s (1 - s)^3 (1 + 3 s), at most 0.19: of the way to the input, not of its step."""
    time = DT * np.arange(1500)
    stairs = 6.0 + 2.0 * np.sin(np.pi * time[np.arange(len(time)) // 5 * 5])
    for at in range(800, 811):
        values = stairs if input_ == "stairs" else np.where(np.arange(len(time)) < 805, 4.0, 5.0)
        limiter = Limiter(2.0, 200.0, 6e3, 6e5, dt=DT)
        sent = limiter.process(values[:at])[0][-1]
        limiter.retune(value, *([200.0, 6e3, 6e5] if value < 1e9 else []), dt=DT, fade_s=1.0)
        path = limiter.process(values[at:])[0]
        assert path.max() <= values.max() + 0.19 * (values[at] - sent)
        assert path.min() >= sent - 0.19 * (values[at] - sent)


def test_a_channel_whose_bounds_stay_takes_no_part_in_the_change_of_others():
    """All but yaw are narrowed: surge goes to its new bound along the whole fade, yaw passes bit for bit."""
    motion, cue = np.zeros(1, motioncue.MOTION_DTYPE), np.zeros(1, motioncue.CUE_DTYPE)
    step = motioncue.bind(motioncue.load_profile("beamng-dk", f"supervisor.fade_s={FADE_S}"), motion, cue)
    motion["surge"], motion["yaw"] = 8.0, 0.5
    for _ in range(300):
        step.step()
    narrower = {name: {"value_m_s2": 2.0} for name in ("surge", "sway", "heave")}
    narrower |= {name: {"value_deg": 50.0} for name in ("roll", "pitch")}
    narrower |= {f"{name}_rate": {"value_deg_s": 250.0} for name in ("roll", "pitch", "yaw")}
    narrower |= {f"{name}_displacement": {"value_m": 9.0} for name in ("surge", "sway", "heave")}
    step.retune({"limits": narrower})
    path = [8.0]
    for _ in range(120):
        step.step()
        path.append(float(cue["surge"][0]))
        assert cue["yaw"][0] == 0.5
    assert path[-1] == pytest.approx(2.0, rel=2e-3)
    assert np.abs(np.diff(path)).max() <= 15 / 8 * 6.01 * DT * 1.001 / FADE_S


def test_bounds_that_change_within_a_change_keep_value_slope_and_bend():
    # A polynomial of half a unit a tick of 0.01 has differences of at most 15/8, 10/sqrt(3) and 60 of its paces.
    limiter, pace = Limiter(10.0, dt=DT), DT / FADE_S
    limiter.process(np.full(100, 8.0))
    path = [8.0] * 4
    for bound in (2.0, 6.0, 1.0, 9.0):
        limiter.retune(bound, dt=DT, fade_s=FADE_S)
        path += limiter.process(np.full(37, 8.0))[0].tolist()
    assert np.abs(np.diff(path)).max() <= 2 * 15 / 8 * 8.0 * pace
    assert np.abs(np.diff(path, 2)).max() <= 2 * 10 / math.sqrt(3) * 8.0 * pace**2
    assert np.abs(np.diff(path, 3)).max() <= 4 * 60 * 8.0 * pace**3


def test_a_loosened_value_lets_go_along_the_fade():
    limiter = Limiter(2.0, dt=DT)
    limiter.process(np.full(100, 8.0))
    limiter.retune(20.0, dt=DT, fade_s=FADE_S)
    path, _ = limiter.process(np.full(300, 8.0))
    assert path[0] == pytest.approx(2.0, abs=5e-3)
    assert np.abs(np.diff(path)).max() <= 15 / 8 * 6.01 * DT / FADE_S
    assert_same_bits(path[101:], np.full(199, 8.0))


def test_a_way_out_is_braked_within_the_bounds_of_before():
    # At 8 and on its way to 10 at 20/s, 300/s^2 brake within 0.67; 30/s^2 would not within 6.
    limiter = Limiter(10.0, 20.0, 300.0, dt=DT)
    values = np.minimum(20.0 * DT * np.arange(200), 9.5)
    path, _ = limiter.process(values[:130])
    assert path[-1] - path[-2] == pytest.approx(20.0 * DT, rel=0.03)
    limiter.retune(10.0, 20.0, 30.0, dt=DT, fade_s=FADE_S)
    after, _ = limiter.process(np.full(2000, 9.5))
    assert np.abs(after).max() <= 10.0
    assert np.abs(np.diff(np.concatenate([path[-2:], after]), 2)).max() <= 300.0 * DT**2 * (1 + 1e-9)
    assert np.abs(np.diff(after[-500:], 2)).max() <= 30.0 * DT**2
    assert after[-1] == pytest.approx(9.5, rel=1e-3)


def test_changes_at_every_tick_still_come_to_rest(rng):
    # A vanishing difference that is restarted from its value and slope still vanishes: its poles are stable.
    limiter = Limiter(10.0, 100.0, 2e3, 1e6, dt=DT)
    limiter.process(np.full(500, 9.0))
    path = []
    for _ in range(1500):
        limiter.retune(1.0 + 0.1 * rng.random(), 100.0, 2e3, 1e6, dt=DT, fade_s=FADE_S)
        path.append(limiter.process(np.array([9.0]))[0][0])
    assert np.abs(np.diff(path)).max() <= 100.0 * DT
    assert 0.9 <= path[-1] <= 1.2
    assert path[300] < 5.0


def test_bounds_that_cannot_be_are_refused_and_change_nothing():
    limiter, other = (Limiter(1.0, 2.0, dt=DT) for _ in range(2))
    with pytest.raises(ConfigError, match="rate: found -1"):
        limiter.retune(1.0, -1.0, dt=DT, fade_s=FADE_S)
    values = np.linspace(0, 3, 50)
    assert_same_bits(limiter.process(values)[0], other.process(values)[0])
