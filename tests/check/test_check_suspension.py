"""What `check` says of the suspension: of a real stage, of stages told wrongly, and where it cannot know."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from motioncue.check.check import check
from motioncue.cli import cli
from motioncue.sources import DescribedSource, by_profile
from motioncue.sources.described.twin import Car

STAGE = Path(__file__).parents[1] / "data" / "packets" / "described" / "dirt_rally_2.bin"
BRAKING, TURNS = "suspension in braking", "suspension in turns"


def source_of(change=lambda field: field):
    """Return the source of the real stage, each of its fields changed."""
    table = by_profile("dirt-rally-dk").table
    return DescribedSource(msgspec.structs.replace(table, fields=tuple(map(change, table.fields))), "custom")


def verdicts(report):
    return {found.name: found.verdict for found in report.wheels}


def judged(source, change=lambda packet: packet):
    return check(source, [bytes(change(bytearray(packet))) for packet in source.framed(STAGE.read_bytes())])


def test_on_a_real_stage_the_sense_holds():
    report = judged(source_of())
    assert verdicts(report) == {BRAKING: "ok", TURNS: "ok"}
    assert report.verdict == "unknown"  # as it is without them


def test_a_sign_that_is_turned_is_wrong_in_both_and_says_what_to_do():
    def opposite(field):
        turned = (field.channel or "").startswith("suspension_")
        return msgspec.structs.replace(field, scale=-field.scale) if turned else field

    report = judged(source_of(opposite))
    assert verdicts(report) == {BRAKING: "wrong", TURNS: "wrong"}
    assert all("turn the sign of its fields" in found.evidence for found in report.wheels)
    assert report.verdict == "wrong"
    assert report.changes == {}


@pytest.mark.parametrize(
    ("one", "other", "expected", "says"),
    [
        ("front", "rear", {BRAKING: "wrong", TURNS: "ok"}, "front and rear are exchanged"),
        ("left", "right", {BRAKING: "ok", TURNS: "wrong"}, "left and right are exchanged"),
    ],
)
def test_an_order_of_wheels_that_is_another_is_told_from_a_sign(one, other, expected, says):
    def exchanged(field):
        if not (field.channel or "").startswith("suspension_"):
            return field
        name = field.channel.replace(one, "~").replace(other, one).replace("~", other)
        return msgspec.structs.replace(field, channel=name)

    report = judged(source_of(exchanged))
    assert verdicts(report) == expected
    (found,) = [found for found in report.wheels if found.verdict == "wrong"]
    assert says in found.evidence


def test_nobody_is_accused_where_the_travel_is_small_or_something_else():
    def still(packet):
        packet[68:84] = np.full(4, 20.0, "<f4").tobytes()
        return packet

    rng = np.random.default_rng(3)

    def noise(packet):
        packet[68:84] = rng.normal(0.0, 30.0, 4).astype("<f4").tobytes()
        return packet

    for change in (still, noise):
        report = judged(source_of(), change)
        assert verdicts(report) == {BRAKING: "unknown", TURNS: "unknown"}
        assert report.verdict == "unknown"


def test_an_acceleration_that_is_wrong_itself_accuses_no_wheel():
    def backwards(field):
        return msgspec.structs.replace(field, scale=-field.scale) if field.channel in ("surge", "sway") else field

    report = judged(source_of(backwards))
    assert verdicts(report) == {BRAKING: "unknown", TURNS: "unknown"}
    assert set(report.changes) == {"source.options.surge", "source.options.sway"}


def test_numbers_that_are_none_now_and_then_hide_nothing_and_none_at_all_say_nothing():
    count = iter(range(10**6))

    def gaps(packet):
        if next(count) % 7 == 0:
            packet[68:72] = np.float32(np.nan).tobytes()
        return packet

    assert verdicts(judged(source_of(), gaps)) == {BRAKING: "ok", TURNS: "ok"}
    silent = by_profile("live-for-speed-dk")
    assert check(silent, [paced.package for paced in Car(silent).driven("turns", duration_s=5.0)]).wheels == []


def test_the_command_shows_it():
    done = CliRunner().invoke(cli, ["check", "dirt-rally-dk", str(STAGE)])
    assert done.exit_code == 0, done.output
    assert "ok     suspension in braking: correlation +0.93" in done.output
    assert "ok     suspension in turns: correlation +0.99" in done.output
