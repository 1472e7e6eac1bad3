"""The kernels' C interface as an outside extension sees it; the tests build it in a folder of their own."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from motioncue.intake.watch cimport axes_of, turned
from motioncue.kernels.actuation cimport Stage, StageCalls
from motioncue.kernels.codec cimport Table, decode, encode, encode_text
from motioncue.kernels.histogram cimport Histogram, bin_of, quantile, record
from motioncue.kernels.limiter cimport stop_above
from motioncue.kernels.records cimport Actuation, Cue, Motion, Telemetry, Tick
from motioncue.kernels.rotation cimport Turn, up_vector
from motioncue.kernels.slot cimport EVENTS, Event, Events, event_read, event_write, mc_load_acquire, mc_store_release
from motioncue.kernels.timeline cimport Timeline, timeline_frame, timeline_restart
from motioncue.kernels.trigonometry cimport angle_of, arc_sine, sin_cos

ROOM = EVENTS


def motion_fields(const Motion[::1] rows not None):
    """Return the first row as the compiler reads it."""
    return rows[0]


def cue_fields(const Cue[::1] rows not None):
    return rows[0]


def tick_fields(const Tick[::1] rows not None):
    return rows[0]


def up(double roll, double pitch, double yaw):
    cdef double out[3]
    up_vector(NULL, roll, pitch, yaw, out)
    return out[0], out[1], out[2]


def turn_between(const Motion[::1] rows not None):
    """Return the angle and the vector of the turn from the first row's attitude to the second's."""
    cdef double before[9]
    cdef double now[9]
    cdef double vector[3]
    memset(before, 0xFF, sizeof(before))    # not numbers, unless filled
    memset(now, 0xFF, sizeof(now))
    axes_of(&rows[0], before)
    axes_of(&rows[1], now)
    angle = turned(before, now, vector)
    return angle, [vector[i] for i in range(3)]


def stops_above(double x, double v, double a, double A, double J):
    return stop_above(x, v, a, A, J)


def placed(const int64_t[::1] arrivals not None, const double[::1] stamps not None):
    """Return the interval after each frame [s], when it was taken [ns] and how many joins there were."""
    cdef Timeline t
    memset(&t, 0, sizeof(Timeline))
    timeline_restart(&t)
    out = []
    for i in range(arrivals.shape[0]):
        timeline_frame(&t, arrivals[i], stamps[i])
        out.append((t.place.interval, t.place.taken, t.place.joins))
    return out


def sines(const double[::1] x not None, double[::1] sine not None, double[::1] cosine not None):
    """Fill `sine` and `cosine`."""
    for i in range(x.shape[0]):
        sin_cos(x[i], &sine[i], &cosine[i])


def arc_sines(const double[::1] x not None, double[::1] out not None):
    """Fill `out`."""
    for i in range(x.shape[0]):
        out[i] = arc_sine(x[i])


def angles(const double[::1] y not None, const double[::1] x not None, double[::1] out not None):
    """Fill `out` with the angles of (x, y)."""
    for i in range(x.shape[0]):
        out[i] = angle_of(y[i], x[i])


def decoded(Table table not None, const unsigned char[::1] packet not None, double[::1] out not None):
    """Decode `packet` into `out`; return the reason."""
    return decode(table.rows, table.n, &packet[0], &out[0])


def encoded(Table table not None, const double[::1] values not None, unsigned char[::1] packet not None):
    """Encode `values` into `packet`, in place."""
    encode(table.rows, table.n, &values[0], &packet[0])


def text_encoded(Table table not None, const double[::1] values not None, bytes text):
    """Return the text packet of `values`."""
    out = bytearray(table.largest + 1)
    cdef unsigned char[::1] view = out
    cdef int size = encode_text(table.rows, table.n, &values[0], text, table.size, &view[0])
    assert size <= table.largest and out[table.largest] == 0
    return bytes(out[:size])


def bins(const int64_t[::1] values not None):
    """Return the bin of each value."""
    return [bin_of(values[i]) for i in range(values.shape[0])]


cdef extern from "motioncue/kernels/keep.h" nogil:
    enum:
        ACTUATORS "MC_MOST_ACTUATORS"
    ctypedef struct Bounds "mc_Bounds":
        double low
        double high
        double speed
        double acceleration
    ctypedef struct Held "mc_Held":
        double position
        double speed
        double target
    bint keep "mc_keep"(const Bounds* bounds, Held* held, int n, double* wanted, int64_t* acted)


def kept(const double[:, ::1] bounds not None, const double[::1] start not None, double[:, ::1] targets not None):
    """Keep actuators that rest at `start` within `bounds` (low, high, speed, acceleration), one row of targets a tick.

    Fills `targets` with the positions; returns in which ticks they had to be changed, and how often each held back.
    """
    cdef Bounds b[ACTUATORS]
    cdef Held held[ACTUATORS]
    cdef int64_t acted[ACTUATORS]
    cdef int n = <int>start.shape[0]
    assert n <= ACTUATORS and bounds.shape[0] == n and bounds.shape[1] == 4 and targets.shape[1] == n
    for i in range(n):
        b[i] = Bounds(bounds[i, 0], bounds[i, 1], bounds[i, 2], bounds[i, 3])
        held[i] = Held(start[i], 0.0, start[i])
        acted[i] = 0
    changed = [keep(b, held, n, &targets[tick, 0], acted) for tick in range(targets.shape[0])]
    return changed, [acted[i] for i in range(n)]


cdef extern from *:
    """
    #include "motioncue/kernels/slot.h"
    enum { WORDS = 64 };
    typedef struct { int64_t words[WORDS]; } Words;
    MC_SLOT(Words, words)
    """
    enum:
        WORDS
    ctypedef struct Words:
        int64_t words[WORDS]
    ctypedef struct WordsSlot:
        int64_t waiting
        int64_t back
        int64_t front
    void words_clear(WordsSlot* slot) nogil
    void words_write(WordsSlot* slot, const Words* newest) nogil
    bint words_read(WordsSlot* slot, Words* out) nogil


cdef class Handover:
    """A slot, its two sides, and threads to hammer them."""

    cdef WordsSlot slot
    cdef int64_t done

    def __cinit__(self):
        memset(&self.slot, 0, sizeof(WordsSlot))
        words_clear(&self.slot)
        self.done = 0

    def write(self, int64_t value):
        cdef Words words
        for i in range(WORDS):
            words.words[i] = value
        words_write(&self.slot, &words)

    def read(self):
        """Return the newest value, or None if there is none since the last read."""
        cdef Words found
        if not words_read(&self.slot, &found):
            return None
        assert len({found.words[i] for i in range(WORDS)}) == 1
        return found.words[0]

    def owners(self):
        """Return which copy is the writer's, which waits, and which is the reader's."""
        return self.slot.back, self.slot.waiting & 3, self.slot.front

    def write_many(self, int64_t n):
        """Write 1 to n without the GIL."""
        cdef Words words
        cdef int64_t value
        cdef int i
        with nogil:
            for value in range(1, n + 1):
                for i in range(WORDS):
                    words.words[i] = value
                words_write(&self.slot, &words)
            mc_store_release(&self.done, 1)

    def read_many(self):
        """Read without the GIL until the writer is done; return counts of reads, torn and backward ones, and the last
        value."""
        cdef Words found
        cdef int64_t reads = 0, torn = 0, back = 0, last = 0
        cdef bint done
        cdef int i
        with nogil:
            while True:
                done = mc_load_acquire(&self.done)      # before the read, so that the last value is not missed
                if words_read(&self.slot, &found):
                    reads += 1
                    for i in range(1, WORDS):
                        if found.words[i] != found.words[0]:
                            torn += 1
                            break
                    back += found.words[0] <= last
                    last = found.words[0]
                elif done:
                    break
        return reads, torn, back, last


cdef class Queue:
    """An event queue and its two sides."""

    cdef Events events
    cdef int64_t done

    def __cinit__(self):
        memset(&self.events, 0, sizeof(Events))
        self.done = 0

    def write(self, int64_t time, int64_t code, int64_t detail):
        cdef Event event = Event(time, code, detail, 0, 0, 0.0, 0.0)
        event_write(&self.events, &event)

    def read(self):
        cdef Event event
        if not event_read(&self.events, &event):
            return None
        return event.time, event.code, event.detail

    @property
    def lost(self):
        return self.events.lost

    def write_many(self, int64_t n):
        cdef int64_t i
        cdef Event event
        with nogil:
            for i in range(n):
                event = Event(i, 2 * i, 3 * i, 0, 0, 0.0, 0.0)
                event_write(&self.events, &event)
            mc_store_release(&self.done, 1)

    def read_many(self):
        """Read without the GIL until the writer is done; return counts of reads, broken events, and backward steps."""
        cdef Event event
        cdef int64_t reads = 0, broken = 0, back = 0, last = -1
        cdef bint done
        with nogil:
            while True:
                done = mc_load_acquire(&self.done)
                if event_read(&self.events, &event):
                    reads += 1
                    broken += event.code != 2 * event.time or event.detail != 3 * event.time
                    back += event.time <= last
                    last = event.time
                elif done:
                    break
        return reads, broken, back


cdef void legs_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    for i in range(6):
        actuation.actuators[i] = (<const double*>coeffs)[i] * actuation.cue.heave_displacement


cdef class Legs(Stage):
    """A stage from outside the package: each of six actuators follows heave by a factor of its own."""

    cdef double factors[6]

    fills = "actuator_1", "actuator_2", "actuator_3", "actuator_4", "actuator_5", "actuator_6"

    def __cinit__(self, factors):
        for i in range(6):
            self.factors[i] = factors[i]
        self.calls = StageCalls(legs_step, NULL, NULL, &self.factors[0], NULL)
