"""The operators make the faults that they say, one at a time, and leave alone what no cache does."""

from __future__ import annotations

import ast
from difflib import ndiff

import pytest

from kvworkshop.systematic import operators

MODULE = '''
LIMIT = 2 + 3

def f(a, b=2):
    """Two of 3."""
    cite("X-1" if a > 1 else "X-2", *("X-3" for _ in range(4)))
    assert a < 9 and b < 9
    if a == 5:
        cite("X-4")
    if a < b:
        return min(a, b)
    total = a + b % 3
    note(total)
    return total

def _cite_more(a):
    if a > 3:
        cite("X-5")
        note(a)

def g(a, found=True):
    _cite_more(a)
    return found and a // LIMIT != 0
'''

FAULTS = {
    "f": {
        "2 became 3": "def f(a, b=3):",
        "a < b: Lt swapped": "if a <= b:",
        "if a < b: never": "if False:",
        "if a < b: always": "if True:",
        "lost: return min(a, b)": "pass",
        "min(a, b): max": "return max(a, b)",
        "lost: total = a + b % 3": "pass",
        "a + b % 3: operator swapped": "total = a - b % 3",
        "b % 3: operator swapped": "total = a + (b + 3)",
        "3 became 4": "total = a + b % 4",
        "lost: note(total)": "pass",
        "lost: return total": "pass",
    },
    "g": {
        "True became False": "def g(a, found=False):",
        "lost: return found and a // LIMIT != 0": "pass",
        "found and a // LIMIT != 0: and/or swapped": "return found or a // LIMIT != 0",
        "a // LIMIT != 0: NotEq swapped": "return found and a // LIMIT == 0",
        "a // LIMIT: operator swapped": "return found and a * LIMIT != 0",
        "0 became 1": "return found and a // LIMIT != 1",
    },
}
"""Of each function, every fault that there is, and the line as it then stands."""


FINE = """
def f(rows, of, n, stop=None):
    for row in rows:
        if row is of:
            continue
        n += 1
        note(row)
    if not any(r > n for r in rows if r):
        return rows[n - 1].astype(of)
    return rows[n:stop] if n else np.maximum(-n, 2)
"""

FINE_FAULTS = {
    "row is of: Is swapped": "if row is not of:",
    "lost: continue": "pass",
    "lost: n += 1": "pass",
    "n += 1: operator swapped": "n -= 1",
    "lost: note(row)": "pass",
    "lost: return rows[n - 1].astype(of)": "pass",
    "not any((r > n for r in rows if r)): Not lost": "if any((r > n for r in rows if r)):",
    "any((r > n for r in rows if r)): all": "if not all((r > n for r in rows if r)):",
    "rows[n - 1]: index + 1": "return rows[n - 1 + 1].astype(of)",
    "rows[n - 1].astype(of): not rounded": "return rows[n - 1]",
    "[n:stop]: lower + 1": "return rows[n + 1:stop] if n else np.maximum(-n, 2)",
    "[n:stop]: lower - 1": "return rows[n - 1:stop] if n else np.maximum(-n, 2)",
    "[n:stop]: upper + 1": "return rows[n:stop + 1] if n else np.maximum(-n, 2)",
    "[n:stop]: upper - 1": "return rows[n:stop - 1] if n else np.maximum(-n, 2)",
    "rows[n:stop] if n else np.maximum(-n, 2): never": "return rows[n:stop] if False else np.maximum(-n, 2)",
    "rows[n:stop] if n else np.maximum(-n, 2): always": "return rows[n:stop] if True else np.maximum(-n, 2)",
    "np.maximum(-n, 2): np.minimum": "return rows[n:stop] if n else np.minimum(-n, 2)",
    "-n: USub lost": "return rows[n:stop] if n else np.maximum(n, 2)",
}
"""What the fine operators make beside what the coarse ones do, of another module."""


def changed(text: str, module: str = MODULE) -> list[str]:
    """The lines that are not those of a module as it was."""
    lines = ndiff(ast.unparse(ast.parse(module)).splitlines(), text.splitlines())
    return [line[2:].strip() for line in lines if line.startswith("+ ")]


@pytest.mark.parametrize("function", FAULTS)
def test_every_fault_of_a_function_is_made_and_changes_one_line_as_it_says(function: str) -> None:
    made = {f.what: changed(f.text) for f in operators.faults(MODULE) if f.function == function}
    assert made == {what: [line] for what, line in FAULTS[function].items()}


def test_the_fine_operators_make_these_beside_the_coarse_ones() -> None:
    coarse = {f.what for f in operators.faults(FINE)}
    made = {f.what: changed(f.text, FINE) for f in operators.faults(FINE, fine=True)}
    assert coarse <= made.keys()
    assert {w: m for w, m in made.items() if w not in coarse} == {
        what: [line] for what, line in FINE_FAULTS.items() if what not in coarse
    }
    assert "lost: return rows[n - 1].astype(of)" in coarse and "lost: continue" not in coarse


@pytest.mark.parametrize("fine", [False, True])
def test_what_is_cited_or_asserted_or_outside_of_functions_has_no_faults(fine: bool) -> None:
    found = list(operators.faults(MODULE, fine))
    assert {f.function for f in found} == {"f", "g"}
    assert {f.line for f in found} == {4, 10, 11, 12, 13, 14, 21, 23}


def test_an_annotation_has_no_faults() -> None:
    noted = "def f(a: Sequence[B] | None) -> tuple[C, int]:\n    b: Sequence[B] = a\n"
    assert list(operators.faults(noted, fine=True)) == []


def test_a_fault_knows_the_clauses_of_its_function() -> None:
    clauses = {f.function: f.clauses for f in operators.faults(MODULE)}
    assert clauses == {"f": {"X-1", "X-2", "X-3", "X-4"}, "g": frozenset()}


def test_what_else_is_done_beside_a_citation_has_faults() -> None:
    both = "def f(a):\n    if a > 3:\n        cite('X-5')\n        note(a)\n"
    assert {f.what for f in operators.faults(both)} == {
        "lost: note(a)",
        "if a > 3: never",
        "if a > 3: always",
        "a > 3: Gt swapped",
        "3 became 4",
    }


def test_faults_that_are_alike_are_told_apart() -> None:
    twice = "def f(a):\n    return (a + 1, a + 1)\n"
    assert [changed(f.text, twice) for f in operators.faults(twice) if "operator" in f.what] == [
        ["return (a - 1, a + 1)"],
        ["return (a + 1, a - 1)"],
    ]
