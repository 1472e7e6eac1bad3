"""Which bounds are off, and which are in force, in words: at the start of a run, in its log, in the terminal."""

import pytest
from helpers import eventually, nowhere

import motioncue
from motioncue.cli.watch import EngineView
from motioncue.profile.explain import FAR, bounds_in_force, bounds_off, inverted
from motioncue.profile.profile import builtin_profiles, overridden
from motioncue.safety.settings import Limits

PROFILE = motioncue.load_profile("program-dk", f"output.motion={nowhere()}", f"output.gauges={nowhere()}")


@pytest.mark.parametrize("name", builtin_profiles())
def test_in_a_built_in_profile_no_bound_is_off_and_the_bounds_take_few_lines(name):
    profile = motioncue.load_profile(name)
    assert bounds_off(profile) == []
    assert len(bounds_in_force(profile)) <= 3


@pytest.mark.parametrize("channel", Limits.__struct_fields__)
def test_each_channel_that_is_free_is_named(channel):
    (line,) = bounds_off(overridden(PROFILE, [f"limits.{channel}=none"]))
    assert line.startswith(f'limits.{channel} = "none": ')
    assert line.endswith("is not bounded")


def test_all_limits_off_is_one_line():
    assert len(bounds_off(overridden(PROFILE, ["limits=none"]))) == 1


@pytest.mark.parametrize("key", ["limits.pitch.value_deg", "limits.surge.rate_m_s3", "watch.max_acceleration_m_s2"])
def test_a_bound_far_beyond_its_default_counts_as_off(key):
    table, name = key.rpartition(".")[::2]
    held = PROFILE
    for step in table.split("."):
        held = getattr(held, step)
    default = getattr(held, name)
    assert bounds_off(overridden(PROFILE, [f"{key}={0.9 * FAR * default}"])) == []
    (line,) = bounds_off(overridden(PROFILE, [f"{key}={FAR * default}"]))
    assert line.startswith(f"{key} = ")


def test_a_rate_that_is_left_out_is_off_and_one_without_a_default_is_not():
    assert bounds_off(overridden(PROFILE, {"limits.surge.rate_m_s3": None})) != []
    assert PROFILE.limits.surge.jerk_m_s5 is None


def test_what_differs_from_the_defaults_is_said_with_the_platforms_bounds():
    sets = ["platform.preset=seat-2", "cueing.algorithm=classical", "supervisor.fade_s=0.5", "limits.yaw=none"]
    text = "\n".join(bounds_in_force(motioncue.load_profile("program-dk", *sets, "watch.frozen_s=2")))
    for words in ("supervisor: fade_s 0.5; the rest as by default", "limits: yaw none", "watch: frozen_s 2"):
        assert words in text
    assert "platform: post -0.05 to +0.05 m, 0.25 m/s, 5 m/s²" in text
    assert "as by default; no [platform] bounds actuators" in bounds_in_force(PROFILE)[0]


@pytest.mark.parametrize("key", ["surge.gain", "yaw.gain", "tilt.sway_gain", "texture.heave_gain"])
def test_a_gain_that_turns_a_sense_round_is_named(key):
    profile = motioncue.load_profile("ccd-dk-classical", f"cueing.{key}=-0.5")
    assert inverted(profile) == [f"cueing.{key} = -0.5"]
    assert inverted(overridden(profile, [f"cueing.{key}=0.5"])) == []


@pytest.mark.rt
def test_a_run_says_which_senses_are_inverted_at_the_start_and_when_one_becomes_so(caplog):
    key = "cueing.surge.gain"
    with motioncue.Engine(overridden(PROFILE, ["cueing.algorithm=classical", f"{key}=-1"])) as engine:
        assert [each for each in caplog.messages if "inverted" in each and f"{key} = -1" in each]
        engine.retune([f"{key}=1", "cueing.pitch.gain=-0.3"])
        eventually(lambda: any("inverted" in each and "cueing.pitch.gain = -0.3" in each for each in caplog.messages))


@pytest.mark.rt
def test_a_run_says_its_bounds_at_the_start_and_shows_a_band_while_one_is_off(caplog):
    with caplog.at_level("INFO", "motioncue"), motioncue.Engine(PROFILE) as engine:
        lines = [record.getMessage() for record in caplog.records]
        assert [line for line in lines if line.startswith("bounds in force: ")] == bounds_in_force(PROFILE)
        shown = EngineView(engine, "title", None, [])
        assert shown(1.0).off == []
        engine.retune("limits.yaw=none")
        eventually(lambda: shown(2.0).off == ['limits.yaw = "none": yaw is not bounded'])
        eventually(lambda: any(record.getMessage().startswith("bounds off: limits.yaw") for record in caplog.records))
        engine.retune({"limits": {}})
