"""A simulator that a profile describes: the virtual car sends the described packets."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CHASSIS, GRAVITY, WHEELS
from motioncue.drive.car import angles_and_rates, body_axes
from motioncue.drive.courses import FIRST, Lap, course
from motioncue.drive.peers import DatagramSimulator, MemorySimulator, Paced
from motioncue.errors import ConfigError
from motioncue.sources.described.channels import CAR, CHANNELS, UNITS, WORLD, directions
from motioncue.sources.described.source import DescribedSource
from motioncue.wire.description import Form, SourceField, SourcePacket

RATE_HZ = 60.0
"""Packets per second, unless another rate is wanted or the description gives one [Hz]."""

BODY = ("roll", "pitch", "yaw")
SPRING = 0.003  # travel per specific force of the virtual car [s^2]
Array = npt.NDArray[np.float64]


def rotations(states: npt.NDArray[np.void]) -> Array:
    """Return the matrices from the car's axes to the world's."""
    w, x, y, z = states["orientation"].T
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def quaternions(matrices: Array) -> Array:
    """Return the quaternions w, x, y, z of rotation matrices, shape (n, 4), by the largest component."""
    m = np.moveaxis(matrices, 0, -1)
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    # Row k is four times component k times the quaternion.
    rows = np.array(
        [
            [1.0 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], 1.0 + 2.0 * m[0, 0] - trace, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
            [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1.0 + 2.0 * m[1, 1] - trace, m[1, 2] + m[2, 1]],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1.0 + 2.0 * m[2, 2] - trace],
        ]
    )
    best = np.argmax(np.stack([rows[k, k] for k in range(4)]), axis=0)
    chosen = np.moveaxis(rows, -1, 0)[np.arange(len(best)), best]
    out: Array = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
    return out


def ordered_angles(matrices: Array, order: Sequence[str]) -> Array:
    """Return the angles roll, pitch, yaw, shape (3, n), that turn the world's axes into the car's in an order.

    With i, j, k the axes in order and e = 1 if they follow each other cyclically, else -1, the matrix has e sin(b) at
    (i, k), where b is the middle angle.  Own derivation.
    """
    m = np.moveaxis(matrices, 0, -1)
    i, j, k = (BODY.index(name) for name in order)
    e = 1.0 if (j - i) % 3 == 1 else -1.0
    out = np.empty((3, m.shape[-1]))
    out[i] = np.arctan2(-e * m[j, k], m[k, k])
    out[j] = np.arcsin(np.clip(e * m[i, k], -1.0, 1.0))
    out[k] = np.arctan2(-e * m[i, j], m[i, i])
    return out


def chassis_values(force: Array, rates: Array) -> dict[str, Array]:
    """Return what springs without mass do under the car: travel [m] and its velocity by wheel; the rest is 0.

    Springs feel the specific force, acceleration less gravity, in the car's axes [m/s^2].  A wheel comes nearer to the
    body where the load goes: at the front in braking and downhill, at the left in a flat turn to the right, everywhere
    where the road pushes up; at rest on level ground, travel is 0.  The velocity is what turning of the body makes.
    """
    out = {channel.name: np.zeros(len(force)) for channel in CHASSIS}
    for wheel in WHEELS:
        front, left = (1.0 if word in wheel else -1.0 for word in ("front", "left"))
        out[f"suspension_{wheel}"] = SPRING * (-front * force[:, 0] + left * force[:, 1] - (force[:, 2] + GRAVITY))
        out[f"suspension_velocity_{wheel}"] = -front * 1.3 * rates[:, 1] - left * 0.7 * rates[:, 0]
    return out


def channel_values(table: SourcePacket, states: npt.NDArray[np.void]) -> dict[str, Array]:
    """Return every channel that the car can report, in SI units (or rpm) and the source's axes."""
    world, car = directions(table.world, WORLD, "world"), directions(table.car, CAR, "car")
    turned = rotations(states)
    _, rates, changes = angles_and_rates(states)
    north, east, _ = WORLD[table.heading_from]
    ahead = np.array(
        [[north, east, 0], [-east, north, 0], [0, 0, 1]]
    )  # rows: the direction of yaw 0, right of it, down
    angles = ordered_angles(ahead @ turned, table.order)
    acceleration = body_axes(states, "acceleration")
    force = acceleration - GRAVITY * turned[:, 2, :]  # less the world's down axis in the car's axes
    lifted = states["acceleration"]
    if table.gravity == "included":
        acceleration = force
        lifted = lifted - GRAVITY * np.array([0.0, 0.0, 1.0])
    if table.rates != "angles":
        rates, changes = body_axes(states, "angular_velocity").T, body_axes(states, "angular_acceleration").T
    out: dict[str, Array] = dict(zip(("surge", "sway"), acceleration.T, strict=False)) | {"heave": -acceleration[:, 2]}
    for suffix, values in (("", angles), ("_rate", rates), ("_acceleration", changes)):
        out |= {f"{name}{suffix}": value for name, value in zip(BODY, values, strict=True)}
    out |= {"speed": np.linalg.norm(states["velocity"], axis=1), "engine_speed": states["engine_speed"]}
    out |= chassis_values(force, body_axes(states, "angular_velocity"))
    in_car = table.rates != "world"
    vectors = {
        "position": states["position"] @ world.T,
        "velocity": body_axes(states, "velocity") @ car.T if table.velocity == "car" else states["velocity"] @ world.T,
        "acceleration": acceleration @ car.T if table.acceleration == "car" else lifted @ world.T,
        "forward": turned[:, :, 0] @ world.T,
        "right": turned[:, :, 1] @ world.T,
        "up": -turned[:, :, 2] @ world.T,
    }
    axes = car if in_car else world
    for name in ("angular_velocity", "angular_acceleration"):
        turns = body_axes(states, name) if in_car else states[name]
        vectors[name] = np.linalg.det(axes) * turns @ axes.T  # a turn about z takes x to y
    for name, rows in vectors.items():
        out |= {f"{name}_{axis}": rows[:, place] for place, axis in enumerate("xyz")}
    own = quaternions(world @ turned @ car.T) if np.linalg.det(world) * np.linalg.det(car) > 0 else turned[:, 0, :1]
    return out | {f"quaternion_{axis}": own[:, place] for place, axis in enumerate("wxyz"[: own.shape[1]])}


def encode(
    table: SourcePacket, form: SourcePacket | Form, values: dict[str, Array], count: int
) -> npt.NDArray[np.uint8]:
    """Return one packet for each state, shape (count, size): the shortest form, the first block."""
    size = form.size if isinstance(form.size, int) else min(form.size)
    packets = np.zeros((count, size), np.uint8)
    for constant in form.constants:
        data = bytes.fromhex(constant.bytes)
        packets[:, constant.offset : constant.offset + len(data)] = np.frombuffer(data, np.uint8)
    for field in form.fields:
        if field.channel is not None:
            numbers = _wire(table, field, values[field.channel])
            bytes_ = np.ascontiguousarray(numbers).view(np.uint8).reshape(count, -1)
            packets[:, field.offset : field.offset + bytes_.shape[1]] = bytes_
    return packets


def _wire(table: SourcePacket, field: SourceField, values: Array) -> npt.NDArray[Any]:
    """Return numbers as they are in the packet."""
    assert field.channel is not None
    units = UNITS[CHANNELS[field.channel].quantity]
    numbers = (values / units[field.unit or next(iter(units))] - field.bias) / field.scale
    dtype = np.dtype(("<" if table.byte_order == "little" else ">") + field.type)
    if dtype.kind != "f":
        info = np.iinfo(dtype)
        numbers = np.clip(np.rint(numbers), float(info.min), float(info.max))
    return numbers.astype(dtype)


class Car:
    """Plays a described simulator; used as the module of a built-in one."""

    def __init__(self, source: DescribedSource) -> None:
        self._source = source
        self.Simulator = DatagramSimulator if source.gather is None else partial(MemorySimulator, gather=source.gather)

    def driven(
        self, name: str, rate_hz: float | None = None, duration_s: float | None = None, lap: Lap = FIRST
    ) -> Iterator[Paced]:
        """Yield the packets of a virtual drive; nothing is sent while the simulation does not run."""
        table, gather = self._source.table, self._source.gather
        rate_hz = rate_hz or (RATE_HZ if gather is None or gather.samples == 1 else gather.sample_hz)
        drive = course(name, rate_hz, duration_s, lap)
        values = channel_values(table, drive.states)
        values["frame_duration"] = drive.frame_times
        values["time"] = np.zeros(len(drive.states))
        for number in np.unique(drive.sessions):  # the simulator's time begins again in each
            own = drive.sessions == number
            values["time"][own] = drive.began_s + np.cumsum(drive.frame_times[own])
        others = [form for form in table.forms if form.role in ("part", "needed")]
        forms: Sequence[SourcePacket | Form] = (*others, table)
        rows = [encode(table, form, values, len(drive.states)) for form in forms]
        stands = "time" not in self._source.channels and "frame_duration" not in self._source.channels
        wait = 0.0
        for index, (pause, duration) in enumerate(zip(drive.waits.tolist(), drive.frame_times.tolist(), strict=True)):
            wait += pause
            if stands and duration <= 0.0:
                continue
            for place, row in enumerate(rows):
                last = place == len(rows) - 1
                yield Paced(wait if place == 0 else 0.0, self._enciphered(row[index], index), motion=last)
            wait = 0.0

    def _enciphered(self, packet: npt.NDArray[np.uint8], nonce: int) -> bytes:
        """Return a packet as it is sent: if the source has a cipher, with a number as nonce."""
        cipher = self._source.table.cipher
        if cipher is None:
            return packet.tobytes()
        for offset in cipher.nonce:
            packet[offset : offset + 4] = np.frombuffer(nonce.to_bytes(4, "little"), np.uint8)
        return self._source.plain(packet.tobytes())

    def recorded(
        self, packages: Sequence[bytes], times: Sequence[float] | None = None, rate_hz: float | None = None
    ) -> Iterator[Paced]:
        """Yield recorded packets, at `rate_hz`, at the `times` of their capture [s], or at their own."""
        if rate_hz is None and times is None:
            times = self._own_times(packages)
        before = None
        for index, package in enumerate(packages):
            motion = self._source.is_motion(package)
            duration = 1.0 / rate_hz if rate_hz and motion else 0.0
            if not rate_hz and times is not None:
                duration, before = 0.0 if before is None else max(times[index] - before, 0.0), times[index]
            yield Paced(duration, package, motion=motion)

    def _own_times(self, packages: Sequence[bytes]) -> list[float]:
        """Return the packets' own times [s], the one before for packets without any; refuse a source without."""
        if "time" not in self._source.channels:
            raise ConfigError(f"--rate: missing, neither {self._source} nor the file says when packets came")
        field = self._source.channels["time"]
        dtype = np.dtype(("<" if self._source.table.byte_order == "little" else ">") + field.type)
        seconds = field.scale * UNITS["time"][field.unit or "s"]
        out: list[float] = []
        for package in packages:
            motion = self._source.is_motion(package)
            plain = self._source.plain(package)
            time = float(np.frombuffer(plain, dtype, 1, field.offset)[0]) * seconds if motion else math.nan
            out.append(time if math.isfinite(time) else out[-1] if out else 0.0)
        return out
