"""Reason codes: why a packet was refused, and what happened to a session, as counted and logged without the GIL."""


cpdef enum Reason:
    """Why something was refused, or what happened."""
    ACCEPTED = 0
    SIZE            # a known type of another size
    TYPE            # an unknown type of package
    ENVELOPE        # a length field or an end mark that does not fit the package
    NOT_ALLOWED     # from a host that is not allowed
    NOT_FINITE      # NaN or infinity in a used field
    IMPLAUSIBLE     # a value no vehicle reaches
    QUATERNION      # zero, or far from unit length
    AXES            # announced axes zero or not orthogonal; the default axes are used instead
    BEFORE_INIT     # a frame before the session's init package
    INCOMPLETE      # a frame without the other package it needs, or long after it
    LATE            # a frame older than the newest by its own stamp
    FRAMING         # a size field that no package has: the stream has lost its framing
    BIG_ENDIAN      # the size field has its bytes swapped
    STALLED         # the rest of a package never came
    SECOND_SIMULATOR    # another simulator, refused while the first one drives
    TAKEN_OVER      # the driving simulator was silent, so another one has taken over
    NO_DESCRIPTOR   # the system has no file descriptor left for a simulator that connects
    SESSION_BEGAN
    SESSION_ENDED
    REPLY_LOST      # the simulator does not read its replies
    TELEPORT        # the position moved by more than the velocity allows
    IMPOSSIBLE_ACCELERATION     # reported, or the velocity changed by more than it allows
    IMPOSSIBLE_RATE     # reported, or the attitude changed by more than it allows
    FRAME_TIME_JUMP # the simulator's frame time jumped
    ACCELERATION_CONTRADICTED   # the acceleration does not add up to the change of the velocity
    RATE_CONTRADICTED   # the angular rates do not add up to the turning of the attitude
    SPIKE           # an implausible frame, acceleration or rate, held back because it did not repeat
    FROZEN          # a moving car repeats the same state
    PAUSED          # the same state with a frame time of zero
    RECONNECT       # a new session: its motion does not continue that of the session before
    INPUT           # motion is coming in
    INPUT_OVERDUE   # no new motion for three quarters of the hold time
    INPUT_LOST      # no new motion for longer than the hold time
    INPUT_BACK      # input has returned and continues the motion before the gap
    CUE_REACHED     # fade-in complete
    NEUTRAL_REACHED # fade-out complete
    NOT_FINITE_CUE  # an algorithm's cue is NaN or infinite
    OUTPUT_LOST     # a serial line is unplugged, or has taken nothing for longer than the hold time
    OPERATOR_ENGAGE
    OPERATOR_HOLD
    OPERATOR_PARK
    END_OF_RUN
    RETUNED         # other settings have come into force
    REASONS         # number of reasons
