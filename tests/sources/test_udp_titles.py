"""Titles by UDP: packets built byte by byte from their documents, for the known motion of `one_motion`, give it."""

import math
import struct

import numpy as np
import pytest
from one_motion import MOTION, turned

from motioncue import sources

RATES = ("roll_rate", "pitch_rate", "yaw_rate")
PERIOD_S = 0.01


def from_car(forward, left, up, yaw):
    """Return a vector of the car's axes in a world of forward, left, up."""
    return forward * turned(yaw)[0] + left * turned(yaw)[1] + up * turned(yaw)[2]


def richard_burns_rally(yaw, number):
    """Degrees: roll + left side down, pitch + nose up, yaw + nose left; surge forward, sway right, heave up."""
    data = bytearray(664)
    struct.pack_into("<I", data, 0, number)
    struct.pack_into("<3f", data, 76, math.degrees(-0.05), math.degrees(0.1), math.degrees(yaw))
    struct.pack_into("<3f", data, 88, 20.0, -0.5, 0.25)
    struct.pack_into("<3f", data, 100, math.degrees(-0.1), math.degrees(0.2), math.degrees(0.4))
    struct.pack_into("<3f", data, 112, 3.0, -8.0, 1.0)
    struct.pack_into("<f", data, 136, 6500.0)
    return data


def wreckfest_2(yaw, number):
    """x right, y up, z forward, left-handed: + about x pitches down, + about y yaws right, + about z rolls left."""
    data = bytearray(1218)
    struct.pack_into("<I2Bi", data, 0, 1869769584, 0, 0b100000, 10 * number)
    struct.pack_into("<f", data, 413, 20.0)
    struct.pack_into("<i", data, 435, 6500)
    struct.pack_into("<3f", data, 510, 1.0, 2.0, 3.0)
    struct.pack_into("<4f", data, 522, *quaternion(yaw))
    struct.pack_into("<3f", data, 544, -0.5, 0.25, 20.0)
    struct.pack_into("<3f", data, 556, -0.2, -0.4, -0.1)
    struct.pack_into("<3f", data, 568, -8.0, 1.0, 3.0)
    struct.pack_into("<H", data, 1090, 0b01111)
    return data


def quaternion(yaw):
    """Return x, y, z, w of the turn from the car's right, up, forward to the world's: by half angles from the trace."""
    forward, left, up = turned(yaw)
    world = np.array([[0, -1, 0], [0, 0, 1], [1, 0, 0]])  # rows: right, up, forward
    m = world @ np.stack([-left, up, forward], axis=1)
    w = math.sqrt(1.0 + np.trace(m)) / 2.0
    return (*(np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / (4.0 * w)), w)


def ea_wrc(yaw, number):
    """World x left, y up, z forward: velocity, acceleration, left, forward and up vectors are in it."""
    world = [1, 2, 0]  # left, up, forward
    data = bytearray(237)
    struct.pack_into("<Qf", data, 0, number, number * PERIOD_S)
    struct.pack_into("<f", data, 41, 20.0)
    struct.pack_into("<3f", data, 61, *from_car(20.0, 0.5, 0.25, yaw)[world])
    struct.pack_into("<3f", data, 73, *from_car(3.0, 8.0, 1.0, yaw)[world])
    forward, left, up = turned(yaw)
    struct.pack_into("<9f", data, 85, *left[world], *forward[world], *up[world])
    struct.pack_into("<f", data, 193, 6500.0)
    return data


def automobilista_2(yaw, number):
    """x left, y up, z back, left-handed: + about x pitches up, + about y yaws right, + about z rolls right."""
    data = bytearray(559)
    struct.pack_into("<II4B", data, 0, number, number, 1, 1, 0, 2)
    struct.pack_into("<fH", data, 36, 20.0, 6500)
    struct.pack_into("<3f", data, 52, 0.1, -yaw, 0.05)
    struct.pack_into("<3f", data, 64, 0.5, 0.25, -20.0)
    struct.pack_into("<3f", data, 88, 0.2, -0.4, 0.1)
    struct.pack_into("<3f", data, 100, 8.0, 1.0, -3.0)
    return data


TITLES = {
    "richard-burns-rally-dk": richard_burns_rally,
    "wreckfest-2-dk": wreckfest_2,
    "ea-wrc-dk": ea_wrc,
    "automobilista-2-dk": automobilista_2,
}


@pytest.mark.parametrize("name", TITLES)
def test_a_known_motion_is_read_with_its_signs(name):
    intake = sources.by_profile(name).intake()
    intake.begin(0)
    for number in (1, 2):
        intake.feed(bytes(TITLES[name](0.3, number)), round(number * PERIOD_S * 1e9))
    motion = intake.newest()
    said = {key: value for key, value in MOTION.items() if name != "ea-wrc-dk" or key not in RATES}
    assert {key: motion[key][0] for key in said} == pytest.approx(said, abs=5e-6)
    assert motion["speed"][0] == pytest.approx(math.sqrt(20.0**2 + 0.5**2 + 0.25**2), rel=1e-3)
    assert motion["engine_speed"][0] == 6500.0
    assert (intake.accepted, intake.rejected) == (2, {})


@pytest.mark.parametrize(("options", "sign"), [({}, 1.0), ({"surge": "opposite"}, -1.0)])
def test_x_planes_axial_load_is_forward_as_ardupilot_has_it_and_an_option_turns_it(options, sign):
    """Rows 1, 4, 17 and 21: level, facing north at 70 m/s, 0.3 g along the axis; three other readers turn it."""
    source = sources.by_profile("x-plane-dk")
    intake = source.intake(source.Options(**options))
    for number in (1, 2):
        data = bytearray(149)
        struct.pack_into("<5si", data, 0, b"DATA*", 1)
        struct.pack_into("<f", data, 17, 0.02 * number)
        struct.pack_into("<i", data, 41, 4)
        struct.pack_into("<3f", data, 61, 1.0, 0.3, 0.1)  # normal, axial, side [g]
        struct.pack_into("<i", data, 77, 17)
        struct.pack_into("<i", data, 113, 21)
        struct.pack_into("<3f3f", data, 117, 0.0, 500.0, -1.4 * number, 0.0, 0.0, -70.0)
        intake.feed(bytes(data), number * 20_000_000)
    motion = intake.newest()
    assert [motion[name][0] for name in ("surge", "sway", "heave")] == pytest.approx(
        [sign * 0.3 * 9.80665, 0.1 * 9.80665, 0.0], abs=1e-5
    )


def test_ea_wrcs_rates_are_those_of_its_vectors():
    source, yaw_rate = sources.by_profile("ea-wrc-dk"), -0.4
    intake = source.intake()
    intake.begin(0)
    for number in range(1, 101):
        intake.feed(bytes(ea_wrc(0.3 - yaw_rate * number * PERIOD_S, number)), round(number * PERIOD_S * 1e9))
    motion = intake.newest()
    found = [motion[rate][0] for rate in RATES]
    pitch, roll = 0.1, 0.05  # constant: Euler's kinematic equations with only the heading turning
    parts = (-math.sin(pitch), math.cos(pitch) * math.sin(roll), math.cos(pitch) * math.cos(roll))
    assert found == pytest.approx([yaw_rate * part for part in parts], abs=2e-3)


NOT_DRIVING = {
    "paused": (5, 0b100001),
    "a replay": (5, 0b100010),
    "watching": (5, 0b100100),
    "in no race": (5, 0),
    "AI drives": (1090, 0b10111),
    "physics stand": (1090, 0b01011),
    "the other cars": (4, 4),
}


@pytest.mark.parametrize(("offset", "value"), NOT_DRIVING.values(), ids=NOT_DRIVING)
def test_wreckfest_2_is_followed_only_while_the_player_drives(offset, value):
    intake = sources.by_profile("wreckfest-2-dk").intake()
    data = wreckfest_2(0.3, 1)
    data[offset] = value
    intake.feed(bytes(data), 1_000_000)
    assert (intake.accepted, intake.others, intake.rejected) == (0, 1, {})


@pytest.mark.parametrize(
    ("kind", "size"), [(1, 308), (2, 1136), (3, 1063), (4, 24), (5, 24), (6, 1164), (7, 1040), (8, 1452)]
)
def test_automobilista_2s_other_packets_are_counted(kind, size):
    intake = sources.by_profile("automobilista-2-dk").intake()
    data = bytearray(size)
    data[10] = kind
    intake.feed(bytes(data), 1_000_000)
    assert (intake.accepted, intake.others, intake.rejected) == (0, 1, {})


def test_gran_turismo_7s_angular_velocity_is_right_handed_about_right_up_back():
    """x right, y up, z back: + about x pitches up, + about y yaws left, + about z rolls left."""
    source = sources.by_profile("gran-turismo-7-dk")
    intake = source.intake()
    for number in (1, 2):
        data = bytearray(296)
        data[:4] = b"0S7G"
        struct.pack_into("<4f", data, 28, 0.0, 0.0, 0.0, 1.0)
        struct.pack_into("<3f", data, 44, 0.2, 0.4, -0.1)
        struct.pack_into("<i", data, 112, number)
        data[142] = 1
        intake.feed(source.plain(bytes(data)), number * 16_666_667)
    motion = intake.newest()
    assert {rate: motion[rate][0] for rate in RATES} == pytest.approx({rate: MOTION[rate] for rate in RATES})
    assert intake.rejected == {}
