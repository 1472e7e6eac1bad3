"""The fade between neutral and the whole cue, as the emitter's ticks show it on a clock that takes no time."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from motioncue.core.channels import CUE_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.core.interfaces import Direct
from motioncue.engine.emitter import Emitter
from motioncue.engine.tick import Settings
from motioncue.sources.city_car_driving import packets as ccd

START = 1_000_000_000  # [ns]
PERIOD = 3_000_030  # [ns], 333.33 Hz
FOREVER = 1e6  # [s]

# Second difference of the weight, in units of pace^2 (pace: of an undisturbed fade, per tick).
#
# w(x) = x^3 (10 - 15 x + 6 x^2) has |w'| <= 15/8 and |w''| <= 10/sqrt(3): an undisturbed fade has 10/sqrt(3) = 5.77.
UNDISTURBED = 10 / np.sqrt(3)
# Where a fade turns round it goes on along a quintic with the weight, rate and bend of that moment, which is at rest at
# the end within 1.2 fades: from half-way, that bends by 8.1 pace^2.  Promised is half as much again as undisturbed,
# whatever happens and for ever.  At an end x goes from rest to the pace at once, or is cut; there w' <= 30 x^2 with
# x <= pace, which adds at most 30 pace^3.  A fade that turned at once would have 15/8 * 2 pace: for one second at
# 333 Hz, 1250 pace^2.


def largest_turn(pace):
    return 1.5 * UNDISTURBED + 30 * pace


def curve(x):
    """Return the weight at position `x`, the other way round: 1 - w(1 - x), by Horner."""
    y = 1.0 - np.clip(x, 0.0, 1.0)
    return 1.0 - y**3 * (10.0 - 15.0 * y + 6.0 * y**2)


def rig(*, fade_s=1.0, hold_s=FOREVER, period_ns=PERIOD, ticks=20_000):
    """Return a session that has begun and an emitter that reads it."""
    clock = FakeClock(START)
    session = ccd.intake(ccd.Options())
    session.begin(START)
    session.feed(ccd.INIT.encode({"forward": (0, 0, 1), "up": (0, 1, 0)}), START)
    emitter = Emitter(
        session, Settings(Direct(), period_ns=period_ns, hold_s=hold_s, fade_s=fade_s), clock, trace=ticks
    )
    return session, emitter


FRAME = ccd.FRAME.encode(
    {
        "frame_time": 1 / 60,
        "orientation": (0.0, 0.0, 0.0, 1.0),
        "velocity": (1.0, 2.0, 20.0),
        "acceleration": (0.5, -0.25, 3.0),
        "angular_velocity": (0.1, 0.2, 0.3),
    }
)


def weights(runs, *, fade_s=1.0, period_ns=PERIOD):
    """Return the weights of a fade with these directions: `runs` of (ticks, up)."""
    session, emitter = rig(fade_s=fade_s, period_ns=period_ns, ticks=sum(n for n, _ in runs))
    session.feed(FRAME, START)
    for n, up in runs:
        (emitter.engage if up else emitter.park)()
        emitter.run(n)
    return emitter.trace["weight"].copy()


def from_neutral(found):
    """Return the weights with the neutral ones before."""
    return np.concatenate([np.zeros(3), found])


# ---- from end to end -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fade_s", [0.1, 0.37, 1.0, 5.0])
def test_a_fade_from_an_end_is_the_smooth_curve(fade_s):
    pace = PERIOD * 1e-9 / fade_s
    n = int(1.1 / pace)
    found = weights([(n, True), (n, False)], fade_s=fade_s)
    position = pace * np.arange(1, n + 1)
    assert found[:n] == pytest.approx(curve(position), abs=1e-12)
    assert found[n:] == pytest.approx(curve(1.0 - position), abs=1e-12)


@pytest.mark.parametrize("fade_s", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("period_ns", [2_500_000, PERIOD, 10_000_000])
def test_a_fade_takes_its_time_to_within_a_tick(fade_s, period_ns):
    n = int(2 * fade_s * 1e9 / period_ns)
    found = weights([(n, True), (n, False)], fade_s=fade_s, period_ns=period_ns)
    up, down = np.flatnonzero(found[:n] == 1.0)[0] + 1, np.flatnonzero(found[n:] == 0.0)[0] + 1
    for ticks in (up, down):
        assert abs(ticks * period_ns * 1e-9 - fade_s) <= period_ns * 1e-9 * (1 + 1e-9)
    assert np.all(found[:n][up:] == 1.0)
    assert np.all(found[n:][down:] == 0.0)


@pytest.mark.parametrize("fade_s", [0.3, 1.0, 4.0])
def test_first_and_second_differences_vanish_at_both_ends(fade_s):
    pace = PERIOD * 1e-9 / fade_s
    n = int(1.0 / pace) + 5
    found = from_neutral(weights([(n, True), (n, False)], fade_s=fade_s))
    first, second = np.diff(found), np.diff(found, 2)
    # Beside an end w is 10 x^3: 10 pace^3 after a tick, 80 after two.
    changes = np.flatnonzero(np.diff((found > 0) & (found < 1)))
    assert len(changes) == 4
    for i in changes:
        assert np.abs(first[i]) <= 80 * pace**3
        assert np.abs(second[i - 1 : i + 1]).max() <= 80 * pace**3
    assert np.abs(first).max() == pytest.approx(15 / 8 * pace, rel=0.01)


@pytest.mark.parametrize("fade_s", [0.3, 1.0, 4.0])
def test_an_undisturbed_fade_bends_as_the_curve_does(fade_s):
    pace = PERIOD * 1e-9 / fade_s
    n = int(1.0 / pace) + 5
    found = np.abs(np.diff(from_neutral(weights([(n, True)], fade_s=fade_s)), 2)).max()
    assert found == pytest.approx(UNDISTURBED * pace**2, rel=0.02)


def test_a_whole_fade_rises_and_falls_without_turning_back():
    found = from_neutral(weights([(400, True), (400, False)]))
    assert np.all(np.diff(found[:403]) >= 0)
    assert np.all(np.diff(found[403:]) <= 0)


# ---- reversed half-way -----------------------------------------------------------------------------------------------


@pytest.mark.grid
@pytest.mark.parametrize("fade_s", [0.2, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
def test_a_fade_that_turns_round_stays_smooth(fade_s, share):
    pace = PERIOD * 1e-9 / fade_s
    whole = int(1.0 / pace) + 5
    runs = [(whole, True), (max(1, int(share * whole)), False), (2 * whole, True)]
    second = np.diff(from_neutral(weights(runs, fade_s=fade_s)), 2)
    assert np.abs(second).max() <= largest_turn(pace) * pace**2


@pytest.mark.parametrize("down", [3, 20, 83, 167, 250, 310, 330])
def test_from_wherever_it_turns_it_arrives_within_a_fifth_more_than_a_fade(down):
    pace = PERIOD * 1e-9
    found = weights([(350, True), (down, False), (round(1.2 / pace) + 2, True)])
    assert found[-1] == 1.0


def test_half_way_it_is_the_quintic_from_there_with_that_rate():
    """At half-way w = 1/2, w' = 15/8, w'' = 0, in shares of the fade; after 1.19 fades all but w are 0, and w is 1."""
    pace = PERIOD * 1e-9
    half = round(0.5 / pace)
    found = weights([(350, True), (half, False), (500, True)])[349 + half :]
    time = np.arange(len(found)) * pace
    system = np.array([[s**n for n in range(6)] for s in [1.19]] + [[n * 1.19 ** (n - 1) if n else 0 for n in range(6)]]
                      + [[n * (n - 1) * 1.19 ** (n - 2) if n > 1 else 0 for n in range(6)]])  # fmt: skip
    begun = np.array([0.5, -15 / 8, 0.0])
    rest = np.linalg.solve(system[:, 3:], np.array([1.0, 0.0, 0.0]) - system[:, :3] @ begun)
    expected = np.polynomial.polynomial.polyval(np.minimum(time, 1.19), [*begun, *rest])
    np.testing.assert_allclose(found, expected, atol=3 * pace)


def test_a_turn_bends_without_a_jump():
    # The third derivative of an undisturbed fade is 60 at most.
    pace = PERIOD * 1e-9
    third = np.abs(np.diff(weights([(350, True), (167, False), (500, True)]), 3)).max()
    assert third <= 1.5 * 60 * pace**3


patterns = st.lists(st.tuples(st.integers(1, 250), st.booleans()), min_size=1, max_size=25)


@settings(max_examples=150)
@given(runs=patterns, fade_s=st.sampled_from([0.123, 0.2, 0.5, 1.0, 1.7]))
@example(runs=[(192, True), (3, False), (190, True), (240, False)], fade_s=1.0)  # an end is near
@example(runs=[(413, True), (5, False), (18, True), (479, False)], fade_s=1.7)  # no more haste than that needs
@example(runs=[(439, True), (4, False), (240, True)], fade_s=1.7)  # it would go beyond the end long before it is there
@example(runs=[(464, True), (16, False), (108, True), (110, False)], fade_s=1.7)  # it would by 7e-5
def test_any_pattern_of_interruptions_is_smooth_and_stays_between_neutral_and_whole(runs, fade_s):
    pace = PERIOD * 1e-9 / fade_s
    found = from_neutral(weights(runs, fade_s=fade_s))
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert np.abs(np.diff(found)).max() <= 15 / 8 * pace * (1 + 1e-9)
    assert np.abs(np.diff(found, 2)).max() <= largest_turn(pace) * pace**2


@pytest.mark.parametrize("every", [1, 2, 5, 17, 40, 111])
def test_interruptions_in_any_step_do_not_build_up(every):
    pace = PERIOD * 1e-9
    runs = [(167, True)] + [(every, bool(i % 2)) for i in range(4000 // every)]
    second = np.diff(from_neutral(weights(runs)), 2)
    assert np.abs(second).max() <= largest_turn(pace) * pace**2


@pytest.mark.grid
@pytest.mark.parametrize("short", np.geomspace(1e-9, 1e-4, 21))
def test_weights_beside_the_ends_are_never_beyond_them(short):
    # The last tick but one is this share of a fade away from its end.
    n = 300
    found = weights([(n + 2, True), (n + 2, False)], fade_s=n * PERIOD * 1e-9 * (1 + short))
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert np.all(np.diff(found[: n + 2]) >= 0.0)
    assert np.all(np.diff(found[n + 2 :]) <= 0.0)


@pytest.mark.parametrize("fade_s", [0.001, 0.003, 0.01, 0.05])
def test_a_fade_of_a_few_ticks_still_goes_from_end_to_end(fade_s):
    n = 60
    found = weights([(n, True), (n, False), (3, True), (n, False)], fade_s=fade_s)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert (found[n - 1], found[2 * n - 1], found[-1]) == (1.0, 0.0, 0.0)


# ---- the faded channels ----------------------------------------------------------------------------------------------


def test_every_channel_is_the_motions_times_the_weight():
    session, emitter = rig(ticks=1000)
    session.feed(FRAME, START)
    emitter.run(400)
    emitter.park()
    emitter.run(400)
    trace = emitter.trace
    for name in CUE_DTYPE.names:
        if name in trace["motion"].dtype.names and name not in ("engine_speed", "time"):
            right = trace["weight"] * trace["motion"][name]
            np.testing.assert_array_equal(trace["cue"][name], right)
    assert np.isnan(trace["cue"]["engine_speed"][trace["weight"] > 0]).all()  # absent stays absent
    assert trace["cue"]["surge"].max() == trace["motion"]["surge"].max() == 3.0


def test_before_the_first_frame_everything_is_neutral():
    _, emitter = rig()
    emitter.run(50)
    assert not emitter.trace["weight"].any()
    for name in ("surge", "roll", "yaw_rate", "heave_displacement"):
        assert not emitter.trace["cue"][name].any()


@pytest.mark.parametrize("hold_s", [0.02, 0.1, 0.5])
def test_a_motion_is_held_for_its_time_and_then_fades(hold_s):
    session, emitter = rig(hold_s=hold_s, fade_s=0.5)
    # Frames every 10 ms for two seconds, the last one at `last`.
    last = START
    for i in range(200):
        last = START + 10_000_000 * i
        emitter.run(until_ns=last)
        session.feed(FRAME, last)
    emitter.run(until_ns=last + 2_000_000_000)
    trace = emitter.trace
    falling = trace["deadline"] > last + round(hold_s * 1e9)
    assert np.all(trace["weight"][~falling][-20:] == 1.0)
    n = falling.sum()
    pace = PERIOD * 1e-9 / 0.5
    assert trace["weight"][falling] == pytest.approx(curve(1.0 - pace * np.arange(1, n + 1)), abs=1e-12)


def test_the_platform_is_fed_at_every_tick_while_it_fades():
    session, emitter = rig(hold_s=0.1, fade_s=0.5)
    session.feed(FRAME, START)
    emitter.run(1000)
    trace = emitter.trace
    assert trace["index"].tolist() == list(range(1000))
    assert np.all(np.diff(trace["deadline"]) == PERIOD)
    assert trace["weight"].max() > 0.0
    assert trace["weight"][-1] == 0.0


gaps = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 1_500_000_000)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(bursts=gaps, hold_s=st.sampled_from([0.02, 0.1]), fade_s=st.sampled_from([0.2, 1.0]))
def test_bursts_and_gaps_of_frames_never_make_the_cue_jump(bursts, hold_s, fade_s):
    session, emitter = rig(hold_s=hold_s, fade_s=fade_s)
    now = START
    for frames, gap in bursts:
        for _ in range(frames):
            now += 16_666_667
            emitter.run(until_ns=now)
            session.feed(FRAME, now)
        now += gap
    emitter.run(until_ns=now + round((hold_s + 2 * fade_s) * 1e9))
    trace, pace = emitter.trace, PERIOD * 1e-9 / fade_s
    found = from_neutral(trace["weight"])
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert np.abs(np.diff(found, 2)).max() <= largest_turn(pace) * pace**2
    assert found[-1] == 0.0
    # The frames never change, so the cue moves as the weight does.
    np.testing.assert_array_equal(trace["cue"]["surge"], 3.0 * trace["weight"])


def test_another_pace_where_the_weight_rounds_to_its_end_is_its_end(probe):
    # 1 - 10 y^3 is 1 for y of 1e-6.
    assert probe.faded_on(0.999999, 1e-9, 2e-9) == (1.0, 1.0)
    half, _ = probe.faded_on(0.5, 1e-3, 2e-3)
    assert half == pytest.approx(0.5 + 2 * 15 / 8 * 1e-3, abs=2e-5)  # with its rate, w' = 15/8 of the pace
