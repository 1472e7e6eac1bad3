"""What a search has scored, kept in a file, so that it can go on.

The first line of JSON says what is searched, each other one what settings are worth.  A search that goes on begins
anew, asks for the same settings, and takes from the file what they are worth.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.profile.profile import Profile
from motioncue.tuning.front import SHARES
from motioncue.tuning.judge import Outcome
from motioncue.tuning.parameters import Parameter
from motioncue.tuning.search import Bounds

__all__ = ["FileState", "content_of"]


def content_of(
    profile: Profile,
    motions: Sequence[npt.NDArray[np.void]],
    parameters: Sequence[Parameter],
    bounds: Bounds,
    seed: int,
    front: str | None = None,
) -> dict[str, Any]:
    """Return what a search is about: two searches with the same content find the same.

    Parameters
    ----------
    profile : Profile
        With a platform.
    motions : sequence of ndarray of MOTION_DTYPE
        The frames of each drive.
    parameters : sequence of Parameter
        What is changed.
    bounds : Bounds
        What must hold.
    seed : int
        Of the random numbers.
    front : str, optional
        The bound that is searched at several shares.
    """
    tables = msgspec.to_builtins(profile)
    told = {key: tables[key] for key in ("source", "cueing", "limits", "platform")}
    return {
        "search": 1,
        "profile": hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest(),
        "drives": [hashlib.sha256(np.ascontiguousarray(motion).tobytes()).hexdigest() for motion in motions],
        "parameters": {each.key: [each.value, each.low, each.high, each.scale] for each in parameters},
        "bounds": bounds._asdict(),
        "seed": seed,
        "front": None if front is None else [front, *SHARES],
    }


class FileState:
    """What a search has scored, in a file.

    Parameters
    ----------
    path : Path
        The file.
    content : dict
        What the search is about, as `content_of` returns it.
    resume : bool
        Whether to take what the file knows; otherwise it is begun anew.

    Raises
    ------
    ConfigError
        If there is no such file, it is of another search, or it cannot be written.
    """

    def __init__(self, path: Path, content: Mapping[str, Any], *, resume: bool = False) -> None:
        self._path, self._keys = path, list(content["parameters"])
        self._known: dict[tuple[float, ...], list[Outcome]] = {}
        if resume:
            self._read(content)
        self._write("w", [content, *self._known.items()])  # without a line whose end is missing

    def known(self, values: Mapping[str, float]) -> list[Outcome] | None:
        """Return what settings were worth, one outcome per drive; None if they were not scored.

        Parameters
        ----------
        values : mapping
            Values by key.
        """
        return self._known.get(self._place(values))

    def keep(self, settings: Sequence[Mapping[str, float]], outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Add what settings are worth.

        Parameters
        ----------
        settings : sequence of mapping
            Values by key.
        outcomes : sequence of sequence of Outcome
            For each, one per drive.

        Raises
        ------
        ConfigError
            If the file cannot be written.
        """
        self._write("a", [[self._place(values), own] for values, own in zip(settings, outcomes, strict=True)])
        for values, own in zip(settings, outcomes, strict=True):
            self._known[self._place(values)] = list(own)

    def _place(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(values[key] for key in self._keys)

    def _read(self, content: Mapping[str, Any]) -> None:
        try:
            first, *lines = self._path.read_text(encoding="utf-8").splitlines()
            about = json.loads(first)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--resume: {str(self._path)!r} is no search that can go on: {error}") from error
        for key, value in content.items():
            if not isinstance(about, dict) or about.get(key) != json.loads(json.dumps(value)):
                raise ConfigError(f"--resume: found other {key} in {str(self._path)!r}, allowed is the same search")
        for line in lines:
            try:
                place, outcomes = msgspec.convert(json.loads(line), tuple[tuple[float, ...], list[Outcome]])
            except (ValueError, msgspec.ValidationError):  # such as the line being written when the search ended
                continue
            if outcomes:
                self._known[place] = outcomes

    def _write(self, mode: str, rows: Sequence[Any]) -> None:
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write("".join(f"{json.dumps(row)}\n" for row in rows))
        except OSError as error:
            raise ConfigError(f"--out: {str(self._path)!r} cannot be written: {error.strerror or error}") from error
