"""The single place where changes of settings are checked and designed while the engine runs."""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from motioncue.engine.assembly import check_pose, load_profile, settings_of
from motioncue.engine.fitting import gains_for
from motioncue.engine.leaving import check_leaving
from motioncue.engine.retune import Settings
from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile, differences, overridden

__all__ = ["Change", "Tuner", "changed", "fixed_because", "refuse_fixed"]

Change: TypeAlias = Profile | str | Path | Mapping[str, Any] | Iterable[str]
"""A profile, its name or path, or overrides: ``"KEY=VALUE"``, several of these, or a mapping."""

LIVE = (
    "cueing",
    "limits",
    "watch",
    "supervisor",
    "source.bridge",
    "source.head_m",
    "output.limits",
    *(
        f"platform.{key}"
        for key in ("preset", "description", "source", "gives_way", "park", "rise_s", "lag_s", "lag_damping")
    ),
    *(f"platform.{key}" for key in ("leg", "crank", "post", "axes.travel", "axes.turn")),
    "description",
    "name",
)
"""Tables and keys of a profile that may change while it runs; those of every output and of every axis."""

CONNECTED = "how the systems are connected"

REASONS = {
    "platform": "the platform's geometry",
    "record": "what is recorded",
    **dict.fromkeys(("output.rate_hz", "output.spin_us", "output.keep_awake"), "how the sending thread runs"),
    **dict.fromkeys(("output.core", "output.lock_memory"), "how the sending thread runs"),
    **dict.fromkeys(("source.acceleration", "source.derivative_delay_s"), "how packets become motion"),
    **dict.fromkeys(("source.options", "source.packet"), "how packets become motion"),
}
"""Why keys are fixed while it runs; others by `CONNECTED`."""

RANGES = ("min_m", "max_m", "min_deg", "max_deg")


def refuse_fixed(old: Profile, new: Profile) -> None:
    """Refuse a change of settings that are fixed while the engine runs."""
    for key, (allowed, found) in differences(old, new).items():
        turned = key.startswith("platform.axes[") and (allowed is None or found is None)  # from travel to turn
        if turned or fixed_because(old, key):
            words = ["nothing" if value is None else repr(value) for value in (found, allowed)]
            raise ConfigError(f"{key}: found {words[0]}, allowed is {words[1]} while it runs")


def fixed_because(profile: Profile, key: str) -> str:
    """Return why a key is fixed while the engine runs; empty if it is not."""
    place = re.sub(r"\[\d+\]", "", key)
    if not any(place == live or place.startswith(f"{live}.") for live in LIVE):
        return next((why for key, why in REASONS.items() if place == key or place.startswith(f"{key}.")), CONNECTED)
    shares = any(output.packet is not None and output.packet.uses_ranges for output in profile.outputs)
    if shares and place.startswith("platform.") and place.endswith(RANGES):
        return "the numbers in the output's packet depend on this range"
    return ""


def changed(profile: Profile, change: Mapping[str, Any] | Iterable[str]) -> Profile:
    """Return a profile with some values changed; a preset that becomes ``auto`` is scaled."""
    was_auto = getattr(profile.cueing, "preset", None) == "auto"
    return overridden(profile, change, None if was_auto else gains_for)


class Tuner:
    """Turns requested changes of a profile into settings, one after the other.

    Attributes
    ----------
    profile : Profile
        The profile requested last.
    settings : Settings
        The settings designed from it.
    """

    def __init__(self, profile: Profile, adapt: Callable[[Profile], Profile] = lambda profile: profile) -> None:
        self.profile = profile
        self._adapt = adapt
        self.settings = settings_of(profile)
        self._one_by_one = threading.Lock()

    def __call__(self, change: Change, post: Callable[[Settings], Any]) -> None:
        """Check a change, design its settings and pass them on."""
        with self._one_by_one:
            profile = self._changed(change)
            refuse_fixed(self.profile, profile)
            check_pose(profile)
            check_leaving(profile)
            settings = settings_of(profile, self.settings)
            post(settings)
            self.profile, self.settings = profile, settings

    def _changed(self, change: Change) -> Profile:
        """Return the profile that results from a change; raise ConfigError if it is not valid by itself."""
        if isinstance(change, str) and "=" in change:
            return changed(self.profile, [change])
        if isinstance(change, str | Path):
            change = load_profile(change)
        return self._adapt(change) if isinstance(change, Profile) else changed(self.profile, change)
