"""What `check` says of the suspension: of a real stage, of banking and hills, of wrong fields, and where it is open."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from campaign.drives import RATE_HZ, states_of_poses
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

import motioncue.check.check
from motioncue.check.advice import Advice
from motioncue.check.check import check
from motioncue.cli import cli
from motioncue.sources import DescribedSource, by_profile
from motioncue.sources.described.twin import SPRING, Car, channel_values, encode

STAGE = Path(__file__).parents[1] / "data" / "packets" / "described" / "dirt_rally_2.bin"
BRAKING, TURNS = "suspension in braking", "suspension in turns"


def source_of(change=lambda field: field):
    """Return the source of the real stage, each of its fields changed."""
    return with_fields(by_profile("dirt-rally-dk").table, change)


def with_fields(table, change):
    return DescribedSource(msgspec.structs.replace(table, fields=tuple(map(change, table.fields))), "custom")


def turned(*starts):
    """Return a change of fields: the sign of channels that begin so is turned."""
    return lambda f: msgspec.structs.replace(f, scale=-f.scale) if (f.channel or "").startswith(starts) else f


def exchanged(one, other):
    """Return a change of fields: two words in the names of the wheels are exchanged."""

    def change(field):
        if not (field.channel or "").startswith("suspension_"):
            return field
        name = field.channel.replace(one, "~").replace(other, one).replace("~", other)
        return msgspec.structs.replace(field, channel=name)

    return change


def going(seconds, speed, turning, slope, bank):
    """Return the states of a car whose body is parallel to its road, by functions of time in s.

    They are in m/s, 1/m (curvature, to the right), and rad (up; down to the right).
    """
    fine = 25
    time = np.arange(0.0, seconds, 1.0 / (RATE_HZ * fine))
    along, curvature, up, roll = (each(time) + 0.0 * time for each in (speed, turning, slope, bank))
    course = np.cumsum(along * np.cos(up) * curvature) / (RATE_HZ * fine)
    ahead = np.stack([np.cos(up) * np.cos(course), np.cos(up) * np.sin(course), -np.sin(up)], axis=-1)
    place = np.cumsum(along[:, None] * ahead, axis=0) / (RATE_HZ * fine)
    return states_of_poses(time, place, Rotation.from_euler("ZYX", np.stack([course, up, roll], axis=-1)), fine)


RADIUS_M, BANK = 250.0, np.radians(31.0)  # of Talladega's kind: the neutral speed is (g r tan 31 deg)^0.5 = 38 m/s


def oval(speed_m_s):
    """Return a minute and a half on an oval to the left, with a change of speed on each straight."""

    def share(time):  # of the banking, in and out of it within 2 s
        phase = time % 30.0
        s = np.clip((phase - 10.0) / 2.0, 0.0, 1.0) * np.clip((30.0 - phase) / 2.0, 0.0, 1.0)
        return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)

    return going(
        90.0,
        lambda t: speed_m_s + 4.0 * np.sin(0.7 * t) * (1.0 - share(t)),
        lambda t: -share(t) / RADIUS_M,
        lambda t: 0.0 * t,
        lambda t: -BANK * share(t),
    )


def hills():
    """Return a car that coasts: slower uphill than the hill alone would make it, so surge and load are opposed."""
    return going(
        80.0,
        lambda t: 12.0 + 3.0 * np.sin(0.5 * t),
        lambda t: 0.0 * t,
        lambda t: -0.3 * np.cos(0.5 * t),
        lambda t: 0.0 * t,
    )


def told(table, states):
    """Return the packets of a source that says these states."""
    values = channel_values(table, states) | {"time": states["time"]}
    return [packet.tobytes() for packet in encode(table, table, values, len(states))]


def honestly(profile, states, change=lambda field: field):
    """Return what check says of packets that were made by the profile, read with its fields changed."""
    table = by_profile(profile).table
    return check(with_fields(table, change), told(table, states), states["time"].tolist())


def verdicts(report):
    return {found.name: found.verdict for found in report.wheels}


def judged(source, change=lambda packet: packet):
    return check(source, [bytes(change(bytearray(packet))) for packet in source.framed(STAGE.read_bytes())])


def test_on_a_real_stage_the_sense_holds():
    report = judged(source_of())
    assert verdicts(report) == {BRAKING: "ok", TURNS: "ok"}
    assert report.verdict == "unknown"  # as it is without them


def test_a_sign_that_is_turned_is_wrong_in_both_and_says_what_to_do():
    report = judged(source_of(turned("suspension_")))
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
    report = judged(source_of(exchanged(one, other)))
    assert verdicts(report) == expected
    (found,) = [found for found in report.wheels if found.verdict == "wrong"]
    assert says in found.evidence


def as_the_first(packet):
    packet[72:76] = packet[68:72]
    return packet


def without_the_first(packet):
    packet[68:72] = bytes(4)
    return packet


@pytest.mark.parametrize(
    ("source", "change", "says"),
    [
        (source_of(), without_the_first, "rear left never moves"),
        (source_of(), as_the_first, "do not agree"),
        (source_of(turned("suspension_front_left")), bytes, "in front do not agree"),
    ],
    ids=["dead", "of its neighbor", "turned"],
)
def test_one_wheel_that_is_wrong_is_not_hidden_by_the_three_others(source, change, says):
    """Their mean still follows the load."""
    report = judged(source, change)
    assert verdicts(report) == {BRAKING: "unknown", TURNS: "unknown"}
    assert any(says in found.evidence for found in report.wheels)


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


@pytest.mark.check
def test_an_acceleration_that_is_wrong_itself_accuses_no_wheel():
    report = judged(source_of(turned("surge", "sway")))
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


@pytest.mark.parametrize(("speed_m_s", "side"), [(25.0, "left"), (55.0, "right")])
def test_springs_of_the_virtual_car_feel_gravity_on_banking(speed_m_s, side):
    """Below the neutral speed the inner wheels carry more: (v^2 / r) cos(bank) - g sin(bank) to the inside."""
    states = oval(speed_m_s)
    values = channel_values(by_profile("raceroom-dk").table, states)
    middle = states["time"] % 30.0 // 1.0 == 20.0  # in the turn, which is to the left
    more = 0.5 * (values["suspension_front_right"] - values["suspension_front_left"])[middle]
    inwards = speed_m_s**2 / RADIUS_M * np.cos(BANK) - 9.80665 * np.sin(BANK)
    np.testing.assert_allclose(more, SPRING * inwards, atol=1e-5)
    assert (more[0] > 0.0) == (side == "right")
    assert values["suspension_front_left"][0] == pytest.approx(-SPRING * states["acceleration"][0, 0], abs=1e-6)


@pytest.mark.parametrize("profile", ["raceroom-dk", "dirt-rally-dk"])
@pytest.mark.parametrize("speed_m_s", [25.0, pytest.param(55.0, marks=pytest.mark.check)], ids=["slow", "fast"])
def test_an_honest_car_on_banking_is_right_at_any_speed(profile, speed_m_s):
    report = honestly(profile, oval(speed_m_s))
    assert verdicts(report) == {BRAKING: "ok", TURNS: "ok"}
    assert report.verdict == "unknown"


@pytest.mark.parametrize("speed_m_s", [pytest.param(25.0, marks=pytest.mark.check), 55.0])
def test_wheels_exchanged_on_banking_are_found_at_any_speed(speed_m_s):
    report = honestly("raceroom-dk", oval(speed_m_s), exchanged("left", "right"))
    assert verdicts(report) == {BRAKING: "ok", TURNS: "wrong"}
    assert "left and right are exchanged" in report.wheels[1].evidence
    assert report.verdict == "wrong"


@pytest.mark.check
def test_on_hills_the_load_is_not_what_the_speed_says():
    states = hills()
    assert verdicts(honestly("raceroom-dk", states))[BRAKING] == "ok"
    report = honestly("raceroom-dk", states, exchanged("front", "rear"))
    assert verdicts(report)[BRAKING] == "wrong"
    assert "turn the sign of its fields, unless front and rear are exchanged" in report.wheels[0].evidence  # no turns


@pytest.mark.parametrize("wrong", [("roll",), ("roll", "angular_velocity_z")], ids=["by itself", "with its rate"])
@pytest.mark.parametrize("advised", [False, pytest.param(True, marks=pytest.mark.search)], ids=["read", "advised"])
@pytest.mark.check
def test_a_turned_attitude_accuses_no_wheel(wrong, advised, monkeypatch):
    """Gravity is taken the other way then, so that honest wheels contradict it; what mends it is asked at night."""
    if not advised:
        monkeypatch.setattr(motioncue.check.check, "advise", lambda *_, **__: Advice([], {}, [], [], []))
    report = honestly("raceroom-dk", oval(25.0), turned(*wrong))
    assert report.verdict == "wrong"
    assert verdicts(report) == {BRAKING: "unknown", TURNS: "unknown"}


def test_the_command_shows_it():
    done = CliRunner().invoke(cli, ["check", "dirt-rally-dk", str(STAGE)])
    assert done.exit_code == 0, done.output
    assert "ok     suspension in braking: correlation +0.95" in done.output
    assert "ok     suspension in turns: correlation +1.00" in done.output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            turned("suspension_"),
            "mend suspension in braking and suspension in turns: turn the sign of suspension_front",
        ),
        (exchanged("left", "right"), "to mend suspension in turns: exchange left and right in the names"),
    ],
    ids=["sign", "order"],
)
def test_the_command_says_what_to_do_about_wheels(tmp_path, change, says):
    fields = source_of(change).table.fields
    listed = ", ".join(
        f'{{ offset = {f.offset}, type = "{f.type}", channel = "{f.channel}", scale = {f.scale!r}'
        + (f', unit = "{f.unit}" }}' if f.unit else " }")
        for f in fields
        if f.channel
    )
    done = CliRunner().invoke(
        cli, ["check", "dirt-rally-dk", str(STAGE), "--set", f"source.packet.fields=[{listed}]"], terminal_width=1000
    )
    assert done.exit_code == 1, done.output
    assert says in " ".join(done.output.split())
