"""Parts shared by the commands: options, log lines, the line of JSON, and output that never blocks."""

import json
import logging
import math
import os
import shlex
import shutil
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
import msgspec

from motioncue import sources
from motioncue._version import __version__
from motioncue.core.threads import RecordRing
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.output.described import Described
from motioncue.profile.profile import Record, builtin_profiles, profile_text, resolved_text
from motioncue.wire.description import PacketTable, packet_presets

if TYPE_CHECKING:
    from motioncue.recording.drive import Drive
    from motioncue.recording.recorder import Recorder
    from motioncue.view.access import Address
    from motioncue.view.model import Watched
    from motioncue.view.wave import Player

ROOM = 1000  # texts waiting to be written
PATIENCE_S = 1.0  # for the remaining texts at the end


class NonblockingOutput:
    """Writes to a stream in a thread of its own; has the methods that `logging` and rich call.

    It writes to the file below the stream's buffer.  The buffer has a lock, and flushing it, as the interpreter does at
    its end, would wait for a thread that holds the lock while it is blocked.
    """

    def __init__(self, stream: TextIO) -> None:
        self.dropped = 0  # texts that did not fit because nobody read those before them
        self._stream = stream
        self._raw = getattr(getattr(stream, "buffer", None), "raw", None)
        self._texts: deque[str] = deque()
        self._unsaid = 0  # dropped texts that have not been reported on the stream yet
        self._busy = self._closing = self._broken = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="motioncue output", daemon=True)
        self._thread.start()

    @property
    def encoding(self) -> str:
        """The stream's encoding."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def pending(self) -> bool:
        """Whether anything still has to be written."""
        return self._busy or bool(self._texts)

    def isatty(self) -> bool:
        """Say whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the stream's descriptor."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Queue a text; if there is no room, drop and count it."""
        with self._changed:
            if len(self._texts) < ROOM:
                self._texts.append(text)
            else:
                self.dropped += 1
                self._unsaid += 1
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Do nothing, because queued texts are written anyway."""

    def close(self, patience_s: float = PATIENCE_S) -> bool:
        """Write the remaining texts, as far as the reader takes them in time."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: self._texts or self._closing)
                if not self._texts:
                    return
                self._busy = True
                text = self._texts.popleft()
            self._put(text)
            if self._unsaid:
                with self._changed:
                    unsaid, self._unsaid = self._unsaid, 0
                self._put(f"... {unsaid} more were dropped: nobody read them in time\n")

    def _put(self, text: str) -> None:
        try:
            if self._broken:
                return
            if self._raw is None:
                self._stream.write(text)
                self._stream.flush()
                return
            data = memoryview(text.replace("\n", os.linesep).encode(self.encoding, self._stream.errors or "strict"))
            while data:
                written = self._raw.write(data)
                if written is None:  # another process has made it non-blocking
                    time.sleep(0.01)
                data = data[written or 0 :]
        except (OSError, ValueError):  # the reader has gone
            self._broken = True


NO_MATPLOTLIB = '--report: matplotlib is missing: pip install "motioncue[report]"'

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def together(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def positive(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Return an option's value; refuse it unless it is finite and above 0."""
    if value is not None and not 0.0 < value < math.inf:
        raise click.BadParameter(f"found {value}, allowed are finite numbers above 0", ctx, param)
    return value


class Seconds(click.types.FloatParamType):
    """A number of seconds, without a unit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; refuse what is none."""
        try:
            return float(value)
        except ValueError:
            self.fail(f"found {value!r}, allowed is a number of seconds, such as 90", param, ctx)


def duration_option(text: str) -> Callable[[Decorated], Decorated]:
    """Return the option ``--duration``."""
    return click.option("--duration", type=Seconds(), callback=positive, metavar="S", help=text)


def changes_option(text: str) -> Callable[[Decorated], Decorated]:
    """Return the option ``--set``."""
    return click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help=text)


set_option = changes_option("Change a key of the profile; repeatable.")


def naming_systems(command: click.Command, attribute: str) -> None:
    """Fill in, in a command's help, the systems whose module has an attribute, or a profile of it."""
    assert command.help is not None
    names = sources.having(attribute)
    profile = ["a profile"] if attribute in ("intake", "identify") else []
    names += profile
    command.help = command.help.replace(
        "<systems>", f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else names[0]
    )


packet_option = click.option(
    "--packet",
    metavar="NAME|FILE",
    help="For custom: a controller of `motioncue profiles packets`, or the profile that describes the packet.",
)


def described(system: str, packet: str | None) -> Any:
    """Return what splits and identifies packets: a system's module, or the description of custom ones."""
    if system != "custom":
        if packet is not None:
            raise click.UsageError(f"--packet is for custom, {system} has its own packets")
        return _platform_of(system) or sources.system(system)
    if packet is None:
        raise click.UsageError(
            f"custom needs --packet: a profile that describes it, or one of {', '.join(packet_presets())}"
        )
    if packet in packet_presets():
        return Described(msgspec.convert(packet_presets()[packet], PacketTable))
    if not packet.endswith(".toml"):
        raise ConfigError(f"--packet: {not_among(packet, packet_presets())}, and profiles in .toml files")
    for output in load_profile(packet).outputs:
        if output.packet is not None:
            return Described(output.packet)
    raise ConfigError(f"--packet: {packet} has no [output.packet]")


def _platform_of(name: str) -> Any:
    """Return the controller that a profile describes, unless it describes its simulator too."""
    if not (name.endswith(".toml") or name in builtin_profiles()):
        return None
    profile = load_profile(name)
    packets = [output.packet for output in profile.outputs if output.packet is not None]
    return Described(packets[0]) if packets and profile.source.packet is None else None


force_option = click.option("--force", is_flag=True, help="Replace the file that --record names, if it exists.")


record_options = together(
    click.option(
        "--record", "file", metavar="FILE", help="Record the run as MCAP; a number is added to a name in use."
    ),
    click.option(
        "--record-last",
        "last_s",
        type=float,
        callback=positive,
        metavar="S",
        help="Keep only the last seconds, in memory; r and Enter, SIGALRM, a fault and the end write them.",
    ),
    force_option,
)


def recording(file: str | None, last_s: float | None, force: bool) -> Record | None:
    """Return the recording that ``--record`` and related options request; None if none."""
    if file is None and last_s is None:
        return None
    tables = {"file": file or "last.mcap", "force": force, "last_s": last_s}
    try:
        return msgspec.convert(tables, Record, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"--record-last: found {last_s:g}, allowed are 1 to 3600 s") from error


def _address(_ctx: click.Context, _option: click.Parameter, text: str | None) -> "Address | None":
    """Return the address of a page; refuse one that cannot be served before anything starts."""
    if text is None:
        return None
    from motioncue.view.access import parse_address

    return parse_address(text)


view_option = click.option(
    "--view",
    metavar="[HOST:]PORT",
    callback=_address,
    help="Serve a page that shows, operates and tunes the run; to this machine only, unless HOST is given.",
)


@contextmanager
def shown_by(
    view: "Address | None",
    engine: "Watched",
    profile: str | None,
    *,
    plays: bool = False,
    player: "Player | None" = None,
) -> Iterator[str]:
    """Serve the page that ``--view`` requests, and yield its address; empty without one."""
    if view is None:
        yield ""
        return
    from motioncue.view.server import Server

    text = resolved_text(engine.profile) if profile is None else profile_text(profile)
    with Server(engine, view, text=text, plays=plays, player=player) as server:
        click.echo(f"view: {server.url}", err=True)
        yield server.url


def record_source_options(text: str) -> Callable[[Decorated], Decorated]:
    """Return ``--record`` and ``--force`` of a command that records what a simulator says."""
    return together(click.option("--record", "file", metavar="FILE", help=text), force_option)


def source_recorder(file: str, force: bool, ring: RecordRing, system: str, endpoints: Sequence[str]) -> "Recorder":
    """Return a recorder of a source's packages in a ring."""
    from motioncue.recording.recorder import Recorder  # loads MCAP

    source: dict[str, Any] = {"system": system, "endpoint": list(endpoints)}
    if (own := sources.by_profile(system)) is not None:
        source |= {"system": "custom", "packet": msgspec.to_builtins(own.table)}
    settings = {"source": source}
    return Recorder(Record(file=file, force=force), [ring], settings)


def drive_in(files: Sequence[Path], otherwise: str) -> "Drive":
    """Return the drive in the files of a run; refuse with `otherwise` what only another command reads."""
    from motioncue.recording.recording import read  # loads MCAP

    with progress(f"reading {files[0].name}"):
        try:
            return read(*files)
        except PacketError as error:
            if "--system" not in str(error):
                raise
            raise PacketError(f"{files[0]}: {otherwise}") from error


def refuse_source(option: str, target: Path, sources: Sequence[Path]) -> None:
    """Refuse to write to one of the files that are read, also by another of its names."""
    for source in sources:
        with suppress(OSError):  # one of them does not exist
            if target.samefile(source):
                raise ConfigError(
                    f"{option}: found {str(target)!r}, the recording that is read; allowed are other files"
                )


def system_options(system: str, rate: str) -> Callable[[Decorated], Decorated]:
    """Return ``--system`` and ``--rate``: what a file of bytes or a capture does not say itself."""
    return together(
        click.option("--system", metavar="SYSTEM", help=system),
        click.option("--rate", type=float, callback=positive, metavar="HZ", help=rate),
    )


source_options = system_options(
    "System of the packets, or a profile that describes them; found by content if not given.",
    "Frames per second of a file without times.",
)

pick_options = together(
    click.option(
        "--port",
        "ports",
        type=click.IntRange(0, 65535),
        multiple=True,
        help="Of a network capture: the port that was sent to; repeatable.",
    ),
    click.option("--from", "sender", metavar="HOST", help="Of a network capture: the host that sent."),
)
"""Whom to read in a network capture of several simulators."""


def _page(_ctx: click.Context, _option: click.Parameter, path: str | None) -> str | None:
    """Return the file of a report; refuse what cannot be written before anything is measured."""
    if path is not None and Path(path).suffix != ".html":
        raise ConfigError(f"--report: {not_among(Path(path).suffix, ['.html'])}")
    if path is not None and find_spec("matplotlib") is None:
        raise ConfigError(NO_MATPLOTLIB)
    return path


report_option = click.option(
    "--report", "path", metavar="FILE.html", callback=_page, help="Draw it into this file (needs matplotlib)."
)


def write_report(path: str, draw: Callable[[], str], platforms: Iterable[str] = ()) -> None:
    """Write a page for ``--report``, which says by what command, version and when it was made, of which platforms."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # draws into files, without a display
    try:
        page = draw()
    except ImportError as error:
        raise ConfigError(NO_MATPLOTLIB) from error
    command = shlex.join(["motioncue", *click.get_current_context().meta.get("motioncue.words", ())])
    made = f"motioncue {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    named = ", ".join(dict.fromkeys(filter(None, platforms)))
    said = f"{made}{f', platform {named}' if named else ''}: <code>{escape(command)}</code>"
    page = page.replace("</h1>", f"</h1><p>{said}</p>", 1)
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--report: {path!r} cannot be written: {error.strerror or error}") from error


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of stdout.")


def strict(value: Any) -> Any:
    """Return `value` with numbers that JSON does not have (NaN, infinity) replaced by None."""
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(value: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Print one line of strict JSON."""
    click.echo(json.dumps(strict(value), allow_nan=False))


def folded(text: str, indent: int) -> str:
    """Return a line folded to the terminal and indented from its second line on; as is without one."""
    if sys.stdout is None or not sys.stdout.isatty():
        return text  # programs read whole lines
    width = max(indent + 30, shutil.get_terminal_size().columns)
    lines = textwrap.wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def echo(text: str, indent: int = 0) -> None:
    """Print a line, folded, with characters that the terminal lacks escaped."""
    text = folded(text, indent) if indent else text
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal's stderr, and yield the function that moves it: done, total."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _NewestLines(logging.Handler):
    """Keeps the newest lines."""

    def __init__(self, lines: deque[str]) -> None:
        super().__init__()
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def logged(*, live: bool, level: int = logging.INFO) -> Iterator[deque[str]]:
    """Send motioncue's log to stderr and yield its newest lines; logging never waits for a reader."""
    lines: deque[str] = deque(maxlen=200)
    handlers: list[logging.Handler] = [_NewestLines(lines)]
    error = None if sys.stderr is None else NonblockingOutput(sys.stderr)
    later = live and error is not None and error.isatty()
    if error is not None and not later:
        handlers.append(logging.StreamHandler(error))
    log = logging.getLogger("motioncue")
    before = log.level, log.propagate
    log.setLevel(level)
    log.propagate = False
    for handler in handlers:
        handler.setFormatter(_Lines())
        log.addHandler(handler)
    try:
        yield lines
    finally:
        for handler in handlers:
            log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]
        if error is not None:
            for line in lines if later else ():
                error.write(f"{line}\n")
            error.close()


class _Lines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.levelno > logging.INFO:
            time, _, rest = text.partition(" ")
            text = f"{time} {record.levelname.lower()}: {rest}"
        return text
