"""The Unity exporter, compiled and run by Mono on stand-ins for Unity and Vehicle Physics Pro, against our decoder."""

import math
import os
import shutil
import socket
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_virtual_peers import truth

from motioncue.drive.car import drive
from motioncue.sources.vehicle_physics_pro import packets as vpp

ROOT = Path(__file__).parents[2]
UNITY = ROOT / "contrib" / "unity"
SAMPLES = ROOT / "tests" / "data" / "packets" / "vehicle-physics-pro"

pytestmark = [
    pytest.mark.rt,
    pytest.mark.check,
    pytest.mark.skipif(not (shutil.which("mcs") and shutil.which("mono")), reason="Mono is not installed"),
]

OLDEST, NEWEST = ("old", ()), ("newer", ("VPP_NEWER", "UNITY_2020_2_OR_NEWER", "UNITY_6000_0_OR_NEWER"))
CHANNELS = {"old": {"Input": 0, "Vehicle": 1, "Settings": 2}, "newer": {"Input": 0, "Vehicle": 2, "Settings": 3}}
LENGTHS = {"old": {"Input": 10, "Vehicle": 22, "Settings": 10}, "newer": {"Input": 10, "Vehicle": 26, "Settings": 10}}
FIRST = {"Input": 100, "Vehicle": 1000, "Settings": -200}
"""The integer of id 0 in each channel; the next one is that of id 1."""

ATTITUDE = (0.18257418, 0.36514837, -0.54772256, 0.73029674)
CENTER = (11.5, -3.25, 700.125)
VELOCITY = (12.0, -0.5, 25.5)
SPIN_BEFORE, SPIN = (0.1, 0.2, 0.3), (0.3, -0.1, 0.7)
ACCELERATION = (1.5, -2.5, 3.75)
TIME, STEP = 33.25, 0.25


def compiled(folder, defines=()):
    """Return the exporter with its harness as a program; not one warning is allowed."""
    program = folder / "harness.exe"
    sources = [UNITY / "MotioncueExporter.cs", *sorted((UNITY / "stubs").glob("*.cs")), UNITY / "tests" / "Harness.cs"]
    command = ["mcs", "-warn:4", "-warnaserror", *(f"-define:{name}" for name in defines), f"-out:{program}", *sources]
    built = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in built.stdout + built.stderr
    return program


@pytest.fixture(scope="module", params=[OLDEST, NEWEST], ids=["old", "newer"])
def build(request, tmp_path_factory):
    """Return the SDK and the program compiled for it."""
    sdk, defines = request.param
    return sdk, compiled(tmp_path_factory.mktemp(sdk), defines)


class Exporter:
    """The exporter in a process of its own, and the socket it sends to."""

    def __init__(self, program, every=1):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(30)
        self.every = every
        # A small nursery is collected often, if anything is allocated.
        self.process = subprocess.Popen(
            ["mono", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "MONO_GC_PARAMS": "nursery-size=512k"},
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.socket.close()

    def do(self, *words):
        """Send one line; return the answer."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def open(self, host="127.0.0.1", port=None):
        return self.do("open", host, port or self.socket.getsockname()[1], self.every)

    def body(self, attitude, center, velocity, spin):
        assert self.do("body", *attitude, *center, *velocity, *spin) == "ok"

    def accelerate(self, acceleration):
        assert self.do("acceleration", *acceleration) == "ok"

    def step(self, time, dt=STEP):
        assert self.do("step", time, dt) == "ok"

    def received(self):
        return self.socket.recv(4096)

    def errors(self):
        """End the process; return what it wrote as errors."""
        self.process.stdin.close()
        text = self.process.stderr.read()
        assert self.process.wait(30) == 0
        return text

    def fill(self, sdk):
        """Fill every place of the bus with a distinct value."""
        for channel, length in LENGTHS[sdk].items():
            for number in range(length):
                assert self.do("set", CHANNELS[sdk][channel], number, FIRST[channel] + number) == "ok"


def second_packet(sdk, program):
    """Return what the exporter sends at the second of two physics steps."""
    with Exporter(program) as exporter:
        assert exporter.open() == "ok"
        exporter.fill(sdk)
        exporter.accelerate(ACCELERATION)
        exporter.body(ATTITUDE, CENTER, VELOCITY, SPIN_BEFORE)
        exporter.step(TIME - STEP)
        exporter.received()
        exporter.body(ATTITUDE, CENTER, VELOCITY, SPIN)
        exporter.step(TIME)
        return exporter.received()


def check_values(sdk, data):
    """Compare every field of a sample packet with what the vehicle was set to."""
    layout = vpp.identify(data)
    assert layout is vpp.STATES[sdk]
    fields = layout.decode(data)
    to_car = Rotation.from_quat(ATTITUDE).inv()
    assert (fields["sdk"], fields["carried"], fields["not_carried"]) == ({"old": "OL", "newer": "NW"}[sdk], 15, 240)
    assert (fields["counter"], fields["time"]) == (1, TIME)
    assert fields["attitude"] == np.array(ATTITUDE, np.float32).tolist()
    assert fields["position"] == list(CENTER)
    assert fields["acceleration"] == list(ACCELERATION)
    np.testing.assert_allclose(fields["velocity"], to_car.apply(VELOCITY), rtol=0, atol=1e-5)
    np.testing.assert_allclose(fields["angular_velocity"], to_car.apply(SPIN), rtol=0, atol=1e-6)
    change = (np.array(SPIN) - SPIN_BEFORE) / STEP
    np.testing.assert_allclose(fields["angular_acceleration"], to_car.apply(change), rtol=0, atol=1e-6)
    bus = vpp.bus_of(data)
    for channel, length in LENGTHS[sdk].items():
        values = [*range(FIRST[channel], FIRST[channel] + length)]
        assert bus.raw_channel(channel).tolist() == values
        count = {"Input": 16, "Vehicle": 32, "Settings": 16}[channel]
        sent = struct.unpack_from(f"<{count}i", data, {"Input": 100, "Vehicle": 164, "Settings": 292}[channel])
        assert sent == (*values, *[-2147483647] * (count - length))
    assert fields["Vehicle.AidedSteer"] == {"old": 1021, "newer": 1022}[sdk]
    assert layout.encode(fields) == data


def test_every_value_of_a_packet(build):
    sdk, program = build
    check_values(sdk, second_packet(sdk, program))


def test_the_sample_packets_are_what_the_exporter_sends(build):
    sdk, program = build
    assert second_packet(sdk, program) == (SAMPLES / f"exporter_{sdk}.bin").read_bytes()


def test_a_drive_through_the_exporter_is_the_motion_of_the_car(build):
    """The virtual car in Unity's world axes; the exporter converts them into the car's."""
    _, program = build
    states = drive("tour", 10.0)
    unity = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])  # east, up, north
    car = Rotation.from_quat(np.roll(states["orientation"], -1, axis=1))
    mirrored = Rotation.from_matrix(unity @ car.as_matrix() @ unity.T)
    taking = vpp.intake(vpp.Options())
    rows = []
    with Exporter(program) as exporter:
        exporter.open()
        exporter_attitude = mirrored.as_quat()
        local = mirrored.inv().apply(states["acceleration"] @ unity.T)
        for state, attitude, acceleration in zip(states, exporter_attitude, local, strict=True):
            exporter.accelerate(acceleration)
            exporter.body(
                attitude, unity @ state["position"], unity @ state["velocity"], -(unity @ state["angular_velocity"])
            )
            exporter.step(state["time"], 0.1)
            taking.feed(exporter.received(), round(state["time"] * 1e9))
            rows.append(taking.newest())
    assert taking.rejected == taking.discontinuities == {}
    motion = np.concatenate(rows)
    for channel, expected in truth(states).items():
        error = motion[channel] - expected
        if channel == "yaw":
            error = (error + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(error, 0.0, rtol=0, atol=2e-5, err_msg=channel)
        assert np.ptp(expected) > 0.01, channel


def test_angular_acceleration_needs_a_step_before_and_none_over_a_reposition(build):
    _, program = build
    with Exporter(program) as exporter:
        exporter.open()
        found = []
        for time, spin in enumerate((1.0, 3.0, 7.0, 8.0)):
            if spin == 7.0:
                exporter.do("reposition")
            exporter.body((0, 0, 0, 1), CENTER, VELOCITY, (spin, 0, 0))
            exporter.step(time, 0.5)
            found.append(vpp.identify(data := exporter.received()).decode(data)["angular_acceleration"][0])
        assert found == [0.0, 4.0, 0.0, 2.0]


def test_every_nth_step_is_sent_and_counted(build):
    _, program = build
    with Exporter(program, every=3) as exporter:
        exporter.open()
        for time in range(10):
            exporter.body((0, 0, 0, 1), CENTER, VELOCITY, (time, 0, 0))
            exporter.step(time, 1.0)
        found = [vpp.identify(data := exporter.received()).decode(data) for _ in range(4)]
        assert [fields["time"] for fields in found] == [0.0, 3.0, 6.0, 9.0]
        assert [fields["counter"] for fields in found] == [0, 1, 2, 3]
        assert [fields["angular_acceleration"][0] for fields in found] == [0.0, 1.0, 1.0, 1.0]  # over one step
        exporter.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            exporter.received()


def test_a_disabled_vehicle_sends_nothing_and_an_enabled_one_again(build):
    _, program = build
    with Exporter(program) as exporter:
        exporter.open()
        exporter.body((0, 0, 0, 1), CENTER, VELOCITY, SPIN)
        exporter.step(1.0)
        exporter.do("close")
        exporter.step(2.0)
        exporter.do("close")
        exporter.open()
        exporter.step(3.0)
        found = [vpp.identify(data := exporter.received()).decode(data) for _ in range(2)]
        assert [(fields["time"], fields["counter"]) for fields in found] == [(1.0, 0), (3.0, 1)]


def test_nobody_listening_is_no_error_and_a_step_allocates_nothing(build):
    _, program = build
    with Exporter(program) as exporter:
        port = exporter.socket.getsockname()[1]
        exporter.socket.close()
        assert exporter.open(port=port) == "ok"
        exporter.body((0, 0, 0, 1), CENTER, VELOCITY, SPIN)
        # Sixteen bytes, the smallest object, at each step would fill the nursery three times.
        assert exporter.do("measure", 100_000) == "0"


@pytest.mark.parametrize(("host", "port"), [("x" * 300, 5000), ("127.0.0.1", 70000)], ids=["host", "port"])
def test_a_place_that_cannot_be_disables_the_exporter_with_a_reason(build, host, port):
    _, program = build
    with Exporter(program) as exporter:
        assert exporter.open(host, port) == "disabled"
        exporter.step(1.0)
        assert f"cannot send to {host}, port {port}" in exporter.errors()


def test_an_unknown_sdk_disables_the_exporter_with_a_reason(tmp_path):
    with Exporter(compiled(tmp_path, ["VPP_UNKNOWN"])) as exporter:
        assert exporter.open() == "disabled"
        assert "numbers its data bus in an unknown way" in exporter.errors()


def test_nan_passes_unchanged(build):
    sdk, program = build
    with Exporter(program) as exporter:
        exporter.open()
        exporter.body((0, 0, 0, 1), CENTER, VELOCITY, SPIN)
        exporter.do("set", CHANNELS[sdk]["Vehicle"], 0, -2147483648)
        exporter.accelerate(("NaN", 0, 0))
        exporter.step(1.0)
        data = exporter.received()
        assert math.isnan(vpp.bus_of(data).get("Vehicle", "Speed"))
        taking = vpp.intake(vpp.Options())
        taking.feed(data, 0)
        assert taking.rejected == {"not_finite": 1}


def test_the_rest_of_the_bus_comes_in_a_second_packet(build):
    sdk, program = build
    with Exporter(program, every=2) as exporter:
        exporter.do("more")
        exporter.open()
        exporter.body((0, 0, 0, 1), CENTER, VELOCITY, SPIN)
        exporter.fill(sdk)
        if sdk == "newer":
            for number in range(16):
                exporter.do("set", 1, number, 3000 + number)
            for number in range(100):
                exporter.do("set", 4, number, 5000 + number)
        exporter.step(1.0)
        exporter.step(2.0)
        exporter.step(3.0)
        datagrams = [exporter.received() for _ in range(4)]
    assert [vpp.identify(data) for data in datagrams] == 2 * [vpp.STATES[sdk], vpp.MORE[sdk]]
    fields = vpp.MORE[sdk].decode(datagrams[3])
    assert (fields["counter"], fields["time"]) == (1, 3.0)
    assert fields["carried"] == {"old": 4, "newer": 7}[sdk]
    bus = vpp.bus_of(datagrams[3])
    named = [bus.raw("Settings", name) for name in vpp.NAMED]
    nan = -2147483647
    assert named == ([nan] * 4 if sdk == "old" else [-192, -191, nan, nan])
    assert math.isnan(bus.get("Vehicle", "Speed"))  # not in this packet
    if sdk == "newer":
        assert bus.raw_channel("RaceInput").tolist() == [*range(3000, 3016)]
        assert bus.raw_channel("Custom").tolist() == [*range(5000, 5100)]
        assert bus.get("RaceInput", "BrakeBias") == 30.05
    taking = vpp.intake(vpp.Options())
    for data in datagrams:
        taking.feed(data, 1_000_000_000)
    assert (taking.accepted, taking.others, taking.rejected) == (2, 2, {})
