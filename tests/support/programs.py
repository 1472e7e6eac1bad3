"""Helpers of the command-line tests: commands as programs, and a hand-written simulator."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from helpers import eventually, press, receive

STREAM = "unix" if hasattr(socket, "AF_UNIX") else "tcp"
WINDOWS = sys.platform == "win32"
INTERRUPT = signal.CTRL_C_EVENT if WINDOWS else signal.SIGINT

INIT = struct.pack("<HB9f", 39, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0)
SURGE = 3.0  # [m/s^2], exact in single precision
# Forward is the car's +Z, and with no rotation the world's too: an acceleration along +Z is surge.
FRAME = struct.pack("<HBd24f", 107, 2, 1 / 60, *[0] * 6, 0, 0, 0, 1, 0, 0, 10, 0, 0, SURGE, *[0] * 8)
NEUTRAL = b"BNG1" + bytes(84)

ENGINE_KEYS = {"frames_received", "packets_sent", "rate_hz", "skipped", "rejected", "lateness_us", "duration_s"} | {
    "state", "transitions", "events", "limits", "limited"
}  # fmt: skip


class Program:
    """A command that runs in a process of its own."""

    def __init__(self, *arguments, env=os.environ, **options):
        if WINDOWS:
            options["creationflags"] = subprocess.CREATE_NEW_CONSOLE
        self.process = subprocess.Popen(
            [sys.executable, "-m", "motioncue", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**env, "PYTHONIOENCODING": "utf-8"},
            **options,
        )
        self._said = []
        stderr, self.process.stderr = self.process.stderr, None
        self._hears = threading.Thread(target=self._hear, args=(stderr,), daemon=True)
        self._hears.start()

    def _hear(self, stderr):
        with stderr:
            self._said.extend(stderr)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()
        self._hears.join(30)

    def says(self, text):
        """Wait until it has logged something on stderr, as it does when it listens."""

        def said():
            # In this order, because a program may log and then end in between.
            ended = self.process.poll() is not None and not self._hears.is_alive()
            found = any(text in line for line in tuple(self._said))
            assert found or not ended, f"ended without {text!r}: {''.join(self._said)}"
            return found

        eventually(said)

    def signal(self, number):
        if WINDOWS:
            press(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def finish(self, timeout_s=60):
        """Wait for the end; return what it wrote to stdout and to stderr."""
        out, _ = self.process.communicate(timeout=timeout_s)
        self._hears.join(30)
        return out, "".join(self._said)

    def end(self):
        """Wait for the end; return the object on the last line."""
        out, err = self.finish()
        assert self.process.returncode == 0, (self.process.returncode, err)
        assert "Traceback" not in err
        assert "\x1b" not in out  # no live view without a terminal
        return json.loads(out.splitlines()[-1], parse_constant=pytest.fail)


def stream_socket(url):
    """Return a socket for a stream endpoint, and the endpoint's address."""
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), rest
    host, _, port = rest.partition(":")
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM), (host, int(port))


def connected(url):
    """Return a socket connected to a stream endpoint."""
    client, address = stream_socket(url)
    client.settimeout(30)
    try:
        client.connect(address)
    except OSError:
        client.close()
        raise
    return client


def soon_connected(url):
    """Return a socket connected to a stream endpoint, waiting until something listens there."""
    found = []

    def attempt():
        with contextlib.suppress(OSError):
            found.append(connected(url))
        return found

    eventually(attempt)
    return found[0]


def listening(url):
    """Return a socket that listens at a stream endpoint."""
    listener, address = stream_socket(url)
    listener.bind(address)
    listener.listen()
    listener.settimeout(30)
    return listener


class Feeder:
    """A hand-written simulator: sends the same frame sixty times a second, and waits for each reply."""

    def __init__(self, url):
        self.url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _connected(self):
        while not self._stop.is_set():
            try:
                return connected(self.url)
            except OSError:
                time.sleep(0.02)
        return None

    def _run(self):
        client = self._connected()
        if client is None:
            return
        with client:
            client.sendall(INIT)
            receive(client, 6)
            try:
                while not self._stop.wait(1 / 60):
                    client.sendall(FRAME)
                    if len(receive(client, 4)) < 4:
                        return
            except OSError:
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join(30)
