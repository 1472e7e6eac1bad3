"""The fade between neutral and the whole cue, as the emitter's ticks show it on a clock that takes no time."""

import numpy as np
import pytest
from hypothesis import given, settings
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
# Where a fade turns round, the velocity v of x follows the wanted one (+-pace) by a critically damped lag, a = 20 pace.
# The lag's pulse response a^2 t exp(-a t) is never negative, so |v| <= pace whatever happens.  Its derivative changes
# sign once, at 1/a, so the sum of its magnitudes is 2 a/e, and |v'| <= pace 2 a/e = 40/e pace^2, whatever happens and
# for ever.  Then |w''(x) v^2 + w'(x) v'| <= (10/sqrt(3) + 15/8 40/e) pace^2 = 33.4 pace^2.  A lag that is stepped once
# a tick is a little stiffer: a factor 1 + a.  At an end x goes from rest to the pace at once, or is cut; there
# w' <= 30 x^2 with x <= pace, which adds at most 30 pace^3.  Without the lag a turn would be 15/8 * 2 pace: for one
# second at 333 Hz, 1250 pace^2.


def largest_turn(pace):
    return UNDISTURBED + 15 / 8 * 40 / np.e * (1 + 20 * pace) + 30 * pace


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


def test_a_turn_bends_harder_than_an_undisturbed_fade_but_not_by_far():
    pace = PERIOD * 1e-9
    second = np.abs(np.diff(weights([(350, True), (167, False), (500, True)]), 2)).max() / pace**2
    assert 2 * UNDISTURBED < second < 6 * UNDISTURBED


def test_a_turn_bends_without_a_jump():
    # The lag is of second order: its acceleration begins at zero and grows by at most 2 pace (20 pace)^2 a tick.
    pace = PERIOD * 1e-9
    third = np.abs(np.diff(weights([(350, True), (167, False), (500, True)]), 3)).max()
    assert third <= (15 / 8 * 2 * 20**2 + 3 * UNDISTURBED * 40 / np.e + 60) * pace**3


def test_a_fade_that_turned_round_arrives():
    pace = PERIOD * 1e-9
    found = weights([(350, True), (167, False), (600, True)])
    lowest = 350 + np.argmin(found[350:])
    back = np.flatnonzero(found[lowest:] == 1.0)[0] * pace
    assert found[-1] == 1.0
    # From a little below half-way, at the pace but for the turn itself: a few lags of 1/20.
    assert 0.5 < back < 0.75


patterns = st.lists(st.tuples(st.integers(1, 250), st.booleans()), min_size=1, max_size=25)


@settings(max_examples=150)
@given(runs=patterns, fade_s=st.sampled_from([0.123, 0.2, 0.5, 1.0, 1.7]))
def test_any_pattern_of_interruptions_is_smooth_and_stays_between_neutral_and_whole(runs, fade_s):
    pace = PERIOD * 1e-9 / fade_s
    found = from_neutral(weights(runs, fade_s=fade_s))
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert np.abs(np.diff(found)).max() <= 15 / 8 * pace * (1 + 1e-9)
    assert np.abs(np.diff(found, 2)).max() <= largest_turn(pace) * pace**2


@pytest.mark.parametrize("every", [1, 2, 5, 17, 40, 111])
def test_interruptions_in_step_with_the_lag_do_not_build_up(every):
    # The worst input of the lag is a square wave; half a lag is 1/(40 pace) = 8 ticks.
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
