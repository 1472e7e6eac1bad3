"""The figures in `docs/bridge.md`, measured against the truth; all of it computed, nothing timed."""

import math

import numpy as np
import pytest

from motioncue.bench.bridge import GROUPS, LATE_US, arrivals, car, evaluate, recorded, sine
from motioncue.recording.recording import read_motion, sample_recording

PERIOD_S = 3_000_030e-9


@pytest.mark.parametrize("rate_hz", [30.0, 50.0, 60.0, 144.0])
@pytest.mark.parametrize("part", [0.1, 0.25])
def test_predict_halves_the_error_of_a_sine_and_takes_its_stairs_away_without_a_tick_of_delay(rate_hz, part):
    worth = evaluate(sine(part * rate_hz), rate_hz, 20.0)["predict"]
    assert set(worth) == {"surge", "speed", "pitch", "pitch_rate"}
    for name, found in worth.items():
        assert found.error < 0.5, name
        assert found.staircase_db < -10.0, name
        assert abs(found.delay_s) < PERIOD_S, name


@pytest.mark.parametrize("part", [0.1, 0.25])
def test_hold_and_linear_are_what_theory_says(part):
    """Without jitter, in the continuous limit; the arrivals here add a little.

    A sine of phase theta per frame, held: the mean over a frame of |1 - exp(-i theta u)|^2, u from 0 to 1; its delay is
    half a frame.  From frame to frame in a straight line, one frame late: y = exp(-i theta) (1 - u + u exp(i theta)),
    beside exp(i theta u).
    """
    u, theta = (np.arange(1000) + 0.5) / 1000, 2 * math.pi * part
    held = np.abs(1 - np.exp(-1j * theta * u))
    drawn = np.abs(np.exp(1j * theta * u) - np.exp(-1j * theta) * (1 - u + u * np.exp(1j * theta)))
    ratio = math.sqrt(np.mean(drawn**2) / np.mean(held**2))
    worth = evaluate(sine(part * 30.0), 30.0, 30.0)
    assert worth["hold"]["surge"].error == 1.0
    assert worth["hold"]["surge"].staircase_db == 0.0
    assert worth["linear"]["surge"].error == pytest.approx(ratio, rel=0.08)
    if part == 0.1:
        assert worth["hold"]["surge"].delay_s == pytest.approx(0.5 / 30, rel=0.1)
        assert worth["linear"]["surge"].delay_s == pytest.approx(1.0 / 30, rel=0.1)


@pytest.mark.grid
@pytest.mark.parametrize(
    ("truth", "rate_hz", "error"),
    [
        (car("tour"), 60.0, 0.25),
        (car("tour"), 144.0, 0.25),
        (recorded(11.5), 50.0, 0.5),
        (recorded(13.8), 60.0, 0.5),
        (recorded(), 144.0, 0.5),
    ],
    ids=["car 60", "car 144", "real in band 50", "real in band 60", "real 144"],
)
def test_predict_halves_the_error_of_a_drive_whose_frames_show_all_of_it(truth, rate_hz, error):
    worth = evaluate(truth, rate_hz)["predict"]
    for names in GROUPS.values():
        found = [worth[name] for name in names]
        assert np.mean([w.error for w in found]) < error
        assert np.mean([w.staircase_db for w in found]) < -10.0
        assert np.mean([w.delay_s for w in found]) < PERIOD_S


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("seed", [1, 2, 4])
@pytest.mark.parametrize("truth", [car("tour"), recorded(6.9)], ids=["car", "real in band"])
def test_at_30_frames_a_second_predict_is_little_more_than_a_tick_late_however_frames_arrive(truth, seed):
    worth = evaluate(truth, 30.0, seed=seed)["predict"]
    for names in GROUPS.values():
        found = [worth[name] for name in names]
        assert np.mean([w.error for w in found]) < 0.5
        assert np.mean([w.staircase_db for w in found]) < -10.0
        assert np.mean([w.delay_s for w in found]) < 1.4 * PERIOD_S


@pytest.mark.search
def test_what_cannot_be_predicted_costs_little_more_than_hold():
    """Road and sensor noise up to half the frame rate: little leads from one frame to the next."""
    worth = evaluate(recorded(), 60.0)["predict"]
    for name in (*GROUPS["accelerations"], *GROUPS["body rates"]):
        assert 0.9 < worth[name].error < 1.25
        assert worth[name].staircase_db < -3.0
    for name in (*GROUPS["attitude"], "speed"):
        assert worth[name].error < 0.5


# The truths and the arrivals.


def test_the_recorded_truth_goes_through_its_frames():
    frames = read_motion(sample_recording())[100:-100]
    motion = recorded()(np.arange(100, 100 + len(frames)) / 60.0)
    for names in GROUPS.values():
        for name in names:
            np.testing.assert_allclose(motion[name], frames[name], rtol=0, atol=1e-9)


def test_the_recorded_truth_below_a_frequency_keeps_what_is_slow():
    time = np.arange(2000) / 100.0 + 10.0
    slow, fast = (recorded(below)(time)["surge"] for below in (5.0, 30.0))
    spectrum = np.abs(np.fft.rfft(slow * np.hanning(2000))), np.abs(np.fft.rfft(fast * np.hanning(2000)))
    frequency = np.fft.rfftfreq(2000, 0.01)
    assert spectrum[0][frequency > 8.0].max() < 1e-2 * spectrum[1][frequency > 8.0].max()
    passed = (frequency > 0.5) & (frequency < 3.0)
    np.testing.assert_allclose(spectrum[0][passed], spectrum[1][passed], rtol=0, atol=2e-2 * spectrum[1][passed].max())


def test_the_cars_rates_are_the_derivatives_of_its_attitude():
    time = 20.0 + np.arange(-1, 2)[:, None] * 1e-4 + np.arange(200) * 0.01
    motion = [car("tour")(row) for row in time]
    turned = (motion[2]["roll"] - motion[0]["roll"]) / 2e-4
    # Euler's kinematics: roll angle rate from body rates.
    m = motion[1]
    rate = m["roll_rate"] + np.tan(m["pitch"]) * (
        m["pitch_rate"] * np.sin(m["roll"]) + m["yaw_rate"] * np.cos(m["roll"])
    )
    np.testing.assert_allclose(turned, rate, rtol=0, atol=1e-6)


def test_arrivals_are_late_as_stated_in_order_and_some_are_lost():
    frames = arrivals(sine(1.0), 100.0, 400.0, np.random.default_rng(7))
    assert 0.985 < len(frames) / 40_000 < 0.995
    assert (np.diff(frames["time"]) >= 0).all()
    assert (np.diff(frames["frame_time"]) > 0).all()
    late_us = 1e-3 * (frames["time"] - 1e9 * frames["frame_time"])
    late_us -= late_us.min() - LATE_US[0][1]
    for quantile, expected in LATE_US[1:3]:
        assert np.mean(late_us > expected) == pytest.approx(1.0 - quantile, rel=0.25)
