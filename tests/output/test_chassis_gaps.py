"""How fast wheels move where frames become denser, after a silence, and after a while without a number."""

import math

import numpy as np
import pytest
from delivery_rig import PERIOD, START
from test_chassis_channels import Drive, profile_of

WHEEL = "suspension_front_left"
WIDE = {"car_suspension": {"value_m": 1.0, "rate_m_s": 1e3, "acceleration_m_s2": 1e7}}
TICK_S = PERIOD * 1e-9
LONGEST_S = 0.3  # of a line
STEEPER = 1.5  # lines are, by the 0.3 s that are taken back within a second and the tenth of catching up
FADE = 1.875 / 1.0  # largest slope of a fade of 1 s [1/s]


@pytest.fixture
def car():
    drive = Drive(profile_of(limits=WIDE))
    yield drive
    drive.close()


def steepest(car, begin):
    """Return the largest speed that is sent from a time on [m/s]."""
    sent = car.sent[WHEEL]
    late = car.ticks["deadline"][1:] > START + round(begin * 1e9)
    return np.abs(np.diff(sent))[late].max() / TICK_S


@pytest.mark.parametrize("rates", [(20, 500), (30, 250), (60, 100), (500, 20)])
def test_a_wheel_that_moves_steadily_is_no_faster_where_frames_become_denser(car, rates):
    """The source's intervals are told by its arrivals, and known a second late."""
    before, after = rates
    taken = np.concatenate([np.arange(4 * before) / before, 4.0 + np.arange(4 * after) / after])
    car.deliver(taken, taken, lambda time: {WHEEL: 0.03 * max(0.0, time - 2.0), "frame_time": 0.0})
    assert car.ticks["weight"][-1] == 1.0
    assert steepest(car, 3.0) < STEEPER * 0.03
    behind = taken[-1] - (car.sent[WHEEL][-1] / 0.03 + 2.0)
    assert behind < 2 * LONGEST_S


@pytest.mark.parametrize("silence", [0.12, 0.25, 0.29, 0.31, 0.4, 0.6])
@pytest.mark.parametrize("rate_hz", [60, 500])
def test_after_a_silence_a_wheel_takes_the_time_that_the_car_had(car, rate_hz, silence):
    taken = np.arange(6 * rate_hz) / rate_hz
    taken = taken[(taken < 3.0) | (taken >= 3.0 + silence)]
    speed = 0.2
    car.deliver(taken, taken, lambda time: {WHEEL: speed * max(0.0, time - 2.9)})
    last = speed * (taken[-1] - 2.9)
    assert car.sent[WHEEL][-1] == pytest.approx(last, abs=speed * 2 * LONGEST_S)
    most = max(1.0, silence / LONGEST_S) * STEEPER * speed
    assert steepest(car, 2.0) < most + FADE * last


@pytest.mark.parametrize("missing", [0.05, 0.25, 1.0])
@pytest.mark.parametrize("rate_hz", [60, 500])
def test_a_wheel_of_which_nothing_was_said_for_a_while_goes_on_from_where_it_was_kept(car, rate_hz, missing):
    taken = np.arange(6 * rate_hz) / rate_hz

    def wheel(time):
        away = 3.0 <= time < 3.0 + missing
        return {WHEEL: math.nan if away else 0.1 if time < 3.0 else -0.1}

    car.deliver(taken, taken, wheel)
    assert set(car.ticks["weight"][car.ticks["deadline"] > START + 2_500_000_000]) == {1.0}
    assert car.sent[WHEEL][-1] == pytest.approx(-0.1)
    assert steepest(car, 2.5) < STEEPER * 0.2 / min(missing, LONGEST_S)


@pytest.mark.parametrize("missing", [0.1, 0.25])
@pytest.mark.parametrize("rate_hz", [60, 250, 500])
def test_the_way_back_of_a_wheel_that_is_missing_again_on_it_makes_no_dash(car, rate_hz, missing):
    """After a while without a number, every other one is missing: the way is not made up in one frame."""
    taken = np.arange(6 * rate_hz) / rate_hz

    def wheel(time):
        frame = round((time - 3.0) * rate_hz)
        away = 0 <= frame < missing * rate_hz or (time > 3.0 and frame % 2)
        return {WHEEL: math.nan if away else 0.1 if frame < 0 else -0.1}

    car.deliver(taken, taken, wheel)
    assert car.sent[WHEEL][-1] == pytest.approx(-0.1)
    # Of what is kept in between, the frames in which it goes on are half: they go at twice the speed.
    assert steepest(car, 2.5) < 2 * STEEPER * 0.2 / (missing - 2 / rate_hz)


def test_a_number_that_is_missing_once_costs_a_frame(car):
    """The line to the next one is as before: two frames long, or one, but no longer."""
    rate_hz = 100
    taken = np.arange(4 * rate_hz) / rate_hz
    car.deliver(taken, taken, lambda time: {WHEEL: math.nan if time == 3.0 else 0.03 * (time > 3.0)})
    there = car.ticks["deadline"] > START + 3_100_000_000
    np.testing.assert_allclose(car.sent[WHEEL][there], 0.03, atol=1e-12)


def test_of_another_drive_s_wheels_nothing_is_known_until_it_says_it(car):
    car.frame(**{WHEEL: 0.1})
    assert car.pipeline.intake.chassis_said()[WHEEL] == 0.1
    car.pipeline.intake.begin(car.now)
    assert car.pipeline.intake.chassis_said() == {}


@pytest.mark.parametrize("speaks", [0, 3])  # frames, before it is parked
def test_what_was_missing_in_the_drive_before_moves_no_wheel_of_the_next(car, speaks):
    """A wheel that was silent, or on its way back from that, when the car was parked: none of it is left afterwards."""
    rate_hz, value = 60, 0.1
    frame = iter(range(10**6))

    def drive(frames, wheel):
        taken = np.array([next(frame) for _ in range(frames)]) / rate_hz
        car.deliver(taken, taken, lambda time: {WHEEL: wheel})

    drive(3 * rate_hz, value)
    drive(rate_hz // 2, math.nan)
    drive(speaks, -value)
    car.pipeline.emitter.park()
    drive(2 * rate_hz, -value)
    assert car.pipeline.emitter.state == "OFFLINE"
    begun = len(car.sent)
    car.pipeline.emitter.engage()
    drive(1, value)
    drive(2 * rate_hz, -value)
    weight, sent = car.ticks["weight"][begun + 1 : len(car.sent)], car.sent[WHEEL][begun + 1 :]
    there = slice(round(3 / rate_hz / TICK_S), None)  # a frame, which is shown one frame late
    assert weight[-1] == 1.0
    np.testing.assert_allclose(sent[there], -value * weight[there], atol=1e-9)


def test_after_a_silence_a_wheel_goes_on_at_once_by_a_tenth_slower():
    """It stays where it is until a frame comes, and no longer; it falls back by a tenth of the time that passes."""
    rate_hz, silence = 60, 0.5
    rig = Drive(profile_of("supervisor.hold_s=1", limits=WIDE))
    taken = np.arange(5 * rate_hz) / rate_hz
    taken = taken[(taken < 3.0) | (taken >= 3.0 + silence)]
    rig.deliver(taken, taken, lambda time: {WHEEL: 0.1 if time < 3.2 else -0.1})
    since = (rig.ticks["deadline"] - START) * 1e-9 - taken[taken > 3.2][0]
    assert set(rig.ticks["weight"][since > -1.0]) == {1.0}
    on_way = (since > -0.3) & (since < LONGEST_S / 0.9 - 2 * TICK_S)
    expected = 0.1 - 0.2 * 0.9 * np.maximum(0.0, since[on_way]) / LONGEST_S
    np.testing.assert_allclose(rig.sent[WHEEL][on_way], expected, atol=2 * 0.2 * TICK_S / LONGEST_S)
    rig.close()
