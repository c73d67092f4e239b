"""Systematic faults: every comparison, offset, constant, min and max of a module made wrong, or a line lost.

Left out is what no cache does: citations, with all that decides on them alone, and assertions, which tell the
reader what is so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SWAPPED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
SWAPPED_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}
STATEMENTS = (ast.Assign, ast.AugAssign, ast.Raise, ast.Return)


@dataclass(frozen=True)
class Fault:
    """One fault of a module: which node of its tree is changed, and how."""

    source: str = field(repr=False)
    line: int
    what: str
    function: str
    clauses: frozenset[str]
    """Clauses named in the function that holds the fault."""
    node: int
    """The node's number, as `ast.walk` meets it."""
    change: int
    """Which of the changes to this node."""

    @property
    def text(self) -> str:
        """The module's text with the fault in it."""
        tree = ast.parse(self.source)
        node = list(ast.walk(tree))[self.node]
        _, change = list(_changes(node))[self.change]
        change(node)
        return ast.unparse(ast.fix_missing_locations(tree))


def faults(source: str) -> Iterator[Fault]:
    """Every fault of a module's text, one at a time."""
    tree = ast.parse(source)
    owners = _owners(tree)
    silent = _silent(tree)
    named: dict[str, frozenset[str]] = {}
    for i, node in enumerate(ast.walk(tree)):
        function = owners.get(getattr(node, "lineno", 0))
        if function is None or node in silent:
            continue
        for j, (what, _) in enumerate(_changes(node)):
            clauses = named.setdefault(function.name, frozenset(re.findall(r"[A-Z]+-\d+", ast.unparse(function))))
            yield Fault(source, node.lineno, what, function.name, clauses, i, j)  # type: ignore[attr-defined]


def _owners(tree: ast.AST) -> dict[int, ast.FunctionDef]:
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    return {n: f for f in functions for n in range(f.lineno, (f.end_lineno or f.lineno) + 1)}


def _silent(tree: ast.AST) -> set[ast.AST]:
    """All nodes of what no cache does."""
    return {part for node in ast.walk(tree) if _says_nothing(node) for part in ast.walk(node)}


def _says_nothing(node: ast.AST) -> bool:
    """Whether all that a statement, or a function, does is to cite, or to assert."""
    if isinstance(node, ast.FunctionDef):
        return _citing(node.name)
    if isinstance(node, ast.If | ast.For | ast.With):
        return all(_says_nothing(s) for s in (*node.body, *getattr(node, "orelse", ())))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _citing(ast.unparse(node.value.func).rpartition(".")[2])
    return isinstance(node, ast.Assert)


def _citing(name: str) -> bool:
    return name == "cite" or name.startswith("_cite")


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    if isinstance(node, ast.Compare):
        for j, op in enumerate(node.ops):
            if type(op) in SWAPPED:
                yield f"{ast.unparse(node)}: {type(op).__name__} swapped", _set_in("ops", j, SWAPPED[type(op)]())
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED_ARITHMETIC:
        yield f"{ast.unparse(node)}: operator swapped", _set("op", SWAPPED_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield (
            f"{ast.unparse(node)}: and/or swapped",
            _set("op", ast.Or() if isinstance(node.op, ast.And) else ast.And()),
        )
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield f"{node.value} became {node.value + 1}", _set("value", node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{node.value} became {not node.value}", _set("value", not node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        other = {"min": "max", "max": "min"}[node.func.id]
        yield f"{ast.unparse(node)}: {other}", _set("func", ast.Name(other, ast.Load()))
    elif isinstance(node, ast.If):
        yield f"if {ast.unparse(node.test)}: never", _set("test", ast.Constant(False))
        yield f"if {ast.unparse(node.test)}: always", _set("test", ast.Constant(True))
    for part in ("body", "orelse"):
        statements = getattr(node, part, None)
        if isinstance(node, ast.FunctionDef | ast.If) and isinstance(statements, list):
            for j, statement in enumerate(statements):
                if isinstance(statement, STATEMENTS) or _acts(statement):
                    yield f"lost: {ast.unparse(statement)}", _set_in(part, j, ast.Pass())


def _acts(statement: ast.stmt) -> bool:
    """A call for its effect, that is not a citation."""
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call and not _says_nothing(statement)


def _set(field: str, value: object) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, field, value)


def _set_in(field: str, index: int, value: object) -> Callable[[ast.AST], None]:
    def change(node: ast.AST) -> None:
        getattr(node, field)[index] = value

    return change
