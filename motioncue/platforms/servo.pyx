"""Drives that follow their commands as real ones do: dead time, a lag of first or second order, friction, end stops.

A command is in force from its tick, plus the dead time, until the next.  While the command u is constant the position
x follows x' = (u - x) / T, or x'' = w^2 (u - x) - 2 z w x'.  Both are solved exactly over each part of a tick, so
without friction and stops the positions at the ticks are those of the differential equation.

Friction is a band f around the command: a drive at rest begins to move if |u - x| > f, and a moving one follows
u - f in the direction in which it moves (Coulomb friction of w^2 f; own derivation).  A drive of second order that
reverses within a part of a tick stands until its end.  A stop takes all speed.
"""

from libc.math cimport copysign, fabs, floor, fmax, fmin
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from motioncue.core.interfaces cimport Stage, StageCalls
from motioncue.core.records cimport Actuation, Cue, Motion
from motioncue.core.rotation cimport Turn, sin_cos
from motioncue.platforms.kinematics cimport Geometry, Kinematics, forward

import math

import numpy as np

from motioncue.core.channels import POSE

__all__ = ["PlatformPose", "Servos"]

BEYOND = 1.05       # share of a bound beyond which a tick counts as an overrun: packets round positions
TOUCH = 1e-3        # share of the speed up to which an end stop is touched, not hit
LONGEST_S = 1.0     # of dead time


cdef enum:
    MOST = 12
    STEPS = 8           # Newton steps at most from the pose of the tick before


ctypedef struct Course:         # of one drive over a part of a tick
    double position         # factors that give the next distance from the command from the present distance
    double speed            # and speed
    double falls            # the same for the next speed
    double keeps
    double duration         # [s]


ctypedef struct Servo:
    Course parts[2]         # the part of a tick before the next command comes into force, and the part after it
    int64_t late            # whole ticks of dead time
    bint inertia            # whether it is of second order and keeps its speed
    double low              # end stops
    double high
    double friction         # half width of the band, in the unit of the position
    double most_move        # moves per tick and changes of move beyond which a tick counts as an overrun
    double most_change
    double touch            # speed up to which reaching a stop is no hit [per s]


ctypedef struct ServoState:
    double x                # position
    double v                # speed [per s]
    double move             # move of the newest tick
    double lowest           # positions reached
    double highest
    double fastest          # largest move per tick and change of move
    double hardest
    double impact           # largest speed at which it hit a stop [per s]
    int64_t hits            # stops hit
    int64_t fast            # ticks beyond speed and acceleration
    int64_t hard
    int side                # at the lower stop -1, at the upper 1, else 0


ctypedef struct Drives:
    Servo servos[MOST]
    ServoState states[MOST]
    int count
    int64_t ticks
    int64_t room
    double* commands        # the newest ones, as a ring of `room` rows


cdef inline void servo_part(const Servo* d, const Course* m, double command, ServoState* s) noexcept nogil:
    cdef double speed = s.v if d.inertia else 0.0
    cdef double before = s.x
    cdef double direction, distance, impact
    if not m.duration > 0.0:
        return
    if speed == 0.0 and fabs(command - s.x) <= d.friction:
        s.v = 0.0
        return
    direction = copysign(1.0, speed if speed != 0.0 else command - s.x)
    command -= d.friction * direction
    distance = s.x - command
    s.x = command + m.position * distance + m.speed * speed
    s.v = m.falls * distance + m.keeps * speed
    if d.friction > 0.0 and s.v * direction < 0.0:
        s.v = 0.0
    if s.x >= d.low and s.x <= d.high:
        if s.x > d.low and s.x < d.high:
            s.side = 0
        return
    direction = 1.0 if s.x > d.high else -1.0
    impact = fabs(s.v) if d.inertia else fabs(s.x - before) / m.duration
    if impact > d.touch and s.side != <int>direction:
        s.hits += 1
        s.impact = fmax(s.impact, impact)
    s.side = <int>direction
    s.x = d.high if direction > 0.0 else d.low
    s.v = 0.0


cdef inline void servo_step(const Servo* d, double older, double newer, ServoState* s) noexcept nogil:
    """Move one tick: `older` is the command in force at its beginning, `newer` the one that comes into force within it."""
    cdef double before = s.x
    cdef double move, change
    servo_part(d, &d.parts[0], older, s)
    servo_part(d, &d.parts[1], newer, s)
    move = s.x - before
    change = fabs(move - s.move)
    s.fast += fabs(move) > d.most_move
    s.hard += change > d.most_change
    s.fastest = fmax(s.fastest, fabs(move))
    s.hardest = fmax(s.hardest, change)
    s.lowest = fmin(s.lowest, s.x)
    s.highest = fmax(s.highest, s.x)
    s.move = move


cdef void drives_tick(Drives* d, const double* command, double* out) noexcept nogil:
    """Do one tick: fill where the drives are when this command comes."""
    cdef int64_t late = d.servos[0].late
    cdef ServoState* s
    cdef double older, newer
    cdef int i
    for i in range(d.count):
        s = &d.states[i]
        if d.ticks == 0:
            s.x = min(max(command[i], d.servos[i].low), d.servos[i].high)
            s.lowest = s.highest = s.x
        else:
            newer = d.commands[max(d.ticks - 1 - late, 0) % d.room * d.count + i]
            older = d.commands[max(d.ticks - 2 - late, 0) % d.room * d.count + i]
            servo_step(&d.servos[i], older, newer, s)
        out[i] = s.x
        d.commands[d.ticks % d.room * d.count + i] = command[i]
    d.ticks += 1


cdef class Servos:
    """The drives of a platform's actuators, made of software.

    A commanded position is held until the next one.  A drive begins at rest at its first command.

    Units: `dt` [s].
    """

    cdef Drives drives
    cdef readonly double dt
    cdef double[::1] _ring              # owns the memory of `drives.commands`

    def __cinit__(self, bounds, double dt, double lag_s, damping=None, double dead_time_s=0.0, double friction=0.0):
        cdef Servo* d
        if not 0 < len(bounds) <= MOST:
            raise ValueError(f"bounds: found {len(bounds)} actuators, allowed are 1 to {MOST}")
        for name, value, allowed in (
            ("dt", dt, 0.0 < dt <= 1.0),
            ("lag_s", lag_s, 0.0 <= lag_s <= 10.0),
            ("damping", damping, damping is None or 0.0 < damping <= 100.0),
            ("dead_time_s", dead_time_s, 0.0 <= dead_time_s <= LONGEST_S),
            ("friction", friction, 0.0 <= friction <= 1.0),
        ):
            if not allowed:
                raise ValueError(f"{name}: found {value}, allowed is a number in range")
        self.drives.count = len(bounds)
        self.dt = dt
        whole = floor(dead_time_s / dt * (1.0 + 1e-12))
        rest_s = max(0.0, dead_time_s - whole * dt)
        for i, each in enumerate(bounds):
            if not (each.low < each.high and each.speed > 0.0 and each.acceleration > 0.0):
                raise ValueError(f"bounds: found {each}")
            d = &self.drives.servos[i]
            d.parts[0] = _motion(lag_s, damping, rest_s)
            d.parts[1] = _motion(lag_s, damping, dt - rest_s)
            d.late = <int64_t>whole
            d.inertia = damping is not None and lag_s > 0.0
            d.low, d.high = each.low, each.high
            d.friction = friction * (each.high - each.low)
            d.most_move = BEYOND * each.speed * dt
            d.most_change = BEYOND * each.acceleration * dt * dt
            d.touch = TOUCH * each.speed
        self.drives.room = <int64_t>whole + 2
        self._ring = np.zeros(self.drives.room * self.drives.count)
        self.drives.commands = &self._ring[0]
        self.reset()

    @property
    def count(self):
        """Number of drives."""
        return self.drives.count

    def reset(self):
        """Forget the past: the next command is where the drives begin."""
        self.drives.ticks = 0
        memset(self.drives.states, 0, sizeof(self.drives.states))

    def process(self, positions):
        """Return where the drives are at each tick; states carry over between calls."""
        rows = np.ascontiguousarray(positions, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.drives.count:
            raise ValueError(f"positions: found shape {rows.shape}, allowed is (n, {self.drives.count})")
        if not np.isfinite(rows).all():
            raise ValueError("positions: found some that are not finite")
        out = np.empty_like(rows)
        cdef const double[:, ::1] p = rows
        cdef double[:, ::1] o = out
        cdef Py_ssize_t k
        with nogil:
            for k in range(p.shape[0]):
                drives_tick(&self.drives, &p[k, 0], &o[k, 0])
        return out

    def stats(self):
        """Return what each drive did since the beginning: a dict of ndarrays of shape (actuators,).

        ``lowest`` and ``highest`` position reached; largest ``speed`` [per s] and ``acceleration`` [per s^2]; ``hits``
        of end stops and the largest speed of one, ``impact`` [per s]; ``too_fast`` and ``too_hard``: ticks more than a
        twentieth beyond the speed and the acceleration that it is made for.
        """
        cdef int i
        rows = [
            (
                self.drives.states[i].lowest, self.drives.states[i].highest, self.drives.states[i].fastest / self.dt,
                self.drives.states[i].hardest / self.dt**2, self.drives.states[i].hits, self.drives.states[i].impact,
                self.drives.states[i].fast, self.drives.states[i].hard,
            )
            for i in range(self.drives.count)
        ]
        names = ("lowest", "highest", "speed", "acceleration", "hits", "impact", "too_fast", "too_hard")
        return {
            name: np.array(values, dtype=np.int64 if name in ("hits", "too_fast", "too_hard") else np.float64)
            for name, values in zip(names, zip(*rows))
        }


cdef Course _motion(double lag_s, damping, double h):
    """Return the exact solution over a time `h` [s]: the matrix exponential of the lag's equation."""
    if h <= 0.0:
        return Course(1.0, 0.0, 0.0, 1.0, 0.0)
    if lag_s == 0.0:
        return Course(0.0, 0.0, 0.0, 0.0, h)
    if damping is None:
        left = math.exp(-h / lag_s)
        return Course(left, 0.0, -left / lag_s, 0.0, h)
    omega = 2.0 * damping / lag_s
    # Scaled such that its norm is small, summed as a series, squared as often as it was halved.
    halvings = max(0, math.ceil(math.log2(max(1.0, omega, 2.0 * damping * omega, omega * omega) * h)) + 1)
    rate = np.array([[0.0, 1.0], [-omega * omega, -2.0 * damping * omega]]) * (h / 2.0**halvings)
    term = total = np.eye(2)
    for n in range(1, 20):
        term = term @ rate / n
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return Course(total[0, 0], total[0, 1], total[1, 0], total[1, 1], h)


ctypedef struct PoseState:
    Drives* drives
    const Geometry* geometry    # NULL: the cue's pose is what is driven
    const double* feedback      # where the actuators are as the platform replies; NULL or all 0: it does not
    double pose[6]              # the newest one, surge, sway, heave, roll, pitch, yaw


cdef bint replied(const PoseState* s) noexcept nogil:
    """Say whether the platform replies where its actuators are."""
    cdef int i
    if s.feedback != NULL and s.geometry != NULL:
        for i in range(s.geometry.count + s.geometry.tables):
            if s.feedback[i] != 0.0:
                return True
    return False


cdef void pose_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    cdef PoseState* s = <PoseState*>state
    cdef double at[MOST]
    cdef double found[6]
    cdef double x, y, down, sr, cr, sp, cp, sy, cy
    if s.geometry == NULL:
        drives_tick(s.drives, pose_of(&actuation.cue, found), s.pose)
    else:
        drives_tick(s.drives, actuation.actuators, at)
        memcpy(found, s.pose, sizeof(found))
        if forward(s.geometry, s.feedback if replied(s) else at, found, STEPS) >= 0:
            memcpy(s.pose, found, sizeof(found))        # else the pose of the tick before
    x, y, down = s.pose[0], s.pose[1], -s.pose[2]
    sin_cos(s.pose[3], &sr, &cr)
    sin_cos(s.pose[4], &sp, &cp)
    sin_cos(s.pose[5], &sy, &cy)
    actuation.pose_forward = cp * cy * x + cp * sy * y - sp * down
    actuation.pose_right = (sr * sp * cy - cr * sy) * x + (sr * sp * sy + cr * cy) * y + sr * cp * down
    actuation.pose_up = -((cr * sp * cy + sr * sy) * x + (cr * sp * sy - sr * cy) * y + cr * cp * down)
    actuation.pose_roll, actuation.pose_pitch, actuation.pose_yaw = s.pose[3], s.pose[4], s.pose[5]


cdef inline const double* pose_of(const Cue* cue, double* out) noexcept nogil:
    """Return the pose of a cue."""
    out[0], out[1], out[2] = cue.surge_displacement, cue.sway_displacement, cue.heave_displacement
    out[3], out[4], out[5] = cue.roll, cue.pitch, cue.yaw
    return out


cdef void pose_reset(void* state) noexcept nogil:
    cdef PoseState* s = <PoseState*>state
    s.drives.ticks = 0
    memset(s.drives.states, 0, sizeof(s.drives.states))
    memset(s.pose, 0, sizeof(s.pose))


cdef void pose_continue(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil:
    cdef PoseState* s = <PoseState*>state
    cdef const PoseState* before = <const PoseState*>before_state
    memcpy(s.pose, before.pose, sizeof(s.pose))
    memcpy(s.drives.states, before.drives.states, sizeof(s.drives.states))
    if s.drives.room == before.drives.room:     # the dead time is fixed while it runs
        s.drives.ticks = before.drives.ticks
        memcpy(s.drives.commands, before.drives.commands, s.drives.room * s.drives.count * sizeof(double))


cdef class PlatformPose(Stage):
    """The pose that a platform has: as it replies, else as its drives follow what the output is asked.

    `drives` are of its actuators, without a platform of the six channels of the pose; they belong to this stage.  Without
    `kinematics` (None) the cue's pose is what is driven.  With `feedback` what the platform replies counts.
    The displacement is along the platform's own axes.  Real time: a step does not allocate and cannot fail; a pose that
    cannot be found from the actuators is that of the tick before.
    """

    fills = tuple([channel.name for channel in POSE])

    cdef Servos _drives
    cdef Kinematics _kinematics
    cdef bint _listens
    cdef PoseState _state

    def __cinit__(self, Servos drives not None, Kinematics kinematics=None, *, bint feedback=True):
        if drives.drives.count != (6 if kinematics is None else kinematics.count):
            raise ValueError(f"drives: found {drives.drives.count}, allowed is one for each actuator")
        self._drives, self._kinematics, self._listens = drives, kinematics, feedback
        memset(&self._state, 0, sizeof(PoseState))
        self._state.drives = &drives.drives
        if kinematics is not None:
            self._state.geometry = &kinematics.geometry
        self.calls = StageCalls(pose_step, pose_reset, NULL, NULL, &self._state, pose_continue, NULL, NULL, NULL)

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """From now on read there where the actuators are."""
        self._state.feedback = feedback if self._listens else NULL
        return 0
