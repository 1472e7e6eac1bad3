"""The page's parts that need no socket: who may see it, what it may ask, what it changes, what it is shown."""

import contextlib
import gzip
import json
import re
from types import SimpleNamespace
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_drives import path_of

import motioncue
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE, TICK_DTYPE
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError
from motioncue.view.access import AccessCheck, Address, parse_address
from motioncue.view.editor import Editor
from motioncue.view.model import Frames, PlatformInForce, positions_of, scene_of, used_of
from motioncue.view.playback import Played
from motioncue.view.server import FILES
from motioncue.view.session import Operate, ScoreSettings, Set, parse_request

PROFILE = "ccd-dk-classical"


# ---- who may see it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("8765", "127.0.0.1", 8765, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:80", "::1", 80, True),
        ("127.3.2.1:80", "127.3.2.1", 80, True),
        ("0.0.0.0:8765", "0.0.0.0", 8765, False),
        ("rig-pc:65535", "rig-pc", 65535, False),
        ("[::]:0", "::", 0, False),
    ],
)
def test_an_address_names_host_and_port(text, host, port, loopback):
    address = parse_address(text)
    assert address == (host, port)
    assert address.loopback == loopback


@pytest.mark.parametrize("text", ["", "x", "8765:", ":8765", "65536", "http://a:1", "a b:1", "1.2.3.4:-1", "a:1/"])
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"--view: found .*allowed is \[HOST:\]PORT"):
        parse_address(text)


OWN = "127.0.0.1:8765"


@pytest.mark.parametrize(
    ("host", "origin", "connects", "word"),
    [
        (OWN, None, False, None),
        ("localhost:8765", None, False, None),
        ("LOCALHOST:8765", None, False, None),
        (OWN, f"http://{OWN}", True, None),
        ("localhost:8765", "http://localhost:8765", True, None),
        (None, None, False, "Host"),
        ("", None, False, "Host"),
        ("evil.example:8765", None, False, "Host"),  # a name that was pointed here
        ("evil.example:8765", "http://evil.example:8765", True, "Host"),
        ("127.0.0.1", None, False, "Host"),
        ("127.0.0.1:80", None, False, "Host"),
        ("127.0.0.1.evil.example:8765", None, False, "Host"),
        ("192.168.1.2:8765", None, False, "Host"),
        (OWN, None, True, "Origin"),
        (OWN, "null", True, "Origin"),
        (OWN, "http://evil.example", True, "Origin"),
        (OWN, "https://127.0.0.1:8765", True, "Origin"),
        (OWN, "http://localhost:8765", True, "Origin"),  # another page than the one that was loaded
        (OWN, "http://127.0.0.1:9999", True, "Origin"),
    ],
)
def test_on_loopback_host_and_origin_must_be_the_pages_own(host, origin, connects, word):
    why = AccessCheck(Address("127.0.0.1", 8765)).refuses("/", host, origin, connects=connects)
    assert why is None if word is None else why.startswith(f"{word}: found")


def test_beyond_loopback_the_token_is_needed_and_no_other_does():
    door = AccessCheck(Address("192.168.1.2", 8765))
    host = "192.168.1.2:8765"
    query = urlsplit(door.url).query
    assert re.fullmatch(r"token=[\w-]{20,}", query)
    asked = [
        (f"/?{query}", None),
        ("/", "token"),
        ("/?token=", "token"),
        (f"/?{query}x", "token"),
        ("/?token=ä", "token"),
    ]
    for target, word in asked:
        why = door.refuses(target, host, None, connects=False)
        assert why is None if word is None else why.startswith(word)
    assert door.refuses(f"/live?{query}", host, "http://evil.example", connects=True).startswith("Origin")
    assert door.refuses(f"/live?{query}", "evil.example:8765", "http://evil.example:8765", connects=True).startswith(
        "Host"
    )
    assert AccessCheck(door.address).token != door.token


@settings(max_examples=50)
@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_header_makes_the_check_fail(target, host, origin):
    door = AccessCheck(Address("192.168.1.2", 8765))
    assert door.refuses(f"/?{target}", host, origin, connects=True)


# ---- what it may ask -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ('{"do": "operate", "what": "park"}', Operate("park")),
        ('{"do": "set", "key": "cueing.surge.gain", "value": 1, "gesture": 3}', Set("cueing.surge.gain", 1.0, 3)),
        ('{"do": "set", "key": "a", "value": null}', Set("a", None)),
        ('{"do": "set", "key": "a", "value": true}', Set("a", True)),
        ('{"do": "set", "key": "a", "value": "exact"}', Set("a", "exact")),
        ('{"do": "set", "key": "a", "value": ["yaw", "tilt"]}', Set("a", ["yaw", "tilt"])),
        ('{"do": "judge"}', ScoreSettings()),
    ],
)
def test_requests_are_read(text, request_):
    assert parse_request(text) == request_


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "1", b"\xff\xfe", '{"do": "explode"}', '{"what": "park"}', '{"do": "operate"}',
        '{"do": "operate", "what": "stop"}', '{"do": "operate", "what": "park", "more": 1}',
        '{"do": "set", "key": "a", "value": NaN}', '{"do": "set", "key": "a", "value": {}}',
        '{"do": "set", "key": "a", "value": [1]}', f'{{"do": "set", "key": "a", "value": "{"x" * 101}"}}',
        f'{{"do": "set", "key": "a", "value": {json.dumps(["x"] * 33)}}}',
        '{"do": "set", "key": "a", "value": 1e999}', '{"do": "save", "name": "../x.toml"}',
        '{"do": "save", "name": "/etc/x.toml"}', '{"do": "save", "name": "x.py"}', '{"do": "seen", "frames": -1}',
        "[" * 100_000, '{"do": "save", "name": "x.toml\\n"}', '{"do": "operate", "what": "park\\n"}',
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(text):
    with pytest.raises(ValueError, match="no request"):
        parse_request(text)


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(data):
    with contextlib.suppress(ValueError):  # and nothing else
        parse_request(data)


# ---- what it changes -------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    engine = Engine(PROFILE)
    desk = Editor(engine, motioncue.profile.profile.profile_text(PROFILE), tmp_path)
    desk.engine, desk.folder = engine, tmp_path
    return desk


def gain(desk):
    return desk.engine.requested.cueing.surge.gain


def test_every_number_has_its_value_range_and_sentence(desk):
    parameters = {control.key: control for control in desk.parameters()}
    values = desk.state()["values"]
    assert set(values) == set(parameters)
    assert len(parameters) > 60
    cutoff = parameters["cueing.surge.cutoff_hz"]
    assert (cutoff.unit, cutoff.least, cutoff.above, cutoff.most) == ("Hz", 0, True, 100)
    assert parameters["cueing.surge.order"].choices == (1, 2, 3)
    assert parameters["cueing.tilt.rate_limit_deg_s"].optional
    assert all(control.sentence for control in parameters.values())
    for key, control in parameters.items():
        assert control.kind != "number" or values[key] is None or isinstance(values[key], int | float), key


def test_a_change_is_made_by_retune_and_undone_by_gesture(desk):
    begin = gain(desk)
    for value in (0.3, 0.2, 0.1):
        desk.set("cueing.surge.gain", value, (1, 1))
    desk.set("cueing.surge.gain", 0.9, (1, 2), sure=True)
    assert gain(desk) == 0.9
    assert desk.state()["changed"] == {"cueing.surge.gain": [begin, 0.9]}
    for expected in (0.1, begin, begin):
        desk.undo(sure=True)
        assert gain(desk) == expected
    assert desk.state()["undo"] == 0


def test_two_pages_gestures_are_two(desk):
    desk.set("cueing.surge.gain", 0.3, (1, 1))
    desk.set("cueing.surge.gain", 0.2, (2, 1))
    desk.undo()
    assert gain(desk) == 0.3


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cueing.surge.gain", 11.0, "cueing.surge.gain: found 11.0, allowed is a number from -10 to 10"),
        ("cueing.surge.cutoff_hz", 0.0, "above 0, up to 100"),
        ("cueing.surge.gain", None, "found None"),
        ("cueing.surge.order", 4.0, "allowed are 1, 2, 3"),
        ("cueing.nothing", 1.0, "parameter: found 'cueing.nothing'"),
        ("output.rate_hz", 100.0, "output.rate_hz: fixed while it runs, how the sending thread runs"),
        ("record.file", 1.0, "parameter: found"),
    ],
)
def test_a_refused_value_says_why_and_changes_nothing(desk, key, value, words):
    before = desk.engine.requested
    with pytest.raises(ConfigError, match=re.escape(words)):
        desk.set(key, value, (1, 1))
    assert desk.engine.requested is before
    assert desk.state()["undo"] == 0


def test_a_and_b_are_two_settings_each_with_its_own_undo(desk):
    begin = gain(desk)
    desk.swap()
    assert (desk.state()["slot"], gain(desk), desk.state()["differs"]) == ("B", begin, [])
    desk.set("cueing.surge.gain", 0.2, (1, 1))
    assert desk.state()["differs"] == ["cueing.surge.gain"]
    desk.swap(sure=True)
    assert (desk.state()["slot"], gain(desk), desk.state()["undo"]) == ("A", begin, 0)
    desk.set("cueing.surge.gain", 0.7, (1, 2))
    desk.swap(sure=True)
    assert gain(desk) == 0.2
    desk.undo(sure=True)
    assert gain(desk) == begin
    desk.swap(sure=True)
    assert gain(desk) == 0.7


SAVED = ["cueing.surge.gain", "cueing.tilt.rate_limit_deg_s", "limits.surge.value_m_s2"]


def test_a_saved_profile_gives_the_settings_and_keeps_the_comments(desk):
    pytest.importorskip("tomlkit")
    text = motioncue.profile.profile.profile_text(PROFILE)
    desk.set("cueing.surge.gain", 0.25, (1, 1))
    desk.set("cueing.tilt.rate_limit_deg_s", None, (1, 2))
    desk.set("cueing.tilt.rate_limit_deg_s", 4.0, (1, 3))
    desk.set("limits.surge.value_m_s2", 13.0, (1, 4))
    answer = desk.save("mine.toml")
    path = desk.folder / "mine.toml"
    assert answer["file"] == str(path)
    saved = motioncue.load_profile(path)
    assert saved.cueing == desk.engine.requested.cueing
    assert saved.limits == desk.engine.requested.limits
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert kept[-len(comments) :] == comments
    reasons = kept[: -len(comments)]
    assert reasons[0] == "# changed: cueing.surge.gain: 0.6 to 0.25, set by hand"
    assert [line.split()[2] for line in reasons] == [f"{key}:" for key in SAVED]
    assert any(line.startswith("+") and "13" in line for line in answer["diff"])
    with pytest.raises(ConfigError, match=r"save: mine.toml exists"):
        desk.save("mine.toml")


def test_a_saved_profile_says_why_each_value_is_what_it_is(desk):
    pytest.importorskip("tomlkit")
    desk.turn({"cueing.surge.gain": 0.5, "cueing.sway.gain": 0.5}, (1, 1), why="knob stronger: less")
    desk.turn({"cueing.surge.gain": 0.4}, (1, 2), why="tuned\n[limits]")
    desk.undo()
    desk.set("cueing.sway.gain", 0.45, (1, 3))
    desk.swap("B", sure=True, why="preferred blind in 5 of 6")  # as at the beginning
    desk.swap("B", sure=True)
    assert desk.state()["slot"] == "B"
    desk.swap("A", sure=True, why="preferred blind in 5 of 6")
    desk.save("first.toml")
    reasons = [line for line in (desk.folder / "first.toml").read_text("utf-8").splitlines() if "changed" in line]
    assert reasons == [
        "# changed: cueing.surge.gain: 0.6 to 0.5, knob stronger: less; preferred blind in 5 of 6",
        "# changed: cueing.sway.gain: 0.6 to 0.45, set by hand; preferred blind in 5 of 6",
    ]
    desk.turn({"cueing.surge.gain": 0.4}, (1, 4), why="tuned\n[limits]")
    again = Editor(desk.engine, (desk.folder / "first.toml").read_text("utf-8"), desk.folder)
    again.set("cueing.surge.gain", 0.3, (1, 5))
    again.save("second.toml")
    reasons = [line for line in (desk.folder / "second.toml").read_text("utf-8").splitlines() if "changed" in line]
    assert reasons == ["# changed: cueing.surge.gain: 0.5 to 0.3, set by hand", reasons[1]]
    assert "sway" in reasons[1]
    desk.save("third.toml")  # what a page says is one line of a comment
    assert motioncue.load_profile(desk.folder / "third.toml").cueing == desk.engine.requested.cueing


@pytest.mark.parametrize(
    "platform", ["hexapod-simona", pytest.param("hexapod-cranks", marks=pytest.mark.check), "posts-4"]
)
def test_a_saved_profile_has_what_overrides_of_its_tables_gave(tmp_path, platform):
    pytest.importorskip("tomlkit")
    engine = Engine(motioncue.load_profile(PROFILE, f"platform.preset={platform}", "cueing.preset=auto"))
    desk = Editor(engine, motioncue.profile.profile.profile_text(PROFILE), tmp_path)
    desk.set("platform.rise_s", 2.5, (1, 1))
    desk.save("mine.toml")
    saved = motioncue.load_profile(tmp_path / "mine.toml")
    assert (saved.cueing, saved.platform) == (engine.requested.cueing, engine.requested.platform)


def test_what_no_text_can_say_is_saved_as_its_default_and_told(tmp_path):
    """A recording of before a bound had a number by default has none there, and what is tuned on it can be kept."""
    pytest.importorskip("tomlkit")
    whole = motioncue.load_profile(PROFILE, "limits.surge_displacement.value_m=2")
    free = msgspec.structs.replace(whole.limits.surge_displacement, jerk_m_s3=None)
    engine = Engine(
        msgspec.structs.replace(whole, limits=msgspec.structs.replace(whole.limits, surge_displacement=free))
    )
    desk = Editor(engine, motioncue.profile.profile.profile_text(PROFILE), tmp_path)
    desk.set("cueing.surge.gain", 0.25, (1, 1))
    desk.save("mine.toml")
    saved = motioncue.load_profile(tmp_path / "mine.toml")
    assert saved.cueing == engine.requested.cueing
    assert saved.limits == whole.limits
    told = "# changed: limits.surge_displacement.jerk_m_s3: none to 2500, because a profile cannot say none there"
    assert told in (tmp_path / "mine.toml").read_text("utf-8").splitlines()


def test_a_run_without_a_text_saves_nothing(tmp_path):
    with pytest.raises(ConfigError, match="without a profile's text"):
        Editor(Engine(PROFILE), None, tmp_path).save("mine.toml")
    assert list(tmp_path.iterdir()) == []


# ---- what it is shown ------------------------------------------------------------------------------------------------


def ticking(profile, **cue):
    """Return something with a profile and a newest tick, whose cue has these values."""
    tick = np.zeros(1, TICK_DTYPE)
    tick["index"], tick["deadline"], tick["lateness"] = 333, 1_000_000_000, 25_000
    tick["motion"], tick["cue"] = np.zeros(1, MOTION_DTYPE), np.zeros(1, CUE_DTYPE)
    tick["motion"]["time"] = 1
    for name, value in cue.items():
        tick["cue"][name] = value
    return SimpleNamespace(profile=profile, tick=tick, newest=lambda: tick)


def row_of(frames):
    return dict(zip(frames.names, np.frombuffer(frames.newest(), "<f8").tolist(), strict=True))


@pytest.mark.parametrize("platform", ["hexapod-simona", "hexapod-cranks", "hexapod-dim"])
def test_a_frame_has_the_pose_at_which_the_sent_positions_hold_the_platform(platform):
    profile = motioncue.load_profile(PROFILE, f"platform.preset={platform}")
    pose = [0.02, -0.01, 0.015, 0.02, -0.03, 0.01]
    engine = ticking(profile)
    machine = motioncue.platform(profile)
    engine.tick["actuators"][0, :6] = machine.inverse([pose])[0]
    row = row_of(Frames(engine))
    assert [row[name] for name in row if name.startswith("pose.")] == pytest.approx(pose, abs=1e-9)
    assert [row[f"at.{name}"] for name in machine.names] == engine.tick["actuators"][0, :6].tolist()
    assert row["time"] == pytest.approx(333 / 333.33)
    assert row["lateness_us"] == 25.0


def test_without_positions_sent_the_cues_pose_says_what_it_would_use():
    profile = motioncue.load_profile(PROFILE, "platform.preset=posts-4")
    engine = ticking(profile, heave_displacement=0.05)
    built = PlatformInForce()(profile)
    used = used_of(positions_of(engine.tick, built), built)
    assert used == {f"post_{n}": pytest.approx(0.05 / built.bounds[0][1]) for n in (1, 2, 3, 4)}
    engine.tick["cue"]["heave_displacement"] = built.bounds[0][0]
    assert set(used_of(positions_of(engine.tick, built), built).values()) == {-1.0}


def test_no_tick_is_shown_twice_and_none_before_the_first():
    engine = ticking(motioncue.load_profile(PROFILE))
    frames = Frames(engine)
    engine.tick["deadline"] = 0
    assert frames.newest() is None
    engine.tick["deadline"] = 1
    assert frames.newest() is not None
    assert frames.newest() is None
    engine.tick["index"] += 1
    assert frames.newest() is not None


def test_what_is_felt_is_left_out_where_the_cue_is_the_cars_own():
    engine = ticking(motioncue.load_profile("ccd-dk"), roll=0.1, yaw=2.0)
    row = row_of(Frames(engine))
    assert np.isnan(row["felt.surge"])
    assert (row["pose.roll"], row["pose.yaw"], row["pose.heave_displacement"]) == (0.1, 0.0, 0.0)


STOOD_ON = {"hexapod-on-sled": {"surge_displacement": "sled"}, "hexapod-on-yaw-table": {"yaw": "yaw_table"}}


@pytest.mark.parametrize("platform", sorted(motioncue.platforms.settings.platform_presets()))
def test_the_drawn_legs_are_as_long_as_the_platforms(platform):
    profile = motioncue.load_profile(PROFILE, f"platform.preset={platform}")
    built = PlatformInForce()(profile)
    scene = scene_of(profile, built)
    json.dumps(scene, allow_nan=False)
    assert scene["names"] == list(built.names)
    assert not scene["sent"]  # DK is sent the cue
    assert scene["tables"] == STOOD_ON.get(platform, {})
    for carrier, neutral in zip(scene["carriers"], built.neutral, strict=False):
        assert carrier["base"][2] <= scene["floor"] + 1e-12
        if scene["kind"] == "hexapod":
            assert np.linalg.norm(np.subtract(carrier["top"], carrier["base"])) == pytest.approx(neutral)


# ---- its files -------------------------------------------------------------------------------------------------------


def test_no_file_of_the_page_names_another_place():
    said = {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}  # the second one in a comment
    assert {file.name for file, _ in FILES.values()} >= {"index.html", "page.js", "uPlot.iife.min.js"}
    for name, (file, _) in FILES.items():
        text = file.read_text(encoding="utf-8")
        urls = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", text)) - said
        assert urls == set(), name
        assert "eval(" not in text
        assert not re.search(r"\son\w+=|\sstyle=", text), "the page's own policy forbids these"


# ---- a recording that plays ------------------------------------------------------------------------------------------


@pytest.fixture
def played():
    played = Played(motioncue.read(path_of("vehicle-physics-pro")))
    played.park()
    return played


def at(played, moment_s):
    """Return the tick that is shown at a moment of the recording."""
    played._move(moment_s, playing=False)
    return played.newest()


def test_a_recording_plays_its_ticks_in_their_own_time(played):
    ticks = motioncue.read(path_of("vehicle-physics-pro")).ticks
    assert played.newest()["index"] == ticks["index"][0]
    tick = at(played, 1.0)
    assert tick["index"] == ticks["index"][0] + int(played.profile.rate_hz)
    assert tick["cue"].tobytes() == ticks["cue"][ticks["index"] == tick["index"]].tobytes()
    assert at(played, 1.0 + played._length_s)["index"] == tick["index"]  # over and over
    stats = played.stats()
    assert stats["packets_sent"] == len(ticks)
    assert stats["transitions"][0]["to"] == "ENGAGING"
    assert 0.0 <= stats["transitions"][0]["t"] < 0.1


def test_what_is_tuned_is_replayed_from_the_beginning(played):
    before = at(played, 1.2)["cue"]["heave"].copy()
    algorithm = played.profile.cueing
    assert algorithm.heave.gain != 0.0
    played.retune({"cueing.heave.gain": 0.0, "cueing.surge.gain": 0.0})
    assert played.requested.cueing.heave.gain == 0.0
    assert at(played, 1.2)["cue"]["heave"] != before
    shown = played.newest()["index"]
    with pytest.raises(ConfigError, match=re.escape("output.rate_hz")):
        played.retune({"output.rate_hz": 250.0})
    assert played.newest()["index"] == shown


def test_the_page_is_small():
    assert sum(len(gzip.compress(file.read_bytes())) for file, _ in FILES.values()) < 200_000
