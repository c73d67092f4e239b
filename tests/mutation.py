"""Systematic faults: every comparison, offset, constant, min and max of a module made wrong, or a line lost."""

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
class Mutant:
    """A module with one fault."""

    line: int
    what: str
    function: str
    clauses: frozenset[str]
    """Clauses named in the function that holds the fault."""
    text: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module's text."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    owners = _owners(tree)
    for i, node in enumerate(nodes):
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            change(list(ast.walk(changed))[i])
            line = getattr(node, "lineno", 0)
            function = owners.get(line)
            if function is None:
                continue
            clauses = frozenset(re.findall(r"[A-Z]+-\d+", ast.unparse(function)))
            yield Mutant(line, what, function.name, clauses, ast.unparse(ast.fix_missing_locations(changed)))


def _owners(tree: ast.AST) -> dict[int, ast.FunctionDef]:
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    return {n: f for f in functions for n in range(f.lineno, (f.end_lineno or f.lineno) + 1)}


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
    for field in ("body", "orelse"):
        statements = getattr(node, field, None)
        if isinstance(node, ast.FunctionDef | ast.If) and isinstance(statements, list):
            for j, statement in enumerate(statements):
                if isinstance(statement, STATEMENTS) or _matters(statement):
                    yield f"lost: {ast.unparse(statement)}", _set_in(field, j, ast.Pass())


def _matters(statement: ast.stmt) -> bool:
    """A call for its effect, that is not a citation or a docstring."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and not ast.unparse(call).startswith(("cite(", "_cite"))


def _set(field: str, value: object) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, field, value)


def _set_in(field: str, index: int, value: object) -> Callable[[ast.AST], None]:
    def change(node: ast.AST) -> None:
        getattr(node, field)[index] = value

    return change
