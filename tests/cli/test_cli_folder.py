"""A folder of profiles: switched by a key, a command, Python and the car that the simulator names."""

import logging
import socket
import struct
import threading
import time

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import eventually, free_port
from programs import INTERRUPT, Program
from trouble_helpers import broken

import motioncue
from motioncue.cli import cli
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.run import Folder
from motioncue.cli.tell import Hearing
from motioncue.cli.watch import Operator
from motioncue.core.channels import TICK_DTYPE
from motioncue.engine.assembly import intake_of
from motioncue.errors import ConfigError
from motioncue.profile.profile import parse_profile
from motioncue.wire.description import CarField

PACKET = struct.Struct("<fi4s20x")
REST = ", ".join(
    f'{{ offset = {12 + 4 * place}, type = "f4", channel = "{name}" }}'
    for place, name in enumerate(("sway", "heave", "roll", "pitch", "yaw"))
)
TEXT = """
cars = {cars}
[source]
system = "custom"
{endpoint}
car = {car}
[source.packet]
size = 32
fields = [{{ offset = 0, type = "f4", channel = "surge" }}, {rest}]
[cueing]
algorithm = "classical"
preset = "simona"
surge = {{ gain = {gain} }}
[supervisor]
fade_s = 0.2
hold_s = 2
[output]
motion = "udp://127.0.0.1:{out}"
packet = {{ size = 4, fields = [{{ offset = 0, type = "f4", channel = "surge_displacement" }}] }}
"""
NUMBER = '{ offset = 4, type = "i4" }'


def text(gain=0.5, cars="[]", endpoint="", out=9, car=NUMBER):
    return TEXT.format(rest=REST, gain=gain, cars=cars, endpoint=endpoint, out=out, car=car)


@pytest.fixture
def garage(tmp_path):
    """Return a folder with three profiles."""
    out = free_port(socket.SOCK_DGRAM)
    for name, gain, cars in (("a-road", 0.5, "[1, 2]"), ("b-rally", 0.3, "[-7]"), ("c-truck", 0.2, "[]")):
        (tmp_path / f"{name}.toml").write_text(text(gain, cars, out=out), encoding="utf-8")
    return tmp_path


@pytest.fixture
def own_runs(tmp_path_factory, monkeypatch):
    """Use a folder of our own for what tells commands where runs are, on Linux and on Windows."""
    for name in ("XDG_RUNTIME_DIR", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("runs")))


class Running:
    """An engine that notes what it is asked to change."""

    def __init__(self, profile=None):
        self.car, self.used, self.profile = None, [], profile

    requested = property(lambda self: self.profile)

    def retune(self, profile):
        self.used.append(profile.name)
        self.profile = profile

    def stats(self):
        return {"state": "RUNNING", "outputs": {}}

    def newest(self):
        return np.zeros(1, TICK_DTYPE)


def switched(garage):
    folder = Folder(garage, ())
    folder.engine = Running(folder.first)
    return folder, folder.engine


# The folder.


def test_the_first_by_name_begins_and_next_goes_round(garage):
    folder, engine = switched(garage)
    assert list(folder.profiles) == ["a-road", "b-rally", "c-truck"]
    assert (folder.used, folder.first.name) == ("a-road", "a-road")
    for _ in range(4):
        folder.next()
    assert engine.used == ["b-rally", "c-truck", "a-road", "b-rally"]
    folder.switch("c-truck")
    assert (folder.used, engine.used[-1]) == ("c-truck", "c-truck")
    with pytest.raises(ConfigError, match=r"profile: found 'c-trukc', .*did you mean 'c-truck'"):
        folder.switch("c-trukc")


def test_overrides_count_for_all(garage):
    folder = Folder(garage, ("supervisor.fade_s=0.7",))
    assert [each.supervisor.fade_s for each in folder.profiles.values()] == [0.7] * 3


@pytest.mark.parametrize(
    ("line", "other", "says"),
    [
        (
            "udp://127.0.0.1:",
            "udp://127.0.0.2:",
            r"b-rally\.toml: output\.motion: found .*while it runs",
        ),
        ("size = 32", "size = 33", r"b-rally\.toml: source\.packet\.size: found 33, allowed is 32 while it runs"),
        ("gain = ", "grain = ", r"b-rally\.toml: .*unknown key"),
        ("cars = [-7]", "cars = [2]", r"b-rally\.toml: cars: found 2, which a-road\.toml has too"),
        ("[output]", "[output]\nrate_hz = 100", r"b-rally\.toml: output\.rate_hz: found 100\.0, .* while it runs"),
        (
            'type = "i4" }',
            'type = "u4" }',
            r"b-rally\.toml: source\.car\.type: found 'u4', allowed is 'i4' while it runs",
        ),
    ],
)
def test_what_cannot_be_switched_to_is_refused_before_anything_moves(garage, line, other, says):
    file = garage / "b-rally.toml"
    file.write_text(file.read_text(encoding="utf-8").replace(line, other), encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        Folder(garage, ())


def test_an_empty_folder_and_one_to_watch_are_refused(tmp_path):
    result = CliRunner().invoke(cli, ["run", "--profile", str(tmp_path)])
    assert (result.exit_code, "found no *.toml" in result.stderr) == (2, True)
    (tmp_path / "a.toml").write_text(text(endpoint='endpoint = "udp://127.0.0.1:9"', out=8), encoding="utf-8")
    result = CliRunner().invoke(cli, ["run", "--profile", str(tmp_path), "--watch"])
    assert (result.exit_code, "--watch: found the folder" in result.stderr) == (2, True)


# Keys and commands.


def test_the_key_n_asks_for_the_next_one_if_enter_follows():
    assert Operator().asked("n", 0.0) == []
    assert Operator().asked("n\n", 0.0) == ["next"]
    assert Operator().asked("no\n", 0.0) == []


@pytest.mark.usefixtures("own_runs")
def test_a_command_names_the_profile(garage):
    folder, engine = switched(garage)
    tell = CliRunner()
    with Hearing(engine, Interrupts(), folder):
        assert tell.invoke(cli, ["tell", "profile=b-rally"]).exit_code == 0
        assert tell.invoke(cli, ["tell", f"profile={garage / 'c-truck.toml'}"]).exit_code == 0
        assert engine.used == ["b-rally", "c-truck"]
        result = tell.invoke(cli, ["tell", "profile=d"])
        assert (result.exit_code, "profile: found 'd', allowed" in result.stderr) == (2, True)
        result = tell.invoke(cli, ["tell", "profile=a-road", "supervisor.fade_s=1"])
        assert (result.exit_code, "one of them at a time" in result.stderr) == (2, True)
        assert folder.used == "c-truck"


@pytest.mark.usefixtures("own_runs")
def test_without_a_folder_a_command_may_name_a_file_and_a_slip_needs_a_word_more(garage, monkeypatch):
    engine = Running(motioncue.load_profile(garage / "a-road.toml"))
    monkeypatch.chdir(garage)
    with Hearing(engine, Interrupts()):
        assert CliRunner().invoke(cli, ["tell", "profile=b-rally.toml"]).exit_code == 0
        assert engine.used == ["b-rally"]
        (garage / "b-rally.toml").write_text(text(gain=0.9), encoding="utf-8")  # three times as much
        result = CliRunner().invoke(cli, ["tell", "profile=b-rally.toml"])
        assert (result.exit_code, "--sure" in result.stderr) == (2, True)
        assert CliRunner().invoke(cli, ["tell", "profile=b-rally.toml", "--sure"]).exit_code == 0
    assert engine.used == ["b-rally"] * 2


# The car.


def test_the_car_chooses_once_and_one_that_nobody_has_changes_nothing(garage, caplog):
    caplog.set_level(logging.INFO, "motioncue")
    folder, engine = switched(garage)
    assert not folder.look()
    for car in (1, 1, -7, 99, 99, -7, 2):
        engine.car = car
        folder.look()
    assert engine.used == ["b-rally", "a-road"]
    assert "car 99: no profile has it among its cars" in caplog.text
    folder.switch("c-truck")  # by hand, and the same car goes on
    assert not folder.look()
    assert folder.used == "c-truck"


@pytest.mark.parametrize(
    ("field", "data", "car"),
    [
        ({"offset": 4, "type": "i4"}, PACKET.pack(0.0, -7, b"abcd"), -7),
        ({"offset": 4, "type": "u2"}, PACKET.pack(0.0, 0x10002, b"abcd"), 2),
        ({"offset": 4, "type": "u4", "byte_order": "big"}, PACKET.pack(0.0, 1, b"abcd"), 1 << 24),
        ({"offset": 8, "type": "S4"}, PACKET.pack(0.0, 1, b"XRT"), "XRT"),
        ({"offset": 4, "type": "S8"}, PACKET.pack(0.0, 0x41424344, b"abcd"), "DCBAabcd"),
        ({"offset": 4, "type": "i8"}, PACKET.pack(0.0, -1, b"\xff" * 4), -1),
        ({"offset": 4, "type": "i4", "size": 32}, PACKET.pack(0.0, 5, b""), 5),
        ({"offset": 4, "type": "i4", "size": 33}, PACKET.pack(0.0, 5, b""), None),
        ({"offset": 30, "type": "i4"}, PACKET.pack(0.0, 5, b""), None),  # beyond its end
    ],
)
def test_what_a_packet_says_about_the_car(field, data, car):
    profile = parse_profile(text(), overrides=[{"source.car": field}])
    intake = intake_of(profile)
    intake.begin(10**9)
    assert intake.car is None
    intake.feed(data, 10**9)
    found = intake.car
    field = msgspec.convert(field, CarField)
    assert (None if found is None else field.value(found)) == car


def test_a_packet_that_is_refused_names_no_car():
    intake = intake_of(parse_profile(text()))
    intake.begin(10**9)
    intake.feed(PACKET.pack(float("nan"), 5, b""), 10**9)
    intake.feed(PACKET.pack(0.0, 5, b"") + b"x", 10**9)
    assert intake.car is None


# Whole runs.


@pytest.mark.rt
@pytest.mark.check
def test_in_python_a_change_of_profile_fades_and_keeps_the_bounds(garage):
    profiles = [motioncue.load_profile(file) for file in sorted(garage.glob("*.toml"))]
    with motioncue.Engine(profiles[0], trace=4000) as engine:
        assert engine.car is None
        for number in range(300):
            engine.feed(PACKET.pack(2.0, 1 + number // 150, b""))
            if number % 100 == 99:
                engine.retune(garage / f"{('b-rally', 'c-truck', 'a-road')[number // 100]}.toml")
            time.sleep(0.005)
        assert engine.car == 2
        eventually(lambda: engine.profile.name == "a-road")
    trace = engine.trace
    assert engine.stats()["retunes"] == 3
    whole = np.flatnonzero(np.diff(trace["index"]) > 1)
    first = trace[: whole[0] + 1] if len(whole) else trace  # a machine that stalls leaves ticks out
    assert broken(first["cue"], profiles[0].bounds(), 3_000_030e-9) == []


@pytest.mark.rt
@pytest.mark.usefixtures("own_runs")
def test_a_run_follows_the_car_and_a_command(garage):
    port = free_port(socket.SOCK_DGRAM)
    endpoint = f'endpoint = "udp://127.0.0.1:{port}"'
    for file in garage.glob("*.toml"):
        now = file.read_text(encoding="utf-8")
        file.write_text(now.replace("car = {", f"{endpoint}\ncar = {{"), encoding="utf-8")
    car, over = [1], threading.Event()

    def drive():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while not over.wait(0.01):
                out.sendto(PACKET.pack(1.0, car[0], b""), ("127.0.0.1", port))

    simulator = threading.Thread(target=drive)
    simulator.start()
    try:
        with Program("run", "--profile", str(garage), "--json") as run:
            run.says("offline to engaging")
            run.says("car 1: profile a-road")
            car[0] = -7
            run.says("car -7: profile b-rally")
            run.says("retuned: ")
            assert CliRunner().invoke(cli, ["tell", "profile=c-truck"]).exit_code == 0
            run.says("profile c-truck")
            assert CliRunner().invoke(cli, ["tell", "next"]).exit_code == 0
            run.says("profile a-road")
            run.signal(INTERRUPT)
            stats = run.end()
    finally:
        over.set()
        simulator.join()
    assert stats["retunes"] >= 2  # of changes within a fade the newest counts
    assert stats["state"] == "OFFLINE"
