"""``motioncue run --watch``: a valid change saved in the profile's file is applied while running, others are not."""

import logging
import math
import os

import pytest
from click.testing import CliRunner
from helpers import eventually, own_ports, stream_url
from programs import INTERRUPT, STREAM, Feeder, Program

from motioncue.cli import cli
from motioncue.cli.run import Follower
from motioncue.errors import ConfigError
from motioncue.profile.profile import profile_text

WASHOUT = own_ports(profile_text("ccd-dk-classical"))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text("one", encoding="utf-8")
    return path


def followed(file, refuse=()):
    """Return a follower of a file and the list of what it has applied."""
    applied = []

    def apply():
        text = file.read_text(encoding="utf-8")
        if text in refuse:
            raise ConfigError(f"rig: {text} is not allowed")
        applied.append(text)

    return Follower(file, apply), applied


def test_what_is_there_is_in_use_and_what_is_saved_is_used_once(file):
    follower, applied = followed(file)
    assert [follower.look() for _ in range(3)] == [False] * 3
    file.write_text("two", encoding="utf-8")
    assert [follower.look() for _ in range(4)] == [False, True, False, False]
    assert applied == ["two"]


def test_a_file_that_an_editor_puts_in_the_place_of_the_old_one_is_saved(file):
    follower, applied = followed(file)
    new = file.with_suffix(".new")
    new.write_text("two", encoding="utf-8")
    os.replace(new, file)
    follower.look()
    follower.look()
    os.rename(file, file.with_suffix(".toml~"))  # as Vim does, before it writes the new one
    assert not follower.look()
    assert not follower.look()
    file.write_text("three", encoding="utf-8")
    follower.look()
    follower.look()
    assert applied == ["two", "three"]


def test_a_file_that_is_still_being_written_is_not_saved_yet(file):
    follower, applied = followed(file)
    for text in ("t", "tw", "two"):
        file.write_text(text, encoding="utf-8")
        assert not follower.look()
    assert follower.look()
    assert applied == ["two"]


def test_the_same_contents_again_change_nothing_and_the_old_ones_are_a_change_too(file):
    follower, applied = followed(file)
    file.write_text("one", encoding="utf-8")  # another time, the same text
    assert not any(follower.look() for _ in range(3))
    for text in ("two", "one"):
        file.write_text(text, encoding="utf-8")
        follower.look()
        follower.look()
    assert applied == ["two", "one"]


def test_what_is_wrong_is_said_once_with_the_reason_and_the_next_that_is_right_is_used(file, caplog):
    caplog.set_level(logging.INFO, "motioncue")
    follower, applied = followed(file, refuse=("two",))
    file.write_text("two", encoding="utf-8")
    for _ in range(4):
        follower.look()
    assert applied == []
    assert [record.getMessage() for record in caplog.records] == [
        "rig.toml is saved but not used, what was in use stays: rig: two is not allowed"
    ]
    file.write_text("three", encoding="utf-8")
    follower.look()
    follower.look()
    assert applied == ["three"]
    assert caplog.records[-1].getMessage() == "rig.toml is saved and used"


def test_a_built_in_profile_has_no_file_to_follow():
    result = CliRunner().invoke(cli, ["run", "--profile", "ccd-dk", "--watch"])
    assert result.exit_code == 2
    assert "--watch: found 'ccd-dk', which is built in; allowed is a file" in result.output


@pytest.mark.rt
@pytest.mark.check
def test_a_running_engine_uses_what_is_saved_and_says_why_not(tmp_path):
    url, file = stream_url(STREAM, tmp_path), tmp_path / "rig.toml"
    file.write_text(WASHOUT, encoding="utf-8")
    keys = ["--set", f"source.endpoint={url}", "--set", "supervisor.hold_s=5"]
    with Program("run", "--profile", str(file), *keys, "--watch", "--json", cwd=tmp_path) as run, Feeder(url):
        run.says("offline to engaging")
        file.write_text(WASHOUT.replace('"simona"', '"utias"'), encoding="utf-8")
        run.says("retuned: cueing.preset simona → utias")
        file.write_text(WASHOUT.replace('"simona"', '"utias"\nsurge = { grain = 1 }'), encoding="utf-8")
        run.says("cueing.surge.grain: unknown key")
        file.write_text(WASHOUT.replace("rate_hz = 333.33", "rate_hz = 100"), encoding="utf-8")
        run.says("output.rate_hz: found 100.0, allowed is 333.33 while it runs")
        file.write_text(WASHOUT, encoding="utf-8")
        run.says("retuned: cueing.preset utias → simona")
        bounds = "rate_hz = 333.33\nlimits = { pitch = { value_deg = 5 } }"
        file.write_text(WASHOUT.replace("rate_hz = 333.33", bounds), encoding="utf-8")
        run.says("retuned: output.limits.pitch.value_deg none → 5")
        run.signal(INTERRUPT)
        stats = run.end()
    assert stats["retunes"] == 3
    assert stats["limits"]["output[0].pitch"][0] == pytest.approx(math.radians(5))
    assert [move["count"] for move in stats["transitions"] if move["reason"] == "retuned"] == [1, 1, 1]


@pytest.mark.rt
def test_the_thread_looks_by_itself_and_ends(file):
    follower, applied = followed(file)
    with follower:
        file.write_text("two", encoding="utf-8")
        eventually(lambda: applied == ["two"])
    assert not follower._thread.is_alive()


def test_why_a_save_is_refused_is_kept_until_a_valid_one(file):
    follower, _ = followed(file, refuse=("bad",))
    for text, words in (("bad", "bad is not allowed"), ("good", "")):
        file.write_text(text, encoding="utf-8")
        follower.look(), follower.look()
        assert words in follower.refused
        assert bool(follower.refused) == bool(words)


def test_a_file_that_is_gone_is_said_and_one_that_is_back_is_not(file):
    follower, applied = followed(file)
    file.unlink()
    follower.look(), follower.look()
    assert "is gone" in follower.refused
    file.write_text("one", encoding="utf-8")
    follower.look(), follower.look()
    assert follower.refused == ""
    assert applied == []
