"""Shared memory: what this program writes, and a running simulator's, found by name, or under Wine by size and content.

Wine's server keeps every mapping open as a file without a name, which its user may open through ``/proc``: no program
is needed beside the simulator.  Its names are known to Windows programs only, so a mapping is taken for the simulator's
if its size fits, its content fits, and its counter moves.
"""

import contextlib
import errno
import glob
import logging
import mmap
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from types import TracebackType

from motioncue.errors import EndpointError
from motioncue.transports.memory import Memory, map_anew
from motioncue.wire.description import Gather, PlayerTable

log = logging.getLogger("motioncue")

SHARED = "/dev/shm"
PAGE = 4096  # [bytes] Wine rounds sizes up to it
LOOKS = 3  # successive looks at which a mapping has to be plausible and its counter to have moved
FILES = ("memfd:wine-mapping", "tmpmap-", "anonmap.")  # how Wine has named them so far


class Written:
    """Shared memory that this program writes, by its name: a mapping on Windows, elsewhere a file in /dev/shm.

    A file that is there already stays when this one is closed, because another program may have mapped it into Wine.
    `memory` are its bytes, zeros at first.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._made = name, size, False
        self._fileno = -1
        if sys.platform == "win32":
            self.memory = mmap.mmap(-1, size, tagname=f"Local\\{name}")
            self.memory[:size] = bytes(size)
        else:
            self._fileno = self._open(bytes(size))
            self.memory = mmap.mmap(self._fileno, max(size, os.fstat(self._fileno).st_size))

    def _open(self, data: bytes) -> int:
        """Return the descriptor of the file, made if it is not there, which begins with `data`."""
        where = f"{SHARED}/{self._name}"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            there = os.path.lexists(where)
            file = os.open(where, flags, 0o600)
            try:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                    raise EndpointError(f"memory://{self._name}: {where} is not a file of this user")
                # Not through the mapping: where memory is short, that would end the process instead of failing.
                if os.pwrite(file, data, 0) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except BaseException:
                os.close(file)
                if not there:
                    os.unlink(where)
                raise
        except OSError as error:
            if isinstance(error, EndpointError):
                raise
            raise EndpointError(f"memory://{self._name}: {where} cannot be written ({error.strerror})") from error
        self._made = not there
        return file

    def fileno(self) -> int:
        """Return the descriptor of the file; -1 on Windows, where there is none."""
        return self._fileno

    def renew(self) -> bool:
        """If the file was removed or replaced, take the one of its name, made if there is none; return whether it was.

        It begins with what was written last.  Call it from one thread; another one may write meanwhile.
        """
        try:
            if self._fileno < 0 or os.fstat(self._fileno).st_nlink > 0:
                return False
            file = self._open(os.pread(self._fileno, self._size, 0).ljust(self._size, b"\0"))
        except (OSError, EndpointError):  # tried again at the next call
            return False
        try:
            if not map_anew(self.memory, file):
                return False
            os.dup2(file, self._fileno, inheritable=False)
            return True
        finally:
            os.close(file)

    def __enter__(self) -> "Written":
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Remove it, unless it was there before; what is mapped stays so until nobody needs it."""
        if self._fileno < 0:
            return
        where = f"{SHARED}/{self._name}"
        with contextlib.suppress(OSError):
            if self._made and os.path.samestat(os.stat(where), os.fstat(self._fileno)):  # not what replaced it
                os.unlink(where)
        os.close(self._fileno)
        self._fileno = -1


class Finder:
    """Looks for a simulator's mapping, once a call."""

    def __init__(self, name: str, gather: Gather) -> None:
        self._name, self._gather = name, gather
        self._seen: dict[object, tuple[Memory, int | None, int]] = {}  # by file: memory, its counter, looks
        self._warned = False
        self._told: set[str] = set()  # what has been said of the memory beside it

    def __call__(self) -> Memory | None:
        """Return the mapping; None if there is none yet, or if several are as good."""
        live = self.live()
        if len(live) > 1 and not self._warned:
            log.warning(
                "memory://%s: %d simulators write one, %s; none is read until one is left",
                self._name,
                len(live),
                ", ".join(memory.where for memory in live),
            )
        self._warned = len(live) > 1
        if len(live) != 1:
            return None
        self._seen.clear()
        return live[0]

    def live(self) -> list[Memory]:
        """Look once; return the mappings that have been plausible and moving for as many looks as it takes."""
        seen, self._seen = self._seen, {}
        for key, where in self._places():
            memory, counter, looks = seen.get(key, (None, None, 0))
            if memory is not None and not memory.present():  # it, or what is beside it, has been replaced
                memory, counter, looks = None, None, 0
            beside = self._beside(where) if memory is None else None
            if beside is not None:
                with contextlib.suppress(OSError):
                    memory = Memory(where, self._gather, beside)
            if memory is None:
                continue
            now, packet = memory.count(), memory.take()
            if now is None:  # what is listed there has changed, or it has ended: looked up anew
                continue
            moved = counter is not None and now != counter and packet is not None and self._gather.fits(packet)
            # A look between two states, or at one that is being written, proves nothing either way.
            looks = looks + 1 if moved else looks if now == counter or packet is None else 0
            self._seen[key] = memory, now, looks
        return [memory for memory, _, looks in self._seen.values() if looks >= LOOKS]

    def _places(self) -> Iterator[tuple[object, str]]:
        """Yield each candidate once: what tells it from the others, and where it is."""
        if sys.platform == "win32":
            yield self._name, f"Local\\{self._name}"
            return
        paths = [f"{SHARED}/{self._name}", *glob.glob(f"{SHARED}/*/{glob.escape(self._name)}")]
        least = max(part.offset + part.size * self._gather.count(part) for part in self._gather.windows)
        found: dict[object, str] = {}
        for where, state in _files_of(paths):
            if state.st_size >= least:
                found.setdefault((state.st_dev, state.st_ino), where)
        for where, state in _files_of(_wine_files()):
            if state.st_size in _sizes(self._gather.size):
                found.setdefault((state.st_dev, state.st_ino), where)
        yield from found.items()

    def _beside(self, where: str) -> str | None:
        """Return where the simulator says which vehicle is the player's; empty if it need not, None if it does not."""
        player = self._gather.player
        if player is None:
            return ""
        if sys.platform == "win32":
            return f"Local\\{player.name}"
        if where.startswith("/proc/"):
            pages = {
                (state.st_dev, state.st_ino): path
                for path, state in _files_of(_wine_files(where.split("/")[2]))
                if state.st_size in _sizes(player.size)
            }
            paths = [path for path in pages.values() if _says_player(path, player)]
            if not paths and pages:
                none = f"the memory {player.name} beside it names no vehicle as the player's, as in menus"
                self._say(none, "it does")
                return None
        else:
            # One that is being made is empty at first.
            paths = [
                path
                for path, state in _files_of([f"{os.path.dirname(where)}/{player.name}"])
                if state.st_size >= player.size
            ]
        if len(paths) > 1:
            several = f"{len(paths)} memories beside it say which vehicle is the player's, {', '.join(paths)}"
            self._say(several, "one is left")
        elif not paths:
            self._say(f"no memory {player.name} beside it says which vehicle is the player's", "one does")
        return paths[0] if len(paths) == 1 else None

    def _say(self, what: str, until: str) -> None:
        """Say once why the simulator is not read, and until when."""
        if what not in self._told:
            log.warning("memory://%s: %s; it is not read until %s", self._name, what, until)
        self._told.add(what)


def _files_of(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield those of some files that are there, with their state."""
    for path in paths:
        with contextlib.suppress(OSError):
            yield path, os.stat(path)


def _sizes(size: int) -> set[int]:
    """Return which sizes a mapping may have, of so many bytes."""
    return {size, -(-size // PAGE) * PAGE}


def _says_player(path: str, player: PlayerTable) -> bool:
    """Say whether the content of a mapping fits: whole, with some vehicles, of which one is the player's."""
    try:
        with open(path, "rb", buffering=0, opener=_opener) as file:
            data = file.read(player.size)
    except OSError:
        return False
    if len(data) < player.size:
        return False
    begin, end = (data[at : at + 4] for at in (player.begin, player.end))
    blocks = player.there
    count = int.from_bytes(data[blocks.count : blocks.count + 4], "little")
    marks = [data[blocks.first + blocks.stride * n + player.mark] for n in range(count)] if count <= blocks.most else []
    return begin == end and marks.count(1) == 1 and marks.count(0) == count - 1


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _wine_files(server: str = "") -> Iterator[str]:
    """Yield the files of mappings that Wine's servers of this user have open, or one of them by its process."""
    for number in [server] if server else filter(str.isdigit, os.listdir("/proc")) if sys.platform == "linux" else ():
        folder = f"/proc/{number}"
        try:
            if os.stat(folder).st_uid != os.geteuid():
                continue
            with open(f"{folder}/comm", encoding="utf-8", errors="replace") as file:
                if not file.read().startswith("wineserver"):
                    continue
            descriptors = os.listdir(f"{folder}/fd")
        except OSError:  # it has just ended, or belongs to someone else
            continue
        for descriptor in descriptors:
            where = f"{folder}/fd/{descriptor}"
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink(where)).startswith(FILES) or "memfd:wine-mapping" in os.readlink(where):
                    yield where
