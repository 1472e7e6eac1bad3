"""Roll, pitch and yaw, computed side by side, are the same bits on every kind of machine, and those of one by one."""

from itertools import product

import numpy as np
import pytest
from same_bits import assert_same_bits

from motioncue.core import interfaces
from motioncue.core.channels import MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.frames.convert import BodyStage


@pytest.fixture(autouse=True)
def _best_machine_again():
    yield
    interfaces.choose_machine(interfaces.machines()[0])


def attitudes(rng):
    """Turns of all sizes, and those on which an angle is 0, half a turn or undefined."""
    edges = [
        each
        for each in product((0.0, -0.0, 1.0, -1.0, 0.5, 1e-9, 5e-324), repeat=4)
        if 0.9 < np.linalg.norm(each) < 1.1
    ]
    return np.concatenate([edges, rng.normal(0.0, 1.0, (4000, 4)), rng.normal([1.0, 0, 0, 0], 1e-3, (4000, 4))])


def motions(orientation, machine):
    interfaces.choose_machine(machine)
    telemetry = np.zeros(len(orientation), TELEMETRY_DTYPE)
    telemetry["orientation"] = orientation / np.linalg.norm(orientation, axis=1)[:, None]
    found = np.zeros(len(telemetry), MOTION_DTYPE)
    stage = BodyStage(world_north=(1, 0, 0), world_up=(0, 0, -1), car_forward=(1, 0, 0), car_up=(0, 0, -1))
    assert not stage.process(telemetry, found).any()
    return found


def test_every_machine_gives_the_same_attitude(rng):
    turns = attitudes(rng)
    first, *others = [motions(turns, machine) for machine in interfaces.machines()]
    for other in others:
        assert_same_bits(other, first)


@pytest.mark.parametrize("machine", interfaces.machines())
def test_no_angle_depends_on_the_two_beside_it(rng, machine):
    # A turn about one axis: the other two angles are 0, whatever the third is.
    half = 0.5 * np.concatenate([rng.uniform(-1.5, 1.5, 200), [0.0, 5e-324, 1e-300, 1e-9]])
    for axis, name in enumerate(("roll", "pitch", "yaw")):
        turns = np.zeros((len(half), 4))
        turns[:, 0], turns[:, 1 + axis] = np.cos(half), np.sin(half)
        found = motions(turns, machine)
        np.testing.assert_allclose(found[name], 2.0 * half, rtol=1e-14, atol=1e-15)
        for other in {"roll", "pitch", "yaw"} - {name}:
            assert not found[other].any()
