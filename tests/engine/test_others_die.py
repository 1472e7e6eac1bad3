"""Other programs may be killed at any time: the stream goes on, the ride ends in a fade, and it is logged once.

The engine itself may be stopped and go on, and the time of day may be set meanwhile.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from delivery_rig import FADE, GAMES, PERIOD
from helpers import Sink, eventually, free_port, said_in, truth
from test_delivery import swinging

import motioncue
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.engine.replay import first_difference, repeat
from motioncue.output.dk import MOTION
from motioncue.sources.city_car_driving.twin import Simulator
from motioncue.sources.city_car_driving.twin import driven as driven_packages

pytestmark = pytest.mark.search

SIMULATOR = """
import sys
from motioncue.sources.city_car_driving.twin import Simulator, driven
Simulator(sys.argv[1], driven("turns", 60)).run()
"""

VIEWER = """
import sys
from motioncue.output import dk
from motioncue.drive.peers import DatagramListener
listener = DatagramListener(dk, sys.argv[1:])
print("listening", flush=True)
listener.run()
"""


def settings_for(folder, motion):
    """Return a profile from a socket in `folder` to a UDP endpoint."""
    return load_profile(
        "ccd-dk", f"source.endpoint=unix://{folder}/s", "supervisor.fade_s=0.5", f"output.motion={motion}",
        f"output.gauges={somewhere()}",
    )  # fmt: skip


def somewhere():
    """Return a UDP endpoint of this machine at which nobody listens."""
    return f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
def test_every_transition_is_logged_once_however_often_statistics_are_asked_for(tmp_path, caplog):
    caplog.set_level("DEBUG", "motioncue")
    with Engine(settings_for(tmp_path, somewhere())) as engine:
        simulator = Simulator(f"unix://{tmp_path}/s", driven_packages("turns", 60, 2.0))
        thread = threading.Thread(target=simulator.run, daemon=True)
        thread.start()
        while thread.is_alive():
            engine.stats()
        eventually(lambda: engine.stats()["state"] == "OFFLINE")
    moves = engine.stats()["transitions"]
    assert len(moves) >= 4
    expected = Counter(f"{move['from'].lower()} to {move['to'].lower()}: {move['reason']}" for move in moves)
    assert said_in(caplog, " to ") == expected


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")
def test_killing_the_simulator_leads_into_the_fade_and_the_stream_goes_on(tmp_path):
    with Sink() as platform, Engine(settings_for(tmp_path, platform.url)) as engine:
        simulator = subprocess.Popen([sys.executable, "-c", SIMULATOR, f"unix://{tmp_path}/s"])
        try:
            eventually(lambda: engine.stats()["state"] == "RUNNING")
        finally:
            os.kill(simulator.pid, signal.SIGKILL)
            simulator.wait()
        eventually(lambda: engine.stats()["state"] == "OFFLINE")
        so_far = len(platform.packets)
        eventually(lambda: len(platform.packets) > so_far + 100)
        stats = engine.stats()
    ways = [(move["from"], move["to"]) for move in stats["transitions"]]
    assert ways[-2:] == [("HOLDING", "PARKING"), ("PARKING", "OFFLINE")] or ways[-2:] == [
        ("RUNNING", "PARKING"), ("PARKING", "OFFLINE"),
    ]  # fmt: skip
    decoded = np.frombuffer(b"".join(platform.packets), MOTION.dtype)
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        assert np.isfinite(decoded[name]).all()
        assert not decoded[name][-50:].any()
    assert stats["send_errors"] == 0


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")
def test_killing_the_viewer_changes_nothing_for_the_engine(tmp_path):
    url = somewhere()
    viewer = subprocess.Popen([sys.executable, "-c", VIEWER, url], stdout=subprocess.PIPE, text=True)
    assert viewer.stdout is not None
    assert viewer.stdout.readline().strip() == "listening"
    with Engine(settings_for(tmp_path, url)) as engine:
        simulator = subprocess.Popen([sys.executable, "-c", SIMULATOR, f"unix://{tmp_path}/s"])
        try:
            eventually(lambda: engine.stats()["state"] == "RUNNING")
            os.kill(viewer.pid, signal.SIGKILL)
            viewer.wait()
            viewer.stdout.close()
            frames, packets = engine.stats()["frames_received"], engine.stats()["packets_sent"]
            # The port is closed now: the system may refuse datagrams, which the engine counts.
            eventually(lambda: engine.stats()["packets_sent"] > packets + 300)
            eventually(lambda: engine.stats()["frames_received"] > frames + 30)
            # Another platform at the same port is served again.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform:
                platform.bind(("127.0.0.1", int(url.rpartition(":")[2])))
                platform.settimeout(30)
                assert len(platform.recv(4096)) == MOTION.size
            os.kill(simulator.pid, signal.SIGKILL)
            simulator.wait()
            eventually(lambda: engine.stats()["state"] == "OFFLINE")
        finally:
            simulator.kill()
            simulator.wait()
    stats = engine.stats()
    assert stats["datagrams_sent"] + stats["send_errors"] == 2 * stats["packets_sent"]  # motion and gauges
    assert all(move["to"] != "FAULT" for move in stats["transitions"])


STOPPED = """
import sys
import motioncue
profile = motioncue.load_profile(
    "forza-dk", "source.endpoint=" + sys.argv[1], "output.motion=" + sys.argv[2], "output.gauges=" + sys.argv[4],
    "limits=none",
)
with motioncue.Engine(profile, record=sys.argv[3]):
    print("running", flush=True)
    sys.stdin.read()
"""


def recorded(folder, disturb, environment=None):
    """Return the recording of an engine in a process of its own, while `disturb` is done with it and its packets."""
    path, port = folder / "stopped.mcap", free_port(socket.SOCK_DGRAM)
    taken = np.arange(0.0, 30.0, 1.0 / GAMES["forza"].rate_hz)
    states = swinging(0.3).states(taken)
    states["time"] += 100.0
    packets = GAMES["forza"].packets(states, np.arange(len(taken)))
    driven = threading.Event()

    def drive():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for packet in packets:
                client.sendto(packet, ("127.0.0.1", port))
                if driven.wait(1.0 / GAMES["forza"].rate_hz):
                    break

    with Sink() as platform:
        command = [sys.executable, "-c", STOPPED, f"udp://127.0.0.1:{port}", platform.url, str(path), somewhere()]
        engine = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | (environment or {})
        )
        simulator = threading.Thread(target=drive, daemon=True)
        try:
            assert engine.stdout.readline() == "running\n"
            simulator.start()
            disturb(engine, platform.packets)
        finally:
            driven.set()
            engine.communicate()
    return motioncue.read(path)


def more(packets, count=600):
    """Wait until that many more packets have come."""
    so_far = len(packets)
    eventually(lambda: len(packets) > so_far + count)


def assert_on_its_grid_without_a_step(drive):
    """Assert that each slot has one packet at most, and that no step is larger than the drive's own and a fade's."""
    assert (np.diff(drive.ticks["deadline"]) >= PERIOD - 1).all()
    assert drive.ticks["weight"].max() == 1.0
    own = truth(swinging(0.3).states(np.arange(0.0, 30.0, 1e-9 * PERIOD)))
    for name in ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "yaw_rate"):
        step = np.abs(np.diff(drive.ticks["cue"][name])).max()
        assert 0.0 < step <= 1.2 * np.abs(np.diff(own[name])).max() + FADE * np.abs(own[name]).max(), name
    assert first_difference(drive.ticks, repeat(drive).ticks) is None


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="signals that stop a process")
@pytest.mark.parametrize("stops", [(0.1, 0.5, 2.0), pytest.param((10.0,), marks=pytest.mark.slow)])
def test_a_stopped_engine_that_goes_on_sends_no_missed_packet_and_makes_no_step(tmp_path, stops):
    """The simulator goes on meanwhile: its frames wait in the socket, and come all at once."""

    def stop(engine, packets):
        for stop_s in stops:
            more(packets)
            engine.send_signal(signal.SIGSTOP)
            threading.Event().wait(stop_s)
            engine.send_signal(signal.SIGCONT)
        more(packets)

    drive = recorded(tmp_path, stop)
    missed = np.diff(drive.ticks["index"])
    for stop_s, gap in zip(sorted(stops), np.sort(missed)[-len(stops) :], strict=True):
        assert gap * PERIOD > 0.9e9 * stop_s
    assert_on_its_grid_without_a_step(drive)


SET_AGAIN = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t) {
    static const long days[] = {0, 1, -1, 400, -4000};
    const int error = (int)syscall(SYS_clock_gettime, clock, t);
    if (error == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += 86400 * days[(t->tv_sec * 5 + t->tv_nsec / 200000000) % 5];
    return error;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    const int error = clock_gettime(CLOCK_REALTIME, &now);
    (void)zone;
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return error;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""
DAYS = "import time; print(*({round(time.time() / 86400) for _ in range(11) if not time.sleep(0.1)}))"


@pytest.mark.rt
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a library loaded before the system's")
def test_a_time_of_day_that_is_set_again_and_again_changes_nothing(tmp_path):
    """Every 0.2 s, by days and years: what comes and what is sent is timed by a clock that nobody sets."""
    (tmp_path / "set_again.c").write_text(SET_AGAIN)
    library = tmp_path / "set_again.so"
    compiler = os.environ.get("CC", "gcc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, tmp_path / "set_again.c"], check=True)
    preloaded = {"LD_PRELOAD": str(library)}
    days = subprocess.check_output([sys.executable, "-c", DAYS], env=os.environ | preloaded, text=True).split()
    assert len(days) >= 5
    drive = recorded(tmp_path, lambda engine, packets: more(packets, 1500), preloaded)
    came = np.array([package.time for package in drive.packages])
    assert (np.diff(came) >= 0).all()
    assert drive.ticks["deadline"][0] - 1e9 < came[0]
    assert came[-1] < drive.ticks["deadline"][-1] + 1e9
    assert_on_its_grid_without_a_step(drive)
