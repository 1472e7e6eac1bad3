"""The supervisor's transition table, and its step."""

from libc.string cimport memset

from motioncue.core.blend cimport fade_step
from motioncue.core.threads cimport (
    CUE_REACHED, END_OF_RUN, INPUT, INPUT_BACK, INPUT_LOST, INPUT_OVERDUE, NEUTRAL_REACHED, NOT_FINITE_CUE,
    OPERATOR_ENGAGE, OPERATOR_HOLD, OPERATOR_PARK, OUTPUT_LOST, OUTPUT_UNHEARD, PLATFORM_FAULT, PLATFORM_SILENT,
    PLATFORM_STOPPED, PLATFORM_UNREADY,
)

from motioncue.core.threads import NAMES

__all__ = ["TABLE", "Platform", "State"]

cdef enum:
    OF_INPUT = -1       # use the reason that the input gives: its discontinuity, or why it was lost
    RULES = 31

# In each state, the first rule whose conditions all hold is applied.
cdef Rule[RULES] rules = [
    Rule(OFFLINE, FAULTED, FAULT, OUTPUT_LOST),
    Rule(OFFLINE, ENGAGED | FRESH | READY, ENGAGING, INPUT),

    Rule(ENGAGING, FAULTED, FAULT, NOT_FINITE_CUE),
    Rule(ENGAGING, ENDED, PARKING, END_OF_RUN),
    Rule(ENGAGING, PARKED, PARKING, OPERATOR_PARK),
    Rule(ENGAGING, NOBODY, PARKING, OUTPUT_UNHEARD),
    Rule(ENGAGING, BROKEN, PARKING, OF_INPUT),
    Rule(ENGAGING, LOST, PARKING, OF_INPUT),
    Rule(ENGAGING, HELD, HOLDING, OPERATOR_HOLD),
    Rule(ENGAGING, OVERDUE, HOLDING, INPUT_OVERDUE),
    Rule(ENGAGING, AT_CUE, RUNNING, CUE_REACHED),

    Rule(RUNNING, FAULTED, FAULT, NOT_FINITE_CUE),
    Rule(RUNNING, ENDED, PARKING, END_OF_RUN),
    Rule(RUNNING, PARKED, PARKING, OPERATOR_PARK),
    Rule(RUNNING, NOBODY, PARKING, OUTPUT_UNHEARD),
    Rule(RUNNING, BROKEN, PARKING, OF_INPUT),
    Rule(RUNNING, LOST, PARKING, OF_INPUT),
    Rule(RUNNING, HELD, HOLDING, OPERATOR_HOLD),
    Rule(RUNNING, OVERDUE, HOLDING, INPUT_OVERDUE),

    Rule(HOLDING, FAULTED, FAULT, NOT_FINITE_CUE),
    Rule(HOLDING, ENDED, PARKING, END_OF_RUN),
    Rule(HOLDING, PARKED, PARKING, OPERATOR_PARK),
    Rule(HOLDING, NOBODY, PARKING, OUTPUT_UNHEARD),
    Rule(HOLDING, BROKEN, PARKING, OF_INPUT),
    Rule(HOLDING, ENGAGED | LOST, PARKING, OF_INPUT),
    Rule(HOLDING, ENGAGED | FRESH | AT_CUE, RUNNING, INPUT_BACK),
    Rule(HOLDING, ENGAGED | FRESH, ENGAGING, INPUT_BACK),

    Rule(PARKING, FAULTED, FAULT, NOT_FINITE_CUE),
    Rule(PARKING, AT_NEUTRAL, OFFLINE, NEUTRAL_REACHED),
    Rule(PARKING, ENGAGED | FRESH, ENGAGING, INPUT_BACK),

    Rule(FAULT, RESET | AT_NEUTRAL | READY, OFFLINE, OPERATOR_ENGAGE),
]

_CONDITIONS = {
    "faulted": FAULTED, "reset": RESET, "ended": ENDED, "parked": PARKED, "held": HELD, "engaged": ENGAGED,
    "broken": BROKEN, "lost": LOST, "overdue": OVERDUE, "fresh": FRESH, "at_neutral": AT_NEUTRAL, "at_cue": AT_CUE,
    "ready": READY, "nobody": NOBODY,
}

TABLE = [
    (
        State(rules[i].state).name,
        tuple(name for name, bit in _CONDITIONS.items() if rules[i].conditions & bit),
        State(rules[i].to).name,
        "(the input's)" if rules[i].reason == OF_INPUT else NAMES[rules[i].reason],
    )
    for i in range(RULES)
]
"""The rules (state, conditions, next state, reason) in the order in which they are tried."""


cdef int trouble(const Supervisor* s) noexcept nogil:
    """Return the reason why the platform's replies are a fault, or 0: one that does not follow any more has lost the cue."""
    cdef bint fading = s.fade.position > 0.0 and (s.state == ENGAGING or s.state == RUNNING or s.state == HOLDING)
    if s.platform & STOPPED:
        return PLATFORM_STOPPED
    if s.platform & FAULTY:
        return PLATFORM_FAULT
    if s.platform & SILENT:
        return PLATFORM_SILENT
    if (s.platform & UNREADY and s.state != OFFLINE) or (s.platform & UNENGAGED and fading):
        return PLATFORM_UNREADY
    return 0


cdef int conditions(const Supervisor* s, int64_t deadline) noexcept nogil:
    """Return the flags of the conditions that hold at this tick."""
    cdef int64_t age = deadline - s.input.motion.time
    cdef bint broken = s.have_input and s.state != OFFLINE and s.input.epoch != s.epoch
    cdef int c = 0
    if s.faulted or s.unsent or trouble(s):
        c |= FAULTED
    if not s.platform & (UNREADY | FAULTY | STOPPED | SILENT):
        c |= READY
    if s.reset:
        c |= RESET
    if s.wanted == OPERATOR_WANTS_END or s.wanted == OPERATOR_WANTS_LEAVE:
        c |= ENDED
    elif s.wanted == OPERATOR_WANTS_PARK:
        c |= PARKED
    else:
        c |= HELD if s.wanted == OPERATOR_WANTS_HOLD else ENGAGED
    if broken:
        c |= BROKEN
    if not s.have_input or s.input.frozen or age > s.hold:
        c |= LOST
    elif 4 * age > 3 * s.hold:
        c |= OVERDUE
    elif not broken and not s.platform & UNHEARD:
        c |= FRESH
    if s.platform & UNHEARD:
        c |= NOBODY
    if s.fade.position == 0.0 and s.still:
        c |= AT_NEUTRAL
    if s.fade.position == 1.0:
        c |= AT_CUE
    return c


cdef void apply_rule(Supervisor* s, const Rule* rule, int64_t deadline, Step* step) noexcept nogil:
    """Change the state as the rule says, and fill the reason."""
    step.moved = True
    step.before = s.state
    step.reason = rule.reason
    step.value = (deadline - s.input.motion.time) * 1e-9  # age of the input, unless it has a measure of its own
    step.limit = s.hold * 1e-9
    if rule.reason == OF_INPUT:
        step.reason = INPUT_LOST
        if s.input.frozen or s.input.epoch != s.epoch:
            step.reason = s.input.reason
            step.value = s.input.value
            step.limit = s.input.limit
    elif rule.reason == OUTPUT_UNHEARD:
        step.value = step.limit     # longer than that
    elif rule.to == FAULT and s.unsent:
        step.reason = OUTPUT_LOST
        step.value = s.unsent_for * 1e-9
    elif rule.to == FAULT and not s.faulted:
        step.reason = trouble(s)
    step.begin = s.state == OFFLINE
    if step.begin:
        s.ready = deadline + s.engage
    s.state = <State>rule.to
    if s.state == OFFLINE:
        s.faulted = False
    if s.state == FAULT:
        s.reset = False         # an operator who engaged before the fault cannot have meant it
    if s.state == ENGAGING:
        s.epoch = s.input.epoch


cdef void supervise(Supervisor* s, int64_t deadline, Step* step) noexcept nogil:
    """Begin a tick: find the state, choose the motion in use; `fade` is to follow."""
    cdef int c = conditions(s, deadline)
    cdef int i
    memset(step, 0, sizeof(Step))
    for i in range(RULES):
        if rules[i].state == s.state and rules[i].conditions & c == rules[i].conditions:
            apply_rule(s, &rules[i], deadline, step)
            break
    if s.state != FAULT or not c & READY:
        s.reset = False         # who engages while the emergency stop is pressed must not move it by its release
    if s.state == ENGAGING or s.state == RUNNING:
        s.motion = s.input.motion
    step.waiting = (deadline < s.ready or s.platform & UNENGAGED) and (s.state == ENGAGING or s.state == HOLDING)


cdef void fade(Supervisor* s, Step* step) noexcept nogil:
    """End a tick: step the fade."""
    step.weight = 0.0
    if not step.waiting:
        step.weight = fade_step(&s.fade, not wants_neutral(s))
