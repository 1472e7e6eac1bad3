"""The limiter: for any input, value, rate, acceleration and jerk of the output stay within their bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from trouble_helpers import MOVERS

import motioncue
from motioncue.errors import ConfigError
from motioncue.safety.limiter import CueLimits, Limiter

EPS = np.finfo(np.float64).eps
DT = 1 / 333.33
PLATFORM = (0.25, 1.0, 8.0, 200.0)  # m, m/s, m/s^2, m/s^3: a small motion platform


def per_tick(bounds, dt):
    """Return the bounds on value and first, second, third difference; None where there is none."""
    return [bound if bound is None else bound * dt**order for order, bound in enumerate(bounds)]


def effective(bounds, dt):
    """Return the bounds with missing ones filled in: a difference of values within +-b is within +-2 b."""
    filled = []
    for bound in per_tick(bounds, dt):
        filled.append(bound if not filled else min(bound or math.inf, 2 * filled[-1]))
    return filled


def broken(sent, bounds, dt):
    """Return (order, tick, ratio) of the first difference beyond its bound, or None: the slow, independent checker.

    Starts from rest at 0.  Differences are taken in extended precision, so only the rounding of what was sent counts:
    each value is within half a unit in the last place of what it would have been, that is EPS/2 of the value's bound;
    an n-th difference adds up 2^n of them, and the kernel's own rate and acceleration are rounded as much again.
    """
    path = np.concatenate([np.zeros(3), sent]).astype(np.longdouble)
    for order, bound in enumerate(per_tick(bounds, dt)):
        if bound is None:
            continue
        found = np.abs(np.diff(path, order))
        if not found.max() <= bound * (1 + 4 * EPS) + 2**order * EPS * bounds[0]:
            return order, int(found.argmax()), float(found.max() / bound)
    return None


def stoppable(sent, bounds, dt):
    """Say whether v^2 <= 2 a distance at every tick, towards the value's bound ahead.

    In discrete time a rate of no more than the acceleration of a tick is gone in the next tick, over no distance.
    """
    value, _, acceleration, _ = per_tick(bounds, dt)
    path = np.concatenate([np.zeros(1), sent])
    v, x = np.diff(path), path[1:]
    ahead = np.where(v > 0, value - x, value + x)
    if acceleration is None:
        return True
    stops = v * v <= 2 * acceleration * ahead + 8 * EPS * value * value
    return bool((stops | ((np.abs(v) <= acceleration) & (ahead >= 0))).all())


def way_back(bounds, dt):
    """Return in how many ticks the limiter must have settled on a constant input.

    Across the whole range at the largest rate, from it and to it at the largest acceleration, in and out of that at the
    largest jerk, plus what it takes where the range is too short to get there.
    """
    x, v, a, j = effective(bounds, dt)
    return math.ceil(2 * x / v + 2 * v / a + 2 * a / j + 6 * (2 * x / j) ** (1 / 3) + 6 * (2 * x / a) ** 0.5) + 10


def limited(values, bounds, dt=DT):
    return Limiter(*bounds, dt=dt).process(np.ascontiguousarray(values, dtype=np.float64))


# ---- inputs ----------------------------------------------------------------------------------------------------------

magnitudes = st.floats(-3, 0.5).map(lambda power: 10.0**power)


@st.composite
def bounds_and_dt(draw):
    """Draw bounds from very tight to very loose, each derivative's relative to the one before."""
    dt = 1 / draw(st.floats(100, 2000))
    bounds = [10.0 ** draw(st.floats(-3, 3))]
    within = bounds[0]
    for order in (1, 2, 3):
        within *= draw(magnitudes)
        bounds.append(None if draw(st.integers(0, 4)) == 0 else within / dt**order)
        within = min(within, 1e3 * bounds[0])
    return tuple(bounds), dt


HUGE = [1e300, -1e300, 1.7e308, -1.7e308, 5e-324, -2.2e-310, 1e-200, 0.0, -0.0]
shares = st.one_of(st.floats(-3, 3), st.sampled_from([1.0, -1.0, 0.999, -0.999, 0.998, 1e9, -1e9, 0.0]))
pieces = st.one_of(
    st.tuples(st.just("hold"), shares, st.integers(1, 200)),
    st.tuples(st.just("burst"), shares, st.integers(1, 60)),
    st.tuples(st.just("square"), shares, st.integers(1, 60)),
    st.tuples(st.just("ramp"), shares, st.integers(1, 300)),
    st.tuples(st.just("walk"), shares, st.integers(1, 300)),
    st.tuples(st.just("noise"), shares, st.integers(1, 200)),
    st.tuples(st.just("sine"), shares, st.integers(1, 400)),
    st.tuples(st.just("huge"), st.sampled_from(HUGE), st.integers(1, 5)),
)


def piece_of(kind, size, n, last, rng):
    """Return `n` values of one piece that begins after `last`."""
    step = np.arange(1, n + 1)
    if kind in ("hold", "huge"):
        return np.full(n, size)
    if kind == "burst":
        return rng.choice([0.0, size, -size], n)
    if kind == "square":
        return size * (-1.0) ** (step // max(1, n // 4))
    if kind == "ramp":
        return last + (size - last) * step / n
    if kind == "walk":
        return last + np.cumsum(rng.normal(size=n)) * size * 0.05
    if kind == "noise":
        return last + rng.normal(size=n) * size * 0.1
    return size * np.sin(step * rng.uniform(0.005, 1.0))


def signal(plan, scale, seed):
    """Return the input that a list of pieces describes."""
    rng = np.random.default_rng(seed)
    out, last = [], 0.0
    for kind, size, n in plan:
        out.append(piece_of(kind, size if kind == "huge" else size * scale, n, last, rng))
        last = 0.0 if abs(out[-1][-1]) > 1e6 * scale else float(out[-1][-1])
    return np.concatenate(out)


plans = st.tuples(st.lists(pieces, min_size=1, max_size=12), st.integers(0, 2**32 - 1))


# ---- the bounds hold -------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=400)
@given(limits=bounds_and_dt(), plan=plans)
def test_every_bound_holds_at_every_tick_for_any_input(limits, plan):
    bounds, dt = limits
    values = signal(plan[0], bounds[0], plan[1])
    sent, acted = limited(values, bounds, dt)
    assert np.isfinite(sent).all()
    assert broken(sent, bounds, dt) is None
    assert stoppable(sent, bounds, dt)
    # Where it reports no action, the bits are the input's; where it acted, the output differs.
    assert_same_bits(sent[~acted], values[~acted])
    assert np.isfinite(values[acted]).all()


@settings(deadline=None, max_examples=150)
@given(limits=bounds_and_dt(), data=st.data())
def test_every_bound_holds_for_inputs_of_any_floats(limits, data):
    bounds, dt = limits
    values = data.draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=80))
    sent, acted = limited(np.repeat(values, 3), bounds, dt)
    assert np.isfinite(sent).all()
    assert broken(sent, bounds, dt) is None
    assert stoppable(sent, bounds, dt)
    assert_same_bits(sent[~acted], np.repeat(values, 3)[~acted])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("push", ["full", "bang", "brink"])
def test_an_adversary_who_sees_what_was_sent_cannot_break_a_bound(push, sign):
    # From the limiter's state, the input demands the largest jerk that may still pass.
    rng = np.random.default_rng(7)
    one = np.zeros(1)
    for _ in range(40):
        x, v, a, j = (10.0 ** rng.uniform(-2, 2), *10.0 ** rng.uniform(-2.5, 0.3, 3))
        bounds = (x, v * x, a * v * x, j * a * v * x)
        jerk = effective(bounds, 1.0)[3]
        limiter = Limiter(*bounds, dt=1.0)
        sent = [0.0, 0.0, 0.0]
        direction = sign
        for tick in range(400):
            if rng.random() < 0.02:
                direction = -direction
            wanted = {
                "full": direction * jerk * (1 - 1e-12),
                "bang": jerk * rng.choice([-1.0, 0.0, 1.0]),
                "brink": direction * jerk * 0.9 * (1 if tick % 7 else -1),
            }[push]
            rate = sent[-1] - sent[-2]
            one[0] = sent[-1] + rate + (rate - (sent[-2] - sent[-3])) + wanted
            if rng.random() < 0.01:
                one[0] = -math.copysign(1e6 * x, sent[-1])
            sent.append(float(limiter.process(one)[0][0]))
        assert broken(np.array(sent), bounds, 1.0) is None
        assert stoppable(np.array(sent), bounds, 1.0)


@pytest.mark.parametrize("missing", [(), (1,), (2,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3)])
def test_bounds_may_be_left_out(missing):
    rng = np.random.default_rng(3)
    bounds = tuple(None if order in missing else bound for order, bound in enumerate(PLATFORM))
    values = np.repeat(rng.normal(size=2000) * 0.3, 7)
    sent, acted = limited(values, bounds)
    assert acted.any()
    assert broken(sent, bounds, DT) is None


# ---- it follows ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(limits=bounds_and_dt(), share=st.floats(0.01, 0.6), waves=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_an_input_that_keeps_the_bounds_with_room_to_brake_passes_bit_for_bit(limits, share, waves, seed):
    bounds, dt = limits
    x, v, a, j = effective(bounds, dt)
    rng = np.random.default_rng(seed)
    # Sines whose derivatives add up to `share` of the bounds, faded in over as many ticks as that takes.
    omega = rng.uniform(0.3, 1.0, waves) * min(v / x, (a / x) ** 0.5, (j / x) ** (1 / 3), 0.3) / 2.0
    fade = math.ceil(12.0 / omega.max())
    tick = np.arange(min(4 * fade, 20_000))
    rise = np.clip(tick / fade, 0, 1)
    rise = rise**4 * (35 - 84 * rise + 70 * rise**2 - 20 * rise**3)
    values = share * x / waves * rise * np.sin(np.outer(tick, omega) + rng.uniform(0, 6, waves)).sum(axis=1)
    sent, acted = limited(values, bounds, dt)
    assert_same_bits(sent, values)
    assert not acted.any()


@settings(deadline=None, max_examples=150)
@given(limits=bounds_and_dt(), first=st.floats(-0.95, 0.95), second=st.floats(-0.95, 0.95))
def test_a_step_is_reached_in_finite_time_without_overshoot(limits, first, second):
    bounds, dt = limits
    ticks = way_back(bounds, dt)
    if ticks > 20_000:
        ticks, bounds = 0, (bounds[0], None, None, None)
        ticks = way_back(bounds, dt)
    limiter = Limiter(*bounds, dt=dt)
    before = 0.0
    for target in (first * bounds[0], second * bounds[0]):
        sent, acted = limiter.process(np.full(ticks, target))
        beyond = (sent - target) * (1.0 if target > before else -1.0)
        # A tick cannot push by less than it can: two pushes of the whole jerk are the grain of the path.
        assert beyond.max() <= 2 * effective(bounds, dt)[3] + EPS * bounds[0]
        assert sent[-1] == target
        assert not acted[-1]
        before = target


def test_a_step_on_a_platforms_bounds_does_not_overshoot_at_all():
    for size in (0.002, 0.05, 0.2, 0.24):
        values = np.concatenate([np.zeros(30), np.full(800, size)])
        sent, acted = limited(values, PLATFORM)
        assert sent.max() <= size
        assert np.diff(sent).min() >= 0.0
        assert (sent[np.flatnonzero(acted).max() + 1 :] == size).all()


@settings(deadline=None, max_examples=150)
@given(limits=bounds_and_dt(), plan=plans, tail=st.floats(-0.9, 0.9))
def test_after_any_input_it_comes_back_to_the_bits_of_a_constant_in_bounded_time(limits, plan, tail):
    bounds, dt = limits
    ticks = way_back(bounds, dt)
    if ticks > 30_000:
        bounds = (bounds[0], *(None if bound is None else 30 * bound for bound in bounds[1:]))
        ticks = way_back(bounds, dt)
    limiter = Limiter(*bounds, dt=dt)
    limiter.process(signal(plan[0], bounds[0], plan[1]))
    sent, acted = limiter.process(np.full(ticks + 20, tail * bounds[0]))
    assert not acted[ticks:].any()
    assert (sent[ticks:] == tail * bounds[0]).all()


def test_after_a_disturbance_it_comes_back_to_the_bits_of_a_moving_input():
    tick = np.arange(4000)
    clean = 0.08 * np.sin(2 * np.pi * 0.4 * tick * DT) * np.clip(tick / 600, 0, 1) ** 3
    values = clean.copy()
    values[1500:1503] = 0.24
    sent, acted = limited(values, PLATFORM)
    assert acted[1500:1503].all()
    last = np.flatnonzero(acted).max()
    assert last < 1500 + way_back(PLATFORM, DT)
    assert_same_bits(sent[last + 1 :], clean[last + 1 :])


def test_braking_before_the_bound_makes_no_corner():
    # A ramp at half the largest rate into the bound: the rate must fall within acceleration and jerk.
    values = np.minimum(np.arange(3000) * 0.5 * DT, 5.0)
    sent, _ = limited(values, PLATFORM)
    assert broken(sent, PLATFORM, DT) is None
    assert 0.99 * PLATFORM[0] <= sent[-1] <= PLATFORM[0]
    assert np.diff(sent).min() >= -1e-12


@pytest.mark.parametrize("value", [1.0, 50.0, 78.4])
def test_a_bound_on_the_value_alone_touches_nothing_inside_it(value):
    # A curb is a step of acceleration: a bound that says nothing about its derivatives must let it through.
    rng = np.random.default_rng(11)
    values = np.repeat(rng.choice([-0.99, 0.99, 0.4, 0.0], 300), 5) * value
    sent, acted = limited(values, (value, None, None, None))
    assert not acted.any()
    assert_same_bits(sent, values)


def test_a_bound_on_the_value_alone_is_reached_from_outside():
    values = np.repeat([0.0, 400.0, -1e300, 10.0], 10)
    sent, acted = limited(values, (50.0, None, None, None))
    assert acted[10:30].all()
    assert not acted[:10].any()
    assert not acted[31:].any()
    assert (sent[31:] == 10.0).all()
    assert sent[10:20] == pytest.approx(50.0, rel=2e-3)
    assert sent[20:30] == pytest.approx(-50.0, rel=2e-3)


def test_chunks_do_not_change_the_output():
    rng = np.random.default_rng(5)
    values = np.repeat(rng.normal(size=300) * 0.3, 5)
    whole, acted = limited(values, PLATFORM)
    for size in (1, 2, 63, 64, 65):
        limiter = Limiter(*PLATFORM, dt=DT)
        parts = [limiter.process(values[start : start + size]) for start in range(0, len(values), size)]
        assert_same_bits(np.concatenate([sent for sent, _ in parts]), whole)
        assert (np.concatenate([part for _, part in parts]) == acted).all()


# ---- over the channels of a cue --------------------------------------------------------------------------------------


def test_only_bounded_channels_are_touched_and_each_by_its_own_bounds():
    rng = np.random.default_rng(9)
    cue = np.zeros(3000, motioncue.CUE_DTYPE)
    for name in motioncue.CUE_DTYPE.names[:-1]:
        cue[name] = np.repeat(rng.normal(size=300), 10)
    before = cue.copy()
    limits = CueLimits()
    bounds = {"roll": (0.2, 0.6, 4.0, 100.0), "surge": (0.7, None, None, None), "yaw_rate": (0.5, 3.0, None, None)}
    for name, bound in bounds.items():
        limits.add(name, *bound, dt=DT)
    limits.process(cue)
    shares = limits.shares()
    assert list(shares) == list(bounds)
    for name in motioncue.CUE_DTYPE.names:
        if name in bounds:
            sent, acted = limited(before[name], bounds[name])
            assert_same_bits(cue[name], sent)
            assert shares[name] == acted.mean()
            assert 0.0 < shares[name] <= 1.0
        else:
            assert_same_bits(cue[name], before[name])


def test_shares_are_zero_before_the_first_tick_and_when_nothing_is_limited():
    limits = CueLimits()
    limits.add("surge", 50.0, dt=DT)
    assert limits.shares() == {"surge": 0.0}
    limits.process(np.zeros(100, motioncue.CUE_DTYPE))
    assert limits.shares() == {"surge": 0.0}


def test_every_channel_that_moves_the_platform_can_be_bounded_and_only_once():
    limits = CueLimits()
    for name in MOVERS:
        limits.add(name, 1.0, dt=DT)
    for name in (*MOVERS, "speed", "engine_speed", "time", "sruge"):
        with pytest.raises(ConfigError, match=name):
            limits.add(name, 1.0, dt=DT)


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_that_is_not_positive_and_finite_is_refused_by_name(place, value):
    numbers = [1.0, 1.0, 1.0, 1.0, DT]
    numbers[place] = value
    name = ("value", "rate", "acceleration", "jerk", "dt")[place]
    with pytest.raises(ConfigError, match=f"^{name}: "):
        Limiter(*numbers[:4], dt=numbers[4])


@pytest.mark.parametrize("a", [-1.0, -0.6, -0.1, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("v", [0.0, 0.01, 0.05, 0.3, 2.0])
def test_the_way_to_a_stop_is_that_of_the_braking_itself(probe, v, a):
    # In steps: the jerk that brings the acceleration to the one from which both vanish together, -sqrt(2 J v) or -A.
    limit, jerk, dt = 1.0, 4.0, 1e-4
    x, speed, push, highest = 0.3, v, a, 0.3
    for _ in range(60_000):
        if speed <= 0.0 and push <= 0.0:
            break
        wanted = -min(limit, math.sqrt(2.0 * jerk * speed)) if speed > 0.0 else -limit
        change = min(max(wanted - push, -jerk * dt), jerk * dt)
        push += change
        speed += push * dt
        x += speed * dt
        highest = max(highest, x)
    assert probe.stops_above(0.3, v, a, limit, jerk) == pytest.approx(highest, abs=1e-3)


@pytest.mark.parametrize("before", [5.0, 0.02])  # limited, and passing so long that all channels go together
def test_after_a_reset_every_channel_is_at_rest_at_neutral(before):
    profile = motioncue.load_profile("ccd-dk", "limits.surge={ value_m_s2 = 0.5, rate_m_s3 = 5.0 }")
    stepper, anew = motioncue.bind(profile), motioncue.bind(profile)
    stepper.motion["surge"] = stepper.motion["pitch_rate"] = before
    for _ in range(100):
        stepper.step()
    stepper.reset()
    stepper.motion[:] = anew.motion[:] = 0
    for size in [0.0] * 20 + [3.0] * 200:
        for one in (stepper, anew):
            one.motion["surge"] = one.motion["pitch"] = size
            assert one.step()
        assert stepper.cue.tobytes() == anew.cue.tobytes()
        assert size or not any(stepper.cue[name][0] for name in MOVERS)


def test_rigs_side_by_side_lean_as_each_does_alone():
    profile = motioncue.load_profile("ccd-dk", "limits.roll={ value_deg = 170 }")  # no bound acts, so all go in lanes
    rigs, one = motioncue.Rigs(profile, 8), motioncue.bind(profile)
    motion, cue = np.zeros(8, motioncue.MOTION_DTYPE), np.zeros(8, motioncue.CUE_DTYPE)
    most = 0.0
    for i in range(700):
        motion["roll"] = one.motion["roll"] = 1.0 - math.cos(0.01 * i)  # to 115 degrees: a lean of 65
        motion["yaw"] = one.motion["yaw"] = 0.5 * math.sin(0.01 * i)
        rigs.step(motion, cue)
        assert one.step()
        assert all(row.tobytes() == one.cue.tobytes() for row in cue)
        most = max(most, *np.abs(cue["roll"]))
    assert math.radians(65) < most <= 0.5 * math.pi
