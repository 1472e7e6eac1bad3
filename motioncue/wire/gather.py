"""Windows of a simulator's shared memory that make one packet."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Gather", "Window"]


class Window(NamedTuple):
    """A part of the mapping."""

    offset: int  # [bytes]
    size: int  # [bytes]
    number: int = -1  # offset of the number of the block to use; -1: none
    number_size: int = 1  # [bytes]
    stride: int = 0  # from block to block [bytes]


class Gather(NamedTuple):
    """How states are read; offsets of `counter` and `end` are those of the packet."""

    size: int  # of the mapping [bytes]
    windows: tuple[Window, ...]
    counter: int  # changes with every state
    counter_size: int  # [bytes]
    end: int = -1  # a copy of the counter that is written after the state; -1: none
    odd: bool = False  # whether the counter is odd while a state is written
    poll_hz: float = 1000.0
    still_s: float = 1.0  # without a new state, after which the simulator may have ended
    fits: Callable[[bytes], bool] = bool  # whether a packet is one of the motion, with plausible numbers
