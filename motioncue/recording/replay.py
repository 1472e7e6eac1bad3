"""Replay: a recording through the whole engine, on a clock that takes no time."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from motioncue.errors import PacketError
from motioncue.kernels.clock import FakeClock
from motioncue.profile import Profile
from motioncue.recording.read import quoted, read_frames
from motioncue.runtime.assembly import load_profile
from motioncue.runtime.engine import Pipeline
from motioncue.runtime.feed import Timed, feed

__all__ = ["replay"]

START_NS = 1_000_000_000


def replay(
    profile: Profile | str | Path, path: str | Path, *, tail_s: float = 2.0, rate_hz: float | None = None
) -> npt.NDArray[np.void]:
    """Return every tick that the engine makes of a recording.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.
    path : str or Path
        The bytes that the simulator wrote; frames arrive when its own clock says.
    tail_s : float
        How long to go on after the last frame [s]: hold, then fade.
    rate_hz : float, optional
        Frames a second [Hz], for a recording that says no times.

    Returns
    -------
    ndarray of TICK_DTYPE, shape (n,)
        Motion read and cue sent by every tick, fades included.

    Raises
    ------
    ConfigError, PacketError
        If the profile or the recording is refused.
    """
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    system = profile.source.system
    motion, packages, places = read_frames(path, system, rate_hz=rate_hz, **profile.source.options)
    if not len(motion):
        raise PacketError(f"recording {quoted(path)}: found no frame, allowed is at least one")
    arrivals = START_NS + motion["time"]
    end = int(arrivals[-1]) + round(tail_s * 1e9)
    ticks = int((end - START_NS) * profile.rate_hz * 1e-9) + 2
    clock = FakeClock(START_NS)
    pipeline = Pipeline(profile, clock, trace=ticks)
    # What is not a frame came just before the next one.
    nexts = np.searchsorted(places, np.arange(len(packages)))
    times = arrivals[np.minimum(nexts, len(arrivals) - 1)]
    timed = map(Timed, times.tolist(), packages)
    for _ in feed(timed, pipeline.session, before=lambda time_ns: pipeline.emitter.run(until_ns=time_ns)):
        pass
    pipeline.emitter.run(until_ns=end)
    return pipeline.emitter.trace
