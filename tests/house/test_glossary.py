"""One definition for each term; and words that once named many things, or nothing of the trade, name nothing again."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
SOURCES = [
    path
    for path in sorted((ROOT / "motioncue").rglob("*"))
    if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".h") and "daqp" not in path.parts
]

BANNED = {
    "believable": "plausible",
    "desk": "editor",
    "door": "access check",
    "hurried": "ahead of its clock",
    "judging": "score",
    "lively": "what changes, and how often",
    "stairs": "step signal",
    "stranger": "who a report is for",
    "strangers": "who a report is for",
    "team": "workers",
    "unblocked": "nonblocking",
    "unsteady": "what varies",
    "untold": "without what",
    "walk": "records, tables: what is gone through",
    "wary": "frames to settle",
}
"""By word: what it stood for, as the trade says it."""

DEFINED = re.compile(
    r"^[ \t]*(?:async )?(?:(?:cdef )?class|c?p?def(?: inline)?(?: [\w.*]+)?|static inline [\w ]+?)"
    r"[ \t*]+(\w+)[ \t]*[(:\n]",
    re.M,
)
"""The name of a class or function in Python, Cython or C."""


def terms():
    """Return the terms of the table, those in one row apart."""
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\|$", GLOSSARY, re.M)[1:]  # without the head
    return rows, [term.strip() for row in rows for term in row.split(",")]


def words(name):
    """Return the words that a name is made of."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names(path):
    """Return the names that a file defines, its own first."""
    return [path.stem, *DEFINED.findall(path.read_text(encoding="utf-8"))]


def test_glossary_has_at_most_thirty_rows():
    assert 20 <= len(terms()[0]) <= 30


def test_each_term_has_one_definition():
    _, found = terms()
    assert [term for term in found if found.count(term) > 1] == []


@pytest.mark.parametrize("word", BANNED)
def test_a_banned_word_names_nothing(word):
    used = [f"{path.relative_to(ROOT)}: {name}" for path in SOURCES for name in names(path) if word in words(name)]
    assert used == [], f"say {BANNED[word]!r}"


def test_names_of_all_languages_are_found():
    found = {name for path in SOURCES for name in names(path)}
    assert {"Engine", "load_profile", "mc_now", "find_message", "HighPass", "packed_address"} <= found
