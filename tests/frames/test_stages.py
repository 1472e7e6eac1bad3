"""Telemetry in any system's form gives the motion of its equations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from motioncue.core.channels import GRAVITY, TELEMETRY_DTYPE
from motioncue.core.table import UNWATCHED
from motioncue.errors import ConfigError
from motioncue.frames.convert import BodyStage, TelemetryStages
from motioncue.frames.intake import Intake
from motioncue.wire.packet import Field, Message, Packet, Take, vector

NED = {"world_north": (1, 0, 0), "world_up": (0, 0, -1), "car_forward": (1, 0, 0), "car_up": (0, 0, -1)}

NAMES = ("angles", "position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")
STATE = Packet("state", 144, [Field(name, 24 * place, "3<f8") for place, name in enumerate(NAMES)])

angle = st.floats(-math.pi, math.pi)
steep = st.floats(-1.4, 1.4)
three = st.tuples(*[st.floats(-30.0, 30.0)] * 3)


def new_intake(head_m=(0, 0, 0), without="", **stages):
    """Return an intake of a source that says everything in forward, right, down."""
    takes = [take for name in NAMES if name != without for take in vector(name, name)]
    stage = BodyStage(**NED, rates="car", head_m=head_m)
    return Intake([Message(STATE, "motion", takes).compiled()], stage, TelemetryStages(attitude="angles", **stages))


def motion(intake, now=0, **state):
    intake.feed(STATE.encode(state), now)
    assert intake.rejected == {}
    return intake.newest()[0]


def rotation(angles):
    """Return the attitude of roll, pitch, yaw, body to world: yaw, then pitch, then roll."""
    return Rotation.from_euler("ZYX", angles[::-1])


def accelerations(row):
    return np.array([row["surge"], row["sway"], -row["heave"]])


@given(roll=angle, pitch=steep, yaw=angle, acceleration=three)
def test_angles_and_an_acceleration_in_world_axes(roll, pitch, yaw, acceleration):
    row = motion(new_intake(), angles=(roll, pitch, yaw), acceleration=acceleration)
    expected = rotation((roll, pitch, yaw)).as_matrix().T @ acceleration
    assert accelerations(row) == pytest.approx(expected, abs=1e-12)
    assert math.remainder(row["roll"] - roll, 2 * math.pi) == pytest.approx(0, abs=1e-9)
    assert row["pitch"] == pytest.approx(pitch, abs=1e-9)
    assert math.remainder(row["yaw"] - yaw, 2 * math.pi) == pytest.approx(0, abs=1e-9)


@given(roll=angle, pitch=steep, yaw=angle, acceleration=three, included=st.tuples(*[st.booleans()] * 3))
def test_an_acceleration_in_car_axes_with_gravity_in_some_of_them(roll, pitch, yaw, acceleration, included):
    intake = new_intake(acceleration_axes="car", gravity=included)
    row = motion(intake, angles=(roll, pitch, yaw), acceleration=acceleration)
    # What an accelerometer reads is a - g; g points down.
    gravity = rotation((roll, pitch, yaw)).as_matrix().T @ (0, 0, GRAVITY)
    assert accelerations(row) == pytest.approx(acceleration + gravity * included, abs=1e-11)


@given(roll=angle, pitch=steep, yaw=angle, velocity=three)
def test_a_velocity_in_car_axes_has_the_same_speed_and_turns_with_the_car(roll, pitch, yaw, velocity):
    intake = new_intake(velocity="car", acceleration="from_velocity", delay_s=0.001)
    first = motion(intake, 0, angles=(roll, pitch, yaw), velocity=(0, 0, 0))
    assert accelerations(first).tolist() == [0.0, 0.0, 0.0]
    row = motion(intake, 10**9, angles=(roll, pitch, yaw), velocity=np.array(velocity) / 3)
    assert row["speed"] == pytest.approx(math.hypot(*velocity) / 3, abs=1e-12)
    # The car has not turned, so its acceleration is along the change of its velocity: a second for it, a delay of 1 ms.
    assert accelerations(row) == pytest.approx(np.array(velocity) / 3, abs=1e-11)


@given(angles=st.tuples(angle, steep, angle), rates=three, accelerations=three)
def test_rates_of_angles_are_those_of_the_turning_car(angles, rates, accelerations):
    intake = new_intake(head_m=(0.0, 0.0, 1.0), rates="angles")
    intake.watch(UNWATCHED)
    row = motion(intake, angles=angles, angular_velocity=rates, angular_acceleration=accelerations)

    def turned(seconds):
        path = np.array(angles) + np.array(rates) * seconds + np.array(accelerations) * seconds**2 / 2
        return rotation(path)

    def rate(seconds, step=1e-5):
        """Return the angular velocity in car axes, from the attitude a moment before and after."""
        return (turned(seconds - step).inv() * turned(seconds + step)).as_rotvec() / (2 * step)

    omega = rate(0.0)
    size = 1 + np.abs(rates).max()
    assert [row["roll_rate"], row["pitch_rate"], row["yaw_rate"]] == pytest.approx(omega, abs=1e-6 * size**3)
    # The angular acceleration shows at the head, 1 m up: alpha x r + omega x (omega x r).
    alpha = (rate(1e-3) - rate(-1e-3)) / 2e-3
    arm = np.array([0.0, 0.0, -1.0])
    expected = np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    felt = np.array([row["surge"], row["sway"], -row["heave"]])
    # What the difference over 1 ms leaves out of alpha: its products in the square of the time.
    left_out = 1e-6 * np.abs(accelerations).max() ** 2
    assert felt == pytest.approx(expected, abs=1e-4 * size**4 + left_out)


@pytest.mark.parametrize("delay_s", [0.005, 0.04, 0.2])
@pytest.mark.parametrize("seed", [1, 2])
def test_derived_quantities_are_a_first_order_lag_of_the_truth(delay_s, seed):
    """A steady ramp from rest gives a (1 - exp(-t / d)), however unevenly frames come."""
    intake = new_intake(rates="derived", acceleration="from_velocity", delay_s=delay_s)
    intake.watch(UNWATCHED)
    times = np.cumsum(np.random.default_rng(seed).uniform(8, 40, 100).round() * 10**6).astype(np.int64)
    for now in times:
        t = (now - times[0]) * 1e-9
        row = motion(intake, int(now), angles=(0, 0, 0.7 * t), velocity=(3.0 * t, 0, -1.0 * t))
        grown = 1 - math.exp(-t / delay_s)
        world = rotation((0, 0, 0.7 * t)).as_matrix()
        assert world @ accelerations(row) == pytest.approx(np.array([3.0, 0, -1.0]) * grown, abs=1e-9)
        assert row["yaw_rate"] == pytest.approx(0.7 * grown, abs=1e-9)
        assert row["roll_rate"] == pytest.approx(0, abs=1e-12)


@given(angles=st.tuples(angle, angle, angle), turn=st.tuples(*[st.floats(-0.5, 0.5)] * 3))
def test_a_rate_from_any_attitude_is_the_short_way(angles, turn):
    intake = new_intake(rates="derived", delay_s=0.001)
    intake.watch(UNWATCHED)
    after = (rotation(angles) * Rotation.from_rotvec(turn)).as_euler("ZYX")[::-1]
    motion(intake, 0, angles=angles)
    row = motion(intake, 10**9, angles=after)
    assert [row["roll_rate"], row["pitch_rate"], row["yaw_rate"]] == pytest.approx(turn, abs=1e-7)


def test_a_step_in_speed_is_a_discontinuity_and_no_acceleration():
    intake = new_intake(acceleration="from_velocity")
    for n in range(20):
        row = motion(intake, n * 20_000_000, velocity=(20.0 + n * 0.02, 0, 0))
    assert row["surge"] == pytest.approx(1.0, abs=1e-3)
    row = motion(intake, 400_000_000, velocity=(5.0, 0, 0))
    assert row["surge"] == pytest.approx(1.0, abs=1e-3)  # a jump in one frame may be a spike
    row = motion(intake, 420_000_000, velocity=(5.0, 0, 0.001))
    assert intake.discontinuities == {"impossible_acceleration": 1}
    assert row["surge"] == 0.0
    row = motion(intake, 440_000_000, velocity=(5.0, 0, 0))
    assert abs(row["surge"]) < 1e-9


def test_repeats_do_not_affect_derivatives():
    plain, repeating = (new_intake(acceleration="from_velocity") for _ in range(2))
    for n in range(40):
        state = {"velocity": (20.0 + n * 0.06, 0, 0), "position": (0.4 * n, 0, 0)}
        row = motion(plain, n * 20_000_000, **state)
        again = motion(repeating, n * 20_000_000, **state)
        assert again["surge"] == pytest.approx(row["surge"], rel=1e-12)
        if n % 3 == 0:
            again = motion(repeating, n * 20_000_000 + 9_000_000, **state)
            assert again["surge"] == pytest.approx(row["surge"], rel=1e-12)
    assert repeating.repeats == 14
    assert repeating.accepted == 54


def test_a_source_without_velocity_cannot_have_its_acceleration_from_it():
    intake = new_intake(without="velocity", acceleration="from_velocity")
    intake.feed(STATE.encode(), 0)
    intake.feed(STATE.encode(), 10**7)
    assert intake.rejected == {"not_finite": 2}
    assert intake.newest() is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("attitude", "euler"),
        ("velocity", "body"),
        ("acceleration_axes", ""),
        ("rates", "none"),
        ("acceleration", "derived"),
        ("delay_s", 0.0),
        ("delay_s", math.nan),
    ],
)
def test_a_setting_that_is_not_allowed_is_refused(setting, value):
    with pytest.raises(ConfigError, match=f"{setting}: found .*allowed"):
        TelemetryStages(**{setting: value})


def test_a_change_counts_for_as_long_as_is_sure_to_have_passed(probe):
    """y += (1 - exp(-t / d)) (change / dt - y): t is dt, or less if less is sure, as after a stall."""
    delay = 0.04
    dt, sure = np.array([0.01, 0.01, 0.2, 0.01]), np.array([0.01, 0.01, 0.015, 0.5])
    frames = np.zeros(4, TELEMETRY_DTYPE)
    frames["velocity"][:, 0] = [0.0, 0.3, 1.3, 1.2]
    half = 0.5 * np.array([0.0, 0.02, 0.08, 0.07])
    frames["orientation"][:, 0], frames["orientation"][:, 1] = np.cos(half), np.sin(half)
    expected = np.zeros((2, 4))
    for row, values in enumerate((frames["velocity"][:, 0], 2.0 * half)):
        for i in (1, 2, 3):
            share = 1.0 - math.exp(-min(dt[i], sure[i]) / delay)
            before = expected[row, i - 1]
            expected[row, i] = before + share * ((values[i] - values[i - 1]) / dt[i] - before)
    found = np.array(probe.derived(frames, dt, sure, delay))
    np.testing.assert_allclose(found[:, 0, 0], expected[0], rtol=1e-9)
    np.testing.assert_allclose(found[:, 1, 0], expected[1], rtol=1e-9)
    np.testing.assert_array_equal(found[:, :, 1:], 0.0)


def test_a_velocity_that_is_missing_changes_no_acceleration_and_the_next_two_tell_one_again(probe):
    """Nothing is told from a frame without it to the next, either; along other axes nothing is missing."""
    delay, dt = 0.04, 0.01
    frames = np.zeros(7, TELEMETRY_DTYPE)
    frames["orientation"][:, 0] = 1.0
    frames["velocity"][:, 0] = [0.0, 0.1, 0.2, math.nan, 0.4, 0.5, 0.6]
    frames["velocity"][:, 2] = 0.1 * np.arange(7)
    found = np.array(probe.derived(frames, np.full(7, dt), np.full(7, 1.0), delay))[:, 0]
    told = np.array([0, 1, 2, 2, 2, 3, 4])  # changes of velocity so far: 0.1 in 0.01 s
    np.testing.assert_allclose(found[:, 0], 10.0 * -np.expm1(-told * dt / delay), rtol=1e-12)
    np.testing.assert_allclose(found[:, 2], 10.0 * -np.expm1(-np.arange(7) * dt / delay), rtol=1e-12)


@pytest.mark.parametrize("dt", [0.0, -0.01, 1e-9, 99e-6])
def test_frames_closer_than_a_tenth_of_a_millisecond_count_as_that_far_apart(probe, dt):
    frames = np.zeros(2, TELEMETRY_DTYPE)
    frames["orientation"][:, 0] = 1.0
    frames["velocity"][1] = [0.5, -0.25, 0.125]
    found = np.array(probe.derived(frames, np.array([0.0, dt]), np.array([1.0, 1.0]), 0.04))
    share = -math.expm1(-1e-4 / 0.04)
    np.testing.assert_allclose(found[1, 0], share * frames["velocity"][1] / 1e-4, rtol=1e-12)


@pytest.mark.parametrize(("rate", "lacking"), [(0.0, False), (1.0, False), (float("nan"), True)])
def test_rates_that_a_source_did_not_report_are_derived(probe, rate, lacking):
    frames = np.zeros(1, TELEMETRY_DTYPE)
    frames["angular_velocity"] = rate
    assert probe.lacks_rates(frames) == lacking


@pytest.mark.parametrize("rate_hz", [60.0, 90.0, 144.0, 240.0])
def test_a_clock_in_whole_milliseconds_leaves_what_is_derived_even(rate_hz):
    """Speed that grows evenly is an even acceleration, although the stamps are now 6 ms apart and now 7."""
    fields = [Field("time", 0, "<u4"), Field("angles", 4, "3<f8"), Field("velocity", 28, "3<f8")]
    packet = Packet("stamped", 52, fields)
    takes = [Take("stamp", 0, "time", scale=1e-3), *vector("angles", "angles"), *vector("velocity", "velocity")]
    stages = TelemetryStages(attitude="angles", rates="derived", acceleration="from_velocity", delay_s=0.005)
    intake = Intake([Message(packet, "motion", takes).compiled()], BodyStage(**NED, rates="car"), stages)
    intake.begin(0)
    found = []
    for place in range(round(6 * rate_hz)):
        time = 100.0 + place / rate_hz
        state = {"time": math.floor(1000 * time), "angles": (0, 0, 0), "velocity": (3.0 * place / rate_hz, 0, 0)}
        intake.feed(packet.encode(state), 10**9 + round(1e9 * time))
        found.append(float(intake.newest()[0]["surge"]))
    assert np.array(found[len(found) // 2 :]) == pytest.approx(3.0, rel=0.02)
