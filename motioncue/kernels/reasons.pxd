"""Why something was not accepted, and what happened to a session: the codes counted and logged without the GIL."""


cpdef enum Reason:
    """Why something was refused, or what happened."""
    ACCEPTED = 0
    SIZE            # a known type with another size
    TYPE            # no such package
    ENVELOPE        # a length field or an end mark that does not fit the package
    NOT_ALLOWED     # from a host that is not allowed
    NOT_FINITE      # NaN or infinity in a used field
    IMPLAUSIBLE     # a value no vehicle reaches
    QUATERNION      # zero, or far from unit length
    AXES            # announced axes zero or not orthogonal; the default axes are used instead
    BEFORE_INIT     # a frame before the session's init package
    INCOMPLETE      # a frame without the other package that it needs, or long after it
    LATE            # a frame older than the newest by its own stamp
    FRAMING         # a size field that no package can have: the stream is lost
    BIG_ENDIAN      # the size field has its bytes swapped
    STALLED         # the rest of a package never came
    SECOND_SIMULATOR    # one simulator drives at a time
    TAKEN_OVER      # the simulator that drove was silent, and another one drives now
    NO_DESCRIPTOR   # the system has none left for a simulator that connects: it has to wait
    SESSION_BEGAN
    SESSION_ENDED
    REPLY_LOST      # the simulator does not read its replies
    TELEPORT        # the position moved by more than the velocity allows
    IMPOSSIBLE_ACCELERATION     # reported, or the velocity changed by more than it allows
    IMPOSSIBLE_RATE     # reported, or the attitude changed by more than it allows
    FRAME_TIME_JUMP # the simulator's frame time jumped
    ACCELERATION_CONTRADICTED   # the acceleration does not add up to the change of the velocity
    RATE_CONTRADICTED   # the angular rates do not add up to the turning of the attitude
    SPIKE           # a frame, an acceleration or a rate that did not fit, was held back, and did not come again
    FROZEN          # a moving car repeats the same state
    PAUSED          # the same, with a frame time of zero
    RECONNECT       # another session: nothing connects it with the one before
    INPUT           # motion is coming in
    INPUT_OVERDUE   # no new motion for three quarters of the time it is held
    INPUT_LOST      # no new motion for longer than it is held
    INPUT_BACK      # it returned, and continues what came before
    CUE_REACHED     # faded in
    NEUTRAL_REACHED # faded out
    NOT_FINITE_CUE  # an algorithm gave something that is not a number
    OPERATOR_ENGAGE
    OPERATOR_HOLD
    OPERATOR_PARK
    END_OF_RUN
    RETUNED         # other settings are in force
    REASONS         # how many there are
