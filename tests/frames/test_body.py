"""The body frame: against two independent rotations, against hand-written physical cases, and in any heading."""

import numpy as np
import pytest
import quaternion as npq
from reference.rigid_body import GRAVITY, Axes, by_matrices, by_quaternions
from same_bits import assert_same_bits

import motioncue
from motioncue.core.channels import MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.core.table import UNWATCHED
from motioncue.core.threads import Reason
from motioncue.drive.car import drive
from motioncue.errors import ConfigError
from motioncue.frames.convert import BodyStage, body_motion
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving import packets as ccd
from motioncue.sources.city_car_driving.twin import encode_states

ANGLES = ("roll", "pitch", "yaw")
CHANNELS = ("surge", "sway", "heave", *ANGLES, "roll_rate", "pitch_rate", "yaw_rate", "speed")
TOLERANCE = 1e-12


def unit(rng, n, size):
    v = rng.normal(size=(n, size))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def right_angle(rng):
    """Return two random unit vectors at a right angle."""
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q[:, 0], q[:, 1]


def state(rng, n):
    """Return random orientation, velocity, acceleration, angular velocity, angular acceleration."""
    return (unit(rng, n, 4), *(rng.normal(size=(n, 3)) * scale for scale in (30, 10, 2, 20)))


def stage_of(axes):
    return BodyStage(
        world_north=axes.north,
        world_up=axes.up,
        car_forward=axes.car_forward,
        car_up=axes.car_up,
        head_m=axes.head,
        rotation="world_to_car" if axes.conjugated else "car_to_world",
        rates="car" if axes.rates_in_car else "world",
        gravity="included" if axes.gravity_included else "excluded",
    )


def telemetry_of(q, velocity, a, omega, alpha):
    telemetry = np.zeros(len(q), TELEMETRY_DTYPE)
    telemetry["orientation"], telemetry["velocity"], telemetry["acceleration"] = q, velocity, a
    telemetry["angular_velocity"], telemetry["angular_acceleration"] = omega, alpha
    return telemetry


def motion_of(arguments, axes):
    """Return the kernel's motion for a state."""
    motion = np.zeros(len(arguments[0]), MOTION_DTYPE)
    assert not stage_of(axes).process(telemetry_of(*arguments), motion).any()
    return motion


def wrapped(angle):
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi


def assert_same(motion, expected, tolerance=TOLERANCE):
    """Compare channel by channel: angles absolutely, everything else relative to the size of its vector."""
    linear = np.sqrt(sum(expected[name] ** 2 for name in ("surge", "sway", "heave")))
    spin = np.sqrt(sum(expected[name] ** 2 for name in ("roll_rate", "pitch_rate", "yaw_rate")))
    for name in CHANNELS:
        difference = motion[name] - expected[name]
        if name in ANGLES:
            difference, size = wrapped(difference), 1.0
        else:
            size = spin if name.endswith("_rate") else expected["speed"] if name == "speed" else linear
        assert np.all(np.abs(difference) <= tolerance * np.maximum(size, 1.0)), name


ORACLES = pytest.mark.parametrize("oracle", [by_quaternions, by_matrices])
OPTIONS = {
    "plain": {},
    "head": {"head": (0.4, -0.35, 1.1)},
    "conjugated": {"conjugated": True},
    "rates in car": {"rates_in_car": True, "head": (-1.0, 0.2, 0.6)},
    "gravity included": {"gravity_included": True},
    "everything": {"head": (2.0, 0.5, 3.0), "conjugated": True, "rates_in_car": True, "gravity_included": True},
}


@ORACLES
@pytest.mark.parametrize("option", OPTIONS)
def test_thousands_of_random_attitudes_agree_with_the_oracle(rng, oracle, option):
    arguments = state(rng, 5000)
    axes = Axes(**OPTIONS[option])
    assert_same(motion_of(arguments, axes), oracle(*arguments, axes))


@ORACLES
def test_any_pair_of_announced_axes_in_any_world_agrees_with_the_oracle(rng, oracle):
    for _ in range(200):
        north, up = right_angle(rng)
        forward, car_up = right_angle(rng)
        axes = Axes(north, up, forward, car_up, rng.normal(size=3), *(rng.random(3) < 0.5).tolist())
        arguments = state(rng, 20)
        assert_same(motion_of(arguments, axes), oracle(*arguments, axes))


@ORACLES
def test_a_quaternion_of_any_accepted_length_is_normalized(rng, oracle):
    q, *rest = state(rng, 2000)
    length = rng.uniform(0.9001, 1.0999, (2000, 1))
    assert_same(motion_of((q * length, *rest), Axes()), oracle(q, *rest, Axes()))


def test_the_opposite_quaternion_is_the_same_attitude(rng):
    q, *rest = state(rng, 1000)
    assert_same(motion_of((-q, *rest), Axes()), motion_of((q, *rest), Axes()))


@pytest.mark.grid
@ORACLES
@pytest.mark.filterwarnings("ignore:Gimbal lock")
@pytest.mark.parametrize("off", [1e-3, 1e-5, 1e-7, 0.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_forces_and_rates_are_right_beside_straight_up_and_down(rng, oracle, off, side):
    n = 500
    heading = rng.uniform(-np.pi, np.pi, n)
    roll = rng.uniform(-np.pi, np.pi, n)
    q = attitude(heading, np.full(n, side * (np.pi / 2 - off)), roll)
    arguments = (q, *state(rng, n)[1:])
    motion, right = motion_of(arguments, Axes()), oracle(*arguments, Axes())
    for name in CHANNELS:
        assert np.isfinite(motion[name]).all()
        if name not in ANGLES:
            assert motion[name] == pytest.approx(right[name], rel=1e-12, abs=1e-10)
    assert motion["pitch"] == pytest.approx(side * (np.pi / 2 - off), abs=1e-12)


def attitude(heading, pitch, roll):
    """Return car-to-world quaternions, for Axes(): turn about down, then about right, then about forward."""

    def about(axis, angle):
        half = 0.5 * np.asarray(angle, float)[..., None]
        return npq.as_quat_array(np.concatenate([np.cos(half), np.sin(half) * axis], axis=-1))

    # Heading zero: car X (left) to west, Y up to up, Z forward to north = -Z; half a turn about the vertical.
    level = npq.quaternion(0.0, 0.0, 1.0, 0.0)
    down, right, forward = np.array([0.0, -1.0, 0.0]), np.array([-1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    q = about(down, heading) * level * about(right, pitch) * about(forward, roll)
    return npq.as_float_array(q)


def test_angles_are_the_ones_that_built_the_attitude(rng):
    n = 3000
    heading, roll = rng.uniform(-np.pi, np.pi, (2, n))
    pitch = rng.uniform(-1.5, 1.5, n)
    motion = motion_of((attitude(heading, pitch, roll), *np.zeros((4, n, 3))), Axes())
    for name, right in (("yaw", heading), ("pitch", pitch), ("roll", roll)):
        assert np.abs(wrapped(motion[name] - right)).max() < 1e-12


# ---- physical cases, written out by hand -----------------------------------------------------------------------------
#
# The world of City Car Driving: right-handed, Y up; heading zero is -Z, so X is east.  For each pair of announced axes,
# the quaternion (w, x, y, z) of a car that stands level and heads north:
#   forward Z, up Y (so X is left): half a turn about Y;
#   forward -Z, up Y: the car's axes are the world's;
#   forward X, up Z (so Y is left): X to -Z, Y to -X, Z to Y.
# All other values are in world axes, so they are the same for every pair.

NORTHBOUND = {
    ((0, 0, 1), (0, 1, 0)): (0, 0, 1, 0),
    ((0, 0, -1), (0, 1, 0)): (1, 0, 0, 0),
    ((1, 0, 0), (0, 0, 1)): (0.5, -0.5, 0.5, 0.5),
}
PAIRS = pytest.mark.parametrize("pair", NORTHBOUND, ids=["Z ahead", "-Z ahead", "X ahead"])

NORTH, EAST, UP = np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
STILL = np.zeros(3)


def car(pair, turns=(), velocity=STILL, acceleration=STILL, spin=STILL):
    """Return the motion of a northbound car after `turns`, each (world axis, angle), right-handed."""
    q = npq.as_quat_array(np.array(NORTHBOUND[pair], float))
    for axis, angle in turns:
        q = npq.from_rotation_vector(np.asarray(axis) * angle) * q
    return body_motion(np.array([q]), [velocity], [acceleration], [spin], car_forward=pair[0], car_up=pair[1])[0]


@PAIRS
def test_a_level_northbound_car_at_rest_reads_zero_everywhere(pair):
    motion = car(pair)
    for name in CHANNELS:
        assert motion[name] == pytest.approx(0.0, abs=1e-15)
    assert np.isnan(motion["engine_speed"])


@PAIRS
@pytest.mark.parametrize(("direction", "yaw"), [(NORTH, 0.0), (EAST, np.pi / 2), (-EAST, -np.pi / 2)])
def test_accelerating_forward_is_positive_surge(pair, direction, yaw):
    motion = car(pair, [(UP, -yaw)], velocity=15 * direction, acceleration=2.5 * direction)
    assert motion["surge"] == pytest.approx(2.5, abs=1e-14)
    assert motion["sway"] == pytest.approx(0.0, abs=1e-14)
    assert motion["heave"] == pytest.approx(0.0, abs=1e-14)
    assert motion["speed"] == 15.0
    assert motion["yaw"] == pytest.approx(yaw, abs=1e-14)


@PAIRS
def test_braking_is_negative_surge(pair):
    assert car(pair, velocity=20 * NORTH, acceleration=-6 * NORTH)["surge"] == pytest.approx(-6.0, abs=1e-14)


@PAIRS
def test_a_right_turn_at_speed_is_positive_sway_and_positive_yaw_rate(pair):
    # Northbound at 20 m/s, turning right at 0.3 rad/s (about down): the velocity turns east at 6 m/s^2.
    motion = car(pair, velocity=20 * NORTH, acceleration=6 * EAST, spin=-0.3 * UP)
    assert motion["sway"] == pytest.approx(6.0, abs=1e-14)
    assert motion["yaw_rate"] == pytest.approx(0.3, abs=1e-15)
    assert motion["surge"] == pytest.approx(0.0, abs=1e-14)


@PAIRS
def test_heading_east_is_a_quarter_turn_to_the_right(pair):
    assert car(pair, [(UP, -np.pi / 2)])["yaw"] == pytest.approx(np.pi / 2, abs=1e-15)


@PAIRS
def test_climbing_is_positive_pitch(pair):
    # Nose up is right-handed about east when northbound: -Z goes towards +Y.
    motion = car(pair, [(EAST, 0.1)], spin=0.2 * EAST)
    assert motion["pitch"] == pytest.approx(0.1, abs=1e-15)
    assert motion["pitch_rate"] == pytest.approx(0.2, abs=1e-15)
    assert motion["roll"] == pytest.approx(0.0, abs=1e-15)


@PAIRS
def test_the_right_side_down_is_positive_roll(pair):
    # Right-handed about north when northbound: east goes down.
    motion = car(pair, [(NORTH, 0.15)], spin=0.4 * NORTH)
    assert motion["roll"] == pytest.approx(0.15, abs=1e-15)
    assert motion["roll_rate"] == pytest.approx(0.4, abs=1e-15)
    assert motion["pitch"] == pytest.approx(0.0, abs=1e-15)


@PAIRS
def test_rising_is_positive_heave(pair):
    assert car(pair, acceleration=3 * UP)["heave"] == pytest.approx(3.0, abs=1e-15)


@PAIRS
def test_a_car_that_gathers_speed_uphill_keeps_its_acceleration_in_surge(pair):
    ahead = np.cos(0.3) * NORTH + np.sin(0.3) * UP
    motion = car(pair, [(EAST, 0.3)], velocity=10 * ahead, acceleration=1.5 * ahead)
    assert motion["surge"] == pytest.approx(1.5, abs=1e-14)
    assert motion["heave"] == pytest.approx(0.0, abs=1e-14)


@PAIRS
def test_the_head_feels_the_turn_about_the_reference_point(pair):
    # Spinning right at 2 rad/s, and faster by 5 rad/s^2, on the spot; the head is 1 m ahead and 0.5 m to the left:
    # towards the center 4 m/s^2 per meter; along the turn 5 m/s^2 per meter, to the right ahead and ahead on the left.
    motion = body_motion(
        [NORTHBOUND[pair]], [STILL], [STILL], [-2 * UP], [-5 * UP],
        car_forward=pair[0], car_up=pair[1], head_m=(1.0, -0.5, 0.0),
    )[0]  # fmt: skip
    assert motion["surge"] == pytest.approx(-4.0 + 2.5, abs=1e-14)
    assert motion["sway"] == pytest.approx(2.0 + 5.0, abs=1e-14)
    assert motion["heave"] == pytest.approx(0.0, abs=1e-14)


@PAIRS
def test_a_head_above_the_reference_point_goes_right_when_the_right_side_goes_down_faster(pair):
    motion = body_motion(
        [NORTHBOUND[pair]], [STILL], [STILL], [STILL], [3 * NORTH],
        car_forward=pair[0], car_up=pair[1], head_m=(0.0, 0.0, 1.2),
    )[0]  # fmt: skip
    assert motion["sway"] == pytest.approx(3.6, abs=1e-14)


@PAIRS
def test_an_accelerometer_at_rest_is_told_from_motion(pair):
    # At rest, nose up by 0.2: it reads g upwards.
    q = npq.from_rotation_vector(EAST * 0.2) * npq.as_quat_array(np.array(NORTHBOUND[pair], float))
    motion = body_motion(
        np.array([q]), [STILL], [GRAVITY * UP], [STILL], car_forward=pair[0], car_up=pair[1], gravity="included"
    )[0]
    for name in ("surge", "sway", "heave"):
        assert motion[name] == pytest.approx(0.0, abs=1e-14)


# ---- whole drives ----------------------------------------------------------------------------------------------------


def states_of(frames):
    """Return orientation (w first) and vectors of City Car Driving frames, in double precision."""
    names = ("velocity", "acceleration", "angular_velocity", "angular_acceleration")
    q = np.roll(frames["orientation"].astype(float), 1, axis=1)
    return (q, *(frames[name].astype(float) for name in names))


DRIVES = {
    "virtual tour": lambda: encode_states(drive("tour", 60.0)),
    "real drive": lambda: np.concatenate(
        [np.frombuffer(p, ccd.FRAME.dtype) for p in read_packages(sample_recording()) if p[2] == 2]
    ),
}


@pytest.fixture(scope="module", params=DRIVES)
def whole_drive(request):
    return states_of(DRIVES[request.param]())


@pytest.mark.parametrize("angle", [0.7, np.pi / 2, -2.9, np.pi])
def test_turning_the_whole_drive_about_the_vertical_shifts_yaw_and_nothing_else(whole_drive, angle):
    q, *vectors = whole_drive
    about = npq.from_rotation_vector(-UP * angle)  # right-handed about down: to the right
    matrix = npq.as_rotation_matrix(about)
    turned = (npq.as_float_array(about * npq.as_quat_array(q)), *(v @ matrix.T for v in vectors))
    axes = Axes(head=(0.3, -0.4, 0.9))
    before, after = motion_of(whole_drive, axes), motion_of(turned, axes)
    expected = {name: before[name] for name in CHANNELS}
    expected["yaw"] = before["yaw"] + angle
    assert_same(after, expected)


@ORACLES
def test_a_whole_drive_agrees_with_the_oracle(whole_drive, oracle):
    axes = Axes(head=(0.3, -0.4, 0.9))
    assert_same(motion_of(whole_drive, axes), oracle(*whole_drive, axes))


def test_the_session_gives_the_same_bits_as_the_function(whole_drive):
    q, *vectors = whole_drive
    session = ccd.intake(ccd.Options(), (0.3, -0.4, 0.9))
    session.watch(UNWATCHED)  # rows of a drive that are far apart
    session.begin(0)
    session.feed(ccd.INIT.encode({"forward": (0, 0, 1), "up": (0, 1, 0)}), 0)
    expected = body_motion(q, *vectors, head_m=(0.3, -0.4, 0.9))
    names = ("velocity", "acceleration", "angular_velocity", "angular_acceleration")
    for row in range(0, len(q), 37):
        values = {name: vector[row] for name, vector in zip(names, vectors, strict=True)}
        session.feed(ccd.FRAME.encode({"orientation": np.roll(q[row], -1), **values}), 0)
        motion = session.newest()
        for name in CHANNELS:
            assert motion[name][0] == expected[name][row]


# ---- what goes in ----------------------------------------------------------------------------------------------------


def test_quaternion_arrays_and_float_arrays_are_the_same(rng):
    q, *rest = state(rng, 50)
    floats = body_motion(q, *rest)
    assert_same_bits(floats, body_motion(npq.as_quat_array(q), *rest))
    assert_same_bits(floats, body_motion(q.tolist(), *(v.tolist() for v in rest)))
    assert floats.dtype == motioncue.MOTION_DTYPE


def test_a_single_state_is_one_row(rng):
    q, *rest = state(rng, 1)
    motion = body_motion(npq.quaternion(*q[0]), *(v[0] for v in rest))
    assert motion.shape == (1,)
    assert_same_bits(motion, body_motion(q, *rest))


def test_times_are_zero_and_engine_speed_is_absent(rng):
    motion = body_motion(*state(rng, 3))
    assert motion["time"].tolist() == [0, 0, 0]
    assert motion["frame_time"].tolist() == [0, 0, 0]
    assert np.isnan(motion["engine_speed"]).all()


def test_no_angular_acceleration_means_zero(rng):
    q, v, a, omega, _ = state(rng, 5)
    assert_same_bits(body_motion(q, v, a, omega), body_motion(q, v, a, omega, np.zeros((5, 3))))


BROKEN = {
    "zero": [0, 0, 0, 0],
    "not a number": [1, 0, np.nan, 0],
    "infinite": [np.inf, 0, 0, 0],
    "too short": [0.5, 0, 0, 0],
    "too long": [0, 2, 0, 0],
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("row", [0, 3, 6])
def test_a_broken_quaternion_is_refused_with_its_row(rng, case, row):
    q, *rest = state(rng, 7)
    q[row] = BROKEN[case]
    for orientation in (q, npq.as_quat_array(q)):
        with pytest.raises(ConfigError, match=f"orientation: found .* in row {row}, allowed"):
            body_motion(orientation, *rest)


@pytest.mark.parametrize("case", BROKEN)
def test_the_stage_refuses_a_broken_quaternion_and_leaves_its_row_alone(rng, case):
    arguments = state(rng, 5)
    telemetry = telemetry_of(*arguments)
    telemetry["orientation"][2] = BROKEN[case]
    motion = np.full(5, -1.0).astype(MOTION_DTYPE)
    before = motion[2].tobytes()
    status = BodyStage().process(telemetry, motion)
    assert status.tolist() == [0, 0, Reason.QUATERNION, 0, 0]
    assert motion[2].tobytes() == before
    assert motion["surge"][3] != -1.0


@pytest.mark.parametrize("index", range(1, 5))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_refused_with_its_name_and_row(rng, index, value):
    arguments = state(rng, 6)
    arguments[index][4, 1] = value
    name = ("velocity", "acceleration", "angular_velocity", "angular_acceleration")[index - 1]
    with pytest.raises(ConfigError, match=f"^{name}: found .* in row 4, allowed are finite numbers"):
        body_motion(*arguments)


@pytest.mark.parametrize("index", range(1, 5))
def test_a_vector_of_another_shape_is_refused_with_its_name(rng, index):
    arguments = list(state(rng, 6))
    arguments[index] = arguments[index][:5]
    name = ("velocity", "acceleration", "angular_velocity", "angular_acceleration")[index - 1]
    with pytest.raises(ConfigError, match=rf"^{name}: found shape \(5, 3\), allowed is \(6, 3\)"):
        body_motion(*arguments)


@pytest.mark.parametrize("shape", [(6, 3), (2, 3, 4), (6, 5)])
def test_an_orientation_of_another_shape_is_refused(rng, shape):
    with pytest.raises(ConfigError, match=r"^orientation: found shape"):
        body_motion(np.ones(shape), *state(rng, 6)[1:])


@pytest.mark.parametrize(
    ("keyword", "value", "names"),
    [
        ("world_up", (0, 0, -1), "world axes"),
        ("car_up", (0, 0.2, 1), "car axes"),
        ("car_forward", (0, 0, 0), "car axes"),
        ("car_forward", (np.nan, 0, 0), "car_forward"),
        ("world_north", (np.inf, 0, 0), "world_north"),
        ("head_m", (0, 0), "head_m"),
        ("head_m", (0, np.nan, 0), "head_m"),
        ("rotation", "sideways", "rotation"),
        ("rates", "wheel", "rates"),
        ("gravity", "maybe", "gravity"),
    ],
)
def test_axes_that_cannot_be_are_refused_by_name(keyword, value, names):
    with pytest.raises(ConfigError, match=names):
        BodyStage(**{keyword: value})


def test_axes_are_made_orthonormal(rng):
    # Long, and 3 degrees off a right angle: the forward axis stands, the up axis gives way.
    tilt = np.radians(3.0)
    arguments = state(rng, 100)
    loose = Axes(car_forward=(0, 0, 7.0), car_up=(0, 2.0 * np.cos(tilt), 2.0 * np.sin(tilt)))
    assert_same(motion_of(arguments, loose), motion_of(arguments, Axes()))


def test_another_length_of_output_is_refused(rng):
    with pytest.raises(ValueError, match="out: found 4 rows, allowed are 5"):
        BodyStage().process(telemetry_of(*state(rng, 5)), np.zeros(4, MOTION_DTYPE))


def test_the_function_takes_every_option_of_the_stage(rng):
    arguments = state(rng, 20)
    axes = Axes(conjugated=True, rates_in_car=True, gravity_included=True)
    motion = body_motion(*arguments, rates="car", gravity="included", rotation="world_to_car")
    assert_same(motion, by_matrices(*arguments, axes))
