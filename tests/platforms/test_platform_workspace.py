"""`motioncue.platform`: kinematics by name or table, ranges together, workspace, speeds; the command that shows it."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from test_platforms import POSE, PRESETS, profile_for

import motioncue
from motioncue.cli import cli
from motioncue.errors import ConfigError
from motioncue.platforms.build import platform_named

SQUARE = {
    "kind": "posts",
    "at_m": [[0.5, 0.4], [-0.5, 0.4], [-0.5, -0.4], [0.5, -0.4]],
    "post": {"min_m": -0.1, "max_m": 0.1, "speed_m_s": 0.3, "acceleration_m_s2": 5.0},
}
# Three sleds at right angles: every number of this platform is known.
BOX = {
    "kind": "axes",
    "axes": [
        {
            "name": f"along_{channel}",
            "channel": f"{channel}_displacement",
            "travel": {"min_m": -low, "max_m": high, "speed_m_s": 2.0, "acceleration_m_s2": 3.0},
        }
        for channel, low, high in (("surge", 0.5, 0.25), ("sway", 0.2, 0.2), ("heave", 0.1, 0.3))
    ],
}


def test_a_platform_comes_by_name_profile_file_and_table(tmp_path):
    profile = profile_for("hexapod-dim")
    path = tmp_path / "rig.toml"
    path.write_text(
        '[source]\nsystem="beamng"\nendpoint="udp://:1"\n[cueing]\nalgorithm="direct"\n'
        '[platform]\npreset="hexapod-dim"\n[output]\nsystem="dk"\nmotion="udp://127.0.0.1:2"\n'
    )
    for of in ("hexapod-dim", profile, profile.platform, path, str(path), {"preset": "hexapod-dim"}):
        legs = motioncue.platform(of).inverse([np.zeros(6)])
        np.testing.assert_allclose(legs, [[1.209984] * 6], atol=1e-6)


def test_inverse_and_forward_are_those_of_another_program():
    """Legs of SIMONA at a pose, from an independent program (its z points down)."""
    pose = [[0.1, -0.05, 0.08, *np.radians([3.0, -4.0, 5.0])]]
    hexapod = motioncue.platform("hexapod-simona")
    legs = hexapod.inverse(pose)
    np.testing.assert_allclose(legs, [[2.675953, 2.650606, 2.936824, 2.791204, 2.909017, 2.722076]], atol=1e-6)
    np.testing.assert_allclose(hexapod.forward(legs), pose, atol=1e-9)
    assert hexapod.names == tuple(f"leg_{number}" for number in range(1, 7))
    step = 1e-6
    moved = (hexapod.inverse([[0.1 + step, *pose[0][1:]]]) - legs)[0] / step
    np.testing.assert_allclose(hexapod.jacobian(pose)[0, :, 0], moved, atol=1e-5)


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("hexapod", "platform: found 'hexapod', allowed are box-large, .*profiles in .toml files"),
        ({"preset": "posts-5"}, "platform.preset: found 'posts-5'"),
        ({"preset": "posts-4", "post": {"max_m": "far"}}, "platform.post.max_m: found 'far', allowed is a number"),
        ({"kind": "posts"}, "platform.*at_m"),
        ({"preset": "hexapod-dim", "height_m": 0.2}, "leg_1 is at .* at neutral, beyond its range"),
    ],
)
def test_no_such_platform_is_refused_with_the_reason(of, message):
    with pytest.raises(ConfigError, match=message):
        motioncue.platform(of)
    with pytest.raises(ConfigError, match=r"ccd-dk: found no \[platform\]"):
        motioncue.platform(motioncue.load_profile("ccd-dk"))


def test_sleds_at_right_angles_have_the_workspace_of_a_box():
    box = motioncue.platform(BOX)
    found = box.workspace()
    assert box.ranges["surge_displacement"] == pytest.approx((-0.5, 0.25), abs=3e-4)
    assert found.share == 1.0
    assert found.in_reach == 1.0
    assert found.volume_m3 == pytest.approx(0.75 * 0.4 * 0.4, rel=0.01)
    assert found.speeds["sway_displacement"] == 2.0
    assert found.accelerations["heave_displacement"] == 3.0
    assert found.speeds["roll"] is None
    assert found.together["roll"] == (None, None)


def test_posts_share_their_travel_among_heave_roll_and_pitch():
    """A corner at (0.5, 0.4) rises by heave, 0.4 sin(roll) and 0.5 sin(pitch): a third each, at small angles."""
    posts = motioncue.platform(SQUARE)
    found = posts.workspace()
    assert found.volume_m3 is None
    assert found.share == pytest.approx(1 / 3, abs=0.005)
    low, high = found.together["heave_displacement"]
    assert (low, high) == pytest.approx((-0.1 / 3, 0.1 / 3), abs=0.001)
    assert found.speeds["heave_displacement"] == pytest.approx(0.3)
    assert found.speeds["roll"] == pytest.approx(0.3 / 0.4)
    assert found.speeds["pitch"] == pytest.approx(0.3 / 0.5)
    # |h| + |0.4 r| + |0.5 p| <= 0.1 is an octahedron: a sixth of the box of the ranges
    assert found.in_reach == pytest.approx(1 / 6, abs=0.01)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.check
def test_within_the_ranges_together_every_pose_is_in_reach(preset):
    platform = motioncue.platform(preset)
    found = platform.workspace()
    ends = np.array([[end or 0.0 for end in found.together[channel]] for channel in POSE])
    poses = np.random.default_rng(99).uniform(ends[:, 0], ends[:, 1], (20_000, 6))
    assert platform.reaches(poses).all()
    assert 0.1 < found.share < 1.0
    assert found == platform.workspace()  # the same random poses


def test_the_volume_of_a_hexapod_is_that_of_a_grid():
    platform = motioncue.platform("hexapod-dim")
    side = np.linspace(-0.35, 0.35, 71)
    poses = np.zeros((71**3, 6))
    poses[:, :3] = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    expected = platform.reaches(poses).sum() * (side[1] - side[0]) ** 3
    assert platform.workspace().volume_m3 == pytest.approx(expected, rel=0.02)


def test_the_least_singular_value_is_what_numpy_finds_at_its_pose():
    platform = motioncue.platform("hexapod-simona")
    found = platform.workspace()
    rows = platform.jacobian([found.singular_at])[0] / [1, 1, 1, 1.6, 1.6, 1.6]
    values = np.sqrt(np.linalg.eigvalsh(rows.T @ rows))
    assert found.singular == pytest.approx(values[0] / values[-1], rel=0.01)
    at_rest = np.linalg.svd(platform.jacobian([np.zeros(6)])[0] / [1, 1, 1, 1.6, 1.6, 1.6], compute_uv=False)
    assert found.singular <= at_rest[-1] / at_rest[0]
    assert platform.reaches([found.singular_at]).all()


def shown(*arguments):
    command = [sys.executable, "-m", "motioncue", "platforms", "show", *map(str, arguments)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}  # Windows writes to a pipe in a code page
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, env=environment)


@pytest.mark.search
def test_the_command_shows_ranges_alone_and_together_and_draws_them(tmp_path):
    path = tmp_path / "dim.html"
    done = shown("hexapod-dim", "--json", "--report", path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["ranges"]["surge_displacement"] == pytest.approx([-0.2599, 0.2575], abs=3e-4)
    assert 0.02 < found["volume_m3"] < 0.04
    assert found["together"]["yaw"][1] < found["ranges"]["yaw"][1]
    page = path.read_text(encoding="utf-8")
    assert page.count("<img") == page.count('src="data:image/png;base64,') == 3
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert platform_named("hexapod-dim").description.replace("'", "&#x27;") in page
    text = shown("posts-3")
    assert "no actuator" in text.stdout
    assert "-0.100 to +0.100 m alone, -0.035 to +0.035 m together" in text.stdout


@pytest.mark.search
def test_a_report_that_cannot_be_written_is_one_line(tmp_path):
    done = shown("posts-3", "--report", tmp_path / "nowhere" / "x.html")
    assert done.returncode == 2
    assert "--report" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_report_is_a_page(tmp_path):
    done = shown("posts-3", "--report", tmp_path / "x.pdf")
    assert done.returncode == 2
    assert done.stderr == "error: --report: found '.pdf', allowed is .html\n"
    assert not list(tmp_path.iterdir())


def test_a_platform_is_shown_though_its_algorithm_cannot_be_made_here(tmp_path, monkeypatch):
    def refuse(*_):
        raise ConfigError("cueing.algorithm: predictive: not here")

    monkeypatch.setattr("motioncue.cueing.predictive.design.design", refuse)
    path = tmp_path / "rig.toml"
    path.write_text(
        '[source]\nsystem="beamng"\nendpoint="udp://:1"\n[cueing]\nalgorithm="predictive"\n'
        '[platform]\npreset="posts-3"\n[output]\nsystem="dk"\nmotion="udp://127.0.0.1:2"\n',
        encoding="utf-8",
    )
    done = CliRunner().invoke(cli, ["platforms", "show", str(path)])
    assert done.exit_code == 2
    assert "-0.100 to +0.100 m alone" in done.stdout
    assert done.stderr.startswith("error: cueing.algorithm: predictive: not here")


@pytest.mark.search
def test_the_command_says_how_an_algorithm_fits_and_its_advice_holds(tmp_path):
    done = shown("hexapod-dim", "--profile", "ccd-dk-classical", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])["fit"]
    assert found["beyond"] > 0.1
    assert found["needs"]["surge_displacement"][1] > 0.2575
    gains = "\n".join(f"{key.removeprefix('cueing.')} = {value}" for key, value in found["gains"].items())
    path = tmp_path / "rig.toml"
    path.write_text(
        f"""
        [source]
        system = "city-car-driving"
        endpoint = "tcp://127.0.0.1:9998"
        [platform]
        preset = "hexapod-dim"
        [output]
        motion = "udp://127.0.0.1:9999"
        packet = {{ preset = "thanos-amc" }}
        [cueing]
        algorithm = "classical"
        preset = "simona"
        {gains}
        """,
        encoding="utf-8",
    )
    text = shown(path)
    assert "on the standard drives every pose is within the platform's reach" in text.stdout, text.stderr
    refused = shown("hexapod-dim", "--profile", "ccd-dk")
    assert refused.returncode == 2
    assert "whose cue is no pose" in refused.stderr
