"""Plausibility of the motion from frame to frame: between two frames a car can only do so much.

What a frame shows (position, velocity, attitude) may change by what the frames claim (speed, acceleration, rates) over
the longest time that can have passed, so that lost, late and bunched frames of an honest drive are never refused.  A
single frame that does not fit is set aside, as if it had been lost: if the next one fits, it was a spike; if not, the
drive has jumped.  The claims are believed as far as they agree with what is shown.

A source claims an acceleration and shows a velocity, claims angular rates and shows an attitude.  `Sums` accumulates
both over about the last second, with decaying weights: the two sums agree, apart from noise, a wrong scale or tilt, and
the delay between the two.  The sums are vectors with signs, so frames that come early or late cancel out.  `StepTest`
judges a single frame: a claim that jumps is followed only if the change of what is shown supports it, and is a spike
only if the next change does not support it either.  A fast vibration can hide from one of the two, between the frames.
"""

from libc.math cimport NAN, fabs, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from motioncue.core.threads cimport (
    ACCELERATION_CONTRADICTED, ACCEPTED, FRAME_TIME_JUMP, FROZEN, IMPOSSIBLE_ACCELERATION, IMPOSSIBLE_RATE, PAUSED,
    RATE_CONTRADICTED, TELEPORT,
)
from motioncue.core.rotation cimport angle_of, arc_sine
from motioncue.frames.arrival_clock cimport (
    Arrival, arrival_restart, arrive, likely, longest, many_lost, no_frame_lost, usual_interval,
)
from motioncue.frames.convert cimport dot


ctypedef struct Sums:
    double shown[3]             # change of velocity [m/s], or turning of the attitude [rad]
    double claimed[3]           # integral of the acceleration [m/s], or of the rates [rad]
    double doubt[3]             # the claims' integral over time that may or may not have passed
    double coarse               # bound on the integral's error between frames
    double peak                 # largest acceleration [m/s^2] or rate [rad/s]


ctypedef struct StepTest:       # for the acceleration [m/s^2] or the rates [rad/s]
    double limit                # largest step between frames that needs no evidence
    double followed[3]          # the newest followed value
    double newest[3]
    bint held                   # the newest value is not followed
    bint unclear                # frames were lost right before it
    double waited               # for how long it has not been followed [s]
    double value                # the largest step held back


cdef inline double length3(double x, double y, double z) noexcept nogil:
    return sqrt(x * x + y * y + z * z)


cdef inline double length(const double* a) noexcept nogil:
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


cdef inline double distance(const double* a, const double* b) noexcept nogil:
    return length3(a[0] - b[0], a[1] - b[1], a[2] - b[2])


cdef inline bint within(const double* a, const double* b, double limit) noexcept nogil:
    """Say whether the distance is at most the limit, from 0 on: False for what is not a number, and no root."""
    cdef double x = a[0] - b[0]
    cdef double y = a[1] - b[1]
    cdef double z = a[2] - b[2]
    return x * x + y * y + z * z <= limit * limit


cdef inline void sums_restart(Sums* s) noexcept nogil:
    memset(s, 0, sizeof(Sums))


cdef inline void sums_add(
    Sums* s, const double* change, const double* before, const double* now, double size, double dt, double doubt,
    double hidden
) noexcept nogil:
    """Add a change of what is shown, and the integral of claims, now of that `size`, over `dt` [s], give or take `doubt`.

    If frames were lost in between, nobody knows what these claimed: neither is added if claims of up to `hidden` more
    explain the change.  It is 0 if none was lost.
    """
    cdef double kept = 1.0 / (1.0 + dt)         # time constant 1 s
    cdef double[3] mean
    cdef double[3] integral
    cdef int i
    for i in range(3):
        mean[i] = 0.5 * (before[i] + now[i])
        integral[i] = mean[i] * dt      # trapezoidal rule
        s.shown[i] *= kept
        s.claimed[i] *= kept
        s.doubt[i] = kept * s.doubt[i] + mean[i] * doubt
    s.coarse *= kept
    if hidden == 0.0 or distance(change, integral) >= hidden * dt:
        for i in range(3):
            s.shown[i] += change[i]
            s.claimed[i] += integral[i]
        s.coarse += 0.5 * distance(now, before) * dt
    s.peak *= kept
    if s.peak < size:
        s.peak = size


cdef inline double sums_limit(const Sums* s, double noise) noexcept nogil:
    """Return the allowed difference of the sums: `noise`, in their unit, plus what honest sources may differ by.

    That is 35 % of the larger sum, for a wrong scale or tilt; 40 ms of the peak, for a filter's delay; the integral in
    doubt; and half of the claim's changes between frames, which bounds the error of the trapezoidal rule for a
    monotonic claim.
    """
    cdef double shown = length(s.shown)
    cdef double claimed = length(s.claimed)
    return noise + 0.35 * (shown if shown > claimed else claimed) + 0.04 * s.peak + length(s.doubt) + s.coarse


cdef inline void step_restart(StepTest* s, const double* now) noexcept nogil:
    """Follow `now` unconditionally."""
    cdef int i
    for i in range(3):
        s.followed[i] = s.newest[i] = now[i]
    s.held = False
    s.waited = 0.0
    s.value = 0.0


cdef inline bint supports(
    const double* change, const double* before, const double* now, double dt, double doubt
) noexcept nogil:
    """Say whether `change`, of what is shown in `dt` [s], give or take `doubt`, supports a step of the claim.

    It is at least a quarter of the step's integral: a step in the middle between two frames gives half.
    """
    cdef double shown = 0.0
    cdef double least = 0.0         # what must be shown in a second
    cdef double step
    cdef int i
    for i in range(3):
        step = now[i] - before[i]
        shown += change[i] * step
        least += (before[i] + 0.25 * step) * step
    return shown >= least * dt - fabs(least) * doubt


cdef inline bint test_step(
    StepTest* s, const double* now, const double* change, double dt, double doubt, bint whole, bint evident
) noexcept nogil:
    """Test whether to follow `now`; return whether a claim that was held back has proved to be a spike.

    A step beyond the limit is followed if `change` supports it.  If nothing independent is shown (not `evident`), it is
    followed when the next frame repeats it.  A claim that is withdrawn is a spike if the change after it contradicts it
    too, and no frame is lost on either side (`whole`).  `value` is then the largest step held back.
    """
    if not s.held and within(now, s.followed, s.limit):     # as nearly always; what follows would do the same
        step_restart(s, now)
        return False
    cdef double size = distance(now, s.followed)
    cdef bint repeated = distance(now, s.newest) <= s.limit
    cdef bint withdrawn = s.held and size <= s.limit
    cdef bint clear = whole and not s.unclear
    cdef bint spike = withdrawn and clear and evident and not supports(change, now, s.newest, dt, doubt)
    cdef int i
    for i in range(3):
        s.newest[i] = now[i]
    if size > s.limit and not (supports(change, s.followed, now, dt, doubt) if evident else repeated):
        s.held = True
        s.unclear = not whole
        s.waited += dt
        s.value = s.value if s.value > size else size
        return False
    for i in range(3):
        s.followed[i] = now[i]
    s.held = False
    s.waited = 0.0
    if not spike:
        s.value = 0.0
    return spike


cdef enum:
    MIN_CHANGES = 10                 # changes that show that a source is alive; one that has never moved cannot freeze
    MAX_SPIKES = 3                  # frames set aside within about a second; more are a discontinuity


ctypedef struct Observation:    # quantities of a frame that the watch compares
    int64_t time                # arrival [ns]
    double duration             # time since the frame before, as the source reports it [s]; NaN if unknown
    double position[3]          # [m] the source's world axes
    double velocity[3]          # [m/s] the same axes
    double acceleration[3]      # [m/s^2] the same axes, gravity excluded
    double axes[3][3]           # the car's axes forward, right and down in world axes north, east, down
    double rate[3]              # [rad/s] about those axes
    double pull                 # magnitude of the acceleration [m/s^2]
    double spin                 # magnitude of the rate [rad/s]
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
    Observation reference       # the frame to compare with
    double change[3]            # change of the velocity from the last different frame [m/s]
    double turn[3]              # turn of the attitude from the last different frame [rad]
    double gap                  # between their arrivals [s]
    double dt                   # likely time between them [s]
    double interval             # time between them for derivatives [s]
    bint no_loss                # no frame is missing in that time
    double certain              # how much of that time is sure to have passed [s]; 0: the change says nothing
    double passed               # likely time from the last different frame to its newest repeat [s]
    double repeated             # largest of those of about the last second [s]
    bint moves_along            # the car has moved along its velocity to the frame to compare with
    bint plausible              # whether that frame's acceleration and rate are plausible
    int64_t began               # arrival of the first frame [ns]
    int64_t changed             # last change of the state [ns]
    int changes                 # changes in this session, up to MIN_CHANGES
    int64_t last_arrival        # arrival of the newest frame, repeats included [ns]
    double still                # how long frames have repeated the same state [s]
    Arrival arrival

    bint quarantined            # the newest frame is set aside until the next one shows what it was
    int quarantine_reason            # why it was set aside
    double quarantine_value
    double quarantine_limit
    bint ahead_of_clock         # the source's time runs ahead of the clock
    double spikes               # decaying count of frames that were set aside and did not repeat
    int spikes_reason           # reason of the newest of those, while there are too many; else ACCEPTED

    Sums motion                 # acceleration and velocity
    Sums turning                # rates and attitude
    int contradicted            # why the claims are not believed
    StepTest step               # judges the acceleration
    StepTest rate_step          # judges the rates

    bint lasting                # the returned reason lasts: motion is not usable, but has not jumped
    double value                # measured value of the last reason
    double limit                # and the largest one allowed
    int spike                   # reason of a frame or claim that was held back and did not repeat
    double spike_value
    double spike_limit


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double attitude_change(const double (*before)[3], const double (*now)[3], double* vector) noexcept nogil:
    """Fill `vector` with the turn between two attitudes, in the car's axes; return its angle [rad], up to pi."""
    # The rotation's antisymmetric part is its axis times the sine of the angle; its trace is 1 + 2 times the cosine.
    cdef double cosine = 0.5 * (dot(before[0], now[0]) + dot(before[1], now[1]) + dot(before[2], now[2]) - 1.0)
    cdef double sine, angle
    cdef int i
    vector[0] = 0.5 * (dot(before[2], now[1]) - dot(before[1], now[2]))
    vector[1] = 0.5 * (dot(before[0], now[2]) - dot(before[2], now[0]))
    vector[2] = 0.5 * (dot(before[1], now[0]) - dot(before[0], now[1]))
    sine = length(vector)
    # Between two frames a car turns little: an arc sine is quicker, and as exact up to half a radian.
    angle = arc_sine(sine) if cosine > 0.9 else angle_of(sine, cosine)
    if sine > 1e-9:
        for i in range(3):
            vector[i] *= angle / sine
    return angle


cdef inline void watch_restart(Watch* w) noexcept nogil:
    """Forget the frames so far, so that nothing is compared with them."""
    w.armed = w.quarantined = w.ahead_of_clock = False
    w.contradicted = ACCEPTED
    w.changes = 0
    w.spikes = w.repeated = 0.0
    w.spikes_reason = ACCEPTED
    arrival_restart(&w.arrival, w.slack_s)


cdef inline int exceeded(Watch* w, int reason, double value, double limit) noexcept nogil:
    """Return `reason` if the value exceeds the limit, else ACCEPTED; a missing value (NaN) never does."""
    if value > limit:
        w.value = value
        w.limit = limit
        return reason
    return ACCEPTED


cdef inline int check_frame(Watch* w, const Observation* f) noexcept nogil:
    """Check a frame by itself; return what is implausible about it, or ACCEPTED."""
    cdef int reason = exceeded(w, IMPOSSIBLE_ACCELERATION, f.felt, w.acceleration)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_RATE, f.spin, w.rate)
    return reason


cdef inline int check_change(Watch* w, const Observation* f, double angle, double time) noexcept nogil:
    """Check what has changed; return the first change that a car cannot make in `time` seconds, or ACCEPTED.

    A car may do what the frames claim, plus what they may fail to report: 20 m/s^2, or 30 m/s^2 if frames are missing,
    the mean of a landing of 60 m/s^2; 2 rad/s; and 75 rad/s^2 over the delay of derived rates.  The physics may be
    10 ms older than its packet, as at 60 steps a second.  Allowance for noise: 0.5 m, 0.5 m/s, 1 degree.
    """
    cdef const Observation* b = &w.reference
    cdef double speed = f.speed if f.speed > b.speed else b.speed
    cdef double claimed = larger(f.pull, b.pull)
    cdef double missing = larger(time - w.arrival.late - 2.0 * usual_interval(&w.arrival, time), 0.0)
    cdef double gained = 0.5 + claimed * (time + 0.01) + 20.0 * time + 10.0 * missing
    cdef double rate = larger(f.spin, b.spin) + 2.0 + 75.0 * w.rates_lag
    cdef double late = time + w.slack_s
    cdef int reason = exceeded(w, TELEPORT, distance(f.position, b.position), 0.5 + speed * late + 10.0 * time * time)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_ACCELERATION, distance(f.velocity, b.velocity), gained)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_RATE, angle, 0.02 + rate * time)
    if reason == ACCEPTED:
        reason = check_frame(w, f)
    return reason


cdef inline double account_arrival(Watch* w, const Observation* f, bint repeats) noexcept nogil:
    """Account for the arrival of a frame; return the likely time since the one before it [s].

    A frame that `repeats` the one before with the same time stamp is the same frame again: no time has passed.
    """
    cdef double gap = (f.time - w.last_arrival) * 1e-9
    cdef double said = f.duration if f.duration > 0.0 or (repeats and w.stamped) else NAN
    cdef double dt = likely(&w.arrival, gap, said)
    if f.time == w.began:       # the clock stands still, so arrivals say nothing
        return gap if said != said else said
    arrive(&w.arrival, gap, said)
    return dt


cdef inline int check_repeat(Watch* w, const Observation* f) noexcept nogil:
    """Check a frame that repeats the one before; return FROZEN or PAUSED if a moving car has repeated it for too long.

    Silence is not repetition: each frame counts at most for the time that frames may come apart, so a datagram that
    comes twice is never a pause.
    """
    cdef double gap = (f.time - w.last_arrival) * 1e-9
    cdef bint paused = f.duration <= 0.0    # the simulator itself reports a pause, so less evidence is needed
    cdef double limit = w.slack_s if paused else w.frozen_s
    w.passed += account_arrival(w, f, True)
    w.last_arrival = f.time
    if not f.speed > 1.0:                   # a parked car may repeat itself
        w.changed = f.time
        w.passed = w.still = 0.0
        return ACCEPTED
    w.still += gap if gap < w.slack_s else w.slack_s
    if w.still <= limit or w.changes < MIN_CHANGES or w.trusting:
        return ACCEPTED
    w.lasting = True
    w.value, w.limit = w.still, limit
    return PAUSED if paused else FROZEN


cdef inline int quarantine(Watch* w, int reason) noexcept nogil:
    """Quarantine the newest frame until the next one shows what it was."""
    w.quarantined = True
    w.quarantine_reason, w.quarantine_value, w.quarantine_limit = reason, w.value, w.limit
    return ACCEPTED


cdef inline void log_spike(Watch* w, int reason, double value, double limit) noexcept nogil:
    """Log something that was held back and did not repeat."""
    w.spike = reason
    w.spike_value = value
    w.spike_limit = limit


cdef inline void count_spike(Watch* w) noexcept nogil:
    """Count a frame that was set aside and did not repeat; too many of them are a discontinuity."""
    w.quarantined = False
    log_spike(w, w.quarantine_reason, w.quarantine_value, w.quarantine_limit)
    w.spikes += 1.0
    if w.spikes > MAX_SPIKES:
        w.spikes_reason = w.quarantine_reason


cdef inline double distance_along(
    const Observation* before, const Observation* now, const Observation* along
) noexcept nogil:
    """Return how far the car has moved along the velocity of a frame [m]; NaN without both, 0 if it hardly moves."""
    cdef double moved = 0.0
    cdef int i
    if along.speed < 1.0:
        return 0.0
    for i in range(3):
        moved += (now.position[i] - before.position[i]) * along.velocity[i]
    return moved / along.speed


cdef inline bint is_overtaken(const Watch* w, const Observation* f) noexcept nogil:
    """Say whether a frame is older than the newest: the car would go back by half a usual interval's way or more.

    Against the velocities of both frames, because a car that turns round goes along one of them; and only if it has
    moved along its velocity until then, as it does not if the source's axes are misread.
    """
    cdef double least = 0.5 * w.reference.speed * usual_interval(&w.arrival, w.slack_s)
    return (
        w.moves_along
        and distance_along(&w.reference, f, &w.reference) < -least
        and distance_along(&w.reference, f, f) < -least
    )


cdef inline void keep_reference(Watch* w, const Observation* f) noexcept nogil:
    """Keep a frame to compare the next one with."""
    cdef int i
    for i in range(3):
        w.change[i] = f.velocity[i] - w.reference.velocity[i]
    if not w.armed:
        w.began = f.time
    w.changes += w.armed and w.changes < MIN_CHANGES
    w.passed = w.still = 0.0
    w.moves_along = w.armed and distance_along(&w.reference, f, &w.reference) > 0.25 * w.reference.speed * w.dt
    w.armed = True
    w.changed = w.last_arrival = f.time
    w.reference = f[0]
    w.plausible = f.felt <= w.acceleration and f.spin <= w.rate


cdef inline void measure_interval(Watch* w, const Observation* f) noexcept nogil:
    """Measure the time since the last different frame.

    Where only arrivals tell it, a frame after one that was held up may be of long after it, unless it was in the same
    bunch; and a change that no car makes in this time took longer.  From these nothing is derived.
    """
    cdef double behind = w.arrival.behind
    cdef double angle = length(w.turn)
    cdef double change = distance(f.velocity, w.reference.velocity)
    w.no_loss = not w.quarantined and no_frame_lost(&w.arrival, (f.time - w.last_arrival) * 1e-9, f.duration)
    w.gap = (f.time - w.changed) * 1e-9
    w.repeated = larger(w.passed, w.repeated / (1.0 + w.gap))
    w.dt = w.passed + account_arrival(w, f, False)
    # Derivatives use the gap if no duration is reported; but bunched frames were not taken at once.
    w.interval = w.gap if w.gap > 0.25 * w.dt and not f.duration > 0.0 else w.dt
    # After three frames' time, frames may be lost, or this one may be the first of a bunch.
    w.certain = w.interval if w.interval < 3.0 * w.dt else w.dt
    if f.duration != f.duration and behind > 0.25 and 2.0 * w.gap > w.dt:
        w.certain = 0.0
    elif angle > w.rate * w.interval or change > w.acceleration * w.interval:
        w.certain = 0.0


cdef inline int check_continuity(Watch* w, const Observation* f) noexcept nogil:
    """Check whether a frame continues the drive; return why not, or ACCEPTED; quarantine it if only the next can tell.

    If the source's time runs ahead of the clock or backwards, that is a jump once; from then on arrivals bound it.
    """
    cdef double most = longest(&w.arrival, (f.time - w.changed) * 1e-9)
    cdef bint second = w.quarantined or w.trusting
    cdef double ahead
    cdef bint hurries
    cdef int reason
    if f.time == w.began:       # the clock stands still, so arrivals say nothing
        most += larger(f.duration, 0.0) + w.passed
    ahead = larger(w.passed + f.duration - most, -f.duration)
    hurries = ahead > w.slack_s
    reason = check_change(w, f, attitude_change(w.reference.axes, f.axes, w.turn), most)
    if reason == ACCEPTED and hurries and not w.ahead_of_clock:
        if not second or ahead > w.frame_jump_s:
            reason = exceeded(w, FRAME_TIME_JUMP, ahead, w.slack_s if ahead <= w.frame_jump_s else w.frame_jump_s)
    if reason != ACCEPTED and not second and w.plausible:
        return quarantine(w, reason)
    if w.quarantined and reason != ACCEPTED:
        reason, w.value, w.limit = w.quarantine_reason, w.quarantine_value, w.quarantine_limit
    elif w.quarantined and not (hurries and w.quarantine_reason == FRAME_TIME_JUMP):
        count_spike(w)
    w.ahead_of_clock = hurries
    measure_interval(w, f)
    w.quarantined = False
    w.spikes /= 1.0 + w.gap
    if w.spikes < 1.0:
        w.spikes_reason = ACCEPTED
    return reason


cdef inline int watch_step(Watch* w, const Observation* f, bint repeats) noexcept nogil:
    """Compare a frame with the one before, which it `repeats` or not, and keep it unless it is set aside.

    Returns ACCEPTED if it continues the drive or is set aside; else the discontinuity, or a reason that is `lasting`,
    such as FROZEN or PAUSED after too many repeats of a moving car.  `value` and `limit` then hold the measured value and
    its limit.
    """
    cdef int reason = ACCEPTED
    cdef bint plausible = w.plausible
    w.lasting = False
    w.spike = ACCEPTED
    if repeats:
        if w.quarantined:
            count_spike(w)       # the drive continues where it was
        reason = check_repeat(w, f)
    elif w.armed:
        reason = check_continuity(w, f)
        if not w.quarantined:
            keep_reference(w, f)
            w.lasting = not plausible and not w.plausible and reason != ACCEPTED
    else:
        reason = check_frame(w, f)
        if reason != ACCEPTED and not (w.quarantined or w.trusting):
            return quarantine(w, reason)
        if w.quarantined and reason == ACCEPTED:
            count_spike(w)
        w.quarantined = False
        keep_reference(w, f)
    if reason == ACCEPTED and w.spikes_reason != ACCEPTED:
        w.lasting = True
        w.value, w.limit = w.quarantine_value, w.quarantine_limit
        return w.spikes_reason
    return reason


cdef inline int check_sums(Watch* w, int reason, const Sums* s, double noise) noexcept nogil:
    """Check the sums; return `reason` if they disagree; after that, until they agree to half the limit."""
    cdef double limit
    # As nearly always: the limit is never below half the noise, as long as what it grows by is positive.
    if within(s.shown, s.claimed, 0.5 * noise) and s.coarse >= 0.0 and s.peak >= 0.0:
        return ACCEPTED
    limit = sums_limit(s, noise)
    if w.contradicted == reason:
        limit *= 0.5
    return exceeded(w, reason, distance(s.shown, s.claimed), limit)


cdef inline int check_held(Watch* w, int reason, const StepTest* s) noexcept nogil:
    """Check a claim; return `reason` if it has been held back for more than a quarter of a second, else ACCEPTED."""
    return exceeded(w, reason, s.value, s.limit) if s.waited > 0.25 else ACCEPTED


cdef inline void restart_claims(Watch* w) noexcept nogil:
    """Restart the comparison of claims, because the motion since the frames before is unknown."""
    sums_restart(&w.motion)
    sums_restart(&w.turning)
    step_restart(&w.step, w.reference.acceleration)
    step_restart(&w.rate_step, w.reference.rate)
    w.contradicted = ACCEPTED


cdef inline void check_claims(Watch* w) noexcept nogil:
    """Check the claims of the newest frame, which continues the drive; `contradicted` is set if they disagree.

    `step.held` and `rate_step.held` say which claims are not to be followed.  Derived quantities are no evidence for
    themselves.  Acceleration and velocity may be those of points a meter apart.
    """
    cdef bint known = isfinite(w.change[0] + w.change[1] + w.change[2])
    # A state that repeats is older than its frame, so between two states more or less time has passed; and so where
    # only arrivals tell it.
    cdef double unclear = w.repeated
    cdef bint clear = w.no_loss and not many_lost(&w.arrival, w.gap)
    cdef double doubt = 0.0 if w.stamped or w.reference.time == w.began else w.gap - w.dt
    cdef int reason = ACCEPTED
    # Where only arrivals say what time has passed, a frame that was held up may be followed by one of long after it; and
    # frames that have come in one bunch so far say nothing.
    cdef bint unknown = w.reference.duration != w.reference.duration and (
        w.arrival.late > 0.25 or w.arrival.seconds < 0.25
    )
    if w.trusting or w.dt > 0.15 or doubt > 0.1 or unknown:
        restart_claims(w)
        return
    if w.reference.duration != w.reference.duration:
        unclear = larger(unclear, larger(0.25 * w.dt, fabs(doubt)))
    if unclear > 0.75 * w.dt:
        unclear = 0.75 * w.dt
    if known:
        sums_add(
            &w.motion, w.change, w.step.newest, w.reference.acceleration, w.reference.pull, w.dt, doubt,
            0.0 if w.no_loss else w.acceleration,
        )
    sums_add(
        &w.turning, w.turn, w.rate_step.newest, w.reference.rate, w.reference.spin, w.dt, doubt,
        0.0 if w.no_loss else w.rate,
    )
    if test_step(&w.step, w.reference.acceleration, w.change, w.dt, unclear, clear, known and w.own_acceleration):
        log_spike(w, ACCELERATION_CONTRADICTED, w.step.value, w.step.limit)
    if test_step(&w.rate_step, w.reference.rate, w.turn, w.dt, unclear, clear, w.rates_lag == 0.0):
        log_spike(w, RATE_CONTRADICTED, w.rate_step.value, w.rate_step.limit)
    reason = check_held(w, ACCELERATION_CONTRADICTED, &w.step)
    if reason == ACCEPTED:
        reason = check_held(w, RATE_CONTRADICTED, &w.rate_step)
    if reason == ACCEPTED and w.rates_lag == 0.0:
        reason = check_sums(w, RATE_CONTRADICTED, &w.turning, w.attitude_error)
    if reason == ACCEPTED and w.own_acceleration:
        reason = check_sums(w, ACCELERATION_CONTRADICTED, &w.motion, w.velocity_error + w.turning.peak)
    w.contradicted = reason
