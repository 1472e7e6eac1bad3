"""A profile's text with other values, in which comments, order and layout stay.

Needs the package ``tomlkit``, from the extras ``tune`` and ``view``.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["changed_text"]


def changed_text(text: str, values: Mapping[str, Any]) -> str:
    """Return TOML with some values changed, and its comments, order and layout kept."""
    import tomlkit

    document = tomlkit.parse(text)
    for key, value in values.items():
        *path, name = _steps(key)
        table: Any = document
        above: list[tuple[Any, str | int]] = []
        for step in path:
            if isinstance(step, int):
                if not isinstance(table, list):
                    raise TypeError(f"{key}: found no list, allowed is one of tables")
            elif step not in table:
                if value is None:
                    break
                table[step] = tomlkit.table() if table is document else tomlkit.inline_table()
            above.append((table, step))
            table = table[step]
        else:
            if value is not None:
                table[name] = value
            elif table.pop(name, None) is not None:
                while above and not table and isinstance(above[-1][1], str):
                    table, step = above.pop()
                    table.pop(step)
    return tomlkit.dumps(document)


def _steps(key: str) -> list[str | int]:
    """Return the steps of a dotted path; those into a list are whole numbers."""
    return [int(step[:-1]) if step.endswith("]") else step for step in key.replace("[", ".").split(".")]
