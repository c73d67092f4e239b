"""Refusals: code calls those that there are, with the values that their words tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kvspec import refusals
from kvspec.refusals import Text, common, page  # noqa: F401 - these have functions too
from kvspec.tables import table
from tools.floors import PACKAGES

ROOT = Path(__file__).parents[2]

TEXTS = {file.stem: getattr(refusals, file.stem) for file in Path(refusals.__file__).parent.glob("*.toml")}
"""Where code finds refusals, by the name of their table."""


def called(file: Path) -> Iterator[tuple[str, str, list[ast.expr]]]:
    """Module, name and arguments of the refusals that a file calls."""
    text = file.read_text(encoding="utf-8")
    if "kvspec.refusals" not in text:
        return
    tree = ast.parse(text)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "kvspec.refusals"]
    modules = {a.asname or a.name: a.name for n in imports for a in n.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            if isinstance(of, ast.Name) and of.id in modules:
                yield modules[of.id], node.func.attr, node.args


@cache
def calls() -> list[tuple[Path, str, str, list[ast.expr]]]:
    """Every call of a refusal, and its file."""
    return [(f, *call) for p in PACKAGES for f in sorted((ROOT / p).rglob("*.py")) for call in called(f)]


def test_every_call_names_a_refusal_and_hands_over_its_values() -> None:
    assert len(calls()) > 150
    for file, module, name, arguments in calls():
        refusal = getattr(TEXTS[module], name)
        if isinstance(refusal, Text) and not any(isinstance(a, ast.Starred) for a in arguments):
            assert len(arguments) == 1 + len(refusal.names), (file, name)


@pytest.mark.parametrize("module", TEXTS)
def test_a_refusal_tells_every_value_and_is_called_somewhere(module: str) -> None:
    names = {name for _, of, name, _ in calls() if of == module}
    found = {call.partition("(")[0] for call in table("kvspec.refusals", module)}
    for name in found:
        text = getattr(TEXTS[module], name)
        assert all(f"{{{value}" in text.words for value in text.names), name
    assert found - names == set()


def test_a_refusal_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"common.toml has no refusal rewound"):
        _ = common.rewound
