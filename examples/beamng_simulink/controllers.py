"""Drive a car in BeamNG.tech by its Simulink coupling: python controllers.py pedals|torque|heading GOAL [SECONDS].

The goal is a speed [km/h], or for `heading` an angle counterclockwise from north [deg], held at 30 km/h.
"""

import math
import socket
import sys

from motioncue.sources import compose
from motioncue.sources.beamng_simulink.packets import STATE, WHEELS

STATES_AT, CONTROLS_TO = ("127.0.0.1", 64890), ("127.0.0.1", 64891)
PEDAL = 0.3  # pedal travel for an error of 1 m/s
TORQUE = 400.0  # [N m] of all wheels for an error of 1 m/s
MOST_TORQUE = 1500.0  # [N m] of all wheels
STEERING = 1.5  # steering for an error of 1 rad
STEERING_LEFT = 1.0  # -1.0 where a positive steering turns right: the document does not say


def within(value, low, high):
    """Return the nearest value from `low` to `high`."""
    return max(low, min(high, value))


def pedals(state, speed):
    """Hold a speed [m/s] by the pedals."""
    push = PEDAL * (speed - state["groundspeed"]) + 0.1  # a little throttle, against drag
    return {"drive_mode": 0, "engine_throttle": within(push, 0.0, 1.0), "brake_pedal": within(-push, 0.0, 1.0)}


def torque(state, speed):
    """Hold a speed [m/s] by the torques of the wheels; the pedals have no effect."""
    push = within(TORQUE * (speed - state["groundspeed"]), -MOST_TORQUE, MOST_TORQUE) / len(WHEELS)
    drive = {f"{wheel}_propulsion_torque": max(push, 0.0) for wheel in WHEELS}
    brake = {f"{wheel}_braking_torque": max(-push, 0.0) for wheel in WHEELS}
    return {"drive_mode": 1, **drive, **brake}


def heading(state, angle, speed=30.0 / 3.6):
    """Hold an angle in the map [rad, counterclockwise from north] by the steering, and a speed by the pedals."""
    error = math.remainder(angle - state["yaw"], 2.0 * math.pi)
    return {**pedals(state, speed), "steering": within(STEERING_LEFT * STEERING * error, -1.0, 1.0)}


CONTROLLERS = {"pedals": pedals, "torque": torque, "heading": heading}


def answer(data, controller, goal):
    """Return the answer to one message: it repeats the id, and what the controller leaves out stays as it is."""
    state = STATE.decode(data)
    return compose("beamng-simulink", "control", {"id": state["id"], **controller(state, goal)})


def run(controller, goal, seconds, receive, send):
    """Answer every message for a simulated time [s]; return the last state's speed [m/s] and yaw [rad]."""
    for _ in range(round(200 * seconds)):
        data = receive()
        send(answer(data, controller, goal))
    state = STATE.decode(data)
    return state["groundspeed"], state["yaw"]


if __name__ == "__main__":
    name, goal, seconds = [*sys.argv[1:], *["pedals", "50", "60"][len(sys.argv) - 1 :]]
    goal = math.radians(float(goal)) if name == "heading" else float(goal) / 3.6
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(STATES_AT)
        print("waiting for BeamNG; the first answer is discarded there, so it begins after 2 s")
        speed, yaw = run(
            CONTROLLERS[name], goal, float(seconds), lambda: udp.recv(4096), lambda data: udp.sendto(data, CONTROLS_TO)
        )
    print(f"{3.6 * speed:.1f} km/h, {math.degrees(yaw):.1f} deg")
