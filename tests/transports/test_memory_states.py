"""Shared memory state by state: several samples in each, a packet for each; states that end like the one before."""

import math
import os
import struct
import sys
import threading
import uuid
from itertools import pairwise

import numpy as np
import pytest
from helpers import eventually
from limits_rig import played

from motioncue import sources
from motioncue.core.clock import FakeClock
from motioncue.core.threads import RecordRing
from motioncue.engine.assembly import load_profile
from motioncue.engine.receiver import MemoryReceiver
from motioncue.engine.reception import Listener
from motioncue.errors import ConfigError
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.recording.recorder import sorted_out
from motioncue.sources.described.forms import gather_of
from motioncue.sources.described.source import DescribedSource
from motioncue.transports.memory import Memory
from motioncue.virtual.installation import drive_packages, make_simulator
from motioncue.wire.description import SharedMemory, SourceField, SourcePacket, SourceWindow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files in /dev/shm")

SAMPLES, HZ = 6, 360.0
BEGAN_NS = 1_000_000_000


def described(hz=HZ, **memory):
    """Return a source: time, six samples of surge, one of yaw and sway, and the others as the state has them."""
    channels = ("surge", "yaw", "sway", "heave", "roll", "pitch")
    fields = [SourceField(offset=0, type="f8", channel="time")]
    fields += [SourceField(offset=8 + 4 * place, type="f4", channel=name) for place, name in enumerate(channels)]
    parts = (
        SourceWindow(offset=0, size=8),
        SourceWindow(offset=8, size=4, sampled=True),
        SourceWindow(offset=32, size=4, between="circle"),
        SourceWindow(offset=36, size=4, between="line"),
        SourceWindow(offset=40, size=12),
    )
    own = {"size": 64, "gather": parts, "counter": 0, "type": "u8", "samples": SAMPLES, "sample_hz": hz, "time": 0}
    own |= {"still_s": 0.1} | memory
    return DescribedSource(SourcePacket(size=32, fields=tuple(fields), memory=SharedMemory(**own)))


def state(time, surges, yaw, sway=0.0):
    return struct.pack("<d6f2f3f", time, *surges, yaw, sway, 0.0, 0.0, 0.0)


class Next(Memory):
    """Memory into which the next state is written when the one before has stood still for `still_s`, or at its time."""

    states, rate_hz = (), None

    def write(self):
        with open(self.where, "r+b", buffering=0) as file:
            file.write(self.states.pop(0))

    def present(self):
        if self.states and not self.rate_hz:
            self.write()
            return True
        return bool(self.states)

    def play(self, now):
        """Write what is due at a time [ns]."""
        while self.states and self.rate_hz and now >= self.next_at:
            self.write()
            self.next_at += 1_000_000_000 // self.rate_hz


def received(states, source, wake_ns=0, rate_hz=None):
    """Return packets that a receiver makes of states, each with its arrival [ns], what it left out, and what it said.

    It wakes up as late each time, and each state comes when the one before has stood for the source's `still_s`, or
    so many in a second.
    """
    path, ring = f"/dev/shm/motioncue-test-{uuid.uuid4().hex[:8]}", RecordRing(1 << 20)
    with open(path, "wb") as file:
        file.write(states[0].ljust(64, b"\0"))
    try:
        memory, intake = Next(path, source.gather), source.intake()
        memory.states, memory.rate_hz, memory.next_at = list(states[1:]), rate_hz, BEGAN_NS
        intake.record(ring)
        found = [memory]

        def find():
            if not found:
                receiver.stop()
            return found.pop() if found else None

        receiver = MemoryReceiver(intake, find, FakeClock(BEGAN_NS, wake_ns, meanwhile=memory.play))
        receiver.run()
    finally:
        os.unlink(path)
    packets = [(each.time, each.data) for each in sorted_out(ring.take()).packages]
    return packets, dict(intake.rejected), [reason for _, reason, _ in intake.events()]


def packets_of(states, source, wake_ns=0):
    return received(states, source, wake_ns)[0]


def samples_of(states, source):
    """Return when each packet came [ns], and its numbers."""
    return [(arrival, struct.unpack("<d2f4f", data)) for arrival, data in packets_of(states, source)]


def test_each_sample_becomes_a_packet_of_its_own_time_given_as_much_later():
    """The first state follows none, so only its last sample has a known place."""
    states = [state(10.0, range(6), 0.5), state(10.0 + 1 / 60, range(6, 12), 0.56)]
    found = samples_of(states, described())
    assert [values[1] for _, values in found] == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    assert [values[0] for _, values in found] == pytest.approx([10.0 + number / HZ for number in range(7)], abs=1e-9)
    assert np.diff([arrival for arrival, _ in found][1:]) == pytest.approx(1e9 / HZ, abs=2.0)


def test_what_has_no_samples_lies_between_two_states():
    """Angles go the shorter way round: from 3.1 to -3.1 by 0.083 rad, through pi."""
    states = [state(10.0, range(6), 3.1, 1.0), state(10.0 + 1 / 60, range(6, 12), -3.1, 2.5)]
    found = samples_of(states, described())[1:]
    step = (2.0 * math.pi - 6.2) / 6
    turned = [
        math.remainder(values[2] - 3.1 - step * (number + 1), 2.0 * math.pi) for number, (_, values) in enumerate(found)
    ]
    assert turned == pytest.approx([0.0] * 6, abs=1e-6)
    assert [values[3] for _, values in found] == pytest.approx([1.25, 1.5, 1.75, 2.0, 2.25, 2.5], abs=1e-6)


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        (2 / HZ, [5.0, 10.0, 11.0]),  # the others were in the state before
        (2 / 60, [5.0, *map(float, range(6, 12))]),  # a state was missed
        (30.0, [5.0, 11.0]),  # it follows none
        (-3.0, [5.0, 11.0]),  # another session
    ],
)
def test_only_samples_since_the_state_before_are_given(passed, expected):
    states = [state(10.0, range(6), 0.5), state(10.0 + passed, range(6, 12), 0.6)]
    assert [values[1] for _, values in samples_of(states, described())] == expected


def test_samples_that_wait_are_given_at_once_when_the_next_state_comes():
    """Here they are 0.1 s apart, and a state comes after two of them."""
    angles = [0.0, 0.6, -2.0]
    states = [state(10.0 + 0.6 * n, range(6 * n, 6 * n + 6), angle, angle) for n, angle in enumerate(angles)]
    found = samples_of(states, described(hz=10.0, still_s=0.25))
    # On the way to the state that they are of, not to the one that has just come.
    expected = np.interp([values[0] for _, values in found], [10.0, 10.6, 11.2], angles)
    assert [values[2] for _, values in found] == pytest.approx(expected, abs=1e-5)
    assert [values[3] for _, values in found] == pytest.approx(expected, abs=1e-5)
    assert [values[1] for _, values in found] == [float(number) for number in range(5, 18)][: len(found)]
    arrivals = np.array([arrival for arrival, _ in found])
    third = next(number for number, (_, values) in enumerate(found) if values[1] == 12.0)
    assert third == 7
    assert (arrivals[4:7] == arrivals[4]).all()  # before the state that follows is copied over the one they begin at
    assert 0 <= arrivals[7] - arrivals[4] <= 60_000


UNMARKED = DescribedSource(
    SourcePacket(
        size=28,
        fields=(
            SourceField(offset=0, type="u4", channel="time", unit="ms"),
            *(
                SourceField(offset=4 + 4 * place, type="f4", channel=name)
                for place, name in enumerate(("surge", "sway", "heave", "roll", "pitch", "yaw"))
            ),
        ),
        memory=SharedMemory(size=64, gather=(SourceWindow(offset=0, size=28),), counter=0, still_s=0.1),
    )
)


def unmarked(number, begin, end):
    return struct.pack("<I6f", number, begin, begin, begin, end, end, end)


def test_a_state_without_marks_that_ends_like_the_one_before_is_not_taken_until_its_end_is_written():
    """The writer was interrupted in the midst of the second state, for as long as it may be."""
    first, half, second = unmarked(1, 0.1, 0.1), unmarked(2, 0.2, 0.1), unmarked(2, 0.2, 0.2)
    half = half[:12] + first[12:]
    assert [data for _, data in packets_of([first, half, half, second], UNMARKED)] == [first, second]


def test_of_two_states_that_are_interrupted_one_after_the_other_neither_is_taken_half_written():
    """The end of the first shows, once it is there, that the car does not stand."""
    first, second, third = (unmarked(number, 0.1 * number, 0.1 * number) for number in (1, 2, 3))
    states = [first, second[:12] + first[12:], second, third[:12] + second[12:], third]
    assert [data for _, data in packets_of(states, UNMARKED)] == [first, second, third]


def each_lasts(seconds):
    """Return the source without marks, whose states follow one another as soon."""
    source = DescribedSource(UNMARKED.table)
    source.gather = source.gather._replace(still_s=seconds)
    return source


def test_a_state_seen_too_late_to_show_that_it_is_whole_is_left_out_and_counted():
    """Looks are 4 ms apart, and states were missed: this one may end as that one did, for as long as it stands."""
    first, second, half, fourth = (unmarked(number, 0.1 * number, 0.1 * number - late) for number, late in PARTS)
    states = [*[first] * 40, second, half, fourth, unmarked(6, 0.6, 0.5), unmarked(8, 0.8, 0.7), unmarked(8, 0.8, 0.8)]
    packets, rejected, said = received(states, each_lasts(0.005), 3_000_000)
    assert [data for _, data in packets] == [first, second, fourth, states[-1]]
    assert rejected == {"seen_late": 1}
    assert "seen_late" not in said


PARTS = [(1, 0.0), (2, 0.0), (4, 0.1), (4, 0.0)]


def test_a_busy_machine_takes_a_state_that_is_counted_as_the_next_after_one_that_was_whole():
    """Looks are 4 ms apart; the fifth ends as the fourth, which was not seen."""
    first, second, third, fifth = (unmarked(n, 0.1 * n, 0.1 * n - (0.1 if n == 5 else 0.0)) for n in (1, 2, 3, 5))
    states = [*[first] * 40, second[:12] + first[12:], second, third, fifth]
    packets = packets_of(states, each_lasts(0.005), 3_000_000)
    assert [data for _, data in packets] == [first, second, third]


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("late_us", [0, 300, 500, 700, 1000, 3000])
def test_however_late_looks_are_a_car_at_60_hz_is_read(late_us, step):
    """Nearly every state, whatever it is counted in."""
    states = [unmarked(1 + step * number, 0.01 * number, 0.01 * number) for number in range(100)]
    packets, rejected, _ = received(states, each_lasts(1 / 60), 1000 * late_us)
    taken = [data for _, data in packets]
    assert len(taken) >= 95
    assert taken == [state for state in states if state in taken]
    assert sum(rejected.values()) <= 5


def test_a_machine_that_is_late_at_every_state_says_so_once_and_reads_on():
    """It sees each state at a single look, of 400 a second."""
    states = [unmarked(7 * number, 0.01 * number, 0.01 * number) for number in range(1, 60)]
    packets, rejected, said = received(states, each_lasts(0.0025), 3_000_000)
    assert len(packets) > 45
    assert rejected.keys() <= {"seen_late"}
    assert said.count("seen_late") == 1


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("rate_hz", [60, 100, 333, 400])
@pytest.mark.parametrize("late_ms", [2, 5, 10, 15, 30])
def test_a_game_that_goes_on_while_every_wait_is_late_is_read_on(late_ms, rate_hz, step):
    """The next states come before one is read; some looks are needed to learn that none will be seen in time."""
    states = [unmarked(5 + step * number, math.sin(number), math.cos(number)) for number in range(4 * rate_hz)]
    packets, rejected, _ = received(states, UNMARKED, 1_000_000 * late_ms, rate_hz)
    arrivals = [BEGAN_NS, *(arrival for arrival, _ in packets), BEGAN_NS + 4_000_000_000]
    longest_ms = 1e-6 * max(after - before for before, after in pairwise(arrivals))
    assert longest_ms <= 8 * max(2 * late_ms + 2, 1000 / rate_hz)
    assert rejected.keys() <= {"seen_late"}
    numbers = [struct.unpack_from("<I", data)[0] for _, data in packets]
    assert all(after > before for before, after in pairwise(numbers))


def test_a_simulator_that_counts_twice_for_each_change_of_its_motion_is_read():
    states = [unmarked(number, 0.1 * (number // 2), 0.1 * (number // 2)) for number in range(1, 61)]
    assert len(packets_of(states, UNMARKED)) > 25


TORN_EVERY = 7  # states


@pytest.mark.parametrize("drive", ["tour", "trouble"])
@pytest.mark.parametrize(("name", "rate_hz"), [("raceroom-dk", 400.0), ("le-mans-ultimate-dk", 100.0)])
def test_a_torn_state_would_be_late_in_a_part_and_no_jolt(name, rate_hz, drive):
    """Every seventh state ends at a random place as the one before, and no bound acts.

    Each of its numbers is as it was then or as it is now, so a channel is no more than a frame late, and what is made
    of its change no more than two: it differs by less than it changes in three frames, and no tick steps more than
    three times as far as without.
    """
    rng, clean, torn = np.random.default_rng(1), [*drive_packages(name, drive, rate_hz, 20.0)], []
    for number, each in enumerate(clean):
        package, before = each.package, clean[number - 1].package if number else b""
        if number % TORN_EVERY == 0 and package and before:
            cut = 8 * int(rng.integers(1, len(package) // 8))
            package = package[:cut] + before[cut:]
        torn.append(each._replace(package=package))
    whole, parts = (played(load_profile(name, "limits=none"), each) for each in (clean, torn))
    assert sum(each.package != other.package for each, other in zip(clean, torn, strict=True)) > len(clean) / 12
    assert parts.intake.discontinuities == whole.intake.discontinuities
    assert parts.intake.accepted == whole.intake.accepted
    frame = math.ceil(whole.profile.rate_hz / rate_hz)  # ticks
    for channel in ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate"):
        right, found = (np.unwrap(each.emitter.trace["cue"][channel]) for each in (whole, parts))
        usual = np.abs(np.diff(right)).max()
        assert np.abs(np.diff(found)).max() <= 3.0 * usual
        assert np.abs(found - right).max() <= 3.0 * frame * usual


def test_a_car_that_stands_is_seen_in_every_other_state():
    """Its clock goes on, so its states are not a page that stands still."""
    states = [unmarked(number, 0.0, 0.0) for number in range(1, 8)]
    assert [data for _, data in packets_of(states, UNMARKED)] == [states[0], *states[2::2]]


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"sample_hz": None}, "memory.samples: found 6 with sample_hz None and time 0"),
        ({"samples": 1, "sample_hz": None, "time": None}, "gather[1]: found sampled = true"),
        ({"time": 28}, "memory.time: found 28"),
        ({"size": 28}, "gather[1].offset: found 8, allowed is up to 4 for 24 bytes"),
    ],
)
def test_a_description_of_samples_is_refused_where_it_cannot_be(memory, message):
    with pytest.raises(ConfigError) as error:
        described(**memory)
    assert message in str(error.value)


@pytest.mark.parametrize(("kind", "at"), [("u1", 8), ("i4", 8), ("u2", 11), ("i2", 7)])
def test_an_integer_of_a_variable_that_may_be_missing_is_refused(kind, at):
    """Every bit of it would be set: -1, or the largest number, and nothing says that it is none."""
    parts = tuple(SourceWindow(name=name, size=size, optional=size == 4) for name, size in (("a", 8), ("b", 4)))
    memory = SharedMemory(size=64, gather=parts, counter=0)
    fields = (SourceField(offset=at, type=kind, channel="gear"),)
    with pytest.raises(ConfigError) as error:
        gather_of(SourcePacket(size=12, fields=fields, memory=memory), bool)
    assert f"gather[1].optional: found true for what the {kind} at {at} is read from" in str(error.value)
    floats = (SourceField(offset=8, type="f4", channel="surge"), SourceField(offset=6, type="u2", channel="gear"))
    assert gather_of(SourcePacket(size=12, fields=floats, memory=memory), bool).windows[1].optional


def test_iracings_state_is_read_360_times_a_second_and_its_angles_60_times():
    (url,), source = parse_profile(profile_text("iracing-dk")).source.endpoints, sources.by_profile("iracing-dk")
    assert url == "memory://IRSDKMemMapFileName"
    sampled = {part.name for part in source.gather.windows if part.sampled}
    vectors = [f"{name}{axis}_ST" for name, axes in (("Velocity", "XYZ"),) for axis in axes]
    assert sampled == {
        *vectors,
        *(f"{way}Accel_ST" for way in ("Lat", "Long", "Vert")),
        *(f"{way}Rate_ST" for way in ("Roll", "Pitch", "Yaw")),
        *(f"{corner}shock{what}_ST" for corner in ("LF", "RF", "LR", "RR") for what in ("Defl", "Vel")),
    }
    optional = {part.name for part in source.gather.windows if part.optional}
    assert len(optional) == 12
    assert optional == {part.name for part in source.gather.windows if "shock" in part.name or "Rumble" in part.name}
    assert {part.name for part in source.gather.windows if part.between == "circle"} == {"YawNorth", "Pitch", "Roll"}
    assert (source.gather.samples, source.gather.sample_hz) == (6, 360.0)


@pytest.mark.check
@pytest.mark.rt
def test_the_virtual_iracing_gives_the_samples_that_it_wrote():
    """What is sampled comes to the bit; angles as near as a straight line over 1/60 s is to a drive."""
    url, source = f"memory://motioncue-test-{uuid.uuid4().hex[:8]}", sources.by_profile("iracing-dk")
    packages, ring = drive_packages("iracing-dk", "turns", duration_s=12.0), RecordRing(8 << 20)
    listener = Listener("iracing-dk", url)
    listener.record(ring)
    simulator = make_simulator("iracing-dk", [url], packages)
    thread = threading.Thread(target=simulator.run)
    with listener:
        thread.start()
        eventually(lambda: listener.stats()["frames_received"] > 360)
        simulator.stop()
        thread.join()
    assert not listener.stats()["rejected"]
    sent = {round(HZ * struct.unpack_from("<d", each.package)[0]): each.package for each in packages}
    got = [each.data for each in sorted_out(ring.take()).packages]
    numbers = [round(HZ * struct.unpack_from("<d", data)[0]) for data in got]
    assert all(after > before for before, after in pairwise(numbers))
    assert sum(after == before + 1 for before, after in pairwise(numbers)) > 0.9 * len(numbers)
    fields = {
        name: source.identify(got[0]).fields[name].offset
        for name in ("velocity_x", "acceleration_x", "yaw", "angular_velocity_x")
    }
    for number, data in zip(numbers, got, strict=True):
        for name in ("velocity_x", "acceleration_x", "angular_velocity_x"):
            at = fields[name]
            assert struct.unpack_from("<3f", data, at) == pytest.approx(
                struct.unpack_from("<3f", sent[number], at), rel=1e-5, abs=1e-5
            )
        angles = (struct.unpack_from("<3f", each, fields["yaw"]) for each in (data, sent[number]))
        assert next(angles) == pytest.approx(next(angles), abs=1e-3)
