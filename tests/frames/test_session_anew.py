"""A session is what its own frames make of it: nothing of the one before is left, however that ended.

Both intakes take the same second session, one of them after a first.  Verdicts, motions and what is refused are
compared frame by frame; only that a session came before is counted (`reconnect`).
"""

from functools import cache

import numpy as np
import pytest
import quaternion as npq
from trouble_helpers import START
from watch_helpers import new_intake, records_of

from motioncue.drive.car import STATE_DTYPE
from motioncue.frames.convert import BodyStage
from motioncue.frames.intake import Intake, Session
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE
from motioncue.wire.packet import Field, Message, Packet, Take, vector

DT = 1.0 / 60.0
COUNT = 90
LAST = COUNT - 1
SECOND = START + 10_000_000_000
"""When the second session begins [ns]: the first one ended 20 ms before."""


def straight(count=COUNT, speed=20.0, dt=DT):
    """Return the states of a car that goes straight north, and when their frames come [s]."""
    states = np.zeros(count, STATE_DTYPE)
    states["time"] = dt * np.arange(count)
    states["velocity"][:, 0] = speed
    states["position"][:, 0] = speed * states["time"]
    states["orientation"][:, 0] = 1.0
    return states, states["time"].copy()


def aside(*places):
    """Return a drive in which the car is 50 m aside in some frames."""
    states, times = straight()
    states["position"][list(places), 1] += 50.0
    return states, times


def repeated(first, count=COUNT):
    """Return a drive that stands at one state from a frame on, in time too."""
    states, times = straight(count)
    states[first:] = states[first]
    return states, times


def hurried(first, jump_s=0.5):
    """Return a drive whose own time goes ahead of the clock in each frame from one on."""
    states, times = straight()
    states["time"][first:] += jump_s * np.arange(1, COUNT - first + 1)
    return states, times


def impossible(first, last, size=500.0):
    """Return a drive whose frames claim from one to another what no car does."""
    states, times = straight()
    states["acceleration"][first : last + 1, 0] = size
    return states, times


def paced(pace):
    """Return a drive whose own time runs faster than the clock."""
    states, times = straight()
    return states, times / pace


def bunched():
    """Return a drive whose frames come four at a time, the last after a stall."""
    states, times = straight()
    times = times[np.minimum(np.arange(COUNT) // 4 * 4 + 3, LAST)] + 0.0003 * (np.arange(COUNT) % 4)
    times[-6:] = times[-1] + 0.3
    return states, times


def turning():
    """Return a drive that brakes and turns until its end."""
    states, times = straight()
    t = states["time"]
    states["velocity"][:, 0] = 20.0 - 5.0 * t
    states["position"][:, 0] = 20.0 * t - 2.5 * t**2
    states["acceleration"][:, 0] = -5.0
    states["angular_velocity"][:, 2] = 0.8
    states["orientation"] = npq.as_float_array(npq.from_rotation_vector(np.outer(t, [0.0, 0.0, 0.8])))
    return states, times


def stepping():
    """Return a drive that claims steps of its acceleration, of which a part is shown."""
    states, times = straight()
    states["acceleration"][3:, 0] = 30.0 * (np.arange(3, COUNT) // 4 % 2)
    states["velocity"][:, 0] += 0.6 * np.cumsum(states["acceleration"][:, 0]) * DT
    states["position"][:, 0] = np.cumsum(states["velocity"][:, 0]) * DT
    return states, times


def once(dt):
    """Return a drive in which one frame claims what nothing shows."""
    states, times = straight(dt=dt)
    states["acceleration"][10, 0] = 45.0
    return states, times


def unshown(rate):
    """Return a drive that claims to turn and goes straight."""
    states, times = straight()
    states["angular_velocity"][5:, 2] = rate
    return states, times


def late_step(first):
    """Return a drive whose acceleration steps and lasts: the first frame shows a sixth of what it claims."""
    states, times = straight()
    states["acceleration"][first:, 0] = 30.0
    states["velocity"][first:, 0] += 30.0 * DT * (1.0 / 6.0 + np.arange(COUNT - first))
    states["position"][:, 0] = np.cumsum(states["velocity"][:, 0]) * DT
    return states, times


def growing(most):
    """Return what grows to `most` in 30 frames, and stays."""
    return most * np.clip((np.arange(COUNT) - COUNT + 40) / 30.0, 0.0, 1.0)


def thrown():
    """Return a drive that ends with nearly as much acceleration as is plausible."""
    states, times = straight()
    states["acceleration"][:, 0] = growing(92.0)
    states["velocity"][:, 0] += np.cumsum(states["acceleration"][:, 0]) * DT
    states["position"][:, 0] = np.cumsum(states["velocity"][:, 0]) * DT
    return states, times


def spun():
    """Return a drive that ends with turning nearly as fast as is plausible."""
    states, times = straight()
    states["angular_velocity"][:, 2] = growing(9.5)
    heading = np.cumsum(states["angular_velocity"][:, 2]) * DT
    states["orientation"] = npq.as_float_array(npq.from_rotation_vector(np.outer(heading, [0.0, 0.0, 1.0])))
    return states, times


def crawling():
    """Return a drive whose states change at every fourth frame."""
    states, times = turning()
    states[:] = states[np.arange(COUNT) // 4 * 4]
    return states, times


BEFORE = {
    "set aside at its end": aside(LAST),
    "spikes at its end": aside(*range(COUNT - 20, COUNT, 4)),
    "three spikes": aside(*range(COUNT - 14, COUNT, 5)),
    "frozen": repeated(15),
    "ahead of the clock": hurried(COUNT - 10),
    "fast": paced(2.0),
    "impossible": impossible(COUNT - 20, LAST),
    "contradicted": impossible(COUNT - 60, LAST, 45.0),
    "claims a step": impossible(COUNT - 6, LAST, 45.0),
    "bunched": bunched(),
    "turning": turning(),
    "thrown": thrown(),
    "spun": spun(),
    "crawling": crawling(),
    "slow": straight(dt=0.06),
    "quick": straight(dt=0.004),
}
"""How the first session goes."""

AFTER = {
    "straight": straight(),
    "at another pace": straight(dt=0.01),
    "slow, and claims something once": once(0.05),
    "jumps at once": aside(1, 2),
    "aside at once": aside(0),
    "a spike": aside(3),
    "spikes": aside(*range(4, COUNT, 20)),
    "impossible at once": impossible(0, 0),
    "impossible in its second frame": impossible(1, 1),
    "hurries at once": hurried(1),
    "one frame ahead": hurried(2, 3.0),
    "frozen before it was alive": repeated(9),
    "frozen": repeated(12),
    "claims a step at once": impossible(2, 4, 45.0),
    "shows a sixth of a step": late_step(3),
    "steps": stepping(),
    "turning": turning(),
    "claims to turn": unshown(0.5),
    "crawling": crawling(),
    "bunched": bunched(),
    "fast": paced(1.5),
    "backwards": straight(speed=-20.0),
}
"""How the second one goes."""

SOURCES = {
    "a duration": ("city-car-driving", {}),
    "a duration, rates derived": ("city-car-driving", {"rates": "derived"}),
    "a duration, acceleration derived": ("city-car-driving", {"acceleration": "from_velocity"}),
    "a time": ("vehicle-physics-pro", {}),
    "a time in its duration's place": ("city-car-driving", {"frame_time": "time"}),
    "a time in whole milliseconds": ("", {}),
    "no time": ("beamng", {}),
    "no time, acceleration derived": ("beamng", {"acceleration": "from_velocity"}),
}
"""What a source's frames say of their time, and what is derived."""

NAMES = ("position", "velocity", "acceleration", "angular_velocity")
FIELDS = [Field("time", 0, "<u4"), Field("orientation", 4, "4<f8")]
FIELDS += [Field(name, 36 + 24 * place, "3<f8") for place, name in enumerate(NAMES)]
WHOLE = Packet("whole", 132, FIELDS)
TAKES = [Take("stamp", 0, "time", scale=1e-3), *vector("orientation", "orientation", range(4))]
TAKES += [take for name in NAMES for take in vector(name, name)]
NED = {"world_north": (1, 0, 0), "world_up": (0, 0, -1), "car_forward": (1, 0, 0), "car_up": (0, 0, -1)}


def new(source):
    """Return a source's intake."""
    system, options = SOURCES[source]
    if system:
        return new_intake(system, 60.0, **options)
    return Intake([Message(WHOLE, "motion", TAKES).compiled()], BodyStage(**NED))


def encoded(source, drive):
    """Return a drive's packets, and when they come [s]."""
    system, options = SOURCES[source]
    if not system:
        states = [{name: state[name] for name in ("orientation", *NAMES)} for state in drive[0]]
        times = (np.floor(1000.0 * drive[0]["time"] + 1e-6) + 5000).astype(int).tolist()
        return [WHOLE.encode({"time": time, **state}) for time, state in zip(times, states, strict=True)], drive[1]
    rows = records_of(system, drive[0], 60.0)
    if system == "city-car-driving":
        times = drive[0]["time"]
        rows["frame_time"] = times if "frame_time" in options else np.diff(times, prepend=times[0] - DT)
    return [row.tobytes() for row in rows], drive[1]


def counts(intake):
    """Return how often what was counted, sessions left out."""
    found = {name: count for name, count in intake.discontinuities.items() if name != "reconnect"}
    return intake.accepted, intake.repeats, intake.rejected, found


def since(now, before):
    """Return what was counted since."""
    kinds = [{name: n - b.get(name, 0) for name, n in a.items()} for a, b in zip(now[2:], before[2:], strict=True)]
    return now[0] - before[0], now[1] - before[1], *({name: n for name, n in kind.items() if n} for kind in kinds)


def feed(intake, packets, begin_ns):
    """Feed packets in a session of their own; return what came of each."""
    intake.begin(begin_ns)
    if isinstance(intake, Session):
        intake.feed(INIT_PACKAGE, begin_ns)
    start, rows = counts(intake), []
    for packet, time in zip(*packets, strict=True):
        now = begin_ns + 1000 + round(float(time) * 1e9)
        intake.feed(packet, now)
        published = intake.newest()
        followed = published is not None and published["time"][0] == now and not intake.frozen
        motion = published.tobytes() if followed else b""
        rows.append((*since(counts(intake), start), intake.frame().tobytes(), motion))
    return rows


@cache
def afresh(source):
    """Return what comes of each second session of a source, if no other came before."""
    return {name: feed(new(source), encoded(source, drive), SECOND) for name, drive in AFTER.items()}


@pytest.mark.grid
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_left_of_the_session_before(source, before):
    first = encoded(source, BEFORE[before])
    began = SECOND - round(1e9 * (float(first[1][-1]) + 0.02))
    for name, expected in afresh(source).items():
        intake = new(source)
        feed(intake, first, began)
        found = feed(intake, encoded(source, AFTER[name]), SECOND)
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert one == other, (name, i)


def test_what_completes_a_motion_has_to_come_in_each_session():
    """The part of the drive before says nothing of this one, however shortly before it came."""
    part = Packet("part", 4, [Field("speed", 0, "<f4")])
    motion = Packet("motion", 32, [Field("orientation", 0, "4<f8")])
    intake = Intake(
        [
            Message(motion, "motion", vector("orientation", "orientation", range(4))).compiled(),
            Message(part, "needed", [Take("speed", 0, "speed")]).compiled(),
        ],
        BodyStage(world_north=(1, 0, 0), world_up=(0, 0, -1), car_forward=(1, 0, 0), car_up=(0, 0, -1)),
    )
    frame, other = motion.encode({"orientation": (1.0, 0.0, 0.0, 0.0)}), part.encode({"speed": 3.0})
    intake.begin(START)
    intake.feed(other, START)
    intake.feed(frame, START)
    assert "incomplete" not in intake.rejected
    intake.begin(START + 1_000_000)
    intake.feed(frame, START + 2_000_000)
    assert intake.rejected["incomplete"] == 1
