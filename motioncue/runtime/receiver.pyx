"""The receiving loop: waits for a simulator, serves one at a time, never touches the GIL."""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.clock cimport Clock, Time
from motioncue.kernels.reasons cimport SECOND_SIMULATOR
from motioncue.kernels.session cimport (
    FEED_BYTES, Session, SessionState, refuse, session_begin, session_end, session_feed, session_sent, session_stalled,
)
from motioncue.kernels.slot cimport mc_load, mc_store
from motioncue.transports.sockets cimport (
    MC_NO_FD, mc_accept, mc_close, mc_fd, mc_poll, mc_pollfd, mc_ready, mc_receive, mc_send, mc_watch,
)

import socket

__all__ = ["StreamReceiver"]

cdef enum:
    READS = 64              # of one simulator in a row, before whoever else waits has a turn
    RETRY_MS = 20           # while a package is incomplete or a reply is waiting for room


cdef bint flush(SessionState* s, mc_fd client) noexcept nogil:
    """Send the replies that are waiting; False if the simulator has gone."""
    cdef int n = 1
    while s.out_have > 0 and n > 0:
        n = mc_send(client, s.out, s.out_have)
        if n > 0:
            session_sent(s, n)
    return n >= 0


cdef bint serve(SessionState* s, mc_fd client, const Time* clock) noexcept nogil:
    """Take what the simulator has sent so far and answer it; False if the connection has ended."""
    cdef uint8_t buffer[FEED_BYTES]
    cdef int i, n
    cdef bint open
    for i in range(READS):
        n = mc_receive(client, buffer, FEED_BYTES)
        if n <= 0:
            return n < 0 and flush(s, client)
        open = session_feed(s, buffer, n, clock.now(clock.memory))
        if not (flush(s, client) and open):
            return False
    return True


cdef class StreamReceiver:
    """Serves a stream source at a listening socket, one simulator at a time.

    Parameters
    ----------
    session : Session
        Takes the bytes, gives the replies and the motion.
    listener : socket.socket
        Listening and non-blocking; stays the caller's.
    clock : Clock
        Stamps what is received.

    Notes
    -----
    `run` belongs in a thread of its own and releases the GIL until `stop`.  A second simulator is refused by closing
    its connection.  Simulators may leave, come back and be killed at any byte.
    """

    cdef Session _session
    cdef Clock _clock
    cdef Time _time
    cdef object _listener
    cdef object _wake       # reading end, writing end
    cdef int64_t _stopping

    def __init__(self, Session session not None, listener, Clock clock not None):
        self._session = session
        self._listener = listener
        self._clock = clock
        self._time = clock.calls
        self._wake = socket.socketpair()

    def run(self):
        """Serve until `stop` is called."""
        cdef mc_fd listener = self._listener.fileno()
        cdef mc_fd wake = self._wake[0].fileno()
        with nogil:
            self.loop(self._session.state, listener, wake)

    cdef void loop(self, SessionState* s, mc_fd listener, mc_fd wake) noexcept nogil:
        cdef const Time* clock = &self._time
        cdef mc_pollfd watched[3]
        cdef mc_fd client = MC_NO_FD
        cdef mc_fd other
        cdef bint waiting
        while True:
            mc_watch(&watched[0], wake)
            mc_watch(&watched[1], listener)
            if client != MC_NO_FD:
                mc_watch(&watched[2], client)
            waiting = client != MC_NO_FD and (s.have > 0 or s.out_have > 0)
            mc_poll(watched, 2 if client == MC_NO_FD else 3, RETRY_MS if waiting else -1)
            if mc_load(&self._stopping):
                break
            # The simulator first: one that has gone makes room for the one that is knocking.
            if client != MC_NO_FD:
                if not serve(s, client, clock) or session_stalled(s, clock.now(clock.memory)):
                    flush(s, client)
                    mc_close(client)
                    client = MC_NO_FD
                    session_end(s, clock.now(clock.memory))
            if mc_ready(&watched[1]):
                other = mc_accept(listener)
                if other == MC_NO_FD:
                    continue
                if client != MC_NO_FD:
                    mc_close(other)
                    refuse(s, SECOND_SIMULATOR, clock.now(clock.memory), 0)
                else:
                    client = other
                    session_begin(s, clock.now(clock.memory))
        if client != MC_NO_FD:
            mc_close(client)
            session_end(s, clock.now(clock.memory))

    def stop(self):
        """End `run` at once, from any thread."""
        mc_store(&self._stopping, 1)
        self._wake[1].send(b".")

    def close(self):
        """Release what `run` needed; call it after `run` has returned."""
        for end in self._wake:
            end.close()
