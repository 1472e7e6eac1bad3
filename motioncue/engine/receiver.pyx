"""The receiving loops: wait for a simulator and serve it, one at a time, without the GIL."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from motioncue.core.clock cimport Clock, Time
from motioncue.core.threads cimport (
    NOT_ALLOWED, NO_DESCRIPTOR, RECEIVE_FAILED, REPLY_LOST, SECOND_SIMULATOR, SEEN_LATE, TAKEN_OVER, TORN, mc_count,
    mc_load, mc_store,
)
from motioncue.frames.intake cimport (
    FEED_BYTES, Intake, IntakeState, Session, SessionState, intake_begin, intake_end, intake_kind, intake_take,
    log_event, refuse, session_begin, session_end, session_feed, session_sent, session_stalled,
)
from motioncue.transports.memory cimport (
    MC_GATHERED, MC_TAIL, MC_TORN, MC_WHOLE, Memory, mc_memory, mc_memory_end, mc_memory_first, mc_memory_number,
    mc_memory_sample, mc_memory_take,
)
from motioncue.transports.handles cimport (
    ADDRESS_BYTES, MC_FAILED, MC_KNOCKS, MC_NO_DESCRIPTOR, MC_NOT_ALLOWED, MC_QUIET, MC_REFUSED, MC_REST_MS, MC_SPEAKS,
    MC_TAKES_OVER, Server, allowed_hosts, mc_allowed, mc_fd, mc_is_allowed, mc_last_error, mc_port_of, mc_receive_from,
    mc_seat, mc_seat_judge, mc_seat_keep, mc_send_back, mc_send_to, mc_server, mc_wait_any, packed_address, sockaddr_storage,
)
from motioncue.wire.messages cimport MESSAGES, REPLY_BYTES, Reply, reply_write

import ipaddress
import socket
import threading

__all__ = ["DatagramReceiver", "MemoryReceiver", "StreamReceiver"]

cdef enum:
    READS = 64              # successive reads from one simulator before a waiting one gets a turn
    RETRY_MS = 20           # wait while a package is incomplete or a reply has no room
    ALIVE_NS = 1_000_000_000  # without a frame (datagrams: without any), after which another may take over


cdef bint flush(SessionState* s, const mc_server* server) noexcept nogil:
    """Send the waiting replies; return False if the simulator has gone."""
    cdef int n = 1
    while s.out_have > 0 and n > 0:
        n = server.send(server.memory, s.out, s.out_have)
        if n > 0:
            session_sent(s, n)
    return n >= 0


cdef class StreamReceiver:
    """Serves a stream source, one simulator at a time.

    `run` belongs in a thread of its own and releases the GIL until `stop`.  A second simulator is refused by closing
    its connection, unless the first one has sent no frame for a second: then the second one takes over.  A connection
    that has never sent a byte gives way at once to the first one that does.
    Simulators may leave, return and be killed at any byte.
    """

    cdef Session _session
    cdef Clock _clock
    cdef Time _time
    cdef Server _server
    cdef bint _serving
    cdef bint _spoken           # the simulator has sent something
    cdef int64_t _frames        # number of accepted frames at the last look
    cdef int64_t _heard         # arrival of the newest frame, or of the simulator itself [ns]
    cdef bint _starved          # the system could not give the newest client: no descriptor was left, or it failed
    cdef bint _failing          # the system refused to wait for any
    cdef int64_t _rest          # until then, waiting clients are ignored [ns]
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
        cdef bint deaf
        cdef int came
        while True:
            deaf = self._starved and clock.now(clock.memory) < self._rest
            came = server.wait(server.memory, self.patience(s, deaf), deaf)
            if mc_load(&self._stopping):
                break
            if came == MC_FAILED and not self._failing:
                refuse(s.intake, RECEIVE_FAILED, clock.now(clock.memory), mc_last_error())
            self._failing = came == MC_FAILED
            # The present simulator comes first: if it has gone it makes room, and if it sends frames it keeps its
            # place.
            if self._serving:
                self.hear(s, server)
            if came == MC_QUIET or self._spoken:
                self.dismiss(s, server)
            if came == MC_KNOCKS or (came == MC_SPEAKS and not self._spoken):
                self.admit(s, server, came, clock.now(clock.memory))
        self.dismiss(s, server)
        if self._serving:
            self.leave(s, server)

    cdef int patience(self, const SessionState* s, bint deaf) noexcept nogil:
        """Return the longest wait [ms]; negative: no limit."""
        if self._serving and (s.have > 0 or s.out_have > 0):
            return RETRY_MS
        return MC_REST_MS if deaf else -1

    cdef bint serve(self, SessionState* s, const mc_server* server, const Time* clock) noexcept nogil:
        """Take and answer what the simulator has sent so far; return False if the connection has ended."""
        cdef uint8_t buffer[FEED_BYTES]
        cdef int i, n
        cdef bint open
        for i in range(READS):
            n = server.receive(server.memory, buffer, FEED_BYTES)
            if n <= 0:
                return n < 0 and flush(s, server)
            self._spoken = True
            open = session_feed(s, buffer, n, clock.now(clock.memory))
            if not (flush(s, server) and open):
                return False
        return True

    cdef void hear(self, SessionState* s, const mc_server* server) noexcept nogil:
        """Take what the simulator has sent; record whether a frame came and whether the connection has ended."""
        cdef const Time* clock = &self._time
        cdef bint open = self.serve(s, server, clock)
        cdef int64_t now = clock.now(clock.memory)  # after the last frame: the machine may have slept in between
        cdef int64_t frames = mc_load(&s.intake.counters.accepted)
        if frames != self._frames:
            self._frames = frames
            self._heard = now
        if not open or session_stalled(s, now):
            flush(s, server)
            self.leave(s, server)

    cdef void leave(self, SessionState* s, const mc_server* server) noexcept nogil:
        server.close_client(server.memory)
        self._serving = self._spoken = False
        session_end(s, self._time.now(self._time.memory))

    cdef void dismiss(self, SessionState* s, const mc_server* server) noexcept nogil:
        """Turn the held clients away: the place is taken, or they have sent nothing in time."""
        cdef int i
        for i in range(server.dismiss(server.memory)):
            refuse(s.intake, SECOND_SIMULATOR, self._time.now(self._time.memory), 0)

    cdef void admit(self, SessionState* s, const mc_server* server, int came, int64_t now) noexcept nogil:
        """Accept a waiting client if there is no simulator or if the present one is silent.

        Who has sent nothing yet has the place only until another one sends something, so that silent connections, however
        many, keep no simulator out; who knocks meanwhile is held.
        """
        cdef bint taken = self._serving and came == MC_KNOCKS and now - self._heard < ALIVE_NS
        cdef bint held = taken and not self._spoken
        cdef int done, error
        if held:
            done = server.hold(server.memory)
        else:
            done = server.refuse(server.memory) if taken else server.accept(server.memory)
        if done == MC_NO_DESCRIPTOR or done == MC_FAILED:
            error = mc_last_error()
            self._rest = now + MC_REST_MS * 1_000_000
            if not self._starved and done == MC_FAILED:
                refuse(s.intake, RECEIVE_FAILED, now, error)
            elif not self._starved:
                refuse(s.intake, NO_DESCRIPTOR, now, 0)
        elif done == MC_NOT_ALLOWED:
            refuse(s.intake, NOT_ALLOWED, now, 0)
        elif done and taken and not held:
            refuse(s.intake, SECOND_SIMULATOR, now, 0)
        elif done and not taken:
            if self._serving:
                session_end(s, now)
                log_event(s.intake, now, TAKEN_OVER, (now - self._heard) // 1_000_000)
            self._serving = True
            self._spoken = False
            self._heard = now
            session_begin(s, now)
        self._starved = done == MC_NO_DESCRIPTOR or done == MC_FAILED

    def stop(self):
        """End `run` at once; may be called from any thread."""
        mc_store(&self._stopping, 1)
        self._server.wake()


cdef enum:
    SOURCES = 8             # most sockets to listen on
    FORWARDS = 8            # most addresses to forward to
    CALLED = 32             # most hosts that get a heartbeat
    BEAT_BYTES = 64         # longest heartbeat
    LARGEST = 65536         # largest datagram [bytes]


ctypedef struct Forward:
    mc_fd fd
    char address[ADDRESS_BYTES]
    int address_size


def reachable(sock, hosts):
    """Return the addresses of packed hosts that a socket can send to; its own if `hosts` is None."""
    if hosts is None:
        return [sock.getsockname()[0]]
    found = [ipaddress.IPv6Address(host) for host in hosts]
    if sock.family == socket.AF_INET:
        return [str(host.ipv4_mapped) for host in found if host.ipv4_mapped is not None]
    return [str(host) for host in found]


cdef class DatagramReceiver:
    """Receives from a datagram source, one simulator at a time.

    `run` belongs in a thread of its own and releases the GIL until `stop`.  The first host drives that says anything
    known; others are refused and counted until it has been silent for a second.  Of that host one port drives, and another
    one once that has been silent for a quarter of a second.  A program that sends every datagram from a new port, which
    none before it came from, is one simulator.  Messages other than motion may come from ports of their own.
    """

    cdef Intake _intake
    cdef Clock _clock
    cdef Time _time
    cdef object _owned
    cdef object _waker
    cdef mc_fd _fds[SOURCES + 1]
    cdef int _n
    cdef mc_allowed _allowed
    cdef Forward _forwards[FORWARDS]
    cdef int _forward_count
    cdef readonly int64_t forwarded     # datagrams forwarded
    cdef int _reply_port
    cdef uint8_t _beat[BEAT_BYTES]
    cdef int _beat_size                 # 0: the simulator needs no heartbeat
    cdef int64_t _beat_period           # [ns]
    cdef int64_t _beat_due              # [ns]
    cdef Forward _called[CALLED]
    cdef int _called_count
    cdef readonly int64_t beats         # heartbeats sent
    cdef uint8_t _driver[16]            # the host that drives
    cdef int64_t _heard                 # arrival of its newest datagram [ns]; 0 before the first
    cdef mc_seat _seats[MESSAGES + 1]   # its port for motion, and for each other message
    cdef uint8_t _other[16]             # the newest host that was refused
    cdef int _other_port                # and its port
    cdef uint8_t _buffer[LARGEST]
    cdef uint64_t _failing              # which sockets the system gave nothing from at the last attempt, the waker's: no wait
    cdef int64_t _stopping

    def __init__(
        self,
        Intake intake not None,
        sockets,
        Clock clock not None,
        *,
        hosts=None,
        forwards=(),
        heartbeat=None,
    ):
        cdef Forward* f
        if not 0 < len(sockets) <= SOURCES or len(forwards) > FORWARDS:
            raise ValueError(f"sockets: allowed are 1 to {SOURCES}, and up to {FORWARDS} addresses to pass on to")
        woken, self._waker = socket.socketpair()
        self._owned = (tuple(sockets), tuple(forwards), woken)
        self._intake, self._clock, self._time = intake, clock, clock.calls
        for sock in (*sockets, woken):
            self._fds[self._n] = sock.fileno()
            self._n += 1
        self._allowed = allowed_hosts(hosts)
        for sock, address in forwards:
            f = &self._forwards[self._forward_count]
            f.fd = sock.fileno()
            f.address_size = packed_address(f.address, address)
            self._forward_count += 1
        self._reply_port = intake.reply_port
        intake.name_contest(self._contest)
        if heartbeat is not None:
            self._set_heartbeat(heartbeat, sockets[0], hosts)

    cdef int _set_heartbeat(self, heartbeat, sock, hosts) except -1:
        cdef Forward* f
        if not 0 < len(heartbeat.data) <= BEAT_BYTES or len(hosts or ()) > CALLED:
            raise ValueError(f"heartbeat: allowed are 1 to {BEAT_BYTES} bytes and {CALLED} hosts")
        memcpy(self._beat, <const uint8_t*><bytes>heartbeat.data, len(heartbeat.data))
        self._beat_size, self._beat_period = len(heartbeat.data), round(heartbeat.every_s * 1e9)
        for host in reachable(sock, hosts):
            f = &self._called[self._called_count]
            f.fd = sock.fileno()
            f.address_size = packed_address(f.address, (host, heartbeat.port, 0))
            self._called_count += 1
        return 0

    def run(self):
        """Receive until `stop` is called."""
        with nogil:
            self.loop(self._intake.intake)

    cdef void loop(self, IntakeState* s) noexcept nogil:
        cdef uint64_t ready, failed
        cdef uint64_t deaf = 0      # sockets that rest, because an attempt at once has failed again
        cdef int timeout, i
        while True:
            timeout = self.beat() if self._beat_size else -1
            if deaf and (timeout < 0 or timeout > MC_REST_MS):
                timeout = MC_REST_MS
            self.note(s, self._n - 1, mc_wait_any(self._fds, self._n, deaf, timeout, &ready))
            if mc_load(&self._stopping):
                break
            deaf = 0
            failed = self._failing      # what fails once is tried again at once: a rest would hold frames back
            for i in range(self._n - 1):
                if ready >> i & 1:
                    s.endpoint = i
                    if self.note(s, i, self.receive(s, self._fds[i])):
                        deaf |= failed & <uint64_t>1 << i

    cdef bint note(self, IntakeState* s, int i, int done) noexcept nogil:
        """Say that the system refuses to give anything from a socket, if that is new; return whether it does."""
        cdef uint64_t socket = <uint64_t>1 << i
        cdef int error
        if done != MC_FAILED:
            self._failing &= ~socket
            return False
        if not self._failing & socket:
            error = mc_last_error()
            refuse(s, RECEIVE_FAILED, self._time.now(self._time.memory), error)
        self._failing |= socket
        return True

    cdef int beat(self) noexcept nogil:
        """Send the heartbeat if it is due; return the time until the next one [ms]."""
        cdef int64_t now = self._time.now(self._time.memory)
        cdef int i
        if now >= self._beat_due:
            for i in range(self._called_count):
                if mc_send_to(
                    self._called[i].fd, self._beat, self._beat_size, self._called[i].address, self._called[i].address_size
                ) >= 0:
                    mc_count(&self.beats, 1)
            self._beat_due = now + self._beat_period
        return <int>((self._beat_due - now) // 1_000_000) + 1

    cdef bint is_seated(self, IntakeState* s, const uint8_t* host, int port, int size, int64_t now) noexcept nogil:
        """Say whether the datagram in the buffer is the driving simulator's, or that of one that now takes over.

        A datagram that says nothing known gives nobody the place; it is taken only to be counted.
        """
        cdef bint known = self._heard != 0 and memcmp(self._driver, host, 16) == 0
        cdef int64_t silent = now - self._heard
        cdef int kind, verdict
        if known and port == self._seats[0].port:
            self._heard = now
            mc_seat_keep(&self._seats[0], now)
            return True
        if not known and self._heard != 0 and silent < ALIVE_NS:
            return False
        kind = intake_kind(s, self._buffer, size)
        if kind < 0:
            return True
        if not known:
            if self._heard != 0:
                log_event(s, now, TAKEN_OVER, silent // 1_000_000)
            memcpy(self._driver, host, 16)
            memset(self._seats, 0, sizeof(self._seats))
            intake_begin(s, now)
        silent = now - self._seats[kind].heard
        verdict = mc_seat_judge(&self._seats[kind], port, now)
        if verdict == MC_REFUSED:
            return False
        self._heard = now
        if verdict == MC_TAKES_OVER and kind == 0:
            log_event(s, now, TAKEN_OVER, silent // 1_000_000)
            intake_begin(s, now)
        return True

    def _contest(self):
        """Return in words who was refused last, and who drives."""
        other, driver = (
            str(getattr(host, "ipv4_mapped", None) or host)
            for host in (ipaddress.IPv6Address(self._other[:16]), ipaddress.IPv6Address(self._driver[:16]))
        )
        return f"{other} port {self._other_port} while {driver} port {self._seats[0].port or 'any'} drives"

    cdef int receive(self, IntakeState* s, mc_fd fd) noexcept nogil:
        """Take the datagram that waits at one socket, forward it, and answer it; return its size, -1 or MC_FAILED."""
        cdef const Time* clock = &self._time
        cdef uint8_t out[REPLY_BYTES]
        cdef uint8_t host[16]
        cdef sockaddr_storage sender
        cdef const Reply* reply
        cdef int i
        cdef int size = mc_receive_from(fd, self._buffer, LARGEST, &sender, host)
        cdef int64_t now = clock.now(clock.memory)
        if size < 0:
            return size
        if not mc_is_allowed(&self._allowed, host):
            refuse(s, NOT_ALLOWED, now, size)
            return size
        for i in range(self._forward_count):
            if mc_send_to(
                self._forwards[i].fd, self._buffer, size, self._forwards[i].address, self._forwards[i].address_size
            ) >= 0:
                mc_count(&self.forwarded, 1)
        if not self.is_seated(s, host, mc_port_of(&sender), size, now):
            memcpy(self._other, host, 16)
            self._other_port = mc_port_of(&sender)
            refuse(s, SECOND_SIMULATOR, now, size)
            return size
        reply = intake_take(s, self._buffer, size, now)
        if reply.size:
            i = reply_write(reply, self._buffer, size, out)
            if mc_send_back(fd, out, i, &sender, self._reply_port) >= 0:
                mc_count(&s.counters.replies, 1)
            else:
                refuse(s, REPLY_LOST, now, 0)
        return size

    def stop(self):
        """End `run` at once; may be called from any thread."""
        mc_store(&self._stopping, 1)
        self._waker.send(b".")


cdef int64_t FOREVER = 1 << 60        # [ns]; with it, differences and twice those are numbers still
cdef int64_t FOREVER_AGO = -FOREVER

cdef enum:
    LOOKS = 3               # looks at a state that is being written before it is counted as torn
    SEARCH_MS = 250         # from one search for the simulator's memory to the next
    SETTLE_NS = 50_000      # from a counter that has changed until a state without a sign of its end is read
    NEAR = 3                # halves of a period between looks, in whose time no simulator begins two states
    DOUBTS = 32             # successive looks at a session's first state, which stands, before it is taken
    LATE = 3                # so many more states left out than shown to be whole, after which one that stays is taken
    STAYS = 2               # looks at which it has to stay so
    OTHER_NS = 1_000_000_000    # from one look whether the memory beside is still the simulator's to the next


cdef class MemoryReceiver:
    """Reads a simulator's shared memory, found anew whenever the simulator has ended.

    `run` belongs in a thread of its own and holds the GIL only while it searches, and while no new state comes.
    """

    cdef Intake _intake
    cdef object _find
    cdef Clock _clock
    cdef Time _time
    cdef object _stopped
    cdef int64_t _period                # from look to look [ns]
    cdef int64_t _still                 # [ns]
    cdef bint _settles
    cdef uint64_t _counter
    cdef bint _known                    # whether `_counter` is that of a state
    cdef readonly int64_t torn          # looks that met a state being written
    cdef uint8_t _states[2][MC_GATHERED]    # the newest and the one before, in turn
    cdef int _newest
    # The newest state that was seen, of a simulator that marks nothing:
    cdef uint64_t _seen                 # its counter
    cdef uint8_t _seen_end[MC_TAIL]     # how it ended
    cdef int64_t _seen_from             # after it was first looked at [ns]
    cdef int64_t _seen_at               # before it was last looked at [ns]
    cdef int64_t _lasts                 # as long as the last states were seen at least [ns]
    cdef bint _stands                   # whether it ended like the one before
    cdef int _doubts                    # looks at it while it may be half written
    cdef int _left_out                  # states left out, less those shown to be whole since; up to 2 * LATE
    cdef bint _told                     # whether it was said in this session that states are seen late
    cdef int _sample                    # of the newest state, the next to be given
    cdef int64_t _sample_due            # when [ns]
    cdef int64_t _sample_period         # [ns]
    cdef uint8_t _packet[MC_GATHERED]
    cdef int64_t _stopping

    def __init__(self, Intake intake not None, find, Clock clock not None):
        self._intake, self._find, self._clock, self._time = intake, find, clock, clock.calls
        gather = intake.gather
        self._period, self._still = round(1e9 / gather.poll_hz), round(1e9 * gather.still_s)
        self._settles = gather.end < 0 and not gather.odd
        self._sample_period = round(1e9 / gather.sample_hz)
        self._stopped = threading.Event()

    def run(self):
        """Search and read until `stop` is called."""
        cdef Memory memory
        cdef bint there
        while not self._stopped.is_set():
            memory = self._find()
            if memory is None:
                self._stopped.wait(SEARCH_MS * 1e-3)
                continue
            self._known, self._sample = False, self._intake.gather.samples
            self._seen, self._seen_from, self._seen_at, self._lasts = 0, FOREVER_AGO, FOREVER_AGO, 0
            self._stands, self._doubts, self._left_out, self._told = False, 0, 0, False
            intake_begin(self._intake.intake, self._time.now(self._time.memory))
            there = True
            while there and not self._stopped.is_set():
                with nogil:
                    there = self.loop(self._intake.intake, memory)
                there = there and memory.present()
            intake_end(self._intake.intake, self._time.now(self._time.memory))

    cdef bint loop(self, IntakeState* s, Memory memory) noexcept nogil:
        """Read until no new state has come for a while, or it is time to look whether the memory is still the simulator's.

        Return False if it has gone.
        """
        cdef const Time* clock = &self._time
        cdef mc_memory* m = &memory.memory
        cdef uint64_t counter
        cdef int64_t now = clock.now(clock.memory)
        cdef int64_t heard = now
        cdef int64_t due = now
        # A memory beside it that is replaced leaves the states coming, with another vehicle for the player's.
        cdef int64_t until = now + (OTHER_NS if m.asks else FOREVER)
        cdef int found
        while not mc_load(&self._stopping) and now - heard < self._still and now < until:
            if now >= due:
                if not mc_memory_number(m, m.counter, m.counter_size, &counter):
                    return False
                if not self._known or counter != self._counter:
                    found = self.look(s, m, counter, &now)
                    if found == MC_WHOLE:
                        heard = now
                    elif found != MC_TORN:
                        return False
                else:
                    self._seen_at = now
                due += self._period
                if due < now:       # the machine was busy: what has been missed is gone
                    due = now + self._period
            if self._sample < m.samples and now >= self._sample_due:
                self.give(s, m, now)
            clock.sleep_until(
                clock.memory, self._sample_due if self._sample < m.samples and self._sample_due < due else due
            )
            now = clock.now(clock.memory)
        return True

    cdef int look(self, IntakeState* s, mc_memory* m, uint64_t counter, int64_t* now) noexcept nogil:
        """Take a state that is new, with this counter: MC_WHOLE, MC_TORN if it is not, or not surely, whole, or MC_GONE."""
        cdef const Time* clock = &self._time
        cdef uint8_t* before = self._states[self._newest]
        cdef uint8_t* state = self._states[1 - self._newest]
        cdef int64_t first = clock.now(clock.memory)    # the counter had changed by then
        cdef int64_t last = first
        cdef int found = MC_TORN
        cdef int looks = 0
        while self._sample < m.samples:     # of a state that is followed so soon that they lie between it and one overwritten here
            self.give(s, m, now[0])
        if self._settles:
            clock.sleep_until(clock.memory, now[0] + SETTLE_NS)
            now[0] = clock.now(clock.memory)
        while found == MC_TORN and looks < LOOKS:
            last = now[0]
            found = mc_memory_take(m, state)
            now[0] = clock.now(clock.memory)
            looks += 1
            if found == MC_TORN:
                mc_count(&self.torn, 1)
        if found == MC_TORN:
            refuse(s, TORN, now[0], 0)
        if found != MC_WHOLE:
            return found
        if self._settles and m.tail >= MC_TAIL and not self.is_whole(s, m, state, counter, first, last, now[0]):
            return MC_TORN
        self._sample = mc_memory_first(m, state, before) if self._known else m.samples - 1
        self._sample_due = now[0]
        self._newest = 1 - self._newest
        mc_memory_sample(m, state, before, m.samples - 1, self._packet)
        self._counter = 0
        memcpy(&self._counter, self._packet + m.counter, m.counter_size)
        self._known = True
        return MC_WHOLE

    cdef bint is_whole(
        self, IntakeState* s, const mc_memory* m, const uint8_t* state, uint64_t began_as, int64_t first, int64_t last,
        int64_t now,
    ) noexcept nogil:
        """Say whether the end of a state without marks is its own, not that of the state before.

        A writer that is interrupted leaves the counter of its state with the end of the one before, for as long as it
        may be.  The end is the state's own if it has changed since this counter was seen, or together with the counter
        since a look at which the simulator cannot have begun two states since: not in one and a half periods of looks,
        not in half the time that its last states were seen to last, and not if its counter is one more.  If the next
        state ends so too, the car stands.

        Looks that come later than that show nothing.  A state is left out then, but not one after the other: once
        `LATE` more were left out than have been shown to be whole since, one is taken that ends alike for `STAYS` looks
        more, and with twice as many any that is twice read the same.  It is torn only if its writer was interrupted in
        the midst of it and the state before was not seen, which is rare, and no jolt; a platform that stops for good
        would be worse.  The first state of a session, which follows none, is taken if it stands.

        Units: `first` [ns], `last` [ns], `now` [ns].
        """
        cdef const uint8_t* end = mc_memory_end(m, state)
        cdef uint64_t counter = 0
        cdef bint same = self._seen_at != FOREVER_AGO and not memcmp(end, self._seen_end, MC_TAIL)
        cdef bint other
        cdef bint follows
        cdef bint shown = False         # that it is whole
        cdef bint whole
        cdef int64_t apart
        cdef int64_t lasted
        memcpy(&counter, state + m.counter, m.counter_size)
        other = counter != self._seen
        if other:
            lasted = self._seen_at - self._seen_from
            # The shortest of the last few: it falls at once, and rises slowly.
            self._lasts = lasted if lasted < self._lasts else self._lasts + (lasted - self._lasts) // 4
            self.leave_out(s, now)
        if other and same:
            whole = shown = self._stands
            self._stands = not shown
        elif other:
            # A counter that is one more than that of the state before says as much as a look in time.
            follows = self._known and self._seen == self._counter and counter == self._counter + 1
            # With the counter that was met first, no other state has been begun while it settled.
            apart = 2 * ((first if counter == began_as else now) - self._seen_at)
            shown = not self._stands and (follows or apart <= NEAR * self._period or apart <= self._lasts)
            whole = shown or self._left_out >= 2 * LATE
            self._stands = False
        elif same:
            whole = not self._stands and (
                (self._left_out >= LATE and self._doubts >= STAYS) or (not self._known and self._doubts > DOUBTS)
            )
        else:
            whole = shown = self._doubts > 0
            self._stands = False    # its end was not that of the state before: it had not been written yet
        if shown and self._left_out > 0:
            self._left_out -= 1
        self._doubts = 0 if whole else 1 if other else self._doubts + 1
        if other:
            self._seen, self._seen_from = counter, now
        self._seen_at = last
        memcpy(self._seen_end, end, MC_TAIL)
        return whole

    cdef void leave_out(self, IntakeState* s, int64_t now) noexcept nogil:
        """Count the state before if it was not taken, and say once a session that states are seen late."""
        if self._doubts == 0:
            return
        self._left_out = min(self._left_out + 1, 2 * LATE)
        if self._known and not self._stands:    # every other state of a car that stands is left out, which is no news
            mc_count(&s.counters.refused[<int>SEEN_LATE], 1)
        if self._left_out >= LATE and not self._told:
            log_event(s, now, SEEN_LATE, 0)
            self._told = True

    cdef void give(self, IntakeState* s, mc_memory* m, int64_t now) noexcept nogil:
        """Give the next sample of the newest state to the intake."""
        mc_memory_sample(m, self._states[self._newest], self._states[1 - self._newest], self._sample, self._packet)
        self._sample += 1
        self._sample_due += self._sample_period
        intake_take(s, self._packet, m.packet, now)

    def stop(self):
        """End `run` soon; may be called from any thread."""
        mc_store(&self._stopping, 1)
        self._stopped.set()
