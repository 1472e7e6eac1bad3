"""An engine fed by the program that runs it: the same motion, checks, supervisor and recording as from a network."""

import ctypes
import importlib.util
import itertools
import math
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from c_api import c_api
from helpers import Sink, truth
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import motioncue
from motioncue.check.check import check
from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.drive.car import drive
from motioncue.engine.assembly import load_profile
from motioncue.engine.embed import Feeder
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.replay import first_difference, repeat
from motioncue.errors import ConfigError
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.safety.supervisor import State
from motioncue.sources import system_of

EXAMPLES = Path(__file__).parents[2] / "examples"
START = 1_000_000_000
CHANNELS = MOTION_DTYPE.names[:11]


def rows_of(states):
    """Return the frames of a virtual drive as a program has them, shape (n,)."""
    rows = np.zeros(len(states), MOTION_DTYPE)
    for channel, values in truth(states).items():
        rows[channel] = values
    rows["engine_speed"] = states["engine_speed"]
    rows["frame_time"] = states["time"]
    return rows


def fed(profile, frames, rate_hz):
    """Return a pipeline of a profile on a clock that takes no time, to which frames were fed, and its clock."""
    clock = FakeClock(START)
    pipeline = Pipeline(profile, clock, trace=20_000)
    feeder = Feeder(pipeline.intake, clock)
    for index, frame in enumerate(frames):
        pipeline.emitter.run(until_ns=START + round(index * 1e9 / rate_hz))
        feeder.feed(frame)
    return pipeline, feeder


@pytest.mark.parametrize("name", ["tour", "turns"])
def test_a_frame_that_is_fed_is_the_motion_that_is_followed(name):
    states = drive(name, 100.0)
    rows = rows_of(states)
    intake = system_of(load_profile("program-dk").source).intake()
    clock = FakeClock(START)
    feeder = Feeder(intake, clock)
    for place in range(len(rows)):
        assert feeder.feed(rows[place : place + 1])
        motion = intake.frame()[0]
        for channel in CHANNELS:
            away = motion[channel] - rows[place][channel]
            assert abs(math.remainder(away, 2 * math.pi) if channel == "yaw" else away) < 1e-9, channel
        assert motion["frame_time"] == pytest.approx(states["time"][place] - states["time"][0])
    assert intake.accepted == len(rows)
    assert intake.discontinuities == {}


def test_what_is_not_a_frame_is_counted_and_changes_nothing():
    intake = system_of(load_profile("program-dk").source).intake()
    feeder = Feeder(intake, FakeClock(START))
    row = np.zeros(1, MOTION_DTYPE)
    row["surge"] = 1.0
    assert feeder.feed(row)
    before = intake.frame().tobytes()
    for channel, value in itertools.product(CHANNELS[:9], (math.nan, math.inf, -math.inf, 1e9)):
        broken = row.copy()
        broken[channel] = value
        assert not feeder.feed(broken)
    for data in (b"", row.tobytes()[:-1], row.tobytes() + b"\0", bytes(200_000), np.zeros(2, MOTION_DTYPE)):
        assert not feeder.feed(data)
    assert intake.frame().tobytes() == before
    assert intake.rejected == {"not_finite": 27, "implausible": 9, "type": 5}


@pytest.mark.parametrize("given", [1.0, "x", None, [1.0], {"surge": 1.0}])
def test_what_is_no_memory_is_refused_at_once(given):
    with pytest.raises(TypeError, match="bytes-like"):
        Feeder(system_of(load_profile("program-dk").source).intake(), FakeClock(START)).feed(given)


@given(st.lists(st.lists(st.floats(), min_size=11, max_size=11), max_size=6), st.binary(max_size=120))
@settings(max_examples=60)
def test_anything_that_is_fed_leaves_a_finite_motion(frames, data):
    intake = system_of(load_profile("program-dk").source).intake()
    feeder = Feeder(intake, FakeClock(START))
    for numbers in frames:
        row = np.zeros(1, MOTION_DTYPE)
        for channel, number in zip(CHANNELS, numbers, strict=True):
            row[channel] = number
        feeder.feed(row)
    feeder.feed(data)
    assert all(np.isfinite(intake.frame()[channel]).all() for channel in CHANNELS[:9])
    assert intake.accepted + sum(intake.rejected.values()) == len(frames) + 1


def test_frames_that_stop_are_held_then_faded_out_and_followed_again():
    rows = rows_of(drive("turns", 100.0))[:500]
    pipeline, feeder = fed(load_profile("program-dk"), rows[:, None], 100.0)
    assert pipeline.emitter.state == "RUNNING"
    pipeline.emitter.run(until_ns=START + 8_000_000_000)
    assert pipeline.emitter.state == "OFFLINE"
    assert not np.abs(pipeline.emitter.newest()["cue"]["sway"]).any()
    later = rows.copy()
    later["frame_time"] += 100.0
    for index, row in enumerate(later[:, None]):
        pipeline.emitter.run(until_ns=START + 8_000_000_000 + index * 10_000_000)
        feeder.feed(row)
    assert pipeline.emitter.state == "RUNNING"
    moves, _ = pipeline.transitions()
    assert [move["reason"] for move in moves][:4] == ["input", "cue_reached", "input_overdue", "input_lost"]


def test_a_jump_in_what_is_fed_parks_the_platform():
    rows = rows_of(drive("turns", 100.0))[:300]
    rows["pitch"][250:] += 1.0  # a respawn on a slope
    pipeline, _ = fed(load_profile("program-dk"), rows[:, None], 100.0)
    assert State.PARKING in pipeline.emitter.trace["state"]
    assert pipeline.intake.discontinuities


def test_a_source_with_an_endpoint_or_of_a_built_in_system_is_not_fed():
    engine = motioncue.Engine("ccd-dk")
    with pytest.raises(ConfigError, match=r"^source\.endpoint: found 'pipe://DynamicCabPipe', allowed is none for an"):
        engine.feed(np.zeros(1, MOTION_DTYPE))
    text = profile_text("morai-dk").replace("endpoint = ", "allow = [] #")
    with pytest.raises(
        ConfigError, match=r"^source\.endpoint: missing, allowed is an endpoint that the simulator connects or sends to"
    ):
        motioncue.Engine(parse_profile(text))
    with pytest.raises(ConfigError, match=r"^source\.allow: allowed with source\.endpoint"):
        load_profile("program-dk", 'source.allow=["10.0.0.1"]')


def test_an_engine_that_has_not_begun_is_not_fed():
    with pytest.raises(RuntimeError, match="has not been started"):
        motioncue.Engine("program-dk").feed(np.zeros(1, MOTION_DTYPE))


# ---- whole engines ---------------------------------------------------------------------------------------------------


def sent_to(sink, *overrides, name="program-dk"):
    """Return a profile that sends its motion to a sink, and nothing else."""
    own = f"output={{ system = 'dk', motion = '{sink.url}' }}"
    return load_profile(name, own, *overrides)


@pytest.mark.rt
@pytest.mark.check
def test_an_engine_sends_what_it_is_fed_and_its_recording_gives_the_same_bits(tmp_path):
    rows = rows_of(drive("turns", 100.0))[:200]
    with Sink() as sink:
        engine = motioncue.Engine(sent_to(sink), record=tmp_path / "fed.mcap")
        with engine:
            tick = threading.Event()
            for row in rows:
                assert engine.feed(row)
                tick.wait(0.01)
            broken = rows[-1:].copy()
            broken["heave"] = math.inf
            assert not engine.feed(broken)
            stats = engine.stats()
        assert not engine.feed(rows[0])  # ended
    assert stats["frames_received"] == len(rows)
    assert stats["rejected"] == {"not_finite": 1}
    assert stats["sessions"] == 1
    recorded = motioncue.read(tmp_path / "fed.mcap")
    assert [package.data for package in recorded.packages] == [row.tobytes() for row in (*rows, *broken)]
    again = repeat(recorded)
    assert len(again.ticks) == len(recorded.ticks) > 600
    assert first_difference(recorded.ticks, again.ticks) is None
    assert (again.ticks["state"] == State.RUNNING).any()


@pytest.mark.rt
def test_threads_that_feed_at_once_never_mix_or_lose_count(tmp_path):
    api = c_api()
    with Sink() as sink:
        (tmp_path / "fed.toml").write_text(
            profile_text("program-dk").replace("udp://127.0.0.1:4445", sink.url).replace("gauges =", "# "),
            encoding="utf-8",
        )
        error = ctypes.create_string_buffer(1000)
        handle = api.start(str(tmp_path / "fed.toml").encode(), error, 1000)
        assert handle, error.value
        # The handle's second member is the engine.
        engine = ctypes.cast(ctypes.c_void_p.from_address(handle + 8).value, ctypes.py_object).value
        taken = [0] * 4

        def feed(number):
            row = np.zeros(1, MOTION_DTYPE)
            row["speed"] = row["surge"] = number
            for _ in range(20_000):
                taken[number] += api.feed(handle, row.tobytes(), 104)  # without the GIL

        threads = [threading.Thread(target=feed, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.feed(np.zeros(1, MOTION_DTYPE))  # counts what was turned away before
        stats = engine.stats()
        api.stop(handle)
    assert stats["frames_received"] == sum(taken) + 1
    assert sum(taken) + stats["rejected"].get("second_simulator", 0) == 80_000
    assert set(stats["rejected"]) <= {"second_simulator"}


# ---- the examples ----------------------------------------------------------------------------------------------------


def example(folder, name):
    """Return an example's module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.rt
def test_the_physics_loop_drives_the_platform():
    with Sink() as sink:
        stats = example("feed_python", "loop").run(sent_to(sink), 0.3)
    assert stats["frames_received"] == 30
    assert stats["rejected"] == stats["events"] == {}


class Vector:
    """A carla.Vector3D, or a carla.Location."""

    def __init__(self, xyz):
        self.x, self.y, self.z = map(float, xyz)


class Lane:
    """What hero.py uses of CARLA's map and of a waypoint: a lane of one curvature [1/m], which forks somewhere."""

    def __init__(self, curvature, fork_m, place=0.0):
        self._own, self.is_junction, self.place = (curvature, fork_m), place > fork_m, place
        yaw = (math.degrees(curvature * place) + 180.0) % 360.0 - 180.0
        self.transform = types.SimpleNamespace(rotation=types.SimpleNamespace(yaw=yaw, pitch=3.0, roll=0.0))

    def get_waypoint(self, location):
        return self

    def next(self, distance):
        return [Lane(*self._own, self.place + distance)]


class World:
    """What hero.py uses of CARLA's world, in which the virtual car drives; x north, y east, z up."""

    def __init__(self, states):
        self._states = states
        self._heard = {}
        turned = Rotation.from_quat(np.roll(states["orientation"], -1, axis=1)).as_matrix()
        self._forward, self._right = turned[:, :, 0], turned[:, :, 1]  # in north, east, down

    def get_world(self):
        return self

    def get_map(self):
        return Lane(0.02, fork_m=1e9)

    def set_timeout(self, seconds):
        assert seconds > 0

    def get_actors(self):
        return types.SimpleNamespace(
            filter=lambda pattern: [
                types.SimpleNamespace(id=7, attributes={"role_name": "autopilot"}),
                types.SimpleNamespace(id=8, attributes={"role_name": "hero"}),
            ]
        )

    def on_tick(self, callback):
        self._heard[3] = callback
        return 3

    def remove_on_tick(self, number):
        del self._heard[number]

    def snapshot(self, index):
        """Return the snapshot of a step; the actor is left out of the first."""
        up = np.array([1.0, 1.0, -1.0])
        state = self._states[index]
        transform = types.SimpleNamespace(
            location=Vector(state["position"] * up),
            get_forward_vector=lambda: Vector(self._forward[index] * up),
            get_right_vector=lambda: Vector(self._right[index] * up),
        )
        actor = types.SimpleNamespace(
            get_transform=lambda: transform,
            get_velocity=lambda: Vector(state["velocity"] * up),
            get_acceleration=lambda: Vector(np.zeros(3)),
        )
        return types.SimpleNamespace(
            find=lambda number: actor if number == 8 and index else None,
            timestamp=types.SimpleNamespace(elapsed_seconds=float(state["time"])),
        )

    def step(self, index):
        for callback in self._heard.values():
            callback(self.snapshot(index))


@pytest.fixture
def carla(monkeypatch):
    """A stand-in for CARLA's module, and the example."""
    world = World(drive("tour", 100.0))
    module = types.ModuleType("carla")
    module.Client = lambda host, port: world
    monkeypatch.setitem(sys.modules, "carla", module)
    return world, example("feed_carla", "hero")


def test_the_carla_example_describes_what_it_feeds_and_every_sign_holds(carla):
    world, hero = carla
    states = drive("tour", 100.0)
    source = system_of(load_profile(EXAMPLES / "feed_carla" / "carla.toml").source)
    row, rows = np.zeros(1, hero.RECORD), []
    vehicle = hero.hero_of(world)
    assert not hero.fill(row[0], world.snapshot(0), vehicle)
    for index in range(1, len(states)):
        assert hero.fill(row[0], world.snapshot(index), vehicle)
        rows.append(row.tobytes())
    report = check(source, rows)
    assert [finding.name for finding in report.findings if finding.verdict == "wrong"] == []
    right = {finding.name for finding in report.findings if finding.verdict == "ok"}
    assert {"velocity and position", "attitude and course", "pitch and climb", "yaw and course"} <= right
    intake = source.intake()
    intake.begin(0)
    expected = truth(states)
    for index, data in enumerate(rows, 1):
        intake.feed(data, START + index * 10_000_000)
        motion = intake.frame()[0]
        for channel in ("roll", "pitch", "speed"):
            assert abs(motion[channel] - expected[channel][index]) < 1e-9, channel
        assert abs(math.remainder(motion["yaw"] - expected["yaw"][index], 2 * math.pi)) < 1e-9


@pytest.mark.parametrize("curvature", [0.02, -0.05])
def test_the_carla_example_says_what_the_lane_makes_felt(carla, curvature):
    """On a bend k at speed v: v^2 k to the inside, v k about the vertical, at most 4 m/s^2; nothing beyond a fork."""
    _, hero = carla
    car = types.SimpleNamespace(
        get_velocity=lambda: Vector((6.0, 8.0, 0.0)),
        get_acceleration=lambda: Vector((0.0, 1.5, 0.0)),
        get_transform=lambda: types.SimpleNamespace(location=None, get_forward_vector=lambda: Vector((0.6, 0.8, 0.0))),
    )
    rows = hero.ahead_of(Lane(curvature, fork_m=22.0), car)
    known = np.array(motioncue.AHEAD_S) < 2.0  # 10 m/s, and 3 m to look around
    speed = 10.0 if curvature > 0.0 else math.sqrt(4.0 / 0.05)
    np.testing.assert_allclose(rows["sway"][known], speed**2 * curvature, rtol=1e-9)
    np.testing.assert_allclose(rows["yaw_rate"][known], speed * curvature, rtol=1e-9)
    np.testing.assert_allclose(rows["surge"][known], 1.2 * np.exp(-np.array(motioncue.AHEAD_S))[known])
    np.testing.assert_allclose(np.degrees(rows["pitch"][known]), 3.0)
    np.testing.assert_array_equal(np.isfinite(rows["surge"]), known)
    car.get_velocity = lambda: Vector((1.0, 0.0, 0.0))
    assert np.isnan(hero.ahead_of(Lane(curvature, fork_m=22.0), car)["surge"]).all()


@pytest.mark.rt
def test_the_carla_example_runs_until_it_is_interrupted(carla):
    world, hero = carla
    steps = iter(range(50))

    def wait():
        index = next(steps, None)
        if index is None:
            raise KeyboardInterrupt
        world.step(index)
        threading.Event().wait(0.01)

    with Sink() as sink:
        stats = hero.run(profile=sent_to(sink, name=EXAMPLES / "feed_carla" / "carla.toml"), wait=wait)
    assert stats["frames_received"] == 49  # the vehicle is not in the first snapshot
    assert stats["rejected"] == {}
    assert world._heard == {}
