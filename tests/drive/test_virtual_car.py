"""The virtual car: consistent derivatives, a body that leans the right way, drives with the promised content."""

import numpy as np
import pytest
import quaternion as npq
from same_bits import assert_same_bits

from motioncue.drive import car
from motioncue.drive.car import DRIVES, MAX_RATE_HZ, SCRIPTS, STATE_DTYPE, drive
from motioncue.drive.courses import AXES, STILL_S, STOP_S, WAVE_S, Lap, Wave, course, wave
from motioncue.errors import ConfigError
from motioncue.sources.city_car_driving import twin as city_car_driving
from motioncue.sources.morai import twin as morai

RATE_HZ = 1000.0
NAMES = sorted(DRIVES)
OTHERS = [axis for axis in AXES if axis not in ("sway", "yaw")]
CAR_FROM_BODY = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])  # left, up, forward
_UNITS = np.column_stack([np.zeros(3), np.eye(3)])[:, None, :]  # the axes as pure quaternions


@pytest.fixture(scope="module")
def drives():
    """Every drive, oversampled."""
    return {name: drive(name, RATE_HZ) for name in NAMES}


def difference(x):
    """Return the central difference of sixth order of `x` over time, without three rows at each end."""
    n = len(x) - 6
    terms = [weight * (x[3 + k : 3 + k + n] - x[3 - k : 3 - k + n]) for k, weight in ((1, 45), (2, -9), (3, 1))]
    return sum(terms) * RATE_HZ / 60.0


def product(p, q):
    """Return the Hamilton product of quaternions w, x, y, z."""
    w = p[:, 0] * q[:, 0] - np.sum(p[:, 1:] * q[:, 1:], axis=1)
    v = p[:, :1] * q[:, 1:] + q[:, :1] * p[:, 1:] + np.cross(p[:, 1:], q[:, 1:])
    return np.column_stack([w, v])


@pytest.mark.parametrize(
    ("matrix", "turn"),
    [
        (city_car_driving.WORLD_FROM_NED, city_car_driving.WORLD_TURN),
        (CAR_FROM_BODY.T, city_car_driving.CAR_TURN),
        (morai.ENU_FROM_NED, morai.ENU_TURN),
        (morai.FLU_FROM_FRD, morai.FLU_TURN),
    ],
)
def test_axes_written_as_a_quaternion_are_those_of_the_matrix(matrix, turn):
    assert npq.as_rotation_matrix(npq.quaternion(*turn)) == pytest.approx(matrix, abs=1e-15)


def test_rotations_are_those_of_numpy_quaternion(rng):
    states = np.zeros(100, STATE_DTYPE)
    other, states["orientation"] = (q / np.linalg.norm(q, axis=1)[:, None] for q in rng.normal(size=(2, 100, 4)))
    states["velocity"] = rng.normal(size=(100, 3))
    q = npq.as_quat_array(states["orientation"])
    expected = npq.as_float_array(npq.as_quat_array(other) * q)
    assert car.product(other, states["orientation"]) == pytest.approx(expected, abs=1e-15)
    expected = npq.as_vector_part(q.conj() * npq.from_vector_part(states["velocity"]) * q)
    assert car.body_axes(states, "velocity") == pytest.approx(expected, abs=1e-14)


def to_body(states, vectors):
    """Return world `vectors` in body axes: conj(q) v q."""
    q = states["orientation"]
    conjugate = q * [1.0, -1.0, -1.0, -1.0]
    pure = np.column_stack([np.zeros(len(q)), vectors])
    return product(product(conjugate, pure), q)[:, 1:]


def angles(states):
    """Return roll, pitch, yaw (z-y-x) [rad], read from where the body axes point, yaw unwrapped."""
    axes = [product(product(states["orientation"], e), states["orientation"] * [1.0, -1.0, -1.0, -1.0]) for e in _UNITS]
    forward, right, down = (axis[:, 1:] for axis in axes)
    pitch = -np.arcsin(forward[:, 2])
    return np.arctan2(right[:, 2], down[:, 2]), pitch, np.unwrap(np.arctan2(forward[:, 1], forward[:, 0]))


def speed(states):
    return np.hypot(states["velocity"][:, 0], states["velocity"][:, 1])


@pytest.mark.grid
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("integral", "derivative"),
    [("position", "velocity"), ("velocity", "acceleration"), ("angular_velocity", "angular_acceleration")],
)
def test_vectors_are_derivatives_of_each_other(drives, name, integral, derivative):
    # What is left is the difference's own error where a hump begins: it falls with the fourth power of the period.
    states = drives[name]
    np.testing.assert_allclose(difference(states[integral]), states[derivative][3:-3], rtol=0, atol=2e-7)


@pytest.mark.parametrize("name", NAMES)
def test_angular_velocity_is_twice_the_quaternion_derivative_times_its_conjugate(drives, name):
    states = drives[name]
    q = states["orientation"]
    twice = 2.0 * product(difference(q), q[3:-3] * [1.0, -1.0, -1.0, -1.0])
    np.testing.assert_allclose(twice[:, 0], 0.0, atol=1e-10)
    np.testing.assert_allclose(twice[:, 1:], states["angular_velocity"][3:-3], rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_quaternion_is_unit_and_continuous(drives, name):
    q = drives[name]["orientation"]
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, rtol=0, atol=1e-14)
    assert np.abs(np.diff(q, axis=0)).max() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_quaternion_is_the_rotation_of_its_angles(drives, name):
    states = drives[name][::50]
    roll, pitch, yaw = angles(states)
    q = np.array([[1.0, 0.0, 0.0, 0.0]])
    for axis, angle in ((3, yaw), (2, pitch), (1, roll)):
        turn = np.zeros((len(angle), 4))
        turn[:, 0], turn[:, axis] = np.cos(0.5 * angle), np.sin(0.5 * angle)
        q = product(q, turn)
    np.testing.assert_allclose(q, states["orientation"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_heading_follows_the_path_and_every_turn_is_driven(drives, name):
    states = drives[name]
    yaw = angles(states)[2]
    course = states["velocity"][:, :2]
    along = np.column_stack([np.cos(yaw), np.sin(yaw)]) * speed(states)[:, None]
    np.testing.assert_allclose(course, along, rtol=0, atol=1e-10)
    assert yaw[-1] == pytest.approx(sum(turn.size for turn in SCRIPTS[name].turns), abs=1e-10)


def test_straight_drive_ends_where_its_legs_do(drives):
    # A symmetric change of speed covers its mean speed times its time.
    expected, last_speed, last_end = 0.0, 0.0, 0.0
    for leg in SCRIPTS["brake"].legs:
        expected += last_speed * (leg.start - last_end) + 0.5 * (last_speed + leg.speed) * (leg.end - leg.start)
        last_speed, last_end = leg.speed, leg.end
    np.testing.assert_allclose(drives["brake"]["position"][-1], [expected, 0.0, -0.5], rtol=0, atol=1e-9)


def test_still_is_exactly_at_rest():
    states = drive("still")
    assert len(states) == 3600
    for name in ("velocity", "acceleration", "angular_velocity", "angular_acceleration"):
        assert not states[name].any()
    assert (states["position"] == states["position"][0]).all()
    assert (states["orientation"] == [1.0, 0.0, 0.0, 0.0]).all()
    assert (states["engine_speed"] == states["engine_speed"][0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_drive_starts_and_ends_at_rest_and_stays_parked(name):
    parked = SCRIPTS[name].duration
    states = drive(name, 100.0, parked + 30.0)
    assert len(states) == round((parked + 30.0) * 100.0)
    for state, tolerance in ((states[0], 0.0), (states[round(parked * 100.0)], 1e-4), (states[-1], 1e-12)):
        for field in ("velocity", "acceleration", "angular_velocity", "angular_acceleration"):
            assert np.abs(state[field]).max() <= tolerance
    assert states["engine_speed"][0] == states["engine_speed"][-1]
    np.testing.assert_allclose(states["position"][-1], states["position"][round(parked * 100.0)], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_drive_stays_within_what_a_car_does(drives, name):
    states = drives[name]
    surge, sway, _ = to_body(states, states["acceleration"]).T
    assert surge.max() < 4.0
    assert surge.min() > -8.0
    assert np.abs(sway).max() < 5.0
    assert speed(states).max() < 35.0
    assert 700.0 < states["engine_speed"].min() <= states["engine_speed"].max() < 6500.0


@pytest.mark.parametrize("name", NAMES)
def test_script_is_in_order(name):
    script = SCRIPTS[name]
    ends = [0.0]
    for leg in script.legs:
        assert ends[-1] <= leg.start
        assert 0.0 < 2.0 * leg.ramp <= leg.end - leg.start
        ends.append(leg.end)
    assert ends[-1] <= script.duration
    assert not script.legs or script.legs[-1].speed == 0.0
    for feature in (*script.turns, *script.slopes, *script.banks):
        assert feature.start < feature.end <= script.duration
        assert 0.0 < feature.share <= 0.5
    assert [shift.time for shift in script.shifts] == sorted(shift.time for shift in script.shifts)


def test_tour_has_everything(drives):
    states = drives["tour"]
    surge, sway, _ = to_body(states, states["acceleration"]).T
    roll, pitch, _ = np.degrees(angles(states))
    assert surge.max() > 2.5
    assert surge.min() < -5.0
    assert sway.max() > 2.0
    assert sway.min() < -2.0
    on_hill = (states["time"] > 37.0) & (states["time"] < 47.0)
    assert pitch[on_hill].max() > 4.0
    assert pitch[on_hill].min() < -4.0
    assert np.ptp(states["position"][on_hill, 2]) > 3.0
    banked = (states["time"] > 48.0) & (states["time"] < 51.0)
    assert roll[banked].max() > 4.0  # right side down although the body leans to the left


def test_humps_are_felt_where_they_are(drives):
    states = drives["tour"]
    up = -states["acceleration"][:, 2]
    for top in SCRIPTS["tour"].humps:
        near = np.abs(states["time"] - top) < 0.5
        assert up[near].max() > 1.5
        assert up[near].min() < -1.5


def test_shifts_drop_the_engine_speed_while_the_car_does_not_slow(drives):
    states = drives["tour"]
    for time in (5.4, 8.7):
        before, after = states[round((time - 0.25) * RATE_HZ)], states[round((time + 0.25) * RATE_HZ)]
        assert after["engine_speed"] < 0.75 * before["engine_speed"]
        assert after["velocity"][0] > before["velocity"][0]


def test_turns_go_both_ways_beyond_thirty_degrees_on_a_flat_road(drives):
    states = drives["turns"]
    yaw = np.degrees(angles(states)[2])
    assert yaw.max() > 180.0  # so that a heading has to wrap
    assert yaw.min() < -30.0
    np.testing.assert_array_equal(states["position"][:, 2], states["position"][0, 2])


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_corner_pushes_inward_and_leans_outward(drives, side):
    states = drives["turns"]
    _, sway, down = to_body(states, states["acceleration"]).T
    roll, _, _ = angles(states)
    yaw_rate = states["angular_velocity"][:, 2]
    corner = side * yaw_rate > 0.3
    assert corner.any()
    level = sway * np.cos(roll) - down * np.sin(roll)  # body-lateral, the lean taken out
    np.testing.assert_allclose(level[corner], (speed(states) * yaw_rate)[corner], rtol=1e-5)
    np.testing.assert_allclose(sway[corner], (speed(states) * yaw_rate)[corner], rtol=2e-3)
    assert (side * roll[corner]).max() < 0.0  # right turn: left side down


def test_nose_dives_when_braking_and_lifts_when_accelerating(drives):
    states = drives["brake"]
    pitch = angles(states)[1]
    surge = states["acceleration"][:, 0]
    # Held for longer than the suspension needs: only the held stretches, a second after their onset.
    held = np.convolve(np.abs(np.gradient(surge)) > 1e-9, np.ones(1001))[: len(surge)] == 0
    assert (pitch[held & (surge < -5.0)] < 0.0).all()
    assert (pitch[held & (surge > 2.0)] > 0.0).all()
    assert (held & (surge < -5.0)).any()
    assert (held & (surge > 2.0)).any()


@pytest.mark.search
@pytest.mark.parametrize(("rate_hz", "other_hz", "stride"), [(60.0, 120.0, 2), (50.0, MAX_RATE_HZ, 40)])
def test_rates_agree_at_common_times(rate_hz, other_hz, stride):
    few, many = drive("tour", rate_hz), drive("tour", other_hz)[::stride]
    np.testing.assert_array_equal(few["time"], np.arange(len(few)) / rate_hz)
    for field in STATE_DTYPE.names:
        np.testing.assert_allclose(few[field], many[field], rtol=1e-13, atol=1e-10)


def test_duration_cuts_or_extends_and_changes_nothing_else():
    whole = drive("brake", 60.0)
    assert len(whole) == round(SCRIPTS["brake"].duration * 60.0)
    for field in STATE_DTYPE.names:
        np.testing.assert_allclose(drive("brake", 60.0, 10.0)[field], whole[:600][field], rtol=1e-13, atol=1e-10)
        np.testing.assert_allclose(drive("brake", 60.0, 40.0)[: len(whole)][field], whole[field], 1e-13, 1e-10)


def test_drive_is_deterministic():
    assert_same_bits(drive("tour"), drive("tour"))


def test_unknown_drive_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"drive: found 'moon', allowed are .*tour"):
        drive("moon")


@pytest.mark.parametrize("axis", ["sway", "yaw", *(pytest.param(axis, marks=pytest.mark.search) for axis in OTHERS)])
@pytest.mark.check
def test_a_car_stops_on_its_way_for_a_wave_along_or_about_its_own_axis_and_drives_on(axis):
    # In a bend at 10 m/s, heading anywhere, and leaning.
    lap = Lap(waves=(Wave(axis, 14.0, 2.0),))
    states, alone = course("turns", RATE_HZ, lap=lap).states, course("turns", RATE_HZ).states
    later = STOP_S + 2.0 + WAVE_S + STILL_S  # it loses half of each of two times STOP_S, and stands
    assert len(states) == len(alone) + later * RATE_HZ
    moments = states["time"]
    before, behind = moments < 14.0, moments > 14.0 + later + STOP_S
    for name in STATE_DTYPE.names:
        np.testing.assert_allclose(states[name][before], alone[name][: before.sum()], rtol=1e-14, atol=0)
    for name in set(STATE_DTYPE.names) - {"time"}:
        np.testing.assert_allclose(states[name][behind], alone[name][-behind.sum() :], rtol=0, atol=1e-6)
    for integral, derivative in (
        ("position", "velocity"),
        ("velocity", "acceleration"),
        ("angular_velocity", "angular_acceleration"),
    ):
        np.testing.assert_allclose(difference(states[integral]), states[derivative][3:-3], rtol=0, atol=2e-3)
    twice = 2.0 * product(difference(states["orientation"]), conjugate(states[3:-3]))
    np.testing.assert_allclose(twice[:, 1:], states["angular_velocity"][3:-3], rtol=0, atol=1e-5)
    stand = states[(moments >= 14.0 + STOP_S) & (moments < 14.0 + STOP_S + 2.0)]
    for name in ("velocity", "acceleration", "angular_velocity", "angular_acceleration"):
        np.testing.assert_allclose(stand[name], 0.0, atol=1e-9)
    moved = states[(moments >= 14.0 + STOP_S + 2.0) & (moments < 14.0 + STOP_S + 2.0 + WAVE_S)]
    turns = axis in AXES[3:]
    felt = to_body(moved, moved["angular_velocity" if turns else "acceleration"])
    assert np.abs(np.delete(felt, AXES.index(axis) % 3, axis=1)).max() < 1e-9
    flat = wave(axis, RATE_HZ, WAVE_S + STILL_S)[: len(moved)]  # the same as on a flat road to the north
    expected = to_body(flat, flat["angular_velocity" if turns else "acceleration"])
    np.testing.assert_allclose(felt, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rate_hz", [0.0, -60.0, float("nan"), float("inf"), 2001.0])
def test_bad_rate_is_refused(rate_hz):
    with pytest.raises(ConfigError, match=r"rate_hz: found .*, allowed is above 0 and at most 2000"):
        drive("still", rate_hz)


@pytest.mark.parametrize("duration_s", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_duration_is_refused(duration_s):
    with pytest.raises(ConfigError, match=r"duration_s: found .*, allowed is finite and above 0"):
        drive("still", 60.0, duration_s)


@pytest.mark.parametrize("axis", AXES)
def test_a_wave_moves_one_axis_smoothly_within_its_size_and_ends_at_rest(axis):
    rate = 200.0
    states = wave(axis, rate, 25.0)
    turns = axis in AXES[3:]
    pairs = [("position", "velocity"), ("velocity", "acceleration"), ("angular_velocity", "angular_acceleration")]
    for name, slope in pairs:
        change = np.gradient(states[name], 1.0 / rate, axis=0)[1:-1]
        assert change == pytest.approx(states[slope][1:-1], abs=2e-3)  # of differences over 10 ms
    rest = drive("still", rate, 25.0)
    moved = np.abs(states["acceleration"] - rest["acceleration"]), np.abs(states["angular_velocity"])
    other = np.delete(moved[turns], AXES.index(axis) % 3, axis=1)
    assert moved[not turns].max() == pytest.approx(0.0, abs=1e-12)
    assert other.max() == pytest.approx(0.0, abs=1e-12)
    angle = 2.0 * np.arcsin(np.linalg.norm(product(conjugate(rest), states["orientation"])[:, 1:], axis=1))
    assert (np.degrees(angle.max()), moved[0].max()) == pytest.approx((4.0, 0.0) if turns else (0.0, 1.0), abs=0.16)
    when = states["time"][moved[turns].max(axis=1) > 1e-9]
    assert when.min() == pytest.approx(25.0 - 13.0, abs=0.02)
    assert when.max() == pytest.approx(25.0 - 3.0, abs=0.02)


def conjugate(states):
    return states["orientation"] * [1.0, -1.0, -1.0, -1.0]
