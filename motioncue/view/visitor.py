"""One page of the server: what it has been sent, and the changes that it waits for."""

import asyncio
import math
import time
from collections import deque
from typing import Any

from motioncue.errors import ConfigError
from motioncue.view.requests import Request, Set
from motioncue.view.told import to_json

__all__ = ["Visitor"]

REPLIES = 32  # most replies kept for a page; the oldest go first
WAITING_CHANGES = 32  # most changes of settings of a page that wait for the ones before


class Visitor:
    """A browser's page that is connected.

    Parameters
    ----------
    connection : websockets.asyncio.server.ServerConnection
        Its connection.
    number : int
        Counts the pages of a run.
    name : str
        What others see of it.
    """

    def __init__(self, connection: Any, number: int, name: str) -> None:
        self.connection = connection
        self.number = number
        self.name = name
        self.replies: deque[str] = deque(maxlen=REPLIES)
        self.sent = self.seen = self.bad = 0
        self.dropped = False
        self.seen_at = time.monotonic()  # since when it has not drawn what it was sent
        self.stats_at = -math.inf
        self.frame = 0  # number of the newest frame that it was sent
        self.known = (-1, -1, -1)  # versions of the settings, the hands and the judgment that it has been sent
        self.controls = ""  # what it was told of the settings
        self.answered = self.told = 0  # number of its newest setting that was made or refused; which it was told
        self._changes: deque[Request] = deque()
        self._changed = asyncio.Event()

    def put(self, request: Request) -> None:
        """Note a change of settings; a newer value of the same parameter replaces one that still waits.

        Parameters
        ----------
        request : Request
            The change.

        Raises
        ------
        ConfigError
            If too many are waiting.
        """
        last = self._changes[-1] if self._changes else None
        if isinstance(last, Set) and isinstance(request, Set) and last.key == request.key:
            self._changes.pop()
        if len(self._changes) >= WAITING_CHANGES:
            raise ConfigError(f"found {WAITING_CHANGES} changes waiting already, try again")
        self._changes.append(request)
        self._changed.set()

    async def next_change(self) -> Request:
        """Wait for a change of settings."""
        while not self._changes:
            self._changed.clear()
            await self._changed.wait()
        return self._changes.popleft()

    def refuse(self, request: Request, error: Exception) -> None:
        """Tell the page why a request was refused.

        Parameters
        ----------
        request : Request
            What was asked.
        error : Exception
            Why not.
        """
        key, number = (request.key, request.number) if isinstance(request, Set) else (None, 0)
        self.reply("refused", key=key, number=number, why=str(error))

    def reply(self, kind: str, **said: Any) -> None:
        """Note a message for the page.

        Parameters
        ----------
        kind : str
            What it is about.
        **said
            Its contents.
        """
        self.replies.append(to_json(kind, said))
