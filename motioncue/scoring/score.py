"""How good a cueing is on a drive and a platform: 0 as at rest, 100 as the best motion.

Needs Clarabel, SciPy and platformdirs: the extra ``score``.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.table import card
from motioncue.cueing import senses
from motioncue.cueing.senses import Array, sampled
from motioncue.errors import ConfigError
from motioncue.platforms.build import CHANNELS
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile
from motioncue.recording.atomic_file import write_atomically
from motioncue.scoring import optimum
from motioncue.scoring.quality import Felt, Quality, Sickness, by_sense, jolts, quality
from motioncue.scoring.scene import Scene, poses_of, with_platform

FORCES_FIRST = np.ones(6)
RATES_FIRST = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""Weights of the senses' errors in thresholds; with rates first, the thresholds of turning are halved."""

WEIGHTINGS = {"best": FORCES_FIRST, "rates": RATES_FIRST}  # by the name of the best motion with them
LEAST = 1e-3  # share of the error at rest that a best motion has to spare
PROGRAM = b"".join(
    Path(str(part.__file__)).read_bytes() for part in (optimum, senses)
)  # another one finds another motion
POSES = np.vstack([np.zeros(6), 0.01 * np.eye(6), np.full(6, 0.02)])  # [m, rad]


class Weighed(NamedTuple):
    """Scores with one weighting of the senses."""

    score: float
    """Of the cue made smaller until it fits the platform."""
    stopped: float
    """Of what the platform does: its actuators keep their bounds whatever the cue asks."""


class Score(NamedTuple):
    """How a cueing is felt on a drive and a platform."""

    score: float
    """With forces first, of the cue made smaller until it fits the platform: 0 as at rest, 100 as the best motion."""
    stopped: float
    """With forces first, of what the platform does."""
    rates_first: Weighed
    """The same with the thresholds of turning halved: rankings depend on that weighting."""
    still: dict[str, float]
    """Error on a platform at rest, by sense [thresholds]."""
    asked: dict[str, tuple[float, float, float]]
    """Displacement, speed and acceleration that the cue asks for, by channel, as shares of what the platform has
    along it alone; NaN where no actuator moves it."""
    turned_down: dict[str, float]
    """Factor by which each channel of the cue was made smaller for `score`; 1: not at all, 0: no actuator moves it."""
    motions: dict[str, Quality]
    """By motion: ``fits``, ``stopped``, ``best``."""
    car_jolts: dict[str, float]
    """Root mean square of the car's specific force above 3 Hz [m/s^2], by sense of force."""
    car_sickness: Sickness
    """How sick the car makes."""

    def _repr_html_(self) -> str:
        senses = self.motions["stopped"].error if "stopped" in self.motions else {}
        asked = {channel: max(shares) for channel, shares in self.asked.items() if max(shares) == max(shares)}
        rows = [
            ("fits", f"{self.score:.0f} of 100; {self.rates_first.score:.0f} with turning first"),
            ("stopped", f"{self.stopped:.0f} of 100; {self.rates_first.stopped:.0f} with turning first"),
            ("error, stopped", ", ".join(f"{sense} {error:.2f}" for sense, error in senses.items())),
            ("at rest", ", ".join(f"{sense} {error:.2f}" for sense, error in self.still.items())),
            ("asks for", ", ".join(f"{channel} {100 * share:.0f} %" for channel, share in asked.items())),
        ]
        return card("Score", rows)


class Traces(NamedTuple):
    """What a report draws; arrays have one row per tick, or `RATE_HZ` rows a second."""

    time: Array
    """Of the ticks [s]."""
    poses: dict[str, Array]
    """By motion: ``asked``, ``fits``, ``stopped``, ``best``; shape (n, 6)."""
    felt: dict[str, Array]
    """What the organs report below 3 Hz, by ``car`` and by motion, shape (m, 6) [thresholds]."""
    score: Score


def score(
    profile: Profile | str | Path,
    motion: npt.NDArray[np.void],
    *,
    platform: Platform | Mapping[str, Any] | str | Path | None = None,
    preview: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Score:
    """Return how good a profile's cueing is on a drive and a platform.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `motioncue.load_profile` takes.
    motion : ndarray of MOTION_DTYPE, shape (n,)
        The frames of the drive in order of their `time`, such as ``motioncue.read(file).motion``.
    platform : Platform, mapping, str or Path, optional
        As for `motioncue.platform`; the profile's if not given.
    preview : bool
        Whether the algorithm knows the drive in advance, if it plans.
    progress : callable, optional
        Called with the number of steps done and their total.

    Returns
    -------
    Score

    Raises
    ------
    ConfigError
        If there is no platform or one that cannot show the drive, the algorithm gives no poses, the drive is not
        finite, shorter than 3 s or longer than an hour or of fewer than 30 frames, nothing is felt on it, or a library
        is missing; or for a preview, if the algorithm makes no use of one.

    Notes
    -----
    ``score = 100 (E0 - E) / (E0 - E*)``, where E is the root of the mean over time of the sum over six senses of
    (error / threshold)^2.  An error is what the vestibular organs report in the car less what they report on the
    platform: from the motion of the car and from the pose of the platform, never from what a cue claims.  E0 is that
    of a platform at rest, E* that of `motioncue.scoring.optimum.best_motion`, which is kept in the user's cache
    folder, or of the cue where that is better.

    Examples
    --------
    >>> drive = motioncue.read("drive.mcap")                                              # doctest: +SKIP
    >>> motioncue.score("ccd-dk-washout", drive.motion, platform="hexapod-dim").score     # doctest: +SKIP
    """
    return trace(profile, motion, platform=platform, preview=preview, progress=progress).score


def trace(
    profile: Profile | str | Path,
    motion: npt.NDArray[np.void],
    *,
    platform: Platform | Mapping[str, Any] | str | Path | None = None,
    preview: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Traces:
    """Return a score with the motions that it was made from."""
    need()
    scene = Scene(with_platform(profile, platform), motion)
    total = 4
    progress(0, total)
    cues = scene.cues(scene.profile.cueing, preview)
    asked = poses_of(cues)
    shares, factors, _ = scene.fitted(asked)
    poses = {"asked": asked, "fits": scene.made(asked * factors), "stopped": scene.stopped(cues)}
    progress(1, total)
    for step, (name, weights) in enumerate(WEIGHTINGS.items()):
        poses[name] = best_poses(scene, weights)
        progress(2 + step, total)
    felt = {name: scene.felt(each) for name, each in poses.items()}
    errors = {name: scene.errors(each) for name, each in felt.items()}
    found = []
    for name, weights in WEIGHTINGS.items():
        least = min((name, "fits", "stopped"), key=lambda each: total_error(weights, errors[each]))
        poses[name], felt[name] = poses[least], felt[least]
        found.append(
            Weighed(*(weighed(weights, scene.still, errors[each], errors[least]) for each in ("fits", "stopped")))
        )
    del poses["rates"]
    result = Score(
        *found[0],
        found[1],
        by_sense(scene.still),
        {channel: tuple(column.tolist()) for channel, column in zip(CHANNELS, shares.T, strict=True)},
        dict(zip(CHANNELS, factors.tolist(), strict=True)),
        {name: _quality(scene, poses[name], felt[name]) for name in ("fits", "stopped", "best")},
        jolts(scene.car),
        scene.sickness(),
    )
    progress(total, total)
    told = {"car": scene.car.told, **{name: felt[name].told for name in poses}}
    return Traces(np.arange(len(scene.ticks)) / scene.rate_hz, poses, told, result)


def _quality(scene: Scene, poses: Array, felt: Felt) -> Quality:
    """Return what is right and wrong with a motion."""
    use = zip(scene.built.names, scene.use(poses).T, strict=True)
    return quality(
        scene.car, felt, scene.rate_hz, scene.sickness(poses), {name: tuple(column.tolist()) for name, column in use}
    )


def against_one(scores: Sequence[Score]) -> list[Score]:
    """Return scores of one drive on one platform, forces first, against the best motion that any of them knows.

    Where a profile's own motion is better than the best that was found, it has 100 by itself, others less beside it.
    """
    weights = WEIGHTINGS["best"]

    def errors(score: Score, motion: str) -> Array:
        return np.array([score.motions[motion].error[sense] for sense in senses.SENSES])

    best = min((errors(score, "best") for score in scores), key=lambda each: total_error(weights, each))
    found = []
    for score in scores:
        still = np.array([score.still[sense] for sense in senses.SENSES])
        fits, stopped = (weighed(weights, still, errors(score, motion), best) for motion in ("fits", "stopped"))
        found.append(score._replace(score=fits, stopped=stopped))
    return found


def apart(score: Score, motion: str = "fits") -> dict[str, float]:
    """Return what a motion misses, of what is missed at rest: of forces, and of turning."""

    def missed(of: Mapping[str, float], group: Sequence[str]) -> float:
        return float(np.linalg.norm([of[sense] for sense in group]))

    return {
        name: missed(score.motions[motion].error, group) / max(missed(score.still, group), 1e-9)
        for name, group in (("forces", senses.SENSES[:3]), ("turning", senses.SENSES[3:]))
    }


def need() -> None:
    """Raise an error if a library is missing."""
    try:
        import clarabel  # noqa: F401
        import platformdirs  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        raise ConfigError(f'score: {error.name} is missing: pip install "motioncue[score]"') from error


def total_error(weights: Array, by_sense: Array) -> float:
    """Return the error over all senses; infinite where a pose is out of reach."""
    error = float(np.sqrt(np.sum((weights * by_sense) ** 2)))
    return error if np.isfinite(error) else np.inf


def weighed(weights: Array, still: Array, found: Array, best: Array) -> float:
    """Return a score from errors by sense [thresholds]."""
    at_rest, error, least = (total_error(weights, each) for each in (still, found, best))
    if not at_rest - least > LEAST * at_rest:
        raise ConfigError(
            f"platform: found one whose best motion misses {100 * least / at_rest:.4g} % of what is missed at rest on "
            f"this drive, allowed is less than {100 * (1 - LEAST):.4g} %: a drive along or about what actuators move"
        )
    return 100.0 * (at_rest - error) / (at_rest - least)


def best_poses(scene: Scene, weights: Array) -> Array:
    """Return the best motion of a platform on a drive, found or taken from the user's cache folder."""
    assert scene.profile.platform is not None
    felt, built = sampled(scene.car.slow, scene.rate_hz), scene.built
    table = msgspec.json.encode(msgspec.structs.replace(scene.profile.platform, description="", source=""))
    tried = np.round(built.kinematics.inverse(POSES), 9)  # other kinematics of the same table find another motion too
    content = hashlib.sha256(
        b"".join([PROGRAM, table, *(each.tobytes() for each in (weights, np.round(felt, 9), tried))])
    )
    file = cache_folder() / f"{content.hexdigest()}.npy"
    motion = _kept(file, len(built.names))
    if motion is None:
        motion = optimum.best_motion(felt, built, weights)
        _keep(file, motion)
    return optimum.poses_at(motion, built, np.arange(len(scene.ticks)) / scene.rate_hz)


def _kept(file: Path, actuators: int) -> Array | None:
    """Return the motion that a file keeps; None if there is none, or it is damaged."""
    try:
        found: Array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.ndim == 2 and found.shape[1] == actuators and np.isfinite(found).all() else None


def _keep(file: Path, motion: Array) -> None:
    """Keep a motion; if that is not possible, it is found again next time."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda part: np.save(part, motion), force=True)


def cache_folder() -> Path:
    """Return the folder in which best motions are kept; it may be deleted at any time."""
    import platformdirs

    return platformdirs.user_cache_path("motioncue", appauthor=False) / "best-motions"
