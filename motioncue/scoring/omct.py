"""Responses of a cueing algorithm: the Objective Motion Cueing Test, and single ones, measured and in closed form.

The test is of a cueing and its platform; boundaries for it come from a file of the user's.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import cueing
from motioncue.core.channels import CUE, GRAVITY, MOTION, MOTION_DTYPE
from motioncue.core.interfaces import Algorithm
from motioncue.cueing.senses import felt_by_pose
from motioncue.engine.assembly import check_pose, cue, load_profile, period_ns_of
from motioncue.errors import ConfigError
from motioncue.platforms.build import CHANNELS, Built, build
from motioncue.platforms.servo import Servos
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile
from motioncue.scoring.scene import on_platform, sent
from motioncue.virtual.platform_twin import drive_of

Line: TypeAlias = tuple[float, ...]


class Boundary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Boundaries of one test: corners, joined by straight lines over the logarithm of frequency."""

    test: Annotated[int, msgspec.Meta(ge=1, le=10)]
    frequency_rad_s: Annotated[Line, msgspec.Meta(min_length=2)]
    """Frequencies of the corners, ascending [rad/s]; nothing is judged outside of them."""
    gain_low: Line | None = None
    """Least gain at each corner, in the unit of the test."""
    gain_high: Line | None = None
    phase_low_deg: Line | None = None
    """Least phase at each corner [deg]; whole turns do not count."""
    phase_high_deg: Line | None = None

    def __post_init__(self) -> None:
        """Refuse lines that are no boundary."""
        at = np.array(self.frequency_rad_s)
        if not (np.isfinite(at).all() and at[0] > 0.0 and (np.diff(at) > 0.0).all()):
            raise ValueError(f"frequency_rad_s: found {self.frequency_rad_s}, allowed are ascending ones above 0")
        lines = {name: getattr(self, name) for name in LINES}
        if not any(lines.values()):
            raise ValueError(f"test {self.test}: found no boundary, allowed are {', '.join(LINES)}")
        for name, values in lines.items():
            if values is not None and not (len(values) == len(at) and np.isfinite(values).all()):
                raise ValueError(f"{name}: found {values}, allowed are {len(at)} numbers, one a frequency")
        for low, high in (LINES[:2], LINES[2:]):
            if lines[low] and lines[high] and not np.less_equal(lines[low], lines[high]).all():
                raise ValueError(f"{low}: found {lines[low]}, allowed is up to {high}, {lines[high]}")
        if (lines["phase_low_deg"] is None) != (lines["phase_high_deg"] is None):
            raise ValueError("phase_low_deg, phase_high_deg: found one of them, allowed are both or none")

    def at(self, name: str, frequency: float) -> float | None:
        """Return a boundary at a frequency; None if there is none.

        Units: `frequency` [rad/s].
        """
        values = getattr(self, name)
        if values is None or not self.reaches(frequency):
            return None
        return float(np.interp(np.log(frequency), np.log(self.frequency_rad_s), values))

    def reaches(self, frequency: float) -> bool:
        """Return whether a frequency is between the first corner and the last, which count.

        Units: `frequency` [rad/s].
        """
        first, *_, last = self.frequency_rad_s
        return first * (1.0 - EDGE) <= frequency <= last * (1.0 + EDGE)


LINES = ("gain_low", "gain_high", "phase_low_deg", "phase_high_deg")
EDGE = 1e-3  # a file says 15.85 or 15.849 for the last frequency


class Boundaries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Boundaries and where they come from."""

    source: Annotated[str, msgspec.Meta(min_length=1)]
    """The document, with its edition and table or figure."""
    boundary: tuple[Boundary, ...]
    """Up to one a test."""

    def __post_init__(self) -> None:
        """Refuse a test that is given twice."""
        tests = [each.test for each in self.boundary]
        if len(set(tests)) < len(tests):
            raise ValueError(f"boundary: found tests {tests}, allowed is each once")

    def of(self, test: int) -> Boundary | None:
        """Return the boundaries of a test; None if there are none."""
        return next((each for each in self.boundary if each.test == test), None)

    def inside(self, test: int, frequency: float, gain: float, phase_deg: float) -> bool | None:
        """Return whether a response is inside, its edges included; None where nothing is judged.

        Units: `frequency` [rad/s].
        """
        own = self.of(test)
        if own is None or not own.reaches(frequency):
            return None
        least, most, early, late = (own.at(name, frequency) for name in LINES)
        fits = (least is None or gain >= least) and (most is None or gain <= most)
        if early is not None and late is not None:
            fits = fits and (phase_deg - early) % 360.0 <= late - early
        return fits


def boundaries_of(path: str | Path) -> Boundaries:
    """Return the boundaries in a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return msgspec.convert(tomllib.loads(text), Boundaries, strict=False)
    except OSError as error:
        raise ConfigError(f"boundaries: {str(path)!r} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"boundaries: {str(path)!r}: {error}") from error


Array: TypeAlias = npt.NDArray[np.float64]
Gains: TypeAlias = npt.NDArray[np.complex128]


class Test(NamedTuple):
    """One of the ten tests."""

    number: int
    channel_in: str
    """What the car does: an angle with its rate, or an acceleration."""
    channel_out: str
    """What is observed: an angle of the platform, or specific force along its axes."""

    @property
    def unit(self) -> str:
        """Unit of the gain."""
        turns = self.channel_in in TURNS, self.channel_out in TURNS
        return {(True, False): "m/s^2/rad", (False, True): "rad/(m/s^2)"}.get(turns, "1")


TURNS = ("roll", "pitch", "yaw")
TESTS = tuple(
    Test(number, *channels)
    for number, channels in enumerate(
        (
            ("pitch", "pitch"),
            ("pitch", "surge"),
            ("roll", "roll"),
            ("roll", "sway"),
            ("yaw", "yaw"),
            ("surge", "surge"),
            ("surge", "pitch"),
            ("sway", "sway"),
            ("sway", "roll"),
            ("heave", "heave"),
        ),
        1,
    )
)
"""The ten tests."""

FREQUENCIES: Array = 10.0 ** (np.arange(12) / 5.0 - 1.0)
"""The twelve frequencies [rad/s]."""

ACCELERATIONS = (0.01, 0.5, 1.0, 2.0, 4.0)
"""Amplitudes of surge, sway and heave [m/s^2]: a small one, then those of driving."""
RATES_DEG_S = (0.05, 2.0, 5.0, 10.0, 20.0)
"""Amplitudes of the rates of roll, pitch and yaw [deg/s]: a small one, then those of driving."""
MOST_ANGLE = np.radians(10.0)  # [rad]; slow turns have a smaller rate instead of a larger angle

MOST_LEAD = 16.0  # MC_MOST_LEAD in platforms/actuator_limits.h
WINDOW_S = 20.0  # shortest measurement; it has whole periods


class Response(NamedTuple):
    """What was measured in a test, at one amplitude and one frequency."""

    test: int
    """Number of the test, 1 to 10."""
    channel_in: str
    channel_out: str
    unit: str
    """Unit of `gain`, `residual` and `theory_gain`: that of the output by that of the input."""
    level: float
    """Amplitude that was asked for: of acceleration [m/s^2] or of rate [deg/s]."""
    amplitude: float
    """Amplitude of the input [m/s^2 or rad]; a slow turn's is at most 10 deg."""
    frequency_rad_s: float
    gain: float
    """Modulus."""
    phase_deg: float
    """Phase in (-180, 180] deg; a positive one is a lead."""
    residual: float
    """Amplitude of the sine with as much power as what is not at that frequency, over that of the input."""
    theory_gain: float
    """By the algorithm's equations, without limits; NaN if it has none."""
    theory_phase_deg: float
    """By the algorithm's equations; NaN if it has none or the gain is 0."""
    inside: bool | None
    """Whether gain and phase are inside the user's boundaries; None where there are none."""


def omct(
    profile: Profile | str | Path,
    *,
    platform: Platform | Mapping[str, Any] | str | Path | None = None,
    boundaries: Boundaries | str | Path | None = None,
    accelerations: Sequence[float] = ACCELERATIONS,
    rates_deg_s: Sequence[float] = RATES_DEG_S,
    frequencies: npt.ArrayLike = FREQUENCIES,
    settle_s: float = 60.0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> list[Response]:
    """Return the results of the Objective Motion Cueing Test, measured on the running kernels.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `motioncue.load_profile` takes.
    platform : Platform, mapping, str or Path, optional
        As for `motioncue.platform`; the profile's if not given.
    boundaries : Boundaries, str or Path, optional
        Boundaries of gain and phase, or their TOML file; without it nothing is judged.
    accelerations : sequence of float
        Amplitudes of surge, sway and heave [m/s^2].
    rates_deg_s : sequence of float
        Amplitudes of the rates of roll, pitch and yaw [deg/s], for angles up to 10 deg.
    frequencies : array_like of float, shape (n,)
        Angular frequencies [rad/s], each above 0 and below half the tick rate.
    settle_s : float
        Duration of the sine before the measurement [s].
    progress : callable, optional
        Called with the number of sines measured and their total.

    Returns
    -------
    list of Response
        By test, then amplitude, then frequency.

    Raises
    ------
    ConfigError
        If the profile, platform or file is refused, the algorithm gives no poses for the platform, or an amplitude,
        frequency or duration is out of range.

    Notes
    -----
    The tests and frequencies are those of the Objective Motion Cueing Test (ICAO Doc 9625).  A car that turns has the
    angle and its rate and no acceleration, so that it feels gravity change.  Without a platform what is observed is the
    cue within its limits: angle, and specific force as the cue states it.  With a platform it is the pose that the
    actuators make within their bounds, behind their lag if ``platform.lag_s`` states one, and specific force is worked
    out from that pose.

    Examples
    --------
    >>> rows = motioncue.omct("ccd-dk", accelerations=[1.0], rates_deg_s=[5.0], frequencies=[1.0], settle_s=1.0)
    >>> [round(row.gain, 9) for row in rows if row.channel_in == row.channel_out]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    profile = on_platform(profile, platform)
    check_pose(profile)
    limits = boundaries if boundaries is None or isinstance(boundaries, Boundaries) else boundaries_of(boundaries)
    omega = np.atleast_1d(np.asarray(frequencies, dtype=np.float64))
    rate_hz = 1e9 / period_ns_of(profile)
    _check("accelerations", accelerations, 100.0, "m/s^2")
    _check("rates_deg_s", rates_deg_s, 1000.0, "deg/s")
    _check("frequencies", omega.tolist(), np.pi * rate_hz, "rad/s")
    _check("settle_s", [settle_s], 3600.0, "s")
    rig = None if profile.platform is None else build(profile.platform)
    measured: dict[tuple[str, float, float], tuple[float, dict[str, tuple[complex, float]]]] = {}
    runs = list(_runs(accelerations, rates_deg_s, omega))
    for done, (channel, level, frequency) in enumerate(runs):
        progress(done, len(runs))
        measured[channel, level, frequency] = _measured(profile, rig, channel, level, frequency, settle_s, rate_hz)
    progress(len(runs), len(runs))
    rows = []
    for test in TESTS:
        theory = _theory(profile, rig, test, omega, rate_hz)
        for level in rates_deg_s if test.channel_in in TURNS else accelerations:
            for frequency, expected in zip(omega.tolist(), theory.tolist(), strict=True):
                amplitude, outputs = measured[test.channel_in, level, frequency]
                gain, residual = outputs[test.channel_out]
                rows.append(_row(test, float(level), amplitude, frequency, gain, residual, expected, limits))
    return rows


def _check(name: str, values: Sequence[float], most: float, unit: str) -> None:
    for value in values:
        if not 0.0 < value < most:
            raise ConfigError(f"{name}: found {value:g} {unit}, allowed is above 0 and below {most:.6g}")
    if len(set(values)) < max(1, len(values)):
        raise ConfigError(f"{name}: found {list(values)}, allowed are different numbers, at least one")


def _runs(
    accelerations: Sequence[float], rates_deg_s: Sequence[float], omega: Array
) -> Iterator[tuple[str, float, float]]:
    """Return the sines to measure: channel, level, frequency."""
    for channel in dict.fromkeys(test.channel_in for test in TESTS):
        for level in rates_deg_s if channel in TURNS else accelerations:
            for frequency in omega.tolist():
                yield channel, level, frequency


def _measured(
    profile: Profile, rig: Built | None, channel: str, level: float, frequency: float, settle_s: float, rate_hz: float
) -> tuple[float, dict[str, tuple[complex, float]]]:
    """Return the amplitude of a sine's input, and gain and residual of each output."""
    periods = np.ceil(WINDOW_S * frequency / (2.0 * np.pi))
    window = round(periods * 2.0 * np.pi / frequency * rate_hz)
    start = int(np.ceil(settle_s * rate_hz)) + 1
    phase = frequency / rate_hz * np.arange(start + window + 1)  # a tick more on each side, for differences
    motion = np.zeros(len(phase), dtype=MOTION_DTYPE)
    amplitude = level
    if channel in TURNS:
        amplitude = float(min(np.radians(level) / frequency, MOST_ANGLE))
        motion[f"{channel}_rate"] = amplitude * frequency * np.cos(phase)
    motion[channel] = amplitude * np.sin(phase)
    names = dict.fromkeys(test.channel_out for test in TESTS if test.channel_in == channel)
    observed = _observed(profile, rig, motion, start, rate_hz)
    found = fundamental(phase[start:-1], np.column_stack([observed[name] for name in names]) / amplitude)
    return amplitude, dict(zip(names, zip(*(each.tolist() for each in found), strict=True), strict=True))


def _observed(
    profile: Profile, rig: Built | None, motion: npt.NDArray[np.void], start: int, rate_hz: float
) -> Mapping[str, Array]:
    """Return angles [rad] and specific force [m/s^2] from tick `start` to the last but one."""
    cues = cue(profile, motion)
    if rig is None:
        return {name: cues[name][start:-1] for name in (*TURNS, "surge", "sway", "heave")}
    assert profile.platform is not None
    positions = sent(profile, cues)
    if profile.platform.lag_s is not None:
        positions = Servos(rig.bounds, 1.0 / rate_hz, *drive_of(profile.platform)).process(positions)
    poses = rig.kinematics.forward(positions[start - 1 :])
    force = felt_by_pose(poses, rate_hz)[1:-1, :3]
    return {
        **dict(zip(TURNS, poses[1:-1, 3:].T, strict=True)),
        **dict(zip(("surge", "sway", "heave"), force.T, strict=True)),
    }


def _theory(profile: Profile, rig: Built | None, test: Test, omega: Array, rate_hz: float) -> Gains:
    """Return the gains of a test by equations, for small signals without limits; NaN if the algorithm has none."""
    s: Gains = np.asarray(1j * omega, dtype=np.complex128)
    try:
        responses = dict(cueing.theory(profile.cueing, test.channel_in, s, rate_hz))
        if test.channel_in in TURNS:
            for name, gain in cueing.theory(profile.cueing, f"{test.channel_in}_rate", s, rate_hz).items():
                responses[name] = responses.get(name, 0.0) + s * gain
    except ConfigError:
        return np.full(len(omega), complex(np.nan, np.nan))
    if rig is not None:
        responses = _moved(profile, rig, responses, s, rate_hz)
    return np.asarray(responses.get(test.channel_out, np.zeros(s.shape)), dtype=np.complex128)


def _moved(profile: Profile, rig: Built, responses: Mapping[str, Any], s: Gains, rate_hz: float) -> dict[str, Gains]:
    """Return the responses of a platform about its neutral pose."""
    assert profile.platform is not None
    asked = np.array([np.broadcast_to(responses.get(channel, 0.0), s.shape) for channel in CHANNELS])
    made = (_coupling(rig) @ asked) * _late(profile.platform, s, rate_hz)
    poses = dict(zip(CHANNELS, made, strict=True))
    force = {name: s**2 * poses[f"{name}_displacement"] for name in ("surge", "sway", "heave")}
    force["surge"] = force["surge"] + GRAVITY * poses["pitch"]
    force["sway"] = force["sway"] - GRAVITY * poses["roll"]
    return {**poses, **force}


def _coupling(rig: Built) -> Array:
    """Return the derivative of the pose that the actuators make by the pose asked for, shape (6, 6), about neutral."""
    step = 1e-4
    made = rig.kinematics.forward(rig.kinematics.inverse(step * np.vstack([np.eye(6), -np.eye(6)])))
    return np.asarray((made[:6] - made[6:]).T / (2.0 * step))


def _late(platform: Platform, s: Gains, rate_hz: float) -> Gains:
    """Return what remains of a stated lag behind its lead (``actuator_limits.h``), half a tick of holding included."""
    if platform.lag_s is None:
        return np.ones(s.shape, dtype=np.complex128)
    held = np.exp(-0.5 * s / rate_hz)
    if platform.lag_damping is None:
        return np.asarray(held / (platform.lag_s * s / MOST_LEAD + 1.0))
    frequency = 2.0 * platform.lag_damping / platform.lag_s * np.sqrt(MOST_LEAD)
    return np.asarray(held / (s / frequency + 1.0) ** 2)


def _row(
    test: Test,
    level: float,
    amplitude: float,
    frequency: float,
    gain: complex,
    residual: float,
    theory: complex,
    boundaries: Boundaries | None,
) -> Response:
    modulus, phase = abs(gain), float(np.degrees(np.angle(gain)))
    theory_phase = float(np.degrees(np.angle(theory))) if abs(theory) > 0.0 else float("nan")
    inside = None if boundaries is None else boundaries.inside(test.number, frequency, modulus, phase)
    return Response(
        *test, test.unit, level, amplitude, frequency, modulus, phase, residual, abs(theory), theory_phase, inside
    )


Source: TypeAlias = Profile | str | Path | Algorithm

INPUTS = tuple(channel.name for channel in MOTION if channel.name not in ("time", "frame_time"))
OUTPUTS = tuple(channel.name for channel in CUE if channel.name != "time")

SETTLED = 1e-4  # largest relative difference between the gains of two windows
NOTHING = 1e-6  # largest absolute one, for a channel that responds to second order only


def frequency_response(
    source: Source,
    channel_in: str,
    channel_out: str,
    omega: npt.ArrayLike,
    *,
    rate_hz: float | None = None,
    amplitude: float = 0.01,
    settle_s: float = 200.0,
    periods: int = 4,
) -> Gains:
    """Measure complex gains of the running kernel, one sine at a time.

    Notes
    -----
    Each window is correlated with sine, cosine and a constant by least squares.  That equals plain correlation over
    whole periods, and is exact too if a period is not a whole number of ticks.

    Examples
    --------
    >>> abs(frequency_response("ccd-dk", "surge", "surge", [1.0]))
    array([1.])

    Units: `omega` [rad/s].
    """
    _known(channel_in, channel_out)
    rate_hz = _rate_hz(source, rate_hz)
    frequencies = np.atleast_1d(np.asarray(omega, dtype=np.float64))
    gains = np.empty(len(frequencies), dtype=np.complex128)
    for index, frequency in enumerate(frequencies):
        if not 0.0 < frequency < np.pi * rate_hz:
            raise ConfigError(f"omega: found {frequency} rad/s, allowed is above 0 and below {np.pi * rate_hz:.6g}")
        window = int(np.ceil(periods * 2.0 * np.pi / frequency * rate_hz))
        start = int(np.ceil(settle_s * rate_hz))
        phase = frequency / rate_hz * np.arange(start + 2 * window)
        output = _run(source, channel_in, amplitude * np.sin(phase))[channel_out]
        first, second = (
            complex(fundamental(phase[begin : begin + window], output[begin : begin + window])[0]) / amplitude
            for begin in (start, start + window)
        )
        difference, size = abs(second - first), max(abs(first), abs(second))
        if difference > SETTLED * size + NOTHING:
            raise ValueError(
                f"settle_s: found {settle_s:g} s, at {frequency:g} rad/s {channel_out} still changes "
                f"({first:.6g}, then {second:.6g}); allow more time"
            )
        gains[index] = second
    return gains


def step_response(
    source: Source,
    channel_in: str,
    channel_out: str,
    duration_s: float,
    *,
    rate_hz: float | None = None,
    amplitude: float = 1.0,
) -> tuple[Array, Array]:
    """Measure the response to a step that is present from the first tick on [s]."""
    _known(channel_in, channel_out)
    rate_hz = _rate_hz(source, rate_hz)
    if not 0.0 < duration_s < np.inf:
        raise ConfigError(f"duration_s: found {duration_s}, allowed is above 0")
    ticks = int(np.ceil(duration_s * rate_hz)) + 1
    response = _run(source, channel_in, np.full(ticks, amplitude))[channel_out]
    return np.arange(ticks) / rate_hz, np.ascontiguousarray(response)


def transfer_function(profile: Profile | str | Path, channel_in: str, channel_out: str, omega: npt.ArrayLike) -> Gains:
    """Return the complex gains given by the algorithm's equations.

    See Also
    --------
    motioncue.cueing.theory : The responses of all channels; each algorithm's file cites its equations.

    Units: `omega` [rad/s].
    """
    _known(channel_in, channel_out)
    profile = _profile(profile)
    s = 1j * np.atleast_1d(np.asarray(omega, dtype=np.complex128))
    responses = cueing.theory(profile.cueing, channel_in, s, _rate_hz(profile, None))
    return np.asarray(responses.get(channel_out, np.zeros(s.shape)), dtype=np.complex128)


def fundamental(phase: Array, outputs: Array) -> tuple[Gains, Array]:
    """Return the parts of signals at the frequency of a sine, and what remains of them.

    Least squares with sine, cosine and a constant.

    Units: `phase` [rad].
    """
    basis = np.column_stack([np.sin(phase), np.cos(phase), np.ones(len(phase))])
    parts = np.linalg.lstsq(basis, outputs, rcond=None)[0]
    rest = outputs - basis @ parts
    return np.asarray(parts[0] + 1j * parts[1]), np.asarray(np.sqrt(2.0 * np.mean(rest**2, axis=0)))


def _known(channel_in: str, channel_out: str) -> None:
    for name, found, allowed in (("channel_in", channel_in, INPUTS), ("channel_out", channel_out, OUTPUTS)):
        if found not in allowed:
            raise ConfigError(f"{name}: found {found!r}, allowed are {', '.join(allowed)}")


def _profile(profile: Profile | str | Path) -> Profile:
    return profile if isinstance(profile, Profile) else load_profile(profile)


def _rate_hz(source: Source, rate_hz: float | None) -> float:
    """Return the tick rate of the grid on which the source is stepped."""
    if isinstance(source, Algorithm):
        if rate_hz is None or not 0.0 < rate_hz < np.inf:
            raise ConfigError(f"rate_hz: found {rate_hz}, an algorithm needs the rate it was designed for")
        return rate_hz
    if rate_hz is not None:
        raise ConfigError(f"rate_hz: found {rate_hz}, but a profile has its own, output.rate_hz")
    return 1e9 / round(1e9 / _profile(source).rate_hz)  # a whole number of nanoseconds, as on the emitter's grid


def _run(source: Source, channel_in: str, signal: Array) -> Any:
    motion = np.zeros(len(signal), dtype=MOTION_DTYPE)
    motion[channel_in] = signal
    if not isinstance(source, Algorithm):
        return cue(source, motion)
    source.reset()
    cues = source.process(motion)
    source.reset()
    return cues
