"""Recordings: the bytes that a simulator wrote, as they came."""

from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import protocols
from motioncue.errors import PacketError
from motioncue.kernels.bridge import Bridge
from motioncue.motion import MOTION_DTYPE
from motioncue.recording.capture import datagrams, is_capture
from motioncue.runtime.feed import arriving, feed

__all__ = ["Recording", "at_ticks", "read_motion", "read_packages", "read_recording", "sample_recording"]


def quoted(path: str | Path) -> str:
    """Return a path in quotes for a message: what cannot be printed is escaped, a backslash stays one."""
    return repr(str(path)).replace("\\\\", "\\")


LARGEST = 512 << 20  # bytes of a recording: nine hours of frames


def sample_recording() -> Path:
    """Return the path of the recording that comes with the package.

    A real drive as City Car Driving bytes: a 59.9 s motorway drive at 60 Hz, made from the
    example segment of comma.ai's comma2k19 data set (MIT licence).
    """
    return Path(str(resources.files("motioncue.data"))) / "city_car_driving_60hz.bin"


def read_bytes(path: str | Path, name: str) -> bytes:
    """Return what is in a file; PacketError, which begins with `name`, if it cannot be read or has no end."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise PacketError(f"{name}: {error.strerror}") from error
    if len(data) > LARGEST:
        raise PacketError(f"{name}: found more than {LARGEST >> 20} MiB, allowed is up to that")
    return data


class Recording(NamedTuple):
    """What a simulator sent."""

    packages: list[bytes]
    times: list[float] | None  # when each came, since the first [s]; None if the file does not say
    others: int  # datagrams of a capture that are not the system's


def read_recording(path: str | Path, system: str) -> Recording:
    """Return a recording: the packages of a simulator one after the other, or a network capture.

    Parameters
    ----------
    path : str or Path
        The file; pcap and pcapng captures are known by their first bytes.
    system : str
        Whose bytes they are.

    Raises
    ------
    PacketError
        If the file cannot be read, is empty or is cut short: says where.
    ConfigError
        If there is no such system.
    """
    return parse_recording(read_bytes(path, f"recording {quoted(path)}"), f"recording {quoted(path)}", system)


def parse_recording(data: bytes, name: str, system: str) -> Recording:
    """Return the recording in `data`, as `read_recording` does; errors begin with `name`."""
    module = protocols.system(system)
    times, others = None, 0
    try:
        if is_capture(data):
            captured = datagrams(data)
            own = [datagram for datagram in captured if _belongs(module, datagram.payload)]
            packages = [datagram.payload for datagram in own]
            times = [datagram.time - own[0].time for datagram in own]
            others = len(captured) - len(own)
        else:
            packages = module.framed(data) if data else []
    except PacketError as error:
        raise PacketError(f"{name}: {error}") from error
    if not packages:
        found = f"{others} datagrams of other kinds" if others else "no bytes"
        raise PacketError(f"{name}: found {found}, allowed is at least one package of {system}")
    return Recording(packages, times, others)


def _belongs(module: ModuleType, data: bytes) -> bool:
    try:
        module.identify(data)
    except PacketError:
        return False
    return True


def read_packages(path: str | Path, system: str = "city-car-driving") -> list[bytes]:
    """Return the packages of a recording, as `read_recording` does.

    Parameters
    ----------
    path : str or Path
        The bytes that the simulator wrote, or a network capture.
    system : str
        Whose bytes they are.

    Raises
    ------
    PacketError
        If the file cannot be read, is empty or is cut short: says where.
    ConfigError
        If there is no such system.
    """
    return read_recording(path, system).packages


def read_motion(
    path: str | Path, system: str = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> npt.NDArray[np.void]:
    """Return the motion in a recording, one row a frame.

    Parameters
    ----------
    path : str or Path
        The bytes that the simulator wrote, or a network capture.
    system : str
        Whose bytes they are.
    rate_hz : float, optional
        Frames a second [Hz], for packages that say no time in a file that says none either.
    **options
        As ``source.options`` of a profile.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (n,)
        `time` counts nanoseconds from the first frame: by the simulator's own clock over all sessions, or as captured
        if it has none.

    Raises
    ------
    PacketError
        If the file cannot be read or a package is refused: names the first one and the reason.
    """
    return read_frames(path, system, rate_hz=rate_hz, **options)[0]


def read_frames(
    path: str | Path, system: str = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> tuple[npt.NDArray[np.void], list[bytes], npt.NDArray[np.intp]]:
    """Return what `read_motion` does, all packages, and the place of each frame among them."""
    source = protocols.source(system)
    session = source.session(msgspec.convert(options, source.Options))
    packages, arrivals, _ = read_recording(path, system)
    rows: list[npt.NDArray[np.void]] = []
    places: list[int] = []
    times: list[float] = []  # [s] of each frame
    began = 0.0  # [s], by the clock of the whole recording
    others = 0  # packages that say nothing of the clock
    for place, is_frame in enumerate(feed(arriving(packages, arrivals, rate_hz, session), session)):
        if not is_frame and session.rejected:
            raise PacketError(f"recording {quoted(path)}: package {place} refused: {', '.join(session.rejected)}")
        if not is_frame:
            if session.others == others:  # an announcement: the simulator's clock begins again
                began = times[-1] if times else 0.0
            others = session.others
            continue
        row = session.frame()
        rows.append(row)
        places.append(place)
        times.append(began + float(row["frame_time"][0]))
    if len(times) > 1 and not any(times):
        raise PacketError(
            f"recording {quoted(path)}: neither {system} nor the file says when frames came; give their rate"
        )
    motion = np.concatenate(rows) if rows else np.zeros(0, MOTION_DTYPE)
    if times:
        motion["time"] = np.round((np.array(times) - times[0]) * 1e9)
    return motion, packages, np.array(places, dtype=np.intp)


def at_ticks(motion: npt.NDArray[np.void], rate_hz: float = 333.33, bridge: str = "hold") -> npt.NDArray[np.void]:
    """Return the motion of each tick when frames arrive at their `time`: the newest, or bridged.

    Parameters
    ----------
    motion : ndarray of MOTION_DTYPE, shape (n,)
        Frames in order of time.
    rate_hz : float
        Ticks a second [Hz]; the first tick is at the first frame.
    bridge : {"hold", "linear", "predict"}
        As ``source.bridge`` of a profile.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (m,)
        Rows keep the time of their frame.

    Raises
    ------
    ConfigError
        If there is no such bridge.
    ValueError
        If there is no frame, times go back, or the rate is not positive.
    """
    time = motion["time"]
    if len(motion) == 0 or (np.diff(time) < 0).any() or not 0 < rate_hz < np.inf:
        raise ValueError(f"at_ticks: allowed are frames in order of time and a rate above 0 Hz, found {rate_hz} Hz")
    period = round(1e9 / rate_hz)
    ticks = np.arange(time[0], time[-1] + 1, period)
    return Bridge(bridge).process(np.ascontiguousarray(motion), ticks)
