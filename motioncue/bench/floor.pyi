import socket

from numpy import int64, uint8
from numpy.typing import NDArray

from motioncue.core.clock import Clock

__all__ = ["pace", "receive", "send"]

def pace(
    clock: Clock, period_ns: int, ticks: int, sock: socket.socket, port: int, packet: bytes
) -> tuple[NDArray[int64], NDArray[int64]]: ...
def receive(clock: Clock, sock: socket.socket, room: int) -> NDArray[int64]: ...
def send(
    clock: Clock,
    interval_ns: int,
    packets: NDArray[uint8],
    sock: socket.socket,
    port: int,
    receiver: socket.socket,
) -> tuple[NDArray[int64], NDArray[int64]]: ...
