"""The stages that every output can have, and the chain that holds an output's stages."""

from libc.math cimport M_PI, NAN, exp, fabs, floor, sin
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from motioncue.core.blend cimport fade_rests, fade_step, smooth
from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport CAR, CHASSIS, MOVING, Cue, Motion
from motioncue.core.rotation cimport Turn, up_vector
from motioncue.safety.limiter cimport (
    LimiterState, at_neutral, keep_turning, lean_cue, limit_cue, limit_of, limiter_step, limits_continue, limits_rest,
    viable_above,
)

import numpy as np

from motioncue.core.channels import ACTUATION_DTYPE
from motioncue.core.channels import CAR as CAR_CHANNELS
from motioncue.core.channels import TEXTURE

__all__ = ["CarMotion", "ChassisMotion", "OutputChain", "UpVector", "tactile_sections"]

cdef enum:
    WHEELS = 4

cdef double LARGEST = 1e6       # in the channel's unit: what is beyond is no motion of a car
cdef double LOWEST_HZ = 1.0     # of the tactile signal: a suspension that is held moves no shaker


cdef inline double within(double x, double bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)


cdef void up_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    up_vector(attitude, actuation.cue.roll, actuation.cue.pitch, actuation.cue.yaw, &actuation.up_east)


cdef class UpVector(Stage):
    """The attitude as the body's up axis in world axes: ``up_east``, ``up_north``, ``up_up``.

    Memoryless, no latency.
    """

    fills = ("up_east", "up_north", "up_up")

    def __cinit__(self):
        self.calls = StageCalls(up_step, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)


cdef void car_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    cdef CarState* s = <CarState*>state
    cdef const double* motion = <const double*>s.motion
    cdef double* newest = <double*>&s.newest
    cdef double* car = &actuation.car_surge
    cdef double weight
    cdef int i
    memset(car, 0, CAR * sizeof(double))
    if motion == NULL:
        return
    if not s.begun:
        s.begun = True
        fade_rests(&s.fade, 0.0 if parked else 1.0)
    weight = fade_step(&s.fade, not parked) if s.weight == NULL else s.weight[0]
    for i in range(CAR):
        if fabs(motion[i]) <= LARGEST:      # false for NaN
            car[i] = motion[i]
        elif i < MOVING:                    # a source may lack only speeds; they are 0 then
            car[i] = newest[i]
    lean_cue(s.limits, car)     # before the fade, as for the cue
    if weight != 1.0:
        keep_turning(car, &s.newest)
    memcpy(newest, car, CAR * sizeof(double))
    if weight != 1.0:
        for i in range(CAR):
            car[i] *= weight
    limit_cue(s.limits, car)


cdef void car_reset(void* state) noexcept nogil:
    cdef CarState* s = <CarState*>state
    limits_rest(s.limits)
    memset(&s.newest, 0, sizeof(Cue))
    s.begun = False


cdef bint car_at_rest(const void* state) noexcept nogil:
    return at_neutral((<const CarState*>state).limits)


cdef void car_continue(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil:
    cdef CarState* s = <CarState*>state
    cdef const CarState* before = <const CarState*>before_state
    cdef Cue sent[3]        # read only for channels that had no bounds, and all have
    memset(sent, 0, sizeof(sent))
    s.fade, s.newest, s.begun = before.fade, before.newest, before.begun
    s.fade.pace = pace
    limits_continue(s.limits, before.limits, sent, pace)


cdef class CarMotion(Stage):
    """The car's own motion for one output: ``car_surge`` and so on, faded as the cue is, each channel within bounds.

    `limits` bound all channels that a motion and a cue have in common; `pace` is that of the fade while the platform is
    parked, if nobody says how much of the motion is sent [1/tick].  A channel that is no number keeps its value; a speed
    that the source does not have is 0.
    Real time: a step does not allocate, needs no GIL and cannot fail.
    """

    fills = tuple([channel.name for channel in CAR_CHANNELS])

    def __cinit__(self, CueLimits limits not None, double pace):
        if limits.set.count != CAR:
            raise ValueError(f"limits: found {limits.set.count} channels, allowed are all {<int>CAR}")
        self.limits = limits
        memset(&self._state, 0, sizeof(CarState))
        self._state.limits, self._state.fade.pace = &limits.set, pace
        self.calls = StageCalls(car_step, car_reset, car_at_rest, NULL, &self._state, car_continue, NULL, NULL, NULL)

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """From now on read there what the car does, and the weight of the fade."""
        self._state.motion, self._state.weight = motion, weight
        return 0

    def shares(self):
        """Return the share of ticks in which each channel was limited."""
        return {f"car_{name}": share for name, share in self.limits.shares().items()}


cdef double section_step(Section* s, double u) noexcept nogil:
    cdef double y = s.b[0] * u + s.z[0]
    s.z[0] = s.b[1] * u - s.a[0] * y + s.z[1]
    s.z[1] = s.b[2] * u - s.a[1] * y
    return y


cdef double firing_share(double frequency) noexcept nogil:
    """Return how much of the engine is felt: nothing below 5 Hz and from 100 Hz on, all from 15 to 80 Hz."""
    if not 5.0 < frequency < 100.0:
        return 0.0
    return smooth(0.1 * (frequency - 5.0)) if frequency < 15.0 else 1.0 - smooth(0.05 * (frequency - 80.0)) if frequency > 80.0 else 1.0


cdef double tactile_filter(Tactile* t, double u) noexcept nogil:
    """Return what the band-pass makes of its next input."""
    cdef int i
    t.slow += t.pass_up * (u - t.slow)
    u -= t.slow
    for i in range(SECTIONS):
        u = section_step(&t.sections[i], u)
    return u


cdef void tactile_rest(Tactile* t) noexcept nogil:
    cdef int i
    t.phase = t.slow = 0.0
    for i in range(WHEELS):
        t.travel[i] = NAN       # no velocity follows from one value
    for i in range(SECTIONS):
        t.sections[i].z[0] = t.sections[i].z[1] = 0.0


cdef double tactile_step(Tactile* t, const double* chassis, const Motion* motion) noexcept nogil:
    """Do a tick of the tactile signal, before the fade; see `ChassisMotion`."""
    cdef double road = 0.0
    cdef double frequency, velocity
    cdef int i
    for i in range(WHEELS if chassis != NULL else 0):
        velocity = chassis[WHEELS + i]
        if not fabs(velocity) <= LARGEST:       # false for NaN
            velocity = (chassis[i] - t.travel[i]) / t.dt
        if fabs(velocity) <= LARGEST:
            road += velocity / WHEELS
        t.travel[i] = chassis[i]
    road = within(t.road * road, t.most)
    frequency = t.order * motion.engine_speed / 60.0 if motion != NULL else 0.0
    if firing_share(frequency) > 0.0:
        t.phase += frequency * t.dt
        t.phase -= floor(t.phase)
        road = within(road + t.engine * firing_share(frequency) * sin(2.0 * M_PI * t.phase), t.most)
    return within(tactile_filter(t, road), 1.0)     # only rounding is ever beyond


cdef void take_wanted(Limit* now, Limit* wanted, bint* waits, double* value) noexcept nogil:
    """Steer towards newer bounds within those so far, and use them as soon as what is sent can keep them."""
    cdef const LimiterState* s = &now.state
    value[0] = within(value[0], wanted.plan.value)
    if viable_above(&wanted.plan, s.x, s.v, s.a) and viable_above(&wanted.plan, -s.x, -s.v, -s.a):
        wanted.state = s[0]
        now[0] = wanted[0]
        waits[0] = False


cdef void lift_corners(ChassisState* s, double weight, Cue* cue) noexcept nogil:
    """Add what the wheels' bumps do to the plane of the seat."""
    cdef double height
    cdef int i
    for i in range(WHEELS):
        if s.lift_slow[i] != s.lift_slow[i] and not (s.chassis != NULL and fabs(s.chassis[i]) <= LARGEST):
            continue                        # the wheel has said nothing yet
        if weight == 0.0 or s.lift_slow[i] != s.lift_slow[i]:
            s.lift_slow[i] = s.newest[i]    # nothing is a bump that came before
        s.lift_slow[i] += s.lift_pass * (s.newest[i] - s.lift_slow[i])
        height = weight * s.lift_gain * (s.newest[i] - s.lift_slow[i])
        if s.lift_waits[i]:
            take_wanted(&s.lift_limits[i], &s.lift_wanted[i], &s.lift_waits[i], &height)
        limiter_step(&s.lift_limits[i], &height)
        cue.heave_displacement += s.lift_plane[0][i] * height
        cue.roll += s.lift_plane[1][i] * height
        cue.pitch += s.lift_plane[2][i] * height


cdef void chassis_tick(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    cdef ChassisState* s = <ChassisState*>state
    cdef double* out = &actuation.car_suspension_front_left
    cdef bint begins = not s.begun
    cdef double weight
    cdef int i, k
    if not s.begun:
        s.begun = True
        fade_rests(&s.fade, 0.0 if parked else 1.0)
    weight = fade_step(&s.fade, not parked) if s.weight == NULL else s.weight[0]
    for k in range(s.count):
        i = s.places[k]
        if s.chassis != NULL and fabs(s.chassis[i]) <= LARGEST:     # false for NaN
            s.newest[i] = s.chassis[i]
            s.shown[i].pace = s.fade.pace
            if begins or weight == 0.0:
                fade_rests(&s.shown[i], 1.0)
            elif s.shown[i].position < 1.0:
                fade_step(&s.shown[i], True)
        out[i] = s.newest[i] * weight
        if s.shown[i].position < 1.0:
            out[i] *= s.shown[i].weight
        if s.waits[i]:
            take_wanted(&s.limits[i], &s.wanted[i], &s.waits[i], &out[i])
        limiter_step(&s.limits[i], &out[i])
    if s.lifts:
        lift_corners(s, weight, &actuation.cue)
    if s.shakes:
        actuation.tactile = weight * tactile_step(&s.tactile, s.chassis, s.motion)


cdef void chassis_reset(void* state) noexcept nogil:
    cdef ChassisState* s = <ChassisState*>state
    cdef int i
    s.begun = False
    memset(s.newest, 0, sizeof(s.newest))
    memset(s.shown, 0, sizeof(s.shown))
    for i in range(WHEELS):
        s.lift_slow[i] = NAN
        s.lift_limits[i].state = LimiterState(0.0, 0.0, 0.0, 0.0, False)
    for i in range(CHASSIS):
        s.limits[i].state = LimiterState(0.0, 0.0, 0.0, 0.0, False)
    tactile_rest(&s.tactile)


cdef bint chassis_at_rest(const void* state) noexcept nogil:
    cdef const ChassisState* s = <const ChassisState*>state
    cdef int i
    for i in range(CHASSIS):
        if s.limits[i].state.x != 0.0 or s.limits[i].state.v != 0.0:
            return False
    # While the platform is up its actuators say the same; parked, they rest whatever the corners do.
    for i in range(WHEELS if s.lifts else 0):
        if s.lift_limits[i].state.x != 0.0 or s.lift_limits[i].state.v != 0.0:
            return False
    return True


cdef void chassis_continue(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil:
    cdef ChassisState* s = <ChassisState*>state
    cdef const ChassisState* before = <const ChassisState*>before_state
    cdef int i
    s.fade, s.begun = before.fade, before.begun
    s.fade.pace = pace
    memcpy(s.newest, before.newest, sizeof(s.newest))
    memcpy(s.shown, before.shown, sizeof(s.shown))
    memcpy(s.lift_slow, before.lift_slow, sizeof(s.lift_slow))
    for i in range(WHEELS):
        s.lift_wanted[i] = s.lift_limits[i]
        s.lift_limits[i] = before.lift_limits[i]
        s.lift_waits[i] = True
    for i in range(CHASSIS):
        s.wanted[i] = s.limits[i]
        s.limits[i] = before.limits[i]
        s.waits[i] = True
    s.tactile.phase, s.tactile.slow = before.tactile.phase, before.tactile.slow
    memcpy(s.tactile.travel, before.tactile.travel, sizeof(s.tactile.travel))
    for i in range(SECTIONS):
        memcpy(s.tactile.sections[i].z, before.tactile.sections[i].z, sizeof(s.tactile.sections[i].z))


cdef class ChassisMotion(Stage):
    """Wheels, suspension and cab for one output, and the tactile signal: faded as the cue is, each within bounds.

    `reads` has the channels that the output sends; `bounds` those on value, rate, acceleration and jerk of each channel,
    in the order of ``CHASSIS`` (None: not bounded); `pace` is as that of `CarMotion`.

    With `posts`, where the platform's corners are in the order of ``WHEELS`` (forward, right [m]), heave, roll and pitch
    of the output's cue get the plane nearest to the heights of the four corners, each the weight times gain HP(travel)
    within its own bounds: a corner forward x and right y of the middle rises by heave + x pitch - y roll.  `corners` are
    the gain [m/m], the cutoff of the high-pass [Hz], and the largest height, speed and acceleration for one wheel
    [m, m/s, m/s^2].  Bounds of actuators come after it.

    A channel that is no number keeps its value; one that never was is 0.  With the suspension velocities v (the slope of
    the travel where a source has no velocity), the engine's speed n [rpm], and c(x) for x kept within -m and m, the
    tactile signal is the weight of the fade times::

        LP(HP(c(c(road * (v1 + v2 + v3 + v4) / 4) + engine * a(f) * sin(phase))))
        f = order * n / 60,  phase' = 2 pi f

    with road [s/m], the share engine, 0 to 1, and the order, firings per turn: half the cylinders of four strokes.  m is
    the inverse of the sum of the magnitudes of the filters' impulse response, so that the result never leaves -1 to 1 and
    is not cut off behind the filters, which would make tones beyond their band; a is 1 from 15 to 80 Hz and 0 below 5 and
    from 100 Hz on, HP a first-order high-pass at 1 Hz, and LP a Chebyshev low-pass of the second kind, order 8, at least
    60 dB down from 100 Hz on, or from 0.45 of the output's rate on if that is less (M. Abramowitz's polynomials by
    trigonometry; own derivation).  The mean rises where wheels come nearer to the body.  It is delayed by some 10 ms by
    the low-pass, and by a frame of the source.

    Real time: a step does not allocate, needs no GIL and cannot fail.
    """

    fills = tuple([channel.name for channel in TEXTURE])

    def __cinit__(
        self, reads, bounds, *, double dt, double pace, double road=1.0, double engine=0.2, double order=2.0,
        posts=None, corners=(0.0, 1.0, 1.0, 1.0, 1.0),
    ):
        cdef ChassisState* s = &self._state
        memset(s, 0, sizeof(ChassisState))
        for place, (channel, (value, rate, acceleration, jerk)) in enumerate(zip(TEXTURE, bounds, strict=False)):
            s.limits[place] = limit_of(value, rate or 0.0, acceleration or 0.0, jerk or 0.0, dt)
            if channel.name in reads:
                s.places[s.count] = place
                s.count += 1
        s.shakes = "tactile" in reads
        if posts is not None:
            s.lifts = True
            s.lift_gain, s.lift_pass = corners[0], 1.0 - exp(-2.0 * M_PI * corners[1] * dt)
            for place in range(WHEELS):
                s.lift_limits[place] = limit_of(corners[2], corners[3], corners[4], 0.0, dt)
            # A corner rises by heave + forward * pitch - right * roll.
            s.lift_plane = np.linalg.pinv([[1.0, -right, forward] for forward, right in posts])
            for place in range(WHEELS):     # what their bumps are made of is read, sent or not
                if place not in list(s.places)[: s.count]:
                    s.places[s.count] = place
                    s.count += 1
        s.fade.pace = pace
        s.tactile.dt, s.tactile.road, s.tactile.engine, s.tactile.order = dt, road, engine, order
        s.tactile.pass_up = 1.0 - exp(-2.0 * M_PI * LOWEST_HZ * dt)
        for place, (b, a) in enumerate(tactile_sections(1.0 / dt)):
            s.tactile.sections[place].b, s.tactile.sections[place].a = b, a
        tactile_rest(&s.tactile)
        for tick in range(<int>(5.0 / dt)):     # of the high-pass, a share of exp(-10 pi) is left then
            s.tactile.most += fabs(tactile_filter(&s.tactile, tick == 0))
        s.tactile.most = 1.0 / s.tactile.most
        chassis_reset(s)
        self.calls = StageCalls(
            chassis_tick, chassis_reset, chassis_at_rest, NULL, s, chassis_continue, NULL, NULL, NULL
        )

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """From now on read there the engine's speed, and the weight of the fade."""
        self._state.motion, self._state.weight = motion, weight
        return 0

    cdef bint read_chassis(self, const double* chassis) except -1:
        """From now on read there what wheels, suspension and cab do."""
        self._state.chassis = chassis
        return True


def tactile_sections(double rate_hz, double edge_hz=100.0, double down_db=60.0):
    """Return numerator and denominator of each section of the low-pass, the latter without its first 1.

    Poles and zeros of a Chebyshev filter of the second kind are the inverse of those of the first kind, and the bilinear
    transform, prewarped at the edge of the stop band, takes them to the discrete ones.
    """
    edge_hz = min(edge_hz, 0.45 * rate_hz)
    order = 2 * SECTIONS
    edge = 2.0 * np.tan(np.pi * edge_hz / rate_hz)
    bend = np.arcsinh(np.sqrt(10.0 ** (0.1 * down_db) - 1.0)) / order
    out = []
    for k in range(1, SECTIONS + 1):
        angle = np.pi * (2 * k - 1) / (2 * order)
        pole = edge / (-np.sinh(bend) * np.sin(angle) + 1j * np.cosh(bend) * np.cos(angle))
        zero = 1j * edge / np.cos(angle)
        pole, zero = (2.0 + pole) / (2.0 - pole), (2.0 + zero) / (2.0 - zero)
        b = np.array([1.0, -2.0 * zero.real, abs(zero) ** 2])
        a = [-2.0 * pole.real, abs(pole) ** 2]
        out.append(((b * (1.0 + sum(a)) / b.sum()).tolist(), a))
    return out


cdef class OutputChain:
    """The stages of one output, applied in the order given.

    Actuation channels that no stage fills are 0.
    Real time: a tick does not allocate, needs no GIL and cannot fail.
    """

    def __cinit__(self, stages=()):
        cdef Stage stage
        memset(&self.chain, 0, sizeof(Chain))
        self.stages = tuple(stages)
        if len(self.stages) > STAGES:
            raise ValueError(f"stages: found {len(self.stages)}, allowed are {STAGES}")
        for each in self.stages:
            if not isinstance(each, Stage):
                raise TypeError(f"stages: found {each!r}, allowed are objects of Stage")
            stage = each
            self.chain.stages[self.chain.count] = stage.calls
            self.chain.count += 1

    @property
    def fills(self):
        """The channels that its stages add to those of the cue."""
        return tuple(name for stage in self.stages for name in stage.fills)

    def reset(self):
        """Forget the past; the next tick starts from rest at neutral."""
        chain_reset(&self.chain)

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """Let the stages that need it read there what the car does, and the weight of the fade."""
        cdef Stage stage
        for stage in self.stages:
            stage.read_motion(motion, weight, feedback)
        return 0

    cdef bint read_chassis(self, const double* chassis) except -1:
        """Let the stages that need it read there what wheels, suspension and cab do; return whether one does."""
        cdef Stage stage
        cdef bint reads = False
        for stage in self.stages:
            reads |= stage.read_chassis(chassis)
        return reads

    def process(
        self, const Cue[::1] cue not None, const Motion[::1] motion=None, const double[::1] weight=None,
        const double[:, ::1] chassis=None,
    ):
        """Return what the output is sent for these cues, one tick a row; states carry over between calls.

        Stages that send the car's own motion read it from `motion`, and the share of it from `weight`; without the first
        they send none, without the other all.  Wheels, suspension and cab are the columns of `chassis`.
        """
        cdef Py_ssize_t i
        cdef double beside[CHASSIS]
        cdef Motion now
        cdef double share = 1.0
        out = np.zeros(cue.shape[0], dtype=ACTUATION_DTYPE)
        if motion is not None and motion.shape[0] != cue.shape[0]:
            raise ValueError(f"motion: found {motion.shape[0]} rows, allowed are {cue.shape[0]}, as many as cues")
        if weight is not None and weight.shape[0] != cue.shape[0]:
            raise ValueError(f"weight: found {weight.shape[0]} rows, allowed are {cue.shape[0]}, as many as cues")
        if chassis is not None and (chassis.shape[0] != cue.shape[0] or chassis.shape[1] != CHASSIS):
            found = f"{chassis.shape[0]} rows of {chassis.shape[1]}"
            raise ValueError(f"chassis: found {found}, allowed are {cue.shape[0]} of {<int>CHASSIS}")
        memset(&now, 0, sizeof(Motion))
        self.read_chassis(NULL if chassis is None else &beside[0])
        self.read_motion(NULL if motion is None else &now, NULL if weight is None else &share, NULL)
        cdef Actuation[::1] rows = out
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()
            for i in range(cue.shape[0]):
                if motion is not None:
                    now = motion[i]
                if weight is not None:
                    share = weight[i]
                if chassis is not None:
                    memcpy(beside, &chassis[i, 0], sizeof(beside))
                actuate(&self.chain, &cue[i], NULL)
                rows[i] = self.chain.actuation
            mc_restore_fpu(fpu)
        self.read_motion(NULL, NULL, NULL)
        self.read_chassis(NULL)
        return out
