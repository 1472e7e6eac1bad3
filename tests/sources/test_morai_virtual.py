"""The virtual MORAI: what it sends, how unevenly, which commands it takes; and an engine that receives it."""

import contextlib
import itertools
import socket
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import eventually, free_port
from test_capture import ip, pcap, udp

import motioncue
from motioncue.drive.car import drive
from motioncue.errors import ConfigError, PacketError
from motioncue.sources.morai import packets as morai
from motioncue.sources.morai.messages import EGO_VEHICLE_STATUS
from motioncue.sources.morai.packets import COMMANDS, Options, identify
from motioncue.sources.morai.twin import Simulator, driven, encode_states
from motioncue.transports.endpoint import open_sender
from motioncue.virtual.installation import Installation, drive_packages, recorded_packages, ride

recorded = partial(recorded_packages, "morai")

DATA = Path(__file__).parents[1] / "data" / "packets" / "morai"
CAPTURED = (DATA / "ego_vehicle_status.bin").read_bytes()


def statuses(frames):
    """Return the statuses among frames, decoded, and when each is sent [s]."""
    frames = list(frames)
    sent = np.cumsum([frame.duration for frame in frames])
    found = [place for place, frame in enumerate(frames) if frame.motion]
    rows = np.frombuffer(b"".join(frames[place].package for place in found), EGO_VEHICLE_STATUS[3].dtype)
    return rows, sent[found]


def same(a, b):
    return all(a[name].tobytes() == b[name].tobytes() for name in ("velocity", "angular_velocity", "acceleration"))


def test_a_drive_is_sent_at_50_hz_with_stamps_and_arrivals_0_to_39_ms_apart():
    rows, sent = statuses(driven("tour"))
    assert len(rows) == len(drive("tour", 50.0))
    stamps = rows["sec"].astype(np.int64) * 1000 + rows["nsec"] // 1_000_000
    assert (rows["nsec"] % 1_000_000 == 0).all()  # whole milliseconds, as captured
    for intervals in (np.diff(stamps), 1000 * np.diff(sent)):
        assert intervals.min() >= 0
        assert intervals.max() < 40
        assert intervals.mean() == pytest.approx(20.0, abs=0.02)
        assert intervals.max() - intervals.min() > 30
    assert (np.abs(1000 * (sent - sent[0]) - (stamps - stamps[0])) < 1.0 + 1e-6).all()


def test_a_few_packets_in_a_hundred_repeat_the_physics_under_another_stamp():
    """Captured: 3 of 115, 14 of 306, 7 of 206, 3 of 153."""
    rows, _ = statuses(driven("tour"))
    repeats = [k for k in range(1, len(rows)) if same(rows[k], rows[k - 1])]
    assert 0.02 < len(repeats) / len(rows) < 0.05  # also where it is parked
    stamps = rows["sec"].astype(np.int64) * 1000 + rows["nsec"] // 1_000_000
    assert all(stamps[k] > stamps[k - 1] for k in repeats)


def test_every_status_is_one_of_the_cars_states_in_order():
    rows, _ = statuses(driven("turns", duration_s=20.0))
    states = encode_states(drive("turns", 50.0, 20.0))
    for name in ("position", "heading", "acceleration"):
        late = np.array([row.tobytes() for row in rows[name]]) != np.array([row.tobytes() for row in states[name]])
        assert all(rows[name][k].tobytes() == states[name][k - 1].tobytes() for k in np.flatnonzero(late))


def test_angles_are_sent_as_captured_and_the_car_turns_left_with_them():
    states = drive("tour", 50.0)
    rows = encode_states(states)
    assert (rows["roll"] <= 0.0).all()
    assert (rows["roll"] >= -360.0).all()
    assert rows["roll"].min() < -350.0  # right side down, a turn too much
    assert (rows["pitch"] >= 0.0).all()
    assert (rows["pitch"] <= 360.0).all()
    assert (np.abs(rows["heading"]) <= 180.0).all()
    # On the map: the course is the heading, and the velocity's left is at right angles to it.
    heading = np.radians(rows["heading"].astype(float))
    fast = np.linalg.norm(states["velocity"], axis=1) > 5.0
    course = np.arctan2(*np.gradient(rows["position"][:, 1::-1].astype(float), axis=0).T)
    assert np.abs(np.sin(course - heading))[fast].max() < 0.02
    # In a left bend the acceleration is to the left: negative, because y is positive to the right.
    turning = np.gradient(np.unwrap(heading)) * 50.0 * states["velocity"].__abs__().max(axis=1)
    bend = fast & (np.abs(turning) > 1.0)
    assert bend.any()
    assert (np.sign(rows["acceleration"][bend, 1]) == -np.sign(turning[bend])).all()
    np.testing.assert_allclose(rows["signed_velocity"], rows["velocity"][:, 0])


def test_what_else_is_published_comes_along_to_endpoints_of_its_own():
    frames = list(driven("brake", duration_s=2.0))
    names = Counter((identify(frame.package).name, frame.to, frame.motion) for frame in frames)
    assert names == {
        ("ego_vehicle_status_v4", 0, True): 100,
        ("imu", 1, False): 100,
        ("object_info", 2, False): 20,
        ("traffic_light", 2, False): 20,
        ("intersection", 2, False): 20,
        ("collision_data", 2, False): 20,
    }
    alone = list(driven("brake", duration_s=2.0, others=False))
    assert [frame.package for frame in alone] == [frame.package for frame in frames if frame.motion]
    assert sum(frame.duration for frame in alone) == pytest.approx(sum(frame.duration for frame in frames))


def test_the_rate_is_the_requested_one_or_morais_own():
    assert sum(frame.motion for frame in drive_packages("morai", "brake", None, 2.0)) == 100
    assert sum(frame.motion for frame in drive_packages("morai", "brake", 120.0, 2.0)) == 240
    with pytest.raises(ConfigError, match="drive"):
        list(driven("nowhere"))
    with pytest.raises(ConfigError, match="rate_hz"):
        list(driven("tour", 0.0))


def test_a_recording_is_played_at_the_pace_of_its_stamps_or_another(tmp_path):
    path = tmp_path / "recording.bin"
    frames = list(driven("brake", duration_s=2.0))
    path.write_bytes(b"".join(frame.package for frame in frames))
    own = list(recorded(path))
    assert [frame.package for frame in own] == [frame.package for frame in frames]
    assert [frame[2:] for frame in own] == [frame[2:] for frame in frames]
    _, sent = statuses(frames)
    rows, played = statuses(own)
    np.testing.assert_allclose(np.diff(played), np.diff(sent), atol=1.001e-3)  # stamps are whole milliseconds
    fast = [frame for frame in recorded(path, rate_hz=200.0) if frame.motion]
    assert {frame.duration for frame in fast} == {1 / 200}
    assert sum(frame.motion for frame in recorded(path, rate_hz=100.0, duration_s=0.5)) == 50
    assert len(rows) == 100


def test_a_capture_is_played_at_the_pace_of_the_network(tmp_path):
    path = tmp_path / "capture.pcap"
    packets = list(itertools.islice((frame.package for frame in driven("brake", others=False)), 4))
    arrivals = (0, 17_000_000, 60_000_000, 61_000_000)
    path.write_bytes(pcap([(10**18 + now, ip(udp(packet))) for now, packet in zip(arrivals, packets, strict=True)]))
    own = list(recorded(path))
    assert [frame.package for frame in own] == packets
    assert [frame.duration for frame in own] == pytest.approx([0.02, 0.017, 0.043, 0.001], abs=2e-6)


def test_a_stamp_that_jumps_is_not_waited_for(tmp_path):
    path = tmp_path / "recording.bin"
    times = (100, 5000, 50)
    packets = [EGO_VEHICLE_STATUS[3].encode({"sec": sec}) for sec in times] + [EGO_VEHICLE_STATUS[0].encode()] * 2
    path.write_bytes(b"".join(packets))
    assert [frame.duration for frame in recorded(path)] == [0.02, 1.0, 0.0, 0.02, 0.02]


def test_a_captured_datagram_is_a_recording_and_nothing_else_is(tmp_path):
    (frame,) = recorded(DATA / "ego_vehicle_status.bin")
    assert frame.package == CAPTURED
    path = tmp_path / "text"
    path.write_bytes(b"#IntStatus$" + bytes(18))
    with pytest.raises(PacketError, match="morai: found"):
        list(recorded(path))


# The engine.


def test_a_drive_through_the_engine_is_engaged_and_never_tripped():
    told = ride("morai-dk", "tour", 50.0)
    assert told.stats["events"] == {}
    assert told.stats["rejected"] == {}
    assert (told.ticks["weight"] == 1.0).any()
    states = drive("tour", 50.0)
    speed = np.linalg.norm(states["velocity"], axis=1)
    # Between frames, what is expected may be off by what a frame brings.
    assert told.ticks["cue"]["speed"].max() == pytest.approx(speed.max(), abs=np.abs(np.diff(speed)).max())


@pytest.mark.parametrize("imu", ["false", "true"])
@pytest.mark.check
def test_a_drive_full_of_trouble_is_no_motion_where_it_cannot_be(imu):
    told = ride(motioncue.load_profile("morai-dk", f"source.options.imu={imu}"), "trouble", 50.0)
    assert {"teleport", "impossible_acceleration", "impossible_rate", "frozen"} <= set(told.stats["events"])
    assert told.stats["rejected"]["not_finite"] >= 1
    cue = told.ticks["cue"]
    assert np.isfinite(cue["surge"]).all()
    assert np.abs(cue["surge"]).max() < 50.0


@contextlib.contextmanager
def playing(simulator):
    thread = threading.Thread(target=simulator.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        simulator.stop()
        thread.join(30)
        assert not thread.is_alive()


def taken(stats):
    """Return how many statuses came."""
    return stats["frames_received"] + stats["rejected"].get("incomplete", 0)


@pytest.mark.rt
@pytest.mark.parametrize("imu", ["false", "true"])
@pytest.mark.check
def test_the_profile_runs_against_the_virtual_simulator(tmp_path, imu):
    profile = tmp_path / "profile.toml"
    text = motioncue.profile.profile.profile_text("morai-dk").replace("imu = false", f"imu = {imu}")
    profile.write_text(text, encoding="utf-8")
    with Installation(profile, "brake", 3.0) as installation:
        eventually(lambda: installation.simulator.sent == 150)
        eventually(lambda: taken(installation.engine.stats()) == 150)
    stats = installation.stats()
    assert taken(stats) == 150
    # The first status comes before the first IMU, and so may others on a machine that stalls.
    assert set(stats["rejected"]) == (set() if imu == "false" else {"incomplete"})
    assert stats["events"] == {}
    assert stats["platform"]["rejected"] == {}
    assert stats["platform"]["streams"]["motion"]["packets_received"] > 0


@pytest.mark.rt
def test_every_command_arrives_and_is_recorded():
    port = free_port(socket.SOCK_DGRAM)
    url = f"udp://127.0.0.1:{port}"
    simulator = Simulator(
        f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", driven("still", duration_s=60.0), commands=[url]
    )
    sender, (host, number, _) = open_sender(url)
    with sender, playing(simulator):
        for packet in COMMANDS.values():
            sender.sendto(packet.encode(), (host, number))
        sender.sendto(morai.command("turn_signal_lamp", {"turn_signal": 2}), (host, number))
        sender.sendto(b"no command", (host, number))
        eventually(lambda: sum(simulator.commands.received.values()) == len(COMMANDS) + 1)
        eventually(lambda: simulator.commands.rejected == {"size_or_magic": 1})
    assert simulator.commands.received == {**dict.fromkeys(COMMANDS, 1), "turn_signal_lamp": 2}
    assert simulator.commands.last("turn_signal_lamp")["turn_signal"] == 2


@pytest.mark.rt
def test_a_simulator_without_an_ear_plays_and_ends():
    simulator = Simulator(f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", driven("brake", 1000.0, 0.2, others=False))
    simulator.run()
    assert simulator.sent == 200


def test_commands_that_come_back_are_counted_and_are_no_motion():
    intake = morai.intake(Options())
    for packet in COMMANDS.values():
        intake.feed(packet.encode(), 1)
    assert (intake.others, intake.accepted, intake.rejected) == (len(COMMANDS), 0, {})
