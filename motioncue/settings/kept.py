"""A profile's text with other values, in which comments, order and layout stay.

Needs the package ``tomlkit``, from the extras ``tune`` and ``view``.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["changed_text"]


def changed_text(text: str, values: Mapping[str, Any]) -> str:
    """Return TOML with some values changed, and its comments, order and layout kept.

    Parameters
    ----------
    text : str
        TOML.
    values : mapping
        Values by dotted key, not in lists of tables; None removes a key.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for key, value in values.items():
        *path, name = key.split(".")
        table: Any = document
        for step in path:
            if step not in table:
                table[step] = tomlkit.table() if table is document else tomlkit.inline_table()
            table = table[step]
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value
    return tomlkit.dumps(document)
