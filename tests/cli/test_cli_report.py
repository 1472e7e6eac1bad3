"""A report: what it holds, what it leaves out, and that a stranger can open one without harm."""

from pathlib import PurePath, PureWindowsPath

import numpy as np
import pytest
from click.testing import CliRunner
from kept_drives import path_of

from motioncue.cli import cli
from motioncue.cli.report import _checked, _unreadable, anonymized, last_minutes
from motioncue.engine.replay import keep, repeat
from motioncue.recording.packages import quoted
from motioncue.recording.recording import read

KEPT = path_of("vehicle-physics-pro")


def run(*arguments, **options):
    return CliRunner().invoke(cli, ["report", *map(str, arguments)], **options)


def personal(tmp_path):
    """Write a drive that says much about who made it; return the file."""
    drive = repeat(read(KEPT))  # as this system computes it: another's last bits may differ
    settings = []
    for row in drive.settings:
        profile = {**row.profile, "description": "Jane's rig", "record": {"file": "/home/jane/drives/a.mcap"}}
        profile["source"] = {**row.profile["source"], "endpoint": "udp://10.1.2.3:4444"}
        settings.append(row._replace(profile=profile))
    about = {"host": "janes-pc", "system": "Linux-6-janes"}
    return keep(drive._replace(settings=settings), tmp_path / "drive.mcap", about=about)


def test_a_report_is_shown_first_and_replays_to_the_bit(tmp_path):
    path = personal(tmp_path)
    refused = run(path, "--no-bench", "--say", "a jolt", input="n\n")
    assert "nothing was written" in refused.output
    assert '"what": "a jolt"' in refused.output
    assert [each.name for each in tmp_path.iterdir()] == ["drive.mcap"]
    unasked = run(path, "--no-bench", input="")
    assert unasked.exit_code == 1
    assert unasked.output.endswith("nothing was written; --yes writes it without asking\n")
    assert [each.name for each in tmp_path.iterdir()] == ["drive.mcap"]
    done = run(path, "--no-bench", input="y\n")
    assert done.exit_code == 0, done.output
    made = tmp_path / "drive-report.mcap"
    verified = CliRunner().invoke(cli, ["replay", str(made), "--verify"])
    assert "yes, every bit" in verified.output, verified.output
    shown = run(made)
    assert '"verdict"' in shown.output
    assert '"replays": "to the bit' in shown.output


def test_nothing_says_who_made_it(tmp_path):
    run(personal(tmp_path), "--no-bench", "--yes")
    drive = read(tmp_path / "drive-report.mcap")
    everything = repr([drive.settings, drive.about, drive.events])
    for word in ("jane", "Jane", "10.1.2.3", "drives"):
        assert word not in everything
    assert drive.about["host"] == ""
    assert drive.profile["record"] == {"file": "a.mcap"}
    assert drive.profile["source"]["endpoint"] == "udp://192.0.2.1:4444"


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ("udp://127.0.0.1:4444", "udp://127.0.0.1:4444"),
        ("udp://:4444", "udp://:4444"),
        ("tcp://rig.example.org:9999", "tcp://192.0.2.1:9999"),
        ("udp://[fe80::1]:9999", "udp://192.0.2.1:9999"),
        ("serial:///dev/ttyUSB0", "serial:///dev/ttyUSB0"),
        ("unix:///home/jane doe/game.sock", "unix:///game.sock"),
        (r"pipe://\\JANES-PC\pipe\x", r"pipe://\\.\pipe\x"),
        (r"pipe://\\.\pipe\x", r"pipe://\\.\pipe\x"),
        ("memory://acpmf_physics", "memory://acpmf_physics"),
        ("serial:///dev/serial/by-id/usb-JANE-123-if00?baud=9600", "serial:///dev/serial/by-id/device?baud=9600"),
        ("UDP://janes-pc:3", "UDP://192.0.2.1:3"),
        ("see udp://janes-pc:33, or ~jane/x", "see udp://192.0.2.1:33, or ~somebody/x"),
        ("refused fe80::1ff:fe23:4567:890a%eth0 at 12:30:45, ::1 taken", "refused 192.0.2.1 at 12:30:45, ::1 taken"),
        ("a hole of ~5 ms at 10.0.0.5.", "a hole of ~5 ms at 192.0.2.1."),
        (r"C:\Users\Jane\drive.mcap", "drive.mcap"),
        ("classical", "classical"),
        ("/home/jane", "somebody"),
        ("not sent from 10.1.2.3, but from 127.0.0.1", "not sent from 192.0.2.1, but from 127.0.0.1"),
        ({"allow": ["10.1.2.3", "janes-pc", "127.0.0.1"]}, {"allow": ["192.0.2.1", "192.0.2.1", "127.0.0.1"]}),
        ({"folder": "../jane/laps", "name": "spa"}, {"folder": "laps", "name": "spa"}),
        ({"folder": r"C:\Users\Jane", "file": "jane/a.mcap"}, {"folder": "somebody", "file": "a.mcap"}),
        ({"a": [1.5, True, "/home/jane/x.toml"], "description": "x"}, {"a": [1.5, True, "x.toml"], "description": ""}),
    ],
)
def test_names_are_taken_out_and_endpoints_stay_endpoints(found, left):
    assert anonymized(found) == left


@pytest.mark.parametrize(
    "file",
    [PurePath("/media/Jane Smith/drive.mcap"), PurePath("jane/drive.mcap"), PureWindowsPath(r"D:\Jane S\drive.mcap")],
)
def test_what_cannot_be_read_is_named_without_its_folder(file):
    texts = (f"{quoted(file)}: torn at 7", f"{file}: a hole", "torn at 8")
    assert _unreadable(texts, (file,)) == ["'drive.mcap': torn at 7", "drive.mcap: a hole", "torn at 8"]


def test_a_part_says_what_the_session_began_with_and_replays_from_rest(tmp_path):
    drive = read(path_of("city-car-driving"))
    part = last_minutes(drive, 1.0 / 60.0)
    assert 90 <= len(part.ticks) <= 101  # a second at 100 Hz
    assert part.ticks["index"].tolist() == drive.ticks["index"][-len(part.ticks) :].tolist()
    assert np.all(part.motion["time"] >= part.ticks["deadline"][0] - 10_000_000)
    sessions = [event.time for event in drive.events if event.what == "connected"]
    start = part.ticks["deadline"][0]
    newest = max(time for time in sessions if time < start)
    first = next(package for package in drive.packages if package.time >= newest)
    assert bytes.fromhex(part.about["opening"]) == first.data
    checked = _checked(part)  # without the opening, the layout of its frames would be unknown
    assert next(row for row in checked["findings"] if row[0] == "frames")[1] == "ok", checked
    again = keep(part, tmp_path / "part.mcap", about=part.about)
    done = CliRunner().invoke(cli, ["replay", str(again)])
    assert done.exit_code == 0, done.output
    assert "replayed from rest" in done.output


def test_a_hostile_report_shows_text_and_no_more(tmp_path):
    made = keep(read(KEPT), tmp_path / "evil.mcap", about={"report": "\x1b]0;owned\x07\x1b[2J" + "x" * 300_000})
    shown = run(made)
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert "\\x1b]0;owned" in shown.output
    assert "too long to be shown" in shown.output
    assert len(shown.output) < 250_000


def test_what_is_no_run_is_refused(tmp_path):
    (tmp_path / "bytes.bin").write_bytes(b"nothing of any simulator")
    refused = run(tmp_path / "bytes.bin")
    assert refused.exit_code == 2
    assert "neither a recording of a run" in refused.output
    assert "--system" not in refused.output  # which the command has not
