"""Shared memory in which another mapping says which vehicle is the player's: never is another one read."""

import logging
import os
import shutil
import struct
import sys
import threading
import uuid

import msgspec
import pytest
from helpers import eventually

from motioncue import sources
from motioncue.core.clock import FakeClock
from motioncue.core.threads import RecordRing
from motioncue.engine.receiver import MemoryReceiver
from motioncue.engine.reception import Listener
from motioncue.errors import ConfigError
from motioncue.recording.recorder import sorted_out
from motioncue.sources.described.source import DescribedSource
from motioncue.transports.mapped import Finder
from motioncue.transports.memory import Memory
from motioncue.virtual.installation import drive_packages, make_simulator
from motioncue.wire.description import Gather, PlayerTable, VehicleBlocks, Window

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files in /dev/shm")

# Here: two counters, the number of vehicles, then 8 blocks of 16 bytes that begin with a number.  There: likewise, with
# 4 blocks of 8 bytes, of which byte 4 says whether it is the player's.
HERE, THERE = VehicleBlocks(count=8, most=8, first=16, stride=16), VehicleBlocks(count=8, most=4, first=16, stride=8)


def gather(name):
    player = PlayerTable(name=name, size=64, begin=0, end=4, mark=4, there=THERE, here=HERE)
    windows = (Window(0, 12), Window(20, 8, block="player"), Window(20, 1, block="beside"))
    return Gather(144, windows, 0, 4, end=4, player=player, fits=lambda data: data[20] == 1)


class Pages:
    """The two mappings, as files."""

    def __init__(self):
        name = f"motioncue-test-{uuid.uuid4().hex[:8]}"
        self.name, self.beside_name = name, f"{name}-scoring"
        self.path, self.beside_path = f"/dev/shm/{name}", f"/dev/shm/{name}-scoring"
        self.state = 0

    def write(self, vehicles, values=None):
        self.state += 1
        data = struct.pack("<3I4x", self.state, self.state, len(vehicles))
        data += b"".join(struct.pack("<id4x", each, (values or {}).get(each, 100.0 + each)) for each in vehicles)
        self._put(self.path, data.ljust(144, b"\0"))

    def score(self, vehicles, player, begin=1, end=1, count=None):
        data = struct.pack("<2Ii4x", begin, end, len(vehicles) if count is None else count)
        data += b"".join(struct.pack("<iB3x", each, each == player) for each in vehicles)
        self._put(self.beside_path, data.ljust(64, b"\0"))

    def _put(self, path, data):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(file, data, 0)
        os.close(file)

    def memory(self):
        return Memory(self.path, gather(self.beside_name), self.beside_path)


@pytest.fixture
def pages():
    made = Pages()
    yield made
    for path in (made.path, made.beside_path):
        if os.path.exists(path):
            os.unlink(path)


def value_of(packet):
    """Return the number of the vehicle that was read, and whether it is marked as the player's."""
    return struct.unpack_from("<dB", packet, 12)


def test_the_players_vehicle_is_followed_through_every_order_of_blocks(pages):
    orders = [(7, 3, 5), (3, 7, 5), (3, 5, 7), (5, 7), (9, 8, 5, 3, 7), (7,)]
    pages.write(orders[0])
    pages.score(orders[0], 7)
    memory = pages.memory()
    for here in orders:
        for there in orders:
            pages.write(here)
            pages.score(there[:4] if 7 in there[:4] else there[1:], 7)
            assert value_of(memory.take()) == (107.0, 1)


@pytest.mark.parametrize(
    ("here", "score"),
    [
        ((7, 3), {"vehicles": (7, 3), "player": None}),  # nobody is the player
        ((5, 3), {"vehicles": (7, 3), "player": 7}),  # the player's vehicle is not among them
        ((), {"vehicles": (7, 3), "player": 7}),
        ((7, 3), {"vehicles": (), "player": 7}),
        ((7, 3), {"vehicles": (3, 7), "player": 7, "count": 1}),  # what is behind the last vehicle is old
        ((7, 3), {"vehicles": (3, 7), "player": 7, "count": -1}),
    ],
)
def test_without_the_players_vehicle_all_that_would_be_read_of_it_is_zero(pages, here, score):
    pages.write((7, 3))
    pages.score((7, 3), 7)
    memory = pages.memory()
    assert value_of(memory.take()) == (107.0, 1)
    pages.write(here)
    pages.score(**score)
    assert value_of(memory.take()) == (0.0, 0)
    pages.write((3, 7))
    pages.score((7, 3), 7)
    assert value_of(memory.take()) == (107.0, 1)  # and it is found again


def test_a_count_beyond_the_room_for_blocks_leads_nowhere_else(pages):
    pages.write((1, 2, 3))
    pages.score((1, 2, 3), 9, count=1_000_000)
    assert value_of(pages.memory().take()) == (0.0, 0)


def test_a_state_is_torn_while_it_is_being_written_who_the_player_is(pages):
    pages.write((7, 3))
    pages.score((7, 3), 3, begin=2, end=1)
    memory = pages.memory()
    assert memory.take() is None
    pages.score((7, 3), 3, begin=2, end=2)
    assert value_of(memory.take()) == (103.0, 1)


def test_another_vehicle_that_becomes_the_players_is_followed_from_then_on(pages):
    pages.write((7, 3))
    pages.score((7, 3), 7)
    memory = pages.memory()
    assert value_of(memory.take()) == (107.0, 1)
    pages.score((7, 3), 3)
    assert value_of(memory.take()) == (103.0, 1)


def looked(finder, pages, times=5):
    """Return what a finder finds while states come."""
    for _ in range(times):
        pages.write((3, 7))
        if (found := finder()) is not None:
            return found
    return None


def test_a_simulator_that_does_not_say_who_the_player_is_is_not_read_and_that_is_said_once(pages, caplog):
    finder = Finder(pages.name, gather(pages.beside_name))
    with caplog.at_level(logging.WARNING, logger="motioncue"):
        assert looked(finder, pages) is None
    assert [record.getMessage() for record in caplog.records] == [
        f"memory://{pages.name}: no memory {pages.beside_name} beside it says which vehicle is the player's; it is not "
        f"read until one does"
    ]
    pages.score((3, 7), 7)
    memory = looked(finder, pages)
    assert (memory.where, memory.beside) == (pages.path, pages.beside_path)
    os.unlink(pages.beside_path)
    assert not memory.present()


@pytest.mark.parametrize("size", [0, 63])
def test_a_memory_beside_it_that_is_being_made_is_looked_at_again(pages, size):
    """One that is too small says nothing, and is not kept."""
    pages.score((3, 7), 7)
    os.truncate(pages.beside_path, size)
    finder = Finder(pages.name, gather(pages.beside_name))
    assert looked(finder, pages) is None
    pages.score((3, 7), 7)
    assert looked(finder, pages).where == pages.path


@pytest.mark.parametrize("size", [0, 4])
def test_without_the_memory_beside_it_nothing_is_read(pages, size):
    """Before the first vehicle there are other numbers, which are none of the player's."""
    pages.write((3, 7))
    pages.score((3, 7), 7)
    os.truncate(pages.beside_path, size)
    only = gather(pages.beside_name)
    memory = Memory(pages.path, only._replace(windows=only.windows[:2]), pages.beside_path)
    assert memory.take() is None


def test_a_memory_that_is_replaced_while_it_is_being_found_is_looked_up_anew(pages):
    pages.score((3, 7), 7)
    finder = Finder(pages.name, gather(pages.beside_name))
    assert looked(finder, pages, 2) is None
    os.unlink(pages.beside_path)
    pages.score((3, 7), 3)
    memory = looked(finder, pages)
    assert value_of(memory.take()) == (103.0, 1)
    assert memory.present()


def test_a_memory_beside_it_that_is_replaced_while_states_come_is_looked_up_anew(pages):
    """It is looked every second whether it is still there, however long the states may stay away (here a minute)."""
    pages.write((3, 7))
    pages.score((3, 7), 7)
    source, looks = DescribedSource(sources.by_profile("rfactor-2-dk").table), []
    source.gather = source.gather._replace(still_s=60.0)
    intake = source.intake()

    class Driven(Memory):
        def present(self):
            looks.append(self)
            if len(looks) == 3:
                os.unlink(pages.beside_path)
                pages.score((3, 7), 3)
            return super().present()

    def find():
        if found:
            return found.pop()
        receiver.stop()
        return None

    found = [Driven(pages.path, gather(pages.beside_name), pages.beside_path)]
    receiver = MemoryReceiver(intake, find, FakeClock())
    receiver.run()
    began, ended = (when for when, reason, _ in intake.events() if reason in {"session_began", "session_ended"})
    assert 1e-9 * (ended - began) == pytest.approx(3.0, abs=0.01)


def test_a_simulator_whose_player_has_no_vehicle_is_not_taken_yet(pages):
    pages.score((3, 7), None)
    finder = Finder(pages.name, gather(pages.beside_name))
    assert looked(finder, pages) is None
    pages.score((3, 7), 7)
    assert looked(finder, pages).where == pages.path


def test_under_wine_it_is_told_by_its_content_in_the_same_server(pages, monkeypatch, caplog):
    """Three files of the right size: one without a player, one that is torn, and the one that is it."""
    others = [f"{pages.beside_path}-{n}" for n in range(2)]
    pages.write((3, 7))
    for path, score in zip(others, ({"player": None}, {"player": 7, "begin": 2}), strict=True):
        pages.score((3, 7), **score)
        os.rename(pages.beside_path, path)
    pages.score((3, 7), 7)
    asked, there = [], [*others, pages.beside_path]

    def files(server=""):
        asked.append(server)
        return iter(there if server else [])

    monkeypatch.setattr("motioncue.transports.mapped._wine_files", files)
    finder = Finder("x", gather("y"))
    try:
        assert finder._beside("/proc/1234/fd/5") == pages.beside_path
        assert asked == ["1234"]
        os.unlink(others[0])
        os.link(pages.path, others[0])  # of another size
        shutil.copy(pages.beside_path, others[1])
        assert [finder._beside("/proc/1234/fd/5") for _ in range(2)] == [None, None]
        pages.score((), None)
        there.remove(others[1])
        assert finder._beside("/proc/1234/fd/5") is None
        there.remove(pages.beside_path)
        assert finder._beside("/proc/1234/fd/5") is None
        assert [record.getMessage() for record in caplog.records] == [
            f"memory://x: 2 memories beside it say which vehicle is the player's, {others[1]}, {pages.beside_path}; it "
            f"is not read until one is left",
            "memory://x: the memory y beside it names no vehicle as the player's, as in menus; it is not read until it "
            "does",
            "memory://x: no memory y beside it says which vehicle is the player's; it is not read until one does",
        ]
    finally:
        for path in others:
            os.unlink(path)


@pytest.mark.check
@pytest.mark.rt
def test_of_four_vehicles_whose_order_changes_as_they_drive_rfactor_2s_player_is_read_alone():
    """The virtual game changes the order each second; every packet is one that was written for the player."""
    url, ring = f"memory://motioncue-test-{uuid.uuid4().hex[:8]}", RecordRing(8 << 20)
    packages = [*drive_packages("rfactor-2-dk", "tour", 200.0, 40.0)]
    listener = Listener("rfactor-2-dk", url)
    listener.record(ring)
    simulator = make_simulator("rfactor-2-dk", [url], packages)
    thread = threading.Thread(target=simulator.run)
    with listener:
        thread.start()
        eventually(lambda: listener.stats()["frames_received"] > 500)  # ten orders
        simulator.stop()
        thread.join()
        stats = listener.stats()
    got = [each.data for each in sorted_out(ring.take()).packages]
    sent = {each.package[20:] for each in packages}
    assert stats["others_received"] == 0
    assert set(stats["rejected"]) <= {"torn"}
    assert len(got) > 500
    assert {struct.unpack_from("<i", data, 16) for data in got} == {(7,)}
    assert all(data[20:] in sent for data in got)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"player": None}, "gather[1].block: found player, allowed is none without source.packet.memory.player"),
        ({"first": 16, "stride": 2000}, "memory.player.here: found 128 blocks of 2000 bytes from 16 on"),
        ({"mark": 584}, "memory.player.there: found 128 blocks of 584 bytes from 560 on"),
        ({"offset": 1905}, "gather[1].offset: found 1905, allowed are 16 to 1536, the first block's"),
        ({"counter": 16}, "memory.counter: found 16"),
    ],
)
def test_blocks_that_cannot_be_are_refused(change, message):
    table = sources.by_profile("rfactor-2-dk").table
    memory, replace = table.memory, msgspec.structs.replace
    player = memory.player
    if "stride" in change:
        player = replace(player, here=replace(player.here, **change))
    elif "mark" in change:
        player = replace(player, **change)
    elif "offset" in change:
        parts = (memory.gather[0], replace(memory.gather[1], **change), *memory.gather[2:])
        memory = replace(memory, gather=parts)
    else:
        memory = replace(memory, **change)
        player = memory.player
    with pytest.raises(ConfigError) as error:
        DescribedSource(replace(table, memory=replace(memory, player=player)))
    assert message in str(error.value)
