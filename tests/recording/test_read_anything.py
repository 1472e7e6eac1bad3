"""`motioncue.read` of what is no MCAP file of a run: bytes of a simulator, captures, packages alone, rolled files."""

import os
import sys
import tracemalloc

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import FRAMES, INIT_PACKAGE
from same_bits import assert_same_bits
from test_capture import ip, pcap, pcapng, udp

import motioncue
from motioncue.cli import cli
from motioncue.errors import ConfigError, PacketError
from motioncue.recording import packages as recorded_packages
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.recorder import Recorder
from motioncue.recording.recording import read_motion, read_packages, sample_recording
from motioncue.recording.schema import Package
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.virtual.installation import SIMULATORS, drive_packages

SAMPLE = sample_recording()


def test_the_bytes_of_a_simulator_give_its_motion_and_its_packages():
    drive = motioncue.read(SAMPLE)
    assert_same_bits(drive.motion, read_motion(SAMPLE))
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
    assert_same_bits(other.motion, read_motion(SAMPLE, quaternion="wxyz"))
    with pytest.raises(ConfigError, match="options of city-car-driving: quaternions: unknown key"):
        motioncue.read(SAMPLE, quaternions="wxyz")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", PacketError, "not an MCAP file: it is empty"),
        (b"time,surge\n0,1\n", PacketError, "begins with 74696d652c737572; .* no packets of a system that is known"),
        (bytes(888 * 99), PacketError, "begins with 0000000000000000; .* 87912 bytes that are all zero"),
        (FRAMES[0] + bytes(200), PacketError, "no packets of a system that is known; name one with --system "),
        (pcap([(0, ip(udp(b"nobody's")))]), ConfigError, "found no packets of a system that is known; name one with"),
        (pcap([(0, ip(udp(b"nobody's")))])[:-1], ConfigError, "found no packets of a system that is known; name one"),
        (pcap([(0, ip(udp(b"nobody's")))])[:20], PacketError, "not a pcap or pcapng file"),
    ],
)
def test_what_nobody_sends_is_refused(tmp_path, content, error, message):
    path = tmp_path / "what.bin"
    path.write_bytes(content)
    with pytest.raises(error, match=message) as refused:
        motioncue.read(path)
    assert "what.bin" in str(refused.value)


WHOLE = 40  # packages


def packages_of(system):
    """Return the first packages of a drive, as they lie one after the other in a file."""
    if system == "city-car-driving":
        return [INIT_PACKAGE, *FRAMES][:WHOLE]
    packages = [paced.package for paced in drive_packages(system, "turns", 60.0, 3.0)][:WHOLE]
    assert len(packages) == WHOLE
    return packages


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("system", SIMULATORS)
def test_bytes_that_are_cut_give_the_whole_packages_and_say_what_is_left(tmp_path, system, named):
    packages, path = packages_of(system), tmp_path / "cut.bin"
    end, whole = sum(map(len, packages[:-1])), b"".join(packages)
    named = {"system": system} if named else {}
    for left in {1, 2, 7, 8, 9, len(packages[-1]) // 2, len(packages[-1]) - 1}:
        path.write_bytes(whole[: end + left])
        drive = motioncue.read(path, rate_hz=60.0, **named)
        assert [package.data for package in drive.packages] == packages[:-1]
        assert len(drive.unreadable) == 1
        assert drive.unreadable[0].startswith(f"byte {end}: {left} bytes were not read: {system}: found ")
    path.write_bytes(whole)
    assert motioncue.read(path, rate_hz=60.0, **named).unreadable == ()


def test_every_command_reads_what_is_whole_and_says_what_is_left(tmp_path):
    path = tmp_path / "cut.bin"
    path.write_bytes(SAMPLE.read_bytes()[:-1])
    size, last = path.stat().st_size, len(read_packages(SAMPLE)[-1])
    left = f"byte {size + 1 - last}: {last - 1} bytes were not read: city-car-driving: found {last - 1} bytes"
    for command in (["check", str(path)], ["decode", "city-car-driving", str(path)]):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0
        assert left in result.stderr
    assert read_packages(path) == read_packages(SAMPLE)[:-1]
    assert len(read_motion(path)) == len(read_motion(SAMPLE)) - 1


@pytest.mark.parametrize("named", [{}, {"system": "city-car-driving"}])
@pytest.mark.parametrize("times", [1, 10])
def test_bytes_that_go_wrong_in_the_middle_are_read_up_to_there(tmp_path, times, named):
    path, packages = tmp_path / "wrong.bin", packages_of("city-car-driving")
    path.write_bytes(b"".join([*packages, bytes(50), *(times * packages)]))
    drive = motioncue.read(path, **named)
    assert [package.data for package in drive.packages] == packages
    end = sum(map(len, packages))
    assert drive.unreadable == (
        f"byte {end}: {times * end + 50} bytes were not read: city-car-driving: found size 0 at offset {end}, "
        "allowed is 3 or more",
    )


@pytest.mark.parametrize("system", SIMULATORS)
def test_the_system_is_found_by_what_is_before_the_damage(tmp_path, system):
    """What is read, and what is said of the rest, does not depend on whether the system is named."""
    packages, path = packages_of(system), tmp_path / "wrong.bin"
    for damage in (b"\xff" * 70_000, bytes(70_000)):  # longer than any datagram
        path.write_bytes(b"".join([*packages, damage, *(5 * packages)]))
        found, named = motioncue.read(path, rate_hz=60.0), motioncue.read(path, system=system, rate_hz=60.0)
        assert found.about["system"] == system
        assert [package.data for package in found.packages[: WHOLE - 1]] == packages[:-1]
        assert found.packages == named.packages
        assert found.unreadable == named.unreadable != ()


def test_a_capture_that_goes_wrong_in_the_middle_is_read_up_to_there(tmp_path, paced):
    path, sent = tmp_path / "wrong.pcap", [(time, ip(udp(frame.package))) for time, frame in paced]
    end = len(pcap(sent[:30]))
    whole = bytearray(pcap(sent))
    whole[end : end + 16] = b"\xff" * 16
    path.write_bytes(whole)
    drive = motioncue.read(path)
    assert [package.data for package in drive.packages] == [frame.package for _, frame in paced[:30]]
    assert drive.unreadable == (f"byte {end}: {len(whole) - end} bytes were not read: the last whole frame ends there",)


@pytest.mark.parametrize("named", [[], ["--system", "beamng"]])
def test_an_export_takes_what_a_check_takes(tmp_path, paced, named):
    """The packets have no times: without a rate both commands ask for one."""
    path, frames = tmp_path / "drive.bin", [frame.package for _, frame in paced if frame.motion]
    path.write_bytes(b"".join(frames) + frames[0][:9])
    table = tmp_path / "drive.csv"
    command = ["export", str(path), "--to", str(table), "--what", "frames", *named]
    refused = CliRunner().invoke(cli, command)
    assert refused.exit_code == 2
    assert "give their rate (--rate; in Python rate_hz)" in refused.stderr
    done = CliRunner().invoke(cli, [*command, "--rate", "50"])
    assert done.exit_code == 0, done.output
    assert "9 bytes were not read" in done.stderr
    rows = table.read_text().splitlines()
    assert len(rows) == 1 + len(frames)
    assert [float(row.split(",")[0]) for row in rows[1:4]] == [0.0, 0.02, 0.04]
    for wrong in (["--system", "dk"], ["--system", "nobody"]):
        refused = CliRunner().invoke(cli, [*command, *wrong])
        assert refused.exit_code == 2
        assert f"--system: found '{wrong[1]}', allowed are" in refused.stderr


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.check
def test_numbers_that_are_no_drive_are_nobodys(tmp_path, seed):
    """Some described packets have neither mark nor checksum, so any numbers have their size."""
    rng, path = np.random.default_rng(seed), tmp_path / "numbers.bin"
    size = int(rng.integers(5000, 60_000))
    for content in (
        rng.bytes(size),
        bytes(size) + rng.bytes(size),
        rng.standard_normal(size // 4).astype("<f4").tobytes(),
        np.cumsum(rng.standard_normal(size // 4)).astype("<f4").tobytes(),
    ):
        path.write_bytes(content)
        with pytest.raises(PacketError, match="no packets of a system that is known"):
            motioncue.read(path, rate_hz=60.0)


@pytest.mark.parametrize("system", SIMULATORS)
def test_of_bytes_beyond_any_drive_the_first_are_read_and_the_others_counted(tmp_path, monkeypatch, system):
    packages, path = packages_of(system), tmp_path / "long.bin"
    path.write_bytes(b"".join(packages))
    limit, size = sum(map(len, packages[:30])), path.stat().st_size
    for more in (0, 1, len(packages[30]) - 1):
        monkeypatch.setattr(recorded_packages, "LARGEST", limit + more)
        drive = motioncue.read(path, system=system, rate_hz=60.0)
        assert [package.data for package in drive.packages] == packages[:30]
        assert drive.unreadable == (f"byte {limit}: {size - limit} bytes were not read: allowed are 0 MiB",)


def test_of_a_capture_beyond_any_drive_the_first_frames_are_read(tmp_path, monkeypatch, paced):
    frames = [(time, ip(udp(frame.package))) for time, frame in paced]
    path, limit = tmp_path / "long.pcap", len(pcap(frames[:30])) + 5
    path.write_bytes(pcap(frames))
    monkeypatch.setattr(recorded_packages, "LARGEST", limit)
    drive = motioncue.read(path)
    assert len(drive.packages) == 30
    left = path.stat().st_size - limit + 5
    assert drive.unreadable == (f"byte {limit - 5}: {left} bytes were not read: the last whole frame ends there",)


def test_a_file_that_grows_is_read_up_to_its_size_at_opening(tmp_path, monkeypatch):
    packages, path = packages_of("city-car-driving"), tmp_path / "grows.bin"
    path.write_bytes(b"".join(packages[:20]))
    opened = os.fstat

    def grows(number):
        about = opened(number)
        if about.st_ino == path.stat().st_ino:
            with path.open("ab") as file:
                file.write(b"".join(packages[20:]))
        return about

    monkeypatch.setattr(recorded_packages.os, "fstat", grows)
    assert recorded_packages.read_bytes(path, "it").data == b"".join(packages[:20])


@pytest.mark.parametrize("system", SIMULATORS)
@pytest.mark.check
def test_a_hole_behind_packages_is_left_out_at_once(tmp_path, system):
    """Not searched byte by byte: ten times as many bytes of it take no more steps."""
    packages, path, steps = packages_of(system), tmp_path / "hole.bin", []
    for hole in (1 << 20, 10 << 20):
        path.write_bytes(b"".join(packages) + bytes(hole))
        count = 0

        def step(*_):
            nonlocal count
            count += 1
            return step

        sys.settrace(step)
        try:
            drive = motioncue.read(path, system=system, rate_hz=60.0)
        finally:
            sys.settrace(None)
        # Where nothing says a package's length, the one before the hole may be cut.
        whole = packages[:-1] if system.startswith("beamng") else packages
        assert [package.data for package in drive.packages] == whole
        end = sum(map(len, whole))
        assert f"byte {end}: {path.stat().st_size - end} bytes were not read" in drive.unreadable[0]
        steps.append(count)
    assert steps[1] < 1.5 * steps[0] + 1000


def test_ten_gigabytes_of_zeros_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    monkeypatch.setattr(recorded_packages, "LARGEST", 16 << 20)
    tracemalloc.start()
    with pytest.raises(PacketError, match="16777216 bytes that are all zero, as in a file that was never written"):
        motioncue.read(path)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    path.unlink()  # a system without sparse files has filled it


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
