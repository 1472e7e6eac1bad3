"""Settings that are not numbers, and those in lists: on the page, undone, compared, saved; what is fixed says why."""

import itertools
import re

import pytest

import motioncue
from motioncue.cueing.classical.settings import PRESETS, Scaling
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.engine import Engine
from motioncue.engine.pipeline import Tuner, fixed_because, refuse_fixed
from motioncue.errors import ConfigError
from motioncue.platforms.settings import platform_presets
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.profile.reference import controls, item_of, values_of, with_item
from motioncue.profile.tables import changed_text
from motioncue.view.editor import Editor

PROFILE = "ccd-dk-classical"
ROUND = itertools.count()


def desk_of(tmp_path=None, *overrides):
    """Return a desk of an engine that does not run."""
    engine = Engine(motioncue.load_profile(PROFILE, *overrides))
    desk = Editor(engine, profile_text(PROFILE), tmp_path)
    desk.engine = engine
    return desk


def put(desk, key, value):
    desk.set(key, value, (next(ROUND),), sure=True)
    return desk.engine.requested


def as_sent(value):
    """Return a value as a page sends it."""
    if isinstance(value, tuple):
        return list(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_each_setting_of_each_algorithm_can_be_set_to_what_it_is(algorithm):
    try:
        desk = desk_of(None, f"cueing.algorithm={algorithm}")
    except ConfigError as error:
        pytest.skip(str(error))  # the library of an extra is missing
    before = desk.engine.requested
    for key, value in desk.state()["values"].items():
        if key.startswith("cueing."):
            assert put(desk, key, as_sent(value)) == before, key


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@pytest.mark.check
def test_each_number_that_may_be_left_out_can_be_given_a_value_and_be_left_out_again(algorithm):
    try:
        desk = desk_of(None, f"cueing.algorithm={algorithm}", "platform.preset=hexapod-simona")
    except ConfigError:  # the library of an extra is missing, or a cue without a pose
        desk = desk_of(None, "cueing.algorithm=direct")
    before, fixed, values = desk.engine.requested, desk.fixed(), desk.state()["values"]
    parameters = {control.key: control for control in desk.parameters()}
    left_out = [control for control in parameters.values() if control.start is not None and control.key not in fixed]
    assert len(left_out) > 10
    for control in left_out:
        if values[control.key] is not None:
            continue
        assert control.optional
        assert not control.follows or parameters[control.follows].kind == "number"
        put(desk, control.key, control.start)
        assert desk.state()["values"][control.key] == control.start
        assert put(desk, control.key, None) == before


def test_bounds_on_derivatives_begin_far_from_where_they_act():
    # The bound before is reached in 1/24 of the time of the one before that; the next in a tenth of as much again.
    desk = desk_of()
    limits = {control.key: control.start for control in desk.parameters()}
    assert limits["limits.surge.jerk_m_s5"] == pytest.approx(600_000 * 10 * 600_000 / 2500)
    assert limits["limits.yaw_rate.jerk_deg_s4"] == pytest.approx(10 * (10 * 30_000**2 / 300) ** 2 / 30_000)


def test_what_has_a_default_cannot_be_left_out_because_no_file_could_say_so(tmp_path):
    # Without the key, a profile has the default.
    desk = desk_of(tmp_path)
    control = next(control for control in desk.parameters() if control.key == "limits.surge.rate_m_s3")
    assert not control.optional
    with pytest.raises(ConfigError, match=re.escape("limits.surge.rate_m_s3: found None, allowed is a number")):
        put(desk, "limits.surge.rate_m_s3", None)


@pytest.mark.parametrize("platform", sorted(platform_presets()))
@pytest.mark.check
def test_each_setting_of_each_platform_can_be_set_to_what_it_is_or_is_fixed(platform):
    desk = desk_of(None, f"platform.preset={platform}")
    before, fixed = desk.engine.requested, desk.fixed()
    assert "platform.preset" in fixed
    for key, value in desk.state()["values"].items():
        if key in fixed:
            with pytest.raises(ConfigError, match=re.escape(f"{key}: fixed while it runs, {fixed[key]}")):
                put(desk, key, as_sent(value))
        elif key.startswith(("platform.", "source.", "supervisor.")):
            assert put(desk, key, as_sent(value)) == before, key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cueing.turned_by", "platform"),
        ("cueing.tilt.law", "linear"),
        ("platform.park", "neutral"),
        ("platform.gives_way", ["tilt", "yaw", "heave", "travel"]),
        ("source.bridge", "linear"),
        ("source.head_m[2]", 0.5),
        ("platform.leg.max_m", 3.3),
        ("cueing.texture", True),
        ("cueing.surge.scaling", True),
    ],
)
def test_a_setting_is_set_undone_compared_and_saved(tmp_path, key, value):
    pytest.importorskip("tomlkit")
    desk = desk_of(tmp_path, "platform.preset=hexapod-simona")
    begin = desk.engine.requested
    desk.swap()
    after = put(desk, key, value)
    assert after != begin
    shown = desk.state()["values"][key]
    assert (list(shown) if isinstance(shown, tuple) else shown) == value
    assert any(changed.startswith(key) for changed in desk.state()["changed"])
    desk.swap()
    assert desk.engine.requested == begin
    desk.swap()
    assert desk.engine.requested == after
    desk.save("mine.toml")
    saved = motioncue.load_profile(tmp_path / "mine.toml")
    assert (saved.cueing, saved.platform, saved.source) == (after.cueing, after.platform, after.source)
    desk.undo()
    assert desk.engine.requested == begin


def test_one_of_six_legs_is_set_and_saved_with_the_others(tmp_path):
    pytest.importorskip("tomlkit")
    leg = "{ min_m = 2.18, max_m = 3.3, speed_m_s = 1.0, acceleration_m_s2 = 8.0 }"
    desk = desk_of(tmp_path, "platform.preset=hexapod-simona", f"platform.leg=[{', '.join([leg] * 6)}]")
    after = put(desk, "platform.leg[4].speed_m_s", 0.5)
    assert [each.speed_m_s for each in after.platform.leg] == [1.0, 1.0, 1.0, 1.0, 0.5, 1.0]
    desk.save("mine.toml")
    assert motioncue.load_profile(tmp_path / "mine.toml").platform == after.platform
    desk.undo()
    assert desk.engine.requested.platform.leg[4].speed_m_s == 1.0


def test_what_it_was_at_the_beginning_is_told_of_what_was_there():
    desk = desk_of()
    put(desk, "cueing.texture", True)
    put(desk, "cueing.surge.gain", 0.25)
    put(desk, "cueing.tilt.surge_gain", 0.5)
    begin = desk.state()["begin"]
    first = motioncue.load_profile(PROFILE).cueing
    assert begin["cueing.surge.gain"] == first.surge.gain
    assert begin["cueing.texture"] is False
    assert begin["cueing.tilt.surge_gain"] is first.tilt.surge_gain is None
    assert "cueing.texture.heave_gain" not in begin


def test_a_preset_replaces_all_of_the_cueing_and_undo_brings_it_back(tmp_path):
    desk = desk_of()
    changed = put(desk, "cueing.surge.gain", 0.123)
    after = put(desk, "cueing.preset", "utias").cueing
    published = PRESETS["utias"]
    assert after.preset == "utias"
    assert {axis: getattr(after, axis).gain for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")} == {
        axis: published[axis]["gain"] for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")
    }
    assert after.tilt.surge_cutoff_hz == published["tilt"]["surge_cutoff_hz"]
    desk.undo(sure=True)
    assert desk.engine.requested == changed


@pytest.mark.parametrize("algorithm", ["adaptive", "optimal"])
def test_another_algorithm_is_chosen_and_saved(tmp_path, algorithm):
    pytest.importorskip("tomlkit")
    desk = desk_of(tmp_path)
    before = {control.key for control in desk.parameters()}
    after = put(desk, "cueing.algorithm", algorithm)
    assert after.cueing == motioncue.load_profile(PROFILE, f"cueing.algorithm={algorithm}").cueing
    assert {control.key for control in desk.parameters()} != before
    desk.save("mine.toml")
    assert motioncue.load_profile(tmp_path / "mine.toml").cueing == after.cueing
    desk.undo()
    assert {control.key for control in desk.parameters()} == before


def test_an_algorithm_without_a_pose_is_refused_for_a_platform():
    desk = desk_of(None, "platform.preset=hexapod-simona")
    with pytest.raises(ConfigError, match=r"no pose for \[platform\] to take"):
        put(desk, "cueing.algorithm", "direct")


def test_a_scaling_that_is_switched_on_is_linear_up_to_the_largest_input():
    # y = K x (1 + c2 z + c3 z^2) is K x for all z only if both coefficients are 0.
    cueing = put(desk_of(), "cueing.sway.scaling", True).cueing
    assert isinstance(cueing.sway.scaling, Scaling)
    assert cueing.sway.scaling.coefficients() == (0.0, 0.0)
    assert cueing.surge.scaling is None


def test_a_table_that_is_switched_off_is_gone_and_on_again_does_not_reset_it():
    desk = desk_of()
    put(desk, "cueing.texture", True)
    put(desk, "cueing.texture.heave_gain", 0.5)
    assert put(desk, "cueing.texture", True).cueing.texture.heave_gain == 0.5
    assert put(desk, "cueing.texture", False).cueing.texture is None
    assert "cueing.texture.heave_gain" not in desk.state()["values"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cueing.turned_by", "world", "allowed are 'car', 'platform'"),
        ("cueing.turned_by", 1.0, "found 1.0, allowed is car, platform"),
        ("cueing.turned_by", True, "found True"),
        ("cueing.preset", "huge", "cueing.preset: found 'huge'"),
        ("cueing.algorithm", "magic", "found 'magic'"),
        ("cueing.algorithm", None, "found None"),
        ("cueing.surge.gain", "0.5", "found '0.5', allowed is a number"),
        ("cueing.surge.gain", True, "found True, allowed is a number"),
        ("cueing.surge.gain", ["1"], "allowed is a number"),
        ("cueing.texture", "on", "allowed is true (given) or false (left out)"),
        ("cueing.texture", None, "allowed is true"),
        ("platform.gives_way", "yaw", "allowed is a list of words"),
        ("platform.gives_way", ["yaw"], "platform.gives_way: found ['yaw']"),
        ("platform.gives_way", ["yaw", "heave", "travel", "up"], "'up'"),
        ("source.head_m[2]", 1000.0, "source.head_m"),
        ("source.head_m[3]", 0.0, "parameter: found"),
        ("source.system", "dk", "source.system: fixed while it runs, how the systems are connected"),
        ("platform.height_m", 2.0, "fixed while it runs, the platform's geometry"),
    ],
)
def test_what_is_not_allowed_says_why_and_changes_nothing(key, value, words):
    desk = desk_of(None, "platform.preset=hexapod-simona")
    before = desk.engine.requested
    with pytest.raises(ConfigError, match=re.escape(words)):
        put(desk, key, value)
    assert desk.engine.requested is before
    assert desk.state()["undo"] == 0


def test_why_a_key_is_fixed():
    profile = motioncue.load_profile(PROFILE, "platform.preset=hexapod-simona")
    assert fixed_because(profile, "platform.leg.max_m") == ""
    assert fixed_because(profile, "platform.leg[0].max_m") == ""
    assert fixed_because(profile, "platform.height_m") == "the platform's geometry"
    assert fixed_because(profile, "output.rate_hz") == "how the sending thread runs"
    assert fixed_because(profile, "output.motion") == "how the systems are connected"
    assert fixed_because(profile, "source.options.forces") == "how packets become motion"
    assert fixed_because(profile, "record.file") == "what is recorded"


@pytest.mark.parametrize("key", ["platform.height_m", "output.rate_hz", "platform.leg.max_m", "cueing.surge.gain"])
def test_what_is_said_to_be_fixed_is_what_is_refused(key):
    profile = motioncue.load_profile(PROFILE, "platform.preset=hexapod-simona")
    value = {"output.rate_hz": 250.0}.get(key, 3.35)
    other = motioncue.load_profile(PROFILE, "platform.preset=hexapod-simona", f"{key}={value}")
    if fixed_because(profile, key):
        with pytest.raises(ConfigError, match=re.escape(f"{key}: found {value}")):
            refuse_fixed(profile, other)
    else:
        refuse_fixed(profile, other)
        Tuner(profile)(other, lambda settings: None)


# ---- keys in lists ---------------------------------------------------------------------------------------------------

TABLES = {"a": {"b": [{"c": 1}, {"c": 2}], "w": ("x", "y"), "n": (1.0, 2.0)}, "d": None}


def test_keys_in_lists_are_read_and_written():
    assert dict(values_of(TABLES)) == {
        "a.b[0].c": 1, "a.b[1].c": 2, "a.w": ("x", "y"), "a.n[0]": 1.0, "a.n[1]": 2.0, "d": None,
    }  # fmt: skip
    assert item_of(TABLES, "a.b[1].c") == 2
    assert [item_of(TABLES, key) for key in ("a.b[2].c", "a.x", "d.e", "a.n[7]")] == [None] * 4
    assert with_item(TABLES, "a.b[1].c", 5) == ("a.b", [{"c": 1}, {"c": 5}])
    assert with_item(TABLES, "a.n[0]", 5.0) == ("a.n", [5.0, 2.0])
    assert with_item(TABLES, "a.x", 5) == ("a.x", 5)
    assert TABLES["a"]["b"][1]["c"] == 2


def test_no_setting_is_named_twice_and_every_kind_has_what_it_needs():
    profile = motioncue.load_profile(PROFILE, "platform.preset=hexapod-simona")
    found = [*controls(profile.cueing, "cueing"), *controls(profile.platform, "platform")]
    assert len({control.key for control in found}) == len(found)
    for control in found:
        assert control.kind not in ("choice", "order") or control.choices, control
        assert control.kind != "table" or control.begin, control


def test_a_removed_table_takes_its_heading_with_it():
    pytest.importorskip("tomlkit")
    text = '# top\n[cueing]\nalgorithm = "a" # why\n[cueing.surge]\n# how much\ngain = 1.0\n[other]\nx = 1\n'
    out = changed_text(text, {"cueing.surge.gain": None, "cueing.nothing.x": None, "other.x": 2})
    assert out == '# top\n[cueing]\nalgorithm = "a" # why\n[other]\nx = 2\n'


def test_the_text_of_a_profile_is_read_again_with_a_preset_alone():
    cueing = parse_profile(
        "", overrides=[{**_tables(), "cueing": {"algorithm": "classical", "preset": "simona"}}]
    ).cueing
    assert cueing.surge.gain == PRESETS["simona"]["surge"]["gain"]


def _tables():
    import msgspec

    return msgspec.to_builtins(motioncue.load_profile(PROFILE))
