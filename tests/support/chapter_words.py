"""Where code names a chapter or a kind in its own words, so that a new one would have to be added there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from kvspec.chapters import CHAPTERS
from kvspec.operations.table import OPERATIONS
from kvspec.registry import TENSORS, VALUES

OTHER = {*OPERATIONS, *VALUES, *TENSORS, *(a.name for o in OPERATIONS.values() for a in o.arguments)}
"""Words that are also operations, arguments or observations."""

PLAIN = tuple(name for name in CHAPTERS if name not in OTHER)
"""Chapters whose names are nothing else."""


def named(file: Path) -> Iterator[tuple[int, str]]:
    """Lines and words, where a file names a chapter or a kind."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in PLAIN:
            yield node.lineno, node.value
        for word in _compared(node):
            yield node.lineno, word


def _compared(node: ast.AST) -> Iterator[str]:
    """Names that a claim or a kind is looked up by: `"mask" in adapter.chapters`, `kind == "copy"`."""
    if isinstance(node, ast.Subscript):
        sides = [node.value, node.slice]
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    else:
        return
    if {"chapters", "kind", "kinds"} & set(map(_name, sides)):
        yield from (name for side in sides for name in _constants(side) if name in CHAPTERS)


def _name(side: ast.expr) -> str:
    """What a side of a comparison is called: chapters, of `adapter.chapters`."""
    side = side.value if isinstance(side, ast.Subscript) else side
    return side.attr if isinstance(side, ast.Attribute) else side.id if isinstance(side, ast.Name) else ""


def _constants(side: ast.expr) -> Iterator[str]:
    """The words that are a side of a comparison, alone or several."""
    alone = side.elts if isinstance(side, (ast.Tuple, ast.Set, ast.List)) else [side]
    yield from (e.value for e in alone if isinstance(e, ast.Constant) and isinstance(e.value, str))


def own(file: Path) -> bool:
    """Whether a file is a chapter's own: one of the words of its name is a chapter."""
    return bool(set(file.stem.split("_")) & set(CHAPTERS))
