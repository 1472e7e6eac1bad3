"""`motioncue check` on drives and faults whose truth is computed without it: no wrong OK, accusation or advice.

``pytest -s -m slow tests/check/test_check_campaign.py`` prints the table of truth against verdict;
``python tests/campaign`` runs any other part.
"""

import numpy as np
import pytest
from campaign.cases import Case, all_cases, confusion, described, run
from campaign.drives import DRIVES, states_of
from campaign.faults import FAULTS
from campaign.wires import INVENTED, WIRES, options_of, say

from motioncue.check.check import check
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving.packets import FRAME

pytestmark = pytest.mark.search

CASES = [case for case in all_cases(DRIVES) if case.source not in INVENTED]
POSITIONED = [source for source in WIRES if source != "alpine"]


@pytest.mark.grid
@pytest.mark.parametrize("case", CASES[3::463], ids=lambda case: f"{case.source}-{case.drive}-{case.fault}")
def test_no_case_of_a_thinned_campaign_has_a_wrong_ok_accusation_or_advice(case):
    outcome = run(case, check)
    if outcome is None:
        pytest.skip("the source's packets cannot express it")
    assert not outcome.misled, described(outcome)


@pytest.mark.parametrize(
    ("source", "drive", "fault", "wrong"),
    [
        ("city-car-driving", "eight, rough", "acceleration 0.2 s late", "heave and climb"),
        ("morai", "town", "acceleration in the other frame", "surge and speed"),
    ],
)
def test_an_acceleration_that_is_late_or_along_the_worlds_axes_is_told_from_a_wrong_attitude(
    source, drive, fault, wrong
):
    outcome = run(Case(source, drive, fault), check)
    assert [name for name, (verdict, _) in outcome.findings.items() if verdict == "wrong"] == [wrong]
    assert outcome.advice == "mends"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_larger_campaign_has_no_wrong_ok_accusation_or_advice():
    """Every third case of those that ``python tests/campaign 29 7`` tries, where it holds as well."""
    outcomes = [outcome for outcome in (run(case, check) for case in CASES[7::87]) if outcome is not None]
    print(f"\n{confusion(outcomes)}")
    assert [described(outcome) for outcome in outcomes if outcome.misled] == []
    assert sum(outcome.silent for outcome in outcomes) <= 0.05 * len(outcomes)
    assert any(outcome.advice == "mends" for outcome in outcomes)


@pytest.mark.parametrize("source", POSITIONED)
def test_an_honest_rally_stage_is_not_accused(source):
    """The heave and the rates of the stage are derived; its surge and sway are the game's."""
    outcome = run(Case(source, "rally", "nothing"), check)
    not_ok = {name: verdict for name, (verdict, _) in outcome.findings.items() if verdict != "ok"}
    assert (outcome.kind, outcome.changes) == ("harmless", {})
    # Cambers roll the car as much as its springs do, and a derived rate is as right as the roll.
    assert not_ok in ({}, {"roll and leaning": "unknown"}, {"roll and leaning": "unknown", "roll rate": "unknown"})


def test_negated_accelerations_of_the_sample_are_not_taken_for_gravity():
    init, *frames = read_packages(sample_recording())
    rows = np.frombuffer(bytearray(b"".join(frames)), FRAME.dtype)
    rows["acceleration"] *= -1.0
    packages = [init, *(row.tobytes() for row in rows)]
    assert packages[1][:63] == frames[0][:63]
    assert packages[1][75:] == frames[0][75:]
    report = check("city-car-driving", packages)
    assert report.verdict == "wrong"
    assert {finding.name: finding.verdict for finding in report.findings}["surge and speed"] == "wrong"
    assert report.changes == {"source.acceleration": "from_velocity"}  # which does not use it at all
    followed = check("city-car-driving", packages, options={"gravity": "included"})
    found = {finding.name: finding.verdict for finding in followed.findings}
    assert (followed.verdict, found["gravity"], found["surge and speed"]) == ("wrong", "wrong", "wrong")


@pytest.mark.parametrize("drive", ["tour without a stop", "motorway", "rally", "eight"])
def test_gravity_in_the_acceleration_shows_without_a_stop(drive):
    outcome = run(Case("city-car-driving", drive, "gravity in the acceleration"), check)
    assert outcome.kind == "evident"
    assert outcome.verdict == "wrong"
    assert outcome.findings["gravity"][0] == "wrong"
    assert (outcome.changes, outcome.advice) == ({"gravity": "included"}, "mends")


@pytest.mark.parametrize("source", WIRES)
def test_a_few_frames_show_nothing(source):
    wire = WIRES[source]
    said = say(wire, "tour").taking(np.arange(400, 405))
    packages = [*wire.first, *(row.tobytes() for row in said.rows)]
    report = check(
        wire.system, packages, [*said.times[:1].repeat(len(wire.first)), *said.times], options_of(wire, "tour")
    )
    assert report.verdict == "unknown"
    assert report.changes == {}


@pytest.mark.parametrize("source", POSITIONED)
@pytest.mark.parametrize("drive", ["drift", "backing"])
def test_a_car_that_slides_or_reverses_without_a_position_is_not_accused(source, drive):
    outcome = run(Case(source, drive, "position always zero"), check)
    assert (outcome.kind, outcome.verdict) == ("harmless", "unknown")


@pytest.mark.parametrize("source", POSITIONED)
def test_the_quantity_that_comes_late_is_named(source):
    attitude = run(Case(source, "rally", "attitude 0.3 s late"), check)
    accused = {name for name, (verdict, _) in attitude.findings.items() if verdict == "wrong"}
    assert accused & {"attitude and course", "velocity and position", "roll rate", "pitch rate", "yaw rate"}
    velocity = run(Case(source, "rally", "velocity 0.3 s late"), check)
    assert (velocity.verdict, velocity.findings["velocity and position"][0]) == ("wrong", "wrong")
    assert "late" in velocity.findings["velocity and position"][1]


@pytest.mark.parametrize(
    ("source", "drive", "fault"),
    [
        ("city-car-driving", "tour without a stop", "velocity in km/h"),  # a clock without evidence mends nothing
        ("city-car-driving", "motorway", "attitude upside down"),  # a straight drive settles no quaternion
        ("beamng", "turns", "velocity always zero"),  # nothing can be derived from it
        ("beamng", "eight", "attitude 0.3 s late"),  # nor explained by the axes of the rates
        ("beamng-simulink", "backing", "yaw half a turn off"),  # or are the accelerations negated?
        ("vehicle-physics-pro", "drift", "roll negated"),  # the acceleration that tells it must not be given up
    ],
)
def test_what_no_option_explains_gets_no_advice(source, drive, fault):
    outcome = run(Case(source, drive, fault), check)
    assert (outcome.verdict, outcome.changes) == ("wrong", {})


SUSPECTS = {
    ("roll and pitch swapped",): "roll and pitch are exchanged",
    ("pitch negated",): "pitch has the opposite sign",
    ("yaw negated",): "yaw has the opposite sign",
    ("yaw half a turn off",): "yaw is half a turn off",
    ("yaw a quarter off",): "yaw is a quarter turn too far right",
    ("position x negated", "velocity x negated"): "the world is mirrored: east and west are exchanged",
    ("velocity in km/h", "roll and pitch swapped"): "the velocity is in km/h, and roll and pitch are exchanged",
}
"""Faults that no option of a built-in source mends, and their names in words."""


@pytest.mark.grid
@pytest.mark.parametrize(
    ("source", "faults"),
    [
        (source, faults)
        for source in ("city-car-driving", "beamng", "vehicle-physics-pro")
        for faults in SUSPECTS
        # Vehicle Physics Pro says its velocity along the car's axes, so that this is another fault.
        if source != "vehicle-physics-pro" or not any("velocity" in fault for fault in faults)
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_what_no_option_mends_is_named_in_words(source, faults):
    """City Car Driving says accelerations and rates along the world's axes, the others along the car's."""
    wire, said = WIRES[source], say(WIRES[source], "tour")
    for fault in faults:
        said = FAULTS[fault].change(wire, said.copy(), states_of("tour"))
    packages = [*wire.first, *(row.tobytes() for row in said.rows)]
    report = check(wire.system, packages, [*said.times[:1].repeat(len(wire.first)), *said.times])
    assert (report.verdict, report.changes, report.either) == ("wrong", {}, [])
    assert {*SUSPECTS[faults].split(", and ")} in [{*words.split(", and ")} for words in report.suspected]
    assert len(report.suspected) <= 3
