"""Fixtures of the benchmarks: the compiled floor, one real drive, and candidate and floor in pairs."""

import gc
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from building import build, built, counter
from pairs import interleaved, row
from references import PythonStep, ScipyPipeline, empty_packets

from motioncue import cueing, load_profile
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.frames.convert import BodyStage
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import STREAMS
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.wire.packet import Take, vector

RATE_HZ = 1e9 / round(1e9 / 333.33)
HEAD_M = (-0.5, 0.4, 1.0)  # forward, right, up

# City Car Driving's axes.  World: X east, Y up, Z south; rows north, east, down.  Car: rows forward, right, down.
WORLD = [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
CAR = [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]

VECTORS = ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--count", action="store_true", help="count instructions; by `instructions.py`, under callgrind")


@pytest.fixture(scope="session")
def smoke(request: pytest.FixtureRequest) -> bool:
    """Whether everything runs once and nothing is timed (--benchmark-disable)."""
    return bool(request.config.getoption("benchmark_disable"))


@pytest.fixture
def counted(request: pytest.FixtureRequest):
    """Count a candidate's instructions for one run and for two, under callgrind; None where nothing is counted."""
    if not request.config.getoption("count"):
        return None
    library = counter()

    def run(figure, candidate, items):
        candidate()  # what the first run alone does is not counted
        gc.disable()  # nor is a search for garbage, which comes in one run or another
        for runs in (1, 2):
            library.count_begin()
            for _ in range(runs):
                candidate()
            library.count_end(f"{runs} {items} {figure}".encode())
        library.count_stop()
        gc.enable()

    return run


@pytest.fixture
def counted_singly(request: pytest.FixtureRequest):
    """Count the instructions of each call of a candidate by itself, for a figure that is the median of them."""
    library = counter() if request.config.getoption("count") else None

    def run(figure, place, candidate):
        if library:
            library.count_begin()
        candidate()
        if library:
            library.count_end(f"0 {place} {figure}".encode())

    yield run
    if library:
        library.count_stop()


@pytest.fixture(scope="session")
def modules(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """The floor in C, and the package's kernels in loops without Python; `instructions.py` has built both."""
    return built() if request.config.getoption("count") else build()


@pytest.fixture(scope="session")
def loops(modules: tuple[ModuleType, ModuleType]) -> ModuleType:
    """The package's kernels in loops without Python."""
    return modules[1]


@pytest.fixture(scope="session")
def bytes_of_drive() -> np.ndarray:
    """The frames of the real drive, one row of bytes each."""
    frames = [package for package in read_packages(sample_recording()) if len(package) == FRAME.size]
    return np.frombuffer(b"".join(frames), np.uint8).reshape(-1, FRAME.size)


@pytest.fixture
def rig(
    modules: tuple[ModuleType, ModuleType], bytes_of_drive: np.ndarray, smoke: bool, request: pytest.FixtureRequest
) -> SimpleNamespace:
    """One rig in every form, and a part of the real drive at every stage."""
    profile = load_profile("ccd-dk-classical")
    # The interpreter's own work around a run differs by some hundred instructions: little beside a thousand frames.
    counting = request.config.getoption("count")
    few = 1000 if counting else 100
    frames = bytes_of_drive[:few] if smoke else bytes_of_drive
    n = len(frames)
    quaternion = (3, 0, 1, 2)  # x, y, z, w on the wire
    takes = [Take("frame_duration", 0, "frame_time"), *vector("orientation", "orientation", quaternion)]
    it = SimpleNamespace(
        n=n,
        cueing=profile.cueing,
        frames=frames,
        floor=modules[0].Floor(profile.cueing, RATE_HZ, WORLD, CAR, HEAD_M),
        algorithm=cueing.design(profile.cueing, RATE_HZ),
        stage=BodyStage(head_m=HEAD_M),
        decoding=FRAME.taking([*takes, *(take for name in VECTORS for take in vector(name, name))]),
        chain=OutputChain([UpVector()]),
        encoding=STREAMS["motion"].table(),
        python=PythonStep(profile.cueing, RATE_HZ, WORLD, CAR, (*HEAD_M[:2], -HEAD_M[2])),
        scipy=None if counting else ScipyPipeline(profile.cueing, RATE_HZ, WORLD, CAR),
        telemetry=np.zeros(n, TELEMETRY_DTYPE),
        motion=np.zeros(n, MOTION_DTYPE),
        cue=np.zeros(n, CUE_DTYPE),
        packets=empty_packets(n),
    )
    it.floor.unpack(frames, it.telemetry)
    it.floor.body(it.telemetry, it.motion)
    it.floor.washout(it.motion, it.cue)
    it.floor.reset()
    return it


def raw(packets: np.ndarray) -> np.ndarray:
    """Return packets as rows of bytes, without a copy."""
    return packets.view(np.uint8).reshape(len(packets), -1)


def assert_same(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    """Fail unless two structured arrays hold the same values."""
    assert found.dtype == expected.dtype
    for name in found.dtype.names:
        if found.dtype[name].kind == "f":
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=tolerance, err_msg=name)


@pytest.fixture
def versus(benchmark, smoke, counted, modules):
    """Run a candidate and its floor; add a row of the table to the benchmark's extra_info.

    Without timing (--benchmark-disable) both run once.  Costs are per item: a call of the candidate handles `items`,
    one of the floor `floor_items`.
    """

    def run(figure, against, candidate, floor, *, items, floor_items=None, between=None, target=None, faster=False):
        if counted:
            counted(figure, candidate, items)
            return
        if smoke:
            benchmark(candidate)
            floor()
            return
        ours, floors = interleaved(candidate, floor, between, modules[0].crowded)
        ours = [cost / items for cost in ours]
        floors = [cost / (floor_items or items) for cost in floors]
        benchmark.extra_info["rows"] = [row(figure, against, ours, floors, target=target, faster=faster)]
        benchmark.pedantic(candidate, setup=between, rounds=10, warmup_rounds=1)

    return run
