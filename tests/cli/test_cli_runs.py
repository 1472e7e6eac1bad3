"""The commands at work, as programs of their own, with real sockets."""

import os
import re
import socket
import struct
import subprocess
import sys
import threading

import pytest
from helpers import free_port, receive, stream_url
from programs import (
    ENGINE_KEYS,
    FRAME,
    INIT,
    INTERRUPT,
    NEUTRAL,
    STREAM,
    SURGE,
    WINDOWS,
    Program,
    listening,
    soon_connected,
)

from motioncue import read
from motioncue.recording.recording import read_packages, sample_recording

pytestmark = pytest.mark.rt


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_demo_drives_the_car_into_the_platform(profile):
    with Program("demo", "--duration", "4", "--drive", "brake", "--profile", profile, "--json") as demo:
        stats = demo.end()
    platform = stats["platform"]
    assert set(stats) >= ENGINE_KEYS
    assert stats["frames_received"] > 0
    assert platform["lost"] == 0
    assert platform["rejected"] == {}
    assert platform["streams"]["motion"]["packets_received"] == stats["packets_sent"]
    assert platform["streams"]["gauges"]["packets_received"] == stats["packets_sent"]
    assert platform["streams"]["motion"]["last"]["surge"] == 0.0


def test_simulate_plays_a_recording_byte_for_byte(tmp_path):
    url = stream_url(STREAM, tmp_path)
    got = []

    def serve(listener):
        client, _ = listener.accept()
        with client:
            while (head := receive(client, 2)) != b"":
                package = head + receive(client, int.from_bytes(head, "little") - 2)
                got.append(package)
                client.sendall(struct.pack("<HBHB", 6, 0, 0, 1) if package[2] == 1 else struct.pack("<HBB", 4, 1, 0))

    command = ["simulate", "city-car-driving", "--to", url, "--recording", "sample", "--rate", "500", "--json"]
    with Program(*command, "--duration", "0.5", cwd=tmp_path) as simulate, listening(url) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        stats = simulate.end()
        thread.join(30)
    sent = b"".join(got)
    assert 0 < stats["frames_sent"] == len(got) - 1 <= 250  # half a second at 500 Hz; fewer if the machine is busy
    assert (stats["replies_received"], stats["connections"], stats["lost"]) == (len(got), 1, 0)
    assert sent == sample_recording().read_bytes()[: len(sent)]


def test_simulate_waits_for_an_engine_and_ends_when_told(tmp_path):
    url = stream_url(STREAM, tmp_path)
    with Program("simulate", "city-car-driving", "--to", url, "--json") as simulate:
        simulate.says("playing drive tour")
        simulate.says(f"waiting for an engine (motioncue run) at {url}")
        simulate.signal(INTERRUPT)
        stats = simulate.end()
    assert (stats["frames_sent"], stats["connections"]) == (0, 0)


def test_listen_to_what_a_platform_is_sent():
    ports = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
    ends = [part for port in ports for part in ("--at", f"udp://127.0.0.1:{port}")]
    motion = NEUTRAL[:32] + struct.pack("<f", -2.5) + NEUTRAL[36:]
    gauges = struct.pack("<I4s", 0, b"beam") + bytes(88)
    with Program("listen", "dk", *ends, "--json") as listen, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        listen.says("waiting for packets")
        for packet in (NEUTRAL, motion):
            sender.sendto(packet, ("127.0.0.1", ports[0]))
        for packet in (gauges, gauges, gauges, b"no packet"):
            sender.sendto(packet, ("127.0.0.1", ports[1]))
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert stats["packets_received"] == 5
    assert stats["rejected"] == {"size_or_magic": 1}
    assert {name: stream["packets_received"] for name, stream in stats["streams"].items()} == {"motion": 2, "gauges": 3}
    assert stats["last"]["surge"] == -2.5
    assert stats["rate_hz"] == stats["streams"]["motion"]["rate_hz"]
    assert set(stats["interval_us"]) == {"p50", "p99", "max"}


def test_listen_to_nothing_says_so_in_strict_json():
    url = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    with Program("listen", "dk", "--at", url, "--duration", "0.2", "--json") as listen:
        stats = listen.end()
    assert (stats["packets_received"], stats["rate_hz"], stats["last"]) == (0, 0.0, None)


def test_listen_to_what_a_simulator_says(tmp_path):
    url = stream_url(STREAM, tmp_path)
    with Program("listen", "city-car-driving", "--at", url, "--json") as listen, soon_connected(url) as client:
        for package, reply in ((INIT, 6), *[(FRAME, 4)] * 5, (FRAME[:11] + b"\xff" * 96, 4)):
            client.sendall(package)
            assert len(receive(client, reply)) == reply
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert stats["frames_received"] == 5
    assert stats["rejected"] == {"not_finite": 1}
    assert stats["sessions"] >= 1
    assert stats["motion"]["surge"] == SURGE
    assert stats["motion"]["speed"] == 10.0
    assert stats["motion"]["engine_speed"] is None  # not a number that the simulator has


def test_what_listen_records_is_what_simulate_played(tmp_path):
    url, file = stream_url(STREAM, tmp_path), tmp_path / "drive.mcap"
    with Program("listen", "city-car-driving", "--at", url, "--record", str(file), "--json") as listen:
        listen.says("waiting for")
        played = ["--recording", "sample", "--rate", "500", "--duration", "0.5", "--json"]
        with Program("simulate", "city-car-driving", "--to", url, *played, cwd=tmp_path) as simulate:
            sent = simulate.end()["frames_sent"]
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert stats["frames_received"] == sent
    recorded = stats["recorded"]
    assert (recorded["packages"], recorded["frames"], recorded["lost"]) == (sent + 1, sent, 0)  # and init
    assert [package.data for package in read(file).packages] == read_packages(sample_recording())[: sent + 1]


def test_every_package_is_recorded_as_it_came_and_the_frames_are_the_simulators(tmp_path):
    url, file = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", tmp_path / "drive.mcap"
    packet = NEUTRAL  # BeamNG's and DK's are the same
    with Program("listen", "beamng", "--at", url, "--record", str(file), "--json") as listen:
        listen.says("waiting for")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for data in (packet, b"hello", packet):
                sender.sendto(data, ("127.0.0.1", int(url.rpartition(":")[2])))
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert stats["rejected"].keys() == {"type"}
    assert (stats["recorded"]["packages"], stats["recorded"]["frames"]) == (3, 2)
    assert [package.data for package in read(file).packages] == [packet, b"hello", packet]


if not WINDOWS:
    import fcntl
    import pty
    import termios

    def test_demo_in_a_terminal_draws_on_a_screen_of_its_own_and_gives_it_back():
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-m", "motioncue", "demo", "--duration", "3", "--drive", "brake"]
        process = subprocess.Popen(command, stdout=slave, stderr=slave, env=environment, close_fds=True)
        os.close(slave)
        data = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the terminal's other end has closed
                break
            data += piece
            if not piece:
                break
        os.close(master)
        assert process.wait(60) == 0
        before, _, rest = data.decode().partition("\x1b[?1049h")
        live, left, after = rest.partition("\x1b[?1049l")
        assert before.startswith("bounds in force: ")
        assert before.count("\n") == 2  # limits, platform
        assert left
        assert "\x1b[2J" not in live  # the screen is never erased, so it does not flicker
        assert "\x1b[2K" not in live
        pictures = live.split("\x1b[H")[1:]
        pictures = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", picture).replace("\r", "") for picture in pictures]
        pictures = [picture for picture in pictures if picture]
        assert len(pictures) > 3
        for picture in pictures:
            lines = picture.split("\n")
            assert len(lines) == 24
            assert max(map(len, lines)) <= 80
        assert "yaw rate" in pictures[-1]
        assert "packets out" in after
