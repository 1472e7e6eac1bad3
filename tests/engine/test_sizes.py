"""Inputs of any size through every Python entry point: refused by their size, never truncated."""

import mmap
import sys

import pytest
from helpers import FRAME_REPLY, FRAMES, INIT_PACKAGE, INIT_REPLY, new_session
from test_ring import records

from motioncue import sources
from motioncue.core.threads import KINDS, RecordRing
from motioncue.sources.beamng_simulink.packets import STATE

SYSTEMS = [name for name in sources.having("intake") if sources.source(name).SCHEMES == ("udp",)]


@pytest.fixture
def zeros():
    """Return a function that returns as many zeros as asked for, without using memory until they are read."""
    maps = []

    def make(size):
        maps.append(mmap.mmap(-1, size))
        return maps[-1]

    yield make
    for each in maps:
        each.close()


@pytest.mark.skipif(sys.platform == "win32", reason="zeros take memory at once")
@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**32 + STATE.size], ids=["2 GiB less 1", "2 GiB", "4 GiB and 888"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_package_of_gigabytes_is_one_of_the_wrong_size(zeros, system, size):
    module = sources.source(system)
    intake = module.intake(module.Options())
    ring = RecordRing(1 << 20)
    intake.record(ring)
    reply, open_ = intake.feed(memoryview(zeros(size)), 1)
    assert (reply, open_) == (b"", True)
    assert intake.rejected == {"size": 1}
    assert [(reason, detail) for _, reason, detail in intake.events()] == [("size", size)]
    assert {kind for kind, _, _ in records(ring.take())} == {KINDS["happening"]}  # no package
    assert intake.accepted == intake.others == 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_package_of_a_megabyte_is_looked_at_as_ever(system):
    module = sources.source(system)
    intake = module.intake(module.Options())
    for size, kept in ((0, 1), (1 << 20, 1), ((1 << 20) + 1, 0)):
        before = sum(intake.rejected.values())
        intake.feed(bytes(size), 1)
        assert sum(intake.rejected.values()) == before + 1, (size, kept)


def test_a_stream_in_one_piece_is_answered_package_by_package():
    session = new_session()
    count = 20_000
    replies, open_ = session.feed(INIT_PACKAGE + FRAMES[0] * count, 1)
    assert open_
    assert replies == INIT_REPLY + FRAME_REPLY * count
    assert session.accepted == count
