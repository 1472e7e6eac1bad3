"""What frames leave behind that were set aside or held up, and claims that were held back."""

import numpy as np
import pytest
import quaternion as npq
from test_watch_numbers import AT, DT, RATE, car, watched
from watch_helpers import fed, new_intake, records_of


def test_after_a_frame_that_is_set_aside_what_is_derived_is_of_two_frames_time():
    """A car that brakes with 6 m/s^2 brakes no harder because one frame showed it 50 m beside the road."""
    states = car(240, 60.0)
    states["velocity"][:, 0] -= 6.0 * states["time"]
    states["position"][:, 0] -= 3.0 * states["time"] ** 2
    states["position"][180, 1] = 50.0
    intake, motion = watched(states, acceleration="from_velocity")
    assert intake.discontinuities == {"spike": 1}
    assert motion["surge"][178:] == pytest.approx(-6.0, abs=0.05)


@pytest.mark.parametrize("turns", [False, True], ids=["acceleration", "rates"])
def test_claims_that_come_and_go_without_being_shown_contradict_what_is_shown(turns):
    """Each lasts 0.2 s of 0.3 s, less than is waited for evidence: together 20 m/s, or 3.3 rad, in a second."""
    states = car(300)
    claims = np.arange(300) % 18 < 12
    claims[:AT] = False
    name, axis, claim = ("angular_velocity", 2, 5.0) if turns else ("acceleration", 0, 30.0)
    states[name][claims, axis] = claim
    intake, motion = watched(states)
    expected = "rate_contradicted" if turns else "acceleration_contradicted"
    assert intake.discontinuities[expected] == 1
    assert intake.frozen
    assert np.abs(motion["yaw_rate" if turns else "surge"]).max() < 1e-6


@pytest.mark.parametrize("spins", [False, True], ids=["brakes", "spins"])
def test_a_frame_right_behind_one_that_was_held_up_makes_nothing_derived_steep(spins):
    """All between them are lost: 0.2 s of the drive have come in one interval, and no car does so much in that."""
    states = car(240, 60.0)
    if spins:
        heading = 2.5 * states["time"]
        states["orientation"] = npq.as_float_array(npq.from_rotation_vector(np.outer(heading, [0.0, 0.0, 1.0])))
    else:
        states["velocity"][:, 0] -= 8.0 * states["time"]
        states["position"][:, 0] -= 4.0 * states["time"] ** 2
    came = states["time"].copy()
    came[180] += 0.2
    kept = np.r_[0:181, 193:240]
    intake = new_intake("city-car-driving", RATE, "from_velocity", rates="derived")
    rows = records_of("city-car-driving", states[kept], RATE)
    rows["frame_time"] = 0.0  # only arrivals tell the time
    motion = fed(intake, rows, came[kept])
    assert intake.discontinuities == {}
    derived, true = (motion["yaw_rate"], 2.5) if spins else (-motion["surge"], 8.0)
    assert derived.max() < 1.02 * true
    assert derived[-1] == pytest.approx(true, rel=0.01)


def test_a_claim_that_is_held_back_when_the_line_stalls_holds_no_brakes_back_behind_it():
    """By arrivals alone nothing is compared for about a second after a stall: what comes then is followed as it is."""
    states = car(AT + 60)
    states["acceleration"][AT - 1, 0] = 60.0
    states["acceleration"][AT:, 0] = -6.0
    states["velocity"][AT:, 0] -= 6.0 * DT * np.arange(60)
    states["position"][:, 0] = np.cumsum(states["velocity"][:, 0]) * DT
    times = states["time"].copy()
    times[AT:] += 0.3
    intake, motion = watched(states, "beamng", times=times)
    assert motion["surge"][AT - 1] == pytest.approx(0.0, abs=1e-3)
    assert motion["surge"][AT:] == pytest.approx(-6.0, abs=1e-3)
    assert intake.discontinuities == {}
