import socket
from collections.abc import Sequence

from typing_extensions import disjoint_base

from motioncue.transports.server import Server

__all__ = ["SocketServer", "ignore_unreachable"]

def ignore_unreachable(sock: socket.socket) -> bool: ...

@disjoint_base
class SocketServer(Server):
    @property
    def listener(self) -> socket.socket: ...
    def __init__(self, listener: socket.socket, hosts: Sequence[bytes] | None = None) -> None: ...
