"""A simulator's package in, a platform's packets out, in one call: for a loop of one's own."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from motioncue.kernels.algorithm cimport Algorithm, mc_flush_denormals, mc_restore_fpu
from motioncue.kernels.clock cimport Clock, Time
from motioncue.kernels.codec cimport Row, Table, encode
from motioncue.kernels.intake cimport (
    REPLY_BYTES, Intake, IntakeState, Reply, intake_begin, intake_take, reply_write,
)
from motioncue.kernels.limiter cimport CueLimits
from motioncue.kernels.records cimport Actuation
from motioncue.kernels.rotation cimport up_vector
from motioncue.kernels.seal cimport Seal, SealState, seal
from motioncue.kernels.slot cimport mc_count
from motioncue.kernels.stepper cimport Cueing, cueing_reset, cueing_tick

__all__ = ["Relay"]

cdef enum:
    PACKAGE_BYTES = 4096
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
        Takes whole packages, gives motion and replies; nobody else feeds it.
    algorithm : Algorithm
        Designed for the rate of the steps.
    limits : CueLimits
        What is asked for keeps them.
    packets : mapping of str to (Table, bytes, Seal or None)
        For each packet: its table, compiled for encoding from an actuation, what no row of it fills, and the count and
        the checksum that come last.
    clock : Clock
        Stamps what comes in.

    Raises
    ------
    ValueError
        If there are too many packets, or one is not of its table's size.

    Attributes
    ----------
    package : ndarray of uint8
        Put the simulator's bytes here, such as with ``recv_into``.
    packets : dict of str to ndarray of uint8
        The platform's packets, encoded anew in place by each step.
    source : Intake
        Its counters say what was refused, and which frames did not continue the drive.

    Notes
    -----
    Real time: `step` and `reset` do not allocate and cannot fail.  One thread at a time.
    """

    cdef Cueing _cueing
    cdef IntakeState* _intake
    cdef Time _time
    cdef Actuation _actuation
    cdef uint8_t* _package
    cdef Packet _packets[PACKETS]
    cdef int _packet_count
    cdef uint8_t _reply[REPLY_BYTES]
    cdef int _reply_size
    cdef tuple _alive           # owns what the pointers point to
    cdef readonly object package
    cdef readonly dict packets
    cdef readonly Intake source

    def __cinit__(
        self, Intake source not None, Algorithm algorithm not None, CueLimits limits not None, packets,
        Clock clock not None,
    ):
        cdef Table table
        cdef uint8_t[::1] view
        cdef Packet* packet
        if len(packets) > PACKETS:
            raise ValueError(f"packets: found {len(packets)}, allowed are {PACKETS}")
        self.package = np.zeros(PACKAGE_BYTES, np.uint8)
        view = self.package
        self._package = &view[0]
        self.packets = {}
        alive = [view]
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
        self._alive = (algorithm, limits, clock, *alive)
        self._cueing = Cueing(algorithm.calls, &limits.set)
        self._time = clock.calls
        self.source = source
        self._intake = source.intake
        intake_begin(self._intake, self._time.now(self._time.memory))

    cdef void take(self, int size) noexcept nogil:
        cdef const Reply* reply = intake_take(self._intake, self._package, size, self._time.now(self._time.memory))
        self._reply_size = reply_write(reply, self._package, size, self._reply)
        if self._reply_size:
            mc_count(&self._intake.counters.replies, 1)

    cdef bint tick(self, int size) noexcept nogil:
        cdef Packet* packet
        cdef Actuation* a = &self._actuation
        cdef int i
        self._reply_size = 0
        if size:
            self.take(size)
        if self._intake.publication.epoch == 0 or not cueing_tick(&self._cueing, &self._intake.publication.motion, &a.cue):
            return False
        up_vector(self._cueing.algorithm.attitude, a.cue.roll, a.cue.pitch, a.cue.yaw, &a.up_east)
        for i in range(self._packet_count):
            packet = &self._packets[i]
            encode(packet.rows, packet.row_count, <const double*>a, packet.bytes)
            if packet.seal != NULL:
                seal(packet.seal, packet.bytes)
        return True

    @cython.binding(False)
    def step(self, int size):
        """Take what has come, cue the newest motion, encode the packets.

        Parameters
        ----------
        size : int
            Of the whole package that `package` begins with [bytes]; 0 if none has come since the last step.

        Returns
        -------
        bool
            False if there is nothing to send, because no frame has come yet: then the packets are as they were.

        Raises
        ------
        ValueError
            If `size` is more than `package` holds.
        """
        cdef uint64_t fpu
        cdef bint done
        if not 0 <= size <= PACKAGE_BYTES:
            raise ValueError(f"size: found {size}, allowed is 0 to {PACKAGE_BYTES}")
        fpu = mc_flush_denormals()
        done = self.tick(size)
        mc_restore_fpu(fpu)
        return done

    @property
    def reply(self):
        """What the simulator is to be answered to its package; empty if nothing."""
        return self._reply[: self._reply_size]

    def reset(self):
        """Forget the past: the cueing starts from rest at neutral; for a platform that is there."""
        cueing_reset(&self._cueing)
