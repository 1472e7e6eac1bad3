"""Each number of the watch, held from both sides by what a car, a line or a simulator can do.

A car goes straight north at 20 m/s, 60 frames a second, and does one thing on either side of what is allowed.
"""

import numpy as np
import pytest
import quaternion as npq
from trouble_helpers import START
from watch_helpers import fed, new_intake, records_of

from motioncue.core.channels import GRAVITY
from motioncue.drive.car import STATE_DTYPE
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE
from motioncue.wire.packet import DELAY_S

RATE = 60.0
DT = 1.0 / RATE
AT = 60
LATE = 0.1 / (1.0 + DT) ** (AT - 1)
"""What is left before frame `AT` of the delay that is tolerated at the beginning, with a time constant of 1 s [s]."""


def car(count=120, speed=20.0, dt=DT):
    """Return the states of a car that goes straight north."""
    states = np.zeros(count, STATE_DTYPE)
    states["time"] = dt * np.arange(count)
    states["velocity"][:, 0] = speed
    states["position"][:, 0] = speed * states["time"]
    states["orientation"][:, 0] = 1.0
    return states


def watched(states, system="city-car-driving", rate_hz=RATE, times=None, **options):
    """Return the intake after the states' frames, and the motion published after each."""
    intake = new_intake(system, rate_hz, **options)
    motion = fed(intake, records_of(system, states, rate_hz), states["time"] if times is None else times)
    return intake, motion


# ---- from frame to frame ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claimed", [40.0, 80.0])
@pytest.mark.parametrize(("share", "found"), [(0.995, {}), (1.005, {"impossible_acceleration": 1})])
def test_velocity_changes_by_the_claim_of_ten_milliseconds_more_and_by_20_m_s2(claimed, share, found):
    """A packet's physics may be 10 ms old, as at 60 steps a second; 20 m/s^2 go unreported, 0.5 m/s is noise."""
    states = car()
    time = DT + LATE
    states["acceleration"][AT, 0] = claimed
    states["velocity"][AT:, 0] += share * (0.5 + claimed * (time + 0.01) + 20.0 * time)
    assert watched(states)[0].discontinuities == found


def test_a_car_that_is_stopped_in_its_spin_has_turned_at_the_rate_before():
    """It has turned by a whole interval at 10 rad/s, and does not turn any more."""
    states = car()
    states["angular_velocity"][AT - 10 : AT, 2] = 10.0
    heading = np.append(0.0, np.cumsum(states["angular_velocity"][:-1, 2]) * DT)
    states["orientation"] = npq.as_float_array(npq.from_rotation_vector(np.outer(heading, [0.0, 0.0, 1.0])))
    assert watched(states)[0].discontinuities == {}


@pytest.mark.parametrize(("ahead_s", "frames", "found"), [
    (0.09, 1, {}), (0.5, 1, {"spike": 1}), (0.5, 60, {}), (2.5, 60, {"frame_time_jump": 1}),
])  # fmt: skip
def test_one_frame_whose_time_runs_ahead_of_the_clock_is_set_aside(ahead_s, frames, found):
    """By more than frames may come apart, 0.1 s; a time that goes on so is followed, up to a jump of 2 s."""
    states = car()
    rows = records_of("city-car-driving", states, RATE)
    rows["frame_time"][AT : AT + frames] += ahead_s
    intake = new_intake("city-car-driving", RATE)
    fed(intake, rows, states["time"])
    assert intake.discontinuities == found


def test_what_no_head_can_feel_is_not_followed_though_the_car_hardly_moves():
    """150 rad/s^2 about the car's lateral axis are 150 m/s^2 for a head 1 m in front of it."""
    states = car()
    states["angular_acceleration"][AT:, 1] = 150.0
    intake = city_car_driving.intake(city_car_driving.Options(), head_m=(1.0, 0.0, 0.0))
    intake.begin(START)
    intake.feed(INIT_PACKAGE, START)
    motion = fed(intake, records_of("city-car-driving", states, RATE), states["time"])
    assert intake.discontinuities == {"impossible_acceleration": 1}
    assert intake.frozen
    assert np.abs(motion["heave"]).max() < 1e-6


@pytest.mark.parametrize(("share", "found"), [(0.995, {}), (1.005, {"spike": 1})])
def test_while_frames_are_missing_a_car_does_30_m_s2(share, found):
    """The mean of a landing of 60 m/s^2: 10 m/s^2 more than between frames, from the second missing interval on."""
    gap = 0.4
    states = car()
    states["velocity"][AT:, 0] += share * (0.5 + 20.0 * (gap + LATE) + 10.0 * (gap - 2.0 * DT))
    times = states["time"].copy()
    times[AT:] += gap - DT
    assert watched(states, times=times)[0].discontinuities == found


@pytest.mark.parametrize(("share", "found"), [(0.995, {}), (1.005, {"spike": 1})])
def test_rates_that_lag_are_trusted_to_be_gaining_75_rad_s2(share, found):
    """Rates that are derived show a turn only after their delay; a car that is hit turns with 75 rad/s^2."""
    states = car()
    angle = share * (0.02 + (2.0 + 75.0 * DELAY_S) * (DT + LATE))
    states["orientation"][AT:] = npq.as_float_array(npq.from_rotation_vector([0.0, 0.0, angle]))
    assert watched(states, rates="derived")[0].discontinuities == found


@pytest.mark.parametrize(("apart_s", "jumps"), [(0.5, 0), (0.3, 1)])
def test_spikes_are_forgotten_within_about_a_second(apart_s, jumps):
    """With a time constant of 1 s, one each 0.5 s adds up to 1 / (1 - 1/e^0.5) = 2.5, and each 0.3 s to 3.9 of 3."""
    states = car(600)
    states["position"][AT :: round(apart_s * RATE), 1] += 50.0
    found = watched(states)[0].discontinuities
    assert found.pop("spike") > 10
    assert len(found) == jumps


@pytest.mark.parametrize(("changes", "found"), [(9, {}), (10, {"frozen": 1})])
def test_a_source_is_alive_after_ten_changes(changes, found):
    """Loading a track may show a few states, then one for long: a source that has hardly moved cannot freeze."""
    states = car(200)
    states[changes + 1 :] = states[changes]
    assert watched(states, times=DT * np.arange(200))[0].discontinuities == found


@pytest.mark.parametrize(("speed", "found"), [(0.99, {}), (1.01, {"frozen": 1})])
def test_a_parked_car_repeats_itself_and_one_that_moves_at_1_m_s_does_not(speed, found):
    states = car(200, speed)
    states["position"][:AT, 1] = 1e-2 * np.sin(np.arange(AT))
    states[AT:] = states[AT]
    assert watched(states, times=DT * np.arange(200))[0].discontinuities == found


@pytest.mark.parametrize(("repeats", "found"), [(10, {}), (11, {"frozen": 1})])
def test_silence_is_no_repetition(repeats, found):
    """A repeat stands for no more than the 0.1 s that frames may come apart: eleven of them are the 1 s of a freeze."""
    states = car(AT + repeats)
    states[AT:] = states[AT - 1]
    times = DT * np.arange(AT + repeats)
    times[AT:] = times[AT - 1] + 0.11 * np.arange(1, repeats + 1)
    assert watched(states, times=times)[0].discontinuities == found


# ---- datagrams that overtake one another -----------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "rejected"), [(0.45, {}), (0.55, {"late": 1})])
def test_a_car_that_goes_back_by_half_an_interval_is_an_old_frame(share, rejected):
    """Neighbors that change places differ by a whole interval's way; noise of a car that stops, by much less."""
    states = car()
    states["position"][AT, 0] = states["position"][AT - 1, 0] - share * 20.0 * DT
    assert watched(states, "beamng")[0].rejected == rejected


@pytest.mark.parametrize(("share", "rejected"), [(0.2, {}), (0.3, {"late": 1})])
def test_a_car_that_does_not_go_along_its_velocity_is_never_old(share, rejected):
    """Where axes are misread, positions say nothing: it must have gone a quarter of the way that its velocity says."""
    states = car()
    states["position"][:, 0] = share * 20.0 * states["time"]
    states["position"][AT, 0] = states["position"][AT - 1, 0] - 0.6 * 20.0 * DT
    assert watched(states, "beamng")[0].rejected == rejected


@pytest.mark.parametrize(("velocity", "moved", "rejected"), [
    (-2.0, -0.9, {}),  # along its velocity now
    (-2.0, 0.9, {}),  # along the one before
    (2.0, -0.9, {"late": 1}),  # along neither
])  # fmt: skip
def test_a_car_that_a_wall_throws_back_goes_along_one_of_its_velocities(velocity, moved, rejected):
    """It has gone on until it turned round, or back since then; an old frame is behind by both."""
    states = car(AT + 1, 2.0)
    states["velocity"][AT, 0] = velocity
    states["acceleration"][AT, 0] = (velocity - 2.0) / 0.05  # 80 m/s^2, for longer than an interval
    states["position"][AT, 0] = states["position"][AT - 1, 0] + moved * 2.0 * DT
    intake, _ = watched(states, "beamng")
    assert intake.rejected == rejected
    assert intake.accepted == AT + 1 - len(rejected)


def test_a_session_whose_first_frame_is_refused_begins_at_time_zero():
    """The simulator's time has begun again, which the second of its frames shows: that one has no attitude."""
    states = car(AT + 4)
    states["time"] = np.append(10.0 + DT * np.arange(AT), DT * np.arange(4))
    states["orientation"][AT + 1] = 0.0
    intake, motion = watched(states, "vehicle-physics-pro", times=DT * np.arange(AT + 4))
    assert intake.rejected == {"late": 1, "quaternion": 1}
    assert motion["frame_time"][-2:] == pytest.approx([0.0, DT], abs=1e-9)


# ---- what is claimed and what is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "followed"), [(0.26, True), (0.24, False)])
def test_a_step_is_followed_at_once_if_a_quarter_of_it_is_shown(share, followed):
    """A step of the acceleration in the middle between two frames changes the velocity by half of one that lasts."""
    states = car()
    states["acceleration"][AT:, 0] = 30.0
    states["velocity"][AT:, 0] += 30.0 * DT * (share + np.arange(120 - AT))
    states["position"][:, 0] = np.cumsum(states["velocity"][:, 0]) * DT
    surge = watched(states)[1]["surge"]
    assert surge[AT] == pytest.approx(30.0 if followed else 0.0, abs=1e-4)
    assert surge[AT + 1] == pytest.approx(30.0, abs=1e-4)


@pytest.mark.parametrize(("frames", "share", "followed"), [
    (30, 0.11, True), (30, 0.085, False), (240, 0.26, True), (240, 0.235, False),
])  # fmt: skip
def test_a_state_that_was_repeated_makes_intervals_unclear_for_about_a_second(frames, share, followed):
    """By an interval, with a time constant of 1 s: of a quarter of a step, 61 % less is due after 30, 2 % after 240."""
    assert share > 0.25 * (1.0 - (1.0 + DT) ** -frames) if followed else share < 0.25 * (1.0 - (1.0 + DT) ** -frames)
    at = AT + 1 + frames
    states = car(at + 1)
    states["acceleration"][at, 0] = 30.0
    states["velocity"][at, 0] += 30.0 * DT * share
    states[AT] = states[AT - 1]
    surge = watched(states, times=DT * np.arange(at + 1))[1]["surge"]
    assert surge[at] == pytest.approx(30.0 if followed else 0.0, abs=1e-4)


@pytest.mark.parametrize(("left", "believed"), [(0.5, True), (1.0, False)])
def test_claims_that_were_contradicted_are_believed_when_they_agree_to_half_the_limit(left, believed):
    """A claim that nothing shows may be 1 m/s in a second and 39 % of itself; half of that: 0.6 for 0.5, 0.7 for 1."""
    states = car(600)
    states["acceleration"][:AT, 0] = 5.0
    states["acceleration"][AT:, 0] = left
    intake, _ = watched(states)
    assert intake.discontinuities == {"acceleration_contradicted": 1}
    assert intake.frozen != believed


@pytest.mark.parametrize(("apart_s", "found"), [(0.145, {"acceleration_contradicted": 1}), (0.155, {})])
def test_nothing_is_compared_between_frames_more_than_150_ms_apart(apart_s, found):
    """What a car claims twice in so long a time tells nothing of what it did between."""
    states = car(100, dt=apart_s)
    states["acceleration"][:, 0] = 5.0
    assert watched(states, rate_hz=1.0 / apart_s)[0].discontinuities == found


@pytest.mark.parametrize(("late_s", "surge"), [(0.08, 0.0), (0.12, 40.0)])
def test_claims_are_followed_anew_after_a_frame_that_comes_100_ms_later_than_it_says(late_s, surge):
    """Nobody knows whether frames were lost, or this one waited: there is nothing to compare a claim with."""
    states = car(AT + 1)
    states["acceleration"][AT, 0] = 40.0
    times = states["time"].copy()
    times[AT] += late_s
    assert watched(states, times=times)[1]["surge"][-1] == pytest.approx(surge, abs=1e-3)


def test_an_accelerometer_s_gravity_is_no_claim_to_move():
    """At rest it reads 9.8 m/s^2 upwards, which no velocity ever shows."""
    states = car(300)
    states["acceleration"][:, 2] = -GRAVITY
    intake, motion = watched(states, gravity="included")
    assert intake.discontinuities == {}
    assert motion["heave"] == pytest.approx(0.0, abs=1e-4)


# ---- sources whose frames carry no time ------------------------------------------------------------------------------


def stepping(share, late_s=0.0, step=30.0):
    """Return the surge published with a frame of BeamNG's that comes late, claims a step and shows a share of it."""
    states = car()
    states["acceleration"][AT:, 0] = step
    states["velocity"][AT:, 0] += step * DT * (share + np.arange(120 - AT))
    states["position"][:, 0] = np.cumsum(states["velocity"][:, 0]) * DT
    times = states["time"].copy()
    times[AT:] += late_s
    return watched(states, "beamng", times=times)[1]["surge"][AT]


@pytest.mark.parametrize(("share", "surge"), [(0.195, 30.0), (0.18, 0.0)])
def test_by_arrivals_alone_an_interval_may_be_a_quarter_shorter(share, surge):
    """Of a step, the part is to be shown that is due in three quarters of an interval: 0.19 of it."""
    assert stepping(share) == pytest.approx(surge, abs=1e-3)


@pytest.mark.parametrize(("share", "surge"), [(0.07, 30.0), (0.055, 0.0)])
def test_however_late_a_frame_is_a_quarter_of_an_interval_has_passed(share, surge):
    """A claim is never followed for nothing: 1/16 of a step has to be shown."""
    assert stepping(share, late_s=DT) == pytest.approx(surge, abs=1e-3)


@pytest.mark.parametrize(("stall_s", "surge"), [(0.2, 0.0), (0.3, 40.0)])
def test_by_arrivals_alone_nothing_is_compared_soon_after_a_stall_of_a_quarter_second(stall_s, surge):
    """Any frame of about the next second may have waited as long."""
    states = car(AT + 3)
    states["acceleration"][AT + 2, 0] = 40.0
    times = states["time"].copy()
    times[AT:] += stall_s
    assert watched(states, "beamng", times=times)[1]["surge"][-1] == pytest.approx(surge, abs=1e-3)
