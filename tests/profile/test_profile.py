"""Profiles: valid ones load; others are refused with the path, what was found and what is allowed."""

import math
import re

import msgspec
import pytest
from helpers import BASE

import motioncue
from motioncue.cueing.classical.settings import Classical
from motioncue.cueing.direct.settings import Direct
from motioncue.engine.assembly import check, load_profile
from motioncue.errors import ConfigError, EndpointError
from motioncue.profile.profile import builtin_profiles, overridden, parse_profile, profile_text, resolved_text

WASHOUT = "ccd-dk-classical"
# The published sets, in rad/s as their sources give them: gains, natural frequencies, extra break, order.
SIMONA = {
    "surge": (0.6, 0.8, None, 2),
    "sway": (0.6, 1.0, None, 2),
    "heave": (0.5, 1.0, 0.2, 3),
    "roll": (0.6, 1.0, None, 2),
    "pitch": (0.6, 0.8, None, 2),
    "yaw": (0.6, 1.0, None, 2),
}
UTIAS = {
    "surge": (0.5, 2.5, 0.25, 3),
    "sway": (0.5, 4.0, 0.4, 3),
    "heave": (0.5, 4.0, 0.4, 3),
    "roll": (0.5, 1.0, None, 1),
    "pitch": (0.5, 1.0, None, 1),
    "yaw": (0.5, 1.0, None, 2),
}


# ---- what loads ------------------------------------------------------------------------------------------------------


def test_the_promised_profiles_are_built_in():
    assert {"ccd-dk", "ccd-dk-classical"} <= set(builtin_profiles())


@pytest.mark.parametrize("name", builtin_profiles())
def test_every_built_in_profile_loads_and_says_what_it_is(name):
    profile = load_profile(name)
    assert profile.name == name
    assert profile.description
    check(profile)


@pytest.mark.parametrize("name", ["ccd-dk", WASHOUT])
def test_city_car_driving_to_dk_is_as_both_documents_say(name):
    profile = load_profile(name)
    assert profile.source.system == "city-car-driving"
    assert profile.source.endpoint == "pipe://DynamicCabPipe"
    assert profile.output.system == "dk"
    assert profile.output.rate_hz == 333.33
    assert (profile.supervisor.hold_s, profile.supervisor.fade_s) == (0.1, 1.0)


def test_the_built_in_profiles_use_their_algorithms():
    assert isinstance(load_profile("ccd-dk").cueing, Direct)
    assert isinstance(load_profile(WASHOUT).cueing, Classical)


@pytest.mark.parametrize(("preset", "right"), [("simona", SIMONA), ("utias", UTIAS)])
def test_a_preset_holds_the_published_numbers(preset, right):
    cueing = load_profile(WASHOUT, f"cueing.preset={preset}").cueing
    for name, (gain, omega, omega_b, order) in right.items():
        axis = getattr(cueing, name)
        assert (axis.gain, axis.order, axis.damping) == (gain, order, 1.0)
        assert 2 * math.pi * axis.cutoff_hz == pytest.approx(omega, rel=1e-15)
        assert (axis.break_hz is None) == (omega_b is None)
        if omega_b is not None:
            assert 2 * math.pi * axis.break_hz == pytest.approx(omega_b, rel=1e-15)
    tilt = cueing.tilt
    omegas = {"simona": (2.0, 2.0), "utias": (5.0, 8.0)}[preset]
    assert (2 * math.pi * tilt.surge_cutoff_hz, 2 * math.pi * tilt.sway_cutoff_hz) == pytest.approx(omegas, rel=1e-15)
    assert tilt.damping == 1.0
    assert tilt.rate_limit_deg_s == (3.0 if preset == "simona" else None)


def test_a_file_is_a_profile_named_after_it(tmp_path):
    file = tmp_path / "my rig.toml"
    file.write_text(BASE, encoding="utf-8")
    profile = load_profile(file)
    assert profile.name == "my rig"
    assert profile.source.endpoint == "tcp://127.0.0.1:9000"
    assert load_profile(str(file)) == profile


def test_what_is_left_out_has_its_default():
    profile = parse_profile(BASE)
    assert profile.output.gauges is None
    assert profile.output.rate_hz == 333.33
    assert profile.source.head_m == (0.0, 0.0, 0.0)
    assert profile.source.options == {}


def test_a_profile_cannot_be_changed_once_it_is_checked():
    profile = load_profile(WASHOUT)
    with pytest.raises(AttributeError):
        profile.output.rate_hz = 1000.0
    with pytest.raises(AttributeError):
        profile.cueing.surge.gain = 2.0


def test_a_key_beside_a_preset_overrides_it():
    text = profile_text(WASHOUT).replace(
        'preset = "simona"', 'preset = "simona"\nsurge.gain = 0.25\ntilt.damping = 0.7'
    )
    cueing = parse_profile(text).cueing
    assert (cueing.surge.gain, cueing.tilt.damping) == (0.25, 0.7)
    assert cueing.surge.cutoff_hz == pytest.approx(0.8 / (2 * math.pi))  # the rest of the table is the preset's
    assert load_profile(WASHOUT).cueing.surge.gain == 0.6  # and the preset is as it was


def test_a_whole_washout_without_a_preset_has_none():
    whole = "".join(
        f"[cueing.{axis}]\ncutoff_hz = 0.2\n" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")
    )
    text = BASE.replace('"direct"', '"classical"') + whole + "[cueing.tilt]\nsurge_cutoff_hz = 1\nsway_cutoff_hz = 1\n"
    profile = parse_profile(text)
    assert (profile.cueing.yaw.order, profile.cueing.preset, profile.cueing.tilt.rate_limit_deg_s) == (2, None, None)
    assert overridden(profile, {"cueing.yaw.gain": 0.3}).cueing.preset is None
    for less in ("", "[cueing.yaw]\n"):
        cueing = parse_profile(text.replace("[cueing.yaw]\ncutoff_hz = 0.2\n", less)).cueing
        assert (cueing.preset, cueing.surge.cutoff_hz) == ("simona", 0.2)
        assert cueing.yaw == load_profile(WASHOUT, "cueing.preset=simona").cueing.yaw


@pytest.mark.parametrize("keys", [[], ["surge.gain=0.3"], ["yaw.damping=0.7", "tilt.rate_limit_deg_s=4"]])
def test_a_washout_of_a_few_keys_has_the_others_from_simona(keys):
    """In a file, by --set, and as an override of a profile in force; --resolved says which preset it is."""
    expected = load_profile(WASHOUT, "cueing.preset=simona", *(f"cueing.{key}" for key in keys)).cueing
    text = BASE.replace('"direct"', '"classical"\n' + "\n".join(keys))
    direct = parse_profile(BASE)
    overrides = ["cueing.algorithm=classical", *(f"cueing.{key}" for key in keys)]
    assert parse_profile(text).cueing == expected
    assert parse_profile(BASE, overrides=overrides).cueing == expected
    assert overridden(direct, overrides).cueing == expected
    assert 'cueing.preset = "simona"' in resolved_text(parse_profile(text)).splitlines()
    assert overridden(parse_profile(text), ["cueing.preset=utias"]).cueing.preset == "utias"


@pytest.mark.parametrize(
    ("override", "where", "value"),
    [
        ("supervisor.hold_s=0.25", "supervisor.hold_s", 0.25),
        ("supervisor.hold_s = 0.25", "supervisor.hold_s", 0.25),
        ("supervisor.hold_s=1", "supervisor.hold_s", 1.0),
        ("source.head_m=[0.1, -0.4, 1.2]", "source.head_m", (0.1, -0.4, 1.2)),
        ("source.endpoint=unix:///tmp/a=b", "source.endpoint", "unix:///tmp/a=b"),  # text, not TOML
        ('source.endpoint="tcp://[::1]:80"', "source.endpoint", "tcp://[::1]:80"),
        ("source.options.quaternion=wxyz", "source.options", {"quaternion": "wxyz"}),
        ("output.rate_hz=250", "output.rate_hz", 250.0),
        ("cueing.preset=utias", "cueing.surge.gain", 0.5),
        ("cueing.surge.gain=0.1", "cueing.surge.gain", 0.1),
        ("cueing.surge.order=1", "cueing.surge.order", 1),
        ("cueing.tilt.rate_limit_deg_s=5", "cueing.tilt.rate_limit_deg_s", 5.0),
        ("description=My rig, 2nd floor", "description", "My rig, 2nd floor"),
    ],
)
def test_an_override_sets_a_typed_value(override, where, value):
    found = load_profile(WASHOUT, override)
    for step in where.split("."):
        found = getattr(found, step)
    assert found == value
    assert type(found) is type(value)


def test_a_later_override_wins_over_an_earlier_one():
    assert load_profile("ccd-dk", "supervisor.hold_s=0.2", "supervisor.hold_s=0.3").supervisor.hold_s == 0.3


def test_an_override_beats_the_preset_that_another_one_chooses():
    for order in (1, -1):
        overrides = ["cueing.surge.gain=0.9", "cueing.preset=utias"][::order]
        cueing = load_profile(WASHOUT, *overrides).cueing
        assert (cueing.surge.gain, cueing.surge.order) == (0.9, 3)


@pytest.mark.parametrize("override", ["", "=", "=1", "source", "source..hold_s=1", ".hold_s=1", "source.=1", "a b"])
def test_an_override_that_is_not_key_and_value_is_refused(override):
    with pytest.raises(ConfigError, match=r"override \(--set\): found .*allowed is KEY=VALUE"):
        load_profile("ccd-dk", override)


def test_an_override_below_something_that_is_not_a_table_is_refused():
    with pytest.raises(ConfigError, match=r"override .*: found 'source\.system\.x', but 'system' is not a table"):
        load_profile("ccd-dk", "source.system.x=1")


@pytest.mark.parametrize("where", ["limits", "output.limits"])
def test_an_override_bounds_a_channel_that_was_not_bounded(where):
    profile = load_profile("ccd-dk", f"{where}.pitch=none", f"{where}.pitch.value_deg=1")
    bounds = profile.bounds() if where == "limits" else profile.outputs[0].limits.bounds()
    assert bounds["pitch"][0] == pytest.approx(math.radians(1))
    assert profile == load_profile("ccd-dk", f"{where}.pitch.value_deg=1") or where == "limits"
    with pytest.raises(ConfigError, match="'pitch' is not a table"):
        load_profile("ccd-dk", f"{where}.pitch=1", f"{where}.pitch.value_deg=1")


def test_an_override_that_is_not_text_is_refused():
    with pytest.raises(ConfigError, match="UTF-8"):
        load_profile("ccd-dk", "source.options.quaternion=\udcff")


# ---- what is refused -------------------------------------------------------------------------------------------------


def refusal(*overrides, profile=WASHOUT):
    """Return the message with which overrides are refused."""
    with pytest.raises((ConfigError, EndpointError)) as caught:
        load_profile(profile, *overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("override", "path", "allowed"),
    [
        ("sorce.system=x", "sorce", "source"),
        ("source.endpont=x", "source.endpont", "endpoint"),
        ("source.options.quaternoin=x", "source.options.quaternoin", "quaternion"),
        ("cueing.surg.gain=1", "cueing.surg", "surge"),
        ("cueing.surge.gian=1", "cueing.surge.gian", "gain"),
        ("cueing.surge.limit_deg_s=1", "cueing.surge.limit_deg_s", "limit_m_s2"),
        ("cueing.roll.limit_m_s2=1", "cueing.roll.limit_m_s2", "limit_deg_s"),
        ("cueing.tilt.rate_limit=1", "cueing.tilt.rate_limit", "rate_limit_deg_s"),
        ("output.rate=1", "output.rate", "rate_hz"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_the_allowed_ones(override, path, allowed):
    message = refusal(override)
    assert re.search(rf"(^|: |\.){re.escape(path.rsplit('.', 1)[-1])}: unknown key, allowed are ", message)
    assert path in message
    assert allowed in message.split("allowed are ")[1]


def test_a_key_with_a_new_place_is_refused_with_that_place():
    moved = {
        "source": ("supervisor", ["hold_s", "fade_s"]),
        "supervisor": ("watch", ["max_acceleration_m_s2", "max_rate_deg_s", "frozen_s", "jitter_s", "frame_jump_s"]),
    }
    for table, (place, keys) in moved.items():
        for key in keys:
            message = refusal(f"{table}.{key}=1")
            assert f"{table}.{key}: unknown key" in message
            assert message.endswith(f"; it is {place}.{key} now")
    assert "; it is" not in refusal("source.frozen_s=1")


def test_a_slip_of_the_pen_is_recognized():
    assert "did you mean 'gain'?" in refusal("cueing.surge.gian=1")


def test_an_unknown_name_is_refused_with_the_most_similar_allowed_one():
    assert "did you mean 'beamng'?" in refusal("source.system=BeamNG")
    assert "did you mean 'simona'?" in refusal("cueing.preset=simone")
    assert "did you mean" not in refusal("source.system=no-such")
    with pytest.raises(ConfigError, match=r"'cdd-dk' is neither .* \(did you mean 'ccd-dk'\?\)"):
        load_profile("cdd-dk")


def test_direct_has_no_parameters():
    message = refusal("cueing.surge.gain=1", profile="ccd-dk")
    assert "cueing.surge: unknown key, allowed are algorithm" in message


@pytest.mark.parametrize(
    ("override", "path", "found", "allowed"),
    [
        ("source=5", "source", "5", "is a table"),
        ("source.system=5", "source.system", "5", "is a text"),
        ("supervisor.hold_s=soon", "supervisor.hold_s", "'soon'", "is a number from 0.02 to 10"),
        ("supervisor.hold_s=true", "supervisor.hold_s", "true", "is a number"),
        ("supervisor.hold_s=0", "supervisor.hold_s", "0", "0.02"),
        ("supervisor.hold_s=10.5", "supervisor.hold_s", "10.5", "10"),
        ("supervisor.hold_s=1979-05-27", "supervisor.hold_s", "datetime.date(1979, 5, 27)", "is a number"),
        ("supervisor.fade_s=0.05", "supervisor.fade_s", "0.05", "0.1"),
        ("supervisor.fade_s=61", "supervisor.fade_s", "61", "60"),
        ("source.head_m=[0, 0]", "source.head_m", "[0, 0]", "is a list in brackets of 3, each a number from -10 to 10"),
        ("source.head_m=[0, 0, 11]", "source.head_m[2]", "11", "10"),
        ('source.head_m=[0, "up", 1]', "source.head_m[1]", "'up'", "is a number from -10 to 10"),
        ("source.options=3", "source.options", "3", "is a table"),
        ("source.allow=10.0.0.1", "source.allow", "'10.0.0.1'", "is a list in brackets, each a text in quotes"),
        ("source.endpoint=3", "source.endpoint", "3", "is a text or a list in brackets, each a text in quotes"),
        ("source.endpoint=[3]", "source.endpoint[0]", "3", "is a text"),
        ("source.options.quaternion=wzyx", "source.options.quaternion", "'wzyx'", "'xyzw', 'wxyz'"),
        ("source.options.gravity=1", "source.options.gravity", "1", "'excluded', 'included'"),
        ("cueing=direct", "cueing", "'direct'", "is a table"),
        ("cueing.algorithm=neural", "cueing.algorithm", "'neural'", "'direct', 'classical'"),
        ("cueing.algorithm=3", "cueing.algorithm", "3", "'direct', 'classical'"),
        ("cueing.preset=simone", "cueing.preset", "'simone'", "simona, utias"),
        ("cueing.preset=[1]", "cueing.preset", "[1]", "simona, utias"),
        ("cueing.surge=0.6", "cueing.surge", "0.6", "is a table"),
        ("cueing.surge.gain=11", "cueing.surge.gain", "11", "10"),
        ("cueing.surge.order=4", "cueing.surge.order", "4", "1, 2, 3"),
        ("cueing.surge.order=2.0", "cueing.surge.order", "2.0", "1, 2, 3"),
        ("cueing.surge.cutoff_hz=0", "cueing.surge.cutoff_hz", "0", "0"),
        ("cueing.surge.cutoff_hz=-1", "cueing.surge.cutoff_hz", "-1", "is a number above 0, up to 100"),
        ("cueing.surge.damping=0", "cueing.surge.damping", "0", "0"),
        ("cueing.surge.limit_m_s2=0", "cueing.surge.limit_m_s2", "0", "0"),
        ("cueing.yaw.limit_deg_s=-3", "cueing.yaw.limit_deg_s", "-3", "0"),
        ("cueing.tilt.rate_limit_deg_s=0", "cueing.tilt.rate_limit_deg_s", "0", "0"),
        ("output.rate_hz=9.9", "output.rate_hz", "9.9", "10"),
        ("output.rate_hz=2001", "output.rate_hz", "2001", "2000"),
        ("output.gauges=3", "output.gauges", "3", "is a text"),
        ("output.keep_awake=1", "output.keep_awake", "1", "is true or false"),
        ("output.core=1.5", "output.core", "1.5", "is a whole number from 0 to 1023"),
        ("output=[]", "output", "[]", "is a table or a list in brackets of 1 to 8, each a table"),
        (
            "platform={kind='posts', post={min_m=-0.1, max_m=0.1, speed_m_s=1, acceleration_m_s2=1}, at_m=[[0, 1]]}",
            "platform.at_m",
            "[[0, 1]]",
            "is a list in brackets of 2 to 4, each a list in brackets of 2, each a number from -100 to 100",
        ),
        ("limits.pitch.value_deg=wide", "limits.pitch.value_deg", "'wide'", "is a number above 0"),
        ("source.system=no-such", "source.system", "'no-such'", "city-car-driving"),
        ("source.system=dk", "source.system", "'dk'", "city-car-driving"),
        ("output.system=city-car-driving", "output.system", "'city-car-driving'", "dk"),
    ],
)
def test_a_bad_value_is_refused_with_its_path_what_was_found_and_what_is_allowed(override, path, found, allowed):
    message = refusal(override)
    assert re.search(rf"(^|: ){re.escape(path)}: found {re.escape(found)}", message), message
    assert allowed in message.split("found", 1)[1][len(found) :], message


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "+nan", "1e309"])
@pytest.mark.parametrize(
    "key",
    ["supervisor.hold_s", "cueing.surge.gain", "cueing.heave.break_hz", "output.rate_hz", "source.options.gravity"],
)
def test_a_number_that_is_not_finite_is_refused_with_its_path(key, value):
    assert re.match(rf"{re.escape(key)}: found \S*(nan|inf), allowed are finite numbers", refusal(f"{key}={value}"))


def test_a_number_that_is_not_finite_is_found_inside_an_array():
    assert refusal("source.head_m=[0, nan, 0]").startswith("source.head_m[1]: found nan")


def test_overrides_are_texts_or_tables():
    texts = load_profile("ccd-dk-classical", "output.rate_hz=250", "cueing.surge.gain=0.3")
    assert load_profile("ccd-dk-classical", {"output": {"rate_hz": 250}, "cueing.surge.gain": 0.3}) == texts
    assert load_profile("ccd-dk-classical", {"output.rate_hz": 250}, "cueing.surge.gain=0.3") == texts
    assert (texts.output.rate_hz, texts.cueing.surge.gain) == (250, 0.3)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("source", "system"),
        ("cueing", "algorithm"),
        ("output", "system"),
        ("output", "motion"),
    ],
)
def test_a_missing_key_is_named(table, key):
    lines = BASE.splitlines()
    start = lines.index(f"[{table}]")
    place = next(i for i in range(start, len(lines)) if lines[i].startswith(key))
    with pytest.raises(ConfigError, match=rf"{table}\.{key}: missing"):
        parse_profile("\n".join(lines[:place] + lines[place + 1 :]))


@pytest.mark.parametrize("table", ["source", "cueing", "output"])
def test_a_missing_table_is_named(table):
    parts = [part for part in re.split(r"\n(?=\[)", BASE) if not part.startswith(f"[{table}]")]
    with pytest.raises(ConfigError, match=f"{table}: missing"):
        parse_profile("\n".join(parts))


@pytest.mark.parametrize(
    "text",
    [
        "[source",
        "x = ",
        "= 1",
        "a = 1\na = 2",
        "\0",
        "x = [1, ",
        "\ufeff[source]\n",
        "x = " + "9" * 5000,
        "{}",
        "[a]\n[a]",
    ],
)
def test_what_is_not_toml_is_refused_by_the_profiles_name(text):
    with pytest.raises(ConfigError, match=r"rig\.toml: not TOML"):
        parse_profile(text, name="rig.toml")


@pytest.mark.parametrize("text", ["x = " + "[" * 5000, "x" + ".x" * 5000 + " = 1"])
def test_what_is_nested_without_end_is_refused(text):
    with pytest.raises(ConfigError, match=r"nested too deeply|no key has more"):
        parse_profile(text)


@pytest.mark.parametrize("name", ["no-such-profile", "", ".", "a\0b", "x" * 5000, "/nowhere/rig.toml"])
def test_a_name_that_is_neither_a_profile_nor_a_file_is_refused_with_the_built_in_ones(name):
    with pytest.raises(ConfigError, match=r"built-in profiles are .*ccd-dk, ccd-dk-classical"):
        load_profile(name)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "rig.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read as text"):
        load_profile(file)


# ---- what cannot run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate_hz", [400.0001, 401, 1000, 2000])
def test_a_rate_that_dk_calls_unstable_is_refused(rate_hz):
    message = refusal(f"output.rate_hz={rate_hz}")
    assert message.startswith("output.rate_hz: found")
    assert "allowed is up to 400 Hz for dk" in message


@pytest.mark.parametrize("rate_hz", [10, 60, 333.33, 400])
def test_a_rate_that_dk_takes_is_accepted(rate_hz):
    assert load_profile("ccd-dk", f"output.rate_hz={rate_hz}").output.rate_hz == rate_hz


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("cueing.surge.cutoff_hz", []),
        ("cueing.yaw.cutoff_hz", []),
        ("cueing.heave.break_hz", []),
        ("cueing.tilt.surge_cutoff_hz", []),
        ("cueing.tilt.sway_cutoff_hz", []),
    ],
)
def test_a_frequency_at_or_above_half_the_rate_is_refused_by_its_path(key, more):
    for value in (50.0, 50.001, 99.0):
        message = refusal("output.rate_hz=100", f"{key}={value}", *more)
        assert message.startswith(f"{key}: found {value} Hz, allowed is below 50 Hz")
    load_profile(WASHOUT, "output.rate_hz=100", f"{key}=49.9", *more)


def test_a_third_order_axis_needs_its_break_frequency():
    assert refusal("cueing.surge.order=3").startswith("cueing.surge.break_hz: missing")
    assert load_profile(WASHOUT, "cueing.surge.order=3", "cueing.surge.break_hz=0.05").cueing.surge.order == 3


@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("source.endpoint", "udp://127.0.0.1:80"),
        ("source.endpoint", "DynamicCabPipe"),
        ("source.endpoint", ""),
        ("source.endpoint", "unix://"),
        ("source.endpoint", "pipe://a/b"),
        ("source.endpoint", "tcp://127.0.0.1"),
        ("source.endpoint", "tcp://127.0.0.1:0"),
        ("source.endpoint", "tcp://127.0.0.1:65536"),
        ("source.endpoint", "tcp://127.0.0.1:²"),
        ("output.motion", "tcp://127.0.0.1:80"),
        ("output.motion", "udp://::1:80"),
        ("output.gauges", "udp://127.0.0.1:port"),
        ("output.gauges", ""),
    ],
)
def test_an_endpoint_that_does_not_fit_is_refused_by_its_path(key, url):
    with pytest.raises(EndpointError, match=rf"^{re.escape(key)}: found '{re.escape(url)}', "):
        load_profile("ccd-dk", f'{key}="{url}"')


def test_an_engine_refuses_a_profile_that_was_made_by_hand():
    good = load_profile("ccd-dk")
    fast = msgspec.structs.replace(good, output=msgspec.structs.replace(good.output, rate_hz=1000.0))
    with pytest.raises(ConfigError, match=r"output\.rate_hz: found 1000"):
        motioncue.Engine(fast)


@pytest.mark.parametrize("url", ["udp://127.0.0.1:4445", "udp://:4445", "udp://localhost:4445", "udp://LOCALHOST:4445"])
def test_two_streams_to_one_port_are_refused(url):
    expected = f"output.gauges: found '{url}', where output.motion is sent already; allowed is a port of its own"
    assert refusal(f"output.gauges={url}").startswith(expected)
    outputs = [f"{{ system = 'dk', motion = '{end}' }}" for end in ("udp://127.0.0.1:4445", url)]
    assert refusal(f"output=[{', '.join(outputs)}]").startswith("output.motion: found")


def test_streams_to_one_port_of_two_machines_are_allowed():
    load_profile(WASHOUT, "output.gauges=udp://192.168.1.20:4445")
