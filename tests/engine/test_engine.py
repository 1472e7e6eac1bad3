"""The whole path on real threads, clocks and sockets: a simulator's bytes in, what DK receives out."""

import gc
import math
import os
import struct
import threading

import msgspec
import numpy as np
import pytest
from engine_rig import (
    PERIOD,
    SCHEME,
    Background,
    Rig,
    assert_grid,
    assert_offline_gives_the_same,
    assert_received,
    fast,
    neutral,
    play,
    whole,
)
from helpers import (
    FRAMES,
    PACKAGES,
    bindable,
    engaged,
    eventually,
    expected_motion,
    nowhere,
    stream_url,
)
from same_bits import assert_same_bits

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError, EndpointError
from motioncue.profile.profile import overridden
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.sources.city_car_driving.twin import driven
from motioncue.transports.endpoint import Listener


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as rig:
        yield rig


# The real drive.


@pytest.mark.check
@pytest.mark.rt
@pytest.mark.parametrize("scheme", sorted({SCHEME, "tcp"}))
@pytest.mark.parametrize("name", ["ccd-dk", "ccd-dk-classical"])
def test_the_real_drive_goes_through_whole(tmp_path, scheme, name):
    packages, frames = PACKAGES[:181], FRAMES[:180]  # three seconds at their own pace: faster ones would be joined
    with Rig(tmp_path, scheme) as rig:
        with rig.engine(name, bridge="hold") as engine:
            simulator = play(rig.url, [(1 / 60, package) for package in packages])
            last = np.frombuffer(b"".join(frames), FRAME.dtype)["frame_time"].sum()
            eventually(lambda: whole(engine) and abs(engine.newest()["motion"]["frame_time"][0] - last) < 1e-6)
        stats = engine.stats()
        assert (simulator.sent, simulator.replies, simulator.lost) == (len(frames), len(packages), 0)
        assert stats["frames_received"] == len(frames)
        assert stats["replies_sent"] == len(packages)
        assert stats["sessions"] == 1
        assert stats["rejected"] == {}
        assert_grid(engine)
        assert_received(rig, engine)
        assert_offline_gives_the_same(engine.profile, engine.trace)
        trace = engine.trace
    # Frames are read in order, the newest each time, to the last.
    frame_time = trace["motion"]["frame_time"]
    assert (np.diff(frame_time) >= 0).all()
    wire = np.frombuffer(b"".join(frames), FRAME.dtype)
    assert frame_time[-1] == pytest.approx(wire["frame_time"].sum(), rel=1e-12)
    assert len(np.unique(frame_time)) > 100
    # A frame that came late, on a busy machine many, is joined to what was sent before: inside what the drive had, but
    # for the way in which a join that went the other way comes to rest, no longer than the way between two frames.
    if name == "ccd-dk":
        for channel, values in expected_motion(wire).items():
            cue = trace["cue"][channel][trace["weight"] == 1.0]
            rest = np.abs(np.diff(values)).max() + 1e-12
            assert values.min() - rest <= cue.min(), channel
            assert cue.max() <= values.max() + rest, channel


def test_without_a_washout_the_platform_gets_the_motion_of_the_newest_frame():
    """At every tick of the real drive, its frames on time: what SciPy's rotations make of the bytes."""
    profile = motioncue.load_profile("ccd-dk", "source.bridge=hold", "limits=none")
    pipeline = Pipeline(profile, FakeClock(10**9), trace=len(FRAMES) * 6)
    pipeline.intake.begin(10**9)
    for number, package in enumerate(PACKAGES):
        now = 10**9 + round(number * 1e9 / 60)
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(package, now)
    wire = np.frombuffer(b"".join(FRAMES), FRAME.dtype)
    at_full = pipeline.emitter.trace[pipeline.emitter.trace["weight"] == 1.0]
    assert len(at_full) > 5 * len(FRAMES)
    ends = np.cumsum(wire["frame_time"]) - 1e-6
    row = np.searchsorted(ends, at_full["motion"]["frame_time"], side="right") - 1
    for channel, values in expected_motion(wire).items():
        np.testing.assert_allclose(at_full["cue"][channel], values[row], rtol=0, atol=1e-12, err_msg=channel)


@pytest.mark.rt
def test_a_virtual_drive_goes_through_at_its_own_pace(rig):
    with rig.engine("ccd-dk-classical", hold_s=0.1) as engine:
        simulator = play(rig.url, driven("tour", 200.0, 1.0))
    assert (simulator.sent, simulator.lost) == (200, 0)
    assert engine.stats()["frames_received"] == 200
    assert_grid(engine)
    assert_received(rig, engine)
    assert_offline_gives_the_same(engine.profile, engine.trace)


@pytest.mark.rt
def test_a_simulator_that_leaves_and_returns_fades_out_and_in_while_dk_is_fed_at_full_rate(rig):
    with rig.engine("ccd-dk-classical", hold_s=0.1) as engine:
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
    """Assert that a steady surge of 2 m/s^2 ends with a smooth fade to exactly neutral."""
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
    engine.stop()  # not started yet
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
        engines.append(engine)  # keeps the engine alive, with all that it references
    assert running() == []
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before
    assert [engine.stats()["frames_received"] for engine in engines] == [20, 20, 20]


@pytest.mark.rt
@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_system_without_room_for_its_threads_is_told_and_nothing_is_left(rig, monkeypatch, room):
    start, engine, began = threading.Thread.start, rig.engine(), []

    def start_some(thread):
        if len(began) == room:
            raise RuntimeError("can't start new thread")
        start(thread)
        began.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(RuntimeError, match="new thread"):
        engine.start()
    assert len(began) == room
    assert running() == []
    assert bindable(rig.url)
    engine.stop()  # stopped already


@pytest.mark.rt
@pytest.mark.parametrize("scheme", sorted({SCHEME, "tcp"}))
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
        "ccd-dk",
        f"source.endpoint={rig.url}",
        f"output.motion={nowhere()}",
        "output.gauges=udp://no-such-host.invalid:4",
    )
    with pytest.raises(EndpointError, match=r"no-such-host\.invalid"):
        motioncue.Engine(profile).start()
    assert running() == []
    assert bindable(rig.url)


@pytest.mark.rt
def test_an_engine_at_the_endpoint_of_another_is_refused_and_the_other_goes_on(rig):
    with rig.engine() as engine, Background(rig.url):
        eventually(lambda: whole(engine))
        elsewhere = [f"output.motion={nowhere()}", f"output.gauges={nowhere()}"]
        for outputs, why in (([], "drives the platform"), (elsewhere, "in use")):
            with pytest.raises(EndpointError, match=why):
                motioncue.Engine(overridden(engine.profile, outputs)).start()
        before = engine.stats()["frames_received"]
        eventually(lambda: engine.stats()["frames_received"] > before + 20)
    assert engine.stats()["sessions"] == 1


@pytest.mark.rt
def test_two_engines_run_side_by_side(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with Rig(folders[0]) as first, Rig(folders[1]) as second:
        direct, washout = first.engine("ccd-dk"), second.engine("ccd-dk-classical")
        with direct, washout, Background(second.url):
            simulator = play(first.url, fast(300))
            eventually(lambda: whole(direct) and whole(washout))
        assert direct.stats()["frames_received"] == simulator.sent == 300
        for rig, engine in ((first, direct), (second, washout)):
            assert_grid(engine)
            assert_received(rig, engine)
            assert_offline_gives_the_same(engine.profile, engine.trace)


# Facts that need no running engine.


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


def test_a_request_before_the_start_and_a_negative_trace_are_refused(rig):
    with pytest.raises(ConfigError, match="trace: found -5"):
        motioncue.Engine("ccd-dk", trace=-5)
    engine = rig.engine()
    for request in (engine.engage, engine.hold, engine.park):
        with pytest.raises(RuntimeError, match=r"does not run yet; call start\(\)"):
            request()


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
    memory = np.zeros(3 * 120, "u1")
    with pytest.raises(ConfigError, match="out: found memory of motion"):
        motioncue.cue("ccd-dk", memory[: 3 * 104].view(motioncue.MOTION_DTYPE), memory.view(motioncue.CUE_DTYPE))


def test_the_offline_cue_of_a_slice_is_that_of_its_copy():
    motion = np.zeros(100, motioncue.MOTION_DTYPE)
    motion["surge"] = np.arange(100)
    for part in (motion[::3], motion[::-1], motion[:0]):
        assert_same_bits(motioncue.cue("ccd-dk-classical", part), motioncue.cue("ccd-dk-classical", part.copy()))
