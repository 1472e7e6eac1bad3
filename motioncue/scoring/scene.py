"""A drive on a platform, ready for any number of cueings: what is sent, what is made of it, what is felt."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY, MOTION_DTYPE
from motioncue.cueing.preview import preview as known
from motioncue.cueing.senses import RATE_HZ, Array, banded, felt_by_pose, felt_in_car, low_passed, sampled, up
from motioncue.cueing.settings import Cueing
from motioncue.engine.assembly import check_pose, cue, limits_of_output, load_profile_on, period_ns_of
from motioncue.errors import ConfigError
from motioncue.output.actuation import OutputChain
from motioncue.platforms.build import CHANNELS, Built, build, ranges, stage_of
from motioncue.platforms.settings import ActuatorBounds, Platform
from motioncue.profile.profile import Profile, platform_table
from motioncue.recording.recording import at_ticks
from motioncue.safety.limiter import OutputLimits
from motioncue.scoring import optimum
from motioncue.scoring.quality import Felt, Sickness, felt_of, rms, sickness


def sent(profile: Profile, cues: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return the positions that the actuators of a profile's platform are sent for cues."""
    if profile.platform is None:
        raise ConfigError("platform: missing, allowed is one in the profile")
    stage = stage_of(profile.platform, period_ns_of(profile), planned=profile.cueing.planned)
    chain = OutputChain([OutputLimits(limits_of_output(profile, profile.outputs[0])), stage])
    return np.ascontiguousarray(chain.process(cues)["actuators"][:, : len(stage.names)])


GROUPS = ((0, 4), (1, 3), (2,), (5,))  # channels whose gains belong together: a tilt stands for acceleration
SHORTEST_S, LONGEST_S = 3.0, 3600.0
FEWEST = 30  # frames of a drive
EDGE_S = 0.2
FULL = 1.0 + 1e-9  # use of a bound up to which it is kept, for rounding
AIM = 1.0 - 5e-7  # use of the nearest bound to which a cue is turned down
INFINITE = 1e6  # use that stands for a pose out of reach


def on_platform(
    profile: Profile | str | Path, platform: Platform | Mapping[str, Any] | str | Path | None = None
) -> Profile:
    """Return a profile, with another platform if one is given."""
    if not isinstance(profile, Profile):
        return load_profile_on(profile, platform)
    return profile if platform is None else msgspec.structs.replace(profile, platform=platform_table(platform))


def with_platform(
    profile: Profile | str | Path, platform: Platform | Mapping[str, Any] | str | Path | None = None
) -> Profile:
    """Return a profile whose cue is a pose for its platform."""
    profile = on_platform(profile, platform)
    if profile.platform is None:
        name = profile.name or "the profile"
        raise ConfigError(f"platform: missing in {name}, allowed is one there, or one beside it (--platform NAME)")
    check_pose(profile)
    return profile


class Fitted(NamedTuple):
    """How the poses of a cue fit a platform."""

    shares: Array
    """Displacement, speed, acceleration, as shares of what the platform has along each channel alone, shape (3, 6); NaN
    where no actuator moves it."""
    factors: Array
    """By channel, the factor with which the cue fits: at most 1, and 0 where no actuator moves it."""
    use: float
    """Largest share of the platform's travel, speed or acceleration; above 1 the cue is that many times too large."""


class Scene:
    """A drive on a platform, ready for any number of cueings."""

    def __init__(self, profile: Profile, motion: npt.NDArray[np.void]) -> None:
        assert profile.platform is not None
        self.profile = profile
        self.rate_hz = 1e9 / period_ns_of(profile)
        self.ticks = _ticks(motion, profile)  # MOTION_DTYPE: what the algorithm reads at each tick
        self.built = build(profile.platform)
        self._truth = _between(motion, len(self.ticks), self.rate_hz)
        self.car = felt_of(felt_in_car(self._truth), self.rate_hz)
        self.still = rms(self.car.told)  # what is missed on a platform at rest, by sense [thresholds]
        if not np.sqrt(np.mean(self.car.told**2)) > 1e-3:
            raise ConfigError("motion: found a drive on which nothing is felt, allowed is one with accelerations")
        slopes = optimum.slopes_of(self.built, np.zeros((1, 6)))[0]
        self._limits = _limits(self.built, slopes)
        # An actuator that moves several channels makes their limits depend on one another.
        self._shared = bool(((np.abs(slopes) > optimum.LEAST).sum(axis=1) > 1).any())
        self._holds = np.linalg.matrix_rank(slopes) == 6  # any pose in reach is one that the platform makes

    def cues(self, cueing: Cueing, preview: bool = False) -> npt.NDArray[np.void]:
        """Return the cues of an algorithm, limited as the profile says."""
        profile = msgspec.structs.replace(self.profile, cueing=cueing)
        if preview:
            return cue(profile, self._truth, ahead=known(self._truth, self.rate_hz))
        return cue(profile, self.ticks)

    def fitted(self, asked: Array) -> "Fitted":
        """Return how poses fit the platform."""
        shares = _shares(asked, self.rate_hz, *self._limits)
        moved = (~np.isnan(shares).all(axis=0)).astype(float)
        apart = moved.copy()
        for group in GROUPS:
            apart[list(group)] /= np.nanmax([1.0, *shares[:, group].ravel()])
        left, most = _largest(lambda share: float(np.max(self.use(share * apart * asked))))
        factors, use = left * apart, max(float(np.nanmax(shares)), most)
        if self._shared and not (left * apart == moved).all():
            # Legs may have more along channels that move together than along each alone.
            together, use = _largest(lambda share: float(np.max(self.use(share * moved * asked))))
            factors = max(factors, together * moved, key=lambda each: float(np.prod(each[moved > 0])))
        least = float(factors[moved > 0].min())
        return Fitted(shares, factors, use if least == 1.0 else 1.0 / least)

    def use(self, poses: Array) -> Array:
        """Return the use of each actuator's travel, speed and acceleration."""
        places = self.built.kinematics.inverse(poses)
        if not np.isfinite(places).all():
            return np.full((3, places.shape[1]), np.inf)
        bounds = ActuatorBounds.columns(self.built.bounds)
        neutral = np.array(self.built.neutral)
        low, high = bounds.low - neutral, bounds.high - neutral
        return _shares(places - neutral, self.rate_hz, low, high, bounds.speed, bounds.acceleration)

    def made(self, poses: Array) -> Array:
        """Return the poses that the platform makes of these, which its actuators reach."""
        return poses if self._holds else self.built.kinematics.forward(self.built.kinematics.inverse(poses))

    def positions(self, cues: npt.NDArray[np.void]) -> Array:
        """Return where the actuators are that keep their bounds, without their lag."""
        assert self.profile.platform is not None
        table = msgspec.structs.replace(self.profile.platform, lag_s=None, lag_damping=None)
        return sent(msgspec.structs.replace(self.profile, platform=table), cues)

    def stopped(self, cues: npt.NDArray[np.void]) -> Array:
        """Return the poses that leave the platform."""
        poses: Array = self.built.kinematics.forward(self.positions(cues))
        return poses

    def felt(self, poses: Array) -> Felt:
        """Return what is felt on the platform."""
        return felt_of(felt_by_pose(poses, self.rate_hz), self.rate_hz)

    def sickness(self, poses: Array | None = None) -> Sickness:
        """Return how sick the platform makes whom these poses move; without them, the car."""
        roll, pitch = (self._truth["roll"], self._truth["pitch"]) if poses is None else poses[:, 3:5].T
        felt = self.car if poses is None else self.felt(poses)
        force = sampled(felt.slow, self.rate_hz) + np.array([0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0])
        return sickness(force[:, :3], force[:, 3:], banded(up(roll, pitch), self.rate_hz), RATE_HZ)

    def errors(self, felt: Felt) -> Array:
        """Return the root mean square of the perceived error, by sense, shape (6,) [thresholds]."""
        return rms(self.car.told - felt.told)


def poses_of(cues: npt.NDArray[np.void]) -> Array:
    """Return the poses that cues ask for, shape (n, 6)."""
    return np.column_stack([cues[channel] for channel in CHANNELS])


def _ticks(motion: npt.NDArray[np.void], profile: Profile) -> npt.NDArray[np.void]:
    """Return what the ticks read of a drive; refuse one that cannot be scored."""
    motion = np.ascontiguousarray(motion)
    if motion.dtype != MOTION_DTYPE or motion.ndim != 1:
        raise ConfigError(f"motion: found {motion.dtype} of shape {motion.shape}, allowed is MOTION_DTYPE, shape (n,)")
    seconds = 1e-9 * float(motion["time"][-1] - motion["time"][0]) if len(motion) else 0.0
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ConfigError(
            f"motion: found {len(motion)} frames of {seconds:.3g} s, "
            f"allowed are {SHORTEST_S:g} to {LONGEST_S:g} s by their `time`"
        )
    if len(motion) < FEWEST:
        raise ConfigError(f"motion: found {len(motion)} frames in {seconds:.3g} s, allowed are {FEWEST} or more")
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate"):
        if not np.isfinite(motion[name]).all():
            row = int(np.argmin(np.isfinite(motion[name])))
            raise ConfigError(f"motion: found {motion[name][row]} as {name} of frame {row}, allowed are finite numbers")
    if (np.diff(motion["time"]) < 0).any():
        raise ConfigError("motion: found times that go back, allowed are frames in order of time")
    return at_ticks(motion, profile.rate_hz, profile.bridge)


def _between(motion: npt.NDArray[np.void], ticks: int, rate_hz: float) -> npt.NDArray[np.void]:
    """Return the car's motion at the ticks, by straight lines between frames: the truth, without delay."""
    time = 1e-9 * (motion["time"] - motion["time"][0])
    at = np.arange(ticks) / rate_hz
    between = np.zeros(ticks, MOTION_DTYPE)
    for name in ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate"):
        values = np.unwrap(motion[name]) if name in ("roll", "pitch") else motion[name]
        between[name] = np.interp(at, time, values)
    return between


def _limits(built: Built, slopes: Array) -> tuple[Array, Array, Array, Array]:
    """Return lowest and highest value, speed and acceleration of each channel alone; NaN where no actuator moves it."""
    slopes = np.abs(slopes)
    moved = slopes.max(axis=0) > optimum.LEAST
    ends = np.array([[np.nan if end is None else end for end in pair] for pair in ranges(built).values()])
    bounds = ActuatorBounds.columns(built.bounds)
    with np.errstate(divide="ignore"):
        speed, acceleration = (np.min(most[:, None] / slopes, axis=0) for most in (bounds.speed, bounds.acceleration))
    return tuple(np.where(moved, each, np.nan) for each in (*ends.T, speed, acceleration))  # type: ignore[return-value]


def _shares(values: Array, rate_hz: float, low: Array, high: Array, speed: Array, acceleration: Array) -> Array:
    """Return the largest displacement, speed and acceleration of each column as shares of the bounds, shape (3, k).

    Speed and acceleration are those below 3 Hz, what is scored, but no more than is asked: the filter swings beyond a
    speed that is kept for a while.  That an actuator takes a corner of one tick a little later is no reason to turn a
    cue down.
    """
    slow = low_passed(values, rate_hz)
    edge = int(EDGE_S * rate_hz)  # a zero-phase filter is not exact there
    ways = [np.gradient(each, 1.0 / rate_hz, axis=0) for each in (values, slow)]
    bends = [np.diff(each, 2, axis=0) * rate_hz**2 for each in (values, slow)]
    rates, seconds = (np.min([np.abs(each[edge:-edge]).max(axis=0) for each in both], axis=0) for both in (ways, bends))
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.fmax(values.max(axis=0) / high, values.min(axis=0) / low)
        return np.array([np.maximum(place, 0.0), rates / speed, seconds / acceleration])


def _largest(use: Callable[[float], float]) -> tuple[float, float]:
    """Return the largest share, 0 to 1, whose use is at most 1, to 1e-6, and the use of all; it grows from 0."""
    from scipy import optimize

    known = {0.0: 0.0, 1.0: use(1.0)}
    if known[1.0] <= FULL:
        return 1.0, known[1.0]

    def over(share: float) -> float:
        if share not in known:
            known[share] = use(share)
        return min(known[share], INFINITE) - AIM

    return float(optimize.brentq(over, 0.0, 1.0, xtol=1e-8)), known[1.0]
