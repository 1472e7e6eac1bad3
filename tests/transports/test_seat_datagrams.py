"""Of the senders at one port one drives: the first that says anything known, for as long as it is not silent."""

import contextlib
import logging
import socket
import threading

import numpy as np
import pytest
from delivery_rig import GAMES, PERIOD, START
from helpers import eventually, free_port
from test_datagrams import GAUGES, new_intake, one_loopback, sender, state
from test_delivery import swinging

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.journal import MESSAGES, event_line
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.receiver import DatagramReceiver
from motioncue.engine.replay import Heard
from motioncue.transports.endpoint import open_receiver

pytestmark = pytest.mark.rt

SECOND = 1_000_000_000  # [ns]


@contextlib.contextmanager
def datagrams(intake, clock):
    """Serve a source of datagrams on a clock; give the address."""
    with open_receiver(f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}") as listening:
        listening.setblocking(False)
        receiver = DatagramReceiver(intake, [listening], clock)
        thread = threading.Thread(target=receiver.run, daemon=True)
        thread.start()
        yield listening.getsockname()
        receiver.stop()
        thread.join(30)


@one_loopback
def test_a_host_takes_over_after_a_second_without_a_datagram_and_not_a_nanosecond_before():
    intake, clock = new_intake(), FakeClock()
    heard = refused = 0
    with datagrams(intake, clock) as address, sender() as first, sender("127.0.0.3") as second:

        def drives(host, package=None):
            nonlocal heard
            host.sendto(package or state(), address)
            heard += 1
            eventually(lambda: intake.accepted + intake.rejected.get("size", 0) == heard)

        def is_refused(host):
            nonlocal refused
            host.sendto(state(), address)
            refused += 1
            eventually(lambda: intake.rejected.get("second_simulator", 0) == refused)

        drives(first)
        clock.advance(SECOND - 1)
        is_refused(second)
        drives(first, b"STAT, cut")  # whatever it says, it is there
        clock.advance(SECOND - 1)
        is_refused(second)  # which did not make its own case better
        clock.advance(1)
        drives(second)
        clock.advance(SECOND - 1)
        is_refused(first)
    events = [(name, detail) for _, name, detail in intake.events() if name in ("session_began", "taken_over")]
    assert events == [("session_began", 1), ("taken_over", 1000), ("session_began", 2)]


@one_loopback
def test_a_host_that_takes_over_from_a_silent_one_is_told_too():
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, contextlib.ExitStack() as senders:
        for host, frames in (("127.0.0.1", 1), ("127.0.0.3", 2)):
            senders.enter_context(sender(host)).sendto(state(), address)
            eventually(lambda frames=frames: intake.accepted == frames)
            clock.advance(SECOND + SECOND // 2)
    events = [(name, detail) for _, name, detail in intake.events()]
    assert events == [("session_began", 1), ("taken_over", 1500), ("session_began", 2)]
    level, text = MESSAGES["taken_over"]
    assert (level, "1500 ms" in text.format(1500)) == (logging.WARNING, True)


@contextlib.contextmanager
def ports(count):
    """Give that many senders of one host, each with a port of its own."""
    with contextlib.ExitStack() as opened:
        yield [opened.enter_context(sender()) for _ in range(count)]


class Seat:
    """Counts what is taken and what is refused, and waits for each."""

    def __init__(self, intake, address):
        self.intake, self.address, self.taken, self.refused = intake, address, 0, 0

    def drives(self, client, package=None):
        client.sendto(package or state(), self.address)
        self.taken += 1
        eventually(lambda: self.intake.accepted + self.intake.others == self.taken)

    def is_refused(self, client):
        client.sendto(state(), self.address)
        self.refused += 1
        eventually(lambda: self.intake.rejected.get("second_simulator", 0) == self.refused)


def test_one_port_of_a_host_drives_and_the_log_names_it_and_the_one_that_is_refused():
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, ports(2) as (first, second):
        seat = Seat(intake, address)
        for _ in range(5):
            seat.drives(first)
            clock.advance(SECOND // 120)
            seat.is_refused(second)
            clock.advance(SECOND // 120)
        names = [client.getsockname()[1] for client in (second, first)]
        details = [detail for _, name, detail in intake.events() if name == "second_simulator"]
        assert details == 5 * ["127.0.0.1 port {} while 127.0.0.1 port {} drives".format(*names)]
        assert event_line("second_simulator", details[0])[1].endswith(f"({details[0]})")
    assert intake.sessions == 1


def test_another_port_of_the_host_takes_over_after_a_quarter_of_a_second_and_not_a_nanosecond_before():
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, ports(2) as (first, second):
        seat = Seat(intake, address)
        seat.drives(first)
        seat.drives(first)
        clock.advance(SECOND // 4 - 1)
        seat.is_refused(second)
        clock.advance(1)
        seat.drives(second)
        seat.is_refused(first)
    events = [(name, detail) for _, name, detail in intake.events() if name in ("session_began", "taken_over")]
    assert events == [("session_began", 1), ("taken_over", 250), ("session_began", 2)]


@pytest.mark.parametrize("every", [SECOND // 60, SECOND])
def test_a_program_that_sends_each_datagram_from_a_new_port_is_one_simulator(every):
    """Until three ports have come, none of them again, the second could be another simulator."""
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, ports(40) as senders:
        seat = Seat(intake, address)
        for number, client in enumerate(senders):
            (seat.is_refused if number == 1 and every < SECOND // 4 else seat.drives)(client)
            clock.advance(every)
        assert intake.sessions == (1 if every < SECOND // 4 else 2)
        if every < SECOND // 4:
            seat.is_refused(senders[-1])  # a port that comes again is another simulator's


def test_new_ports_however_many_do_not_take_the_place_of_one_that_drives():
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, ports(40) as (first, *others):
        seat = Seat(intake, address)
        seat.drives(first)
        seat.drives(first)
        for number, client in enumerate(others):
            seat.is_refused(client)
            clock.advance(SECOND // 300)
            if number % 20 == 0:
                seat.drives(first)
    assert intake.sessions == 1


def test_other_messages_may_come_from_ports_of_their_own():
    gauges = GAUGES.encode({"engine_speed": 900.0})
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, ports(3) as (car, dashboard, second):
        seat = Seat(intake, address)
        for _ in range(3):
            seat.drives(dashboard, gauges)
            seat.drives(car)
        seat.is_refused(second)
        second.sendto(gauges, address)
        eventually(lambda: intake.rejected == {"second_simulator": 2})
    assert (intake.accepted, intake.others, intake.sessions) == (3, 3, 1)


def test_what_says_nothing_known_does_not_get_the_place():
    intake, clock = new_intake(), FakeClock()
    with datagrams(intake, clock) as address, ports(2) as (first, second):
        seat = Seat(intake, address)
        for _ in range(3):
            first.sendto(b"nonsense", address)
        eventually(lambda: intake.rejected == {"type": 3})
        seat.drives(second)
    assert intake.sessions == 1


def cars_at_one_port(count, source="f1", length_s=1.5):
    """Return ticks and recorded packages of a run at whose port that many cars speak in turn; the first drives."""
    profile = motioncue.load_profile(GAMES[source].profile, "source.bridge=hold", "limits=none")
    clock = FakeClock(START)
    pipeline = Pipeline(profile, clock, round(1e9 * length_s) // PERIOD + 2)
    heard = Heard(pipeline)
    taken = np.arange(0.0, length_s, 1.0 / GAMES[source].rate_hz)
    cars = []
    for number in range(count):
        states = swinging(2.0 * number).states(taken)
        states["time"] += 100.0
        cars.append(GAMES[source].packets(states, np.arange(len(taken))))
    with datagrams(pipeline.intake, clock) as address, ports(count) as senders:
        for frame, at in enumerate(taken):
            for number, client in enumerate(senders):
                pipeline.emitter.run(until_ns=START + round(1e9 * (at + 0.008 * number)))
                client.sendto(cars[number][frame], address)
                came = frame * count + number + 1
                eventually(lambda n=came: pipeline.intake.accepted + sum(pipeline.intake.rejected.values()) == n)
        counts = pipeline.intake.accepted, pipeline.intake.rejected.get("second_simulator", 0)
        assert counts == (len(taken), (count - 1) * len(taken))
    return pipeline.emitter.trace["cue"], heard.take().packages


def test_a_second_car_at_the_port_changes_no_bit_of_the_cue_and_is_not_recorded():
    """Their rates are derived: followed in turn, they would jump by 93 times of what the drive does."""
    alone, recorded_alone = cars_at_one_port(1)
    both, recorded = cars_at_one_port(2)
    assert recorded == recorded_alone
    assert np.abs(alone["yaw_rate"]).max() > 0.1
    assert both[: len(alone)].tobytes() == alone.tobytes()
