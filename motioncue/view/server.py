"""The page's server, a thread beside the engine: sends frames to browsers, takes their requests."""

import asyncio
import errno
import gzip
import logging
import math
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from motioncue.engine.journal import Journal
from motioncue.errors import ConfigError, EndpointError, MotioncueError
from motioncue.profile.profile import Profile
from motioncue.view.access import AccessCheck, Address
from motioncue.view.editor import Doubtful, Editor
from motioncue.view.model import Frames, Past, Watched
from motioncue.view.playback import LOOKS_HZ, Played, Recent
from motioncue.view.scorer import Scorer
from motioncue.view.session import (
    AcquireControl,
    Client,
    DrawnFrames,
    Mute,
    Operate,
    ReleaseControl,
    Request,
    Save,
    ScoreSettings,
    Set,
    SetSeveral,
    Swap,
    TryFound,
    Tune,
    Undo,
    Wave,
    controls,
    hello,
    parse_request,
    statistics,
    to_json,
)
from motioncue.view.wave import Player, TestWave

log = logging.getLogger("motioncue")

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PAGE = resources.files("motioncue.view") / "page"
FILES = {
    f"/{each.name}": (each, TYPES[suffix])
    for folder in (PAGE, PAGE / "uplot")
    for each in folder.iterdir()
    if (suffix := os.path.splitext(each.name)[1]) in TYPES
}
"""Files of the page by their path: where each is, and its type."""
FILES["/"] = FILES.pop("/index.html")

LIVE = "/live"
"""Path of the connection."""

PAST = "/past"
"""Path of the frames before."""

FRAMES_HZ = 60.0
STATS_S = 0.5  # between statistics
AHEAD = 12  # frames that a page may be behind before none is sent to it
PATIENCE_S = 10.0  # after which a page that reads nothing is dropped
SLOWEST = 4000.0  # of a link; for what the settings are, 70 kB, a page has so much more time [bytes/s]
PAGES = 16  # most pages at once
REQUEST_BYTES = 2048
REQUESTS_HZ = 200.0  # of a page; more wait in the network
BAD = 50  # requests that are none, after which a page is dropped
NICE = 10  # added to the thread's niceness, so that it never competes with who is on time
SEND_BYTES = 1 << 16  # the network's memory for one page
WORKERS = 2  # threads for a change of settings and for what was driven: each keeps the memory of its largest work
QUEUE = 128  # connections that wait in the system, which costs no descriptor

STARVED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of a system, or a process, that has nothing left for another connection."""


class Server:
    """Serves the page of an engine; a context manager around its thread.

    The engine's loops run without the GIL and share nothing with this thread but the newest tick, so a page that hangs,
    dies or floods cannot delay a tick.  A page that has not drawn its last frames is sent none, so nothing piles up.
    """

    def __init__(
        self,
        engine: Watched,
        address: Address,
        *,
        text: str | None = None,
        folder: Path | None = None,
        patience_s: float = PATIENCE_S,
        plays: bool = False,
        player: Player | None = None,
    ) -> None:
        self._engine = engine
        self._address = address
        self._patience_s = patience_s
        self._plays = plays
        self._editor = Editor(engine, text, folder)
        self._frames = Frames(engine)
        self._recent = Recent(engine)
        self._scorer = Scorer(self._recent, self._editor.compared)
        self._wave = TestWave(engine, player)
        self._past = Past()
        self._run_name = secrets.token_hex(8)  # a page that comes back sees whether it is still the same run
        self._pages: list[Client] = []
        self._controller: Client | None = None
        self._numbered = 0
        self._versions = [0, 0]  # of the settings and of the hands
        self._shown: Profile = engine.requested  # whose settings the newest version is
        self._frame: tuple[float, int, bytes] = (-math.inf, 0, b"")  # time, number, contents
        self._stats: tuple[float, str] = (-math.inf, "")
        self._values: dict[str, Any] = {}
        self._told = self._settings()
        self._changing: asyncio.Lock
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._end: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name="motioncue view", daemon=True)
        # What was refused and dropped so far.  turned_away: connections before they were let in; starved: no descriptor
        # was left for one; failed: defects of this server.
        self.counts = dict.fromkeys(("requests", "malformed", "dropped", "turned_away", "starved", "failed"), 0)
        self._journal = Journal()
        self._contents = {  # read now: while the system has no descriptor left, no file can be opened
            path: file.read_bytes() for path, (file, _) in FILES.items()
        }
        self._packed = {path: gzip.compress(contents) for path, contents in self._contents.items()}

    @property
    def url(self) -> str:
        """The page's address, with the token if it needs one."""
        return self._access.url

    @property
    def pages(self) -> int:
        """Number of pages connected."""
        return len(self._pages)

    def __enter__(self) -> "Server":
        """Begin to serve."""
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            host, port = self._address
            why = getattr(self._failed, "strerror", None) or self._failed
            raise EndpointError(f"--view: {host}:{port} cannot be served: {why}") from self._failed
        return self

    def __exit__(self, *_: object) -> None:
        """Drop all pages and end."""
        self._end()
        self._wave.stop()
        self._scorer.close()
        self._thread.join(5.0)

    # ---- the thread ----

    def _run(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        try:
            _run(self._serve())
        except Exception as error:  # of the address: OSError, UnicodeError
            if self._ready.is_set():
                log.exception("--view: the page's server ended")
            self._failed = error
        finally:
            self._journal.tell(end=True)
            self._ready.set()

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        from motioncue.view.access import ACCEPTED, Entrance

        quiet = logging.getLogger("motioncue.view.connections")
        quiet.setLevel(logging.CRITICAL)  # whoever knocks wrongly is counted, not logged
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._trouble)
        loop.set_default_executor(ThreadPoolExecutor(WORKERS))
        self._changing = asyncio.Lock()
        self._entrance = Entrance(self._turned_away)
        async with serve(
            self._visit,
            self._address.host,
            self._address.port,
            process_request=self._answer,
            create_connection=self._entrance.connection_class(),
            backlog=ACCEPTED,
            compression=None,
            max_size=REQUEST_BYTES,
            max_queue=4,
            write_limit=SEND_BYTES,
            open_timeout=self._patience_s,
            close_timeout=1.0,
            ping_interval=self._patience_s / 2,
            ping_timeout=3.0 * self._patience_s,  # behind what the settings are, over a slow link
            logger=quiet,
        ) as server:
            for each in server.sockets:
                with each.dup() as same:
                    same.listen(QUEUE)
            port = next(iter(server.sockets)).getsockname()[1]
            self._access = AccessCheck(self._address._replace(port=port))
            self._end = lambda: loop.call_soon_threadsafe(ended.set)
            self._ready.set()
            remembering = asyncio.create_task(self._remember())
            await ended.wait()
            remembering.cancel()

    async def _remember(self) -> None:
        """Look at the motion all the time, because the last minute may be wanted later."""
        while True:
            self._recent.poll()
            self._poll_engine(time.monotonic())
            self._journal.tell()
            if self._pages:
                self._scorer.poll(time.monotonic())
            await asyncio.sleep(1.0 / LOOKS_HZ)

    # ---- who comes in ----

    def _turned_away(self, host: str) -> None:
        """Count a connection that was ended, and say so, a few times."""
        self.counts["turned_away"] += 1
        what = "asked for nothing in time, stood in the way, or sent too much"
        self._journal.say("turned away", logging.WARNING, f"--view: a connection of {host} is ended: it {what}")

    def _trouble(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what the loop could not do: it goes on, and after a starved accept rests for a second."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in STARVED:
            self.counts["starved"] += 1
            self._journal.say("starved", logging.ERROR, f"--view: a new page has to wait: {error.strerror}")
            self._entrance.make_room()
        else:
            self._defect(str(context.get("message")), error)

    def _defect(self, what: str, error: BaseException | None) -> None:
        """Say a defect of this server, with its traceback the first time."""
        self.counts["failed"] += 1
        first = error if self.counts["failed"] == 1 else None
        if first is not None:
            log.error("--view: %s", what, exc_info=first)
        else:
            self._journal.say(("defect", type(error)), logging.ERROR, f"--view: {what}: {error!r}")

    # ---- files ----

    async def _answer(self, connection: Any, request: Any) -> Any:
        """Answer a request for a file; None lets a connection through."""
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        headers = request.headers
        path = request.path.partition("?")[0]
        host, origin = (_only(headers.get_all(name)) for name in ("Host", "Origin"))
        why = None
        if path in ("/", LIVE, PAST):  # the other files are the same everywhere
            why = self._access.refuses(request.path, host, origin, connects=path == LIVE)
        if why is None and path == LIVE and len(self._pages) >= PAGES:
            why = f"pages: found {PAGES} already, no more are allowed"
        if why is not None:
            self.counts["requests"] += 1
            return connection.respond(403, f"{why}\n")
        if path == LIVE:
            return None
        if path == PAST:
            kind = "application/octet-stream"
            played = self._engine if isinstance(self._engine, Played) else None
            body = self._past.rows() if played is None else await asyncio.to_thread(played.frames)
        elif path in FILES:
            kind, body = f"{FILES[path][1]}; charset=utf-8", self._contents[path]
        else:
            self.counts["requests"] += 1
            return connection.respond(404, "there is no such file\n")
        packs = "gzip" in (_only(headers.get_all("Accept-Encoding")) or "")
        if packs:  # what was driven is megabytes, which a slow link would be busy with for minutes
            body = self._packed[path] if path in self._packed else await asyncio.to_thread(gzip.compress, body, 1)
        said = {
            **({"Content-Encoding": "gzip"} if packs else {}),
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"default-src 'self'; connect-src 'self' ws://{host or ''}; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Connection": "close",
        }
        return Response(200, "OK", Headers(said), body)

    # ---- a page ----

    async def _visit(self, connection: Any) -> None:
        """Serve one page until it is gone."""
        from websockets.exceptions import ConnectionClosed

        with suppress(OSError):
            connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self._entrance.let_in(connection)
        self._numbered += 1
        page = Client(connection, self._numbered, f"page {self._numbered} ({connection.remote_address[0]})")
        self._pages.append(page)
        self._versions[1] += 1
        tasks = [asyncio.create_task(self._send(page)), asyncio.create_task(self._change(page))]
        try:
            async for message in connection:
                if page.dropped:
                    break
                self._receive(page, message)
                await asyncio.sleep(1.0 / REQUESTS_HZ)
        except ConnectionClosed:
            pass
        finally:
            for task in tasks:
                task.cancel()
            self._pages.remove(page)
            if self._controller is page:
                self._controller = None
            self._versions[1] += 1

    async def _send(self, page: Client) -> None:
        """Send a page what is new; drop it if it reads nothing."""
        from websockets.exceptions import ConnectionClosed

        try:
            run = self._run_name
            await page.connection.send(hello(self._engine, self._frames, page.number, run=run, plays=self._plays))
            while page.sent == page.seen or time.monotonic() - max(page.seen_at, page.told_at) < self._patience_s:
                for message in self._news(page):
                    patience_s = self._patience_s + len(message) / SLOWEST
                    await asyncio.wait_for(page.connection.send(message), patience_s)
                await asyncio.sleep(1.0 / FRAMES_HZ)
        except ConnectionClosed:
            return
        except TimeoutError:
            pass
        except Exception as error:
            self._defect(f"{page.name} is dropped", error)
        self._drop(page)

    def _drop(self, page: Client) -> None:
        """End a page's connection without its consent."""
        if not page.dropped:
            page.dropped = True
            self.counts["dropped"] += 1
            page.connection.transport.abort()

    def _news(self, page: Client) -> list[str | bytes]:
        """Return what a page has not been sent yet."""
        now = time.monotonic()
        self._poll_engine(now)
        news: list[str | bytes] = []
        versions = (self._versions[0], self._versions[1], self._scorer.version)
        if page.known[0] != versions[0]:
            settings, values, changed = self._told
            if settings != page.controls:  # another algorithm has others
                page.controls = settings
                page.told_at = now + (len(settings) + len(values)) / SLOWEST
                news += [settings, values]
            else:
                news.append(changed if page.known[0] == versions[0] - 1 else values)
        if page.known[1] != versions[1]:
            news.append(to_json("hands", self._control_of(page)))
        if page.known[2] != versions[2]:
            news.append(to_json("minute", self._scorer.answer()))
        page.known = versions
        while page.replies:
            news.append(page.replies.popleft())
        if page.told != page.answered:  # after what was changed, or why not
            page.told = page.answered
            news.append(to_json("answered", {"number": page.answered}))
        if now - page.stats_at >= STATS_S and page.sent - page.seen < AHEAD:  # a slow link is not filled with them
            page.stats_at = now
            news += [self._statistics(now), to_json("link", {"delay_s": page.delay_s, "wave": self._wave.news()})]
        if page.frame != self._frame[1] and page.sent - page.seen < AHEAD:
            page.frame = self._frame[1]
            if page.sent == page.seen:
                page.seen_at = now
            page.sent += 1
            page.sent_at.append(now)
            news.append(self._frame[2])
        return news

    def _poll_engine(self, now: float) -> None:
        """Look at the engine, at most once for all pages together."""
        if now - self._frame[0] >= 0.5 / FRAMES_HZ:
            newest = self._frames.newest()
            _, number, contents = self._frame
            self._frame = (now, number, contents) if newest is None else (now, number + 1, newest)
            if newest is not None:
                self._past.add(self._frames.time_s, newest)
        if self._engine.requested is not self._shown and not self._changing.locked():  # not by a page
            self._tell_pages()

    def _tell_pages(self) -> None:
        """Have every page told what the settings are now; never while one of them is being changed.

        Told after each change, even if the settings are what they were: one that was undone before anybody looked is
        still shown by the page that made it.
        """
        if self._engine.requested is not self._shown:
            self._scorer.changed()
        self._shown = self._engine.requested
        self._told = self._settings()
        self._versions[0] += 1

    def _settings(self) -> tuple[str, str, str]:
        """Return what the settings are, their values, and only those values that are new since the last call."""
        state, before = self._editor.state(), self._values
        self._values = state["values"]
        new = {key: value for key, value in self._values.items() if key not in before or before[key] != value}
        part = {key: each for key, each in state.items() if key != "begin"} | {"values": new, "part": True}
        return controls(self._engine, self._editor), to_json("settings", state), to_json("settings", part)

    def _control_of(self, page: Client) -> dict[str, Any]:
        """Return who steers."""
        hand = self._controller
        return {"steers": hand is page, "who": None if hand is None else hand.name, "pages": len(self._pages)}

    def _statistics(self, now: float) -> str:
        """Return the statistics, computed at most once for all pages together."""
        if now - self._stats[0] >= 0.9 * STATS_S:
            self._stats = (now, statistics(self._engine))
        return self._stats[1]

    # ---- requests ----

    def _receive(self, page: Client, message: str | bytes) -> None:
        """Do what a page requests, or tell it why not."""
        try:
            request = parse_request(message)
        except ValueError as error:
            self.counts["malformed"] += 1
            page.bad += 1
            page.reply("refused", key=None, why=str(error))
            if page.bad >= BAD:
                self._drop(page)
            return
        if isinstance(request, DrawnFrames):
            if page.seen < request.frames <= page.sent:
                now = time.monotonic()
                for _ in range(request.frames - page.seen):
                    page.delay_s = now - page.sent_at.popleft()
                page.seen, page.seen_at = request.frames, now
            return
        try:
            self._do(page, request)
        except (MotioncueError, RuntimeError) as error:
            page.refuse(request, error)

    def _do(self, page: Client, request: Request) -> None:
        """Carry out a request; raise ConfigError if it is refused."""
        if isinstance(request, Operate) and request.what == "park":  # anybody may, at any time
            self._engine.park()
            return
        if isinstance(request, ReleaseControl):
            if self._controller is page:
                self._take(None)
            return
        if isinstance(request, ScoreSettings):  # changes nothing
            self._scorer.ask(request.stretch)
            return
        if isinstance(request, Tune):
            if muted := self._editor.state()["muted"]:
                raise ConfigError(f"tune: {', '.join(muted)} muted, allowed is with all axes heard")
            self._scorer.tune(request.stretch)
            return
        if isinstance(request, AcquireControl) or self._controller is None:
            self._take(page)
        if self._controller is not page:
            raise ConfigError(f"{self._controller.name if self._controller else 'nobody'} steers; take over first")
        if isinstance(request, Operate):
            getattr(self._engine, request.what)()
        elif not isinstance(request, AcquireControl):
            page.put(request)

    def _take(self, page: Client | None) -> None:
        """Let a page steer, or nobody."""
        if self._controller is not page:
            self._controller = page
            self._versions[1] += 1

    async def _change(self, page: Client) -> None:
        """Make the changes of settings that a page requests, one after the other.

        Each in a thread of its own, because a design, or the replay of a recording, takes its time.
        """
        while True:
            request = await page.next_change()
            await asyncio.shield(asyncio.create_task(self._make(page, request)))  # also if the page leaves meanwhile

    async def _make(self, page: Client, request: Request) -> None:
        """Make one change of settings, and have all pages told."""
        async with self._changing:
            try:
                answer = await asyncio.to_thread(self._changed, page, request)
                if answer is not None:
                    page.reply("saved", **answer)
            except Doubtful as doubt:
                page.reply("asks", request=msgspec.to_builtins(request), why=doubt.why)
            except (MotioncueError, RuntimeError) as error:
                page.refuse(request, error)
            except Exception as error:  # the page's next changes are made all the same
                self._defect("a change of settings failed", error)
                page.refuse(request, error)
            finally:
                self._tell_pages()
        if isinstance(request, Set):
            page.answered = max(page.answered, request.number)

    def _changed(self, page: Client, request: Request) -> dict[str, Any] | None:
        """Make a change of settings; return what the page is told."""
        if isinstance(request, Set):
            self._editor.set(request.key, request.value, (page.number, request.gesture), sure=request.sure)
        elif isinstance(request, SetSeveral):
            self._editor.turn(request.values, (page.number, request.gesture), sure=request.sure, why=request.why)
        elif isinstance(request, TryFound):
            values, why = self._scorer.found(request.point)
            self._editor.turn(values, ("found", request.point), sure=request.sure, why=why)
        elif isinstance(request, Mute):
            self._editor.mute(request.axes)
        elif isinstance(request, Undo):
            self._editor.undo(sure=request.sure)
        elif isinstance(request, Swap):
            self._editor.swap(request.to, sure=request.sure, why=request.why)
        elif isinstance(request, Wave):
            self._wave.start(request.axis, sure=request.sure)
        elif isinstance(request, Save):
            return self._editor.save(request.name)
        return None


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a loop of its own, as ``asyncio.run`` does, but on every system with a selector.

    The other loop of Windows closes its listening socket for good when a client resets a connection before it was
    accepted.
    """
    loop = asyncio.SelectorEventLoop()
    try:
        loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _only(values: list[str]) -> str | None:
    """Return the value of a header that stands once."""
    return values[0] if len(values) == 1 else None
