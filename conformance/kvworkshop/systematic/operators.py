"""Systematic faults: every comparison, offset, index, constant, condition and rounding made wrong, every line lost.

`COARSE` operators are for any module. `FINE` ones make many more faults. Some of these need an argument each. What
no cache does is left out: citations with all that only decides on them, assertions, which speak to the reader, and
annotations.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}
"""Operators, each with the one that takes its place."""

SWAPPED_FINE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Div: ast.Mult,
}
"""More of them."""

OPPOSITE = {"min": "max", "max": "min"}
"""Functions, each with the one that takes its place."""

OPPOSITE_FINE = {"np.minimum": "np.maximum", "np.maximum": "np.minimum", "any": "all", "all": "any"}
"""More of them."""

ROUNDING = ("_f32", "astype")
"""Functions and methods that round."""

LINES = (ast.Assign, ast.AugAssign, ast.Raise, ast.Return)
"""The statements of a line that do something, beside calls for their effect."""

WITHIN = (ast.FunctionDef, ast.If)
"""Whose lines are lost."""

LINES_FINE, WITHIN_FINE = (*LINES, ast.Break, ast.Continue), (*WITHIN, ast.For, ast.While, ast.With)
"""More of them."""


class Change(NamedTuple):
    """One way of making a node wrong."""

    what: str
    line: int
    make: Callable[[], None]


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
    fine: bool
    """Whether by all operators."""

    @property
    def text(self) -> str:
        """The module's text with the fault in it."""
        tree = ast.parse(self.source)
        node = list(ast.walk(tree))[self.node]
        list(_changes(node, self.fine))[self.change].make()
        return ast.unparse(ast.fix_missing_locations(tree))


def faults(source: str, fine: bool = False) -> Iterator[Fault]:
    """Every fault of a module's text, one at a time, by the coarse operators or by all."""
    tree = ast.parse(source)
    owners, silent = _owners(tree), _silent(tree)
    named = {f: frozenset(re.findall(r"[A-Z]+-\d+", ast.unparse(f))) for f in set(owners.values())}
    for i, node in enumerate(ast.walk(tree)):
        function = owners.get(getattr(node, "lineno", 0))
        if function is None or node in silent:
            continue
        for j, change in enumerate(_changes(node, fine)):
            yield Fault(source, change.line, change.what, function.name, named[function], i, j, fine)


def _owners(tree: ast.AST) -> dict[int, ast.FunctionDef]:
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    return {n: f for f in functions for n in range(f.lineno, (f.end_lineno or f.lineno) + 1)}


def _silent(tree: ast.AST) -> set[ast.AST]:
    """All nodes of what no cache does."""
    tops = [n for n in ast.walk(tree) if _says_nothing(n)]
    tops += [a for n in ast.walk(tree) for a in (getattr(n, "annotation", None), getattr(n, "returns", None)) if a]
    return {part for top in tops for part in ast.walk(top)}


def _says_nothing(node: ast.AST) -> bool:
    """Whether all that a statement, or a function, does is to cite, or to assert."""
    if isinstance(node, ast.FunctionDef):
        return _citing(node.name)
    if isinstance(node, ast.If | ast.For | ast.With):
        return all(_says_nothing(s) for s in (*node.body, *getattr(node, "orelse", ())))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _citing(_called(node.value))
    return isinstance(node, ast.Assert)


def _citing(name: str) -> bool:
    return name.lstrip("_").startswith("cite")


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


Made = Iterator[tuple[str, Callable[[], None]]]
"""What is wrong, and a function that makes it so."""


def _changes(node: ast.AST, fine: bool) -> Iterator[Change]:
    """Every way of making a node itself wrong, in an order that is always the same."""
    line = getattr(node, "lineno", 0)
    for make in (*COARSE, *(FINE if fine else ())):
        for what, change in make(node):
            yield Change(what, line, change)
    yield from _lost(node, WITHIN_FINE, LINES_FINE) if fine else _lost(node, WITHIN, LINES)


def _operators(node: ast.AST, swapped: Mapping[type[ast.AST], type[ast.AST]] = SWAPPED) -> Made:
    text = ast.unparse(node) if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp) else ""
    if isinstance(node, ast.Compare):
        for j, op in enumerate(node.ops):
            if type(op) in swapped:
                yield f"{text}: {type(op).__name__} swapped", _put(node.ops, j, swapped[type(op)]())
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in swapped:
        what = "operator" if isinstance(node, ast.BinOp) else "and/or"
        yield f"{text}: {what} swapped", _set(node, "op", swapped[type(node.op)]())


def _finer_operators(node: ast.AST) -> Made:
    yield from _operators(node, SWAPPED_FINE)
    if isinstance(node, ast.AugAssign) and type(node.op) in SWAPPED:
        yield f"{ast.unparse(node)}: operator swapped", _set(node, "op", SWAPPED[type(node.op)]())


def _constants(node: ast.AST) -> Made:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        other = not node.value if isinstance(node.value, bool) else node.value + 1
        yield f"{node.value} became {other}", _set(node, "value", other)


def _opposites(node: ast.AST, opposite: Mapping[str, str] = OPPOSITE) -> Made:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if called in opposite:
        other = ast.parse(opposite[called], mode="eval").body
        yield f"{ast.unparse(node)}: {opposite[called]}", _set(node, "func", other)


def _finer_opposites(node: ast.AST) -> Made:
    yield from _opposites(node, OPPOSITE_FINE)


def _conditions(node: ast.AST) -> Made:
    if isinstance(node, ast.If):
        yield f"if {ast.unparse(node.test)}: never", _set(node, "test", ast.Constant(False))
        yield f"if {ast.unparse(node.test)}: always", _set(node, "test", ast.Constant(True))


def _finer_conditions(node: ast.AST) -> Made:
    if isinstance(node, ast.IfExp):
        yield f"{ast.unparse(node)}: never", _set(node, "test", ast.Constant(False))
        yield f"{ast.unparse(node)}: always", _set(node, "test", ast.Constant(True))


def _places(node: ast.AST) -> Made:
    """Indices and slices moved by one."""
    if isinstance(node, ast.Slice):
        for name, bound in (("lower", node.lower), ("upper", node.upper)):
            for sign, op in (("+", ast.Add()), ("-", ast.Sub())):
                if bound is not None and not isinstance(bound, ast.Constant):
                    moved = ast.BinOp(bound, op, ast.Constant(1))
                    yield f"[{ast.unparse(node)}]: {name} {sign} 1", _set(node, name, moved)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name | ast.Attribute | ast.BinOp):
        moved = ast.BinOp(node.slice, ast.Add(), ast.Constant(1))
        yield f"{ast.unparse(node)}: index + 1", _set(node, "slice", moved)


def _left_out(node: ast.AST) -> Made:
    """A sign, a negation or a rounding of what is within a node."""
    for name, inner in ast.iter_fields(node):
        for j, one in enumerate(inner if isinstance(inner, list) else [inner]):
            what, rest = _without(one)
            if rest is not None:
                yield what, _put(inner, j, rest) if isinstance(inner, list) else _set(node, name, rest)


def _without(node: object) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.UnaryOp):
        return f"{ast.unparse(node)}: {type(node.op).__name__} lost", node.operand
    if isinstance(node, ast.Call) and _called(node) in ROUNDING:
        rounded = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
        return f"{ast.unparse(node)}: not rounded", rounded
    return "", None


def _lost(node: ast.AST, within: tuple[type[ast.AST], ...], kinds: tuple[type[ast.AST], ...]) -> Iterator[Change]:
    for name in ("body", "orelse") if isinstance(node, within) else ():
        lines = getattr(node, name, [])
        for j, line in enumerate(lines):
            if isinstance(line, kinds) or _acts(line):
                yield Change(f"lost: {ast.unparse(line)}", line.lineno, _put(lines, j, ast.Pass()))


COARSE = (_operators, _constants, _opposites, _conditions)
FINE = (_finer_operators, _finer_opposites, _finer_conditions, _places, _left_out)


def _acts(line: ast.stmt) -> bool:
    """A call for its effect, that is not a citation."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and not _says_nothing(line)


def _set(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _put(among: list[Any], j: int, value: ast.AST) -> Callable[[], None]:
    return lambda: among.__setitem__(j, value)
