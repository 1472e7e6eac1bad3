"""An engine's loop on a clock that takes no time, in front of a controller in software at a real socket."""

import contextlib
import socket

import numpy as np

from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import check, streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.output.packet import replies_of
from motioncue.platforms.build import channels_of
from motioncue.profile.profile import parse_profile
from motioncue.virtual.controller import Controller
from motioncue.virtual.simulators import drive_packages

START = 1_000_000_000
RISE_S, FADE_S = 1.0, 0.5
REPLY = """
[[output.packet.reply]]
size = 38
constants = [{ offset = 0, bytes = "a5" }]
fields = [
    { offset = 1, type = "u1", channel = "ready", mask = 0x0F, among = [3] },
    { offset = 1, type = "u1", channel = "emergency_stop", mask = 0x80 },
    { offset = 1, type = "u1", channel = "fault", mask = 0x40 },
    { offset = 2, type = "f8", channel = "post_1" },
    { offset = 10, type = "f8", channel = "post_2" },
    { offset = 18, type = "f8", channel = "post_3" },
    { offset = 26, type = "f8", channel = "post_4" },
]
checksum = { offset = 36, kind = "crc16-modbus" }
"""


def profile_of(algorithm="classical", reply=REPLY, *overrides):
    fields = ", ".join(f'{{ offset = {8 * k}, type = "f8", channel = "post_{k + 1}" }}' for k in range(4))
    text = f"""
        [source]
        system = "beamng"
        endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
        [cueing]
        algorithm = "{algorithm}"
        [platform]
        preset = "posts-4"
        rise_s = {RISE_S}
        [supervisor]
        fade_s = {FADE_S}
        [output]
        motion = "udp://127.0.0.1:9999"
        [output.packet]
        size = 32
        fields = [{fields}]
        {reply}
    """
    profile = parse_profile(text, overrides=overrides)
    check(profile)
    return profile


class Rig:
    """An engine's loop on a clock that takes no time, a drive that goes on, and a controller at a real socket."""

    def __init__(self, profile, firmware, places=None, seed=0):
        self.controller = Controller(profile, firmware, seed=seed)
        if places is not None:
            self.controller.places = np.array(places, dtype=float)
        self.pipeline = Pipeline(profile, FakeClock(START), trace=40_000)
        self.emitter = self.pipeline.emitter
        self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for each in self.sockets:
            each.bind(("127.0.0.1", 0))
            each.setblocking(False)
        ((_, encoding),) = streams_of(profile.outputs[0], profile.platform).values()
        address = (*self.sockets[1].getsockname(), 0)
        self.replies = replies_of(profile.outputs[0].packet, channels_of(profile.platform), stream=False)
        self.emitter.add_output(
            self.sockets[0], address, encoding.table, encoding.packet, encoding.seal, 0, self.replies
        )
        self.packages = self._drive()
        self.next, self.duration = START, 0.0
        self.now = START
        self.answers = True
        self.places, self.following, self.log = [self.controller.places], [False], []

    def __enter__(self):
        self.pipeline.intake.begin(START)
        return self

    def __exit__(self, *_):
        for each in self.sockets:
            each.close()

    @staticmethod
    def _drive():
        while True:
            yield from drive_packages("beamng", "turns")

    def ticks(self, n, wanted=None):
        """Run ticks, each followed by one of the controller's; `wanted(rig)` ends it earlier."""
        for _ in range(n):
            while self.next <= self.now:
                package = next(self.packages)
                self.next += round(package.duration * 1e9)
                self.pipeline.intake.feed(package.package, self.now)
            self.emitter.run(1)
            self.now += 3_000_030
            self.log += self.emitter.transitions()
            packet = None
            with contextlib.suppress(BlockingIOError):
                while True:
                    packet = self.sockets[1].recv(100)
            self.controller.tick(packet)
            if self.answers:
                for reply in self.controller.replies():
                    self.sockets[1].sendto(reply, self.sockets[0].getsockname())
            self.places.append(self.controller.places)
            self.following.append(self.controller.follows)
            if wanted is not None and wanted(self):
                return True
        return wanted is None

    def until(self, state, seconds=12.0):
        assert self.ticks(round(seconds / 0.003), lambda rig: rig.emitter.state == state), self.log[-3:]
        return self

    @property
    def reasons(self):
        return [(move["to"], move["reason"]) for move in self.log]
