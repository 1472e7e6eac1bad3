"""What tests of the page share: a profile without a simulator, and waiting."""

import time

import numpy as np
from helpers import nowhere

from motioncue.core.channels import MOTION_DTYPE
from motioncue.engine.assembly import load_profile

COLORS = """id => {
    const place = document.getElementById(id), canvas = place.matches("canvas") ? place : place.querySelector("canvas");
    if (!canvas) return 0;
    const copy = Object.assign(document.createElement("canvas"), { width: 400, height: 250 }).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    return new Set(new Uint32Array(copy.getImageData(0, 0, 400, 250).data.buffer)).size;
}"""
"""Counts the colors of a canvas, whatever draws on it."""


def soon(fits):
    """Wait until something holds."""
    for _ in range(6000):  # two minutes: machines are shared
        if fits():
            return
        time.sleep(0.02)
    raise AssertionError("never")


def driven(engine, seconds=0.5):
    """Feed the engine with a car that stands, then brakes."""
    motion = np.zeros(1, MOTION_DTYPE)
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        motion["frame_time"] += 0.01
        motion["surge"] = -3.0 * min(1.0, passed)
        engine.feed(motion)
        time.sleep(0.01)


def profile(*overrides):
    """Return a profile that is fed by this program, and sends to nobody."""
    calm = ["supervisor.fade_s=0.1", "supervisor.hold_s=1"]  # a busy machine is late with frames
    more = ["cueing.algorithm=classical", "platform.preset=hexapod-simona", *calm, *overrides]
    return load_profile("program-dk", f"output.motion={nowhere()}", f"output.gauges={nowhere()}", *more)
