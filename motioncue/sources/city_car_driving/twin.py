"""A simulator with City Car Driving's protocol: plays virtual drives or recordings to a real endpoint."""

import math
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.drive.car import product
from motioncue.drive.courses import FIRST, Lap, course
from motioncue.drive.peers import Paced, Player, blank
from motioncue.errors import EndpointError, PacketError
from motioncue.sources.city_car_driving.packets import FRAME, INIT
from motioncue.transports.endpoint import STREAMS, connect, parse_endpoint

# World: X east, Y up, Z south.  Car coordinates: X left, Y up, Z forward.
WORLD_FROM_NED = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
WORLD_TURN = 0.5, 0.5, 0.5, -0.5  # the same as a quaternion w, x, y, z
CAR_TURN = 0.5, -0.5, 0.5, -0.5  # from those car coordinates to forward, right, down

INIT_PACKAGE = INIT.encode({"forward": (0.0, 0.0, 1.0), "up": (0.0, 1.0, 0.0)})


LEAVE = Paced(0.0, b"")
"""Package after which the simulator closes the connection."""


def encode_states(states: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the frame packages for `states`, ndarray of STATE_DTYPE: an ndarray of the frame's dtype."""
    frames = blank(FRAME, len(states))
    frames["frame_time"] = np.diff(states["time"], prepend=states["time"][:1])
    for name in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration"):
        frames[name] = states[name] @ WORLD_FROM_NED.T
    q = product(product(WORLD_TURN, states["orientation"]), CAR_TURN)
    frames["orientation"] = np.roll(q, -1, axis=-1)
    return frames


def driven(name: str, rate_hz: float = 60.0, duration_s: float | None = None, lap: Lap = FIRST) -> Iterator[Paced]:
    """Yield the packages of a virtual drive; raise ConfigError for an unknown drive or rate."""
    driven = course(name, rate_hz, duration_s, lap)
    frames = encode_states(driven.states)
    frames["frame_time"] = driven.frame_times
    if not driven.began_s:
        yield Paced(0.0, INIT_PACKAGE)
    session = 1
    for frame, wait, number in zip(frames, driven.waits.tolist(), driven.sessions.tolist(), strict=True):
        if number != session:
            session = number
            yield LEAVE
            yield Paced(wait, INIT_PACKAGE)
            wait = 0.0
        yield Paced(wait, frame.tobytes())


def recorded(
    packages: Sequence[bytes], times: Sequence[float] | None = None, rate_hz: float | None = None
) -> Iterator[Paced]:
    """Yield recorded packages, at their own pace or `rate_hz`; raise PacketError for others."""
    if packages[0][2] != INIT.constants["type"]:
        raise PacketError(f"found a package of type {packages[0][2]} first, allowed is init")
    for package in packages:
        duration = 0.0
        if len(package) == FRAME.size and FRAME.identifies(package):
            duration = 1.0 / rate_hz if rate_hz else FRAME.decode(package)["frame_time"]
            duration = duration if 0.0 < duration < math.inf else 0.0  # a broken frame is played, but without a wait
        yield Paced(duration, package)


class Simulator(Player):
    """Plays City Car Driving in lock-step: connects, sends a package, waits for the reply, sends the next.

    As the document says, it tries to connect at each frame until it succeeds; frames driven meanwhile are lost.  If the
    engine goes away it tries again, and begins with the init package.
    """

    def __init__(self, urls: str | Sequence[str], packages: Iterable[Paced], *, timeout_s: float = 2.0) -> None:
        (self.url,) = (urls,) if isinstance(urls, str) else urls
        parse_endpoint(self.url, STREAMS)
        super().__init__(packages)
        self.timeout_s = timeout_s
        self._socket: Any = None
        self._init = b""

    def _send(self, each: Paced) -> None:
        if each.package[2] == INIT.constants["type"]:
            self._begin(each.package)
        elif self._connected() and self._exchanged(each.package):
            self._count_sent(time.monotonic())
        else:
            self.lost += 1

    def _begin(self, package: bytes) -> None:
        self._init = package
        if self._socket is not None and self._exchanged(package):
            return
        while not self._connected() and not self._stop.wait(0.05):
            pass

    def _connected(self) -> bool:
        if self._socket is not None:
            return True
        try:
            self._socket = connect(self.url)
            self._socket.settimeout(self.timeout_s)
            self._exchange(self._init)
        except (EndpointError, OSError, PacketError) as error:
            self._close()
            if isinstance(error.__cause__, socket.gaierror):
                raise  # a host name that cannot be resolved is not worth retrying
            return False
        self.connections += 1
        return True

    def _exchanged(self, package: bytes) -> bool:
        try:
            self._exchange(package)
        except (OSError, PacketError):
            self._close()
            return False
        return True

    def _exchange(self, package: bytes) -> None:
        self._socket.sendall(package)
        self.on_sent(package, 0)
        head = self._receive(2)
        reply = head + self._receive(int.from_bytes(head, "little") - 2)
        if reply[2] != package[2] - 1:
            raise PacketError(f"reply: found type {reply[2]}, allowed is {package[2] - 1}")
        self.replies += 1

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise PacketError("the engine has closed the connection")
            data += piece
        return data

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    _leave = _close
