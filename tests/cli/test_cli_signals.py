"""A run goes to neutral before it ends, whatever ends it."""

import math
import os
import signal
import socket
import struct

import numpy as np
import pytest
from helpers import Sink, eventually, free_port, stream_url
from programs import ENGINE_KEYS, INTERRUPT, NEUTRAL, STREAM, SURGE, WINDOWS, Feeder, Program

pytestmark = pytest.mark.rt

FADE_S = 0.5
ENDINGS = [INTERRUPT] if WINDOWS else [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def surge_of(packets):
    """Return the surge of each motion packet."""
    return np.array([struct.unpack_from("<f", packet, 32)[0] for packet in packets], dtype=np.float64)


def neutral(packet):
    """Say whether a motion packet is neutral: all zero but for the magic and the up axis."""
    return packet[:40] == NEUTRAL[:40] and struct.unpack("<3f", packet[40:52]) == (0, 0, 1) and not any(packet[52:])


def curve(x):
    """Return the weight of a fade at a position."""
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def assert_fades(surge):
    """Assert that a run at full weight goes to zero along the fade's curve, one tick per packet, without a step."""
    pace = round(1e9 / 333.33) * 1e-9 / FADE_S  # share of the fade per tick
    tail = surge[np.flatnonzero(surge == SURGE)[-1] :]
    assert np.abs(np.diff(tail)).max() <= SURGE * 15 / 8 * pace * (1 + 1e-6)
    half = int(np.flatnonzero(tail < SURGE / 2)[0])
    ticks = np.arange(len(tail)) - half + math.floor(0.5 / pace) + 1
    expected = SURGE * curve(np.clip(1.0 - ticks * pace, 0.0, 1.0))
    assert np.abs(tail - expected).max() <= 1e-6


@pytest.fixture
def setup(tmp_path):
    """Return an endpoint, a sink for motion, and the arguments of a run with them."""
    url = stream_url(STREAM, tmp_path)
    with Sink() as motion:
        keys = {
            "source.endpoint": url,
            "supervisor.fade_s": str(FADE_S),
            "supervisor.hold_s": "5",  # so that a stall of the machine does not start a fade
            "output.motion": motion.url,
            "output.gauges": f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
        }
        yield url, motion, [item for key, value in keys.items() for item in ("--set", f"{key}={value}")]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda s: s.name)
@pytest.mark.parametrize("again", [None, INTERRUPT], ids=["once", "twice"])
def test_a_signal_fades_to_neutral_and_ends_well(setup, ending, again):
    url, motion, arguments = setup
    with Program("run", *arguments, "--json") as run, Feeder(url):
        eventually(lambda: motion.packets and surge_of(motion.packets[-1:]) == SURGE)
        run.signal(ending)
        if again is not None:
            eventually(lambda: 0 < surge_of(motion.packets[-1:]) < SURGE)
            run.signal(again)
        stats = run.end()
        packets = motion.all(stats["packets_sent"])
    assert len(packets) == stats["packets_sent"]
    assert neutral(packets[-1])
    assert_fades(surge_of(packets))


def test_a_signal_while_waiting_ends_well(setup):
    _, motion, arguments = setup
    with Program("run", *arguments, "--json") as run:
        motion.all(10)
        run.signal(INTERRUPT)
        stats = run.end()
    assert stats["frames_received"] == 0
    assert all(map(neutral, motion.packets))


def test_a_duration_ends_at_neutral(setup):
    url, motion, arguments = setup
    with Feeder(url), Program("run", *arguments, "--duration", "5", "--json") as run:
        stats = run.end()
        packets = motion.all(stats["packets_sent"])
    assert set(stats) >= ENGINE_KEYS
    assert set(stats["lateness_us"]) == {"p50", "p99", "p999", "max"}
    assert stats["frames_received"] > 0
    assert stats["rejected"] == {}
    assert len(packets) == stats["packets_sent"]
    assert neutral(packets[-1])
    assert_fades(surge_of(packets))


def test_demo_ends_with_a_fade_when_a_signal_comes(tmp_path):
    folders = {**os.environ, "TMPDIR": str(tmp_path), "TEMP": str(tmp_path), "TMP": str(tmp_path)}
    with Program("demo", "--json", env=folders) as demo:
        eventually(lambda: list(tmp_path.glob("motioncue-*")))  # it makes its private folder when it begins
        demo.signal(INTERRUPT)
        stats = demo.end()
    assert stats["platform"]["lost"] == 0
    assert all(stream["last"].get("surge", 0.0) == 0.0 for stream in stats["platform"]["streams"].values())
    assert list(tmp_path.iterdir()) == []
