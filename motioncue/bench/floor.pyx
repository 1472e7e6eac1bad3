"""The floor: bare loops, which show what this machine allows."""

from libc.stdint cimport int64_t, uint8_t

from motioncue.core.clock cimport Clock, Time
from motioncue.transports.handles cimport ADDRESS_BYTES, mc_arrival, mc_fd, mc_receive, mc_send_to, packed_address

import numpy as np

cdef enum:
    LARGEST = 2048          # largest datagram [bytes]


def pace(Clock clock not None, int64_t period_ns, int64_t ticks, sock, int port, const uint8_t[::1] packet not None):
    """Repeatedly sleep to a deadline, read the clock and send; return the lateness of each packet."""
    cdef char address[ADDRESS_BYTES]
    cdef int size = packed_address(address, ("127.0.0.1", port, 0))
    cdef Time time = clock.calls
    cdef mc_fd fd = sock.fileno()
    cdef int64_t i, deadline, now, n = 0
    late, index = np.full(ticks, 0, np.int64), np.full(ticks, 0, np.int64)    # full, not zeros, touches their pages
    cdef int64_t[::1] lates = late
    cdef int64_t[::1] indices = index
    with nogil:
        deadline = time.now(time.memory) + period_ns
        for i in range(ticks):
            time.sleep_until(time.memory, deadline)
            now = time.now(time.memory)
            mc_send_to(fd, &packet[0], <int>packet.shape[0], address, size)
            lates[i] = now - deadline
            indices[i] = n
            deadline += period_ns
            n += 1
            now = time.now(time.memory)
            if now >= deadline:
                n += (now - deadline) // period_ns + 1
                deadline += ((now - deadline) // period_ns + 1) * period_ns
    return late, index


def receive(Clock clock not None, sock, int64_t room):
    """Receive until a datagram of one byte comes; return the times of reception [ns]."""
    cdef uint8_t[LARGEST] buffer
    cdef Time time = clock.calls
    cdef mc_fd fd = sock.fileno()
    cdef int64_t now, n = 0
    received = np.zeros(room, np.int64)
    cdef int64_t[::1] times = received
    with nogil:
        while mc_receive(fd, buffer, LARGEST) > 1:
            now = time.now(time.memory)
            if n < room:
                times[n] = now
                n += 1
    return received[:n]


def send(Clock clock not None, int64_t interval_ns, const uint8_t[:, ::1] packets not None, sock, int port, receiver):
    """Send packets one by one; return the times of sending and of arrival [ns]."""
    cdef char address[ADDRESS_BYTES]
    cdef int size = packed_address(address, ("127.0.0.1", port, 0))
    cdef Time time = clock.calls
    cdef mc_fd fd = sock.fileno(), other = receiver.fileno()
    cdef int64_t deadline
    cdef Py_ssize_t i, n = packets.shape[0]
    sent, arrived = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cdef int64_t[::1] sends = sent
    cdef int64_t[::1] arrivals = arrived
    with nogil:
        mc_arrival(other)
        deadline = time.now(time.memory) + interval_ns
        for i in range(n):
            time.sleep_until(time.memory, deadline)
            sends[i] = time.now(time.memory)
            mc_send_to(fd, &packets[i, 0], <int>packets.shape[1], address, size)
            time.sleep_until(time.memory, deadline + interval_ns // 2)
            arrivals[i] = mc_arrival(other)
            deadline += interval_ns
    return sent, arrived
