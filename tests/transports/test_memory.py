"""Shared memory: which mapping is a simulator's, states that are being written, ends and restarts."""

import math
import os
import struct
import sys
import threading
import time
import uuid

import pytest
from click.testing import CliRunner
from helpers import eventually

from motioncue import sources
from motioncue.cli.listen import command
from motioncue.core.clock import FakeClock, MonotonicClock
from motioncue.drive.peers import MemorySimulator, Paced
from motioncue.engine.receiver import MemoryReceiver
from motioncue.engine.reception import Listener, readable_games
from motioncue.errors import EndpointError
from motioncue.sources.described.source import DescribedSource
from motioncue.transports.mapped import Finder
from motioncue.transports.memory import Memory
from motioncue.virtual.installation import drive_packages, make_simulator
from motioncue.wire.description import Gather, SharedMemory, SourceField, SourcePacket, SourceWindow, Window

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files in /dev/shm")

PLAIN = Gather(64, (Window(0, 8),), 0, 4, fits=lambda data: data[4] == 7)


@pytest.fixture
def page():
    """Return a function that writes a file in /dev/shm at an offset; it is removed in the end."""
    files = []

    class File:
        def __init__(self, size=64):
            self.name = f"motioncue-test-{uuid.uuid4().hex[:8]}"
            self.path = f"/dev/shm/{self.name}"
            self.file = open(self.path, "w+b", buffering=0)  # noqa: SIM115
            self.file.truncate(size)
            files.append(self)

        def put(self, offset, data):
            os.pwrite(self.file.fileno(), data, offset)

    yield File
    for each in files:
        each.file.close()
        if os.path.exists(each.path):
            os.unlink(each.path)


def counted(page, counter, mark=7):
    page.put(0, struct.pack("<IB", counter, mark))


def found(finder, pages, looks, mark=7):
    """Return what a finder has found at each look, while the pages' counters move."""
    out = []
    for look in range(looks):
        for each in pages:
            counted(each, look + 1, mark)
        out.append(finder())
    return out


def test_a_memory_is_taken_once_its_counter_has_moved_three_times(page):
    memory = page()
    first = found(Finder(memory.name, PLAIN), [memory], 4)
    assert first[:3] == [None, None, None]
    assert first[3].where == memory.path


def test_a_memory_that_stands_still_or_does_not_fit_is_not_taken(page):
    memory = page()
    counted(memory, 5)
    finder = Finder(memory.name, PLAIN)
    assert [finder() for _ in range(6)] == [None] * 6
    assert found(finder, [memory], 6, mark=8) == [None] * 6  # it moves, and is something else
    assert found(Finder("no-such-memory", PLAIN), [memory], 6) == [None] * 6


def test_a_memory_smaller_than_its_parts_is_not_taken(page):
    memory = page(7)
    assert found(Finder(memory.name, PLAIN), [memory], 6) == [None] * 6


def test_between_two_that_both_move_none_is_taken(page, monkeypatch):
    one, other = page(), page()
    monkeypatch.setattr("motioncue.transports.mapped._wine_files", lambda: iter([other.path]))
    finder = Finder(one.name, PLAIN._replace(size=64))
    assert found(finder, [one, other], 6) == [None] * 6
    last = found(finder, [one], 3)
    assert [each and each.where for each in last] == [None] * 3  # the other one has stood still, but proved itself
    os.unlink(other.path)
    assert finder().where == one.path


def test_a_state_is_torn_while_its_two_counters_differ(page):
    memory = page()
    reading = Memory(memory.path, Gather(64, (Window(0, 16),), 0, 4, end=4))
    memory.put(0, struct.pack("<IId", 3, 2, 1.5))  # begun, not ended
    assert reading.take() is None
    memory.put(4, struct.pack("<I", 3))
    assert reading.take() == struct.pack("<IId", 3, 3, 1.5)


def test_a_state_is_torn_while_its_counter_is_odd(page):
    memory = page()
    reading = Memory(memory.path, Gather(64, (Window(0, 16),), 0, 4, odd=True))
    memory.put(0, struct.pack("<Id", 3, 1.5))
    assert reading.take() is None
    memory.put(0, struct.pack("<I", 4))
    assert reading.take()[:4] == struct.pack("<I", 4)


def test_parts_are_joined_and_a_number_says_which_block(page):
    memory = page()
    windows = (Window(0, 4), Window(16, 4, number=8, number_size=1, stride=10))
    reading = Memory(memory.path, Gather(64, windows, 4, 4))
    memory.put(0, b"head")
    memory.put(36, b"car2")
    memory.put(8, b"\x02")
    assert reading.take() == b"headcar2"
    assert reading.count() == int.from_bytes(b"car2", "little")
    memory.put(8, b"\x05")  # beyond the memory
    assert reading.take() is None
    assert reading.count() is None


LISTED = Gather(65536, (Window(0, 8, name="SessionTime"), Window(0, 4, name="Roll")), 0, 8)


def list_variables(memory, *names):
    """Write the list as iRacing's SDK does: names of doubles, 4 buffers of 1000 bytes from 8000 on."""
    memory.put(0, struct.pack("<10i", 2, 1, 60, 0, 0, 0, len(names), 144, 4, 1000))
    for number, name in enumerate(names):
        memory.put(144 + 144 * number, struct.pack("<3i4x32s", 5, 8 * number, 1, name.encode()))
    for number in range(4):
        memory.put(48 + 16 * number, struct.pack("<2i", number, 8000 + 1000 * number))


def test_variables_are_found_by_name_in_the_newest_buffer(page):
    memory = page(65536)
    list_variables(memory, "Yaw", "SessionTime", "Roll")
    reading = Memory(memory.path, LISTED)
    memory.put(8000 + 3000 + 8, struct.pack("<2d", 1.5, 0.25))
    assert reading.take() == struct.pack("<d", 1.5) + struct.pack("<d", 0.25)[:4]
    memory.put(8000 + 1000 + 8, struct.pack("<2d", 2.5, 0.5))
    memory.put(48 + 16, struct.pack("<i", 9))  # written, so it is the newest
    assert reading.count() == int.from_bytes(struct.pack("<d", 2.5), "little")
    assert reading.take()[:8] == struct.pack("<d", 2.5)


def test_a_variable_that_may_be_missing_is_no_number_then(page):
    memory = page(65536)
    shock = Window(0, 4, name="LFshockDefl", optional=True)
    wanted = LISTED._replace(windows=(LISTED.windows[0], shock, LISTED.windows[1]))
    list_variables(memory, "SessionTime", "Roll")
    memory.put(8000 + 3000, struct.pack("<2d", 1.5, 0.25))
    time, deflection, roll = struct.unpack("<df4s", Memory(memory.path, wanted).take())
    assert (time, roll) == (1.5, struct.pack("<d", 0.25)[:4])
    assert math.isnan(deflection)
    list_variables(memory, "SessionTime", "Roll", "LFshockDefl")  # another car
    memory.put(8000 + 3000 + 16, struct.pack("<f", 0.0625))
    assert struct.unpack("<df4s", Memory(memory.path, wanted).take())[1] == 0.0625


@pytest.mark.parametrize(("kind", "count"), [(4, 1), (1, 6), (9, 6)])
def test_a_variable_that_may_be_missing_and_has_too_few_samples_is_no_number_either(page, kind, count):
    """Six floats are asked for; one that may not be missing is refused then."""
    memory = page(65536)
    shock = Window(0, 4, name="LFshockDefl", sampled=True, optional=True)
    wanted = LISTED._replace(windows=(LISTED.windows[0], shock, LISTED.windows[1]), samples=6)
    list_variables(memory, "SessionTime", "LFshockDefl", "Roll")
    memory.put(144 + 144, struct.pack("<3i", kind, 8, count))
    memory.put(8000 + 3000, struct.pack("<3d", 1.5, 0.0, 0.25))
    time, deflection, roll = struct.unpack("<df4s", Memory(memory.path, wanted).take())
    assert (time, roll) == (1.5, struct.pack("<d", 0.25)[:4])
    assert math.isnan(deflection)
    needed = wanted._replace(windows=(wanted.windows[0], shock._replace(optional=False), wanted.windows[2]))
    with pytest.raises(OSError, match="the variable LFshockDefl is smaller than 24 bytes"):
        Memory(memory.path, needed)


def test_a_list_that_changes_ends_the_reading_and_is_looked_up_anew(page):
    """Another car has other variables: nothing is read from where one was before."""
    memory = page(65536)
    list_variables(memory, "Yaw", "SessionTime", "Roll")
    finder, reading = Finder(memory.name, LISTED), Memory(memory.path, LISTED)
    assert finder() is None
    list_variables(memory, "SessionTime", "Yaw", "Roll")
    assert (reading.take(), reading.count()) == (None, None)
    list_variables(memory, "Roll")
    with pytest.raises(OSError, match="there is no variable SessionTime"):
        Memory(memory.path, LISTED)
    list_variables(memory, "SessionTime", "Roll")
    for look in range(5):  # one drops what was looked up, one looks it up, and it has to move three times
        memory.put(8000 + 3000, struct.pack("<d", 1.0 + look))
        anew = finder()
    assert anew.where == memory.path


def test_a_simulator_that_is_not_connected_is_not_read(page):
    memory = page(65536)
    list_variables(memory, "SessionTime", "Roll")
    reading = Memory(memory.path, LISTED)
    assert reading.take() is not None
    memory.put(4, bytes(4))
    assert reading.take() is None


def test_a_file_that_shrinks_is_gone_and_ends_nothing_else(page):
    memory = page()
    reading = Memory(memory.path, PLAIN)
    assert reading.present()
    memory.file.truncate(2)
    assert reading.take() is None
    os.unlink(memory.path)
    assert not reading.present()


def described(**memory):
    fields = [SourceField(offset=0, type="u4", channel="time", unit="ms")]
    names = ("surge", "sway", "heave", "roll", "pitch", "yaw")
    fields += [SourceField(offset=4 + 4 * place, type="f4", channel=name) for place, name in enumerate(names)]
    parts = (SourceWindow(offset=0, size=28),)
    return DescribedSource(
        SourcePacket(size=28, fields=tuple(fields), memory=SharedMemory(size=64, gather=parts, counter=0, **memory))
    )


def state(number, *values):
    return struct.pack("<I6f", number, *values, *[0.0] * (6 - len(values)))


class Once:
    """Finds a memory once, and stops the receiver when it is searched again."""

    def __init__(self, memory):
        self.memory, self.receiver = memory, None

    def __call__(self):
        memory, self.memory = self.memory, None
        if memory is None:
            self.receiver.stop()
        return memory


def served(page, memory, intake):
    """Read a page until it stands still and has gone."""
    find = Once(Memory(memory.path, intake.gather))
    find.receiver = MemoryReceiver(intake, find, FakeClock())
    os.unlink(memory.path)  # the simulator has ended: what is still there is read, then the seat is free
    find.receiver.run()
    return find.receiver


def test_a_state_is_taken_once_and_the_end_frees_the_seat(page):
    memory, intake = page(), described().intake()
    memory.put(0, state(10, 1.5, -2.5))
    served(page, memory, intake)
    motion = intake.newest()
    assert (motion["surge"][0], motion["sway"][0]) == (1.5, -2.5)
    assert intake.accepted == 1
    assert intake.sessions == 1
    assert [reason for _, reason, _ in intake.events()][-1] == "session_ended"


def test_a_state_that_never_ends_is_counted_and_not_taken(page):
    memory, intake = page(), described(odd=True).intake()
    memory.put(0, state(11, 1.5))
    receiver = served(page, memory, intake)
    assert intake.accepted == 0
    assert intake.rejected["torn"] > 0
    assert receiver.torn == 3 * intake.rejected["torn"]


def test_a_simulator_writes_what_is_read(page):
    """The two-counter and the odd form, and parts apart, as the twin writes them."""
    name = f"motioncue-test-{uuid.uuid4().hex[:8]}"
    for gather in (
        Gather(64, (Window(8, 8), Window(40, 8)), 0, 4, end=4),
        Gather(64, (Window(8, 8), Window(40, 8)), 0, 4, odd=True),
        Gather(64, (Window(8, 8), Window(40, 8)), 0, 4),
    ):
        got = []
        simulator = MemorySimulator(
            f"memory://{name}", [Paced(0.0, bytes(range(16))), Paced(0.0, bytes(8) + b"12345678")], gather
        )
        reading = Memory(f"/dev/shm/{name}", gather)
        simulator.on_sent = lambda package, to, reading=reading, got=got: got.append(reading.take())
        simulator.run()
        assert [each[8:] for each in got] == [bytes(range(8, 16)), b"12345678"]
        assert not os.path.exists(f"/dev/shm/{name}")


def test_a_simulators_memory_is_not_written_by_the_virtual_one(page):
    with pytest.raises(EndpointError, match="File exists"):
        MemorySimulator(f"memory://{page().name}", [], PLAIN)


@pytest.mark.rt
@pytest.mark.check
def test_a_game_that_ends_and_returns_is_found_again():
    name = "assetto-corsa-dk"
    url = f"memory://motioncue-test-{uuid.uuid4().hex[:8]}"
    packages = drive_packages(name, "turns", 333.33, 30.0)
    with Listener(name, url) as listener:
        for session in (1, 2):
            simulator = make_simulator(name, [url], packages)
            thread = threading.Thread(target=simulator.run)
            thread.start()
            eventually(lambda session=session: listener.stats()["sessions"] == session)
            eventually(lambda session=session: listener.stats()["frames_received"] > 50 * session)
            simulator.stop()
            thread.join()
        assert listener.stats()["rejected"].keys() <= {"seen_late"}  # as many as the machine is busy


@pytest.mark.alone
def test_a_thousand_looks_a_second_take_little_of_a_processor(page):
    """CPU time of the loop's thread, which load does not change much: less than 3 % of a core."""
    memory, source = page(), described(still_s=2.0)
    intake, spent = source.intake(), []
    memory.put(0, state(1))
    find = Once(Memory(memory.path, source.gather))
    find.receiver = MemoryReceiver(intake, find, MonotonicClock())
    os.unlink(memory.path)

    def run():
        began = time.thread_time()
        find.receiver.run()
        spent.append(time.thread_time() - began)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert spent[0] < 0.03 * 2.0


@pytest.mark.check
@pytest.mark.rt
def test_games_that_can_be_read_are_listed_with_their_profile():
    """The virtual game writes where the real one does; whoever plays here meanwhile is left alone."""
    url = "memory://acpmf_physics"
    try:
        simulator = make_simulator("assetto-corsa-dk", [url], drive_packages("assetto-corsa-dk", "turns", 333.33, 20.0))
    except EndpointError:
        pytest.skip("a game or another run of this test has that memory")
    thread = threading.Thread(target=simulator.run)
    thread.start()
    try:
        assert ("assetto-corsa-dk", "/dev/shm/acpmf_physics") in readable_games()
        assert "assetto-corsa-dk" in CliRunner().invoke(command, ["--find"]).output
    finally:
        simulator.stop()
        thread.join()
    assert ("assetto-corsa-dk", "/dev/shm/acpmf_physics") not in readable_games(0.5)


def test_every_profile_of_shared_memory_names_one():
    named = [name for name in sources.described_profiles() if sources.by_profile(name).SCHEMES == ("memory",)]
    assert "assetto-corsa-dk" in named
