"""The effect of a fault on the motion, and whether the drive shows it, computed from the car's true states.

This module does not use `motioncue check`.  The harm is the difference between the motion from the packets and the
correct motion.  The evidence is how far the quantities, as decoded, contradict each other over stretches of a second,
measured with the frames' true times: a fault that leaves every relation unchanged cannot be seen.
"""

import dataclasses
from typing import get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from scipy.spatial.transform import Rotation

from motioncue import sources
from motioncue.core.channels import MOTION_DTYPE
from motioncue.wire.packet import Derivation

__all__ = ["HARM", "Reading", "choices", "evidence", "harm", "mends", "read_with"]

SOURCE = "source.acceleration"
SPAN_S = 1.0
SHOWN = 6  # number of equally contradicting stretches needed as evidence


@dataclasses.dataclass
class Reading:
    """The motion that an intake makes from packets, one row per frame."""

    motion: np.ndarray
    position: np.ndarray  # north, east, down [m]
    velocity: np.ndarray
    about: np.ndarray  # index of each frame's state in the drive
    refused: int


def read_with(wire, said, options):
    """Return what an intake of the source reads; the options may contain ``source.acceleration`` too."""
    options = dict(options)
    acceleration = options.pop(SOURCE, "native")
    module = sources.source(wire.system)
    intake = module.intake(msgspec.convert(dict(options), module.Options), derivation=Derivation(acceleration))
    intake.begin(1)
    motion, world, about = [], [], []
    for package in wire.first:
        intake.feed(package, 1)
    for row, time, state in zip(said.rows, said.times, said.about, strict=True):
        before = intake.accepted
        intake.feed(row.tobytes(), 1 + round(time * 1e9))
        if intake.accepted > before:
            motion.append(intake.frame().tobytes())
            world.append(intake.world())
            about.append(state)
    places = np.array(world).reshape(-1, 2, 3)
    rows = np.frombuffer(b"".join(motion), MOTION_DTYPE)
    return Reading(rows, places[:, 0], places[:, 1], np.array(about, np.intp), len(said.rows) - len(rows))


HARM = {
    "surge": 0.5,
    "sway": 0.5,
    "heave": 0.5,
    "roll": 0.03,
    "pitch": 0.03,
    "yaw": 0.05,
    "roll_rate": 0.03,
    "pitch_rate": 0.03,
    "yaw_rate": 0.03,
    "speed": 0.5,
}
"""Tolerance of each channel: a larger error, as root mean square of its worst tenth, is harm."""


def _worst(values):
    """Return the root mean square of the largest tenth."""
    size = np.sort(np.abs(values))
    return float(np.sqrt(np.mean(size[-max(1, len(size) // 10) :] ** 2))) if len(size) else 0.0


def harm(found, right):
    """Return the error of each channel in tolerances; a constant offset of the heading does not count.

    Parameters
    ----------
    found, right : Reading
        The actual and the correct reading of the same drive.
    """
    known, place = np.unique(right.about, return_index=True)
    rows = np.searchsorted(known, found.about)
    rows = np.clip(rows, 0, len(known) - 1)
    truth = right.motion[place[rows]]
    out = {}
    for channel, tolerance in HARM.items():
        off = found.motion[channel] - truth[channel]
        if channel in ("roll", "pitch", "yaw"):
            if channel == "yaw" and len(off):
                off = off - np.angle(np.mean(np.exp(1j * off)))
            off = np.angle(np.exp(1j * off))
        out[channel] = _worst(off) / tolerance
    if len(found.motion) < len(right.motion) / 2:
        out["frames"] = 10.0 * found.refused / max(1, len(right.motion))
    return out


def _attitude(motion):
    return Rotation.from_euler("ZYX", np.stack([motion["yaw"], motion["pitch"], motion["roll"]], -1))


def evidence(reading, time):
    """Return how strongly each relation is contradicted, in units of clear evidence.

    Parameters
    ----------
    reading : Reading
        The decoded packets.
    time : ndarray
        True time of each frame [s].
    """
    new = np.diff(time, prepend=-np.inf) > 0.0  # a repeated frame carries no new information
    time, n = time[new], int(new.sum())
    reading = Reading(
        *(getattr(reading, name)[new] for name in ("motion", "position", "velocity", "about")), reading.refused
    )
    if n < 60 or np.ptp(time) < 3 * SPAN_S:
        return {}
    starts = np.arange(time[0], time[-1] - SPAN_S, SPAN_S / 2)
    a = np.searchsorted(time, starts)
    b = np.clip(np.searchsorted(time, starts + SPAN_S), 0, n - 1)
    good = (b - a > 8) & (time[b] - time[a] < 1.5 * SPAN_S)
    a, b = a[good], b[good]
    turn = _attitude(reading.motion)
    m = reading.motion
    body = np.stack([m["surge"], m["sway"], -m["heave"]], -1)
    world = turn.apply(body)

    def total(values):
        steps = np.diff(time)[:, None] * (values[1:] + values[:-1]) / 2
        summed = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(steps, axis=0)])
        return summed[b] - summed[a]

    moved, gone = reading.position[b] - reading.position[a], total(reading.velocity)
    middle = turn[(a + b) // 2]
    gain = middle.apply(total(world) - (reading.velocity[b] - reading.velocity[a]), inverse=True)
    rates = np.stack([m["roll_rate"], m["pitch_rate"], m["yaw_rate"]], -1)
    turned = (turn[:-1].inv() * turn[1:]).as_rotvec() / np.diff(time)[:, None]
    turned = np.concatenate([turned, turned[-1:]])
    spin = total(rates) - total(turned)
    forward = turn.apply([1.0, 0.0, 0.0])[(a + b) // 2]

    def astray(track):
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.einsum("ij,ij->i", forward, track) / np.linalg.norm(track, axis=1)
        return np.where(np.linalg.norm(track, axis=1) > 3.0 * SPAN_S, (1.0 - cosine) / 0.3, 0.0)

    def climbing(track):
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = -track[:, 2] / np.linalg.norm(track, axis=1) + forward[:, 2]
        return np.where(np.linalg.norm(track, axis=1) > 3.0 * SPAN_S, slope / 0.06, 0.0)

    def strong(values):
        values = np.sort(np.abs(np.nan_to_num(values)))
        return float(values[-SHOWN]) if len(values) >= SHOWN else 0.0

    if not np.ptp(reading.position, axis=0).any():  # a position that never changes is one that is not reported
        moved = np.full_like(gone, np.nan)
    out = {
        "place": strong(np.linalg.norm((moved - gone)[:, :2], axis=1) / 1.5),
        "place, upwards": strong((moved - gone)[:, 2] / 0.5),
        "course by position": strong(astray(moved)),
        "course by velocity": strong(astray(gone)),
        "climb by position": strong(climbing(moved)),
        "climb by velocity": strong(climbing(gone)),
        "surge": strong(gain[:, 0] / 1.0),
        "sway": strong(gain[:, 1] / 1.0),
        "heave": strong(gain[:, 2] / 1.0),
        "roll rate": strong(spin[:, 0] / 0.05),
        "pitch rate": strong(spin[:, 1] / 0.05),
        "yaw rate": strong(spin[:, 2] / 0.05),
    }
    span = time[-1] - time[0]
    summed = np.concatenate([[0.0], np.cumsum(np.diff(time) * (world[1:, 2] + world[:-1, 2]) / 2)])
    change = reading.velocity[-1, 2] - reading.velocity[0, 2]
    out["gravity"] = abs(summed[-1] - (0.0 if np.isnan(change) else change)) / span / 1.5
    down = turn.apply([0.0, 0.0, 1.0])[:, 2]
    out["up"] = 3.0 * float(np.mean(down < 0.5))
    out["refused"] = 4.0 * reading.refused / max(1, reading.refused + n)
    return out


def choices(system, base):
    """Return every other value of one option of a source, acceleration from velocity included."""
    module = sources.source(system)
    hints = get_type_hints(module.Options)
    values = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is not None and get_args(hint)}
    values = {name: v for name, v in values.items() if all(isinstance(value, str) for value in v)}
    values.pop("reply", None)
    values["source.acceleration"] = ("native", "from_velocity")
    defaults = msgspec.to_builtins(module.Options())
    now = {**defaults, "source.acceleration": "native", **base}
    return [{name: v} for name, many in values.items() for v in many if v != now[name]]


def mends(wire, said, clean, base, suits, change, before):
    """Return the effect of a change of options: the worst harm that remains, and the most that it adds.

    What the change derives is compared with the same quantity derived from the correct packets.
    """
    derived = {name: value for name, value in change.items() if name == SOURCE or value == "derived"}
    reading = read_with(wire, said, {**base, **change})
    if not len(reading.motion):
        return np.inf, np.inf
    after = harm(reading, read_with(wire, clean, {**suits, **derived}))
    left = max((after.get(name, 0.0) for name, size in before.items() if size > 1.0), default=0.0)
    added = max((after.get(name, 0.0) - before[name] for name in before), default=0.0)
    return left, added
