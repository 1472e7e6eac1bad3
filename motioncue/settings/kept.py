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
        Values by dotted key, not in lists of tables; None removes a key, and the tables that are empty then.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for key, value in values.items():
        *path, name = key.split(".")
        table: Any = document
        above: list[tuple[Any, str]] = []
        for step in path:
            if step not in table:
                if value is None:
                    break
                table[step] = tomlkit.table() if table is document else tomlkit.inline_table()
            above.append((table, step))
            table = table[step]
        else:
            if value is not None:
                table[name] = value
            elif table.pop(name, None) is not None:
                while above and not table:
                    table, step = above.pop()
                    table.pop(step)
    return tomlkit.dumps(document)
