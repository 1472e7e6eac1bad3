"""A simulator with BeamNG's MotionSim and OutGauge: plays virtual drives or recordings."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from motioncue.drive.car import angles_and_rates, body_axes
from motioncue.drive.courses import FIRST, Lap, course
from motioncue.drive.peers import DatagramSimulator, Paced, blank
from motioncue.sources.beamng.packets import GAUGES, MOTION, identify

RATE_HZ = 60.0
"""Packets per second that BeamNG sends by default [Hz]."""

Simulator = DatagramSimulator


def encode_states(states: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return the packets of both streams for `states`, ndarray of STATE_DTYPE: two arrays of their dtypes."""
    motion, gauges = (blank(packet, len(states)) for packet in (MOTION, GAUGES))
    for name in ("position", "velocity"):
        north, east, down = states[name].T
        motion[f"{name}_x"], motion[f"{name}_y"], motion[f"{name}_z"] = east, north, -down
    motion["surge"], motion["sway"], down = body_axes(states, "acceleration").T
    motion["heave"] = -down
    for suffix, values in zip(("", "_rate", "_acceleration"), angles_and_rates(states), strict=True):
        motion[f"roll{suffix}"], motion[f"pitch{suffix}"], motion[f"yaw{suffix}"] = values
    w, x, y, z = states["orientation"].T
    # The body's up axis, which is minus the third column of its rotation matrix: east, north, up.
    motion["up_x"] = -2.0 * (y * z - w * x)
    motion["up_y"] = -2.0 * (x * z + w * y)
    motion["up_z"] = 1.0 - 2.0 * (x * x + y * y)
    gauges["gear"] = 2
    gauges["speed"] = np.linalg.norm(states["velocity"], axis=1)
    gauges["engine_speed"] = states["engine_speed"]
    return motion, gauges


def driven(name: str, rate_hz: float = RATE_HZ, duration_s: float | None = None, lap: Lap = FIRST) -> Iterator[Paced]:
    """Yield the datagrams of a virtual drive; raise ConfigError for an unknown drive or rate.

    BeamNG sends nothing while it is paused.
    """
    driven = course(name, rate_hz, duration_s, lap)
    wait = 0.0
    for motion, gauges, pause, duration in zip(
        *encode_states(driven.states), driven.waits.tolist(), driven.frame_times.tolist(), strict=True
    ):
        wait += pause
        if duration > 0.0:
            yield from _pair(wait, motion.tobytes(), gauges.tobytes())
            wait = 0.0


def _pair(wait: float, motion: bytes, gauges: bytes) -> tuple[Paced, Paced]:
    return Paced(wait, gauges, to=1, motion=False), Paced(0.0, motion)


def recorded(
    packages: Sequence[bytes], times: Sequence[float] | None = None, rate_hz: float | None = None
) -> Iterator[Paced]:
    """Yield recorded datagrams, at the `times` of their capture [s] or at `rate_hz`.

    Raises PacketError for others.  Datagrams carry no time: without `times` they are played at BeamNG's default rate.
    """
    period = 1.0 / (rate_hz or RATE_HZ)
    before = None
    for index, package in enumerate(packages):
        if identify(package).name == GAUGES.name:
            yield Paced(0.0, package, to=1, motion=False)
            continue
        duration = period
        if rate_hz is None and times is not None:
            now = times[index]
            duration, before = (0.0 if before is None else max(now - before, 0.0)), now
        yield Paced(duration, package)
