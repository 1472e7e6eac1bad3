"""Quality of a bridge: the motion at every tick compared with the truth, relative to `hold`.

``python -m motioncue.bench.bridge`` prints the tables of ``docs/bridge.md``.
"""

import math
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.bridge.bridge import KINDS, Bridge
from motioncue.core.channels import MOTION_DTYPE
from motioncue.drive.car import states_at
from motioncue.frames.convert import body_motion
from motioncue.recording.recording import read_motion, sample_recording

Array: TypeAlias = npt.NDArray[np.float64]
Truth: TypeAlias = Callable[[Array], npt.NDArray[np.void]]

PERIOD_NS = 3_000_030  # tick [ns]: 333.33 Hz
FRAME_RATES_HZ = (30.0, 50.0, 60.0, 144.0)

GROUPS = {
    "accelerations": ("surge", "sway", "heave"),
    "attitude": ("roll", "pitch", "yaw"),
    "body rates": ("roll_rate", "pitch_rate", "yaw_rate"),
    "speed": ("speed",),
}
CHANNELS = tuple(name for names in GROUPS.values() for name in names)

UNEVEN = 0.1  # largest deviation of a frame from an even spacing, in frame intervals
LOST = 0.01  # share of frames that never arrive
LATE_US = ((0.0, 40.0), (0.5, 95.0), (0.99, 600.0), (0.999, 8597.0), (1.0, 14648.0))
"""Delay of frames: quantile and time [us], interpolated on a logarithmic scale.

The wake-ups of a process without priority, measured on an idle machine of two virtual processors: 333 a second in the
default class with the default timer slack; the worst figures of a series of measurements.
"""

SETTLE_S = 2.0  # not counted at the beginning; half of it at the end
TAPS = 401  # length of the filters that split the error at a quarter and at half of the frame rate


class Worth(NamedTuple):
    """Quality of a bridge for one channel."""

    error: float  # rms error, relative to `hold`
    staircase_db: float  # energy of the error above half the frame rate, relative to `hold` [dB]
    delay_s: float  # delay, below a quarter of the frame rate, that fits the error best [s]


def car(name: str) -> Truth:
    """Return the virtual car on a scripted drive, which can be evaluated at any time."""

    def truth(time: Array) -> npt.NDArray[np.void]:
        states = states_at(name, time)
        motion: npt.NDArray[np.void] = body_motion(
            states["orientation"],
            states["velocity"],
            states["acceleration"],
            states["angular_velocity"],
            states["angular_acceleration"],
            world_north=(1.0, 0.0, 0.0),
            world_up=(0.0, 0.0, -1.0),
            car_forward=(1.0, 0.0, 0.0),
            car_up=(0.0, 0.0, -1.0),
        )
        return motion

    return truth


def recorded(below_hz: float = 30.0) -> Truth:
    """Return the package's real drive, as the band-limited signal that its frames sample."""
    frames = read_motion(sample_recording())
    rate_hz = 60.0
    cut = below_hz / (0.5 * rate_hz)
    half = math.ceil(24 / cut)  # samples on each side
    values = np.stack([np.unwrap(frames[name]) if name == "yaw" else frames[name] for name in CHANNELS])

    def truth(time: Array) -> npt.NDArray[np.void]:
        place = time * rate_hz
        nearest = np.floor(place).astype(int)
        total = np.zeros((len(CHANNELS), len(time)))
        for sample in range(1 - half, half + 1):
            offset = place - (nearest + sample)
            window = np.i0(8.0 * np.sqrt(np.clip(1.0 - (offset / half) ** 2, 0.0, 1.0))) / np.i0(8.0)
            total += values[:, np.clip(nearest + sample, 0, len(frames) - 1)] * (cut * np.sinc(cut * offset) * window)
        motion = np.zeros(len(time), MOTION_DTYPE)
        for name, row in zip(CHANNELS, total, strict=True):
            motion[name] = np.angle(np.exp(1j * row)) if name == "yaw" else row
        return motion

    return truth


def sine(frequency_hz: float) -> Truth:
    """Return a sine in surge, speed, and pitch with its rate; all other channels are zero."""
    omega = 2.0 * math.pi * frequency_hz

    def truth(time: Array) -> npt.NDArray[np.void]:
        motion = np.zeros(len(time), MOTION_DTYPE)
        motion["surge"] = np.sin(omega * time)
        motion["speed"] = 20.0 + np.sin(omega * time + 1.0)
        motion["pitch"] = 0.02 * np.sin(omega * time + 2.0)
        motion["pitch_rate"] = 0.02 * omega * np.cos(omega * time + 2.0)
        return motion

    return truth


def arrivals(truth: Truth, rate_hz: float, duration_s: float, rng: np.random.Generator) -> npt.NDArray[np.void]:
    """Return a simulator's frames as they arrive: unevenly spaced, late by `LATE_US`, some lost.

    Units: `truth` [s].
    """
    count = int(duration_s * rate_hz)
    taken = (np.arange(count) + 1.0 + rng.uniform(-UNEVEN, UNEVEN, count)) / rate_hz
    quantiles, late_us = zip(*LATE_US, strict=True)
    late = 1e-6 * np.exp(np.interp(rng.uniform(size=count), quantiles, np.log(late_us)))
    frames = truth(taken)
    frames["frame_time"] = taken - taken[0]
    frames["time"] = np.round(1e9 * np.maximum.accumulate(taken + late))
    kept: npt.NDArray[np.void] = frames[rng.uniform(size=count) >= LOST]
    return kept


def evaluate(truth: Truth, rate_hz: float, duration_s: float = 58.0, seed: int = 1) -> dict[str, dict[str, Worth]]:
    """Return the quality of every kind of bridge for every channel that moves."""
    frames = arrivals(truth, rate_hz, duration_s, np.random.default_rng(seed))
    ticks = np.arange(round(2e9 / rate_hz) + 100_000_000, round((duration_s - 0.2) * 1e9), PERIOD_NS)
    true = truth(np.asarray(ticks * 1e-9, dtype=np.float64))
    inside = slice(round(SETTLE_S * 1e9 / PERIOD_NS), -round(0.5 * SETTLE_S * 1e9 / PERIOD_NS))
    slow, fast = _low_pass(0.25 * rate_hz), -_low_pass(0.5 * rate_hz)
    fast[TAPS // 2] += 1.0
    moved = {kind: Bridge(kind).process(frames, ticks) for kind in KINDS}
    worth: dict[str, dict[str, Worth]] = {kind: {} for kind in KINDS}
    for name in CHANNELS:
        x = np.unwrap(true[name]) if name == "yaw" else true[name]
        if np.ptp(x) < 1e-9:
            continue
        change = np.gradient(np.convolve(x, slow, "same"), PERIOD_NS * 1e-9)[inside]
        errors = {kind: motion[name] - x for kind, motion in moved.items()}
        if name in GROUPS["attitude"]:
            errors = {kind: np.angle(np.exp(1j * error)) for kind, error in errors.items()}
        stairs = {kind: _rms(np.convolve(error, fast, "same")[inside]) for kind, error in errors.items()}
        for kind, error in errors.items():
            worth[kind][name] = Worth(
                _rms(error[inside]) / _rms(errors["hold"][inside]),
                20.0 * math.log10(stairs[kind] / stairs["hold"]),
                -float(np.dot(np.convolve(error, slow, "same")[inside], change) / np.dot(change, change)),
            )
    return worth


def _rms(x: Array) -> float:
    return math.sqrt(float(np.mean(x * x)))


def _low_pass(edge_hz: float) -> Array:
    place = np.arange(TAPS) - TAPS // 2
    share = 2.0 * edge_hz * PERIOD_NS * 1e-9
    taps: Array = share * np.sinc(share * place) * np.kaiser(TAPS, 8.0)
    return taps


def signals() -> Iterator[tuple[str, float, Truth, float]]:
    """Yield the signals to measure: name, frame rate [Hz], truth, duration [s]."""
    for rate_hz in FRAME_RATES_HZ:
        for part in (0.1, 0.15, 0.2, 0.25):
            yield f"sine, {part:g} of the frame rate", rate_hz, sine(part * rate_hz), 30.0
    for rate_hz in FRAME_RATES_HZ:
        yield "virtual car", rate_hz, car("tour"), 58.0
    for rate_hz in FRAME_RATES_HZ:
        if 0.23 * rate_hz < 30.0:
            yield f"real drive below {0.23 * rate_hz:.3g} Hz", rate_hz, recorded(0.23 * rate_hz), 58.0
    for rate_hz in FRAME_RATES_HZ:
        yield "real drive, all of it", rate_hz, recorded(), 58.0


def tables() -> str:
    """Return the tables of ``docs/bridge.md`` in Markdown."""
    rows: dict[str, list[str]] = {kind: [] for kind in KINDS if kind != "hold"}
    for name, rate_hz, truth, duration_s in signals():
        found = evaluate(truth, rate_hz, duration_s)
        held = _of_groups(found["hold"])
        for kind in rows:
            groups = _of_groups(found[kind])
            cells = [name, f"{rate_hz:g}", *(f"{worth.error:.2f}" for worth in groups.values())]
            cells.append(f"{max(worth.staircase_db for worth in groups.values()):.0f}")
            delays = (1e3 * max((w.delay_s for w in side.values()), key=abs) for side in (held, groups))
            cells.append(" → ".join(f"{delay:.1f}" for delay in delays))
            rows[kind].append(f"| {' | '.join(cells)} |")
    head = f"| signal | frames/s | {' | '.join(GROUPS)} | staircase dB | delay ms |\n|{'---|' * (len(GROUPS) + 4)}"
    return "\n\n".join(f"`{kind}`:\n\n{head}\n" + "\n".join(lines) for kind, lines in rows.items())


def _of_groups(channels: dict[str, Worth]) -> dict[str, Worth]:
    """Return the mean over the channels of each group."""
    return {
        group: Worth(*(float(np.mean(figures)) for figures in zip(*members, strict=True)))
        for group, names in GROUPS.items()
        if (members := [channels[name] for name in names if name in channels])
    }


if __name__ == "__main__":
    sys.stdout.write(tables() + "\n")
