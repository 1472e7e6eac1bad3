"""Is this frame the continuation of the last one?  Physics says: what a car can do between two frames is bounded.

Everything is compared with what the frames themselves say (speed, acceleration, rates) over the longest time that can
have passed, so that lost, late and bunched frames of an honest drive never count.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from motioncue.kernels.reasons cimport (
    ACCEPTED, FRAME_TIME_JUMP, FROZEN, IMPOSSIBLE_ACCELERATION, IMPOSSIBLE_RATE, PAUSED, TELEPORT,
)
from motioncue.kernels.records cimport Motion, Telemetry
from motioncue.kernels.rotation cimport Turn, turn


cdef enum:
    LIVELY = 10                 # changes that show a source to be alive; one that never moved cannot freeze


ctypedef struct Watch:
    double acceleration         # largest believable [m/s^2]
    double rate                 # largest believable [rad/s]
    double frozen_s             # how long a moving car may repeat the same state [s]
    double slack_s              # how much later than stamped a frame can have been taken [s]
    double frame_jump_s         # largest change of the frame time [s]
    bint armed                  # there is a frame to compare with
    int64_t changed             # when the state last changed [ns]
    int changes                 # in this session, up to LIVELY
    bint believable             # that frame by itself: its acceleration and rate
    Telemetry telemetry         # of that frame
    Motion motion
    double axes[6]              # its forward and right axis in the world's axes
    double value                # what the last discontinuity measured,
    double limit                # and what was allowed


cdef inline double distance(const double* a, const double* b) noexcept nogil:
    cdef double x = a[0] - b[0]
    cdef double y = a[1] - b[1]
    cdef double z = a[2] - b[2]
    return sqrt(x * x + y * y + z * z)


cdef inline double length3(double x, double y, double z) noexcept nogil:
    return sqrt(x * x + y * y + z * z)


cdef inline double turned(const double* a, const double* b) noexcept nogil:
    """Return how far the forward and the right axis have turned, the larger chord [about rad]."""
    cdef double forward = distance(a, b)
    cdef double right = distance(a + 3, b + 3)
    return forward if forward > right else right


cdef inline void axes_of(const Motion* m, double* out) noexcept nogil:
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


cdef inline int exceeded(Watch* w, int reason, double value, double limit) noexcept nogil:
    """Return `reason` if the value is beyond the limit; a value the source does not have (NaN) never is."""
    if value > limit:
        w.value = value
        w.limit = limit
        return reason
    return ACCEPTED


cdef inline int judge(Watch* w, const Motion* m) noexcept nogil:
    """Return what of a frame by itself no car does, or ACCEPTED."""
    cdef int reason
    reason = exceeded(w, IMPOSSIBLE_ACCELERATION, length3(m.surge, m.sway, m.heave), w.acceleration)
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_RATE, length3(m.roll_rate, m.pitch_rate, m.yaw_rate), w.rate)
    return reason


cdef inline int compare(Watch* w, const Telemetry* t, const Motion* m, const double* axes, double dt) noexcept nogil:
    """Return the first thing that a car cannot do in `dt` seconds, or ACCEPTED.

    What the frames report may have lasted for `dt` and the slack; what they do not report, for `dt` alone: 20 m/s^2 and
    2 rad/s in between.  Noise: half a metre, half a metre a second, 1 degree.
    """
    cdef double late = dt + w.slack_s
    cdef double speed = m.speed if m.speed > w.motion.speed else w.motion.speed
    cdef double a = length3(m.surge, m.sway, m.heave)
    cdef double a_sum = a + length3(w.motion.surge, w.motion.sway, w.motion.heave)
    cdef double rate = length3(m.roll_rate, m.pitch_rate, m.yaw_rate)
    cdef double rate_sum = rate + length3(w.motion.roll_rate, w.motion.pitch_rate, w.motion.yaw_rate)
    cdef int reason
    reason = exceeded(
        w, TELEPORT, distance(t.position, w.telemetry.position), 0.5 + speed * late + 10.0 * dt * dt
    )
    if reason == ACCEPTED:
        reason = exceeded(
            w, IMPOSSIBLE_ACCELERATION, distance(t.velocity, w.telemetry.velocity), 0.5 + a_sum * late + 20.0 * dt
        )
    if reason == ACCEPTED:
        reason = exceeded(w, IMPOSSIBLE_RATE, turned(axes, w.axes), 0.02 + rate_sum * late + 2.0 * dt)
    if reason == ACCEPTED:
        reason = judge(w, m)
    if reason == ACCEPTED:
        reason = exceeded(
            w, FRAME_TIME_JUMP, fabs(t.frame_duration - w.telemetry.frame_duration), w.frame_jump_s
        )
    return reason


cdef inline int watch_step(Watch* w, const Telemetry* t, const Motion* m, bint repeats) noexcept nogil:
    """Compare a frame with the one before, which it `repeats` or not, and keep it.

    Returns ACCEPTED if it continues the drive; FROZEN or PAUSED if a moving car has repeated itself for too long; else the
    discontinuity, whose measure and limit are then in `value` and `limit`.
    """
    cdef double dt = (m.time - w.changed) * 1e-9
    cdef double axes[6]
    cdef double limit
    cdef bint paused
    cdef int reason
    if w.armed and repeats:
        if not m.speed > 1.0:               # parked: nothing changes, and nothing is wrong
            w.changed = m.time
            return ACCEPTED
        paused = t.frame_duration <= 0.0    # the simulator says so itself: no need to wait for more evidence
        limit = w.slack_s if paused else w.frozen_s
        if dt <= limit or w.changes < LIVELY:
            return ACCEPTED
        w.value, w.limit = dt, limit
        return PAUSED if paused else FROZEN
    axes_of(m, axes)
    if w.armed:
        w.changes += w.changes < LIVELY
        reason = compare(w, t, m, axes, t.frame_duration if t.frame_duration > dt else dt)
    else:
        reason = judge(w, m)
    w.believable = (
        length3(m.surge, m.sway, m.heave) <= w.acceleration
        and length3(m.roll_rate, m.pitch_rate, m.yaw_rate) <= w.rate
    )
    w.armed = True
    w.changed = m.time
    w.telemetry = t[0]
    w.motion = m[0]
    memcpy(w.axes, axes, sizeof(axes))
    return reason
