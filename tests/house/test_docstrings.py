"""Public items have a numpydoc docstring with parameters and exceptions, what is internal a summary."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import motioncue

SOURCE = Path(__file__).parents[2] / "motioncue"
SUMMARY = 100  # characters
RETURNED = {"Drive", "MotionPlatform", "Relay", "Response", "Score", "Stepper"}  # by public functions
NOT_DOCUMENTED = {"MemoryError", "AssertionError"}

SECTION = re.compile(r"^(\w[\w ]*)\n-+$", re.M)
PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", re.M)


class Item(NamedTuple):
    """A public module, class, function or property."""

    name: str
    doc: str
    parameters: list[str]
    raised: set[str]


def sections(doc):
    """Return the text of each section of a numpydoc docstring by its title."""
    titles = list(SECTION.finditer(doc))
    ends = [*(title.start() for title in titles), len(doc)][1:] if titles else []
    return {title[1]: doc[title.end() : end] for title, end in zip(titles, ends, strict=True)}


def documented(doc):
    """Return the names in the Parameters section, in order."""
    text = sections(doc).get("Parameters", "")
    return [name.strip() for names in PARAMETER.findall(text) for name in names.split(",")]


def complaints(item, complete=True):
    """Return what is wrong with a docstring."""
    lines = item.doc.splitlines()
    if not lines or not lines[0]:
        return [f"{item.name}: no docstring"]
    wrong = []
    if (complete and len(lines[0]) > SUMMARY) or (len(lines) > 1 and lines[1]):
        wrong.append(f"{item.name}: the summary is not one line of up to {SUMMARY} characters")
    if not complete:
        extra = {"Parameters", "Returns", "Raises"} & set(sections(item.doc))
        wrong += [f"{item.name}: has a section {title}, which is for public items" for title in sorted(extra)]
    else:
        if documented(item.doc) != item.parameters:
            wrong.append(f"{item.name}: documents parameters {documented(item.doc)}, has {item.parameters}")
        raises = set(re.findall(r"\w+", sections(item.doc).get("Raises", "")))
        wrong += [f"{item.name}: raises {name}, says nothing of it" for name in sorted(item.raised - raises)]
    return wrong


def parameters_of(function):
    """Return the names of a function's parameters but for self and cls, with their stars."""
    a = function.args
    names = [argument.arg for argument in (*a.posonlyargs, *a.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    names += [f"*{a.vararg.arg}"] if a.vararg else []
    names += [argument.arg for argument in a.kwonlyargs]
    return names + ([f"**{a.kwarg.arg}"] if a.kwarg else [])


def raised_by(function):
    """Return the names of the exceptions that a function's body raises."""
    nodes = (node.exc for node in ast.walk(function) if isinstance(node, ast.Raise))
    called = (node.func if isinstance(node, ast.Call) else node for node in nodes)
    return {node.id for node in called if isinstance(node, ast.Name) and node.id[0].isupper()} - NOT_DOCUMENTED


def raised_in_cython(text):
    """Return the names that each def of Cython source raises, by qualified name."""
    found, owner, name, depth = {}, "", None, 0
    for line in re.sub(r'"""[\s\S]*?"""|#.*', "", text).splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith(")"):
            continue
        if indent == 0:
            owner = ""
        if indent <= depth:
            name = None
        if match := re.match(r"\s*(?:cdef |cpdef )?class (\w+)", line):
            owner = match[1] + "."
        elif match := re.match(r"\s*def (\w+)", line):
            name, depth = owner + match[1], indent
        elif name and (match := re.match(r"\s*raise (\w+)", line)):
            found.setdefault(name, set()).add(match[1])
    return {name: names - NOT_DOCUMENTED for name, names in found.items()}


def items(module_name):
    """Return the public items of a module; what its source does not say, the module itself does."""
    path = SOURCE.parent / Path(*module_name.split("."))
    module = importlib.import_module(module_name)
    path = path / "__init__" if path.is_dir() else path
    compiled = path.with_suffix(".pyx").exists()
    described = path.with_suffix(".pyi" if compiled else ".py")
    if not described.exists():  # what no user meets has no stub
        return [Item(module_name, docstring(module), [], set())]
    tree = ast.parse(described.read_text(encoding="utf-8"))
    code = path.with_suffix(".pyx").read_text(encoding="utf-8") if compiled else ""
    raised = raised_in_cython(code)
    listed = getattr(module, "__all__", None)
    found = [Item(module_name, docstring(module), [], set())]

    def add(node, owner, name):
        value = getattr(owner, node.name)
        if isinstance(node, ast.ClassDef):
            makers = [n for n in node.body if getattr(n, "name", "") in ("__init__", "__new__")]
            raises = {n for m in makers for n in raised_by(m)}
            raises |= raised.get(f"{name}.__init__", set()) | raised.get(f"{name}.__cinit__", set())
            parameters = [parameter for maker in makers for parameter in parameters_of(maker)]
            found.append(Item(f"{module_name}.{name}", docstring(value), parameters, raises))
            for child in node.body:
                # A readonly attribute of a compiled class has its comment in the pxd.
                attribute = compiled and f"def {getattr(child, 'name', None)}(" not in code
                if isinstance(child, ast.FunctionDef) and child.name[0] != "_" and not attribute:
                    add(child, value, f"{name}.{child.name}")
        else:
            raises = raised_by(node) | raised.get(name, set())
            found.append(Item(f"{module_name}.{name}", docstring(value), parameters_of(node), raises))

    public_names = {getattr(node, "name", "_") for node in tree.body if getattr(node, "name", "_")[0] != "_"}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in (listed or public_names):
            add(node, module, node.name)
    return found


def docstring(value):
    """Return an object's own docstring, without indentation."""
    return inspect.cleandoc(getattr(value, "func", value).__doc__ or "")  # func: of a cached property


MODULES = sorted(
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*")
    if path.suffix in (".py", ".pyx") and (path.stem == "__init__" or not path.stem.startswith("_"))
)


@pytest.mark.parametrize("name", MODULES)
def test_public_items_are_documented(name):
    wrong = []
    for item in items(name):
        top = item.name.removeprefix(f"{name}.").partition(".")[0]
        if top not in RETURNED:
            wrong += complaints(item, complete=top in motioncue.__all__)
    assert wrong == []


GOOD = """Return it.

Parameters
----------
a, b : float
    Two [m].
*rest
    More.

Raises
------
ConfigError
    If not.
"""


CYTHON = '''
cdef class A:
    def f(
        self,
    ):
        """Say that we
        raise C sometimes.
        """
        raise B(1)

    cdef int g(self) except -1:
        raise D

def h():
    if x:
        raise E from error
'''


@pytest.mark.parametrize(
    ("doc", "parameters", "raised", "expected"),
    [
        (GOOD, ["a", "b", "*rest"], {"ConfigError"}, 0),
        ("", [], set(), 1),
        ("Too long: " + "x" * SUMMARY, [], set(), 1),
        ("Two\nlines.", [], set(), 1),
        ("Return it.", ["a"], set(), 1),
        (GOOD, ["a", "b"], set(), 1),
        (GOOD, ["a", "c", "*rest"], set(), 1),
        (GOOD, ["a", "b", "*rest"], {"ValueError"}, 1),
    ],
)
def test_checker_counts_what_is_missing(doc, parameters, raised, expected):
    assert len(complaints(Item("it", doc, parameters, raised))) == expected


def test_checker_finds_what_cython_source_raises():
    assert raised_in_cython(CYTHON) == {"A.f": {"B"}, "h": {"E"}}
