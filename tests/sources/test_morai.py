"""MORAI as a source: its axes, signs and units, its repeats and its stamps give the motion that the car makes."""

import math

import numpy as np
import pytest
from reference.rigid_body import Axes, by_matrices
from same_bits import assert_same_bits
from scipy.signal import lfilter

import motioncue
from motioncue.core.channels import GRAVITY
from motioncue.core.clock import FakeClock
from motioncue.drive.car import DRIVES, drive
from motioncue.engine.pipeline import Pipeline
from motioncue.sources.morai import packets as morai
from motioncue.sources.morai.messages import EGO_VEHICLE_STATUS, HEADERLESS_STATUS, IMU
from motioncue.sources.morai.packets import Options
from motioncue.sources.morai.twin import encode_imu, encode_states
from motioncue.wire.packet import Derivation

STEP_NS = 20_000_000
NED = Axes(north=(1, 0, 0), up=(0, 0, -1), car_forward=(1, 0, 0), car_up=(0, 0, -1))
SINGLE = 2.0**-24  # relative rounding of a 4-byte float
VERSIONS = range(1, 6)


def status(version=4, **fields):
    """Return a status; what is not given is a car at rest at the map's origin, heading east."""
    return EGO_VEHICLE_STATUS[version - 1].encode(fields)


def imu(**fields):
    return IMU[1].encode({"acceleration": (0.0, 0.0, GRAVITY), **fields})


def motion_of(*packets, options=None, **session):
    """Return the motion after packets that come a step apart, and the intake."""
    intake = morai.intake(options or Options(), **session)
    for number, packet in enumerate(packets, 1):
        intake.feed(packet, number * STEP_NS)
    row = intake.newest()
    return (None if row is None else row[0]), intake


# Axes, signs, units.


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_says_the_same_motion(version):
    row, intake = motion_of(
        status(
            version,
            position=(10.0, 20.0, 3.0),
            roll=-359.0,
            pitch=358.0,
            heading=60.0,
            velocity=(36.0, -10.8, 14.4),
            acceleration=(1.0, 2.0, 3.0),
        )
    )
    assert intake.rejected == {}
    assert [row[name] for name in ("surge", "sway", "heave")] == pytest.approx([1.0, 2.0, 3.0], abs=1e-6)
    degrees = [math.degrees(row[name]) for name in ("roll", "pitch", "yaw")]
    assert degrees == pytest.approx([1.0, 2.0, 30.0], abs=1e-4)  # nose up, and 60 degrees from east are 30 from north
    assert row["speed"] == pytest.approx(math.hypot(10.0, 3.0, 4.0), rel=1e-6)
    assert math.isnan(row["engine_speed"])


@pytest.mark.parametrize(
    ("heading", "yaw"), [(90.0, 0.0), (0.0, 90.0), (-90.0, 180.0), (270.0, 180.0), (180.0, -90.0), (450.0, 0.0)]
)
def test_heading_counts_from_east_to_the_left_and_yaw_from_north_to_the_right(heading, yaw):
    row, _ = motion_of(status(heading=heading))
    assert math.remainder(math.degrees(row["yaw"]) - yaw, 360.0) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("option", "value", "channel", "sign"),
    [
        ("acceleration_y", "left", "sway", -1),
        ("acceleration_y", "right", "sway", 1),
        ("roll", "left_side_down", "roll", -1),
        ("roll", "right_side_down", "roll", 1),
        ("pitch", "nose_up", "pitch", 1),
        ("pitch", "nose_down", "pitch", -1),
    ],
)
def test_what_is_not_sure_can_be_turned_round(option, value, channel, sign):
    row, _ = motion_of(status(roll=1.0, pitch=1.0, acceleration=(0.0, 1.0, 0.0)), options=Options(**{option: value}))
    size = 1.0 if channel == "sway" else math.radians(1.0)
    assert row[channel] == pytest.approx(sign * size, rel=1e-5)


@pytest.mark.parametrize("velocity", ["car", "world"])
def test_velocity_along_the_car_or_the_map(velocity):
    """From 36 to 36.72 km/h in 20 ms heading north: 10 m/s^2 forward if that is along the car, else to its right."""
    speeds = ((36.0, 0.0, 0.0), (36.72, 0.0, 0.0))
    packets = [status(heading=90.0, velocity=speeds[min(k, 1)], position=(0.0, 0.0, 0.01 * k)) for k in range(2)]
    row, _ = motion_of(*packets, options=Options(velocity=velocity), derivation=Derivation("from_velocity", 0.04))
    expected = 10.0 * (1.0 - math.exp(-0.5))  # response of a lag of 40 ms after 20 ms
    assert [row["surge"], row["sway"]] == pytest.approx(
        [expected, 0.0] if velocity == "car" else [0.0, expected], abs=1e-4
    )


def test_velocity_of_the_car_to_its_left_is_left_on_the_map():
    """Derived from the velocity: heading east, from 0 to 0.72 km/h left in 20 ms is 10 m/s^2 left."""
    row, _ = motion_of(status(), status(velocity=(0.0, 0.72, 0.0)), derivation=Derivation("from_velocity", 0.04))
    assert row["sway"] == pytest.approx(-10.0 * (1.0 - math.exp(-0.5)), rel=1e-5)


@pytest.mark.parametrize("field", ["position", "velocity", "acceleration", "angular_velocity"])
@pytest.mark.parametrize(("value", "reason"), [(math.nan, "not_finite"), (1e30, "implausible")])
def test_an_invalid_motion_is_refused_and_counted(field, value, reason):
    row, intake = motion_of(status(**{field: (0.0, value, 0.0)}), options=Options(rates="native"))
    assert row is None
    assert intake.rejected == {reason: 1}


def test_an_angular_velocity_that_is_not_used_refuses_nothing():
    row, intake = motion_of(status(angular_velocity=(math.nan, 1e30, 0.0)))
    assert row is not None
    assert intake.rejected == {}


# The virtual car's own truth.


def truth(states):
    names = ("orientation", "velocity", "acceleration", "angular_velocity", "angular_acceleration")
    return by_matrices(*(states[name] for name in names), NED)


def through(packets, times_ns, options=None, **session):
    """Return the motion after each packet, and the intake; `packets` have one row a time."""
    intake = morai.intake(options or Options(), **session)
    rows = []
    for now, *group in zip(times_ns.tolist(), *packets, strict=True):
        for packet in group:
            intake.feed(packet.tobytes(), now)
        rows.append(intake.newest())
    assert intake.rejected == {}
    return np.concatenate(rows), intake


def steps(states):
    return (states["time"] * 1e9).astype(np.int64) + STEP_NS


def compare(motion, expected, names, tolerance):
    for name in names:
        error = motion[name] - expected[name]
        if name == "yaw":
            error = (error + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(error, 0.0, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", sorted(DRIVES))
def test_a_driven_car_arrives_as_the_motion_it_makes(name):
    states = drive(name, 50.0)
    motion, intake = through([encode_states(states)], steps(states))
    # Angles are rounded at up to 360 degrees.
    compare(motion, truth(states), ("roll", "pitch", "yaw"), 2 * math.radians(360.0) * SINGLE)
    accelerations = np.linalg.norm(states["acceleration"], axis=1).max()
    compare(motion, truth(states), ("surge", "sway", "heave"), 4 * SINGLE * max(1.0, accelerations))
    speed = np.linalg.norm(states["velocity"], axis=1).max()
    compare(motion, truth(states), ("speed",), 4 * SINGLE * max(1.0, speed))
    assert intake.discontinuities == {}
    assert intake.accepted == len(states)


@pytest.mark.parametrize("options", [Options(rates="native"), Options(imu=True)], ids=["native", "imu"])
def test_rates_that_are_said_are_those_of_the_car(options):
    states = drive("tour", 50.0)
    motion, _ = through([encode_imu(states), encode_states(states)], steps(states), options)
    expected = truth(states)
    assert max(np.ptp(expected[name]) for name in ("roll_rate", "pitch_rate", "yaw_rate")) > 0.3
    compare(motion, expected, ("roll_rate", "pitch_rate", "yaw_rate"), 1e-6)
    # The status's attitude takes gravity off the IMU's acceleration: an error of g times that of the angle.
    compare(motion, expected, ("surge", "sway", "heave"), 2e-5)


@pytest.mark.parametrize(
    ("axes", "level", "down"),
    [("south_east_down", 1, 1), ("north_west_up", -1, -1), ("south_east_up", 1, -1), ("north_west_down", -1, 1)],
)
def test_a_native_angular_velocity_can_be_taken_about_other_axes(axes, level, down):
    packet = status(angular_velocity=(10.0, 20.0, 30.0), heading=90.0)
    row, _ = motion_of(packet, options=Options(rates="native", angular_velocity=axes))
    # Heading north: about forward, which is north, it turns by what is not said about south; right is east.
    rates = [math.degrees(row[name]) for name in ("roll_rate", "pitch_rate", "yaw_rate")]
    assert rates == pytest.approx([-10.0 * level, 20.0 * level, 30.0 * down], rel=1e-5)


@pytest.mark.parametrize("version", [1, 2])
def test_versions_without_angular_velocity_are_refused_where_that_is_wanted(version):
    row, intake = motion_of(status(version), options=Options(rates="native"))
    assert row is None
    assert sum(intake.rejected.values()) == 1


# Rates from the attitude.


@pytest.mark.search
@pytest.mark.parametrize("delay_s", [0.04, 0.08])
def test_rates_from_unevenly_arriving_attitudes_stay_within_the_bound_of_the_filter(delay_s):
    """The bound of the module: 2 / d times how far the arrived attitudes are beside those of a steady clock."""
    step, rng = 0.02, np.random.default_rng(3)
    fine = drive("tour", 2000.0)
    states = fine[::40]
    moments = rng.random(len(states)) * step  # from the step to its arrival
    arrivals = states["time"] + moments
    motion, intake = through(
        [encode_states(states)], (arrivals * 1e9).astype(np.int64) + STEP_NS, derivation=Derivation("native", delay_s)
    )
    assert intake.discontinuities == {}
    expected, omega = truth(fine), np.linalg.norm(fine["angular_velocity"], axis=1).max()
    alpha = np.linalg.norm(fine["angular_acceleration"], axis=1).max()
    longest = np.diff(arrivals).max()
    # A chord is up to alpha h^2 / 8 beside its arc.
    bound = 2.0 / delay_s * (omega * step / 2 + alpha * longest**2 / 8)
    for name in ("roll_rate", "pitch_rate", "yaw_rate"):
        share = -math.expm1(-0.0005 / delay_s)
        lagged = lfilter([share], [1.0, share - 1.0], expected[name])  # 1 / (1 + s d), a step behind at most
        reference = np.interp(arrivals - step / 2, fine["time"], lagged)  # arrivals are half a step late on average
        error = motion[name] - reference
        assert np.abs(error).max() < bound, name
        # In the mean square no more than the module says, with what turns in the mean square.
        turning = np.sqrt(np.mean(np.sum(fine["angular_velocity"] ** 2, axis=1)))
        assert np.sqrt(np.mean(error**2)) < turning * step / (math.sqrt(12) * delay_s), name


@pytest.mark.check
@pytest.mark.parametrize("delay_s", [0.04, 0.08, 0.2])
def test_a_steady_turn_has_the_error_that_evenly_spread_arrivals_give(delay_s):
    """In the mean square w J / (sqrt(12) d), times d (1 - a) / T sqrt(2 / (1 + a)) of the samples, a = exp(-T / d).

    That holds for a J of less than 3/4 T: of frames that come closer than T / 4 the later one counts for T.
    """
    w, step, count = 0.5, 0.02, 20_000
    spread = 0.75 * step
    rng = np.random.default_rng(4)
    headings = -np.degrees(w * step * np.arange(count))  # to the right
    rows = np.zeros(count, EGO_VEHICLE_STATUS[3].dtype)
    for name, value in EGO_VEHICLE_STATUS[3].constants.items():
        rows[name] = value
    rows["heading"] = (headings + 180.0) % 360.0 - 180.0
    rows["velocity"][:, 0] = np.arange(count) * 1e-4  # no repeats
    times = np.arange(count) * step + rng.random(count) * spread
    motion, intake = through([rows], (times * 1e9).astype(np.int64) + STEP_NS, derivation=Derivation("native", delay_s))
    error = motion["yaw_rate"][100:] - w
    a = math.exp(-step / delay_s)
    expected = w * spread / (math.sqrt(12) * delay_s) * delay_s * (1 - a) / step * math.sqrt(2 / (1 + a))
    assert np.sqrt(np.mean(error**2)) == pytest.approx(expected, rel=0.15)
    assert expected <= w * spread / (math.sqrt(12) * delay_s)
    assert np.abs(error).max() <= w * spread / delay_s
    assert abs(error.mean()) < 0.02 * w  # samples after a short interval are higher, and count as much as others
    assert intake.discontinuities == {}  # half a turn, where the heading jumps, is passed often


def test_angles_that_jump_by_a_turn_turn_nothing():
    packets = [
        status(roll=-359.9 if k % 2 else 0.1, pitch=359.9 if k % 2 else -0.1, heading=180.0 if k % 2 else -180.0)
        for k in range(50)
    ]
    packets = [
        EGO_VEHICLE_STATUS[3].encode({**EGO_VEHICLE_STATUS[3].decode(packet), "velocity": (0.001 * k, 0.0, 0.0)})
        for k, packet in enumerate(packets)
    ]
    row, intake = motion_of(*packets)
    assert [row[name] for name in ("roll_rate", "pitch_rate", "yaw_rate")] == pytest.approx([0.0] * 3, abs=1e-4)
    assert intake.discontinuities == {}


# Repeats and stamps.


def turning(state, packet):
    """Return the status of step `state` of a steady turn, in packet number `packet`."""
    return status(
        sec=1726148127 + packet // 50,
        nsec=packet % 50 * 20_000_000,
        heading=-0.5 * state,
        velocity=(36.0, 0.0, 1e-3 * state),
        acceleration=(0.0, 10.0 * math.radians(25.0), 0.0),  # to the right, at 10 m/s and 25 deg/s
    )


def test_the_same_physics_under_another_stamp_is_a_repeat_and_no_standstill():
    states = [k - (k % 20 == 19) for k in range(400)]  # each twentieth packet is put together too early
    packets = [turning(state, packet) for packet, state in enumerate(states)]
    intake = morai.intake(Options())
    for number, packet in enumerate(packets, 1):
        intake.feed(packet, number * STEP_NS)
        rate = intake.newest()["yaw_rate"][0]
        if number > 50:
            assert rate == pytest.approx(math.radians(25.0), rel=1e-4)  # half a degree in 20 ms
    assert intake.repeats == 20
    assert intake.accepted == 400
    assert intake.discontinuities == {}


@pytest.mark.parametrize("field", ["velocity", "acceleration", "angular_velocity"])
def test_a_change_in_the_last_bit_is_no_repeat(field):
    tiny = float(np.nextafter(np.float32(1.0), np.float32(2.0)))
    base = {"velocity": (1.0, 1.0, 1.0), "acceleration": (1.0, 1.0, 1.0), "angular_velocity": (1.0, 1.0, 1.0)}
    _, intake = motion_of(status(**base), status(**base), status(**{**base, field: (1.0, 1.0, tiny)}))
    assert intake.repeats == 1


def test_stamps_that_stand_or_go_back_are_no_new_session():
    times = (100, 100, 99, 5000)
    packets = [status(sec=sec, velocity=(0.1 * k, 0.0, 0.0)) for k, sec in enumerate(times)]
    row, intake = motion_of(*packets)
    assert row["frame_time"] == pytest.approx(3 * 0.02)
    assert (intake.sessions, intake.accepted, intake.discontinuities) == (0, 4, {})


# The IMU.

WITH_IMU = Options(imu=True)


@pytest.mark.parametrize("form", [0, 1])
def test_the_imus_acceleration_and_rates_replace_the_statuss(form):
    said = {"acceleration": (1.0, 2.0, 3.0 + GRAVITY), "angular_velocity": (0.1, 0.2, 0.3)}
    row, intake = motion_of(IMU[form].encode(said), status(acceleration=(7.0, 7.0, 7.0)), options=WITH_IMU)
    found = [row[name] for name in ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate")]
    assert found == pytest.approx([1.0, -2.0, 3.0, 0.1, -0.2, -0.3], abs=1e-9)
    assert (intake.accepted, intake.others) == (1, 1)


def test_without_the_option_an_imu_is_only_counted():
    row, intake = motion_of(imu(acceleration=(5.0, 5.0, 5.0)), status(acceleration=(1.0, 0.0, 0.0)))
    assert row["surge"] == 1.0
    assert (intake.accepted, intake.others) == (1, 1)


def test_gravity_is_taken_off_in_any_attitude():
    roll, nose_up = math.radians(20.0), math.radians(10.0)
    reads = (math.sin(nose_up), math.sin(roll) * math.cos(nose_up), math.cos(roll) * math.cos(nose_up))
    row, _ = motion_of(
        imu(acceleration=[GRAVITY * value for value in reads]), status(roll=20.0, pitch=-10.0), options=WITH_IMU
    )
    assert [row[name] for name in ("surge", "sway", "heave")] == pytest.approx([0.0] * 3, abs=1e-5)


def test_there_is_no_motion_before_the_first_imu_nor_long_after_the_last():
    intake = morai.intake(WITH_IMU)
    times = {"early": 10, "good": 20, "late": 130, "back": 150}  # [ms]; the IMU comes at 15 and at 140
    came = {}
    for moment, packet in sorted(
        [(15, imu()), (140, imu()), *((time, name) for name, time in times.items())], key=lambda x: x[0]
    ):
        data = packet if isinstance(packet, bytes) else status(velocity=(0.01 * moment, 0.0, 0.0))
        intake.feed(data, moment * 1_000_000)
        if isinstance(packet, str):
            came[packet] = intake.newest() is not None
    assert came == {"early": False, "good": True, "late": False, "back": True}
    assert intake.rejected == {"incomplete": 2}
    assert intake.discontinuities == {}


def test_a_broken_imu_does_not_count_as_one():
    _, intake = motion_of(imu(acceleration=(math.nan, 0.0, 0.0)), status(), options=WITH_IMU)
    assert intake.rejected == {"not_finite": 1, "incomplete": 1}


def test_a_platform_fades_out_and_in_when_the_imu_stops_and_returns():
    """Through the whole engine: no step between ticks is larger than without the gap, but for the fade's own."""
    profile = motioncue.load_profile("morai-dk", "source.options.imu=true")
    states = drive("brake", 50.0)
    stops, returns = 4.0, 6.0

    def trace(gap):
        pipeline = Pipeline(profile, FakeClock(0), trace=int(profile.rate_hz * 12))
        pipeline.intake.begin(1)
        for status_row, imu_row, time in zip(encode_states(states), encode_imu(states), states["time"], strict=True):
            if time > 10.0:
                break
            now = int(time * 1e9) + STEP_NS
            pipeline.emitter.run(until_ns=now)
            if not (gap and stops <= time < returns):
                pipeline.intake.feed(imu_row.tobytes(), now)
            pipeline.intake.feed(status_row.tobytes(), now)
        return pipeline.emitter.trace, pipeline.stats()

    whole, _ = trace(gap=False)
    ticks, stats = trace(gap=True)
    lost = np.count_nonzero((states["time"] > stops + 0.08 - 1e-9) & (states["time"] < returns))
    assert abs(stats["rejected"]["incomplete"] - lost) <= 1
    assert set(stats["rejected"]) == {"incomplete"}
    assert stats["events"] == {}
    time = (ticks["deadline"] - STEP_NS) * 1e-9
    assert (ticks["weight"][(time > 5.5) & (time < 6.0)] == 0.0).all()  # a tenth held, a second to fade
    assert (ticks["weight"][time > 8.0] == 1.0).all()
    for name in ("surge", "sway", "heave", "roll", "pitch"):
        usual = np.abs(np.diff(whole["cue"][name])).max()
        fade = 2.0 * np.abs(whole["motion"][name]).max() / profile.rate_hz / profile.supervisor.fade_s
        assert np.abs(np.diff(ticks["cue"][name])).max() <= usual + fade, name


def test_the_status_without_a_header_gives_the_motion_of_the_one_with_it():
    whole = EGO_VEHICLE_STATUS[2]
    fields = {
        **{name: (0.5 + place, -1.5, 2.5) for place, name in enumerate(("position", "velocity", "acceleration"))},
        **{"angular_velocity": (1.0, 2.0, 3.0), "roll": 3.0, "pitch": -2.0, "heading": 30.0},
    }
    motions = []
    for data in (whole.encode(fields), HEADERLESS_STATUS.encode(fields)):
        intake = morai.intake(Options(rates="native"))
        intake.begin(0)
        intake.feed(data, 1_000_000_000)
        assert intake.accepted == 1
        motions.append(intake.frame().tobytes())
    assert motions[0] == motions[1]


def test_the_first_status_without_its_tail_gives_the_motion_of_the_one_with_it():
    """121 bytes are what the document states: 11 of the header, 16 of lengths, 94 of data."""
    data = status(1, position=(1.0, 2.0, 3.0), heading=90.0, velocity=(36.0, 0.0, 0.0), acceleration=(1.0, 2.0, 3.0))
    assert (len(data), data[-2:]) == (123, b"\r\n")
    whole, cut = (morai.intake(Options()) for _ in range(2))
    for intake, packet in ((whole, data), (cut, data[:-2])):
        intake.feed(packet, 0)
    assert cut.accepted == 1
    assert_same_bits(cut.newest(), whole.newest())
    assert list(morai.framed(data[:-2] + data + data[:-2])) == [data[:-2], data, data[:-2]]
    assert morai.identify(data[:-2]).size == 121
