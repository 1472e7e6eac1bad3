"""What a simulator's folder has to have: `Source` in packets.py, `Twin` in twin.py; and what datagrams share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from motioncue.drive.courses import Lap
from motioncue.frames.convert import BodyStage, TelemetryStages
from motioncue.frames.intake import Intake
from motioncue.wire.messages import CompiledMessage
from motioncue.wire.packet import Derivation, Packet


class Source(Protocol):
    """The packets of a simulator: how it is reached, what its bytes are, what they say of the motion.

    Optional: `COMMANDS`, the packets that it takes, by name, with `COUNTER`, the field that numbers them, `Sending` and
    `command`, if conventions are open; `READINGS`, the options that a drive can settle; `is_certain`, where a packet
    may fit without being known by its bytes.
    """

    @property
    def SCHEMES(self) -> tuple[str, ...]:
        """Transports that the simulator uses."""

    @property
    def Options(self) -> Any:
        """Readings that the simulator's document leaves open: a struct whose defaults are the likeliest."""

    def intake(self, options: Any, head_m: Any = ..., derivation: Derivation = ...) -> Any:
        """Return what takes the simulator's packages and gives the motion at `head_m`: `Intake`, or `Session`."""

    def framed(self, data: bytes) -> Iterator[bytes]:
        """Split concatenated packages."""

    def identify(self, data: bytes) -> Packet:
        """Return the layout of one package; raise PacketError with what was found and what is allowed."""


class Twin(Protocol):
    """The simulator made of software, which plays virtual drives and recordings."""

    @property
    def Simulator(self) -> Any:
        """Made of endpoints and packages, sends them when they are due."""

    def driven(self, name: str, rate_hz: float = ..., duration_s: float | None = None, lap: Lap = ...) -> Iterable[Any]:
        """Yield the packages of a virtual drive; a later lap follows on the one before."""

    def recorded(
        self, packages: Any, times: Sequence[float] | None = None, rate_hz: float | None = None
    ) -> Iterable[Any]:
        """Yield recorded packages, at the `times` of their capture [s] or at `rate_hz`."""


def datagram_intake(
    messages: Iterable[CompiledMessage],
    head_m: Sequence[float],
    derivation: Derivation,
    *,
    body: Mapping[str, Any] | None = None,
    reply_port: int = 0,
    **telemetry: Any,
) -> Intake:
    """Return the intake of datagrams whose takes fill north, east, down and forward, right, down.

    `body` and `telemetry` are what `BodyStage` and `TelemetryStages` have to know beside or instead of that.
    """
    axes = {"world_north": (1, 0, 0), "world_up": (0, 0, -1), "car_forward": (1, 0, 0), "car_up": (0, 0, -1)}
    stages = TelemetryStages(
        acceleration_axes="car", acceleration=derivation.acceleration, delay_s=derivation.delay_s, **telemetry
    )
    stage = BodyStage(**{**axes, "rates": "car", **(body or {})}, head_m=head_m)
    return Intake(list(messages), stage, stages, reply_port=reply_port)
