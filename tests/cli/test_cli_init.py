"""`motioncue init` and `motioncue` without a command: two questions, a profile that loads, the right start."""

import os
import subprocess
import sys
import tomllib

import pytest
from click.testing import CliRunner

import motioncue
from motioncue.cli import cli, init
from motioncue.profile.profile import profile_text
from motioncue.wire.description import packet_presets

PAIRS = [(simulator, platform) for simulator in init.simulators() for platform in init.platforms()]


@pytest.mark.grid
@pytest.mark.parametrize(("simulator", "platform"), PAIRS)
@pytest.mark.check
def test_every_pair_gives_a_profile_that_is_accepted(simulator, platform, tmp_path):
    path = tmp_path / "rig.toml"
    result = CliRunner().invoke(cli, ["init", str(path), "--simulator", simulator, "--platform", platform])
    assert result.exit_code == 0, result.output
    profile = motioncue.load_profile(path)
    before = tomllib.loads(profile_text(init.simulators()[simulator]))
    assert tomllib.loads(path.read_text())["source"] == before["source"]
    assert (profile.outputs[0].system == "dk") == (platform == "dk")


def test_every_controller_that_moves_a_platform_is_offered():
    beside = {"belts-serial", "wind-serial", "openxr-motion-compensation"}  # belts, fans, a headset: a second output
    assert set(init.CONTROLLERS) == set(packet_presets()) - beside


def test_what_has_nothing_to_tune_does_not_name_the_search():
    assert "motioncue tune" not in init.written("ccd", "dk")
    assert "motioncue tune mine.toml" in init.written("ccd", "posts-3", "mine.toml")


def test_comments_of_the_simulators_profile_are_kept():
    text = init.written("beamng", "posts-4")
    assert "# In BeamNG, Options > Other > Protocols" in text
    assert tomllib.loads(text)["platform"] == {"preset": "posts-4"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--simulator", "beamn", "--platform", "dk"], "did you mean 'beamng'"),
        (["--simulator", "beamng", "--platform", "hexapod"], "allowed are dk"),
        (["--simulator", "beamng"], "--platform: missing, allowed are dk"),
        ([], "--simulator: missing, allowed are "),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(arguments, named, tmp_path):
    result = CliRunner().invoke(cli, ["init", str(tmp_path / "rig.toml"), *arguments])
    assert result.exit_code == 2
    assert named in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_replaced_by_force_alone(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text("mine")
    call = ["init", str(path), "--simulator", "ccd", "--platform", "dk"]
    result = CliRunner().invoke(cli, call)
    assert (result.exit_code, path.read_text()) == (2, "mine")
    assert "--force" in result.stderr
    assert CliRunner().invoke(cli, [*call, "--force"]).exit_code == 0
    assert path.read_text() != "mine"


def test_without_a_command_and_a_terminal_the_three_commands_are_said():
    result = CliRunner().invoke(cli, [])
    assert result.exit_code == 0
    assert [line.split()[1] for line in result.output.splitlines()[:3]] == ["demo", "init", "run"]


@pytest.mark.parametrize(
    ("answers", "started", "files"),
    [
        ("0\n0\n", ["demo"], []),
        ("\nposts-3\n", ["demo", "--profile", "rig.toml"], ["rig.toml"]),
        ("beamng\n0\n", ["check", "beamng-dk"], []),
        ("99\n1\nthanos-amc\n", ["check", "rig.toml"], ["rig.toml"]),
    ],
)
def test_on_a_terminal_two_questions_start_what_fits(answers, started, files, tmp_path, monkeypatch):
    import click

    seen = []
    for name, home in (("demo", "run.demo"), ("check", "check.command")):
        command = click.Command(name, callback=lambda rest, name=name: seen.extend([name, *rest]))
        command.params = [click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)]
        command.context_settings = {"ignore_unknown_options": True}
        monkeypatch.setattr(f"motioncue.cli.{home}", command)
    monkeypatch.setattr(init, "_terminal", lambda: True)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, [], input=answers)
    assert result.exit_code == 0, result.output
    assert seen == started
    assert [path.name for path in tmp_path.iterdir()] == files


def test_as_a_program_without_a_terminal_it_ends_at_once():
    said = subprocess.run(
        [sys.executable, "-m", "motioncue"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=os.environ
    )
    assert said.returncode == 0
    assert "motioncue demo" in said.stdout
