"""A vehicle of Vehicle Physics Pro with our exporter on it: virtual drives or recordings."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from motioncue.drive.car import GEARS, body_axes
from motioncue.drive.courses import FIRST, Lap, course
from motioncue.drive.peers import DatagramSimulator, Paced
from motioncue.sources.vehicle_physics_pro.bus import CHANNELS, GEAR_MODES, Sdk, to_raw
from motioncue.sources.vehicle_physics_pro.packets import SIZE, STATES, blank, identify

Simulator = DatagramSimulator
"""The exporter sends at every physics step and expects no answer, so no other simulator is needed."""

# World: X east, Y up, Z north.  Car: X right, Y up, Z forward.  Both are left-handed, so rotations change their sign.
UNITY_FROM_NED = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])

_WHEELBASE = 2.7  # [m]
_LOCK = 0.6  # [rad] angle of the front wheels at full steer
_FULL_THROTTLE, _FULL_BRAKE = 5.0, 10.0  # [m/s^2]


def bus_values(states: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Return the bus values of a car, in their units, by ``Channel.Value``; values left out are 0."""
    speed = np.linalg.norm(states["velocity"], axis=1)
    (along, _, _), (_, _, yaw_rate) = (body_axes(states, name).T for name in ("acceleration", "angular_velocity"))
    moving = speed > 0.5
    ratio = states["engine_speed"] / np.where(moving, speed, np.inf)
    gear = np.where(moving, 1 + np.abs(ratio[:, None] - GEARS).argmin(axis=1), 0)
    steer = np.clip(np.arctan(_WHEELBASE * yaw_rate / np.maximum(speed, 1.0)) / _LOCK, -1.0, 1.0)
    throttle = np.clip(along / _FULL_THROTTLE, 0.0, 1.0)
    on = np.ones(len(states))
    return {
        "Input.Steer": steer,
        "Input.Throttle": throttle,
        "Input.Brake": np.clip(-along / _FULL_BRAKE, 0.0, 1.0),
        "Input.AutomaticGear": on * GEAR_MODES.index("D"),
        "Vehicle.Speed": speed,
        "Vehicle.EngineRpm": states["engine_speed"],
        "Vehicle.EngineWorking": on,
        "Vehicle.EngineLoad": throttle,
        "Vehicle.ClutchLock": on * moving,
        "Vehicle.GearboxGear": gear,
        "Vehicle.GearboxMode": on * GEAR_MODES.index("D"),
        "Vehicle.TransmissionRpm": np.where(moving, speed * GEARS[-1], 0.0),  # the top gear is direct
        "Vehicle.AidedSteer": steer,
    }


def encode_states(states: NDArray[np.void], sdk: Sdk = "newer") -> NDArray[np.void]:
    """Return one packet for each state of a car."""
    packets = blank(sdk, len(states))
    packets["counter"] = np.arange(len(states))
    packets["time"] = states["time"]
    packets["attitude"][:, :3] = -states["orientation"][:, 1:] @ UNITY_FROM_NED.T
    packets["attitude"][:, 3] = states["orientation"][:, 0]
    packets["position"] = states["position"] @ UNITY_FROM_NED.T
    for name in ("velocity", "acceleration"):
        packets[name] = body_axes(states, name) @ UNITY_FROM_NED.T
    for name in ("angular_velocity", "angular_acceleration"):
        packets[name] = -body_axes(states, name) @ UNITY_FROM_NED.T
    for name, values in bus_values(states).items():
        channel, value = name.split(".")
        packets[name] = to_raw(values, CHANNELS[channel].by_name(sdk)[value].resolution)
    return packets


def driven(name: str, rate_hz: float = 60.0, duration_s: float | None = None, lap: Lap = FIRST) -> Iterator[Paced]:
    """Yield the packets of a virtual drive; raise ConfigError for an unknown drive or rate."""
    drive = course(name, rate_hz, duration_s, lap)
    packets = encode_states(drive.states)
    for number in np.unique(drive.sessions):  # Unity's time begins again in each
        own = drive.sessions == number
        packets["time"][own] = drive.began_s + np.cumsum(drive.frame_times[own])
    for packet, wait in zip(packets, drive.waits.tolist(), strict=True):
        yield Paced(wait, packet.tobytes())


def recorded(
    packages: Sequence[bytes], times: Sequence[float] | None = None, rate_hz: float | None = None
) -> Iterator[Paced]:
    """Yield recorded packets, at their own pace or `rate_hz`; raise PacketError for others."""
    identify(packages[0])
    before = math.nan
    for package in packages:
        duration = 0.0
        if len(package) == SIZE:
            time = float(np.frombuffer(package, STATES["old"].dtype)["time"][0])
            duration = 1.0 / rate_hz if rate_hz else time - before
            before = time
        duration = duration if 0.0 < duration < math.inf else 0.0  # a broken packet is played, but without a wait
        yield Paced(duration, package)
