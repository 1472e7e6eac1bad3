"""`motioncue check` on wrong readings of every system: none passes for right, no honest drive is accused, advice mends.

``python tests/check/readings.py STEP OFFSET`` prints the counts; every case is one of its rows.
"""

from itertools import product

import pytest
from readings import GOOD, Case, campaign, counts, honest, is_chosen, outcome_of, sent, shown_of

from motioncue.check.check import check

PARTS = 12  # of the campaign

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
    ("gran-turismo-7-dk", "rally", ("rates = world", "velocity_y = opposite")),
    ("city-car-driving", "rally", ("frame_time = time_ms",)),
]
LONG = [
    ("forza-dk", "tour", ("acceleration = world", "angular_velocity_z = opposite")),
    ("truck-simulator-dk", "eight", ("acceleration_y = opposite", "roll = opposite")),
    ("automobilista-2-dk", "eight, banked", ("velocity_z = opposite", "acceleration_y = opposite")),
    ("gran-turismo-7-dk", "tour without a stop", ("velocity_y = opposite", "car turned")),
    ("automobilista-2-dk", "eight", ("velocity_z = opposite", "angular_velocity_x = opposite")),
]
PAIRED += [pytest.param(*case, marks=pytest.mark.search) for case in LONG]


@pytest.mark.parametrize(("source", "drive", "faults"), PAIRED)
@pytest.mark.check
def test_mistakes_at_once_are_corrected_at_once(source, drive, faults):
    outcome = outcome_of(Case(source, drive, faults))
    assert (outcome.verdict, outcome.advice) == ("wrong", "right")


@pytest.mark.check
def test_a_reading_that_explains_a_drive_decisively_better_is_advised_although_nothing_contradicts():
    """Its accelerations were taken to be along the world's axes, and follow the velocity with much scatter."""
    outcome = outcome_of(Case("forza-dk", "tour", ("acceleration = world",)))
    assert (outcome.verdict, outcome.advice, outcome.wrong) == ("wrong", "right", ())


@pytest.mark.search
def test_of_two_mistakes_one_that_either_of_two_readings_explains_is_left_to_the_driver():
    """A roll rate and roll contradict each other, and nothing tells which is turned."""
    assert (
        outcome_of(Case("assetto-corsa-dk", "tour", ("roll = opposite", "angular_velocity_y = opposite"))).advice
        == "open"
    )


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        pytest.param("assetto-corsa-dk", ("yaw = opposite", "pitch = opposite"), marks=pytest.mark.search),
        ("live-for-speed-dk", ("world turned",)),
    ],
)
@pytest.mark.check
def test_two_angles_turned_and_half_a_turn_about_a_level_axis_are_both_named(source, faults):
    """Each makes of a drive its mirror image upside down, in which nothing but the lean in a curve differs."""
    outcome = outcome_of(Case(source, "eight", faults))
    assert (outcome.verdict, outcome.advice) == ("wrong", "open")
    assert "source.options.yaw" in outcome.words
    assert "source.packet" in outcome.words


@pytest.mark.check
def test_a_car_turned_about_is_among_what_may_be_wrong():
    """No position says where it drives, and on this drive nothing but its roll rate contradicts."""
    assert outcome_of(Case("assetto-corsa-dk", "turns", ("car turned",))).advice == "open"


def every(nth, *values):
    """Return all combinations; one in `nth`, in which each value occurs, is run each time, and the others at night."""
    places = (sum(place) % nth for place in product(*(range(len(each)) for each in values)))
    return [
        pytest.param(*each, marks=[pytest.mark.search] if place else [])
        for each, place in zip(product(*values), places, strict=True)
    ]


PHONED = ["city-car-driving", "dirt-rally-dk", "richard-burns-rally-dk"]
PHONES = ["town by phone", "town by slow GPS", "rally by GPS"]


@pytest.mark.parametrize(("source", "drive"), every(3, PHONED, PHONES))
@pytest.mark.check
def test_a_phone_whose_yaw_is_the_course_is_not_accused(source, drive):
    assert outcome_of(Case(source, drive, ())).verdict == "unknown"


ROLLING = ["dirt-rally-dk", "f1-dk", "gran-turismo-7-dk"]


@pytest.mark.parametrize(
    ("source", "drive", "how"), every(2, ROLLING, ["eight, banked", "turns"], ["", " by turned roll"])
)
@pytest.mark.check
def test_no_sign_of_roll_is_confirmed_by_a_heave_that_is_derived_through_it(source, drive, how):
    system, options = honest(source, drive)
    packages, times, _ = sent(source, drive + how)
    found = {finding.name: finding.verdict for finding in check(system, packages, times, options).findings}
    assert found["roll and leaning"] == found["heave and climb"] == "unknown"


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_campaign_of_single_and_paired_faults(part):
    """No wrong OK, no accusation, and advice that mends what the drive shows where options can.

    Of two faults a drive may hide one, so the share that has to be mended is of cases whose faults it shows each alone;
    that of all is printed beside it.  A part takes two minutes:
    ``pytest --rest -m slow tests/check/test_check_readings.py -k "faults and 3"`` is one.
    """
    outcomes = [found for case in campaign()[part::PARTS] if (found := outcome_of(case)) is not None]
    print(f"\n{counts(outcomes)}")
    assert [o for o in outcomes if o.is_wrong_ok or o.is_accused] == []
    evident = [o for o in outcomes if o.kind == "evident"]
    chosen = [o for o in shown_of(evident) if is_chosen(o.case)]
    assert sum(o.advice in GOOD for o in chosen) >= 0.95 * len(chosen)
    assert [o for o in evident if o.advice == "wrong" and len(o.case.faults) == 1] == []
