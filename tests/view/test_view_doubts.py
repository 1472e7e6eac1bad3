"""Which changes of settings are asked about first, whoever requests them."""

import itertools
import re

import pytest

import motioncue
from motioncue.engine.engine import Engine
from motioncue.profile.profile import profile_text
from motioncue.view.editor import Doubtful, Editor

PROFILE = "ccd-dk-classical"
ROUND = itertools.count()


@pytest.fixture
def desk():
    begin = ("cueing.surge.gain=0.5", "cueing.sway.gain=-0.5", "cueing.heave.gain=0", "cueing.surge.damping=0.4")
    engine = Engine(motioncue.load_profile(PROFILE, *begin, "cueing.surge.cutoff_hz=0.4"))
    desk = Editor(engine, profile_text(PROFILE))
    desk.engine = engine
    return desk


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cueing.surge.gain", -0.1, "0.5 → −0.1, the other sign"),
        ("cueing.sway.gain", 0.1, "−0.5 → 0.1, the other sign"),
        ("cueing.surge.gain", 1.01, "0.5 → 1.01, more than twice"),
        ("cueing.sway.gain", -1.01, "more than twice"),
        ("cueing.heave.gain", 0.1, "0 → 0.1, from nothing"),
        ("cueing.surge.damping", 0.29, "0.4 → 0.29, below 0.3"),
        ("cueing.surge.cutoff_hz", 0.81, "more than twice"),
        ("cueing.surge.cutoff_hz", 0.19, "less than half"),
        ("supervisor.fade_s", 0.4, "1 → 0.4, less than half"),
        ("watch.max_acceleration_m_s2", 201.0, "more than twice"),
        ("limits.pitch.value_deg", 121.0, "more than twice"),
        ("limits.pitch", False, 'limits.pitch = "none"'),
        ("limits", False, 'limits = "none"'),
    ],
)
def test_a_change_that_could_be_a_slip_is_made_only_if_sure(desk, key, value, words):
    begin = desk.engine.requested
    with pytest.raises(Doubtful, match=re.escape(words)):
        desk.set(key, value, (next(ROUND),))
    assert desk.engine.requested is begin
    assert desk.state()["undo"] == 0
    desk.set(key, value, (next(ROUND),), sure=True)
    assert desk.engine.requested != begin


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cueing.surge.gain", 1.0),
        ("cueing.surge.gain", 0.01),  # a gain may become smaller
        ("cueing.surge.gain", 0.0),
        ("cueing.surge.damping", 0.3),
        ("cueing.surge.cutoff_hz", 0.8),
        ("cueing.surge.cutoff_hz", 0.2),
        ("cueing.algorithm", "adaptive"),
        ("limits.pitch.value_deg", 31.0),
    ],
)
def test_other_changes_are_made_at_once(desk, key, value):
    begin = desk.engine.requested
    desk.set(key, value, (next(ROUND),))
    assert desk.engine.requested != begin


def test_a_gesture_is_judged_as_a_whole(desk):
    for value in (0.7, 0.9, 1.0):
        desk.set("cueing.surge.gain", value, (1,))
    with pytest.raises(Doubtful, match=r"0\.5 → 1\.1, more than twice"):  # of where the hand began
        desk.set("cueing.surge.gain", 1.1, (1,))
    desk.set("cueing.surge.gain", 1.1, (2,))
    assert desk.engine.requested.cueing.surge.gain == 1.1


def test_two_fingers_on_two_sliders_are_asked_as_one_is(desk):
    for value in (0.7, 0.9, 1.0):
        desk.set("cueing.surge.gain", value, (1,))
        desk.set("cueing.sway.gain", -value, (1,))
    for key, words in (("surge.gain", r"0\.5 → 1\.1"), ("sway.gain", r"−0\.5 → −1\.1")):
        with pytest.raises(Doubtful, match=words) as asked:
            desk.set(f"cueing.{key}", -1.1 if "sway" in key else 1.1, (1,))
        assert len(asked.value.why) == 1  # nothing is asked about the other hand's


def test_undo_and_the_other_slot_ask_where_bounds_go_off(desk):
    desk.set("limits.pitch", False, (1,), sure=True)
    desk.swap()
    off = re.escape('limits.pitch = "none"')
    with pytest.raises(Doubtful, match=off):
        desk.swap()
    desk.swap(sure=True)
    desk.set("limits.pitch", True, (2,))
    with pytest.raises(Doubtful, match=off):
        desk.undo()
    assert desk.state()["off"] == []
    desk.undo(sure=True)
    assert any('limits.pitch = "none"' in line for line in desk.state()["off"])


@pytest.mark.parametrize(
    ("key", "value", "back"),
    [
        ("cueing.surge.gain", -0.4, "−0.4 → 0.5, the other sign"),
        ("cueing.surge.gain", 0.2, "0.2 → 0.5, more than twice"),
        ("cueing.surge.cutoff_hz", 0.9, "0.9 → 0.4, less than half"),
    ],
)
def test_undo_and_the_other_slot_ask_as_one_change_does(desk, key, value, back):
    desk.swap()  # B is a copy of A: nothing to ask
    desk.set(key, value, (1,), sure=True)
    there = desk.engine.requested
    for goes_back in (desk.undo, desk.swap):
        with pytest.raises(Doubtful, match=re.escape(back)):
            goes_back()
        assert desk.engine.requested is there
        assert (desk.state()["slot"], desk.state()["undo"]) == ("B", 1)
    desk.undo(sure=True)
    assert desk.state()["undo"] == 0


def test_a_way_back_to_little_damping_is_asked_about(desk):
    desk.set("cueing.surge.damping", 0.25, (1,), sure=True)
    desk.set("cueing.surge.damping", 0.4, (2,))
    with pytest.raises(Doubtful, match=r"0\.4 → 0\.25, below 0\.3"):
        desk.undo()


def test_what_is_off_at_the_beginning_is_said_and_not_asked_about(desk):
    engine = Engine(motioncue.load_profile(PROFILE, "limits=none", "cueing.surge.gain=0.5"))
    desk = Editor(engine)
    assert any('limits = "none"' in line for line in desk.state()["off"])
    desk.set("cueing.surge.gain", 0.6, (1,))
