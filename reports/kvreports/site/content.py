"""The content of the site: the command gathers it, the pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kvreports.board.engines import Board
from kvreports.run.overview import adapter_name, engine_version
from kvreports.safe_text import Html
from kvspec.reading.clauses import Clause
from kvspec.records.run import ClauseRecord, Failure, Record, StepRecord


@dataclass(frozen=True)
class Drawn:
    """A worked example as the reference performs it."""

    id: str
    kind: str
    """The kind of cache."""
    sentence: str
    """The trace in the compact notation."""
    steps: Sequence[StepRecord]


@dataclass(frozen=True)
class Bug:
    """A real bug of an engine that breaks a clause; `link` leads to where it was seen."""

    id: str
    says: str
    link: str


@dataclass(frozen=True)
class Change:
    """A day on which the sentence of a clause was written or changed."""

    day: str
    what: str
    subject: str
    """What the commit says."""


@dataclass(frozen=True)
class Verdict:
    """What one published record says of a clause."""

    record: Record
    clause: ClauseRecord
    anchor: str
    """The record's name in an address."""

    @property
    def adapter(self) -> str:
        """The adapter's name."""
        return adapter_name(self.record)

    @property
    def version(self) -> str:
        """Its version."""
        return engine_version(self.record)

    @property
    def failure(self) -> Failure | None:
        """The shortest failure that the clause is blamed for."""
        return next((f for f in self.record.failures if self.clause.id in f.clauses), None)


@dataclass(frozen=True)
class Content:
    """Everything that the site shows."""

    version: str
    """The version of the spec, and the hash of its chapters."""
    digest: str
    clauses: Mapping[str, Clause]
    examples: Mapping[str, Drawn]
    board: Board
    bugs: Mapping[str, Sequence[Bug]] = field(default_factory=dict)
    """Real bugs by the clause that they break."""
    history: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    """By clause; empty without a history of the chapters."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Markdown pages by their path in the repository: `spec/README.md`."""
    pictures: Mapping[str, Html] = field(default_factory=dict)
    """SVG pictures by their path in the repository."""
    address: str = ""
    """Where the site will stand, with a `/` at its end; empty if that is not known."""
    older: str = ""
    """Where sites of older versions are; empty if there are none."""
    preview: bytes = b""
    """The picture that a link to the site shows elsewhere, a PNG; needs `address`."""

    def verdicts(self, clause: str) -> list[Verdict]:
        """What each record says about a clause, in the order of names."""
        return self._verdicts.get(clause, [])

    @cached_property
    def _verdicts(self) -> dict[str, list[Verdict]]:
        found: dict[str, list[Verdict]] = {}
        for number, engine in enumerate(self.board.engines):
            for clause in engine.record.clauses:
                found.setdefault(clause.id, []).append(Verdict(engine.record, clause, self.board.anchors[number]))
        return found
