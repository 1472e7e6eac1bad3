"""An engine's loop on a clock that takes no time, in front of a controller in software at a real socket."""

import contextlib
import socket

import numpy as np

from motioncue import sources
from motioncue.core.channels import BODY, CHASSIS, MOTION
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import check, streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.output.packet import replies_of
from motioncue.platforms.build import channels_of
from motioncue.profile.profile import parse_profile
from motioncue.virtual.controller import Controller
from motioncue.virtual.installation import drive_packages

START = 1_000_000_000
RISE_S, FADE_S = 1.0, 0.5
SWING = 0.05  # of each channel of wheels, suspension and cab, in its unit
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


TOLD = np.dtype([(channel.name, "<f8") for channel in (*BODY, MOTION[-1], *CHASSIS)])
"""What a source says that says everything of the car: its motion, its own time, wheels, suspension and cab."""

BESIDE = np.dtype(
    [(f"post_{k + 1}", "<f8") for k in range(4)]
    + [(f"car_{channel.name}", "<f8") for channel in (*BODY, *CHASSIS)]
    + [("tactile", "<f8"), *((channel.name, "<f8") for channel in BODY)]
)
"""What an output is sent that is sent everything beside its actuators."""


def fields_of(packet):
    """Return a packet's fields, one after the other, as a list in TOML."""
    return ", ".join(
        f'{{ offset = {8 * k}, type = "f8", channel = "{"time" if name == "frame_time" else name}" }}'
        for k, name in enumerate(packet.names)
    )


def telling_profile(algorithm="classical", *overrides):
    """Return one whose source tells all of the car, whose output is sent all of it, and whose corners follow wheels."""
    source = f"""
        system = "custom"
        endpoint = "udp://127.0.0.1:4567"
        [source.packet]
        size = {TOLD.itemsize}
        fields = [{fields_of(TOLD)}]
    """
    wanted = "platform.corners={gain=1.0, most_m=0.01}"
    return profile_of(algorithm, REPLY, wanted, *overrides, source=source, packet=BESIDE)


SIMULATOR = """
        system = "beamng"
        endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
"""


def profile_of(algorithm="classical", reply=REPLY, *overrides, source=SIMULATOR, packet=None):
    packet = np.dtype([(f"post_{k + 1}", "<f8") for k in range(4)]) if packet is None else packet
    text = f"""
        [source]
        {source}
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
        size = {packet.itemsize}
        fields = [{fields_of(packet)}]
        {reply}
    """
    profile = parse_profile(text, overrides=overrides)
    check(profile)
    return profile


class Rig:
    """An engine's loop on a clock that takes no time, a drive that goes on, and a controller at a real socket."""

    def __init__(self, profile, firmware, places=None, seed=0):
        self.profile = profile
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
        self.packages = self._drive(profile)
        self.sent, self.sent_in = [], []  # packets, and the ticks that sent them
        self.ticked = 0
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
    def _drive(profile):
        """Return the packages of a drive that goes on; where a source tells all, wheels and cab swing at 2 Hz."""
        system = sources.system_of(profile.source)
        if system == "beamng":
            while True:
                yield from drive_packages("beamng", "turns")
        time = 0.0
        for package in drive_packages(system, "turns", duration_s=60.0):
            told = np.frombuffer(package.package, TOLD).copy()
            for place, channel in enumerate(CHASSIS):
                told[channel.name] = SWING * np.sin(4.0 * np.pi * time + place)
            time += package.duration
            yield package._replace(package=told.tobytes())

    def ticks(self, n, wanted=None):
        """Run ticks, each followed by one of the controller's; `wanted(rig)` ends it earlier."""
        for _ in range(n):
            while self.next <= self.now:
                package = next(self.packages)
                self.next += round(package.duration * 1e9)
                self.pipeline.intake.feed(package.package, self.now)
            self.emitter.run(1)
            self.ticked += 1
            self.now += 3_000_030
            self.log += self.emitter.transitions()
            packet = None
            with contextlib.suppress(BlockingIOError):
                while True:
                    packet = self.sockets[1].recv(2000)
                    self.sent.append(packet)
                    self.sent_in.append(self.ticked - 1)
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
