"""Every key of a profile is on the page: what retuning takes with a control, what it does not take with the reason."""

import itertools
import re

import msgspec
import pytest

import motioncue
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.engine import Engine
from motioncue.engine.fitting import gains_for
from motioncue.engine.pipeline import LIVE, fixed_because
from motioncue.errors import ConfigError
from motioncue.platforms.settings import platform_presets
from motioncue.profile.profile import Profile, parse_profile, profile_text
from motioncue.profile.reference import sections, values_of
from motioncue.profile.tables import changed_text
from motioncue.safety.settings import AccelerationBounds, HeaveBounds, Limits
from motioncue.view.editor import Editor

TEXTS = {"name", "description", "cars", "platform.description", "platform.source"}
"""Live keys without a control: texts for people."""

TWO = """
[source]
system = "city-car-driving"
endpoint = "pipe://x"
options = { byte_order = "little" }

[cueing]
algorithm = "classical"
preset = "small"

# the first
[[output]]
system = "dk"
motion = "udp://127.0.0.1:4444"  # its port

[[output]]
motion = "udp://127.0.0.1:4445"
packet.preset = "mavlink-motion-platform"
limits.surge = { value_m_s2 = 5 }  # low

[record]
file = "drive.mcap"
"""
ROUND = itertools.count()


def desk_of(profile, text=None, folder=None):
    desk = Editor(Engine(profile), text, folder)
    desk.engine = desk._engine
    return desk


def put(desk, key, value):
    desk.set(key, value, (next(ROUND),), sure=True)
    return desk.engine.requested


def washout(*overrides):
    return motioncue.load_profile("ccd-dk-classical", *overrides)


ALL = [
    None,
    *(f"cueing.algorithm={algorithm}" for algorithm in sorted(ALGORITHMS)),
    *(f"platform.preset={platform}" for platform in sorted(platform_presets())),
]
"""Overrides that give profiles with all tables, and all kinds of them, between them; None: two outputs."""


@pytest.mark.parametrize("override", ALL)
def test_every_key_has_a_control_or_says_why_it_is_fixed(override):
    try:
        profile = washout(override) if override else parse_profile(TWO, scaled=gains_for)
    except ConfigError as error:
        pytest.skip(str(error))  # the library of an extra is missing
    desk = desk_of(profile)
    said, fixed = {control.key: control for control in desk.parameters()}, desk.fixed()
    for key, value in values_of(msgspec.to_builtins(profile)):
        place = re.sub(r"\[\d+\]$", "", key) if re.search(r"packet", key) else key
        place = place.partition(".packet")[0] + ".packet" if ".packet" in place else place
        if key in TEXTS or ("axes[" in key and value is None):
            continue
        assert place in said, key
        live = not fixed_because(profile, key) and place != "platform.preset"
        assert (place not in fixed) == live, key
        assert (said[place].kind != "other") or not live, key


def test_every_table_that_retuning_takes_is_among_the_keys_of_the_page():
    # The tables of `motioncue profiles keys` that are live by their place, with a control of that place.
    desk = desk_of(parse_profile(TWO, scaled=gains_for))
    keys = {re.sub(r"\[\d+\]", "", control.key) for control in desk.parameters()}
    places = {place.replace("[]", "") for section in sections(Profile) for place in section.places}
    live = {place for place in places if place in LIVE or place.rpartition(".")[0] == "output.limits"}
    assert live >= {"watch", "supervisor", "limits", "output.limits"}
    for place in (place for place in live if not place.startswith("platform.")):
        assert any(key == place or key.startswith(f"{place}.") for key in keys), place


def test_a_threshold_of_the_watch_is_set_undone_and_saved(tmp_path):
    pytest.importorskip("tomlkit")
    desk = desk_of(washout(), profile_text("ccd-dk-classical"), tmp_path)
    begin = desk.engine.requested
    assert put(desk, "watch.frozen_s", 2.5).watch.frozen_s == 2.5
    desk.save("mine.toml")
    assert motioncue.load_profile(tmp_path / "mine.toml").watch == desk.engine.requested.watch
    desk.undo(sure=True)
    assert desk.engine.requested == begin


def test_the_bounds_of_one_of_two_outputs_are_set_switched_and_saved_with_the_comments(tmp_path):
    pytest.importorskip("tomlkit")
    desk = desk_of(parse_profile(TWO, scaled=gains_for), TWO, tmp_path)
    first, second = put(desk, "output[1].limits.surge.value_m_s2", 4.0).outputs
    assert first.limits.surge is None
    assert second.limits.surge.value_m_s2 == 4.0
    assert put(desk, "output[0].limits.heave", True).outputs[0].limits.heave == HeaveBounds()
    desk.save("mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    saved = parse_profile(text, scaled=gains_for)
    assert [output.limits for output in saved.outputs] == [output.limits for output in desk.engine.requested.outputs]
    assert all(comment in text for comment in ("# the first", "# its port"))
    assert text.count("packet.preset") == 1
    assert put(desk, "output[1].limits.surge", False).outputs[1].limits.surge is None
    desk.save("other.toml")
    saved = motioncue.load_profile(tmp_path / "other.toml")
    assert [output.limits for output in saved.outputs] == [output.limits for output in desk.engine.requested.outputs]


@pytest.mark.parametrize("text", [None, 'limits = "none"', '[limits]\nheave = "none"'])
def test_bounds_of_a_channel_and_all_bounds_are_switched_and_saved(tmp_path, text):
    pytest.importorskip("tomlkit")
    whole = re.sub(r"\[limits\][^\[]*", "", profile_text("ccd-dk-classical"))
    whole = whole if text is None else f"{text}\n{whole}" if "=" in text.partition("\n")[0] else f"{whole}\n{text}\n"
    desk = desk_of(parse_profile(whole, scaled=gains_for), whole, tmp_path)
    begin = desk.engine.requested.limits
    names = iter("abcdef")

    def saved():
        name = f"{next(names)}.toml"
        desk.save(name)
        return motioncue.load_profile(tmp_path / name).limits

    if begin == "none":
        assert desk.state()["values"]["limits"] is False
        assert put(desk, "limits", True).limits == Limits() == saved()
    assert put(desk, "limits.surge", False).limits.surge == "none" == saved().surge
    assert "limits.surge.value_m_s2" not in desk.state()["values"]
    assert put(desk, "limits.surge", True).limits.surge == AccelerationBounds() == saved().surge
    assert put(desk, "limits", False).limits == "none" == saved()
    assert desk.state()["bounds"] == {}
    while desk.state()["undo"]:
        desk.undo(sure=True)
    assert desk.engine.requested.limits == begin == saved()


def test_an_output_that_the_text_does_not_have_is_refused_and_no_file_written(tmp_path):
    pytest.importorskip("tomlkit")
    single = TWO.replace("[[output]]\nmotion", "[xoutput]\nmotion").partition("[xoutput]")[0]
    desk = desk_of(parse_profile(TWO, scaled=gains_for), single, tmp_path)
    put(desk, "output[1].limits.sway", True)
    with pytest.raises(ConfigError, match="save: this profile's text cannot take the values"):
        desk.save("mine.toml")
    assert list(tmp_path.iterdir()) == []


def test_text_with_values_in_lists_of_tables():
    pytest.importorskip("tomlkit")
    text = "[[a]]\nx = 1 # one\n[[a]]\nx = 2 # two\n[b]\ny = 1\n"
    assert changed_text(text, {"a[1].x": 3, "a[0].t.z": 4}) == (
        "[[a]]\nx = 1 # one\nt = {z = 4}\n[[a]]\nx = 3 # two\n[b]\ny = 1\n"
    )
    inline = "surge = { gain = 0.3 } # mine\nsway = {gain = 1}\n"
    assert changed_text(inline, {"surge.order": 3, "surge.on": True, "sway.order": 2, "sway.on": False}) == (
        "surge = { gain = 0.3, order = 3, on = true} # mine\nsway = {gain = 1, order = 2, on = false}\n"
    )
    assert changed_text(text, {"a[1].x": None}) == "[[a]]\nx = 1 # one\n[[a]]\n[b]\ny = 1\n"
    with pytest.raises(LookupError):
        changed_text(text, {"a[2].x": 3})
    with pytest.raises(TypeError, match=r"b\[0\]\.x: found no list"):
        changed_text(text, {"b[0].x": 3})
