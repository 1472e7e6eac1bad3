from typing_extensions import disjoint_base

from motioncue.kernels.clock import Clock
from motioncue.kernels.session import Session
from motioncue.transports.server import Server

__all__ = ["StreamReceiver"]

@disjoint_base
class StreamReceiver:
    def __init__(self, session: Session, server: Server, clock: Clock) -> None: ...
    def run(self) -> None: ...
    def stop(self) -> None: ...
