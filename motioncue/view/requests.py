"""Requests of the page; what is none of these is refused."""

from typing import Annotated, TypeAlias

import msgspec

__all__ = ["Give", "Judge", "Operate", "Request", "Save", "Seen", "Set", "Swap", "Take", "Undo", "parse_request"]


Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=100)]


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    pass


class Seen(_Request, frozen=True):
    """The page has drawn this many frames."""

    frames: Annotated[int, msgspec.Meta(ge=0)]


class Operate(_Request, frozen=True):
    """Engage, hold or park."""

    what: Annotated[str, msgspec.Meta(pattern=r"^(engage|hold|park)\Z")]


class Take(_Request, frozen=True):
    """Steer from now on."""


class Give(_Request, frozen=True):
    """Steer no longer."""


class Set(_Request, frozen=True):
    """Set a parameter; None for one that may be left out."""

    key: Annotated[str, msgspec.Meta(max_length=100)]
    value: float | bool | Word | Annotated[list[Word], msgspec.Meta(max_length=32)] | None
    gesture: int = 0
    """Changes of one gesture are undone together."""
    number: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Grows with each setting of a page, which is told the newest one that has been made or refused."""
    sure: bool = False
    """Whether a person was asked about it, as about every change that a slip of the hand could mean."""


class Undo(_Request, frozen=True):
    """Return to the settings before the last gesture."""

    sure: bool = False


class Swap(_Request, frozen=True):
    """Go from settings A to B, or back."""

    sure: bool = False


class Save(_Request, frozen=True):
    """Write the settings as a profile."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}\.toml\Z")]


class Judge(_Request, frozen=True):
    """Judge the settings on the last minute."""


Request: TypeAlias = Seen | Operate | Take | Give | Set | Undo | Swap | Save | Judge
"""Any request; its key ``do`` says which."""

_DECODER = msgspec.json.Decoder(Request)


def parse_request(message: str | bytes) -> Request:
    """Return the request in a message; raise ValueError, which says why, if it is none.

    Parameters
    ----------
    message : str or bytes
        JSON.
    """
    try:
        request: Request = _DECODER.decode(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"no request: {error}") from error
    return request
