"""Every command takes a profile that describes a packet in place of a system's name."""

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import free_port

import motioncue
from motioncue import sources
from motioncue.cli import check, cli
from motioncue.engine.replay import replay
from motioncue.profile.profile import profile_text
from motioncue.virtual.installation import drive_packages, make_simulator, ride

STAGE = str(Path(__file__).parents[1] / "data" / "packets" / "described" / "dirt_rally_2.bin")


def invoke(*args):
    return CliRunner().invoke(cli, args)


@pytest.fixture
def own(tmp_path):
    """Return a profile file of one's own: a shipped one, copied."""
    path = tmp_path / "rally.toml"
    path.write_text(profile_text("dirt-rally-dk"), encoding="utf-8")
    return str(path)


def test_decode_shows_the_wires_numbers_by_name(own):
    for name in ("dirt-rally-dk", own):
        result = invoke("decode", name, STAGE, "--json")
        first = json.loads(result.stdout.splitlines()[0])
        assert (result.exit_code, first["system"], first["message"]) == (0, name, "motion")
        assert first["fields"]["time"] == pytest.approx(259.264, abs=1e-3)
        assert len(result.stdout.splitlines()) == 1200
    result = invoke("decode", own, "--hex", "00" * 60)
    assert result.exit_code == 2
    assert "found 60 bytes beginning 00 00 00 00 00 00 00 00" in result.stderr or "at offset 0" in result.stderr
    assert "allowed are motion (264 bytes)" in result.stderr


@pytest.mark.check
def test_check_and_export_read_bare_packets(own, tmp_path):
    result = invoke("check", STAGE, "--system", own)
    assert result.exit_code == 0
    assert "1200 of 1200 can be read" in result.stdout
    turned = invoke("check", STAGE, "--system", own, "--set", "source.options.sway=opposite")
    assert turned.exit_code == 1
    assert "the sign is turned" in turned.stdout
    refused = invoke("check", STAGE, "--system", own, "--set", "source.options.sway=right")
    assert refused.exit_code == 2
    assert "source.options.sway: found 'right', allowed are 'as_described', 'opposite'" in refused.stderr


@pytest.mark.check
def test_a_recording_of_a_run_describes_its_own_source(tmp_path):
    path = tmp_path / "drive.mcap"
    ride("dirt-rally-dk", "turns", record=path)
    drive = motioncue.read(path)
    assert drive.profile["source"]["packet"]["size"] == 264
    verified = invoke("replay", str(path), "--verify", "--json")
    assert json.loads(verified.stdout.splitlines()[-1])["identical"] is True
    checked = invoke("check", str(path), "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout.splitlines()[-1])["system"] == "custom"
    decoded = invoke("decode", "dirt-rally-dk", str(path), "--json")
    assert decoded.exit_code == 0


def test_replay_plays_a_stage_through_a_profile(own):
    ticks = replay(own, STAGE)
    assert len(ticks) == pytest.approx((20 + 2) * 333.33, rel=0.05)
    assert abs(ticks["cue"]["surge"]).max() > 5.0


@pytest.mark.check
def test_check_and_listen_take_a_profile_wherever_they_take_a_system(own, tmp_path):
    """As the tutorials do: a file after the profile, and the place where to listen from the profile."""
    for name in ("dirt-rally-dk", own):
        assert invoke("check", name, STAGE).stdout == invoke("check", STAGE, "--system", name).stdout
    turned = invoke("check", own, STAGE, "--set", "source.options.sway=opposite")
    assert (turned.exit_code, "the sign is turned" in turned.stdout) == (1, True)
    assert "ccd-dk" in invoke("decode", "ccd-dk", "--hex", "04 00 01 00").stdout
    assert "--system" in invoke("check", own, STAGE, "--system", own).stderr
    rig, port, out = tmp_path / "rig.toml", free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    rig.write_text(RIG.replace("PORT", str(port)).replace("9999", str(out)), encoding="utf-8")
    heard = invoke("listen", str(rig), "--duration", "0.1", "--json")
    assert f"--at udp://127.0.0.1:{port} for its simulator, --at udp://127.0.0.1:{out} for its platform" in heard.stderr
    heard = invoke("listen", str(rig), "--at", f"udp://:{out}", "--duration", "0.1", "--json")
    assert "streams" in json.loads(heard.stdout.splitlines()[-1])
    heard = invoke("listen", str(rig), "--at", f"udp://127.0.0.1:{port}", "--duration", "0.1", "--json")
    assert json.loads(heard.stdout.splitlines()[-1])["frames_received"] == 0
    rig.write_text(
        RIG.replace("PORT", str(port)).partition("[output.packet]")[0].replace("custom", "dk"), encoding="utf-8"
    )
    heard = invoke("listen", str(rig), "--duration", "0.1", "--json")
    assert json.loads(heard.stdout.splitlines()[-1])["frames_received"] == 0


RIG = """
cueing = { algorithm = "direct" }
source = { system = "beamng", endpoint = "udp://127.0.0.1:PORT" }
[output]
system = "custom"
motion = "udp://127.0.0.1:9999"
[output.packet]
size = 8
fields = [{ offset = 0, type = "f4", channel = "surge" }]
"""


@pytest.mark.search
@pytest.mark.rt
def test_listen_hears_what_simulate_says(own, tmp_path):
    url = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    command = [sys.executable, "-m", "motioncue"]
    with subprocess.Popen(
        [*command, "listen", own, "--at", url, "--duration", "8", "--json", "--record", str(tmp_path / "d.mcap")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as listening:
        assert "waiting for" in listening.stderr.readline()
        said = subprocess.run(
            [*command, "simulate", own, "--to", url, "--recording", STAGE, "--duration", "2", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        heard, _ = listening.communicate(timeout=60)
    sent, came = (json.loads(text.splitlines()[-1]) for text in (said.stdout, heard))
    assert sent["frames_sent"] == pytest.approx(120, abs=5)
    assert came["frames_received"] == sent["frames_sent"]
    recorded = motioncue.read(tmp_path / "d.mcap")
    assert len(recorded.motion) == sent["frames_sent"]
    assert recorded.profile["source"]["packet"]["size"] == 264


SHIPPED = sources.described_profiles()


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.check
def test_a_shipped_description_is_found_by_what_is_in_a_file(name, tmp_path):
    path = tmp_path / "drive.bin"
    path.write_bytes(b"".join(each.package for each in drive_packages(name, "tour", 60.0, 5.0)))
    result = invoke("check", str(path), "--rate", "60")
    assert result.stdout.startswith(f"motioncue check · {name}, ")
    if "time" in sources.source(name).channels:
        assert motioncue.read(path).about["system"] == name


def test_a_real_stage_is_found_to_be_dirt_rallys():
    assert invoke("check", STAGE).stdout.startswith("motioncue check · dirt-rally-dk, ")


def test_the_right_sizes_alone_do_not_make_a_described_system(tmp_path):
    path = tmp_path / "noise.bin"
    for size in (64, 104, 264, 232):
        path.write_bytes(np.random.default_rng(16).bytes(100 * size))
        assert "found no packets of a system that is known" in invoke("check", str(path)).stderr


@pytest.mark.rt
@pytest.mark.check
def test_a_live_source_that_a_profile_describes_is_found_however_long_that_takes(monkeypatch):
    found = check._system_of_datagrams

    def slowly(url, end, interrupts):
        system = found(url, end, interrupts)
        time.sleep(max(0.0, end - time.monotonic()))  # until all the time that was given has passed
        return system

    monkeypatch.setattr(check, "_system_of_datagrams", slowly)
    url = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    simulator = make_simulator("forza-dk", [url], drive_packages("forza-dk", "tour", 100.0, 20.0))
    thread = threading.Thread(target=simulator.run, daemon=True)
    thread.start()
    result = invoke("check", url, "--duration", "2")
    simulator.stop()
    thread.join()
    assert result.stdout.startswith("motioncue check · forza-dk, ")
