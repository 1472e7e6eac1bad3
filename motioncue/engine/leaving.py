"""How long a platform takes to neutral and to its rest, and a way that is short enough when a run ends.

The way is a fade of every channel by the weight x^3 (10 - 15 x + 6 x^2), then the way down along the same curve.  Over
a distance d in a time T its largest slope is 1.875 d / T, its largest bend 10 / sqrt(3) d / T^2, and its largest third
derivative 60 d / T^3.  So each bound allows a shortest T, whatever the distance is that may have to be gone.
"""

import math
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Limits, Output, Profile, Supervisor
from motioncue.safety.settings import OF_CAR, Free, in_si

__all__ = ["LEAVE_S", "Leaving", "check_leaving", "leaving_of"]

LEAVE_S = 4.0
"""``supervisor.leave_s`` if it is not given: Windows ends a program about 5 s after its console has been closed."""

LEAST_FADE_S = 0.1  # as the key's
TURN = 0.2  # share of a fade by which one that turns half-way may come later
MARGIN = 1.1  # limiters and actuators brake a little earlier than they could
FORGOTTEN = 30.0  # lags of the actuators after which nothing is left of what compensates them
LONGEST_S = 600.0  # an end is not waited for any longer, whatever the bounds are
TICKS_S = 0.1
HALVINGS = 20


class Leaving(NamedTuple):
    """The way to rest when the system ends the run, and how long each way takes at most."""

    fade_s: float
    """Duration of the fade [s]."""
    sink_s: float
    """Duration of the way down behind it [s]."""
    leave_s: float
    """Longest time from the system's request until everything is at rest [s]."""
    stop_s: float
    """Longest time of the ordinary way [s]."""
    least_s: float
    """Shortest time that the bounds allow [s]."""
    any_fade_s: float
    """A time that is enough for the platform's actuators in a fade from any pose [s]; 0 without a platform."""
    slowest: str
    """The bounds that decide about it, with their times."""

    def late(self) -> str:
        """Return a warning if the system may not wait for it; else an empty text."""
        if self.leave_s <= LEAVE_S:
            return ""
        gives = "Windows ends a program about 5 s after its window has been closed"
        systemd = "TimeoutStopSec of a systemd unit has to be longer"
        return (
            f"when the system ends the run, the platform needs up to {self.leave_s:.1f} s to be at rest"
            f"{self.slowest}; {gives if sys.platform == 'win32' else systemd}"
        )


def leaving_of(profile: Profile) -> Leaving:
    """Return how a profile's platform comes to rest."""
    driven = any(output.packet is not None for output in profile.outputs)
    others, poses = _limits_of(profile.outputs), profile.cueing.poses
    return _leaving(profile.supervisor, profile.limits, others, profile.platform, driven, poses)


def _to_neutral_s(built: platforms.Built) -> dict[str, float]:
    """Return how long each actuator takes from its farther end to neutral [s]."""
    times = {}
    for name, neutral, each in zip(built.names, built.neutral, built.bounds, strict=True):
        most = each.speed, each.acceleration, each.jerk
        farthest = max(each.high - neutral, neutral - each.low)
        times[f"platform: {name}"] = MARGIN * (_least_s(farthest, *most) + _stop_s(*most))
    return times


def check_leaving(profile: Profile) -> None:
    """Refuse a ``supervisor.leave_s`` within which the bounds do not allow the platform to come to rest."""
    wanted = profile.supervisor.leave_s
    if wanted is None:
        return
    found = leaving_of(profile)
    if found.least_s > wanted:
        least = math.ceil(10.0 * found.least_s) / 10.0
        raise ConfigError(
            f"supervisor.leave_s: found {wanted:g}, allowed is at least {least:g} with these bounds{found.slowest}"
        )


def _limits_of(outputs: tuple[Output, ...]) -> tuple[tuple[str, tuple[float | None, ...]], ...]:
    """Return the bounds of single outputs [SI] by their keys, as something that can be remembered."""
    return tuple(
        (f"output[{index}].limits.{name}", tuple(bounds))
        for index, output in enumerate(outputs)
        for name, bounds in [*output.limits.bounds().items(), *_car_bounds(output)]
    )


def _car_bounds(output: Output) -> list[tuple[str, list[float | None]]]:
    """Return the bounds on the car's own motion that an output sends, by their names."""
    if output.packet is None or not any(each.startswith(OF_CAR) for each in output.packet.channels):
        return []
    return [(f"{OF_CAR}{name}", bounds) for name, bounds in output.limits.car_bounds().items()]


@lru_cache(maxsize=64)  # asked for at every change of a setting
def _leaving(
    supervisor: Supervisor,
    limits: Limits | Free,
    others: tuple[tuple[str, tuple[float | None, ...]], ...],
    platform: Platform | None,
    driven: bool,
    poses: bool,
) -> Leaving:
    bounds = [] if limits == "none" else [(f"limits.{name}", tuple(each)) for name, each in in_si(limits).items()]
    cue = {
        name: MARGIN * (_least_s(value, *derivatives) + _stop_s(*derivatives))
        for name, (value, *derivatives) in [*bounds, *others]
        if value is not None and (poses or "_displacement" not in name)
    }
    legs, sinks, rise_s, settle = {"": 0.0}, {"": 0.0}, 0.0, TICKS_S
    brake = 0.0  # after limits that still follow: a pose out of reach moves no faster than the actuators
    if platform is not None and (driven or poses):
        legs = _to_neutral_s(platforms.build(platform))
    if platform is not None and driven:
        built = platforms.build(platform)
        for name, neutral, parked, each in zip(
            built.names, built.neutral, platforms.parked_of(platform, built), built.bounds, strict=True
        ):
            most = each.speed, each.acceleration, each.jerk
            sinks[f"platform: {name}"] = MARGIN * _least_s(abs(neutral - parked), *most)
            brake = max(brake, MARGIN * _stop_s(*most))
        rise_s = platform.rise_s
        settle += FORGOTTEN * (platform.lag_s or 0.0)
    limited, leg, sink = (max(each.values(), default=0.0) for each in (cue, legs, sinks))

    def takes_s(fade_s: float, sink_s: float) -> float:
        """Return the longest time of a way [s]: the limits may still follow the cue while the platform sinks."""
        return TURN * max(fade_s, leg) + settle + max(limited + brake, max(fade_s, leg) + max(sink_s, sink))

    def way(share: float) -> tuple[float, float]:
        """Return the durations of fade and way down, from the shortest to the ordinary ones [s]."""
        fade, down = min(max(LEAST_FADE_S, limited, leg), supervisor.fade_s), min(sink, rise_s)
        return fade + share * (supervisor.fade_s - fade), down + share * (rise_s - down)

    least, usual = takes_s(*way(0.0)), takes_s(*way(1.0))
    wanted = max(supervisor.leave_s or LEAVE_S, least)
    share, step = 0.0, 1.0
    for _ in range(HALVINGS):
        if share + step <= 1.0 and takes_s(*way(share + step)) <= wanted:
            share += step
        step *= 0.5
    fade_s, sink_s = way(share)
    return Leaving(
        fade_s,
        max(sink_s, 1e-3),
        min(wanted, usual),
        min(usual, LONGEST_S),
        least,
        leg,
        _said(cue, "to neutral") + _said(legs, "to neutral") + _said(sinks, "down"),
    )


def _said(times: Mapping[str, float], where: str) -> str:
    """Return which bound needs longest, and how long; empty if none needs any time."""
    name = max(times, key=lambda name: times[name], default="")
    return f"; {name} needs {times[name]:.2g} s {where}" if name and times[name] >= 0.05 else ""


def _least_s(way: float, *bounds: float | None) -> float:
    """Return the shortest time of a smooth way [s], within bounds on its derivatives."""
    speed, acceleration, jerk = (*bounds, None, None, None)[:3]
    return max(
        1.875 * way / speed if speed else 0.0,
        math.sqrt(10.0 / math.sqrt(3.0) * way / acceleration) if acceleration else 0.0,
        (60.0 * way / jerk) ** (1.0 / 3.0) if jerk else 0.0,
    )


def _stop_s(*bounds: float | None) -> float:
    """Return the time in which the fastest motion within bounds on its derivatives is stopped [s]."""
    speed, acceleration, jerk = bounds
    return (speed / acceleration if speed and acceleration else 0.0) + (
        acceleration / jerk if acceleration and jerk else 0.0
    )
