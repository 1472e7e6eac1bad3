"""The ring from the loops to the recorder: every record arrives whole and in order, or is counted as lost."""

import struct

import pytest
from helpers import LINUX_PROGRAMS, compiled
from hypothesis import given
from hypothesis import strategies as st
from test_slot import sanitized, sanitizer  # noqa: F401  (a fixture)

from motioncue.core.threads import HEAD_DTYPE, RecordRing, record_places


def records(data):
    """Return the (kind, time, payload) of the records in some bytes, read by the layout that ring.h states."""
    found, place = [], 0
    while place < len(data):
        kind, size, time = struct.unpack_from("<iiq", data, place)
        found.append((kind, time, data[place + 16 : place + 16 + size]))
        place += 16 + (size + 7) // 8 * 8
    return found


def test_an_empty_ring_gives_nothing():
    assert RecordRing(64).take() == b""


def test_a_head_has_the_layout_of_the_header():
    assert HEAD_DTYPE.itemsize == 16
    ring = RecordRing(256)
    ring.write(3, -7, b"abcde")
    assert ring.waiting == 24
    assert records(ring.take()) == [(3, -7, b"abcde")]
    assert ring.waiting == 0


@given(st.lists(st.tuples(st.integers(0, 2**20), st.integers(-(2**62), 2**62), st.binary(max_size=60)), max_size=20))
def test_every_record_of_an_output_is_placed(written):
    ring = RecordRing(4096)
    assert all(ring.write(*record) for record in written)
    data = ring.take()
    rows = record_places(data)
    assert (
        [(kind, time, data[place : place + size]) for kind, size, time, place in rows.tolist()]
        == records(data)
        == written
    )


@given(
    room=st.integers(64, 400),
    steps=st.lists(st.one_of(st.just(None), st.tuples(st.integers(-9, 9), st.binary(max_size=120))), max_size=60),
)
def test_a_ring_is_a_bounded_first_in_first_out(room, steps):
    ring, waiting, lost, time = RecordRing(room), [], 0, 0
    free = room // 8 * 8
    for step in steps:
        if step is None:
            assert records(ring.take()) == waiting
            waiting, free = [], room // 8 * 8
            continue
        time += 1
        kind, payload = step
        needed = 16 + (len(payload) + 7) // 8 * 8
        assert ring.write(kind, time, payload) == (needed <= free)
        if needed <= free:
            waiting.append((kind, time, payload))
            free -= needed
        else:
            lost += 1
    assert records(ring.take()) == waiting
    assert ring.lost == lost


def test_a_ring_can_be_full_to_the_last_byte():
    ring = RecordRing(64)
    assert [ring.write(1, 0, bytes(16)) for _ in range(3)] == [True, True, False]
    assert (ring.waiting, ring.lost) == (64, 1)
    assert records(ring.take()) == [(1, 0, bytes(16))] * 2


@LINUX_PROGRAMS
@pytest.mark.rt
def test_the_ring_has_no_race(tmp_path, sanitizer):  # noqa: F811
    done = sanitized(compiled(tmp_path, "ring", *sanitizer), "200000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("200000 written, ")


@LINUX_PROGRAMS
@pytest.mark.rt
def test_a_ring_that_publishes_nothing_in_order_is_found_out(tmp_path, sanitizer):  # noqa: F811
    done = sanitized(compiled(tmp_path, "ring", "-DWEAK", *sanitizer), "200000")
    assert done.returncode != 0
    assert "data race" in done.stderr
