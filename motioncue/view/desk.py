"""What the page changes: an engine's settings, with undo, two settings to compare, and a file to keep."""

from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec

from motioncue.errors import ConfigError, not_among
from motioncue.profile import Profile, differences, parse_profile
from motioncue.runtime.fitting import gains_for
from motioncue.settings.kept import changed_text
from motioncue.settings.nested import flat
from motioncue.settings.reference import Number, numbers
from motioncue.view.watched import Watched

__all__ = ["Desk"]

TABLES = ("cueing", "supervisor", "limits", "platform")
"""Tables of a profile whose numbers the page changes."""

FIXED = ("platform.height_m", "platform.crank_m", "platform.rod_m", "platform.base.", "platform.platform.")
"""The platform's geometry, which is fixed while it runs."""

STEPS = 200  # gestures that can be undone


class Desk:
    """Changes an engine's settings.

    Parameters
    ----------
    engine : Watched
        A running engine, or a recording that plays.
    text : str, optional
        TOML of the profile that it began with, whose comments a saved profile keeps.
    folder : Path, optional
        Where profiles are saved; the present folder if not given.

    Notes
    -----
    Every change goes through `retune`, and so through its checks.
    """

    def __init__(self, engine: Watched, text: str | None = None, folder: Path | None = None) -> None:
        self._engine = engine
        self._text = text
        self._folder = folder
        self._first = engine.requested
        self._slot = "A"
        self._other = engine.requested
        self._past: dict[str, list[Profile]] = {"A": [], "B": []}
        self._gesture: tuple[Any, ...] | None = None

    def parameters(self) -> list[Number]:
        """Return the numbers that can be changed."""
        profile = self._engine.requested
        tables = [(getattr(profile, name), name) for name in TABLES]
        found = [
            number for table, name in tables if isinstance(table, msgspec.Struct) for number in numbers(table, name)
        ]
        return [number for number in found if not number.key.startswith(FIXED)]

    def state(self) -> dict[str, Any]:
        """Return the values of all parameters, and what can be undone, compared and saved."""
        profile = self._engine.requested
        values = dict(flat(msgspec.to_builtins(profile)))
        changed = differences(self._first, profile)
        return {
            "values": {number.key: values.get(number.key) for number in self.parameters()},
            "bounds": {name: bounds[0] for name, bounds in profile.bounds().items()},
            "slot": self._slot,
            "undo": len(self._past[self._slot]),
            "changed": {key: [before, after] for key, (before, after) in changed.items()},
            "differs": sorted(differences(profile, self._other)),
        }

    def set(self, key: str, value: float | None, gesture: tuple[Any, ...]) -> None:
        """Set a parameter.

        Parameters
        ----------
        key : str
            Its dotted path.
        value : float or None
            None for one that may be left out.
        gesture : tuple
            Changes with the same one are undone together.

        Raises
        ------
        ConfigError
            If it is refused; then nothing changes.
        """
        allowed = {number.key: number for number in self.parameters()}
        if key not in allowed:
            raise ConfigError(f"parameter: {not_among(key, allowed)}")
        if allowed[key].whole and value is not None and value.is_integer():
            value = int(value)
        before = self._engine.requested
        self._engine.retune({key: value})
        if (gesture, key) != self._gesture:
            self._past[self._slot] = [*self._past[self._slot][1 - STEPS :], before]
            self._gesture = (gesture, key)

    def undo(self) -> None:
        """Return to the settings before the last gesture; nothing happens if there was none."""
        if self._past[self._slot]:
            self._engine.retune(self._past[self._slot][-1])
            self._past[self._slot].pop()
        self._gesture = None

    def swap(self) -> None:
        """Go from settings A to B, or back; B begins as a copy of A."""
        here = self._engine.requested
        self._engine.retune(self._other)
        self._other = here
        self._slot = "B" if self._slot == "A" else "A"
        self._gesture = None

    def save(self, name: str) -> dict[str, Any]:
        """Write the settings as a profile beside the old one's text and comments.

        Parameters
        ----------
        name : str
            Name of a new file.

        Returns
        -------
        dict
            ``file``, and ``diff`` as lines.

        Raises
        ------
        ConfigError
            If the file exists or cannot be written, TOML Kit is missing, or the text cannot take the values.
        """
        if self._text is None:
            raise ConfigError("save: this run began without a profile's text")
        wanted = self._engine.requested
        changes = differences(parse_profile(self._text, scaled=gains_for), wanted)
        values = {key: new for key, (_, new) in changes.items() if key.partition(".")[0] in TABLES}
        try:
            text = changed_text(self._text, values)
        except ImportError as error:
            raise ConfigError(f'save: {error.name} is missing: pip install "motioncue[view]"') from error
        saved = parse_profile(text, scaled=gains_for)
        if any(getattr(saved, name) != getattr(wanted, name) for name in TABLES):
            raise ConfigError("save: this profile's text cannot take the values; allowed is one that names its tables")
        path = (self._folder or Path.cwd()) / name
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as error:
            raise ConfigError(f"save: {name} exists, allowed is a new name") from error
        except OSError as error:
            raise ConfigError(f"save: {name} cannot be written: {error.strerror or error}") from error
        before, after = self._text.splitlines(), text.splitlines()
        return {"file": str(path), "diff": list(unified_diff(before, after, "before", name, lineterm="", n=1))}
