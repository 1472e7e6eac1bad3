"""A virtual vehicle of Vehicle Physics Pro: its packets obey mechanics, and give the motion of the car."""

import math

import numpy as np
import pytest
from scipy.signal import lfilter
from test_vehicle_physics_pro import intake
from test_virtual_peers import SINGLE, SOURCES, truth

from motioncue.drive.car import DRIVES, drive
from motioncue.drive.courses import EVENTS, REFUSALS
from motioncue.errors import ConfigError
from motioncue.sources.vehicle_physics_pro import packets as vpp
from motioncue.sources.vehicle_physics_pro.twin import driven, encode_states
from motioncue.wire.packet import Derivation


def motions_of(packets, rate_hz, taking):
    """Return the motion of packets that come at that rate."""
    rows = []
    for number, row in enumerate(packets):
        taking.feed(row.tobytes(), round(number * 1e9 / rate_hz))
        rows.append(taking.newest())
    assert taking.rejected == {}
    return np.concatenate(rows)


@pytest.mark.parametrize("sdk", ["old", "newer"])
@pytest.mark.parametrize("name", sorted(DRIVES))
@pytest.mark.check
def test_a_driven_car_arrives_as_the_motion_it_makes(name, sdk):
    states = drive(name, 60.0)
    taking = intake()
    motion = motions_of(encode_states(states, sdk), 60.0, taking)
    assert taking.discontinuities == {}
    for channel, expected in truth(states).items():
        size = np.linalg.norm(states[SOURCES[channel]], axis=1).max() if channel in SOURCES else 1.0
        tolerance = 8 * SINGLE * max(1.0, size)
        error = motion[channel] - expected
        if channel == "yaw":
            error = (error + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(error, 0.0, rtol=0, atol=tolerance, err_msg=channel)
    np.testing.assert_allclose(
        motion["engine_speed"], states["engine_speed"], rtol=0, atol=0.5e-3 + 1e-9
    )  # half of its resolution
    np.testing.assert_allclose(motion["frame_time"], states["time"], rtol=0, atol=1e-9)


def rotated(q, v):
    """Return vectors turned by quaternions x, y, z, w: Rodrigues' formula, the same in axes of either hand."""
    u, w = q[:, :3], q[:, 3:]
    return v + 2 * np.cross(u, np.cross(u, v) + w * v)


def test_the_packets_of_a_drive_are_those_of_a_rigid_body_in_unitys_axes():
    """Only the packets and the laws of motion: nothing here knows which axis is which."""
    rate = 1000.0
    p = encode_states(drive("tour", rate, 30.0)[20_000:])
    q = p["attitude"].astype(np.float64)
    velocity = rotated(q, p["velocity"].astype(np.float64))
    acceleration = rotated(q, p["acceleration"].astype(np.float64))
    derived = np.gradient(velocity, 1 / rate, axis=0)
    np.testing.assert_allclose(derived[1:-1], acceleration[1:-1], rtol=0, atol=0.02)
    moved = np.cumsum(velocity, axis=0) / rate
    np.testing.assert_allclose(p["position"] - p["position"][0], moved - moved[0], rtol=0, atol=0.1)
    # q' = q * omega / 2 with omega in the car's axes.
    omega = p["angular_velocity"].astype(np.float64)
    spin = 0.5 * np.column_stack(
        [q[:, 3:] * omega + np.cross(q[:, :3], omega), -np.einsum("ij,ij->i", q[:, :3], omega)]
    )
    np.testing.assert_allclose(np.gradient(q, 1 / rate, axis=0)[1:-1], spin[1:-1], rtol=0, atol=1e-3)
    alpha = np.gradient(omega, 1 / rate, axis=0)
    np.testing.assert_allclose(alpha[1:-1], p["angular_acceleration"][1:-1], rtol=0, atol=0.02)
    assert np.ptp(omega, axis=0).min() > 0.1
    assert np.ptp(acceleration, axis=0).min() > 1.0


@pytest.mark.check
def test_an_acceleration_from_velocity_follows_the_native_one():
    packets = encode_states(drive("tour", 200.0))
    native = motions_of(packets, 200.0, intake())
    derived = motions_of(packets, 200.0, intake(derivation=Derivation("from_velocity", 0.04)))
    share = 1 - math.exp(-0.005 / 0.04)  # share of the stated first-order lag in one step
    for channel in ("surge", "sway", "heave"):
        lagged = lfilter([share], [1, share - 1], native[channel])
        np.testing.assert_allclose(derived[channel], lagged, rtol=0, atol=0.5, err_msg=channel)
        assert np.ptp(lagged) > 5.0


def test_places_are_turned_as_velocities_are():
    turns = {
        name: [(take.element, take.index, take.scale) for take in vpp.MOTION if take.telemetry == name]
        for name in ("position", "velocity", "acceleration")
    }
    assert turns["position"] == turns["velocity"] == turns["acceleration"] == [(0, 2, 1.0), (1, 0, 1.0), (2, 1, -1.0)]


def test_a_drive_full_of_trouble_is_seen_for_what_it_is():
    taking = intake()
    now, seen = 0.0, []
    for frame in driven("trouble", 60.0):
        now += frame.duration
        before = dict(taking.discontinuities)
        taking.feed(frame.package, round(now * 1e9))
        for name, count in taking.discontinuities.items():
            seen += [(now, name)] * (count - before.get(name, 0))
    # Its stamps add up: a wrong frame time moves all that follow, where others take it back with the next frame.
    expected = [name if time != 37.5 else "frame_time_jump" for time, name in EVENTS]
    assert [name for _, name in seen] == expected
    np.testing.assert_allclose([time for time, _ in seen], [time for time, _ in EVENTS], rtol=0, atol=0.1)
    # The first packet of the other session is older than the newest: only the second one shows that it is no late one.
    assert taking.rejected == {**{reason: 1 for _, reason in REFUSALS}, "late": 1}


def test_the_bus_of_a_driven_car_says_what_it_does():
    states = drive("brake", 10.0)
    buses = [vpp.bus_of(row.tobytes()) for row in encode_states(states, "old")]
    assert {bus.sdk for bus in buses} == {"old"}
    gears = [bus.get("Vehicle", "GearboxGear") for bus in buses]
    assert set(gears) == {0, 1, 2, 3, 4, 5}
    assert gears[0] == gears[-1] == 0
    assert {bus.get("Vehicle", "GearboxMode") for bus in buses} == {"D"}
    launch, braking = buses[35], buses[205]  # the script's first leg, and its braking
    assert launch.get("Input", "Throttle") > 0.3
    assert launch.get("Input", "Brake") == 0.0
    assert braking.get("Input", "Brake") > 0.3
    assert braking.get("Input", "Throttle") == 0.0


def test_an_unknown_drive_is_refused():
    with pytest.raises(ConfigError, match="drive"):
        list(driven("nowhere"))
