"""The linear-quadratic washout: laws from checked settings, and its theoretical responses.

Designing one needs SciPy.  Each pair of a translation and a rotation is designed by itself, in continuous time, for
small angles.  Its variables:

* e, c: errors of specific force and rate behind the low-pass sections of otolith and canal [m/s^2, rad/s]
* v, x, q, l: the platform's velocity, travel, rate and lean [m/s, m, rad/s, rad]
* f, w: the car's specific force and rate [m/s^2, rad/s], taken as white noise behind a low-pass section

The platform's acceleration a and angular acceleration r are chosen; its specific force is a + g l, with g = 0 for heave
and yaw.  A lean is positive where gravity makes it a positive force: nose up, left side down.
"""

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.cueing.optimal.kernel import OptimalWashout
from motioncue.cueing.optimal.settings import Optimal, Rotation, Translation
from motioncue.errors import ConfigError

__all__ = [
    "CANAL_S",
    "OTOLITH_S",
    "Problem",
    "design",
    "law_of",
    "laws_of",
    "problem",
    "residual",
    "solved",
    "theory",
    "ticked",
]

Array: TypeAlias = npt.NDArray[np.float64]

OTOLITH_S, CANAL_S = 5.0, 5.73
OTOLITH_GAIN, OTOLITH_LEAD_S = 0.4, 10.0
FORCE_THRESHOLDS = (0.17, 0.17, 0.28)  # surge, sway, heave [m/s^2]
RATE_THRESHOLDS = tuple(np.radians((3.6, 3.0, 2.6)))  # pitch, roll, yaw [rad/s]

# Our own weights, found by search (docs/optimal.md).
RANGE = 2.5  # thresholds that a whole range of travel, speed, angle or rate counts as much as
RATES = 1.25  # weight of a threshold of rate against one of specific force: between the two weightings of the score
ACCELERATION, TURNING = 2.0, np.radians(500.0)  # what counts as much as a threshold [m/s^2, rad/s^2]

LONGEST_S = 10.0  # for a range at its speed; slower ones leave poles that a platform never comes to rest from
OWN = 6  # variables of a pair that a tick keeps; the other two are the car's
PRECISE = 1e-10  # relative residual of the Riccati equation up to which a law is not refined
ALLOWED = 1e-9
REFINEMENTS = 8
NOTHING = 1e-12  # share of a law's largest effect that is only rounding


class Problem(NamedTuple):
    """Minimize the mean of |c z + d u|^2 for dz/dt = a z + b u + noise."""

    a: Array
    """Shape (8, 8)."""
    b: Array
    """Shape (8, 2)."""
    c: Array
    """Shape (m, 8): what is charged, each row in its own threshold or range."""
    d: Array
    """Shape (m, 2)."""


def design(settings: Optimal, rate_hz: float) -> OptimalWashout:
    """Return the washout described by `settings`, ready to step at `rate_hz`."""
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        own = getattr(settings, name)
        keys = ("travel_m", "speed_m_s") if isinstance(own, Translation) else ("angle_deg", "rate_deg_s")
        way, speed = (getattr(own, key) for key in keys)
        if way > LONGEST_S * speed:
            raise ConfigError(
                f"cueing.{name}.{keys[1]}: found {speed:g}, allowed is at least {way / LONGEST_S:g}, which takes "
                f"{LONGEST_S:g} s for {keys[0]}"
            )
    limits = [limits_of(settings, pair) for pair in range(3)]
    return OptimalWashout(settings, laws_of(settings, rate_hz), limits, (OTOLITH_S, CANAL_S), rate_hz)


def laws_of(settings: Optimal, rate_hz: float) -> Array:
    """Return the laws of the three pairs for a tick, shape (3, 2, 8), as `ticked` returns each."""
    laws = []
    for pair in range(3):
        of = problem(settings, pair)
        laws.append(rounded(ticked(of, law_of(settings, pair), 0.5 / rate_hz), of))
    return np.stack(laws)


def rounded(law: Array, of: Problem) -> Array:
    """Return a law with nine digits, and 0 for what is only rounding, so that other machines step the same bits."""
    weighed = np.abs(law * _sizes(of))
    digits = np.reshape([nine_digits(value) for value in law.flat], law.shape)
    return np.where(weighed < NOTHING * weighed.max(axis=1, keepdims=True), 0.0, digits)


def nine_digits(value: float) -> float:
    """Return a number rounded to nine digits: linear algebra has a dozen that do not depend on the machine."""
    return float(f"{value:.9g}")


def limits_of(settings: Optimal, pair: int) -> tuple[float, float]:
    """Return the largest scaled specific force [m/s^2] and rate [rad/s] of a pair.

    Notes
    -----
    What is not given follows from the filter at frequency 0: what lasts leans by the largest angle.
    """
    translation, rotation = settings.pairs[pair]
    of, law, angle = problem(settings, pair), law_of(settings, pair), np.radians(rotation.angle_deg)
    force_leans, rate_leans = (abs(_filtered(of, law, car, np.zeros(1, np.complex128))[2][0].real) for car in np.eye(2))
    force, rate = translation.limit_m_s2, rotation.limit_deg_s
    return (
        nine_digits(np.sin(angle) / force_leans) if force is None else force,
        nine_digits(angle / rate_leans) if rate is None else float(np.radians(rate)),
    )


def problem(settings: Optimal, pair: int) -> Problem:
    """Return what a pair minimizes.

    Notes
    -----
    Otolith 0.4 (10 s + 1) / (5 s + 1), canal 5.73 s / (5.73 s + 1) of the rate.  The published models have two more
    factors: 1 / (0.016 s + 1) acts above 10 Hz, where a seat moves little; 80 s / (80 s + 1) acts below 0.002 Hz, and
    with it a platform would take minutes to come to rest.

    References
    ----------
    R. J. Telban and F. M. Cardullo, NASA/CR-2005-213747: the organs.  Structure after R. Sivan, J. Ish-Shalom and J. K.
    Huang, IEEE Transactions on Systems, Man, and Cybernetics 12 (1982), and L. D. Reid and M. A. Nahon (UTIAS report
    296, 1985), as retold by Abuzied et al. (2023); the equations were derived anew, the weights are our own.
    """
    translation, rotation = settings.pairs[pair]
    return _problem(translation, rotation, settings.restraint, pair)


@lru_cache(maxsize=256)
def _problem(translation: Translation, rotation: Rotation, restraint: float, pair: int) -> Problem:
    gravity = GRAVITY if pair < 2 else 0.0
    e, c, v, x, q, lean, f, w, acceleration, turning = np.eye(10)
    force_error = acceleration + gravity * lean - f
    rate_error = q - w
    rates_of_change = np.array(
        [
            (force_error - e) / OTOLITH_S,
            (rate_error - c) / CANAL_S,
            acceleration,
            v,
            turning,
            q,
            -2.0 * np.pi * translation.noise_hz * f,
            -2.0 * np.pi * rotation.noise_hz * w,
        ]
    )
    steep = OTOLITH_GAIN * OTOLITH_LEAD_S / OTOLITH_S
    charged = np.array(
        [
            translation.weight / FORCE_THRESHOLDS[pair] * (steep * force_error + (OTOLITH_GAIN - steep) * e),
            rotation.weight * RATES / RATE_THRESHOLDS[pair] * (rate_error - c),
            restraint * RANGE / translation.travel_m * x,
            restraint * RANGE / translation.speed_m_s * v,
            restraint * RANGE / np.radians(rotation.angle_deg) * lean,
            restraint * RANGE / np.radians(rotation.rate_deg_s) * q,
            acceleration / ACCELERATION,
            turning / TURNING,
        ]
    )
    return Problem(rates_of_change[:, :8], rates_of_change[:, 8:], charged[:, :8], charged[:, 8:])


def law_of(settings: Optimal, pair: int) -> Array:
    """Return the law of a pair: accelerations are minus this times the variables."""
    translation, rotation = settings.pairs[pair]
    return _law(translation, rotation, settings.restraint, pair)


@lru_cache(maxsize=256)
def _law(translation: Translation, rotation: Rotation, restraint: float, pair: int) -> Array:
    law, cost = solved(_problem(translation, rotation, restraint, pair))
    found = residual(_problem(translation, rotation, restraint, pair), cost)
    if not found <= ALLOWED:
        names = (("surge", "pitch"), ("sway", "roll"), ("heave", "yaw"))[pair]
        raise ConfigError(
            f"cueing.{names[0]}, cueing.{names[1]}: found weights and ranges so far apart that no law is precise "
            f"(residual {found:.1g}), allowed are up to {ALLOWED:g}"
        )
    return law


def solved(of: Problem) -> tuple[Array, Array]:
    """Return the law with the least cost, and the cost as a quadratic form of the variables.

    Notes
    -----
    SciPy's solution in variables scaled to their own size, refined by Newton's method (Kleinman 1968): the cost of a
    law solves a linear equation, and the law that is best for that cost is better.
    """
    try:
        from scipy import linalg
    except ImportError as error:
        raise ConfigError("cueing.algorithm: 'optimal' needs SciPy: pip install \"motioncue[optimal]\"") from error
    size = _sizes(of)
    a, b, c, d = of.a * size / size[:, None], of.b / size[:, None], of.c * size, of.d
    inverse = np.linalg.inv(d.T @ d)
    try:
        cost = linalg.solve_continuous_are(a, b, c.T @ c, d.T @ d, s=c.T @ d)
        scaled = Problem(a, b, c, d)
        for _ in range(REFINEMENTS):
            law = inverse @ (b.T @ cost + d.T @ c)
            if residual(scaled, cost) <= PRECISE:
                break
            left = c - d @ law
            cost = linalg.solve_continuous_lyapunov((a - b @ law).T, -left.T @ left)
            cost = 0.5 * (cost + cost.T)
        law = inverse @ (b.T @ cost + d.T @ c)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise ConfigError(f"cueing: found weights and ranges for which SciPy finds no law ({error})") from error
    return law / size, cost / np.outer(size, size)


def _sizes(of: Problem) -> Array:
    """Return the value of each variable that is charged 1, or that the car has."""
    charged = np.sqrt(np.sum(of.c**2, axis=0))
    return np.asarray(1.0 / np.maximum(charged, 1e-6))


def residual(of: Problem, cost: Array) -> float:
    """Return what is left of the Riccati equation, relative to its largest term.

    Variables are scaled to their size.
    """
    size = _sizes(of)
    cross = of.b.T @ cost + of.d.T @ of.c
    terms = np.array([of.a.T @ cost + cost @ of.a, of.c.T @ of.c, -cross.T @ np.linalg.solve(of.d.T @ of.d, cross)])
    terms *= np.outer(size, size)
    return float(np.linalg.norm(terms.sum(axis=0)) / max(np.linalg.norm(term) for term in terms))


def ticked(of: Problem, law: Array, half_tick: float) -> Array:
    """Return a law for the variables as a tick keeps them.

    The trapezoidal rule keeps a variable plus half a tick of its change.

    Notes
    -----
    With z the platform's variables, s what is kept of them, n the car's and h half a tick: z = s + h (A z + B u + G n)
    and u = -F z - N n.  Next, 2 z - s is kept.

    Units: `half_tick` [s].
    """
    a, b, car = of.a[:OWN, :OWN], of.b[:OWN], of.a[:OWN, OWN:]
    own, direct = law[:, :OWN], law[:, OWN:]
    through = own @ np.linalg.inv(np.eye(OWN) - half_tick * a)
    before = np.eye(2) + half_tick * through @ b
    return -np.linalg.solve(before, np.hstack([through, half_tick * through @ car + direct]))


def theory(
    settings: Optimal, channel: str, s: npt.NDArray[np.complex128], rate_hz: float | None = None
) -> dict[str, Any]:
    """Return the small-signal response of every cue channel that follows a channel of the motion.

    Notes
    -----
    Continuous time, small angles, no limits reached.  With F and N the parts of a law for the platform's variables z
    and for the car's n, z = (s - A + B F)^-1 (G - B N) n: the filter from the car's motion to that of the platform.
    The kernel's rates are changes of the angle in a tick, so they lag the theory by half a tick.

    Units: `s` [rad/s].
    """
    if channel in ("speed", "engine_speed"):
        return {channel: np.ones(s.shape)}
    for pair, (force, angle, sign) in enumerate(
        (("surge", "pitch", 1.0), ("sway", "roll", -1.0), ("heave", "yaw", 1.0))
    ):
        translation, rotation = settings.pairs[pair]
        gravity = GRAVITY if pair < 2 else 0.0
        car = {
            force: (translation.gain, 0.0),
            angle: (sign * gravity * translation.gain, 0.0),
            f"{angle}_rate": (0.0, sign * rotation.gain),
        }.get(channel)
        if car is not None:
            motion = _filtered(problem(settings, pair), law_of(settings, pair), np.array(car), s)
            acceleration, travel, lean = (each / (1.0 + s / (2.0 * np.pi * settings.roll_off_hz)) for each in motion)
            return {
                force: acceleration + gravity * lean,
                f"{force}_displacement": travel,
                angle: sign * lean,
                f"{angle}_rate": sign * s * lean,
            }
    return {}


def _filtered(of: Problem, law: Array, car: Array, s: npt.NDArray[np.complex128]) -> tuple[Any, Any, Any]:
    """Return the platform's acceleration, travel and lean for the car's force and rate."""
    closed = of.a[:OWN, :OWN] - of.b[:OWN] @ law[:, :OWN]
    driven = (of.a[:OWN, OWN:] - of.b[:OWN] @ law[:, OWN:]) @ car
    z = np.linalg.solve(s[:, None, None] * np.eye(OWN) - closed, np.broadcast_to(driven, (len(s), OWN))[..., None])[
        ..., 0
    ]
    return -(z @ law[0, :OWN] + law[0, OWN:] @ car), z[:, 3], z[:, 5]
