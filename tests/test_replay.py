"""Recorded runs: a replay gives the same ticks to the bit and says where two runs differ."""

import json
import time

import numpy as np
import pytest
from engine_rig import Rig, play
from helpers import eventually

import motioncue
from motioncue.errors import ConfigError, PacketError
from motioncue.kernels.clock import FakeClock
from motioncue.profile import Record
from motioncue.recording.load import read
from motioncue.recording.read import read_packages, sample_recording
from motioncue.recording.recorder import Recorder
from motioncue.runtime.engine import Pipeline
from motioncue.runtime.replay import first_difference, repeat
from motioncue.virtual.simulators import drive_packages

PERIOD_NS = 3_000_030


def scripted(path, profile, drive="turns", seconds=4.0, seed=0):
    """Record a run on the fake clock: uneven frames, an operator, changed settings, a simulator that comes back."""
    rng = np.random.default_rng(seed)
    profile = motioncue.load_profile(profile)
    clock = FakeClock(1_000_000_000)
    pipeline = Pipeline(profile, clock)
    with pipeline.record(Record(file=str(path), force=True), {}) as recorder:
        pipeline.session.begin(clock.now_ns())
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
                (0.7, lambda now=now: pipeline.session.begin(now)),
                (0.9, pipeline.emitter.park),
            ):
                if at >= share and share not in done:
                    done[share] = action()
            if int(10 * at) not in done:
                done[int(10 * at)] = time.sleep(0.06)  # the recorder empties the rings
            pipeline.session.feed(frame.package, now)
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
    assert first_difference(drive.ticks, repeat(drive)) is None


def test_other_settings_give_other_ticks_and_the_first_difference_is_named(tmp_path):
    drive = scripted(tmp_path / "run.mcap", "beamng-dk")
    profile = motioncue.load_profile("beamng-dk", "source.bridge=hold")
    difference = first_difference(drive.ticks, repeat(drive, profile))
    assert difference.channel.startswith("motion_")
    assert difference.tick in drive.ticks["index"]


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
    assert stats["recorded"]["lost"] == 0
    assert len(drive.ticks) == stats["recorded"]["ticks"] == stats["packets_sent"]
    assert len(drive.packages) == 180
    assert len(drive.motion) == stats["frames_received"]
    assert first_difference(drive.ticks, repeat(drive)) is None
