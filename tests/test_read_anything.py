"""`motioncue.read` of what is no MCAP file of a run: bytes of a simulator, captures, packages alone, rolled files."""

import numpy as np
import pytest
from helpers import FRAMES, INIT_PACKAGE, bits
from test_capture import ip, pcap, pcapng, udp

import motioncue
from motioncue.errors import ConfigError, PacketError
from motioncue.protocols.city_car_driving import FRAME
from motioncue.recording.read import read_motion, sample_recording
from motioncue.recording.recorder import Recorder
from motioncue.recording.topics import Package
from motioncue.recording.write import RecordingWriter
from motioncue.virtual.simulators import drive_packages

SAMPLE = sample_recording()


def test_the_bytes_of_a_simulator_give_its_motion_and_its_packages():
    drive = motioncue.read(SAMPLE)
    assert bits(drive.motion) == bits(read_motion(SAMPLE))
    assert b"".join(package.data for package in drive.packages) == SAMPLE.read_bytes()
    frames = [package.time for package in drive.packages if len(package.data) == FRAME.size]
    assert frames == drive.motion["time"].tolist()
    assert drive.unreadable == ()
    assert drive.about == {"format": "bytes", "system": "city-car-driving"}
    assert len(drive.ticks) == len(drive.events) == len(drive.settings) == 0


@pytest.fixture(scope="module")
def paced():
    """Two seconds of BeamNG, MotionSim and OutGauge, with the times at which they are sent [ns]."""
    frames = list(drive_packages("beamng", "turns", duration_s=2.0))
    times = np.round(np.cumsum([frame.duration for frame in frames]) * 1e6).astype(int) * 1000
    return list(zip(times.tolist(), frames, strict=True))


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_capture_gives_its_motion_at_the_captured_times(tmp_path, paced, make):
    path = tmp_path / "drive.pcap"
    sent = [(time, ip(udp(frame.package, 4444 + frame.to))) for time, frame in paced]
    sent.insert(5, (sent[4][0] + 1000, ip(udp(b"BNG1" + bytes(3)))))
    path.write_bytes(make(sent))
    drive = motioncue.read(path, system="beamng")
    first = paced[0][0]
    assert [package.data for package in drive.packages] == [frame.package for _, frame in paced]
    came = [package.time for package in drive.packages]
    assert came == pytest.approx([time - first for time, _ in paced], abs=1000)
    motions = [time - first for time, frame in paced if frame.motion]
    assert drive.motion["time"].tolist() == pytest.approx(motions, abs=1000)
    assert drive.about == {"format": "capture", "system": "beamng"}
    assert drive.unreadable == ("1 packages refused: size",)


def test_packages_alone_give_their_motion_at_the_recorded_times(tmp_path, paced):
    """What `simulate --record` and `listen --record` write."""
    path = tmp_path / "sent.mcap"
    with RecordingWriter(path) as writer:
        writer.settings(5, 0, {"source": {"system": "beamng", "endpoint": []}})
        writer.packages([Package(7_000_000_000 + time, frame.to, frame.package) for time, frame in paced])
    drive = motioncue.read(path)
    assert drive.packages[0].time == 7_000_000_000 + paced[0][0]
    assert drive.motion["time"].tolist() == [7_000_000_000 + time for time, frame in paced if frame.motion]
    capture = tmp_path / "same.pcap"
    capture.write_bytes(pcap([(time, ip(udp(frame.package))) for time, frame in paced]))
    again = motioncue.read(capture, system="beamng").motion
    for name in ("surge", "sway", "heave", "roll", "yaw_rate"):
        np.testing.assert_allclose(drive.motion[name], again[name], atol=1e-6)


def test_bytes_without_times_need_a_rate(tmp_path, paced):
    path = tmp_path / "drive.bin"
    path.write_bytes(b"".join(frame.package for _, frame in paced if frame.motion))
    with pytest.raises(PacketError, match=r"neither beamng nor the file says when frames came; give their rate"):
        motioncue.read(path, system="beamng")
    drive = motioncue.read(path, system="beamng", rate_hz=50.0)
    assert np.diff(drive.motion["time"]).tolist() == [20_000_000] * (len(drive.motion) - 1)


def test_a_refused_package_is_left_out_and_counted(tmp_path):
    bad = np.frombuffer(FRAMES[1], FRAME.dtype).copy()
    bad["acceleration"] = np.nan
    path = tmp_path / "drive.bin"
    path.write_bytes(b"".join([INIT_PACKAGE, FRAMES[0], bad.tobytes(), *FRAMES[2:10]]))
    drive = motioncue.read(path)
    assert len(drive.motion) == 9
    assert len(drive.packages) == 11
    assert drive.unreadable == ("1 packages refused: not finite",)


def test_options_of_the_source_say_how_to_read_it():
    other = motioncue.read(SAMPLE, system="city-car-driving", quaternion="wxyz")
    assert bits(other.motion) == bits(read_motion(SAMPLE, quaternion="wxyz"))
    with pytest.raises(ConfigError, match="options of city-car-driving: quaternions: unknown key"):
        motioncue.read(SAMPLE, quaternions="wxyz")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", PacketError, "not an MCAP file: it is empty"),
        (b"time,surge\n0,1\n", PacketError, "begins with 74696d652c737572; .* no packets of a system that is known"),
        (SAMPLE.read_bytes()[:-1], PacketError, "no packets of a system that is known; name one with system: "),
        (pcap([(0, ip(udp(b"nobody's")))]), ConfigError, "found no packets of a system that is known; name one with"),
        (pcap([(0, ip(udp(b"nobody's")))])[:-1], PacketError, "not a whole pcap or pcapng file"),
    ],
)
def test_what_nobody_sends_is_refused(tmp_path, content, error, message):
    path = tmp_path / "what.bin"
    path.write_bytes(content)
    with pytest.raises(error, match=message) as refused:
        motioncue.read(path)
    assert "what.bin" in str(refused.value)


def test_a_named_system_says_where_its_bytes_are_cut(tmp_path):
    path = tmp_path / "cut.bin"
    path.write_bytes(SAMPLE.read_bytes()[:-1])
    with pytest.raises(PacketError, match=r"cut\.bin': .*cut short|cut\.bin': .*byte"):
        motioncue.read(path, system="city-car-driving")


@pytest.mark.parametrize("system", ["dk", "nobody"])
def test_a_system_that_sends_no_motion_is_refused(system):
    with pytest.raises(ConfigError, match=f"system: found '{system}', allowed are"):
        motioncue.read(SAMPLE, system=system)


def test_a_folder_and_a_missing_file_are_refused_by_name(tmp_path):
    with pytest.raises(PacketError, match="no file but a folder"):
        motioncue.read(tmp_path)
    with pytest.raises(PacketError, match=r"missing\.mcap': No such file"):
        motioncue.read(tmp_path / "missing.mcap")
    with Recorder(tmp_path / "none.mcap", [], {"source": {"system": "beamng"}}):
        pass
    assert len(motioncue.read(tmp_path / "none.mcap").motion) == 0
