"""``decode custom``, ``listen custom`` and ``demo --profile`` with packets that a profile or a controller describes."""

import json
import math
import os
import socket
import struct
import sys
import time

import pytest
from click.testing import CliRunner
from helpers import free_port
from programs import INTERRUPT, NEUTRAL, Program

from motioncue.cli import cli
from motioncue.cli.listen import PlatformView, end_of, rows_of
from motioncue.cli.terminal import glyphs_for, platform_rows, render
from motioncue.drive.peers import DatagramListener
from motioncue.engine.assembly import load_profile
from motioncue.sources import platform
from motioncue.wire.description import packet_presets

RIG = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "classical"
preset = "simona"
[platform]
preset = "{platform}"
rise_s = 0.5
[supervisor]
fade_s = 0.1
[output]
rate_hz = {rate}
motion = "{url}"
packet = {packet}
"""
TEXT = '{ text = "X{surge:.2f}Y{tilt:+04d}\\r\\n", values = { tilt = { channel = "pitch", scale = 100 } } }'
THANOS = "ffff 7fff 0086 ff78 7fff 7fff 7fff 7fff 7fff 0a0d"


def rig(folder, packet=TEXT, platform="posts-3", url="udp://127.0.0.1:9", rate=333.33):
    path = folder / "rig.toml"
    path.write_text(RIG.format(packet=packet, platform=platform, url=url, rate=rate), encoding="utf-8")
    return str(path)


def run(*arguments, data=None):
    return CliRunner().invoke(cli, [*arguments], input=data)


def decoded(*arguments, data=None):
    result = run("decode", "custom", *arguments, "--json", data=data)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_controller_s_packet_is_decoded():
    (found,) = decoded("--packet", "thanos-amc", "--hex", THANOS)
    shares = [32767, 134, 65400, *5 * [32767]]
    fields = {f"actuator_{n}": value for n, value in enumerate(shares, 1)}
    assert found == {"system": "custom", "message": "motion", "fields": fields}
    shown = run("decode", "custom", "--packet", "thanos-amc", "--hex", THANOS).stdout.splitlines()
    assert shown[0] == "custom motion, 20 bytes"
    assert shown[3] == "  actuator_3  65400"


def test_a_profile_s_packets_are_decoded_from_a_file_with_what_is_between_them(tmp_path):
    texts = b"X1.50Y+007\r\nX-0.25Y-120\r\n"
    found = decoded("--packet", rig(tmp_path), "-", data=texts)
    assert [each["fields"] for each in found] == [{"surge": 1.5, "tilt": 7}, {"surge": -0.25, "tilt": -120}]
    file = tmp_path / "captured"
    file.write_bytes(texts + b"?" + texts)
    result = run("decode", "custom", "--packet", rig(tmp_path), str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "packet 2: custom: found b'?', which is not the described text" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["custom", "--hex", "00"], ["--packet", "thanos-amc"]),
        (["dk", "--packet", "smc3", "--hex", "00"], ["--packet is for custom"]),
        (["custom", "--packet", "smc", "--hex", "00"], ["'smc'", "did you mean 'smc3'"]),
        (["custom", "--packet", "none.toml", "--hex", "00"], ["none.toml"]),
        (["custom", "--packet", "smc3", "--hex", "00"], ["1 bytes", "15"]),
        (["custom", "--packet", "smc3", "--hex", "5b41 0200 5d5b42 0200 5d5b43 0200 5e"], ["5e at offset 14", "5d"]),
    ],
)
def test_what_cannot_be_decoded_is_refused(arguments, words):
    result = run("decode", *arguments)
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr


def test_a_profile_without_a_described_packet_is_refused(tmp_path):
    path = tmp_path / "dk.toml"
    path.write_text(run("profiles", "show", "ccd-dk").stdout, encoding="utf-8")
    result = run("decode", "custom", "--packet", str(path), "--hex", "00")
    assert result.exit_code == 2
    assert "no [output.packet]" in result.stderr


def test_controllers_are_listed_and_shown_with_their_sources():
    lines = run("profiles", "packets").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(packet_presets())
    shown = run("profiles", "packets", "smc3").stdout
    assert "source =" in shown
    assert "[[fields]]" in shown
    result = run("profiles", "packets", "smc")
    assert result.exit_code == 2
    assert "did you mean 'smc3'" in result.stderr


@pytest.mark.rt
def test_listening_shows_the_numbers_of_described_packets(tmp_path):
    port = free_port(socket.SOCK_DGRAM)
    command = ["listen", "custom", "--packet", rig(tmp_path), "--at", f"udp://127.0.0.1:{port}", "--json"]
    with Program(*command) as listen, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        listen.says("waiting for packets")
        for text in (b"X1.00Y+000\r\n", b"nonsense", b"X2.50Y-010\r\n"):
            sender.sendto(text, ("127.0.0.1", port))
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert stats["streams"]["motion"]["packets_received"] == 2
    assert stats["last"] == {"surge": 2.5, "tilt": -10}
    assert sum(stats["rejected"].values()) == 1


def test_a_described_packet_is_shown_with_all_its_numbers(tmp_path):
    packet = (
        '{ size = 16, fields = [{ offset = 0, type = "f4", channel = "post_1" }, '
        '{ offset = 4, type = "f4", channel = "roll", scale = 57.29577951308232 }], '
        'counter = { offset = 8, type = "u4" }, state = { offset = 12, type = "u1", offline = 0, '
        "engaging = 1, running = 2, holding = 3, parking = 4, fault = 5 } }"
    )
    module, name, _, _ = end_of(load_profile(rig(tmp_path, packet)), rig(tmp_path, packet), ("udp://:9",))
    assert (name, [row.name for row in rows_of(module)]) == ("custom", ["post_1", "roll", "counter", "state"])
    url = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    listener = DatagramListener(module, [url])
    listener.take(struct.pack("<ffIB3x", 0.125, -3.0, 7, 1), 0, "a:1")
    shown = PlatformView(listener, module, "title", None)(0.0)
    listener.close()
    (series,) = shown.series
    assert series.values == {"post_1": 0.125, "roll": pytest.approx(math.radians(-3)), "counter": 7, "state": 1}
    text = "\n".join(line.plain for line in render(shown, 80, 24, glyphs_for("utf-8", colors=True)).renderables)
    assert [row for row in ("post 1", "roll", "counter", "state", "surge", "yaw rate") if row in text] == [
        "post 1", "roll", "counter", "state",
    ]  # fmt: skip


def test_two_senders_in_turn_are_said_and_one_after_another_are_not():
    listener = DatagramListener(platform("dk"), [f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"])
    try:
        for sender in ("a:1", "a:1", "b:2"):  # as when an engine is started anew
            listener.take(NEUTRAL, 0, sender)
        assert listener.in_turn("motion") == []
        listener.take(NEUTRAL, 0, "a:1")
        stats = listener.stats()
        shown = PlatformView(listener, platform("dk"), "title", None)(0.0)
    finally:
        listener.close()
    assert stats["streams"]["motion"]["in_turn"] == ["a:1", "b:2"]
    assert ("DK senders", "2 in turn: a:1, b:2") in platform_rows("DK", stats)
    assert list(shown.messages) == ["2 programs send motion in turn: a:1, b:2; a platform would get both"]


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_listening_at_a_serial_line_finds_the_packets_in_the_stream(tmp_path):
    end, line = os.openpty()
    at = f"serial://{os.ttyname(line)}?baud=250000"
    with Program("listen", "custom", "--packet", "thanos-amc", "--at", at, "--json") as listen:
        listen.says("waiting for packets")
        packet = bytes.fromhex(THANOS)
        os.write(end, packet[7:] + 5 * packet + packet[:9])
        os.write(end, packet[9:])
        time.sleep(0.5)  # the line is read a moment later
        listen.signal(INTERRUPT)
        stats = listen.end()
    os.close(end)
    os.close(line)
    assert stats["streams"]["motion"]["packets_received"] == 6
    assert sum(stats["rejected"].values()) == 1


@pytest.mark.rt
@pytest.mark.parametrize("name", [*packet_presets(), "text"])
def test_a_demo_drives_every_described_platform(tmp_path, name):
    more = ", scale = 712500" if name.startswith("mbox") else ""
    serial = name in ("thanos-amc", "smc3")
    path = rig(
        tmp_path,
        packet=TEXT if name == "text" else f'{{ preset = "{name}"{more} }}',
        platform="hexapod-dim" if name in ("thanos-amc", "mbox-6") else "posts-3",
        url="serial:///dev/ttyUSB0" if serial else "udp://127.0.0.1:9",
        rate=60 if name.startswith("moog") else 333.33,
    )
    result = run("demo", "--profile", path, "--duration", "1.6", "--json")
    assert result.exit_code == 0, result.output
    stats = json.loads(result.stdout.splitlines()[-1])
    assert stats["packets_sent"] > 30
    assert stats["platform"]["packets_received"] == stats["datagrams_sent"]
    assert (stats["platform"]["rejected"], stats["platform"]["lost"]) == ({}, 0)
    assert stats["platform"]["streams"]["motion"]["last"]
