"""The emitting loop, the whole engine's tick on an absolute grid without the GIL; and its end, which no signal cuts short."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock, PyThread_type_lock, WAIT_LOCK,
)
from libc.math cimport NAN, rint
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from motioncue.bridge.bridge cimport (
    BridgeState, ChassisLines, bridge_change, bridge_design, bridge_step, chassis_step, latency_s,
)
from motioncue.core.blend cimport Fade
from motioncue.core.interfaces cimport AHEAD, mc_flush_denormals, mc_restore_fpu
from motioncue.core.clock cimport Clock, Time
from motioncue.core.threads cimport (
    RECORD_TICK, RECORD_TRANSITION, RETUNED, Event, Events, Histogram, RecordRing, Ring, event_read, event_write,
    mc_count, mc_load, mc_store, quantile, record, ring_write,
)
from motioncue.core.records cimport (
    CHASSIS, Actuation, Cue, Publication, PublicationSlot, Tick, TickSlot, publication_read, tick_clear, tick_read, tick_write,
)
from motioncue.engine.along cimport Along
from motioncue.engine.tick cimport (
    OUTPUTS, Cueing, CueingState, Envelope, EnvelopeState, Settings, cueing_actuate, cueing_preview, cueing_tick,
    pass_to_receiver, retune_poll,
)
from motioncue.frames.intake cimport Intake
from motioncue.output.actuation cimport RISING, chain_at_rest, chain_hurry, chain_stand, reported_state
from motioncue.output.sinks cimport (
    OTHERS, PACKET_BYTES, PACKETS, POSITIONS, Other, Replies, Sink, Sinks, any_lost, encode_all, hear_all, send_all,
    take_back, unheard,
)
from motioncue.platforms.actuators cimport fade_ticks_from, pose_of
from motioncue.safety.limiter cimport at_neutral
from motioncue.safety.supervisor cimport (
    ENGAGED_NOW, ENGAGING, FAULT, FOUND, OFFLINE, OPERATOR_WANTS_END, OPERATOR_WANTS_ENGAGE, OPERATOR_WANTS_HOLD,
    OPERATOR_WANTS_LEAVE, OPERATOR_WANTS_PARK, OUTPUT_LOST_NOW, PARKING, PLATFORM, RUNNING, STANDS, Step, Supervisor,
    fade, supervise, wants_neutral,
)
from motioncue.transports.handles cimport Line, packed_address
from motioncue.wire.checksum cimport Seal
from motioncue.wire.codec cimport Table, outgoing_of

import atexit
import os
import signal
from _signal import getsignal   # that of `signal` is bytecode

import numpy as np

from motioncue.core.channels import AHEAD_S, TICK_DTYPE
from motioncue.core.clock import prepare_thread
from motioncue.core.threads import NAMES
from motioncue.safety.supervisor import State
from motioncue.transports.mapped import Written
from motioncue.transports.endpoint import packed_host

__all__ = ["Emitter", "Ending", "end_all"]

LEAVINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals by which a system ends a program."""

cdef extern from "Python.h" nogil:
    # With `interrupted` 0, a signal does not end the wait; returns 1 if the lock has been acquired.
    int PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int interrupted)

cdef int64_t FORESEEN_NS = 500_000_000     # how old a preview may be
cdef double[AHEAD] AHEAD_TIMES
AHEAD_TIMES[:] = AHEAD_S

ctypedef struct Counts:
    int64_t ticks
    int64_t packets         # ticks in which at least one output's packet was sent
    int64_t skipped
    int64_t not_finite
    int64_t first           # deadline of the first tick [ns]
    int64_t last


cdef void encode_outputs(
    Sinks* s, const Actuation** actuations, CueingState* c, const Cue* cue,
    bint parked, int state, bint waiting, int64_t index,
) noexcept nogil:
    """Fill every output's actuation from the cue, and the packets of tick `index` from the actuations."""
    cdef int reported[OUTPUTS]
    cdef int i
    for i in range(c.now.outputs):
        actuations[i] = cueing_actuate(c, i, cue, parked)
        reported[i] = RISING if waiting else reported_state(c.now.chains[i], state)
    encode_all(s, actuations, reported, index, cue.time)


cdef class Emitter:
    """Reads the newest motion, computes the cue and sends the packets, once a tick.

    Deadlines are on an absolute grid; a tick whose deadline has passed before it could start is skipped and counted,
    never sent in a burst.  `run` releases the GIL; it does not allocate, log or take a lock.
    """

    cdef Sinks _sinks
    cdef const Actuation* _actuations[OUTPUTS]      # the newest tick's
    cdef int _outputs           # number of outputs whose actuations there are
    cdef int64_t _period        # [ns]
    cdef list _owned            # owns the memory behind the pointers
    cdef Intake _intake         # owns the memory behind `_input`
    cdef PublicationSlot* _input    # slot from the receiver to the emitter
    cdef Clock _clock           # owns the memory behind `_time`
    cdef Time _time
    cdef Cueing _cueing         # owns `_cued`
    cdef CueingState* _cued
    cdef int64_t _number        # number of the settings in force
    cdef int64_t _deadline      # deadline of the next tick; 0 before the first
    cdef int64_t _index         # index of the next tick
    cdef Supervisor _supervisor
    cdef BridgeState _bridge    # interpolates between frames
    cdef ChassisLines _chassis  # the same of what a source says of wheels, suspension and cab
    cdef bint _textured         # an output sends some of it
    cdef EnvelopeState _envelope
    cdef Along _along           # what was felt along the way so far
    cdef Tick _tick
    cdef int _driven            # the first output that moves actuators, or -1
    cdef list _movers           # every output that moves the platform
    cdef TickSlot _newest       # slot from the emitter to whoever watches
    cdef Tick _viewed
    cdef Counts _counts
    cdef Histogram* _lateness
    cdef Tick[::1] _trace
    cdef object _trace_array
    cdef int64_t _traced
    cdef Ring* _ring            # recorder's ring for every tick; NULL if not recording
    cdef Events _transitions
    cdef Event _transition
    cdef bint _replaying        # whether outputs are lost is told by what is replayed
    cdef int64_t _wanted        # the operator's request
    cdef int64_t _engages       # number of engage requests
    cdef int64_t _engages_seen
    cdef int64_t _stopping      # 0, or the request that ends the run
    cdef int64_t _halted        # end it although it is not at rest

    def __cinit__(self):
        self._owned = []
        self._lateness = <Histogram*>calloc(1, sizeof(Histogram))
        if self._lateness == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._lateness)

    def __init__(
        self,
        Intake intake not None,
        Settings settings not None,
        Clock clock not None,
        *,
        Py_ssize_t trace=0,
    ):
        self._intake, self._clock = intake, clock
        self._cueing, self._along = Cueing(settings), Along()
        self._cued = &self._cueing.state
        self._cueing.read_motion(&self._bridge.motion, &self._tick.weight, &self._tick.feedback[0])
        self._textured = self._cueing.read_chassis(&self._chassis.now[0])
        for i in range(CHASSIS):
            self._chassis.now[i] = NAN      # before the first frame nothing has been said: not that wheels are at 0
        self._input = &intake.intake.slot
        self._time = clock.calls
        self._period, self._outputs = settings.period_ns, settings.design.outputs
        self.adopt()
        moving = [i for i, chain in enumerate(settings.chains) if "actuator_1" in chain.fills]
        # One that says which pose the platform has moves none, unless there is no other.
        self._driven = min(moving, key=lambda i: ("pose_up" in settings.chains[i].fills, i), default=-1)
        own = [i for i, chain in enumerate(settings.chains) if "pose_up" not in chain.fills] or moving
        self._movers = [i for i in own if i in moving] or own[:1]
        tick_clear(&self._newest)
        memset(&self._tick, 0, sizeof(Tick))
        self._viewed = self._tick
        self._trace_array = np.empty(trace, dtype=TICK_DTYPE)
        self._trace_array.view(np.uint8).fill(0)    # touches every page, so that no tick waits for one
        self._trace = self._trace_array

    cdef void adopt(self) noexcept nogil:
        """Pass the settings in force to the supervisor and the bridge."""
        self._number = self._cued.now.number
        self._supervisor.hold = self._cued.now.hold
        self._supervisor.engage = self._cued.now.engage
        cdef Fade* f = &self._supervisor.fade
        cdef double least = self.fade_ticks()
        f.pace = self._cued.now.pace
        if f.position != f.goal and least != f.least and (least * f.pace > 1.0 or f.least * f.pace > 1.0):
            f.least, f.paced = least, 0.0       # for another platform the fade goes on anew
        bridge_design(&self._bridge, self._cued.now.bridge, self._cued.now.pace * 1e9 / self._period, self._period)
        if self._cued.now.recalled != NULL and self._cued.now.recalled.number != self._along.recalled:
            self._along.recall(self._cued.now.recalled)

    cdef void hurry(self) noexcept nogil:
        """Go to rest at the paces for the time that the system leaves."""
        cdef int i
        self._supervisor.fade.pace = max(self._supervisor.fade.pace, self._cued.now.leave_pace)
        for i in range(self._cued.now.outputs):
            chain_hurry(self._cued.now.chains[i], self._cued.now.sink_pace)

    cdef void adopt_new(self) noexcept nogil:
        """Use settings that have come into force since the last tick, and report that."""
        cdef Step step
        bridge_change(&self._bridge, self._cued.now.bridge)
        self.adopt()
        if not self._replaying:     # a recording says at which package the receiver took them
            pass_to_receiver(self._cued, &self._intake.intake.tuning)
        step.before = self._supervisor.state
        step.reason = RETUNED
        step.value = step.limit = <double>mc_load(&self._cued.changes)
        self.report(&step)

    cdef void tick(self) noexcept nogil:
        """Do the work of one deadline."""
        cdef const Time* clock = &self._time
        cdef Supervisor* s = &self._supervisor
        cdef Tick* t = &self._tick
        cdef Step step
        cdef int64_t now, age
        cdef bint parked

        retune_poll(self._cued)
        if self._number != self._cued.now.number:
            self.adopt_new()
        if publication_read(self._input, &s.input):
            s.have_input = True
            if self._cued.now.algorithm.look != NULL:
                self._along.take(&s.input)
        s.wanted = mc_load(&self._stopping) or mc_load(&self._wanted)
        if s.wanted == OPERATOR_WANTS_LEAVE:
            self.hurry()
        if not self._replaying:
            s.platform = hear_all(&self._sinks, self._deadline, self._driven, t.feedback)
            s.platform |= unheard(&self._sinks, self._deadline, s.hold)
        s.still = self.at_rest()
        t.operation = s.wanted + s.platform
        if mc_load(&self._engages) != self._engages_seen:
            self._engages_seen = mc_load(&self._engages)
            s.reset = True
            t.operation += ENGAGED_NOW
        if s.unsent:
            t.operation += OUTPUT_LOST_NOW
            if s.reset and s.state == FAULT and self.parked() and s.still:
                take_back(&self._sinks, self._deadline, self._driven)   # one that answers is ready only once it is asked
        supervise(s, self._deadline, &step)
        if wants_neutral(s) == (s.fade.goal == 1.0):    # the fade turns
            s.fade.least = self.fade_ticks()
        fade(s, &step)
        if step.moved:
            self.report(&step)
        age = self._bridge.age
        bridge_step(
            &self._bridge, &s.input, s.state == ENGAGING or s.state == RUNNING, step.begin, self._deadline
        )
        if self._textured and s.input.with_chassis:
            chassis_step(&self._chassis, &s.input, self._bridge.moving, step.begin, self._deadline)
        self.pass_preview(self._deadline - (self._bridge.age - age))
        self.cue(&step)
        t.weight = step.weight
        if s.platform & STANDS and self._driven >= 0:    # a recording may say so of no platform
            chain_stand(self._cued.now.chains[self._driven], t.feedback, s.platform & FOUND)
        # A frame may be there before the first tick: the platform is parked all the same, and rises from there.
        parked = self.parked() or not mc_load(&self._counts.ticks)
        encode_outputs(
            &self._sinks, self._actuations, self._cued, &t.cue, parked, s.state, step.waiting, self._index
        )
        if clock.lead:
            clock.sleep_until(clock.memory, self._deadline)
        now = self._deadline if self._replaying else clock.now(clock.memory)
        if send_all(&self._sinks, self._index):
            mc_count(&self._counts.packets, 1)
        self.watch_lines()

        t.index = self._index
        t.deadline = self._deadline
        t.lateness = now - self._deadline
        t.state = s.state
        t.frames = s.input.count
        t.settings = self._cued.next.number if self._cued.overlap else self._cued.now.number
        t.motion = self._bridge.motion
        if self._driven >= 0:
            memcpy(t.actuators, self._actuations[self._driven].actuators, sizeof(t.actuators))
        self.account(now)

    cdef void pass_preview(self, int64_t shown) noexcept nogil:
        """Pass on what the car will do, from the program or the lap before, unless that is too old.

        The tick shows the moment `shown`.
        """
        cdef const Publication* newest = &self._supervisor.input
        if newest.foreseen and not newest.frozen:
            if shown - newest.place.time < FORESEEN_NS:
                cueing_preview(
                    self._cued, &newest.motion, newest.ahead, 1e-9 * (shown - newest.place.time), AHEAD_TIMES, False
                )
        elif self._along.told and shown - self._along.taken < FORESEEN_NS:
            cueing_preview(
                self._cued, &self._along.now, self._along.ahead, 1e-9 * (shown - self._along.taken), AHEAD_TIMES, True
            )

    cdef void cue(self, const Step* step) noexcept nogil:
        """Fill the tick's cue."""
        cdef Supervisor* s = &self._supervisor
        cdef Envelope e = Envelope(
            &self._envelope, step.begin, not s.fade.position > 0.0, s.state == FAULT, False, step.weight
        )
        cueing_tick(self._cued, &e, &s.motion if e.neutral else &self._bridge.motion, &self._tick.cue)
        self._tick.cue.time = self._deadline
        if e.broken and not s.faulted:
            s.faulted = True
            mc_count(&self._counts.not_finite, 1)

    cdef double fade_ticks(self) noexcept nogil:
        """Return in how many ticks the cue may fade to neutral, so that the platform's actuators follow; 0: in any number."""
        cdef double[6] pose
        cdef double[6] move
        cdef int i
        if self._cued.now.platform == NULL:
            return 0.0
        pose_of(&self._envelope.unfaded, pose)
        pose_of(&self._envelope.before, move)
        for i in range(6):
            move[i] = pose[i] - move[i]
        return min(self._cued.now.fade_ticks, fade_ticks_from(self._cued.now.platform, pose, move))

    cdef void watch_lines(self) noexcept nogil:
        """Tell the supervisor whether a line is lost."""
        cdef Supervisor* s = &self._supervisor
        if not self._replaying:
            s.unsent = any_lost(&self._sinks, self._deadline, s.hold, &s.unsent_for)

    cdef bint at_rest(self) noexcept nogil:
        """Say whether everything that is sent is at rest at neutral."""
        cdef int i
        for i in range(self._cued.now.outputs):
            if not chain_at_rest(self._cued.now.chains[i]):
                return False
        return at_neutral(self._cued.now.limits)

    cdef bint parked(self) noexcept nogil:
        """Say whether the platform is to rest, so that its actuators may go to where they are parked."""
        cdef const Supervisor* s = &self._supervisor
        if s.state == PARKING and s.wanted < OPERATOR_WANTS_PARK:
            return False        # what comes next may lift it again
        return s.state == OFFLINE or ((s.state == FAULT or s.state == PARKING) and s.fade.position == 0.0)

    cdef void report(self, const Step* step) noexcept nogil:
        self._transition = Event(
            self._deadline, step.reason, 0, step.before, self._supervisor.state, step.value, step.limit
        )
        event_write(&self._transitions, &self._transition)
        if self._ring != NULL:
            ring_write(self._ring, RECORD_TRANSITION, self._deadline, &self._transition, sizeof(Event))

    cdef void account(self, int64_t now) noexcept nogil:
        """Count and publish the tick whose packets have just been sent."""
        record(self._lateness, self._tick.lateness)
        if mc_load(&self._counts.ticks) == 0:
            mc_store(&self._counts.first, now)
        mc_store(&self._counts.last, now)
        mc_count(&self._counts.ticks, 1)
        if self._ring != NULL:
            ring_write(self._ring, RECORD_TICK, self._deadline, &self._tick, sizeof(Tick))
        if self._traced < self._trace.shape[0]:
            self._trace[self._traced] = self._tick
            mc_store(&self._traced, self._traced + 1)
        if self._supervisor.state == OFFLINE:       # nothing follows the car, but who looks can check its signs before
            self._tick.motion = self._supervisor.input.motion
        tick_write(&self._newest, &self._tick)

    cdef void loop(self, int64_t ticks, int64_t until) noexcept nogil:
        """Tick on the grid: `ticks` times, or until the deadline `until`, or until stopped and at neutral."""
        cdef const Time* clock = &self._time
        cdef int64_t missed
        cdef uint64_t fpu = mc_flush_denormals()
        if self._deadline == 0:
            self._deadline = clock.now(clock.memory) + self._period
        while ticks != 0 and self._deadline < until:
            clock.sleep_until(clock.memory, self._deadline - clock.lead)
            self.tick()
            self._deadline += self._period
            self._index += 1
            missed = clock.now(clock.memory) - self._deadline
            if missed >= 0:
                missed = missed // self._period + 1
                self._deadline += missed * self._period
                self._index += missed
                mc_count(&self._counts.skipped, missed)
            ticks -= 1
            if mc_load(&self._halted):
                break
            if self._supervisor.state == PARKING:
                continue            # until it is offline
            if mc_load(&self._stopping) and self.parked() and self.at_rest():
                break
        mc_restore_fpu(fpu)

    def add_output(
        self, sock, address, Table table not None, bytes packet, Seal seal_with=None, int output=0, Replies replies=None,
        bint beside=False
    ):
        """Send `packet` to `address` at every tick, with the fields of `table` filled in, and read `replies` from there.

        A line that is lost, or has taken nothing for longer than the hold time, is a fault: everything fades to
        neutral, and the line gets nothing until an operator engages, and then what is sent at rest first.
        To a platform that says where its actuators are, nothing is sent before it has.
        A platform that nobody listens for any more, at an endpoint of datagrams, is parked until somebody does; not if
        these packets go `beside` those that move it, as gauges do.
        """
        cdef Sink* sink = &self._sinks.rows[self._sinks.count]
        if self._sinks.count == PACKETS or table.largest > PACKET_BYTES or len(packet) != table.size:
            raise ValueError(f"output: allowed are {PACKETS} outputs of up to {PACKET_BYTES} bytes")
        if not 0 <= output < self._outputs:
            raise IndexError(f"output: found {output}, allowed are 0 to {self._outputs - 1}")
        sink.output, sink.moves = output, not beside and output in self._movers
        cdef uint8_t[::1] memory = None
        if isinstance(sock, Line):
            sink.line = &(<Line>sock).line
        elif isinstance(sock, Written):
            memory = sock.memory
            if memory.shape[0] < table.largest:
                raise ValueError(f"memory: found {memory.shape[0]} bytes, allowed are at least {table.largest}")
            sink.memory, sink.file = &memory[0], sock.fileno()
        else:
            sink.address_size = packed_address(sink.address, address)
            sink.fd = sock.fileno()
        if replies is not None:
            sink.heard = &replies.heard
            sink.held = output == self._driven and replies.heard.actuators > 0
            if sink.line == NULL:
                host = packed_host(address[0])
                memcpy(sink.host, <const uint8_t*><bytes>host, 16)
        sink.encoding = outgoing_of(table, <const uint8_t*>packet, seal_with)
        sink.size = table.size
        memcpy(sink.packet, <const uint8_t*>packet, table.size)
        self._owned.append((sock, memory, table, packet, seal_with, replies))
        self._sinks.count += 1

    def add_other(self, Table table not None, bytes packet, Seal seal_with=None, double every_s=0.0):
        """Send another packet to the output that was added last, beside those of the motion.

        A packet with an interval is sent right behind that of the motion, and dropped if the system refuses it.
        """
        cdef Other* other = &self._sinks.others[self._sinks.other_count]
        cdef bint room = self._sinks.count > 0 and self._sinks.other_count < OTHERS
        if not room or table.largest > PACKET_BYTES or len(packet) != table.size:
            raise ValueError(f"others: allowed are {OTHERS} packets of up to {PACKET_BYTES} bytes behind an output")
        other.sink = self._sinks.count - 1
        other.every = max(1, <int64_t>rint(every_s * 1e9 / self._period)) if every_s > 0.0 else 0
        other.encoding = outgoing_of(table, <const uint8_t*>packet, seal_with)
        other.size = table.size
        memcpy(other.packet, <const uint8_t*>packet, table.size)
        self._owned.append((table, packet, seal_with))
        self._sinks.other_count += 1

    def outputs(self):
        """Return each output's packet counters, in the order of `add_output`."""
        cdef const Sink* sink
        cdef int i
        out = []
        for i in range(self._sinks.count):
            sink = &self._sinks.rows[i]
            out.append({
                "sent": mc_load(&sink.sent),
                "unheard": mc_load(&sink.unheard),
                "refused": mc_load(&sink.refused),
                "error": mc_load(&sink.error),
            })
        return out

    def record(self, RecordRing ring not None):
        """Write every tick and every transition into a ring; call it before `run`."""
        self._owned.append(ring)
        self._ring = &ring.ring

    def replay_ticks(self, const int64_t[:, ::1] ticks not None, const double[:, ::1] feedback=None):
        """Repeat recorded ticks, each with the operator's request and the platform's replies of that tick.

        Units: `ticks` [ns].
        """
        cdef Py_ssize_t i
        cdef uint64_t fpu
        if ticks.shape[1] != 3:
            raise ValueError(f"ticks: found rows of {ticks.shape[1]} numbers, allowed are index, deadline and operation")
        if feedback is not None and (feedback.shape[0] != ticks.shape[0] or feedback.shape[1] != POSITIONS):
            raise ValueError(f"feedback: found {feedback.shape[0]} rows of {feedback.shape[1]}, allowed are {ticks.shape[0]} of 12")
        self._replaying = True
        with nogil:
            fpu = mc_flush_denormals()
            for i in range(ticks.shape[0]):
                if feedback is not None:
                    memcpy(self._tick.feedback, &feedback[i, 0], POSITIONS * sizeof(double))
                self.replayed(ticks[i, 0], ticks[i, 1], ticks[i, 2])
            mc_restore_fpu(fpu)

    cdef void replayed(self, int64_t index, int64_t deadline, int64_t operation) noexcept nogil:
        mc_store(&self._stopping, operation % ENGAGED_NOW if operation % ENGAGED_NOW >= OPERATOR_WANTS_END else 0)
        if not self._stopping:
            mc_store(&self._wanted, operation % ENGAGED_NOW)
        if operation & ENGAGED_NOW:
            mc_count(&self._engages, 1)
        self._supervisor.unsent = operation & OUTPUT_LOST_NOW
        self._supervisor.platform = operation & PLATFORM
        self._index, self._deadline = index, deadline
        self.tick()

    def run(self, int64_t ticks=-1, int64_t until_ns=0x7FFFFFFFFFFFFFFF):
        """Tick along the grid up to a limit, or until `stop` has faded to neutral.

        A second call continues on the same grid.
        """
        with nogil:
            self.loop(ticks, until_ns)

    def prepare_thread(self, core=None, lock_memory=False):
        """Ask the system for precise wake-ups of the calling thread; return what was granted, by name."""
        return {**self._clock.granted, **prepare_thread(core, lock_memory)}

    def retune(self, Settings settings not None):
        """Use other settings from the next tick on.

        The cue has no step.  Three ticks after the one that takes them the settings are in force, and a change of
        reason ``retuned`` is added to `transitions`.
        """
        self._cueing.post(settings)

    @property
    def settings(self):
        """The settings in force."""
        return self._cueing.settings

    def engage(self):
        """Follow the input; after a fault, allow it again."""
        mc_store(&self._wanted, OPERATOR_WANTS_ENGAGE)
        mc_count(&self._engages, 1)

    def hold(self):
        """Hold the present motion until the next request."""
        mc_store(&self._wanted, OPERATOR_WANTS_HOLD)

    def park(self):
        """Fade to neutral and stay there, whatever the input."""
        mc_store(&self._wanted, OPERATOR_WANTS_PARK)

    def stop(self, bint leave=False):
        """Fade to neutral, then end `run`."""
        self.park()
        if mc_load(&self._stopping) != OPERATOR_WANTS_LEAVE:
            mc_store(&self._stopping, OPERATOR_WANTS_LEAVE if leave else OPERATOR_WANTS_END)

    def halt(self):
        """End `run` behind the next tick, at rest or not."""
        mc_store(&self._halted, 1)

    @property
    def rested(self):
        """Whether what was sent last is at rest where the platform is parked."""
        return bool(self.parked() and self.at_rest())

    def transitions(self):
        """Remove and return the transitions since the last call [ns]."""
        out = []
        while event_read(&self._transitions, &self._transition):
            out.append({
                "time": self._transition.time,
                "from": State(self._transition.before).name,
                "to": State(self._transition.after).name,
                "reason": NAMES[self._transition.code],
                "value": self._transition.value,
                "limit": self._transition.limit,
            })
        return out

    @property
    def state(self):
        """The supervisor's state at the newest tick, by name."""
        return State(int(self.newest()["state"][0])).name

    @property
    def latency_s(self):
        """Mean age of the motion shown by the ticks, relative to their frames' earliest possible arrival [s]."""
        return latency_s(&self._bridge)

    def newest(self):
        """Return the newest tick, an array of TICK_DTYPE and shape (1,); all zero before the first.

        While the platform is parked, its motion is the newest frame's, which nothing follows.
        """
        tick_read(&self._newest, &self._viewed)
        out = np.zeros(1, dtype=TICK_DTYPE)
        cdef Tick[::1] view = out
        view[0] = self._viewed
        return out

    @property
    def trace(self):
        """The first ticks, up to the number asked for: ndarray of TICK_DTYPE."""
        return self._trace_array[: mc_load(&self._traced)]

    @property
    def along(self):
        """What was felt along the way so far."""
        return self._along

    def counts(self):
        """Return the counters, and the measured rate of the ticks [Hz].

        ``packets`` counts ticks in which at least one output's packet was sent; ``datagrams`` and ``send_errors`` are
        sums over the outputs; ``retunes`` counts changes of settings.
        """
        outputs = self.outputs()
        cdef int64_t ticks = mc_load(&self._counts.ticks)
        cdef int64_t span = mc_load(&self._counts.last) - mc_load(&self._counts.first)
        return {
            "ticks": ticks,
            "packets": mc_load(&self._counts.packets),
            "skipped": mc_load(&self._counts.skipped),
            "datagrams": sum(output["sent"] for output in outputs),
            "send_errors": sum(output["refused"] for output in outputs),
            "not_finite": mc_load(&self._counts.not_finite),
            "retunes": mc_load(&self._cued.changes),
            "first_ns": mc_load(&self._counts.first),
            "rate_hz": (ticks - 1) * 1e9 / span if span > 0 else 0.0,
        }

    def lateness_us(self):
        """Return quantiles of the lateness of packets [us]."""
        levels = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
        return {name: quantile(self._lateness, q) / 1e3 for name, q in levels.items()}


cdef enum:
    RESTED = 0
    LEFT_TO_CLOSE
    CLOSED
    STEPS

cdef double CLOSING_S = 15.0    # for a disk, a log or a controller that does not answer, once the platform is at rest
cdef double LISTEN_S = 0.02     # between two looks at what the system has sent meanwhile
cdef double HALT_S = 2.0        # for the emitting thread to notice that it shall not wait for rest any longer


cdef class Ending:
    """Takes an engine to its end from any thread, at an interrupt and at the interpreter's exit too.

    Python runs handlers of signals in its main thread, between two bytecodes.  `end` has none: a KeyboardInterrupt is
    raised behind it, when the platform is at rest and everything is closed.  In a process forked meanwhile, `end` does
    nothing: the threads, and so the platform, are the parent's.
    """

    cdef object _emitter        # its methods are no bytecode
    cdef object _pid
    cdef PyThread_type_lock _latches[STEPS]     # each is held until the step has happened
    cdef bint _happened[STEPS]
    cdef public double patience_s

    def __cinit__(self):
        cdef int i
        for i in range(STEPS):
            self._latches[i] = PyThread_allocate_lock()
            if self._latches[i] == NULL:
                raise MemoryError
            PyThread_acquire_lock(self._latches[i], WAIT_LOCK)

    def __dealloc__(self):
        cdef int i
        for i in range(STEPS):
            if self._latches[i] != NULL:
                if not self._happened[i]:
                    PyThread_release_lock(self._latches[i])
                PyThread_free_lock(self._latches[i])

    def __init__(self, emitter, *, double patience_s):
        self._emitter, self._pid, self.patience_s = emitter, os.getpid(), patience_s

    cdef void happens(self, int what) noexcept:
        if not self._happened[what]:
            self._happened[what] = True
            PyThread_release_lock(self._latches[what])

    cdef bint waited(self, int what, double patience_s) noexcept:
        """Wait until it has happened; return whether it has.  Negative: without end."""
        cdef long long longest = -1 if patience_s < 0.0 else <long long>(min(patience_s, 1e6) * 1e6)
        cdef bint done
        with nogil:
            done = PyThread_acquire_lock_timed(self._latches[what], longest, 0) == 1
            if done:
                PyThread_release_lock(self._latches[what])      # for whoever waits besides
        return done

    def begin(self, *, signals=True):
        """From now on the interpreter's exit ends the engine; with `signals` what the system sends to end it does, too."""
        _begun.append(self)
        if signals:
            hand_signals(signal.SIG_DFL, leave_all)     # a program's own handler stays

    def end(self, leave=False):
        """Fade to neutral, then wait until the engine is closed; both waits are bounded."""
        if os.getpid() != self._pid:
            return
        self._emitter.stop(leave)
        self.happens(LEFT_TO_CLOSE)
        self.finish()
        if not _begun:
            give_signals_back()

    cdef bint waited_for_rest(self) except -1:
        """Wait for the platform's rest; a signal by which the system ends the program makes the way to it shorter.

        Its handler has to wait, so it is told by the descriptor that Python writes signals to.
        """
        cdef tuple ends = listen_to_signals()
        cdef double left = self.patience_s
        cdef bint done = ends is None and self.waited(RESTED, left)
        while ends is not None and left > 0.0 and not done:
            done = self.waited(RESTED, LISTEN_S)
            left -= LISTEN_S
            if told_to_leave(ends, False):
                hurry_all()
        if ends is not None:
            told_to_leave(ends, True)
        return done

    cdef int finish(self) except -1:
        """Wait for the platform's rest, then for the engine to be closed."""
        if not self.waited_for_rest():
            self._emitter.halt()
            if not self.waited(RESTED, HALT_S):
                return 0
        self.waited(CLOSED, CLOSING_S)
        return 0

    @property
    def over(self):
        """Whether the emitting thread sends no more."""
        return bool(self._happened[RESTED])

    def rested(self):
        """The emitting thread says that it sends no more."""
        self.happens(RESTED)

    def wait_for_close(self):
        """Wait until the engine is to be closed."""
        self.waited(LEFT_TO_CLOSE, -1.0)

    def closed(self):
        """The emitting thread says that everything is closed."""
        self.happens(LEFT_TO_CLOSE)
        self.happens(CLOSED)
        if self in _begun:
            _begun.remove(self)


cdef list _begun = []           # engines that the interpreter's exit has to end


def end_all():
    """End every engine of this process that has been begun: they fade side by side."""
    cdef Ending each
    cdef list mine = [each for each in _begun if each._pid == os.getpid()]
    for each in mine:
        each._emitter.stop()
        each.happens(LEFT_TO_CLOSE)
    for each in mine:
        each.finish()
    try:
        PyErr_CheckSignals()
    except SystemExit:      # by a handler that had to wait: the program ends already
        pass


def hand_signals(of, to):
    """Replace one handler of the system's signals by another, where this thread may: Python's main thread only."""
    for number in LEAVINGS:
        if signal.getsignal(number) is of:
            try:
                signal.signal(number, to)
            except ValueError:      # `threading` and the interpreter may take different threads for the main one
                return


def give_signals_back():
    """Let the system's signals end this program at once, as before the first engine."""
    hand_signals(leave_all, signal.SIG_DFL)


def leave_all(int number, frame):
    """Be at rest within each engine's `leave_s`; end the program meanwhile, with the status of the signal."""
    hurry_all()
    raise SystemExit(128 + number)


cdef int hurry_all() except -1:
    """Have every engine of this process at rest within its `leave_s`."""
    cdef Ending each
    for each in list(_begun):
        if each._pid == os.getpid():
            each._emitter.stop(True)
    return 0


cdef tuple listen_to_signals():
    """Return a pipe that gets the number of each signal from now on, and the descriptor that did; None if none can."""
    if not hasattr(signal, "SIGHUP"):       # the system ends no program by signals
        return None
    try:
        reader, writer = os.pipe()
    except OSError:                         # no descriptor is left
        return None
    try:
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        return reader, writer, signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except ValueError:                      # in another thread, beside which handlers run
        os.close(reader)
        os.close(writer)
        return None


cdef bint told_to_leave(tuple ends, bint over) except -1:
    """Say whether a signal by which the system ends the program has come; pass all on, and close if it is `over`."""
    reader, writer, before = ends
    if over:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
    numbers = b""
    try:
        numbers = os.read(reader, 4096)
        if before >= 0:
            os.write(before, numbers)
    except OSError:                         # nothing has come, or there is no room
        pass
    if over:
        os.close(reader)
        os.close(writer)
    for number in numbers:
        if number in LEAVINGS and getsignal(number) is leave_all:
            return True
    return False


atexit.register(end_all)    # itself no bytecode, so that a pending interrupt cannot come before it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=give_signals_back)   # a child's engines are its parent's
