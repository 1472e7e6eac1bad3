"""How far wheels are behind when frames are lost or come unevenly, from sources with and without times of their own."""

from functools import partial

import numpy as np
import pytest
from delivery_rig import PERIOD, jittered, lost
from test_chassis_channels import START, Drive, profile_of

WHEEL = "suspension_front_left"
TICK_S = PERIOD * 1e-9


@pytest.mark.parametrize("rate_hz", [60, 250])
@pytest.mark.parametrize(
    "deliver", [partial(lost, share=0.3), partial(jittered, most_s=0.012)], ids=["lost", "jittered"]
)
def test_a_source_without_times_of_its_own_does_not_fall_further_and_further_behind(deliver, rate_hz):
    car = Drive(profile_of())
    taken = np.arange(12 * rate_hz) / rate_hz
    taken, came = deliver(taken, np.random.default_rng(rate_hz))
    car.deliver(taken, came, lambda time: {"suspension_front_left": 0.03 * time, "frame_time": 0.0})
    car.close()
    late = car.ticks["deadline"] > START + 10_000_000_000
    assert set(car.ticks["weight"][late]) == {1.0}
    shown = car.sent["suspension_front_left"][late] / 0.03
    behind = (car.ticks["deadline"][late] - START) * 1e-9 - shown
    # A line to the frame after the longest silence needs as long again, and as much is allowed for what is not known.
    assert behind.max() < 4.0 * np.diff(came).max()


def steady(deliver, rate_hz, seconds, said):
    """Return how far a wheel that moves steadily is behind [s], its speed over the car's, and when frames came [s].

    From the sixth second on, at each tick; `said` is what else the source says at a time.
    """
    taken = np.arange(seconds * rate_hz) / rate_hz
    taken, came = deliver(taken, np.random.default_rng(rate_hz))
    car = Drive(profile_of())
    car.deliver(taken, came, lambda time: {WHEEL: 0.01 * time, **said(time)})
    car.close()
    late = car.ticks["deadline"] > START + 6_000_000_000
    assert set(car.ticks["weight"][late]) == {1.0}
    shown = car.sent[WHEEL][late] / 0.01
    return (car.ticks["deadline"][late] - START) * 1e-9 - shown, np.diff(shown) / TICK_S, came


@pytest.mark.parametrize("rate_hz", [120, 250, 333])
def test_where_frames_are_lost_a_wheel_is_no_later_than_the_longest_silence_asks_for(rate_hz):
    """A line to the frame after a silence takes as long again; half of that is for what is not known, and a tick.

    It catches up by a tenth, and nothing is steeper: what comes after lost frames is not mistaken for a slower source.
    """
    behind, speed, came = steady(partial(lost, share=0.1), rate_hz, 14, lambda _: {"frame_time": 0.0})
    assert behind.max() < 1.5 * np.diff(came).max() + TICK_S
    assert speed.max() < 1.15


@pytest.mark.parametrize("rate_hz", [250, 333])
def test_a_late_frame_of_a_source_with_times_of_its_own_makes_the_next_ones_no_later(rate_hz):
    """The longest wait for a frame is an interval and what a frame may be late; twice that, and a tick, is enough."""
    behind, speed, _ = steady(partial(jittered, most_s=0.006), rate_hz, 12, lambda _: {})
    assert behind.max() < 2.0 * (1 / rate_hz + 0.006) + TICK_S
    assert speed.max() < 1.15
