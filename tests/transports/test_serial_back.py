"""Serial lines at their limits: which replies of a line that was lost are believed, and no room when a run begins."""

import os

import msgspec
import pytest
from helpers import init
from test_serial import PERIOD, Controller, Rig, pty

from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.output.packet import encoding, replies_of
from motioncue.transports.endpoint import open_line
from motioncue.wire.description import PacketTable

SAID = 2 * b"READY 1\n"  # twice, since nothing shows that it came unharmed
GREETED = {
    "size": 4,
    "fields": [{"offset": 0, "type": "f4", "channel": "surge"}],
    "others": [{"text": "[ena]"}, {"text": "alive", "every_s": 60.0}],
}
READY = {"text": "READY {ready}\n", "values": {"ready": {"channel": "ready", "among": [1]}}}


@pytest.fixture
def controller(tmp_path):
    return Controller(tmp_path)


def rig_of(folder, controller, begin, reply):
    """Return a rig whose clock begins at a time [ns], with a controller that has to say something."""
    rig = Rig(folder, controller)
    rig.line.close()
    rig.pipeline, rig.now = Pipeline(rig.profile, FakeClock(begin), trace=20_000), begin
    rig.emitter = rig.pipeline.emitter
    url, encoding = streams_of(rig.profile.outputs[0])["motion"]
    rig.line = open_line(url, 250_000)
    replies = replies_of(msgspec.convert({"size": 1, "reply": reply}, PacketTable), {}, stream=True)
    rig.emitter.add_output(rig.line, None, encoding.table, encoding.packet, encoding.seal, replies=replies)
    rig.pipeline.intake.begin(begin)
    rig.pipeline.intake.feed(init(), begin)
    return rig


@pty
def test_what_a_controller_says_while_its_line_is_lost_is_not_believed_when_it_is_back(tmp_path, controller):
    """It says what was before it was asked; it may be switched off since."""
    rig = rig_of(tmp_path, controller, 0, [READY])
    os.write(controller.end, SAID)
    rig.drive(500, controller)
    assert rig.emitter.state == "RUNNING"
    while rig.emitter.state == "RUNNING":  # nobody reads
        rig.drive(1)
    for _ in range(400):
        os.write(controller.end, SAID)
        rig.drive(1)
    assert rig.emitter.state == "FAULT"
    controller.read()
    rig.emitter.engage()
    rig.drive(400, controller)
    assert rig.emitter.state == "FAULT"  # it is sent packets again, and has not answered
    os.write(controller.end, SAID)
    rig.drive(10, controller)
    rig.emitter.engage()
    rig.drive(400, controller)
    assert rig.emitter.state == "RUNNING"


@pty
def test_a_line_that_has_no_room_when_a_run_begins_has_the_hold_time(tmp_path, controller):
    """A tenth of a second, 33 ticks: what is there already has to be taken first."""
    rig = rig_of(tmp_path, controller, 10**9, [])
    controller.fill(lambda: rig.line.send(bytes(20)) == 0)  # nobody reads: the buffers of the system fill
    rig.drive(20)
    assert rig.emitter.state != "FAULT"
    rig.drive(20)
    assert rig.states[-1] == ("FAULT", "output_lost")


@pty
def test_a_line_that_has_no_room_when_an_operator_engages_has_the_hold_time_again(tmp_path, controller):
    """It may need a moment until it takes packets again; the operator need not hit the very tick that finds room."""
    rig = rig_of(tmp_path, controller, 10**9, [])
    rig.drive(500, controller)
    assert rig.emitter.state == "RUNNING"
    while rig.emitter.state != "FAULT":  # nobody reads
        rig.drive(1)
    rig.drive(400)  # until what is sent is at rest
    rig.emitter.engage()
    rig.drive(20)  # of 33 ticks
    rig.drive(400, controller)
    assert rig.emitter.state == "RUNNING"


@pty
@pytest.mark.parametrize("unplugged", [True, False])
def test_a_line_that_is_back_is_greeted_again_before_the_motion_and_no_other_line_is(tmp_path, controller, unplugged):
    """A controller that lost its power is as it was before its first packet; the one beside it has been told already.

    Whether a line was unplugged or its controller took nothing for the hold time makes no difference.
    """
    (tmp_path / "beside").mkdir()
    rig, beside = Rig(tmp_path, controller), Controller(tmp_path / "beside")
    packets, line = encoding(msgspec.convert(GREETED, PacketTable)), open_line(f"serial://{beside.path}", 250_000)

    def greeted():
        for how, every_s in packets.others:
            rig.emitter.add_other(how.table, how.packet, how.seal, every_s)

    def drive(ticks, reads=True):
        for _ in range(ticks):
            rig.drive(1, controller if reads else None)
            beside.read()
        return rig.emitter.state

    def heard(each):
        return each.data.count(b"[ena]"), each.data.count(b"alive")

    greeted()
    rig.emitter.add_output(line, None, packets.table, packets.packet, packets.seal)
    greeted()
    assert drive(400) == "RUNNING"
    assert heard(controller) == heard(beside) == (1, 1)
    assert (beside.data[:5], beside.data[9:14]) == (b"[ena]", b"alive")  # the motion's first packet is between them
    if unplugged:
        controller.unplug()
    while drive(1, reads=False) != "FAULT":
        continue
    drive(400, reads=not unplugged)  # until what is sent is at rest
    if unplugged:
        controller.plug()
        assert rig.line.reopen()
    controller.data = b""
    rig.emitter.engage()
    assert drive(400) == "RUNNING"
    before, greeting, _ = controller.data.partition(b"[ena]\xff\xff")
    assert greeting
    assert len(before) < 20 * (not unplugged) + 1  # of a packet that it had begun to take
    assert heard(controller) == (1, 0)
    assert heard(beside) == (1, 1)
    line.close()


@pty
def test_a_lost_line_is_reported_with_the_time_for_which_it_has_taken_nothing(tmp_path, controller):
    """One tick of an unplugged one; of one that nobody reads, the first whole number of ticks beyond the hold time."""
    rig = Rig(tmp_path, controller)
    rig.drive(500, controller)
    rig.emitter.transitions()
    controller.unplug()
    rig.drive(2)
    (lost,) = rig.emitter.transitions()
    assert (lost["reason"], lost["value"]) == ("output_lost", pytest.approx(1e-9 * PERIOD, rel=1e-12))
    rig.drive(400)
    controller.plug()
    assert rig.line.reopen()
    rig.emitter.engage()
    rig.drive(500, controller)
    assert rig.emitter.state == "RUNNING"
    rig.emitter.transitions()
    while rig.emitter.state == "RUNNING":  # nobody reads
        rig.drive(1)
    (lost,) = rig.emitter.transitions()
    ticks = round(1e9 * lost["limit"]) // PERIOD + 1
    assert (lost["reason"], lost["value"]) == ("output_lost", pytest.approx(1e-9 * ticks * PERIOD, rel=1e-12))
