"""Plausibility of the motion from frame to frame: between two frames a car can only do so much.

What a frame shows (position, velocity, attitude) may change by what the frames claim (speed, acceleration, rates) over
the longest time that can have passed, so that lost, late and bunched frames of an honest drive are never refused.  A
single frame that does not fit is set aside, as if it had been lost: if the next one fits, it was a spike; if not, the
drive has jumped.  The claims are believed as far as they agree with what is shown (`motioncue.frames.evidence`).
"""

from libc.math cimport NAN, fabs, isfinite
from libc.stdint cimport int64_t

from motioncue.core.threads cimport (
    ACCELERATION_CONTRADICTED, ACCEPTED, FRAME_TIME_JUMP, FROZEN, IMPOSSIBLE_ACCELERATION, IMPOSSIBLE_RATE, PAUSED,
    RATE_CONTRADICTED, TELEPORT,
)
from motioncue.core.records cimport Motion
from motioncue.core.rotation cimport Turn, angle_of, turn
from motioncue.frames.arrival_clock cimport (
    Arrival, arrival_restart, arrive, likely, longest, many_lost, no_frame_lost, usual_interval,
)
from motioncue.frames.evidence cimport (
    Step, Sums, distance, length, length3, step_restart, step_take, sums_add, sums_limit, sums_restart,
)


cdef enum:
    LIVELY = 10                 # changes that show that a source is alive; one that has never moved cannot freeze
    SPIKES = 3                  # frames set aside within about a second; more are a discontinuity


ctypedef struct Seen:           # quantities of a frame that the watch compares
    int64_t time                # arrival [ns]
    double duration             # time since the frame before, as the source reports it [s]; NaN if unknown
    double position[3]          # [m] the source's world axes
    double velocity[3]          # [m/s] the same axes
    double acceleration[3]      # [m/s^2] the same axes, gravity excluded
    double axes[9]              # the car's forward, right and down axes in world axes north, east, down
    double rate[3]              # [rad/s] about those axes
    double speed                # [m/s]
    double felt                 # magnitude of the acceleration at the occupant's head [m/s^2]


ctypedef struct Watch:
    double acceleration         # largest plausible [m/s^2]
    double rate                 # largest plausible [rad/s]
    double frozen_s             # how long a moving car may repeat the same state [s]
    double slack_s              # how unevenly frames may arrive [s]
    double frame_jump_s         # largest change of the frame time [s]
    double velocity_error       # how far acceleration and velocity may disagree [m/s]
    double attitude_error       # how far rates and attitude may disagree [rad]
    bint trusting               # every frame is followed; only jumps are counted
    bint own_acceleration       # the source claims the acceleration; otherwise it is derived from the velocity
    bint stamped                # the source's own time counts lost frames too
    double rates_lag            # delay of rates that are derived from the attitude [s]; 0 if the source claims them

    bint armed                  # there is a frame to compare with
    Seen seen                   # the frame to compare with
    double change[3]            # change of the velocity from the last different frame [m/s]
    double turn[3]              # turn of the attitude from the last different frame [rad]
    double gap                  # between their arrivals [s]
    double dt                   # likely time between them [s]
    double apart                # time between them for derivatives [s]
    bint whole                  # no frame is missing in that time
    double sure                 # how much of that time is sure to have passed [s]; 0: the change says nothing
    double passed               # likely time from the last different frame to its newest repeat [s]
    double repeated             # largest of those of about the last second [s]
    bint ahead                  # the car has moved along its velocity to the frame to compare with
    bint believable             # whether that frame's acceleration and rate are plausible
    int64_t began               # arrival of the first frame [ns]
    int64_t changed             # last change of the state [ns]
    int changes                 # changes in this session, up to LIVELY
    int64_t heard               # arrival of the newest frame, repeats included [ns]
    double still                # how long frames have repeated the same state [s]
    Arrival arrival

    bint aside                  # whether the newest frame is set aside
    int aside_reason            # why it was set aside
    double aside_value
    double aside_limit
    bint hurried                # the source's time runs ahead of the clock
    double spikes               # decaying count of frames that were set aside and did not repeat
    int unsteady                # reason of the newest of those, while there are too many

    Sums motion                 # acceleration and velocity
    Sums turning                # rates and attitude
    int contradicted            # why the claims are not believed
    Step step                   # judges the acceleration
    Step rate_step              # judges the rates

    bint lasts                  # the returned reason lasts: motion is not usable, but has not jumped
    double value                # measured value of the last reason
    double limit                # and the largest one allowed
    int spike                   # reason of a frame or claim that was held back and did not repeat
    double spike_value
    double spike_limit


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline void axes_of(const Motion* m, double* out) noexcept nogil:
    """Fill `out` with the car's forward, right and down axes in world axes north, east, down."""
    cdef Turn roll, pitch, yaw
    turn(&roll, m.roll)
    turn(&pitch, m.pitch)
    turn(&yaw, m.yaw)
    out[0] = pitch.cosine * yaw.cosine
    out[1] = pitch.cosine * yaw.sine
    out[2] = -pitch.sine
    out[3] = roll.sine * pitch.sine * yaw.cosine - roll.cosine * yaw.sine
    out[4] = roll.sine * pitch.sine * yaw.sine + roll.cosine * yaw.cosine
    out[5] = roll.sine * pitch.cosine
    out[6] = roll.cosine * pitch.sine * yaw.cosine + roll.sine * yaw.sine
    out[7] = roll.cosine * pitch.sine * yaw.sine - roll.sine * yaw.cosine
    out[8] = roll.cosine * pitch.cosine


cdef inline double dot(const double* a, const double* b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline double turned(const double* before, const double* now, double* vector) noexcept nogil:
    """Fill `vector` with the turn between two attitudes, in the car's axes; return its angle [rad], up to pi."""
    # The rotation's antisymmetric part is its axis times the sine of the angle; its trace is 1 + 2 times the cosine.
    cdef double cosine = 0.5 * (dot(before, now) + dot(before + 3, now + 3) + dot(before + 6, now + 6) - 1.0)
    cdef double sine, angle
    cdef int i
    vector[0] = 0.5 * (dot(before + 6, now + 3) - dot(before + 3, now + 6))
    vector[1] = 0.5 * (dot(before, now + 6) - dot(before + 6, now))
    vector[2] = 0.5 * (dot(before + 3, now) - dot(before, now + 3))
    sine = length(vector)
    angle = angle_of(sine, cosine)
    if sine > 1e-9:
        for i in range(3):
            vector[i] *= angle / sine
    return angle


cdef inline void watch_restart(Watch* w) noexcept nogil:
    """Forget the frames so far, so that nothing is compared with them."""
    w.armed = w.aside = w.hurried = w.ahead = False
    w.believable = True
    w.contradicted = ACCEPTED
    w.changes = 0
    w.spikes = w.repeated = 0.0
    w.unsteady = ACCEPTED
    arrival_restart(&w.arrival, w.slack_s)


cdef inline int exceeded(Watch* w, int reason, double value, double limit) noexcept nogil:
    """Return `reason` if the value exceeds the limit, else ACCEPTED; a missing value (NaN) never does."""
    if value > limit:
        w.value = value
        w.limit = limit
        return reason
    return ACCEPTED


cdef inline int judge(Watch* w, const Seen* f) noexcept nogil:
    """Return what is implausible about a frame by itself, or ACCEPTED."""
    cdef int reason = exceeded(w, IMPOSSIBLE_ACCELERATION, f.felt, w.acceleration)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_RATE, length(f.rate), w.rate)
    return reason


cdef inline int compare(Watch* w, const Seen* f, double angle, double time) noexcept nogil:
    """Return the first change that a car cannot make in `time` seconds, or ACCEPTED.

    A car may do what the frames claim, plus what they may fail to report: 20 m/s^2, or 30 m/s^2 if frames are missing,
    the mean of a landing of 60 m/s^2; 2 rad/s; and 75 rad/s^2 over the delay of derived rates.  The physics may be
    10 ms older than its packet, as at 60 steps a second.  Allowance for noise: 0.5 m, 0.5 m/s, 1 degree.
    """
    cdef const Seen* b = &w.seen
    cdef double speed = f.speed if f.speed > b.speed else b.speed
    cdef double claimed = larger(length(f.acceleration), length(b.acceleration))
    cdef double missing = larger(time - w.arrival.late - 2.0 * usual_interval(&w.arrival, time), 0.0)
    cdef double gained = 0.5 + claimed * (time + 0.01) + 20.0 * time + 10.0 * missing
    cdef double rate = larger(length(f.rate), length(b.rate)) + 2.0 + 75.0 * w.rates_lag
    cdef double late = time + w.slack_s
    cdef int reason = exceeded(w, TELEPORT, distance(f.position, b.position), 0.5 + speed * late + 10.0 * time * time)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_ACCELERATION, distance(f.velocity, b.velocity), gained)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_RATE, angle, 0.02 + rate * time)
    if reason == ACCEPTED:
        reason = judge(w, f)
    return reason


cdef inline double heard(Watch* w, const Seen* f, bint repeats) noexcept nogil:
    """Account for the arrival of a frame; return the likely time since the one before it [s].

    A frame that `repeats` the one before with the same time stamp is the same frame again: no time has passed.
    """
    cdef double gap = (f.time - w.heard) * 1e-9
    cdef double said = f.duration if f.duration > 0.0 or (repeats and w.stamped) else NAN
    cdef double dt = likely(&w.arrival, gap, said)
    if f.time == w.began:       # the clock stands still, so arrivals say nothing
        return gap if said != said else said
    arrive(&w.arrival, gap, said)
    return dt


cdef inline int watch_repeat(Watch* w, const Seen* f) noexcept nogil:
    """Take a frame that repeats the one before; return FROZEN or PAUSED if a moving car has repeated it for too long.

    Silence is not repetition: each frame counts at most for the time that frames may come apart, so a datagram that
    comes twice is never a pause.
    """
    cdef double gap = (f.time - w.heard) * 1e-9
    cdef bint paused = f.duration <= 0.0    # the simulator itself reports a pause, so less evidence is needed
    cdef double limit = w.slack_s if paused else w.frozen_s
    w.passed += heard(w, f, True)
    w.heard = f.time
    if not f.speed > 1.0:                   # a parked car may repeat itself
        w.changed = f.time
        w.passed = w.still = 0.0
        return ACCEPTED
    w.still += gap if gap < w.slack_s else w.slack_s
    if w.still <= limit or w.changes < LIVELY or w.trusting:
        return ACCEPTED
    w.lasts = True
    w.value, w.limit = w.still, limit
    return PAUSED if paused else FROZEN


cdef inline int put_aside(Watch* w, int reason) noexcept nogil:
    """Set the newest frame aside until the next one shows what it was."""
    w.aside = True
    w.aside_reason, w.aside_value, w.aside_limit = reason, w.value, w.limit
    return ACCEPTED


cdef inline void spiked(Watch* w, int reason, double value, double limit) noexcept nogil:
    """Record something that was held back and did not repeat."""
    w.spike = reason
    w.spike_value = value
    w.spike_limit = limit


cdef inline void taken_back(Watch* w) noexcept nogil:
    """Count a frame that was set aside and did not repeat; too many of them are a discontinuity."""
    w.aside = False
    spiked(w, w.aside_reason, w.aside_value, w.aside_limit)
    w.spikes += 1.0
    if w.spikes > SPIKES:
        w.unsteady = w.aside_reason


cdef inline double along(const Seen* before, const Seen* now, const double* velocity) noexcept nogil:
    """Return how far the car has moved along a velocity [m]; NaN without both, 0 if it hardly moves."""
    cdef double moved = 0.0
    cdef double size = length(velocity)
    cdef int i
    if size < 1.0:
        return 0.0
    for i in range(3):
        moved += (now.position[i] - before.position[i]) * velocity[i]
    return moved / size


cdef inline bint overtaken(const Watch* w, const Seen* f) noexcept nogil:
    """Say whether a frame is older than the newest: the car would go back by half a usual interval's way or more.

    Against the velocities of both frames, because a car that turns round goes along one of them; and only if it has
    moved along its velocity until then, as it does not if the source's axes are misread.
    """
    cdef double least = 0.5 * length(w.seen.velocity) * usual_interval(&w.arrival, w.slack_s)
    return (
        w.ahead and along(&w.seen, f, w.seen.velocity) < -least and along(&w.seen, f, f.velocity) < -least
    )


cdef inline void take(Watch* w, const Seen* f) noexcept nogil:
    """Keep a frame to compare the next one with."""
    cdef int i
    for i in range(3):
        w.change[i] = f.velocity[i] - w.seen.velocity[i]
    if not w.armed:
        w.began = f.time
    w.changes += w.armed and w.changes < LIVELY
    w.passed = w.still = 0.0
    w.ahead = w.armed and along(&w.seen, f, w.seen.velocity) > 0.25 * length(w.seen.velocity) * w.dt
    w.armed = True
    w.changed = w.heard = f.time
    w.seen = f[0]
    w.believable = f.felt <= w.acceleration and length(f.rate) <= w.rate


cdef inline void time_between(Watch* w, const Seen* f) noexcept nogil:
    """Compute the time since the last different frame.

    Where only arrivals tell it, a frame after one that was held up may be of long after it, unless it was in the same
    bunch; and a change that no car makes in this time took longer.  From these nothing is derived.
    """
    cdef double behind = w.arrival.behind
    cdef double angle = length(w.turn)
    cdef double change = distance(f.velocity, w.seen.velocity)
    w.whole = not w.aside and no_frame_lost(&w.arrival, (f.time - w.heard) * 1e-9, f.duration)
    w.gap = (f.time - w.changed) * 1e-9
    w.repeated = larger(w.passed, w.repeated / (1.0 + w.gap))
    w.dt = w.passed + heard(w, f, False)
    # Derivatives use the gap if no duration is reported; but bunched frames were not taken at once.
    w.apart = w.gap if w.gap > 0.25 * w.dt and not f.duration > 0.0 else w.dt
    # After three frames' time, frames may be lost, or this one may be the first of a bunch.
    w.sure = w.apart if w.apart < 3.0 * w.dt else w.dt
    if f.duration != f.duration and behind > 0.25 and 2.0 * w.gap > w.dt:
        w.sure = 0.0
    elif angle > w.rate * w.apart or change > w.acceleration * w.apart:
        w.sure = 0.0


cdef inline int fitting(Watch* w, const Seen* f) noexcept nogil:
    """Return why a frame does not continue the drive, or ACCEPTED; set it aside if only the next one can tell.

    If the source's time runs ahead of the clock or backwards, that is a jump once; from then on arrivals bound it.
    """
    cdef double most = longest(&w.arrival, (f.time - w.changed) * 1e-9)
    cdef bint second = w.aside or w.trusting
    cdef double ahead
    cdef bint hurries
    cdef int reason
    if f.time == w.began:       # the clock stands still, so arrivals say nothing
        most += larger(f.duration, 0.0) + w.passed
    ahead = larger(w.passed + f.duration - most, -f.duration)
    hurries = ahead > w.slack_s
    reason = compare(w, f, turned(w.seen.axes, f.axes, w.turn), most)
    if reason == ACCEPTED and hurries and not w.hurried:
        if not second or ahead > w.frame_jump_s:
            reason = exceeded(w, FRAME_TIME_JUMP, ahead, w.slack_s if ahead <= w.frame_jump_s else w.frame_jump_s)
    if reason != ACCEPTED and not second and w.believable:
        return put_aside(w, reason)
    if w.aside and reason != ACCEPTED:
        reason, w.value, w.limit = w.aside_reason, w.aside_value, w.aside_limit
    elif w.aside and not (hurries and w.aside_reason == FRAME_TIME_JUMP):
        taken_back(w)
    w.hurried = hurries
    time_between(w, f)
    w.aside = False
    w.spikes /= 1.0 + w.gap
    if w.spikes < 1.0:
        w.unsteady = ACCEPTED
    return reason


cdef inline int watch_step(Watch* w, const Seen* f, bint repeats) noexcept nogil:
    """Compare a frame with the one before, which it `repeats` or not, and keep it unless it is set aside.

    Returns ACCEPTED if it continues the drive or is set aside; else the discontinuity, or a reason that `lasts`, such
    as FROZEN or PAUSED after too many repeats of a moving car.  `value` and `limit` then hold the measured value and
    its limit.
    """
    cdef int reason = ACCEPTED
    cdef bint believable = w.believable
    w.lasts = False
    w.spike = ACCEPTED
    if repeats:
        if w.aside:
            taken_back(w)       # the drive continues where it was
        reason = watch_repeat(w, f)
    elif w.armed:
        reason = fitting(w, f)
        if not w.aside:
            take(w, f)
            w.lasts = not believable and not w.believable and reason != ACCEPTED
    else:
        reason = judge(w, f)
        if reason != ACCEPTED and not (w.aside or w.trusting):
            return put_aside(w, reason)
        if w.aside and reason == ACCEPTED:
            taken_back(w)
        w.aside = False
        take(w, f)
    if reason == ACCEPTED and w.unsteady != ACCEPTED:
        w.lasts = True
        w.value, w.limit = w.aside_value, w.aside_limit
        return w.unsteady
    return reason


cdef inline int disagreeing(Watch* w, int reason, const Sums* s, double noise) noexcept nogil:
    """Return `reason` if claims and what is shown disagree; after that, until they agree to half the limit."""
    cdef double limit = sums_limit(s, noise)
    if w.contradicted == reason:
        limit *= 0.5
    return exceeded(w, reason, distance(s.shown, s.claimed), limit)


cdef inline int held_for_long(Watch* w, int reason, const Step* s) noexcept nogil:
    """Return `reason` if a claim has been held back for more than a quarter of a second, else ACCEPTED."""
    return exceeded(w, reason, s.value, s.limit) if s.waited > 0.25 else ACCEPTED


cdef inline void watch_jump(Watch* w) noexcept nogil:
    """Restart the comparison of claims, because the motion since the frames before is unknown."""
    sums_restart(&w.motion)
    sums_restart(&w.turning)
    step_restart(&w.step, w.seen.acceleration)
    step_restart(&w.rate_step, w.seen.rate)
    w.contradicted = ACCEPTED


cdef inline void watch_claims(Watch* w) noexcept nogil:
    """Compare the claims of the newest frame, which continues the drive; `contradicted` is set if they disagree.

    `step.held` and `rate_step.held` say which claims are not to be followed.  Derived quantities are no evidence for
    themselves.  Acceleration and velocity may be those of points a meter apart.
    """
    cdef bint known = isfinite(w.change[0] + w.change[1] + w.change[2])
    # A state that repeats is older than its frame, so between two states more or less time has passed; and so where
    # only arrivals tell it.
    cdef double unclear = w.repeated
    cdef bint clear = w.whole and not many_lost(&w.arrival, w.gap)
    cdef double doubt = 0.0 if w.stamped or w.seen.time == w.began else w.gap - w.dt
    cdef int reason = ACCEPTED
    # Where only arrivals say what time has passed, a frame that was held up may be followed by one of long after it.
    cdef bint unknown = w.seen.duration != w.seen.duration and w.arrival.late > 0.25
    if w.trusting or w.dt > 0.15 or doubt > 0.1 or unknown:
        watch_jump(w)
        return
    if w.seen.duration != w.seen.duration:
        unclear = larger(unclear, larger(0.25 * w.dt, fabs(doubt)))
    if unclear > 0.75 * w.dt:
        unclear = 0.75 * w.dt
    if known:
        sums_add(&w.motion, w.change, w.step.newest, w.seen.acceleration, w.dt, doubt, 0.0 if w.whole else w.acceleration)
    sums_add(&w.turning, w.turn, w.rate_step.newest, w.seen.rate, w.dt, doubt, 0.0 if w.whole else w.rate)
    if step_take(&w.step, w.seen.acceleration, w.change, w.dt, unclear, clear, known and w.own_acceleration):
        spiked(w, ACCELERATION_CONTRADICTED, w.step.value, w.step.limit)
    if step_take(&w.rate_step, w.seen.rate, w.turn, w.dt, unclear, clear, w.rates_lag == 0.0):
        spiked(w, RATE_CONTRADICTED, w.rate_step.value, w.rate_step.limit)
    reason = held_for_long(w, ACCELERATION_CONTRADICTED, &w.step)
    if reason == ACCEPTED:
        reason = held_for_long(w, RATE_CONTRADICTED, &w.rate_step)
    if reason == ACCEPTED and w.rates_lag == 0.0:
        reason = disagreeing(w, RATE_CONTRADICTED, &w.turning, w.attitude_error)
    if reason == ACCEPTED and w.own_acceleration:
        reason = disagreeing(w, ACCELERATION_CONTRADICTED, &w.motion, w.velocity_error + w.turning.peak)
    w.contradicted = reason
