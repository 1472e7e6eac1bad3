"""Moves a platform without a simulator: one pose at a time, small, within all bounds.

The moves go the way of a drive: frames are fed to an engine of the rig's own profile, so that its bounds, supervisor,
replies and its way up and down are those of a drive.  Only the source and the algorithm are replaced.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.channels import MOTION_DTYPE
from motioncue.cueing.settings import Cueing
from motioncue.drive.courses import swell
from motioncue.drive.peers import FedSimulator, Paced
from motioncue.engine.assembly import check, load_profile
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError
from motioncue.platforms.build import CHANNELS as POSE
from motioncue.platforms.build import build, channels_of
from motioncue.profile.profile import Profile
from motioncue.safety.supervisor import State

Array = npt.NDArray[np.float64]
Shape = Callable[[Array], tuple[Array, ...]]
"""A motion, its speed and its acceleration at times from its beginning [s], such as `motioncue.drive.courses.swell`."""

FRAME_S = 0.01
NOISE = 1e-9  # of the heading [rad]: the same frame again and again would be a pause
HOLD_S = 0.5  # this program may come late by so much without an end of the move
CUTOFF_HZ = 0.01  # of the washout: the pose is the motion's own, but for the least that brings it back
SPARE_S = 2.0  # beyond rising and fading in, until the platform rests at neutral
PATIENCE_S = 60.0  # for a platform to become ready
LOOK_S = 0.02
KINDS = {"surge_displacement": "surge", "sway_displacement": "sway", "heave_displacement": "heave"}
"""Channels of a pose by what moves them: accelerations; the others are angles, with their rates."""


def exercised(profile: Profile) -> Profile:
    """Return a rig's profile in which the program moves the platform; refuse one without.

    Other outputs are left out: belts and a display have nothing to do with it.
    """
    if profile.platform is None:
        raise ConfigError(f"{profile.name}: found no [platform], whose actuators could be moved")
    names = {f"actuator_{number}" for number in range(1, 13)} | set(channels_of(profile.platform))
    for output in profile.outputs:
        if output.packet is not None and _sends(output.packet, names):
            break
    else:
        raise ConfigError(f"{profile.name}: found no output whose packet moves actuators of the platform")
    axis = {"gain": 1.0, "cutoff_hz": CUTOFF_HZ}
    tilt = {"surge_cutoff_hz": 1.0, "sway_cutoff_hz": 1.0, "surge_gain": 0.0, "sway_gain": 0.0}
    table = {
        "algorithm": "classical",
        **{name: dict(axis) for name in ("surge", "sway", "heave", "roll", "pitch", "yaw")},
        "tilt": {**tilt, "pitch_share": 0.0, "roll_share": 0.0},
    }
    changed = msgspec.structs.replace(
        profile,
        source=load_profile("program-dk").source,
        cueing=msgspec.convert(table, Cueing),
        output=output,
        platform=msgspec.structs.replace(profile.platform, lag_s=None, lag_damping=None),
        supervisor=msgspec.structs.replace(profile.supervisor, hold_s=max(HOLD_S, profile.supervisor.hold_s)),
        record=None,
    )
    check(changed)
    return changed


def _sends(packet: Any, names: set[str]) -> bool:
    values = [*packet.fields, *packet.values.values()]
    written = {name for value in values for name in (value.channel, *(value.sum or {}))}
    return bool(written & names) or any(f"{{{name}" in (packet.text or "") for name in names)


def bump(time_s: Array, duration_s: float) -> tuple[Array, ...]:
    """Return a motion from 0 to 1 and back, sin(pi t/T)^4, its speed and its acceleration, which is continuous."""
    at, speed, bent = swell(time_s, duration_s)
    return at * at, 2.0 * at * speed, 2.0 * (speed * speed + at * bent)


class Exerciser:
    """A platform that is moved: a context manager, in which it rises to neutral, and at whose end it goes down."""

    def __init__(self, profile: Profile, *, trace_s: float = 0.0) -> None:
        self.profile = exercised(profile)
        assert self.profile.platform is not None
        self.built = build(self.profile.platform)
        self.engine = Engine(self.profile, trace=round(trace_s * self.profile.rate_hz))  # runs while entered
        self._next: tuple[Array, Shape, float] | None = None  # pose, motion, its duration
        self._rests = threading.Event()
        self._player = FedSimulator(self.engine.feed, self._frames())
        self._thread = threading.Thread(target=self._player.run, name="motioncue exercise", daemon=True)

    def __enter__(self) -> "Exerciser":
        """Rise to neutral; raise ConfigError if the platform does not."""
        self.engine.start()
        try:
            self._thread.start()
            supervisor, platform = self.profile.supervisor, self.profile.platform
            assert platform is not None
            self._wait(lambda: self._state() is State.RUNNING, PATIENCE_S, "the platform did not engage")
            rise_s = max(platform.rise_s, supervisor.engage_s) + supervisor.fade_s + SPARE_S
            self._wait_for(rise_s)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Fade to neutral and go down, whatever has happened, then end."""
        try:
            self.engine.stop()
        finally:
            self._player.stop()

    def pose_of(self, actuator: int, way: float) -> Array:
        """Return the pose in which one actuator is `way` above neutral, the others as near to it as the frame allows.

        Units: `way` [m or rad].
        """
        positions = np.array(self.built.neutral)
        positions[actuator] += way
        pose: Array = self.built.kinematics.forward(positions[None], np.zeros(6))[0]
        if not np.isfinite(pose).all():
            raise ConfigError(f"{self.built.names[actuator]}: found no pose in which it moves alone")
        return pose

    def move(self, pose: Array, shape: Shape, duration_s: float) -> npt.NDArray[np.void]:
        """Move along a pose and back, and return the ticks if traced; raise ConfigError if the platform stopped.

        Units: `duration_s` [s].
        """
        begun = len(self.engine.trace)
        self._rests.clear()
        self._next = (np.asarray(pose, float), shape, duration_s)
        self._wait(self._rests.is_set, duration_s + PATIENCE_S, "the move did not end")
        self._wait_for(0.5)
        return self.engine.trace[begun:].copy()

    def _state(self) -> State:
        return State(int(self.engine.newest()["state"][0]))

    def _wait_for(self, seconds: float) -> None:
        """Wait while the platform follows."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._state() not in (State.RUNNING, State.HOLDING, State.ENGAGING):
                raise ConfigError(f"the platform stopped: {self._why()}")
            time.sleep(LOOK_S)

    def _wait(self, condition: Callable[[], bool], patience_s: float, otherwise: str) -> None:
        end = time.monotonic() + patience_s
        while not condition():
            if self._state() is State.FAULT:
                raise ConfigError(f"the platform stopped: {self._why()}")
            if time.monotonic() > end:
                raise ConfigError(f"{otherwise}: {self._why()}")
            time.sleep(LOOK_S)

    def _why(self) -> str:
        """Return the newest reason of a change of state, and that nothing was heard if that is so."""
        stats = self.engine.stats()
        heard = [output["replies"]["received"] for output in stats["outputs"] if "replies" in output]
        if heard and not sum(heard):
            return "it has answered nothing; if yours gives no replies, write reply = [] into the packet"
        moves = stats["transitions"]
        return str(moves[-1]["reason"]).replace("_", " ") if moves else "no reason is known"

    def _frames(self) -> Iterator[Paced]:
        """Yield frames of a car that stands, and of each move that is asked for."""
        row, frame_s, begun = np.zeros(1, MOTION_DTYPE), 0.0, 0.0
        move: tuple[Array, Shape, float] | None = None
        while True:
            if move is None and self._next is not None:
                move, self._next, begun = self._next, None, frame_s
            if move is not None:
                pose, shape, duration_s = move
                at, speed, bent = (float(each[0]) for each in shape(np.array([frame_s - begun])))
                for value, channel in zip(pose, POSE, strict=True):
                    if channel in KINDS:
                        row[KINDS[channel]] = value * bent
                    else:
                        row[channel], row[f"{channel}_rate"] = value * at, value * speed
                if frame_s - begun > duration_s:
                    move = None
                    self._rests.set()
            row["yaw"] += NOISE * (1 - 2 * (round(frame_s / FRAME_S) % 2))
            row["frame_time"] = frame_s
            yield Paced(FRAME_S, row.tobytes())
            frame_s += FRAME_S
