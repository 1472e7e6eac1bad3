"""The bounds that every profile has unless it says otherwise: honest drives pass, whatever else comes keeps them."""

import math
import tomllib

import numpy as np
import pytest
from helpers import BASE, eventually, nowhere, stream_url
from limits_rig import (
    PERIOD,
    PROFILES,
    WASHOUT,
    attitude,
    packages_for,
    packages_of,
    played,
    profile_of,
    profiles,
    tumbling,
    unwatched,
)
from same_bits import assert_same_bits
from trouble_helpers import MOVERS, broken

import motioncue
from motioncue.cli.terminal import engine_rows
from motioncue.errors import ConfigError
from motioncue.profile.profile import Limits, builtin_profiles, parse_profile, profile_text

pytestmark = pytest.mark.search

DT = PERIOD * 1e-9
FIVE = ("surge", "sway", "heave", "roll", "pitch")


# ---- what the defaults are -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", builtin_profiles())
def test_every_built_in_profile_has_the_default_bounds_and_repeats_none(name):
    text = profile_text(name)
    assert "limits" not in tomllib.loads(text)  # what equals a default is not written
    assert parse_profile(text).limits == Limits()


def test_every_built_in_profile_is_tested_here():
    assert sorted(name for _, name in profiles()) == builtin_profiles()


def test_a_profile_that_says_nothing_has_the_default_bounds():
    profile = parse_profile(BASE)
    assert profile.limits == Limits()
    assert list(profile.bounds()) == MOVERS


@pytest.mark.parametrize("channel", FIVE)
def test_value_rate_and_acceleration_are_bounded_and_no_angle_reaches_half_a_turn(channel):
    value, rate, acceleration, _ = parse_profile(BASE).bounds()[channel]
    assert rate * DT < 2 * value  # or it would bound nothing
    assert acceleration * DT**2 < 2 * rate * DT
    if channel in ("roll", "pitch"):
        assert value < math.pi


def test_one_bound_of_ones_own_leaves_the_others_at_their_defaults():
    before = parse_profile(BASE).bounds()
    after = parse_profile(BASE, overrides=["limits.heave.value_m_s2=4", "limits.yaw.rate_deg_s=90"]).bounds()
    assert after.pop("heave") == [4.0, *before.pop("heave")[1:]]
    assert after.pop("yaw") == [math.pi, math.pi / 2, *before.pop("yaw")[2:]]
    assert after == before


# ---- who wants raw ---------------------------------------------------------------------------------------------------


def test_none_in_place_of_the_table_frees_every_channel():
    assert parse_profile(f'limits = "none"\n{BASE}').bounds() == {}
    for name in builtin_profiles():
        assert motioncue.load_profile(name, "limits=none").bounds() == {}


def test_none_in_place_of_a_channels_table_frees_that_channel():
    profile = parse_profile(BASE, overrides=["limits.surge=none"])
    assert list(profile.bounds()) == MOVERS[1:]
    assert profile.limits.sway == Limits().sway


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("limits=nun", "limits: found 'nun', allowed is a table or 'none'"),
        ("limits=3", "limits: found 3, allowed is a table or 'none'"),
        ("limits.surge=off", "limits.surge: found 'off', allowed is a table or 'none'"),
        ("limits.surge.value_m_s2=none", "limits.surge.value_m_s2: found 'none', allowed is a number above 0"),
        ("limits.roll.value_m_s2=3", "limits.roll.value_m_s2: unknown key, allowed are acceleration_deg_s2"),
        ("limits.srge=none", "limits.srge: unknown key, allowed are heave"),
    ],
)
def test_limits_that_are_neither_a_table_nor_none_are_refused(override, message):
    with pytest.raises(ConfigError, match=f"^profile: {message}"):
        parse_profile(BASE, overrides=[override])


@pytest.mark.parametrize("bridge", ["hold", "linear", "predict"])
def test_without_limits_the_bridges_output_is_sent_bit_for_bit(bridge):
    profile = profile_of("city-car-driving", f"source.bridge={bridge}", "limits=none")
    pipeline = played(profile, packages_of("city-car-driving", "brake"))
    stats, trace = pipeline.stats(), pipeline.emitter.trace
    assert stats["limits"] == "none"
    assert stats["limited"] == {}
    whole = trace[trace["weight"] == 1.0]
    assert len(whole) > 5000
    for name in MOVERS[:9]:
        assert_same_bits(whole["cue"][name], whole["motion"][name], name)


def test_statistics_say_what_is_bounded():
    profile = profile_of("beamng", "limits.yaw=none")
    pipeline = played(profile, [])
    assert pipeline.stats()["limits"] == profile.bounds()
    assert list(pipeline.stats()["limited"]) == [name for name in MOVERS if name != "yaw"]


def alone(folder):
    """Return endpoints of one test alone."""
    urls = {"source.endpoint": stream_url("tcp", folder), "output.motion": nowhere(), "output.gauges": nowhere()}
    return [f"{key}={url}" for key, url in urls.items()]


@pytest.mark.rt
@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ((), None),
        (("limits=none",), 'bounds off: limits = "none": nothing bounds what the platform is asked to do'),
        (
            ("limits.yaw=none", "limits.yaw_rate=none"),
            'bounds off: limits.yaw = "none": yaw is not bounded; limits.yaw_rate = "none": yaw rate is not bounded',
        ),
    ],
)
def test_a_run_says_what_is_not_bounded(tmp_path, caplog, overrides, said):
    profile = profile_of("city-car-driving", *alone(tmp_path), *overrides)
    with caplog.at_level("INFO", "motioncue"), motioncue.Engine(profile) as engine:
        pass
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("bounds off")]
    assert lines == ([] if said is None else [said])
    limited = dict(engine_rows({"duration_s": 1.0, **engine.stats()}))["limited"]
    assert limited == ("nothing is bounded" if profile.limits == "none" else "0")


@pytest.mark.rt
def test_a_run_that_is_freed_says_so_at_once(tmp_path, caplog):
    profile = profile_of("city-car-driving", *alone(tmp_path))
    with caplog.at_level("INFO", "motioncue"), motioncue.Engine(profile) as engine:
        engine.retune("limits=none")
        eventually(lambda: any("nothing bounds" in record.getMessage() for record in caplog.records))
        assert engine.stats()["limits"] == "none"


# ---- honest drives pass ----------------------------------------------------------------------------------------------

ROWS = [
    *((system, drive, None) for system in PROFILES for drive in ("tour", "turns", "brake", "still")),
    *((system, drive, rate_hz) for system in PROFILES for drive in ("tour", "turns") for rate_hz in (30.0, 100.0)),
    ("city-car-driving", "sample", None),
]


@pytest.mark.parametrize(("system", "drive", "rate_hz"), ROWS)
def test_an_honest_drive_is_limited_in_no_more_than_one_tick_of_a_thousand(system, drive, rate_hz):
    packages = packages_of(system, drive, rate_hz)
    # Each packet of Simulink's counts one step, whose length only the profile knows.
    step = (f"source.options.simulink_time_s={1 / rate_hz}",) if system == "beamng-simulink" and rate_hz else ()
    for bridge in ("hold", "linear", "predict"):
        for overrides in ((), (WASHOUT,)):
            profile = profile_of(system, f"source.bridge={bridge}", *step, *overrides)
            pipeline = played(profile, packages)
            stats, trace = pipeline.stats(), pipeline.emitter.trace
            shares = {name: share for name, share in stats["limited"].items() if share}
            cueing = "washout" if overrides else "direct"
            at = "" if rate_hz is None else f" {rate_hz:g} Hz"
            listed = ", ".join(f"{name} {100 * share:.3f} %" for name, share in shares.items())
            print(f"{system:20} {drive}{at:10} {bridge:8} {cueing:8} limited: {listed or 'never'}")
            assert stats["events"] == {}
            assert (trace["weight"] == 1.0).mean() > 0.5
            assert max(stats["limited"].values()) <= 0.001
            assert broken(trace["cue"], profile.bounds(), DT) == []


@pytest.mark.slow
@pytest.mark.parametrize("bridge", ["predict", "linear", "hold"])
def test_the_smaller_the_rate_the_more_of_the_real_drive_is_limited(bridge):
    """Surge, sway and heave at other rates, the acceleration 240 times as much; `pytest -s` prints the worst."""
    shares = []
    for rate in (2500, 1500, 1000, 600, 300):
        bounds = f"rate_m_s3 = {rate}, acceleration_m_s4 = {240 * rate}"
        values = {"surge": 25, "sway": 25, "heave": 30}
        overrides = [f"limits.{name}={{ value_m_s2 = {value}, {bounds} }}" for name, value in values.items()]
        profile = profile_of("city-car-driving", f"source.bridge={bridge}", *overrides)
        limited = played(profile, packages_of("city-car-driving", "sample")).stats()["limited"]
        shares.append(max(limited[name] for name in values))
    print(f"\n| `{bridge}` | " + " | ".join(f"{100 * share:.2g} %" if share else "0" for share in shares), end=" |")
    assert shares == sorted(shares)
    assert shares[0 if bridge == "hold" else 2] <= 0.001


# ---- whatever else comes ---------------------------------------------------------------------------------------------

HUGE = 79.0  # [m/s^2], just within what the watch believes


def hostile(pattern, seconds=6.0, rate_hz=60.0):
    """Return states of a car that stands still and claims the rest."""
    states = tumbling("roll", 0.0, seconds, rate_hz, heading=0.0)
    states["velocity"] = states["position"] = 0.0
    n, rng = len(states), np.random.default_rng(4)
    sign = (-1.0) ** np.arange(n)
    on = (states["time"] > 1.5)[:, None]
    if pattern == "surge flips":
        states["acceleration"] = on * np.stack([HUGE * sign, 0 * sign, 0 * sign], axis=1)
    elif pattern == "all flip at random":
        states["acceleration"] = on * rng.choice([-HUGE, HUGE], (n, 3)) / math.sqrt(3)
    elif pattern == "pushes on and on":
        states["acceleration"] = on * np.array([HUGE, 0.0, 0.0])
    elif pattern == "turns without turning":
        states["angular_velocity"] = on * np.array([0.0, 10.4, 0.0])
    else:
        states["orientation"] = np.where(on & (sign > 0)[:, None], [0.0, 0.6, 0.8, 0.0], [1.0, 0.0, 0.0, 0.0])
    return states


PATTERNS = ["surge flips", "all flip at random", "pushes on and on", "turns without turning", "attitude flips"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("load", [motioncue.load_profile, unwatched])
@pytest.mark.parametrize(("system", "name"), profiles())
def test_implausible_motion_keeps_the_bounds_of_every_built_in_profile(system, name, load, pattern):
    packages = packages_for(system, hostile(pattern))
    for bridge in ("hold", "predict"):
        profile = load(name, f"source.bridge={bridge}")
        cues = played(profile, packages).emitter.trace["cue"]
        assert broken(cues, profile.bounds(), DT) == []


@pytest.mark.parametrize("name", PROFILES["city-car-driving"][:2])
def test_flips_of_79_m_s2_are_94_a_packet_without_bounds_and_no_more_than_the_rate_with_them(name):
    packages = packages_for("city-car-driving", hostile("surge flips"))
    gain = 0.6 if name == "ccd-dk-classical" else 1.0  # the preset's
    bounded, free = (
        played(unwatched(name, "source.bridge=hold", *limits), packages).emitter.trace["cue"]["surge"]
        for limits in ((), ("limits=none",))
    )
    assert np.abs(np.diff(free)).max() == pytest.approx(2 * HUGE * gain, rel=0.02)
    assert 5.0 < np.abs(np.diff(bounded)).max() <= 2500 * DT * (1 + 1e-9)


def test_a_rate_without_an_attitude_does_not_wind_a_washout_up_beyond_its_bounds():
    packages = packages_for("city-car-driving", hostile("turns without turning", 20.0))
    free = played(unwatched("ccd-dk-classical", "limits=none"), packages).emitter.trace["cue"]
    cues = played(unwatched("ccd-dk-classical"), packages, tail_s=4.0).emitter.trace["cue"]
    assert np.degrees(np.abs(free["pitch"]).max()) > 150.0
    assert np.degrees(np.abs(cues["pitch"]).max()) <= 60.0
    assert not any(cues[name][-1] for name in MOVERS)  # and it comes back


def test_no_waveform_within_the_bound_of_heave_loads_a_spine_with_more_than_half_of_what_is_allowed():
    """The Dynamic Response Index: x'' + 2 z w x' + w^2 x = a, w^2 max|x| / g; 17.7 are allowed (STANAG 4569)."""
    w, z, value = 52.9, 0.224, parse_profile(BASE).bounds()["heave"][0]
    t = np.arange(0.0, 2.0, 1e-5)
    damped = w * math.sqrt(1 - z * z)
    response = w * w * np.exp(-z * w * t) * np.sin(damped * t) / damped
    worst = value / 9.80665 * np.abs(response).sum() * 1e-5  # the input changes its sign as the response, backwards
    assert worst == pytest.approx(value / 9.80665 / math.tanh(math.pi * z / (2 * math.sqrt(1 - z * z))), rel=1e-3)
    assert worst <= 17.7 / 2


# ---- all the way round -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [math.pi / 2, 5.0])
@pytest.mark.parametrize("axis", ["roll", "pitch"])
@pytest.mark.parametrize(("system", "name"), profiles())
def test_a_car_that_rolls_over_or_tumbles_makes_no_angle_jump(system, name, axis, rate):
    packages = packages_for(system, tumbling(axis, rate))
    for bridge in ("hold", "linear", "predict"):
        profile = unwatched(name, f"source.bridge={bridge}")
        trace = played(profile, packages).emitter.trace
        assert broken(trace["cue"], profile.bounds(), DT) == []
        for angle in ("roll", "pitch"):
            assert np.abs(np.degrees(trace["cue"][angle])).max() <= 60.0


def sent_over(axis, lean=0.0):
    """Return what is sent of a car that turns all the way round at 90 deg/s, and the car's own roll and pitch."""
    states = tumbling(axis, math.pi / 2, rate_hz=100.0, lean=lean)
    profile = motioncue.load_profile("ccd-dk", "source.bridge=hold")
    pipeline = played(profile, packages_for("city-car-driving", states))
    assert pipeline.stats()["events"] == {}
    trace = pipeline.emitter.trace
    trace = trace[(trace["weight"] == 1.0) & (trace["motion"]["frame_time"] > 0)]
    row = np.round(trace["motion"]["frame_time"] * 100).astype(int) - 1
    return trace["cue"], *(angle[row] for angle in attitude(states)[:2])


def test_beyond_a_right_angle_a_roll_is_sent_as_the_lean_with_the_same_sideways_pull():
    cue, roll, _ = sent_over("roll")
    assert np.abs(roll).max() > 3.0
    lean = np.arcsin(np.sin(roll))
    inside = np.abs(lean) < np.radians(55)
    # Each frame's step of 0.9 degrees is taken at the largest rate at most, within two packets.
    assert np.abs(cue["roll"][inside] - lean[inside]).max() <= np.radians(1.9)
    assert np.degrees(np.abs(cue["roll"][~inside])).min() > 50.0
    assert (np.sign(cue["roll"]) == np.sign(lean))[np.abs(lean) > 0.05].all()
    assert np.abs(np.diff(cue["roll"])).max() <= np.radians(300) * DT


def test_a_car_that_lies_on_its_roof_is_at_rest_level_and_its_fade_moves_nothing():
    states = tumbling("roll", 0.0, 6.0)
    states["orientation"] = [0.0, 1.0, 0.0, 0.0]
    states["velocity"] = states["position"] = 0.0
    trace = played(profile_of("city-car-driving"), packages_for("city-car-driving", states), tail_s=3.0).emitter.trace
    assert np.abs(trace["motion"]["roll"][1000]) == pytest.approx(math.pi)
    assert np.abs(trace["cue"]["roll"]).max() < 1e-6


def test_end_over_end_roll_and_pitch_follow_the_body_through_the_vertical():
    cue, roll, pitch = sent_over("pitch", lean=0.02)
    assert np.abs(pitch).max() > 1.5
    assert np.abs(np.diff(roll)).max() > 0.5  # roll turns over as the nose passes the vertical
    bounded = np.clip(pitch, -np.radians(60), np.radians(60))
    assert np.abs(cue["pitch"] - bounded).max() <= np.radians(1.9)
    level = np.abs(pitch) < np.radians(70)
    assert np.degrees(np.abs(cue["roll"][level])).max() < 10.0
