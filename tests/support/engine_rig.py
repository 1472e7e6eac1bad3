"""Helpers of the engine's tests: a DK's sockets, simulators, and assertions on a whole run."""

import socket
import subprocess
import sys
import threading

import numpy as np
from helpers import (
    PACKAGES,
    SAMPLE,
    Sink,
    engaged,
    frame,
    init,
    single,
    stream_url,
)
from same_bits import assert_same_bits

import motioncue
from motioncue.output import dk
from motioncue.sources.city_car_driving.twin import Simulator

SCHEME = "unix" if hasattr(socket, "AF_UNIX") else "tcp"
PERIOD = 3_000_030
CHANNELS = [name for name in motioncue.CUE_DTYPE.names if name != "time"]
OFFSETS = {28: "sway", 32: "surge", 36: "heave", 52: "roll", 56: "pitch", 60: "yaw"}
MOVING = {"acceleration": (-0.5, 0.25, 2.0), "velocity": (0.0, 0.0, 12.0), "angular_velocity": (0.1, 0.2, 0.3)}


class Rig:
    """A DK's two sockets, and engines that send to them."""

    def __init__(self, folder, scheme=SCHEME):
        self.url = stream_url(scheme, folder)
        self.motion, self.gauges = Sink(), Sink()

    def engine(self, name="ccd-dk", trace=20_000, *, bridge="predict", hold_s=5.0, fade_s=0.1, record=None):
        # A busy machine may pause a simulator, which most tests must tolerate.
        profile = motioncue.load_profile(
            name,
            "limits=none",  # to observe the cue before the bounds
            f"source.endpoint={self.url}",
            f"source.bridge={bridge}",
            f"supervisor.hold_s={hold_s}",
            f"supervisor.fade_s={fade_s}",
            f"output.motion={self.motion.url}",
            f"output.gauges={self.gauges.url}",
        )
        return motioncue.Engine(profile, trace=trace, record=record)

    def __enter__(self):
        self.motion.__enter__()
        self.gauges.__enter__()
        return self

    def __exit__(self, *error):
        self.motion.__exit__()
        self.gauges.__exit__()


def play(url, frames):
    simulator = Simulator(url, frames, timeout_s=30.0)
    simulator.run()
    return simulator


def fast(count=None):
    """Return the recording's packages, to be sent as fast as replies come."""
    return [(0.0, package) for package in (PACKAGES if count is None else PACKAGES[: count + 1])]


def moving_until(event):
    """Yield an init package, then the same frame every 2 ms until the event is set."""
    yield 0.0, init()
    while not event.is_set():
        yield 0.002, frame(**MOVING)


class Background:
    """A simulator in a thread that repeats one frame until it is told to leave."""

    def __init__(self, url):
        self.leave = threading.Event()
        self.simulator = Simulator(url, moving_until(self.leave), timeout_s=30.0)
        self.thread = threading.Thread(target=self.simulator.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.leave.set()
        self.simulator.stop()
        self.thread.join(30)


PLAYER = """
import sys
from motioncue.sources.city_car_driving.twin import Simulator
from motioncue.virtual.installation import recorded_packages
packages = recorded_packages("city-car-driving", sys.argv[2], rate_hz=float(sys.argv[3]))
simulator = Simulator(sys.argv[1], packages, timeout_s=60.0)
simulator.run()
print(simulator.sent, simulator.replies, simulator.lost)
"""


def player(url, rate_hz):
    """Start a simulator in a process of its own."""
    arguments = [sys.executable, "-c", PLAYER, url, str(SAMPLE), str(rate_hz)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def whole(engine):
    """Say whether the newest tick had full weight."""
    return engine.newest()["weight"][0] == 1.0


def neutral(packet):
    """Say whether a motion packet is neutral."""
    fields = dk.MOTION.decode(packet)
    return fields.pop("magic") == "BNG1" and fields.pop("up_z") == 1.0 and not any(fields.values())


def assert_grid(engine):
    """Assert that every index of the grid up to the last tick was sent or skipped, once and in order."""
    trace, stats = engine.trace, engine.stats()
    assert stats["packets_sent"] == len(trace)
    assert (np.diff(trace["index"]) >= 1).all()
    missing = trace["index"][-1] + 1 - len(trace)
    assert missing <= stats["skipped"]  # the last tick may have been followed by some
    assert_same_bits(trace["deadline"] - trace["deadline"][0], (trace["index"] - trace["index"][0]) * PERIOD)
    assert (trace["lateness"] >= 0).all()


def assert_received(rig, engine):
    """Assert that DK received one packet of each stream for each tick, in order, with the cue's bytes."""
    cues = engine.trace["cue"]
    stats = engine.stats()
    assert (stats["datagrams_sent"], stats["send_errors"]) == (2 * len(cues), 0)
    motion, gauges = rig.motion.all(len(cues)), rig.gauges.all(len(cues))
    assert len(motion) == len(gauges) == len(cues)
    for packet, gauge, cue in zip(motion, gauges, cues, strict=True):
        assert (len(packet), packet[:4], len(gauge)) == (88, b"BNG1", 96)
        for offset, name in OFFSETS.items():
            assert packet[offset : offset + 4] == single(cue[name]), name
        assert gauge[12:20] == single(cue["speed"]) + single(0.0)
    assert neutral(motion[-1])
    assert gauges[-1][12:20] == bytes(8)


def assert_offline_gives_the_same(profile, trace):
    """Assert that every engaged stretch is the offline cue times the weight, bit for bit at weight 1."""
    assert (trace["weight"] == 1.0).any()
    for start, end in engaged(trace):
        stretch = trace[start:end]
        cues = motioncue.cue(profile, stretch["motion"])
        at_full = stretch["weight"] == 1.0
        for name in CHANNELS:
            assert_same_bits(stretch["cue"][name][at_full], cues[name][at_full], name)
            np.testing.assert_array_equal(stretch["cue"][name], cues[name] * stretch["weight"], err_msg=name)
