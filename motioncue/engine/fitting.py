"""Whether an algorithm's poses fit the profile's platform on the standard drives, and what would."""

import math
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import cueing
from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.table import ChannelWorkspace
from motioncue.cueing.senses import BAND_HZ, CANAL, OTOLITH, THRESHOLDS, felt_by_pose, felt_in_car
from motioncue.cueing.settings import Cueing
from motioncue.errors import ConfigError
from motioncue.output import packet as custom
from motioncue.output.actuation import OutputChain
from motioncue.platforms import build as platforms
from motioncue.platforms.build import CHANNELS
from motioncue.platforms.settings import ActuatorBounds, Platform
from motioncue.profile.profile import Limits, Profile

__all__ = [
    "CHANNELS_KEPT",
    "DRIVES",
    "RATE_HZ",
    "Fit",
    "against_rest",
    "fit",
    "gains_for",
    "standard_motion",
    "told_of_rest",
    "unlimited",
]

DRIVES: Mapping[str, int] = {"tour": 1550, "turns": 1250, "brake": 700}
"""The standard drives and their numbers of rows; they are drives of the virtual car."""

CHANNELS_KEPT = ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate")
"""Channels of a standard drive; the heading is left out, because no pose follows it."""

KEPT_HZ = 25.0
KEPT_TYPE = "<f2"  # half precision: a three-hundredth of a percent of the range of a channel does not matter here

RATE_HZ = 100.0  # at which the algorithm is run over them
HALVINGS = 10
TRAVEL = 0.7  # share of a range that a displacement uses by itself: together less is in reach than alone
LEANS = ("roll", "pitch")
LEAST_SHARE = 0.1  # of the room for travel and yaw, before leans give way
ROUNDED = 1.001  # times a bound that still keep it: plans ride on bounds, at another rate
ALIKE = 0.99  # share of an error from which on another one is no less
HARDLY = 0.9  # share of what is missed at rest from which a platform shows next to nothing
STRONGEST_HZ = 5.0  # cutoff frequency up to which an advice is looked for

Array = npt.NDArray[np.float64]


class Fit(NamedTuple):
    """How the poses of an algorithm on the standard drives fit a platform."""

    needs: dict[str, tuple[float, float]]
    """Lowest and highest value of each channel of the pose [m, rad]."""
    ranges: dict[str, tuple[float | None, float | None]]
    """What the platform has along each channel alone [m, rad]; None if there is no end.  Empty without a platform."""
    idle: tuple[str, ...]
    """Channels of the pose along which nothing moves the platform."""
    beyond: float
    """Share of the time in which a pose is out of reach."""
    too_slow: float
    """Share of the time in which an actuator is asked for more speed or acceleration than it has."""
    gains: dict[str, float]
    """Gains with which the platform follows every pose, by key of the profile; empty if none are needed or found."""
    cutoffs: dict[str, float]
    """Cutoff frequencies with which it does [Hz], by key of the profile."""
    meant: bool = False
    """Whether the preset lets a pose be out of reach: see `gains_for`."""

    def lines(self) -> list[str]:
        """Return it in words: at most two lines, none without a platform."""
        lines = []
        would = [f"{key} = {value:.2g}" for key, value in self.gains.items()]
        other = [f"{key} = {value:.2g}" for key, value in self.cutoffs.items()]
        advice = "; or ".join(", ".join(values) for values in (would, other) if values)
        if self.meant:
            advice = "the preset lets it stop there, because less of the drive would be felt with smaller gains"
        elif advice:
            advice += " would fit"
        advice = f": {advice}" if advice else ""
        too_much = "an actuator is asked for more speed or acceleration than it has"
        too_slow = f"{100 * self.too_slow:.2g} % of the time {too_much}"
        if self.ranges and self.beyond > 0.0:
            said = [self._said(channel) for channel in CHANNELS if self._exceeds(channel)]
            if not said:
                said = ["each channel alone is within reach, all together are not"]
            if self.too_slow > 0.0:
                said.append(too_slow)
            lines.append(
                f"on the standard drives the pose is out of reach {100 * self.beyond:.3g} % of the time: "
                f"{', '.join(said)}{advice}"
            )
        elif self.ranges and self.too_slow > 0.0:
            lines.append(f"on the standard drives every pose is within the platform's reach, but {too_slow}{advice}")
        elif self.ranges:
            lines.append(f"on the standard drives every pose is within the platform's reach; {self._most_used()}")
        if self.idle and self.ranges:
            lines.append(f"the platform has no actuator for {_words(self.idle)}: that part of the pose is not shown")
        return lines

    def _exceeds(self, channel: str) -> bool:
        low, high = self.ranges[channel]
        return (low is not None and self.needs[channel][0] < low) or (
            high is not None and self.needs[channel][1] > high
        )

    def _said(self, channel: str) -> str:
        """Return what a channel needs and what the platform has, on the side on which it lacks more."""
        sides = [
            (abs(need), abs(end)) for need, end in zip(self.needs[channel], self.ranges[channel], strict=True) if end
        ]
        need, has = max(sides, key=lambda side: side[0] / side[1])
        if channel.endswith("_displacement"):
            return f"{_words((channel,))} needs {need:.2f} m, the platform has {has:.2f}"
        return f"{channel} needs {np.degrees(need):.1f} deg, the platform has {np.degrees(has):.1f}"

    def _most_used(self) -> str:
        shares = {
            channel: max(abs(need / end) for need, end in zip(self.needs[channel], ends, strict=True) if end)
            for channel, ends in self.ranges.items()
            if any(ends) and channel not in self.idle
        }
        if not shares:
            return "none has an end"
        most = max(shares, key=lambda channel: shares[channel])
        if shares[most] > 1.0:  # legs that lean reach farther than from neutral
            return f"along {_words((most,))} beyond the range that it has alone, where the rest of the pose makes room"
        return f"they use up to {100 * shares[most]:.0f} % of a range ({_words((most,))})"


def _words(channels: tuple[str, ...]) -> str:
    return ", ".join(channel.removesuffix("_displacement") for channel in channels)


@cache
def standard_motion() -> tuple[npt.NDArray[np.void], ...]:
    """Return the standard drives as the algorithm reads them: arrays of MOTION_DTYPE, 100 rows a second."""
    data = (resources.files("motioncue") / "data" / "standard_drives.bin").read_bytes()
    rows = np.frombuffer(data, KEPT_TYPE).reshape(-1, len(CHANNELS_KEPT)).astype(np.float64)
    drives = []
    for kept in np.split(rows, np.cumsum(list(DRIVES.values()))[:-1]):
        at = np.arange(len(kept)) / KEPT_HZ
        time = np.arange(round(at[-1] * RATE_HZ) + 1) / RATE_HZ
        motion = np.zeros(len(time), MOTION_DTYPE)
        for name, values in zip(CHANNELS_KEPT, kept.T, strict=True):
            motion[name] = np.interp(time, at, values)
        drives.append(motion)
    return tuple(drives)


@lru_cache(maxsize=1)  # asked for the same several times in a row, and plans take a while
def cues_of(settings: Cueing, platform: Platform | None) -> list[npt.NDArray[np.void]]:
    """Return the cues of an algorithm on each standard drive, from rest."""
    return [cueing.design(settings, RATE_HZ, platform).process(motion) for motion in standard_motion()]


def poses_of(settings: Cueing, platform: Platform | None) -> Array:
    """Return the poses of an algorithm on all standard drives: shape (n, 6)."""
    cues = np.concatenate(cues_of(settings, platform))
    return np.stack([cues[channel] for channel in CHANNELS], axis=1)


class _Reach:
    """What a platform reaches: the poses at which every actuator is within its range."""

    def __init__(self, profile: Profile) -> None:
        assert profile.platform is not None
        self.platform = profile.platform
        self._built = platforms.build(profile.platform)
        self._bounds = ActuatorBounds.columns(self._built.bounds)
        self.ranges = platforms.ranges(self._built)
        held = np.abs(self._built.kinematics.jacobian(np.zeros((1, 6)))[0]).max(axis=0) > 1e-9
        self.idle = tuple(channel for channel, moved in zip(CHANNELS, held, strict=True) if not moved)

    def beyond(self, poses: Array) -> float:
        """Return the share of poses that are out of reach."""
        at = self._built.kinematics.inverse(poses, held=True)
        return float(1.0 - ((self._bounds.low <= at) & (at <= self._bounds.high)).all(axis=1).mean())

    def too_slow(self, settings: Cueing) -> float:
        """Return the share of time in which settings ask an actuator for more speed or acceleration than it has."""
        found = []
        for cues in cues_of(settings, self.platform):
            at = self._built.kinematics.inverse(np.stack([cues[channel] for channel in CHANNELS], axis=1))
            speeds = RATE_HZ * np.diff(at, axis=0)
            within = (np.abs(speeds) <= ROUNDED * self._bounds.speed)[1:]
            within &= np.abs(RATE_HZ * np.diff(speeds, axis=0)) <= ROUNDED * self._bounds.acceleration
            found.append(~within.all(axis=1))
        return float(np.concatenate(found).mean())

    def follows(self, settings: Cueing) -> bool:
        """Say whether the platform does what settings ask for."""
        return self.beyond(poses_of(settings, self.platform)) == 0.0 == self.too_slow(settings)

    def room(self) -> dict[str, ChannelWorkspace]:
        """Return what the platform has along each channel of the pose alone."""
        slopes = np.abs(self._built.kinematics.jacobian(np.zeros((1, 6)))[0])
        with np.errstate(divide="ignore"):
            speeds = np.min(self._bounds.speed[:, None] / slopes, axis=0)
        return {
            channel: ChannelWorkspace(
                0.0 if channel in self.idle else min((abs(end) for end in ends if end is not None), default=math.inf),
                float(speed),
            )
            for (channel, ends), speed in zip(self.ranges.items(), speeds, strict=True)
        }

    def short(self, poses: Array) -> dict[str, float]:
        """Return, for each channel that needs more than its own range, the share of it that fits."""
        shares = {}
        for channel, values in zip(CHANNELS, poses.T, strict=True):
            low, high = self.ranges[channel]
            worst = max(
                values.min() / low if low else 0.0,
                values.max() / high if high else 0.0,
            )
            if worst > 1.0:
                shares[channel] = 1.0 / float(worst)
        return shares


def fit(profile: Profile) -> Fit | None:
    """Return how the poses of a profile's algorithm fit its platform; None if its cue is no pose.

    Every advice has been tried: with these gains, or these cutoff frequencies, the platform follows every pose of the
    standard drives.
    """
    if not profile.cueing.poses:
        return None
    try:
        poses = poses_of(profile.cueing, profile.platform)
    except ConfigError:  # a frequency that needs a higher rate
        return None
    needs = {
        channel: (float(values.min()), float(values.max())) for channel, values in zip(CHANNELS, poses.T, strict=True)
    }
    if profile.platform is None:
        return Fit(needs, {}, (), 0.0, 0.0, {}, {})
    reach = _Reach(profile)
    beyond, too_slow = reach.beyond(poses), reach.too_slow(profile.cueing)
    auto = getattr(profile.cueing, "preset", None) == "auto"
    meant = auto and (_tilts_only(reach) or profile.cueing.suited(reach.room()) is not None)
    advised = (beyond or too_slow) and not meant and profile.cueing.moves
    gains = _gains(profile.cueing, reach, poses) if advised else {}
    cutoffs = _cutoffs(profile.cueing, reach, poses) if advised else {}
    return Fit(
        needs,
        reach.ranges,
        reach.idle,
        beyond,
        too_slow,
        {f"cueing.{axis}.gain": value for axis, value in gains.items()},
        {f"cueing.{axis}.cutoff_hz": value for axis, value in cutoffs.items()},
        meant,
    )


def error_beside_rest(settings: Cueing, platform: Platform) -> float:
    """Return the perceived error of what a platform does on the standard drives, in errors at rest.

    By spectra, so at once and in the plain install; above 1 is worse than no motion.
    """
    built = platforms.build(platform)
    chain = OutputChain([platforms.stage_of(platform, round(1e9 / RATE_HZ), planned=settings.planned)])
    missed = at_rest = 0.0
    for motion, cues in zip(standard_motion(), cues_of(settings, platform), strict=True):
        chain.reset()
        places = chain.process(cues)["actuators"][:, : len(built.names)]
        car = felt_in_car(motion)
        s = 2j * np.pi * np.fft.rfftfreq(len(car), 1.0 / RATE_HZ)[:, None]
        organs = [np.polyval(of[0], s) / np.polyval(of[1], s) for of in 3 * (OTOLITH,) + 3 * (CANAL,)]
        share = np.abs(np.hstack(organs)) / THRESHOLDS / (1.0 + (np.abs(s) / (2.0 * np.pi * BAND_HZ)) ** 4)
        felt = felt_by_pose(built.kinematics.forward(np.ascontiguousarray(places)), RATE_HZ)
        missed += float(np.sum((share * np.abs(np.fft.rfft(car - felt, axis=0))) ** 2))
        at_rest += float(np.sum((share * np.abs(np.fft.rfft(car, axis=0))) ** 2))
    return float(np.sqrt(missed / at_rest))


def against_rest(profile: Profile) -> float | None:
    """Return `error_beside_rest` of a profile; None without a platform or a pose."""
    if profile.platform is None or not profile.cueing.poses:
        return None
    return error_beside_rest(profile.cueing, profile.platform)


def told_of_rest(share: float) -> tuple[bool, str]:
    """Return whether what `against_rest` found is a warning, and say it."""
    found = f"on the standard drives the platform takes away {100 * (1 - share):.0f} % of what is missed at rest"
    if share < HARDLY:
        return False, found
    if share < 1.0:
        found += ": hardly better than no motion"
    else:
        found = (
            "on the standard drives the platform would be felt more wrongly than one that stands still "
            f"({share:.2f} times what is missed at rest)"
        )
    return True, f'{found}; cueing.algorithm = "predictive" or cueing.preset = "auto" takes what the platform can do'


def unlimited(profile: Profile, found: Fit | None) -> list[str]:
    """Return a warning for each output that sends parts of a pose which nothing adapts to the platform."""
    if profile.platform is not None or profile.limits == "none":  # the engine says so itself
        return []
    lines = []
    for index, output in enumerate(profile.outputs):
        sent = custom.encoding(output.packet).reads if output.packet is not None else frozenset[str]()
        free = [
            channel
            for channel in CHANNELS
            if channel in sent
            and getattr(output.limits, channel) is None
            and getattr(profile.limits, channel) == getattr(Limits(), channel)
        ]
        if free:
            reached = "" if found is None else f"; on the standard drives they reach {_reached(found, free)}"
            lines.append(
                f"output[{index}] sends {', '.join(free)}, and neither [platform] nor [limits] says how far the "
                f"platform goes{reached}"
            )
    return lines


def _reached(found: Fit, channels: list[str]) -> str:
    most = {channel: max(map(abs, found.needs[channel])) for channel in channels}
    return ", ".join(
        f"{value:.2f} m" if channel.endswith("_displacement") else f"{np.degrees(value):.0f} deg"
        for channel, value in most.items()
    )


def gains_for(profile: Profile) -> dict[str, Any]:
    """Return gains and cutoff frequencies that suit a platform, as tables of ``cueing``.

    First the cutoff frequencies of surge, sway and heave rise until each displacement of the standard drives uses at
    most `TRAVEL` of its range.  Then gains fall until no pose is out of reach, but only on a platform that travels
    along surge or sway: a tilt out of reach takes that travel with it, and the change is felt as a jolt.  On other
    platforms, tilt that is stopped shows more of a drive than tilt that is scaled to the hardest braking.

    An algorithm that says itself what suits a platform (`CueingTable.suited`) is asked instead.  If it `gives_room`, it
    is told of less room to roll and pitch until the leans of the standard drives are within their own ranges; then of
    less room for all else until no pose is out of reach, because what lasts is felt by a lean alone.
    """
    if profile.platform is None:
        raise ConfigError("cueing.preset: found 'auto', which scales its gains to a [platform], and there is none")
    reach = _Reach(profile)
    own = profile.cueing
    known = own.suited(reach.room())
    if known is not None:
        return _with_room(own, reach) if own.gives_room else dict(known)
    suited = _with(own, "cutoff_hz", _cutoffs_of_travel(own, reach))
    if not _tilts_only(reach):
        poses = poses_of(suited, profile.platform)
        suited = _with(suited, "gain", _gains(suited, reach, poses) if reach.beyond(poses) else {})
    axes = {axis: getattr(suited, axis) for axis in _axes(own)}
    return {name: {"gain": axis.gain, "cutoff_hz": axis.cutoff_hz} for name, axis in axes.items()}


def _with_room(own: Cueing, reach: _Reach) -> dict[str, Any]:
    """Return the tables of an algorithm told of as much room as makes the poses of the standard drives fit.

    Of several sizes that it can begin with, those of the one that is then felt best, beside the values that the user
    set; a larger one asks more of the platform, and has to be better by a hundredth.
    """
    found, *larger = (_told_room(own, reach, size) for size in own.sizes)
    least = error_beside_rest(_beside_own(own, found), reach.platform) if larger else 0.0
    for tables in larger:
        error = error_beside_rest(_beside_own(own, tables), reach.platform)
        if error < ALIKE * least:
            found, least = tables, error
    return found


def _beside_own(own: Cueing, tables: Mapping[str, Any]) -> Cueing:
    """Return settings with values of some of their tables changed, but for those that are not those of a preset."""
    preset = own.presets[own.auto or ""]
    free = {
        name: {key: value for key, value in values.items() if getattr(getattr(own, name), key) == preset[name].get(key)}
        for name, values in tables.items()
    }
    return _with_tables(own, free)


def _told_room(own: Cueing, reach: _Reach, size: str) -> dict[str, Any]:
    """Return the tables of one size told of as much room as makes the poses of the standard drives fit."""
    room = reach.room()

    def told(leans: float, others: float) -> dict[str, Any]:
        shares = {channel: leans if channel in LEANS else others for channel in room}
        less = {channel: has._replace(travel=shares[channel] * has.travel) for channel, has in room.items()}
        return dict(own.suited(less, size) or {})

    def poses(leans: float, others: float) -> Array:
        return poses_of(_with_tables(own, told(leans, others)), reach.platform)

    leans = _largest(lambda share: not set(LEANS) & set(reach.short(poses(share, 1.0))))
    others = _largest(lambda share: reach.beyond(poses(leans, share)) == 0.0)
    if others < LEAST_SHARE:
        others = LEAST_SHARE
        leans = _largest(lambda share: reach.beyond(poses(share, others)) == 0.0)
    return told(leans, others)


def _with_tables(own: Cueing, tables: Mapping[str, Any]) -> Cueing:
    """Return settings with values of some of their tables changed."""
    changed = {name: msgspec.structs.replace(getattr(own, name), **values) for name, values in tables.items()}
    return msgspec.structs.replace(own, **changed)


def _tilts_only(reach: _Reach) -> bool:
    """Say whether nothing moves the platform along surge or sway."""
    return {"surge_displacement", "sway_displacement"} <= set(reach.idle)


def _cutoffs_of_travel(settings: Cueing, reach: _Reach) -> dict[str, float]:
    """Return the cutoff frequencies with which each displacement, by itself, uses at most `TRAVEL` of its range."""
    found: dict[str, float] = {}
    for place, (channel, ends) in enumerate(reach.ranges.items()):
        if not channel.endswith("_displacement") or channel in reach.idle or None in ends:
            continue
        axis = settings.moves[channel][0]
        own, low, high = getattr(settings, axis).cutoff_hz, *(TRAVEL * float(end or 0.0) for end in ends)

        def fits(cutoff_hz: float, axis: str = axis, place: int = place, low: float = low, high: float = high) -> bool:
            values = poses_of(_with(settings, "cutoff_hz", {axis: cutoff_hz}), reach.platform)[:, place]
            return bool(low <= values.min() and values.max() <= high)

        if fits(own) or not fits(STRONGEST_HZ):
            continue
        least, most = own, STRONGEST_HZ
        for _ in range(HALVINGS):
            middle = math.sqrt(least * most)
            least, most = (least, middle) if fits(middle) else (middle, most)
        found[axis] = _up(most)
    return found


def _axes(settings: Cueing, idle: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the axes of an algorithm, each once, that move other channels than the `idle` ones."""
    channels = [channel for channel in settings.moves if channel not in idle]
    return tuple(dict.fromkeys(axis for channel in channels for axis in settings.moves[channel]))


def _with(settings: Cueing, key: str, values: Mapping[str, float]) -> Cueing:
    """Return settings with a key of some axes changed."""
    return _with_tables(settings, {axis: {key: value} for axis, value in values.items()})


def _gains(settings: Cueing, reach: _Reach, poses: Array) -> dict[str, float]:
    """Return gains that fit, of the axes that have to change; empty if there are none.

    Axes that need more than their own range have their part of it.  Then either these give way further or all axes do
    until the poses fit, whichever leaves the greater product.  Axes that move only idle channels give way if that is
    not enough: a large roll, which such a platform does not show, turns part of a yaw rate into pitch.
    """
    short = reach.short(poses)
    own = {axis: getattr(settings, axis).gain for axis in _axes(settings)}
    shares = {
        axis: min(
            (short[channel] for channel, axes in settings.moves.items() if axis in axes and channel in short),
            default=1.0,
        )
        for axis in own
    }

    def given_way(axes: list[str]) -> dict[str, float]:
        def gains(strength: float) -> dict[str, float]:
            return {axis: _down(own[axis] * shares[axis] * strength) for axis in axes}

        return _most(lambda strength: _with(settings, "gain", gains(strength)), gains, reach)

    shown = _axes(settings, reach.idle)
    tried = [given_way([axis for axis in shown if shares[axis] < 1.0]), given_way(list(shown))]
    found = max(filter(None, tried), key=lambda gains: math.prod((own | gains).values()), default={})
    return found or given_way(list(own))


def _cutoffs(settings: Cueing, reach: _Reach, poses: Array) -> dict[str, float]:
    """Return cutoff frequencies that fit, of the axes that have to change; empty if there are none."""
    short = reach.short(poses)
    axes = tuple(dict.fromkeys(axes[0] for channel, axes in settings.moves.items() if channel in short))
    if not axes:
        return {}

    def cutoffs(strength: float) -> dict[str, float]:
        """From the strongest at 0 to the present ones at 1, each by its own share of the way."""
        return {
            axis: _up(STRONGEST_HZ * (getattr(settings, axis).cutoff_hz / STRONGEST_HZ) ** strength) for axis in axes
        }

    if any(getattr(settings, axis).cutoff_hz >= STRONGEST_HZ for axis in axes):
        return {}
    return _most(lambda strength: _with(settings, "cutoff_hz", cutoffs(strength)), cutoffs, reach)


def _most(
    settings: Callable[[float], Cueing], values: Callable[[float], dict[str, float]], reach: _Reach
) -> dict[str, float]:
    """Return the values of the greatest strength, 0 to 1, that fits; empty if none does."""

    def fits(strength: float) -> bool:
        return reach.follows(settings(strength))

    found = _largest(fits)
    return values(found) if found or fits(0.0) else {}


def _largest(fits: Callable[[float], bool]) -> float:
    """Return the largest value of 0 to 1 that fits, by halving; 0 if none does."""
    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _down(value: float) -> float:
    """Return a value cut to two digits, towards 0."""
    step = 10.0 ** (np.floor(np.log10(abs(value))) - 1) if value else 1.0
    return float(f"{np.trunc(value / step) * step:.2g}")


def _up(value: float) -> float:
    """Return a positive value raised to two digits."""
    step = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(f"{np.ceil(value / step - 1e-9) * step:.2g}")
