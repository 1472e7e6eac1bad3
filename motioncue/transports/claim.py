"""Claims: on the whole machine, one program at a time drives the platform at an address.

A claim is an object of the system that goes with its process, however that ends, so nothing is left behind.
"""

import contextlib
import errno
import gc
import ipaddress
import logging
import os
import socket
import stat
import struct
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeAlias

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import Endpoint, parse_endpoint, resolved

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

log = logging.getLogger("motioncue")

PATIENCE_S = 0.3  # until a claim is free that another program is just giving up
FOLDER = "/tmp"  # of all users, unlike the one in TMPDIR
SHOWN = 120  # characters of a command line

Release: TypeAlias = Callable[[], object]
Way: TypeAlias = tuple[Callable[[str], Release | None], Callable[[str], str]]
"""Takes a name's claim, None if another program has it; and says which one that is.  OSError: not possible here."""

_claims: "weakref.WeakSet[Claim]" = weakref.WeakSet()


def place_of(endpoint: Endpoint, address: tuple[str, int, int] | None = None) -> str:
    """Return the name of the place that packets are sent to, the same for all ways to write it.

    All addresses of this machine are one place, because a platform's program usually listens at all of them.
    """
    if address is None:
        return f"memory {endpoint.path}" if endpoint.scheme == "memory" else _line(endpoint.path)
    host, port, scope = address
    ip = ipaddress.ip_address(host.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback or ip.is_unspecified or _here(host, scope):
        return f"udp here {port}"
    return f"udp {ip}{f'%{scope}' if scope else ''} {port}"


def _here(host: str, scope: int) -> bool:
    """Say whether an address is this machine's: what is sent there comes from there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((host, 9, 0, scope) if ":" in host else (host, 9))  # sends nothing
        return bool(probe.getsockname()[0] == host)
    return False


def _line(path: str) -> str:
    """Return the name of a serial line: its device's number, to which links and several nodes lead."""
    if sys.platform == "win32":
        return f"serial {path.upper()}".replace("\\", "/")
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISCHR(found.st_mode):
            return f"serial {found.st_rdev}"
    return f"serial {os.path.realpath(path)[-60:]}"  # no line: it will be refused when it is opened


class Claim:
    """The right to send to one place, until it is released or this object or its process ends.

    `holder` is the program that has the claim already; empty if this object has it, or if the system grants none.
    """

    def __init__(self, place: str) -> None:
        self.holder = ""
        self._release: Release | None = None
        name, until = f"motioncue {place}", time.monotonic() + PATIENCE_S
        for take, whose in WAYS:
            with contextlib.suppress(OSError):  # such as a sandbox that forbids the first way
                while (release := take(name)) is None and time.monotonic() < until:
                    gc.collect()  # whoever has it may be garbage of this program, in a circle of references
                    time.sleep(0.02)
                self._release = release
                self.holder = "" if release is not None else whose(name)
                break
        _claims.add(self)

    def release(self) -> None:
        """Give the claim up."""
        release, self._release = self._release, None
        if release is not None:
            release()

    def __del__(self) -> None:
        """Give the claim up."""
        self.release()


def _forked() -> None:
    """Leave the claims to the parent: a child must not keep them when the parent has been killed."""
    for claim in list(_claims):
        claim.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _program(pid: int, uid: int | None = None) -> str:
    """Return a process in words: its number, its user if that is another one, and its command where it is known."""
    if pid == os.getpid():
        return "another engine or relay of this program"
    if pid <= 0:
        return "a program in another container"
    words = f"process {pid}"
    if sys.platform != "win32" and uid is not None and uid != os.getuid():
        import pwd

        with contextlib.suppress(KeyError):  # a user without a name
            words += f" of user {pwd.getpwuid(uid).pw_name}"
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        command = file.read(4096).rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
        shown = "".join(letter if letter.isprintable() else "?" for letter in command)  # no escapes to the terminal
        words += f" ({shown[:SHOWN]}{'…' if shown[SHOWN:] else ''})" if shown else ""
    return words


# Linux: the abstract name of a Unix socket.  It belongs to no folder and no user, but like a port to the network
# namespace; and the system knows whose it is.


def _bind(name: str) -> Release | None:
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(f"\0{name}")
        taken.listen(socket.SOMAXCONN)  # nobody accepts: who connects only asks whose it is
    except OSError as error:
        taken.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return taken.close


def _bound(name: str) -> str:
    if sys.platform == "linux":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking, contextlib.suppress(OSError):
            asking.setblocking(False)  # after thousands of questions nobody can ask any more
            asking.connect(f"\0{name}")
            pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return _program(pid, uid)
    return "another program"


# Other systems like it: a lock on a file that every user may lock.  The file stays, the lock goes with its process.


def _path(name: str) -> str:
    return os.path.join(FOLDER, f"{name.replace(' ', '-').replace('/', '_')}.lock")


def _lock(name: str) -> Release | None:
    if sys.platform == "win32":
        return None
    import fcntl

    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(_path(name), flags)  # in a sticky folder, systems refuse O_CREAT for another user's file
    except FileNotFoundError:
        file = os.open(_path(name), flags | os.O_CREAT | os.O_EXCL, 0o666)
        os.fchmod(file, 0o666)  # whatever the umask
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
    except OSError as error:
        os.close(file)
        if not isinstance(error, BlockingIOError):
            raise
        return None
    return lambda: os.close(file)


def _locked(name: str) -> str:
    with contextlib.suppress(OSError, ValueError), open(_path(name), "rb") as file:
        return _program(int(file.read(20)))
    return "another program"


# Windows: a semaphore, which any user may create for all sessions; its count is the number of the process.

ALREADY_EXISTS, ACCESS_DENIED, INVALID_HANDLE = 183, 5, 6
FOR_EVERYONE = "D:(A;;GA;;;WD)"


def _create(name: str) -> Release | None:
    if sys.platform == "win32":
        handle, error = _semaphore(name)
        if handle and error != ALREADY_EXISTS:
            return lambda: _kernel().CloseHandle(handle)
        if handle:
            _kernel().CloseHandle(handle)
        elif error not in (ACCESS_DENIED, INVALID_HANDLE):  # another user's, or an object of another kind
            raise OSError(error, "CreateSemaphoreW")
    return None


def _created(name: str) -> str:
    if sys.platform == "win32":
        handle, _ = _semaphore(name)
        counts = (ctypes.c_long * 2)()
        if handle:
            query = ctypes.windll.ntdll.NtQuerySemaphore
            asked = query(wintypes.HANDLE(handle), 0, ctypes.byref(counts), ctypes.sizeof(counts), None)
            _kernel().CloseHandle(handle)
            if asked == 0:
                return _program(counts[0])
    return "another program"


if sys.platform == "win32":

    class _Attributes(ctypes.Structure):
        _fields_ = (("size", wintypes.DWORD), ("descriptor", ctypes.c_void_p), ("inherit", wintypes.BOOL))

    @cache
    def _kernel() -> Any:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateSemaphoreW.restype = wintypes.HANDLE
        kernel.CreateSemaphoreW.argtypes = (ctypes.c_void_p, ctypes.c_long, ctypes.c_long, wintypes.LPCWSTR)
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        kernel.LocalFree.argtypes = (ctypes.c_void_p,)
        return kernel

    def _semaphore(name: str) -> tuple[int | None, int]:
        """Create a semaphore or open it; return its handle, if it could be had, and the error."""
        descriptor = ctypes.c_void_p()
        ctypes.windll.advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW(
            FOR_EVERYONE, 1, ctypes.byref(descriptor), None
        )
        attributes = _Attributes(ctypes.sizeof(_Attributes), descriptor, False)
        ctypes.set_last_error(0)
        handle = _kernel().CreateSemaphoreW(ctypes.byref(attributes), os.getpid(), 0x7FFFFFFF, f"Global\\{name}")
        error = ctypes.get_last_error()
        _kernel().LocalFree(descriptor)
        return handle, error


WAYS: tuple[Way, ...]
"""How a claim is taken on this system, the best way first."""

if sys.platform == "win32":
    WAYS = ((_create, _created),)
elif sys.platform == "linux":
    WAYS = ((_bind, _bound), (_lock, _locked))
else:
    WAYS = ((_lock, _locked),)


class Claims:
    """The claims of one engine or relay, until they are closed or this object or its process ends.

    Each of `streams` is the key of an output, its URL, and whether it is shared with other programs.
    """

    def __init__(self, streams: Iterable[tuple[str, str, bool]]) -> None:
        self._claims: dict[str, tuple[str, Claim]] = {}  # by their place, with the output's key
        try:
            for stream in streams:
                self._add(*stream)
        except BaseException:
            self.close()
            raise

    def _add(self, key: str, url: str, shared: bool) -> None:
        """Claim the place of one stream of packets."""
        endpoint = parse_endpoint(url)
        try:
            place = place_of(endpoint, resolved(endpoint) if endpoint.scheme == "udp" else None)
        except (OSError, UnicodeError):  # nothing can be sent there: who opens it says why
            return
        if place in self._claims:
            if not shared:
                raise EndpointError(
                    f"{key}: found {url!r}, where {self._claims[place][0]} is sent already (all addresses of this "
                    "machine count as one); allowed is a port of its own for each stream, or output.shared = true"
                )
            return
        claim = Claim(place)
        self._claims[place] = key, claim
        if not claim.holder:
            return
        if not shared:
            wish = ", or set output.shared = true if both are meant to send there" if endpoint.scheme == "udp" else ""
            raise EndpointError(f"{key}: {claim.holder} drives the platform at {url} already; end it first{wish}")
        log.warning("%s: %s drives the platform at %s too (output.shared)", key, claim.holder, url)

    def close(self) -> None:
        """Give all claims up."""
        for _, claim in self._claims.values():
            claim.release()
