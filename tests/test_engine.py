"""The whole path on real threads, clocks and sockets: a simulator's bytes in, what DK receives out."""

import ctypes
import gc
import logging
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

import msgspec
import numpy as np
import pytest
from helpers import (
    FRAMES,
    INIT_PACKAGE,
    PACKAGES,
    SAMPLE,
    Sink,
    bindable,
    bits,
    closed,
    engaged,
    eventually,
    expected_motion,
    frame,
    free_port,
    init,
    receive,
    single,
    stream_url,
)

import motioncue
from motioncue.errors import ConfigError, EndpointError
from motioncue.protocols import dk
from motioncue.protocols.city_car_driving import FRAME
from motioncue.transports.stream import Listener, connect
from motioncue.virtual.city_car_driving import Simulator, driven

SCHEME = "unix" if hasattr(socket, "AF_UNIX") else "tcp"
PERIOD = 3_000_030
CHANNELS = [name for name in motioncue.CUE_DTYPE.names if name != "time"]
PRESENT = [name for name in CHANNELS if name != "engine_speed"]  # City Car Driving does not send it
OFFSETS = {28: "sway", 32: "surge", 36: "heave", 52: "roll", 56: "pitch", 60: "yaw"}
MOVING = {"acceleration": (-0.5, 0.25, 2.0), "velocity": (0.0, 0.0, 12.0), "angular_velocity": (0.1, 0.2, 0.3)}


class Rig:
    """A DK's two sockets, and engines that send to them."""

    def __init__(self, folder, scheme=SCHEME):
        self.url = stream_url(scheme, folder)
        self.motion, self.gauges = Sink(), Sink()

    def engine(self, name="ccd-dk", trace=20_000, **source):
        # A busy machine may pause a simulator: that is not what is tested, unless a test says so.
        source = {"hold_s": 5.0, "fade_s": 0.1, **source}
        profile = motioncue.load_profile(
            name,
            f"source.endpoint={self.url}",
            *(f"source.{key}={value}" for key, value in source.items()),
            f"output.motion={self.motion.url}",
            f"output.gauges={self.gauges.url}",
        )
        return motioncue.Engine(profile, trace=trace)

    def __enter__(self):
        self.motion.__enter__()
        self.gauges.__enter__()
        return self

    def __exit__(self, *error):
        self.motion.__exit__()
        self.gauges.__exit__()


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as rig:
        yield rig


def play(url, frames):
    simulator = Simulator(url, frames, timeout_s=30.0)
    simulator.run()
    return simulator


def fast(count=None):
    """Return the recording's packages, to be sent as fast as replies come."""
    return [(0.0, package) for package in (PACKAGES if count is None else PACKAGES[: count + 1])]


def moving_until(event):
    """Yield an init package, then the same frame every 2 ms until the event is set."""
    yield 0.0, init()
    while not event.is_set():
        yield 0.002, frame(**MOVING)


class Background:
    """A simulator in a thread, sending the same frame again and again until it is told to leave."""

    def __init__(self, url):
        self.leave = threading.Event()
        self.simulator = Simulator(url, moving_until(self.leave), timeout_s=30.0)
        self.thread = threading.Thread(target=self.simulator.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.leave.set()
        self.simulator.stop()
        self.thread.join(30)


def whole(engine):
    """Say whether the newest tick sent the whole cue."""
    return engine.newest()["weight"][0] == 1.0


def neutral(packet):
    """Say whether a motion packet asks for nothing."""
    fields = dk.MOTION.decode(packet)
    return fields.pop("magic") == "BNG1" and fields.pop("up_z") == 1.0 and not any(fields.values())


def assert_grid(engine):
    """Show that every point of the grid up to the last tick was sent or skipped, each once, in order."""
    trace, stats = engine.trace, engine.stats()
    assert stats["packets_sent"] == len(trace)
    assert (np.diff(trace["index"]) >= 1).all()
    missing = trace["index"][-1] + 1 - len(trace)
    assert missing <= stats["skipped"]  # the last tick may have been followed by some
    assert bits(trace["deadline"] - trace["deadline"][0]) == bits((trace["index"] - trace["index"][0]) * PERIOD)
    assert (trace["lateness"] >= 0).all()


def assert_received(rig, engine):
    """Show that DK received one packet of each stream for each tick, in order, with the cue's bytes."""
    cues = engine.trace["cue"]
    stats = engine.stats()
    assert (stats["datagrams_sent"], stats["send_errors"]) == (2 * len(cues), 0)
    motion, gauges = rig.motion.all(len(cues)), rig.gauges.all(len(cues))
    assert len(motion) == len(gauges) == len(cues)
    for packet, gauge, cue in zip(motion, gauges, cues, strict=True):
        assert (len(packet), packet[:4], len(gauge)) == (88, b"BNG1", 96)
        for offset, name in OFFSETS.items():
            assert packet[offset : offset + 4] == single(cue[name]), name
        assert gauge[12:20] == single(cue["speed"]) + single(0.0)
    assert neutral(motion[-1])
    assert gauges[-1][12:20] == bytes(8)


def assert_offline_gives_the_same(profile, trace):
    """Show that every engaged stretch is the offline cue times the weight: bit for bit where that is 1."""
    assert (trace["weight"] == 1.0).any()
    for start, end in engaged(trace):
        stretch = trace[start:end]
        cues = motioncue.cue(profile, stretch["motion"])
        at_full = stretch["weight"] == 1.0
        for name in CHANNELS:
            assert bits(stretch["cue"][name][at_full]) == bits(cues[name][at_full]), name
            np.testing.assert_array_equal(stretch["cue"][name], cues[name] * stretch["weight"], err_msg=name)


# The real drive.


@pytest.mark.rt
@pytest.mark.parametrize("scheme", {SCHEME, "tcp"})
@pytest.mark.parametrize("name", ["ccd-dk", "ccd-dk-washout"])
def test_the_real_drive_goes_through_whole(tmp_path, scheme, name):
    with Rig(tmp_path, scheme) as rig:
        with rig.engine(name) as engine:
            simulator = play(rig.url, [(0.0005, package) for package in PACKAGES])
            last = np.frombuffer(b"".join(FRAMES), FRAME.dtype)["frame_time"].sum()
            eventually(lambda: whole(engine) and abs(engine.newest()["motion"]["frame_time"][0] - last) < 1e-6)
        stats = engine.stats()
        assert (simulator.sent, simulator.replies, simulator.lost) == (len(FRAMES), len(PACKAGES), 0)
        assert stats["frames_received"] == len(FRAMES)
        assert stats["replies_sent"] == len(PACKAGES)
        assert stats["sessions"] == 1
        assert stats["rejected"] == {}
        assert_grid(engine)
        assert_received(rig, engine)
        assert_offline_gives_the_same(engine.profile, engine.trace)
        trace = engine.trace
    # Frames are read in order, the newest each time, to the last.
    frame_time = trace["motion"]["frame_time"]
    assert (np.diff(frame_time) >= 0).all()
    wire = np.frombuffer(b"".join(FRAMES), FRAME.dtype)
    assert frame_time[-1] == pytest.approx(wire["frame_time"].sum(), rel=1e-12)
    assert len(np.unique(frame_time)) > 100
    # What DK gets in `ccd-dk` is the body frame of the frame that was read.
    if name == "ccd-dk":
        ends = np.cumsum(wire["frame_time"]) - 1e-6
        at_full = trace[trace["weight"] == 1.0]
        row = np.searchsorted(ends, at_full["motion"]["frame_time"], side="right") - 1
        for channel, values in expected_motion(wire).items():
            np.testing.assert_allclose(at_full["cue"][channel], values[row], rtol=0, atol=1e-12, err_msg=channel)


@pytest.mark.rt
def test_a_virtual_drive_goes_through_at_its_own_pace(rig):
    with rig.engine("ccd-dk-washout", hold_s=0.1) as engine:
        simulator = play(rig.url, driven("tour", 200.0, 1.0))
    assert (simulator.sent, simulator.lost) == (200, 0)
    assert engine.stats()["frames_received"] == 200
    assert_grid(engine)
    assert_received(rig, engine)
    assert_offline_gives_the_same(engine.profile, engine.trace)


@pytest.mark.rt
def test_a_simulator_that_leaves_and_returns_fades_out_and_in_while_dk_is_fed_at_full_rate(rig):
    with rig.engine("ccd-dk-washout", hold_s=0.1) as engine:
        for count in (1, 2):
            with Background(rig.url):
                eventually(lambda: whole(engine))
            eventually(lambda: engine.newest()["weight"][0] == 0.0)
            assert engine.stats()["sessions"] == count
    trace = engine.trace
    assert len(engaged(trace)) >= 2
    assert_grid(engine)
    assert_received(rig, engine)
    assert_offline_gives_the_same(engine.profile, trace)
    # Never faster than the fade: 15/8 of its mean slope.
    pace = PERIOD * 1e-9 / 0.1
    assert np.abs(np.diff(trace["weight"])).max() <= 1.875 * pace * (1 + 1e-9)


# Ending.


def assert_fades(packets, fade_s):
    """Show that a steady surge of 2 m/s^2 ends with a smooth fade to exactly neutral."""
    surge = np.array([struct.unpack_from("<f", packet, 32)[0] for packet in packets])
    assert surge.max() == 2.0
    assert neutral(packets[-1])
    assert not neutral(packets[-4])  # the other neutral ones: limits at rest, supervisor offline
    last_whole = np.flatnonzero(surge == 2.0)[-1]
    end = surge[last_whole:]
    assert (np.diff(end) <= 0).all()
    pace = PERIOD * 1e-9 / fade_s
    assert np.count_nonzero(end) == math.ceil(1 / pace)
    x = np.clip(1 - np.arange(len(end)) * pace, 0, 1)
    np.testing.assert_allclose(end, 2.0 * x**3 * (10 - 15 * x + 6 * x * x), rtol=1e-6, atol=1e-9)
    assert np.abs(np.diff(end)).max() <= 2.0 * 1.875 * pace * (1 + 1e-6)


@pytest.mark.rt
@pytest.mark.parametrize("fade_s", [0.1, 0.7])
def test_stop_fades_to_neutral_although_frames_keep_coming(rig, fade_s):
    engine = rig.engine(fade_s=fade_s).start()
    with Background(rig.url):
        eventually(lambda: whole(engine))
        engine.stop()
    assert_fades(rig.motion.all(engine.stats()["packets_sent"]), fade_s)
    assert_received(rig, engine)


@pytest.mark.rt
def test_leaving_with_an_exception_fades_too(rig):
    engine = rig.engine()

    def fail():
        with engine:
            eventually(lambda: whole(engine))
            raise ZeroDivisionError

    with Background(rig.url), pytest.raises(ZeroDivisionError):
        fail()
    assert_fades(rig.motion.all(engine.stats()["packets_sent"]), 0.1)
    assert bindable(rig.url)


@pytest.mark.rt
def test_stop_with_nobody_there_ends_at_once_at_neutral(rig):
    with rig.engine() as engine:
        eventually(lambda: engine.stats()["packets_sent"] > 10)
    assert_received(rig, engine)
    assert all(neutral(packet) for packet in rig.motion.packets)
    assert engine.stats()["sessions"] == 0


@pytest.mark.rt
def test_park_fades_to_neutral_and_goes_on_sending(rig):
    with rig.engine() as engine, Background(rig.url):
        eventually(lambda: whole(engine))
        engine.park()
        eventually(lambda: engine.newest()["weight"][0] == 0.0)
        before = engine.stats()
        eventually(lambda: engine.stats()["packets_sent"] > before["packets_sent"] + 50)
        assert engine.stats()["frames_received"] > before["frames_received"]
        assert engine.newest()["weight"][0] == 0.0
    assert_fades(rig.motion.all(engine.stats()["packets_sent"])[: np.flatnonzero(engine.trace["weight"])[-1] + 2], 0.1)


@pytest.mark.rt
def test_an_engine_runs_once(rig):
    engine = rig.engine()
    engine.stop()  # nothing to stop yet
    engine.start()
    with pytest.raises(RuntimeError, match="started already"):
        engine.start()
    engine.stop()
    engine.stop()
    with pytest.raises(RuntimeError, match="started already"):
        engine.start()
    assert_received(rig, engine)


def running():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("motioncue")]


@pytest.mark.rt
@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files are counted there")
def test_nothing_is_left_of_an_engine(rig):
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    engines = []
    for _ in range(3):
        with rig.engine() as engine:
            assert len(running()) == 3
            play(rig.url, fast(20))
        assert bindable(rig.url)
        engines.append(engine)  # still there, and with it whatever it keeps
    assert running() == []
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before
    assert [engine.stats()["frames_received"] for engine in engines] == [20, 20, 20]


@pytest.mark.rt
@pytest.mark.parametrize("scheme", {SCHEME, "tcp"})
def test_a_busy_endpoint_is_refused_and_leaves_nothing_behind(tmp_path, scheme):
    with Rig(tmp_path, scheme) as rig:
        engine = rig.engine()
        owner = Listener(rig.url)
        for _ in range(3):
            with pytest.raises(EndpointError, match="in use") as refusal:
                engine.start()
            assert rig.url in str(refusal.value)
            assert running() == []
        owner.close()
        # The same engine can be started now, and sends every packet once.
        with engine:
            simulator = play(rig.url, fast(50))
        assert simulator.sent == 50
        assert_grid(engine)
        assert_received(rig, engine)


@pytest.mark.rt
def test_a_platform_that_cannot_be_found_leaves_nothing_behind(rig):
    profile = motioncue.load_profile(
        "ccd-dk", f"source.endpoint={rig.url}", "output.gauges=udp://no-such-host.invalid:4444"
    )
    with pytest.raises(EndpointError, match=r"no-such-host\.invalid"):
        motioncue.Engine(profile).start()
    assert running() == []
    assert bindable(rig.url)


@pytest.mark.rt
def test_an_engine_at_the_endpoint_of_another_is_refused_and_the_other_goes_on(rig):
    with rig.engine() as engine, Background(rig.url):
        eventually(lambda: whole(engine))
        with pytest.raises(EndpointError, match="in use"):
            motioncue.Engine(engine.profile).start()
        before = engine.stats()["frames_received"]
        eventually(lambda: engine.stats()["frames_received"] > before + 20)
    assert engine.stats()["sessions"] == 1


@pytest.mark.rt
def test_two_engines_run_side_by_side(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with Rig(folders[0]) as first, Rig(folders[1]) as second:
        direct, washout = first.engine("ccd-dk"), second.engine("ccd-dk-washout")
        with direct, washout, Background(second.url):
            simulator = play(first.url, fast(300))
            eventually(lambda: whole(direct) and whole(washout))
        assert direct.stats()["frames_received"] == simulator.sent == 300
        for rig, engine in ((first, direct), (second, washout)):
            assert_grid(engine)
            assert_received(rig, engine)
            assert_offline_gives_the_same(engine.profile, engine.trace)


# Disturbances.

PLAYER = """
import sys
from motioncue.virtual.city_car_driving import Simulator, recorded
simulator = Simulator(sys.argv[1], recorded(sys.argv[2], rate_hz=float(sys.argv[3])), timeout_s=60.0)
simulator.run()
print(simulator.sent, simulator.replies, simulator.lost)
"""


def player(url, rate_hz):
    """Start a simulator in a process of its own."""
    arguments = [sys.executable, "-c", PLAYER, url, str(SAMPLE), str(rate_hz)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.mark.rt
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
    with rig.engine("ccd-dk-washout") as engine:
        for thread in threads:
            thread.start()
        process = player(rig.url, 2000.0)
        sent, replies, lost = map(int, process.communicate(timeout=100)[0].split())
        done.set()
        for thread in threads:
            thread.join(30)
        eventually(lambda: whole(engine))
    assert (sent, replies, lost) == (len(FRAMES), len(PACKAGES), 0)
    assert engine.stats()["frames_received"] == len(FRAMES)
    assert engine.stats()["rejected"] == {}
    assert_grid(engine)
    # DK's own receiving is Python here, and starves with the rest of it: what was sent is counted where it is sent.
    ticks = engine.stats()["packets_sent"]
    assert (engine.stats()["datagrams_sent"], engine.stats()["send_errors"]) == (2 * ticks, 0)
    assert_offline_gives_the_same(engine.profile, engine.trace)


def stand_still(seconds):
    """Keep the GIL for so long, in one call into C, and leave the processor to others."""
    if sys.platform == "win32":
        ctypes.PyDLL("kernel32").Sleep(round(seconds * 1e3))
    else:
        ctypes.PyDLL(None).usleep(round(seconds * 1e6))


@pytest.mark.rt
def test_both_loops_go_on_while_the_interpreter_stands_still(rig):
    with rig.engine() as engine:
        process = player(rig.url, 500.0)
        eventually(lambda: engine.stats()["frames_received"] > 10, timeout_s=60)
        before = engine.stats()
        stand_still(1.0)
        after = engine.stats()
        process.kill()
        process.communicate()
    # Far fewer than there should be, far more than a pause between two calls of Python could let through.
    assert after["packets_sent"] - before["packets_sent"] > 20
    assert after["frames_received"] - before["frames_received"] > 20
    assert after["rejected"] == {}


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_simulator_fades_out_and_the_next_is_taken_whole(rig):
    with rig.engine(hold_s=0.1) as engine:
        process = player(rig.url, 1000.0)
        eventually(lambda: whole(engine), timeout_s=60)
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
    assert sum("a simulator connected" in line for line in said) == len(bad) + 1
    assert sum("the simulator left" in line for line in said) == len(bad) + 1
    for words in ("big-endian sender is not supported", "cannot be", "not orthogonal", "second simulator was refused"):
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
        text = motioncue.profile.profile_text("ccd-dk").replace("gauges =", "# gauges =")
        path = tmp_path / "motion-only.toml"
        path.write_text(text, encoding="utf-8")
        profile = motioncue.load_profile(path, f"source.endpoint={rig.url}", f"output.motion={rig.motion.url}")
        with motioncue.Engine(profile) as engine:
            eventually(lambda: engine.stats()["packets_sent"] >= 20)
        stats = engine.stats()
        assert stats["datagrams_sent"] == stats["packets_sent"]
        assert len(rig.motion.all(stats["packets_sent"])) == stats["packets_sent"]
        assert rig.gauges.packets == []


# Facts that need no running.


def test_statistics_have_the_names_of_the_contract(tmp_path):
    profile = motioncue.load_profile("ccd-dk", f"source.endpoint={stream_url(SCHEME, tmp_path)}")
    stats = motioncue.Engine(profile).stats()
    contract = {"frames_received", "packets_sent", "rate_hz", "skipped", "rejected", "lateness_us"}
    assert contract <= set(stats)
    assert list(stats["lateness_us"]) == ["p50", "p99", "p999", "max"]
    assert stats["rejected"] == {}
    assert not any(stats[name] for name in contract - {"lateness_us"})


def test_an_engine_of_a_bad_profile_is_refused_before_anything_starts():
    with pytest.raises(ConfigError, match="no-such-profile"):
        motioncue.Engine("no-such-profile")
    profile = motioncue.load_profile("ccd-dk")
    for table, key, value, message in (
        ("output", "rate_hz", 400.5, r"output\.rate_hz: found 400\.5"),
        ("source", "system", "dk", r"source\.system: found 'dk'"),
        ("output", "system", "city-car-driving", r"output\.system: found 'city-car-driving'"),
        ("source", "options", {"quaternion": "zyx"}, r"source\.options\.quaternion"),
    ):
        tables = msgspec.to_builtins(profile)
        tables[table][key] = value
        changed = msgspec.convert(tables, motioncue.Profile)
        with pytest.raises(ConfigError, match=message):
            motioncue.Engine(changed)
    assert running() == []


def test_400_hz_is_allowed_and_more_is_not():
    assert motioncue.load_profile("ccd-dk", "output.rate_hz=400").output.rate_hz == 400.0
    with pytest.raises(ConfigError, match="400 Hz for dk"):
        motioncue.load_profile("ccd-dk", "output.rate_hz=400.01")


def test_the_offline_cue_takes_motion_only():
    motion = np.zeros(3, motioncue.MOTION_DTYPE)
    for bad in (np.zeros(3), np.zeros((3, 1), motioncue.MOTION_DTYPE), np.zeros(3, motioncue.CUE_DTYPE)):
        with pytest.raises(ConfigError, match="allowed is MOTION_DTYPE"):
            motioncue.cue("ccd-dk", bad)
    for out in (np.zeros(2, motioncue.CUE_DTYPE), motion):
        with pytest.raises(ConfigError, match="allowed is CUE_DTYPE"):
            motioncue.cue("ccd-dk", motion, out)


def test_the_offline_cue_of_a_slice_is_that_of_its_copy():
    motion = np.zeros(100, motioncue.MOTION_DTYPE)
    motion["surge"] = np.arange(100)
    for part in (motion[::3], motion[::-1], motion[:0]):
        assert bits(motioncue.cue("ccd-dk-washout", part)) == bits(motioncue.cue("ccd-dk-washout", part.copy()))
