"""A controller's own loop raises and parks a platform: `bind`, `relay`, `Rigs` and the table for C, all alike."""

import ctypes

import numpy as np
import pytest
from test_platforms import DT, assert_within, profile_for

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.embed import _capi
from motioncue.platforms import build as platforms

PRESET = "hexapod-dim"
TICKS = round(1.3 / DT)  # of each part of a run; the platform rises in one second
AT_REST = b"BNG1" + bytes(84)  # BeamNG's packet of a car at rest
RUN = np.repeat([True, False, True], TICKS)


def bound(profile):
    stepper = motioncue.bind(profile, actuation=np.zeros(1, ACTUATION_DTYPE))
    for parked in RUN:
        stepper.parked = bool(parked)
        assert stepper.step()
        yield stepper.actuation["actuators"][0, :6]


def relayed(profile):
    relay = motioncue.relay(profile, clock=FakeClock(10**9))
    for parked in RUN:
        relay.parked = bool(parked)
        assert relay.step(AT_REST)
        yield np.frombuffer(relay.packets["motion"], "<f8")


def among_others(profile):
    """The rig in the middle of others that stay up."""
    rigs = motioncue.Rigs(profile, 9)
    motion, cue, actuation = np.zeros(9, MOTION_DTYPE), np.zeros(9, CUE_DTYPE), np.zeros(9, ACTUATION_DTYPE)
    neutral = platforms.build(profile.platform).neutral
    for parked in RUN:
        rigs.parked[4] = parked
        rigs.step(motion, cue, actuation)
        np.testing.assert_array_equal(actuation["actuators"][[3, 5], :6], [neutral, neutral])
        yield actuation["actuators"][4, :6]


class Table(ctypes.Structure):
    """The table of motioncue.h."""

    _fields_ = (
        ("abi", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        (
            "create",
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_char_p, ctypes.c_size_t),
        ),
        ("period_ns", ctypes.c_void_p),
        ("step", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
        ("reset", ctypes.c_void_p),
        ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("retune", ctypes.c_void_p),
        ("actuate", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
        ("park", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)),
    )


def in_c(profile):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = Table.from_address(pointer(_capi, b"motioncue._capi"))
    motion, cue, actuation = np.zeros(1, MOTION_DTYPE), np.zeros(1, CUE_DTYPE), np.zeros(1, ACTUATION_DTYPE)
    error = ctypes.create_string_buffer(500)
    stepper = table.create(str(profile).encode(), 0.0, error, 500)
    assert stepper, error.value
    for parked in RUN:
        table.park(stepper, int(parked))
        assert table.step(stepper, motion.ctypes.data, cue.ctypes.data) == 1
        table.actuate(stepper, cue.ctypes.data, actuation.ctypes.data)
        yield actuation["actuators"][0, :6]
    table.destroy(stepper)


@pytest.fixture(scope="module")
def expected():
    """What `bind` gives, checked by itself: from the lowest position to neutral and back, within all bounds."""
    profile = profile_for(PRESET, "platform.rise_s=1")
    built = platforms.build(profile.platform)
    found = np.array([row.copy() for row in bound(profile)])
    low = [bounds[0] for bounds in built.bounds]
    np.testing.assert_allclose(found[:TICKS], [low] * TICKS, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[2 * TICKS - 1], built.neutral, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[-1], low, rtol=0, atol=1e-12)
    halfway = np.abs(found[TICKS:, 0] - (low[0] + built.neutral[0]) / 2).argmin()
    assert halfway * DT == pytest.approx(0.5, abs=0.02)
    assert_within(found, built)
    return found


@pytest.mark.parametrize("way", [relayed, among_others])
def test_a_platform_rises_and_parks_in_a_loop_of_ones_own(way, expected):
    profile = profile_for(PRESET, "platform.rise_s=1")
    np.testing.assert_array_equal([row.copy() for row in way(profile)], expected)


def test_a_platform_rises_and_parks_from_c(tmp_path, expected):
    fields = ", ".join(f'{{ offset = {8 * k}, type = "f8", channel = "leg_{k + 1}" }}' for k in range(6))
    path = tmp_path / "rig.toml"
    path.write_text(
        f"""
        [source]
        system = "city-car-driving"
        endpoint = "tcp://127.0.0.1:9998"
        [cueing]
        algorithm = "classical"
        preset = "simona"
        [platform]
        preset = "{PRESET}"
        rise_s = 1
        [output]
        motion = "udp://127.0.0.1:9999"
        packet = {{ size = 48, fields = [{fields}] }}
        """,
        encoding="utf-8",
    )
    np.testing.assert_array_equal([row.copy() for row in in_c(path)], expected)


def test_rigs_that_park_one_after_the_other_give_the_same():
    """Each rig of a block parks at another tick."""
    profile = profile_for(PRESET, "platform.rise_s=1")
    rigs = motioncue.Rigs(profile, 8)
    motion, cue, actuation = np.zeros(8, MOTION_DTYPE), np.zeros(8, CUE_DTYPE), np.zeros(8, ACTUATION_DTYPE)
    found = np.zeros((900, 8, 6))
    for tick in range(900):
        rigs.parked[:] = np.arange(8) * 20 + 10 <= tick
        rigs.step(motion, cue, actuation)
        found[tick] = actuation["actuators"][:, :6]
    for i in range(1, 8):
        np.testing.assert_array_equal(found[20 * i :, i], found[: 900 - 20 * i, 0])
    assert np.ptp(found[:, 0]) > 0.1


def test_a_relays_packet_says_whether_it_is_parked():
    """The words of where it is parked, of the way up, of the whole cue and of the way down."""
    state = "{offset=48, type='u1', offline=3, engaging=4, running=6, holding=9, parking=5, fault=9}"
    profile = profile_for(PRESET, "output.packet.size=49", f"output.packet.state={state}", "platform.rise_s=1")
    relay = motioncue.relay(profile, clock=FakeClock(10**9))
    said = []
    for parked in RUN:
        relay.parked = bool(parked)
        assert relay.step(AT_REST)
        said.append(int(relay.packets["motion"][48]))
    changes = np.flatnonzero(np.diff(said)) + 1
    assert [said[0], *(said[change] for change in changes)] == [3, 4, 6, 5, 3]
    ways = np.diff(changes)[[0, 2]] * DT
    assert ways == pytest.approx([1.0, 1.0], abs=0.1)
