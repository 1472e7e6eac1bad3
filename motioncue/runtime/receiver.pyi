import socket
from collections.abc import Sequence

from typing_extensions import disjoint_base

from motioncue.intake.intake import Intake
from motioncue.intake.messages import Heartbeat
from motioncue.intake.session import Session
from motioncue.kernels.clock import Clock
from motioncue.transports.server import Server

__all__ = ["DatagramReceiver", "StreamReceiver"]

@disjoint_base
class StreamReceiver:
    def __init__(self, session: Session, server: Server, clock: Clock) -> None: ...
    def run(self) -> None: ...
    def stop(self) -> None: ...

@disjoint_base
class DatagramReceiver:
    @property
    def forwarded(self) -> int: ...
    @property
    def beats(self) -> int: ...
    def __init__(
        self,
        intake: Intake,
        sockets: Sequence[socket.socket],
        clock: Clock,
        *,
        hosts: Sequence[bytes] | None = None,
        forwards: Sequence[tuple[socket.socket, tuple[str, int, int]]] = (),
        heartbeat: Heartbeat | None = None,
    ) -> None: ...
    def run(self) -> None: ...
    def stop(self) -> None: ...
