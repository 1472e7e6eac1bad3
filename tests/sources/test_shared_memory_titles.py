"""Titles by shared memory: numbers put where their documents say, for the motion of `one_motion`, give it."""

import math
import struct

import numpy as np
import pytest
from one_motion import MOTION, turned

from motioncue import sources
from motioncue.errors import ConfigError
from motioncue.profile.profile import parse_profile, profile_text

G, TURN = 9.80665, 2.0 * math.pi


def assetto_corsa(page, number):
    """x left, y up, z forward, right-handed: + about x pitches down, + about y yaws left, + about z rolls right."""
    struct.pack_into("<i", page, 0, number)
    struct.pack_into("<ii", page, 16, 4, 6500)
    struct.pack_into("<f", page, 28, 72.0)
    struct.pack_into("<3f", page, 44, 8.0 / G, 1.0 / G, 3.0 / G)
    struct.pack_into("<3f", page, 208, -0.3, 0.1, 0.05)
    struct.pack_into("<3f", page, 296, -0.2, 0.4, 0.1)
    struct.pack_into("<3f", page, 568, 0.5, 0.25, 20.0)
    return 416, struct.pack("<i", 1)  # AI drives


def le_mans_ultimate(page, number):
    struct.pack_into("<3B", page, 128464, 20, 3, 1)
    vehicle(page, 128468 + 3 * 1888, number)
    return 128466, b"\0"  # the player has no vehicle


SCORING = 241680
"""Where rFactor 2's other mapping begins in a page of these tests, behind the one that is read."""


def rfactor_2(page, number):
    """Vehicle 9 is the player's: the third of four in one mapping, the second in the other."""
    struct.pack_into("<2IiI", page, 0, number, number, 0, 4)
    for place, vehicle_id in enumerate((4, 7, 9, 2)):
        struct.pack_into("<i", page, 16 + 1888 * place, vehicle_id)
        struct.pack_into("<d", page, 16 + 1888 * place + 208, 100.0)  # others are pushed hard
    vehicle(page, 16 + 2 * 1888, number)
    struct.pack_into("<2I", page, SCORING, 5, 5)
    struct.pack_into("<i", page, SCORING + 116, 4)
    for place, vehicle_id in enumerate((7, 9, 2, 4)):
        struct.pack_into("<i", page, SCORING + 560 + 584 * place, vehicle_id)
        struct.pack_into("<Bb", page, SCORING + 560 + 584 * place + 196, vehicle_id == 9, 0 if vehicle_id == 9 else 2)
    return SCORING + 560 + 584 + 197, b"\1"  # AI drives


def vehicle(page, car, number):
    """x left, y up, z back, left-handed; rows of the matrix: world x, y, z."""
    struct.pack_into("<d", page, car + 12, 0.02 * number)
    struct.pack_into("<3d", page, car + 160, 1.0, 2.0, 3.0)
    struct.pack_into("<3d", page, car + 184, 0.5, 0.25, -20.0)
    struct.pack_into("<3d", page, car + 208, 8.0, 1.0, -3.0)
    forward, left, up = turned()
    world = np.array([[0, 1, 0], [0, 0, 1], [-1, 0, 0]])  # rows: left, up, back
    matrix = world @ np.stack([left, up, -forward], axis=1)
    struct.pack_into("<9d", page, car + 232, *matrix.ravel())
    struct.pack_into("<3d", page, car + 304, 0.2, -0.4, 0.1)
    struct.pack_into("<d", page, car + 356, 6500.0)
    for wheel in range(4):
        struct.pack_into("<d", page, car + 848 + 260 * wheel, 0.01 * (wheel + 1))  # deflection of its suspension
        struct.pack_into("<d", page, car + 848 + 260 * wheel + 112, 0.1 * (wheel + 1))  # sliding share of its patch


def automobilista_2(page, number):
    """x left, y up, z back, left-handed; the angles likewise; the number is even while it is whole."""
    struct.pack_into("<i", page, 8, 2)
    struct.pack_into("<2f", page, 6848, 20.0, 6500.0)
    struct.pack_into("<3f", page, 6908, 0.1, -0.3, 0.05)
    struct.pack_into("<3f", page, 6920, 0.5, 0.25, -20.0)
    struct.pack_into("<3f", page, 6944, 0.2, -0.4, 0.1)
    struct.pack_into("<3f", page, 6956, 8.0, 1.0, -3.0)
    struct.pack_into("<I", page, 7320, 2 * number)
    struct.pack_into("<4f", page, 7340, 0.01, 0.02, 0.03, 0.04)
    struct.pack_into("<4f", page, 7356, -0.1, -0.2, -0.3, -0.4)
    return 8, struct.pack("<i", 3)  # paused


def raceroom(page, number):
    """x left, y up, z back; + about x pitches up, + about y yaws right, + about z rolls right."""
    struct.pack_into("<i", page, 44, number)
    struct.pack_into("<3d", page, 104, 0.5, 0.25, -20.0)
    struct.pack_into("<3d", page, 152, 8.0, 1.0, -3.0)
    struct.pack_into("<3d", page, 176, 0.1, -0.3, 0.05)
    struct.pack_into("<3d", page, 272, 0.2, -0.4, 0.1)
    return 28, struct.pack("<i", 1)  # a replay


def truck_simulator(page, number):
    """x right, y up, z back, right-handed: + about x pitches up, + about y yaws left, + about z rolls left."""
    page[0] = 1
    struct.pack_into("<Q", page, 16, 20_000 * number)
    struct.pack_into("<2f", page, 948, 20.0, 1400.0)
    struct.pack_into("<3f", page, 1868, -0.5, 0.25, -20.0)
    struct.pack_into("<3f", page, 1880, 0.2 / TURN, 0.4 / TURN, -0.1 / TURN)
    struct.pack_into("<3f", page, 1892, -8.0, 1.0, -3.0)
    struct.pack_into("<3d", page, 2200, 1.0, 2.0, 3.0)
    struct.pack_into("<3d", page, 2224, 0.3 / TURN, 0.1 / TURN, -0.05 / TURN)
    return 4, b"\1"  # paused


def iracing(page, number):
    """x forward, y left, z up, right-handed, what an accelerometer reads; the list and the newest of four buffers.

    Six samples of what moves, the newest last; the older ones are other numbers here.
    """
    values = {
        "VelocityX": 20.0,
        "VelocityY": 0.5,
        "VelocityZ": 0.25,
        "RollRate": 0.1,
        "PitchRate": -0.2,
        "YawRate": 0.4,
    }
    felt = np.array([3.0, 8.0, 1.0]) + G * np.array([part[2] for part in turned()])
    values |= dict(zip(("LongAccel", "LatAccel", "VertAccel"), felt, strict=True))
    samples = {f"{name}_ST": (1.0, 2.0, 3.0, 4.0, 5.0, value) for name, value in values.items()}
    values |= {"YawNorth": -0.3, "Pitch": -0.1, "Roll": 0.05, "Speed": 20.0, "RPM": 6500.0}
    listed = [("SessionTime", 5, 1), ("IsOnTrack", 1, 1), *((name, 4, 1) for name in values)]
    listed += [(name, 4, 6) for name in samples]
    listed.append(("IsReplayPlaying", 1, 1))
    struct.pack_into("<10i", page, 0, 2, 1, 60, 0, 0, 0, len(listed), 4096, 3, 2048)
    newest, at, places = number % 3, 0, {}
    struct.pack_into("<3i", page, 48 + 16 * newest, number, 524288 + 2048 * newest, number)
    for place, (name, kind, count) in enumerate(listed):
        struct.pack_into("<3i4x32s", page, 4096 + 144 * place, kind, at, count, name.encode())
        places[name] = 524288 + 2048 * newest + at
        at += {1: 1, 4: 4, 5: 8}[kind] * count
    struct.pack_into("<d", page, places["SessionTime"], number / 60.0)
    page[places["IsOnTrack"]] = 1
    for name, value in values.items():
        struct.pack_into("<f", page, places[name], value)
    for name, six in samples.items():
        struct.pack_into("<6f", page, places[name], *six)
    return places["IsReplayPlaying"], b"\1"


TITLES = {
    "assetto-corsa-dk": assetto_corsa,
    "automobilista-2-memory-dk": automobilista_2,
    "iracing-dk": iracing,
    "le-mans-ultimate-dk": le_mans_ultimate,
    "raceroom-dk": raceroom,
    "rfactor-2-dk": rfactor_2,
    "truck-simulator-dk": truck_simulator,
}


def gathered(page, windows):
    """Return a page's parts, joined: an independent reading of the description."""
    out = b""
    for window in windows:
        if window.name:
            buffers = [struct.unpack_from("<2i", page, 48 + 16 * n) for n in range(4)]
            headers = [struct.unpack_from("<3i4x32s", page, 4096 + 144 * n) for n in range(40)]
            place = next((at for _, at, _, name in headers if name.rstrip(b"\0") == window.name.encode()), None)
            if place is None:
                assert window.optional
                out += b"\xff" * window.size
                continue
            place += max(buffers)[1] + (5 * window.size if window.sampled else 0)
            out += bytes(page[place : place + window.size])
            continue
        block = page[window.number] if window.number >= 0 else 0
        at = window.offset + block * window.stride
        if window.block:
            rows = {int.from_bytes(page[16 + 1888 * n : 20 + 1888 * n], "little"): n for n in range(page[12])}
            scored = [SCORING + 560 + 584 * n for n in range(page[SCORING + 116])]
            own = [row for row in scored if page[row + 196] == 1]
            number = int.from_bytes(page[own[0] : own[0] + 4], "little") if own else -1
            if number not in rows:
                out += bytes(window.size)
                continue
            at += 1888 * rows[number] if window.block == "player" else own[0] - 560
        out += bytes(page[at : at + window.size])
    return out


def page_of(source):
    """Return a title's empty memory, with that of another mapping behind it."""
    return bytearray(source.gather.size + (0 if source.gather.player is None else source.gather.player.size))


def test_every_title_by_shared_memory_is_tested():
    named = {name for name in sources.described_profiles() if sources.by_profile(name).SCHEMES == ("memory",)}
    assert named == set(TITLES)


@pytest.mark.parametrize("name", TITLES)
def test_a_known_motion_is_read_with_its_signs(name):
    source = sources.by_profile(name)
    intake, page = source.intake(*sources.read_as(name)[:1]), page_of(source)
    for number in (1, 2):
        TITLES[name](page, number)
        intake.feed(gathered(page, source.gather.windows), number * 20_000_000)
    motion = intake.newest()
    assert {key: motion[key][0] for key in MOTION} == pytest.approx(MOTION, abs=2e-6)
    assert motion["speed"][0] == pytest.approx(math.sqrt(20.0**2 + 0.5**2 + 0.25**2), rel=1e-2)
    assert intake.accepted == 2


@pytest.mark.parametrize(
    ("name", "suspension", "beside"),
    [
        ("automobilista-2-memory-dk", (0.01, 0.02, 0.03, 0.04), ("suspension_velocity", (-0.1, -0.2, -0.3, -0.4))),
        ("le-mans-ultimate-dk", (0.01, 0.02, 0.03, 0.04), ("slip", (0.1, 0.2, 0.3, 0.4))),
        ("rfactor-2-dk", (0.01, 0.02, 0.03, 0.04), ("slip", (0.1, 0.2, 0.3, 0.4))),
    ],
)
def test_wheels_are_described_for_decode_and_recordings(name, suspension, beside):
    source = sources.by_profile(name)
    TITLES[name](page := page_of(source), 1)
    fields = source.identify(data := gathered(page, source.gather.windows)).decode(data)
    wheels = ("front_left", "front_right", "rear_left", "rear_right")
    assert [fields[f"suspension_{wheel}"] for wheel in wheels] == pytest.approx(suspension)
    assert [fields[f"{beside[0]}_{wheel}"] for wheel in wheels] == pytest.approx(beside[1])


def test_without_a_player_or_without_the_players_vehicle_rfactor_2_is_not_followed():
    source = sources.by_profile("rfactor-2-dk")
    for at, data in ((SCORING + 560 + 584 + 196, b"\0"), (16 + 2 * 1888, b"\5"), (SCORING + 116, b"\0")):
        rfactor_2(page := page_of(source), 1)
        page[at : at + 1] = data
        intake = source.intake()
        intake.feed(gathered(page, source.gather.windows), 1_000_000)
        assert (intake.accepted, intake.others, intake.rejected) == (0, 1, {})


@pytest.mark.parametrize("name", TITLES)
def test_paused_replayed_or_driven_by_another_it_is_counted_and_not_followed(name):
    source = sources.by_profile(name)
    intake, page = source.intake(), page_of(source)
    at, mark = TITLES[name](page, 1)
    page[at : at + len(mark)] = mark
    data = gathered(page, source.gather.windows)
    intake.feed(data, 1_000_000)
    assert (intake.accepted, intake.others, intake.rejected) == (0, 1, {})
    assert not source.gather.fits(data)  # nor is it taken for the game


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ('{ name = "Roll", offset = 0, size = 4 }', "gather[0]: found offset 0 and name Roll"),
        ("{ size = 4 }", "gather[0]: found offset None and name None"),
        ("{ offset = 0, size = 4, optional = true }", "gather[0].optional: found true with an offset"),
        ('{ offset = 0, size = 2 }, { name = "Roll", size = 2 }', "gather[1]: found offset None and name Roll"),
        ('{ name = "Roll", size = 4, index = 0, stride = 4 }', "gather[0].index: found beside a name"),
    ],
)
def test_parts_have_offsets_or_names(part, message):
    text = profile_text("assetto-corsa-dk").replace("{ offset = 0, size = 580 }", part)
    with pytest.raises(ConfigError) as error:
        sources.DescribedSource(parse_profile(text).source.packet)
    assert message in str(error.value)


@pytest.mark.parametrize("name", TITLES)
def test_empty_memory_or_numbers_that_no_car_has_are_not_the_game(name):
    source = sources.by_profile(name)
    assert not any(source.gather.fits(bytes([byte]) * source.table.size) for byte in (0x7F, 0xFF, 0x43))
