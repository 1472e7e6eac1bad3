"""The controllers for BeamNG's Simulink coupling hold speed and heading of a car that obeys their answers."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from motioncue.sources.beamng_simulink.packets import CONTROL, STATE, WHEELS
from motioncue.sources.beamng_simulink.twin import Coupling

pytestmark = pytest.mark.search

DT = 0.005
MASS, RADIUS, BASE, DRAG = 1400.0, 0.3, 2.6, 0.4  # [kg], [m], [m], [N s^2/m^2]


@pytest.fixture(scope="module")
def controllers():
    path = Path(__file__).parents[2] / "examples" / "beamng_simulink" / "controllers.py"
    spec = importlib.util.spec_from_file_location("controllers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Car:
    """A car on a plane; as BeamNG does, it keeps a control until another value comes, and ignores NaN."""

    def __init__(self, speed=0.0, yaw=0.0):
        self.speed, self.yaw = speed, yaw
        self.controls = dict.fromkeys(CONTROL.fields, 0.0)

    def step(self):
        c = self.controls
        if c["drive_mode"] >= 0.5:
            drive, brake = (sum(c[f"{wheel}_{kind}_torque"] for wheel in WHEELS) for kind in ("propulsion", "braking"))
            force = (drive - brake * (self.speed > 0.0)) / RADIUS
        else:
            force = MASS * (4.0 * c["engine_throttle"] - 8.0 * c["brake_pedal"] * (self.speed > 0.0))
        self.speed = max(0.0, self.speed + (force - DRAG * self.speed**2) / MASS * DT)
        self.yaw += self.speed / BASE * math.tan(0.5 * c["steering"]) * DT  # positive to the left


def driven(controllers, name, goal, car, seconds=40.0):
    """Return the states while a controller drives, through BeamNG's own loop, shape (n, 2): speed and yaw."""
    controller, waiting, rows = controllers.CONTROLLERS[name], [], []
    coupling = Coupling(
        lambda message: waiting.append(controllers.answer(message, controller, goal)),
        lambda timeout: waiting.pop() if waiting else None,
    )
    for number in range(round(seconds / DT)):
        state = STATE.encode({"id": float(number), "groundspeed": car.speed, "yaw": car.yaw})
        while not coupling.step(state):
            pass
        car.controls |= coupling.controls
        car.step()
        rows.append((car.speed, car.yaw))
    assert coupling.stalls == 1  # the answer to message 0 is discarded
    return np.array(rows)


@pytest.mark.search
@pytest.mark.parametrize("name", ["pedals", "torque"])
@pytest.mark.parametrize("start", [0.0, 25.0])
def test_a_speed_is_reached_and_held(controllers, name, start):
    speeds = driven(controllers, name, 50.0 / 3.6, Car(start))[:, 0]
    assert np.abs(speeds[-2000:] - 50.0 / 3.6).max() < 0.6
    assert np.ptp(speeds[-2000:]) < 0.05  # without swinging


@pytest.mark.grid
@pytest.mark.parametrize("start", [0.0, 3.0, -3.0])
def test_an_angle_is_reached_by_the_shorter_way_and_held(controllers, start):
    yaws = driven(controllers, "heading", math.radians(170.0), Car(8.0, start))[:, 1]
    away = math.radians(170.0) - start
    assert abs(math.remainder(yaws[-1] - math.radians(170.0), 2.0 * math.pi)) < 0.01
    assert abs(yaws[-1] - start) == pytest.approx(abs(math.remainder(away, 2.0 * math.pi)), abs=0.02)


def test_what_a_controller_leaves_out_stays_as_it_is(controllers):
    fields = CONTROL.decode(controllers.answer(STATE.encode({"id": 5.0}), controllers.pedals, 10.0))
    assert fields["id"] == 5.0
    assert math.isnan(fields["steering"])
    assert all(math.isnan(fields[f"{wheel}_braking_torque"]) for wheel in WHEELS)
    assert (fields["drive_mode"], fields["engine_throttle"], fields["brake_pedal"]) == (0.0, 1.0, 0.0)


def test_run_answers_every_message(controllers):
    sent = []
    states = iter([STATE.encode({"id": float(k), "groundspeed": 10.0, "yaw": 1.0}) for k in range(400)])
    assert controllers.run(controllers.torque, 10.0, 2.0, lambda: next(states), sent.append) == (10.0, 1.0)
    assert [CONTROL.decode(data)["id"] for data in sent] == list(range(400))
