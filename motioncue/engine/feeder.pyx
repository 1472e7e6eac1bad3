"""Motion from the program that runs the engine, from any of its threads, without a socket."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.clock cimport Clock
from motioncue.core.threads cimport SECOND_SIMULATOR, mc_add, mc_exchange, mc_load, mc_store, mc_store_release
from motioncue.frames.intake cimport Intake, intake_begin, intake_take
from motioncue.frames.state cimport IntakeState, refuse

__all__ = ["Feeder"]

cdef enum:
    LARGEST = 1 << 16       # larger than any package; a longer one is cut, and is still refused for its size


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

    Parameters
    ----------
    intake : Intake
        Takes the packages; nothing else may feed it.
    clock : Clock
        Gives the arrival times.

    Notes
    -----
    Real time: `feed` does not allocate, block or fail.
    """

    def __cinit__(self, Intake intake not None, Clock clock not None):
        self._intake, self._clock = intake, clock
        self.feeder.intake, self.feeder.time = intake.intake, clock.calls

    def feed(self, package):
        """Take one whole package, from any thread; return whether it gave a motion.

        Parameters
        ----------
        package : bytes-like
            One package as the source's description has it.
        """
        cdef Py_buffer view
        cdef bint taken
        PyObject_GetBuffer(package, &view, PyBUF_SIMPLE)
        taken = feeder_take(&self.feeder, view.buf, view.len)
        PyBuffer_Release(&view)
        return taken

    def stop(self):
        """Drop packages from now on."""
        mc_store(&self.feeder.ended, 1)
