"""For a program's own loop: a feeder, a step on bound arrays, and packages in to packets out."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memset

from motioncue.core.clock cimport Clock, Time
from motioncue.core.interfaces cimport AHEAD, mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Actuation, Cue, Motion, Publication
from motioncue.core.threads cimport SECOND_SIMULATOR, mc_add, mc_count, mc_exchange, mc_load, mc_store, mc_store_release
from motioncue.engine.tick cimport (
    Cueing, CueingState, Settings, cueing_actuate, cueing_follow, cueing_look, cueing_reset, pass_to_receiver,
)
from motioncue.frames.intake cimport Intake, IntakeState, intake_begin, intake_take, refuse
from motioncue.output.actuation cimport reported_state
from motioncue.safety.supervisor cimport OFFLINE, RUNNING
from motioncue.wire.checksum cimport Seal
from motioncue.wire.codec cimport Outgoing, Table, outgoing, outgoing_of
from motioncue.wire.messages cimport REPLY_BYTES, Reply, reply_write

from itertools import combinations

import numpy as np

from motioncue.core.channels import ACTUATION_DTYPE, CHASSIS_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.errors import ConfigError

__all__ = ["Feeder", "Relay", "Stepper"]

cdef enum:
    LARGEST = 1 << 20       # larger than any package; a longer one is cut, and is still refused for its size
    PACKETS = 8


cdef bint take(FeederState* f, const uint8_t* package, int size) noexcept nogil:
    """Take a package; this thread is the only one that feeds."""
    cdef IntakeState* s = f.intake
    cdef int64_t now = f.time.now(f.time.memory)
    cdef int64_t before, missed
    if not f.begun:
        f.begun = True
        intake_begin(s, now)
    missed = mc_exchange(&f.turned_away, 0)
    while missed > 0:
        refuse(s, SECOND_SIMULATOR, now, size)
        missed -= 1
    before = s.counters.accepted
    intake_take(s, package, size, now)
    return s.counters.accepted != before


cdef bint feeder_take(FeederState* f, const void* package, Py_ssize_t size) noexcept nogil:
    """Take one whole package; return False if it gave no motion.

    It is dropped and counted while another thread feeds, so that no thread ever waits for one that was suspended.
    """
    cdef uint64_t fpu
    cdef bint taken
    if mc_load(&f.ended):
        return False
    if mc_exchange(&f.busy, 1):
        mc_add(&f.turned_away, 1)
        return False
    fpu = mc_flush_denormals()
    taken = take(f, <const uint8_t*>package, <int>min(size, <Py_ssize_t>LARGEST))
    mc_restore_fpu(fpu)
    mc_store_release(&f.busy, 0)
    return taken


cdef class Feeder:
    """Takes packages from the program that runs the engine.

    Notes
    -----
    Real time: `feed` does not allocate, block or fail.
    """

    def __cinit__(self, Intake intake not None, Clock clock not None):
        self._intake, self._clock = intake, clock
        self.feeder.intake, self.feeder.time = intake.intake, clock.calls

    def feed(self, package):
        """Take one whole package, from any thread; return whether it gave a motion."""
        cdef Py_buffer view
        cdef bint taken
        PyObject_GetBuffer(package, &view, PyBUF_SIMPLE)
        taken = feeder_take(&self.feeder, view.buf, view.len)
        PyBuffer_Release(&view)
        return taken

    def stop(self):
        """Drop packages from now on."""
        mc_store(&self.feeder.ended, 1)


cdef checked(str name, array, str kind, dtype, bint writeable, Py_ssize_t rows=1):
    """Return `array`, or a new one if it is None; raise ConfigError unless it is contiguous rows of `dtype`."""
    if array is None:
        return np.zeros(1, dtype)
    found = type(array).__name__
    if isinstance(array, np.ndarray):
        flags = array.flags
        if (
            array.dtype == dtype
            and array.shape == (rows,)
            and flags.c_contiguous
            and array.ctypes.data % 8 == 0
            and (flags.writeable or not writeable)
        ):
            return array
        found = f"{array.dtype} of shape {array.shape}" + ("" if flags.writeable else ", read-only")
        found += "" if array.ctypes.data % 8 == 0 else ", not aligned to 8 bytes"
    raise ConfigError(
        f"{name}: found {found}, allowed is {kind}, shape ({rows},), aligned{' and writeable' if writeable else ''}"
    )


cdef class Cued:
    """Cueing whose settings can change, in a program's own loop."""

    cdef int cue_by(self, Settings settings, tune) except -1:
        """Begin with these settings; `tune` is called by `retune`."""
        self._cueing = Cueing(settings)
        self.cueing = &self._cueing.state
        self._tune = tune
        return 0

    def reset(self):
        """Start from rest at the next step.

        Call it only when the platform is at neutral, or where it is parked and `parked` is set.
        """
        cueing_reset(self.cueing)

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
            If it was made without `tune`.
        """
        if self._tune is None:
            raise TypeError(f"this {type(self).__name__.lower()} was not made from a profile: it has nothing to change")
        self._tune(change, self._cueing.retune)

    @property
    def profile(self):
        """The profile that the current settings were made from; None if there is none."""
        return self._cueing.settings.profile


@cython.final
cdef class Stepper(Cued):
    """A profile's cueing with its arrays bound: what a controller calls in a loop of its own.

    Made by `motioncue.bind`.

    Parameters
    ----------
    settings : Settings
        The initial settings.
    motion : ndarray of MOTION_DTYPE, shape (1,), optional
        Read by each step; a new array if not given.  Any memory will do, such as one row of a larger array, or shared
        memory.
    cue : ndarray of CUE_DTYPE, shape (1,), optional
        Filled by each step; a new array if not given.
    actuation : ndarray of ACTUATION_DTYPE, shape (1,), optional
        Filled by each step with what the first output is sent; if not given, its stages are not stepped.
    ahead : ndarray of MOTION_DTYPE, shape (7,), optional
        Read by each step: what the car will do `motioncue.AHEAD_S` from then, if the controller knows; a row that is not
        finite is not known.  An algorithm that does not plan takes no notice.
    chassis : ndarray of CHASSIS_DTYPE, shape (1,), optional
        Read by each step for an actuation that sends it: what wheels and cab do; NaN where it is not known.
    tune : callable, optional
        Called by `retune` with the change and with a function that takes the resulting Settings.

    Raises
    ------
    ConfigError
        If an array is not one of its kind, or two of them share memory.

    Attributes
    ----------
    motion, cue, actuation, ahead, chassis : ndarray
        The bound arrays; the last three are None if none was given.
    period_ns : int
        Time from one step to the next [ns].
    parked : bool
        Whether the actuators of a ``[platform]`` are to rest where it is parked; False at first.  They sink and rise in
        its ``rise_s``; a first step with True begins parked, one with False at neutral.  Without a platform, nothing
        reads it: fading the cue is the controller's.

    Notes
    -----
    Real time: `step` and `reset` do not allocate and cannot fail.  The bound arrays keep their memory as long as the
    stepper lives.  Use it from one thread at a time; only `retune` may be called from any thread.
    """

    def __cinit__(
        self, Settings settings not None, motion=None, cue=None, *, actuation=None, ahead=None, chassis=None, tune=None
    ):
        self.motion = checked("motion", motion, "MOTION_DTYPE", MOTION_DTYPE, False)
        self.cue = checked("cue", cue, "CUE_DTYPE", CUE_DTYPE, True)
        cdef Actuation[::1] filled
        if actuation is not None:
            self.actuation = filled = checked("actuation", actuation, "ACTUATION_DTYPE", ACTUATION_DTYPE, True)
            self._filled = &filled[0]
        cdef const Motion[::1] seen
        if ahead is not None:
            self.ahead = seen = checked("ahead", ahead, "MOTION_DTYPE", MOTION_DTYPE, False, AHEAD)
            self._seen = &seen[0]
        if chassis is not None:
            self.chassis = checked("chassis", chassis, "CHASSIS_DTYPE", CHASSIS_DTYPE, False)
        bound = {"motion": self.motion, "cue": self.cue, "actuation": actuation, "ahead": ahead, "chassis": chassis}
        bound = {name: array for name, array in bound.items() if array is not None}
        for name, other in combinations(bound, 2):
            if (name, other) != ("motion", "ahead") and np.may_share_memory(bound[name], bound[other]):
                raise ConfigError(f"{other}: found memory of {name}, allowed is an array of its own")
        cdef const Motion[::1] source = self.motion
        cdef Cue[::1] target = self.cue
        self._in = &source[0]
        self._out = &target[0]
        self.cue_by(settings, tune)
        self._cueing.read_motion(self._in, NULL, NULL)
        if chassis is not None:
            self._cueing.read_chassis(<const double*><uintptr_t>chassis.ctypes.data + 1)    # behind the time
        self.period_ns = settings.period_ns
        # These views keep the arrays from being resized.
        self._alive = tuple(map(memoryview, bound.values()))

    @cython.binding(False)
    def step(self):
        """Do one tick: read `motion`, fill `cue` and `actuation`; their times are set to the motion's.

        Returns
        -------
        bool
            False if the motion was refused because an acceleration, an angle or a rate is not finite or beyond a
            million of its unit: then `cue` is still that of the tick before, and actuators follow it.  Speeds are not
            checked.
        """
        cdef uint64_t fpu = mc_flush_denormals()
        if self._seen != NULL:
            cueing_look(self.cueing, self._seen, False)
        cdef bint taken = cueing_follow(self.cueing, self._in, self._out)
        if self._filled != NULL:        # also after a refusal: actuators that move cannot stop within a tick
            self._filled[0] = cueing_actuate(self.cueing, 0, self._out, self.parked)[0]
        mc_restore_fpu(fpu)
        return taken


ctypedef struct Packet:
    Outgoing encoding
    uint8_t* bytes
    int largest


@cython.final
cdef class Relay(Cued):
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

    cdef int64_t _number        # number of the settings that the source uses
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
        self.cue_by(settings, tune)
        self._time = clock.calls
        self.source = source
        self._intake = source.intake
        self._cueing.read_motion(&self._intake.publication.motion, NULL, NULL)
        self._cueing.read_chassis(&self._intake.publication.chassis[0])
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
        if newest.epoch == 0 or not cueing_follow(self.cueing, &newest.motion, &self._cue):
            return False
        if self._number != self.cueing.now.number:
            self._number = self.cueing.now.number
            pass_to_receiver(self.cueing, &self._intake.tuning)
        values = <const double*>cueing_actuate(self.cueing, 0, &self._cue, self.parked)
        for i in range(self._packet_count):
            packet = &self._packets[i]
            written = outgoing(
                &packet.encoding, values, self._cue.time, reported_state(self.cueing.now.chains[0], state), packet.bytes
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
