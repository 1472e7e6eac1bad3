"""The drive full of trouble: it contains the incidents of its table, and the engine responds as the table says."""

import socket
from collections import Counter

import numpy as np
import pytest
from helpers import serving, stream_url
from same_bits import assert_same_bits
from trouble_helpers import Bench

from motioncue.drive.car import DRIVES, drive
from motioncue.drive.courses import COURSES, DURATION_S, EVENTS, INCIDENTS, PARKS, REFUSALS, course, length_s, troubled
from motioncue.drive.peers import Paced
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError
from motioncue.safety.supervisor import State
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE, LEAVE, Simulator, driven, encode_states
from motioncue.virtual.installation import ride

pytestmark = pytest.mark.search

RATES = [30.0, 60.0, 100.0]
STEPS = {"operator_park", "neutral_reached", "input", "cue_reached", "input_overdue", "input_back"}
"""Why states may change in an honest drive, and on the way to neutral and back."""


class Played:
    """The drive played to an engine on a clock that takes no time."""

    def __init__(self, rate_hz, profile):
        self.bench = bench = Bench("limits=none", profile=profile)  # bounds would hide a step
        self.found = []  # (time [s], event or refusal)
        self.rate_hz = rate_hz
        began, before = None, Counter()
        for frame in driven("trouble", rate_hz):
            bench.run_to(bench.now + round(frame.duration * 1e9))
            if frame == LEAVE:
                continue
            if frame.package == INIT_PACKAGE:
                bench.intake.begin(bench.now)
            bench.feed(frame.package)
            began = bench.now if began is None and frame.package != INIT_PACKAGE else began
            now = Counter({**bench.intake.discontinuities, **bench.intake.rejected})
            self.found += [((bench.now - began) * 1e-9, name) for name in (now - before).elements()]
            before = now
        bench.emitter.park()
        bench.run(2.0)
        self.moves = [
            ((move["time"] - began) * 1e-9, move["from"], move["to"], move["reason"]) for move in bench.transitions()
        ]
        self.time = (bench.trace["deadline"] - began) * 1e-9


@pytest.fixture(
    scope="module", params=[(rate, profile) for rate in RATES for profile in ("ccd-dk", "ccd-dk-classical")]
)
def played(request):
    return Played(*request.param)


def assert_same(found, expected, tolerance_s):
    """Assert that both are the same names at the same times."""
    assert [name for _, name in found] == [name for _, name in expected]
    np.testing.assert_allclose([time for time, _ in found], [time for time, _ in expected], rtol=0, atol=tolerance_s)


def test_every_event_is_counted_when_it_happens_and_nothing_else_is(played):
    # A frozen source is found at the first repeat that is too old: up to a frame later, counted from the last new one.
    assert_same(played.found, sorted(EVENTS + REFUSALS), 1.5 / played.rate_hz)
    stats = played.bench.pipeline.stats()
    assert stats["events"] == Counter(name for _, name in EVENTS)
    assert stats["rejected"] == Counter(name for _, name in REFUSALS)


def test_the_platform_parks_when_and_why_the_table_says_and_never_else(played):
    parks = [(time, reason) for time, _, to, reason in played.moves if to == "PARKING"]
    assert parks[-1][1] == "operator_park"
    # A held motion is counted from the last frame, and the table from the first that is missing.
    assert_same(parks[:-1], PARKS, 1.5 / played.rate_hz + 0.004)
    assert {reason for *_, reason in played.moves} <= {reason for _, reason in PARKS} | STEPS
    assert not any("FAULT" in move for move in played.moves)


def test_the_cue_is_whole_again_before_the_next_thing_goes_wrong(played):
    whole = played.bench.trace["weight"] == 1.0
    for incident in INCIDENTS:
        before = np.searchsorted(played.time, incident.time - 0.5)
        assert whole[before], incident.name
    assert played.bench.state == "OFFLINE"


def test_a_short_gap_never_reaches_neutral(played):
    (gap,) = (incident for incident in INCIDENTS if incident.name == "a gap of 0.3 s")
    inside = (played.time > gap.time - 0.2) & (played.time < gap.time + 3.0)
    trace = played.bench.trace[inside]
    assert trace["weight"].min() > 0.5
    assert State.OFFLINE not in trace["state"]
    ways = [(a, b) for time, a, b, _ in played.moves if gap.time - 0.2 < time < gap.time + 3.0]
    assert ways == [
        ("RUNNING", "HOLDING"), ("HOLDING", "PARKING"), ("PARKING", "ENGAGING"), ("ENGAGING", "RUNNING"),
    ]  # fmt: skip


# ---- the drive itself ------------------------------------------------------------------------------------------------


def at(frames, rate_hz, time):
    """Return the place of the first frame that is not before a time, by the sum of the waits."""
    return int(np.searchsorted(np.cumsum(frames.waits) - 1.0 / rate_hz, time - 1e-9))


@pytest.mark.parametrize("rate_hz", RATES)
def test_between_incidents_the_car_drives_the_tour(rate_hz):
    """Speed and felt acceleration do not depend on the car's position."""
    drive_, tour = troubled(rate_hz), drive("tour", rate_hz)
    time = np.cumsum(drive_.waits) - 1.0 / rate_hz

    def felt(states):
        return np.linalg.norm(states["velocity"], axis=-1), np.linalg.norm(states["acceleration"], axis=-1)

    # From the table: drive time = time + shift; the first incident, then a pause of 2 s, then one of 2.5 s, and so on.
    for start, end, shift in (
        (0.0, 6.5, 0.0), (6.8, 10.5, 0.0), (14.5, 27.0, -2.0), (27.1, 30.5, -2.0), (33.0, 37.5, -4.5),
        (37.6, 43.0, -4.5), (43.0, 46.0, -25.0), (47.6, 53.5, -25.0), (54.3, 59.5, -24.8), (59.5, 70.0, -59.5),
    ):  # fmt: skip
        here = (time > start - 1e-9) & (time < end - 1e-9)
        there = np.round((time[here] + shift) * rate_hz).astype(int)
        assert here.sum() == pytest.approx((end - start) * rate_hz, abs=1.0)
        for found, expected in zip(felt(drive_.states[here]), felt(tour[there]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rate_hz", RATES)
def test_positions_are_continuous_but_for_the_jumps_of_the_table(rate_hz):
    frames = troubled(rate_hz)
    moved = np.linalg.norm(np.diff(frames.states["position"], axis=0), axis=1)
    # A gap in which the car goes on is part of the drive: what it covers is its speed times the wait.
    speed = np.linalg.norm(frames.states["velocity"], axis=1)
    allowed = np.maximum(speed[1:], speed[:-1]) * frames.waits[1:] + 1e-3
    jumps = np.flatnonzero(moved > allowed) + 1
    after_freeze = at(frames, rate_hz, 47.6)
    expected = [at(frames, rate_hz, time) for time in (22.0, 54.3, 59.5)]
    assert [j for j in jumps if j != after_freeze] == expected
    np.testing.assert_allclose(
        moved[np.array(expected) - 1], [np.hypot(90, 80), np.hypot(300, 120), np.hypot(40, 25)], rtol=0, atol=1.2
    )


@pytest.mark.parametrize("rate_hz", RATES)
def test_the_respawned_car_rests_and_faces_elsewhere(rate_hz):
    frames = troubled(rate_hz)
    place = at(frames, rate_hz, 59.5)
    before, after = frames.states[place - 1], frames.states[place]
    assert np.linalg.norm(before["velocity"]) > 5.0
    assert not after["velocity"].any()
    # Turned by 2.2 rad beside a frame of honest driving: the angle of a rotation about the down axis.
    (w0, _, _, z0), (w1, _, _, z1) = before["orientation"], after["orientation"]
    turned = 2 * (np.arctan2(z1, w1) - np.arctan2(z0, w0))
    assert np.angle(np.exp(1j * (turned - 2.2))) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("rate_hz", RATES)
def test_repeats_repeat_every_byte_of_the_state(rate_hz):
    packages = [frame.package for frame in driven("trouble", rate_hz)]
    frames = np.frombuffer(b"".join(p for p in packages if len(p) == FRAME.size), FRAME.dtype)
    whole = troubled(rate_hz)
    for start, seconds, frame_time in ((30.5, 2.5, 0.0), (46.0, 1.6, 1.0 / rate_hz)):
        first = at(whole, rate_hz, start)
        count = round(seconds * rate_hz)
        same = frames[first : first + count]
        assert (same["frame_time"] == frame_time).all()
        for name in ("position", "orientation", "velocity", "acceleration", "angular_velocity"):
            assert (same[name] == frames[first - 1][name]).all()
        assert (frames[first + count]["position"] != frames[first - 1]["position"]).any()
        assert np.linalg.norm(same["velocity"][0]) > 5.0  # a moving car


@pytest.mark.parametrize("duration_s", [0.5, 6.6, 13.0, 22.0, 31.0, 37.5, 46.5, 54.0, 60.0, 130.0])
def test_a_drive_cut_short_is_the_beginning_of_the_whole(duration_s):
    part, whole = troubled(60.0, duration_s), troubled(60.0, 140.0)
    assert np.sum(part.waits) <= duration_s + 1e-9
    assert part.began_s == whole.began_s == 0.0
    for cut, long in zip(part[:-1], whole[:-1], strict=True):
        assert_same_bits(cut, long[: len(cut)])


def test_beyond_its_end_the_car_parks():
    frames = troubled(60.0, 130.0)
    assert np.abs(frames.states["velocity"][-1]).max() < 1e-9
    assert np.sum(frames.waits) == pytest.approx(130.0, abs=1e-6)


def test_the_drive_leaves_and_comes_back_as_another_session():
    packages = list(driven("trouble", 60.0))
    places = [place for place, frame in enumerate(packages) if frame == LEAVE]
    assert len(places) == 1
    assert packages[places[0] + 1].package == packages[0].package == INIT_PACKAGE
    assert packages[places[0] + 1].duration == pytest.approx(0.8 + 1 / 60)
    assert [frame.package for frame in packages].count(INIT_PACKAGE) == 2
    assert sum(frame.duration for frame in packages) == pytest.approx(DURATION_S, abs=1e-6)


def test_every_drive_can_be_asked_for_by_name():
    assert list(COURSES)[: len(DRIVES) + 1] == [*DRIVES, "trouble"]
    assert len(COURSES) == len(DRIVES) + 1 + 6  # a wave an axis
    for name in COURSES:
        assert np.sum(course(name, 20.0).waits) == pytest.approx(length_s(name), abs=0.05)
    with pytest.raises(ConfigError, match=r"'fly'.*tour.*trouble"):
        course("fly")
    with pytest.raises(ConfigError, match="rate_hz"):
        course("trouble", 0.0)


def test_other_drives_are_what_they_were():
    packages = list(driven("brake", 50.0, 2.0))
    frames = encode_states(drive("brake", 50.0, 2.0))
    frames["frame_time"] = 1 / 50
    assert packages == [Paced(0.0, INIT_PACKAGE), *(Paced(1 / 50, frame.tobytes()) for frame in frames)]


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_an_offline_ride_is_what_the_engine_makes_of_it(profile):
    played, found = Played(60.0, profile), ride(load_profile(profile, "limits=none"), "trouble")
    whole = found.time < DURATION_S - 0.1  # then one of the two parks, the other waits
    assert_same_bits(found.ticks[whole], played.bench.trace[: whole.sum()])
    np.testing.assert_array_equal(found.time[whole], played.time[: whole.sum()])
    assert found.stats["events"] == Counter(name for _, name in EVENTS)
    assert found.stats["state"] == "OFFLINE"


def test_an_offline_ride_keeps_what_the_simulator_said_however_impossible():
    """The spike lasts a frame, repeats last as long as the table says, and there is no NaN."""
    found = ride("ccd-dk", "trouble", 100.0)
    size = np.linalg.norm([found.motion[name] for name in ("surge", "sway", "heave")], axis=0)
    assert np.isfinite(size).all()
    spike = found.time[size > 100.0]
    assert spike[0] == pytest.approx(27.0, abs=0.004)
    assert spike[-1] == pytest.approx(27.01, abs=0.004)
    assert np.abs(found.ticks["motion"]["surge"]).max() < 10.0
    jump = found.motion["speed"][np.searchsorted(found.time, [42.99, 43.02])]
    assert jump == pytest.approx([18.0, 9.0], abs=0.2)  # the script's speeds at 38.5 s and at 18 s


@pytest.mark.rt
@pytest.mark.parametrize("scheme", dict.fromkeys(["unix" if hasattr(socket, "AF_UNIX") else "tcp", "tcp"]))
def test_the_real_simulator_leaves_and_reconnects(tmp_path, scheme):
    packages = list(driven("trouble", 60.0))
    (leave,) = (place for place, frame in enumerate(packages) if frame == LEAVE)
    around = [packages[0], *packages[leave - 20 : leave + 22]]  # the whole drive would be a minute of test
    session = city_car_driving.intake(city_car_driving.Options())
    url = stream_url(scheme, tmp_path)
    with serving(url, session):
        simulator = Simulator(url, around)
        simulator.run()
    assert (simulator.connections, simulator.lost) == (2, 0)
    assert simulator.sent == session.accepted == 40
    assert simulator.replies == 42  # each connection has its init package
    assert session.sessions == 2
    assert session.discontinuities == {"reconnect": 1}
    assert session.rejected == {}
