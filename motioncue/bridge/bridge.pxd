"""Interpolation between frames: the motion of a tick from the frames that have arrived so far.

A simulator sends 30 to 144 frames a second; the platform needs 333 ticks.  Between frames, every channel follows a line
from its newest frame.  The offset of the output from that line, when the frame comes, fades from then on, so that a
frame never makes a step.  The kinds differ in the line:

``hold``: the newest frame as it is, steps included.
``linear``: the line is level and the offset fades over a whole frame, which gives a straight line from each frame to
the next, one frame late.
``predict``: the line leads to the expected next frame, as far as the prediction was right for the last frames; the
offset fades within half a frame where it was wrong.  Attitude turns with the body rates.

The timeline (`motioncue.frames.arrival_clock`) says when a frame was taken.  From one and a half intervals after that, a
line slows down; after two and a half it is level.  A frame that does not continue the motion is joined: the output
moves on from where it was, see `Join`.
"""

from libc.math cimport exp, fabs, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from motioncue.core.records cimport CHASSIS, MOTION_TIME, ROLL, ROLL_RATE, Motion, Placement, Publication
from motioncue.core.rotation cimport to_angles, turn_about
from motioncue.core.threads cimport mc_count


# ---- The prediction ----
#
# Linear prediction of a channel from frame to frame, trusted as far as it has been right.
#
# The next curve is a linear combination of the last three curves, the slope, and the channel's distance from its average,
# by least squares over about the last 64 frames (J. Makhoul, Proc. IEEE 63, 1975: the covariance method, with
# exponentially decaying weights).

cdef enum:
    SLOPE = 3               # index of the slope among the regressors, after as many curves, newest first
    OFF = 4                 # index of the distance from the average
    ORDER = 5               # number of regressors

cdef extern from *:
    """
    #define MC_KEEP (1.0 - 1.0 / 64.0)  /* share of the statistics kept from frame to frame */
    #define MC_DOUBT 1e-3  /* ridge, as a share of the moments; it favors a straight line */
    #define MC_ONE_MISS 0.25  /* largest squared error that counts, relative to all changes: a single frame says little */
    #define MC_FARTHEST 3.0  /* largest expected slope, relative to the larger of the last two: no sine needs more */
    """
    const double KEEP "MC_KEEP"
    const double DOUBT "MC_DOUBT"
    const double ONE_MISS "MC_ONE_MISS"
    const double FARTHEST "MC_FARTHEST"


ctypedef struct Predictor:      # for one channel, updated at each frame
    double x                # value of the newest frame
    double slope            # slope from the frame before to the newest one [1/s]
    double next             # expected slope from the newest frame to the next [1/s]
    double curve            # expected curvature until then [1/s^2]
    double dt               # interval of `slope` [s]
    double average          # average of about the last 64 frames
    double seen[ORDER]      # regressors [1/s^2]: curves; slope per frame; distance per frame squared
    double moments[ORDER][ORDER]    # decaying sums of their products
    double products[ORDER]  # decaying sums of their products with the curve that followed
    double sq_error         # decaying sum of the prediction's squared errors
    double carry            # part of the newest of those that counts for its own frame only
    double sq_change        # decaying sum of squared changes between frames: the errors of `hold`


cdef inline double skill_of(double sq_error, double sq_change) noexcept nogil:
    """Return the skill of a prediction: 1 less its squared error over that of hold; negative if it is worse."""
    return 1.0 - sq_error / sq_change if sq_change > 0.0 else 1.0


cdef inline double gain_of(double skill) noexcept nogil:
    """Return the fraction of a prediction to apply: 1 if it at least halves hold's squared error, 0 if it exceeds it by
    half, linear between."""
    return 1.0 if skill > 0.5 else (0.5 + skill if skill > -0.5 else 0.0)


cdef inline double within(double x, double bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)


cdef inline double dot(const double* w, const double* seen) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(ORDER):
        total += w[i] * seen[i]
    return total


cdef inline void predict_curves(const Predictor* f, double* curves) noexcept nogil:
    """Fill `curves` with the next two expected ones.

    The next curve is a linear combination of the regressors, by least squares over the past frames.  The normal
    equations are solved by Cholesky decomposition; a small ridge makes them regular and prefers zero.  The ridge is
    scaled by the channel's motion, not by its distance from the average.
    """
    cdef double l[ORDER][ORDER]
    cdef double w[ORDER]
    cdef double then[ORDER]
    cdef double ridge = 1e-30
    cdef double total
    cdef int i, j, k
    for i in range(OFF):
        ridge += DOUBT * f.moments[i][i]
    for i in range(ORDER):
        for j in range(i + 1):
            total = f.moments[i][j] + (ridge if i == j else 0.0)
            for k in range(j):
                total -= l[i][k] * l[j][k]
            l[i][j] = sqrt(total) if i == j else total / l[j][j]
        w[i] = f.products[i]
        for k in range(i):
            w[i] -= l[i][k] * w[k]
        w[i] /= l[i][i]
    for i in range(ORDER - 1, -1, -1):
        for k in range(i + 1, ORDER):
            w[i] -= l[k][i] * w[k]
        w[i] /= l[i][i]
    curves[0] = dot(w, f.seen)
    for i in range(1, SLOPE):
        then[i] = f.seen[i - 1]
    then[0] = curves[0]
    then[SLOPE] = f.seen[SLOPE] + curves[0]
    then[OFF] = f.seen[OFF] + then[SLOPE]
    curves[1] = dot(w, then)


cdef inline void update_predictor(Predictor* f, double x, double dt, double interval, bint known) noexcept nogil:
    """Take a frame, `dt` [s] after the last: update the statistics of the prediction, and predict again.

    The first frame, and the first after a gap, give only the channel's value, because the motion before is not `known`.
    `interval` is the nominal time between frames [s].
    """
    cdef double slope = (x - f.x) / dt
    cdef double missed = x - f.x - f.next * dt
    cdef double curve, moved, most
    cdef double curves[2]
    cdef int i, j
    curves[0] = curves[1] = 0.0
    if known:
        curve = (slope - f.slope) / (0.5 * (dt + f.dt))     # slopes are those at the middle between two frames
        moved = (x - f.x) * (x - f.x)
        f.sq_change = KEEP * f.sq_change + moved
        most = moved if moved > ONE_MISS * f.sq_change else ONE_MISS * f.sq_change
        missed *= missed
        f.sq_error = KEEP * (f.sq_error - f.carry) + missed
        f.carry = missed - most if missed > most else 0.0
        for i in range(ORDER):
            for j in range(i + 1):
                f.moments[i][j] = KEEP * f.moments[i][j] + f.seen[i] * f.seen[j]
            f.products[i] = KEEP * f.products[i] + f.seen[i] * curve
        for i in range(SLOPE - 1, 0, -1):
            f.seen[i] = f.seen[i - 1]
        f.seen[0] = curve
        f.seen[SLOPE] = slope / interval
        f.average = KEEP * f.average + (1.0 - KEEP) * x
        f.seen[OFF] = (x - f.average) / (interval * interval)
        predict_curves(f, curves)
    else:
        memset(f.seen, 0, sizeof(f.seen))
        f.average = x if f.sq_change == 0.0 else f.average
    if not isfinite(slope + curves[0] + curves[1] + f.sq_error + f.sq_change):    # absent, or too large to be squared
        memset(f, 0, sizeof(Predictor))
        f.average = x
        slope = curves[0] = curves[1] = 0.0
    most = FARTHEST * (fabs(slope) if fabs(slope) > fabs(f.slope) else fabs(f.slope))
    f.x = x
    f.dt = dt
    f.slope = slope
    f.next = within(slope + 0.5 * curves[0] * (dt + interval), most)
    f.curve = within(0.5 * (curves[0] + curves[1]) * interval, most) / interval


# ---- The join ----
#
# A join: the smooth return of an output to its line, never away from it and never faster than the drive.
#
# The offset of the output from the line follows a critically damped second-order system, o'' + 2 p o' + p^2 o = 0.  Its
# pace p is that of the join, and higher if the offset already closes faster than that.  The output moves only towards the
# line, except that it comes to rest smoothly if it was moving away.  Along no axis it moves faster than 1.19 times the
# largest slope of the drive in the last minute, plus half of the largest slope of a fade of the offset.

cdef enum:
    AXES = 3


ctypedef struct Join:           # one output, on up to three axes
    double offset[AXES]     # output less its line [unit]
    double velocity[AXES]   # derivative of the offset [unit/s]
    double speed[AXES]      # velocity of the output itself [unit/s]
    double largest          # largest offset since the join began [unit]
    double fastest[AXES]    # largest slope of the drive in the last minute [unit/s]


ctypedef struct JoinTick:       # values shared by all joins in a tick
    double dt               # time since the last tick [s]
    double pace             # [1/s]
    double max_pace         # highest pace, for an offset that closes faster [1/s]
    double fade_rate        # half of the largest slope of a fade, per unit of offset [1/s]
    bint is_step_signal     # the line moves in steps, which must not count as velocity


cdef extern from *:
    """
    #define MC_CATCH_UP 1.19    /* largest slope of a joining output, relative to the drive's */
    #define MC_NEGLIGIBLE 1e-9  /* [unit] offset that ends a join, plus a thousandth of the largest move in a tick */
    #define MC_LONGEST_LINE_S 0.3   /* [s] of wheels, to a frame after lost ones: 16 frames of 60 Hz that come at once */
    """
    const double CATCH_UP "MC_CATCH_UP"
    const double NEGLIGIBLE "MC_NEGLIGIBLE"
    const double LONGEST_LINE_S "MC_LONGEST_LINE_S"


cdef inline double size_of(const double* x, int n) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(n):
        total += x[i] * x[i]
    return sqrt(total)


cdef inline double clamp_towards(double move, double whole, double braking) noexcept nogil:
    """Return the value nearest to `move` that goes towards the line, at most the `whole` way, or away at most by
    `coast`."""
    cdef double low = braking if braking < 0.0 else 0.0
    cdef double high = braking if braking > 0.0 else 0.0
    low = whole if whole < low else low
    high = whole if whole > high else high
    return low if move < low else (high if move > high else move)


cdef inline void join_clear(Join* j) noexcept nogil:
    """Put the output on its line; the drive's largest slope is kept."""
    cdef int i
    for i in range(AXES):
        j.offset[i] = j.velocity[i] = 0.0
    j.largest = 0.0


cdef inline void join_grow(Join* j, int n) noexcept nogil:
    """Update the largest offset; an offset that is not a number ends the join."""
    cdef double offset = size_of(j.offset, n)
    if not isfinite(offset + size_of(j.velocity, n)):
        join_clear(j)
    elif offset > j.largest:
        j.largest = offset


cdef inline double join_pace(const Join* j, int n, const JoinTick* tick) noexcept nogil:
    """Return the pace that keeps the offset's present velocity, within the bounds [1/s]."""
    cdef double offset = size_of(j.offset, n)
    cdef double velocity = size_of(j.velocity, n)
    if velocity <= tick.pace * offset:
        return tick.pace
    if velocity < tick.max_pace * offset:
        return velocity / offset
    return tick.max_pace if tick.max_pace > tick.pace else tick.pace


cdef inline bint join_step(Join* j, int n, const double* gap, double step, const JoinTick* tick) noexcept nogil:
    """Move an output of `n` axes by one tick; return whether it is still off its line.

    `gap` is the offset if the output stayed where it is; a `step` of the line itself is allowed.
    """
    cdef double pace = join_pace(j, n, tick)
    cdef double damped = exp(-pace * tick.dt)
    cdef double max_speed[AXES]
    cdef double most[AXES]
    cdef double free[AXES]
    cdef double move[AXES]
    cdef double drop, near
    cdef double share = 1.0
    cdef double braking = tick.dt * exp(-tick.max_pace * tick.dt)
    cdef int i
    for i in range(n):
        max_speed[i] = CATCH_UP * j.fastest[i] + tick.fade_rate * j.largest
        most[i] = tick.dt * max_speed[i] if tick.dt * max_speed[i] > step else step
        free[i] = (j.offset[i] + (j.velocity[i] + pace * j.offset[i]) * tick.dt) * damped
        move[i] = clamp_towards(free[i] - gap[i], -gap[i], braking * j.speed[i])
        if share * fabs(move[i]) > most[i]:
            share = most[i] / fabs(move[i])
    for i in range(n):
        near = gap[i] + share * move[i]
        if share == 1.0 and move[i] == free[i] - gap[i]:
            drop = (j.velocity[i] + pace * j.offset[i]) * tick.dt
            j.velocity[i] = (j.velocity[i] - pace * drop) * damped
        else:
            j.velocity[i] = (near - j.offset[i]) / tick.dt
            if tick.is_step_signal:     # steps of the line are no velocity, only the output's own motion is
                j.velocity[i] = within(share * move[i] / tick.dt, max_speed[i])
        j.offset[i] = near
        j.speed[i] = share * move[i] / tick.dt
    near = size_of(j.offset, n)
    if near > 1e-3 * size_of(most, n) + NEGLIGIBLE and isfinite(near):
        return True
    join_clear(j)
    return False


# ---- The lines ----

cdef enum:
    BRIDGE_HOLD
    BRIDGE_LINEAR
    BRIDGE_PREDICT

cdef enum:
    LINES = MOTION_TIME - 3     # channels of a motion that are not angles
    RATES = ROLL_RATE - 3   # index of the first body rate among the lines
    ANGLES = ROLL           # index of the first angle among the channels


ctypedef struct Line:           # one channel, in its own unit
    double x                # value at the newest frame
    double slope            # slope at the newest frame [1/s]
    double curve            # curvature [1/s^2]
    double offset           # offset of the output from the line when the frame came
    double fade             # rate at which the offset fades, as a share [1/s]
    double last             # the line's value at the last tick, while joining
    double begin            # value at the beginning of the stretch
    Join join               # join of the output with the line


ctypedef struct Turning:        # the attitude, in body axes
    double q[4]             # attitude at the newest frame
    double rate[3]          # angular rate at the newest frame [rad/s]
    double slope[3]         # its slope [rad/s^2]
    double curve[3]         # its curvature [rad/s^3]
    double offset[3]        # turn from the line to the output when the frame came [rad]
    double fade             # rate at which the offset fades, as a share [1/s]
    double last[4]          # the line's attitude at the last tick, while joining
    double begin[4]         # attitude at the beginning of the stretch
    Join join               # join of the output with the line, as turns in body axes [rad]
    Predictor turns[3]      # prediction of the turns from frame to frame [rad], independent of the body rates
    double sq_error         # decaying sum of the squared errors of the body rates' prediction [rad^2]


ctypedef struct BridgeState:
    int kind
    double max_fade_rate    # largest rate at which a fade reduces an offset, as a share [1/s]
    int64_t period          # between ticks [ns]; 0 if ticks may be any time apart
    Motion motion           # output at the last tick
    double q[4]             # its attitude; with `hold`, only while joining
    int64_t tick            # when the last tick was computed: its deadline, or later if a frame was [ns]
    bint moving             # whether the last tick moved
    int frames              # frames since the restart or a gap, up to 2
    Placement place         # placement of the newest frame
    int64_t since           # when the output turned to the newest frame [ns]
    double joining          # time that a join has left [s]; 0 while the output is on its line
    int frames_to_settle    # frames in time until a join may end
    Placement begin         # placement of the frame at which the stretch began
    bint first              # whether the stretch is the first one, which does not count
    Line lines[LINES]
    Turning turning
    Predictor predictors[LINES]
    int64_t age             # sum of the ages of what the ticks showed [ns]
    int64_t ticks           # number of ticks in that sum


cdef enum:
    KNOTS = 64              # 16 frames that come at once, four times over

ctypedef struct ChassisLines:   # wheels, suspension and cab between frames: straight lines from one to the next, a while later
    double knots[KNOTS][CHASSIS]    # values of the newest frames, a ring; NaN where the source has said nothing yet
    int64_t taken[KNOTS]    # when they were taken, on a clock that no frame turns back [ns]
    int newest              # index of the newest one
    int line                # index of the one where the line begins that is shown; the newest one is kept
    Placement place         # of the newest one
    int64_t shown           # when what is shown was taken [ns]
    double behind           # how far what is shown should be behind the local clock [ns]
    double now[CHASSIS]     # values at the last tick
    double kept[CHASSIS]    # time for which a value has been kept, because the source says no number [s]
    double offset[CHASSIS]  # of the knots from what the source says, since it says a number again
    double left[CHASSIS]    # time in which that fades [s]
    int64_t tick            # the last tick [ns]
    bint begun


cdef void bridge_restart(BridgeState* b, const Publication* newest) noexcept nogil
cdef void bridge_frame(BridgeState* b, const Publication* newest, bint missed, int64_t now) noexcept nogil
cdef void bridge_join(BridgeState* b, Motion* line, double* q, int64_t now) noexcept nogil
cdef void bridge_design(BridgeState* b, int kind, double fade_rate, int64_t period) noexcept nogil
cdef void bridge_change(BridgeState* b, int kind) noexcept nogil
cdef double latency_s(BridgeState* b)


cdef inline int channel_of(int line) noexcept nogil:
    """Return the index of a line among the channels of a motion."""
    return line if line < ANGLES else line + 3


cdef inline double extrapolation_time(double interval, double t) noexcept nogil:
    """Return the extrapolation time of a line [s], `t` [s] after its frame: in full for 1.5 intervals, then less.

    In the next interval it comes to a stop.  `t` may be negative, since a join begins at the tick before the frame.
    """
    cdef double over = t - 1.5 * interval
    if over <= 0.0:
        return t if t > -interval else -interval
    return 2.0 * interval if over >= interval else t - 0.5 * over * over / interval


cdef inline double extrapolation_rate(double interval, double t) noexcept nogil:
    """Return the derivative of `extrapolation_time` by `t`."""
    cdef double over = t - 1.5 * interval
    return 1.0 if over <= 0.0 else (0.0 if over >= interval else 1.0 - over / interval)


cdef inline double share_left(double fade, double gone) noexcept nogil:
    """Return the remaining share of an offset."""
    return 1.0 - fade * gone if fade * gone < 1.0 else 0.0


cdef inline double line_at(const Line* l, double t, double gone) noexcept nogil:
    """Return the channel's value `t` [s] along the line, `gone` [s] after the output turned to it."""
    cdef double x = l.x + (l.slope + 0.5 * l.curve * t) * t + share_left(l.fade, gone) * l.offset
    return x if isfinite(x) else l.x


cdef inline void turning_at(const Turning* a, double t, double gone, double* q) noexcept nogil:
    """Fill `q` with the attitude at that time, likewise."""
    cdef double vector[3]
    cdef double predicted[4]
    cdef double share = share_left(a.fade, gone)
    cdef int i
    for i in range(3):
        vector[i] = (a.rate[i] + (0.5 * a.slope[i] + a.curve[i] * t / 6.0) * t) * t
    turn_about(a.q, vector, predicted)
    for i in range(3):
        vector[i] = share * a.offset[i]
    turn_about(predicted, vector, q)


cdef inline bint ticks_missed(const BridgeState* b, double interval, int64_t now) noexcept nogil:
    """Say whether ticks are missing since the last one, with frames an `interval` [s] apart.

    `hold` steps from frame to frame, so for it only ticks count that are missing for longer than that interval.
    """
    cdef double most = 1.5e-9 * b.period
    if b.kind == BRIDGE_HOLD and interval > most:
        most = interval
    return b.period > 0 and 1e-9 * (now - b.tick) > most


cdef inline void bridge_step(
    BridgeState* b, const Publication* newest, bint moving, bint restart, int64_t deadline
) noexcept nogil:
    """Do one tick: set `motion` to that of the deadline, from `newest` and the frames before it.

    If not `moving`, the motion is kept; `restart` forgets the frames before.
    """
    cdef Motion line
    cdef double q[4]
    # A tick that is late has frames from after its deadline.
    cdef int64_t now = newest.motion.time if newest.motion.time > deadline else deadline
    cdef double t, gone
    cdef bint missed
    cdef int i
    if moving:
        if restart or b.frames == 0:
            bridge_restart(b, newest)
            b.tick = now
        else:
            missed = ticks_missed(b, newest.place.interval, now)
            if missed or not b.moving or newest.place.elapsed_ns != b.place.elapsed_ns:
                bridge_frame(b, newest, missed, now)
        line = newest.motion
        t = 1e-9 * (now - b.place.time)
        # The age of what is shown: a line that leads shows the present; a level one shows its frame once the offset has
        # faded.
        mc_count(&b.age, <int64_t>(1e9 * t))
        if b.kind != BRIDGE_HOLD or b.joining > 0.0:
            gone = (now - b.since) * 1e-9
            t = extrapolation_time(b.place.interval, t)
            if b.kind == BRIDGE_PREDICT:
                mc_count(&b.age, -<int64_t>(1e9 * t))
            elif b.kind == BRIDGE_LINEAR:
                mc_count(&b.age, <int64_t>(1e9 * b.place.interval * share_left(b.turning.fade, gone)))
            for i in range(LINES):
                (<double*>&line)[channel_of(i)] = line_at(&b.lines[i], t, gone)
            turning_at(&b.turning, t, gone, q)
            if b.joining > 0.0:
                bridge_join(b, &line, q, now)
            to_angles(q, &line.roll)
            for i in range(4):
                b.q[i] = q[i]
        b.motion = line
        mc_count(&b.ticks, 1)
    b.tick = now
    b.moving = moving


cdef inline void chassis_begin(ChassisLines* c, const double* values, int64_t taken, double behind) noexcept nogil:
    """Begin with these values, taken then [ns], to be shown so far behind the clock [ns]."""
    memcpy(&c.knots[0][0], values, CHASSIS * sizeof(double))
    c.newest = c.line = 0
    c.taken[0] = c.shown = taken
    c.behind = behind


cdef inline void chassis_take(ChassisLines* c, const Publication* newest) noexcept nogil:
    """Take a frame as the newest knot.

    A line that is over before the next frame comes is felt as a stop.  So the frame before should be shown no earlier than
    this one came, and as late as the latest of about five seconds: of frames that come late, in bunches, or with others
    lost between them.
    """
    cdef const Placement* p = &newest.place
    cdef int64_t nominal = <int64_t>(1e9 * p.interval)
    cdef int64_t told = p.source_elapsed_ns - c.place.source_elapsed_ns
    cdef int64_t placed = p.time - c.place.time
    # Where only arrivals tell it, what is told is their mean, which lost frames make up to a third longer than frames are
    # apart; more than that is told by a simulator that counts those that are lost.
    if 2 * told < 3 * nominal:
        told = min(told, nominal)
    # A frame that is late is not told from one after lost ones: the longer interval is the one without a dash.
    cdef int64_t interval = max(told, placed)
    # The longer of two is too long on average, and the delay would grow without end.  So what is ahead of the frame's own
    # time is taken back within about a second, by lines that are as much steeper: 0.1 s ahead, a tenth.  Without it, frames
    # of 333 Hz that come up to 6 ms late are shown 63 ms late instead of 12, and at 120 Hz without times 60 instead of 30.
    cdef double ahead = max(0.0, 1e-9 * (c.taken[c.newest] + interval - p.time))
    cdef int64_t taken = c.taken[c.newest] + <int64_t>(interval / (1.0 + ahead))
    # Where frames have become denser, the source's interval is too long until that is known: no further ahead than this.
    if ahead > LONGEST_LINE_S and 0 < placed < told:
        taken = max(c.taken[c.newest] + placed, min(taken, p.time + <int64_t>(1e9 * LONGEST_LINE_S)))
    cdef double needed = newest.motion.time - c.taken[c.newest]
    cdef double gap = 1e-9 * interval
    cdef double way, x, dt
    cdef int i, k, after
    if 0.0 < gap <= LONGEST_LINE_S and needed < c.behind + 1e9 * LONGEST_LINE_S:
        c.behind = max(needed, c.behind - (c.behind - needed) * gap / (gap + 5.0))
    else:   # a silence, or times that jump: from what is shown on in the time that passed, no faster than the car itself
        way = max(1e9 * p.interval, min(1e9 * LONGEST_LINE_S, p.time - c.place.time))
        taken = c.tick + <int64_t>way
        chassis_begin(c, &c.now[0], c.tick, way)
    after = (c.newest + 1) % KNOTS
    if after == c.line:
        after = c.newest    # the ring is full: its last line leads on to this one
    dt = 1e-9 * (taken - c.taken[c.newest])
    for i in range(CHASSIS):
        x = newest.chassis[i]
        if not isfinite(x):
            x = c.knots[c.newest][i]    # what is no number any more keeps its value: what stops abruptly is felt as a blow
            c.kept[i] += dt
        elif not isfinite(c.knots[c.newest][i]):
            for k in range(KNOTS):      # no way from nothing, which would be felt as a bump of its whole travel
                c.knots[k][i] = x
            c.kept[i] = 0.0
        else:
            if c.kept[i] > 0.0:         # the way back takes as long as the car had for its own
                # One that is interrupted takes no less than was left of it.
                c.left[i] = max(c.left[i], min(c.kept[i], LONGEST_LINE_S))
                c.offset[i], c.kept[i] = c.knots[c.newest][i] - x, 0.0
            if c.left[i] > 0.0:
                c.offset[i] *= max(0.0, 1.0 - dt / c.left[i])
                c.left[i] -= dt
                x += c.offset[i] if c.left[i] > 0.0 else 0.0
        c.knots[after][i] = x
    c.taken[after], c.newest = taken, after


cdef inline void chassis_step(
    ChassisLines* c, const Publication* newest, bint moving, bint restart, int64_t deadline
) noexcept nogil:
    """Do one tick of what a source says beside the motion; if not `moving`, everything keeps its value and goes on later."""
    cdef double passed = deadline - c.tick
    cdef double share = 0.0
    cdef int i, after
    if moving:
        if restart or not c.begun:
            chassis_begin(c, &newest.chassis[0], newest.place.time, 1e9 * newest.place.interval)
            c.begun, c.place = True, newest.place
            memset(c.kept, 0, sizeof(c.kept))
            memset(c.left, 0, sizeof(c.left))
        elif newest.place.elapsed_ns != c.place.elapsed_ns:
            chassis_take(c, newest)
            c.place = newest.place
        # It catches up, or falls back, by a tenth of the time that passes, so that lines become by no more steeper.
        passed += max(-0.1 * passed, min(0.1 * passed, deadline - c.behind - c.shown - passed))
        c.shown = min(c.taken[c.newest], c.shown + <int64_t>passed)
        while c.line != c.newest and c.shown >= c.taken[(c.line + 1) % KNOTS]:
            c.line = (c.line + 1) % KNOTS
        after = c.line
        if c.line != c.newest:
            after = (c.line + 1) % KNOTS
            share = <double>(c.shown - c.taken[c.line]) / (c.taken[after] - c.taken[c.line])
        for i in range(CHASSIS):
            c.now[i] = c.knots[c.line][i] + share * (c.knots[after][i] - c.knots[c.line][i])
    c.tick = deadline


cdef class Bridge:
    cdef int _kind
    cdef double _fade_s
    cdef BridgeState _state
