"""Tuning on real kernels and scores: what is found, written, judged on other drives, refused."""

import sys

import msgspec
import numpy as np
import pytest

pytest.importorskip("cma")
pytest.importorskip("tomlkit")
pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

from tune_helpers import SLOW, UTIAS, driven, profile

import motioncue
from motioncue.errors import ConfigError
from motioncue.profile.profile import profile_text
from motioncue.scoring import score as module
from motioncue.tuning.evaluator import IMPOSSIBLE, Evaluator, with_values
from motioncue.tuning.search import Bounds
from motioncue.tuning.tune import tune, tuned_text, written_out

pytestmark = pytest.mark.search


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Keep best motions in a folder of this file's tests."""
    kept = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "cache_folder", lambda: kept)
        yield kept


@pytest.mark.parametrize("platform", ["box-small", "posts-3", "hexapod-dim"])
@pytest.mark.parametrize("gain", [0.2, 2.0])
def test_settings_are_worth_what_they_score(platform, gain):
    table = motioncue.platform(platform).table
    with_it = motioncue.load_profile("ccd-dk-classical", SLOW, UTIAS)
    found = Evaluator(_on(with_it, table), [driven()])({"cueing.surge.gain": gain, "cueing.sway.gain": gain})[0]
    changed = profile(UTIAS, f"cueing.surge.gain={gain}", f"cueing.sway.gain={gain}")
    expected = motioncue.score(changed, driven(), platform=table)
    fits = expected.motions["fits"]
    assert expected.score < 100.0  # there the profile's own motion would be the best
    assert found.score == pytest.approx(expected.score, abs=1e-9)
    assert found.rates_first == pytest.approx(expected.rates_first.score, abs=1e-9)
    assert found.fast_tilt == fits.fast_tilt
    assert found.opposite == max(fits.opposite.values())
    asked = np.nanmax(list(expected.asked.values()))
    turned_down = min(each for each in expected.turned_down.values() if each > 0.0)
    assert found.use == pytest.approx(1.0 / turned_down) if turned_down < 1.0 else found.use >= asked


def _on(profile, table):
    return msgspec.structs.replace(profile, platform=table)


def test_settings_that_cannot_be_designed_are_impossible():
    evaluator = Evaluator(_on(profile(), motioncue.platform("box-small").table), [driven(), driven(6.0)])
    assert evaluator({"cueing.surge.cutoff_hz": 40.0}) == [IMPOSSIBLE, IMPOSSIBLE]  # above half of 60 Hz


def test_tuning_finds_better_settings_within_the_bounds_and_says_what_they_are_worth_elsewhere():
    told = []
    found = tune(
        profile(UTIAS),
        {"one": driven(), "two": driven(6.0, braking=2.0)},
        hold_out={"other": driven(7.0, braking=-5.0)},
        platform="box-small",
        parameters=["*.gain", "surge"],
        evaluations=120,
        progress=lambda *said: told.append(said),
    )
    assert found.after > found.before + 3.0
    assert (found.evaluations, found.ended) == (120, "evaluations")
    assert set(found.excess.values()) == {0.0}
    assert found.excess_before["use"] == pytest.approx(
        np.log(1.1597), abs=1e-4
    )  # what `motioncue.score` says is asked for
    assert [(each.drive, each.held_out) for each in found.drives] == [("one", False), ("two", False), ("other", True)]
    # What it says is what `motioncue.score` says of the profiles.
    for each, motion in zip(found.drives, (driven(), driven(6.0, braking=2.0), driven(7.0, braking=-5.0)), strict=True):
        assert str(each.after) == str(motioncue.score(found.profile, motion))
        assert str(each.before) == str(motioncue.score(profile(UTIAS), motion, platform="box-small"))
    assert found.after == pytest.approx(np.mean([each.after.score for each in found.drives[:2]]))
    assert found.hold_out_before == found.drives[2].before.score
    assert found.hold_out_after == found.drives[2].after.score
    for each in found.drives[:2]:
        fits = each.after.motions["fits"]
        assert set(each.after.turned_down.values()) == {1.0}
        assert fits.fast_tilt <= 0.25
        assert max(fits.opposite.values()) <= 0.25
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    best = [score for _, _, score in told]
    assert told[-1][:2] == (120, 120)
    assert best[-1] == pytest.approx(found.after)
    # Sensitivities: what `motioncue.score` says with one value changed.
    first = found.sensitivities[0]
    values = {key: value for key, (_, value) in found.changes.items()}
    changed = motioncue.load_profile("ccd-dk-classical", SLOW, UTIAS, values, {first.key: first.smaller})
    seen = driven(), driven(6.0, braking=2.0)
    scores = [motioncue.score(changed, motion, platform="box-small").score for motion in seen]
    assert first.by_smaller == pytest.approx(np.mean(scores) - found.after, abs=1e-6)
    sizes = [max(abs(each.by_smaller), abs(each.by_larger)) for each in found.sensitivities]
    assert sizes == sorted(sizes, reverse=True)


def test_what_changes_nothing_is_left_out():
    found = tune(profile(), [driven(4.0)], platform="posts-3", evaluations=4)  # posts do not slide
    keys = {key.removeprefix("cueing.") for key in found.idle}
    assert {"surge.cutoff_hz", "surge.damping", "sway.cutoff_hz", "sway.damping"} <= keys
    assert "cueing.roll.gain" in found.changes
    assert not keys & {key.removeprefix("cueing.") for key in found.changes}


def test_workers_find_what_one_process_finds():
    given = {"platform": "box-small", "parameters": ["surge", "tilt"], "evaluations": 20}
    one, two = (tune(profile(UTIAS), [driven(5.0)], workers=workers, **given) for workers in (1, 2))
    assert one.changes == two.changes
    assert one.sensitivities == two.sensitivities
    assert one.profile == two.profile


def test_an_interrupted_search_keeps_the_best_and_goes_on(tmp_path):
    given = {"platform": "box-small", "parameters": ["surge", "sway.gain"], "evaluations": 40}
    begun = profile(UTIAS, "cueing.surge.gain=0.25")
    whole = tune(begun, [driven(5.0)], **given)

    def interrupt(done, total, best):
        if done > 15:
            raise KeyboardInterrupt

    state = tmp_path / "it.search"
    half = tune(begun, [driven(5.0)], **given, state=state, progress=interrupt)
    assert half.ended == "interrupted"
    assert 15 < half.evaluations < 40
    assert set(half.excess_before.values()) == {0.0}
    assert half.after >= half.before
    assert half.sensitivities == []
    again = tune(begun, [driven(5.0)], **given, state=state, resume=True)
    assert (again.changes, again.evaluations, again.ended) == (whole.changes, 40, "evaluations")
    with pytest.raises(ConfigError, match="--resume: found other drives in"):
        tune(begun, [driven(6.0)], **given, state=state, resume=True)


def test_bounds_change_what_is_found():
    given = {"platform": "box-small", "parameters": ["surge", "sway", "tilt"], "evaluations": 60}
    loose = tune(profile(UTIAS), [driven()], **given, bounds=Bounds(1.0, 1.0, 1.0))
    tight = tune(profile(UTIAS), [driven()], **given, bounds=Bounds(0.5, 0.05, 1.0))
    fits = tight.drives[0].after.motions["fits"]
    assert fits.fast_tilt <= 0.05
    assert max(max(shares) for shares in fits.use.values()) <= 0.5 + 1e-9
    assert tight.after < loose.after


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"drives": []}, "drives: found none"),
        ({"parameters": ["surge.gian"]}, "parameter: found 'surge.gian', allowed are surge.gain, "),
        ({"parameters": ["surge.break_hz"]}, "surge.break_hz', which has no value to begin from"),
        ({"evaluations": 0}, "evaluations: found 0, allowed are whole numbers from 1"),
        ({"workers": -1}, "workers: found -1"),
        ({"seed": 0.5}, "seed: found 0.5"),
        ({"platform": None}, "platform: missing"),
        ({"bounds": Bounds(use=float("nan"))}, "use: found nan, allowed are numbers above 0"),
        ({"bounds": Bounds(use=0.0)}, "use: found 0.0"),
        ({"bounds": Bounds(fast_tilt=float("nan"))}, "fast_tilt: found nan, allowed are numbers from 0"),
        ({"platform": "boxx"}, "platform: found 'boxx'"),
        ({"profile": "ccd-dk"}, "cueing.algorithm: found 'direct', whose cue is no pose"),
        ({"drives": {"a": driven(4.0)}, "hold_out": {"a": driven(4.0)}}, "hold_out: found 'a', on which is tuned"),
        ({"drives": [driven(4.0)[:50]]}, "motion: found 50 frames"),
        ({"hold_out": [driven(4.0)[:50]]}, "motion: found 50 frames"),
    ],
)
def test_what_cannot_be_tuned_is_refused_by_name(given, said):
    every = {"profile": profile(), "drives": [driven(4.0)], "platform": "box-small", "evaluations": 2, **given}
    with pytest.raises(ConfigError, match=said):
        tune(every.pop("profile"), every.pop("drives"), **every)


@pytest.mark.parametrize("name", ["cma", "clarabel"])
def test_a_missing_library_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf'{name} is missing: pip install "motioncue\[(score|tune)\]"'):
        tune(profile(), [driven(4.0)], platform="box-small")


TEXT = """\
# my rig
[source]                # the game
system = "beamng"
endpoint = "udp://127.0.0.1:4567"

[cueing]                # how it feels
algorithm = "classical"
preset = "simona"       # a start
surge = { gain = 0.5 }  # not too much

[cueing.tilt]
rate_limit_deg_s = 4.0  # they notice more

[output]                # the platform
system = "dk"
motion = "udp://127.0.0.1:4445"
"""


def test_the_file_is_the_profile_with_other_values_and_its_comments(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    values = {"cueing.surge.gain": 0.25, "cueing.sway.gain": 0.75, "cueing.tilt.rate_limit_deg_s": 3.5}
    tuned = motioncue.load_profile(path, values)
    text = tuned_text(TEXT, values, ["how"], tuned)
    path.write_text(text)
    assert motioncue.load_profile(path) == tuned
    assert text.startswith("# tuned: how\n# my rig\n")
    for comment in (
        "# the game",
        "# how it feels",
        "# a start",
        "# not too much",
        "# they notice more",
        "# the platform",
    ):
        assert comment in text
    for line in ("surge = { gain = 0.25 }", "rate_limit_deg_s = 3.5", 'preset = "simona"'):
        assert line in text
    again = tuned_text(
        text, {"cueing.surge.gain": 0.3}, ["how else"], motioncue.load_profile(path, "cueing.surge.gain=0.3")
    )
    assert again.startswith("# tuned: how else\n# my rig\n")
    odd = tuned_text(TEXT, values, ["\n[cueing.yaw]\x00\udcff"], tuned)  # of a file's name
    assert odd.startswith("# tuned: ?[cueing.yaw]??\n# my rig\n")
    assert "# tuned: how\n" not in again


def test_a_built_in_profile_can_be_written_with_what_was_found(tmp_path):
    values = {"cueing.surge.cutoff_hz": 0.125, "cueing.preset": "utias"}
    tuned = motioncue.load_profile("ccd-dk-classical", values)
    path = tmp_path / "ccd-dk-classical.toml"
    path.write_text(tuned_text(profile_text("ccd-dk-classical"), values, [], tuned))
    assert motioncue.load_profile(path) == tuned


def test_what_auto_gave_is_written_as_values_because_it_depends_on_others(tmp_path):
    changes = {"cueing.algorithm": "optimal", "cueing.preset": "auto", "platform.preset": "box-small"}
    start, values = motioncue.load_profile("ccd-dk-classical", changes), {"cueing.surge.weight": 3.0}
    tuned = msgspec.structs.replace(start, cueing=with_values(start.cueing, values))
    assert motioncue.load_profile("ccd-dk-classical", changes, values).cueing != tuned.cueing  # other angles
    plain, written = written_out(tuned)
    assert plain.cueing == msgspec.structs.replace(tuned.cueing, preset=None)
    path = tmp_path / "mine.toml"
    path.write_text(tuned_text(profile_text("ccd-dk-classical"), {**changes, **written}, [], plain))
    assert motioncue.load_profile(path).cueing == plain.cueing
    assert motioncue.load_profile(path).platform == tuned.platform


def test_values_that_would_not_come_back_are_not_written():
    other = motioncue.load_profile("ccd-dk-classical", "cueing.surge.gain=0.9")
    with pytest.raises(ConfigError, match="--out: the values found cannot be put into this profile"):
        tuned_text(profile_text("ccd-dk-classical"), {"cueing.sway.gain": 0.5}, [], other)
