"""The messages of variable size in a recording: packages, events, settings."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from motioncue.errors import PacketError
from motioncue.recording.topics import (
    EVENT,
    PACKAGE,
    SETTINGS,
    Event,
    Package,
    Topic,
    decode_event,
    decode_package,
    decode_settings,
)
from motioncue.recording.walk import McapFile

__all__ = ["LATEST_NS", "Settings", "events_in", "packages_in", "settings_in"]

LATEST_NS = 2**62  # [ns, monotonic clock] a century and a half, so that differences of times fit into 64 bits
MOST = 8_000_000  # most messages of a kind with variable size: seven hours of 300 a second

Decoded = TypeVar("Decoded", Package, Event, "Settings")


class Settings(NamedTuple):
    """The profile in force from a time on."""

    time: int
    number: int
    profile: dict[str, Any]


def packages_in(file: McapFile) -> list[Package]:
    """Return the packages of a simulator, as they arrived.

    Parameters
    ----------
    file : McapFile
        The file; unreadable packages are added to its damage.
    """
    return _decoded(file, PACKAGE, decode_package)


def events_in(file: McapFile) -> list[Event]:
    """Return the events in order of time.

    Parameters
    ----------
    file : McapFile
        The file; unreadable events are added to its damage.
    """
    return sorted(_decoded(file, EVENT, decode_event))


def settings_in(file: McapFile) -> list[Settings]:
    """Return the profiles in force, in the order of the file.

    Parameters
    ----------
    file : McapFile
        The file; unreadable settings are added to its damage.
    """
    return _decoded(file, SETTINGS, _settings)


def _settings(payload: bytes) -> Settings:
    """Return the settings in a payload; raise PacketError if it is not valid."""
    time, number, text = decode_settings(payload)
    try:
        profile = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PacketError(f"{SETTINGS.name}: found a profile that is no JSON: {error}") from error
    if not isinstance(profile, dict):
        raise PacketError(f"{SETTINGS.name}: found a profile of type {type(profile).__name__}, allowed are tables")
    return Settings(time, number, profile)


def _decoded(file: McapFile, topic: Topic, decode: Callable[[bytes], Decoded]) -> list[Decoded]:
    """Return the messages of a topic that can be decoded; count the others as damage."""
    found: list[Decoded] = []
    for payload in file.own_payloads(topic):
        if len(found) == MOST:
            file.damage.add(f"{topic.name}: found more than {MOST} messages, the rest was not read")
            break
        try:
            message = decode(payload)
        except PacketError as error:
            file.damage.add(str(error))
            continue
        if 0 <= message.time < LATEST_NS:
            found.append(message)
        else:
            file.damage.add(f"{topic.name}: a message of the time {message.time} ns")
    return found
