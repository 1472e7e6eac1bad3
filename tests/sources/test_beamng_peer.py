"""The virtual BeamNG: what it sends for drives and recordings, and an engine that it drives."""

import socket
import struct
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import Sink, eventually, free_port

from motioncue.drive.car import angles_and_rates, drive
from motioncue.drive.courses import course
from motioncue.drive.peers import DatagramListener
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError, PacketError
from motioncue.output import dk
from motioncue.recording.recording import read_motion
from motioncue.sources.beamng.packets import GAUGES, MOTION
from motioncue.sources.beamng.twin import Simulator, driven, encode_states
from motioncue.virtual.installation import Installation, drive_packages, recorded_packages, ride

recorded = partial(recorded_packages, "beamng")

PACKETS = Path(__file__).parents[1] / "data" / "packets" / "beamng"


def test_a_drive_is_a_pair_of_datagrams_for_each_state():
    frames = list(driven("brake", 2000.0, 0.25))
    motion, gauges = encode_states(drive("brake", 2000.0, 0.25))
    assert [frame.package for frame in frames[::2]] == [row.tobytes() for row in gauges]
    assert [frame.package for frame in frames[1::2]] == [row.tobytes() for row in motion]
    assert {(frame.duration, frame.to, frame.motion) for frame in frames[::2]} == {(1 / 2000, 1, False)}
    assert {(frame.duration, frame.to, frame.motion) for frame in frames[1::2]} == {(0.0, 0, True)}
    assert len(drive_packages("beamng", "brake", duration_s=1.0)) == 2 * 60  # BeamNG's own rate


def test_nothing_is_sent_while_the_car_is_paused():
    driven_course = course("trouble", 60.0)
    paused = int((driven_course.frame_times == 0.0).sum())
    assert paused > 60
    frames = list(driven("trouble", 60.0))
    assert sum(frame.motion for frame in frames) == len(driven_course.states) - paused
    assert sum(frame.duration for frame in frames) == pytest.approx(driven_course.waits.sum())


@pytest.mark.check
def test_published_rates_are_the_derivatives_of_the_published_angles():
    rate_hz = 2000.0
    angles, rates, accelerations = angles_and_rates(drive("tour", rate_hz))
    # Central differences, whose error is a sixth of the third derivative times the square of the step.
    slopes = np.gradient(np.unwrap(angles, axis=1), 1 / rate_hz, axis=1)[:, 1:-1]
    np.testing.assert_allclose(slopes, rates[:, 1:-1], rtol=0, atol=1e-5)
    slopes = np.gradient(rates, 1 / rate_hz, axis=1)[:, 1:-1]
    np.testing.assert_allclose(slopes, accelerations[:, 1:-1], rtol=0, atol=2e-4)
    assert np.abs(accelerations).max(axis=1).min() > 0.5


@pytest.mark.parametrize(("arguments", "message"), [(("nowhere",), "drive"), (("tour", 2001.0), "rate_hz")])
def test_an_impossible_drive_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        list(driven(*arguments))


@pytest.fixture
def recording(tmp_path):
    """Return the path of half a second at 100 Hz, both streams."""
    path = tmp_path / "drive.bin"
    path.write_bytes(b"".join(frame.package for frame in driven("tour", 100.0, 0.5)))
    return path


def test_a_recording_is_played_datagram_by_datagram_at_a_rate(recording):
    own = list(driven("tour", 100.0, 0.5))
    played = list(recorded(recording, 250.0))
    assert [(frame.package, frame.to, frame.motion) for frame in played] == [
        (frame.package, frame.to, frame.motion) for frame in own
    ]
    assert sum(frame.duration for frame in played) == pytest.approx(50 / 250)
    assert sum(frame.duration for frame in recorded(recording)) == pytest.approx(50 / 60)
    assert sum(frame.motion for frame in recorded(recording, 250.0, 0.1)) == 25


def test_a_recording_is_read_as_motion(recording):
    motion = read_motion(recording, "beamng", rate_hz=100.0)
    states = drive("tour", 100.0, 0.5)
    assert len(motion) == 50
    np.testing.assert_allclose(motion["engine_speed"], states["engine_speed"], rtol=1e-6)
    np.testing.assert_allclose(motion["time"], states["time"] * 1e9, atol=1)
    with pytest.raises(PacketError, match="give their rate"):
        read_motion(recording, "beamng")


def test_a_capture_is_played_as_it_was_captured(tmp_path):
    """Datagrams as a capture has them (raw IP in pcap), 20 ms apart, then 35 ms."""
    path = tmp_path / "drive.pcap"
    frames = [frame.package for frame in driven("tour", 100.0, 0.03)]
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for package, ms in zip(frames, (0, 1, 20, 21, 55, 56), strict=True):
        udp = struct.pack(">HHHH", 4567, 4567, 8 + len(package), 0) + package
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1") + udp
        capture += struct.pack("<IIII", 1_700_000_000, ms * 1000, len(ip), len(ip)) + ip
    path.write_bytes(capture)
    played = list(recorded(path))
    assert [frame.package for frame in played] == frames
    assert [frame.duration for frame in played] == pytest.approx([0, 0, 0, 0.020, 0, 0.035], abs=1e-6)
    assert [frame.duration for frame in recorded(path, 50.0)] == [0, 0.02] * 3
    np.testing.assert_allclose(read_motion(path, "beamng")["time"], [0, 20e6, 55e6], atol=1000)


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"no recording")
    with pytest.raises(PacketError, match="beamng: found 12 bytes"):
        list(recorded(path))


@pytest.mark.parametrize("drive_name", ["tour", "trouble"])
def test_the_engine_follows_a_drive(drive_name):
    """Every frame of the tour is accepted; the trouble is reported as its table says, except what BeamNG does not
    send."""
    ridden = ride("beamng-dk", drive_name, 100.0)
    stats = ridden.stats
    assert stats["others_received"] > 0
    if drive_name == "tour":
        assert (stats["rejected"], stats["events"]) == ({}, {})
        assert np.abs(ridden.ticks["cue"]["surge"]).max() > 5.0
    else:
        assert set(stats["rejected"]) == {"not_finite"}
        assert {"teleport", "impossible_acceleration", "impossible_rate", "frozen"} <= set(stats["events"])
        assert "paused" not in stats["events"]  # it has no clock of its own
    assert np.isfinite(ridden.ticks["cue"]["surge"]).all()


# Over real sockets.


@pytest.mark.rt
def test_both_streams_reach_one_endpoint_in_order_at_the_highest_rate():
    frames = list(driven("tour", 2000.0, 0.2))
    with Sink() as sink:
        simulator = Simulator(sink.url, frames)
        simulator.run()
        packets = sink.all(len(frames))
    assert packets == [frame.package for frame in frames]
    assert (simulator.sent, simulator.lost) == (400, 0)


@pytest.mark.rt
def test_each_stream_reaches_its_own_endpoint():
    with Sink() as motion, Sink() as gauges:
        Simulator([motion.url, gauges.url], driven("tour", 1000.0, 0.1)).run()
        assert {packet[:4] for packet in motion.all(100)} == {MOTION.constants["magic"]}
        assert {packet[4:8] for packet in gauges.all(100)} == {GAUGES.constants["car"]}


@pytest.mark.rt
def test_the_whole_installation_runs_from_the_built_in_profile():
    with Installation("beamng-dk", "turns", 20.0) as installation:
        eventually(lambda: installation.engine.stats()["frames_received"] > 100)
        eventually(lambda: installation.platform.received["motion"] > 100)
        eventually(lambda: installation.platform.last("gauges")["engine_speed"] > 0.0)
    stats = installation.stats()
    assert stats["rejected"] == {}
    assert stats["events"] == {}
    assert stats["sessions"] == 1
    assert stats["others_received"] >= stats["frames_received"]
    assert stats["platform"]["rejected"] == {}


@pytest.mark.rt
def test_a_dk_emitter_without_speed_leaves_dk_its_one_meter_per_second():
    """The packets of DK's own C# sample: 60 bytes, no magic, no gauges."""
    sample = (PACKETS / "short_without_magic.bin").read_bytes()
    source, *outputs = (free_port(socket.SOCK_DGRAM) for _ in range(3))
    motion, gauges = (f"udp://127.0.0.1:{port}" for port in outputs)
    platform = DatagramListener(dk, [motion, gauges])
    thread = threading.Thread(target=platform.run)
    thread.start()
    profile = load_profile(
        "beamng-dk", f"source.endpoint=udp://127.0.0.1:{source}", f"output.motion={motion}", f"output.gauges={gauges}"
    )
    with Engine(profile), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:

        def moves():
            sender.sendto(sample, ("127.0.0.1", source))
            return platform.last("motion").get("roll", 0.0) == pytest.approx(-0.05)

        eventually(moves)
        assert platform.last("motion")["surge"] == pytest.approx(5.62)
        assert platform.last("gauges")["speed"] == 1.0
    platform.stop()
    thread.join()
    platform.close()
