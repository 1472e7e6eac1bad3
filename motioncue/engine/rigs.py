"""Many rigs in one process, stepped by one call."""

from collections.abc import Sequence
from pathlib import Path

from motioncue.engine.assembly import algorithm_of, chain_of, limits_of, load_profile
from motioncue.engine.batch import Batch
from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile

__all__ = ["Rigs"]


class Rigs(Batch):
    """Rigs that are stepped together, each with its own profile.

    Parameters
    ----------
    profiles : Profile, str, Path, or sequence of these
        One profile for all, or one per rig; profiles, or what `load_profile` takes.
    n : int, optional
        Number of rigs, if one profile is given for all.

    Raises
    ------
    ConfigError
        If a profile is refused, if there is no rig, or if `n` is given with several profiles.

    See Also
    --------
    motioncue.cue : One rig over a whole recording.

    Notes
    -----
    Bit for bit what `motioncue.cue` computes for each rig (cueing and limits) and `motioncue.actuate` for its first
    output; fade, supervisor and packets are left to the engine.
    A motion that is not finite is not refused as `motioncue.bind` does: channels of that rig's cue that depend on it,
    soon nearly all, are not finite until it is reset.  Its actuators keep these channels of the pose where they were
    and follow the others, within all bounds; other rigs do not notice.  To use the rig again, set its `parked`, step
    for ``rise_s``, reset it, and clear `parked`.
    Neighbors whose algorithm has a form for lanes are computed side by side: sort mixed profiles by algorithm.
    Real time: `step` does not allocate as long as it is given the same arrays, and cannot fail.

    Examples
    --------
    >>> import numpy as np, motioncue
    >>> rigs = motioncue.Rigs("ccd-dk-washout", 64)
    >>> motion, cue = np.zeros(64, motioncue.MOTION_DTYPE), np.zeros(64, motioncue.CUE_DTYPE)
    >>> motion["surge"] = 1.0
    >>> rigs.step(motion, cue)
    >>> bool((cue["surge"] > 0).all())
    True
    >>> rigs.reset([3])
    """

    def __init__(self, profiles: Profile | str | Path | Sequence[Profile | str | Path], n: int | None = None) -> None:
        if isinstance(profiles, Profile | str | Path):
            profiles = [profiles] * (1 if n is None else n)
        elif n is not None:
            raise ConfigError(f"n: found {n} with a sequence of profiles, allowed is one profile for all")
        if not profiles:
            raise ConfigError("profiles: found none, allowed is one or more")
        loaded = [profile if isinstance(profile, Profile) else load_profile(profile) for profile in profiles]
        super().__init__(
            [algorithm_of(profile) for profile in loaded],
            [limits_of(profile) for profile in loaded],
            [chain_of(profile, profile.outputs[0]) for profile in loaded],
        )
