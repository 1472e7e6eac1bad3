from enum import IntEnum

__all__ = ["TABLE", "State"]

class State(IntEnum):
    OFFLINE = 0
    ENGAGING = 1
    RUNNING = 2
    HOLDING = 3
    PARKING = 4
    FAULT = 5
    STATES = 6

TABLE: list[tuple[str, tuple[str, ...], str, str]]
