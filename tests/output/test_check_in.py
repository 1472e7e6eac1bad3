"""A controller that is checked in over TCP before packets are sent, played by a chair made of software."""

import contextlib
import socket
import threading

import pytest
from helpers import eventually, free_port, said_in

import motioncue
from motioncue.engine.assembly import check
from motioncue.errors import ConfigError, EndpointError
from motioncue.output import check_in
from motioncue.profile.profile import parse_profile
from motioncue.wire.description import packet_presets

PROFILE = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:{0}", "udp://127.0.0.1:{1}"]
[cueing]
algorithm = "classical"
preset = "simona"
[output]
motion = "udp://127.0.0.1:{2}"
packet = {{ preset = "yaw-vr", check_in = {{ endpoint = "tcp://127.0.0.1:{3}" }} }}
"""


class Chair:
    """The vendor's protocol: one byte of a command, then its parameters; motion counts once it has been started."""

    def __init__(self, answers=None):
        self.answers = {0x30: b"1AVAILABLE", 0xA1: b"\xa1"} if answers is None else answers
        self.server = socket.create_server(("127.0.0.1", 0))
        self.motion = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.motion.bind(("127.0.0.1", 0))
        self.commands, self.ended = [], threading.Event()
        self.connection = None
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):  # closed by the test
            self.talk()
        self.ended.set()

    def talk(self):
        self.connection, _ = self.server.accept()
        while data := self.connection.recv(100):
            self.commands.append(data)
            if data[0] in self.answers:
                self.connection.sendall(self.answers[data[0]])
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        self.motion.close()
        if self.connection is not None:
            self.connection.close()

    def profile(self, *overrides):
        ports = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
        text = PROFILE.format(*ports, self.motion.getsockname()[1], self.server.getsockname()[1])
        return parse_profile(text, overrides=overrides)


@pytest.mark.rt
def test_a_chair_is_checked_in_started_stopped_and_left():
    with Chair() as chair:
        with motioncue.Engine(chair.profile()) as engine:
            assert chair.commands == [b"\x30\x00\x00\xc3\x5amotioncue", b"\xa1"]
            chair.motion.settimeout(10)
            assert chair.motion.recv(100) == b"Y[000.000]P[000.000]R[000.000]V[0,0,0,0]"
            eventually(lambda: engine.stats()["packets_sent"] > 100)
            assert len(chair.commands) == 2
        chair.ended.wait(10)
        # Both messages of the end, perhaps in one piece.
        assert b"".join(chair.commands[2:]) == b"\xa2\xa3"


@pytest.mark.rt
@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({0x30: b"1RESERVED"}, "found 31 52 45 53 .* in answer to 30 00 .*, allowed is 31 41"),
        ({0x30: b"1AVAILABLE"}, "no answer within 0.3 s to a1, allowed is a1"),
        ({}, "no answer within 0.3 s to 30 00"),
    ],
)
def test_a_chair_that_does_not_answer_as_it_should_is_not_moved(monkeypatch, answers, message):
    monkeypatch.setattr(check_in, "PATIENCE_S", 0.3)
    with Chair(answers) as chair:
        with pytest.raises(EndpointError, match=message), motioncue.Engine(chair.profile()):
            pass
        chair.motion.settimeout(0.2)
        with pytest.raises(TimeoutError):
            chair.motion.recv(100)


@pytest.mark.rt
def test_a_chair_that_is_not_there_is_said():
    with Chair() as chair:
        endpoint = f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}"
        profile = chair.profile(f"output.packet.check_in.endpoint={endpoint}")
        with pytest.raises(EndpointError, match=f"{endpoint}: cannot connect"), motioncue.Engine(profile):
            pass


@pytest.mark.rt
def test_a_chair_that_hangs_up_is_said_once_and_keeps_nobody_waiting(caplog):
    with Chair() as chair, motioncue.Engine(chair.profile()) as engine:
        chair.connection.shutdown(socket.SHUT_RDWR)
        eventually(lambda: said_in(caplog, "closed by the controller"))
        sent = engine.stats()["packets_sent"]
        eventually(lambda: engine.stats()["packets_sent"] > sent + 200)
        assert said_in(caplog, "closed by the controller").total() == 1


@pytest.mark.rt
@pytest.mark.parametrize(
    ("answers", "before", "says"),
    [
        ({0xA2: b"\xff\xff"}, b"", "found ff ff in answer to a2, allowed is a2; perhaps it is not checked out"),
        ({}, b"", "no answer within 0.3 s to a2, allowed is a2; perhaps it is not checked out"),
        ({0xA2: b"\xa2\xa2", 0xA3: b"\xa3"}, b"", None),  # twice
        ({0xA2: b"\xa2", 0xA3: b"\xa3"}, b"status: idle", None),  # something unasked before
        ({0xA2: b"\xa2"}, b"", "no answer within 0.3 s to a3, allowed is a3; perhaps it is not checked out"),
    ],
)
def test_a_chair_is_told_all_of_the_end_whatever_it_answers(monkeypatch, caplog, answers, before, says):
    monkeypatch.setattr(check_in, "LEAVING_S", 0.3)
    ends = "output.packet.check_in.end=[{send='a2', answer='a2'}, {send='a3', answer='a3'}, {send='a4'}]"
    with Chair({0x30: b"1AVAILABLE", 0xA1: b"\xa1", **answers}) as chair:
        with motioncue.Engine(chair.profile(ends)) as engine:
            eventually(lambda: engine.stats()["packets_sent"] > 10)
            chair.connection.sendall(before)
            sent = engine.stats()["packets_sent"]
            eventually(lambda: engine.stats()["packets_sent"] > sent + 100)  # it has come by then
        chair.ended.wait(10)
        assert b"".join(chair.commands[2:]) == b"\xa2\xa3\xa4"
        endpoint = f"tcp://127.0.0.1:{chair.server.getsockname()[1]}"
    found = [line.getMessage() for line in caplog.records if "checked out" in line.getMessage()]
    assert found == ([f"{endpoint}: {says}"] if says else [])


@pytest.mark.rt
def test_a_chair_that_hung_up_before_is_said_to_be_perhaps_not_checked_out(caplog):
    with Chair() as chair:
        with motioncue.Engine(chair.profile()):
            chair.connection.shutdown(socket.SHUT_RDWR)
            eventually(lambda: said_in(caplog, "closed by the controller"))
        assert said_in(caplog, "perhaps it is not checked out").total() == 1


def test_without_an_endpoint_nobody_is_checked_in():
    assert "endpoint" not in packet_presets()["yaw-vr"]["check_in"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("output.packet.check_in.endpoint=udp://127.0.0.1:1", "output.packet.check_in.endpoint: found .*tcp://"),
        ("output.packet.check_in.begin=[{send='3g'}]", r"check_in.begin\[0\].send: found '3g', allowed are pairs"),
        ("output.packet.check_in.end=[{send=''}]", r"check_in.end\[0\].send: found ''"),
        ("output.packet.check_in.end=[{send='a2', answer='x'}]", r"check_in.end\[0\].answer: found 'x'"),
        ("output.packet.check_in.end=[{}]", r"check_in.end\[0\].send: missing"),
    ],
)
def test_a_malformed_check_in_is_refused(override, message):
    with Chair() as chair, pytest.raises((ConfigError, EndpointError), match=message):
        check(chair.profile(override))


def test_two_outputs_do_not_check_in_at_one_controller():
    text = PROFILE.format(1, 2, 3, 4).replace("[output]", "[[output]]")
    second = text[text.index("[[output]]") :].replace("127.0.0.1:3", "127.0.0.1:5", 1)
    with pytest.raises(ConfigError, match=r"check_in.endpoint: found 'tcp://127.0.0.1:4' twice"):
        check(parse_profile(text + second))
