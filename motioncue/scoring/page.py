"""A page of HTML that needs no other file: tables, and figures of matplotlib (the extra ``report``)."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_of", "image", "page", "table"]

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
table {{ border-collapse: collapse; margin: 1rem 0 }} td, th {{ padding: .2rem .8rem; border-bottom: 1px solid #ddd }}
td {{ text-align: right }} td:first-child, th:first-child {{ text-align: left }} img {{ max-width: 100% }}
</style></head><body>
<h1>{title}</h1>{body}
</body></html>
"""


def page(title: str, body: str) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML.
    """
    return PAGE.format(title=escape(title), body=body)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML.

    Parameters
    ----------
    heads : sequence of str
        Heads of the columns, plain text.
    rows : sequence of sequence of str
        Plain text.
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def figure_of(height: float) -> "Figure":
    """Return an empty figure of a page's width.

    Parameters
    ----------
    height : float
        Inches.

    Returns
    -------
    matplotlib.figure.Figure
    """
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(10.0, height), layout="constrained")


def image(figure: "Figure") -> str:
    """Return a figure as an HTML image that holds its own data, and close it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    """
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    plt.close(figure)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
