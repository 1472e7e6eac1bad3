"""`motioncue check` on wrong readings of every system: none passes for right, no honest drive is accused, advice mends.

``python tests/check/readings.py STEP OFFSET PAIRS`` prints the counts; every case is one of its rows.
"""

import pytest
import readings
from readings import Case, counts, honest, outcome_of, pairs, sent, singles

from motioncue.check.check import check

NAMED = [
    ("dirt-rally-dk", "turns", "world's x and z exchanged", "source.packet"),
    ("dirt-rally-dk", "tour", "right_x turned", "source.packet"),
    ("live-for-speed-dk", "town", "roll and pitch exchanged", "source.packet"),
    ("program-dk", "eight", "angular_velocity in deg/s", "source.packet"),
    ("gran-turismo-7-dk", "eight", "quaternion w taken for x", "source.packet"),
    ("mavlink-dk", "eight", "acceleration_y = opposite", "source.options.acceleration_y"),
    ("forza-dk", "eight, banked", "car mirrored", "source.packet"),
]


@pytest.mark.parametrize(("source", "drive", "fault", "key"), NAMED)
@pytest.mark.check
def test_a_mistake_is_named_and_its_correction_makes_the_drive_right(source, drive, fault, key):
    outcome = outcome_of(Case(source, drive, (fault,)))
    assert (outcome.verdict, outcome.advice) == ("wrong", "right")
    assert key in outcome.words


PAIRED = [
    ("automobilista-2-dk", "eight, banked", ("velocity_z = opposite", "acceleration_y = opposite")),
    ("truck-simulator-dk", "eight", ("acceleration_y = opposite", "roll = opposite")),
    ("gran-turismo-7-dk", "tour without a stop", ("velocity_y = opposite", "car turned")),
]


@pytest.mark.parametrize(("source", "drive", "faults"), PAIRED)
@pytest.mark.check
def test_two_mistakes_at_once_are_corrected_at_once(source, drive, faults):
    outcome = outcome_of(Case(source, drive, faults))
    assert (outcome.verdict, outcome.advice) == ("wrong", "right")


@pytest.mark.check
def test_a_car_turned_about_is_among_what_may_be_wrong():
    """No position says where it drives, and on this drive nothing but its roll rate contradicts."""
    assert outcome_of(Case("assetto-corsa-dk", "turns", ("car turned",))).advice == "open"


@pytest.mark.parametrize("source", ["city-car-driving", "dirt-rally-dk", "richard-burns-rally-dk"])
@pytest.mark.parametrize("drive", ["town by phone", "town by slow GPS", "rally by GPS"])
@pytest.mark.check
def test_a_phone_whose_yaw_is_the_course_is_not_accused(source, drive):
    assert outcome_of(Case(source, drive, ())).verdict == "unknown"


@pytest.mark.parametrize("source", ["dirt-rally-dk", "f1-dk", "gran-turismo-7-dk"])
@pytest.mark.parametrize("drive", ["eight, banked", "turns"])
@pytest.mark.parametrize("how", ["", " by turned roll"])
@pytest.mark.check
def test_no_sign_of_roll_is_confirmed_by_a_heave_that_is_derived_through_it(source, drive, how):
    system, options = honest(source, drive)
    packages, times, _ = sent(source, drive + how)
    found = {finding.name: finding.verdict for finding in check(system, packages, times, options).findings}
    assert found["roll and leaning"] == found["heave and climb"] == "unknown"


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(10))
def test_a_campaign_of_single_and_paired_faults(part):
    """No wrong OK, no accusation, and advice that mends where options can."""
    outcomes = [found for case in [*singles(), *pairs(150)][part::10] if (found := outcome_of(case)) is not None]
    print(f"\n{counts(outcomes)}")
    assert [o for o in outcomes if o.is_wrong_ok or o.is_accused] == []
    evident = [o for o in outcomes if o.kind == "evident" and len(o.case.faults) == 1]
    chosen = [o for o in evident if all(readings.faults_of(o.case.source)[f] for f in o.case.faults)]
    assert sum(o.advice in ("right", "open") for o in chosen) >= 0.95 * len(chosen)
    assert [o for o in evident if o.advice == "wrong"] == []
