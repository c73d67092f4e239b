"""Systematic faults of a kernel's text: each comparison, sum, number, axis, rounding and choice made wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&": "|", "|": "&", "<<": ">>", ">>": "<<"}
CHANGING = {"+=": "-=", "<<=": ">>=", "++": "--", "--": "++", "!": ""}
SWAPPED = COMPARISONS | ARITHMETIC | CHANGING
"""Operators, each with what it becomes."""

TOKEN = re.compile(
    r"(?<= )(?:[<>=!]=|<<=?|>>|\+=|&&|\|\||[-<>+*/%&|])(?= )"  # an operator between two blanks
    r"|(?:\+\+|--)(?=\w)|!(?=[\w(])"
    r"|(?<![\w.])(?:0x[0-9a-f]+|\d+)(?=u?\b)(?![\w.]*\.)"
    r"|\d+\.\d+(?:e-?\d+)?(?=f)"
)

CHOICE = re.compile(r"(?<= )\?(?= )")
CHOSEN = {"never": "&& false ?", "always": "|| true ?"}
"""The two outcomes of a choice, put behind a condition that has no `||` of its own."""

AXIS = re.compile(r"\b(ITEM|ITEMS|GROUP|GROUPS)\($")
"""The text before an axis number: there 3 would be the same as 2."""

STATEMENT = re.compile(r"(?:continue|MEET(?:_NEAR)?\(\)|[\w\[\](). +]+? (?:=|\+=|<<=) [^;{}]*)$")
DECLARED = re.compile(r"^(?:const|return|SHARED|GLOBAL|float|int|i64|u\d+)\b")
HEADER = re.compile(r"^(?:else\s+|if \(|for \()")

LITTLE = 5
"""A shorter expression in brackets does not tell where it stands, so the text around them is named too."""

FUNCTION = re.compile(r"^(?:KERNEL|float|u32|u64|#define) (\w+)", re.MULTILINE)

APART = "#define APART(a, b, c) ((a) * (b) + (c))\n"
"""What FMA becomes: the product is rounded too."""

ORDERS = {
    "strict.inc": [
        ("(x[i] + x[(i) + 16])", "(x[2 * (i)] + x[2 * (i) + 1])"),
        ("SUM8(x, (i) + 2)", "SUM8(x, (i) + 1)"),
        ("split = 0; split < splits; ++split", "split = splits - 1; split >= 0; --split"),
        ("l = FMA(its, part[1], mine * l)", "l = FMA(mine, l, its * part[1])"),
        ("a = FMA(its, part[2 + j], mine * a)", "a = FMA(mine, a, its * part[2 + j])"),
        ("a > b || a != a ? a : b", "a > b || b != b ? a : b"),
    ],
    "attend.inc": [
        ("d = 0; d < width_k; ++d", "d = width_k - 1; d >= 0; --d"),
        ("int i = 0; i < TILE; ++i", "int i = TILE - 1; i >= 0; --i"),
        ("q[d] * FLOAT((u32)scale)", "q[d]"),
        ("l = FMA(its, total(weights), mine * l)", "l = FMA(mine, l, its * total(weights))"),
        ("FMA(its, a, mine * part[2 + j])", "FMA(mine, part[2 + j], its * a)"),
        ("if (scores[i] != UNSEEN) a =", "if (weights[i] > 0.0f) a ="),
        ("highest = largest(scores)", "highest = scores[0]"),
    ],
}
"""Orders that no single token changes."""


@dataclass(frozen=True)
class Fault:
    """One fault of a text: in which function and line it stands, what was done, and the text with it."""

    function: str
    line: int
    what: str
    text: str = field(repr=False)


class Change(NamedTuple):
    """The characters from `start` to `end` become others. `called` says what was done to the old ones."""

    start: int
    end: int
    other: str
    called: str


def faults(name: str, text: str) -> Iterator[Fault]:
    """Every fault of the text of a name, one at a time, in the order in which they stand there."""
    blank = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL)
    found = [*_tokens(blank), *_choices(blank), *_roundings(blank), *_conditions(blank), *_lost(blank)]
    for change in sorted(found):
        around = "" if change.called.startswith(("lost", "if")) else f" in {_around(blank, change)}"
        yield _fault(text, change, f"{change.called}{around}")
    for was, now in ORDERS.get(name, []):
        assert text.count(was) == 1, f"{was!r} is no longer there"
        yield _fault(text, Change(text.index(was), text.index(was) + len(was), now, ""), f"{was} became {now}")


def _fault(text: str, change: Change, what: str) -> Fault:
    before = text[: change.start]
    functions = FUNCTION.findall(before)
    return Fault(
        functions[-1] if functions else "", before.count("\n") + 1, what, before + change.other + text[change.end :]
    )


def _tokens(blank: str) -> Iterator[Change]:
    """Each operator and number made another."""
    for found in TOKEN.finditer(blank):
        token = found[0]
        other = str((int(token) + 1) % 3) if AXIS.search(blank[: found.start()]) else _other(token)
        yield Change(*found.span(), other, f"{token} became {other or 'nothing'}")


def _other(token: str) -> str:
    if token in SWAPPED:
        return SWAPPED[token]
    if token.startswith("0x"):
        return hex(int(token, 16) + 1 & 0xFFFFFFFF)
    return repr(float(token) * 1.001 or 1.0) if "." in token else str(int(token) + 1)


def _choices(blank: str) -> Iterator[Change]:
    """Each choice fixed: always the first outcome, or always the second."""
    for found in CHOICE.finditer(blank):
        yield from (Change(*found.span(), other, f"? {name}") for name, other in CHOSEN.items())


def _roundings(blank: str) -> Iterator[Change]:
    """Round each product before something is added to it."""
    yield from (Change(*m.span(), "APART", "FMA rounds twice") for m in re.finditer(r"\bFMA(?=\()", blank))


def _conditions(blank: str) -> Iterator[Change]:
    """Each `if` made to hold always, and never."""
    for found in re.finditer(r"\bif \(", blank):
        end = _closing(blank, found.end())
        for other, name in (("true", "always"), ("false", "never")):
            yield Change(found.start(), end, f"if ({other})", f"{_short(blank[found.start() : end])}: {name}")


def _lost(blank: str) -> Iterator[Change]:
    """Leave out each statement that changes something, or waits."""
    for found in re.finditer(r"[^;{}\\]+(?=;)", _of_statements(blank)):
        statement = _bare(blank[found.start() : found.end()])
        if STATEMENT.match(statement) and not DECLARED.match(statement):
            yield Change(found.end() - len(statement), found.end(), "", f"lost: {_short(statement)}")


def _bare(statement: str) -> str:
    """Without the blanks, the `if`, the `for` or the `else` in front."""
    statement = statement.lstrip()
    header = HEADER.match(statement)
    if header is None:
        return statement
    end = header.end() if "else" in header[0] else _closing(statement, header.end())
    return _bare(statement[end:]) if statement[end:].strip() else statement


def _of_statements(blank: str) -> str:
    """The text with a `;` behind statements alone: none in the head of a loop, or in a macro's first line."""
    plain = re.sub(r"^#.*$", lambda m: " " * len(m[0]), blank, flags=re.MULTILINE)
    return re.sub(r"\bfor \([^{}]*?;[^{}]*?;", lambda m: m[0].replace(";", ","), plain)


def _closing(text: str, at: int) -> int:
    """The place behind the bracket that closes the one before `at`."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def _around(blank: str, change: Change) -> str:
    """The expression that holds a change, as far as the brackets, signs and commas next to it."""
    ends = ";{},?:#" + ("" if "&&" in change.called or "||" in change.called else "&|")
    start, end = _end(blank, change.start - 1, -1, ends), _end(blank, change.end, 1, ends)
    if end - start < LITTLE and blank[start] in "([":
        return _around(blank, change._replace(start=start, end=end + 1))
    return _short(_bare(blank[start + 1 : end]))


def _end(text: str, at: int, way: int, ends: str) -> int:
    """The first place from `at` on that is beyond an expression."""
    depth, opening = 0, "([" if way > 0 else ")]"
    while 0 <= at < len(text):
        depth += (text[at] in opening) - (text[at] in "()[]" and text[at] not in opening)
        double = text[at] in "&|" and text[at] not in (text[at - 1 : at] + text[at + 1 : at + 2])
        if depth < 0 or (depth == 0 and text[at] in ends and not double):
            break
        at += way
    return at


def _short(text: str) -> str:
    """On one line, and not too long."""
    text = " ".join(text.replace("\\\n", " ").split())
    return text if len(text) <= 80 else f"{text[:77]}..."
