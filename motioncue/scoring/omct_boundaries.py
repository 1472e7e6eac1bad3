"""Boundaries of gain and phase for the Objective Motion Cueing Test, from a file of the user's."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import numpy as np

from motioncue.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Boundaries", "Boundary", "boundaries_of"]

Line: TypeAlias = tuple[float, ...]


class Boundary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Boundaries of one test: corners, joined by straight lines over the logarithm of frequency."""

    test: Annotated[int, msgspec.Meta(ge=1, le=10)]
    frequency_rad_s: Annotated[Line, msgspec.Meta(min_length=2)]
    """Frequencies of the corners, ascending [rad/s]; nothing is judged outside of them."""
    gain_low: Line | None = None
    """Least gain at each corner, in the unit of the test."""
    gain_high: Line | None = None
    phase_low_deg: Line | None = None
    """Least phase at each corner [deg]; whole turns do not count."""
    phase_high_deg: Line | None = None

    def __post_init__(self) -> None:
        """Refuse lines that are no boundary."""
        at = np.array(self.frequency_rad_s)
        if not (np.isfinite(at).all() and at[0] > 0.0 and (np.diff(at) > 0.0).all()):
            raise ValueError(f"frequency_rad_s: found {self.frequency_rad_s}, allowed are ascending ones above 0")
        lines = {name: getattr(self, name) for name in LINES}
        if not any(lines.values()):
            raise ValueError(f"test {self.test}: found no boundary, allowed are {', '.join(LINES)}")
        for name, values in lines.items():
            if values is not None and not (len(values) == len(at) and np.isfinite(values).all()):
                raise ValueError(f"{name}: found {values}, allowed are {len(at)} numbers, one a frequency")
        for low, high in (LINES[:2], LINES[2:]):
            if lines[low] and lines[high] and not np.less_equal(lines[low], lines[high]).all():
                raise ValueError(f"{low}: found {lines[low]}, allowed is up to {high}, {lines[high]}")
        if (lines["phase_low_deg"] is None) != (lines["phase_high_deg"] is None):
            raise ValueError("phase_low_deg, phase_high_deg: found one of them, allowed are both or none")

    def at(self, name: str, frequency: float) -> float | None:
        """Return a boundary at a frequency; None if there is none.

        Parameters
        ----------
        name : str
            Such as ``gain_low``.
        frequency : float
            Angular frequency [rad/s].
        """
        values = getattr(self, name)
        if values is None or not self.reaches(frequency):
            return None
        return float(np.interp(np.log(frequency), np.log(self.frequency_rad_s), values))

    def reaches(self, frequency: float) -> bool:
        """Return whether a frequency is between the first corner and the last, which count.

        Parameters
        ----------
        frequency : float
            Angular frequency [rad/s].
        """
        first, *_, last = self.frequency_rad_s
        return first * (1.0 - EDGE) <= frequency <= last * (1.0 + EDGE)


LINES = ("gain_low", "gain_high", "phase_low_deg", "phase_high_deg")
EDGE = 1e-3  # a file says 15.85 or 15.849 for the last frequency


class Boundaries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Boundaries and where they come from."""

    source: Annotated[str, msgspec.Meta(min_length=1)]
    """The document, with its edition and table or figure."""
    boundary: tuple[Boundary, ...]
    """Up to one a test."""

    def __post_init__(self) -> None:
        """Refuse a test that is given twice."""
        tests = [each.test for each in self.boundary]
        if len(set(tests)) < len(tests):
            raise ValueError(f"boundary: found tests {tests}, allowed is each once")

    def of(self, test: int) -> Boundary | None:
        """Return the boundaries of a test; None if there are none.

        Parameters
        ----------
        test : int
            Number of the test.
        """
        return next((each for each in self.boundary if each.test == test), None)

    def inside(self, test: int, frequency: float, gain: float, phase_deg: float) -> bool | None:
        """Return whether a response is inside, its edges included; None where nothing is judged.

        Parameters
        ----------
        test : int
            Number of the test.
        frequency : float
            Angular frequency [rad/s].
        gain, phase_deg : float
            The response; whole turns of phase do not count.
        """
        own = self.of(test)
        if own is None or not own.reaches(frequency):
            return None
        least, most, early, late = (own.at(name, frequency) for name in LINES)
        fits = (least is None or gain >= least) and (most is None or gain <= most)
        if early is not None and late is not None:
            fits = fits and (phase_deg - early) % 360.0 <= late - early
        return fits


def boundaries_of(path: str | Path) -> Boundaries:
    """Return the boundaries in a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    ConfigError
        If the file cannot be read or says something that is not allowed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        return msgspec.convert(tomllib.loads(text), Boundaries, strict=False)
    except OSError as error:
        raise ConfigError(f"boundaries: {str(path)!r} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"boundaries: {str(path)!r}: {error}") from error
