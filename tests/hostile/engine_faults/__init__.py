"""Faults of serving engines, planted in the example engine: each is another text in a method or two of it.

`with fault.planted():` the engine has it. `FAULTS` are the rows of the tables beside this file, by their ids, such
as `prefix/no-parent`."""

from __future__ import annotations
import __future__

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from kvconform.bugs.planting import retold
from serving_engine import blocks as memory
from serving_engine import engine, model, prefix_cache, scheduler, speculation, tables

OWNERS: Mapping[str, type] = {
    owner.__name__: owner
    for owner in (
        *(engine.Engine, model.Model, model.Piece, prefix_cache.PrefixCache, scheduler.Scheduler, scheduler.Work),
        *(speculation.Speculation, tables.Tables, memory.Group, memory.Pool, memory.Rows, memory.Int8Rows),
    )
}
"""The classes whose methods have faults."""


@dataclass(frozen=True)
class Change:
    """Another text in one method: `now` in place of `was`, which stands there once."""

    of: str
    was: str
    now: str

    def method(self) -> FunctionType:
        """Give the method as a function."""
        owner, _, name = self.of.partition(".")
        found = vars(OWNERS[owner])[name]
        return found.fget if isinstance(found, property) else found

    def code(self, title: str) -> CodeType:
        """Compile the method with the other text."""
        method = self.method()
        text = textwrap.dedent(retold(title, method, self.was, self.now))
        flags = __future__.annotations.compiler_flag
        names = dict(method.__globals__)
        exec(compile(text, f"<{self.of}, {title}>", "exec", flags=flags, dont_inherit=True), names)
        made = names[method.__name__]
        code: CodeType = (made.fget if isinstance(made, property) else made).__code__
        return code


@dataclass(frozen=True)
class Fault:
    """One fault. `source` is an entry of the catalogue of real bugs, a report, or empty; `clauses` are those of
    SERVE that its trigger belongs to, so that a failure is rightly blamed on each of them. `log` is the clause of
    STEP that the log of its steps breaks; empty, if the scheduler decides rightly and something else is wrong."""

    id: str
    says: str
    trigger: str
    source: str
    changes: tuple[Change, ...]
    clauses: tuple[str, ...] = ()
    log: str = ""

    @property
    def sort(self) -> str:
        """The class: the table that it stands in."""
        return self.id.partition("/")[0]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Let all engines of this process have the fault."""
        methods = [change.method() for change in self.changes]
        kept, wrong = [m.__code__ for m in methods], [change.code(self.id) for change in self.changes]
        try:
            for method, code in zip(methods, wrong, strict=True):
                method.__code__ = code
            yield
        finally:
            for method, code in zip(methods, kept, strict=True):
                method.__code__ = code


def _fault(id_: str, row: dict[str, Any]) -> Fault:
    rows = [{name: row[name] for name in ("of", "was", "now")}, *row.get("also", ())]
    return Fault(
        id_,
        row["says"],
        row["trigger"],
        row["source"],
        tuple(Change(**change) for change in rows),
        tuple(row["clause"]),
        row.get("log", ""),
    )


def _read() -> Iterator[Fault]:
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            yield _fault(f"{path.stem}/{name}", row)


FAULTS = {fault.id: fault for fault in _read()}
