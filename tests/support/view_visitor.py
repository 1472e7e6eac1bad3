"""A page without a browser."""

import json

import numpy as np
import pytest

client = pytest.importorskip("websockets.sync.client")


class Visitor:
    """A page without a browser."""

    def __init__(self, server, **options):
        where = server.url.removeprefix("http://")
        host, _, query = where.partition("/")
        options = {"origin": f"http://{host}", "compression": None, "close_timeout": 1, **options}
        self.connection = client.connect(f"ws://{host}/live{query}", **options).__enter__()
        self.frames, self.values, self.new = 0, {}, {}
        self.hello = self.next("hello")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send(self, **request):
        self.connection.send(json.dumps(request))

    def receive(self):
        """Return the next frame or message; acknowledge frames."""
        message = self.connection.recv(timeout=120)
        if isinstance(message, bytes):
            self.frames += 1
            self.send(do="seen", frames=self.frames)
            return np.frombuffer(message, "<f8")
        said = json.loads(message)
        if said["kind"] == "settings":  # later ones hold only what is new
            self.new = said["values"]
            self.values = self.values | self.new if said.get("part") else self.new
            said["values"] = self.values
        return said

    def next(self, kind, fits=lambda message: True):
        """Return the next message of a kind that fits."""
        for _ in range(3000):
            message = self.receive()
            if kind == "frame" and isinstance(message, np.ndarray):
                return dict(zip(self.hello["names"], message.tolist(), strict=True))
            if isinstance(message, dict) and message["kind"] == kind and fits(message):
                return message
        raise AssertionError(f"no {kind}")
