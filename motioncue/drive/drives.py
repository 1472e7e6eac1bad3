"""The drive scripts of the virtual car: what the driver does, and the road at that time.

A script is a table.  All its entries are timed in seconds since the script began, because drives are written and read
that way; the car converts the times of turns, slopes, banks and humps into places along the road once.
"""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["SCRIPTS", "Feature", "Leg", "Script", "Shift"]


class Leg(NamedTuple):
    """One change of speed by the driver; between legs the speed is constant."""

    start: float  # [s]
    end: float  # [s]
    speed: float  # [m/s] at the end
    ramp: float = 0.5  # [s] in which the acceleration builds up, and falls again; at most half the leg


class Shift(NamedTuple):
    """One change of gear."""

    time: float  # [s] in the middle of the shift
    gear: int  # gear after the shift, 1 to 5


class Feature(NamedTuple):
    """One feature of the road, from where the car is at `start` to where it is at `end`."""

    start: float  # [s]
    end: float  # [s]
    size: float  # turn: heading gained [rad], right positive; slope: height gained [m]; bank [rad], right side down
    share: float = 0.25  # fraction of its length in which it builds up, and falls again; at most 0.5


class Script(NamedTuple):
    """One drive: its driver and its road.  Legs follow each other, and the last one ends at standstill."""

    description: str  # one line
    duration: float  # [s], not before the last leg's end
    legs: tuple[Leg, ...] = ()
    shifts: tuple[Shift, ...] = ()
    turns: tuple[Feature, ...] = ()
    slopes: tuple[Feature, ...] = ()
    banks: tuple[Feature, ...] = ()
    humps: tuple[float, ...] = ()  # [s] times at which the reference point is above the top


_TOUR = Script(
    description="a minute of everything: launch, hard braking, corners, humps, a hill, a banked turn, stop",
    duration=62.0,
    legs=(
        Leg(2.0, 5.4, 10.0),  # first gear
        Leg(5.4, 8.7, 19.0),  # second
        Leg(8.7, 11.9, 26.0),  # third
        Leg(14.0, 17.2, 9.0, ramp=0.8),  # brake hard
        Leg(33.5, 36.8, 18.0),
        Leg(53.0, 58.0, 0.0, ramp=1.0),
    ),
    shifts=(
        Shift(5.4, 2),
        Shift(8.7, 3),
        Shift(12.0, 4),
        Shift(15.9, 3),
        Shift(16.9, 2),
        Shift(36.9, 3),
        Shift(55.8, 2),
        Shift(57.0, 1),
    ),
    turns=(
        Feature(18.0, 22.5, 1.5),
        Feature(23.5, 28.0, -1.5),
        Feature(47.0, 52.5, 1.0),
    ),
    slopes=(Feature(37.0, 42.0, 4.2, share=0.5), Feature(42.0, 47.0, -4.2, share=0.5)),
    banks=(Feature(47.0, 52.5, 0.12),),
    humps=(30.0, 32.0),
)

_STILL = Script(description="parked for a minute, engine idling", duration=60.0)

_TURNS = Script(
    description="right and left turns on a flat road, a full loop among them",
    duration=50.0,
    legs=(Leg(2.0, 6.0, 10.0), Leg(42.5, 46.0, 0.0, ramp=0.8)),
    shifts=(Shift(6.2, 2), Shift(45.0, 1)),
    turns=(
        Feature(7.0, 11.0, 1.2),
        Feature(12.0, 19.5, -2.4),
        Feature(20.5, 34.0, 4.6),
        Feature(35.0, 40.5, -1.7),
    ),
)

_BRAKE = Script(
    description="straight and flat: accelerate, cruise, brake hard, stop",
    duration=28.0,
    legs=(
        Leg(2.0, 5.4, 10.0),
        Leg(5.4, 8.7, 19.0),
        Leg(8.7, 11.9, 26.0),
        Leg(11.9, 14.9, 30.0),
        Leg(18.0, 23.0, 0.0, ramp=0.8),
    ),
    shifts=(
        Shift(5.4, 2),
        Shift(8.7, 3),
        Shift(11.9, 4),
        Shift(15.2, 5),
        Shift(19.8, 4),
        Shift(20.7, 3),
        Shift(21.5, 2),
        Shift(22.3, 1),
    ),
)

SCRIPTS: Mapping[str, Script] = {"tour": _TOUR, "still": _STILL, "turns": _TURNS, "brake": _BRAKE}
"""The scripts by name."""
