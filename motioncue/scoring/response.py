"""Responses of a cueing algorithm: measured on the running kernel, and in closed form."""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue import cueing
from motioncue.core.channels import CUE, MOTION, MOTION_DTYPE
from motioncue.core.interfaces import Algorithm
from motioncue.engine.assembly import cue, load_profile
from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile

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
) -> npt.NDArray[np.complex128]:
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
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Measure the response to a step that is present from the first tick on [s]."""
    _known(channel_in, channel_out)
    rate_hz = _rate_hz(source, rate_hz)
    if not 0.0 < duration_s < np.inf:
        raise ConfigError(f"duration_s: found {duration_s}, allowed is above 0")
    ticks = int(np.ceil(duration_s * rate_hz)) + 1
    response = _run(source, channel_in, np.full(ticks, amplitude))[channel_out]
    return np.arange(ticks) / rate_hz, np.ascontiguousarray(response)


def transfer_function(
    profile: Profile | str | Path, channel_in: str, channel_out: str, omega: npt.ArrayLike
) -> npt.NDArray[np.complex128]:
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


def fundamental(
    phase: npt.NDArray[np.float64], outputs: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.float64]]:
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


def _run(source: Source, channel_in: str, signal: npt.NDArray[np.float64]) -> Any:
    motion = np.zeros(len(signal), dtype=MOTION_DTYPE)
    motion[channel_in] = signal
    if not isinstance(source, Algorithm):
        return cue(source, motion)
    source.reset()
    cues = source.process(motion)
    source.reset()
    return cues
