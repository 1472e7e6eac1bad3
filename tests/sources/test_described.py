"""A source that a profile describes gives the same motion as a built-in one, in every command."""

import csv
import itertools
import json
import math
import re
import struct
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers import truth
from hypothesis import given
from hypothesis import strategies as st
from same_bits import assert_same_bits

from motioncue.check.check import check
from motioncue.core.channels import GRAVITY, MOTION_DTYPE
from motioncue.drive.car import DRIVES, drive
from motioncue.engine.assembly import load_profile
from motioncue.profile.profile import builtin_profiles, parse_profile
from motioncue.sources import DescribedSource, system_of
from motioncue.sources.beamng import packets as beamng
from motioncue.sources.described.channels import CHANNELS, UNITS
from motioncue.sources.described.twin import channel_values, encode
from motioncue.virtual.installation import drive_packages, ride
from motioncue.wire.description import SourcePacket
from motioncue.wire.packet import Derivation

START = 1_000_000_000
DATA = Path(__file__).parents[1] / "data" / "packets" / "described"
SHIPPED = [name for name in builtin_profiles() if load_profile(name).source.packet is not None]
ANGLES = ("roll", "pitch", "yaw")
FELT = ("surge", "sway", "heave")
RATES = ("roll_rate", "pitch_rate", "yaw_rate")
REST = 'cueing = { algorithm = "direct" }\noutput = { system = "dk", motion = "udp://127.0.0.1:4445" }\n'
HEAD = 'source.system = "custom"\nsource.endpoint = "udp://127.0.0.1:20777"\n[source.packet]\n'

# The fields are in the built-in table's order, so that of several broken numbers the same one counts.
BEAMNG = """
size = 88
world = ["east", "north", "up"]
rates = "angles"
constants = [{ offset = 0, bytes = "42 4e 47 31" }]
fields = [
    { offset = 32, type = "f4", channel = "surge" },
    { offset = 28, type = "f4", channel = "sway" },
    { offset = 36, type = "f4", channel = "heave" },
    { offset = 52, type = "f4", channel = "roll" },
    { offset = 56, type = "f4", channel = "pitch" },
    { offset = 60, type = "f4", channel = "yaw" },
    { offset = 8, type = "f4", channel = "position_y" },
    { offset = 4, type = "f4", channel = "position_x" },
    { offset = 12, type = "f4", channel = "position_z" },
    { offset = 20, type = "f4", channel = "velocity_y" },
    { offset = 16, type = "f4", channel = "velocity_x" },
    { offset = 24, type = "f4", channel = "velocity_z" },
    { offset = 64, type = "f4", channel = "roll_rate" },
    { offset = 68, type = "f4", channel = "pitch_rate" },
    { offset = 72, type = "f4", channel = "yaw_rate" },
    { offset = 76, type = "f4", channel = "roll_acceleration" },
    { offset = 80, type = "f4", channel = "pitch_acceleration" },
    { offset = 84, type = "f4", channel = "yaw_acceleration" },
]
forms = [{ name = "gauges", size = 96, role = "part", constants = [{ offset = 4, bytes = "62 65 61 6d" }], fields = [
    { offset = 12, type = "f4", channel = "speed" },
    { offset = 16, type = "f4", channel = "engine_speed" },
] }]
"""


def described(packet):
    """Return the source of a text of ``[source.packet]``."""
    return DescribedSource(parse_profile(REST + HEAD + packet).source.packet)


SAME = described(BEAMNG)


def both():
    """Return an intake of the built-in source and one of the description."""
    intakes = beamng.intake(beamng.Options()), SAME.intake()
    for intake in intakes:
        intake.begin(0)
    return intakes


# ---- the same bits as a built-in source ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DRIVES, "trouble"])
@pytest.mark.check
def test_beamngs_motion_described_gives_the_built_in_sources_bits(name):
    intakes = both()
    time = START
    for package in drive_packages("beamng", name):
        time += round(package.duration * 1e9)
        for intake in intakes:
            intake.feed(package.package, time)
        assert_same_bits(intakes[0].frame(), intakes[1].frame())
        assert_same_bits(intakes[0].world(), intakes[1].world())
    built_in, own = intakes
    assert built_in.accepted == own.accepted > 100
    assert built_in.discontinuities == own.discontinuities
    assert built_in.events() == own.events()


NUMBERS = st.one_of(
    st.floats(-20.0, 20.0, width=32),
    st.floats(width=32),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, 1e7, 500.0, 2000.0, -2000.5, 10.0, 10.5, 100.0, 101.0, 2e4, 3e4]),
)


@pytest.mark.search
@given(st.lists(st.lists(NUMBERS, min_size=21, max_size=21), max_size=5))
def test_any_numbers_give_the_built_in_sources_bits_and_counts(packets):
    intakes = both()
    for index, numbers in enumerate(packets):
        data = b"BNG1" + np.array(numbers, "<f4").tobytes()
        for intake in intakes:
            intake.feed(data, START + index * 16_000_000)
        assert_same_bits(intakes[0].frame(), intakes[1].frame())
    assert intakes[0].rejected == intakes[1].rejected
    assert intakes[0].accepted == intakes[1].accepted


# ---- any axes: what the virtual car says is what the intake understands ----------------------------------------------


def packet(channels, **keys):
    """Return a text of ``[source.packet]`` with an f8 for each channel, 8 bytes apart."""
    fields = [f'{{ offset = {8 * place}, type = "f8", channel = "{name}" }}' for place, name in enumerate(channels)]
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join([f"size = {8 * len(channels)}", *lines, f"fields = [{', '.join(fields)}]"])


def xyz(*vectors):
    return [f"{vector}_{axis}" for vector in vectors for axis in "xyz"]


QUATERNION = [f"quaternion_{axis}" for axis in "wxyz"]
OWN_TIME = ["time", "engine_speed"]
UNITY = {"world": ["east", "up", "north"], "car": ["right", "up", "forward"]}  # left-handed
ROS = {"world": ["east", "north", "up"], "car": ["forward", "left", "up"]}
CASES = {
    "angles, surge": ([*ANGLES, *FELT, *RATES, *xyz("velocity")], {"world": ["south", "west", "up"]}),
    "heading from east": ([*ANGLES, *FELT, *RATES, *xyz("velocity")], {"world": ROS["world"], "heading_from": "east"}),
    "quaternion, left-handed": (
        [*QUATERNION, *xyz("velocity", "acceleration", "angular_velocity")],
        {**UNITY, "velocity": "car"},
    ),
    "quaternion, world and car differ": (
        [*QUATERNION, *xyz("velocity", "acceleration", "angular_velocity")],
        {**ROS, "acceleration": "world", "rates": "world"},
    ),
    "quaternion, named axes, gravity": (
        [*QUATERNION, *FELT, *RATES, *xyz("velocity")],
        {**ROS, "gravity": "included"},
    ),
    "quaternion, everything in left-handed world axes": (
        [*QUATERNION, *xyz("velocity", "acceleration", "angular_velocity")],
        {**UNITY, "acceleration": "world", "rates": "world", "gravity": "included"},
    ),
    "forward and right": (
        [*xyz("forward", "right", "velocity", "acceleration", "angular_velocity")],
        {"world": ["east", "up", "south"], "car": ["left", "up", "forward"]},
    ),
    "forward and up": ([*xyz("forward", "up", "velocity"), *FELT, *RATES], UNITY),
    **{
        f"angles in the order {', '.join(order)}": ([*ANGLES, *FELT, *RATES, *xyz("velocity")], {**ROS, "order": order})
        for order in itertools.permutations(ANGLES)
    },
    "angles and their rates": ([*ANGLES, *FELT, *RATES, "speed"], {"rates": "angles"}),
}


@pytest.mark.parametrize(("channels", "keys"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", ["tour", "turns"])
@pytest.mark.check
def test_what_the_car_says_in_any_axes_is_understood(channels, keys, name):
    source = described(packet([*OWN_TIME, *channels], **keys))
    states = drive(name, 100.0)
    rows = encode(
        source.table, source.table, channel_values(source.table, states) | {"time": states["time"]}, len(states)
    )
    intake = source.intake()
    intake.begin(0)
    motion = np.zeros(len(states), MOTION_DTYPE)
    for place, row in enumerate(rows):
        intake.feed(row.tobytes(), START + place * 10_000_000)
        motion[place] = intake.frame()[0]
    assert intake.accepted == len(states)
    expected = truth(states)
    for channel in (*FELT, *RATES, "roll", "pitch", "speed"):
        assert np.abs(motion[channel] - expected[channel]).max() < 1e-9, channel
    assert (motion["engine_speed"] == states["engine_speed"]).all()
    turned = np.remainder(motion["yaw"] - expected["yaw"] + np.pi, 2 * np.pi) - np.pi
    assert np.abs(turned).max() < 1e-9


def test_units_scale_and_bias():
    text = """
        size = 16
        fields = [
            { offset = 0, type = "i2", channel = "surge", unit = "g", scale = -0.001, bias = 0.5 },
            { offset = 2, type = "u2", channel = "sway", scale = 0.01, bias = -327.68 },
            { offset = 4, type = "i1", channel = "heave", unit = "ft/s^2" },
            { offset = 5, type = "u1", channel = "speed", unit = "km/h" },
            { offset = 6, type = "i2", channel = "roll", unit = "deg", scale = 0.01 },
            { offset = 8, type = "i2", channel = "pitch", unit = "deg", scale = -0.01 },
            { offset = 10, type = "i2", channel = "yaw", unit = "deg", scale = 0.01, bias = 90 },
            { offset = 12, type = "u4", channel = "engine_speed", unit = "rad/s", scale = 0.1 },
        ]
        byte_order = "big"
    """
    source = described(text)
    numbers = [
        ("i2", 250),
        ("u2", 33768),
        ("i1", -10),
        ("u1", 90),
        ("i2", 300),
        ("i2", 450),
        ("i2", -4500),
        ("u4", 3000),
    ]
    intake = source.intake()
    intake.begin(0)
    intake.feed(b"".join(np.array(value, ">" + kind).tobytes() for kind, value in numbers), START)
    row = intake.frame()[0]
    assert row["surge"] == pytest.approx(0.25 * GRAVITY)
    assert row["sway"] == pytest.approx(10.0)
    assert row["heave"] == pytest.approx(-3.048)
    assert row["speed"] == pytest.approx(25.0)
    assert np.degrees([row["roll"], row["pitch"], row["yaw"]]) == pytest.approx([3.0, -4.5, 45.0])
    assert row["engine_speed"] == pytest.approx(300.0 * 30.0 / math.pi)


# ---- what is missing is derived --------------------------------------------------------------------------------------


def test_an_axis_without_acceleration_is_derived_from_the_velocity_and_the_others_are_not_late():
    channels = [*OWN_TIME, *ANGLES, "surge", "sway", *RATES, *xyz("velocity")]
    source = described(packet(channels, world=ROS["world"]))
    states = drive("tour", 200.0)
    rows = encode(
        source.table, source.table, channel_values(source.table, states) | {"time": states["time"]}, len(states)
    )
    intake = source.intake(derivation=Derivation(delay_s=0.02))
    intake.begin(0)
    motion = np.zeros(len(states), MOTION_DTYPE)
    for place, row in enumerate(rows):
        intake.feed(row.tobytes(), START + place * 5_000_000)
        motion[place] = intake.frame()[0]
    expected = truth(states)
    assert np.abs(motion["surge"] - expected["surge"]).max() < 1e-9
    assert np.abs(motion["sway"] - expected["sway"]).max() < 1e-9
    late = round(0.02 * 200)  # the delay of a slow change, in frames
    error = motion["heave"][late:] - expected["heave"][:-late]
    assert np.sqrt(np.mean(error**2)) < 0.2 * np.sqrt(np.mean(expected["heave"] ** 2))


# ---- the shipped descriptions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.check
def test_a_shipped_description_says_where_its_layout_is_from_and_drives_the_platform(name):
    profile = load_profile(name)
    taken = ride(profile, "turns")
    assert taken.stats["rejected"] == {}
    assert taken.stats["frames_received"] > 500
    assert taken.stats["events"] == {}
    running = taken.ticks["state"] == 2
    for channel in ("surge", "sway", "roll", "pitch"):
        assert np.ptp(taken.ticks["cue"][channel][running]) > 0.01


@pytest.mark.search
@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_wrong_with_a_shipped_description_on_a_virtual_drive(name):
    source = system_of(load_profile(name).source)
    packages = drive_packages(source, "tour")
    report = check(
        source, [each.package for each in packages], np.cumsum([each.duration for each in packages]).tolist()
    )
    assert report.verdict != "wrong"
    assert report.timing.rejected == {}


def test_dirt_rally_nothing_is_wrong_with_a_real_stage():
    source = system_of(load_profile("dirt-rally-dk").source)
    report = check(source, list(source.framed((DATA / "dirt_rally_2.bin").read_bytes())))
    assert [finding for finding in report.findings if finding.verdict == "wrong"] == []
    held = {finding.name for finding in report.findings if finding.verdict == "ok"}
    assert held >= {
        *("velocity and position", "attitude and course", "surge and speed", "sway and turning", "pitch and climb"),
        "pitch rate",
    }
    # Heave and the rates are derived through the roll, which nothing else that this game sends shows.
    unknown = {finding.name for finding in report.findings if finding.verdict == "unknown"}
    assert unknown >= {"roll and leaning", "heave and climb", "roll rate", "yaw rate", "gravity"}


@pytest.mark.parametrize(("channel", "question"), [("sway", "sway and turning"), ("surge", "surge and speed")])
@pytest.mark.check
def test_check_names_a_field_whose_sign_is_described_wrong(channel, question):
    profile = load_profile("dirt-rally-dk")
    packet = profile.source.packet
    fields = [
        msgspec.structs.replace(field, scale=-field.scale) if field.channel == channel else field
        for field in packet.fields
    ]
    source = DescribedSource(msgspec.structs.replace(packet, fields=tuple(fields)))
    report = check(source, list(source.framed((DATA / "dirt_rally_2.bin").read_bytes())))
    assert "the sign is turned" in {finding.name: finding.evidence for finding in report.findings}[question]
    if channel == "sway":  # twenty seconds are too few for a change of surge to be advised
        assert report.changes == {"source.options.sway": "opposite"}


def rate_of(data):
    """Return the yaw rate in one of Forza's packets [rad/s]."""
    return float(np.frombuffer(data, "<f4", 1, 48)[0])


def test_options_read_a_description_otherwise():
    profile = load_profile("forza-dk")
    source = system_of(profile.source)
    sent = max((each.package for each in drive_packages(source, "turns")), key=lambda data: abs(rate_of(data)))
    rows = {}
    for name, options in (
        ("as described", {}),
        ("roll", {"roll": "opposite"}),
        ("gravity", {"gravity": "included"}),
        ("derived", {"rates": "derived"}),
    ):
        intake = source.intake(source.Options(**options))
        intake.begin(0)
        intake.feed(sent, START)
        rows[name] = intake.frame()[0]
    assert abs(rows["as described"]["roll"]) > 0.01
    assert rows["roll"]["roll"] == pytest.approx(-rows["as described"]["roll"])
    assert rows["gravity"]["heave"] == pytest.approx(rows["as described"]["heave"] - GRAVITY, abs=0.1)
    assert rows["as described"]["yaw_rate"] != 0.0
    assert rows["derived"]["yaw_rate"] == 0.0  # the first frame has none to derive it from


def forza(rows):
    """Return the packets of the form `dash` that held these rows of the lap."""
    names = ["CurrentEngineRpm", *xyz("Acceleration", "Velocity", "AngularVelocity"), "Yaw", "Pitch", "Roll"]
    for row in rows:
        data = bytearray(311)
        data[0] = 1
        data[4:8] = int(row["TimestampMS"]).to_bytes(4, "little")
        for place, name in enumerate(names):
            value = row[name[:-2] + name[-1].upper() if "_" in name else name]
            data[16 + 4 * place : 20 + 4 * place] = np.float32(value).tobytes()
        for place, axis in enumerate("XYZ"):
            data[232 + 4 * place : 236 + 4 * place] = np.float32(row[f"Position{axis}"]).tobytes()
        yield bytes(data)


def test_forza_signs_agree_with_a_recorded_lap():
    """Climb and course by the positions, turns by the angles: ten rows a second, so means of neighbors are compared."""
    rows = list(csv.DictReader((DATA / "forza_lap.csv").open(encoding="utf-8")))
    intake = system_of(load_profile("forza-dk").source).intake()
    intake.begin(0)
    motion, place = np.zeros(len(rows), MOTION_DTYPE), np.zeros((len(rows), 3))
    for index, data in enumerate(forza(rows)):
        intake.feed(data, START + int(rows[index]["TimestampMS"]) * 1_000_000)
        motion[index], place[index] = intake.frame()[0], intake.world()[0]
    assert intake.accepted == len(rows)

    def mean(values):
        return 0.5 * (values[1:] + values[:-1])

    north, east, down = np.diff(place, axis=0).T
    seconds = np.diff(motion["frame_time"])
    assert np.arctan2(east, north) == pytest.approx(mean(motion["yaw"]), abs=0.03)
    assert -down / np.hypot(north, east) == pytest.approx(mean(motion["pitch"]), abs=0.012)
    assert np.linalg.norm(place[-1] - place[0]) == pytest.approx(mean(motion["speed"]) @ seconds, rel=0.02)
    for angle in ANGLES:
        turned = np.diff(motion[angle]) / seconds
        rate = mean(motion[f"{angle}_rate"])
        assert np.corrcoef(turned, rate)[0, 1] > 0.7, angle
        assert turned @ rate > 0.4 * (turned @ turned), angle
    felt, needed = mean(motion["sway"]), mean(motion["speed"]) * np.diff(motion["yaw"]) / seconds
    assert np.corrcoef(felt, needed)[0, 1] > 0.7
    gained = np.diff(motion["speed"]) / seconds
    assert np.corrcoef(mean(motion["surge"]), gained)[0, 1] > 0.7
    lean = motion["roll"][3] - motion["roll"][1]  # the bend begins: to the left, so the body leans to the right
    assert motion["sway"][3] < -10.0
    assert lean > 0.005


@pytest.mark.parametrize(("name", "size", "cars", "stride"), [("f1-dk", 1349, 22, 60), ("f1-2026-dk", 1325, 24, 54)])
def test_f1_takes_the_players_car_and_counts_what_is_not_used(name, size, cars, stride):
    source = system_of(load_profile(name).source)
    wheels, sent = drive_packages(source, "still", duration_s=1 / 60)
    assert (wheels.motion, sent.motion) == (False, True)
    packet_of_first = bytearray(sent.package)
    intake = source.intake()
    intake.begin(0)
    assert len(packet_of_first) == size
    moved = bytearray(size)
    moved[:29] = packet_of_first[:29]
    moved[27] = 5
    moved[29 + 5 * stride : 29 + 6 * stride] = packet_of_first[29 : 29 + stride]
    for data in (packet_of_first, moved):
        intake.feed(bytes(data), START)
        assert intake.frame()["speed"][0] == 0.0
    assert intake.accepted == 2
    moved[27] = 4  # an empty block: its vectors are zero
    intake.feed(bytes(moved), START)
    moved[27] = cars  # there are so many blocks, from 0
    intake.feed(bytes(moved), START)
    assert intake.rejected == {"quaternion": 1, "envelope": 1}
    other = bytes([0xE8, 0x07, 24, 1, 0, 1, 6]) + bytes(1345)
    intake.feed(other, START)
    assert intake.others == 1


@pytest.mark.parametrize("name", ["f1-dk", "f1-2026-dk"])
@pytest.mark.parametrize("kind", range(16))
def test_f1s_packets_of_every_id_are_one_datagram_and_decoded(name, kind):
    source = system_of(load_profile(name).source)
    motion = source.table.size
    data = bytearray(motion if kind == 0 else 45 if kind == 3 else 1352)  # the others' sizes change from year to year
    data[:2], data[6] = (2026).to_bytes(2, "little"), kind
    (found,) = source.framed(bytes(data))
    assert found == data
    assert source.identify(found).size == len(data)


@pytest.mark.parametrize(("name", "form"), [("f1-dk", "<2f"), ("f1-2026-dk", "<2h")])
def test_f1s_lateral_force_is_positive_to_the_left(name, form):
    source = system_of(load_profile(name).source)
    data = bytearray(drive_packages(source, "still", duration_s=1 / 60)[-1].package)
    unit = 1.0 if form == "<2f" else 1000
    struct.pack_into(form, data, 29 + 36, *(type(unit)(force * unit) for force in (-2, 1)))
    intake = source.intake()
    for number in range(2):
        intake.feed(bytes(data), START + number)
    motion = intake.newest()
    assert (motion["sway"][0], motion["surge"][0]) == pytest.approx((2 * 9.80665, 9.80665))


def test_forza_in_its_menus_is_counted_and_not_followed():
    source = system_of(load_profile("forza-dk").source)
    intake = source.intake()
    intake.begin(0)
    for size in (232, 311, 323, 324, 331):
        intake.feed(bytes(size), START)
    assert (intake.accepted, intake.others, intake.rejected) == (0, 5, {})
    intake.feed(bytes(320), START)
    assert intake.rejected == {"size": 1}


# ---- what the documentation says -------------------------------------------------------------------------------------

DOCS = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text(encoding="utf-8")


@pytest.mark.check
def test_the_documented_example_has_one_wrong_sign_which_is_the_documented_one():
    (text,) = re.findall(r"```toml\n(.*?)```", DOCS, re.S)
    packages = list(described_by(text).framed((DATA / "dirt_rally_2.bin").read_bytes()))
    wrong = {
        finding.name: finding for finding in check(described_by(text), packages).findings if finding.verdict == "wrong"
    }
    shown = re.findall(r"^WRONG  (.*?): (.*)$", DOCS, re.M)
    assert [(name, wrong[name].evidence) for name, _ in shown] == shown
    right = check(described_by(text.replace('"sway", unit = "g"', '"sway", unit = "g", scale = -1')), packages)
    assert not any(finding.verdict == "wrong" for finding in right.findings)


def described_by(text):
    return system_of(parse_profile(text).source)


def test_every_key_channel_and_unit_is_documented():
    keys = set(re.findall(r"^\| (`.*?) \|", DOCS, re.M))
    named = {word for key in keys for word in re.findall(r"`(\w+)`", key)}
    assert {field.name for field in msgspec.structs.fields(SourcePacket)} <= named
    assert set(SHIPPED) <= set(re.findall(r"`([\w-]+-dk)`", DOCS))
    for units in UNITS.values():
        assert ", ".join(units) in DOCS
    shown = DOCS.replace("quaternion_w", "quaternion_x")
    for name in CHANNELS:
        short = re.sub(r"_[wxyz]$", "_x", re.sub("front_right|rear_left|rear_right", "front_left", name))
        assert short.replace("pitch_acc", "roll_acc").replace("yaw_acc", "roll_acc") in shown
