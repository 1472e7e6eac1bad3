"""A source that a profile describes: the same motion as a built-in one, in every command; contradictions are refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.profile import parse_profile
from motioncue.protocols import Described, beamng
from motioncue.virtual.car import DRIVES
from motioncue.virtual.simulators import drive_packages

START = 1_000_000_000
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
    return Described(parse_profile(REST + HEAD + packet).source.packet)


SAME = described(BEAMNG)


def both():
    """Return an intake of the built-in source and one of the description."""
    intakes = beamng.intake(beamng.Options()), SAME.intake()
    for intake in intakes:
        intake.begin(0)
    return intakes


# ---- the same bits as a built-in source ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DRIVES, "trouble"])
def test_beamngs_motion_described_gives_the_built_in_sources_bits(name):
    intakes = both()
    time = START
    for package in drive_packages("beamng", name):
        time += round(package.duration * 1e9)
        for intake in intakes:
            intake.feed(package.package, time)
        assert intakes[0].frame().tobytes() == intakes[1].frame().tobytes()
        assert intakes[0].world().tobytes() == intakes[1].world().tobytes()
    built_in, own = intakes
    assert built_in.accepted == own.accepted > 100
    assert built_in.discontinuities == own.discontinuities
    assert built_in.events() == own.events()


NUMBERS = st.one_of(
    st.floats(-20.0, 20.0, width=32),
    st.floats(width=32),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, 1e7, 500.0, 2000.0, -2000.5, 10.0, 10.5, 100.0, 101.0, 2e4, 3e4]),
)


@given(st.lists(st.lists(NUMBERS, min_size=21, max_size=21), max_size=5))
def test_any_numbers_give_the_built_in_sources_bits_and_counts(packets):
    intakes = both()
    for index, numbers in enumerate(packets):
        data = b"BNG1" + np.array(numbers, "<f4").tobytes()
        for intake in intakes:
            intake.feed(data, START + index * 16_000_000)
        assert intakes[0].frame().tobytes() == intakes[1].frame().tobytes()
    assert intakes[0].rejected == intakes[1].rejected
    assert intakes[0].accepted == intakes[1].accepted
