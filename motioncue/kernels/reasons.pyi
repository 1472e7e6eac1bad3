from enum import IntEnum

__all__ = ["NAMES", "Reason"]

NAMES: tuple[str, ...]

class Reason(IntEnum):
    ACCEPTED = 0
    SIZE = 1
    TYPE = 2
    NOT_FINITE = 3
    IMPLAUSIBLE = 4
    QUATERNION = 5
    AXES = 6
    BEFORE_INIT = 7
    FRAMING = 8
    BIG_ENDIAN = 9
    STALLED = 10
    SECOND_SIMULATOR = 11
    SESSION_BEGAN = 12
    SESSION_ENDED = 13
    REPLY_LOST = 14
    REASONS = 15
