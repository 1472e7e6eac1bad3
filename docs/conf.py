"""The documentation as a site: python -m sphinx -W -b html docs build/site."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
if not any((ROOT / "motioncue").glob("_cython.*")):  # not compiled in place: the package that is installed is meant
    sys.path[:] = [each for each in sys.path if Path(each or ".").resolve() != ROOT]

import motioncue  # noqa: E402 - from there

project = "motioncue"
author = "the motioncue developers"
version = release = motioncue.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["*.py"]
html_theme = "furo"
html_title = "motioncue"
autodoc_typehints = "none"  # numpydoc has the types, with shapes and units
numpydoc_show_class_members = False
suppress_warnings = ["misc.highlighting_failure"]  # examples of TOML with an ellipsis

SOURCE = "https://github.com/motioncue/motioncue/blob/main/"


def link_to_source(app, name, text):
    """Make links to what is outside the folder of the documentation lead to the repository."""
    up = "../" * (name.count("/") + 1)
    text[0] = re.sub(rf"\]\({re.escape(up)}(?!\.\./)", f"]({SOURCE}", text[0])


def setup(app):
    """Register the hook with Sphinx."""
    app.connect("source-read", link_to_source)
