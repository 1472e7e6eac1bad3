"""The virtual peers: a simulator whose packages give its car's motion, and a DK that receives."""

import socket
import struct
import threading
from functools import partial

import numpy as np
import pytest
from helpers import (
    FRAMES,
    INIT_PACKAGE,
    PACKAGES,
    SAMPLE,
    eventually,
    frame,
    free_port,
    init,
    new_session,
    serving,
    stream_url,
    truth,
)
from scipy.spatial.transform import Rotation

from motioncue.drive.car import DRIVES, drive
from motioncue.drive.peers import DatagramListener
from motioncue.errors import ConfigError, EndpointError, PacketError
from motioncue.output import dk
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE as DRIVEN_INIT
from motioncue.sources.city_car_driving.twin import Simulator, driven, encode_states
from motioncue.virtual.installation import recorded_packages

# The engine's answer to a virtual drive.

recorded = partial(recorded_packages, "city-car-driving")

SINGLE = 2.0**-24  # relative rounding of a 4-byte float
SOURCES = {"surge": "acceleration", "sway": "acceleration", "heave": "acceleration", "speed": "velocity"}


def through_session(frames, **options):
    session = new_session(**options)
    session.feed(DRIVEN_INIT, 0)
    rows = []
    for package in frames:
        session.feed(package.tobytes(), 0)
        rows.append(session.newest())
    assert session.rejected == {}
    return np.concatenate(rows)


@pytest.mark.parametrize("name", sorted(DRIVES))
def test_a_driven_car_arrives_as_the_motion_it_makes(name):
    states = drive(name, 60.0)
    motion = through_session(encode_states(states))
    for channel, expected in truth(states).items():
        # A vector is rounded itself, and turned by the rounding of the quaternion, twice its error as an angle.
        source = SOURCES.get(channel)
        size = np.linalg.norm(states[source], axis=1).max() if source else 1.0  # no rate is above 1 rad/s
        tolerance = 8 * SINGLE * max(1.0, size)
        error = motion[channel] - expected
        if channel == "yaw":
            error = (error + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(error, 0.0, rtol=0, atol=tolerance, err_msg=channel)
    np.testing.assert_allclose(motion["frame_time"], states["time"], rtol=0, atol=1e-9)
    assert np.isnan(motion["engine_speed"]).all()  # the protocol has no place for it


@pytest.mark.parametrize("name", ["tour", "turns"])
def test_every_channel_moves_on_a_drive_with_turns(name):
    expected = truth(drive(name, 60.0))
    for channel in ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate", "speed"):
        if name == "turns" and channel == "heave":
            continue  # a flat road
        assert np.ptp(expected[channel]) > 1e-3, channel


def test_signs_on_the_road_are_those_of_the_records():
    states = drive("turns", 60.0)
    motion = through_session(encode_states(states))
    right = (states["time"] > 8.5) & (states["time"] < 9.5)  # the script's first turn, to the right at 10 m/s
    assert (motion["sway"][right] > 0.5).all()
    assert (motion["yaw_rate"][right] > 0.05).all()
    assert (motion["roll"][right] < 0).all()  # the body leans out: left side down
    launch = (states["time"] > 3.5) & (states["time"] < 4.5)
    assert (motion["surge"][launch] > 1.0).all()
    assert (motion["pitch"][launch] > 0).all()


def test_the_head_feels_its_own_acceleration():
    states = drive("tour", 60.0)
    head = np.array([0.4, -0.35, 0.9])  # forward, right, up
    session = city_car_driving.intake(city_car_driving.Options(), tuple(head))
    session.begin(0)
    session.feed(DRIVEN_INIT, 0)
    rows = []
    for package in encode_states(states):
        session.feed(package.tobytes(), 0)
        rows.append(session.newest())
    motion = np.concatenate(rows)
    rotation = Rotation.from_quat(np.roll(states["orientation"], -1, axis=1))
    arm = rotation.apply(head * [1, 1, -1])
    omega, alpha = states["angular_velocity"], states["angular_acceleration"]
    world = states["acceleration"] + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    expected = rotation.inv().apply(world) * [1, 1, -1]
    for index, channel in enumerate(("surge", "sway", "heave")):
        np.testing.assert_allclose(motion[channel], expected[:, index], rtol=0, atol=3e-5, err_msg=channel)


# Frames to play.


def test_a_drive_is_an_init_package_and_a_frame_for_each_state():
    frames = list(driven("brake", 50.0, 2.0))
    assert frames[0][:2] == (0.0, DRIVEN_INIT)
    assert len(frames) == 1 + 100
    states = encode_states(drive("brake", 50.0, 2.0))
    for (duration, package, *_), state in zip(frames[1:], states, strict=True):
        assert duration == 1 / 50
        fields = FRAME.decode(package)
        assert fields["frame_time"] == 1 / 50
        assert fields["velocity"] == state["velocity"].tolist()


@pytest.mark.parametrize(("arguments", "message"), [(("nowhere",), "drive"), (("tour", 0.0), "rate_hz")])
def test_an_impossible_drive_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        list(driven(*arguments))


def test_a_recording_is_played_at_its_own_pace_or_another():
    own = list(recorded(SAMPLE))
    assert [package for _, package, *_ in own] == PACKAGES
    assert own[0].duration == 0.0
    expected = np.frombuffer(b"".join(FRAMES), FRAME.dtype)["frame_time"]
    assert [duration for duration, *_ in own[1:]] == expected.tolist()
    fast = list(recorded(SAMPLE, rate_hz=500.0))
    assert [package for _, package, *_ in fast] == PACKAGES
    assert {duration for duration, *_ in fast[1:]} == {1 / 500}


def test_a_recording_is_played_for_as_long_as_asked():
    for count in (1, 100, 999, 1000):
        assert len(list(recorded(SAMPLE, rate_hz=5000.0, duration_s=count / 5000))) == 1 + count
    assert len(list(recorded(SAMPLE, rate_hz=100.0, duration_s=1.009))) == 1 + 100
    assert len(list(recorded(SAMPLE, duration_s=1e9))) == len(PACKAGES)


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"no recording")
    with pytest.raises(PacketError, match="text"):
        list(recorded(path))


# The simulator.


@pytest.fixture
def url(tmp_path):
    return stream_url("unix" if hasattr(socket, "AF_UNIX") else "tcp", tmp_path)


@pytest.fixture
def session():
    return city_car_driving.intake(city_car_driving.Options())


class Playing:
    """A simulator in a thread."""

    def __init__(self, url, frames, **options):
        self.simulator = Simulator(url, frames, **options)
        self.thread = threading.Thread(target=self.simulator.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self.simulator

    def __exit__(self, *error):
        self.simulator.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.mark.rt
def test_a_simulator_plays_every_frame_once_in_lock_step(session, url):
    with serving(url, session):
        simulator = Simulator(url, recorded(SAMPLE, rate_hz=5000.0, duration_s=0.2))
        simulator.run()
        assert (simulator.sent, simulator.replies, simulator.connections, simulator.lost) == (1000, 1001, 1, 0)
        assert session.accepted == 1000
    assert session.rejected == {}


@pytest.mark.rt
def test_a_simulator_waits_for_the_engine_and_loses_nothing_of_the_drive(session, url):
    with Playing(url, recorded(SAMPLE, rate_hz=2000.0, duration_s=0.1)) as simulator:
        assert simulator.connections == 0
        with serving(url, session):
            eventually(lambda: simulator.sent == 200)
        assert simulator.lost == 0
    assert session.accepted == 200


@pytest.mark.rt
def test_a_simulator_survives_a_restart_of_the_engine_and_begins_again_with_its_init_package(url):
    sessions = [city_car_driving.intake(city_car_driving.Options()) for _ in range(3)]
    axes = init((1, 0, 0), (0, 0, 1))

    def frames():
        yield 0.0, axes
        while True:
            yield 0.0005, frame(acceleration=(3, 0, 0))

    with Playing(url, frames()) as simulator:
        for session in sessions:
            with serving(url, session):
                eventually(lambda session=session: session.accepted >= 20)
            lost = simulator.lost
            eventually(lambda lost=lost: simulator.lost > lost + 5)
        assert simulator.connections == 3
    for session in sessions:
        assert session.rejected == {}
        assert session.newest()["surge"][0] == 3.0
    # An engine that stops may have taken a frame and not have answered it any more.
    assert 0 <= sum(session.accepted for session in sessions) - simulator.sent <= 3


@pytest.mark.rt
def test_a_second_init_package_is_played_on_the_same_connection(session, url):
    frames = [(0.0, init()), (0.0, frame(acceleration=(0, 0, 2))), (0.0, init((1, 0, 0), (0, 0, 1)))]
    frames += [(0.0, frame(acceleration=(5, 0, 0)))]
    with serving(url, session):
        simulator = Simulator(url, frames)
        simulator.run()
        assert (simulator.sent, simulator.replies, simulator.connections, simulator.lost) == (2, 4, 1, 0)
    assert session.newest()["surge"][0] == 5.0
    assert session.sessions == 1


@pytest.mark.rt
def test_a_simulator_stops_when_told_whatever_it_waits_for(session, url):
    with Playing(url, recorded(SAMPLE)) as simulator:  # for an engine
        pass
    assert simulator.connections == 0
    slow = [(0.0, INIT_PACKAGE), (3600.0, FRAMES[0])]
    with serving(url, session), Playing(url, slow) as simulator:  # for its next frame
        eventually(lambda: simulator.connections == 1)
    assert simulator.sent == 0


@pytest.mark.rt
def test_a_simulator_that_is_told_no_keeps_asking(session, url):
    with serving(url, session), Playing(url, [(0.0, INIT_PACKAGE), (3600.0, FRAMES[0])]) as first:
        eventually(lambda: first.connections == 1)
        with Playing(url, recorded(SAMPLE, rate_hz=1000.0, duration_s=0.02)) as second:
            eventually(lambda: session.rejected.get("second_simulator", 0) >= 2)
            assert second.connections == 0
            first.stop()
            eventually(lambda: second.sent == 20)
    assert session.accepted == 20


@pytest.mark.rt
@pytest.mark.parametrize("answer", [struct.pack("<HBB", 4, 7, 0), b"\x04\x00", b""])
def test_a_wrong_or_missing_answer_ends_the_connection_and_counts_as_lost(tmp_path, answer):
    """An engine that answers the init package well and the frame badly, then goes away."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()

    def serve():
        client, _ = server.accept()
        server.close()
        client.recv(39, socket.MSG_WAITALL)
        client.sendall(struct.pack("<HBHB", 6, 0, 0, 1))
        client.recv(107, socket.MSG_WAITALL)
        client.sendall(answer)
        client.close()

    url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    simulator = Simulator(url, [(0.0, INIT_PACKAGE), (0.0, FRAMES[0]), (0.0, FRAMES[1])])
    simulator.run()
    thread.join(30)
    assert (simulator.connections, simulator.sent, simulator.replies, simulator.lost) == (1, 0, 1, 2)


@pytest.mark.rt
@pytest.mark.parametrize("bad", ["udp://127.0.0.1:4444", "nonsense", "tcp://127.0.0.1"])
def test_a_simulator_does_not_wait_for_an_endpoint_that_cannot_be(bad):
    with pytest.raises(EndpointError, match="allowed"):
        Simulator(bad, recorded(SAMPLE)).run()


# The DK that listens.


def motion(**values):
    return dk.MOTION.encode(values)


def gauges(**values):
    return dk.GAUGES.encode(values)


@pytest.fixture
def listener():
    listener = DatagramListener(dk, [])
    yield listener
    listener.close()


def test_a_listener_tells_the_streams_apart_and_keeps_the_newest_of_each(listener):
    for number in range(5):
        listener.take(motion(surge=number, sway=-number), number * 3_000_000)
        listener.take(gauges(speed=10 + number, engine_speed=900), number * 3_000_000)
    assert listener.received == {"motion": 5, "gauges": 5}
    assert listener.last("motion")["surge"] == 4.0
    assert listener.last("motion")["sway"] == -4.0
    assert listener.last("gauges")["speed"] == 14.0
    assert listener.rejected == {}


def test_a_listener_knows_what_it_has_not_received(listener):
    assert listener.last("motion") == {}
    assert listener.rate_hz("motion") == 0.0
    assert listener.stats() == {"packets_received": 0, "rejected": {}, "streams": {}}


@pytest.mark.parametrize("size", [60, 88])
def test_dks_own_short_packets_and_missing_magic_are_accepted(listener, size):
    listener.take(bytes(4) + motion(pitch=0.25)[4:size], 0)
    assert listener.last("motion")["pitch"] == 0.25


def test_a_listener_counts_and_drops_everything_else(listener):
    rejected = [*range(20), *range(1473, 1500)]  # without a magic; DK reads by offset, whatever follows
    for size in rejected:
        listener.take(bytes(size), 0)
    for magic in (b"BNG3", b"XXXX", b"bng1"):
        listener.take(magic + bytes(84), 0)
    listener.take(bytes(4) + b"XXXX" + bytes(88), 0)
    assert sum(listener.received.values()) == 0
    assert listener.rejected == {"size_or_magic": len(rejected) + 4}
    assert listener.stats()["rejected"] == {"size_or_magic": len(rejected) + 4}


def test_a_listener_says_how_fast_and_how_steadily_it_was_fed(listener):
    for now in (0, 3_000_000, 6_000_000, 9_000_000, 14_000_000):
        listener.take(motion(), now)
    listener.take(gauges(), 0)
    streams = listener.stats()["streams"]
    assert streams["motion"]["packets_received"] == 5
    assert streams["motion"]["rate_hz"] == pytest.approx(4 / 0.014)
    assert streams["motion"]["interval_us"]["p50"] == 3000.0
    assert streams["motion"]["interval_us"]["max"] == 5000.0
    assert streams["gauges"]["rate_hz"] == 0.0
    assert streams["gauges"]["interval_us"] == {"p50": None, "p99": None, "max": None}


def test_a_listener_does_not_grow_without_end(listener):
    packet = motion()
    for now in range(150_001):
        listener.take(packet, now * 3_000_000)
    assert listener.received["motion"] == 150_001
    assert listener.rate_hz("motion") == pytest.approx(1000 / 3)
    assert len(listener._arrivals["motion"]) <= 100_000


@pytest.mark.rt
def test_a_listener_receives_at_its_endpoints_until_it_is_stopped():
    ports = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
    listener = DatagramListener(dk, [f"udp://127.0.0.1:{port}" for port in ports])
    thread = threading.Thread(target=listener.run, daemon=True)
    thread.start()
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(20):
        sender.sendto(motion(surge=number), ("127.0.0.1", ports[0]))
        sender.sendto(gauges(speed=number), ("127.0.0.1", ports[1]))
        sender.sendto(b"", ("127.0.0.1", ports[0]))
        sender.sendto(bytes(2000), ("127.0.0.1", ports[1]))
    eventually(lambda: sum(listener.received.values()) + sum(listener.rejected.values()) == 80)
    listener.stop()
    thread.join(30)
    assert not thread.is_alive()
    listener.close()
    sender.close()
    assert listener.received == {"motion": 20, "gauges": 20}
    assert listener.rejected == {"size_or_magic": 40}
    assert listener.last("motion")["surge"] == 19.0
    assert listener.last("gauges")["speed"] == 19.0


@pytest.mark.rt
def test_a_listener_ends_after_its_duration():
    listener = DatagramListener(dk, [f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"])
    listener.run(0.01)
    listener.close()
    assert sum(listener.received.values()) == 0


@pytest.mark.rt
def test_a_listener_that_cannot_have_one_of_its_endpoints_keeps_none():
    ports = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
    urls = [f"udp://127.0.0.1:{port}" for port in ports]
    first = DatagramListener(dk, urls[1:])
    with pytest.raises(EndpointError, match="in use"):
        DatagramListener(dk, urls)
    first.close()
    DatagramListener(dk, urls).close()
