import socket
from collections.abc import Sequence

from typing_extensions import disjoint_base

from motioncue.core.clock import Clock
from motioncue.frames.intake import Intake
from motioncue.frames.session import Session
from motioncue.transports.server import Server
from motioncue.wire.messages import Heartbeat

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
