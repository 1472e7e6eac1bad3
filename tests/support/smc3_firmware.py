"""SMC3 as the comments and the loop of its firmware describe it, at the end of a pseudo-terminal."""

import contextlib
import os
import select
import threading
import time

SPEED = 2.0  # counts that a motor moves in a millisecond: the whole range in half a second
TIME_CONSTANT_S = 0.02


class Smc3:
    """Takes [Axx] and the like, answers [rdA], [rdB], [rdC] and [rdY]; a motor that is cut off stays where it is."""

    def __init__(self):
        self.at = [512.0] * 3
        self.target = [512] * 3
        self.disabled = 0
        self.commands = 0
        self.trace = []  # positions, a row a millisecond or later
        self.end, self.line = os.openpty()
        self.name = os.ttyname(self.line)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        os.set_blocking(self.end, False)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        os.close(self.end)
        os.close(self.line)

    def _run(self):
        data, before = b"", time.monotonic()
        while not self._over.is_set():
            if select.select([self.end], [], [], 0.001)[0]:
                with contextlib.suppress(OSError):
                    data += os.read(self.end, 4096)
            now = time.monotonic()
            for n in range(3):
                if not self.disabled >> n & 1:
                    wanted = (self.target[n] - self.at[n]) * min(1.0, (now - before) / TIME_CONSTANT_S)
                    most = SPEED * 1e3 * (now - before)
                    self.at[n] += max(-most, min(wanted, most))
            self.trace.append((now, *self.at, self.disabled))
            before = now
            data = self._obey(data)

    def _obey(self, data):
        """Carry out the commands at the beginning of what has come; return what is left."""
        while (at := data.find(b"[")) >= 0 and at + 5 <= len(data):
            command, end = data[at + 1 : at + 4], data[at + 4]
            if end != ord("]"):
                data = data[at + 1 :]
                continue
            data = data[at + 5 :]
            self.commands += 1
            if command[:1] in b"ABC":
                self.target[command[0] - ord("A")] = min(max(256 * command[1] + command[2], 0), 1023)
            elif command == b"ena":
                self.disabled = 0
            elif command[:2] == b"rd":
                self._answer(command[2:])
        return data

    def _answer(self, what):
        if what in (b"A", b"B", b"C"):
            n = what[0] - ord("A")
            self._write(b"[" + what + bytes((int(self.at[n]) // 4, self.target[n] // 4)) + b"]")
        elif what == b"Y":
            self._write(b"[Y" + bytes((16 + self.disabled, 0)) + b"]")

    def _write(self, data):
        with contextlib.suppress(OSError):
            os.write(self.end, data)
