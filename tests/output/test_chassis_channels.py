"""Wheels, suspension and cab beside the cue: from a described packet to a described output, faded and bounded."""

import math

import numpy as np
import pytest
from test_car_channels import Wire

import motioncue
from motioncue.core.channels import CHASSIS, MOTION, WHEELS
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline

START = 1_000_000_000
FRAME_S = 1 / 60
NAMES = [channel.name for channel in CHASSIS]
SENT = np.dtype([(name, "<f8") for name in (*NAMES, "tactile")])
PACKET = np.dtype([(channel.name, "<f8") for channel in (*MOTION[:11], MOTION[12], *CHASSIS)])
FIELDS = [
    {"offset": 8 * place, "type": "f8", "channel": "time" if name == "frame_time" else name}
    for place, name in enumerate(PACKET.names)
]
OUTPUT = [
    {"offset": 8 * place, "type": "f8", "channel": name if name == "tactile" else f"car_{name}"}
    for place, name in enumerate(SENT.names)
]


def profile_of(*overrides, fields=FIELDS, limits=None, output=OUTPUT):
    """Return a profile whose source says everything of the chassis, and whose output sends it all."""
    table = {
        "source": {"system": "custom", "packet": {"size": PACKET.itemsize, "fields": fields}},
        "output": {
            "system": "custom",
            "gauges": None,
            "motion": "udp://127.0.0.1:4123",
            "packet": {"size": SENT.itemsize, "fields": output},
            **({"limits": limits} if limits else {}),
        },
    }
    return motioncue.load_profile("program-dk", table, *overrides)


class Drive:
    """A car that drives straight on at 20 m/s, and what an output is sent of its chassis."""

    def __init__(self, profile):
        self.clock = FakeClock(START)
        self.pipeline = Pipeline(profile, self.clock, trace=20_000)
        self.wire = Wire(self.pipeline.emitter, profile)
        self.now = START
        self.time = 0.0

    def run(self, seconds):
        end = self.now + round(seconds * 1e9)
        while self.now < end:
            self.now = max(min(end, self.now + 300_000_000), self.clock.now_ns())
            self.pipeline.emitter.run(until_ns=self.now)
            self.wire.receive()

    def frame(self, **channels):
        """Send a frame and let time pass until the next."""
        row = np.zeros(1, PACKET)
        row["speed"], row["frame_time"], row["surge"] = 20.0, self.time, 0.01 * math.sin(self.time)
        for name, value in channels.items():
            row[name] = value
        self.pipeline.intake.feed(row.tobytes(), self.now)
        self.time += FRAME_S
        self.run(FRAME_S)

    def drive(self, seconds, of_time=lambda time: {}):
        """Drive on with these channels as functions of time."""
        for _ in range(round(seconds / FRAME_S)):
            self.frame(**of_time(self.time))

    @property
    def sent(self):
        return np.frombuffer(b"".join(self.wire.packets), SENT)

    @property
    def ticks(self):
        return self.pipeline.emitter.trace

    def close(self):
        self.wire.close()


def sines(time):
    """Each wheel's suspension in a sine of its own amplitude, its own phase."""
    return {
        f"suspension_{wheel}": 0.02 * (place + 1) * math.sin(2.0 * math.pi * time + 0.5 * place)
        for place, wheel in enumerate(WHEELS)
    }


@pytest.fixture
def driven():
    drives = []

    def begin(profile=None):
        drives.append(Drive(profile or profile_of()))
        return drives[-1]

    yield begin
    for each in drives:
        each.close()


def test_each_wheel_s_suspension_is_sent_as_it_is_one_frame_late(driven):
    car = driven()
    car.drive(6.0, sines)
    sent, ticks = car.sent, car.ticks
    late = ticks["weight"] == 1.0
    assert late.sum() > 1000
    # Straight lines from frame to frame, one frame late; the frames' own time began with the first frame, at START.
    time = (ticks["deadline"] - START) * 1e-9 - FRAME_S
    for place, wheel in enumerate(WHEELS):
        expected = 0.02 * (place + 1) * np.sin(2.0 * np.pi * time + 0.5 * place)
        # a chord lies below its sine by up to (omega T)^2 / 8, and lines begin at a tick, which may be one late
        near = 0.02 * (place + 1) * ((2.0 * math.pi * FRAME_S) ** 2 / 8 + 2.0 * math.pi * 0.003)
        np.testing.assert_allclose(sent[f"suspension_{wheel}"][late], expected[late], atol=near)
    assert not sent["slip_front_left"].any()
    assert not sent["cabin_up"].any()


def test_what_is_sent_is_the_share_of_the_fade(driven):
    car = driven()
    car.drive(4.0, lambda _: {"suspension_rear_right": 0.1, "slip_front_left": -3.0, "cabin_yaw": 0.2})
    sent, weight = car.sent, car.ticks["weight"]
    assert 0.0 < weight[weight > 0.0].min() < 0.01
    np.testing.assert_allclose(sent["suspension_rear_right"], 0.1 * weight, atol=1e-12)
    np.testing.assert_allclose(sent["slip_front_left"], -3.0 * weight, atol=1e-12)
    np.testing.assert_allclose(sent["cabin_yaw"], 0.2 * weight, atol=1e-12)
