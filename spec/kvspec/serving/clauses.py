"""The clauses of SERVE, read from `serve.md`: what each says, and its worked examples.

A clause stands as in the other chapters, but its brackets say what an engine must be able to do. An example is a
table. Its columns are a step of a history, the request's tokens, and what the last query of the answer sees. New
tokens are letters, and a mark says that a token follows another one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from kvspec.errors import BadInput
from kvspec.reading.numbered import numbered
from kvspec.serving.history import History, Step, history

NEEDS = ("any", "concurrent", "cancel", "samples", "salt", "adapters", "vectors")

_CLAUSE = re.compile(
    r"^\*\*(?P<id>SERVE-[1-9]\d*)\*\* \((?P<needs>\w+)\)\. (?P<text>.+?)(?=\n\n|\Z)(?P<rest>.*)", re.M | re.S
)
_EXAMPLE = re.compile(
    r"^Example (?P<id>SERVE-\d+\.\d+)(?:, window=(?P<window>\d+))?\n\n(?P<table>(?:\|.*\n?)+)", re.M
)
COLUMNS = ("do", "tokens", "sees")


@dataclass(frozen=True)
class Row:
    """One step of an example: its request's tokens and what the last query of its answer sees, as letters. Both are
    empty where nothing is said."""

    step: Step
    tokens: str
    sees: str


@dataclass(frozen=True)
class Example:
    """A worked example. Where it has a `window`, `sees` is of a layer with this one."""

    id: str
    window: int
    rows: tuple[Row, ...]

    @property
    def history(self) -> History:
        """All steps."""
        return tuple(row.step for row in self.rows)


@dataclass(frozen=True)
class Clause:
    """One rule, its reason, and its examples; `needs` is what an engine must be able to do."""

    id: str
    needs: str
    text: str
    reason: str
    examples: tuple[Example, ...]


def chapter_text() -> str:
    """Read the chapter."""
    return resources.files("kvspec").joinpath("serving", "serve.md").read_text(encoding="utf-8")


@cache
def index() -> dict[str, Clause]:
    """Give all clauses by id, in their order. Raises BadInput that names what cannot be read."""
    return {clause.id: clause for clause in read(chapter_text())}


def digest() -> str:
    """Hash the rules and their examples; reasons are left out."""
    rules = [(c.id, c.needs, c.text, c.examples) for c in index().values()]
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:16]


def read(text: str) -> list[Clause]:
    """Read clauses. Raises BadInput."""
    return numbered(text, "SERVE", _clause)


def _clause(block: str) -> Clause:
    found = _CLAUSE.match(block)
    if not found or found["needs"] not in NEEDS:
        raise BadInput(f"serve.md: not a clause: {block.partition(chr(10))[0]!r}; needs are {', '.join(NEEDS)}")
    rest = found["rest"]
    reasons = [_plain(p.strip()[6:]) for p in rest.split("\n\n") if p.strip().startswith("*Why:*")]
    examples = tuple(_examples(found["id"], rest))
    if not examples:
        raise BadInput(f"serve.md: {found['id']} needs a worked example of its own")
    return Clause(found["id"], found["needs"], _plain(found["text"]), "\n\n".join(reasons), examples)


def _examples(clause: str, rest: str) -> Iterator[Example]:
    for number, found in enumerate(_EXAMPLE.finditer(rest), 1):
        if found["id"] != f"{clause}.{number}":
            raise BadInput(f"serve.md: {found['id']} stands where {clause}.{number} is expected")
        head, _, *lines = (_cells(line) for line in found["table"].strip().splitlines())
        if tuple(head) != COLUMNS[: len(head)] or len(head) < 2 or any(len(line) != len(head) for line in lines):
            raise BadInput(f"serve.md: {found['id']}: the columns are {', '.join(COLUMNS)}, and each row has all")
        steps = history("; ".join(line[0] for line in lines))
        rows = tuple(
            Row(step, line[1], line[2] if len(head) > 2 else "") for step, line in zip(steps, lines, strict=True)
        )
        yield Example(found["id"], int(found["window"] or 0), rows)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _plain(text: str) -> str:
    return " ".join(text.split())
