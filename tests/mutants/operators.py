"""Small wrongs that can be put into the lines of a kernel, in Cython or in C."""

import re
from dataclasses import dataclass

SWAPS = {
    "comparison": {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="},
    "boundary": {
        "<": "<=",
        "<=": "<",
        ">": ">=",
        ">=": ">",
        "min": "max",
        "max": "min",
        "fmin": "fmax",
        "fmax": "fmin",
    },
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="},
    "negation": {
        "and": "or",
        "or": "and",
        "&&": "||",
        "||": "&&",
        "not": "",
        "!": "",
        "True": "False",
        "False": "True",
    },
}
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>->|\+\+|--|[-+*/<>=!&|]=|&&|\|\||<<|>>|.)"
)
STATEMENT = re.compile(
    r"\s+(?!(?:return|else|elif|if|for|while|raise|pass|break|continue)\b)[\w.\[\], *>-]+(?<!=)[-+*/|&]?=(?!=).*"
)
CALL = re.compile(r"\s+(?!(?:return|if|while|for|sizeof)\b)[\w.]+\(.*\);?$")
DECLARED = re.compile(r"\s+(?:const |cdef |static |double |int |real |flag |mc_\w+ |int64_t )")


@dataclass(frozen=True)
class Mutant:
    """One line of a file, changed."""

    path: str
    line: int  # from 0
    operator: str
    before: str
    after: str

    def __str__(self):
        return f"{self.path}:{self.line + 1} {self.operator}\n    - {self.before.strip()}\n    + {self.after.strip()}"


def without_comments(text, c):
    """Return the text with comments, docstrings and texts blanked, so that every place stays where it is."""
    kinds = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"' if c else r'"""[\s\S]*?"""|#[^\n]*|"(?:\\.|[^"\\\n])*"'
    return re.sub(kinds, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def bodies(lines, c):
    """Give the number of each line that is run: inside a function, neither its head nor a declaration of types."""
    inside = False
    for number, line in enumerate(lines):
        if line and not line[0].isspace():
            head = line.strip()
            if c:
                inside = (head.endswith("{") and "(" in head) or head == ") {"
            elif not head.startswith(")"):
                inside = head.startswith(("cdef inline", "cdef class")) or ("(" in head and head.startswith("cdef "))
        elif inside and line.strip() and not line.lstrip().startswith(("#", "raise", "cdef class", "def ", "@")):
            yield number


def numbers(text):
    """Give a number's neighbours: another bound, factor or count."""
    if "." in text or "e" in text:
        yield repr(2.0 * float(text)) if float(text) else "1.0"
        if float(text):
            yield repr(0.5 * float(text))
    else:
        yield str(int(text) + 1)
        if int(text):
            yield str(int(text) - 1)


def is_binary(line, start):
    """Say whether the sign at a place stands between two operands, and is no part of a pointer's type."""
    return (
        bool(re.search(r"[\w\])]\s*$", line[:start])) and line[start + 1 : start + 2] == " " and line[start - 1] == " "
    )


def changes(line, c):
    """Give (operator, changed line) for each wrong of one line."""
    for token in TOKEN.finditer(line):
        text, start, end = token[0], token.start(), token.end()
        for operator, pairs in SWAPS.items():
            if text not in pairs or (text in "+-*/<>" and not is_binary(line, start)):
                continue
            yield operator, line[:start] + pairs[text] + line[end:]
        if token.lastgroup == "number" and not re.match(r".*\[\w*$", line[:start]) and not re.match(r"\]", line[end:]):
            for number in numbers(text):
                yield "constant", line[:start] + number + line[end:]
    condition = re.match(r"(\s+(?:\} else )?(?:if|elif|while) )(.+)(:)$", line)
    if not c and condition:
        yield "negation", f"{condition[1]}not ({condition[2]}){condition[3]}"
    complete = (
        line.count("(") == line.count(")") and line.count("{") == line.count("}") and not line.endswith(("\\", ","))
    )
    if complete and (STATEMENT.fullmatch(line) or CALL.fullmatch(line)) and not DECLARED.match(line):
        indent = line[: len(line) - len(line.lstrip())]
        yield "dropped statement", indent + (";" if c else "pass")


def mutants_of(path, text):
    """Return every mutant of a file."""
    c = path.endswith((".h", ".c"))
    given, plain = text.split("\n"), without_comments(text, c).split("\n")
    found = {}
    for number in bodies(plain, c):
        line = plain[number].rstrip()
        for operator, after in changes(line, c):
            if given[number].startswith(line) and after != line:
                found.setdefault((number, after), Mutant(path, number, operator, given[number], after))
    return list(found.values())
