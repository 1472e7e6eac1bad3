"""The session of City Car Driving: framing, answers, refusals by reason, and a cue moved by good frames only."""

import math
import struct
from itertools import pairwise

import numpy as np
import pytest
from helpers import (
    FRAME_REPLY,
    FRAMES,
    INIT_PACKAGE,
    INIT_REPLY,
    PACKAGES,
    began,
    expected_motion,
    frame,
    init,
    new_session,
)
from hypothesis import given
from hypothesis import strategies as st
from same_bits import assert_same_bits

from motioncue.core.threads import RecordRing
from motioncue.frames.convert import BodyStage
from motioncue.frames.intake import Session
from motioncue.recording.recorder import sorted_out
from motioncue.recording.schema import Package
from motioncue.sources.city_car_driving.packets import FRAME, INIT
from motioncue.wire.messages import Echo
from motioncue.wire.packet import Field, Message, Packet, Take, vector

STREAM = b"".join(PACKAGES)
START = 1_000_000_000
FRAME_INTERVAL = 1_000_000_000 // 60

USED = ["frame_time", "position", "orientation", "velocity", "acceleration", "angular_velocity", "angular_acceleration"]
UNUSED = ["unused", "force_feedback_frequency", "force_feedback_amplitude"]


def components(names):
    """Return every number of the named frame fields as (field, index)."""
    return [(name, index) for name in names for index in range(math.prod(FRAME.dtype[name].shape))]


def with_value(package, field, index, value):
    """Return a frame with one number replaced."""
    offset, dtype = FRAME.where(field, index)
    data = bytearray(package)
    data[offset : offset + dtype.itemsize] = np.array(value, dtype).tobytes()
    return bytes(data)


# Framing.


@pytest.fixture(scope="module")
def motions():
    """Every motion of the recording, one frame fed at a time; their channels are checked on the way."""
    session = new_session()
    session.feed(INIT_PACKAGE, 0)
    rows = []
    for package in FRAMES:
        session.feed(package, 0)
        rows.append(session.newest())
    rows = np.concatenate(rows)
    wire = np.frombuffer(b"".join(FRAMES), FRAME.dtype)
    for name, values in expected_motion(wire).items():
        np.testing.assert_allclose(rows[name], values, rtol=0, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(rows["frame_time"], np.cumsum(wire["frame_time"]), rtol=1e-12)
    assert np.isnan(rows["engine_speed"]).all()
    return rows


def replies_to(packages):
    return b"".join(INIT_REPLY if package[2] == 1 else FRAME_REPLY for package in packages)


def test_recording_gives_one_motion_a_frame_and_one_reply_a_package(motions):
    session = new_session()
    replies, still_open = session.feed(STREAM, 0)
    assert still_open
    assert replies == replies_to(PACKAGES)
    assert session.accepted == len(FRAMES) == len(motions)
    assert session.replies == len(PACKAGES)
    assert session.rejected == {}
    assert_same_bits(session.newest(), motions[-1:])


def test_one_byte_at_a_time_changes_nothing(motions):
    session = new_session()
    replies, rows = [], []
    for offset in range(len(STREAM)):
        replies.append(session.feed(STREAM[offset : offset + 1], 0)[0])
        row = session.newest()
        if row is not None:
            rows.append(row)
    assert b"".join(replies) == replies_to(PACKAGES)
    assert_same_bits(np.concatenate(rows), motions)


@given(
    count=st.integers(1, 120),
    cuts=st.lists(st.integers(0, 39 + 120 * 107), max_size=200),
)
def test_read_boundaries_do_not_change_motions_or_replies(motions, count, cuts):
    packages = PACKAGES[: count + 1]
    data = b"".join(packages)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    session = new_session()
    replies = b""
    complete = 0
    for start, end in pairwise(edges):
        answer, still_open = session.feed(data[start:end], 0)
        assert still_open
        replies += answer
        row = session.newest()
        frames = max(0, (end - 39) // 107)
        if frames > complete:
            assert_same_bits(row, motions[frames - 1 : frames])
        else:
            assert row is None
        complete = frames
    assert replies == replies_to(packages)
    assert session.accepted == count
    assert session.rejected == {}


def test_motion_carries_the_time_its_last_byte_came():
    session = began()
    package = frame()
    session.feed(package[:50], 1000)
    assert session.newest() is None
    session.feed(package[50:], 2000)
    assert session.newest()["time"][0] == 2000


@pytest.mark.grid
@pytest.mark.parametrize("kind", range(256))
def test_the_smallest_packages_are_each_answered_however_many_come_at_once(kind):
    session = new_session()
    reply = INIT_REPLY if kind == 1 else FRAME_REPLY
    reason = "size" if kind in (1, 2) else "type"
    assert session.feed(struct.pack("<HB", 3, kind) * 2000, 0) == (reply * 2000, True)
    assert session.rejected == {reason: 2000}
    # The worst read boundary: the first package is completed by the next piece.
    session.feed(b"\x03\x00", 0)
    data = bytes([kind]) + struct.pack("<HB", 3, kind) * 170
    assert session.feed(data, 0) == (reply * 171, True)
    assert session.rejected == {reason: 2171}


# Answers.


def test_init_is_answered_with_type_0_and_a_frame_with_type_1():
    session = new_session()
    assert session.feed(init(), 0) == (bytes([6, 0, 0, 0, 0, 1]), True)
    assert session.feed(frame(), 0) == (bytes([4, 0, 1, 0]), True)


REFUSED = {
    "unknown type": (struct.pack("<HB", 107, 3) + bytes(104), FRAME_REPLY, "type"),
    "reply type 0 sent to the server": (struct.pack("<HBHB", 6, 0, 0, 0), FRAME_REPLY, "type"),
    "largest package": (struct.pack("<HB", 512, 7) + bytes(509), FRAME_REPLY, "type"),
    "frame one byte short": (struct.pack("<HB", 106, 2) + frame()[3:-1], FRAME_REPLY, "size"),
    "frame one byte long": (struct.pack("<HB", 108, 2) + frame()[3:] + b"\0", FRAME_REPLY, "size"),
    "frame with the size of an init": (struct.pack("<HB", 39, 2) + frame()[3:39], FRAME_REPLY, "size"),
    "init one byte short": (struct.pack("<HB", 38, 1) + init()[3:-1], INIT_REPLY, "size"),
    "init with the size of a frame": (struct.pack("<HB", 107, 1) + frame()[3:], INIT_REPLY, "size"),
    "NaN": (frame(acceleration=(0, math.nan, 0)), FRAME_REPLY, "not_finite"),
    "speed of sound and more": (frame(velocity=(0, 0, 501)), FRAME_REPLY, "implausible"),
    "zero quaternion": (frame(orientation=(0, 0, 0, 0)), FRAME_REPLY, "quaternion"),
    "NaN in axes": (init(forward=(0, math.nan, 1)), INIT_REPLY, "not_finite"),
    "axes that are zero": (init(forward=(0, 0, 0)), INIT_REPLY, "axes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_package_is_answered_counted_under_its_reason_and_followed_by_the_next(case):
    package, reply, reason = REFUSED[case]
    session = began()
    session.newest()
    assert session.feed(package + frame(acceleration=(0, 0, 3)), 5) == (reply + FRAME_REPLY, True)
    assert session.rejected == {reason: 1}
    assert session.accepted == 1
    assert session.replies == 3
    assert session.newest()["surge"][0] == 3.0
    assert session.events() == [(5, reason, len(package))]


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_package_publishes_nothing(case):
    session = began(frame(acceleration=(0, 0, 3)))
    session.newest()
    session.feed(REFUSED[case][0], 0)
    assert session.newest() is None


@pytest.mark.grid
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("field", "index"), components(USED))
def test_a_number_that_is_not_finite_is_refused_in_every_used_field(field, index, value):
    session = began()
    assert session.feed(with_value(frame(), field, index, value), 0) == (FRAME_REPLY, True)
    assert session.rejected == {"not_finite": 1}
    assert session.accepted == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38])
@pytest.mark.parametrize(("field", "index"), components(UNUSED))
def test_unused_fields_may_hold_anything(field, index, value):
    session = began(frame(acceleration=(0, 0, 3)))
    expected = session.newest()
    fresh = began(with_value(frame(acceleration=(0, 0, 3)), field, index, value))
    assert fresh.rejected == {}
    assert_same_bits(fresh.newest(), expected)


def test_the_driver_position_of_an_init_package_may_hold_anything():
    session = new_session()
    session.feed(init(driver_position=(math.nan, math.inf, 3e38)), 0)
    session.feed(frame(), 0)
    assert session.rejected == {}
    assert session.accepted == 1


@pytest.mark.grid
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("field", "index"), [c for c in components(USED) if c[0] != "orientation"])
def test_a_value_is_plausible_up_to_its_limit_and_not_beyond(field, index, sign):
    dtype = FRAME.where(field, index)[1]
    limit = np.array(FRAME.fields[field].limit, dtype)
    session = began(with_value(frame(), field, index, sign * limit))
    assert session.rejected == {}
    session.feed(with_value(frame(), field, index, sign * np.nextafter(limit, np.inf, dtype=dtype)), 0)
    assert session.rejected == {"implausible": 1}


@pytest.mark.parametrize("length", [0.0, 1e-20, 0.5, 0.899, 1.101, 1.9])
def test_a_quaternion_far_from_unit_length_is_refused(length):
    session = began(frame(orientation=(0, 0.6 * length, 0, 0.8 * length)))
    assert session.rejected == {"quaternion": 1}
    assert session.newest() is None


@pytest.mark.parametrize("length", [0.901, 0.99, 1.01, 1.099])
def test_a_quaternion_near_unit_length_is_normalized(length):
    session = began(frame(orientation=(0.0, 0.6 * length, 0.0, 0.8 * length), acceleration=(1, 2, 3)))
    wire = np.frombuffer(frame(orientation=(0.0, 0.6, 0.0, 0.8), acceleration=(1, 2, 3)), FRAME.dtype)
    expected = expected_motion(wire)
    motion = session.newest()
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        assert motion[name][0] == pytest.approx(expected[name][0], abs=1e-6)  # the wire's single precision


def test_frames_before_the_init_package_are_answered_and_refused():
    session = new_session()
    assert session.feed(frame() * 3, 0) == (FRAME_REPLY * 3, True)
    assert session.rejected == {"before_init": 3}
    assert session.newest() is None
    assert session.feed(init() + frame(), 0) == (INIT_REPLY + FRAME_REPLY, True)
    assert session.accepted == 1


def test_no_reason_hides_another():
    session = began()
    for package, _, _ in REFUSED.values():
        session.feed(package, 0)
    assert session.rejected == {"type": 3, "size": 5, "not_finite": 2, "implausible": 1, "quaternion": 1, "axes": 1}
    assert session.replies == len(REFUSED) + 1


# Ends of a connection.


@pytest.mark.parametrize(("size", "kind"), [(39, 1), (107, 2)])
def test_a_big_endian_simulator_is_refused_and_counted(size, kind):
    session = began()
    answer = session.feed(struct.pack(">HB", size, kind) + bytes(size - 3), 9)
    assert answer == (FRAME_REPLY, False)
    assert session.rejected == {"big_endian": 1}
    assert session.events() == [(9, "big_endian", size << 8)]


def test_who_is_told_that_bytes_are_swapped_already_is_not_told_to_say_so():
    session = new_session(byte_order="big")
    assert not session.feed(struct.pack("<HB", 107, 2), 9)[1]
    assert session.rejected == {"framing": 1}


@pytest.mark.parametrize("size", [0, 1, 2, 513, 4096, 65535])
def test_an_impossible_size_ends_the_connection(size):
    session = began()
    assert session.feed(frame() + struct.pack("<H", size) + frame(), 0) == (FRAME_REPLY * 2, False)
    assert session.rejected == {"framing": 1}
    assert session.accepted == 1


def test_nothing_after_an_impossible_size_is_taken():
    session = began()
    replies, still_open = session.feed(b"\0\0" + frame() * 1000, 0)
    assert (replies, still_open) == (FRAME_REPLY, False)
    assert session.accepted == 0


@pytest.mark.parametrize("size", [1, 2, 3, 50, 106])
def test_a_frame_cut_short_is_forgotten_by_the_next_session(size):
    session = began(frame())
    session.feed(frame(acceleration=(0, 0, 9))[:size], 0)
    session.begin(0)
    session.newest()
    assert session.feed(frame(), 0) == (FRAME_REPLY, True)  # as every session, it needs its own init package
    assert session.feed(init() + frame(acceleration=(0, 0, 3)), 0) == (INIT_REPLY + FRAME_REPLY, True)
    assert session.newest()["surge"][0] == 3.0
    assert session.rejected == {"before_init": 1}
    assert session.sessions == 2


def test_a_refused_frame_takes_no_time():
    session = began(frame(), frame(orientation=(0, 0, 0, 0)), frame())
    assert session.rejected == {"quaternion": 1}
    assert session.newest()["frame_time"][0] == pytest.approx(2 / 60)


def test_frame_time_begins_again_with_every_init_package():
    session = began(frame(frame_time=0.25), frame(frame_time=0.5))
    assert session.newest()["frame_time"][0] == 0.75
    session.feed(init() + frame(frame_time=0.125), 0)
    assert session.newest()["frame_time"][0] == 0.125


# Events.


def test_events_say_what_happened_when_in_order():
    session = new_session()
    session.begin(10)
    session.feed(frame(), 20)
    session.feed(init(), 30)
    session.feed(struct.pack("<HB", 4, 9) + b"\0", 40)
    expected = [(0, "session_began", 1), (10, "session_began", 2), (20, "before_init", 107), (40, "type", 4)]
    assert session.events() == expected
    assert session.events() == []


def test_a_repeated_reason_is_always_counted_but_reported_ten_times_then_every_thousandth():
    session = began()
    for now in range(3000):
        session.feed(frame(orientation=(0, 0, 0, 0)), now)
    assert session.rejected == {"quaternion": 3000}
    assert [time for time, _, _ in session.events()] == [*range(10), 999, 1999, 2999]


def test_a_full_event_queue_loses_events_and_counts_them_but_blocks_nothing():
    session = new_session()
    for now in range(1, 1000):
        session.begin(now)
    session.feed(init() + frame(), 1000)
    assert session.accepted == 1
    assert session.sessions == 1000
    kept = session.events()
    assert [detail for _, _, detail in kept] == list(range(1, len(kept) + 1))
    assert session.events_lost == 1000 - len(kept) > 0
    session.begin(1000)
    assert session.events() == [(1000, "session_began", 1001)]


# A source that lacks channels.


def test_a_source_without_velocity_has_no_speed_rather_than_none_at_all():
    axes = Message(INIT, "axes", [*vector("forward", "forward"), *vector("up", "up")])
    orientation = vector("orientation", "orientation", (3, 0, 1, 2))
    motion = Message(FRAME, "motion", [Take("frame_duration", 0, "frame_time"), *orientation])
    session = Session([axes.compiled(), motion.compiled()], BodyStage())
    session.begin(0)
    session.feed(init() + frame(velocity=(0, 0, 30)), 0)
    row = session.newest()
    assert math.isnan(row["speed"][0])
    assert math.isnan(row["engine_speed"][0])
    assert row["surge"][0] == 0.0


@pytest.mark.parametrize(
    ("messages", "reply"),
    [
        ([Message(FRAME, "motion")] * 129, b""),
        ([], bytes(513)),
        ([Message(FRAME, "motion", (), bytes(513))], b""),
        ([Message(FRAME, "motion", (), bytes(8), Echo(0, 4, 8))], b""),
        ([Message(Packet("long", 30, [Field("text", 0, "S25")], {"text": b"x"}), "motion")], b""),
    ],
)
def test_a_session_refuses_more_than_it_has_room_for(messages, reply):
    with pytest.raises(ValueError, match="allowed"):
        Session([message.compiled() for message in messages], BodyStage(), unknown_reply=reply)


def test_what_comes_is_put_into_a_ring_as_it_comes():
    session, ring = new_session(), RecordRing(1 << 16)
    session.record(ring)
    session.begin(5)
    for package in (INIT_PACKAGE, *FRAMES[:2]):
        session.feed(package, 7)
    batch = sorted_out(ring.take())
    assert batch.packages == [Package(7, 0, package) for package in (INIT_PACKAGE, *FRAMES[:2])]
    assert batch.events[0].what == "connected"
    assert batch.frames["time"].tolist() == [7, 7]
    assert_same_bits(batch.frames[-1:], session.frame())
