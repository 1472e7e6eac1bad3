"""Implausible motion is not followed, from any simulator: unconfirmed claims, jumps, and corrupt numbers.

Each case changes the packets of a car that goes straight at 20 m/s, with some sideways motion, from the third second
on. The published motion is the cue's input before anything is limited.
"""

import numpy as np
import pytest
import quaternion as npq
from delivery_rig import PERIOD, START
from scipy.spatial.transform import Rotation
from watch_helpers import STAMPED, SYSTEMS, delivered, fed, new_intake, records_of

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.drive.car import STATE_DTYPE
from motioncue.engine.journal import MESSAGES
from motioncue.engine.pipeline import Pipeline
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE

pytestmark = pytest.mark.search

RATE = 60.0
AT, FRAMES = 180, 300
DERIVED = ("beamng-simulink", "morai")
"""Systems whose rates are derived from the attitude, so they claim none."""


def cruise(spin=0.0):
    """Return the states of a car that goes straight, and in the second second begins to turn at `spin` [rad/s]."""
    time = np.arange(FRAMES) / RATE
    states = np.zeros(FRAMES, STATE_DTYPE)
    states["time"], states["engine_speed"] = time, 2000.0
    states["velocity"][:, 0] = 20.0
    states["position"][:, 0], states["position"][:, 1] = 20.0 * time, 1e-3 * np.sin(time)
    rate = spin * np.clip(time - 1.0, 0.0, 1.0)
    angle = np.cumsum(rate) / RATE - 0.5 * rate / RATE
    states["orientation"][:, 0], states["orientation"][:, 3] = np.cos(angle / 2), np.sin(angle / 2)
    states["angular_velocity"][:, 2] = rate
    states["angular_acceleration"][:, 2] = np.gradient(rate, 1.0 / RATE)
    return states


def turned(states, which, axis, angle):
    """Return the states, with some turned about an axis of the car by an angle [rad]."""
    vector = np.zeros(3)
    vector[axis] = angle
    attitude = npq.as_quat_array(states["orientation"][which]) * npq.from_rotation_vector(vector)
    states["orientation"][which] = npq.as_float_array(attitude)
    return states


def set_to(field, axis, which, values):
    """Return the states, with other values in some of them."""
    states = cruise()
    states[field][which, axis] = values
    return states


def flips():
    """Return states that turn over by 178 degrees each frame, 1.9 s apart by their own time, and claim not to turn."""
    states = cruise()
    states["time"][AT:] = states["time"][AT] + 1.9 * np.arange(FRAMES - AT)
    return turned(states, slice(AT, None, 2), 2, np.radians(178))


def alternating(field, axis, size):
    return set_to(field, axis, slice(AT, None), np.where(np.arange(FRAMES - AT) % 2, -size, size))


STAYS, ONE = slice(AT, None), slice(AT, AT + 1)

# The drive, the reason, and the largest acceleration that may be published until it is detected [m/s^2].
JUMPS = {
    "57 degrees in a frame at 5 rad/s": (lambda: turned(cruise(5.0), STAYS, 2, 1.0), "impossible_rate"),
    "tilted by 29 degrees from then on": (lambda: turned(cruise(), STAYS, 0, 0.5), "impossible_rate"),
    "0 and 178 degrees, stamps 1.9 s apart": (flips, "impossible_rate"),
    "30 m/s more from then on": (lambda: set_to("velocity", 0, STAYS, 50.0), "impossible_acceleration"),
}
CONTRADICTED = {
    "12 m/s^2, no velocity": (lambda: set_to("acceleration", 0, STAYS, 12.0), "acceleration_contradicted", 12.0),
    "50 m/s^2, no velocity": (lambda: set_to("acceleration", 0, STAYS, 50.0), "acceleration_contradicted", 0.0),
    "79 m/s^2 up and down": (lambda: alternating("acceleration", 2, 79.0), "acceleration_contradicted", 0.0),
    "79 m/s^2 to and fro": (lambda: alternating("acceleration", 0, 79.0), "acceleration_contradicted", 0.0),
    "gravity left in": (lambda: set_to("acceleration", 2, slice(None), -9.81), "acceleration_contradicted", 9.81),
    "pitching at 10.4 rad/s, level": (lambda: set_to("angular_velocity", 1, STAYS, 10.4), "rate_contradicted", 0.0),
}
SPIKES = {
    "surge": lambda: set_to("acceleration", 0, ONE, 45.0),
    "surge, two frames": lambda: set_to("acceleration", 0, slice(AT, AT + 2), 45.0),
    "velocity": lambda: set_to("velocity", 0, ONE, 50.0),
    "position": lambda: set_to("position", 0, ONE, 320.0),
    "attitude": lambda: turned(cruise(), ONE, 0, 0.5),
    "rate": lambda: set_to("angular_velocity", 1, ONE, 9.0),
    "attitude while it spins": lambda: turned(cruise(5.0), ONE, 2, 1.0),
}


def published(system, states):
    """Return the intake and the motion that it published for the states, each frame on time."""
    rows = records_of(system, states, RATE)
    if system == "city-car-driving":
        rows["frame_time"] = np.diff(states["time"], prepend=states["time"][0] - 1.0 / RATE)
    if system == "beamng-simulink":
        rows["id"] = np.round(states["time"] * RATE)
    intake = new_intake(system, RATE)
    return intake, fed(intake, rows, np.arange(FRAMES) / RATE)


def largest(motion):
    """Return the largest acceleration [m/s^2], rate [rad/s] and turn between two frames [rad]."""
    sizes = [
        np.linalg.norm(np.stack([motion[name] for name in names]), axis=0).max()
        for names in (("surge", "sway", "heave"), ("roll_rate", "pitch_rate", "yaw_rate"))
    ]
    attitude = Rotation.from_euler("ZYX", np.stack([motion["yaw"], motion["pitch"], motion["roll"]], 1))
    return *sizes, (attitude[:-1].inv() * attitude[1:]).magnitude().max()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("what", JUMPS)
def test_a_jump_is_named_once(system, what):
    make, reason = JUMPS[what]
    intake, _ = published(system, make())
    assert intake.discontinuities[reason] == 1


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("what", CONTRADICTED)
def test_a_claim_that_nothing_shows_is_named_and_followed_no_further_than_a_car_can(system, what):
    make, reason, most = CONTRADICTED[what]
    intake, motion = published(system, make())
    claims = not (reason == "rate_contradicted" and system in DERIVED)
    assert intake.discontinuities == ({reason: 1} if claims else {})
    acceleration, rate, turn = largest(motion)
    assert acceleration <= most * 1.001 + 1e-5
    assert rate < 1e-3
    assert turn < 1e-3


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("what", ["12 m/s^2, no velocity", "gravity left in", "pitching at 10.4 rad/s, level"])
@pytest.mark.parametrize(("loss", "pace"), [(0.05, 1.0), (0.3, 1.0), (0.05, 1.9)])
def test_such_a_claim_is_named_where_frames_are_lost_or_the_simulators_time_runs_faster(system, what, loss, pace):
    make, reason, _ = CONTRADICTED[what]
    rows = records_of(system, make(), RATE)
    which, when = delivered(FRAMES, RATE, np.random.default_rng(2), loss=loss, pace=pace)
    if system == "city-car-driving":
        rows["frame_time"][which] = np.diff(which, prepend=which[0] - 1) / RATE
    if system == "beamng-simulink":
        rows["id"] = np.round(np.arange(FRAMES))
    intake = new_intake(system, RATE)
    fed(intake, rows[which], when)
    assert (reason in intake.discontinuities) != (reason == "rate_contradicted" and system in DERIVED)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("what", SPIKES)
def test_a_number_that_comes_once_is_counted_and_not_followed(system, what):
    intake, motion = published(system, SPIKES[what]())
    claims = not (what == "rate" and system in DERIVED)
    assert intake.discontinuities == ({"spike": 1} if claims else {})
    spin = 5.0 if "spins" in what else 0.0
    acceleration, rate, turn = largest(motion)
    assert acceleration < 1e-3
    assert rate < 1.05 * spin + 1e-3
    assert turn < 2.1 * spin / RATE + 1e-3  # in two frames, if one is set aside


@pytest.mark.parametrize("field", ["vel_x", "vel_y", "pos_x", "roll", "pitch", "yaw", "acc_x", "acc_y", "acc_z"])
def test_one_plausible_but_corrupt_double_moves_nothing(field):
    """A flipped bit in an exponent makes a number as good as any other."""
    rows = records_of("beamng-simulink", cruise(), RATE)
    rows[field][AT] = {"acc": 40.0, "vel": 55.0, "pos": 500.0}.get(field[:3], 1.2)
    intake = new_intake("beamng-simulink", RATE)
    motion = fed(intake, rows, np.arange(FRAMES) / RATE)
    assert intake.discontinuities == {"spike": 1}
    assert max(largest(motion)) < 1e-3


# ---- through the whole engine ----------------------------------------------------------------------------------------

PROFILES = {system: f"{system}-dk" for system in SYSTEMS} | {"city-car-driving": "ccd-dk"}


def sent(profile, system, states):
    """Return the pipeline after the states' packets; its trace has what was sent."""
    rows = records_of(system, states, RATE)
    if system == "beamng-simulink":
        rows["id"] = np.round(states["time"] * RATE)
    pipeline = Pipeline(motioncue.load_profile(profile, *_pace(system)), FakeClock(START), trace=2400)
    pipeline.intake.begin(START)
    if system == "city-car-driving":
        pipeline.intake.feed(INIT_PACKAGE, START)
    for i, row in enumerate(rows):
        now = START + round(i / RATE * 1e9)
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(row.tobytes(), now)
    pipeline.emitter.run(until_ns=now + 2_000_000_000)
    return pipeline


def _pace(system):
    return ["source.options.simulink_time_s=0.016666666666666666"] if system == "beamng-simulink" else []


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("what", [what for what in SPIKES if "spins" not in what])
def test_a_spike_does_not_reach_the_platform(system, what):
    pipeline = sent(PROFILES[system], system, SPIKES[what]())
    cue = pipeline.emitter.trace["cue"]
    assert max(np.abs(cue[name]).max() for name in ("surge", "sway", "heave", "roll", "pitch")) < 1e-3
    ends = [move["reason"] for move in pipeline.transitions()[0] if move["from"] == "RUNNING"]
    assert set(ends) <= {"input_overdue", "input_lost"}  # after the last frame


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_an_acceleration_that_turns_round_every_frame_parks_and_moves_nothing(profile):
    pipeline = sent(profile, "city-car-driving", alternating("acceleration", 0, 79.0))
    assert pipeline.stats()["events"] == {"acceleration_contradicted": 1}
    assert np.abs(pipeline.emitter.trace["cue"]["surge"]).max() < 1e-3


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_a_rate_at_a_still_attitude_parks_and_pitches_nobody(profile):
    pipeline = sent(profile, "city-car-driving", set_to("angular_velocity", 1, STAYS, 10.4))
    assert pipeline.stats()["events"] == {"rate_contradicted": 1}
    assert np.abs(pipeline.emitter.trace["cue"]["pitch"]).max() < 1e-3


@pytest.mark.parametrize("system", SYSTEMS)
def test_flips_of_the_attitude_turn_the_platform_no_faster_than_its_bounds(system):
    pipeline = sent(PROFILES[system], system, flips())
    cue = pipeline.emitter.trace["cue"]
    for name in ("roll", "pitch"):
        assert np.abs(np.diff(cue[name])).max() <= np.radians(300) * PERIOD * 1e-9 * (1 + 1e-9)
    assert np.abs(cue["roll"]).max() < 1e-3
    assert pipeline.stats()["events"]["impossible_rate"] == 1


# ---- datagrams that are late -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", STAMPED)
@pytest.mark.parametrize("how", ["swapped", "twice", "late by three", "two late by three", "2.5 s old, twice"])
def test_a_datagram_that_is_late_or_comes_twice_is_counted_and_begins_no_session(system, how):
    rows = records_of(system, cruise(), RATE)
    order = list(range(FRAMES))
    if how == "swapped":
        order[AT], order[AT + 1] = order[AT + 1], order[AT]
    elif how == "twice":
        order.insert(AT, AT)
    elif how == "late by three":
        order.insert(AT + 3, order.pop(AT))
    elif how == "two late by three":
        order[AT : AT + 5] = AT + 3, AT + 4, AT, AT + 1, AT + 2
        del order[AT + 4]
    else:  # a simulator that begins again goes on
        order[-1:-1] = 2 * [FRAMES - round(2.5 * RATE)]
    intake = new_intake(system, RATE)
    fed(intake, rows[order], np.arange(len(order)) / RATE)
    assert intake.sessions == 1
    assert intake.discontinuities == {}
    assert intake.rejected == ({} if how == "twice" else {"late": 2 if "two" in how or "old" in how else 1})
    assert intake.repeats == (how == "twice")


@pytest.mark.parametrize("system", ["beamng", "morai"])
@pytest.mark.parametrize(("speed", "late"), [(20.0, 1), (0.0, 0), (-5.0, 1)])
def test_without_a_time_a_datagram_is_late_if_the_car_would_go_back(system, speed, late):
    states = cruise()
    states["velocity"][:, 0] = speed
    states["position"][:, 0] = speed * states["time"]
    rows = records_of(system, states, RATE)
    rows[[AT, AT + 1]] = rows[[AT + 1, AT]]
    intake = new_intake(system, RATE)
    fed(intake, rows, np.arange(FRAMES) / RATE)
    assert intake.sessions == 1
    assert intake.discontinuities == {}
    assert intake.rejected == ({"late": 1} if late else {})


@pytest.mark.parametrize("system", ["beamng", "morai"])
@pytest.mark.parametrize("gap", [1, 30, 60])
def test_a_car_that_turns_from_reverse_to_forward_is_not_late_even_after_a_gap(system, gap):
    states = cruise()
    speed = np.clip(6.0 * (states["time"] - 3.0), -6.0, 6.0)
    states["velocity"][:, 0] = speed
    states["acceleration"][:, 0] = np.gradient(speed, 1 / RATE)
    states["position"][:, 0] = np.cumsum(speed) / RATE
    rows = records_of(system, states, RATE)
    for begins in range(AT - 60, AT + 30, 5):
        kept = np.r_[:begins, begins + gap : FRAMES]
        intake = new_intake(system, RATE)
        fed(intake, rows[kept], kept / RATE)
        assert intake.rejected == {}


@pytest.mark.parametrize("system", ["beamng", "morai"])
def test_a_car_that_is_put_back_by_a_little_is_followed_again_within_the_time_that_frames_may_come_apart(system):
    states = cruise()
    states["position"][AT:, 0] -= 4.0
    intake = new_intake(system, RATE)
    fed(intake, records_of(system, states, RATE), np.arange(FRAMES) / RATE)
    assert intake.sessions == 1
    assert intake.rejected["late"] <= 0.1 * RATE + 1
    assert intake.accepted >= FRAMES - 0.1 * RATE - 1


# ---- the log ---------------------------------------------------------------------------------------------------------


def said_of(intake):
    """Return the log's lines about all queued events but the session's beginning."""
    return [MESSAGES[reason][1].format(detail) for _, reason, detail in intake.events() if reason != "session_began"]


def test_the_log_says_what_was_late():
    rows = records_of("vehicle-physics-pro", cruise(), RATE)
    rows[[AT, AT + 1]] = rows[[AT + 1, AT]]
    intake = new_intake("vehicle-physics-pro", RATE)
    fed(intake, rows, np.arange(FRAMES) / RATE)
    assert said_of(intake) == [
        f"package refused: late, a frame older than the newest by its own time stamp ({rows.itemsize} bytes)"
    ]


CHECK = "; `motioncue check` says what to change"


@pytest.mark.parametrize(
    ("states", "begins", "ends"),
    [
        (SPIKES["surge"], "a value came once and was not followed: acceleration_contradicted, 45 where 15 is", ""),
        (SPIKES["position"], "a value came once and was not followed: teleport, 260.3 where ", ""),
        (
            CONTRADICTED["50 m/s^2, no velocity"][0],
            "acceleration and velocity do not agree, so the platform parks",
            CHECK,
        ),
        (
            CONTRADICTED["pitching at 10.4 rad/s, level"][0],
            "angular rates and attitude do not agree, so the platform parks",
            CHECK,
        ),
    ],
)
def test_the_log_says_in_plain_words_what_was_not_followed_and_why(states, begins, ends):
    intake, _ = published("city-car-driving", states())
    (line,) = said_of(intake)
    assert line.startswith(begins)
    assert line.endswith(" is allowed" + ends)
