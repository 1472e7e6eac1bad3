"""A simulator with BeamNG's Simulink coupling: runs BeamNG's own loop, stalls included."""

import contextlib
import select
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from motioncue.drive.car import angles_and_rates, body_axes
from motioncue.drive.courses import FIRST, Lap, course
from motioncue.drive.peers import LATE_S, Paced, Player
from motioncue.errors import PacketError
from motioncue.sources.beamng_simulink.packets import CONTROL, REPLY_PORT, STATE, WHEELS, Options
from motioncue.transports.endpoint import open_receiver, open_sender, parse_endpoint

RATE_HZ = 200.0
"""Messages per simulated second that the controller sends by default [Hz]."""

PHYSICS_STEPS = 10  # physics steps from one message to the next
TIMEOUT_S = 2.0  # BeamNG's longest wait for an answer
TIRE_RADIUS = 0.3  # [m]

_DOUBLES = struct.Struct("<64d")


class Coupling:
    """BeamNG's own loop, called once per physics step.

    Units: `receive` [s].
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        receive: Callable[[float], bytes | None],
        *,
        steps: int = PHYSICS_STEPS,
        window: int = 1,
    ) -> None:
        self._send, self._receive = send, receive
        self._skips, self._window = steps - 1, window
        self._sent = 0  # messages since the last stall
        self._newest = 0.0  # the largest id answered
        self._skipped = 0  # physics steps since the last message
        self.stalls = 0  # how often no answer came in BeamNG's longest wait
        self.ignored = 0  # answers that were malformed, or with an id that is not larger than all before it
        self.controls: dict[str, float] = {}  # fields set by the answers: every value that was not NaN

    def step(self, message: bytes) -> bool:
        """Do a physics step; return whether it sent `message`."""
        if self._skipped < self._skips:
            self._take(self._receive(0.0))
            self._skipped += 1
            return False
        if self._sent - self._newest < self._window:
            self._take(self._receive(0.0))
        else:
            answer = self._receive(TIMEOUT_S)
            if answer is None:
                self.stalls += 1
                self._sent, self._newest = 0, 0.0
                return False
            if not self._take(answer) and self._newest != 0.0:
                return False
        self._send(message)
        self._sent += 1
        self._skipped = 0
        return True

    def _take(self, answer: bytes | None) -> bool:
        """Take an answer; return whether it was accepted."""
        if answer is None:
            return False
        values = _DOUBLES.unpack(answer) if len(answer) == CONTROL.size else (0.0,)
        if values[0] <= self._newest:
            self.ignored += 1
            return False
        self._newest = values[0]
        for name, field in CONTROL.fields.items():
            if name not in ("id", "custom") and (value := values[field.offset // 8]) == value:
                self.controls[name] = value
        return True


class _Stopped(Exception):
    """Ends a wait for an answer."""


class Simulator(Player):
    """Plays BeamNG with its coupling loaded.

    Simulated time stands still while the simulator waits for an answer, so a stalled engine loses no frame.

    Units: `clock` [s], `pace` [s].
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        packages: Iterable[Paced],
        *,
        reply_port: int = REPLY_PORT,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        pace: Callable[[float], bool] | None = None,
    ) -> None:
        (url,) = (urls,) if isinstance(urls, str) else urls
        super().__init__(packages)
        self._timeout_s, self._clock = timeout_s, clock
        self._pace = pace or self._stop.wait
        sender, (host, port, scope) = open_sender(url)
        sender.close()
        self._address = (host, port, 0, scope) if ":" in host else (host, port)
        loopback, anybody = ("[::1]", "[::]") if ":" in host else ("127.0.0.1", "0.0.0.0")
        listen = loopback if parse_endpoint(url).local else anybody
        self._socket = open_receiver(f"udp://{listen}:{reply_port}")
        self._socket.setblocking(False)
        self._past = [0, 0]  # stalls and ignored answers of earlier controllers
        self.coupling = self._loaded()

    def _loaded(self) -> Coupling:
        return Coupling(self._transmit, self._receive)

    @property
    def stalls(self) -> int:
        """How often no answer came in BeamNG's longest wait."""
        return self._past[0] + self.coupling.stalls

    @property
    def ignored(self) -> int:
        """Answers that were ignored."""
        return self._past[1] + self.coupling.ignored

    def run(self) -> None:
        """Play all packages, or until `stop` is called."""
        deadline = self._clock()
        with self._socket, contextlib.suppress(_Stopped):
            for duration, message, *_ in self._packages:
                if not message:
                    self._past = [self.stalls, self.ignored]
                    self.coupling = self._loaded()
                    continue
                sent = False
                while not sent:
                    deadline = max(deadline + duration / PHYSICS_STEPS, self._clock() - LATE_S)
                    if self._pace(max(0.0, deadline - self._clock())) or self._stop.is_set():
                        return
                    sent = self.coupling.step(message)

    def _transmit(self, message: bytes) -> None:
        try:
            self._socket.sendto(message, self._address)
            self.on_sent(message, 0)
        except OSError:
            self.lost += 1
        self._count_sent(self._clock())

    def _receive(self, timeout_s: float) -> bytes | None:
        """Return the next answer, waiting up to the timeout; None if there is none."""
        end = time.monotonic() + self._timeout_s if timeout_s else 0.0
        while True:
            try:
                answer = self._socket.recv(4096)
            except OSError:
                if self._stop.is_set():
                    raise _Stopped from None
                left = end - time.monotonic()
                if left <= 0.0:
                    return None
                select.select([self._socket], [], [], min(left, 0.05))
            else:
                self.replies += 1
                return answer


def encode_states(states: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the messages for `states`, ndarray of STATE_DTYPE: an array of their dtype, ids from 0."""
    rows = np.zeros(len(states), STATE.dtype)
    rows["id"] = np.arange(len(states))
    for short, name in (("pos", "position"), ("vel", "velocity")):
        north, east, down = states[name].T
        rows[f"{short}_x"], rows[f"{short}_y"], rows[f"{short}_z"] = east, north, -down
    roll, pitch, yaw = angles_and_rates(states)[0]
    rows["roll"], rows["pitch"], rows["yaw"] = -roll, pitch, -yaw
    forward, right, down = body_axes(states, "acceleration").T
    rows["acc_x"], rows["acc_y"] = -right, -forward
    rows["acc_z"] = down - Options().gravity_m_s2 * np.cos(pitch) * np.cos(roll)
    speed = np.linalg.norm(states["velocity"], axis=1)
    rows["groundspeed"] = rows["wheelspeed"] = speed
    rows["altitude"] = rows["pos_z"]
    rows["ignition_level"], rows["gear"], rows["fuel"], rows["maxrpm"] = 2.0, 1.0, 0.75, 6500.0
    rows["rpm"] = states["engine_speed"]
    for wheel in WHEELS:
        rows[f"{wheel}_wheel_speed"] = speed
        rows[f"{wheel}_angular_velocity"] = speed / TIRE_RADIUS
    return rows


def driven(name: str, rate_hz: float = RATE_HZ, duration_s: float | None = None, lap: Lap = FIRST) -> Iterator[Paced]:
    """Yield the messages of a virtual drive; raise ConfigError for an unknown drive or rate.

    Another rate than 200 Hz stands for a controller whose `simulinkTime` is 1 / rate_hz.  Simulated time stands still
    during a pause; a new session is a reload of the controller, so ids begin again.
    """
    driven = course(name, rate_hz, duration_s, lap)
    running = driven.frame_times > 0.0
    numbers, session, wait = round(driven.began_s * rate_hz), 1, 0.0
    for row, pause, runs, number in zip(
        encode_states(driven.states), driven.waits.tolist(), running.tolist(), driven.sessions.tolist(), strict=True
    ):
        wait += pause
        if number != session:
            session, numbers = number, 0
            yield Paced(0.0, b"")
        if runs:
            row["id"] = numbers
            yield Paced(wait, row.tobytes())
            numbers, wait = numbers + 1, 0.0


def recorded(
    packages: Sequence[bytes], times: Sequence[float] | None = None, rate_hz: float | None = None
) -> Iterator[Paced]:
    """Yield recorded messages, with their own ids; raise PacketError for others.

    They are paced by simulated time, not by when they were captured.
    """
    period = 1.0 / (rate_hz or RATE_HZ)
    for package in packages:
        if len(package) != STATE.size:
            raise PacketError(f"found a message of {len(package)} bytes, allowed is state")
        yield Paced(period, package)
