"""Frames: what the page draws of one tick, as numbers whose names it was told before."""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.platforms.build import CHANNELS as POSE
from motioncue.platforms.build import Built
from motioncue.safety.supervisor import State
from motioncue.view.watched import (
    CHANNELS,
    PlatformInForce,
    Watched,
    felt_of,
    pose_of,
    positions_of,
    used_of,
    values_of,
)

__all__ = ["STATES", "Frames"]

STATES = tuple(state.name.lower() for state in State if state is not State.STATES)
"""Names of the states by their numbers."""

Row: TypeAlias = npt.NDArray[Any]

ATTITUDE = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
"""What of a direct cue is drawn as a pose: its yaw is a heading, and it has no displacements."""

FELT = ("surge", "sway", "heave")

WANTED = 8
"""Below it, a tick's `operation` is what the operator wants; above are flags."""

PARKS = (2, 3)
"""Operators under which it goes to neutral: park, and the end of the run."""


class Frames:
    """Makes frames of an engine's newest ticks.

    Parameters
    ----------
    engine : Watched
        A running engine, or a recording that plays.

    Attributes
    ----------
    names : tuple of str
        Names of a frame's numbers: ``time`` [s] on the engine's grid, ``state`` (index in `STATES`), ``parks``, 1 if it
        is told to be at neutral and else 0, ``weight`` of the fade, ``lateness_us``, ``speed`` [m/s], ``yaw`` [rad] and
        the view's channels of the car, what is felt in it, the cue, the platform's ``pose``, and of each actuator the
        position ``at`` [m or rad] and the share ``used``.
        All SI; NaN where there is none.
    """

    def __init__(self, engine: Watched) -> None:
        self._engine = engine
        self._platform = PlatformInForce()
        self._pose: Row | None = None
        self._index = -1
        built = self.built()
        actuators = [] if built is None else built.names
        self.names = (
            *("time", "state", "parks", "weight", "lateness_us", "speed", "car.yaw"),
            *(f"car.{channel.name}" for channel in CHANNELS),
            *(f"felt.{name}" for name in FELT),
            *(f"cue.{channel.name}" for channel in CHANNELS),
            *(f"pose.{name}" for name in POSE),
            *(f"at.{name}" for name in actuators),
            *(f"used.{name}" for name in actuators),
        )

    def built(self) -> Built | None:
        """Return the platform of the profile in force."""
        return self._platform(self._engine.profile)

    def newest(self) -> bytes | None:
        """Return the newest tick as float64, little-endian; None if there is none since the last call."""
        tick = self._engine.newest()
        index = int(tick["index"][0])
        if not tick["deadline"][0] or index == self._index:
            return None
        self._index = index
        profile, built = self._engine.profile, self.built()
        motion = tick["motion"]
        heard = bool(motion["time"][0])
        car = values_of(motion) if heard else {}
        felt = felt_of(motion) if heard and profile.cueing.poses else {}
        positions = np.zeros(0) if built is None else positions_of(tick, built)
        used = {} if built is None else used_of(positions, built)
        row = [
            index / profile.rate_hz,
            float(tick["state"][0]),
            float(tick["operation"][0] % WANTED in PARKS),
            float(tick["weight"][0]),
            1e-3 * float(tick["lateness"][0]),
            float(motion["speed"][0]) if heard else math.nan,
            float(motion["yaw"][0]) if heard else math.nan,
            *(car.get(channel.name, math.nan) for channel in CHANNELS),
            *(felt.get(name, math.nan) for name in FELT),
            *values_of(tick["cue"]).values(),
            *self._posed(tick, built, positions),
            *positions.tolist(),
            *used.values(),
        ]
        return np.array(row, "<f8").tobytes()

    def _posed(self, tick: Row, built: Built | None, positions: Row) -> list[float]:
        """Return the platform's pose: where its actuators hold it, or without one what the cue asks for."""
        asked = pose_of(tick)
        if built is None:
            pose = asked if self._engine.profile.cueing.poses else asked * ATTITUDE
        else:
            pose = built.kinematics.forward(positions[np.newaxis], self._pose)[0]
            self._pose = pose if np.isfinite(pose).all() else None
            pose = asked if self._pose is None else pose
        return [float(value) for value in pose]
