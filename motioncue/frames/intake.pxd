"""From packages to the newest motion, on any transport: match, decode, convert, watch, publish.

There is no transport here: the caller passes whole packages in and sends the reply that comes back.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.core.threads cimport Event
from motioncue.frames.state cimport IntakeState
from motioncue.wire.messages cimport Reply


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil
cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil
cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil


cdef class Intake:
    cdef IntakeState* intake
    cdef readonly int reply_port
    cdef readonly object heartbeat
    cdef readonly object gather
    cdef object _tables     # owns the rows that the messages point to
    cdef Event _event
    cdef object _ring       # owns the memory behind `ring`
