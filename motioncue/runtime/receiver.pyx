"""The receiving loop: waits for a simulator, serves one at a time, never touches the GIL."""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.clock cimport Clock, Time
from motioncue.kernels.reasons cimport SECOND_SIMULATOR
from motioncue.kernels.session cimport (
    FEED_BYTES, Session, SessionState, refuse, session_begin, session_end, session_feed, session_sent, session_stalled,
)
from motioncue.kernels.slot cimport mc_load, mc_store
from motioncue.transports.server cimport Server, mc_server

__all__ = ["StreamReceiver"]

cdef enum:
    READS = 64              # of one simulator in a row, before whoever else waits has a turn
    RETRY_MS = 20           # while a package is incomplete or a reply is waiting for room


cdef bint flush(SessionState* s, const mc_server* server) noexcept nogil:
    """Send the replies that are waiting; False if the simulator has gone."""
    cdef int n = 1
    while s.out_have > 0 and n > 0:
        n = server.send(server.memory, s.out, s.out_have)
        if n > 0:
            session_sent(s, n)
    return n >= 0


cdef bint serve(SessionState* s, const mc_server* server, const Time* clock) noexcept nogil:
    """Take what the simulator has sent so far and answer it; False if the connection has ended."""
    cdef uint8_t buffer[FEED_BYTES]
    cdef int i, n
    cdef bint open
    for i in range(READS):
        n = server.receive(server.memory, buffer, FEED_BYTES)
        if n <= 0:
            return n < 0 and flush(s, server)
        open = session_feed(s, buffer, n, clock.now(clock.memory))
        if not (flush(s, server) and open):
            return False
    return True


cdef class StreamReceiver:
    """Serves a stream source at a stream server, one simulator at a time.

    Parameters
    ----------
    session : Session
        Takes the bytes, gives the replies and the motion.
    server : Server
        Carries them; stays the caller's.
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
    cdef Server _server
    cdef int64_t _stopping

    def __init__(self, Session session not None, Server server not None, Clock clock not None):
        self._session = session
        self._server = server
        self._clock = clock
        self._time = clock.calls

    def run(self):
        """Serve until `stop` is called."""
        with nogil:
            self.loop(self._session.state, &self._server.calls)

    cdef void loop(self, SessionState* s, const mc_server* server) noexcept nogil:
        cdef const Time* clock = &self._time
        cdef void* memory = server.memory
        cdef bint serving = False
        cdef bint waiting, knocking
        while True:
            waiting = serving and (s.have > 0 or s.out_have > 0)
            knocking = server.wait(memory, RETRY_MS if waiting else -1)
            if mc_load(&self._stopping):
                break
            # The simulator first: one that has gone makes room for the one that is knocking.
            if serving:
                if not serve(s, server, clock) or session_stalled(s, clock.now(clock.memory)):
                    flush(s, server)
                    server.close_client(memory)
                    serving = False
                    session_end(s, clock.now(clock.memory))
            if knocking and serving:
                if server.refuse(memory):
                    refuse(s, SECOND_SIMULATOR, clock.now(clock.memory), 0)
            elif knocking and server.accept(memory):
                serving = True
                session_begin(s, clock.now(clock.memory))
        if serving:
            server.close_client(memory)
            session_end(s, clock.now(clock.memory))

    def stop(self):
        """End `run` at once, from any thread."""
        mc_store(&self._stopping, 1)
        self._server.wake()
