"""The operators make the faults that they say, one at a time, and leave alone what no cache does."""

from __future__ import annotations

import ast
from difflib import ndiff

import pytest

from kvconform.mutants import operators

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


def changed(text: str) -> list[str]:
    """The lines that are not those of the module as it was."""
    lines = (d for d in ndiff(ast.unparse(ast.parse(MODULE)).splitlines(), text.splitlines()))
    return [line[2:].strip() for line in lines if line.startswith("+ ")]


@pytest.mark.parametrize("function", FAULTS)
def test_every_fault_of_a_function_is_made_and_changes_one_line_as_it_says(function: str) -> None:
    made = {f.what: changed(f.text) for f in operators.faults(MODULE) if f.function == function}
    assert made == {what: [line] for what, line in FAULTS[function].items()}


def test_what_is_cited_or_asserted_or_outside_of_functions_has_no_faults() -> None:
    found = list(operators.faults(MODULE))
    assert {f.function for f in found} == {"f", "g"}
    assert {f.line for f in found} == {4, 10, 11, 12, 13, 14, 21, 23}


def test_a_fault_knows_the_clauses_of_its_function() -> None:
    clauses = {f.function: f.clauses for f in operators.faults(MODULE)}
    assert clauses == {"f": {"X-1", "X-2", "X-3", "X-4"}, "g": frozenset()}


def test_what_else_is_done_beside_a_citation_has_faults() -> None:
    both = "def f(a):\n    if a > 3:\n        cite('X-5')\n        note(a)\n"
    assert [f.what for f in operators.faults(both)] == [
        "lost: note(a)",
        "if a > 3: never",
        "if a > 3: always",
        "a > 3: Gt swapped",
        "3 became 4",
    ] or {f.what for f in operators.faults(both)} == {
        "lost: note(a)",
        "if a > 3: never",
        "if a > 3: always",
        "a > 3: Gt swapped",
        "3 became 4",
    }


def test_faults_that_are_alike_are_told_apart() -> None:
    twice = "def f(a):\n    return a + 1, a + 1\n"
    assert [changed_from(twice, f.text) for f in operators.faults(twice) if "operator" in f.what] == [
        ["return (a - 1, a + 1)"],
        ["return (a + 1, a - 1)"],
    ]


def changed_from(before: str, after: str) -> list[str]:
    """The lines of one text that another has not."""
    known = ast.unparse(ast.parse(before)).splitlines()
    return [line.strip() for line in after.splitlines() if line not in known]
