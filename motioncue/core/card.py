"""A small table for notebooks, in which objects show themselves."""

from collections.abc import Iterable
from html import escape

__all__ = ["card"]


def card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return HTML of a title and of rows of a name and a text."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
        if text
    )
    return f"<table><caption><b>{escape(title)}</b></caption><tbody>{cells}</tbody></table>"
