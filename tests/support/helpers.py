"""Helpers of the tests of the live path: packages, a plain-Python reference server, sockets, waiting."""

import contextlib
import ctypes
import math
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from reference.rigid_body import Axes, by_matrices
from scipy.spatial.transform import Rotation

import motioncue
from motioncue.core.clock import MonotonicClock
from motioncue.engine.receiver import StreamReceiver
from motioncue.errors import EndpointError
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.packets import FRAME, INIT
from motioncue.transports.endpoint import Listener

WINE = sys.platform == "win32" and hasattr(ctypes.windll.ntdll, "wine_get_version")

SAMPLE = sample_recording()
PACKAGES = read_packages(SAMPLE)
INIT_PACKAGE, FRAMES = PACKAGES[0], PACKAGES[1:]

# As the document states them: size, type, then an identifier and a version, or a code.
INIT_REPLY = struct.pack("<HBHB", 6, 0, 0, 1)
FRAME_REPLY = struct.pack("<HBB", 4, 1, 0)

DEFAULT_AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
CHANNELS = [
    "surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate", "speed", "frame_time",
]  # fmt: skip
"""Channels of a motion that City Car Driving fills."""

AXES = {
    "default": DEFAULT_AXES,
    "right-handed Y-up": ((0, 0, -1), (0, 1, 0)),
    "X forward, Z up": ((1, 0, 0), (0, 0, 1)),
    "Y forward, Z up": ((0, 1, 0), (0, 0, 1)),
    "oblique": ((2 / 3, -1 / 3, 2 / 3), (2 / 3, 2 / 3, -1 / 3)),
    "not of unit length": ((0, 0, 7.5), (0, 0.02, 0)),
}
BAD_AXES = {
    "zero forward": ((0, 0, 0), (0, 1, 0)),
    "zero up": ((0, 0, 1), (0, 0, 0)),
    "parallel": ((0, 1, 0), (0, 1, 0)),
    "opposite": ((0, 1, 0), (0, -1, 0)),
    "at 45 degrees": ((0, 1, 1), (0, 1, 0)),
}
BASE = """
[source]
system = "city-car-driving"
endpoint = "tcp://127.0.0.1:9000"
[cueing]
algorithm = "direct"
[output]
system = "dk"
motion = "udp://127.0.0.1:4445"
"""
"""A profile with only the required keys."""

GOOD = {"frame_time": 1 / 60, "orientation": (0.0, 0.0, 0.0, 1.0)}
"""A frame of a car at rest, heading along +Z."""


def init(forward=DEFAULT_AXES[0], up=DEFAULT_AXES[1], **fields):
    """Return an init package."""
    return INIT.encode({"forward": forward, "up": up, **fields})


def frame(**fields):
    """Return a frame package; by default of a car at rest."""
    return FRAME.encode({**GOOD, **fields})


def new_session(**options):
    """Return a session of City Car Driving that has begun at time 0."""
    session = city_car_driving.intake(city_car_driving.Options(**options))
    session.begin(0)
    return session


def began(*packages, **options):
    """Return a session that has taken an init package, then `packages`."""
    session = new_session(**options)
    session.feed(b"".join((init(), *packages)), 0)
    session.events()
    return session


def bits(array):
    """Return the bytes of a record array, for comparisons in which NaN equals NaN and -0.0 differs from 0.0."""
    return np.ascontiguousarray(array).tobytes()


def single(value):
    """Return a 4-byte float, little-endian, with denormals flushed to zero."""
    return struct.pack("<f", value if abs(value) >= 2.0**-126 else math.copysign(0.0, value))


def engaged(trace):
    """Return the stretches of `trace` between neutral and neutral, as pairs of start and end."""
    edges = np.diff(np.concatenate([[0], trace["weight"] > 0, [0]]))
    return list(zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True))


class Reference:
    """City Car Driving's server for one connection, in plain Python, from the document.

    Attributes
    ----------
    valid : list of bytes
        Accepted packages: good frames, and init packages (one with bad axes as the default axes used instead).
    refused : list of set of str
        Every applicable reason for each refused package.
    """

    UNSIGNED = struct.Struct("<H")
    FRAME_FIELDS = ("frame_time", "position", "orientation", "velocity", "acceleration", "angular_velocity")

    def __init__(self):
        self.data = b""
        self.valid, self.refused = [], []
        self.replies = b""
        self.open = True
        self.initialized = False
        self.frames = 0

    def feed(self, data):
        """Take bytes; return the accepted packages among them."""
        before = len(self.valid)
        self.data += data if self.open else b""
        while self.open and len(self.data) >= 2:
            (size,) = self.UNSIGNED.unpack(self.data[:2])
            if not 3 <= size <= 512:
                swapped = int.from_bytes(self.data[:2], "big")
                self.refused.append({"big_endian" if swapped in (39, 107) else "framing"})
                self.replies += FRAME_REPLY
                self.open, self.data = False, b""
            elif len(self.data) < size:
                break
            else:
                self._package(self.data[:size])
                self.data = self.data[size:]
        return self.valid[before:]

    def _package(self, package):
        kind = package[2]
        self.replies += INIT_REPLY if kind == 1 else FRAME_REPLY
        layout = {1: INIT, 2: FRAME}.get(kind)
        if layout is None:
            self.refused.append({"type"})
        elif len(package) != layout.size:
            self.refused.append({"size"})
        elif kind == 1:
            self._init(np.frombuffer(package, INIT.dtype)[0], package)
        else:
            self._frame(np.frombuffer(package, FRAME.dtype)[0], package)

    def _init(self, row, package):
        with np.errstate(invalid="ignore"):
            axes = np.array([row["forward"], row["up"]], dtype=np.float64)
        if not np.isfinite(axes).all():
            self.refused.append({"not_finite"})
            return
        self.initialized = True
        lengths = np.linalg.norm(axes, axis=1)
        if lengths.min() < 1e-3 or abs(axes[0] @ axes[1]) > 0.1 * lengths[0] * lengths[1]:
            self.refused.append({"axes"})
            package = init()
        self.valid.append(package)

    def _frame(self, row, package):
        reasons = set() if self.initialized else {"before_init"}
        for name in (*self.FRAME_FIELDS, "angular_acceleration"):
            with np.errstate(invalid="ignore"):  # a signalling NaN
                values = np.array(row[name], dtype=np.float64)
            if not np.isfinite(values).all():
                reasons.add("not_finite")
            if (np.abs(values[np.isfinite(values)]) > FRAME.fields[name].limit).any():
                reasons.add("implausible")
            if name == "orientation" and not 0.9 < np.linalg.norm(values) < 1.1:
                reasons.add("quaternion")
        if reasons:
            self.refused.append(reasons)
        else:
            self.frames += 1
            self.valid.append(package)

    def agrees(self, rejected):
        """Say whether `rejected` counts each refused package once, under an applicable reason."""
        only, any_of = Counter(), Counter()
        for reasons in self.refused:
            any_of.update(reasons)
            if len(reasons) == 1:
                only.update(reasons)
        within = all(only[name] <= rejected.get(name, 0) <= any_of[name] for name in {*any_of, *rejected})
        return within and sum(rejected.values()) == len(self.refused)


def expected_motion(frames, axes=DEFAULT_AXES):
    """Return the body-frame channels of frame records by rotation matrices of SciPy.

    Parameters
    ----------
    frames : ndarray of the frame's dtype, shape (n,)
        World: X east, Y up, -Z north.
    axes : tuple of two 3-vectors
        The car's forward and up in its own coordinates.

    Returns
    -------
    dict of str to ndarray of float64, shape (n,)
    """
    names = ("velocity", "acceleration", "angular_velocity", "angular_acceleration")
    vectors = [np.asarray(frames[name], np.float64) for name in names]
    orientation = np.roll(np.asarray(frames["orientation"], np.float64), 1, axis=1)  # x, y, z, w on the wire
    return by_matrices(orientation, *vectors, Axes(car_forward=axes[0], car_up=axes[1]))


def truth(states):
    """Return the body-frame channels of states in world axes north, east, down, by rotations of SciPy."""
    rotation = Rotation.from_quat(np.roll(states["orientation"], -1, axis=1))
    acceleration, omega = (rotation.inv().apply(states[name]) for name in ("acceleration", "angular_velocity"))
    yaw, pitch, roll = rotation.as_euler("ZYX").T
    return {
        "surge": acceleration[:, 0],
        "sway": acceleration[:, 1],
        "heave": -acceleration[:, 2],
        "roll": roll,
        "pitch": pitch,
        "yaw": yaw,
        "roll_rate": omega[:, 0],
        "pitch_rate": omega[:, 1],
        "yaw_rate": omega[:, 2],
        "speed": np.linalg.norm(states["velocity"], axis=1),
    }


def eventually(condition):
    """Wait until `condition()` is true; fail after a generous time."""
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.002)


def free_port(kind=socket.SOCK_STREAM, host="127.0.0.1"):
    """Return a port that is free at the moment, of those that no system gives to whoever asks for any."""
    for left in reversed(range(50)):
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                if not left:
                    raise
            else:
                return port
    raise AssertionError


def nowhere():
    """Return an endpoint for datagrams at which nobody listens; engines that send to one address refuse each other."""
    return f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"


def own_ports(text):
    """Return the text of a profile that sends to a DK, with ports of its own."""
    return re.sub(r"udp://127\.0\.0\.1:444[45]", lambda _: nowhere(), text)


def loopbacks():
    """Return the loopback addresses that this machine has."""
    hosts = ["127.0.0.1"]
    try:
        free_port(socket.SOCK_DGRAM, "::1")
    except OSError:
        return hosts
    return [*hosts, "::1"]


def stream_url(scheme, folder):
    """Return a free endpoint of a stream scheme."""
    if scheme == "pipe":
        return f"pipe://motioncue-test-{uuid.uuid4().hex[:8]}"
    return f"unix://{folder}/s" if scheme == "unix" else f"tcp://127.0.0.1:{free_port()}"


@contextlib.contextmanager
def serving(url, session, clock=None, hosts=None):
    """Run a receiver for `session` at `url` during a block; then stop it and assert that it ended."""
    listener = Listener(url, hosts)
    receiver = StreamReceiver(session, listener.server, clock or MonotonicClock())
    thread = threading.Thread(target=receiver.run, name="receiver", daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.stop()
        thread.join(30)
        assert not thread.is_alive()
        listener.close()


MORE = re.compile(r" \.\.\. (\d+) more in the last \d+ s$")


def said_in(caplog, words):
    """Return how often lines with these words were logged or counted, ignoring text in brackets."""
    said = Counter()
    for record in caplog.records:
        line = record.getMessage()
        if record.name == "motioncue" and words in line:
            more = MORE.search(line)
            said[MORE.sub("", line).split(" (")[0]] += int(more[1]) if more else 1
    return said


def receive(client, size):
    """Return exactly `size` bytes, fewer if the peer closes first."""
    data = b""
    while len(data) < size:
        try:
            piece = client.recv(size - len(data))
        except ConnectionResetError:
            break
        if not piece:
            break
        data += piece
    return data


def closed(client):
    """Wait for the peer to close; return whether it did, whatever it sent before."""
    client.settimeout(30)
    try:
        while client.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


class Sink:
    """A UDP socket on loopback, and a thread that keeps every datagram in order."""

    def __init__(self, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind((host, 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"udp://{f'[{host}]' if ':' in host else host}:{self.port}"
        self.packets = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while packet := self.socket.recv(4096):
            self.packets.append(packet)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.socket.sendto(b"", self.socket.getsockname())
        self._thread.join()
        self.socket.close()

    def all(self, count):
        """Return all packets once there are `count` of them."""
        eventually(lambda: len(self.packets) >= count)
        return list(self.packets)


def bindable(url):
    """Say whether a listener can be opened at `url` right now."""
    try:
        Listener(url).close()
    except EndpointError:
        return False
    return True


LINUX_PROGRAMS = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("gcc"), reason="compiles a program of tests/linux"
)


def compiled(folder, name, *flags):
    """Compile a program of tests/linux with the package's headers into `folder`; return its path."""
    source, include = Path(__file__).parents[1] / "linux" / f"{name}.c", Path(motioncue.__file__).parents[1]
    warnings = ["-Wall", "-Werror", "-Wno-unused-function"]
    command = ["gcc", "-std=gnu11", *warnings, f"-I{include}", *flags, source, "-o", folder / name, "-pthread", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / name


# A console's keys reach every attached process, so a helper joins the other process's console and presses one.  It gets
# the key too, in a thread of the system's: it ends at once, since Python at its end would free the handler under it.
PRESS = """
import ctypes, os, sys
kernel = ctypes.windll.kernel32
kernel.FreeConsole()
assert kernel.AttachConsole(int(sys.argv[1])), kernel.GetLastError()
unmoved = ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint)(lambda event: 1)
assert kernel.SetConsoleCtrlHandler(unmoved, True)
assert kernel.GenerateConsoleCtrlEvent(int(sys.argv[2]), 0), kernel.GetLastError()
os._exit(0)
"""


def press(pid, key):
    """Press Ctrl-C or Ctrl-Break (an event of `signal`) in the own console of another Windows process."""
    helper = [sys.executable, "-c", PRESS, str(pid), str(int(key))]
    subprocess.run(helper, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)  # the key may end it too
