"""Receding horizon cueing: design from checked settings and the platform."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.channels import AHEAD_S
from motioncue.cueing.predictive.horizon import ORGANS_S, TILTS, Bounds, Cost, Program, blocks, nodes, program
from motioncue.cueing.predictive.kernel import MOST_KNOTS, MOST_ROWS
from motioncue.cueing.predictive.kernel import Predictive as PredictiveKernel
from motioncue.cueing.predictive.settings import PRESETS, Gains, Predictive, Travel, Turn, Weights, Workspace
from motioncue.cueing.senses import THRESHOLDS
from motioncue.errors import ConfigError
from motioncue.platforms.build import Built
from motioncue.platforms.kinematics import MOST_ACTUATORS, MOST_STRAIGHT, Kinematics
from motioncue.platforms.settings import ActuatorBounds

__all__ = ["design", "programs"]

Array: TypeAlias = npt.NDArray[np.float64]
Geared: TypeAlias = tuple[Kinematics, Array, Array, Array, ActuatorBounds]
Group: TypeAlias = tuple[list[int], list[int], Program]

AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
SENSES = (*AXES[:3], "roll_rate", "pitch_rate", "yaw_rate")
NUDGE = 1e-4  # for derivatives of the kinematics [m, rad]
LEAST = 1e-9  # derivative below which an actuator and a channel have nothing to do with each other
TRIED = np.array([0.02, -0.03, 0.01, 0.03, -0.02, 0.04])  # a pose at which actuators show whether they are linear
MARGIN = 0.98  # share of a range that is planned for, and of speeds and accelerations where positions are not linear
CARRIED_MARGIN = 0.95  # of legs on tables: near its end, a table leaves more to the legs
STRAIGHT_MARGIN = 0.93  # of how near to one line cranks and rods may come: from nearer, plans swing and are held back
NODES_S = (0.0, *AHEAD_S)  # for which the car's motion is foreseen
BEAT_S = 0.02  # from look to look at the past
QUICK_S, SLOW_S = 0.1, 1.0  # time constants of the means of what is felt
DOUBT = 5.0  # what has been learned counts as if only one moment in this many times the time ahead said anything new
PROOF_S = 5.0  # how far back it counts whether the lap before has proved right
SOFTNESS = 1e-6, 1e-5  # of positions and of other bounds: exceeding a hundredth costs 50 and 5
FELT_SOFT = 10.0  # weight of a sense from which bounds harden with it: else it would buy its way past them
STIFFEST = 20.0, 1000.0  # most that the platform's weights and the senses' may be of smoothness: else plans swing
MOST_LAG_S = 0.1  # of drives that is planned for: with more, too few plans on legs are found within the work
SLIDES_M, BURSTS_DEG = (0.3, 0.7), (2.3, 3.5)  # how far the seat slides, and from how much tilt on it hurries then
READIEST = 2.0  # weight of the conflict beyond which bursts open no sooner
NEVER_DEG = 180.0  # tilt that waits for a burst: nothing opens one
TRIED_WEIGHT, TRIED_GAIN, TRIED_TILT_DEG_S2 = 2.5, 1.5, 150.0  # beyond which plans on legs may swing
JERK_S = np.repeat([0.1, 1.0], 3)  # from no to full acceleration, whose smoothness is 1: turning is felt at the head


def design(settings: Predictive, rate_hz: float, platform: Built | None = None) -> PredictiveKernel:
    """Return the controller described by `settings`, ready to step at `rate_hz`."""
    bounds, geared = _bounds(settings.workspace, platform)
    period = max(1, round(rate_hz / settings.plan_rate_hz))
    lengths = blocks(max(2, round(settings.horizon_s * rate_hz / period)))
    planned = msgspec.structs.replace(settings, preset=None, gain=1.0, gains=Gains())  # these change no program
    made = programs(planned, period / rate_hz, *(_key(each) for each in bounds))
    if len(lengths) > MOST_KNOTS or sum(len(each.rows) + len(each.hessian) for *_, each in made) > MOST_ROWS:
        raise ConfigError(
            f"cueing.horizon_s: found {settings.horizon_s:g} s at {settings.plan_rate_hz:g} plans per second, "
            "allowed is a shorter one or fewer of them"
        )
    tilt = settings.tilt
    tilting = np.radians(
        [tilt.rate_limit_deg_s, tilt.hurry_deg_s, _burst_deg(settings, bounds), tilt.acceleration_limit_deg_s2]
    ).tolist()
    try:
        return PredictiveKernel(
            made,
            lengths,
            rate_hz,
            period,
            [settings.gain * getattr(settings.gains, axis) for axis in AXES],
            ORGANS_S,
            _guard(bounds, platform),
            geared,
            settings.iterations,
            _outlook(settings, rate_hz),
            (tilting[0], max(tilting[:2]), tilting[2], tilt.fast_share, tilting[3]),
            [each / max(1.0, _felt_most(settings.weights) / FELT_SOFT) ** 2 for each in SOFTNESS],
            _calm(settings, geared),
        )
    except ValueError as error:
        raise ConfigError(f"cueing.weights: the program has no unique solution: {error}") from error


def _calm(settings: Predictive, geared: Geared | None) -> bool:
    """Return whether accelerations of the pose are held to gentle changes at all times.

    Where an actuator's end is near, what is not linear makes plans swing, with weights and gains far above those that
    plans were tried with, and with a tilt that brakes in a long time.
    """
    if geared is None:
        return False
    weights, tilt = settings.weights, settings.tilt
    most = settings.gain * max(float(getattr(settings.gains, axis)) for axis in AXES)
    strong = max(_felt_most(weights), weights.travel, weights.speed, weights.effort) > TRIED_WEIGHT
    slow = tilt.acceleration_limit_deg_s2 < TRIED_TILT_DEG_S2
    return strong or slow or most > TRIED_GAIN


def _felt_most(weights: Weights) -> float:
    """Return the largest weight of what is felt."""
    return max(float(getattr(weights, name)) for name in (*SENSES, "conflict"))


def _smoothness(weights: Weights) -> float:
    """Return how much the change of acceleration counts: so much that no other makes plans swing to and fro."""
    stiff = max(weights.travel, weights.speed, weights.effort) / STIFFEST[0]
    return max(weights.smoothness, stiff, _felt_most(weights) / STIFFEST[1])


def _outlook(settings: Predictive, rate_hz: float) -> dict[str, Any]:
    """Return how the car's motion is foreseen, as the kernel takes it.

    What is expected without experience: the quick mean beyond the slow one decays with `force_decay_s` or its like, the
    slow mean with ten times that; what is felt beyond the quick mean as that mean, but of longitudinal and lateral
    force, which are steered, with `force_decay_s`.

    Moments that are nearer to each other than a look ahead repeat each other.  So the longer that is, the more of the
    past is weighed against by this prior: a share of its squares, which is the same for gentle and for hard drives.
    """
    beat = max(1, round(BEAT_S * rate_hz))
    lags = [max(1, round(time * rate_hz / beat)) for time in NODES_S]
    decays = np.array((settings.force_decay_s,) * 2 + (settings.rate_decay_s,) * 3 + (settings.yaw_decay_s,))
    times = np.array(NODES_S)[None, :, None]
    quick = np.where(np.arange(6) < 2, decays, QUICK_S)
    constants = np.stack([quick, decays, 10.0 * decays], axis=1)[:, None, :]
    beats_s = beat / rate_hz
    return {
        "learns": settings.forecast == "learned",
        "beat": beat,
        "lags": lags,
        "quick": 1.0 - np.exp(-1.0 / (QUICK_S * rate_hz)),
        "slow": 1.0 - np.exp(-1.0 / (SLOW_S * rate_hz)),
        "kept": np.exp(-beats_s / settings.memory_s),
        "remembers": settings.laps and settings.forecast == "learned",
        "proved": np.exp(-beats_s / PROOF_S),
        "proof": THRESHOLDS**2 * PROOF_S / beats_s,
        "prior": THRESHOLDS**2 * settings.memory_s / beats_s,
        "doubt": DOUBT * np.array(NODES_S) / settings.memory_s,
        "decayed": np.exp(-times / constants),
    }


def _key(values: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, np.atleast_2d(values).tolist()))


@lru_cache(maxsize=16)
def programs(settings: Predictive, step_s: float, *rows: tuple[tuple[float, ...], ...]) -> list[Group]:
    """Return the channels, the senses and the program of each group that is planned together."""
    slopes, *others = (np.array(each) for each in rows)
    bounds = Bounds(slopes, *(each[0] for each in others))
    lengths = blocks(max(2, round(settings.horizon_s / step_s)))
    weights, tilt = settings.weights, settings.tilt
    moving = _moving(bounds)
    half, speed, acceleration = _sizes(moving)
    tilting = float(np.radians(tilt.rate_limit_deg_s)), float(np.radians(tilt.acceleration_limit_deg_s2))
    acceleration[3:5] = np.minimum(acceleration[3:5], tilting[1])
    senses = np.array([getattr(weights, name) for name in SENSES])
    cost = Cost(
        senses / THRESHOLDS,
        weights.travel * moving.slopes / (0.5 * (moving.high - moving.low))[:, None],
        weights.speed / speed,
        weights.effort / acceleration,
        _smoothness(weights) * JERK_S / acceleration,
        weights.conflict / THRESHOLDS[0],
    )
    ahead = nodes(sum(lengths), step_s, NODES_S)
    found: list[Group] = []
    for channels, rows_of in _groups(bounds.slopes):
        moved = [channel for channel in channels if np.isfinite(half[channel])]
        felt = [sense for sense in channels if sense in moved or TILTS.get(sense, (-1,))[0] in moved]
        if moved:
            own = Bounds(*(each[rows_of] for each in bounds))
            try:
                one = program(moved, felt, lengths, step_s, ahead, cost, own, tilting, acceleration)
            except ValueError as error:  # of the Riccati equation: LinAlgError is one
                raise ConfigError(
                    f"cueing.weights: found such that nothing brings {AXES[moved[0]]} back to neutral, allowed is a "
                    f"larger travel ({error})"
                ) from error
            number = np.array([*rows_of, -1], np.int32)  # of the row among all
            found.append((moved, felt, one._replace(bound=number[one.bound])))
    if not found:
        raise ConfigError("cueing.workspace: found nothing that moves, allowed is one channel or more")
    return found


def _bounds(workspace: Workspace, platform: Built | None) -> tuple[Bounds, Geared | None]:
    """Return what is bounded, actuators first, and the kinematics if they are not linear."""
    rows: list[Array] = []
    limits: list[Sequence[float]] = []
    geared: Geared | None = None
    moved = np.ones(6, bool)
    if platform is not None:
        slopes, ends, geared = _actuators(platform)
        rows += list(slopes)
        limits += ends.tolist()
        moved = np.abs(slopes).max(axis=0) > 0.0
    given = workspace
    if platform is None and given == Workspace():
        given = msgspec.convert(PRESETS["medium"]["workspace"], Workspace)
    for channel, name in enumerate(AXES):
        axis = getattr(given, name)
        if axis is not None and moved[channel]:
            rows.append(np.eye(6)[channel])
            limits.append(_limits(axis))
    return Bounds(np.array(rows or [np.zeros(6)]), *np.array(limits or [(-1.0, 1.0, 1.0, 1.0, 0.0)]).T), geared


def _limits(axis: Travel | Turn) -> tuple[float, float, float, float, float]:
    """Return lowest and highest place, speed, acceleration [m or rad] and lag."""
    if isinstance(axis, Travel):
        return -MARGIN * axis.range_m, MARGIN * axis.range_m, axis.speed_m_s, axis.acceleration_m_s2, 0.0
    place, speed, acceleration = np.radians([axis.range_deg, axis.speed_deg_s, axis.acceleration_deg_s2]).tolist()
    return -MARGIN * place, MARGIN * place, speed, acceleration, 0.0


def _actuators(platform: Built) -> tuple[Array, Array, Geared | None]:
    """Return derivatives by the pose, bounds from neutral, and kinematics that are not linear."""
    cranks = np.array([kind == "crank" for kind in platform.kinematics.kinds])
    gear = np.where(cranks, np.cos(platform.neutral), 1.0)

    def places(poses: Array) -> Array:
        return np.asarray(gear * platform.kinematics.inverse(poses))

    nudges = NUDGE * np.eye(6)
    slopes = ((places(nudges) - places(-nudges)) / (2.0 * NUDGE)).T
    slopes[np.abs(slopes) < LEAST] = 0.0
    neutral, bounds = np.array(platform.neutral), ActuatorBounds.columns(platform.bounds)
    linear = np.allclose(places(TRIED[None])[0], gear * neutral + slopes @ TRIED, rtol=0.0, atol=1e-9)
    low, high = gear * (bounds.low - neutral), gear * (bounds.high - neutral)
    margin = CARRIED_MARGIN if "table" in platform.kinematics.kinds else MARGIN
    middle, half = 0.5 * (low + high), 0.5 * margin * (high - low)
    limits = (gear * (1.0 if linear else margin) * each for each in (bounds.speed, bounds.acceleration))
    lag = np.full(len(gear), min(platform.lag_s, MOST_LAG_S))
    ends = np.column_stack([middle - half, middle + half, *limits, lag])
    if cranks.all() and 2 * len(gear) <= MOST_ACTUATORS:  # how near to one line they and their rods are
        angles, turning = (each[0] for each in platform.kinematics.straightness(np.zeros((1, 6))))
        free = np.full(len(gear), np.inf)
        most = np.full(len(gear), STRAIGHT_MARGIN * MOST_STRAIGHT)
        low, high = np.minimum(-most - angles, 0.0), np.maximum(most - angles, 0.0)  # neutral is never beyond
        ends = np.concatenate([ends, np.column_stack([low, high, free, free, 0.0 * most])])
        turning[(np.abs(turning) < LEAST) | ~slopes.any(axis=0)] = 0.0  # nothing moves that channel
        slopes = np.concatenate([slopes, turning])
        neutral, gear = np.concatenate([neutral, angles]), np.concatenate([gear, np.ones(len(gear))])
    return slopes, ends, None if linear else (platform.kinematics, neutral, gear, slopes, bounds)


def _moving(bounds: Bounds) -> Bounds:
    """Return the bounds on what moves a channel or is one: all but those of places alone."""
    return Bounds(*(each[np.isfinite(bounds.speed)] for each in bounds))


def _sizes(bounds: Bounds) -> tuple[Array, Array, Array]:
    """Return half the range, the speed and the acceleration of each channel alone; infinite where nothing moves it."""
    with np.errstate(divide="ignore"):
        share = 1.0 / np.abs(bounds.slopes)
    half, speed, acceleration = (
        np.min(size[:, None] * share, axis=0)
        for size in (0.5 * (bounds.high - bounds.low), bounds.speed, bounds.acceleration)
    )
    return half, speed, acceleration


def _burst_deg(settings: Predictive, bounds: Bounds) -> float:
    """Return how much tilt has to wait before it is fast [deg]: less where the conflict already weighs turning."""
    given = settings.tilt.burst_deg
    if given is not None:
        return given if given < NEVER_DEG else np.inf  # whatever its share makes of it
    slides = _sizes(_moving(bounds))[0][:2]  # of surge and sway
    each = np.interp(np.where(np.isfinite(slides), slides, 0.0), SLIDES_M, BURSTS_DEG)
    return float(np.mean(each)) / (1.0 + min(settings.weights.conflict, READIEST))


def _guard(bounds: Bounds, platform: Built | None) -> Array:
    """Return lowest and highest place, speed and acceleration of channels that have an actuator of their own.

    Not of a table's: at its end the legs that it carries go on, and what stopped there at once would be shaken by what
    the plan wants again and again.
    """
    tables = () if platform is None else np.flatnonzero(np.array(platform.kinematics.kinds) == "table")
    guard = np.tile([-np.inf, np.inf, np.inf, np.inf], (6, 1))
    for row, (slopes, low, high, speed, acceleration, _) in enumerate(zip(*bounds, strict=True)):
        if np.count_nonzero(slopes) == 1 and np.isfinite(speed) and row not in tables:
            channel = int(np.argmax(slopes != 0.0))
            ends = sorted((low / MARGIN / slopes[channel], high / MARGIN / slopes[channel]))
            size = abs(slopes[channel])
            guard[channel, 0] = max(guard[channel, 0], ends[0])
            guard[channel, 1:] = np.minimum(guard[channel, 1:], [ends[1], speed / size, acceleration / size])
    return guard


def _groups(slopes: Array) -> list[tuple[list[int], list[int]]]:
    """Return channels that belong together, by a common actuator or by tilt felt as force, and the rows of each."""
    sets: list[set[int]] = [{channel} for channel in range(6)]
    links = [{sense, channel} for sense, (channel, _) in TILTS.items()]
    for together in links + [set(np.flatnonzero(row).tolist()) for row in slopes]:
        joined = [group for group in sets if group & together]
        sets = [group for group in sets if group not in joined] + [set().union(*joined)]
    return [
        (sorted(group), [row for row, each in enumerate(slopes) if each[sorted(group)].any()])
        for group in sets
        if group
    ]
