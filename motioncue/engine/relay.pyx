"""A simulator's package in, a platform's packets out, in one call, for a controller's own loop."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

import numpy as np

from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.clock cimport Clock, Time
from motioncue.core.records cimport Cue, Publication
from motioncue.core.threads cimport mc_count
from motioncue.engine.retune cimport Cueing, CueingState, Settings, cueing_actuate
from motioncue.engine.stepper cimport cueing_reset, cueing_tick
from motioncue.frames.intake cimport Intake, intake_begin, intake_take
from motioncue.frames.state cimport IntakeState
from motioncue.output.actuation cimport chain_says
from motioncue.safety.supervisor cimport OFFLINE, RUNNING
from motioncue.wire.checksum cimport Seal
from motioncue.wire.codec cimport Outgoing, Table, outgoing, outgoing_of
from motioncue.wire.messages cimport REPLY_BYTES, Reply, reply_write

__all__ = ["Relay"]

cdef enum:
    LARGEST = 1 << 20       # larger than any package; a longer one is cut, and is still refused for its size
    PACKETS = 8


ctypedef struct Packet:
    Outgoing encoding
    uint8_t* bytes
    int largest


@cython.final
cdef class Relay:
    """A source's codec, a profile's cueing and a platform's codec, run one after the other in every step.

    Made by `motioncue.relay`.

    Parameters
    ----------
    source : Intake
        Takes whole packages; gives motion and replies.  Nothing else may feed it or take its newest motion.
    settings : Settings
        The initial settings; the stages of their first output fill the packets.
    packets : mapping of str to (Table, bytes, Seal or None)
        For each packet: its table, which encodes from an actuation; its initial bytes, or its text without numbers; and
        its counter, clock and checksum, written last.
    clock : Clock
        Gives the arrival times.
    tune : callable, optional
        Called by `retune` with the change and with a function that takes the resulting Settings.
    claims : object, optional
        Kept as long as this relay lives: what keeps others from driving the platform.

    Raises
    ------
    ValueError
        If there are too many packets, or a packet's size differs from its table's.

    Attributes
    ----------
    packets : dict of str to ndarray of uint8
        The platform's packets, encoded in place by each step; behind the end of a text packet there are zeros.
    source : Intake
        Counts what was refused, and frames that did not continue the drive.
    parked : bool
        Whether the actuators of a ``[platform]`` are to rest where it is parked; False at first.  They sink and rise in
        its ``rise_s``; a first step with True begins parked, one with False at neutral.  Without a platform, nothing
        reads it: fading the cue is the controller's.

    Notes
    -----
    Real time: `step` and `reset` do not allocate and cannot fail.  Use it from one thread at a time; only `retune` may
    be called from any thread.
    """

    cdef Cueing _cueing
    cdef CueingState* _cued
    cdef object _tune
    cdef IntakeState* _intake
    cdef Time _time
    cdef Cue _cue
    cdef Packet _packets[PACKETS]
    cdef int _packet_count
    cdef uint8_t _reply[REPLY_BYTES]
    cdef int _reply_size
    cdef tuple _alive           # owns the memory behind the pointers
    cdef readonly dict packets
    cdef readonly Intake source
    cdef public bint parked

    def __cinit__(
        self, Intake source not None, Settings settings not None, packets, Clock clock not None, *, tune=None, claims=None
    ):
        cdef Table table
        cdef uint8_t[::1] view
        cdef bytes initial
        cdef Packet* packet
        if len(packets) > PACKETS:
            raise ValueError(f"packets: found {len(packets)}, allowed are {PACKETS}")
        self.packets = {}
        alive = []
        for name, (table, initial, last) in packets.items():
            if len(initial) != table.size:
                raise ValueError(f"packet {name}: found {len(initial)} bytes, allowed are {table.size}")
            self.packets[name] = np.zeros(table.largest, np.uint8)
            self.packets[name][: len(initial)] = bytearray(initial)
            view = self.packets[name]
            alive += [view, table, initial, last]
            packet = &self._packets[self._packet_count]
            packet.encoding = outgoing_of(table, <const uint8_t*>initial, last)
            packet.bytes, packet.largest = &view[0], table.largest
            self._packet_count += 1
        self._alive = (clock, claims, *alive)
        self._cueing = Cueing(settings)
        self._cued = &self._cueing.state
        self._tune = tune
        self._time = clock.calls
        self.source = source
        self._intake = source.intake
        self._intake.alone = True
        intake_begin(self._intake, self._time.now(self._time.memory))

    cdef void take(self, const uint8_t* package, int size) noexcept nogil:
        cdef const Reply* reply = intake_take(self._intake, package, size, self._time.now(self._time.memory))
        self._reply_size = reply_write(reply, package, size, self._reply)
        if self._reply_size:
            mc_count(&self._intake.counters.replies, 1)

    cdef bint tick(self, const uint8_t* package, int size) noexcept nogil:
        cdef const Publication* newest = &self._intake.publication
        cdef const double* values
        cdef Packet* packet
        cdef int i, written, state = OFFLINE if self.parked else RUNNING
        self._reply_size = 0
        if size:
            self.take(package, size)
        if newest.epoch == 0 or not cueing_tick(self._cued, &newest.motion, &self._cue):
            return False
        values = <const double*>cueing_actuate(self._cued, 0, &self._cue, self.parked)
        for i in range(self._packet_count):
            packet = &self._packets[i]
            written = outgoing(
                &packet.encoding, values, self._cue.time, chain_says(self._cued.now.chains[0], state), packet.bytes
            )
            memset(packet.bytes + written, 0, packet.largest - written)
        return True

    cdef bint flushed(self, const void* package, Py_ssize_t size) noexcept nogil:
        cdef uint64_t fpu = mc_flush_denormals()
        cdef bint done = self.tick(<const uint8_t*>package, <int>min(size, <Py_ssize_t>LARGEST))
        mc_restore_fpu(fpu)
        return done

    @cython.binding(False)
    def step(self, package):
        """Take a package, cue the newest motion, encode the packets.

        Parameters
        ----------
        package : bytes-like
            One whole package of the simulator; empty if none has come since the last step.

        Returns
        -------
        bool
            False if there is nothing to send because no frame has come yet; then the packets are unchanged.
        """
        cdef Py_buffer view
        cdef bint done
        if isinstance(package, bytes):      # the usual case, without a buffer request
            return self.flushed(PyBytes_AS_STRING(package), PyBytes_GET_SIZE(package))
        PyObject_GetBuffer(package, &view, PyBUF_SIMPLE)
        done = self.flushed(view.buf, view.len)
        PyBuffer_Release(&view)
        return done

    @property
    def reply(self):
        """The reply to the newest package, to be sent to the simulator; empty if it wants none."""
        return self._reply[: self._reply_size]

    def reset(self):
        """Start from rest at neutral at the next step; call it only while the platform is at neutral."""
        cueing_reset(self._cued)

    def retune(self, change):
        """Change settings from the next step on; the cue moves to them without a step.

        Parameters
        ----------
        change : Profile, str, Path, mapping or sequence of str
            A profile, its name or path, or overrides of the settings requested last, as ``"KEY=VALUE"``.

        Raises
        ------
        ConfigError
            If a key or a value is refused, or cannot change while running; then nothing changes.
        TypeError
            If this relay was made without `tune`.
        """
        if self._tune is None:
            raise TypeError("this relay was not made from a profile: it has nothing to change")
        self._tune(change, self._post)

    def _post(self, Settings settings not None):
        """Pass settings to the next step; one thread at a time calls it."""
        profile = settings.profile
        self._cueing.retune(settings)
        self.source.retune(profile.watch, profile.source.head_m, profile.supervisor.fade_s)

    @property
    def profile(self):
        """The profile whose settings are in force; None if there is none."""
        return self._cueing.settings.profile
