"""The watch names every discontinuity and raises no false alarm."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from trouble_helpers import REAL, START, Bench, driven, hard, hard_states, real
from watch_helpers import fed, new_intake, records_of, states_of

from motioncue.core.table import Watch
from motioncue.drive.car import SCRIPTS
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE

RATES = (20, 30, 60, 100, 144)
TICK_NS = 3_000_030


def arriving(frames, times, **watch):
    """Return the session after each frame has arrived at its time [s]; `watch` has thresholds of the profile."""
    session = city_car_driving.intake(city_car_driving.Options())
    session.watch(Watch(**watch))
    session.begin(START)
    session.feed(INIT_PACKAGE, START)
    for frame, time in zip(frames, times, strict=True):
        session.feed(frame.tobytes(), START + round(float(time) * 1e9))
    assert session.rejected == {}
    assert session.accepted == len(frames)
    return session


def steady(frames, rate_hz=60):
    """Return the session after the frames have arrived one by one."""
    return arriving(frames, np.arange(len(frames)) / rate_hz)


def cruise(n=120, speed=20.0, rate_hz=60):
    """Return frames of a car that goes straight along +Z."""
    frames = np.zeros(n, FRAME.dtype)
    for name, value in FRAME.constants.items():
        frames[name] = value
    frames["frame_time"] = 1.0 / rate_hz
    frames["orientation"] = (0.0, 0.0, 0.0, 1.0)
    frames["velocity"][:, 2] = speed
    frames["position"][:, 2] = speed * np.arange(n) / rate_hz
    return frames


def turned(frames, angle, axis=2):
    """Turn the car about a world axis, in place."""
    frames["orientation"] = 0.0
    frames["orientation"][:, axis] = math.sin(0.5 * angle)
    frames["orientation"][:, 3] = math.cos(0.5 * angle)


# ---- each discontinuity is named -------------------------------------------------------------------------------------
# The change of each to the frames from the 60th on, and the name, measure and limit with which it must be reported.
# Limits from the settings: time is a frame, and the delay that is tolerated at the beginning and leaks away with a time
# constant of 1 s; the car goes 20 m/s.

DT = 1 / 60
TIME = DT + 0.1 / (1 + DT) ** 209  # before the 211th frame; nothing is known at the first


def teleport(frames):
    frames["position"][60:, 0] += 30.0
    return "teleport", math.hypot(30.0, 20 * DT), 0.5 + 20 * (TIME + 0.1) + 10 * TIME**2


def respawn(frames):
    frames["position"][60:] = frames["position"][0]
    frames["velocity"][60:] = 0.0
    return "teleport", 20 * 59 * DT, 0.5 + 20 * (TIME + 0.1) + 10 * TIME**2


def reported_acceleration(frames):
    frames["acceleration"][60:62] = (0.0, 110.0, 0.0)
    return "impossible_acceleration", 110.0, 100.0


def stopped_dead(frames):
    frames["velocity"][60:] = 0.0
    frames["position"][60:] = frames["position"][60]
    return "impossible_acceleration", 20.0, 0.5 + 20 * TIME


def thrown_round(frames):
    frames["velocity"][60:] *= -1.0
    frames["position"][60:] = frames["position"][60]
    return "impossible_acceleration", 40.0, 0.5 + 20 * TIME


def reported_rate(frames):
    frames["angular_velocity"][60:62] = (0.0, 12.0, 0.0)
    return "impossible_rate", 12.0, math.radians(600)


def on_its_side(frames):
    turned(frames[60:], 0.5)
    return "impossible_rate", 0.5, 0.02 + 2 * TIME


def facing_back(frames):
    turned(frames[60:], math.pi, axis=1)
    frames["velocity"][60:] = frames["velocity"][60]
    return "impossible_rate", math.pi, 0.02 + 2 * TIME


def long_frame(frames):
    frames["frame_time"][60:] = 5.0
    return "frame_time_jump", 5.0 - TIME, 2.0


def backward_frame(frames):
    frames["frame_time"][60:] = -4.0
    return "frame_time_jump", 4.0, 2.0


SUDDEN = [
    teleport, respawn, reported_acceleration, stopped_dead, thrown_round, reported_rate, on_its_side, facing_back,
    long_frame, backward_frame,
]  # fmt: skip


@pytest.mark.parametrize("event", SUDDEN, ids=lambda event: event.__name__)
def test_a_discontinuity_is_counted_once_under_its_name(event):
    frames = cruise()
    name, _, _ = event(frames)
    assert steady(frames).discontinuities == {name: 1}


@pytest.mark.parametrize("event", SUDDEN, ids=lambda event: event.__name__)
def test_the_supervisor_is_told_the_name_the_measure_and_the_limit(event):
    frames = np.concatenate([cruise(150), cruise(120)])
    frames["position"][:, 2] = 20 * DT * np.arange(len(frames))
    name, value, limit = event(frames[150:])
    bench = Bench().connect().play(frames, np.arange(len(frames)) * DT)
    (move,) = [move for move in bench.transitions() if move["from"] == "RUNNING" and move["to"] == "PARKING"]
    assert move["reason"] == name
    assert move["value"] == pytest.approx(value, rel=1e-4)
    assert move["limit"] == pytest.approx(limit, rel=1e-4)
    # At the first tick after the second such frame, because a single one is set aside.
    came = START + round((150 + 61) * DT * 1e9)
    assert came <= move["time"] < came + TICK_NS


@pytest.mark.parametrize(("frame_time", "name"), [(DT, "frozen"), (0.0, "paused")])
def test_a_moving_car_that_repeats_itself_is_frozen_or_paused(frame_time, name):
    frames = np.concatenate([cruise(150), np.repeat(cruise(1), 120)])
    frames[150:] = frames[149]
    frames["frame_time"][150:] = frame_time
    bench = Bench().connect().play(frames, np.arange(len(frames)) * DT)
    assert bench.intake.discontinuities == {name: 1}
    moves = bench.transitions()
    (move,) = [move for move in moves if move["to"] == "PARKING"]
    assert move["reason"] == name
    limit = {"frozen": 1.0, "paused": 0.1}[name]  # a reported pause needs less evidence
    assert move["limit"] == limit
    assert limit < move["value"] <= limit + DT + 1e-6
    assert bench.state in ("PARKING", "OFFLINE")
    # Nothing engages while it lasts, and it ends with the first change.
    bench.play(np.repeat(frames[-1:], 240), np.arange(1, 241) * DT)
    assert bench.state == "OFFLINE"
    assert bench.intake.discontinuities == {name: 1}
    again = cruise(31)[1:]
    again["position"] += frames["position"][-1]
    bench.play(again, np.arange(1, 31) * DT)
    assert bench.state == "ENGAGING"
    assert bench.intake.discontinuities == {name: 1}


def test_every_freeze_counts_once():
    frames = cruise(900)
    for start in (100, 300, 500, 700):
        frames[start : start + 90] = frames[start]
    assert steady(frames).discontinuities == {"frozen": 4}


def test_a_short_freeze_is_none():
    frames = cruise(300)
    frames[100:155] = frames[100]
    assert steady(frames).discontinuities == {}


@pytest.mark.parametrize(("spikes", "jumps"), [(3, {}), (4, {"teleport": 1})])
def test_more_than_three_spikes_a_second_are_a_discontinuity(spikes, jumps):
    frames = cruise()[: 60 + 6 * spikes]  # one every tenth of a second
    frames["position"][60::6, 0] += 30.0
    assert steady(frames).discontinuities == {"spike": spikes, **jumps}


@pytest.mark.parametrize(("lasts_s", "found"), [(0.22, {}), (0.30, {"acceleration_contradicted": 1})])
def test_a_claim_that_nothing_shows_is_held_for_a_quarter_second(lasts_s, found):
    frames = cruise()[: 60 + round(lasts_s * 60)]
    frames["acceleration"][60:, 2] = 45.0  # while the velocity stays the same
    session = arriving(frames, np.arange(len(frames)) / 60, velocity_error_m_s=math.inf)
    assert session.discontinuities == found


def test_a_second_session_is_a_reconnect():
    bench = Bench().connect().play(cruise(150), np.arange(150) * DT)
    bench.connect().play(cruise(10), np.arange(1, 11) * DT)
    assert bench.intake.discontinuities == {"reconnect": 1}
    assert ("RUNNING", "PARKING", "reconnect") in bench.moves()


def test_a_reconnect_after_neutral_engages_afresh_and_counts():
    bench = Bench().connect().play(cruise(150), np.arange(150) * DT).run(5)
    assert bench.state == "OFFLINE"
    bench.connect().play(cruise(150), np.arange(1, 151) * DT)
    assert bench.state == "RUNNING"
    assert bench.intake.discontinuities == {"reconnect": 1}


def test_a_second_init_within_a_session_keeps_the_comparison():
    frames = cruise(120)
    session = arriving(frames[:60], np.arange(60) * DT)
    session.feed(INIT_PACKAGE, START + round(60 * DT * 1e9))
    frames["position"][60:, 0] += 100.0
    for i in range(60, 120):
        session.feed(frames[i].tobytes(), START + round(i * DT * 1e9))
    assert session.discontinuities == {"teleport": 1}


@pytest.mark.parametrize(("field", "size"), [("acceleration", 110.0), ("angular_velocity", 95.0)])
def test_frames_that_no_car_can_be_in_are_not_engaged_with(field, size):
    frames = cruise(120)
    frames[field] = (0.0, 0.0, size)
    bench = Bench("supervisor.hold_s=5").connect().play(frames, np.arange(120) * DT)
    assert set(bench.trace["state"]) == {0}
    assert not bench.trace["cue"]["surge"].any()
    name = {"acceleration": "impossible_acceleration", "angular_velocity": "impossible_rate"}[field]
    assert bench.intake.discontinuities[name] == 1


def test_repeating_an_impossible_frame_does_not_make_it_possible():
    frames = cruise(120)
    frames["acceleration"][0] = (0.0, 0.0, 500.0)
    bench = Bench().connect().play(np.repeat(frames[:1], 50), np.arange(50) * DT)
    assert set(bench.trace["state"]) == {0}
    assert bench.intake.discontinuities == {"impossible_acceleration": 1}


def test_settings_move_the_thresholds():
    frames = cruise()
    frames["acceleration"][60:62] = (0.0, 14.0, 0.0)
    frames["angular_velocity"][80:82] = (0.0, 2.9, 0.0)
    times = np.arange(120) * DT
    assert arriving(frames, times).discontinuities == {}
    assert arriving(frames, times, max_acceleration_m_s2=13.0, max_rate_deg_s=math.degrees(2.8)).discontinuities == {
        "impossible_acceleration": 1, "impossible_rate": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("event", "override"),
    [
        (reported_acceleration, "watch.max_acceleration_m_s2=120"),
        (reported_rate, "watch.max_rate_deg_s=700"),
        (long_frame, "watch.frame_jump_s=6"),
    ],
)
def test_the_profile_sets_the_thresholds(event, override):
    frames = cruise()
    event(frames)
    bench = Bench(override).connect().play(frames, np.arange(120) * DT)
    assert set(bench.intake.discontinuities) <= {"spike"}


@settings(deadline=None, max_examples=100)
@given(jump=st.floats(-1e4, 1e4), axis=st.integers(0, 2), speed=st.floats(0, 60), rate_hz=st.sampled_from(RATES))
@example(jump=0.75, axis=0, speed=0.5, rate_hz=20)
def test_a_teleport_is_one_exactly_beyond_what_the_speed_allows(jump, axis, speed, rate_hz):
    frames = cruise(40, speed, rate_hz)
    frames["position"][20:, axis] += jump
    dt = 1 / rate_hz
    position = frames["position"].astype(np.float64)
    moved, further = np.linalg.norm(position[20:22] - position[19], axis=1)
    # Over one frame, and over two: a frame that is allowed after the next one only is set aside as a spike.
    time = dt * np.array([1, 2]) + 0.1 / (1 + dt) ** np.array([19, 20])
    allowed, later = 0.5 + speed * (time + 0.1) + 10 * time**2
    found = steady(frames, rate_hz).discontinuities
    if moved > allowed * 1.001 + 1e-6 and further > later * 1.001 + 1e-6:
        assert found == {"teleport": 1}
    elif moved > allowed * 1.001 + 1e-6 and further < later * 0.999 - 1e-6:
        assert found == {"spike": 1}
    elif moved < allowed * 0.999 - 1e-6:
        assert found == {}


# ---- no false alarm --------------------------------------------------------------------------------------------------


def frames_of(name, rate_hz):
    if name == "real":
        return real(rate_hz)
    return hard(rate_hz) if name == "hard" else driven(name, rate_hz)


def on_a_bad_line(frames, rate_hz, rng, *, jitter_s=0.0, loss=0.0, bursts=0, gaps=0, pace=1.0):
    """Return the frames that arrive, and when [s]; in order, as a stream delivers them.

    Parameters
    ----------
    jitter_s : float
        Each frame comes up to this late, some bunched behind a late one.
    loss : float
        Share of frames lost one by one.
    bursts, gaps : int
        How often six successive frames are lost, and how often everything for a second.
    pace : float
        Simulator seconds in a second.
    """
    sent = np.arange(len(frames)) / rate_hz / pace
    late = rng.uniform(0.0, jitter_s, len(frames)) * (rng.random(len(frames)) < rng.choice([0.05, 0.5, 1.0]))
    came = np.maximum.accumulate(sent + late)
    kept = rng.random(len(frames)) >= loss
    for start in rng.integers(1, len(frames), bursts):
        kept[start : start + 6] = False
    for start in rng.uniform(1.0, sent[-1] - 1.0, gaps):
        kept &= ~((sent > start) & (sent < start + 1.0))
    kept[0] = True
    return frames[kept], came[kept]


LINES = {
    "a perfect line": {},
    "jitter": {"jitter_s": 0.1},
    "loss": {"jitter_s": 0.02, "loss": 0.05},
    "loss in bursts": {"jitter_s": 0.1, "loss": 0.05, "bursts": 30},
    "gaps": {"jitter_s": 0.1, "loss": 0.05, "gaps": 3},
    "slow motion": {"jitter_s": 0.1, "loss": 0.05, "gaps": 3, "pace": 0.3},
    "fast motion": {"jitter_s": 0.1, "loss": 0.05, "pace": 1.5},
}


@pytest.mark.grid
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("name", ["real", "hard", *SCRIPTS])
def test_an_honest_drive_never_trips(name, rate_hz, line):
    rng = np.random.default_rng([rate_hz, len(name), len(line)])
    frames = frames_of(name, rate_hz)
    assert arriving(*on_a_bad_line(frames, rate_hz, rng, **LINES[line])).discontinuities == {}


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(["real", "hard", "tour", "turns", "brake"]),
    rate_hz=st.sampled_from(RATES),
    line=st.sampled_from(list(LINES)),
)
def test_no_bad_line_makes_an_honest_drive_trip(seed, name, rate_hz, line):
    frames = frames_of(name, rate_hz)
    assert arriving(*on_a_bad_line(frames, rate_hz, np.random.default_rng(seed), **LINES[line])).discontinuities == {}


@pytest.mark.grid
@pytest.mark.parametrize("rate_hz", [30, 60, 100])
@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
@pytest.mark.parametrize("name", ["real", "hard", "tour"])
def test_an_honest_drive_with_loss_and_gaps_holds_and_fades_but_never_faults(name, profile, rate_hz):
    rng = np.random.default_rng(rate_hz)
    frames, times = on_a_bad_line(frames_of(name, rate_hz), rate_hz, rng, **LINES["gaps"])
    bench = Bench(profile=profile).connect().play(frames, times)
    reasons = {move["reason"] for move in bench.transitions()}
    assert reasons <= {"input", "cue_reached", "input_overdue", "input_back", "input_lost", "neutral_reached"}
    assert bench.emitter.counts()["not_finite"] == 0


@pytest.mark.parametrize("rate_hz", [30, 60, 100])
@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_on_a_good_line_a_drive_runs_from_beginning_to_end(profile, rate_hz):
    # Jitter of a frame: nothing is ever overdue.
    rng = np.random.default_rng(rate_hz)
    frames, times = on_a_bad_line(real(rate_hz), rate_hz, rng, jitter_s=0.015)
    bench = Bench(profile=profile).connect().play(frames, times)
    assert bench.moves() == [("OFFLINE", "ENGAGING", "input"), ("ENGAGING", "RUNNING", "cue_reached")]
    assert max(bench.pipeline.stats()["limited"].values()) <= 0.001


def test_a_car_parked_for_minutes_is_not_frozen():
    parked = cruise(1, speed=0.0)
    frames = np.repeat(parked, 60 * 180)
    assert steady(frames).discontinuities == {}
    # Neither after it has driven.
    moving = cruise(600)
    frames = np.concatenate([moving, frames])
    frames["position"][600:] = moving["position"][-1]
    frames["velocity"][600:] = 0.0
    frames["velocity"][540:600, 2] = np.linspace(20.0, 0.0, 60)
    frames["acceleration"][540:600, 2] = -20.0
    frames["position"][540:, 2] = frames["position"][540, 2] + np.cumsum(frames["velocity"][540:, 2]) * DT
    bench = Bench(trace=0).connect().play(frames[: 60 * 100], np.arange(60 * 100) * DT)
    assert bench.intake.discontinuities == {}
    assert bench.state == "RUNNING"


@pytest.mark.parametrize(("speed", "found"), [(0.5, {}), (1.0, {}), (1.0625, {"frozen": 1})])
def test_a_car_is_parked_up_to_one_metre_a_second(speed, found):
    frames = np.concatenate([cruise(60, speed), np.repeat(cruise(60, speed)[-1:], 120)])
    assert steady(frames).discontinuities == found


@pytest.mark.parametrize(("changes", "found"), [(0, {}), (1, {}), (9, {}), (10, {"frozen": 1}), (11, {"frozen": 1})])
def test_a_source_has_to_change_ten_times_to_be_able_to_freeze(changes, found):
    frames = np.concatenate([cruise(changes + 1), np.repeat(cruise(changes + 1)[-1:], 120)])
    assert steady(frames).discontinuities == found


def test_a_new_session_has_to_show_again_that_it_is_alive():
    bench = Bench().connect().play(cruise(60), np.arange(60) * DT)
    bench.connect().play(np.repeat(cruise(1), 120), np.arange(120) * DT)
    assert "frozen" not in bench.intake.discontinuities


def test_a_source_that_never_moved_is_not_frozen():
    # A test sender that repeats one frame with a speed in it.
    assert steady(np.repeat(cruise(1), 60 * 120)).discontinuities == {}


def test_the_hard_drive_is_what_it_says_and_agrees_with_itself():
    step = 1 / 1000
    states = hard_states(1000)
    a = np.linalg.norm(states["acceleration"][:, :2], axis=1)
    assert 9.9 < a.max() < 12.0
    assert 29.0 < np.abs(states["acceleration"][:, 2]).max() < 31.0
    assert 3.9 < np.linalg.norm(states["angular_velocity"], axis=1).max() < 4.1
    # Each is the integral of the next, within the trapezoid's error.
    for low, high, tolerance in (("position", "velocity", 1e-5), ("velocity", "acceleration", 2e-2)):
        mean = 0.5 * (states[high][1:] + states[high][:-1]) * step
        assert np.abs(np.diff(states[low], axis=0) - mean).max() < tolerance
    assert np.isfinite(REAL["position"]).all()


@pytest.mark.parametrize("spread", [0.7, 0.2, 0.01])
def test_the_turn_between_two_attitudes_is_that_of_the_rotations(probe, rng, spread):
    attitudes = rng.uniform([-np.pi, -1.5, -np.pi], [np.pi, 1.5, np.pi], (300, 3))
    for before, turn in zip(attitudes, rng.normal(0.0, spread, (300, 3)), strict=True):
        one = Rotation.from_euler("ZYX", before[::-1])
        two = one * Rotation.from_rotvec(turn)
        angle, vector = probe.turn_between(*(np.ascontiguousarray(each.as_matrix().T) for each in (one, two)))
        expected = (one.inv() * two).as_rotvec()
        assert angle == pytest.approx(np.linalg.norm(expected), abs=1e-12)
        assert vector == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("system", ["city-car-driving", "vehicle-physics-pro"])
def test_frames_that_all_come_at_one_moment_are_judged_by_the_time_they_say(system):
    intake = new_intake(system, 60)
    states = states_of("tour", 60)
    fed(intake, records_of(system, states, 60), np.zeros(len(states)))
    assert intake.discontinuities == {}
    jumped = new_intake(system, 60)
    states = states.copy()
    states["position"][300:] += 1000.0
    fed(jumped, records_of(system, states, 60), np.zeros(len(states)))
    assert jumped.discontinuities == {"teleport": 1}
