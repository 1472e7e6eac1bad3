"""`motioncue check` on described simulators: what is turned is named, and the advice mends it instead of hiding it."""

import msgspec
import numpy as np
import pytest
from campaign.cases import Case, run
from campaign.described import BOREAL
from campaign.drives import DRIVES, states_of
from campaign.truth import read_with
from campaign.wires import WIRES, options_of, say
from helpers import truth

from motioncue.check.check import check
from motioncue.engine.assembly import load_profile
from motioncue.errors import PacketError
from motioncue.sources import DescribedSource, system_of
from motioncue.sources.described.twin import channel_values, encode

TOLERANCE = {
    **dict.fromkeys(("surge", "sway", "heave"), 1e-5),
    **dict.fromkeys(("roll", "pitch", "yaw"), 1e-6),
    **dict.fromkeys(("roll_rate", "pitch_rate", "yaw_rate"), 1e-6),
    "speed": 1e-4,
}


@pytest.mark.grid
@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("name", ["alpine", "coastal", "boreal"])
@pytest.mark.check
def test_a_packet_that_is_described_from_the_documentation_alone_gives_the_true_motion(name, drive):
    wire = WIRES[name]
    said = say(wire, drive)
    reading = read_with(wire, said, options_of(wire, drive))
    assert len(reading.motion) == len(said.rows)
    expected = truth(states_of(drive))
    derived = wire.system.RATES_DERIVED
    for channel, most in TOLERANCE.items():
        if derived and channel.endswith("_rate"):
            continue  # late by the delay that is stated
        off = reading.motion[channel] - expected[channel]
        off = np.angle(np.exp(1j * off)) if channel in ("roll", "yaw") else off
        assert np.abs(off).max() < most, channel


def turned(table, *channels):
    """Return the source of a description with fields of the opposite sign."""
    fields = (
        msgspec.structs.replace(field, scale=-field.scale) if field.channel in channels else field
        for field in table.fields
    )
    return DescribedSource(msgspec.structs.replace(table, fields=tuple(fields)))


def packets(table, drive):
    states = states_of(drive)
    values = channel_values(table, states) | {"time": states["time"]}
    return [row.tobytes() for row in encode(table, table, values, len(states))]


RALLY = system_of(load_profile("dirt-rally-dk").source).table
OPPOSITE = "opposite"


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("drive", ["tour", "turns", "eight", "town", "rally"])
@pytest.mark.parametrize(
    ("table", "channels"),
    [
        (RALLY, ("sway",)),
        (RALLY, ("surge", "sway")),
        (BOREAL.table, ("acceleration_y",)),
        (BOREAL.table, ("acceleration_x", "acceleration_y")),
        (BOREAL.table, ("acceleration_x", "acceleration_y", "acceleration_z")),
        (BOREAL.table, ("angular_velocity_z",)),
        (BOREAL.table, ("velocity_y",)),
    ],
)
def test_turned_signs_are_named_and_not_hidden_behind_what_is_derived(table, channels, drive):
    source = turned(table, *channels)
    report = check(source, packets(table, drive))
    assert report.verdict == "wrong"
    expected = {f"source.options.{channel}": OPPOSITE for channel in channels}
    assert report.changes == expected
    options = {key.removeprefix("source.options."): value for key, value in report.changes.items()}
    assert not any(f.verdict == "wrong" for f in check(source, packets(table, drive), options=options).findings)


@pytest.mark.search
@pytest.mark.parametrize(
    ("source", "drive", "fault", "wrong"),
    [
        ("alpine", "backing", "time three times too fast", {"frame time"}),
        ("alpine", "eight", "acceleration x negated", {"continuity", "sway and turning"}),
        (
            "alpine",
            "tour",
            "velocity z negated",
            {"continuity", "attitude and course", "surge and speed", "sway and turning", "heave and climb"},
        ),
        ("coastal", "town", "gravity in the acceleration", {"continuity", "gravity", "heave and climb"}),
    ],
)
def test_faults_of_invented_simulators_are_named(source, drive, fault, wrong):
    outcome = run(Case(source, drive, fault), check)
    assert {name for name, (verdict, _) in outcome.findings.items() if verdict == "wrong"} == wrong
    assert not outcome.misled


@pytest.mark.search
@pytest.mark.parametrize("fault", ["velocity in mph", "velocity always zero", "acceleration always zero"])
def test_nothing_is_derived_for_sure_from_a_velocity_that_no_position_confirms(fault):
    outcome = run(Case("alpine", "eight", fault), check)
    assert outcome.verdict == "wrong"
    assert not outcome.changes


@pytest.mark.search
@pytest.mark.parametrize("fault", ["roll and pitch swapped", "roll and pitch negated"])
def test_rates_are_not_derived_for_sure_from_an_attitude_that_no_course_confirms(fault):
    outcome = run(Case("alpine", "eight", fault), check)
    assert outcome.verdict == "wrong"
    assert not outcome.changes
    assert not outcome.misled


def in_unit(table, vector, factor):
    """Return the source of a description that takes a vector's numbers for so many times what they are."""
    fields = (
        msgspec.structs.replace(field, scale=field.scale * factor) if field.channel.startswith(vector) else field
        for field in table.fields
        if not field.channel.startswith("position")
    )
    return DescribedSource(msgspec.structs.replace(table, fields=tuple(fields)))


@pytest.mark.search
@pytest.mark.parametrize(
    ("source", "vector", "factor", "named"),
    [
        (BOREAL.table, "velocity_", 3.6, "(velocity in km/h?)"),
        (BOREAL.table, "velocity_", 1 / 0.44704, "(velocity in mph?)"),
        (BOREAL.table, "velocity_", 3600 / 1852, "(velocity in knots?)"),
        (RALLY, ("surge", "sway", "heave"), 1 / 9.80665, "(in g?)"),
    ],
)
def test_another_unit_is_named_and_not_hidden_behind_a_derived_acceleration(source, vector, factor, named):
    table = in_unit(source, "none", 1.0).table
    sent = packets(table, "tour")
    assert not any(finding.times for finding in check(DescribedSource(table), sent).findings)
    report = check(in_unit(table, vector, factor), sent)
    surge = next(finding for finding in report.findings if finding.name == "surge and speed")
    assert surge.verdict == "wrong"
    assert surge.evidence.endswith(named)
    advised = [report.changes] if report.changes else report.either
    assert all(change.keys() == {"source.packet"} and "unit = " in change["source.packet"] for change in advised)
    assert advised or "surge and speed" in report.left  # what is in no unit, by a scale, is named by its evidence


def test_packages_of_another_size_are_refused_with_the_sizes_that_came_and_that_are_described():
    source = DescribedSource(RALLY)
    sent = packets(RALLY, "tour")[:100]
    size = len(sent[0])
    with pytest.raises(PacketError, match=rf"found 0 frames \(packages of {size - 4} bytes, and described are {size}"):
        check(source, [package[:-4] for package in sent], [0.01 * n for n in range(100)])
