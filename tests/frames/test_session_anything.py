"""The session of City Car Driving: for any bytes, it accepts what a plain reading of the document accepts."""

import math
import struct
from itertools import pairwise

import pytest
from helpers import (
    AXES,
    BAD_AXES,
    CHANNELS,
    FRAMES,
    INIT_PACKAGE,
    Reference,
    init,
    new_session,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline

pytestmark = pytest.mark.search

START = 1_000_000_000
FRAME_INTERVAL = 1_000_000_000 // 60
PROFILES = [motioncue.load_profile(name) for name in ("ccd-dk", "ccd-dk-classical")]


def chunked(draw, data):
    """Cut `data` into pieces at drawn places."""
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=12))
    edges = sorted({0, len(data), *cuts})
    return [data[start:end] for start, end in pairwise(edges)]


@st.composite
def random_streams(draw):
    """Arbitrary pieces, some with the size field of a package."""
    sizes = st.sampled_from([0, 2, 3, 4, 39, 107, 512, 513, 39 << 8, 107 << 8])
    kinds = st.sampled_from([0, 1, 2, 3, 255])
    heads = st.builds(lambda size, kind: struct.pack("<HB", size, kind), sizes, kinds)
    packages = st.builds(bytes.__add__, heads, st.binary(max_size=120))
    return chunked(draw, b"".join(draw(st.lists(st.one_of(st.binary(max_size=300), packages), max_size=8))))


def mutate(draw, data):
    """Return `data` with one thing wrong."""
    kind = draw(st.sampled_from(["flip", "byte", "nan", "insert", "delete", "duplicate", "truncate"]))
    at = draw(st.sampled_from(range(len(data))))
    end = min(len(data), at + draw(st.integers(1, 250)))
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
    if kind == "byte":
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    if kind == "nan":
        return data[:at] + struct.pack("<f", draw(st.sampled_from([math.nan, math.inf, 1e30, -5e3]))) + data[at + 4 :]
    if kind == "insert":
        return data[:at] + draw(st.binary(min_size=1, max_size=130)) + data[at:]
    if kind == "delete":
        return data[:at] + data[end:]
    if kind == "duplicate":
        return data[:end] + data[at:]
    return data[:at]


@st.composite
def damaged_streams(draw):
    """Pieces of a real stream with a few changes."""
    first = draw(st.integers(0, len(FRAMES) - 30))
    packages = FRAMES[first : first + draw(st.integers(4, 25))]
    if draw(st.booleans()):
        place = draw(st.sampled_from(range(len(packages))))
        axes = draw(st.sampled_from([*AXES.values(), *BAD_AXES.values()]))
        packages = [*packages[:place], init(*axes), *packages[place:]]
    if draw(st.booleans()):
        # Framing is kept: what is wrong is inside a package.
        for place in draw(st.lists(st.sampled_from(range(len(packages))), min_size=1, max_size=5)):
            head, body = packages[place][:2], packages[place][2:]
            packages[place] = head + mutate(draw, body)[: len(body)].ljust(len(body), b"\xff")
        return chunked(draw, b"".join([INIT_PACKAGE, *packages]))
    data = b"".join([INIT_PACKAGE, *packages])
    for _ in range(draw(st.integers(1, 5))):
        data = mutate(draw, data) or INIT_PACKAGE
    return chunked(draw, data)


def within_limits(motion):
    """Say whether every channel is finite and within what the accepted fields allow."""
    limits = {
        "surge": 2000.0, "sway": 2000.0, "heave": 2000.0, "roll_rate": 100.0, "pitch_rate": 100.0, "yaw_rate": 100.0,
        "speed": 500.0,
    }  # fmt: skip
    vectors = all(abs(motion[name][0]) <= math.sqrt(3) * limit * (1 + 1e-9) for name, limit in limits.items())
    angles = all(abs(motion[name][0]) <= math.pi for name in ("roll", "pitch", "yaw"))
    return vectors and angles and all(math.isfinite(motion[name][0]) for name in CHANNELS)


@settings(max_examples=500)
@given(pieces=st.one_of(random_streams(), damaged_streams()))
def test_any_stream_is_taken_as_the_reference_takes_it(pieces):
    session, reference = new_session(), Reference()
    replies, still_open = b"", True
    for piece in pieces:
        if not still_open:
            break
        answer, still_open = session.feed(piece, 0)
        replies += answer
        before = reference.frames
        reference.feed(piece)
        row = session.newest()
        assert (row is not None) == (reference.frames > before)
        assert row is None or within_limits(row)
    assert still_open == reference.open
    assert replies == reference.replies
    assert session.accepted == reference.frames
    assert reference.agrees(session.rejected), (session.rejected, reference.refused)


@settings(max_examples=250)
@given(
    connections=st.lists(st.one_of(random_streams(), damaged_streams()), min_size=1, max_size=3),
    profile=st.sampled_from(PROFILES),
)
def test_only_accepted_frames_move_the_cue(connections, profile):
    """Two engines on one clock: one is fed everything, the other only the packages that the reference accepts."""
    fuzzed, clean = (Pipeline(profile, FakeClock(START), trace=1000) for _ in range(2))
    now = START
    for pieces in connections:
        reference, still_open = Reference(), True
        for pipeline in (fuzzed, clean):
            pipeline.intake.begin(now)
        for piece in pieces:
            now += FRAME_INTERVAL
            for pipeline in (fuzzed, clean):
                pipeline.emitter.run(until_ns=now)
            if still_open:
                _, still_open = fuzzed.intake.feed(piece, now)
                for package in reference.feed(piece):
                    clean.intake.feed(package, now)
    for pipeline in (fuzzed, clean):
        pipeline.emitter.run(until_ns=now + 3 * FRAME_INTERVAL)
    assert clean.intake.rejected == {}
    assert clean.intake.accepted == fuzzed.intake.accepted
    assert_same_bits(fuzzed.emitter.trace, clean.emitter.trace)
    assert fuzzed.emitter.counts()["not_finite"] == 0
