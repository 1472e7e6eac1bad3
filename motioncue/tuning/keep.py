"""A tuned profile as TOML: the text of the profile before with other values, comments kept.

Needs the package ``tomlkit``, from the extra ``tune``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from motioncue.engine.fitting import gains_for
from motioncue.errors import ConfigError
from motioncue.profile.kept import changed_text
from motioncue.profile.nested import flat
from motioncue.profile.profile import Profile, parse_profile

__all__ = ["tuned_text", "written_out"]

MARK = "# tuned: "


def tuned_text(text: str, values: Mapping[str, Any], remarks: Sequence[str], tuned: Profile) -> str:
    """Return the text of a profile with some values changed.

    Parameters
    ----------
    text : str
        TOML of the profile before.
    values : mapping
        Values by dotted key.
    remarks : sequence of str
        Lines that are put first, as comments; those of an earlier search are taken out.
    tuned : Profile
        The profile that the text must give, except for its platform.

    Raises
    ------
    ConfigError
        If tomlkit is missing, or the text would give another cueing.
    """
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(MARK)]
    text = "".join(lines)
    try:
        changed = changed_text(text, {**_of_another_algorithm(text, values), **values})
    except ImportError as error:
        raise ConfigError(f'tune: {error.name} is missing: pip install "motioncue[tune]"') from error
    found = "".join(f"{MARK}{_printable(remark)}\n" for remark in remarks) + changed
    if parse_profile(found, name=tuned.name, scaled=gains_for).cueing != tuned.cueing:
        raise ConfigError(
            "--out: the values found cannot be put into this profile; allowed is one that names its cueing"
        )
    return found


def written_out(profile: Profile) -> tuple[Profile, dict[str, Any]]:
    """Return a profile whose cueing says every value itself, and these values for `tuned_text`.

    What the preset ``auto`` gave is kept as plain values, without the preset: in a file it means the platform in that
    file, and what it gives may depend on the values beside it.

    Parameters
    ----------
    profile : Profile
        A profile with a preset.
    """
    cueing = msgspec.structs.replace(profile.cueing, preset=None)
    found = flat({"cueing": msgspec.to_builtins(cueing)}, lists=False)
    values = {key: value for key, value in found if value is not None}
    return msgspec.structs.replace(profile, cueing=cueing), {**values, "cueing.preset": None}


def _of_another_algorithm(text: str, values: Mapping[str, Any]) -> dict[str, None]:
    """Return the keys of ``cueing`` that go if the values change the algorithm: they are settings of the one before."""
    import tomlkit

    table = tomlkit.parse(text).get("cueing", {})
    if values.get("cueing.algorithm", table.get("algorithm")) == table.get("algorithm"):
        return {}
    return {f"cueing.{key}": None for key in table}


def _printable(remark: str) -> str:
    """Return a remark as one line of a comment: a file's name may hold anything."""
    return "".join(each if each.isprintable() else "?" for each in remark)
