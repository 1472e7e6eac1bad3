"""Serial lines over a pair of pseudo-terminals: whole packets or nothing, stalls, unplugging, arithmetic at load."""

import contextlib
import functools
import logging
import os
import re
import socket
import struct
import sys

import numpy as np
import pytest
from helpers import eventually, frame, free_port, init, said_in
from same_bits import assert_same_bits

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError, EndpointError
from motioncue.output import packet as custom
from motioncue.safety.supervisor import State
from motioncue.transports.endpoint import open_line, open_sender, parse_endpoint

pty = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
PERIOD = 3_000_030
PROFILE = """
[source]
system = "{system}"
endpoint = "{source}"
[cueing]
algorithm = "direct"
[output]
motion = "serial://{line}{options}"
[output.packet]
size = 20
baud = 250000
constants = [{{ offset = 0, bytes = "ff ff" }}, {{ offset = 18, bytes = "0a 0d" }}]
counter = {{ offset = 2 }}
fields = [{{ offset = 6, type = "f4", channel = "surge" }}]
"""
WHOLE = re.compile(rb"(?:\xff\xff[\s\S]{16}\n\r)*", re.DOTALL)


class Controller:
    """The other end of a line, which can be unplugged and plugged in again."""

    def __init__(self, folder):
        self.path = folder / "line"
        self.data = b""
        self.plug()

    def plug(self):
        self.end, line = os.openpty()
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(line))
        os.close(line)
        os.set_blocking(self.end, False)

    def unplug(self):
        self.read()
        os.close(self.end)

    def read(self):
        """Return everything that has come since the beginning."""
        while True:
            try:
                self.data += os.read(self.end, 65536)
            except OSError:  # nothing is there, or nobody has opened the line
                return self.data

    def wait(self, size):
        """Return everything that has come, once that is so much: the system hands it over a moment later."""
        eventually(lambda: len(self.read()) >= size)
        return self.data

    def holds(self, size):
        """Say whether there are so many bytes to read."""
        import fcntl
        import termios

        return struct.unpack("i", fcntl.ioctl(self.end, termios.FIONREAD, bytes(4)))[0] >= size

    def fill(self, send):
        """Send packets of 20 bytes by `send()`, which says whether there was room, until there is none any more.

        The system hands the first 4095 bytes over a moment later, which makes room again; so each is waited for.
        """
        moved = 0
        while send():
            moved = min(moved + 20, 4080)
            eventually(functools.partial(self.holds, moved))

    def counts(self, number):
        """Return the number in each packet; fails if one is torn."""
        data = self.wait(20 * number)
        assert WHOLE.fullmatch(data)
        return [int.from_bytes(data[at + 2 : at + 6], "little") for at in range(0, len(data), 20)]


@pytest.fixture
def controller(tmp_path):
    if sys.platform == "win32":
        pytest.skip("Windows has no pseudo-terminals of this kind")
    return Controller(tmp_path)


def load(folder, line, options="", system="city-car-driving", source="tcp://127.0.0.1:5100", overrides=()):
    path = folder / "rig.toml"
    path.write_text(PROFILE.format(line=line, options=options, system=system, source=source), encoding="utf-8")
    return motioncue.load_profile(path, *overrides)


# The line.


@pty
@pytest.mark.parametrize("baud", [9600, 115_200, 250_000, 500_000, 921_600, 1_000_000, 123_457])
@pytest.mark.parametrize("form", ["8N1", "7E2", "8O1"])
def test_a_line_has_the_speed_and_the_form_asked_for_and_is_raw(controller, baud, form):
    import fcntl
    import termios

    line = open_line(f"serial://{controller.path}?baud={baud}&format={form}")
    # The other end tells the line's settings; the line itself has one user, and only root could open it once more.
    iflag, oflag, cflag, lflag, *_ = termios.tcgetattr(controller.end)
    speeds = fcntl.ioctl(controller.end, 0x802C542A, bytes(44))[36:]  # TCGETS2 of Linux
    assert line.actual == baud
    assert struct.unpack("2I", speeds) == (baud, baud)
    assert (iflag & ~termios.IGNBRK, oflag, lflag) == (0, 0, 0)
    # A pseudo-terminal has eight bits without parity, whatever it is asked for.
    assert bool(cflag & termios.CSTOPB) == (form[2] == "2")
    assert cflag & termios.CLOCAL
    assert not cflag & termios.CRTSCTS
    every = bytes(range(256))
    assert line.send(every) == 0
    assert controller.wait(256) == every
    line.close()


@pty
def test_what_the_line_does_not_take_is_dropped_whole_and_the_rest_of_a_packet_is_sent_first(controller):
    line = open_line(f"serial://{controller.path}")
    packets = [b"<" + f"{n:06d}".encode() * 9 + b">" for n in range(8000)]
    done = [line.send(packet) for packet in packets[:6000]]
    dropped = {code for code in done if code}
    assert len(dropped) == 1
    assert len([code for code in done if code]) > 1000
    at = 6000
    while at < 8000:  # it takes a little now and then
        with contextlib.suppress(BlockingIOError):
            controller.data += os.read(controller.end, 37)
        done.append(line.send(packets[at]))
        at += 1
        if at % 100 == 0:
            controller.read()
    taken = b"".join(packet for packet, code in zip(packets, done, strict=True) if code == 0)
    controller.wait(len(taken) - 50)
    assert line.send(b"end") == 0
    assert controller.wait(len(taken) + 3) == taken + b"end"


@pty
def test_a_lost_line_is_opened_again_and_taken_on_demand(controller):
    line = open_line(f"serial://{controller.path}")
    assert not line.lost
    assert not line.reopen()
    assert line.take()
    controller.unplug()
    assert line.send(b"a") > 0
    assert line.lost
    controller.path.unlink()
    assert not line.reopen()
    assert not line.take()
    controller.plug()
    assert line.reopen()
    assert not line.reopen()  # it waits already
    assert line.send(b"b") > 0
    assert line.take()
    assert line.send(b"c") == 0
    assert controller.wait(1) == b"c"
    controller.unplug()  # again, sooner than anybody looks
    controller.plug()
    assert line.send(b"d") > 0
    assert line.reopen()
    assert line.take()
    assert line.send(b"e") == 0
    assert controller.wait(2) == b"ce"
    line.close()
    line.close()
    assert line.send(b"f") > 0


@pty
def test_a_line_has_one_user(controller):
    line = open_line(f"serial://{controller.path}")
    with pytest.raises(EndpointError, match="cannot send there: Device or resource busy"):
        open_line(f"serial://{os.path.realpath(controller.path)}")
    line.close()
    open_line(f"serial://{controller.path}").close()


@pty
def test_opening_and_losing_a_line_leaves_no_descriptors(controller):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    if before is None:
        pytest.skip("this system does not list open files")
    for _ in range(20):
        line = open_line(f"serial://{controller.path}")
        controller.unplug()
        line.send(b"a")
        controller.plug()
        line.reopen()
        line.close()
    del line
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("name", ["/dev/null", "/dev/no-such-line", "COM255"])
def test_what_is_no_line_is_refused(name):
    with pytest.raises(EndpointError, match=f"serial://{name}"):
        open_line(f"serial://{name}?baud=9600")


def test_a_file_is_no_line(tmp_path):
    (tmp_path / "file").write_text("untouched", encoding="utf-8")
    with pytest.raises(EndpointError):
        open_line(f"serial://{tmp_path / 'file'}")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "untouched"


# The endpoint, and the arithmetic.


def test_a_serial_endpoint_is_a_url():
    endpoint = parse_endpoint("serial:///dev/ttyUSB0?baud=250000&format=7E2")
    assert (endpoint.path, endpoint.baud, endpoint.format) == ("/dev/ttyUSB0", 250_000, "7E2")
    assert str(endpoint) == "serial:///dev/ttyUSB0?baud=250000&format=7E2"
    assert str(parse_endpoint("serial://COM3")) == "serial://COM3"
    assert parse_endpoint("serial://COM3").local


@pytest.mark.parametrize(
    "url",
    [
        *("serial://", "serial://?baud=9600", "serial:///a?baud=", "serial:///a?baud=49", "serial:///a?baud=1000001"),
        *("serial:///a?baud=-9600", "serial:///a?baud=9600.0", "serial:///a?baud=٩٦٠٠", "serial:///a?speed=9600"),
        *("serial:///a?format=9N1", "serial:///a?format=8n1", "serial:///a?format=8N3", "serial:///a?format=8N11"),
        *("serial:///a\0b", "serial:///a?baud=99999999999999999999"),
    ],
)
def test_a_serial_endpoint_that_cannot_be_is_refused(url):
    with pytest.raises(EndpointError, match="allowed"):
        parse_endpoint(url)


def test_datagrams_are_sent_from_the_port_asked_for():
    port = free_port(socket.SOCK_DGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform:
        platform.bind(("127.0.0.1", 0))
        platform.settimeout(5.0)
        url = f"udp://127.0.0.1:{platform.getsockname()[1]}?from={port}"
        assert str(parse_endpoint(url)) == url
        sender, address = open_sender(url)
        with sender:
            sender.sendto(b"a", address[:2])
            assert platform.recvfrom(9)[1][1] == port
            with pytest.raises(EndpointError, match="cannot send there"):
                open_sender(url)


def test_a_source_listens_and_sends_from_nowhere():
    with pytest.raises(EndpointError, match=r"source\.endpoint.*\?from="):
        motioncue.load_profile("beamng-dk", "source.endpoint=udp://127.0.0.1:4567?from=3")


@pytest.mark.parametrize("url", ["udp://1.2.3.4:5?from=", "udp://1.2.3.4:5?from=0", "udp://1.2.3.4:5?form=3"])
def test_a_sender_s_port_that_cannot_be_is_refused(url):
    with pytest.raises(EndpointError, match=r"udp://HOST:PORT\?from=PORT"):
        parse_endpoint(url)


@pytest.mark.parametrize(
    ("options", "override", "needs", "baud"),
    [
        ("?baud=57600", "output.rate_hz=333.33", "20 bytes x 10 bits x 333.33 Hz = 66666 bits/s", "57600 baud"),
        ("?baud=66665", "output.rate_hz=333.33", "66666", "rate_hz of up to 333.3 or a baud of at least 66666"),
        ("?baud=66666&format=8E1", "output.rate_hz=333.33", "20 bytes x 11 bits x 333.33 Hz = 73333", "66666 baud"),
        ("", "output.rate_hz=1250.1", "20 bytes x 10 bits x 1250.1 Hz = 250020", "250000 baud"),
    ],
)
def test_what_a_line_cannot_carry_is_refused_with_the_arithmetic(tmp_path, options, override, needs, baud):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "/dev/ttyUSB0", options, overrides=[override])
    assert needs in str(caught.value)
    assert baud in str(caught.value)


def test_what_a_line_can_just_carry_is_allowed(tmp_path):
    load(tmp_path, "/dev/ttyUSB0", "?baud=66666")
    load(tmp_path, "/dev/ttyUSB0", "", overrides=["output.rate_hz=1250"])  # the packet's own 250000 baud


def test_two_outputs_do_not_share_a_line(tmp_path):
    packet = "{size=4,fields=[{offset=0,type='f4',channel='surge'}]}"
    outputs = [f"{{motion='serial:///dev/ttyS0?baud={baud}',packet={packet}}}" for baud in (115200, 230400)]
    with pytest.raises(ConfigError, match=r"where output\.motion is sent already"):
        motioncue.load_profile("ccd-dk", f"output=[{','.join(outputs)}]")


def test_built_in_platforms_take_no_serial_line():
    with pytest.raises(EndpointError, match=r"output\.motion"):
        motioncue.load_profile("ccd-dk", "output.motion=serial:///dev/ttyS0")


# The emitter.


class Rig:
    """A pipeline on a fake clock that sends to a line, and a simulator."""

    def __init__(self, folder, controller):
        self.profile = load(folder, controller.path)
        self.pipeline = Pipeline(self.profile, FakeClock(0), trace=20_000)
        self.emitter = self.pipeline.emitter
        url, encoding = streams_of(self.profile.outputs[0])["motion"]
        self.line = open_line(url, 250_000)
        self.emitter.add_output(self.line, None, encoding.table, encoding.packet, encoding.seal)
        self.pipeline.intake.begin(0)
        self.pipeline.intake.feed(init(), 0)
        self.now = 0

    def drive(self, ticks, controller=None):
        """Run with a frame before each tick; the controller reads meanwhile, if given."""
        for _ in range(ticks):
            self.now += PERIOD
            moving = frame(position=(0, 0, self.now * 25e-9), velocity=(0, 0, 25), acceleration=(0, 0, 1))
            self.pipeline.intake.feed(moving, self.now)
            self.emitter.run(until_ns=self.now + 1)
            if controller is not None:
                controller.read()
        return self.emitter.outputs()[0]

    @property
    def states(self):
        return [(move["to"], move["reason"]) for move in self.emitter.transitions()]


@pty
def test_every_tick_s_packet_goes_to_the_line(tmp_path, controller):
    rig = Rig(tmp_path, controller)
    assert rig.drive(500, controller) == {"sent": 500, "unheard": 0, "refused": 0, "error": 0}
    assert controller.counts(500) == list(range(500))


@pty
def test_an_unplugged_line_is_a_fault_and_continues_after_an_engage_with_what_is_sent_at_rest(tmp_path, controller):
    rig = Rig(tmp_path, controller)
    rig.drive(500, controller)
    assert rig.emitter.state == "RUNNING"
    assert rig.states[-1] == ("RUNNING", "cue_reached")
    controller.unplug()
    assert rig.drive(1)["refused"] == 1
    counts = rig.drive(1)
    assert rig.states == [("FAULT", "output_lost")]
    assert (counts["sent"], counts["refused"]) == (500, 2)
    assert counts["error"] > 0
    rig.emitter.engage()
    rig.drive(400)  # longer than the fade
    assert rig.states == [("OFFLINE", "operator_engage"), ("FAULT", "output_lost")]  # it is still unplugged
    controller.data = b""
    controller.plug()
    assert rig.line.reopen()
    rig.drive(50, controller)
    assert controller.data == b""  # nothing moves before somebody wants it
    assert rig.emitter.state == "FAULT"
    rig.emitter.engage()
    rig.drive(600, controller)
    assert rig.states[:2] == [("OFFLINE", "operator_engage"), ("ENGAGING", "input")]
    assert rig.emitter.state == "RUNNING"
    assert len(controller.counts(600)) == 600
    first, last = (struct.unpack_from("<f", controller.data, at)[0] for at in (6, len(controller.data) - 14))
    assert first == 0.0
    assert last == pytest.approx(1.0)


@pty
def test_a_line_that_takes_nothing_for_longer_than_the_hold_time_is_a_fault(tmp_path, controller):
    rig = Rig(tmp_path, controller)
    rig.drive(500, controller)
    rig.emitter.transitions()
    controller.fill(lambda: rig.drive(1)["refused"] == 0)  # nobody reads: the buffers of the system fill
    assert rig.states == []
    sent = rig.emitter.outputs()[0]["sent"]
    rig.drive(32)
    assert rig.states == []
    rig.drive(3)
    assert rig.states == [("FAULT", "output_lost")]
    controller.read()
    rig.drive(400, controller)
    assert rig.emitter.outputs()[0]["sent"] == sent  # muted, also when there is room again
    rig.emitter.engage()
    rig.drive(400, controller)
    assert [state for state, _ in rig.states] == ["OFFLINE", "ENGAGING", "RUNNING"]
    counts = controller.counts(rig.emitter.outputs()[0]["sent"])
    assert len(counts) == rig.emitter.outputs()[0]["sent"]
    assert counts[:sent] == list(range(sent))


@pty
def test_a_line_that_stalls_for_less_than_the_hold_time_drops_whole_packets_and_goes_on(tmp_path, controller):
    rig = Rig(tmp_path, controller)
    rig.drive(400, controller)
    controller.fill(lambda: rig.drive(1)["refused"] == 0)
    counts = rig.drive(20)
    assert 20 <= counts["refused"] <= 21
    controller.read()
    counts = rig.drive(100, controller)
    assert rig.emitter.state == "RUNNING"
    assert len(controller.counts(counts["sent"])) == counts["sent"]
    assert counts["sent"] + counts["refused"] == len(rig.emitter.trace)


@pty
def test_a_run_ends_while_its_line_is_unplugged(tmp_path, controller):
    rig = Rig(tmp_path, controller)
    rig.drive(500, controller)
    controller.unplug()
    rig.drive(10)
    rig.emitter.stop()
    rig.emitter.run(ticks=2000)
    assert len(rig.emitter.trace) < 510 + 400  # no longer than the fade


@pty
def test_a_replay_repeats_a_line_s_loss_and_return(tmp_path, controller):
    rig = Rig(tmp_path, controller)
    rig.drive(500, controller)
    controller.unplug()
    rig.drive(100)
    controller.plug()
    rig.line.reopen()
    rig.emitter.engage()
    rig.drive(600, controller)
    trace = rig.emitter.trace
    states = [State(state).name for state in dict.fromkeys(trace["state"].tolist())]
    assert states == ["ENGAGING", "RUNNING", "FAULT", "OFFLINE"]
    again = Pipeline(rig.profile, FakeClock(0), trace=20_000)
    again.intake.begin(0)
    again.intake.feed(init(), 0)
    for tick in trace:
        moving = frame(position=(0, 0, tick["deadline"] * 25e-9), velocity=(0, 0, 25), acceleration=(0, 0, 1))
        again.intake.feed(moving, int(tick["deadline"]))
        again.emitter.replay_ticks(np.array([[tick["index"], tick["deadline"], tick["operation"]]]))
    assert_same_bits(again.emitter.trace["cue"], trace["cue"])
    assert again.emitter.trace["state"].tolist() == trace["state"].tolist()


# The engine.


@pty
@pytest.mark.rt
def test_an_engine_finds_its_line_again(tmp_path, controller, caplog):
    caplog.set_level(logging.INFO, "motioncue")
    source = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    profile = load(tmp_path, controller.path, system="beamng", source=source)
    with motioncue.Engine(profile) as engine:
        eventually(lambda: len(controller.read()) > 400)
        controller.unplug()
        eventually(lambda: engine.stats()["state"] == "FAULT")
        eventually(lambda: said_in(caplog, "sending fails"))
        controller.plug()
        eventually(lambda: said_in(caplog, "the line is back, an engage continues"))
        known = len(controller.read())
        engine.engage()
        eventually(lambda: len(controller.read()) > known + 400)
        assert engine.stats()["state"] == "OFFLINE"
        moves = [(move["to"], move["reason"]) for move in engine.stats()["transitions"]]
    assert moves == [("FAULT", "output_lost"), ("OFFLINE", "operator_engage")]
    assert engine.stats()["outputs"][0]["refused"] > 0
    data = controller.read()
    assert WHOLE.fullmatch(data[known:])


def test_an_engine_does_not_start_without_its_line(tmp_path):
    profile = load(tmp_path, (tmp_path / "line").as_posix(), system="beamng", source="udp://127.0.0.1:4567")
    with pytest.raises(EndpointError, match="cannot send there"):
        motioncue.Engine(profile).start()


def test_the_largest_size_of_a_text_packet_counts(tmp_path):
    profile = load(tmp_path, "/dev/ttyS0", "?baud=250000")
    table = profile.outputs[0].packet
    assert custom.encoding(table).table.largest == 20
    text = "{ text = 'X{surge:.3f}' }"  # X-99999.000 at most
    with pytest.raises(ConfigError, match="11 bytes x 10 bits"):
        motioncue.load_profile("ccd-dk", f"output={{motion='serial:///dev/ttyS0?baud=9600',packet={text}}}")
