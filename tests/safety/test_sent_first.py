"""What a platform is sent first, at the beginning of a run and on a line that is back: where it is parked."""

import sys

import numpy as np
import pytest
from controller_rig import START, profile_of
from test_serial import Controller

from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.transports.endpoint import open_line
from motioncue.virtual.installation import drive_packages


def test_a_frame_before_the_first_tick_does_not_raise_the_platform_at_once():
    """Whether a simulator drives already or not, the run begins where the platform is parked, 0.1 m below."""
    first = []
    for frames in (0, 1):
        pipeline = Pipeline(profile_of("classical", ""), FakeClock(START), trace=2)
        pipeline.intake.begin(START)
        for package in drive_packages("beamng", "turns", duration_s=0.1)[: 4 * frames]:  # its second part, too
            pipeline.intake.feed(package.package, START)
        pipeline.emitter.run(2)
        assert pipeline.emitter.state == ("ENGAGING" if frames else "OFFLINE")
        first.append(pipeline.emitter.trace["actuators"][:, :4])
    assert first[0] == pytest.approx(-0.1, abs=1e-4)
    assert first[1] == pytest.approx(-0.1, abs=1e-4)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_a_line_that_is_back_at_once_gets_the_parked_platform_first_however_often_an_operator_engages(tmp_path):
    """The platform stands where its cable was pulled, and must not be sent to the middle of a way."""
    profile, controller, now = profile_of("classical", ""), Controller(tmp_path), START
    pipeline = Pipeline(profile, FakeClock(START))
    emitter = pipeline.emitter
    ((_, encoding),) = streams_of(profile.outputs[0], profile.platform).values()
    line = open_line(f"serial://{controller.path}", 250_000)
    emitter.add_output(line, None, encoding.table, encoding.packet, encoding.seal)
    pipeline.intake.begin(START)
    packages = iter(drive_packages("beamng", "turns", duration_s=20.0))
    due = START

    def ticks(count, engages=False):
        nonlocal now, due
        for _ in range(count):
            while due <= now:
                package = next(packages)
                due += round(package.duration * 1e9)
                pipeline.intake.feed(package.package, now)
            if engages:
                emitter.engage()
            emitter.run(1)
            now += 3_000_030
            controller.read()
        return emitter.state

    assert ticks(1500) == "RUNNING"
    parked, up = np.frombuffer(controller.data[:32]), np.frombuffer(controller.data[-32:])
    assert np.mean(up - parked) > 0.05
    controller.unplug()
    assert ticks(2) == "FAULT"
    controller.data = b""
    controller.plug()
    assert line.reopen()
    assert ticks(2000, engages=True) == "RUNNING"
    assert np.frombuffer(controller.data[:32]) == pytest.approx(parked, abs=1e-9)
    controller.unplug()
