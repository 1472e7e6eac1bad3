"""What a person is shown of a running engine, in the terminal and in the browser."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue import cueing
from motioncue.bench.report import GRADES, bearable, duration, punctual
from motioncue.cueing.senses import felt_in_car
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Change
from motioncue.platforms.build import CHANNELS as POSE
from motioncue.platforms.build import Built, build, carriers_of, ranges
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile
from motioncue.safety.supervisor import Platform as Claim
from motioncue.safety.supervisor import State

SKIPPED = 1e-3  # share of ticks left out that matters
LIMITED = 0.01  # share of ticks limited that matters
SELDOM = 0.25  # share of frames after which the input was lost that is no accident
UNFOUND = 0.1  # share of plans that were not found that matters: on hard drives it is a few in a hundred
DEGREES = 57.29577951308232


class Watched(Protocol):
    """What the page shows, operates and tunes: an engine, or a recording that plays."""

    @property
    def profile(self) -> Profile:
        """The profile in force."""

    @property
    def requested(self) -> Profile:
        """The profile requested last."""

    def newest(self) -> npt.NDArray[np.void]:
        """Return the newest tick, ndarray of TICK_DTYPE and shape (1,)."""

    def stats(self) -> dict[str, Any]:
        """Return the statistics so far."""

    def retune(self, change: Change) -> None:
        """Change settings; raise ConfigError if they are refused."""

    def engage(self) -> None:
        """Follow the input."""

    def hold(self) -> None:
        """Hold the present motion."""

    def park(self) -> None:
        """Fade to neutral and stay there."""


class Channel(NamedTuple):
    """One channel of a view."""

    name: str  # name in the record
    label: str
    unit: str
    factor: float  # shown value = SI value * factor
    scale: float  # smallest value at the end of a bar or plot, as shown


CHANNELS = (
    Channel("surge", "surge", "m/s²", 1.0, 5.0),
    Channel("sway", "sway", "m/s²", 1.0, 5.0),
    Channel("heave", "heave", "m/s²", 1.0, 5.0),
    Channel("roll", "roll", "°", DEGREES, 5.0),
    Channel("pitch", "pitch", "°", DEGREES, 5.0),
    Channel("yaw_rate", "yaw rate", "°/s", DEGREES, 20.0),
)
"""The channels from top to bottom; yaw is shown as a rate, because a heading has no neutral."""


def path_of(profile: Profile) -> str:
    """Return a line that says how the profile's systems are connected."""
    own = "custom" if profile.platform is None else str(profile.platform.__struct_config__.tag)
    platforms = " + ".join(own if output.system == "custom" else output.system for output in profile.outputs)
    return f"{profile.name}: {profile.source.system} → {cueing.name_of(profile.cueing)} → {platforms}"


def values_of(record: Any) -> dict[str, float]:
    """Return the view's channels from a record of shape (1,) or a mapping of fields."""
    if isinstance(record, Mapping):
        return {channel.name: float(record[channel.name]) for channel in CHANNELS if channel.name in record}
    return {channel.name: float(record[channel.name][0]) for channel in CHANNELS}


def felt_of(motion: npt.NDArray[np.void]) -> dict[str, float]:
    """Return what is felt in the car: specific force less that of standing level [m/s^2].

    An acceleration says less: a car that leans, or climbs, is felt too.
    """
    return dict(zip(("surge", "sway", "heave"), felt_in_car(motion)[0].tolist(), strict=False))


def pose_of(tick: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return the pose that a tick's cue asks for, ndarray of shape (6,) [m, rad]."""
    return np.array([tick["cue"][name][0] for name in POSE])


def positions_of(tick: npt.NDArray[np.void], built: Built) -> npt.NDArray[np.float64]:
    """Return the actuators' positions: as sent, or if no output sends any, for the cue's pose."""
    sent: npt.NDArray[np.float64] = tick["actuators"][0, : len(built.names)]
    if sent.any():
        return sent
    asked: npt.NDArray[np.float64] = built.kinematics.inverse(pose_of(tick)[np.newaxis], held=True)[0]
    return asked


def used_of(positions: npt.NDArray[np.float64], built: Built) -> dict[str, float]:
    """Return how far each actuator is from neutral, -1 at its lowest and 1 at its highest position."""
    used = {}
    for name, at, neutral, bounds in zip(built.names, positions.tolist(), built.neutral, built.bounds, strict=True):
        moved = at - neutral
        travel = bounds.high - neutral if moved > 0.0 else neutral - bounds.low
        used[name] = moved / travel if travel > 0.0 else 0.0
    return used


class PlatformInForce:
    """The platform of the profile in force, built anew only when its table changes."""

    def __init__(self) -> None:
        self._held: tuple[Platform, Built] | None = None

    def __call__(self, profile: Profile) -> Built | None:
        """Return a profile's platform; None without one."""
        table = profile.platform
        if table is None:
            return None
        if self._held is None or self._held[0] is not table:
            self._held = (table, build(table))
        return self._held[1]


class Verdict(NamedTuple):
    """What a run is worth, in one sentence."""

    level: Literal["good", "warn", "bad", "none"]
    words: str


def grade(stats: Mapping[str, Any], rate_hz: float) -> str:
    """Return how punctual the ticks were, in the words of `motioncue bench`."""
    if not stats["packets_sent"]:
        return "no tick yet"
    row = {
        "rate_hz": rate_hz,
        "emitter": {**{key: stats[key] for key in ("skipped", "lateness_us")}, "ticks": stats["packets_sent"]},
    }
    return GRADES[0] if punctual(row) else GRADES[2] if bearable(row) else GRADES[3]


def verdict(stats: Mapping[str, Any], rate_hz: float | None = None) -> Verdict:
    """Return what is most wrong with a run, and what to do next; all is well only if it was on time."""
    packets = stats["packets_sent"]
    most = max(stats["limited"], key=stats["limited"].__getitem__, default="")
    if not stats["frames_received"]:
        return Verdict("none", "nothing was driven: no frame came from a simulator")
    if not packets or any(output["refused"] for output in stats["outputs"]):
        return Verdict(
            "bad", "the platform did not get every packet: see the rows below, and the endpoint in the profile"
        )
    losses = sum(move.get("reason") == "input_lost" for move in stats["transitions"])
    if losses > max(3, SELDOM * stats["frames_received"]):
        return Verdict(
            "warn",
            "frames are farther apart than they are held, so the platform goes down between them: set "
            "`supervisor.hold_s` to two and a half of their intervals, or let the simulator send more",
        )
    if not any(move["to"] == "RUNNING" for move in stats["transitions"]):
        return Verdict(
            "warn", "the platform was never driven: the run ended, or was held, before it had risen and engaged"
        )
    if any(output["unheard"] for output in stats["outputs"]):
        return Verdict(
            "bad", "nobody heard some of the packets: is the platform's program running, and at that endpoint?"
        )
    if any(move["to"] == "FAULT" for move in stats["transitions"]):
        return Verdict(
            "bad", "there was a fault: the events below say why; `motioncue check` examines the simulator's data"
        )
    if stats["skipped"] > SKIPPED * packets:
        return Verdict("bad", "ticks were left out, the machine was too busy: `motioncue bench` shows what it can do")
    rate_hz = rate_hz or stats["rate_hz"]
    timing = grade(stats, rate_hz) if rate_hz else GRADES[0]  # after one packet, no rate can be measured
    late = stats["lateness_us"]
    if timing == GRADES[3]:
        return Verdict(
            "bad",
            f"not on time: one packet in 100 left {duration(late['p99'])} late or more, the machine was too busy: "
            "`motioncue bench` shows what it can do",
        )
    if stats["events"] or any(stats["rejected"].values()):
        return Verdict(
            "warn", "the drive was not whole: the rows below say what was caught, `motioncue check` examines the data"
        )
    if lost := _returns(stats["transitions"]):
        return Verdict(
            "warn", f"the input was lost and came back ({lost}): the events below say when the platform was parked"
        )
    if most and stats["limited"][most] > LIMITED:
        return Verdict(
            "warn",
            f"what was asked met its limits ({most.replace('_', ' ')}): a lower gain or a higher cutoff asks for less",
        )
    plans = stats.get("algorithm", {})
    if plans.get("failed", 0) > UNFOUND * plans.get("plans", 0):
        return Verdict(
            "warn",
            f"{plans['failed'] / plans['plans']:.0%} of the plans were not found, and older ones were followed: "
            "this drive, or these weights, ask for more than the solver finds within its work on this platform",
        )
    if stats["skipped"]:
        left_out = f"{stats['skipped']} of {packets + stats['skipped']} ticks were left out"
        return Verdict("warn", f"mostly on time: every frame was followed; {left_out}")
    if timing != GRADES[0]:
        left = f"one packet in 1,000 left {duration(late['p999'])} late or more"
        return Verdict("warn", f"mostly on time: every frame was followed; {left}")
    return Verdict("good", "all is well: every frame was followed, and a packet left on time at every tick")


def _returns(moves: Sequence[Mapping[str, Any]]) -> int:
    """Return how often the platform engaged again after its input was lost."""
    found, lost = 0, False
    for move in moves:
        lost = lost or move.get("reason") == "input_lost"
        if lost and move["to"] == "ENGAGING":
            found, lost = found + 1, False
    return found


STATES = tuple(state.name.lower() for state in State if state is not State.STATES)
"""Names of the states by their numbers."""

Row: TypeAlias = npt.NDArray[Any]

ATTITUDE = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
"""What of a direct cue is drawn as a pose: its yaw is a heading, and it has no displacements."""

FELT = ("surge", "sway", "heave")

TROUBLES = {
    Claim.STOPPED: "EMERGENCY STOP",
    Claim.FAULTY: "FAULT",
    Claim.SILENT: "no reply any more",
    Claim.UNHEARD: "nobody listens",
    Claim.UNREADY: "not ready",
    Claim.UNENGAGED: "not engaged",
}
"""What a platform says that keeps it from following, gravest first."""


def replied(stats: Mapping[str, Any], operation: int) -> list[str]:
    """Return what the platform says about itself, in words, from a run's statistics and a tick's `operation`.

    If no reply of it is described, all that can be known is that nobody listens; empty if somebody does.
    """
    heard = [output["replies"] for output in stats["outputs"] if "replies" in output]
    words = [word for flag, word in TROUBLES.items() if operation & flag]
    if not heard:
        return words
    if not sum(each["received"] for each in heard):
        words = ["no reply yet"]
    for each in heard:
        words += ["moving"] if each.get("moving") else []
        words += [f"{each['temperature']:.0f} °C"] if "temperature" in each else []
        words += [f"says {each['text']!r}"] if "text" in each else []
    return words if operation & sum(TROUBLES) else ["ready", *words]


WANTED = 8
"""Below it, a tick's `operation` is what the operator wants; above are flags."""

PARKS = (2, 3)
"""Operators under which it goes to neutral: park, and the end of the run."""

SAYS = (
    (Claim.STOPPED, "The platform's emergency stop is pressed.", True),
    (Claim.FAULTY, "The platform reports a fault.", True),
    (Claim.SILENT, "The platform does not answer any more.", True),
    (
        Claim.UNHEARD,
        "Nobody listens for the platform any more: it stays parked until somebody has for some seconds.",
        True,
    ),
    (Claim.UNREADY, "The platform is not ready, or has not answered yet: nothing engages.", False),
    (Claim.UNENGAGED, "The platform does not follow yet: the cue waits at neutral.", False),
)
"""What a platform that answers says of itself, the worst first: flags of a tick's `operation`, words, and whether
they are loud."""


class Frames:
    """Makes frames of an engine's newest ticks."""

    def __init__(self, engine: Watched) -> None:
        self._engine = engine
        self._platform = PlatformInForce()
        self._pose: Row | None = None
        self._index = -1
        self.time_s = 0.0  # of the newest frame, on the engine's grid
        built = self.built()
        actuators = [] if built is None else built.names
        # A frame's numbers, all SI, NaN where there is none.  state: index in `STATES`; parks: 1 if it is told to be at
        # neutral; says: flags of `SAYS`; weight: of the fade; at: of an actuator [m or rad]; used: its share.
        self.names = (
            *("time", "state", "parks", "says", "weight", "lateness_us", "speed", "car.yaw"),
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
        self._index, self.time_s = index, index / self._engine.profile.rate_hz
        return self.frame(tick)

    def frame(self, tick: Row) -> bytes:
        """Return a tick of shape (1,) as float64, little-endian."""
        index = int(tick["index"][0])
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
            float(tick["operation"][0] & Claim.PLATFORM),
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


PAST_S = 300.0
PAST_HZ = 25.0


class Past:
    """The frames of the last five minutes, 25 of a second, for a page that comes later or comes back."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, bytes]] = deque(maxlen=round(PAST_S * PAST_HZ))

    def add(self, time_s: float, frame: bytes) -> None:
        """Keep a frame of a time on the engine's grid [s], unless the one before is too near."""
        if self._rows and time_s < self._rows[-1][0]:
            self._rows.clear()
        if not self._rows or time_s - self._rows[-1][0] >= 0.99 / PAST_HZ:
            self._rows.append((time_s, frame))

    def rows(self) -> bytes:
        """Return the frames one after the other, oldest first."""
        return b"".join(frame for _, frame in self._rows)


CLEARANCE_M = 0.08  # of the lowest joint above the floor
DEEP_M = 0.45  # floor below the frame if nothing shows how high it stands


@lru_cache(maxsize=2)
def reach_of(platform: Platform) -> dict[str, tuple[float, float]]:
    """Return how far a platform goes along each channel from neutral that it has a least and a most of [m, rad]."""
    return {name: (low, high) for name, (low, high) in ranges(build(platform)).items() if low and high}


def scene_of(profile: Profile, built: Built | None) -> dict[str, Any]:
    """Return what carries the frame [rad], and by channel the sled or turntable that carries that.

    Places are from the motion reference point at neutral: x forward, y right, z down [m].
    """
    table = profile.platform
    if table is None or built is None:
        nothing: dict[str, Any] = {"names": [], "carriers": [], "neutral": [], "reach": {}, "tables": {}}
        return {"kind": "none", "frame": 0.0, "floor": DEEP_M, "sent": False, **nothing}
    held, bounds = carriers_of(table)
    tops = [part["platform"] for part in held]
    frame = sum(top[2] for top in tops) / len(tops) if tops else 0.0
    bases = [part["base"][2] for part in held if "base" in part]
    deep = max([DEEP_M, *(0.2 - low for low, *_ in bounds)])
    floor = max(*bases, frame) + CLEARANCE_M if bases else frame + deep
    carriers = []
    for part in held:
        x, y, z = part["platform"]
        carrier = {"top": [x, y, z], "base": [*part["base"]] if "base" in part else [x, y, floor]}
        if "crank" in part:
            carrier |= {"azimuth": part["azimuth"], "crank": part["crank"]}
        carriers.append(carrier)
    kind = type(table).__struct_config__.tag
    streams = [encoding for output in profile.outputs for _, encoding in streams_of(output, table).values()]
    return {
        "kind": kind,
        "frame": frame,
        "floor": floor,
        "names": list(built.names),
        "neutral": list(built.neutral),
        "reach": reach_of(table),
        "carriers": carriers,
        "tables": {channel: built.names[number] for channel, number in built.tables.items()},
        "sent": any(name.startswith("actuator_") for encoding in streams for name in encoding.reads),
    }
