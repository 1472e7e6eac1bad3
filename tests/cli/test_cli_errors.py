"""Refusals of the command line: one clear line on stderr, exit status 2; and the promises of its help."""

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import free_port, own_ports, stream_url

from motioncue._version import __version__
from motioncue.cli import COMMANDS, cli, simulate
from motioncue.cli.common import echo
from motioncue.profile.profile import builtin_profiles, parse_profile, profile_text
from motioncue.recording.recording import sample_recording
from motioncue.transports.endpoint import Listener

STREAM = "unix" if hasattr(socket, "AF_UNIX") else "tcp"
HERE = "tcp://127.0.0.1:5100"
README = str(Path(__file__).parents[2] / "README.md")


def invoke(*arguments):
    return CliRunner().invoke(cli, list(arguments))


def refusal(*arguments):
    """Run a command that is refused; return its error line."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "--profile", "nope"], ["'nope'", "ccd-dk, ccd-dk-classical"]),
        (["run", "--profile", "bemng-dk"], ["'bemng-dk'", "(did you mean 'beamng-dk'?)"]),
        (["demo", "--profile", "nope"], ["'nope'", "ccd-dk, ccd-dk-classical"]),
        (["profiles", "show", "nope"], ["'nope'", "ccd-dk, ccd-dk-classical"]),
        (["run", "--set", "source.endpiont=unix:///x"], ["source.endpiont", "'endpoint'"]),
        (["run", "--set", "cueing.gain=2"], ["cueing.gain", "allowed"]),
        (["run", "--set", "source.options.quaternion=yzxw"], ["source.options.quaternion", "'yzxw'"]),
        (["run", "--set", "output.rate_hz=500"], ["output.rate_hz", "500", "400"]),
        (["run", "--set", "output.rate_hz=fast"], ["output.rate_hz", "'fast'"]),
        (["run", "--set", "nonsense"], ["'nonsense'", "KEY=VALUE"]),
        (["run", "--set", "source.system=dk"], ["source.system", "'dk'", "city-car-driving"]),
        (["run", "--set", "source.endpoint=nowhere"], ["'nowhere'", "unix://PATH"]),
        (["run", "--set", "source.endpoint=udp://127.0.0.1:1"], ["udp://127.0.0.1:1", "tcp://HOST:PORT"]),
        (["run", "--set", "output.motion=udp://127.0.0.1:0"], ["udp://127.0.0.1:0", "1 to 65535"]),
        (["demo", "--drive", "fly"], ["'fly'", "tour"]),
        (["demo", "--profile", "ccd-dk", "--set", "output.rate_hz=500"], ["output.rate_hz", "500", "400"]),
        (["demo", "--duration", "1m"], ["found '1m', allowed is a number of seconds"]),
        (["replay", README], ["README.md: found no recording of `motioncue run --record`"]),
        (["run", "rig.toml"], ["(rig.toml)", "--profile rig.toml"]),
        (["run", "--set", "output.rate_hz", "250"], ["(250)", "--set takes KEY=VALUE: --set output.rate_hz=250"]),
        (["export", "d.mcap", "d.csv"], ["'--to'", "--to FILE"]),
        (["profiles", "shw"], ["'shw'", "(did you mean 'show'?)"]),
        (["platforms", "shw"], ["'shw'", "(did you mean 'show'?)"]),
        (["run", "--set", "cueing.algorithm=direct", "--set", "cueing.surge.gain=1"], ["unknown key", "'classical'"]),
        (["run", "--set", "output.system=custom"], ["output.packet: missing", "motioncue profiles packets"]),
        (["run", "--set", "output.constants.bytes=1"], ["output.constants"]),
        (["run", "--nope"], ["'--nope'"]),
        (["decode"], ["SYSTEM"]),
        (["check", "x.bin", "--rate", "-3"], ["--rate", "-3.0", "above 0"]),
        (["check", "beamng-dk", "--system", "morai"], ["--system"]),
        (["simulate", "beamng", "--to", HERE, "--recording", "a", "--drive", "tour"], ["--recording", "--drive"]),
        (["send", "morai", "turn_signal_lamp", "--duration", "1"], ["--duration", "--rate"]),
        (["simulate", "dk", "--to", HERE], ["system: found 'dk'", "city-car-driving"]),
        (
            ["simulate", "city-car-driving", "--to", "udp://127.0.0.1:1"],
            ["--to: found 'udp://127.0.0.1:1'", "unix://PATH"],
        ),
        (["simulate", "city-car-driving", "--to", HERE, "--drive", "fly"], ["'fly'", "tour"]),
        (["simulate", "city-car-driving", "--to", HERE, "--drive", "truble"], ["(did you mean 'trouble'?)"]),
        (["simulate", "city-car-driving", "--to", HERE, "--rate", "9000"], ["9000", "2000"]),
        (["simulate", "city-car-driving", "--to", HERE, "--recording", "no/file"], [os.path.join("no", "file")]),
        (["listen", "nothing", "--at", HERE], ["'nothing'", "city-car-driving, dk"]),
        (["listen", "dk", "--at", HERE], [f"--at: found {HERE!r}, allowed is udp://HOST:PORT"]),
        (
            ["listen", "city-car-driving", "--at", "udp://127.0.0.1:1"],
            ["--at: found 'udp://127.0.0.1:1'", "tcp://HOST:PORT"],
        ),
        (["listen", "city-car-driving", "--at", HERE, "--at", "tcp://:5101"], ["--at: found 2 endpoints"]),
        (["send", "morai", "turn_signal_lamp", "--to", HERE], [f"--to: found {HERE!r}, allowed is udp://HOST:PORT"]),
        (
            ["send", "morai", "ego_ctrl", "--to", "udp://:1"],
            ["found command 'ego_ctrl'", "(did you mean 'ego_ctrl_cmd'?)"],
        ),
        (["check", "morai", "--at", "9110"], ["--at: found '9110', allowed is udp://HOST:PORT"]),
        (["check", HERE, "--system", "morai"], [f"SOURCE: found {HERE!r}, allowed is udp://HOST:PORT"]),
        (["check", HERE, "--system", "mori"], ["--system: found 'mori'", "did you mean 'morai'"]),
        (["check", "memory://acpmf_physics"], ["--system: missing for memory://acpmf_physics", "listen --find"]),
        (["check", "mori-dk"], ["'mori-dk'", "did you mean 'morai-dk'"]),
    ],
)
def test_refusals_name_what_was_found_and_what_is_allowed(arguments, named):
    line = refusal(*arguments)
    for word in named:
        assert word in line


def test_a_profile_file_that_is_not_toml(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text("[source\nsystem = 1")
    assert str(path) in refusal("run", "--profile", str(path))


def test_a_recording_that_is_cut_short(tmp_path):
    path = tmp_path / "drive.bin"
    path.write_bytes(b"\x27\x00\x01")
    assert str(path) in refusal("simulate", "city-car-driving", "--to", HERE, "--recording", str(path))


def test_a_recording_of_another_system(tmp_path):
    path = str(sample_recording())
    line = refusal("simulate", "beamng", "--to", "udp://127.0.0.1:1", "--recording", path)
    assert line.startswith(f"error: recording '{path}': beamng: found ")


def test_a_recording_that_does_not_begin_with_init(tmp_path):
    path = tmp_path / "drive.bin"
    path.write_bytes(sample_recording().read_bytes()[39:])
    assert "type 2 first" in refusal("simulate", "city-car-driving", "--to", HERE, "--recording", str(path))


def test_a_file_called_sample_goes_before_the_one_that_comes_with_the_package(tmp_path, monkeypatch):
    (tmp_path / "sample").write_bytes(b"\x27\x00\x01")
    monkeypatch.chdir(tmp_path)
    assert "'sample'" in refusal("simulate", "city-car-driving", "--to", HERE, "--recording", "sample")


@pytest.mark.rt
@pytest.mark.parametrize("scheme", dict.fromkeys([STREAM, "tcp"]))
@pytest.mark.parametrize("command", ["run", "listen"])
def test_a_busy_stream_endpoint(tmp_path, scheme, command):
    url = stream_url(scheme, tmp_path)
    listener = Listener(url)
    try:
        if command == "run":
            (tmp_path / "rig.toml").write_text(own_ports(profile_text("ccd-dk")), encoding="utf-8")
            line = refusal("run", "--profile", str(tmp_path / "rig.toml"), "--set", f"source.endpoint={url}")
        else:
            line = refusal("listen", "city-car-driving", "--at", url)
    finally:
        listener.close()
    assert url in line
    assert "in use" in line.lower()


@pytest.mark.rt
def test_a_busy_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"udp://127.0.0.1:{taken.getsockname()[1]}"
        free = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        line = refusal("listen", "dk", "--at", free, "--at", url)
    assert url in line
    assert "in use" in line.lower() or "permitted" in line.lower()


@pytest.mark.rt
def test_a_refusal_of_the_whole_program_has_no_traceback():
    command = [sys.executable, "-m", "motioncue", "run", "--profile", "nope"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize("arguments", [["run"], ["demo"], ["listen", "dk", "--at", "udp://:1"]])
def test_a_duration_is_a_time(arguments, value):
    result = invoke(*arguments, "--duration", value)
    assert result.exit_code == 2
    assert "--duration" in result.stderr


@pytest.mark.rt
def test_a_simulator_with_a_time_does_not_wait_forever_for_an_engine(monkeypatch, tmp_path):
    monkeypatch.setattr(simulate, "WAIT_S", 0.1)
    url = stream_url(STREAM, tmp_path)
    result = invoke("simulate", "city-car-driving", "--to", url, "--drive", "still", "--duration", "1")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "error: --to: found nobody who listens there, in 0.1 s"


def test_a_recording_is_never_written_over(tmp_path):
    file = tmp_path / "drive.mcap"
    file.write_bytes(b"an hour of driving")
    url = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    result = invoke("listen", "morai", "--at", url, "--record", str(file), "--duration", "0.1")
    assert result.exit_code == 0, result.stderr
    assert file.read_bytes() == b"an hour of driving"
    with (tmp_path / "drive-1.mcap").open("rb") as other:
        assert other.read(5) == b"\x89MCAP"


def test_a_recording_in_no_folder_is_refused(tmp_path):
    path = tmp_path / "no" / "drive.mcap"
    line = refusal("listen", "morai", "--at", "udp://:1", "--record", str(path))
    assert f"recording {str(path)!r}: cannot be made" in line


def test_only_what_simulators_say_is_recorded(tmp_path):
    result = invoke("listen", "dk", "--at", "udp://:1", "--record", str(tmp_path / "drive.mcap"))
    assert result.exit_code == 2
    assert "--record is for what simulators say" in result.stderr


def test_recording_and_drive_exclude_each_other():
    result = invoke("simulate", "city-car-driving", "--to", HERE, "--recording", "sample", "--drive", "tour")
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


def test_version():
    assert __version__ in invoke("--version").stdout


def test_help_names_every_command_and_needs_none_of_them():
    text = "from motioncue.cli import cli; import sys; cli(['--help'], standalone_mode=False); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    printed, _, modules = result.stdout.rstrip().rpartition("\n")
    for name, what in COMMANDS.items():
        assert name in printed
        assert what in printed
        assert f"motioncue.cli.{name}" not in modules.split()
    assert "rich" not in modules.split()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_is_accepted_and_the_help_fits_eighty_columns(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert result.output.isascii()
    assert max(map(len, result.output.splitlines())) <= 80
    (example,) = (line.split("Example:")[1] for line in result.output.splitlines() if "Example:" in line)
    program, command, *arguments = shlex.split(example.partition(">")[0])
    assert (program, command) == ("motioncue", name)
    cli.get_command(None, name).make_context(name, arguments)  # refuses what the command does not have


def test_unknown_commands_are_refused():
    result = invoke("simulte")
    assert result.exit_code == 2
    assert "found 'simulte', allowed are demo, init, run, " in result.stderr
    assert "(did you mean 'simulate'?)" in result.stderr


def test_profiles_are_listed_with_their_descriptions():
    result = invoke("profiles")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert [line.split()[0] for line in lines] == builtin_profiles()
    for name, line in zip(builtin_profiles(), lines, strict=True):
        description = parse_profile(profile_text(name)).description
        assert description
        assert line.endswith(description)


def test_a_terminal_gets_lines_that_fit_it_and_a_program_whole_ones(monkeypatch, capsys):
    text = "  ok     name: " + "evidence and more, " * 9 + "udp://127.0.0.1:4567"
    echo(text, indent=9)
    assert capsys.readouterr().out == text + "\n"
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    echo(text, indent=9)
    first, *rest = capsys.readouterr().out.splitlines()
    assert max(map(len, (first, *rest))) <= 60
    assert all(line.startswith(" " * 9) and line[9] != " " for line in rest)
    assert " ".join([first.rstrip(), *map(str.strip, rest)]) == text


@pytest.mark.parametrize("name", builtin_profiles())
def test_a_shown_profile_is_a_profile(name, tmp_path):
    result = invoke("profiles", "show", name)
    assert result.exit_code == 0
    assert parse_profile(result.stdout, name=name) == parse_profile(profile_text(name), name=name)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux shows them")
def test_arithmetic_takes_no_processor_from_the_emitter():
    multiplied = "a = numpy.ones((500, 500)); a @ a; print(len(os.listdir('/proc/self/task')))"
    program = f"import os; import motioncue.__main__; import numpy; {multiplied}"
    counting = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", program], env=counting, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
