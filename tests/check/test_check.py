"""`motioncue check` never accepts a wrong reading, and finds the one change that corrects it.

The virtual car is the truth; its packages are then changed, as by simulators with another convention.
"""

import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from motioncue.check.check import check
from motioncue.check.compare import MOVING_M_S, Drive
from motioncue.check.signs import examine
from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.table import Watch
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.recording import read_packages, read_recording, sample_recording
from motioncue.sources.beamng.packets import MOTION
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.sources.vehicle_physics_pro.packets import STATES
from motioncue.virtual.installation import drive_packages

PACKAGES = {
    name: [frame.package for frame in drive_packages("city-car-driving", name) if frame.package]
    for name in ("tour", "turns", "brake", "still")
}


def verdicts(report):
    return {finding.name: finding.verdict for finding in report.findings}


def altered(drive, change):
    """Return a drive's packages with `change` made to every frame."""
    out = []
    for package in PACKAGES[drive]:
        if len(package) == FRAME.size:
            row = np.frombuffer(bytearray(package), FRAME.dtype)
            change(row)
            package = row.tobytes()
        out.append(package)
    return out


def test_a_drive_of_everything_shows_everything_but_the_lean():
    report = check("city-car-driving", PACKAGES["tour"])
    found = verdicts(report)
    assert found.pop("roll and leaning") == "unknown"  # one of its curves is banked
    assert set(found.values()) == {"ok"}
    assert {option.verdict for option in report.options} == {"ok"}
    assert report.changes == {}
    assert report.timing.rate_hz == pytest.approx(60.0)
    assert (report.timing.gaps, report.timing.rejected) == (0, {})


def test_a_straight_drive_settles_neither_the_order_nor_the_sense_of_the_quaternion():
    for packages in (PACKAGES["brake"], read_recording(sample_recording(), "city-car-driving").packages):
        report = check("city-car-driving", packages)
        assert report.verdict == "unknown"
        options = {option.key: option for option in report.options}
        for name in ("quaternion", "rotation"):
            option = options[f"source.options.{name}"]
            assert option.verdict == "unknown"
            assert "turn by 30 degrees or more" in option.evidence
        assert verdicts(report)["attitude and course"] == "unknown"


@pytest.mark.check
def test_thresholds_that_an_honest_drive_exceeds_are_wrong():
    strict = verdicts(check("city-car-driving", PACKAGES["tour"], watch=Watch(max_acceleration_m_s2=0.01)))
    usual = verdicts(check("city-car-driving", PACKAGES["tour"]))
    assert (usual.pop("continuity"), strict.pop("continuity")) == ("ok", "wrong")
    assert usual == strict


def test_a_parked_car_shows_gravity_and_nothing_else():
    report = check("city-car-driving", PACKAGES["still"])
    assert {name for name, verdict in verdicts(report).items() if verdict != "unknown"} == {
        "frames",
        "continuity",
        "up",
        "gravity",
    }
    assert report.verdict == "unknown"


def turn_quaternion(row):
    row["orientation"] *= np.array([-1, -1, -1, 1], np.float32)


def swap_quaternion(row):
    row["orientation"] = np.roll(row["orientation"], 1, axis=-1)


def add_gravity(row):
    row["acceleration"] += np.array([0, 9.80665, 0], np.float32)


def turn_rates_into_the_car(row):
    for name in ("angular_velocity", "angular_acceleration"):
        row[name] = Rotation.from_quat(row["orientation"]).inv().apply(row[name])


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize(
    ("change", "key", "better"),
    [
        (swap_quaternion, "source.options.quaternion", "wxyz"),
        (turn_quaternion, "source.options.rotation", "world_to_car"),
        (add_gravity, "source.options.gravity", "included"),
        (turn_rates_into_the_car, "source.options.rates", "car"),
    ],
)
def test_another_reading_of_the_document_is_found(change, key, better):
    report = check("city-car-driving", altered("tour", change))
    assert report.verdict == "wrong"
    assert report.changes == {key: better}
    option = next(option for option in report.options if option.key == key)
    assert (option.verdict, option.better) == ("wrong", better)
    mended = check("city-car-driving", altered("tour", change), None, {key.rpartition(".")[2]: better})
    assert mended.verdict != "wrong"


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize(
    ("field", "factors", "question"),
    [
        ("acceleration", (-1, -1, -1), "surge and speed"),
        ("acceleration", (-1, -1, -1), "sway and turning"),
        ("acceleration", (0.1, 0.1, 0.1), "surge and speed"),
        ("angular_velocity", (-1, -1, -1), "pitch rate"),
        ("angular_velocity", (180 / np.pi,) * 3, "yaw rate"),
    ],
)
def test_signs_and_units_that_no_option_explains_are_wrong(field, factors, question):
    def change(row):
        row[field] *= np.array(factors, np.float32)

    report = check("city-car-driving", altered("tour", change))
    assert verdicts(report)[question] == "wrong"
    assert report.verdict == "wrong"


def test_an_acceleration_that_is_not_one_can_be_had_from_the_velocity():
    def change(row):
        row["acceleration"] = 0.0

    report = check("city-car-driving", altered("tour", change))
    assert report.changes == {"source.acceleration": "from_velocity"}
    mended = check("city-car-driving", altered("tour", change), acceleration="from_velocity")
    assert mended.verdict != "wrong"


# The questions, on drives defined by equations.


def drive(seconds=30.0, rate_hz=50.0, lean=-0.03, **turned):
    """Return a car on a figure of eight over hills that speeds up and slows down; `turned` flips channels."""
    time = np.arange(0.0, seconds, 1 / rate_hz)
    speed = 15.0 + 5.0 * np.sin(0.4 * time)
    yaw = 1.5 * np.sin(0.3 * time)
    slope = 0.06 * np.sin(1.2 * time)
    motion = np.zeros(len(time), MOTION_DTYPE)
    turning, climbing = np.gradient(yaw, time), np.gradient(slope, time)
    motion["yaw"], motion["pitch"], motion["speed"] = yaw, slope, speed
    motion["roll"] = roll = lean * speed * turning
    motion["roll_rate"] = np.gradient(roll, time) - turning * np.sin(slope)
    motion["pitch_rate"] = climbing * np.cos(roll) + turning * np.sin(roll) * np.cos(slope)
    motion["yaw_rate"] = turning * np.cos(roll) * np.cos(slope) - climbing * np.sin(roll)
    along = speed * np.cos(slope)
    velocity = np.stack([along * np.cos(yaw), along * np.sin(yaw), -speed * np.sin(slope)], axis=-1)
    position = np.cumsum(velocity, axis=0) / rate_hz
    world = np.gradient(velocity, time, axis=0)
    body = Rotation.from_euler("ZYX", np.stack([yaw, slope, roll], axis=-1)).apply(world, inverse=True)
    motion["surge"], motion["sway"], motion["heave"] = body[:, 0], body[:, 1], -body[:, 2]
    for channel, factor in turned.items():
        motion[channel] *= factor
    return Drive(time, motion, position, velocity, np.zeros(len(time), np.intp))


def answers(made):
    return {finding.name: finding.verdict for finding in examine(made)}


QUESTIONS = {
    "surge": "surge and speed",
    "sway": "sway and turning",
    "heave": "heave and climb",
    "pitch": "pitch and climb",
    "yaw": "yaw and course",
    "roll": "roll and leaning",
    "roll_rate": "roll rate",
    "pitch_rate": "pitch rate",
    "yaw_rate": "yaw rate",
}


def test_a_good_drive_has_no_wrong_answer():
    found = answers(drive())
    assert set(found.values()) == {"ok"}


@pytest.mark.parametrize("channel", QUESTIONS)
def test_every_turned_channel_is_noticed(channel):
    assert answers(drive(**{channel: -1.0}))[QUESTIONS[channel]] == "wrong"


@pytest.mark.parametrize("channel", ["surge", "sway", "heave", "pitch"])
@pytest.mark.parametrize("factor", [3.6, 0.277])
def test_every_wrong_unit_is_noticed(channel, factor):
    assert answers(drive(**{channel: factor}))[QUESTIONS[channel]] == "wrong"


@pytest.mark.parametrize(("channel", "question"), [("surge", "surge and speed"), ("sway", "sway and turning")])
@pytest.mark.parametrize("delay_s", [-0.6, -0.3, 0.0, 0.1, 0.4])
def test_an_acceleration_that_comes_late_or_early_is_wrong(channel, question, delay_s):
    made = drive(seconds=60.0)
    made.motion[channel] = np.interp(made.time - delay_s, made.time, made.motion[channel].copy())
    (finding,) = (finding for finding in examine(made) if finding.name == question)
    assert finding.verdict == ("ok" if abs(delay_s) < 0.15 else "wrong")
    if abs(delay_s) > 0.15:
        amount, way = re.search(r"about ([0-9.]+) s too (late|early)", finding.evidence).groups()
        assert (float(amount), way) == (pytest.approx(abs(delay_s), abs=0.06), "late" if delay_s > 0 else "early")


@pytest.mark.parametrize("seed", range(5))
def test_noise_makes_answers_unknown_and_not_wrong(seed):
    made = drive(seconds=60.0)
    rng = np.random.default_rng(seed)
    for channel in ("surge", "sway", "heave"):
        made.motion[channel] += rng.normal(0.0, 1.0, len(made.time))
    made.motion["pitch"] += rng.normal(0.0, 0.02, len(made.time))
    assert "wrong" not in answers(made).values()


@pytest.mark.parametrize("offset", [-0.09, 0.06])
def test_a_body_that_is_not_level_on_its_wheels_is_nothing_wrong_on_a_road_that_only_climbs(offset):
    made = drive()
    made.position[:, 2] = -0.03 * 15.0 * made.time
    made.motion["pitch"] = 0.03 + offset
    assert answers(made)["pitch and climb"] == "unknown"


@pytest.mark.parametrize("part", range(6))
def test_no_ten_seconds_of_the_real_drive_contradict_anything(part):
    init, *frames = read_packages(sample_recording())
    report = check("city-car-driving", [init, *frames[part * 600 : (part + 1) * 600]])
    assert report.timing.frames >= 590
    assert report.verdict == "unknown"


@pytest.mark.parametrize("axis", range(3))
def test_a_velocity_whose_axis_is_turned_contradicts_the_position(axis):
    made = drive()
    made.velocity[:, axis] *= -1.0
    assert answers(made)["velocity and position"] == "wrong"


def test_a_teleport_is_no_motion():
    made = drive()
    half = len(made.time) // 2
    made.position[half:] += 500.0
    made.part[half:] = 1
    assert "wrong" not in answers(made).values()


def test_a_car_without_position_or_velocity_of_its_own_leaves_the_course_open():
    made = drive()
    found = answers(made._replace(position=np.full((len(made.time), 3), np.nan), velocity_is_independent=False))
    asked = ("attitude and course", "pitch and climb", "yaw and course")
    assert {found[name] for name in asked} == {"unknown"}
    assert found["surge and speed"] == found["sway and turning"] == found["heave and climb"] == "ok"


def placeless(made, *, alone=False, fast=1.0, **changed):
    """Return a drive without position, of a source that gives its velocity in the car's axes, or its speed alone."""
    motion = made.motion.copy()
    for channel in ("surge", "sway", "heave", "speed"):
        motion[channel] *= fast
    velocity = np.full_like(made.velocity, np.nan) if alone else fast * made.velocity
    position = np.full_like(made.position, np.nan)
    return made._replace(
        motion=motion, position=position, velocity=velocity, **{"velocity_is_independent": False, **changed}
    )


def sway_of(made):
    return next(finding for finding in examine(made) if finding.name == "sway and turning")


@pytest.mark.parametrize(("turned", "wrong"), [({}, "ok"), ({"sway": -1.0}, "wrong"), ({"sway": 9.81}, "wrong")])
def test_sway_is_judged_without_a_position_by_velocity_and_yaw_rate(turned, wrong):
    found = sway_of(placeless(drive(**turned)))
    assert (found.verdict, found.blames) == (wrong, "" if turned.get("sway") != 9.81 else "acceleration or velocity")


def test_sway_is_judged_by_yaw_if_the_rates_are_derived_from_it_and_then_either_may_be_wrong():
    found = sway_of(placeless(drive(sway=-1.0), rates_are_independent=False))
    assert (found.verdict, found.blames) == ("wrong", "acceleration or attitude")


def test_sway_is_not_accused_if_yaw_rate_and_yaw_contradict_each_other():
    assert sway_of(placeless(drive(yaw_rate=-1.0))).verdict == "unknown"
    assert sway_of(placeless(drive(yaw_rate=np.degrees(1.0)))).verdict == "unknown"


@pytest.mark.parametrize(
    ("fast", "turned", "verdict"), [(1.0, -1.0, "unknown"), (2.0, -1.0, "wrong"), (2.0, 1.0, "ok")]
)
def test_by_speed_alone_sway_is_judged_where_the_car_is_too_fast_to_reverse(fast, turned, verdict):
    assert sway_of(placeless(drive(sway=turned), alone=True, fast=fast)).verdict == verdict


def test_a_sliding_car_is_not_accused_by_its_speed_alone():
    made = placeless(drive(seconds=60.0), alone=True, fast=2.0)
    slip = 0.5 * np.sin(0.7 * made.time)
    motion = made.motion.copy()
    surge, sway = motion["surge"].copy(), motion["sway"].copy()
    motion["surge"] = surge * np.cos(slip) + sway * np.sin(slip)
    motion["sway"] = sway * np.cos(slip) - surge * np.sin(slip)
    motion["yaw"] += slip
    motion["yaw_rate"] += np.gradient(slip, made.time)
    assert sway_of(made._replace(motion=motion)).verdict != "wrong"


def test_a_slow_car_answers_nothing_about_its_course():
    made = drive()
    slow = 0.9 * MOVING_M_S / 20.0
    found = answers(made._replace(position=made.position * slow, velocity=made.velocity * slow))
    assert found["attitude and course"] == "unknown"


def turned_about(made, where, *, felt):
    """Turn the body about its up axis from index `where` on: all measured quantities too, or the attitude alone."""
    motion = made.motion.copy()
    for channel in ("pitch", "roll", *(("surge", "sway", "roll_rate", "pitch_rate") if felt else ())):
        motion[channel][where:] *= -1.0
    motion["yaw"][where:] += np.pi
    part = made.part.copy()
    part[where:] += 1
    return made._replace(motion=motion, part=part)


def test_reversing_is_no_contradiction():
    made = drive(seconds=60.0)
    found = answers(turned_about(made, len(made.time) // 2, felt=True))
    assert "wrong" not in found.values()
    assert found["attitude and course"] == found["surge and speed"] == found["sway and turning"] == "ok"


def test_a_car_that_only_reverses_may_be_one_whose_front_is_taken_for_its_back():
    found = answers(turned_about(drive(), 0, felt=True))
    assert "wrong" not in found.values()
    assert found["attitude and course"] == found["surge and speed"] == found["pitch and climb"] == "unknown"


@pytest.mark.parametrize("where", [0, 750])
def test_an_attitude_that_is_turned_about_is_no_reversing(where):
    found = answers(turned_about(drive(), where, felt=False))
    assert found["attitude and course"] == "wrong"


def test_quantities_derived_from_a_reversed_attitude_do_not_settle_it():
    turned = turned_about(drive(), 0, felt=True)._replace(felt=frozenset())
    assert answers(turned)["attitude and course"] == "unknown"


def test_in_banked_curves_heave_tells_the_sign_of_roll():
    banked = drive(lean=0.08)
    assert answers(banked)["roll and leaning"] == "ok"
    assert answers(drive(lean=0.08, roll=-1.0))["roll and leaning"] == "wrong"
    derived = answers(banked._replace(felt=frozenset()))
    assert derived["roll and leaning"] == "unknown"


# Open readings of other systems' packages.


def beamng(made, *, rates="angles", factors=(1, 1, 1), yaw=0.0):
    """Return a drive as BeamNG's packets, with the rates of its angles or those about the car's axes."""
    motion = made.motion
    rows = np.frombuffer(bytearray(MOTION.encode() * len(motion)), MOTION.dtype)
    for field, vector in (("position", made.position), ("velocity", made.velocity)):
        for axis, values in zip("xyz", (vector[:, 1], vector[:, 0], -vector[:, 2]), strict=True):
            rows[f"{field}_{axis}"] = values
    for name in ("surge", "sway", "heave", "roll", "pitch"):
        rows[name] = motion[name]
    rows["yaw"] = (motion["yaw"] + yaw + np.pi) % (2 * np.pi) - np.pi
    for name, factor in zip(("roll", "pitch", "yaw"), factors, strict=True):
        of_angle = np.gradient(motion[name], made.time)
        rows[f"{name}_rate"] = factor * (of_angle if rates == "angles" else motion[f"{name}_rate"])
    return [row.tobytes() for row in rows], made.time


@pytest.mark.parametrize(
    ("said", "verdict", "changes"),
    [
        ({}, "ok", {}),
        ({"rates": "car"}, "wrong", {"source.options.rates": "car"}),
        ({"factors": (-1, 1, 1)}, "wrong", {"source.options.rates": "derived"}),
    ],
)
def test_rates_that_are_said_are_told_apart_and_deriving_them_is_the_way_out(said, verdict, changes):
    report = check("beamng", *beamng(drive(lean=0.08), **said))
    (rates,) = (option for option in report.options if option.key == "source.options.rates")
    assert (rates.verdict, report.changes) == (verdict, changes)


def test_a_way_out_is_not_offered_for_an_attitude_that_is_turned_about():
    report = check("beamng", *beamng(drive(), yaw=np.pi))
    assert verdicts(report)["attitude and course"] == "wrong"
    assert report.changes == {}


def test_a_velocity_in_car_axes_is_no_evidence_for_the_attitude():
    packages = []
    for frame in drive_packages("vehicle-physics-pro", "tour", 50.0):
        row = np.frombuffer(bytearray(frame.package), STATES["newer"].dtype)
        row["position"] = 0.0
        packages.append(row.tobytes())
    found = verdicts(check("vehicle-physics-pro", packages, rate_hz=50.0))
    assert found["attitude and course"] == found["pitch and climb"] == found["yaw and course"] == "unknown"


# Sources that cannot be examined.


@pytest.mark.parametrize("system", ["beamng", "morai"])
def test_packets_between_the_frames_take_no_time_of_a_file_that_says_none(system):
    packages = [frame.package for frame in drive_packages(system, "tour", 60.0)]
    report = check(system, packages, rate_hz=60.0)
    assert report.timing.rate_hz == pytest.approx(60.0)
    assert report.verdict != "wrong"
    with pytest.raises(PacketError, match="found no times"):
        check(system, packages)


def test_less_than_two_frames_are_refused():
    with pytest.raises(PacketError, match="found 1 frames"):
        check("city-car-driving", PACKAGES["still"][:2])
    with pytest.raises(PacketError, match="4 before init"):
        check("city-car-driving", PACKAGES["still"][1:5])
    with pytest.raises(ConfigError, match=r"source\.system"):
        check("dk", [])


def test_gaps_and_refused_packages_are_counted():
    packages = [*PACKAGES["tour"][:100], b"\x6b\x00\x02" + bytes(104), *PACKAGES["tour"][100:200]]
    times = [0.0, *np.arange(99) / 60.0, 1.7, *(2.0 + np.arange(100) / 60.0)]
    timing = check("city-car-driving", packages, times).timing
    assert timing.frames == 199
    assert timing.rejected == {"quaternion": 1}
    assert timing.gaps == 1
    assert timing.longest_gap_s == pytest.approx(2.0 - 98 / 60.0)
    assert json.dumps(timing._asdict())
