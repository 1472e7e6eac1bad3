"""Tuning of every algorithm, from the search to the saved profile; and what must, and must not, matter on a drive."""

import numpy as np
import pytest

pytest.importorskip("cma")
pytest.importorskip("tomlkit")
pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

from msgspec import to_builtins
from tune_helpers import SLOW, driven, profile

import motioncue
from motioncue.cueing.settings import ALGORITHMS
from motioncue.profile.profile import profile_text
from motioncue.profile.tables import flat, parsed
from motioncue.scoring import score as module
from motioncue.tuning.search import Bounds
from motioncue.tuning.tune import tune, tuned_text, written_out

pytestmark = pytest.mark.search

SEARCHED = {
    "classical": ["surge", "tilt"],
    "adaptive": ["surge", "adaptation", "pitch.cutoff_hz"],  # among them a start that must not exceed its most
    "optimal": ["surge.weight", "pitch.weight", "restraint"],
    "predictive": ["gain", "weights.surge", "tilt.rate_limit_deg_s"],
}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Keep best motions in a folder of this file's tests."""
    kept = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "cache_folder", lambda: kept)
        yield kept


@pytest.mark.parametrize("name", [name for name, table in ALGORITHMS.items() if table.poses])
def test_any_algorithm_is_tuned_saved_and_scores_what_is_said(name, tmp_path):
    overrides = [SLOW, f"cueing.algorithm={name}", "platform.preset=box-small"]
    if ALGORITHMS[name].auto is not None:
        overrides.append("cueing.preset=auto")  # which keeps the bounds; that of the built-in profile does not
    bounds = Bounds(1.0, 0.5, 0.5)
    found = tune(
        motioncue.load_profile("ccd-dk-classical", *overrides),
        [driven()],
        parameters=SEARCHED[name],
        evaluations=10,
        bounds=bounds,
    )
    assert set(found.excess_before.values()) == {0.0}
    assert found.after >= found.before
    assert found.evaluations == 10
    values = {key: after for key, (_, after) in found.changes.items()}
    tuned, written = written_out(found.profile) if ALGORITHMS[name].auto else (found.profile, values)
    text = tuned_text(profile_text("ccd-dk-classical"), dict(map(parsed, overrides)) | written, [], tuned)
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    saved = motioncue.load_profile(tmp_path / "mine.toml")
    assert saved.cueing == tuned.cueing
    assert {key: value for key, value in flat({"cueing": to_builtins(saved.cueing)}) if key in values} == values
    scored = motioncue.score(saved, driven())
    assert scored.score == found.after
    fits = scored.motions["fits"]
    assert set(scored.turned_down.values()) == {1.0}
    assert max(max(shares) for shares in fits.use.values()) <= bounds.use + 1e-9
    assert fits.fast_tilt <= bounds.fast_tilt
    assert max(fits.opposite.values()) <= bounds.opposite
    assert all(
        np.isfinite((each.by_smaller, each.by_larger)).all() for each in found.sensitivities
    )  # every value beside it is possible


def test_what_a_drive_cannot_use_does_not_matter_and_what_it_is_made_of_matters_most():
    # A car that only brakes, on a platform that only tilts and lifts: it is felt through the tilt of surge alone.  The
    # gain of surge scales all of it, sway and yaw have no input, and displacement along surge is not made.
    drive = driven(8.0)
    for channel in ("sway", "roll", "roll_rate", "yaw_rate"):
        drive[channel] = 0.0
    gains = [f"{axis}.gain" for axis in ("sway", "roll", "yaw", "surge")]
    found = tune(
        profile("cueing.preset=utias"),
        [drive],
        platform="posts-3",
        parameters=[*gains, "surge.cutoff_hz", "tilt.surge_cutoff_hz"],
        evaluations=2,
    )
    rows = {each.key.removeprefix("cueing."): each for each in found.sensitivities}
    assert next(iter(rows)) == "surge.gain"
    assert max(abs(rows["surge.gain"].by_smaller), abs(rows["surge.gain"].by_larger)) > 1.0
    assert rows["tilt.surge_cutoff_hz"].by_smaller != 0.0
    for key in ("sway.gain", "roll.gain", "yaw.gain", "surge.cutoff_hz"):
        assert (rows[key].by_smaller, rows[key].by_larger) == (0.0, 0.0)
        assert rows[key].smaller < rows[key].value < rows[key].larger
