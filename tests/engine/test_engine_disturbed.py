"""The engine beside a busy interpreter, simulators that die or send garbage, and missing platforms."""

import gc
import logging
import math
import signal
import socket
import struct
import sys
import threading

import pytest
from engine_rig import (
    SCHEME,
    Background,
    Rig,
    assert_grid,
    assert_offline_gives_the_same,
    assert_received,
    fast,
    play,
    player,
    whole,
)
from helpers import (
    FRAMES,
    INIT_PACKAGE,
    PACKAGES,
    closed,
    eventually,
    frame,
    free_port,
    init,
    receive,
    said_in,
    stream_url,
)

import motioncue
from motioncue.transports.endpoint import connect


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as rig:
        yield rig


@pytest.mark.rt
@pytest.mark.alone
def test_a_busy_interpreter_loses_no_package(rig):
    """One thread that never lets go of the GIL on its own, another that collects garbage all the time."""
    done = threading.Event()

    def compute():
        while not done.is_set():
            sum(range(200_000))

    def collect():
        while not done.is_set():
            loops = [[] for _ in range(2000)]
            for loop in loops:
                loop.append(loop)
            del loops
            gc.collect()

    threads = [threading.Thread(target=target, daemon=True) for target in (compute, compute, collect)]
    with rig.engine("ccd-dk-classical") as engine:
        for thread in threads:
            thread.start()
        process = player(rig.url, 2000.0)
        try:
            sent, replies, lost = map(int, process.communicate(timeout=100)[0].split())
        finally:
            done.set()
            for thread in threads:
                thread.join(30)
        eventually(lambda: whole(engine))
    assert (sent, replies, lost) == (len(FRAMES), len(PACKAGES), 0)
    assert engine.stats()["frames_received"] == len(FRAMES)
    assert engine.stats()["rejected"] == {}
    assert_grid(engine)
    # DK's receiving side is Python here and starves too, so packets are counted where they are sent.
    ticks = engine.stats()["packets_sent"]
    assert (engine.stats()["datagrams_sent"], engine.stats()["send_errors"]) == (2 * ticks, 0)
    assert_offline_gives_the_same(engine.profile, engine.trace)


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_simulator_fades_out_and_the_next_is_taken_whole(rig):
    with rig.engine(hold_s=0.1) as engine:
        process = player(rig.url, 1000.0)
        eventually(lambda: whole(engine))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        eventually(lambda: engine.newest()["weight"][0] == 0.0)
        before = engine.stats()["frames_received"]
        simulator = play(rig.url, fast(300))
        assert engine.stats()["frames_received"] - before == simulator.sent == 300
        assert engine.stats()["rejected"] == {}
        assert engine.stats()["sessions"] == 2
    assert_grid(engine)
    assert_received(rig, engine)
    assert_offline_gives_the_same(engine.profile, engine.trace)


@pytest.mark.rt
def test_bad_simulators_are_counted_logged_and_make_room_for_a_good_one(rig, caplog):
    caplog.set_level(logging.INFO, "motioncue")
    bad = {
        "framing": b"\0\0",
        "big_endian": struct.pack(">HB", 39, 1) + bytes(36),
        "before_init": FRAMES[0],
        "type": struct.pack("<HB", 5, 77) + b"ab",
        "size": struct.pack("<HB", 5, 2) + b"ab",
        "not_finite": init(up=(math.nan, 0, 0)),
        "axes": init((0, 0, 0)),
        "implausible": INIT_PACKAGE + frame(velocity=(0, 0, 1000)),
        "quaternion": INIT_PACKAGE + frame(orientation=(0, 0, 0, 0)),
    }
    with rig.engine() as engine:
        for data in bad.values():
            client = connect(rig.url, timeout_s=30)
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            assert receive(client, 100)  # answered, then closed
            client.close()
        assert engine.stats()["rejected"] == dict.fromkeys(bad, 1)
        assert not engine.trace["weight"].any()
        with Background(rig.url):
            eventually(lambda: whole(engine))
            second = connect(rig.url)
            assert closed(second)
            second.close()
        count = engine.stats()["frames_received"]
    assert engine.stats()["rejected"] == dict.fromkeys([*bad, "second_simulator"], 1)
    assert engine.stats()["sessions"] == len(bad) + 1
    assert count > 0
    assert_received(rig, engine)
    said = [record.getMessage() for record in caplog.records if record.name == "motioncue"]
    assert said[0] == f"waiting for city-car-driving at {rig.url}"
    assert said_in(caplog, "a simulator connected").total() == len(bad) + 1
    assert said_in(caplog, "the simulator left").total() == len(bad) + 1
    for words in ("source.options.byte_order = 'big'", "cannot be", "not orthogonal", "second simulator was refused"):
        assert sum(words in line for line in said) == 1, words
    for reason in ("before_init", "type", "size", "not_finite", "implausible", "quaternion"):
        assert sum(f"package refused: {reason}" in line for line in said) == 1, reason
    assert all("\n" not in line for line in said)


@pytest.mark.rt
def test_a_platform_that_is_not_there_is_no_error(tmp_path):
    profile = motioncue.load_profile(
        "ccd-dk",
        f"source.endpoint={stream_url(SCHEME, tmp_path)}",
        f"output.motion=udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
        f"output.gauges=udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
    )
    with motioncue.Engine(profile) as engine:
        eventually(lambda: engine.stats()["packets_sent"] >= 50)
    stats = engine.stats()
    assert (stats["datagrams_sent"], stats["send_errors"]) == (2 * stats["packets_sent"], 0)


@pytest.mark.rt
def test_one_stream_can_be_left_out(tmp_path):
    with Rig(tmp_path) as rig:
        text = motioncue.profile.profile.profile_text("ccd-dk").replace("gauges =", "# gauges =")
        path = tmp_path / "motion-only.toml"
        path.write_text(text, encoding="utf-8")
        profile = motioncue.load_profile(path, f"source.endpoint={rig.url}", f"output.motion={rig.motion.url}")
        with motioncue.Engine(profile) as engine:
            eventually(lambda: engine.stats()["packets_sent"] >= 20)
        stats = engine.stats()
        assert stats["datagrams_sent"] == stats["packets_sent"]
        assert len(rig.motion.all(stats["packets_sent"])) == stats["packets_sent"]
        assert rig.gauges.packets == []
