"""Changes of settings that a person is asked about first, because they could be a slip of the hand.

They are judged here, where every page and every other client comes by, and not in the page; who is sure says so.
"""

from motioncue.errors import ConfigError
from motioncue.profile.bounds import bounds_off
from motioncue.profile.profile import Profile, differences

__all__ = ["Doubtful", "doubts", "newly_off"]

FACTOR = 2.0
"""A number that becomes more than so many times its value is asked about; also one that shrinks so, but for gains."""

DAMPING = 0.3
"""A filter of second order with less damping overshoots a step by more than 37 %."""


class Doubtful(ConfigError):
    """A change that nobody has been asked about yet.

    Parameters
    ----------
    why : list of str
        What of it is asked about.
    """

    def __init__(self, why: list[str]) -> None:
        super().__init__("; ".join(why))
        self.why = why


def doubts(before: Profile, after: Profile, *, began: Profile | None = None) -> list[str]:
    """Return what of a change is asked about first; empty if nothing is.

    Asked about are another sign, a value of more than twice or less than half (a gain may become smaller), damping
    below 0.3, and bounds that are off afterwards.  Another algorithm is not compared with the one before.

    Parameters
    ----------
    before, after : Profile
        The settings in force, and the requested ones.
    began : Profile, optional
        The settings in force when the gesture began that this change belongs to: what it changes is compared with them.
    """
    began = began or before
    other = type(began.cueing) is not type(after.cueing)
    found, now = newly_off(before, after), differences(before, after)
    for key, (old, new) in differences(began, after).items():
        if key not in now or (other and key.startswith("cueing.")) or not (_number(old) and _number(new)):
            continue
        gain = key.endswith("gain")
        why = ""
        if old * new < 0.0:
            why = "the other sign, so the other way"
        elif abs(new) > FACTOR * abs(old) and (old or gain):
            why = "more than twice" if old else "from nothing"
        elif abs(new) < abs(old) / FACTOR and not gain:
            why = "less than half"
        if key.endswith("damping") and new < min(old, DAMPING):
            why = f"{why}, and " * bool(why) + f"below {DAMPING:g}, where it swings for long"
        if why:
            found.append(f"{key}: {old:g} → {new:g}, {why}".replace("-", "−"))
    return found


def newly_off(before: Profile, after: Profile) -> list[str]:
    """Return the bounds that a change puts off.

    Parameters
    ----------
    before, after : Profile
        The settings in force, and the requested ones.
    """
    off = bounds_off(before)
    return [line for line in bounds_off(after) if line not in off]


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
