"""Cost of a platform: legs from poses, poses from legs, a tick with all bounds, many hexapods in a call."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import RATE_HZ
from pairs import cpu_ns, fact

import motioncue
from motioncue import cueing
from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.engine.assembly import chain_of, check
from motioncue.engine.fitting import CHANNELS_KEPT
from motioncue.output import packet as custom
from motioncue.output.actuation import OutputChain
from motioncue.platforms import build as platforms
from motioncue.profile.profile import parse_profile
from motioncue.virtual.installation import standard_drive

FIELDS = ", ".join(f'{{ offset = {4 * n}, type = "f4", channel = "leg_{n + 1}" }}' for n in range(6))
TEXT = f"""
[source]
system = "city-car-driving"
endpoint = "tcp://127.0.0.1:9998"
[cueing]
algorithm = "classical"
preset = "utias"
[platform]
preset = "hexapod-simona"
[output]
motion = "udp://127.0.0.1:9999"
packet = {{ size = 24, fields = [{FIELDS}] }}
"""
NANOSECONDS = 400.0  # that a hexapod and its bounds may add to a tick
FORWARD_NS = 1500.0


def driven(smoke):
    """Return the motion of a virtual drive at every tick, so mild that no bound acts; the floor has none."""
    rows = 0.8 * standard_drive("turns", RATE_HZ)[: 3000 if smoke else None]
    motion = np.zeros(len(rows), MOTION_DTYPE)
    for name, values in zip(CHANNELS_KEPT, rows.T, strict=True):
        motion[name] = values
    return motion


@pytest.fixture
def hexapod(modules, smoke):
    """A hexapod in both forms, the washout that the floor has too, and a virtual drive."""
    motion = driven(smoke)
    profile = parse_profile(TEXT)
    check(profile)
    output, built = profile.outputs[0], platforms.build(profile.platform)
    algorithm = cueing.design(profile.cueing, RATE_HZ)
    cues = algorithm.process(motion)
    algorithm.reset()
    poses = np.stack([cues[channel] for channel in platforms.CHANNELS], axis=1)
    return SimpleNamespace(
        profile=profile,
        n=len(motion),
        motion=motion,
        poses=poses,
        kinematics=built.kinematics,
        algorithm=algorithm,
        chain=chain_of(profile, output),
        none=OutputChain(),
        table=custom.encoding(output.packet, platforms.channels_of(profile.platform)).table,
        packets=np.zeros((len(motion), 24), np.uint8),
        floor=modules[0].Floor(profile.cueing, RATE_HZ, np.eye(3), np.eye(3)),
        legs=modules[0].Hexapod(platforms.carriers_of(profile.platform)[0], built.bounds[0], 1 / RATE_HZ),
    )


def test_floor_gives_the_numbers_of_the_platform(hexapod, loops):
    it = hexapod
    ours, theirs = np.zeros((it.n, 6)), np.zeros((it.n, 6))
    loops.legs(it.kinematics, it.poses, ours)
    it.legs.legs(it.poses, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    poses = np.zeros((it.n, 6))
    loops.frame(it.kinematics, ours, poses)
    np.testing.assert_allclose(poses, it.poses, rtol=0, atol=1e-9)
    loops.actuated(it.algorithm, it.chain, it.table, it.motion, it.packets)
    packets = np.zeros((it.n, 24), np.uint8)
    assert it.legs.step(it.floor, it.motion, packets) == 0
    assert not any(it.chain.stages[0].shares().values())
    np.testing.assert_allclose(it.packets.view("<f4"), packets.view("<f4"), rtol=0, atol=1e-6)
    assert np.ptp(it.packets.view("<f4"), axis=0).min() > 0.01


@pytest.mark.benchmark(group="platform")
def test_legs_against_c(versus, hexapod, loops):
    ours, theirs = np.zeros((hexapod.n, 6)), np.zeros((hexapod.n, 6))
    versus(
        "inverse kinematics of six legs",
        "plain C",
        lambda: loops.legs(hexapod.kinematics, hexapod.poses, ours),
        lambda: hexapod.legs.legs(hexapod.poses, theirs),
        items=hexapod.n,
        target=1.1,
    )


@pytest.mark.benchmark(group="platform")
def test_tick_with_a_hexapod_against_c(versus, hexapod, loops):
    it, theirs = hexapod, np.zeros_like(hexapod.packets)

    def rest():
        for each in (it.algorithm, it.chain, it.floor, it.legs):
            each.reset()

    versus(
        "tick with a hexapod: washout, legs, all bounds, encode",
        "plain C",
        lambda: loops.actuated(it.algorithm, it.chain, it.table, it.motion, it.packets),
        lambda: it.legs.step(it.floor, it.motion, theirs),
        items=it.n,
        between=rest,
        target=1.3,
    )


@pytest.mark.benchmark(group="platform")
def test_what_a_hexapod_adds_to_a_tick(benchmark, hexapod, loops, smoke):
    it = hexapod

    def cost(chain):
        it.algorithm.reset()
        chain.reset()
        return cpu_ns(lambda: loops.actuated(it.algorithm, chain, it.table, it.motion, it.packets)) / it.n

    pairs = [(cost(it.chain), cost(it.none)) for _ in range(2 if smoke else 24)]
    added = float(np.median([ours - none for ours, none in pairs]))
    benchmark.extra_info["rows"] = [fact("a hexapod and its bounds", "the tick without", added, "ns", NANOSECONDS)]
    benchmark(lambda: cost(it.chain))


@pytest.mark.benchmark(group="platform")
def test_forward_kinematics_warm(benchmark, hexapod, loops, smoke):
    legs, poses = np.zeros((hexapod.n, 6)), np.zeros((hexapod.n, 6))
    loops.legs(hexapod.kinematics, hexapod.poses, legs)
    costs = [
        cpu_ns(lambda: loops.frame(hexapod.kinematics, legs, poses)) / hexapod.n for _ in range(2 if smoke else 24)
    ]
    figure = "forward kinematics of six legs, from the pose of the tick before"
    benchmark.extra_info["rows"] = [fact(figure, "a bound", float(np.median(costs)), "ns", FORWARD_NS)]
    benchmark(lambda: loops.frame(hexapod.kinematics, legs, poses))


@pytest.mark.benchmark(group="platform")
def test_many_hexapods_against_one_in_c(versus, hexapod, smoke):
    n = 64
    rigs = motioncue.Rigs(hexapod.profile, n)
    motion, cue, actuation = np.resize(hexapod.motion, n), np.zeros(n, CUE_DTYPE), np.zeros(n, ACTUATION_DTYPE)
    calls = 30 if smoke else 500  # fewer would count the interpreter's own first calls with them
    one, packet = hexapod.motion[:1].copy(), np.zeros((1, 24), np.uint8)

    def run():
        for _ in range(calls):
            rigs.step(motion, cue, actuation)

    versus(
        "64 hexapods with limits and all bounds, one call of `step` from Python, per rig and tick",
        "plain C, one hexapod",
        run,
        lambda: hexapod.legs.repeat(hexapod.floor, one, packet, n * calls),
        items=n * calls,
        target=0.35,
    )
