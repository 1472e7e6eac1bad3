"""A virtual platform that listens: it moves by the packets that a profile describes."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.drive.listener import DatagramListener
from motioncue.errors import ConfigError, PacketError
from motioncue.output.described import Described
from motioncue.platforms.build import CHANNELS, channels_of
from motioncue.profile.profile import Profile
from motioncue.virtual.platform import Drive, VirtualPlatform, delay_s, grid_hz
from motioncue.wire.description import Actuated, PacketTable, Value

__all__ = ["Decoder", "PlatformListener", "missing_from"]

Array = npt.NDArray[np.float64]

SHORTEST_S = 2.0  # of motion from which a delay is found
KEPT = 120_000  # positions that a listener keeps: six minutes at 333 Hz


class Decoder:
    """Reads a platform's actuators from the packets that a profile describes.

    Parameters
    ----------
    table : PacketTable
        The packet.
    actuators : mapping of str to Actuated
        Those of the profile's platform, by name.

    Raises
    ------
    ConfigError
        If the packet lacks an actuator, or has it only as part of a sum.
    """

    def __init__(self, table: PacketTable, actuators: Mapping[str, Actuated]) -> None:
        self.described = Described(table)
        self._terms = []
        missing = missing_from(table, actuators)
        if missing:
            raise ConfigError(f"output.packet: found no {', '.join(missing)}: a virtual platform needs every actuator")
        for name, each in actuators.items():
            found = _carrier(self.described, name, each)
            assert found is not None
            field, value = found
            size = each.high - each.low if value.measure == "share" else 1.0
            zero = {"share": each.low, "stroke": each.neutral, "position": 0.0}[value.measure]
            scale = size / (value.scale * table.scale)
            self._terms.append((field, scale, zero - scale * value.bias))

    def positions(self, packet: bytes) -> Array:
        """Return the positions in a packet, shape (1, actuators); raise PacketError if it is another."""
        layout = self.described.identify(packet)
        if layout.name != "motion":
            raise PacketError(f"custom: found {layout.name}, which has no positions")
        fields = layout.decode(packet)
        return np.array([[fields[field] * scale + zero for field, scale, zero in self._terms]], np.float64)


def missing_from(table: PacketTable, actuators: Mapping[str, Actuated]) -> list[str]:
    """Return the actuators of a platform that no field of a packet holds by itself.

    Parameters
    ----------
    table : PacketTable
        The packet.
    actuators : mapping of str to Actuated
        Those of the platform, by name.
    """
    described = Described(table)
    return [name for name, each in actuators.items() if _carrier(described, name, each) is None]


def _carrier(described: Described, name: str, actuator: Actuated) -> tuple[str, Value] | None:
    """Return the field that holds an actuator, and how; None if there is none."""
    for field, value in described.values.items():
        if value.channel in (name, actuator.channel) and value.wrap is None and value.scale:
            return field, value
    return None


class PlatformListener(DatagramListener):
    """A virtual platform that listens for its packets; each packet is one tick.

    Parameters
    ----------
    profile : Profile
        A profile with a platform, whose first output has ``[output.packet]``.
    urls : iterable of str
        Endpoints to listen at, ``udp://HOST:PORT``.
    drive : Drive, optional
        How the actuators follow; `drive_of` the platform if not given.

    Raises
    ------
    ConfigError
        If the profile has no platform, or its packet lacks an actuator.
    EndpointError
        If an endpoint is not valid or in use.
    """

    def __init__(self, profile: Profile, urls: Iterable[str], drive: Drive | None = None) -> None:
        table = profile.outputs[0].packet
        if profile.platform is None or table is None:
            raise ConfigError(f"{profile.name}: found no [platform] with [output.packet]")
        self._decoder = Decoder(table, channels_of(profile.platform))
        self.platform = VirtualPlatform(profile.platform, grid_hz(profile), drive)
        self._rise_s = profile.platform.rise_s
        self._sent: list[Array] = []
        self._made: list[Array] = []
        self._forgotten = False  # whether the first ones have been dropped
        self._busy = threading.Lock()  # for `positions`, which another thread reads
        self._pose: dict[str, Any] = dict.fromkeys(CHANNELS, 0.0)
        super().__init__(self._decoder.described, urls)

    def take(self, data: bytes, now_ns: int) -> None:
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
                self._sent.append(sent)
                self._made.append(self.platform.positions(sent))
                if len(self._sent) > KEPT:
                    del self._sent[: KEPT // 2], self._made[: KEPT // 2]
                    self._forgotten = True
        super().take(data, now_ns)

    def last(self, name: str) -> dict[str, Any]:
        """Return the newest packet's actuators, and the pose at which the drives hold the frame."""
        with self._busy:
            made = self._made[-1] if self._made else None
        if made is not None:
            start = np.array([self._pose[channel] for channel in CHANNELS])
            pose = self.platform.built.kinematics.forward(made, start)[0]
            if np.isfinite(pose).all():
                self._pose = dict(zip(CHANNELS, pose.tolist(), strict=True))
        return {**super().last(name), **self._pose}

    def behind(self, ticks: npt.NDArray[np.void]) -> float | None:
        """Return by how much the drives are later than the pose of the cue [s]; None if that cannot be said.

        The longest time in which the platform had risen and the whole cue was sent and within reach is used, at least
        two seconds.

        Parameters
        ----------
        ticks : ndarray of TICK_DTYPE, shape (n,)
            The first ticks, one per packet.
        """
        with self._busy:
            made = np.concatenate(self._made) if self._made and not self._forgotten else np.empty((0, 1))
        ticks = ticks[: len(made)]
        low, high, *_ = np.array(self.platform.built.bounds).T
        poses = np.stack([ticks["cue"][channel] for channel in CHANNELS], axis=1)
        wanted = self.platform.built.kinematics.inverse(poses)
        usable = ((low <= wanted) & (wanted <= high)).all(axis=1) & (ticks["weight"] == 1.0)
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
            sent, made = (np.concatenate(rows) if rows else np.empty((0, 1)) for rows in (self._sent, self._made))
            actuators = self.platform.stats() if len(made) else {}
        delay = delay_s(sent, made, self.platform.dt) if len(made) > 1 else None
        return {**super().stats(), "actuators": actuators, "delay_s": delay}
