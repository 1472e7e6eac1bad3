"""BeamNG with its Simulink coupling as a program, over real sockets."""

import socket
import threading
from functools import partial

import pytest
from helpers import eventually, free_port

from motioncue.drive.peers import Paced
from motioncue.engine.reception import Reception
from motioncue.errors import EndpointError, PacketError
from motioncue.recording.recording import read_motion
from motioncue.sources.beamng_simulink import packets as beamng_simulink
from motioncue.sources.beamng_simulink.packets import CONTROL, STATE, Options
from motioncue.sources.beamng_simulink.twin import PHYSICS_STEPS, Simulator, driven
from motioncue.virtual.installation import Installation, recorded_packages

recorded = partial(recorded_packages, "beamng-simulink")


def udp(port=None):
    return f"udp://127.0.0.1:{port or free_port(socket.SOCK_DGRAM)}"


@pytest.fixture
def recording(tmp_path):
    """Return the path of a second of a drive."""
    path = tmp_path / "drive.bin"
    path.write_bytes(b"".join(frame.package for frame in driven("tour", 200.0, 1.0)))
    return path


def test_a_recording_is_played_with_its_own_ids(recording):
    frames = list(recorded(recording, 100.0, 0.5))
    assert [STATE.decode(frame.package)["id"] for frame in frames] == list(range(50))
    assert {frame.duration for frame in frames} == {0.01}
    assert len(list(recorded(recording))) == 200
    motion = read_motion(recording, "beamng-simulink")
    assert len(motion) == 200
    assert motion["frame_time"][-1] == pytest.approx(199 * 0.005)


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "controls.bin"
    path.write_bytes(CONTROL.encode({"id": 1}))
    with pytest.raises(PacketError, match="found a message of 512 bytes, allowed is state"):
        list(recorded(path))


class Time:
    """A clock that advances only when somebody waits."""

    def __init__(self):
        self.now, self.waits = 100.0, []

    def __call__(self):
        return self.now

    def pace(self, seconds):
        self.now += seconds
        self.waits.append(seconds)
        return False


@pytest.mark.rt
def test_it_paces_the_physics_steps_between_messages():
    """With no answers: ten steps per message, and one for each stall."""
    time = Time()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        beamng = Simulator(
            udp(nobody.getsockname()[1]),
            [Paced(0.005, STATE.encode({"id": number})) for number in range(4)],
            reply_port=free_port(socket.SOCK_DGRAM),
            timeout_s=0.01,
            clock=time,
            pace=time.pace,
        )
        beamng.run()
        assert [STATE.decode(nobody.recv(1000))["id"] for _ in range(4)] == [0, 1, 2, 3]
    assert (beamng.sent, beamng.stalls, beamng.replies) == (4, 3, 0)
    assert len(time.waits) == 4 * PHYSICS_STEPS + 3
    assert time.waits == pytest.approx([0.0005] * len(time.waits))


@pytest.mark.rt
def test_our_engine_answers_everything_and_leaves_the_pedals_alone():
    port, reply_port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    intake = beamng_simulink.intake(Options(reply_port=reply_port))
    reception = Reception(intake, [udp(port)])
    thread = threading.Thread(target=reception.run)
    thread.start()
    frames = list(driven("tour", 200.0, 2.0))
    spoiled = STATE.encode({**STATE.decode(frames[100].package), "roll": float("nan")})
    frames[100] = frames[100]._replace(package=spoiled)
    beamng = Simulator(udp(port), frames, reply_port=reply_port, timeout_s=0.5)
    beamng.run()
    eventually(lambda: intake.replies == 400)
    reception.stop()
    thread.join()
    reception.close()
    assert (intake.accepted, intake.rejected) == (399, {"not_finite": 1})
    assert (beamng.sent, beamng.lost) == (400, 0)
    assert beamng.stalls <= 1
    assert beamng.coupling.controls == {}


@pytest.mark.rt
def test_the_whole_installation_runs_from_the_built_in_profile():
    with Installation("beamng-simulink-dk", "turns", 20.0) as installation:
        eventually(lambda: installation.simulator.sent > 300)
        eventually(lambda: installation.platform.last("gauges").get("engine_speed", 0.0) > 0.0)
        assert installation.simulator.stalls <= 1
        assert installation.simulator.coupling.controls == {}
    stats = installation.stats()
    assert stats["rejected"] == {}
    assert stats["events"] == {}
    assert stats["replies_sent"] == stats["frames_received"]
    assert stats["platform"]["rejected"] == {}


@pytest.mark.rt
def test_it_ends_at_once_also_while_it_waits_for_an_answer():
    beamng = Simulator(udp(), driven("tour"), reply_port=free_port(socket.SOCK_DGRAM), timeout_s=1e6)
    thread = threading.Thread(target=beamng.run)
    thread.start()
    eventually(lambda: beamng.sent == 1)
    beamng.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert beamng.stalls == 0


@pytest.mark.rt
def test_a_reply_port_in_use_is_refused():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with pytest.raises(EndpointError, match="cannot listen"):
            Simulator(udp(), [], reply_port=other.getsockname()[1])
