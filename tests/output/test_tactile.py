"""The tactile signal of road and engine: its equation, its band, and what makes none."""

import numpy as np
import pytest
from scipy import signal

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, CHASSIS, CHASSIS_DTYPE, CUE_DTYPE, MOTION_DTYPE, WHEELS
from motioncue.output.actuation import ChassisMotion, OutputChain, tactile_sections
from motioncue.safety.settings import OutputLimits

RATE_HZ = 333.33
DT = 1.0 / RATE_HZ
TICKS = 20_000
TIME = np.arange(TICKS) * DT


def tactile_of(chassis=None, engine_speed=None, weight=None, dt=DT, **settings):
    """Return the signal for suspension values by channel, and the engine's speed [rpm]."""
    stage = ChassisMotion(["tactile"], OutputLimits().chassis_bounds(), dt=dt, pace=1e-3, **settings)
    values = np.full((TICKS, len(CHASSIS)), np.nan)
    names = [channel.name for channel in CHASSIS]
    for name, value in (chassis or {}).items():
        values[:, names.index(name)] = value
    motion = np.zeros(TICKS, MOTION_DTYPE)
    motion["engine_speed"] = np.nan if engine_speed is None else engine_speed
    sent = OutputChain([stage]).process(np.zeros(TICKS, CUE_DTYPE), motion, weight, values)
    return sent["tactile"]


def shaken(velocity):
    return {f"suspension_velocity_{wheel}": velocity for wheel in WHEELS}


def low_pass(rate_hz=RATE_HZ):
    return signal.cheby2(8, 60, min(100.0, 0.45 * rate_hz), output="sos", fs=rate_hz)


def gain(hz):
    """Return the complex gain of both filters at a frequency."""
    _, response = signal.sosfreqz(low_pass(), [hz], fs=RATE_HZ)
    share = 1.0 - np.exp(-2.0 * np.pi * DT)
    _, slow = signal.freqz([share], [1.0, share - 1.0], [hz], fs=RATE_HZ)
    return (response * (1.0 - slow))[0]


def most():
    """Return how much the filters may be given, so that they never make more than 1 of it."""
    share = 1.0 - np.exp(-2.0 * np.pi * DT)
    impulse = np.zeros(5000)
    impulse[0] = 1.0
    made = signal.sosfilt(low_pass(), impulse - signal.lfilter([share], [1.0, share - 1.0], impulse))
    return 1.0 / np.abs(made).sum()


def power(values):
    """Return frequencies [Hz] and the power of a signal, without its beginning."""
    return signal.periodogram(values[2000:], RATE_HZ, "blackmanharris", scaling="spectrum")


@pytest.mark.parametrize("rate_hz", [60.0, 200.0, 333.33, 1000.0, 2000.0])
def test_the_low_pass_is_that_of_another_program(rate_hz):
    frequencies = np.linspace(0.0, 0.499 * rate_hz, 500)
    ours = np.array([[*b, 1.0, *a] for b, a in tactile_sections(rate_hz)])
    _, response = signal.sosfreqz(ours, frequencies, fs=rate_hz)
    _, expected = signal.sosfreqz(low_pass(rate_hz), frequencies, fs=rate_hz)
    np.testing.assert_allclose(np.abs(response), np.abs(expected), atol=1e-9)
    assert np.abs(response[frequencies >= 100.0]).max(initial=0.0) <= 1.001e-3


def test_the_road_is_the_filtered_mean_of_the_wheels_suspension_velocity():
    rng = np.random.default_rng(3)
    each = rng.normal(0.0, 0.1, (4, TICKS))
    found = tactile_of({f"suspension_velocity_{wheel}": each[place] for place, wheel in enumerate(WHEELS)}, road=2.0)
    road = np.clip(2.0 * each.mean(axis=0), -most(), most())
    share = 1.0 - np.exp(-2.0 * np.pi * 1.0 * DT)
    slow = signal.lfilter([share], [1.0, share - 1.0], road)
    np.testing.assert_allclose(found, signal.sosfilt(low_pass(), road - slow), atol=1e-9)


@pytest.mark.parametrize("frequency", [10.0, 40.0])
def test_a_wheel_that_comes_nearer_is_positive_with_the_amplitude_of_its_velocity(frequency):
    found = tactile_of(shaken(0.3 * np.sin(2.0 * np.pi * frequency * TIME)))
    through = gain(frequency)
    expected = 0.3 * abs(through) * np.sin(2.0 * np.pi * frequency * TIME + np.angle(through))
    np.testing.assert_allclose(found[3000:], expected[3000:], atol=1e-6)


def test_of_a_source_with_travel_alone_its_slope_is_taken():
    travel = 0.002 * np.sin(2.0 * np.pi * 20.0 * TIME)
    found = tactile_of({f"suspension_{wheel}": travel for wheel in WHEELS})
    slope = np.diff(travel, prepend=travel[0]) / DT
    np.testing.assert_allclose(found[3000:], tactile_of(shaken(slope))[3000:], atol=1e-9)
    assert np.abs(found[3000:]).max() == pytest.approx(0.002 * 2.0 * np.pi * 20.0, rel=0.02)


def test_nothing_is_above_100_hz_whatever_comes():
    rng = np.random.default_rng(5)
    rough = shaken(rng.normal(0.0, 3.0, TICKS))  # mostly cut off at 1
    speed = 3000.0 + 2500.0 * np.sin(0.4 * TIME)  # fires at 17 to 183 Hz
    frequencies, power_of = power(tactile_of(rough, speed, engine=1.0))
    assert power_of[frequencies >= 100.5].max() < 1e-6 * power_of[frequencies < 80.0].max()
    assert power_of[(frequencies > 2.0) & (frequencies < 80.0)].sum() > 0.05
    assert np.abs(tactile_of(rough, speed, engine=1.0)).max() < 1.0


def test_the_worst_input_makes_1_and_no_more():
    """The input that has the sign of the impulse response, read backwards, at every tick."""
    share = 1.0 - np.exp(-2.0 * np.pi * DT)
    impulse = np.zeros(1500)
    impulse[0] = 1.0
    made = signal.sosfilt(low_pass(), impulse - signal.lfilter([share], [1.0, share - 1.0], impulse))
    worst = np.zeros(TICKS)
    worst[:1500] = 9.0 * np.sign(made[::-1])
    assert tactile_of(shaken(worst)).max() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("rpm", "order", "hz"), [(900.0, 2.0, 30.0), (1800.0, 2.0, 60.0), (3000.0, 1.0, 50.0)])
def test_the_engine_is_felt_at_its_firings(rpm, order, hz):
    frequencies, power_of = power(tactile_of(engine_speed=rpm, order=order, engine=0.3))
    assert frequencies[power_of.argmax()] == pytest.approx(hz, abs=0.05)
    found = tactile_of(engine_speed=rpm, order=order, engine=0.3)[3000:]
    assert np.sqrt(2.0) * found.std() == pytest.approx(0.3 * abs(gain(hz)), rel=0.001)


def test_firings_beyond_100_hz_are_not_felt():
    assert not tactile_of(engine_speed=3000.0, engine=1.0).any()
    assert not tactile_of(engine_speed=1e9, engine=1.0).any()
    assert not tactile_of(engine_speed=-3000.0, engine=1.0).any()


def test_the_phase_goes_on_when_the_engine_s_speed_jumps():
    speed = np.where(TIME < 30.0, 900.0, 1500.0)
    found = tactile_of(engine_speed=speed, engine=0.3)
    jump = np.searchsorted(TIME, 30.0)
    # no faster than a sine of 50 Hz, which the low-pass lets pass with a gain of about 1
    assert np.abs(np.diff(found[jump - 50 : jump + 50])).max() < 1.05 * 0.6 * np.sin(np.pi * 50.0 * DT)
    assert np.sqrt(2.0) * found[jump + 200 :].std() == pytest.approx(0.3, rel=0.01)


def test_there_is_none_where_the_source_has_neither():
    assert not tactile_of().any()
    assert not tactile_of({"slip_front_left": 3.0}).any()


def test_what_is_held_moves_no_shaker_and_what_is_no_number_neither():
    assert np.abs(tactile_of(shaken(np.full(TICKS, 0.5)))[3000:]).max() < 1e-9
    velocity = 0.1 * np.sin(2.0 * np.pi * 20.0 * TIME)
    velocity[5000:5010], velocity[6000], velocity[7000] = np.nan, np.inf, 1e300
    assert np.isfinite(tactile_of(shaken(velocity))).all()


def test_the_weight_of_the_fade_counts():
    weight = np.linspace(0.0, 1.0, TICKS)
    whole = tactile_of(engine_speed=1200.0)
    np.testing.assert_allclose(tactile_of(engine_speed=1200.0, weight=weight), weight * whole, atol=1e-12)


def test_offline_an_output_gets_it_too():
    table = {
        "output": {
            "system": "custom",
            "gauges": None,
            "motion": "udp://127.0.0.1:4123",
            "packet": {"size": 4, "fields": [{"offset": 0, "type": "f4", "channel": "tactile"}]},
            "tactile": {"engine": 0.25},
        }
    }
    profile = motioncue.load_profile("program-dk", table)
    motion, chassis = np.zeros(2000, MOTION_DTYPE), np.zeros(2000, CHASSIS_DTYPE)
    motion["engine_speed"] = 900.0
    sent = motioncue.actuate(profile, motioncue.cue(profile, motion), motion=motion, chassis=chassis)
    assert sent.dtype == ACTUATION_DTYPE
    assert np.abs(sent["tactile"][1000:]).max() == pytest.approx(0.25, rel=0.03)
