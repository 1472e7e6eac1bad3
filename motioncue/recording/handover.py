"""A recording for strangers: the last minutes, without what says who made it and where."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from motioncue.recording.drive import Drive
from motioncue.recording.recorder import OPENING_BYTES

HOST = re.compile(r"\b(udp|tcp)://(\[[^\]]*\]|[^:/\s\"']*)")
HERE = re.compile(r"(127\.[\d.]+|0\.0\.0\.0|localhost|\[::1?\]|)")
ELSEWHERE = "192.0.2.1"  # an address for documents (RFC 5737)
PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\\/\s\"'<>|:]+){2,}")
URL = re.compile(r"[a-z]+://\S*")
HOME = re.compile(r"([\\/](?:home|Users)[\\/])[^\\/]+")


def without_names(value: Any) -> Any:
    """Return a value of a profile without hosts of a network, folders, or what a free text may say."""
    if isinstance(value, Mapping):
        return {str(key): "" if key == "description" else without_names(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_names(each) for each in value]
    if not isinstance(value, str):
        return value
    if URL.match(value):
        value = HOST.sub(lambda at: at[0] if HERE.fullmatch(at[2]) else f"{at[1]}://{ELSEWHERE}", value)
        return HOME.sub(r"\1somebody", value)
    return PATH.sub(lambda found: PurePath(found[0].replace("\\", "/")).name, value)


def for_strangers(drive: Drive, minutes: float) -> Drive:
    """Return the last minutes of a drive without hosts, folders and descriptions."""
    about = {key: text for key, text in drive.about.items() if key in ("version", "epoch_ns", "python", "opening")}
    times = [int(rows[-1]) for rows in (drive.ticks["deadline"], drive.motion["time"]) if len(rows)]
    start_s = 1e-9 * (max(times, default=0) - drive.zero) - 60.0 * minutes
    part = drive.between(start_s) if start_s > 0.0 else drive
    if start_s > 0.0:
        start = drive.zero + 1e9 * start_s
        session = max((row.time for row in drive.events if row.what == "connected" and row.time < start), default=None)
        first = next((row for row in drive.packages if session is not None and row.time >= session), None)
        if first is not None and first.time < start and len(first.data) <= OPENING_BYTES:
            about["opening"] = first.data.hex()
    settings = [row._replace(profile=without_names(row.profile)) for row in part.settings]
    return part._replace(settings=settings, about=about)
