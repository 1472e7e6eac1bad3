"""Recorded runs: a replay gives the same ticks bit for bit, and reports where two runs differ."""

import json
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from engine_rig import Rig, play
from helpers import INIT_PACKAGE, bits, eventually
from same_bits import assert_same_bits

import motioncue
from motioncue.cli import cli
from motioncue.core.channels import TICK_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.core.threads import KINDS, RecordRing
from motioncue.engine import replay as replaying
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.replay import first_difference, keep, missing_ticks, pieces, repeat
from motioncue.errors import ConfigError, PacketError
from motioncue.profile.profile import Record
from motioncue.recording import recorder as recording
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.recorder import Recorder
from motioncue.recording.recording import read, read_packages, sample_recording
from motioncue.safety.supervisor import State
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.virtual.installation import drive_packages, ride

PERIOD_NS = 3_000_030


def scripted(path, profile, drive="turns", seconds=4.0, seed=0):
    """Record a run on the fake clock: uneven frames, an operator, changed settings, a simulator that comes back."""
    rng = np.random.default_rng(seed)
    profile = motioncue.load_profile(profile)
    clock = FakeClock(1_000_000_000)
    pipeline = Pipeline(profile, clock)
    with pipeline.record(Record(file=str(path), force=True), {}) as recorder:
        pipeline.intake.begin(clock.now_ns())
        now = clock.now_ns()
        done = {}
        due = 0.0
        for frame in drive_packages(profile.source.system, drive, duration_s=seconds):
            due += frame.duration
            now = max(now + 1, round(1e9 * (1.0 + due)) + int(rng.integers(0, 4_000_000)))
            pipeline.emitter.run(until_ns=now)
            at = due / seconds
            for share, action in (
                (0.4, pipeline.emitter.hold),
                (0.5, pipeline.emitter.engage),
                (0.55, lambda: pipeline.retune("limits.surge.value_m_s2=3")),
                (0.6, lambda: pipeline.retune({"watch.frozen_s": 0.7, "source.head_m": [0.1, 0.2, -0.3]})),
                (0.7, lambda now=now: pipeline.intake.begin(now)),
                (0.9, pipeline.emitter.park),
            ):
                if at >= share and share not in done:
                    done[share] = action()
            if int(4 * at) not in done:
                done[int(4 * at)] = time.sleep(0.06)  # the recorder empties the rings
            pipeline.intake.feed(frame.package, now)
        pipeline.emitter.stop()
        pipeline.emitter.run(until_ns=now + 2_000_000_000)
    assert recorder.counts()["lost"] == 0
    return read(path)


PROFILES = ["ccd-dk", "ccd-dk-classical", "beamng-dk", "beamng-simulink-dk", "morai-dk", "vehicle-physics-pro-dk"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.check
def test_a_replay_gives_every_bit_of_a_run_with_an_operator_and_changed_settings(tmp_path, profile):
    drive = scripted(tmp_path / "run.mcap", profile)
    assert len(drive.ticks) > 1200
    assert [row.number for row in drive.settings] == [0, 1, 2]
    assert set(drive.ticks["settings"].tolist()) == {0, 1, 2}
    assert (np.diff(drive.ticks["settings"]) >= 0).all()
    replayed = repeat(drive)
    assert first_difference(drive.ticks, replayed.ticks) is None
    assert_same_bits(replayed.motion, drive.motion)
    assert replayed.events == drive.events


def test_other_settings_give_other_ticks_and_the_first_difference_is_named(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "beamng-dk")
    profile = motioncue.load_profile("beamng-dk", "source.bridge=hold")
    difference = first_difference(drive.ticks, repeat(drive, profile).ticks)
    assert difference.channel.startswith("motion_")
    assert difference.tick in drive.ticks["index"]


def test_an_answer_is_kept_as_a_recording_beside_the_first_that_replays_to_the_bit(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "beamng-dk")
    answer = repeat(drive, motioncue.load_profile("beamng-dk", "limits=none", "source.head_m=[0.5, 0.0, 1.0]"))
    kept = read(keep(answer, tmp_path / "answer.mcap"))
    assert kept.about["epoch_ns"] == drive.about["epoch_ns"]  # viewers show both at the same times
    assert kept.packages == drive.packages
    assert_same_bits(kept.ticks["deadline"], drive.ticks["deadline"])
    assert bits(kept.motion) != bits(drive.motion)  # felt at another head position
    assert kept.profile["source"]["head_m"] == [0.5, 0.0, 1.0]
    assert first_difference(kept.ticks, repeat(kept).ticks) is None


def test_other_settings_read_in_each_tick_the_packages_that_it_had(tmp_path):
    """Options that refuse packages do not make ticks read later ones."""
    drive = scripted(tmp_path / "run.mcap", "morai-dk")
    answer = repeat(drive, motioncue.load_profile("morai-dk", "source.options.imu=true"))
    assert 0 < answer.ticks["frames"][-1] < drive.ticks["frames"][-1]
    reads = answer.ticks["frames"] > 0
    assert (answer.ticks["motion"]["time"] <= drive.ticks["motion"]["time"])[reads].all()


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_how_many_ticks_are_repeated_at_once_does_not_change_them(tmp_path, monkeypatch, most):
    drive = scripted(tmp_path / "run.mcap", "ccd-dk-classical", seconds=1.0)
    monkeypatch.setattr(replaying, "MOST_TICKS", most)
    done = []
    replayed = repeat(drive, progress=lambda *numbers: done.append(numbers))
    assert first_difference(drive.ticks, replayed.ticks) is None
    assert done[-1] == (len(drive.ticks), len(drive.ticks))
    assert done == sorted(set(done))
    assert 3 < len(done) <= 201


@pytest.mark.parametrize("rows", [1, 100, 776, 777, 10_000])
def test_a_changed_bit_is_found(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(replaying, "ROWS", rows)
    drive = scripted(tmp_path / "run.mcap", "ccd-dk-classical")
    changed = drive.ticks.copy()
    changed["cue"]["pitch"][777] = np.nextafter(changed["cue"]["pitch"][777], 1.0)
    difference = first_difference(drive.ticks, changed)
    assert (difference.tick, difference.channel) == (drive.ticks["index"][777], "cue_pitch")
    changed = drive.ticks.copy()
    changed["lateness"] += 5
    assert first_difference(drive.ticks, changed) is None


def test_pieces_of_a_replay_are_the_whole_and_a_changed_bit_in_a_late_one_is_named(tmp_path, monkeypatch):
    """Rings as small as what they hold between two looks: half a second of ticks."""
    path = tmp_path / "run.mcap"
    drive = scripted(path, "ccd-dk-classical")
    monkeypatch.setattr(replaying, "MOST_TICKS", 100)
    monkeypatch.setattr(replaying, "RING_BYTES", 1 << 17)
    found = list(pieces(drive))
    assert len(found) > 5
    assert_same_bits(np.concatenate([piece.ticks for piece in found]), repeat(drive).ticks)
    assert_same_bits(np.concatenate([piece.frames for piece in found]), drive.motion)
    assert [package for piece in found for package in piece.packages] == drive.packages
    changed = drive._replace(ticks=drive.ticks.copy())
    changed.ticks["cue"]["sway"][1100] += 1e-9
    kept = keep(changed, tmp_path / "changed.mcap")
    for name, status in ((path, 0), (kept, 1)):
        done = CliRunner().invoke(cli, ["replay", str(name), "--verify", "--json"])
        assert done.exit_code == status, done.output
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["ticks"] == len(drive.ticks)
        assert told["identical"] is (status == 0)
    assert (told["first_difference"]["tick"], told["first_difference"]["channel"]) == (1100, "cue_sway")


def test_a_recording_without_ticks_is_refused(tmp_path):
    with Recorder(tmp_path / "empty.mcap", [], {"source": {"system": "beamng"}}):
        pass
    with pytest.raises(PacketError, match="no ticks"):
        repeat(read(tmp_path / "empty.mcap"))


def last_of(drive, first):
    """Return what a flight recorder keeps of a run from a tick on."""
    since = drive.ticks["deadline"][first]
    kept = [[row for row in rows if row.time >= since] for rows in (drive.packages, drive.events)]
    motion = drive.motion[drive.motion["time"] >= since]
    return drive._replace(ticks=drive.ticks[first:], motion=motion, packages=kept[0], events=kept[1])


@pytest.mark.parametrize("other", [False, True])
def test_the_last_seconds_of_a_run_are_replayed_from_rest(tmp_path, other):
    """The stop at 0.9 of the drive parks; before, the platform engages anew and then follows as it did."""
    whole = scripted(tmp_path / "run.mcap", "beamng-dk", seconds=8.0)
    last = last_of(whole, 400)
    assert missing_ticks(last) == "the recording begins at tick 400 of its run"
    assert missing_ticks(whole) == ""
    answer = repeat(last, motioncue.load_profile("beamng-dk") if other else None)
    assert_same_bits(answer.ticks["index"], last.ticks["index"])
    assert_same_bits(answer.ticks["deadline"], last.ticks["deadline"])
    assert answer.ticks["state"][0] == State.OFFLINE
    follows = (answer.ticks["weight"] == 1.0) & (last.ticks["weight"] == 1.0)
    assert follows.sum() > 300
    for name in ("surge", "sway", "roll"):
        np.testing.assert_allclose(answer.ticks["motion"][name][follows], last.ticks["motion"][name][follows], atol=0.3)


def test_last_seconds_without_what_the_simulator_announced_are_refused(tmp_path):
    last = last_of(scripted(tmp_path / "run.mcap", "ccd-dk"), 300)
    last = last._replace(packages=[package for package in last.packages if len(package.data) > 50])
    with pytest.raises(PacketError, match=r"begins at tick 300 of its run, and without .* no frame \(before_init\)"):
        repeat(last)


@pytest.mark.parametrize("how", [{"last_s": 2.0}, {"roll_s": 3600.0}])
@pytest.mark.check
def test_a_file_from_the_middle_of_a_session_says_what_the_simulator_announced(tmp_path, monkeypatch, how):
    """City Car Driving's frames mean nothing without the car's axes in its first package."""
    profile, clock = motioncue.load_profile("ccd-dk"), FakeClock(1_000_000_000)
    pipeline = Pipeline(profile, clock)
    monkeypatch.setattr(recording.time, "monotonic_ns", clock.now_ns)
    recorder = pipeline.record(Record(file=str(tmp_path / "run.mcap"), **how), {})
    if "roll_s" in how:
        recorder._open()
    pipeline.intake.begin(clock.now_ns())
    now = clock.now_ns()
    for count, frame in enumerate(drive_packages("city-car-driving", "turns", duration_s=6.0)):
        now += round(1e9 * frame.duration)
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(frame.package, now)
        recorder._take()
        if count == 200 and "roll_s" in how:
            recorder._roll()
    recorder._dump() if "last_s" in how else recorder._close()
    drive = read(recorder.paths[-1])
    assert drive.ticks["index"][0] > 400
    assert len(drive.packages[0].data) == FRAME.size
    assert bytes.fromhex(drive.about["opening"]) == INIT_PACKAGE
    answer = repeat(drive)
    assert (answer.ticks["weight"] == 1.0).any()
    done = CliRunner().invoke(cli, ["check", str(recorder.paths[-1]), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["timing"]["rejected"] == {}


def test_the_command_replays_last_seconds_from_rest_and_does_not_verify_them(tmp_path):
    last = last_of(scripted(tmp_path / "run.mcap", "beamng-dk"), 400)
    path = keep(last, tmp_path / "last.mcap")
    done = CliRunner().invoke(cli, ["replay", str(path)])
    assert done.exit_code == 0
    assert "begins at tick 400 of its run: replayed from rest" in done.stderr
    done = CliRunner().invoke(cli, ["replay", str(path), "--verify"])
    assert done.exit_code == 2
    assert "--verify: the recording begins at tick 400 of its run; allowed is a whole run" in done.stderr


@pytest.fixture
def rolled(tmp_path):
    """Return the files of a run that was rolled over after each of its batches, and its ticks."""
    whole = scripted(tmp_path / "run.mcap", "ccd-dk-classical")
    return rolls(whole, tmp_path, (0, 400, 800, len(whole.ticks))), whole


def rolls(whole, folder, cuts):
    """Write a recording as a recorder that rolls over writes it."""
    files = []
    for part, (first, last) in enumerate(pairwise(cuts)):
        since, until = (
            whole.ticks["deadline"][at] if 0 < at < len(whole.ticks) else at and 2**62 for at in (first, last)
        )
        files.append(folder / f"rolled-{part}.mcap" if part else folder / "rolled.mcap")
        about = {"part": str(part)}
        with RecordingWriter(files[-1], epoch_ns=int(whole.about["epoch_ns"]), about=about) as writer:
            number = int(whole.ticks["settings"][first])
            for row in whole.settings:
                if row.number >= number and (row.number == number or row.time < until):
                    writer.settings(*row)
            writer.packages([row for row in whole.packages if since <= row.time < until])
            writer.events([row for row in whole.events if since <= row.time < until])
            frames = whole.motion["time"]
            writer.frames(whole.motion[(frames >= since) & (frames < until)])
            writer.ticks(whole.ticks[first:last])
    return files


def test_the_files_of_a_rolled_run_are_read_and_verified_together_in_any_order(rolled):
    files, whole = rolled
    drive = read(files[2], files[0], files[1])
    assert_same_bits(drive.ticks, whole.ticks)
    assert_same_bits(drive.motion, whole.motion)
    assert (drive.packages, drive.events, drive.settings) == (whole.packages, whole.events, whole.settings)
    done = CliRunner().invoke(cli, ["replay", *map(str, files), "--verify", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["identical"] is True
    done = CliRunner().invoke(cli, ["replay", str(files[0]), "--verify"])  # the first one begins with the run
    assert done.exit_code == 0, done.output


def test_a_recorder_that_rolls_over_writes_such_files(tmp_path):
    ring = RecordRing(1 << 20)
    with Recorder(Record(file=str(tmp_path / "run.mcap"), roll_s=1.0), [ring], {}) as recorder:
        row = np.zeros(1, TICK_DTYPE)
        for part in range(3):
            row["index"], row["deadline"] = part, part
            ring.write(KINDS["tick"], part, row.tobytes())
            recorder._take()
            if part < 2:
                recorder._roll()
    assert [path.name for path in recorder.paths] == ["run.mcap", "run-1.mcap", "run-2.mcap"]
    assert read(*recorder.paths).ticks["index"].tolist() == [0, 1, 2]


def test_files_that_are_not_of_one_run_or_not_consecutive_are_refused(rolled, tmp_path):
    files, whole = rolled
    with pytest.raises(PacketError, match=r"rolled-2\.mcap': found part 2 of a run behind part 0 in .*rolled\.mcap"):
        read(files[0], files[2])
    with pytest.raises(PacketError, match="found part 0 of a run behind part 0"):
        read(files[0], files[0])
    with pytest.raises(PacketError, match=r"found part (none|0) of a run behind part (0|none)"):
        read(files[0], tmp_path / "run.mcap")
    other = keep(whole._replace(about={"epoch_ns": "5"}), tmp_path / "other.mcap")
    with pytest.raises(PacketError, match=r"other\.mcap': found a file of another run than"):
        read(files[0], other)


@pytest.mark.check
def test_of_a_run_that_was_killed_the_last_file_may_be_empty(rolled, tmp_path):
    """As long as it is: cut before, within and behind what the recorder writes at once."""
    files, _ = rolled
    content, before = files[2].read_bytes(), read(*files[:2])
    for size in (0, 1, 8, 30, 200, 500, 900, 1500, 2500):
        files[2].write_bytes(content[:size])
        drive = read(files[0], files[2], files[1])
        assert_same_bits(drive.ticks, before.ticks)
        assert_same_bits(drive.motion, before.motion)
        assert drive.packages == before.packages
        said = [line for line in drive.unreadable if "is empty" in line]
        assert said == [f"'{files[2]}' is empty: the run ended before a tick was written to it"]
        done = CliRunner().invoke(cli, ["replay", *map(str, files), "--verify"])
        assert done.exit_code == 0, done.output
        assert "is empty" in done.stdout
    files[2].write_bytes(content)
    files[1].write_bytes(b"")
    with pytest.raises(PacketError, match=r"found part 2 of a run behind part 0"):
        read(*files)


def test_a_recorder_that_was_killed_as_it_began_a_file_leaves_one_that_is_read_with_the_others(tmp_path):
    """Not closed: its index is missing, and it has settings but no tick."""
    ring = RecordRing(1 << 20)
    with Recorder(Record(file=str(tmp_path / "run.mcap"), roll_s=1.0), [ring], {"name": "it"}) as recorder:
        row = np.zeros(1, TICK_DTYPE)
        ring.write(KINDS["tick"], 0, row.tobytes())
        recorder._take()
        recorder._roll()
        left = recorder.paths[1].read_bytes()
    killed = tmp_path / "killed.mcap"
    killed.write_bytes(left)
    drive = read(killed, recorder.paths[0])
    assert drive.ticks["index"].tolist() == [0]
    assert drive.unreadable == (f"'{killed}' is empty: the run ended before a tick was written to it",)


def test_a_replay_is_not_written_over_the_recording_that_it_reads(tmp_path):
    path = tmp_path / "run.mcap"
    scripted(path, "beamng-dk", seconds=1.0)
    content = path.read_bytes()
    names = ["run.mcap", "../" + tmp_path.name + "/run.mcap"]
    if sys.platform != "win32":
        (tmp_path / "link.mcap").symlink_to(path)
        (tmp_path / "hard.mcap").hardlink_to(path)
        names += ["link.mcap", "hard.mcap"]
    for name in names:
        arguments = ["replay", str(path), "--record", str(tmp_path / name), "--force"]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 2
        assert "--record: found" in done.stderr
    assert path.read_bytes() == content


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_replay_that_cannot_be_written_whole_leaves_the_folder_as_it_was(tmp_path, monkeypatch, error):
    drive = scripted(tmp_path / "run.mcap", "beamng-dk", seconds=1.0)
    kept = tmp_path / "kept.mcap"
    kept.write_bytes(b"an hour of driving")

    def fails(*_):
        raise error

    monkeypatch.setattr(RecordingWriter, "ticks", fails)
    with pytest.raises(ConfigError if isinstance(error, OSError) else KeyboardInterrupt):
        keep(drive, kept, force=True)
    assert kept.read_bytes() == b"an hour of driving"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.mcap", "run.mcap"]


def test_a_profile_for_another_simulator_is_refused(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "beamng-dk")
    with pytest.raises(ConfigError, match="found 'morai', allowed is that of the recording, 'beamng'"):
        repeat(drive, motioncue.load_profile("morai-dk"))


def test_a_profile_with_another_rate_is_refused(tmp_path):
    """Filters designed for a tick of 4 ms are not run every 3 ms."""
    drive = scripted(tmp_path / "run.mcap", "beamng-dk")
    with pytest.raises(ConfigError, match=r"output.rate_hz: found 250, allowed is that of the recording, 333.33 Hz"):
        repeat(drive, motioncue.load_profile("beamng-dk", "output.rate_hz=250"))


def test_the_command_says_what_other_settings_change_and_keeps_it(tmp_path):
    scripted(tmp_path / "run.mcap", "ccd-dk-classical")

    def replayed(*arguments):
        done = CliRunner().invoke(cli, ["replay", str(tmp_path / "run.mcap"), *map(str, arguments), "--json"])
        return done.exit_code, json.loads(done.stdout.splitlines()[-1]), done.stdout

    code, result, shown = replayed("--set", "limits.surge.value_m_s2=0.05", "--record", tmp_path / "other.mcap")
    assert code == 0
    (row,) = [row for row in result["changed"] if row["channel"] == "cue_surge"]
    old, new = (read(tmp_path / f"{name}.mcap").ticks for name in ("run", "other"))
    apart = np.abs(new["cue"]["surge"] - old["cue"]["surge"])
    assert (row["largest"], row["tick"]) == (apart.max(), old["index"][apart > 0][0])
    assert np.abs(new["cue"]["surge"]).max() <= 0.05
    assert f"cue_surge {row['tick']:>25}" in shown
    code, result, _ = replayed("--verify")
    assert (code, result["ticks"], result["identical"], result["first_difference"]) == (0, len(old), True, None)


def test_settings_of_the_recording_are_those_of_the_run(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "morai-dk")
    assert drive.profile["source"]["system"] == "morai"
    assert json.dumps(drive.settings[2].profile).count("-0.3") == 1


@pytest.mark.rt
@pytest.mark.check
def test_a_live_run_is_recorded_whole_and_replayed_to_the_bit(tmp_path):
    with Rig(tmp_path) as rig:
        with rig.engine("ccd-dk-classical", record=tmp_path / "live.mcap") as engine:
            simulator = play(rig.url, [(1 / 60, package) for package in read_packages(sample_recording())[:180]])
            eventually(lambda: engine.stats()["frames_received"] >= simulator.sent - 1)
            engine.hold()
            engine.engage()
        stats = engine.stats()
    drive = read(engine.recordings[0])
    assert json.loads(drive.about["granted"]) == stats["granted"]
    assert stats["recorded"]["lost"] == 0
    assert len(drive.ticks) == stats["recorded"]["ticks"] == stats["packets_sent"]
    assert len(drive.packages) == 180
    assert len(drive.motion) == stats["frames_received"]
    assert first_difference(drive.ticks, repeat(drive).ticks) is None


@pytest.mark.check
def test_a_virtual_drive_is_kept_as_a_run_would_be(tmp_path):
    ridden = ride("ccd-dk-classical", "trouble", rate_hz=30.0, record=tmp_path / "drive.mcap")
    drive = read(tmp_path / "drive.mcap")
    assert_same_bits(drive.ticks, ridden.ticks)
    assert len(drive.motion) == ridden.stats["frames_received"]
    moves = [(event.before, event.after, event.reason) for event in drive.events if event.what == "transition"]
    assert moves == [(move["from"], move["to"], move["reason"]) for move in ridden.stats["transitions"]]
    answer = repeat(drive)
    assert first_difference(drive.ticks, answer.ticks) is None
    assert answer.events == drive.events
