"""`motioncue check`: files, captures and live sources, identified by name and by content."""

import contextlib
import json
import socket
import threading
from operator import attrgetter

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import free_port, stream_url

import motioncue
from motioncue.check.compare import Finding
from motioncue.cli import cli
from motioncue.cli.check import _remedy
from motioncue.profile.profile import profile_text
from motioncue.recording.recording import sample_recording
from motioncue.sources import by_profile
from motioncue.sources.beamng_simulink.packets import STATE
from motioncue.virtual.installation import drive_packages, make_simulator


def run(*arguments):
    return CliRunner().invoke(cli, ["check", *map(str, arguments)])


def test_a_file_is_examined_and_its_system_told_by_its_content():
    result = run(sample_recording(), "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["system"] == "city-car-driving"
    assert found["verdict"] == "unknown"
    assert found["timing"]["frames"] == 3594
    names = {finding["name"]: finding["verdict"] for finding in found["findings"]}
    assert names["surge and speed"] == "ok"
    assert names["attitude and course"] == "unknown"
    assert "turn by 30 degrees or more" in result.stdout


def test_what_is_wrong_shows_in_the_exit_status(tmp_path):
    path = tmp_path / "drive.bin"
    packages = [bytearray(frame.package) for frame in drive_packages("city-car-driving", "tour") if frame.package]
    for package in packages[1:]:
        package[35:51] = package[47:51] + package[35:47]  # w, x, y, z
    path.write_bytes(b"".join(packages))
    result = run(path)
    assert result.exit_code == 1
    assert "change the profile: source.options.quaternion = 'wxyz'" in result.stdout
    assert run(path, "--set", "source.options.quaternion=wxyz").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no/such/file"], ["no/such/file", "city-car-driving", "ccd-dk"]),
        ([f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", "--duration", "0.2"], ["nothing came"]),
        (["city-car-driving"], ["--at"]),
        (["nope.toml"], ["nope.toml"]),
        (["udp://127.0.0.1:1", "--system", "nothing"], ["'nothing'", "city-car-driving"]),
        (["tcp://127.0.0.1:x"], ["tcp://127.0.0.1:x"]),
        ([sample_recording(), "--set", "source.options.rates=no"], ["source.options.rates", "'world', 'car'"]),
        ([sample_recording(), "--set", "output.rate_hz=100"], ["--set: found 'output.rate_hz=100'"]),
        (["beamng-dk", "--rate", "100"], ["--rate is for files"]),
        ([sample_recording(), "--duration", "3"], ["--duration are for live"]),
        ([sample_recording(), "--at", "udp://127.0.0.1:1"], ["--at and"]),
        (["beamng-dk", "--system", "morai"], ["--system"]),
    ],
)
def test_what_cannot_be_examined_is_refused(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr


def test_a_file_of_no_system_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"no packets at all")
    result = run(path)
    assert result.exit_code == 2
    assert "no packets of a system that is known" in result.stderr
    path.write_bytes(b"")
    assert run(path).exit_code == 2


def test_the_rate_of_a_file_is_that_of_its_frames_whatever_lies_between_them(tmp_path):
    path = tmp_path / "drive.bin"
    packages = [frame.package for frame in drive_packages("beamng", "tour", 100.0) if frame.package]
    motion = [package for package in packages if package.startswith(b"BNG1")]
    gauges = next(package for package in packages if package[4:8] == b"beam")
    path.write_bytes(b"".join(package + gauges for package in motion))
    result = run(path, "--rate", "100", "--json")
    found = json.loads(result.stdout.splitlines()[-1])
    assert "wrong" not in {finding["verdict"] for finding in found["findings"]}
    assert (found["timing"]["frames"], found["timing"]["rate_hz"]) == (len(motion), pytest.approx(100.0))
    verdicts = {finding["name"]: finding["verdict"] for finding in found["findings"]}
    assert (verdicts["surge and speed"], verdicts["velocity and position"]) == ("ok", "ok")


@pytest.mark.check
def test_a_profile_that_describes_the_packets_says_also_how_they_are_read(tmp_path):
    """A drive whose lateral acceleration is of the opposite sign holds once the profile has what is advised."""
    table = profile_text("dirt-rally-dk")
    packages = [bytearray(p) for p in map(attrgetter("package"), drive_packages("dirt-rally-dk", "tour")) if p]
    at = next(f.offset for f in by_profile("dirt-rally-dk").table.fields if f.channel == "sway")
    for package in packages:
        package[at + 3] ^= 0x80  # the sign of a little-endian float
    drive, profile = tmp_path / "drive.bin", tmp_path / "own.toml"
    drive.write_bytes(b"".join(packages))
    profile.write_text(table)
    wrong = run(drive, "--system", profile)
    assert wrong.exit_code == 1
    assert "change the profile: source.options.sway = 'opposite'" in wrong.stdout
    before = motioncue.read(drive, system=str(profile)).motion["sway"]
    profile.write_text(f'{table}\n[source.options]\nsway = "opposite"\n')
    assert run(drive, "--system", profile).exit_code == 0
    assert run(drive, "--system", profile, "--set", "source.options.sway=as_described").exit_code == 1
    after = motioncue.read(drive, system=str(profile)).motion["sway"]
    assert np.abs(before).max() > 1.0
    np.testing.assert_allclose(after, -before, atol=1e-9)
    profile.write_text(table.replace("[source]", '[source]\nacceleration = "from_velocity"', 1))
    assert run(drive, "--system", profile).exit_code == 0
    derived = motioncue.read(drive, system=str(profile)).motion["sway"]
    assert np.corrcoef(derived, after)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("evidence", "times", "advised"),
    [
        ("0.278 times what it should be (velocity in km/h?), by velocity", 0.278, "unit = 'km/h'"),
        ("0.102 times what it should be (in g?)", 0.102, "unit = 'g'"),
        ("2 times what it should be", 2.0, "its unit or scale"),
        ("the sign is turned", 0.0, "report it"),
    ],
)
def test_the_unit_is_advised_where_an_acceleration_is_a_multiple(evidence, times, advised):
    assert advised in _remedy(Finding("surge and speed", "wrong", evidence, times=times))


@pytest.mark.rt
@pytest.mark.parametrize(("system", "words"), [(["--system", "morai"], "not allowed"), ([], "nothing came")])
def test_what_is_not_heard_is_said(system, words):
    port = free_port(socket.SOCK_DGRAM)
    stopping = threading.Event()

    def knock():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            while system and not stopping.wait(0.05):
                client.sendto(b"#MoraiInfo$", ("127.0.0.1", port))

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        result = run(f"udp://0.0.0.0:{port}", *system, "--duration", "2")
    finally:
        stopping.set()
        thread.join()
    assert result.exit_code == 2
    assert words in result.stderr


STRICT = ("--set", "watch.max_acceleration_m_s2=0.01")  # so that every frame of an accelerating car is a discontinuity


def test_a_file_is_judged_by_the_thresholds_that_are_set():
    result = run(sample_recording(), *STRICT, "--json")
    found = json.loads(result.stdout.splitlines()[-1])
    assert {finding["verdict"] for finding in found["findings"] if finding["name"] == "continuity"} == {"wrong"}


@pytest.mark.rt
@pytest.mark.parametrize(
    ("source", "overrides", "continuity"),
    [((), (), "ok"), (("ccd-dk", "--at"), (), "ok"), (("ccd-dk", "--at"), STRICT, "wrong")],
)
def test_a_live_source_is_examined_and_answered(tmp_path, source, overrides, continuity):
    url = stream_url("unix" if hasattr(socket, "AF_UNIX") else "tcp", tmp_path)
    announcement, *frames = drive_packages("city-car-driving", "brake")
    simulator = make_simulator("city-car-driving", [url], [announcement, *frames[240:]])  # it stands still before
    thread = threading.Thread(target=simulator.run)
    thread.start()
    try:
        result = run(*source, url, *overrides, "--duration", "4", "--json")
    finally:
        simulator.stop()
        thread.join()
    assert result.exit_code == (continuity == "wrong")
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["timing"]["frames"] > 100
    assert found["timing"]["clock"] == "arrival"
    verdicts = {finding["name"]: finding["verdict"] for finding in found["findings"]}
    assert (verdicts["velocity and position"], verdicts["continuity"]) == ("ok", continuity)
    assert simulator.replies == simulator.sent + simulator.connections


@pytest.mark.rt
def test_a_simulator_that_says_no_more_before_it_is_answered_is_told_by_its_first_words():
    port, stopping = free_port(socket.SOCK_DGRAM), threading.Event()
    number = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answers, socket.socket(type=socket.SOCK_DGRAM) as sender:
        answers.bind(("127.0.0.1", 0))
        answers.settimeout(2.0)  # BeamNG's own timeout

        def step():
            nonlocal number
            while not stopping.wait(0.005):
                number += 1
                with contextlib.suppress(OSError):  # no answer, or the program does not listen yet
                    sender.sendto(STATE.encode({"id": number, "acc_z": -9.81}), ("127.0.0.1", port))
                    answers.recv(1024)

        thread = threading.Thread(target=step)
        thread.start()
        try:
            reply = f"source.options.reply_port={answers.getsockname()[1]}"
            result = run(f"udp://127.0.0.1:{port}", "--set", reply, "--duration", "12", "--json")
        finally:
            stopping.set()
            thread.join()
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["system"] == "beamng-simulink"
    assert found["timing"]["frames"] > 100
