"""Faults of serving engines, planted in the example engine: each is another text in a method or two of it.

`with fault.planted():` the engine has it. `FAULTS` are the rows of the tables beside this file, by their ids, such
as `prefix/no-parent`; `CONTROLS` those of `right/`, in which nothing is wrong."""

from __future__ import annotations
import __future__

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from kvconform.bugs.planting import retold
from serving_engine import blocks as memory
from serving_engine import engine, host, model, prefix_cache, scheduler, sequence, speculation, tables

OWNERS: Mapping[str, type] = {
    owner.__name__: owner
    for owner in (
        *(engine.Engine, model.Model, model.Piece, prefix_cache.PrefixCache, scheduler.Scheduler, scheduler.Work),
        *(speculation.Speculation, tables.Tables, host.Host, sequence.Sequence),
        *(memory.Group, memory.Pool, memory.Rows, memory.Int8Rows),
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


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The engine with other texts in some methods, or with other settings."""

    id: str
    says: str
    changes: tuple[Change, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the engine must be set to, beside what a judge chooses."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Let all engines of this process have the other texts."""
        methods = [change.method() for change in self.changes]
        kept, other = [m.__code__ for m in methods], [change.code(self.id) for change in self.changes]
        try:
            for method, code in zip(methods, other, strict=True):
                method.__code__ = code
            yield
        finally:
            for method, code in zip(methods, kept, strict=True):
                method.__code__ = code


@dataclass(frozen=True, kw_only=True)
class Fault(Variant):
    """One fault. `source` is an entry of the catalogue of real bugs, a report, or empty; `clauses` are those of
    SERVE that its trigger belongs to, so that a failure is rightly blamed on each of them. `log` is the clause of
    STEP that the log of its steps breaks; empty, if the scheduler decides rightly and something else is wrong."""

    trigger: str = ""
    source: str = ""
    clauses: tuple[str, ...] = ()
    log: str = ""

    @property
    def sort(self) -> str:
        """The class: the table that it stands in."""
        return self.id.partition("/")[0]


def _variant(id_: str, row: Mapping[str, Any]) -> dict[str, Any]:
    first = [{name: row[name] for name in ("of", "was", "now")}] if "of" in row else []
    changes = tuple(Change(**change) for change in [*first, *row.get("also", ())])
    return {"id": id_, "says": row["says"], "changes": changes, "settings": row.get("settings", {})}


def _fault(id_: str, row: Mapping[str, Any]) -> Fault:
    told = {"trigger": row["trigger"], "source": row["source"], "clauses": tuple(row["clause"])}
    return Fault(**_variant(id_, row), **told, log=row.get("log", ""))


def _rows(pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(Path(__file__).parent.glob(pattern)):
        for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            yield f"{path.stem}/{name}", row


FAULTS = {id_: _fault(id_, row) for id_, row in _rows("*.toml")}
CONTROLS = {id_: Variant(**_variant(id_, row)) for id_, row in _rows("right/*.toml")}
"""Engines that do other things than this one, and nothing wrong."""
