"""Serial lines at their limits: which replies of a line that was lost are believed, and no room when a run begins."""

import os

import msgspec
import pytest
from helpers import init
from test_serial import Controller, Rig, pty

from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.output.packet import replies_of
from motioncue.transports.endpoint import open_line
from motioncue.wire.description import PacketTable

SAID = 2 * b"READY 1\n"  # twice, since nothing shows that it came unharmed
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
