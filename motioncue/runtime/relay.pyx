"""A simulator's package in, a platform's packets out, in one call: for a loop of one's own."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from motioncue.kernels.algorithm cimport mc_flush_denormals, mc_restore_fpu
from motioncue.kernels.clock cimport Clock, Time
from motioncue.kernels.codec cimport Row, Table, encode
from motioncue.intake.intake cimport Intake, IntakeState, intake_begin, intake_take
from motioncue.intake.messages cimport REPLY_BYTES, Reply, reply_write
from motioncue.kernels.records cimport Actuation, Publication
from motioncue.kernels.rotation cimport up_vector
from motioncue.kernels.seal cimport Seal, SealState, seal
from motioncue.kernels.slot cimport mc_count
from motioncue.kernels.stepper cimport cueing_reset, cueing_tick
from motioncue.kernels.tuning cimport Cueing, CueingState, Settings

__all__ = ["Relay"]

cdef enum:
    LARGEST = 1 << 20       # more is no package of anything: its size is wrong even when cut
    PACKETS = 8


ctypedef struct Packet:
    const Row* rows
    int row_count
    uint8_t* bytes
    SealState* seal


@cython.final
cdef class Relay:
    """A source's codec, a profile's cueing and a platform's codec, one after the other, at every step.

    Made by `motioncue.relay`.

    Parameters
    ----------
    source : Intake
        Takes whole packages, gives motion and replies; nobody else feeds it or asks it for the newest motion.
    settings : Settings
        The first ones.
    packets : mapping of str to (Table, bytes, Seal or None)
        For each packet: its table, compiled for encoding from an actuation, what no row of it fills, and the count and
        the checksum that come last.
    clock : Clock
        Stamps what comes in.
    tune : callable, optional
        Takes what `retune` is given, and a function to which it gives the Settings that this means.

    Raises
    ------
    ValueError
        If there are too many packets, or one is not of its table's size.

    Attributes
    ----------
    packets : dict of str to ndarray of uint8
        The platform's packets, encoded anew in place by each step.
    source : Intake
        Its counters say what was refused, and which frames did not continue the drive.

    Notes
    -----
    Real time: `step` and `reset` do not allocate and cannot fail.  One thread at a time, but for `retune`, which any thread
    may call.
    """

    cdef Cueing _cueing
    cdef CueingState* _cued
    cdef object _tune
    cdef IntakeState* _intake
    cdef Time _time
    cdef Actuation _actuation
    cdef Packet _packets[PACKETS]
    cdef int _packet_count
    cdef uint8_t _reply[REPLY_BYTES]
    cdef int _reply_size
    cdef tuple _alive           # owns what the pointers point to
    cdef readonly dict packets
    cdef readonly Intake source

    def __cinit__(
        self, Intake source not None, Settings settings not None, packets, Clock clock not None, *, tune=None
    ):
        cdef Table table
        cdef uint8_t[::1] view
        cdef Packet* packet
        if len(packets) > PACKETS:
            raise ValueError(f"packets: found {len(packets)}, allowed are {PACKETS}")
        self.packets = {}
        alive = []
        for name, (table, data, last) in packets.items():
            if len(data) != table.size:
                raise ValueError(f"packet {name}: found {len(data)} bytes, allowed are {table.size}")
            self.packets[name] = np.array(bytearray(data))
            view = self.packets[name]
            alive += [view, table, last]
            packet = &self._packets[self._packet_count]
            packet.rows, packet.row_count, packet.bytes = table.rows, table.n, &view[0]
            packet.seal = NULL if last is None else &(<Seal?>last).state
            self._packet_count += 1
        self._alive = (clock, *alive)
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
        cdef Actuation* a = &self._actuation
        cdef Packet* packet
        cdef int i
        self._reply_size = 0
        if size:
            self.take(package, size)
        if newest.epoch == 0 or not cueing_tick(self._cued, &newest.motion, &a.cue):
            return False
        up_vector(self._cued.now.algorithm.attitude, a.cue.roll, a.cue.pitch, a.cue.yaw, &a.up_east)
        for i in range(self._packet_count):
            packet = &self._packets[i]
            encode(packet.rows, packet.row_count, <const double*>a, packet.bytes)
            if packet.seal != NULL:
                seal(packet.seal, packet.bytes)
        return True

    cdef bint flushed(self, const void* package, Py_ssize_t size) noexcept nogil:
        cdef uint64_t fpu = mc_flush_denormals()
        cdef bint done = self.tick(<const uint8_t*>package, <int>min(size, <Py_ssize_t>LARGEST))
        mc_restore_fpu(fpu)
        return done

    @cython.binding(False)
    def step(self, package):
        """Take what has come, cue the newest motion, encode the packets.

        Parameters
        ----------
        package : bytes-like
            One whole package of the simulator; empty if none has come since the last step.

        Returns
        -------
        bool
            False if there is nothing to send, because no frame has come yet: then the packets are as they were.
        """
        cdef Py_buffer view
        cdef bint done
        if isinstance(package, bytes):      # the usual case, without the ceremony
            return self.flushed(PyBytes_AS_STRING(package), PyBytes_GET_SIZE(package))
        PyObject_GetBuffer(package, &view, PyBUF_SIMPLE)
        done = self.flushed(view.buf, view.len)
        PyBuffer_Release(&view)
        return done

    @property
    def reply(self):
        """What the simulator is to be answered to its package; empty if nothing."""
        return self._reply[: self._reply_size]

    def reset(self):
        """Forget the past: the cueing starts from rest at neutral; for a platform that is there."""
        cueing_reset(self._cued)

    def retune(self, change):
        """Change settings from the next step on, without a step in what is sent.

        Parameters
        ----------
        change : Profile, str, Path, mapping or sequence of str
            A profile; the name or path of one; or overrides of the settings asked for last, as ``"KEY=VALUE"``.

        Raises
        ------
        ConfigError
            If a key or a value is refused, or cannot change while it runs; then nothing changes.
        TypeError
            If this relay was made without `tune`.
        """
        if self._tune is None:
            raise TypeError("this relay was not made from a profile: it has nothing to change")
        self._tune(change, self._post)

    def _post(self, Settings settings not None):
        """Leave settings for the next step; called by one thread at a time."""
        profile = settings.profile
        self._cueing.retune(settings)
        self.source.retune(profile.watch, profile.source.head_m, profile.supervisor.fade_s)

    @property
    def profile(self):
        """The profile whose settings the steps use; None if it was not made from one."""
        return self._cueing.settings.profile
