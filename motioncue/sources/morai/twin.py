"""A simulator with MORAI's protocol: plays virtual drives or recordings, and receives commands."""

import math
import threading
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.drive.car import angles_and_rates, body_axes, product
from motioncue.drive.courses import FIRST, Lap, course
from motioncue.drive.peers import DatagramListener, DatagramSimulator, Paced, blank
from motioncue.sources.morai import packets as protocol
from motioncue.sources.morai.messages import (
    COLLISION_DATA,
    EGO_VEHICLE_STATUS,
    IMU,
    INTERSECTION,
    OBJECT_INFO,
    TRAFFIC_LIGHT,
)
from motioncue.sources.morai.packets import identify

RATE_HZ = 50.0
"""Physics steps per second [Hz]."""

LATE = 0.035  # share of packets assembled before the physics of their step is done
BEGAN_S = 1_726_148_127  # wall-clock time at the start [s]
TREMBLE_KM_H = 1e-6  # noise of a parked car's velocity: MORAI's physics never stands quite still
SELDOM = 5  # messages that do not concern the ego vehicle's motion come with every fifth status
SEED = 908

STATUS = EGO_VEHICLE_STATUS[3]
INERTIAL, OBJECTS, COLLISION = IMU[-1], OBJECT_INFO[-1], COLLISION_DATA[-1]
TO_STATUS, TO_IMU, TO_OTHERS = 0, 1, 2  # index of the endpoint

# World and car: north, east, down and forward, right, down to east, north, up and forward, left, up.
ENU_FROM_NED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
FLU_FROM_FRD = np.diag([1.0, -1.0, -1.0])
ENU_TURN = 0.0, -math.sqrt(0.5), -math.sqrt(0.5), 0.0  # ENU_FROM_NED as a quaternion w, x, y, z
FLU_TURN = 0.0, -1.0, 0.0, 0.0  # FLU_FROM_FRD, which is its own inverse


def _in_car(states: npt.NDArray[np.void], name: str) -> npt.NDArray[np.float64]:
    """Return a vector of `states` along the car's forward, left, up axes."""
    return body_axes(states, name) @ FLU_FROM_FRD.T


def encode_states(states: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the status (version 4, without stamps) for `states` of STATE_DTYPE: an array of its dtype."""
    rows = blank(STATUS, len(states))
    (roll, nose_up, from_north), *_ = angles_and_rates(states)
    velocity = 3.6 * _in_car(states, "velocity")
    rows["ctrl_mode"], rows["gear"], rows["map_data_id"] = 1, 4, 1
    rows["signed_velocity"] = velocity[:, 0]
    rows["size"] = 4.845, 1.835, 1.455
    rows["overhang"], rows["wheelbase"], rows["rear_overhang"] = 0.965, 2.795, 1.085
    rows["position"] = states["position"] @ ENU_FROM_NED.T
    rows["roll"] = -(np.degrees(-roll) % 360.0)  # MORAI sends 0 to -360
    rows["pitch"] = np.degrees(-nose_up) % 360.0
    rows["heading"] = 180.0 - (90.0 + np.degrees(from_north)) % 360.0
    rows["velocity"] = velocity
    north, east, down = np.degrees(states["angular_velocity"]).T
    rows["angular_velocity"] = np.stack([-north, east, down], axis=-1)
    rows["acceleration"] = _in_car(states, "acceleration") * [1.0, -1.0, 1.0]  # y is positive to the right
    rows["link_id"] = b"A219BS010391"
    return rows


def encode_imu(states: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the IMU's message (without stamps) for `states` of STATE_DTYPE: an array of its dtype."""
    rows = blank(INERTIAL, len(states))
    rows["orientation"] = product(product(ENU_TURN, states["orientation"]), FLU_TURN)
    rows["angular_velocity"] = _in_car(states, "angular_velocity")
    felt = states.copy()
    felt["acceleration"][:, 2] -= GRAVITY
    rows["acceleration"] = _in_car(felt, "acceleration")
    return rows


def _stamp(rows: npt.NDArray[np.void], milliseconds: npt.NDArray[np.int64]) -> None:
    rows["sec"] = BEGAN_S + milliseconds // 1000
    rows["nsec"] = milliseconds % 1000 * 1_000_000


def driven(
    name: str, rate_hz: float = RATE_HZ, duration_s: float | None = None, lap: Lap = FIRST, *, others: bool = True
) -> Iterator[Paced]:
    """Yield the datagrams of a virtual drive.

    Each status is assembled, stamped and sent at a random moment of its step, so stamps and arrivals are 0 to 39 ms
    apart at 50 Hz, and a few in a hundred repeat the step before or skip one.
    """
    driven = course(name, rate_hz, duration_s, lap)
    count, step = len(driven.states), 1.0 / rate_hz
    rng = np.random.default_rng(SEED)
    moment = rng.random(count)  # moments within the steps
    goes_on = driven.waits < 1.5 * step
    says = np.arange(count) - ((moment < LATE) & goes_on & (np.arange(count) > 0))
    sent = np.cumsum(driven.waits) + moment * step
    milliseconds = np.floor(1000.0 * (driven.began_s + sent)).astype(np.int64)
    status, inertial = encode_states(driven.states), encode_imu(driven.states)
    parked = np.linalg.norm(status["velocity"], axis=1) < 1e-3
    status["velocity"][parked] += TREMBLE_KM_H * rng.standard_normal((np.count_nonzero(parked), 3))
    status, inertial = status[says], inertial[says]
    for rows in (status, inertial):
        _stamp(rows, milliseconds)
    for k, wait in enumerate(np.diff(sent, prepend=0.0).tolist()):
        yield Paced(wait, status[k].tobytes())
        if others:
            yield Paced(0.0, inertial[k].tobytes(), to=TO_IMU, motion=False)
        if others and k % SELDOM == 0:
            for package in _surroundings(status[k]):
                yield Paced(0.0, package, to=TO_OTHERS, motion=False)


def _surroundings(status: np.void) -> Iterator[bytes]:
    """Yield a car ahead, a traffic light, its intersection, and a collision message without a collision."""
    stamp = {"sec": status["sec"], "nsec": status["nsec"]}
    heading = np.radians(float(status["heading"]))
    ahead = status["position"] + 20.0 * np.array([np.cos(heading), np.sin(heading), 0.0])
    car = {"obj_id": 1, "obj_type": 1, "position": ahead, "heading": status["heading"], "size": status["size"]}
    yield OBJECTS.encode({**stamp, "objects": [{**car, "link_id": "A219BS010391"}]})
    yield TRAFFIC_LIGHT.encode({"index": "C119BS010007", "type": 2, "status": 16})
    yield INTERSECTION.encode({"index": 7, "time": float(status["nsec"]) * 1e-9})
    yield COLLISION.encode(stamp)


def recorded(
    packages: Sequence[bytes], times: Sequence[float] | None = None, rate_hz: float | None = None
) -> Iterator[Paced]:
    """Yield recorded datagrams, at the `times` of their capture [s] or stamped, or at `rate_hz`.

    Raises PacketError for others.
    """
    before = None
    for index, package in enumerate(packages):
        packet = identify(package)
        if packet not in EGO_VEHICLE_STATUS:
            yield Paced(0.0, package, to=TO_IMU if packet in IMU else TO_OTHERS, motion=False)
            continue
        fields = packet.decode(package)
        now = fields["sec"] + 1e-9 * fields["nsec"] if "sec" in fields else None
        now = times[index] if times is not None else now
        duration = 1.0 / (rate_hz or RATE_HZ)
        if rate_hz is None and now is not None and before is not None:
            duration = min(max(now - before, 0.0), 1.0)  # the clock may have been set, and no wait is longer than 1 s
        before = now
        yield Paced(duration, package)


class Simulator(DatagramSimulator):
    """Plays MORAI: sends datagrams, and receives commands where requested."""

    def __init__(self, urls: str | Sequence[str], packages: Iterable[Paced], *, commands: Sequence[str] = ()) -> None:
        self.commands = DatagramListener(protocol, commands)  # how many of each name came, and the last one
        self._listens = bool(commands)
        super().__init__(urls, packages)

    def run(self) -> None:
        """Send all packages, or until `stop` is called; receive commands meanwhile."""
        listening = threading.Thread(target=self.commands.run, name="motioncue commands", daemon=True)
        if self._listens:
            listening.start()
        try:
            super().run()
        finally:
            self.commands.stop()
            if self._listens:
                listening.join()
            self.commands.close()
