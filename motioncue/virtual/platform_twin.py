"""A platform in software: actuators follow their commands as real ones do, a driver feels the frame.

The drives are those of `motioncue.platforms.servo`; the pose of the frame follows from their positions by kinematics.
Its listener moves by the packets that a profile describes.
"""

import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.drive.peers import DatagramListener
from motioncue.engine.assembly import actuate, load_profile
from motioncue.errors import ConfigError, PacketError
from motioncue.output.described import Described
from motioncue.platforms.build import CHANNELS, Built, build, channels_of
from motioncue.platforms.servo import Servos
from motioncue.platforms.settings import ActuatorBounds, Platform
from motioncue.profile.profile import Profile
from motioncue.wire.description import Actuated, PacketTable, Value

Array = npt.NDArray[np.float64]

LONGEST_DELAY_S = 0.5


class Drive(NamedTuple):
    """How a platform's actuators follow their commands."""

    lag_s: float = 0.03
    """Delay of slow motions by the drive's lag [s]; 0.03 s is the time constant of the Asetek ES9's actuators."""
    damping: float | None = None
    """Damping ratio of a second-order lag; first order if None."""
    dead_time_s: float = 0.005
    """Time before a command has any effect [s]."""
    friction: float = 0.0
    """Half width of the band of friction, as a share of an actuator's range."""


def drive_of(platform: Platform) -> Drive:
    """Return the drive that a platform's table describes: with its lag, if it states one."""
    if platform.lag_s is None:
        return Drive() if platform.dead_time_s is None else Drive(dead_time_s=platform.dead_time_s)
    return Drive(lag_s=platform.lag_s, damping=platform.lag_damping, dead_time_s=platform.dead_time_s or 0.0)


class Felt(NamedTuple):
    """What a platform made of its commands; one row per tick."""

    time: Array
    """Time of each tick since the first [s], shape (n,)."""
    sent: Array
    """Commanded positions, shape (n, actuators) [m or rad]."""
    actuators: Array
    """Positions of the drives, shape (n, actuators) [m or rad]."""
    pose: Array
    """Surge, sway, heave [m], roll, pitch, yaw [rad] of the motion reference point, shape (n, 6)."""
    specific_force: Array
    """Forward, right, up [m/s^2] at the driver, in the platform's axes, less its value at rest; shape (n, 3)."""
    rates: Array
    """Roll, pitch, yaw rate about the platform's axes [rad/s], shape (n, 3)."""


class VirtualPlatform:
    """A platform in software.

    Notes
    -----
    The end stops are the ends of the actuators' ranges.  Play, elasticity and the weight on the frame are not modelled.

    Examples
    --------
    >>> from motioncue.platforms.build import platform_named
    >>> import numpy as np
    >>> platform = VirtualPlatform(platform_named("posts-4"), 333.33)
    >>> felt = platform.follow(np.full((1000, 4), 0.05))        # begins there: nothing moves
    >>> felt.pose[-1, 2].round(6)
    0.05
    """

    def __init__(
        self,
        platform: Platform,
        rate_hz: float,
        drive: Drive | None = None,
        head_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        self.built: Built = build(platform)
        self.drive = drive_of(platform) if drive is None else drive
        self.dt = 1.0 / rate_hz
        self._head_m = head_m
        self.servos = Servos(self.built.bounds, self.dt, *self.drive)

    def reset(self) -> None:
        """Forget the past: the drives begin at the next command."""
        self.servos.reset()

    def positions(self, sent: npt.ArrayLike) -> Array:
        """Return where the drives are at each tick; they continue from the call before.

        Units: `sent` [m or rad].
        """
        reached: npt.NDArray[np.float64] = self.servos.process(sent)
        return reached

    def follow(self, sent: npt.ArrayLike) -> Felt:
        """Return what the platform makes of commanded positions; the drives continue from the call before.

        Units: `sent` [m or rad].
        """
        sent = np.ascontiguousarray(sent, dtype=np.float64)
        actuators = self.positions(sent)
        pose = self.built.kinematics.forward(actuators)
        force, rates = sensed(pose, self.dt, self._head_m)
        time = np.arange(len(sent), dtype=np.float64) * self.dt
        return Felt(time, sent, actuators, pose, force, rates)

    def stats(self) -> dict[str, Any]:
        """Return what the drives did so far, by actuator.

        ``travel`` is the share of the range that was used; ``hits`` of end stops and the hardest, ``impact`` [per s];
        ``speed`` and ``acceleration`` are the largest as shares of what the actuator is made for; ``overruns`` counts
        ticks more than a twentieth beyond either.
        """
        found = self.servos.stats()
        bounds = ActuatorBounds.columns(self.built.bounds)
        columns = {
            "travel": (found["highest"] - found["lowest"]) / (bounds.high - bounds.low),
            "hits": found["hits"],
            "impact": found["impact"],
            "speed": found["speed"] / bounds.speed,
            "acceleration": found["acceleration"] / bounds.acceleration,
            "overruns": found["too_fast"] + found["too_hard"],
        }
        return {
            name: {key: values[place].item() for key, values in columns.items()}
            for place, name in enumerate(self.built.names)
        }


def sensed(pose: Array, dt: float, head_m: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> tuple[Array, Array]:
    """Return what a driver on a moving frame feels: specific force less its value at rest, and rates.

    Accelerations are central second differences, which have no delay; the first and the last tick repeat
    their neighbor.

    Units: `dt` [s].
    """
    roll, pitch, yaw = np.unwrap(pose[:, 3:], axis=0).T
    (sr, sp, sy), (cr, cp, cy) = (np.sin((roll, pitch, yaw)), np.cos((roll, pitch, yaw)))
    # Rows of the matrix that takes platform axes to base axes: x forward, y right, z down.
    turned = (
        (cp * cy, sr * sp * cy - cr * sy, cr * sp * cy + sr * sy),
        (cp * sy, sr * sp * sy + cr * cy, cr * sp * sy - sr * cy),
        (-sp, sr * cp, cr * cp),
    )
    place = pose[:, 0], pose[:, 1], -pose[:, 2]
    arm = head_m[0], head_m[1], -head_m[2]
    head = [at + x * arm[0] + y * arm[1] + z * arm[2] for at, (x, y, z) in zip(place, turned, strict=True)]
    felt = [np.zeros(len(pose)) for _ in range(3)]
    if len(pose) > 2:
        for each, at in zip(felt, head, strict=True):
            each[1:-1] = np.diff(at, 2) / dt**2
    felt[2] -= GRAVITY  # an accelerometer reads a - g
    force = [sum(turned[row][column] * felt[row] for row in range(3)) for column in range(3)]
    if len(pose) > 2:
        for along in force:
            along[0], along[-1] = along[1], along[-2]
    slopes = np.gradient(np.stack((roll, pitch, yaw)), dt, axis=1) if len(pose) > 1 else np.zeros((3, len(pose)))
    roll_change, pitch_change, yaw_change = slopes
    rates = (
        roll_change - yaw_change * sp,
        pitch_change * cr + yaw_change * cp * sr,
        yaw_change * cp * cr - pitch_change * sr,
    )
    return np.stack((force[0], force[1], -force[2] - GRAVITY), axis=1), np.stack(rates, axis=1)


def delay_s(before: npt.ArrayLike, after: npt.ArrayLike, dt: float) -> float | None:
    """Return by how much `after` is later than `before` [s]; None if either does not move.

    The place of the largest correlation coefficient of both speeds, up to half a second either way, refined by a
    parabola.

    Units: `dt` [s].
    """
    speeds = [np.diff(np.reshape(side, (len(side), -1)), axis=0) for side in map(np.asarray, (before, after))]
    count = len(speeds[0])
    most = min(round(LONGEST_DELAY_S / dt), count // 2)
    if most < 1 or not all(speed.any() for speed in speeds):
        return None
    size = 1 << (2 * count).bit_length()
    first, second = (np.fft.rfft(speed, size, axis=0) for speed in speeds)
    found = np.fft.irfft((np.conj(first) * second).sum(axis=1), size)
    lags = np.arange(-most, most + 1)
    # Both sides overlap less at a long delay, so each value is divided by what is left of either side.
    energies = [np.concatenate(([0.0], np.cumsum((speed * speed).sum(axis=1)))) for speed in speeds]
    left = [np.maximum(-lags, 0), np.maximum(lags, 0)]
    right = [count - np.maximum(lags, 0), count - np.maximum(-lags, 0)]
    weights = [energy[end] - energy[begin] for energy, begin, end in zip(energies, left, right, strict=True)]
    found = found[lags] / np.sqrt(np.maximum(weights[0] * weights[1], 1e-300))
    place = int(np.argmax(found))
    shift = 0.0
    if 0 < place < 2 * most:
        left, middle, right = found[place - 1 : place + 2]
        shift = 0.5 * (left - right) / (left - 2.0 * middle + right)
    return float((place - most + shift) * dt)


def grid_hz(profile: Profile) -> float:
    """Return the rate of the emitter's grid, whose period is a whole number of nanoseconds [Hz]."""
    return 1e9 / round(1e9 / profile.rate_hz)


def felt(
    profile: Profile | str | Path, cues: npt.NDArray[np.void], output: int = 0, drive: Drive | None = None
) -> Felt:
    """Return what a driver on the profile's platform feels of `cues`, computed offline."""
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    if profile.platform is None:
        raise ConfigError(f"{profile.name}: found no [platform]")
    platform = VirtualPlatform(profile.platform, grid_hz(profile), drive)
    return platform.follow(actuate(profile, cues, output)["actuators"][:, : len(platform.built.names)])


SHORTEST_S = 2.0  # of motion from which a delay is found
KEPT = 120_000  # positions that a listener keeps: six minutes at 333 Hz


class Decoder:
    """Reads a platform's actuators from the packets that a profile describes."""

    def __init__(self, table: PacketTable, actuators: Mapping[str, Actuated]) -> None:
        self.described = Described(table)
        self._terms: dict[int, tuple[str, float, float]] = {}
        missing = actuators_not_sent(table, actuators)
        if missing:
            raise ConfigError(f"output.packet: found no {', '.join(missing)}: a virtual platform needs every actuator")
        for axis, (name, each) in enumerate(actuators.items(), 1):
            found = _carrier(self.described, name, axis)
            assert found is not None
            field, value = found
            size = each.high - each.low if value.measure == "share" else 1.0
            zero = {"share": each.low, "stroke": each.neutral, "position": 0.0}[value.measure] - each.shift
            scale = size / (value.scale * table.scale)
            place = place_of(each, axis)
            self._terms[place] = field, each.sign * scale, each.sign * (zero - scale * value.bias)

    def positions(self, packet: bytes) -> Array:
        """Return the positions in a packet, shape (1, actuators); raise PacketError if it is another."""
        layout = self.described.identify(packet)
        if layout.name != "motion":
            raise PacketError(f"custom: found {layout.name}, which has no positions")
        fields = layout.decode(packet)
        terms = [self._terms[place] for place in sorted(self._terms)]
        return np.array([[fields[field] * scale + zero for field, scale, zero in terms]], np.float64)


def place_of(actuator: Actuated, axis: int) -> int:
    """Return the place among the drives of what hangs at a controller's axis, from 0; a pose stays in order."""
    number = actuator.channel.removeprefix("actuator_")
    return int(number) - 1 if number.isdigit() else axis - 1


def actuators_not_sent(table: PacketTable, actuators: Mapping[str, Actuated]) -> list[str]:
    """Return the actuators of a platform that no field of a packet holds by itself."""
    described = Described(table)
    return [name for axis, name in enumerate(actuators, 1) if _carrier(described, name, axis) is None]


def _carrier(described: Described, name: str, axis: int) -> tuple[str, Value] | None:
    """Return the field that holds a controller's axis, and how; None if there is none."""
    for field, value in described.values.items():
        if value.channel in (name, f"actuator_{axis}") and value.wrap is None and value.scale:
            return field, value
    return None


class PlatformListener(DatagramListener):
    """A virtual platform that listens for its packets; each packet is one tick."""

    def __init__(self, profile: Profile, urls: Iterable[str], drive: Drive | None = None) -> None:
        table = profile.outputs[0].packet
        if profile.platform is None or table is None:
            raise ConfigError(f"{profile.name}: found no [platform] with [output.packet]")
        self._decoder = Decoder(table, channels_of(profile.platform))
        self.platform = VirtualPlatform(profile.platform, grid_hz(profile), drive)
        self._rise_s = profile.platform.rise_s
        self._sent, self._made = array("d"), array("d")  # a row of actuators a packet, one after the other
        self._wide = len(self.platform.built.names)
        self._forgotten = False  # whether the first ones have been dropped
        self._busy = threading.Lock()  # for `positions`, which another thread reads
        self._pose: dict[str, Any] = dict.fromkeys(CHANNELS, 0.0)
        super().__init__(self._decoder.described, urls)

    def take(self, data: bytes, now_ns: int, sender: str = "") -> None:
        """Take one datagram that arrived at `now_ns`: move by a tick."""
        try:
            sent = self._decoder.positions(data)
        except PacketError:
            sent = None  # counted below
        if sent is not None:
            if not np.isfinite(sent).all():
                self.rejected["not_finite"] += 1
                return
            with self._busy:
                self._sent.frombytes(sent.tobytes())
                self._made.frombytes(self._follow(sent, data).tobytes())
                if len(self._sent) > KEPT * self._wide:
                    del self._sent[: KEPT // 2 * self._wide], self._made[: KEPT // 2 * self._wide]
                    self._forgotten = True
        super().take(data, now_ns, sender)

    def _rows(self, kept: Sequence[float]) -> Array:
        """Return a copy of kept positions, a row a packet."""
        return np.array(kept, np.float64).reshape(-1, self._wide)

    def _follow(self, sent: Array, data: bytes) -> Array:
        """Return where the drives are a tick later, as they are sent by the packet `data`."""
        return self.platform.positions(sent)

    def last(self, name: str) -> dict[str, Any]:
        """Return the newest packet's actuators, and the pose at which the drives hold the frame."""
        with self._busy:
            made = self._rows(self._made[-self._wide :])
        if len(made):
            start = np.array([self._pose[channel] for channel in CHANNELS])
            pose = self.platform.built.kinematics.forward(made, start)[0]
            if np.isfinite(pose).all():
                self._pose = dict(zip(CHANNELS, pose.tolist(), strict=True))
        return {**super().last(name), **self._pose}

    def delay_behind_cue_s(self, ticks: npt.NDArray[np.void]) -> float | None:
        """Return by how much the drives are later than the pose of the cue [s]; None if that cannot be said.

        The longest time in which the platform had risen and the whole cue was sent and within reach is used, at least
        two seconds.
        """
        with self._busy:
            made = self._rows(self._made) if not self._forgotten else self._rows([])
        ticks = ticks[: len(made)]
        bounds = ActuatorBounds.columns(self.platform.built.bounds)
        poses = np.stack([ticks["cue"][channel] for channel in CHANNELS], axis=1)
        wanted = self.platform.built.kinematics.inverse(poses)
        usable = ((bounds.low <= wanted) & (wanted <= bounds.high)).all(axis=1) & (ticks["weight"] == 1.0)
        # It rises from when it engages, the first ticks included, and only then follows the cue.
        engaged = np.maximum.accumulate(np.where(ticks["weight"] == 0.0, np.arange(len(ticks)), 0))
        usable &= np.arange(len(ticks)) - engaged > self._rise_s / self.platform.dt
        ends = np.flatnonzero(np.diff(np.concatenate(([False], usable, [False]))))
        begin, end = max(zip(ends[::2], ends[1::2], strict=True), key=lambda run: run[1] - run[0], default=(0, 0))
        if (end - begin) * self.platform.dt < SHORTEST_S:
            return None
        return delay_s(wanted[begin:end], made[begin:end], self.platform.dt)

    def stats(self) -> dict[str, Any]:
        """Return what was received, ``actuators`` (`VirtualPlatform.stats`), ``delay_s`` behind packets."""
        with self._busy:
            sent, made = self._rows(self._sent), self._rows(self._made)
            actuators = self.platform.stats() if len(made) else {}
        delay = delay_s(sent, made, self.platform.dt) if len(made) > 1 else None
        return {**super().stats(), "actuators": actuators, "delay_s": delay}
