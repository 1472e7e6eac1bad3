"""What actuators whose positions are not linear in the pose do along a plan, and how a platform stops in reach."""

from libc.math cimport fabs, isfinite
from libc.string cimport memcpy, memset

from motioncue.cueing.predictive.kernel cimport AXES, Group, PredictiveCoeffs, PredictiveState
from motioncue.platforms.kinematics cimport inverse, inverse_held, slopes, straightness

cdef extern from *:
    """
    #define MC_NUDGE 1e-3
    #define MC_FLAT 0.04
    #define MC_BRAKE 0.5
    #define MC_STOP 1.0
    #define MC_FARTHER 1.02
    #define MC_FAR 1.08
    """
    const double NUDGE "MC_NUDGE"       # [s] for speeds and accelerations of actuators
    const double FLAT "MC_FLAT"         # square of the share of its steepness at neutral below which an actuator is flat
    const double BRAKE "MC_BRAKE"       # share of a channel's acceleration that a platform is stopped with
    const double STOP "MC_STOP"         # [rad/s] natural frequency of the way back to neutral in a safe stop
    const double FARTHER "MC_FARTHER"   # by which a pose may be farther from neutral than where the platform stops
    const double FAR "MC_FAR"           # the same from which a plan begins to give way to stopping

cdef enum:
    HALVES = 8                  # of the way between a plan and stopping


ctypedef struct Excess:         # of actuators and angles over what is linear in the pose by these slopes
    double slopes[12][6]        # [m, rad, 1 per m, rad] by surge, sway, heave up, roll, pitch, yaw
    double place[12]            # [m, rad, 1], its derivatives by time
    double speed[12]
    double push[12]


cdef inline bint exceed(
    const PredictiveCoeffs* c, const double* place, const double* speed, const double* push, Excess* more
) noexcept nogil:
    """Fill in by how much the actuators' motion exceeds what is linear in the pose; say whether the pose is in reach."""
    cdef double now[12]
    cdef double before[12]
    cdef double after[12]
    cdef double pose[AXES]
    cdef double square, share
    cdef int i, j
    slopes(&c.geometry, place, now, more.slopes[0])
    if c.angles:
        straightness(&c.geometry, place, now + c.geared, more.slopes[c.geared])
    for i in range(c.geared + c.angles):
        square = 0.0
        for j in range(AXES):
            more.slopes[i][j] *= c.gear[i]
        for j in range(c.geometry.tables):  # near its end a table leaves its channel to the legs, but in time, not at once
            more.slopes[i][c.geometry.table[j].channel] = c.slopes[i][c.geometry.table[j].channel]
        for j in range(AXES):
            square += more.slopes[i][j] * more.slopes[i][j]
        share = 1.0 - square / (FLAT * c.steepness[i])
        if share > 0.0:             # it hardly moves here: the less, the more it is taken as it is at neutral
            for j in range(AXES):
                more.slopes[i][j] += share * c.slopes[i][j]
    for i in range(AXES):
        pose[i] = place[i] - NUDGE * (speed[i] - 0.5 * NUDGE * push[i])
    inverse(&c.geometry, pose, before, NULL)
    for i in range(AXES):
        pose[i] = place[i] + NUDGE * (speed[i] + 0.5 * NUDGE * push[i])
    inverse(&c.geometry, pose, after, NULL)
    for i in range(c.geared, c.geared + c.angles):  # whose places alone are bounded
        before[i] = after[i] = now[i]
    for i in range(c.geared + c.angles):
        more.place[i] = c.gear[i] * (now[i] - c.neutral[i])
        more.speed[i] = c.gear[i] * (after[i] - before[i]) / (2.0 * NUDGE)
        more.push[i] = c.gear[i] * (after[i] - 2.0 * now[i] + before[i]) / (NUDGE * NUDGE)
        for j in range(AXES):
            more.place[i] -= more.slopes[i][j] * place[j]
            more.speed[i] -= more.slopes[i][j] * speed[j]
            more.push[i] -= more.slopes[i][j] * push[j]
        if not isfinite(more.place[i] + more.speed[i] + more.push[i]):
            return False
    return True


cdef inline bint reached(const PredictiveCoeffs* c, const double* place, bint ends, double farther) noexcept nogil:
    """Say whether all actuators reach a pose that is a little farther from neutral; within their `ends` too, if asked."""
    cdef double at[12]
    cdef double pose[AXES]
    cdef int i
    for i in range(AXES):
        pose[i] = farther * place[i]
    inverse_held(&c.geometry, pose, at, NULL)
    for i in range(c.geared):
        if not isfinite(at[i]) or (ends and not c.ends_low[i] <= at[i] <= c.ends_high[i]):
            return False
    return True


cdef inline double brake(const Group* g, double h, const double* speed, double* push) noexcept nogil:
    """Fill in the accelerations by which all channels of a group stop at once; return the time that it takes [s]."""
    cdef double time = 2.0 * h
    cdef int i
    for i in range(g.channels):
        if fabs(speed[g.channel[i]]) > time * BRAKE * g.scale[i]:
            time = fabs(speed[g.channel[i]]) / (BRAKE * g.scale[i])
    for i in range(g.channels):
        push[g.channel[i]] = -speed[g.channel[i]] / time
    return time


cdef inline bint stays(
    const PredictiveCoeffs* c, const Group* g, double h, const PredictiveState* s, const double* target, bint ends,
    double farther,
) noexcept nogil:
    """Say whether the platform stays in reach if it goes to these accelerations until the next plan, then stops."""
    cdef double place[AXES]
    cdef double speed[AXES]
    cdef double push[AXES]
    cdef double next[AXES]
    cdef double time
    cdef int i, k
    memcpy(place, s.place, sizeof(place))
    memcpy(speed, s.speed, sizeof(speed))
    memcpy(push, s.acceleration, sizeof(push))
    memset(next, 0, sizeof(next))
    for i in range(g.channels):
        next[g.channel[i]] = target[i]
    for k in range(2):
        for i in range(AXES):
            place[i] += h * (speed[i] + h * (2.0 * push[i] + next[i]) / 6.0)
            speed[i] += 0.5 * h * (push[i] + next[i])
            push[i] = next[i]
        time = brake(g, h, speed, next)
    for k in range(3):          # now, half way and at the end
        if not reached(c, place, ends, farther):
            return False
        for i in range(AXES):
            place[i] += (0.375 if k == 0 else 0.125) * time * speed[i]
    return True


cdef inline double to_neutral(const Group* g, const PredictiveState* s, int i) noexcept nogil:
    """Return a channel's acceleration on the way back to neutral, critically damped."""
    cdef double target = -STOP * (2.0 * s.speed[g.channel[i]] + STOP * s.place[g.channel[i]])
    return min(g.scale[i], max(-g.scale[i], target))


cdef inline void give_way(
    const Group* g, const PredictiveState* s, const double* wanted, const double* stop, double share, double* target
) noexcept nogil:
    """Fill in accelerations that give way by a share to stopping; at rest that goes inward."""
    cdef int i
    for i in range(g.channels):
        target[i] = wanted[i] + share * (stop[g.channel[i]] - STOP * STOP * s.place[g.channel[i]] - wanted[i])


cdef inline void hold_back(
    const PredictiveCoeffs* c, const Group* g, double h, const PredictiveState* s, double* target, bint ends
) noexcept nogil:
    """Bring accelerations nearer to those that stop the platform, until it can still stop in reach afterwards.

    It begins before it has to, and so without a knock: none of the way while there is room, all of it where there is
    none.  Legs reach any pose, and a plan keeps their ends, but for one of before.  A plan keeps cranks from the line with
    their rods too, but softly; with other actuators or tables beside cranks, this alone does.  Where stopping comes too
    late, what goes inward already goes on.
    """
    cdef double wanted[AXES]
    cdef double stop[AXES]
    cdef double least = FARTHER
    cdef double most = FAR
    cdef double share
    cdef int i, part
    if stays(c, g, h, s, target, ends, FAR):
        return
    memcpy(wanted, target, g.channels * sizeof(double))
    brake(g, h, s.speed, stop)
    give_way(g, s, wanted, stop, 1.0, target)
    if not stays(c, g, h, s, target, ends, FARTHER):
        for i in range(g.channels):
            if s.speed[g.channel[i]] * s.place[g.channel[i]] < 0.0:
                target[i] = to_neutral(g, s, i)
        return
    for part in range(HALVES):
        share = 0.5 * (least + most)
        if stays(c, g, h, s, wanted, ends, share):
            least = share
        else:
            most = share
    least = (FAR - least) / (FAR - FARTHER)
    give_way(g, s, wanted, stop, least, target)
    if stays(c, g, h, s, target, ends, FARTHER):
        return
    most = 1.0
    for part in range(HALVES):
        share = 0.5 * (least + most)
        give_way(g, s, wanted, stop, share, target)
        if stays(c, g, h, s, target, ends, FARTHER):
            most = share
        else:
            least = share
    give_way(g, s, wanted, stop, most, target)
