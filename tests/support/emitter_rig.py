"""Helpers of the emitter's tests: a pipeline on a clock that takes no time, and a simulator."""

from helpers import frame, init

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline

START = 1_000_000_000
PERIOD = 3_000_030  # 333.33 Hz in whole nanoseconds
FRAME_INTERVAL = 16_666_667
MOVING = {"acceleration": (-0.5, 0.25, 2.0), "velocity": (0.0, 0.0, 12.0), "angular_velocity": (0.1, 0.2, 0.3)}

CHANNELS = [name for name in motioncue.CUE_DTYPE.names if name != "time"]
PRESENT = [name for name in CHANNELS if name != "engine_speed"]  # City Car Driving does not send it


# Without bounds, to observe the cue before them.
DIRECT = motioncue.load_profile("ccd-dk", "limits=none")
WASHOUT = motioncue.load_profile("ccd-dk-classical", "limits=none")


class Rig:
    """A pipeline on a fake clock, and a simulator that repeats one frame."""

    def __init__(self, settings=DIRECT, trace=20_000, clock=None, **fields):
        self.now = START
        self.pipeline = Pipeline(settings, clock or FakeClock(START), trace)
        self.emitter = self.pipeline.emitter
        self.package = frame(**(fields or MOVING))
        self.pipeline.intake.begin(START)
        self.pipeline.intake.feed(init(), START)
        self.next_frame = START

    def frames_for(self, seconds):
        """Run with frames at 60 Hz."""
        end = self.now + round(seconds * 1e9)
        while self.next_frame < end:
            self.emitter.run(until_ns=self.next_frame)
            self.last_frame = self.next_frame
            self.pipeline.intake.feed(self.package, self.next_frame)
            self.next_frame += FRAME_INTERVAL
        return self._run(end)

    def silence_for(self, seconds):
        """Run without frames."""
        self._run(self.now + round(seconds * 1e9))
        self.next_frame = self.now
        return self

    def _run(self, end):
        self.emitter.run(until_ns=end)
        self.now = end
        return self

    @property
    def trace(self):
        return self.emitter.trace
