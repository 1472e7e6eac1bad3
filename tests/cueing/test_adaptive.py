"""The adaptive washout: against its linear counterpart, a slow oracle, finite differences, and what it is for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.adaptive import Adaptive as Oracle
from reference.classical import CHANNELS
from same_bits import assert_same_bits
from test_washout import rough_drive
from trouble_helpers import pulse

import motioncue
from motioncue import ConfigError, cueing
from motioncue.core import interfaces
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.engine.batch import Batch

RATE_HZ = 1e9 / round(1e9 / 333.33)
PERIOD = 1.0 / RATE_HZ
G = 9.80665
PRESETS = ("small", "medium", "large")
SLOW = (
    *("surge.cutoff_hz=0.36", "surge.damping=1", "surge.range_m=0.4", "pitch.cutoff_hz=0.2", "pitch.cutoff_ratio=2"),
    *("tilt.smooth_hz=1", "weights.travel=10"),
)
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
FREE = ("cueing.tilt.rate_limit_deg_s=1000", "cueing.pitch.tilt_deg=60", "cueing.roll.tilt_deg=60")


def adaptive(*overrides, preset="medium"):
    """Return the settings of a preset with unit gains and whatever else is given."""
    of = (f"preset={preset}", *(f"{axis}.gain=1" for axis in AXES), *overrides)
    return motioncue.load_profile("ccd-dk", "cueing.algorithm=adaptive", *(f"cueing.{each}" for each in of)).cueing


def designed(*overrides, preset="medium"):
    return cueing.design(adaptive(*overrides, preset=preset), RATE_HZ)


def motion_of(n, **channels):
    motion = np.zeros(n, MOTION_DTYPE)
    for name, values in channels.items():
        motion[name] = values
    return motion


def busy(rng, n, size):
    """Return steps and waves."""
    time = PERIOD * np.arange(n)
    waves = sum(np.sin(rng.uniform(0.3, 9) * time + rng.uniform(0, 7)) * rng.normal() for _ in range(4))
    return size * (0.4 * waves + 0.6 * np.repeat(rng.normal(size=n // 150 + 1), 150)[:n])


def stepped(stepper, motion):
    """Return the cues of as many steps as there are rows."""
    out = np.zeros(len(motion), CUE_DTYPE)
    for i in range(len(motion)):
        stepper.motion[0] = motion[i]
        assert stepper.step()
        out[i] = stepper.cue[0]
    return out


# ---- the linear counterpart ------------------------------------------------------------------------------------------


def linear(f, q, force, turning, tilt_settings):
    """Return travel and angle of a washout that does not adapt, by its difference equations."""
    omega, corner = 2.0 * math.pi * force.cutoff_hz, 2.0 * math.pi * turning.cutoff_hz
    stiffness, half = omega * omega, math.tan(0.5 * omega * PERIOD) / omega
    damping = 2.0 * force.damping * omega + stiffness * half
    inverse = 1.0 / (1.0 + damping * half)
    degree, k = math.pi / 180.0, 0.5 * PERIOD
    steepest, most = turning.tilt_deg * degree, tilt_settings.rate_limit_deg_s * degree
    smoothing = 2.0 * math.pi * tilt_settings.smooth_hz / (1.0 + k * (2.0 * math.pi * tilt_settings.smooth_hz))
    d = 1.0 / (1.0 + k * corner)
    pace = corner * d

    def within(value, limit):
        return min(max(value, -limit), limit)

    smooth, tilt = -k * (smoothing / (1.0 - k * smoothing)) * within(f[0] / G, steepest), 0.0  # all start from rest
    turned = -k * (turning.start * q[0])
    v, x = -half * (force.start * f[0]), 0.0
    rows = []
    for force_now, q_now in zip(f, q, strict=True):
        smooth_rate = smoothing * (within(force_now / G, steepest) - smooth)
        tilt_rate = within(pace * ((smooth + k * smooth_rate) - tilt), most)
        smooth = smooth + 2.0 * k * smooth_rate
        turned_rate = d * (turning.start * q_now) - pace * turned
        angle = (tilt + turned) + k * (tilt_rate + turned_rate)
        tilt, turned = tilt + 2.0 * k * tilt_rate, turned + 2.0 * k * turned_rate
        u = force.start * (force_now - G * angle)
        a = (u - (damping * v + stiffness * x)) * inverse
        speed = v + half * a
        travel = x + half * speed
        v, x = speed + half * a, travel + half * speed
        rows.append((travel, angle))
    return np.array(rows).T


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("limit", ["3", "1000"])
def test_without_adaptation_it_is_the_linear_washout_bit_for_bit(rng, preset, limit):
    own = adaptive("adaptation=0", f"tilt.rate_limit_deg_s={limit}", preset=preset)
    f, q = busy(rng, 4000, 3.0), busy(rng, 4000, 0.2)
    washout = cueing.design(own, RATE_HZ)
    cue = washout.process(motion_of(4000, surge=f, pitch_rate=q))
    travel, angle = linear(f, q, own.surge, own.pitch, own.tilt)
    np.testing.assert_array_equal(cue["surge_displacement"], travel)
    np.testing.assert_array_equal(cue["pitch"], angle)
    washout.reset()
    cue = washout.process(motion_of(4000, sway=f, roll_rate=q))
    travel, angle = linear(f, -q, own.sway, own.roll, own.tilt)
    np.testing.assert_array_equal(cue["sway_displacement"], travel)
    np.testing.assert_array_equal(cue["roll"], -angle)
    assert np.abs(travel).max() > 0.01
    assert np.abs(angle).max() > 0.05


def test_without_adaptation_no_parameter_moves(rng):
    washout = designed("adaptation=0")
    at_rest = washout.parameters
    washout.process(rough_drive(rng, 3000))
    assert washout.parameters == at_rest


# ---- adaptation ------------------------------------------------------------------------------------------------------

MIXTURES = {
    "medium": ["preset=medium"],
    "fast, everything at work": [
        *("preset=small", "adaptation=0.3", "return_s=2", "tilt.rate_limit_deg_s=4", "pitch.tilt_deg=6"),
        *("surge.start=0.5", "surge.least=0.2", "sway.gain=-0.7", "roll.gain=0.6", "heave.limit_m_s2=3"),
        *("weights.speed=2", "weights.rate=0.7", "weights.travel=4", "yaw.limit_deg_s=15", "yaw.start=0.4"),
    ],
    "huge steps": ["preset=large", "adaptation=1000", "return_s=60", "tilt.rate_limit_deg_s=1000"],
}


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.check
def test_every_axis_at_once_agrees_with_the_slow_oracle(rng, mixture):
    own = adaptive(*MIXTURES[mixture])
    washout, oracle = cueing.design(own, RATE_HZ), Oracle(own, PERIOD)
    motion = rough_drive(rng, 1500)
    cue = washout.process(motion)
    rows = [oracle.step(row) for row in motion]
    for name in CHANNELS:
        right = np.array([row[name] for row in rows])
        assert np.abs(right).max() > 1e-3
        assert cue[name] == pytest.approx(right, abs=1e-8 * max(1.0, np.abs(right).max())), name
    start = designed(*MIXTURES[mixture]).parameters
    for name, value in washout.parameters.items():
        assert value == pytest.approx(oracle.parameters[name], rel=1e-7, abs=1e-9), name
    assert sum(abs(value - start[name]) > 1e-3 for name, value in washout.parameters.items()) >= 4


@pytest.mark.check
def test_no_step_of_the_descent_raises_the_cost_however_large(rng):
    """The oracle, which the kernel equals, compares the cost of frozen errors before and after each step."""
    oracle = Oracle(adaptive(*MIXTURES["huge steps"]), PERIOD)
    for row in rough_drive(rng, 1500):
        oracle.step(row)
    for part in (*oracle.pairs, oracle.heave, oracle.yaw):
        before, after = np.array(part.adapting.costs).T
        assert np.all(after <= before * (1 + 1e-12))
        assert np.mean(after < 0.999 * before) > 0.2


def cost(own, cue, f, q):
    """Return the cost of the longitudinal pair at each tick, from the cue alone."""
    angle = cue["pitch"]
    a = (cue["surge"] - G * np.sin(angle)) / np.cos(angle)
    omega = 2 * np.pi * own.surge.cutoff_hz
    half = np.tan(omega * PERIOD / 2) / omega
    v = np.concatenate([[0.0], np.cumsum(half * (a[1:] + a[:-1]))])
    errors = (
        own.weights.force * (f - G * angle - a) / 0.17,
        own.weights.rate * (q - cue["pitch_rate"]) / np.radians(3.6),
        own.weights.travel * cue["surge_displacement"] / own.surge.range_m,
        own.weights.speed * v / (own.surge.range_m * omega),
    )
    return 0.5 * sum(error**2 for error in errors)


@pytest.mark.parametrize(("name", "key"), [("surge", "surge.start"), ("pitch", "pitch.start"), ("pitch_cutoff_hz", "")])
def test_the_gradient_is_that_of_central_finite_differences(rng, name, key):
    n, small, base = (
        1500,
        1e-4,
        [*(f"{each[7:]}" for each in FREE), "surge.start=0.8", "pitch.start=0.8", "return_s=60"],
    )
    f, q = busy(rng, n, 2.0), busy(rng, n, 0.1)
    motion = motion_of(n, surge=f, pitch_rate=q)
    key = key or "pitch.cutoff_hz"
    start = designed(*base).parameters[name]
    keep = (1 - PERIOD / 60) ** np.arange(n)[::-1]

    def total(value):
        own = adaptive(*base, f"{key}={value!r}", "adaptation=0")
        return np.sum(keep * cost(own, cueing.design(own, RATE_HZ).process(motion), f, q))

    slope = (total(start + small) - total(start - small)) / (2 * small)
    own = adaptive(*base, "adaptation=1e-6")
    ratio = own.pitch.cutoff_ratio
    span = start * (ratio - 1 / ratio) if name == "pitch_cutoff_hz" else 1.0
    washout = cueing.design(own, RATE_HZ)
    washout.process(motion)
    assert washout.parameters[name] - start == pytest.approx(-1e-6 * PERIOD * span**2 * slope, rel=2e-3)
    assert abs(slope) > 1.0


def test_the_cost_of_a_drive_that_repeats_falls_from_round_to_round(rng):
    period = round(RATE_HZ)  # a second
    f = np.tile(2.0 * np.sin(2 * np.pi * np.arange(period) / period), 40)
    base = [*SLOW, "weights.travel=8", "adaptation=0.002", "return_s=60", *(each[7:] for each in FREE)]
    own = adaptive(*base)
    cue = cueing.design(own, RATE_HZ).process(motion_of(len(f), surge=f))
    rounds = cost(own, cue, f, np.zeros(len(f))).reshape(-1, period).mean(axis=1)[5:]  # after the start's transient
    assert np.all(np.diff(rounds[:20]) < 0.0)
    assert np.all(np.diff(rounds) < 1e-4 * rounds[0])  # the corner frequency has reached its bound
    assert rounds[-1] < 0.9 * rounds[0]


@pytest.mark.parametrize(("channel", "angle"), [("yaw_rate", "yaw"), ("roll_rate", "roll"), ("pitch_rate", "pitch")])
def test_the_end_of_a_pulse_turns_back_less_than_the_linear_washout(channel, angle):
    """Riedel (1977): a linear washout has an anomalous rate cue at the end of a pulse, an adaptive one does not."""
    pulse = np.where((np.arange(4000) > 300) & (np.arange(4000) < 1300), np.radians(10.0), 0.0)
    rates = {}
    for name, adaptation in (("linear", 0), ("adaptive", 0.05)):
        washout = designed(f"adaptation={adaptation}", "weights.travel=5", f"{angle}.cutoff_hz=0.1", f"{angle}.start=1")
        rates[name] = washout.process(motion_of(4000, **{channel: pulse}))[channel]
    for rate in rates.values():
        assert rate[301:330] == pytest.approx(np.radians(10.0), rel=0.25)  # the onset is there with both
    back = {name: -rate[1300:].min() for name, rate in rates.items()}
    assert back["linear"] > np.radians(3.0)
    assert back["adaptive"] < 0.8 * back["linear"]


def test_the_end_of_a_push_jerks_back_less_than_the_linear_washout():
    push = np.where((np.arange(4000) > 300) & (np.arange(4000) < 1000), 2.0, 0.0)
    travel, back = {}, {}
    for name, adaptation in (("linear", 0), ("adaptive", 0.05)):
        cue = designed(f"adaptation={adaptation}", *SLOW).process(motion_of(4000, surge=push))
        travel[name], back[name] = np.abs(cue["surge_displacement"]).max(), -cue["surge"][1000:].min()
        assert cue["surge"][301:310] == pytest.approx(2.0, rel=0.15)
    assert back["adaptive"] < 0.9 * back["linear"]
    assert travel["adaptive"] < 0.9 * travel["linear"]


# ---- stability -------------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-100, 100) | st.sampled_from([0.0, 1e6, -1e300, math.nan, math.inf, -math.inf])
ROWS = st.lists(st.lists(NUMBERS, min_size=9, max_size=9), min_size=1, max_size=12)
HZ, SHARES = st.floats(0.1, 8.0), st.lists(st.floats(0, 2), min_size=3, max_size=3).map(sorted)


@st.composite
def any_settings(draw):
    """Return overrides: any allowed value, but nothing slower than 0.1 Hz, so that rest is not far."""
    keys = {
        "adaptation": st.floats(0, 1000),
        "return_s": st.floats(0.1, 20),
        "tilt.rate_limit_deg_s": st.floats(1, 1000),
        "tilt.smooth_hz": HZ,
    }
    for name in ("force", "rate", "travel", "speed"):
        keys[f"weights.{name}"] = st.floats(0, 100)
    for name in ("surge", "sway", "heave"):
        keys |= {
            f"{name}.cutoff_hz": HZ,
            f"{name}.damping": st.floats(0.1, 10) if name == "surge" else st.floats(0.5, 2),
        }
        keys |= {f"{name}.range_m": st.floats(0.001, 100), f"{name}.limit_m_s2": st.floats(0.1, 100)}
    for name in ("roll", "pitch"):
        keys |= {
            f"{name}.cutoff_hz": HZ,
            f"{name}.cutoff_ratio": st.floats(1, 3),
            f"{name}.tilt_deg": st.floats(0.1, 60),
        }
    keys |= {"yaw.cutoff_hz": HZ, "yaw.range_deg": st.floats(0.1, 180), "heave.break_hz": HZ}
    values = {key: draw(values) for key, values in keys.items()}
    for name in AXES:
        least, start, most = draw(SHARES)
        values |= {f"{name}.least": least, f"{name}.start": start, f"{name}.most": most}
        values[f"{name}.gain"] = draw(st.floats(-10, 10))
    return [f"{key}={float(value)!r}" for key, value in values.items()]


def bounds_of(own):
    """Return least and most of every parameter."""
    out = {
        name: (getattr(own, name).least, getattr(own, name).most)
        for name in ("surge", "sway", "heave", "roll", "pitch", "yaw")
    }
    for name in ("roll", "pitch"):
        axis = getattr(own, name)
        out[f"{name}_cutoff_hz"] = axis.cutoff_hz / axis.cutoff_ratio, axis.cutoff_hz * axis.cutoff_ratio
    return out


@pytest.mark.search
@settings(max_examples=100, deadline=None)
@given(overrides=any_settings(), rows=ROWS, repeat=st.integers(1, 400))
def test_any_input_and_settings_keep_parameters_in_bounds_and_come_to_rest(overrides, rows, repeat):
    own = adaptive(*overrides)
    washout = cueing.design(own, RATE_HZ)
    start, bounds = washout.parameters, bounds_of(own)
    motion = np.zeros(len(rows), MOTION_DTYPE)
    for channel, values in zip(MOTION_DTYPE.names[:9], np.array(rows).T, strict=True):
        motion[channel] = values
    for _ in range(2):
        for row in motion:
            cue = washout.process(np.repeat(row, repeat))
            assert all(
                np.isfinite(cue[name]).all() for name in CUE_DTYPE.names if name not in ("speed", "engine_speed")
            )
            for name, value in washout.parameters.items():
                least, most = bounds[name]
                assert least - 1e-9 <= value <= most * (1 + 1e-12) + 1e-9, name
    for _ in range(9):
        cue = washout.process(np.zeros(100_000, MOTION_DTYPE))
    for name in CHANNELS:
        assert abs(cue[name][-1]) < 1e-6, name
    assert washout.parameters == pytest.approx(start, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("adaptation", [0.02, 1000])
def test_no_parameter_crosses_its_range_in_less_than_a_fifth_of_a_second(rng, adaptation):
    own = adaptive(f"adaptation={adaptation}")
    washout, bounds = cueing.design(own, RATE_HZ), bounds_of(own)
    values = [[washout.parameters[name] for name in bounds]]
    for row in rough_drive(rng, 1500):
        washout.process(np.array([row]))
        values.append([washout.parameters[name] for name in bounds])
    spans = np.array([most - least for least, most in bounds.values()])
    quickest = np.abs(np.diff(values, axis=0)).max(axis=0) / spans
    assert (quickest <= PERIOD / 0.2 * (1 + 1e-9)).all()
    assert adaptation < 1 or quickest.max() > 0.99 * PERIOD / 0.2


@pytest.mark.parametrize("preset", PRESETS)
def test_a_car_that_rolls_over_is_no_jolt(preset):
    """It turns at 4 rad/s, of which the share takes up 5 a second: 20 rad/s^2 from tick to tick, and the car's own 1.8.

    The corner frequency changes as well; with these presets it has less to work on.
    """
    time = np.arange(round(6 * RATE_HZ)) / RATE_HZ
    rate = pulse(time, 2.0, 2.0 + 2 * np.pi / 4.0 + 0.2, 4.0, 0.2)
    bend = pulse(time, 0.5, 1.7, 8.0)
    roll = np.cumsum(rate) * PERIOD
    over = motion_of(len(time), sway=bend, roll=(roll + np.pi) % (2 * np.pi) - np.pi, roll_rate=rate)
    own = motioncue.load_profile("ccd-dk", "cueing.algorithm=adaptive", f"cueing.preset={preset}").cueing
    cue = cueing.design(own, RATE_HZ).process(over)
    steps = np.abs(np.diff(cue["roll"], 3)) * RATE_HZ**2
    assert steps.max() < 20.0 + 1.8
    assert np.abs(cue["roll"]).max() > 0.3


def test_a_sustained_force_becomes_tilt_and_the_travel_returns():
    cue = designed("pitch.tilt_deg=25").process(motion_of(round(60 * RATE_HZ), surge=2.0))
    assert cue["surge_displacement"].max() > 0.02
    assert abs(cue["surge_displacement"][-1]) < 1e-3
    assert cue["pitch"][-1] == pytest.approx(2.0 / G, rel=1e-3)


def test_a_car_on_a_slope_is_level_with_the_platform_and_nothing_travels():
    """Turning up and gravity together are a rotation: travel is much smaller than what the force alone would take."""
    n = round(20 * RATE_HZ)
    angle = np.clip(np.arange(n) / RATE_HZ - 2.0, 0.0, 1.0) * np.radians(5.0)
    slope = motion_of(n, pitch=angle, pitch_rate=np.gradient(angle) * RATE_HZ)
    fixed = ("adaptation=0", "pitch.start=1", "tilt.smooth_hz=10", "tilt.rate_limit_deg_s=1000")
    both = designed(*fixed).process(slope)
    slope["pitch_rate"] = 0.0
    alone = designed(*fixed).process(slope)
    assert both["pitch"][-1] == pytest.approx(np.radians(5.0), rel=0.01)
    assert np.abs(both["surge_displacement"]).max() < 0.05 * np.abs(alone["surge_displacement"]).max()


def test_parameters_go_on_when_settings_change_and_return_when_adaptation_is_switched_off(rng):
    one, other = designed("adaptation=0.1"), designed("adaptation=0")
    assert one.continues(other)
    free = [
        f"limits.{name}=none"
        for name in ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate")
    ]
    of = ("ccd-dk", *free, "cueing.algorithm=adaptive", "cueing.preset=medium", "cueing.adaptation=0.1")
    stepper, motion = motioncue.bind(motioncue.load_profile(*of)), motion_of(3000, surge=busy(rng, 3000, 2.0))
    motion["sway"] = busy(rng, 3000, 2.0)
    stepped(stepper, motion[:1000])
    stepper.retune("cueing.sway.gain=0.4")
    sent, old = stepped(stepper, motion[1000:]), motioncue.cue(motioncue.load_profile(*of), motion)[1000:]
    assert_same_bits(sent["surge_displacement"], old["surge_displacement"])
    assert np.abs(sent["sway_displacement"] - old["sway_displacement"]).max() > 1e-3


# ---- many rigs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", interfaces.machines())
def test_rigs_side_by_side_give_the_bits_of_each_alone_on_every_machine(rng, machine):
    kinds = [adaptive(*mixture) for mixture in MIXTURES.values()]
    motion = np.stack([rough_drive(rng, 300) for _ in range(11)], axis=1)
    interfaces.choose_machine(machine)
    try:
        together = Batch([cueing.design(kinds[i % len(kinds)], RATE_HZ) for i in range(11)]).process(motion)
    finally:
        interfaces.choose_machine(interfaces.machines()[0])
    for i in range(11):
        alone = cueing.design(kinds[i % len(kinds)], RATE_HZ).process(np.ascontiguousarray(motion[:, i]))
        assert_same_bits(np.ascontiguousarray(together[:, i]), alone)


# ---- settings --------------------------------------------------------------------------------------------------------


def test_auto_takes_the_ranges_of_the_platform_and_one_that_does_not_move_has_no_share():
    boxed = motioncue.load_profile("ccd-dk", "cueing.algorithm=adaptive", "platform.preset=box-small").cueing
    assert boxed.preset == "auto"
    assert boxed.surge.range_m == pytest.approx(0.95 * 0.15, rel=5e-3)
    assert (2 * np.pi * boxed.surge.cutoff_hz) ** 2 == pytest.approx(4.0 / boxed.surge.range_m)
    assert boxed.roll.tilt_deg == pytest.approx(0.95 * 12.0, rel=5e-3)
    assert boxed.yaw.range_deg == pytest.approx(0.95 * 12.0, rel=5e-3)
    assert boxed.sway.most == 1.0
    own = motioncue.load_profile(
        "ccd-dk", "cueing.algorithm=adaptive", "platform.preset=posts-3", "cueing.pitch.tilt_deg=5"
    ).cueing
    assert (own.surge.most, own.sway.most, own.heave.most) == (0.0, 0.0, 1.0)
    assert own.pitch.tilt_deg == 5.0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("surge.start=1.5", r"cueing\.surge\.start: found 1\.5, allowed is surge\.least to surge\.most, 0 to 1"),
        ("yaw.least=1.5", r"cueing\.yaw\.start: found .* allowed is yaw\.least to yaw\.most, 1\.5 to"),
        ("adaptation=-1", r"cueing\.adaptation: found -1"),
        ("surge.range_m=0", r"cueing\.surge\.range_m: found 0"),
        ("surge.cutoff_hz=1e-300", r"cueing\.surge\.cutoff_hz: found 1e-300"),  # its weight of speed would be infinite
    ],
)
def test_what_is_not_possible_is_refused_by_name(override, message):
    with pytest.raises(ConfigError, match=message):
        designed(override)


@pytest.mark.parametrize(
    ("override", "rate_hz", "message"),
    [
        (
            "surge.cutoff_hz=6",
            10.0,
            r"cueing\.surge\.cutoff_hz: found 6 Hz, allowed is below 5 Hz at 10 ticks a second",
        ),
        ("heave.break_hz=6", 10.0, r"cueing\.heave\.break_hz: found 6 Hz, allowed is below 5 Hz"),
        ("pitch.cutoff_hz=4", 20.0, r"cueing\.pitch\.cutoff_hz: found 4 Hz, allowed is below 2\.546 Hz"),
        ("yaw.cutoff_hz=7", 20.0, r"cueing\.yaw\.cutoff_hz: found 7 Hz, allowed is below 6\.366 Hz"),
    ],
)
def test_a_frequency_too_high_for_the_rate_is_refused(override, rate_hz, message):
    with pytest.raises(ConfigError, match=message):
        cueing.design(adaptive(override), rate_hz)


def test_what_adapts_has_no_closed_form():
    with pytest.raises(ConfigError, match=r"cueing\.adaptation: found .* allowed is 0 for a closed form"):
        cueing.theory(adaptive("adaptation=0.1"), "surge", np.array([1j]))
