"""Between frames: the motion of a tick, made of the frames that have come until then.

A simulator sends 30 to 144 frames a second, the platform wants 333 ticks.  In between, every channel follows a line
from its newest frame, and what the output was beside that line when the frame came fades from then on, so that a frame
never makes a step.  The kinds differ in the line:

``hold``: the newest frame as it is, steps and all.
``linear``: the line is level and the difference fades over a whole frame: from each frame to the next in a straight
line, one frame late.
``predict``: the line leads to where the next frame is expected, and is trusted as far as the last frames came out as
expected; where they did not, the difference fades within half a frame.  Attitude turns with the body rates.

When a frame was taken says the timeline (`motioncue.kernels.timeline`).  From one and a half intervals after that a line slows
down; after two and a half it is level.  A frame that is not where the one before led is joined: the output goes on from
where it was, as `motioncue.kernels.join` says.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from motioncue.kernels.forecast cimport Forecast
from motioncue.kernels.join cimport Join
from motioncue.kernels.records cimport MOTION_TIME, ROLL, ROLL_RATE, Motion, Placement, Publication
from motioncue.kernels.rotation cimport to_angles, turn_about
from motioncue.kernels.slot cimport mc_count


cdef enum:
    BRIDGE_HOLD
    BRIDGE_LINEAR
    BRIDGE_PREDICT

cdef enum:
    LINES = MOTION_TIME - 3     # the channels of a motion that are no angles
    RATES = ROLL_RATE - 3   # place of the first body rate among the lines
    ANGLES = ROLL           # place of the first angle among the channels


ctypedef struct Line:           # in the channel's own unit
    double x                # at the newest frame
    double slope            # [1/s] there
    double curve            # [1/s^2]
    double offset           # of the output from the line when the frame came
    double fade             # [1/s] how fast it goes
    double last             # value of all that at the last tick, while the output joins
    Join join               # of the output with it


ctypedef struct Turning:        # of the attitude, in body axes
    double q[4]             # at the newest frame
    double rate[3]          # [rad/s] there
    double slope[3]         # [rad/s^2] of the rate
    double curve[3]         # [rad/s^3]
    double offset[3]        # of the output from that when the frame came [rad]
    double fade             # [1/s]
    double last[4]          # attitude of all that at the last tick, while the output joins
    Join join               # of the output with it: the turn from there to it, body axes [rad]
    Forecast turns[3]       # [rad] of how it turns from frame to frame, whatever the body rates say
    double missed           # [rad^2] squares of where the body rates did not lead


ctypedef struct BridgeState:
    int kind
    double gentle           # [1/s] share of an offset that a fade takes away in that time at most
    Motion motion           # of the last tick
    double q[4]             # its attitude; of `hold` only while it joins
    int64_t tick            # when that was [ns]
    bint moving             # at that tick
    int64_t rested          # the last tick that was moving [ns]
    int frames              # since the restart or a gap, up to 2
    Placement place         # of the newest frame
    int64_t since           # when the output turned to the newest frame [ns]
    double pace             # of a join [1/s]; 0 while the output is on its line
    int wary                # frames to come until a join may be over
    Line lines[LINES]
    Turning turning
    Forecast forecasts[LINES]
    int64_t age             # of what the ticks showed, their sum [ns]
    int64_t ticks           # in that sum


cdef void bridge_restart(BridgeState* b, const Publication* newest) noexcept nogil
cdef void bridge_frame(BridgeState* b, const Publication* newest, int64_t deadline) noexcept nogil
cdef void bridge_join(BridgeState* b, Motion* line, double* q, int64_t deadline) noexcept nogil
cdef void bridge_design(BridgeState* b, int kind, double fade_rate) noexcept nogil
cdef void bridge_change(BridgeState* b, int kind) noexcept nogil
cdef double latency_s(BridgeState* b)


cdef inline int channel_of(int line) noexcept nogil:
    """Return the place of a line among the channels of a motion."""
    return line if line < ANGLES else line + 3


cdef inline double reach(double interval, double t) noexcept nogil:
    """Return how far along its line a frame leads `t` [s] after it was taken: 1.5 intervals in full, half the next.

    A join begins at the tick before the frame, where the line is drawn backwards.
    """
    cdef double over = t - 1.5 * interval
    if over <= 0.0:
        return t if t > -interval else -interval
    return 2.0 * interval if over >= interval else t - 0.5 * over * over / interval


cdef inline double speed(double interval, double t) noexcept nogil:
    """Return the derivative of `reach`."""
    cdef double over = t - 1.5 * interval
    return 1.0 if over <= 0.0 else (0.0 if over >= interval else 1.0 - over / interval)


cdef inline double left(double fade, double gone) noexcept nogil:
    """Return which share of an offset is left."""
    return 1.0 - fade * gone if fade * gone < 1.0 else 0.0


cdef inline double line_at(const Line* l, double t, double gone) noexcept nogil:
    """Return the value `t` [s] along the line, `gone` [s] after the output turned to it."""
    cdef double x = l.x + (l.slope + 0.5 * l.curve * t) * t + left(l.fade, gone) * l.offset
    return x if isfinite(x) else l.x


cdef inline void turning_at(const Turning* a, double t, double gone, double* q) noexcept nogil:
    """Fill `q` with the attitude there."""
    cdef double vector[3]
    cdef double predicted[4]
    cdef double share = left(a.fade, gone)
    cdef int i
    for i in range(3):
        vector[i] = (a.rate[i] + (0.5 * a.slope[i] + a.curve[i] * t / 6.0) * t) * t
    turn_about(a.q, vector, predicted)
    for i in range(3):
        vector[i] = share * a.offset[i]
    turn_about(predicted, vector, q)


cdef inline void bridge_step(
    BridgeState* b, const Publication* newest, bint moving, bint restart, int64_t deadline
) noexcept nogil:
    """Do one tick: `motion` is then that of the deadline, made of `newest` and the frames before it.

    While not `moving` it stays what it was; a `restart` forgets the frames before.
    """
    cdef Motion line
    cdef double q[4]
    cdef double t, gone
    cdef int i
    if moving:
        if restart or b.frames == 0:
            bridge_restart(b, newest)
            b.tick = deadline
        elif not b.moving or newest.place.spent != b.place.spent:
            bridge_frame(b, newest, deadline)
        line = newest.motion
        t = 1e-9 * (deadline - b.place.taken)
        # What a line leads to is of this moment; a level one shows the newest frame when the difference has gone.
        mc_count(&b.age, <int64_t>(1e9 * t))
        if b.kind != BRIDGE_HOLD or b.pace > 0.0:
            gone = (deadline - b.since) * 1e-9
            t = reach(b.place.interval, t)
            if b.kind == BRIDGE_PREDICT:
                mc_count(&b.age, -<int64_t>(1e9 * t))
            elif b.kind == BRIDGE_LINEAR:
                mc_count(&b.age, <int64_t>(1e9 * b.place.interval * left(b.turning.fade, gone)))
            for i in range(LINES):
                (<double*>&line)[channel_of(i)] = line_at(&b.lines[i], t, gone)
            turning_at(&b.turning, t, gone, q)
            if b.pace > 0.0:
                bridge_join(b, &line, q, deadline)
            to_angles(q, &line.roll)
            for i in range(4):
                b.q[i] = q[i]
        b.motion = line
        b.rested = deadline
        mc_count(&b.ticks, 1)
    b.tick = deadline
    b.moving = moving


cdef class Bridge:
    cdef int _kind
    cdef double _fade_s
    cdef BridgeState _state
