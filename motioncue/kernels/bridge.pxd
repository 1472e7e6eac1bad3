"""Between frames: the motion of a tick, made of the frames that have come until then.

A simulator sends 30 to 144 frames a second, the platform wants 333 ticks.  In between, every channel follows a line
from its newest frame, and what the output was beside that line when the frame came fades from then on, so that a frame
never makes a step.  The kinds differ in the line:

``hold``: the newest frame as it is, steps and all.
``linear``: the line is level and the difference fades over a whole frame: from each frame to the next in a straight
line, one frame late.
``predict``: the line leads to where the next frame is expected, and is trusted as far as the last frames came out as
expected; where they did not, the difference fades within half a frame.  Attitude turns with the body rates.

A frame was taken when its own time says, set against the clock by the earliest arrivals; a line ends one and a half
frames after that, and is held.  What is expected from a frame to the next is a slope of at most three times the larger one
of the last two, so nothing is invented beyond a few times what the frames themselves did.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from motioncue.kernels.records cimport MOTION_TIME, ROLL, ROLL_RATE, Motion
from motioncue.kernels.rotation cimport to_angles, turn_about
from motioncue.kernels.slot cimport mc_count


cdef enum:
    BRIDGE_HOLD
    BRIDGE_LINEAR
    BRIDGE_PREDICT

cdef enum:
    LINES = MOTION_TIME - 3     # the channels of a motion that are no angles
    SLOPE = 3               # place of the slope among what is seen, after as many curves, newest first
    OFF = 4                 # place of how far a channel is off its average
    ORDER = 5               # how much that is
    RATES = ROLL_RATE - 3   # place of the first body rate among the lines
    ANGLES = ROLL           # place of the first angle among the channels


ctypedef struct Line:           # in the channel's own unit
    double x                # at the newest frame
    double slope            # [1/s] there
    double curve            # [1/s^2]
    double offset           # of the output from the line when the frame came
    double fade             # [1/s] how fast it goes


ctypedef struct Forecast:       # of one channel, from frame to frame
    double x                # of the newest frame
    double slope            # [1/s] from the frame before it to it
    double next             # [1/s] expected from it to the next
    double curve            # [1/s^2] expected in between
    double dt               # [s] that `slope` is over
    double average          # of about the last 64 frames
    double seen[ORDER]      # [1/s^2] that a curve is expected from; slope per frame, and distance per frame squared
    double moments[ORDER][ORDER]    # of such with each other, older ones counting less
    double products[ORDER]  # and with the curve that followed
    double missed           # squares of what came out other than expected
    double moved            # squares of the changes from frame to frame


ctypedef struct Turning:        # of the attitude, in body axes
    double q[4]             # at the newest frame
    double rate[3]          # [rad/s] there
    double slope[3]         # [rad/s^2] of the rate
    double curve[3]         # [rad/s^3]
    double offset[3]        # of the output from that when the frame came [rad]
    double fade             # [1/s]
    Forecast turns[3]       # [rad] of how it turns from frame to frame, whatever the body rates say
    double missed           # [rad^2] squares of where the body rates did not lead


ctypedef struct BridgeState:
    int kind
    Motion newest           # frame
    Motion motion           # of the last tick
    int64_t tick            # when that was [ns]
    bint moving             # at that tick
    int frames              # since the restart, up to 2
    int64_t taken           # when the newest frame was, on the clock [ns]
    int64_t lead            # of the clock before the simulator's time, at the earliest arrivals [ns]
    int tardy               # frames that came late, less those that did not
    double interval         # from frame to frame [s]
    int64_t since           # when the output turned to the newest frame [ns]
    Line lines[LINES]
    Turning turning
    Forecast forecasts[LINES]
    int64_t age             # of what the ticks showed, their sum [ns]
    int64_t ticks           # in that sum


cdef void bridge_restart(BridgeState* b, const Motion* frame) noexcept nogil
cdef void bridge_frame(BridgeState* b, const Motion* frame, int64_t deadline) noexcept nogil
cdef void bridge_rest(BridgeState* b) noexcept nogil
cdef double latency_s(BridgeState* b)


cdef inline double ahead(const BridgeState* b, int64_t time) noexcept nogil:
    """Return how far along the lines that is [s]: they end after one and a half frames."""
    cdef double t = (time - b.taken) * 1e-9
    cdef double end = 1.5 * b.interval
    return 0.0 if t < 0.0 else (end if t > end else t)


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


cdef inline void bridge_step(BridgeState* b, const Motion* frame, bint moving, bint restart, int64_t deadline) noexcept nogil:
    """Do one tick: `motion` is then that of the deadline, made of `frame`, the newest, and those before it.

    While not `moving` it stays what it was; a `restart` forgets the frames before.
    """
    cdef double q[4]
    cdef double t, gone
    cdef double* channels = <double*>&b.motion
    cdef int i
    if b.kind == BRIDGE_HOLD:
        b.motion = frame[0]
        if moving:
            mc_count(&b.age, deadline - frame.time)
            mc_count(&b.ticks, 1)
        return
    if moving:
        if restart or b.frames == 0:
            bridge_restart(b, frame)
        elif frame.time != b.newest.time:
            bridge_frame(b, frame, deadline)
        t = ahead(b, deadline)
        gone = (deadline - b.since) * 1e-9
        b.motion = frame[0]
        for i in range(LINES):
            channels[i if i < ANGLES else i + 3] = line_at(&b.lines[i], t, gone)
        turning_at(&b.turning, t, gone, q)
        to_angles(q, channels + ANGLES)
        b.tick = deadline
        # What a line leads to is of this moment; a level one shows the newest frame when the difference has gone.
        t = -t if b.kind == BRIDGE_PREDICT else b.interval * left(b.turning.fade, gone)
        mc_count(&b.age, deadline - b.taken + <int64_t>(1e9 * t))
        mc_count(&b.ticks, 1)
    elif b.moving:
        bridge_rest(b)
    b.moving = moving


cdef class Bridge:
    cdef BridgeState _state
