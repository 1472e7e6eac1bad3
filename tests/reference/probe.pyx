"""The kernels' C interface as an outside extension sees it; the tests build it in a folder of their own."""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t
from libc.string cimport memset

from motioncue.bridge.bridge cimport AXES, Join, JoinTick, join_grow, join_step
from motioncue.core.interfaces cimport Algorithm
from motioncue.core.threads cimport (
    EVENTS, Event, Events, Histogram, bin_of, event_read, event_write, mc_load_acquire, mc_store_release, quantile,
    record,
)
from motioncue.core.records cimport Actuation, Cue, Motion, Telemetry, Tick
from motioncue.core.rotation cimport Turn, angle_of, arc_sine, sin_cos, up_vector
from motioncue.cueing.predictive.kernel cimport PredictiveState
from motioncue.engine.embed cimport Stepper
from motioncue.engine.tick cimport cueing_actuate, cueing_follow
from motioncue.frames.arrival_clock cimport Arrival, arrival_restart, arrive, many_lost, no_frame_lost
from motioncue.frames.plausibility cimport (
    StepTest, Sums, check_sums, length, step_restart, sums_add, sums_limit, sums_restart, test_step,
)
from motioncue.frames.convert cimport Stages, derive, derives_rates
from motioncue.frames.arrival_clock cimport Stamps, stamps_restart, stamps_take
from motioncue.frames.arrival_clock cimport Timeline, timeline_frame, timeline_restart
from motioncue.frames.plausibility cimport Watch, attitude_change, restart_claims
from motioncue.output.actuation cimport Stage, StageCalls
from motioncue.platforms.kinematics cimport Kinematics, slopes
from motioncue.safety.limiter cimport stop_above
from motioncue.wire.codec cimport Table, decode, encode, encode_text
from motioncue.core.blend cimport Fade, fade_step

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


def turn_between(const double[:, ::1] before not None, const double[:, ::1] now not None):
    """Return the angle and the vector of the turn between two attitudes: rows forward, right, down in world axes."""
    cdef double vector[3]
    angle = attitude_change(<const double (*)[3]>&before[0, 0], <const double (*)[3]>&now[0, 0], vector)
    return angle, [vector[i] for i in range(3)]


def joined(
    offset, speed, double line, int ticks, double dt, double pace, double quickest, double gentle, double fastest
):
    """Return the outputs of a join, one row per tick until it ends.

    The output begins `offset` off a line through zero, with the velocity `speed`; the line moves along its first axis
    with the velocity `line`.
    """
    cdef Join j
    cdef JoinTick tick
    cdef double gap[AXES]
    cdef int i, k, n = len(offset)
    memset(&j, 0, sizeof(Join))
    tick.dt, tick.pace, tick.max_pace, tick.fade_rate, tick.is_step_signal = dt, pace, quickest, gentle, False
    for i in range(n):
        j.fastest[i] = fastest
        j.offset[i] = offset[i]
        j.speed[i] = speed[i]
        j.velocity[i] = speed[i] - (line if i == 0 else 0.0)
    join_grow(&j, n)
    rows = []
    for k in range(1, ticks + 1):
        for i in range(n):
            gap[i] = j.offset[i] - (line * dt if i == 0 else 0.0)
        going = join_step(&j, n, gap, 0.0, &tick)
        rows.append([j.offset[i] + (line * dt * k if i == 0 else 0.0) for i in range(n)])
        if not going:
            break
    return rows


def jumped():
    """Return what a jump leaves of a watch that was full of other numbers: sums, claims and the reason; and what it saw."""
    cdef Watch w
    memset(&w, 1, sizeof(Watch))
    for i in range(3):
        w.reference.acceleration[i] = 2.0 + i
        w.reference.rate[i] = 5.0 + i
    restart_claims(&w)
    return [w.motion, w.turning], [w.step, w.rate_step], w.contradicted


def delays(const double[::1] gaps not None, const double[::1] said not None, double tolerance):
    """Return the estimated delay of each frame and the largest of about the last second [s]."""
    cdef Arrival a
    cdef Py_ssize_t i
    arrival_restart(&a, tolerance)
    rows = []
    for i in range(gaps.shape[0]):
        arrive(&a, gaps[i], said[i])
        rows.append((a.behind, a.late))
    return rows


def allowed_difference(
    const double[:, ::1] change not None, const double[:, ::1] claims not None, double dt, double doubt, double noise
):
    """Return how far the sums of a source's claims and of what it shows may differ after these frames, and the sums."""
    cdef Sums s
    cdef Py_ssize_t i
    sums_restart(&s)
    for i in range(change.shape[0]):
        sums_add(&s, &change[i, 0], &claims[i, 0], &claims[i + 1, 0], length(&claims[i + 1, 0]), dt, doubt, True)
    return sums_limit(&s, noise), list(s.shown), list(s.claimed)


def followed(const double[:, ::1] claims not None, double limit):
    """Return which claims are followed if nothing independent shows whether they hold: the first always is."""
    cdef StepTest s
    cdef double nothing[3]
    cdef Py_ssize_t i
    memset(nothing, 0, sizeof(nothing))
    s.limit = limit
    step_restart(&s, &claims[0, 0])
    out = []
    for i in range(1, claims.shape[0]):
        test_step(&s, &claims[i, 0], nothing, 0.01, 0.0, True, False)
        out.append(not s.held)
    return out


def judged(const double[:, ::1] claims not None, const double[:, ::1] changes not None, double limit, bint evident):
    """Return after each claim but the first, which is followed: was one a spike, is it held, what is followed, for how
    long not, and the largest step held back."""
    cdef StepTest s
    cdef Py_ssize_t i
    memset(&s, 0, sizeof(StepTest))
    s.limit = limit
    step_restart(&s, &claims[0, 0])
    out = []
    for i in range(1, claims.shape[0]):
        spike = test_step(&s, &claims[i, 0], &changes[i, 0], 0.01, 0.001, i % 5 != 0, evident)
        out.append((spike, s.held, list(s.followed), s.waited, s.value))
    return out


def contradicts(
    const double[::1] shown not None, const double[::1] claimed not None, double coarse, double peak, double noise,
    bint before
):
    """Return whether sums are found to disagree, by a watch that found the same `before`, and their limit."""
    cdef Watch w
    cdef Sums s
    cdef int i
    memset(&w, 0, sizeof(Watch))
    memset(&s, 0, sizeof(Sums))
    for i in range(3):
        s.shown[i], s.claimed[i] = shown[i], claimed[i]
    s.coarse, s.peak = coarse, peak
    w.contradicted = 1 if before else 0
    return check_sums(&w, 1, &s, noise) == 1, sums_limit(&s, noise)


def derived(const Telemetry[::1] frames not None, const double[::1] dt not None, const double[::1] sure, double delay):
    """Return the acceleration and the rates derived after each frame."""
    cdef Stages s
    cdef Py_ssize_t i
    memset(&s, 0, sizeof(Stages))
    s.delay = delay
    rows = []
    for i in range(frames.shape[0]):
        derive(&s, &frames[i], dt[i], sure[i], False)
        rows.append((list(s.acceleration), list(s.rate)))
    return rows


def lacks_rates(const Telemetry[::1] said not None):
    """Return whether the rates of a source that claims them are derived for this frame."""
    cdef Stages s
    memset(&s, 0, sizeof(Stages))
    return derives_rates(&s, &said[0])


def stops_above(double x, double v, double a, double A, double J):
    return stop_above(x, v, a, A, J)


def placed(const int64_t[::1] arrivals not None, const double[::1] stamps not None, int again=0):
    """Return the interval after each frame [s], when it was taken [ns] and how many joins there were.

    The frame of the number `again` begins another drive.
    """
    cdef Timeline t
    memset(&t, 0, sizeof(Timeline))
    out = []
    for i in range(arrivals.shape[0]):
        if i == again:
            timeline_restart(&t)
        timeline_frame(&t, arrivals[i], stamps[i], True)
        out.append((t.place.interval, t.place.time, t.place.discontinuities))
    return out


def timed(const int64_t[::1] arrivals not None, const double[::1] stamps not None, bint clocked=True):
    """Return after each frame the time that has passed for slopes [ns], whether the interval is known, and the joins.

    Stamps that are not `clocked` are sums of the durations of the frames that came.
    """
    cdef Timeline t
    memset(&t, 0, sizeof(Timeline))
    out = []
    for i in range(arrivals.shape[0]):
        timeline_frame(&t, arrivals[i], stamps[i], clocked)
        out.append((t.place.elapsed_ns, t.place.interval_known, t.place.discontinuities))
    return out


def stamped(const double[::1] stamps not None, double gap, double unit, double rounding):
    """Return the time from each frame to the next [s] by their stamps, for frames that arrive a `gap` [s] apart."""
    cdef Stamps s
    memset(&s, 0, sizeof(Stamps))
    s.unit, s.rounding = unit, rounding
    stamps_restart(&s, stamps[0])
    return [stamps_take(&s, stamps[i], gap) for i in range(1, stamps.shape[0])]


def judged_lost(const double[::1] taken not None):
    """Return for each frame but the first whether it surely follows the one before, and whether too many are lost to tell.

    Frames arrive when they were taken [s], and say so.
    """
    cdef Arrival a
    cdef Py_ssize_t i
    cdef double gap
    arrival_restart(&a, 0.1)
    out = []
    for i in range(1, taken.shape[0]):
        gap = taken[i] - taken[i - 1]
        out.append((no_frame_lost(&a, gap, gap), many_lost(&a, gap)))
        arrive(&a, gap, gap)
    return out


def sines(const double[::1] x not None, double[::1] sine not None, double[::1] cosine not None):
    """Fill `sine` and `cosine`."""
    for i in range(x.shape[0]):
        sin_cos(x[i], &sine[i], &cosine[i])


def conflicts(Algorithm algorithm not None):
    """Return the conflict that `predictive` keeps of each force, and its integral."""
    cdef const PredictiveState* s = <const PredictiveState*>algorithm.calls.state
    return [(s.conflict[i][0], s.conflict[i][1]) for i in range(3)]


cdef extern from "motioncue/core/real.h" nogil:
    void sin_cos_of_two "mc_sin_cos_of_two"(double x, double y, double* sin_x, double* cos_x, double* sin_y, double* cos_y)
    void two_arc_sines "mc_two_arc_sines"(const double* x, double* out)


def by_twos(const double[:, ::1] x not None, double[:, :, ::1] out not None):
    """Fill the sines, cosines and arc sines of the two numbers in each row."""
    for i in range(x.shape[0]):
        sin_cos_of_two(x[i, 0], x[i, 1], &out[0, i, 0], &out[1, i, 0], &out[0, i, 1], &out[1, i, 1])
        two_arc_sines(&x[i, 0], &out[2, i, 0])


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


def slopes_at(Kinematics kinematics not None, const double[::1] pose not None, double[:, ::1] out not None):
    """Fill in derivatives of all actuators' positions by the channels of the pose."""
    cdef double positions[12]
    assert pose.shape[0] == 6 and out.shape[0] == kinematics.count and out.shape[1] == 6
    slopes(&kinematics.geometry, &pose[0], positions, &out[0, 0])


cdef extern from "motioncue/platforms/actuator_limits.h" nogil:
    enum:
        ACTUATORS "MC_MOST_ACTUATORS"
    ctypedef struct Bounds "mc_ActuatorBounds":
        double low
        double high
        double speed
        double acceleration
        double jerk
    ctypedef struct Held "mc_ActuatorMotion":
        double position
        double speed
        double target
        double acceleration
    ctypedef struct JerkStop "mc_JerkStop":
        double ramp
        double hold
        double release
    const JerkStop AT_REST "mc_at_rest"
    int find_stop "mc_find_stop"(
        const Bounds* bounds, const double* x, const double* v, const double* a, int n, JerkStop* stop
    )
    bint limit_jerks "mc_limit_jerks"(
        const Bounds* bounds, Held* held, JerkStop* stop, int n, double* wanted, int64_t* acted
    )
    bint keep "mc_limit_actuators"(const Bounds* bounds, Held* held, int n, bint part, double* wanted, int64_t* acted)
    void relax_bounds "mc_relax_bounds"(const Bounds* goal, Bounds* bounds, int n)
    int tighten_bounds "mc_tighten_bounds"(const Bounds* goal, Bounds* bounds, const Held* held, int n, bint part, int range)


def relaxed(const double[:, ::1] goal not None, double[:, ::1] bounds not None, int n):
    """Widen the first `n` bounds (low, high, speed, acceleration, jerk: a row each) to those of `goal`, in place."""
    assert n <= goal.shape[0] == bounds.shape[0] and goal.shape[1] == bounds.shape[1] == 5
    relax_bounds(<const Bounds*>&goal[0, 0], <Bounds*>&bounds[0, 0], n)


def tightened(const double[:, ::1] goal not None, double[:, ::1] bounds not None, state, bint ends, bint part=False):
    """Narrow `bounds` to `goal` as far as actuators allow whose positions and speeds are the rows of `state`, in place.

    Returns the actuator for which all have to brake first, -1 if none.
    """
    cdef Held held[ACTUATORS]
    cdef int n = <int>goal.shape[0]
    assert n <= ACTUATORS and n == bounds.shape[0] and goal.shape[1] == bounds.shape[1] == 5
    for i in range(n):
        held[i] = Held(state[0][i], state[1][i], state[0][i], 0.0)
    return tighten_bounds(<const Bounds*>&goal[0, 0], <Bounds*>&bounds[0, 0], held, n, part, ends)


def kept(
    const double[:, ::1] bounds not None, const double[::1] start not None, double[:, ::1] targets not None,
    bint part=False,
):
    """Keep actuators that rest at `start` within `bounds` (low, high, speed, acceleration, and perhaps jerk), one row of
    targets a tick; if they may `part`, each may stop by itself where all together would not before their ends.

    Fills `targets` with the positions; returns in which ticks they had to be changed, and how often each held back.
    """
    cdef Bounds b[ACTUATORS]
    cdef Held held[ACTUATORS]
    cdef int64_t acted[ACTUATORS]
    cdef int n = <int>start.shape[0]
    assert n <= ACTUATORS and bounds.shape[0] == n and bounds.shape[1] in (4, 5) and targets.shape[1] == n
    for i in range(n):
        b[i] = Bounds(
            bounds[i, 0], bounds[i, 1], bounds[i, 2], bounds[i, 3], bounds[i, 4] if bounds.shape[1] == 5 else INFINITY
        )
        held[i] = Held(start[i], 0.0, start[i], 0.0)
        acted[i] = 0
    cdef JerkStop stop = AT_REST
    if bounds.shape[1] == 5:
        changed = [limit_jerks(b, held, &stop, n, &targets[tick, 0], acted) for tick in range(targets.shape[0])]
    else:
        changed = [keep(b, held, n, part, &targets[tick, 0], acted) for tick in range(targets.shape[0])]
    return changed, [acted[i] for i in range(n)]


def stop_found(const double[:, ::1] bounds not None, const double[:, ::1] state not None, guess):
    """Return ramp, hold and release of a stop from a state (position, speed, acceleration: a row each), None without."""
    cdef Bounds b[ACTUATORS]
    cdef JerkStop stop = JerkStop(guess[0], guess[1], guess[2])
    cdef int n = <int>state.shape[1]
    assert n <= ACTUATORS and bounds.shape[0] == n and bounds.shape[1] == 5 and state.shape[0] == 3
    for i in range(n):
        b[i] = Bounds(bounds[i, 0], bounds[i, 1], bounds[i, 2], bounds[i, 3], bounds[i, 4])
    if find_stop(b, &state[0, 0], &state[1, 0], &state[2, 0], n, &stop) >= 0:
        return None
    return stop.ramp, stop.hold, stop.release


cdef extern from *:
    """
    #include "motioncue/core/threads.h"
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


def actuated(Stepper stepper not None, const Cue[::1] cues not None, Actuation[::1] out not None, bint parked=False):
    """Do a tick of the stepper for each cue, and fill what its first output is sent for this cue instead of its own."""
    cdef Motion motion
    cdef Cue cue
    memset(&motion, 0, sizeof(Motion))
    for i in range(cues.shape[0]):
        cueing_follow(stepper.cueing, &motion, &cue)
        out[i] = cueing_actuate(stepper.cueing, 0, &cues[i], parked)[0]


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
        self.calls = StageCalls(legs_step, NULL, NULL, &self.factors[0], NULL, NULL)


cdef void break_channel(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    cdef int64_t* s = <int64_t*>state
    memset(cue, 0, sizeof(Cue))
    s[0] += 1
    if s[0] > s[2]:
        (<double*>cue)[s[1]] = NAN


cdef void mend_channel(void* state) noexcept nogil:
    (<int64_t*>state)[0] = 0


cdef void write_surge(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    cue.surge = motion.surge


cdef class Sparse(Algorithm):
    """Write surge, and leave every other channel as it is."""

    cdef int64_t place

    def __init__(self):
        self.calls.step, self.calls.reset = write_surge, mend_channel
        self.calls.state, self.calls.state_bytes = &self.place, sizeof(self.place)


cdef class Broken(Algorithm):
    """Leave every channel at 0, but one of them is no number from some tick after a reset on."""

    cdef int64_t place[3]

    def __init__(self, int channel, int after):
        self.place[0], self.place[1], self.place[2] = 0, channel, after
        self.calls.step, self.calls.reset = break_channel, mend_channel
        self.calls.state, self.calls.state_bytes = &self.place[0], sizeof(self.place)


def faded_on(double position, double pace, double other):
    """Return weight and position of a fade in, the tick after it was there with a pace and is to have another."""
    cdef Fade fade
    memset(&fade, 0, sizeof(fade))
    fade.pace = pace
    fade_step(&fade, True)
    fade.position = position
    fade_step(&fade, True)
    fade.pace = other
    return fade_step(&fade, True), fade.position
