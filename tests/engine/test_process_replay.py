"""A kept drive of every source system, through the whole engine, gives the ticks that were last accepted."""

import json
import re
import sys

import accept
import numpy as np
import pytest
from kept_drives import FOLDER, MAKINGS, path_of

from motioncue.core.channels import MOTION_DTYPE, TICK_DTYPE
from motioncue.engine.replay import first_difference, repeat
from motioncue.recording.recording import Drive, read
from motioncue.recording.schema import Event
from motioncue.safety.supervisor import State
from motioncue.scoring.changes import TOLERANCE, Change, changes
from motioncue.sources import having

HOW = "if that is meant: python tests/support/accept.py"


@pytest.mark.parametrize("system", MAKINGS)
def test_the_engine_repeats_its_ticks(system):
    # The last bit of another C library may end a join a tick earlier, up to a thousandth of that tick's move away.
    found = accept.differences(system, tolerance=1e-5 if sys.platform == "win32" else TOLERANCE)
    assert not found, "\n".join([*found, HOW])


def test_every_source_system_has_a_drive():
    assert set(MAKINGS) == set(having("SCHEMES"))
    assert {path.stem for path in FOLDER.glob("*.mcap")} == set(MAKINGS)


@pytest.mark.parametrize("system", MAKINGS)
def test_a_kept_drive_is_small_whole_and_says_nothing_of_a_machine(system):
    assert path_of(system).stat().st_size < 220_000
    drive = read(path_of(system))
    assert drive.unreadable == ()
    assert not drive.about["host"] + drive.about["system"]
    assert max(row.time for row in drive.settings) < 10_000_000_000


@pytest.mark.parametrize("system", MAKINGS)
def test_much_happens_in_a_kept_drive(system):
    drive = read(path_of(system))
    reasons = {event.reason for event in drive.events}
    assert reasons >= {"input_lost", "teleport", "operator_park", "retuned", "end_of_run", "cue_reached"}
    assert reasons & {"size", "type", "not_finite"}  # a broken package
    assert sum(event.what == "connected" for event in drive.events) == 2
    assert {State(state).name for state in set(drive.ticks["state"].tolist())} == {
        *("OFFLINE", "ENGAGING", "RUNNING", "HOLDING", "PARKING")
    }
    for channel, least in (("surge", 0.3), ("sway", 0.1), ("yaw_rate", 0.003)):  # a motorway has little more
        assert np.abs(drive.ticks["cue"][channel]).max() > least


def test_one_of_the_drives_moves_actuators():
    """A hexapod of the size of SIMONA, each of whose legs moves by more than a hand."""
    legs = read(path_of("vehicle-physics-pro")).ticks["actuators"][:, :6]
    assert (np.ptp(legs, axis=0) > 0.1).all()


def altered(drive, key, value):
    """Return a drive as replayed by an engine that uses another value for `key`."""
    rows = []
    for row in drive.settings:
        table = tables = json.loads(json.dumps(row.profile))
        *path, last = key.split(".")
        for name in path:
            table = table[name]
        table[last] = value(table[last])
        rows.append(row._replace(profile=tables))
    return drive._replace(settings=rows)


def test_a_gain_that_is_a_millionth_larger_is_found():
    drive = read(path_of("city-car-driving"))
    found = changes(drive, repeat(altered(drive, "cueing.surge.gain", lambda gain: gain * (1.0 + 1e-6))))
    assert {"cue_surge", "cue_surge_displacement"} <= {row.channel for row in found.channels}
    assert all(row.channel.startswith("cue_") for row in found.channels)
    assert (found.gone, found.new, found.counts) == ([], [], [])
    moving = drive.ticks["index"][drive.ticks["weight"] > 0.0][0]
    assert all(row.tick >= moving for row in found.channels)


@pytest.fixture
def kept(tmp_path):
    """Return a folder with copies of the drives."""
    for system in MAKINGS:
        path_of(system, tmp_path).write_bytes(path_of(system).read_bytes())
    return tmp_path


def test_a_change_is_shown_and_accepted_by_the_command_alone(kept, monkeypatch, capsys):
    """An engine that holds for 0.15 s instead of 0.1 s parks later: the table names channels and transitions."""
    before = {system: path_of(system, kept).read_bytes() for system in MAKINGS}

    def holds_longer(drive):
        answer = repeat(altered(drive, "supervisor.hold_s", lambda seconds: 1.5 * seconds))
        return answer._replace(settings=drive.settings)

    monkeypatch.setattr(accept, "repeat", holds_longer)
    table = "\n".join(accept.differences("beamng", kept))
    assert table.startswith("beamng:\n  channel ")
    assert re.search(r"^  cue_surge +\d+ +\d\.\d{3} s +[-\d.e]+ +[-\d.e]+ +[\d.e-]+ m/s\^2 +\d+$", table, re.M)
    parks = r"^ +1\.\d{3} s %6s: HOLDING to PARKING, input lost \(0\.1%s\d+, allowed 0\.1%s\)$"
    assert re.search(parks % ("before", "0", ""), table, re.M)
    assert re.search(parks % ("now", "[56]", "5"), table, re.M)
    assert {system: path_of(system, kept).read_bytes() for system in MAKINGS} == before  # showing accepts nothing

    assert accept.main(["beamng"], kept) == 0
    assert capsys.readouterr().out == f"{table}\naccepted: beamng\n"
    answer = read(path_of("beamng", kept))
    assert first_difference(answer.ticks, holds_longer(read(path_of("beamng"))).ticks) is None
    assert answer.settings == read(path_of("beamng")).settings
    assert accept.differences("beamng", kept) == []
    assert path_of("morai", kept).read_bytes() == before["morai"]
    assert accept.main(["beamng"], kept) == 0
    assert capsys.readouterr().out == "accepted: nothing has changed\n"


def test_another_name_is_refused(kept, capsys):
    assert accept.main(["beamgn"], kept) == 2
    assert "found beamgn, allowed are city-car-driving, beamng," in capsys.readouterr().err


def drive_of(ticks, events=()):
    """Return a recording with these ticks: index, deadline, and cue_surge as given."""
    rows = np.zeros(len(ticks), TICK_DTYPE)
    rows["index"] = np.arange(len(ticks))
    rows["deadline"] = 5_000_000_000 + 3_000_000 * rows["index"]
    rows["cue"]["surge"] = ticks
    return Drive(np.zeros(0, MOTION_DTYPE), rows, [], list(events), [], {}, ())


def test_the_table_says_where_when_and_how_much():
    begins = Event(5_003_000_000, "transition", "input", "OFFLINE", "ENGAGING", 0, 0.5, 1.0)
    old = drive_of([0.0, 2.0, -4.0, 1.0], [begins])
    new = drive_of([0.0, 2.0, -4.25, 1.5], [begins._replace(time=5_006_000_000)])
    new.ticks["state"][3] = 2
    new.ticks["lateness"] = 7
    found = changes(old, new)
    assert found.channels == [
        Change("cue_surge", "m/s^2", 2, 0.006, -4.0, -4.25, 0.5, 3),
        Change("state", "", 3, pytest.approx(0.009), 0.0, 2.0, 2.0, 3),
    ]
    assert found.lines() == [
        "channel                  first tick        at        before           now   differs most by   at tick",
        "cue_surge                         2   0.006 s            -4         -4.25         0.5 m/s^2         3",
        "state                             3   0.009 s             0             2                 2         3",
        "   0.003 s before: OFFLINE to ENGAGING, input (0.5, allowed 1)",
        "   0.006 s    now: OFFLINE to ENGAGING, input (0.5, allowed 1)",
    ]


@pytest.mark.parametrize(("apart", "found"), [(0.5, False), (2.0, True)])
def test_values_may_be_apart_by_the_tolerance_of_the_channels_scale(apart, found):
    old = drive_of([0.0, 50.0, 1.0])
    assert changes(old, drive_of([0.0, 50.0, 1.0 + 50.0 * TOLERANCE * apart])).found is found
    # A channel at rest is compared with a thousandth of its unit.
    assert changes(drive_of([0.0]), drive_of([1e-3 * TOLERANCE * apart])).found is found
    events = [[Event(1, "transition", "input", value=40.0 * (1.0 + e), limit=3.0)] for e in (0.0, TOLERANCE * apart)]
    assert changes(drive_of([0.0], events[0]), drive_of([0.0], events[1])).found is found


def test_an_absent_channel_must_stay_absent():
    nothing = drive_of([1.0, np.nan])
    assert not changes(nothing, nothing).found
    (row,) = changes(nothing, drive_of([1.0, 2.0])).channels
    assert (row.tick, row.largest, row.after) == (1, np.inf, 2.0)
    assert changes(drive_of([1.0, 2.0]), nothing).channels[0].largest == np.inf


def test_more_or_fewer_ticks_are_counted():
    assert changes(drive_of([1.0, 2.0]), drive_of([1.0])).counts == [("ticks", 2, 1)]
    assert changes(drive_of([1.0, 2.0]), drive_of([1.0])).lines() == ["ticks: 2 before, 1 now"]
