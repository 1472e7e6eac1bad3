"""The join of an output to its line: a critically damped system in closed form, and what docs/bridge.md promises."""

import numpy as np
import pytest

from motioncue.bridge.bridge import Bridge
from motioncue.core.channels import MOTION_DTYPE

DT = 0.003
FREE = (0.0, 100.0)  # fast enough that the bound on the speed never acts
TICK_NS = 500_000
INTERVAL_S = 0.016
START = 1_000_000_000


@pytest.mark.parametrize(
    "offset", [*(pytest.param([size], marks=pytest.mark.search) for size in (0.5, -0.5)), [0.3, 0.0, -0.4]]
)
@pytest.mark.check
def test_an_offset_that_closes_faster_than_the_pace_keeps_its_own_pace(probe, offset):
    """With o' = -p o, the system of pace p follows o exp(-p t)."""
    offset = np.array(offset)
    out = probe.joined(offset, -5.0 * offset, 0.0, 50, DT, 2.0, 60.0, *FREE)
    expected = offset * np.exp(-5.0 * DT * np.arange(1, 51))[:, None]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.5, -0.5])
@pytest.mark.parametrize(("pace", "quickest", "used"), [(2.0, 60.0, 60.0), (3.0, 1.0, 3.0)])
@pytest.mark.check
def test_no_offset_has_a_pace_above_the_quickest_unless_the_join_has(probe, offset, pace, quickest, used):
    velocity = -2.0 * used * offset
    out = probe.joined([offset], [velocity], 0.0, 1, DT, pace, quickest, *FREE)
    expected = (offset + (velocity + used * offset) * DT) * np.exp(-used * DT)
    assert out[0] == [pytest.approx(expected, rel=1e-12)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_output_that_moves_away_comes_to_rest_at_the_quickest_pace_and_then_returns(probe, sign):
    """Its speed falls by exp(-q dt) each tick, which is quicker than the join itself would brake it."""
    out = sign * np.array(probe.joined([sign * 1.0], [sign * 0.1], 0.0, 400, DT, 1.0, 60.0, *FREE))[:, 0]
    speeds = np.diff(out, prepend=1.0) / DT
    np.testing.assert_allclose(speeds[:5], 0.1 * np.exp(-60.0 * DT * np.arange(1, 6)), rtol=1e-9)
    turned = int(np.argmax(speeds <= 0.0))
    assert 5 < turned < 20
    assert (speeds[turned:] <= 0.0).all()


def test_an_output_whose_line_comes_towards_it_does_not_move_away_from_it(probe):
    """The line comes at 0.5/s from below to an output at rest: it stays until the join's own motion is downwards."""
    out = np.array(probe.joined([0.2], [0.0], 0.5, 200, DT, 1.0, 60.0, *FREE))[:, 0]
    assert (np.diff(out, prepend=0.2)[: len(out) // 2] <= 1e-15).all()


def test_no_axis_moves_faster_than_the_drive_and_a_fade_allow(probe):
    """1.19 times the drive's largest slope along the axis, plus the largest slope of a fade of the largest offset."""
    out = np.array(probe.joined([3.0, 4.0], [0.0, 0.0], 0.0, 500, DT, 50.0, 60.0, 0.4, 0.2))
    speeds = np.abs(np.diff(out, axis=0)) / DT
    assert speeds.max() == pytest.approx(1.19 * 0.2 + 0.4 * 5.0, rel=1e-9)


def shown(kind, times, values, until_s, fade_s=10.0, tick_ns=TICK_NS):
    """Return the times of ticks [s] and the surge that they show, from frames at `times` [s]."""
    frames = np.zeros(len(times), MOTION_DTYPE)
    frames["time"] = START + np.round(1e9 * times).astype(np.int64)
    frames["frame_time"] = 1e-9 * frames["time"]
    frames["surge"] = values
    frames["yaw"] = 0.1 * times  # no frame repeats another one
    ticks = START + np.arange(0, round(1e9 * until_s), tick_ns)
    return (ticks - START) * 1e-9, Bridge(kind, fade_s=fade_s).process(frames, ticks)["surge"]


def without(gap, at, count):
    """Return times of `count` even frames [s], of which one is `gap` intervals after the frame number `at`."""
    return INTERVAL_S * np.delete(np.arange(count), np.arange(at + 1, at + gap))


@pytest.mark.parametrize("kind", ["hold", "linear", "predict"])
@pytest.mark.parametrize("gap", [12, 25])
def test_a_join_takes_twice_as_long_as_the_output_was_held_less_an_interval(kind, gap):
    """Its pace is 3 over the time t left, so offsets are A t^k + B t^m, where k and m solve x (x - 1) - 6 x + 9 = 0."""
    times = without(gap, 200, 400)
    before, back_s = times < 1.6, (200 + gap) * INTERVAL_S
    swings = np.where(before, 50.0 * np.sin(2.0 * np.pi * times / 1.6), 0.0)  # so fast that no bound acts
    ticks, surge = shown(kind, times, np.where(times < back_s - 1e-6, swings, 1.0), 400 * INTERVAL_S)
    whole_s = 2.0 * (gap - 1) * INTERVAL_S - INTERVAL_S
    k, m = (7.0 + np.sqrt(13.0)) / 2.0, (7.0 - np.sqrt(13.0)) / 2.0
    joining = (ticks >= back_s) & (ticks < back_s + 0.9 * whole_s)
    left = 1.0 - (ticks[joining] - back_s + 1e-9 * TICK_NS) / whole_s
    expected = 1.0 - (k * left**m - m * left**k) / (k - m)
    np.testing.assert_allclose(surge[joining], expected, rtol=0, atol=0.01)


@pytest.mark.parametrize("kind", ["linear", "predict"])
@pytest.mark.parametrize("fade_s", [0.5, 10.0])
def test_an_output_catches_up_no_faster_than_the_drive_and_half_a_fade_allow(kind, fade_s):
    """1.19 times the slope of 1/s, and half of the largest slope, 15/8, of a fade of what was missed."""
    times = without(25, 200, 400)
    ticks, surge = shown(kind, times, times, 400 * INTERVAL_S, fade_s)
    missed = 25 * INTERVAL_S + INTERVAL_S  # `linear` was an interval late before
    assert surge[-1] == pytest.approx(times[-1], abs=2.0 * INTERVAL_S)
    joining = surge[ticks >= 200 * INTERVAL_S]
    assert np.diff(joining).max() / (1e-9 * TICK_NS) <= 1.19 + 0.5 * 15 / 8 * missed / fade_s


@pytest.mark.parametrize("gap", [3, 4, 6])
def test_a_frame_after_two_lost_ones_is_not_led_beyond(gap):
    """What was lost may hide a turning point: two frames in a row have to show where the drive goes."""
    times = without(gap, 200, 201 + gap)
    _, surge = shown("predict", times, times, times[-1] + 2.0)
    assert surge.max() <= times[-1] + 1e-9
    assert surge[-1] == pytest.approx(times[-1], abs=1e-6)


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("gap", [1.55, 1.7])
def test_until_four_frames_have_come_in_time_after_a_gap_no_line_leads_faster_than_the_drive_was(gap, after):
    """A drive that goes ever faster, and stops to be heard of: a line goes on for two intervals at most."""
    times = INTERVAL_S * np.arange(601 + after)
    times[600:] += (gap - 1.0) * INTERVAL_S
    values = 0.5 * times**2
    _, surge = shown("predict", times, values, times[-1] + 2.0, tick_ns=3_000_000)
    fastest = (values[-1] - values[-2]) / INTERVAL_S
    assert surge[-1] - values[-1] <= 2.0 * INTERVAL_S * fastest * (1.0 + 1e-6)
