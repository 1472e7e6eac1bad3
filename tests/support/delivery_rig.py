"""Helpers of the delivery tests: honest drives, ways to deliver their frames, and a pipeline in simulated time."""

from typing import NamedTuple

import numpy as np
import quaternion as npq
from helpers import truth

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.drive.car import STATE_DTYPE
from motioncue.engine.pipeline import Pipeline
from motioncue.sources import system_of
from motioncue.sources.beamng import twin as beamng
from motioncue.sources.beamng_simulink import twin as beamng_simulink
from motioncue.sources.city_car_driving import twin as city_car_driving
from motioncue.sources.described import twin as described
from motioncue.sources.morai import twin as morai
from motioncue.sources.vehicle_physics_pro import twin as vehicle_physics_pro

START = 1_000_000_000
PERIOD = 3_000_030  # [ns] length of a tick
LINEAR = ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate", "speed")
RATES = ("roll_rate", "pitch_rate", "yaw_rate")
ANGLES = ("roll", "pitch", "yaw")
FADE = 15 / 8 * PERIOD * 1e-9  # largest step of a fade of 1 s, as a share of its height


class Source(NamedTuple):
    """A simulator whose packets carry the drive."""

    profile: str
    rate_hz: float
    packets: object  # takes states and frame numbers; returns a list of bytes, one per frame
    stream: bool = False  # in lock-step: a frame is late rather than lost, and comes once
    numbered: bool = False  # whether an overtaken datagram can be recognized
    delay_s: float = 0.0  # delay of rates derived from the attitude without known intervals
    clock_s: float = 0.0  # the simulator's own time when the drive begins


def _beamng_packets(states, numbers):
    motion, _ = beamng.encode_states(states)
    return [row.tobytes() for row in motion]


def _unity_packets(states, numbers):
    rows = vehicle_physics_pro.encode_states(states)
    rows["counter"] = numbers
    return [row.tobytes() for row in rows]


def _simulink_packets(states, numbers):
    rows = beamng_simulink.encode_states(states)
    rows["id"] = numbers
    return [row.tobytes() for row in rows]


def _morai_packets(states, numbers):
    return [row.tobytes() for row in morai.encode_states(states)]


def _city_car_packets(states, numbers):
    return [row.tobytes() for row in city_car_driving.encode_states(states)]


SOURCES = {
    "vehicle-physics-pro": Source("vehicle-physics-pro-dk", 50.0, _unity_packets, numbered=True),  # stamps each frame
    "beamng": Source("beamng-dk", 100.0, _beamng_packets),  # carries no time
    "beamng-simulink": Source("beamng-simulink-dk", 200.0, _simulink_packets, numbered=True),  # counts its frames
    "morai": Source("morai-dk", 50.0, _morai_packets, delay_s=0.08),  # its stamps are not those of the physics
    "city-car-driving": Source("ccd-dk", 60.0, _city_car_packets, stream=True),  # carries the duration of each frame
}


def _game_packets(profile):
    """Return the function that encodes states as the packets that a built-in profile describes."""
    source = motioncue.load_profile(profile).source

    def packets(states, numbers):
        system = system_of(source)
        values = described.channel_values(system.table, states) | {"time": states["time"]}
        rows = described.encode(system.table, system.table, values, len(states))
        return [system.plain(row.tobytes()) if system.table.cipher else row.tobytes() for row in rows]

    return packets


# The described games whose packets have a time: as numbers of 4 bytes, in seconds, milliseconds or frames.
GAMES = {
    name: Source(f"{name}-dk", rate_hz, _game_packets(f"{name}-dk"), numbered=True, clock_s=clock_s)
    for name, rate_hz, clock_s in (
        ("forza", 60.0, 100.0),
        ("live-for-speed", 100.0, 100.0),
        ("gran-turismo-7", 60.0, 100.0),
        ("dirt-rally", 60.0, 0.0),
        ("f1", 60.0, 100.0),
        ("f1-2026", 60.0, 100.0),
        ("x-plane", 60.0, 100.0),
        ("program", 60.0, 100.0),
    )
}
# One that has none.
MAVLINK = {"mavlink": Source("mavlink-dk", 60.0, _game_packets("mavlink-dk"))}
ALL = SOURCES | GAMES | MAVLINK


class Drive:
    """A car whose acceleration and attitude are sums of sines, every other channel their integral or derivative.

    Parameters
    ----------
    accelerations : sequence of 3 lists of (amplitude, omega, phase)
        North, east, down [m/s^2, rad/s, rad].
    angles : sequence of 3 lists of (amplitude, omega, phase)
        Roll, pitch, yaw [rad, rad/s, rad].
    speed : float
        Mean speed north [m/s].
    turning : float
        Mean yaw rate [rad/s].
    """

    def __init__(self, accelerations, angles, speed=20.0, turning=0.0):
        self.accelerations, self.angles, self.speed, self.turning = accelerations, angles, speed, turning

    def states(self, time):
        """Return the states at these times [s], ndarray of STATE_DTYPE."""
        states = np.zeros(len(time), STATE_DTYPE)
        states["time"] = time
        for axis, waves in enumerate(self.accelerations):
            for amplitude, omega, phase in waves:
                wave = omega * time + phase
                states["acceleration"][:, axis] += amplitude * np.sin(wave)
                states["velocity"][:, axis] -= amplitude / omega * np.cos(wave)
                states["position"][:, axis] -= amplitude / omega**2 * np.sin(wave)
        states["velocity"][:, 0] += self.speed
        states["position"][:, 0] += self.speed * time
        angle, rate = np.zeros((2, 3, len(time)))
        for axis, waves in enumerate(self.angles):
            for amplitude, omega, phase in waves:
                angle[axis] += amplitude * np.sin(omega * time + phase)
                rate[axis] += amplitude * omega * np.cos(omega * time + phase)
        angle[2] += self.turning * time
        rate[2] += self.turning
        (roll, pitch, _), (p, q, r) = angle, rate
        about = [npq.from_rotation_vector(np.outer(angle[axis], np.eye(3)[axis])) for axis in range(3)]
        attitude = about[2] * about[1] * about[0]
        states["orientation"] = npq.as_float_array(attitude)
        body = np.stack(
            [
                p - r * np.sin(pitch),
                q * np.cos(roll) + r * np.sin(roll) * np.cos(pitch),
                r * np.cos(roll) * np.cos(pitch) - q * np.sin(roll),
            ],
            axis=1,
        )
        states["angular_velocity"] = np.einsum("nij,nj->ni", npq.as_rotation_matrix(attitude), body)
        return states


class Run(NamedTuple):
    """The output, and the drive's own motion at the same times."""

    trace: np.ndarray
    truth: dict
    events: dict
    transitions: list


def deliver(drive, source, bridge, taken, arrivals, *overrides, after_s=0.5, operate=(), pauses=(), clock_s=None):
    """Run a pipeline on a fake clock, with frames taken at `taken` and arriving at `arrivals` [s], in that order.

    Parameters
    ----------
    operate : sequence of (time [s], name)
        The operator's actions.
    pauses : sequence of (time, duration)
        When and for how long the emitter gets no processor, while frames are received [s].
    clock_s : float, optional
        The simulator's own time when the drive begins [s]; that of the source if not given.

    Returns
    -------
    Run
    """
    source = ALL[source]
    profile = motioncue.load_profile(source.profile, f"source.bridge={bridge}", *overrides)
    length = max(float(np.max(arrivals)), *(time for time, _ in operate), 0.0) if operate else float(np.max(arrivals))
    end = START + round(1e9 * (length + after_s))
    clock = FakeClock(START)
    pipeline = Pipeline(profile, clock, (end - START) // PERIOD + 2)
    pipeline.intake.begin(START)
    if source.stream:
        pipeline.intake.feed(city_car_driving.INIT_PACKAGE, START)
    numbers = np.round(np.asarray(taken) * source.rate_hz)
    states = drive.states(np.asarray(taken))
    states["time"] += source.clock_s if clock_s is None else clock_s
    packets = source.packets(states, numbers)
    queue = [(START + round(1e9 * float(at)), 0, packet) for at, packet in zip(arrivals, packets, strict=True)]
    queue += [(START + round(1e9 * at), 1, name) for at, name in operate]
    queue += [(START + round(1e9 * at), 2, round(1e9 * duration)) for at, duration in pauses]
    for at, kind, what in sorted(queue, key=lambda row: row[:2]):
        if at >= clock.now_ns():
            pipeline.emitter.run(until_ns=at)
        if kind == 0:
            pipeline.intake.feed(what, at)
        elif kind == 1:
            getattr(pipeline.emitter, what)()
        else:
            clock.advance(max(at + what - clock.now_ns(), 0))
    pipeline.emitter.run(until_ns=end)
    trace = pipeline.emitter.trace
    real = truth(drive.states((trace["deadline"] - START) * 1e-9))
    return Run(trace, real, pipeline.intake.discontinuities, pipeline.transitions()[0])


def stalls(taken, delay_s, at, apart_s=0.0003):
    """Return arrivals of frames whose sender stalls: from each time `at` for a duration [s]; the missed ones follow.

    Parameters
    ----------
    taken : ndarray of shape (n,)
        In order [s].
    delay_s : float
        Delay of every frame [s].
    at : sequence of (time, duration)
        The stalls [s].
    apart_s : float
        Interval between the missed frames [s].
    """
    arrivals = taken + delay_s
    for begin, duration in at:
        arrivals = np.where((arrivals >= begin) & (arrivals < begin + duration), begin + duration, arrivals)
    for i in range(1, len(arrivals)):
        arrivals[i] = max(arrivals[i], arrivals[i - 1] + (apart_s if arrivals[i] - taken[i] > delay_s else 0.0))
    return arrivals


def in_bunches(taken, _rng):
    return taken, np.repeat(taken[3::4], 4)


def jittered(taken, rng, most_s=0.006):
    return taken, np.maximum.accumulate(taken + rng.uniform(0.0, most_s, len(taken)))


def lost(taken, rng, share=0.1):
    kept = taken[rng.random(len(taken)) > share]
    return kept, kept + 1e-4 * rng.random(len(kept))


def held_up(taken, rng):
    late = np.where(rng.random(len(taken)) < 0.05, 0.05, 0.0)
    return taken, np.maximum.accumulate(taken + 1e-3 * rng.random(len(taken)) + late)


DELIVERIES = (in_bunches, jittered, lost, held_up)
"""Functions of when frames were taken [s] and a random generator: which of them come, and when [s]."""


class Link(NamedTuple):
    """How evenly taken frames travel from the simulator."""

    delay_s: float  # delay of every frame
    backlog: float  # spacing of frames that had to wait for one another, in intervals
    jitter: tuple[float, float, float] = (0.0, 0.0, 0.0)  # from, to [s], and the largest additional delay [s]
    stalls: tuple[tuple[float, float], ...] = ()  # start and duration [s] of times in which nothing gets through
    losses: tuple[tuple[float, int], ...] = ()  # time [s] and number of lost frames
    lossy: tuple[float, float, float] = (0.0, 0.0, 0.0)  # from, to [s], and the share of frames lost
    twice: float = 0.0  # share of the frames that come twice
    swapped: float = 0.0  # share of the frames that come after the next one

    def frames(self, source, length_s, seed):
        """Return when the arriving frames were taken, and when they arrive, in that order [s].

        On a stream none comes twice or overtakes another; neither does one whose order cannot be recognized.
        """
        interval_s = 1.0 / ALL[source].rate_hz
        rng = np.random.default_rng(seed)
        taken = interval_s * np.arange(int(length_s / interval_s))
        begin, end, most = self.jitter
        ready = taken + self.delay_s + np.where((taken > begin) & (taken < end), rng.uniform(0, most, len(taken)), 0.0)
        for at, duration in self.stalls:
            ready = np.where((ready >= at) & (ready < at + duration), at + duration, ready)
        arrivals = ready.copy()
        for i in range(1, len(arrivals)):
            if ready[i] <= arrivals[i - 1]:
                arrivals[i] = arrivals[i - 1] + self.backlog * interval_s
        begin, end, share = self.lossy
        kept = ~((taken > begin) & (taken < end) & (rng.uniform(size=len(taken)) < share))
        for at, count in self.losses:
            first = int(at / interval_s)
            kept[first : first + count] = False
        often = np.where(rng.uniform(size=len(taken)) < self.twice, 2, 1) * kept
        swapped = rng.uniform(size=len(taken)) < self.swapped
        if ALL[source].stream:
            often = 1 * kept
        if ALL[source].numbered:
            for i in np.flatnonzero(swapped[:-1]):
                taken[i], taken[i + 1] = taken[i + 1], taken[i]
                arrivals[i] = arrivals[i + 1]  # overtaken, so late: no frame comes before it is taken
        return np.repeat(taken, often), np.repeat(arrivals, often)


def steps(values, name):
    """Return the steps of a channel from tick to tick; angles the short way round."""
    moved = np.abs(np.diff(values))
    return np.minimum(moved, 2 * np.pi - moved) if name in ANGLES else moved


class Found(NamedTuple):
    """The worst of a run: relative to `bound`, and in intervals of the drive's own largest slope."""

    step: float
    turn: float  # change of the step from one tick to the next
    beyond: float  # how far a value is beyond the drive's range [intervals]
    channel: str  # the channel of the largest step


def bound(run, name, source, bridge, interval_s=None):
    """Return 1.2 times the drive's own largest step plus the largest of a fade of 1 s; and that own step.

    Attitude is one quantity: its angles are held to the fastest turn, about whatever axis.  `hold` moves by
    whole frames, so its measure is the drive's motion between two frames; in a tick, if that is longer, between as many
    as it may bring.  A rate derived over an unknown interval may be
    wrong by its own size, of which the filter passes the share of an interval.
    """
    names = ANGLES if name in ANGLES else (name,)
    interval_s = interval_s or 1.0 / ALL[source].rate_hz
    paced = np.diff(run.trace["deadline"]) < 1.5 * PERIOD  # while the emitter pauses, the drive moves on
    own = max(steps(run.truth[other], other)[paced].max() for other in names)
    if name in ANGLES:
        own = max(own, 1e-9 * PERIOD * np.sqrt(sum(run.truth[rate] ** 2 for rate in RATES)).max())
    largest = max(max(np.ptp(run.truth[other]), np.abs(run.truth[other]).max()) for other in names)
    own = max(own, 1e-5 * largest + 1e-9)  # packets carry numbers of 4 bytes
    frames = np.ceil(1e-9 * PERIOD / interval_s)  # as many as a tick may bring
    stretch = frames * interval_s / (PERIOD * 1e-9) if bridge == "hold" else 1.0
    error = 0.0
    if name in RATES and ALL[source].delay_s > 0.0:
        error = largest * (1.0 - np.exp(-interval_s / ALL[source].delay_s))
    return stretch * (1.2 * own + FADE * largest) + error, own


def worst(run, source, bridge, interval_s=None):
    """Return the worst of all channels that move; frames are up to `interval_s` apart, if not at the source's rate."""
    found = []
    interval_s = interval_s or 1.0 / ALL[source].rate_hz
    late = run.trace["lateness"] > 0.4 * PERIOD  # after a pause in which nothing moved
    for name in (*LINEAR, *ANGLES):
        truth, cue = run.truth[name], run.trace["cue"][name]
        limit, own = bound(run, name, source, bridge, interval_s)
        turn = beyond = 0.0
        if name not in ANGLES:
            turn = np.abs(np.diff(cue, 2))[~late[2:]].max() / limit
        # Fades take the present value to zero and back; derived rates may be wrong.
        if name not in (*ANGLES, "speed", *(RATES if ALL[source].delay_s > 0.0 else ())):
            outside = max(cue.max() - max(truth.max(), 0.0), min(truth.min(), 0.0) - cue.min())
            beyond = outside / own * PERIOD * 1e-9 / interval_s
        found.append(Found(steps(cue, name).max() / limit, turn, beyond, name))
    return Found(*(float(max(column)) for column in list(zip(*found, strict=True))[:3]), max(found).channel)
