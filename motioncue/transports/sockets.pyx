"""The stream server on a listening socket, and settings of datagram sockets."""

from libc.stdint cimport uint32_t, uint8_t
from libc.string cimport memcpy, memset

import ipaddress
import socket


cdef class Server:
    """A stream server; one loop, without the GIL, calls the functions in `calls`."""

    def wake(self):
        """Make the loop's wait return, from any thread."""
        if self.calls.wake != NULL:
            self.calls.wake(self.calls.memory)

    def close(self):
        """Stop listening and release everything; call it only while no loop runs."""
        raise NotImplementedError


def ignore_unreachable(sock):
    """Keep unreachable ports from failing a datagram socket's later calls; return whether granted."""
    return mc_ignore_unreachable(sock.fileno())


cdef mc_allowed allowed_hosts(object hosts) except *:
    """Return the allowed hosts: packed addresses of 16 bytes, or None for every host."""
    cdef mc_allowed allowed
    memset(&allowed, 0, sizeof(mc_allowed))
    allowed.any = hosts is None
    for host in hosts or ():
        if allowed.n == 32 or len(host) != 16:
            raise ValueError("hosts: allowed are 32 packed addresses of 16 bytes")
        memcpy(allowed.hosts[allowed.n], <const uint8_t*><bytes>host, 16)
        allowed.n += 1
    return allowed


cdef int packed_address(char* out, object address) except -1:
    """Write a numeric address (IP, port, scope) as a packed sockaddr; return its size."""
    host = ipaddress.ip_address(address[0].partition("%")[0])
    if host.version == 4:
        return mc_address_v4(out, <const uint8_t*><bytes>host.packed, address[1])
    return mc_address_v6(out, <const uint8_t*><bytes>host.packed, address[1], <uint32_t>address[2])


cdef class SocketServer(Server):
    """A stream server on a listening socket."""

    def __init__(self, listener, hosts=None):
        woken, waker = socket.socketpair()
        self.listener = listener
        self._ends = (woken, waker)
        self.calls = mc_serve_socket(&self.memory, listener.fileno(), woken.fileno(), waker.fileno())
        self.memory.allowed = allowed_hosts(hosts)

    def close(self):
        """Stop listening and release everything; call it only while no loop runs."""
        for sock in (self.listener, *self._ends):
            sock.close()
