"""The kernels for a program's own loop, of one rig or many; ``motioncue.h`` has them in C."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.clock import Clock, FakeClock, MonotonicClock
from motioncue.engine.assembly import algorithm_of, chain_of, claims_of, intake_of, limits_of, load_profile, streams_of
from motioncue.engine.batch import Batch
from motioncue.engine.embed import Relay, Stepper
from motioncue.engine.pipeline import Tuner
from motioncue.errors import ConfigError
from motioncue.profile.explain import explain, shown
from motioncue.profile.profile import Output, Profile

__all__ = ["Rigs", "bind", "relay"]


def bind(
    profile: Profile | str | Path,
    motion: npt.NDArray[np.void] | None = None,
    cue: npt.NDArray[np.void] | None = None,
    actuation: npt.NDArray[np.void] | None = None,
    *,
    rate_hz: float | None = None,
    ahead: npt.NDArray[np.void] | None = None,
    chassis: npt.NDArray[np.void] | None = None,
) -> Stepper:
    """Return the profile's cueing for your own loop: each `step` reads `motion` and fills `cue`.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.
    motion : ndarray of MOTION_DTYPE, shape (1,), optional
        Read by each step; a new array if not given.
    cue : ndarray of CUE_DTYPE, shape (1,), optional
        Filled by each step; a new array if not given.
    actuation : ndarray of ACTUATION_DTYPE, shape (1,), optional
        Filled by each step with what the first output is sent; if not given, the output's stages are not stepped.
    rate_hz : float, optional
        Steps per second [Hz]; the profile's ``output.rate_hz`` if not given.
    ahead : ndarray of MOTION_DTYPE, shape (7,), optional
        Read by each step of an algorithm that plans: what the car will do `motioncue.AHEAD_S` from then, if you know,
        as with a route that drives itself.  A row with NaN is not known: it is foreseen, as all are without `ahead`.
    chassis : ndarray of CHASSIS_DTYPE, shape (1,), optional
        Read by each step that fills an `actuation` with what wheels and cab do; NaN where you do not know it.

    Raises
    ------
    ConfigError
        If the profile or the rate is refused, or an array is not one of its kind.

    Notes
    -----
    Bit for bit what `motioncue.cue` computes for the same motion.  The rest of the engine's work is the controller's:
    noticing that the input has stopped or jumped, fading, and raising a platform: `Stepper.parked`.
    Real time: a step does not allocate and cannot fail.

    Examples
    --------
    >>> stepper = motioncue.bind("ccd-dk-classical", rate_hz=1000)
    >>> stepper.motion["surge"] = 1.0
    >>> for _ in range(1000):
    ...     _ = stepper.step()
    >>> stepper.cue["surge_displacement"].round(3)
    array([0.179])
    """
    tuner = _tuner(profile, rate_hz)
    return Stepper(tuner.settings, motion, cue, actuation=actuation, ahead=ahead, chassis=chassis, tune=tuner)


def relay(profile: Profile | str | Path, *, rate_hz: float | None = None, clock: Clock | None = None) -> Relay:
    """Return the way from a simulator's packages to a platform's packets, for your own loop.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.  Its endpoints are not opened; of several outputs the first is used, at
        which nobody else may drive the platform as long as the relay lives.
    rate_hz : float, optional
        Steps per second [Hz]; the profile's ``output.rate_hz`` if not given.
    clock : Clock, optional
        Gives the arrival times; the machine's clock if not given.  With a `FakeClock` nothing is driven, and nobody
        kept from the platform.

    Raises
    ------
    ConfigError
        If the profile or the rate is refused.
    EndpointError
        If another program drives the platform at the output.

    Notes
    -----
    Codecs, checks and cueing are the engine's.  The rest of the engine's work is the controller's: noticing that the
    input has stopped, fading, also after a jump (`Relay.source` counts jumps), and raising a platform: `Relay.parked`.
    Real time: a step does not allocate and cannot fail.

    Examples
    --------
    >>> relay = motioncue.relay("ccd-dk-washout")
    >>> while True:  # doctest: +SKIP
    ...     if relay.step(simulator.recv(4096)):  # a whole package
    ...         platform.send(relay.packets["motion"])
    ...     simulator.send(relay.reply)
    """
    if clock is not None and not isinstance(clock, Clock):
        raise ConfigError(f"clock: found {shown(clock)}, allowed is a Clock")
    tuner = _tuner(profile, rate_hz)
    profile = tuner.profile
    output = profile.outputs[0]
    claims = None if isinstance(clock, FakeClock) else claims_of([output], profile.platform)
    packets = {
        name: (each.table, each.packet, each.seal) for name, (_, each) in streams_of(output, profile.platform).items()
    }
    return Relay(intake_of(profile), tuner.settings, packets, clock or MonotonicClock(), tune=tuner, claims=claims)


def _tuner(profile: Profile | str | Path, rate_hz: float | None) -> Tuner:
    """Return a tuner for the profile at the caller's rate."""

    def adapt(profile: Profile) -> Profile:
        return profile if rate_hz is None else _at_rate(profile, rate_hz)

    return Tuner(adapt(profile if isinstance(profile, Profile) else load_profile(profile)), adapt)


def _at_rate(profile: Profile, rate_hz: float) -> Profile:
    """Return the profile at another rate than its platform's; raise ConfigError if the rate is not allowed."""
    if not isinstance(rate_hz, int | float):
        raise ConfigError(f"rate_hz: found {shown(rate_hz)}, allowed is a number")
    output = profile.outputs[0]
    tables = {"system": output.system, "motion": output.motion, "rate_hz": rate_hz}
    try:
        rate_hz = msgspec.convert(tables, Output).rate_hz
    except msgspec.ValidationError as error:
        raise ConfigError(explain(error, tables, Output)) from error
    return msgspec.structs.replace(profile, output=msgspec.structs.replace(output, rate_hz=rate_hz))


class Rigs(Batch):
    """Rigs that are stepped together, each with its own profile.

    Parameters
    ----------
    profiles : Profile, str, Path, or sequence of these
        One profile for all, or one per rig; profiles, or what `load_profile` takes.
    n : int, optional
        Number of rigs, if one profile is given for all.

    Raises
    ------
    ConfigError
        If a profile is refused, if there is no rig, or if `n` is given with several profiles.

    See Also
    --------
    motioncue.cue : One rig over a whole recording.

    Notes
    -----
    Bit for bit what `motioncue.cue` computes for each rig (cueing and limits) and `motioncue.actuate` for its first
    output; fade, supervisor and packets are left to the engine.
    A motion that is not finite is not refused as `motioncue.bind` does: channels of that rig's cue that depend on it,
    soon nearly all, are not finite until it is reset.  Its actuators keep these channels of the pose where they were
    and follow the others, within all bounds; other rigs do not notice.  To use the rig again, set its `parked`, step
    for ``rise_s``, reset it, and clear `parked`.
    Neighbors whose algorithm has a form for lanes are computed side by side: sort mixed profiles by algorithm.
    Real time: `step` does not allocate as long as it is given the same arrays, and cannot fail.

    Examples
    --------
    >>> rigs = motioncue.Rigs("ccd-dk-classical", 64)
    >>> motion, cue = np.zeros(64, motioncue.MOTION_DTYPE), np.zeros(64, motioncue.CUE_DTYPE)
    >>> motion["surge"] = 1.0
    >>> rigs.step(motion, cue)
    >>> bool((cue["surge"] > 0).all())
    True
    >>> rigs.reset([3])
    """

    def __init__(self, profiles: Profile | str | Path | Sequence[Profile | str | Path], n: int | None = None) -> None:
        if isinstance(profiles, Profile | str | Path):
            profiles = [profiles] * (1 if n is None else n)
        elif n is not None:
            raise ConfigError(f"n: found {n} with a sequence of profiles, allowed is one profile for all")
        if not profiles:
            raise ConfigError("profiles: found none, allowed is one or more")
        loaded = [profile if isinstance(profile, Profile) else load_profile(profile) for profile in profiles]
        super().__init__(
            [algorithm_of(profile) for profile in loaded],
            [limits_of(profile) for profile in loaded],
            [chain_of(profile, profile.outputs[0]) for profile in loaded],
        )
