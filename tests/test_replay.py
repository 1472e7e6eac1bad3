"""Recorded runs: a replay gives the same ticks bit for bit, and reports where two runs differ."""

import json
import time

import numpy as np
import pytest
from click.testing import CliRunner
from engine_rig import Rig, play
from helpers import bits, eventually

import motioncue
from motioncue.cli import cli
from motioncue.errors import ConfigError, PacketError
from motioncue.kernels.clock import FakeClock
from motioncue.profile import Record
from motioncue.recording.load import read
from motioncue.recording.read import read_packages, sample_recording
from motioncue.recording.recorder import Recorder
from motioncue.runtime.pipeline import Pipeline
from motioncue.runtime.replay import first_difference, keep, repeat
from motioncue.virtual.offline import ride
from motioncue.virtual.simulators import drive_packages

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
            if int(10 * at) not in done:
                done[int(10 * at)] = time.sleep(0.06)  # the recorder empties the rings
            pipeline.intake.feed(frame.package, now)
        pipeline.emitter.stop()
        pipeline.emitter.run(until_ns=now + 2_000_000_000)
    assert recorder.counts()["lost"] == 0
    return read(path)


PROFILES = ["ccd-dk", "ccd-dk-washout", "beamng-dk", "beamng-simulink-dk", "morai-dk", "vehicle-physics-pro-dk"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_replay_gives_every_bit_of_a_run_with_an_operator_and_changed_settings(tmp_path, profile):
    drive = scripted(tmp_path / "run.mcap", profile)
    assert len(drive.ticks) > 1200
    assert [row.number for row in drive.settings] == [0, 1, 2]
    assert set(drive.ticks["settings"].tolist()) == {0, 1, 2}
    assert (np.diff(drive.ticks["settings"]) >= 0).all()
    replayed = repeat(drive)
    assert first_difference(drive.ticks, replayed.ticks) is None
    assert bits(replayed.motion) == bits(drive.motion)
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
    assert bits(kept.ticks["deadline"]) == bits(drive.ticks["deadline"])
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


def test_a_changed_bit_is_found(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "ccd-dk-washout")
    changed = drive.ticks.copy()
    changed["cue"]["pitch"][777] = np.nextafter(changed["cue"]["pitch"][777], 1.0)
    difference = first_difference(drive.ticks, changed)
    assert (difference.tick, difference.channel) == (drive.ticks["index"][777], "cue_pitch")
    changed = drive.ticks.copy()
    changed["lateness"] += 5
    assert first_difference(drive.ticks, changed) is None


def test_a_recording_without_ticks_is_refused(tmp_path):
    with Recorder(tmp_path / "empty.mcap", [], {"source": {"system": "beamng"}}):
        pass
    with pytest.raises(PacketError, match="no ticks"):
        repeat(read(tmp_path / "empty.mcap"))


def test_a_recording_that_does_not_begin_with_the_run_is_refused(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "beamng-dk")
    last = drive._replace(ticks=drive.ticks[700:])
    for profile in (None, motioncue.load_profile("beamng-dk")):
        with pytest.raises(PacketError, match="begins at tick 700, allowed is one from tick 0 on"):
            repeat(last, profile)


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
    scripted(tmp_path / "run.mcap", "ccd-dk-washout")

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
def test_a_live_run_is_recorded_whole_and_replayed_to_the_bit(tmp_path):
    with Rig(tmp_path) as rig:
        with rig.engine("ccd-dk-washout", record=tmp_path / "live.mcap") as engine:
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


def test_a_virtual_drive_is_kept_as_a_run_would_be(tmp_path):
    ridden = ride("ccd-dk-washout", "trouble", rate_hz=30.0, record=tmp_path / "drive.mcap")
    drive = read(tmp_path / "drive.mcap")
    assert bits(drive.ticks) == bits(ridden.ticks)
    assert len(drive.motion) == ridden.stats["frames_received"]
    moves = [(event.before, event.after, event.reason) for event in drive.events if event.what == "transition"]
    assert moves == [(move["from"], move["to"], move["reason"]) for move in ridden.stats["transitions"]]
    answer = repeat(drive)
    assert first_difference(drive.ticks, answer.ticks) is None
    assert answer.events == drive.events
