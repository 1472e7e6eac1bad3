"""``motioncue tell``: operates and retunes a run from another terminal; and the end at which a run hears it."""

import hmac
import logging
import os
import secrets
import socket
import stat
import struct
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any, Protocol

import click
import msgspec

from motioncue.cli.common import json_option, print_json
from motioncue.cli.operator_input import WORDS, Interrupts
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError, MotioncueError, not_among

log = logging.getLogger("motioncue")

LARGEST = 8192  # bytes of a request or an answer
PATIENCE_S = 1.0  # for the whole of a request
ANSWER_S = 30.0  # for an answer, because settings are designed before
PAUSE_S = 0.02  # between two requests
WAITING = 64  # programs that may wait for their turn
PROFILE = "profile="  # begins a change to another profile
LOOK_S = 0.2  # from one look whether the run has ended to the next

PORTS = sys.platform == "win32"
"""Whether runs are reached at ports of this machine, for lack of Unix sockets.

A file says which port, and the word that a request begins with.  It is in the user's own folder, as the socket is
elsewhere: who can read it may tell the run.
"""
SUFFIX = (".sock", ".port")

Change = Annotated[str, msgspec.Meta(max_length=200, pattern="=")]


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """What a run is told."""

    operations: Annotated[list[str], msgspec.Meta(max_length=len(WORDS))] = []
    """Of `WORDS`, in this order."""
    changes: Annotated[list[Change], msgspec.Meta(max_length=40)] = []
    """Settings as KEY=VALUE, changed together or not at all."""
    sure: bool = False
    """Whether a change that could be a slip of the hand is meant."""


class Profiles(Protocol):
    """The profiles among which a run can be switched."""

    used: str
    """Name of the one in use."""

    def switch(self, name: str) -> None:
        """Use another one, with the usual fade; ConfigError if there is none of the name."""

    def next(self) -> None:
        """Use the one behind it."""


class Answer(msgspec.Struct):
    """What a run answers."""

    name: str
    path: str
    state: str
    refused: str = ""
    """Why no setting was changed."""
    platform: list[str] = []
    """What the platform says about itself, if its replies are read."""
    doubts: list[str] = []
    """What would have to be confirmed first; then no setting was changed."""


def folder() -> Path:
    """Return the folder of this user's runs; raise OSError if it is another one's, or open to others."""
    if sys.platform == "win32":  # Windows keeps others out of it
        local = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "motioncue"
        local.mkdir(parents=True, exist_ok=True)
        return local
    user = os.getuid()
    path = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/motioncue-{user}") / "motioncue"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    for each in (path.parent, path):
        found = each.lstat()
        if (
            not stat.S_ISDIR(found.st_mode)
            or found.st_uid != user
            or found.st_mode & (0o077 if each == path else 0o022)
        ):
            raise PermissionError(f"{each} is not this user's alone")
    return path


def known_runs() -> list[Path]:
    """Return the files by which runs of this user are reached, also of runs that were killed."""
    return sorted(folder().glob(f"*{SUFFIX[PORTS]}"))


class Hearing:
    """Hears what a run is told by programs of the same user, while entered.

    Operations go the way of keys and signals, settings through `Engine.retune`.  One request at a time, each short:
    nothing here can delay a packet, a key or the end.
    """

    def __init__(self, engine: Engine, interrupts: Interrupts, profiles: Profiles | None = None) -> None:
        self._engine, self._interrupts, self._profiles = engine, interrupts, profiles
        self._over = threading.Event()
        self._file = ExitStack()  # by which it is found
        self._word = b""
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Hearing":
        """Begin to hear."""
        try:
            self._listen()
        except OSError as error:
            self._hide()
            log.info("`motioncue tell` cannot reach this run: %s", error)
            return self
        self._thread = threading.Thread(target=self._run, name="motioncue hearing", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Hear nothing any more."""
        self._over.set()
        self._hide()
        if self._thread is not None:
            self._thread.join(PATIENCE_S + LOOK_S)
            self._socket.close()

    def _hide(self) -> None:
        with suppress(OSError):
            self._file.close()

    def _listen(self) -> None:
        """Open the socket, then the file by which it is found."""
        path = folder() / f"{os.getpid()}{SUFFIX[PORTS]}"
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_INET if PORTS else socket.AF_UNIX)
        self._socket.settimeout(LOOK_S)
        self._file.callback(path.unlink, missing_ok=True)
        if not PORTS:
            # Its name comes last: whoever was refused there would take the run for one that was killed, and remove it.
            hidden = path.with_suffix(".new")
            hidden.unlink(missing_ok=True)
            self._file.callback(hidden.unlink, missing_ok=True)
            self._socket.bind(str(hidden))
            self._socket.listen(WAITING)
            hidden.rename(path)
            return
        if sys.platform == "win32":  # nobody else at the same port
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(WAITING)
        self._word = secrets.token_hex(16).encode() + b" "
        # Open until the end: on Windows nobody can remove it before, which shows that the run lives.
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)
        self._file.enter_context(file)
        file.write(b"%d %s" % (self._socket.getsockname()[1], self._word))

    def _run(self) -> None:
        while not self._over.is_set():
            with suppress(OSError):  # nobody, or one that has gone
                connection, _ = self._socket.accept()
                with connection:
                    if _same_user(connection):
                        message, known = received(connection, PATIENCE_S), len(self._word)
                        if hmac.compare_digest(message[:known], self._word):
                            connection.sendall(msgspec.json.encode(self._told(message[known:])) + b"\n")
                self._over.wait(PAUSE_S)

    def _told(self, message: bytes) -> Answer:
        """Do what a message asks for, operations first; return the answer."""
        from motioncue.view.model import path_of, replied

        profile, refused, doubtful = self._engine.profile, "", list[str]()
        try:
            request = msgspec.json.decode(message, type=Request)
            for word in request.operations:
                if word not in WORDS:
                    raise ConfigError(not_among(word, WORDS))
                self._interrupts.requests.append(word)
            if request.changes:
                doubtful = self._changed(request)
        except msgspec.MsgspecError as error:
            refused = f"no request: {error}"
        except MotioncueError as error:
            refused = str(error)
        stats = self._engine.stats()
        says = replied(stats, int(self._engine.newest()["operation"][0]))
        return Answer(profile.name, path_of(profile), stats["state"].lower(), refused, says, doubtful)

    def _changed(self, request: Request) -> list[str]:
        """Change settings, or return what of it is doubtful."""
        from motioncue.engine.assembly import load_profile
        from motioncue.engine.pipeline import changed
        from motioncue.view.editor import doubts

        before = self._engine.requested
        names = [change.removeprefix(PROFILE) for change in request.changes if change.startswith(PROFILE)]
        if names and len(request.changes) > 1:
            raise ConfigError(f"tell: found {PROFILE}{names[0]} and settings, allowed is one of them at a time")
        if names and self._profiles is not None:  # who named the folder meant all of its profiles
            self._profiles.switch(Path(names[0]).name.removesuffix(".toml"))
            return []
        after = load_profile(Path(names[0])) if names else changed(before, request.changes)
        found = [] if request.sure else doubts(before, after)
        if not found:
            self._engine.retune(after if names else request.changes)
        return found


def _same_user(connection: socket.socket) -> bool:
    """Say whether the other end is a program of this user; elsewhere than on Linux the folder keeps others out."""
    if sys.platform != "linux" or PORTS:
        return True
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.getuid())


def received(connection: socket.socket, patience_s: float) -> bytes:
    """Return the line that comes; raise OSError if none does in time, or if it is too long."""
    data, until = b"", time.monotonic() + patience_s
    while not data.endswith(b"\n"):
        connection.settimeout(max(0.001, until - time.monotonic()))
        piece = connection.recv(LARGEST)
        data += piece
        if not piece or len(data) > LARGEST or time.monotonic() > until:
            raise OSError("no line in time")
    return data


def reach(path: Path, connection: socket.socket) -> bytes:
    """Connect a socket to the run that is reached by a file; return what a request begins with."""
    connection.settimeout(PATIENCE_S)
    until = time.monotonic() + PATIENCE_S
    while not PORTS:
        try:
            connection.connect(str(path))
            return b""
        except BlockingIOError:  # as many tell it something at this moment as may wait
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE_S)
    if sys.platform == "win32":
        with suppress(PermissionError):  # a run that lives holds it
            path.unlink()
    port, _, word = path.read_bytes().strip().partition(b" ")
    connection.connect(("127.0.0.1", int(port)))  # a ValueError: it begins, and has written nothing yet
    return word + b" "


def told(request: Request, among: list[Path]) -> tuple[list[tuple[Path, Answer]], list[str]]:
    """Tell runs something; return the answers of those that live, and what there is to say of those that gave none.

    All are told before any is waited for, so that one that hangs keeps nothing from the others.  What killed runs have
    left is removed.
    """
    line, answers, silent = msgspec.json.encode(request) + b"\n", list[tuple[Path, Answer]](), list[str]()
    with ExitStack() as opened:
        asked: list[tuple[Path, socket.socket]] = []
        for path in among:
            connection = opened.enter_context(socket.socket(socket.AF_INET if PORTS else socket.AF_UNIX))
            try:
                connection.sendall(reach(path, connection) + line)
                asked.append((path, connection))
            except ConnectionRefusedError:  # of a run that was killed
                with suppress(PermissionError):
                    path.unlink(missing_ok=True)
            except (FileNotFoundError, ValueError):  # it has ended since, or begins
                continue
            except OSError as error:
                silent.append(f"run {path.stem}: cannot be reached ({error})")
        until = time.monotonic() + ANSWER_S
        for path, connection in asked:
            try:
                answer = received(connection, max(PAUSE_S, until - time.monotonic()))  # what is there already is read
                answers.append((path, msgspec.json.decode(answer, type=Answer)))
            except (OSError, msgspec.MsgspecError) as error:
                silent.append(f"run {path.stem}: gave no answer ({error})")
    return answers, silent


@click.command()
@click.argument("words", metavar="[WHAT]...", nargs=-1)
@click.option("--run", "which", metavar="NAME|NUMBER", help="Which one, by profile or process, if several run.")
@click.option("--sure", is_flag=True, help="Also what could be a slip: another sign, twice the value, bounds off.")
@json_option
def command(words: tuple[str, ...], which: str | None, sure: bool, as_json: bool) -> None:
    """Operate and retune a running `motioncue run` or `demo` of the same user.

    WHAT is engage, hold, park, keep (write --record-last), quit (park and end), next (the next profile of its folder),
    profile=NAME (of that folder, else built in or a file), or KEY=VALUE, a setting of its profile; several settings
    come into force together.  Without WHAT, what runs is listed; park without --run parks all.

    \b
    Example:  motioncue tell park
              motioncue tell profile=rally
              motioncue tell cueing.surge.gain=0.4
    """
    operations = [word for word in words if "=" not in word]
    for word in operations:
        if word not in WORDS:
            raise ConfigError(f"tell: {not_among(word, [*WORDS, 'KEY=VALUE'])}")
    try:
        known = known_runs()
    except OSError as error:
        raise ConfigError(f"tell: {error}") from error
    changes = [_whole(word) for word in words if "=" in word]
    everyone = set(words) == {"park"} and which is None  # whoever is in doubt parks
    found, silent = told(Request(operations) if everyone else Request(), known)
    chosen = [(path, each) for path, each in found if which in (None, path.stem, each.name)]
    listed = ", ".join(f"{path.stem} ({each.path})" for path, each in found) or "none"
    if which is not None:
        silent = [each for each in silent if not chosen]
    elif words and not everyone and silent:  # which one was meant?
        raise ConfigError(f"tell: {'; '.join(silent)}; running: {listed}")
    if words and not silent and len(chosen) != 1 and not (everyone and chosen):
        raise ConfigError(f"tell: {'several run' if chosen else 'no such run'}; running: {listed}")
    if words and not everyone:
        meant = [path for path, _ in chosen]
        chosen, silent = told(Request(operations, changes, sure), meant)
        if not chosen and not silent:
            silent = [f"run {path.stem}: has ended meanwhile" for path in meant]
    answers = [{"process": int(path.stem), **msgspec.to_builtins(each)} for path, each in chosen]
    if not as_json:
        _print(answers, words, silent)
    else:
        print_json({"runs": answers})
    if silent:
        raise ConfigError(f"tell: {'; '.join(silent)}")
    for answer in answers:
        if answer["refused"]:
            raise ConfigError(answer["refused"])
        if answer["doubts"]:
            raise ConfigError(f"{'; '.join(answer['doubts'])}: --sure if that is meant; nothing is changed")


def _whole(change: str) -> str:
    """Return a change with the whole path of its profile, if that is a file here: the run has another folder."""
    file = Path(change.removeprefix(PROFILE))
    return f"{PROFILE}{file.resolve()}" if change.startswith(PROFILE) and file.is_file() else change


def _print(answers: list[dict[str, Any]], words: tuple[str, ...], silent: list[str]) -> None:
    for each in answers:
        said = "" if each["refused"] or each["doubts"] else "".join(f"; told: {word}" for word in words)
        platform = f"; platform: {', '.join(each['platform'])}" if each["platform"] else ""
        click.echo(f"{each['process']}  {each['path']}  {each['state']}{platform}{said}")
    if not answers and not silent:
        click.echo("nothing runs")
