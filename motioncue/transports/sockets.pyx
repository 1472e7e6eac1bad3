"""The stream server of a listening socket, and what datagram sockets need to be told."""

from motioncue.transports.server cimport Server

import socket

__all__ = ["SocketServer", "ignore_unreachable"]


def ignore_unreachable(sock):
    """Let no unreachable port make a datagram socket's later calls fail; return whether granted."""
    return mc_ignore_unreachable(sock.fileno())


cdef class SocketServer(Server):
    """Serves a listening socket.

    Parameters
    ----------
    listener : socket.socket
        Listening and non-blocking; closed by `close`.
    """

    def __init__(self, listener):
        woken, waker = socket.socketpair()
        self.listener = listener
        self._ends = (woken, waker)
        self.calls = mc_serve_socket(&self.memory, listener.fileno(), woken.fileno(), waker.fileno())

    def close(self):
        """Stop listening and release everything; call it when no loop runs."""
        for sock in (self.listener, *self._ends):
            sock.close()
