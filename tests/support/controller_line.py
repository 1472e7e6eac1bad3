"""A controller at the end of a serial line, for tests of outputs that go there."""

import contextlib
import os
import select
import threading
import time
from collections import Counter

import numpy as np

from motioncue.errors import PacketError
from motioncue.profile.profile import Profile
from motioncue.virtual.controller import Controller
from motioncue.virtual.platform_twin import grid_hz


class ControllerLine:
    """A controller at the end of a line of this machine's own, a pseudo-terminal: a context manager.

    A tick passes with every packet of the motion, and with every period in which none comes.  It answers when one of
    the packets beside the motion comes again and again, which is how it is asked, else every `Firmware.reply_s`.
    """

    def __init__(
        self, controller: Controller, profile: Profile, seed: int = 0, *, lost: float = 0.0, foreign: float = 0.0
    ) -> None:
        self._lost = lost  # share of the bytes that the line loses, on both ways
        self._foreign = foreign  # share of the bytes of its replies in front of which others come
        table = profile.outputs[0].packet
        assert table is not None
        self.controller, self._random = controller, np.random.default_rng(seed)
        self._described = controller._decoder.described
        self._asked_by = {f"other_{number}" for number, each in enumerate(table.others, 1) if each.every_s}
        self._period_s = 1.0 / grid_hz(profile)
        self.heard: Counter[str] = Counter()  # by a packet's name, and ``foreign`` for what was none
        self._over = threading.Event()
        self._says: list[bytes] = []
        self._rest = b""  # of what has come, the beginning of a packet
        self._end, line = os.openpty()
        self.url = f"serial://{os.ttyname(line)}"  # without the line's speed
        self._line = line  # held open, so that the other end does not see it hang up before it is used
        self._thread = threading.Thread(target=self._run, name="motioncue controller", daemon=True)

    def __enter__(self) -> "ControllerLine":
        """Begin."""
        os.set_blocking(self._end, False)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End it, and close the line."""
        self.unplug()

    def unplug(self) -> None:
        """Close the line, as a cable that is pulled does."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            os.close(self._end)
            os.close(self._line)

    def say(self, data: bytes) -> None:
        """Send something that is no reply."""
        self._says.append(data)

    def _run(self) -> None:
        tick_at = reply_at = time.monotonic()
        while not self._over.is_set():
            now = time.monotonic()
            asks = False
            for piece in self._pieces(min(tick_at, now + self._period_s) - now):
                name = self._name_of(piece)
                self.heard[name] += 1
                asks = asks or name in self._asked_by
                if name == "motion":
                    self.controller.tick(piece)
                    tick_at = time.monotonic() + 2.0 * self._period_s
            now = time.monotonic()
            if now >= tick_at:
                self.controller.tick(None)
                tick_at = max(tick_at, now - 1.0) + self._period_s
            if asks or (not self._asked_by and now >= reply_at):
                reply_at = now + self.controller.firmware.reply_s
                self._write(b"".join(self.controller.replies()))
            while self._says:
                self._write(self._says.pop(0))

    def _pieces(self, patience_s: float) -> list[bytes]:
        """Return packets that have come, and what is between them."""
        if not select.select([self._end], [], [], max(0.0, patience_s))[0]:
            return []
        pieces: list[bytes] = []
        with contextlib.suppress(OSError):  # nobody has opened it
            pieces, self._rest = self._described.split(self._rest + self._harmed(os.read(self._end, 65536)))
        return pieces

    def _name_of(self, piece: bytes) -> str:
        try:
            return str(self._described.identify(piece).name)
        except PacketError:
            return "foreign"

    def _harmed(self, data: bytes) -> bytes:
        """Return what of a piece arrives."""
        if not self._lost:
            return data
        return bytes(np.frombuffer(data, np.uint8)[self._random.random(len(data)) >= self._lost])

    def _write(self, data: bytes) -> None:
        data = self._harmed(data)
        if self._foreign:
            strange = [bytes(self._random.integers(0, 256, int(self._random.random() < self._foreign))) for _ in data]
            data = b"".join(other + data[at : at + 1] for at, other in enumerate(strange))
        with contextlib.suppress(OSError):  # nobody reads it: what it has no room for is lost
            os.write(self._end, data)
