"""Why something was not accepted, and what happened to a session: the codes counted and logged without the GIL."""


cpdef enum Reason:
    """Why something was refused, or what happened."""
    ACCEPTED = 0
    SIZE            # a known type with another size
    TYPE            # no such package
    NOT_FINITE      # NaN or infinity in a used field
    IMPLAUSIBLE     # a value no vehicle reaches
    QUATERNION      # zero, or far from unit length
    AXES            # announced axes zero or not orthogonal; the default axes are used instead
    BEFORE_INIT     # a frame before the session's init package
    FRAMING         # a size field that no package can have: the stream is lost
    BIG_ENDIAN      # the size field has its bytes swapped
    STALLED         # the rest of a package never came
    SECOND_SIMULATOR    # one simulator drives at a time
    SESSION_BEGAN
    SESSION_ENDED
    REPLY_LOST      # the simulator does not read its replies
    REASONS         # how many there are
