"""The errors that motioncue raises on purpose, and texts that name a likely intended word."""

import difflib
from collections.abc import Iterable

__all__ = ["ConfigError", "EndpointError", "MotioncueError", "PacketError", "meant", "not_among"]


class MotioncueError(Exception):
    """Base of every error that motioncue raises on purpose."""


class ConfigError(MotioncueError, ValueError):
    """A profile or a parameter is not allowed: the message names it, what was found and what is allowed."""


class EndpointError(MotioncueError, OSError):
    """An endpoint cannot be understood, opened or reached: a bad URL, a busy port, a missing folder."""


class PacketError(MotioncueError, ValueError):
    """Bytes are not the packet they should be: wrong size, wrong type, truncated, not finite."""


def not_among(found: object, allowed: Iterable[str], what: str = "") -> str:
    """Return a text that `found` is not among the allowed names, and which one may have been meant."""
    names = list(allowed)
    return f"found {what}{found!r}, allowed {'are' if names[1:] else 'is'} {', '.join(names)}{meant(found, names)}"


def meant(found: object, allowed: Iterable[str]) -> str:
    """Return a remark on the allowed name most similar to `found`; empty if none is."""
    close = difflib.get_close_matches(found.lower(), list(allowed), n=1) if isinstance(found, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""
