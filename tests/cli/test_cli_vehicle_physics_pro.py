"""Vehicle Physics Pro end to end: the built-in profile, the virtual vehicle and a virtual DK, on real sockets."""

import socket
import threading

import numpy as np
import pytest
from helpers import eventually, free_port
from programs import INTERRUPT, Program

import motioncue
from motioncue.drive.peers import DatagramListener
from motioncue.errors import ConfigError, EndpointError, PacketError
from motioncue.output import dk
from motioncue.sources.vehicle_physics_pro import packets as vpp
from motioncue.virtual.installation import drive_packages, make_simulator, recorded_packages

SYSTEM = "vehicle-physics-pro"


@pytest.fixture
def urls():
    return {name: f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}" for name in ("source", "motion", "gauges")}


def profile(urls):
    return motioncue.load_profile(
        "vehicle-physics-pro-dk",
        f"source.endpoint={urls['source']}",
        f"output.motion={urls['motion']}",
        f"output.gauges={urls['gauges']}",
    )


@pytest.mark.rt
@pytest.mark.check
def test_every_packet_of_a_drive_becomes_motion_of_the_platform(urls):
    packages = drive_packages(SYSTEM, "brake", 1000.0, 1.0)
    listener = DatagramListener(dk, [urls["motion"], urls["gauges"]])
    thread = threading.Thread(target=listener.run, daemon=True)
    thread.start()
    with motioncue.Engine(profile(urls)) as engine:
        simulator = make_simulator(SYSTEM, [urls["source"]], packages)
        simulator.run()
        eventually(lambda: engine.stats()["frames_received"] == len(packages) == 1000)
        assert (simulator.sent, simulator.lost, simulator.replies) == (1000, 0, 0)
    stats = engine.stats()
    listener.stop()
    thread.join(30)
    listener.close()
    assert stats["rejected"] == {}
    assert stats["events"] == {}
    assert listener.received["motion"] == listener.received["gauges"] == stats["packets_sent"] > 0
    assert listener.rejected == {}


@pytest.mark.check
@pytest.mark.rt
def test_the_commands_play_it_between_them(urls):
    ends = [option for name in ("motion", "gauges") for option in ("--set", f"output.{name}={urls[name]}")]
    run = ["run", "--profile", "vehicle-physics-pro-dk", "--set", f"source.endpoint={urls['source']}", *ends]
    sent, stats = played("turns", urls["source"], *run)
    assert stats["frames_received"] == sent["frames_sent"] > 0
    assert stats["rejected"] == {}
    assert stats["packets_sent"] > 0


@pytest.mark.rt
@pytest.mark.check
def test_listen_knows_its_packets(urls):
    sent, stats = played("still", urls["source"], "listen", SYSTEM, "--at", urls["source"])
    assert stats["frames_received"] == sent["frames_sent"] > 0
    assert stats["rejected"] == {}
    assert stats["motion"]["engine_speed"] == 800.0  # idling


def played(drive, url, *hearing):
    """Play half a second of a drive to a command that hears it; return what both said."""
    with Program(*hearing, "--json") as hears:
        hears.says("waiting for")
        with Program("simulate", SYSTEM, "--to", url, "--drive", drive, "--duration", "0.5", "--json") as plays:
            sent = plays.end()
        hears.signal(INTERRUPT)
        return sent, hears.end()


def test_a_drive_is_a_packet_for_each_state():
    frames = drive_packages(SYSTEM, "brake", 50.0, 2.0)
    found = [vpp.identify(frame.package).decode(frame.package) for frame in frames]
    assert [frame.duration for frame in frames] == [1 / 50] * 100
    assert [fields["counter"] for fields in found] == list(range(100))
    np.testing.assert_allclose(np.diff([fields["time"] for fields in found]), 1 / 50, rtol=0, atol=1e-12)


def test_a_recording_is_played_at_its_own_pace_or_another(tmp_path):
    rows = vpp.blank("old", 5)
    rows["time"] = [7.0, 7.25, 7.75, 3.0, 3.5]  # the fourth begins again
    path = tmp_path / "drive.bin"
    path.write_bytes(rows.tobytes())
    own = recorded_packages(SYSTEM, str(path))
    assert b"".join(frame.package for frame in own) == rows.tobytes()
    assert [frame.duration for frame in own] == [0.0, 0.25, 0.5, 0.0, 0.5]
    assert [frame.duration for frame in recorded_packages(SYSTEM, str(path), 10.0)] == [0.1] * 5
    assert len(recorded_packages(SYSTEM, str(path), None, 0.8)) == 4
    assert len(recorded_packages(SYSTEM, str(path), 10.0, 0.3)) == 3


def test_what_is_no_recording_is_refused_and_a_cut_one_read_as_far_as_it_goes(tmp_path, caplog):
    path = tmp_path / "bad.bin"
    path.write_bytes(b"XXXX" + vpp.blank("old")[0].tobytes()[4:])
    with pytest.raises(PacketError, match=r"recording .*bad\.bin.*allowed are 356 bytes"):
        recorded_packages(SYSTEM, str(path))
    path.write_bytes(vpp.blank("old")[0].tobytes() + b"MCVP")
    assert len(recorded_packages(SYSTEM, str(path))) == 1
    assert "byte 356: 4 bytes were not read" in caplog.text


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:5000", "unix:///tmp/x", "udp://127.0.0.1"])
def test_an_endpoint_that_is_none_is_refused(url):
    with pytest.raises(EndpointError, match="allowed"):
        make_simulator(SYSTEM, [url], [])


@pytest.mark.parametrize("override", ["gravity='maybe'", "quaternion='xyzw'"])
def test_an_option_that_is_none_is_refused(urls, override):
    with pytest.raises(ConfigError, match=r"source\.options"):
        motioncue.Engine(motioncue.load_profile("vehicle-physics-pro-dk", f"source.options.{override}"))
