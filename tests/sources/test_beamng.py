"""BeamNG: MotionSim and OutGauge in every form, identified by content, and the motion that they give."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from helpers import truth
from hypothesis import given
from hypothesis import strategies as st
from same_bits import assert_same_bits

from motioncue.drive.car import DRIVES, drive
from motioncue.errors import PacketError
from motioncue.output import dk
from motioncue.sources.beamng import packets as beamng
from motioncue.sources.beamng.packets import GAUGES, MOTION, MOTION_2, Options, framed, identify
from motioncue.sources.beamng.twin import encode_states
from motioncue.wire.packet import Derivation

START = 1_000_000_000
PACKETS = Path(__file__).parents[1] / "data" / "packets" / "beamng"
GOOD = {
    "slope52": 88, "braking": 88, "longer": 89, "short": 60, "short_without_magic": 60, "bng2": 176,
    "outgauge": 96, "outgauge_without_id": 92, "outgauge_short": 20, "outgauge_short_without_car": 20,
}  # fmt: skip
BAD = {
    "truncated": "size", "bad_magic": "type", "nonfinite": "not_finite", "outgauge_truncated": "size",
}  # fmt: skip


def sample(name):
    return (PACKETS / f"{name}.bin").read_bytes()


def new_intake(**settings):
    intake = beamng.intake(Options(**settings))
    intake.begin(0)
    return intake


def counted(data):
    """Return the counts of a fresh intake for one datagram: accepted, others, rejected."""
    intake = new_intake()
    assert intake.feed(data, 0) == (b"", True)  # no answer, whatever it is
    return intake.accepted, intake.others, intake.rejected


def kind(data):
    """Return the kind of a datagram by the rule: with a mark what DK reads must be there, else the size decides."""
    size, front, car = len(data), data[:4], data[4:8]
    if front in (b"BNG1", b"BNG2") and size >= 60:
        return "motion"
    if car == b"beam":
        return "gauges" if size >= 20 else None
    if front in (b"BNG1", b"BNG2"):
        return None
    if front == bytes(4) and 60 <= size <= 1472 and size not in (92, 96):
        return "motion"
    return "gauges" if car == bytes(4) and (20 <= size <= 59 or size in (92, 96)) else None


def message(data):
    """Return the name of the packet that `identify` finds, BNG2's as motion's; None if it refuses."""
    try:
        packet = identify(data)
    except PacketError:
        return None
    assert packet.size == len(data)
    packet.decode(data)
    return packet.name.removesuffix("_2")


def agreed(data):
    """Assert that rule, `identify` and intake agree on a datagram; return the kind."""
    expected = kind(data)
    assert message(data) == expected
    accepted, others, rejected = counted(data)
    assert accepted + others + sum(rejected.values()) == 1
    assert others == (expected == "gauges")
    if expected is None:
        assert set(rejected) <= {"size", "type"}
    elif expected == "motion":
        assert accepted or set(rejected) <= {"not_finite", "implausible"}
    return expected


# Layouts.


def test_dk_and_beamng_share_their_packets():
    assert dk.MOTION is MOTION
    assert dk.GAUGES is GAUGES


def test_bng2_is_bng1_with_more_behind_it():
    form = "<4s21f3f2i16ff"
    assert MOTION_2.size == MOTION_2.dtype.itemsize == struct.calcsize(form) == 176
    numbers = [b"BNG2", *(k + 0.25 for k in range(24)), -1, 6, *(0.5 - k for k in range(17))]
    data = struct.pack(form, *numbers)
    fields = MOTION_2.decode(data)
    assert list(fields.values()) == ["BNG2", *numbers[1:]]
    assert MOTION_2.encode(fields) == data
    assert list(fields)[:22] == list(MOTION.fields)
    assert [(name, MOTION_2.fields[name].offset) for name in list(fields)[22:27]] == [
        ("engine_speed", 88), ("idle_speed", 92), ("engine_speed_limit", 96), ("gear", 100), ("gears", 104),
    ]  # fmt: skip
    assert (MOTION_2.fields["wheel_speed_front_right"].offset, MOTION_2.fields["time"].offset) == (168, 172)


@pytest.mark.parametrize("name", GOOD)
def test_a_sample_packet_is_named_and_encodes_to_the_same_bytes(name):
    data = sample(name)
    assert len(data) == GOOD[name]
    packet = identify(data)
    fields = packet.decode(data)
    assert packet.encode(fields) == data
    assert agreed(data) == ("gauges" if "outgauge" in name else "motion")


def test_the_fields_of_sample_packets_are_those_they_were_made_of():
    short = identify(sample("short_without_magic")).decode(sample("short_without_magic"))
    assert [round(short[name], 6) for name in ("sway", "surge", "heave")] == [1.34, 5.62, 9.8]
    assert [round(short[name], 6) for name in ("roll", "pitch")] == [-0.05, 0.03]
    assert "yaw" not in short
    gauges = identify(sample("outgauge")).decode(sample("outgauge"))
    assert (gauges["car"], gauges["speed"], gauges["engine_speed"], gauges["gear"]) == ("beam", 43.5, 3150.0, 4)
    assert (gauges["flags"], gauges["dash_lights"], gauges["show_lights"], gauges["id"]) == (16384, 1791, 2, 7)
    assert list(identify(sample("outgauge_without_id")).fields)[-1] == "display_2"
    assert list(identify(sample("outgauge_short")).fields)[-1] == "engine_speed"


@pytest.mark.parametrize("name", BAD)
def test_a_broken_sample_packet_is_refused_for_its_reason(name):
    assert counted(sample(name)) == (0, 0, {BAD[name]: 1})
    assert (message(sample(name)) is None) == (name != "nonfinite")


# Identification by content.


@pytest.mark.parametrize("name", [name for name in GOOD if "without" not in name or name == "outgauge_without_id"])
@pytest.mark.check
def test_a_packet_with_a_mark_may_end_anywhere_behind_what_dk_reads(name):
    data = sample(name) + bytes(200)
    least = 60 if data[:3] == b"BNG" else 20
    for size in (*range(8, 300), 65_507):
        assert (agreed(data.ljust(size, b"\0")[:size]) is not None) == (size >= least)


@pytest.mark.parametrize("name", GOOD)
def test_every_prefix_that_is_not_a_short_form_is_refused(name):
    data = sample(name)
    forms = range(60 if agreed(data) == "motion" else 20, len(data))
    if "without" in name and name != "outgauge_without_id":
        forms = range(20, 60)  # without a mark any of these sizes is accepted
    refused = [size for size in range(len(data)) if agreed(data[:size]) is None]
    assert set(range(len(data))) - set(refused) <= set(forms)


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("name", ["slope52", "braking", "short", "bng2", "outgauge", "outgauge_short"])
def test_every_corruption_of_the_mark_to_none_is_refused(name):
    data = sample(name)
    start = 4 if "outgauge" in name else 0
    for place in range(start, start + 4):
        for value in set(range(256)) - {data[place]}:
            changed = data[:place] + bytes([value]) + data[place + 1 :]
            assert (agreed(changed) is None) == (changed[:4] not in (b"BNG1", b"BNG2"))


def test_a_refusal_says_what_was_found_and_what_is_allowed():
    with pytest.raises(PacketError, match="found 59 bytes beginning 42 4e 47 31 fb dc a9 c1, allowed are motion "):
        identify(sample("slope52")[:59])
    with pytest.raises(PacketError, match="beamng: found 0 bytes beginning nowhere, allowed are motion "):
        identify(b"")


def test_without_a_mark_the_size_decides():
    for size in (*range(200), 1472, 1473):
        expected = (
            None
            if size > 1472
            else "gauges"
            if 20 <= size <= 59 or size in (92, 96)
            else "motion"
            if size >= 60
            else None
        )
        assert agreed(bytes(size)) == expected


def test_a_packet_that_bears_both_marks_is_motion_if_that_can_be_all_there():
    both = b"BNG1beam" + bytes(200)
    assert [agreed(both[:size]) for size in range(200)] == [None] * 20 + ["gauges"] * 40 + ["motion"] * 140


@pytest.mark.parametrize("size", [60, 88])
def test_dks_sample_in_c_sharp_has_surge_before_sway(size):
    data = bytearray(88)
    struct.pack_into("<3f", data, 28, 3.0, -8.0, 1.0)
    if size == 88:
        data[:4] = b"BNG1"
    row = fed(beamng.intake(Options(acceleration_order="surge_sway")), bytes(data[:size]))
    assert (row["surge"], row["sway"], row["heave"]) == (3.0, -8.0, 1.0)
    row = fed(beamng.intake(Options()), bytes(data[:size]))
    assert (row["surge"], row["sway"], row["heave"]) == (-8.0, 3.0, 1.0)


@pytest.mark.parametrize("front", [b"BNG1", b"BNG2"])
def test_a_longer_packet_gives_the_motion_of_the_whole_and_a_shorter_one_that_of_dk(front):
    data = front + sample("braking")[4:]
    whole, short = fed(new_intake(), data), fed(new_intake(), sample("short"))
    for size in (89, 175, 400):
        assert_same_bits(fed(new_intake(), data.ljust(size, b"\xff")), whole)
    for size in (61, 87):
        assert_same_bits(fed(new_intake(), data[:size]), short)


@given(
    front=st.sampled_from([b"BNG1", b"BNG2", bytes(4), b"\0\0\0\1"]) | st.binary(min_size=4, max_size=4),
    car=st.sampled_from([b"beam", bytes(4), b"beat"]) | st.binary(min_size=4, max_size=4),
    rest=st.binary(max_size=200),
    size=st.none() | st.sampled_from([19, 20, 59, 60, 61, 87, 88, 89, 92, 96, 176]),
)
def test_rule_identify_and_intake_agree_on_any_bytes(front, car, rest, size):
    data = front + car + rest
    agreed(data if size is None else (data + bytes(size))[:size])


@given(st.lists(st.sampled_from(["slope52", "braking", "short", "bng2", "outgauge", "outgauge_short"]), max_size=8))
def test_datagrams_laid_one_after_the_other_are_split_at_their_marks(names):
    datagrams = [sample(name) for name in names]
    assert list(framed(b"".join(datagrams))) == datagrams


@pytest.mark.parametrize("data", [b"", b"x", bytes(60), sample("truncated"), sample("longer"), sample("bad_magic")])
def test_data_without_mark_or_end_is_one_datagram(data):
    assert b"".join(framed(data)) == data
    assert len(list(framed(data))) == (1 if data else 0)


def test_datagrams_of_other_sizes_are_split_at_the_next_mark():
    pieces = [sample("braking") + b"\1", sample("slope52")[:71], sample("outgauge")[:30], sample("longer")]
    assert list(framed(b"".join(pieces))) == pieces


@given(st.binary(max_size=300))
def test_splitting_loses_no_byte(data):
    assert b"".join(framed(data)) == data


# Motion.


def fed(intake, *datagrams, now=0):
    """Return the newest motion after some datagrams."""
    for data in datagrams:
        intake.feed(data, now)
    assert intake.rejected == {}
    return intake.newest()[0]


@pytest.mark.parametrize(("rates", "name"), [("angles", "braking"), ("car", "bng2"), ("derived", "braking")])
def test_a_braking_car_brakes_in_every_form_of_packet(rates, name):
    row = fed(new_intake(rates=rates), sample(name))
    wire = struct.unpack("<21f", sample("braking")[4:])
    assert row["surge"] == pytest.approx(-10.91, abs=0.01)
    assert (row["sway"], row["surge"], row["heave"]) == pytest.approx(wire[6:9], abs=1e-12)
    assert (row["roll"], row["pitch"], row["yaw"]) == pytest.approx(wire[12:15], abs=1e-12)
    assert row["speed"] == pytest.approx(math.dist((0, 0, 0), wire[3:6]), abs=1e-12)
    assert math.isnan(row["engine_speed"])
    # It drives where its nose points: east and north of the velocity against the compass bearing.
    assert math.remainder(math.atan2(wire[3], wire[4]) - row["yaw"], 2 * math.pi) == pytest.approx(0, abs=0.02)


@pytest.mark.grid
@pytest.mark.parametrize("name", sorted(DRIVES))
@pytest.mark.parametrize("rate_hz", [60.0, 500.0])
def test_a_driven_car_arrives_as_the_motion_it_makes(name, rate_hz):
    states = drive(name, rate_hz)
    intake, rows = new_intake(), []
    for motion, gauges, time in zip(*encode_states(states), states["time"].tolist(), strict=True):
        rows.append(fed(intake, gauges.tobytes(), motion.tobytes(), now=START + round(time * 1e9)))
    rows = np.array(rows)
    assert intake.discontinuities == {}
    for channel, expected in truth(states).items():
        error = rows[channel] - expected
        error = (error + np.pi) % (2 * np.pi) - np.pi if channel == "yaw" else error
        # Every number on the wire is rounded to 24 bits; the compared values are sums of a few of them, none above 50.
        np.testing.assert_allclose(error, 0.0, rtol=0, atol=50 * 2.0**-22, err_msg=channel)
    np.testing.assert_allclose(rows["engine_speed"], states["engine_speed"], rtol=2.0**-23)
    np.testing.assert_allclose(rows["frame_time"], states["time"], rtol=0, atol=1e-8)


def test_the_published_up_vector_is_that_of_the_car():
    states = drive("tour", 10.0)
    motion, _ = encode_states(states)
    for row in motion:
        # The third column of Rz(-yaw) Rx(pitch) Ry(roll).
        r, p, y = (float(row[name]) for name in ("roll", "pitch", "yaw"))
        east = math.cos(y) * math.sin(r) - math.sin(y) * math.sin(p) * math.cos(r)
        north = -math.sin(y) * math.sin(r) - math.cos(y) * math.sin(p) * math.cos(r)
        assert (row["up_x"], row["up_y"], row["up_z"]) == pytest.approx(
            (east, north, math.cos(p) * math.cos(r)), abs=1e-6
        )


def test_rates_about_the_cars_axes_are_taken_as_they_are():
    values = {"roll": 0.5, "pitch": -0.25, "yaw": 2.0, "roll_rate": 0.5, "pitch_rate": 0.25, "yaw_rate": -0.75}
    row = fed(new_intake(rates="car"), MOTION.encode(values))
    assert (row["roll_rate"], row["pitch_rate"], row["yaw_rate"]) == (0.5, 0.25, -0.75)
    row = fed(new_intake(rates="angles"), MOTION.encode(values))
    # Of the angles: p = roll' - yaw' sin(pitch), and so on.
    assert row["roll_rate"] == pytest.approx(0.5 + 0.75 * math.sin(-0.25), abs=1e-12)
    pitch_rate = 0.25 * math.cos(0.5) - 0.75 * math.sin(0.5) * math.cos(0.25)
    assert row["pitch_rate"] == pytest.approx(pitch_rate, abs=1e-12)


def turning(values, size, *, marked=True, **settings):
    """Return the motion after two seconds at 100 Hz in which the car rolls by 0.1 rad/s, and what its packets say."""
    intake = beamng.intake(Options(**settings), derivation=Derivation(delay_s=0.05))
    for n in range(201):
        data = MOTION.encode({**values, "roll": 0.001 * n})[:size]
        row = fed(intake, data if marked else bytes(4) + data[4:], now=n * 10_000_000)
    return row


@pytest.mark.parametrize(("size", "marked"), [(60, True), (60, False), (76, False), (88, False)])
def test_missing_rates_are_derived_from_the_attitude(size, marked):
    row = turning({"roll_rate": 9.0, "velocity_x": 30.0}, size, marked=marked)
    assert row["roll_rate"] == pytest.approx(0.1, rel=1e-6)
    assert (row["pitch_rate"], row["yaw_rate"]) == pytest.approx((0, 0), abs=1e-9)
    assert math.isnan(row["speed"])  # a wrong 0 would switch DK's motion off


def test_rates_that_are_not_to_be_relied_on_are_derived():
    assert turning({"roll_rate": 9.0}, 88, rates="derived")["roll_rate"] == pytest.approx(0.1, rel=1e-6)
    assert turning({"roll_rate": 9.0}, 88)["roll_rate"] == 9.0


@pytest.mark.parametrize("size", [20, 40, 92, 96])
@pytest.mark.parametrize("marked", [True, False])
def test_speed_and_engine_speed_of_a_dk_emitter_come_from_the_gauges(size, marked):
    gauges = GAUGES.encode({"speed": 12.5, "engine_speed": 2400.0})
    gauges = gauges if marked and size != 40 else gauges[:4] + bytes(4) + gauges[8:]
    for motion in (sample("short"), sample("short_without_magic")):
        row = fed(new_intake(), gauges[:size], motion)
        assert (row["speed"], row["engine_speed"]) == (12.5, 2400.0)


def test_a_wheel_speed_does_not_replace_the_speed_of_the_car():
    row = fed(new_intake(), GAUGES.encode({"speed": 99.0, "engine_speed": 2400.0}), sample("braking"))
    assert row["speed"] == pytest.approx(43.5, abs=0.1)
    assert row["engine_speed"] == 2400.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e9])
def test_gauges_that_cannot_be_are_absent_and_refuse_nothing(value):
    gauges = GAUGES.encode({"speed": value, "engine_speed": value})
    row = fed(new_intake(), GAUGES.encode({"speed": 5.0, "engine_speed": 900.0}), gauges, sample("short"))
    assert math.isnan(row["speed"])
    assert math.isnan(row["engine_speed"])


@pytest.mark.parametrize("field", [name for name in MOTION.fields if name not in ("magic", "up_x", "up_y", "up_z")])
@pytest.mark.parametrize(
    ("value", "reason"), [(math.nan, "not_finite"), (-math.inf, "not_finite"), (2e7, "implausible")]
)
def test_a_used_field_that_cannot_be_refuses_the_packet(field, value, reason):
    assert counted(MOTION.encode({field: value})) == (0, 0, {reason: 1})


def test_unused_fields_may_hold_anything():
    values = dict.fromkeys(list(MOTION_2.fields)[27:], math.nan) | {"up_x": math.inf, "engine_speed": math.nan}
    assert counted(MOTION_2.encode(values)) == (1, 0, {})


def test_an_acceleration_from_velocity_needs_one():
    intake = beamng.intake(Options(), derivation=Derivation("from_velocity", 0.04))
    intake.feed(sample("short"), 0)
    assert intake.rejected == {"not_finite": 1}
    for n in range(101):
        row = MOTION.encode({"velocity_y": 10.0 + 0.02 * n, "surge": 9.0, "yaw": 0.0})
        intake.feed(row, n * 10_000_000)
    assert intake.newest()[0]["surge"] == pytest.approx(2.0, rel=1e-5)


def test_the_head_feels_its_own_acceleration():
    intake = beamng.intake(beamng.Options(), (1.0, 0.0, 0.0))
    row = fed(intake, MOTION.encode({"yaw_rate": 2.0, "yaw_acceleration": 0.5}))
    # A meter ahead of the reference point: omega^2 r back, alpha r to the right.
    assert (row["surge"], row["sway"], row["heave"]) == pytest.approx((-4.0, 0.5, 0.0), abs=1e-9)


@pytest.mark.parametrize(
    ("accelerations", "head", "felt"),
    [
        ((0.5, 0.0, 0.0), (0.0, 0.0, 1.2), (0.0, 0.6, 0.0)),  # rolling to the right moves the head to the right
        ((0.0, 0.5, 0.0), (0.0, 0.0, 1.2), (-0.6, 0.0, 0.0)),  # pitching up moves it back
        ((0.0, 0.5, 0.0), (2.0, 0.0, 0.0), (0.0, 0.0, 1.0)),  # and up what is in front
        ((0.0, 0.0, 0.5), (2.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        ((0.0, 0.0, 0.5), (0.0, -0.4, 0.0), (0.2, 0.0, 0.0)),  # turning right moves the left side forward
    ],
)
def test_angular_acceleration_is_felt_away_from_the_reference_point(accelerations, head, felt):
    values = (*(0.0,) * 9, 0.0, 0.0, 1.0, *(0.0,) * 6, *accelerations)
    intake = beamng.intake(beamng.Options(), head)
    intake.feed(struct.pack("<4s21f", b"BNG1", *values), 1)
    (row,) = intake.newest()
    assert [row["surge"], row["sway"], row["heave"]] == pytest.approx(felt, abs=1e-6)
