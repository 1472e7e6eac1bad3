"""A controller that is checked in over TCP before it takes packets, and checked out at the end."""

import contextlib
import logging
import socket
import time

from motioncue.errors import ConfigError, EndpointError
from motioncue.transports.endpoint import connect
from motioncue.wire.description import CheckIn, Exchange

__all__ = ["CheckedIn", "check_exchanges"]

LOG = logging.getLogger("motioncue")

PATIENCE_S = 3.0  # for the connection, and for each answer
LEAVING_S = 0.5  # for each answer while it is checked out
LONGEST = 4096  # bytes of an answer
READS = 256  # of as many bytes at a time: one that sends without end keeps nobody


def check_exchanges(table: CheckIn) -> None:
    """Refuse messages that are not hexadecimal digits."""
    for key in ("begin", "end"):
        for index, exchange in enumerate(getattr(table, key)):
            for part in ("send", "answer"):
                digits = getattr(exchange, part)
                try:
                    empty = not bytes.fromhex(digits)
                except ValueError:
                    empty = True
                if empty and (digits or part == "send"):
                    raise ConfigError(
                        f"output.packet.check_in.{key}[{index}].{part}: found {digits!r}, allowed are pairs of "
                        "hexadecimal digits, one or more"
                    )


class CheckedIn:
    """A connection over which a controller has been checked in."""

    def __init__(self, table: CheckIn, log: "logging.Logger | logging.LoggerAdapter[logging.Logger]" = LOG) -> None:
        assert table.endpoint is not None
        self._log = log
        self._url, self._end = table.endpoint, table.end
        self._lost = False
        self._socket = connect(self._url, timeout_s=PATIENCE_S)
        try:
            for exchange in table.begin:
                self._exchange(exchange, PATIENCE_S)
        except BaseException:
            self._socket.close()
            raise
        self._log.info("%s: checked in", self._url)

    def _exchange(self, exchange: Exchange, patience_s: float) -> None:
        """Send a message and wait for its answer; raise EndpointError if it does not come."""
        wanted, found = bytes.fromhex(exchange.answer), b""
        until = time.monotonic() + patience_s
        self._socket.settimeout(patience_s)
        try:
            self._socket.sendall(bytes.fromhex(exchange.send))
            while wanted.startswith(found) and len(found) < len(wanted):
                self._socket.settimeout(max(until - time.monotonic(), 1e-3))
                more = self._socket.recv(LONGEST)
                if not more:
                    raise EndpointError(f"{self._url}: closed the connection instead of answering {exchange.send}")
                found += more
        except OSError as error:
            if isinstance(error, EndpointError):
                raise
            why = f"no answer within {patience_s:g} s" if isinstance(error, TimeoutError) else error
            allowed = f", allowed is {exchange.answer}" if exchange.answer else ""
            raise EndpointError(f"{self._url}: {why} to {exchange.send}{allowed}") from error
        if not found.startswith(wanted):
            answer = found[:40].hex(" ")
            raise EndpointError(
                f"{self._url}: found {answer} in answer to {exchange.send}, allowed is {exchange.answer}"
            )

    def lost(self) -> bool:
        """Read what has come, and return whether the connection has been closed since the last call.

        What is not read would fill it.
        """
        if self._lost:
            return False
        self._socket.settimeout(0.0)
        try:
            for _ in range(READS):
                if not self._socket.recv(LONGEST):
                    break
            else:
                return False
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:
            pass
        self._lost = True
        return True

    def close(self) -> None:
        """Check it out and close the connection; a controller that does not answer keeps nobody waiting."""
        failed = ""
        for exchange in self._end:
            self.lost()  # what has come before is no answer
            try:
                self._exchange(exchange, LEAVING_S)
            except OSError as error:  # the next message may be the one that lets go of the platform
                failed = failed or str(error)
        if self._lost and not failed:  # what is sent after that may be accepted, and reaches nobody
            failed = f"{self._url}: closed by the controller"
        if failed:
            self._log.warning("%s; perhaps it is not checked out", failed)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
