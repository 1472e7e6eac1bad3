"""A marked stretch of a drive: which drive it is of, what is felt wrong on it, and what is drawn of other settings."""

import base64
import itertools

import msgspec
import numpy as np
import pytest
from helpers import nowhere

from motioncue.core.channels import MOTION_DTYPE, TICK_DTYPE
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError
from motioncue.safety.supervisor import State
from motioncue.view.playback import Recent
from motioncue.view.scorer import Request, corner, scores_of

pytest.importorskip("scipy")


def profile(*more):
    where = (f"output.motion={nowhere()}", f"output.gauges={nowhere()}")
    return load_profile("program-dk", *where, "cueing.algorithm=classical", "platform.preset=hexapod-simona", *more)


def braking(seconds=12.0, at=6.0, force=-4.0):
    """Return a drive that brakes for a second and nothing else."""
    time = np.arange(0.0, seconds, 0.01)
    motion = np.zeros(len(time), MOTION_DTYPE)
    motion["time"] = 1_000_000_000 + np.round(1e9 * time)
    motion["surge"] = force * np.clip(5.0 * np.minimum(time - at, at + 1.0 - time), 0.0, 1.0)
    return motion


def test_what_stands_still_misses_all_that_is_felt():
    silent = [f"cueing.{axis}.gain=0" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")]
    found = corner(profile(*silent, "cueing.tilt.surge_gain=0", "cueing.tilt.sway_gain=0"), braking(), 5.0, 9.0)
    assert found["ratio"] == pytest.approx(1.0, abs=1e-6)
    assert found["errors"] == pytest.approx(found["rest"])
    assert found["rest"][0] > 1.0
    assert found["rest"][1:] == pytest.approx([0.0] * 5, abs=1e-9)
    assert (found["worst"], found["travel"]) == ("surge", pytest.approx(0.0, abs=1e-9))
    assert 6.0 <= found["worst_s"] <= 7.2  # while it brakes; the organs report a little later
    assert found["why"] == "too little arrives: stronger, more lean, or a slower return"


def test_a_cue_helps_and_the_rest_of_the_drive_does_not_count():
    motion = braking()
    found = corner(profile(), motion, 5.0, 9.0)
    assert found["ratio"] < 0.95
    before = corner(profile(), motion, 1.0, 4.0)
    assert max(before["rest"]) < 1e-6 < found["rest"][0]


@pytest.mark.parametrize(
    ("settings", "force", "why"),
    [
        (
            ("cueing.surge.gain=3", "cueing.surge.cutoff_hz=0.05", "cueing.surge.limit_m_s2=20"),
            -9.0,
            "end of its travel",
        ),
        (("cueing.tilt.rate_limit_deg_s=1",), -3.0, "leaning is as quick as it may be, 1 °/s"),
    ],
    ids=["travel", "lean"],
)
def test_the_reason_is_the_end_that_was_met(settings, force, why):
    assert why in corner(profile(*settings), braking(force=force), 5.0, 9.0)["why"]


def test_the_picture_has_the_rows_of_the_stretch():
    found = corner(profile(), braking(), 5.0, 9.0)
    rows = np.frombuffer(base64.b64decode(found["rows"]), "<f4").reshape(-1, len(found["names"]))
    column = dict(zip(found["names"], rows.T, strict=True))
    assert column["time"][0] == pytest.approx(5.0, abs=0.01)
    assert column["time"][-1] == pytest.approx(9.0, abs=0.05)
    assert len(rows) == pytest.approx(100, abs=5)
    assert column["cue.surge"].min() < -0.5
    assert np.abs(column["used.leg_1"]).max() <= found["travel"] + 1e-6


def test_settings_are_judged_beside_each_other_on_a_stretch():
    profiles = {"before": profile("cueing.surge.gain=0.2"), "now": profile()}
    (said,) = scores_of(Request(3, profiles, braking(), (5.0, 9.0)), {})
    assert (said["number"], said["done"], list(said["columns"])) == (3, True, ["before", "now"])
    msgspec.json.encode(said)
    (said,) = scores_of(Request(4, profiles, braking(2.0, 0.5), (0.5, 1.5)), {})
    assert "allowed are 3 to 3600 s" in said["columns"]["now"]["why"]
    with pytest.raises(ConfigError, match="nothing is felt"):
        corner(profile(), braking(force=0.0), 5.0, 9.0)


class Driven:
    """An engine whose ticks are told."""

    def __init__(self):
        self.profile = profile()
        self.tick = np.zeros(1, TICK_DTYPE)

    def newest(self):
        return self.tick.copy()

    def say(self, index, state=State.RUNNING):
        at = round(index * 1e9 / self.profile.rate_hz) + 1
        self.tick["index"], self.tick["state"], self.tick["deadline"] = index, int(state), at
        self.tick["motion"]["time"], self.tick["motion"]["surge"] = at, index


def test_a_stretch_is_of_one_drive_and_has_its_lead():
    engine = Driven()
    recent = Recent(engine)
    for index in itertools.chain(range(1, 3001, 3), range(4001, 6001, 3)):
        engine.say(index)
        recent.poll()
    rate = engine.profile.rate_hz
    found = recent.stretch(7.0, 8.0, 2.0)
    assert found.begin_s == pytest.approx(5.0, abs=4 / rate)
    assert found.end_s == pytest.approx(8.0, abs=4 / rate)
    assert found.motion["surge"] == pytest.approx(np.arange(found.motion["surge"][0], found.end_s * rate + 1, 3), abs=1)
    later = recent.stretch(13.0, 14.0, 20.0)
    assert later.begin_s == pytest.approx(4001 / rate)  # nothing of the drive before
    assert recent.stretch(8.0, 12.5, 2.0) == pytest.approx((8.0, 9.0), abs=4 / rate)  # a pause: the longest part
    assert recent.stretch(17.0, 20.0, 2.0) == pytest.approx((17.0, 18.0), abs=4 / rate)  # not driven yet
    assert recent.stretch(9.5, 10.5, 2.0) is None
    engine.say(10)  # another run
    recent.poll()
    assert recent.stretch(7.0, 8.0, 2.0) is None
