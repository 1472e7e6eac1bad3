"""The platform of that name, of a profile, or of a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import platform_named
from motioncue.platforms.machine import MotionPlatform
from motioncue.platforms.settings import Axes, CrankHexapod, Hexapod, Platform, Posts, platform_presets
from motioncue.profile.profile import Profile, parse_profile, platform_from, profile_text

__all__ = ["platform", "platform_table"]


def platform_table(of: Platform | Profile | Mapping[str, Any] | str | Path) -> Platform:
    """Return the table of a platform, not yet examined."""
    if isinstance(of, Hexapod | CrankHexapod | Posts | Axes):
        return of
    if isinstance(of, Mapping):
        return platform_from(of)
    if not isinstance(of, Profile):
        name = str(of)
        if name in platform_presets():
            return platform_named(name)
        if not name.endswith(".toml"):
            raise ConfigError(f"platform: {not_among(name, platform_presets())}, and profiles in .toml files")
        of = parse_profile(profile_text(name), name=name)
    if of.platform is None:
        raise ConfigError(f"{of.name}: found no [platform]")
    return of.platform


def platform(of: Platform | Profile | Mapping[str, Any] | str | Path) -> MotionPlatform:
    """Return the kinematics of a platform: inverse, forward, Jacobian, ranges, workspace.

    Parameters
    ----------
    of : Platform, Profile, mapping, str or Path
        The name of a built-in platform, a profile or its file with a ``[platform]``, or that table itself.

    Raises
    ------
    ConfigError
        If there is no such platform, or it cannot be; names what was found and what is allowed.

    Examples
    --------
    >>> hexapod = motioncue.platform("hexapod-simona")
    >>> legs = hexapod.inverse([[0.1, 0.0, 0.0, 0.0, 0.0, 0.0]])        # 10 cm forward
    >>> hexapod.forward(legs).round(9)[0, 0]
    0.1
    >>> posts = motioncue.platform({"preset": "posts-4", "post": {"max_m": 0.05}})
    >>> posts.ranges["heave_displacement"]
    (-0.1, 0.05)
    """
    return MotionPlatform(platform_table(of))
