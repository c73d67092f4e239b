"""What the board shows of each engine, from its record and from the file of known deviations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from kvreports.board.asked import Asked
from kvreports.board.served import Served
from kvreports.board.versions import Compared
from kvreports.clauses import rank
from kvreports.run.overview import adapter_name, engine_version
from kvreports.run.standing import KINDS, counts
from kvspec.chapters import CHAPTERS, GENERAL, TEXTS
from kvspec.records.run import HELD, Failure, Record

ORDINARY = {"level", "with", "without", "grows"}
"""What a claim says beside its dialects."""

ADAPTERS = "the adapter's"
"""The sort of what the adapter alone does: the engine has no such argument, and is not charged with it."""

SORTS = (
    "not filed",
    "wrong result",
    "broken promise",
    "alias",
    "after an error",
    "unchecked",
    "choice",
    ADAPTERS,
)
"""The sorts of deviations, the gravest first."""

NO_BUGS = ("choice", ADAPTERS)
"""Sorts of what is no bug of the engine: it differs on purpose, or has no part in it."""

SEVERAL = {
    "wrong result": "wrong results",
    "broken promise": "broken promises",
    "alias": "aliases",
    "choice": "choices",
    ADAPTERS: "of the adapter",
}
"""The words for several bugs of a sort, where they are others."""

AT_MOST = {"append": "rows an append", "rows": "rows in all", "batch": "sequences", "heads": "heads"}
"""The words for limits that are numbers."""


@dataclass(frozen=True)
class Deviation:
    """A failure of a record, and what is known of it; `script` and `draft` are addresses, or empty.

    Deviations of one `bug` are the same bug. One script shows them, or else one model or outcome. Where none is
    filed, the run took them for one bug. A failure that needs two bugs is a deviation of each."""

    failure: Failure
    sort: str
    reason: str
    link: str = ""
    script: str = ""
    draft: str = ""
    bug: str = ""

    @property
    def gravity(self) -> int:
        """Its place among the sorts; unknown ones come last."""
        return rank(self.sort, SORTS)


@dataclass(frozen=True)
class Bug:
    """What an engine does otherwise, and all the traces of a record that show it, the shortest first."""

    name: str
    shown: tuple[Deviation, ...]

    @property
    def first(self) -> Deviation:
        """The deviation with the shortest trace; all of them have its sort."""
        return self.shown[0]

    @property
    def reason(self) -> str:
        """What the engine does, in each of the ways that its traces show."""
        return "; ".join(dict.fromkeys(d.reason for d in self.shown))

    @property
    def clauses(self) -> list[str]:
        """The clauses that it breaks, those of the shortest trace first."""
        return list(dict.fromkeys(clause for d in self.shown for clause in d.failure.clauses))


@dataclass(frozen=True)
class Engine:
    """The record of one cache of an engine; `address` is that of the record."""

    record: Record
    address: str
    deviations: list[Deviation]
    ours: bool = False
    """Whether it is a cache of this project: those stand in a table of their own."""

    @property
    def name(self) -> str:
        """The adapter's name."""
        return adapter_name(self.record)

    @property
    def version(self) -> str:
        """The version of the engine."""
        return engine_version(self.record)

    @cached_property
    def bugs(self) -> list[Bug]:
        """Its bugs, the gravest first: several clauses may be broken by one."""
        by: dict[tuple[str, str], list[Deviation]] = {}
        for d in sorted(self.deviations, key=lambda d: (d.gravity, len(d.failure.words))):
            by.setdefault((d.sort, d.bug or d.reason), []).append(d)
        return [Bug(name, tuple(shown)) for (_, name), shown in by.items()]

    def of_sort(self, sort: str) -> int:
        """How many bugs of a sort it has."""
        return sum(bug.first.sort == sort for bug in self.bugs)

    @property
    def gravity(self) -> tuple[int, ...]:
        """How many bugs of each sort it has, the gravest sort first."""
        return tuple(self.of_sort(sort) for sort in SORTS)

    @property
    def part(self) -> bool:
        """Whether a run judged a part of what a whole run judges."""
        return "left out" in self.record.selection

    @property
    def claims(self) -> Mapping[str, Mapping[str, Any]]:
        """What it claims of each chapter, in the order of the chapters."""
        claims = self.record.adapter.get("chapters") or {}
        return {chapter: claims[chapter] for chapter in CHAPTERS if chapter in claims}

    @property
    def dialects(self) -> str:
        """Where it differs from the spec's default on purpose, and its limits."""
        declared = [f"{chapter} {name}: {value}" for chapter, name, value in self.declared]
        return ", ".join([*declared, *_limits(self.record.adapter.get("limits") or {})])

    @property
    def declared(self) -> list[tuple[str, str, str]]:
        """Each dialect that it declares: the chapter, the name, the value."""
        said = ((chapter, *item) for chapter, claim in self.claims.items() for item in claim.items())
        return [(chapter, name, str(value)) for chapter, name, value in said if name not in ORDINARY and value != 0]

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Numbers of clauses that are claimed, held, held but partly observed, and broken."""
        verdicts = counts(self.record)
        claimed = sum(verdicts.values()) - verdicts.get("NOT_CLAIMED", 0)
        held = sum(verdicts.get(v, 0) for v in HELD)
        return claimed, held, verdicts.get("PARTLY_OBSERVED", 0), claimed - held - verdicts.get("NOT_RUN", 0)

    @property
    def by_adapter(self) -> int:
        """How many clauses hold in what the adapter answered in the engine's place."""
        return counts(self.record).get("BY_ADAPTER", 0)

    @property
    def chapters(self) -> list[str]:
        """The chapters that it claims; the general one goes with any kind."""
        return [GENERAL, *self.claims]

    def chapter(self, name: str) -> str:
        """How many claimed clauses of a chapter hold, such as `13 of 14`. Empty if the chapter is not claimed."""
        verdicts = [c.verdict for c in self.record.clauses if c.chapter == name and c.verdict != "NOT_CLAIMED"]
        if name not in self.chapters or not verdicts:
            return ""
        return f"{sum(v in HELD for v in verdicts)} of {len(verdicts)}"

    def kind(self, chapter: str) -> str:
        """How a cell is coloured: good, known (every deviation is a known one), or bad."""
        verdicts = {c.verdict for c in self.record.clauses if c.chapter == chapter} - set(HELD)
        kinds = {KINDS.get(v, "none") for v in verdicts}
        return next((k for k in ("bad", "known") if k in kinds), "good")


@dataclass(frozen=True)
class Cache:
    """One cache of an engine and its records, the oldest first."""

    name: str
    engines: list[Engine]

    @property
    def newest(self) -> Engine:
        """The newest record."""
        return self.engines[-1]

    @property
    def trend(self) -> str:
        """What held at each record: `4 of 9 (1.0), 9 of 9 (1.1)`."""
        return ", ".join(f"{e.numbers[1]} of {e.numbers[0]} ({e.version})" for e in self.engines)


@dataclass(frozen=True)
class Unjudged:
    """An engine that could not be judged, and what stopped it."""

    engine: str
    reason: str


@dataclass(frozen=True)
class Board:
    """All engines, by name."""

    engines: list[Engine]
    unjudged: list[Unjudged]
    served: list[Served] = field(default_factory=list)
    """Whole engines that were judged by requests."""
    compared: list[Compared] = field(default_factory=list)
    """Engines of which several releases were compared."""
    asked: list[Asked] = field(default_factory=list)
    """Engines that were asked by a probe."""
    unmet: Mapping[str, str] = field(default_factory=dict)
    """Why a chapter was met by too few engines, by its name."""
    spec: str = ""
    """The address of the folder of the chapters, so that ids are links to their clauses; empty for no links."""

    @property
    def caches(self) -> list[Cache]:
        """The caches of engines, each with all of its records: those with the gravest bugs first, then by name."""
        return self._caches([e for e in self.engines if not e.ours])

    @property
    def ours(self) -> list[Cache]:
        """The caches of this project, in the same order."""
        return self._caches([e for e in self.engines if e.ours])

    def _caches(self, engines: list[Engine]) -> list[Cache]:
        by = groupby(sorted(engines, key=lambda e: (e.name, e.record.started)), key=lambda e: e.name)
        found = [Cache(name, list(engines)) for name, engines in by]
        return sorted(found, key=lambda c: ([-n for n in c.newest.gravity], c.name))

    @property
    def sorts(self) -> list[str]:
        """The sorts that have a column: `not filed` and the adapter's only where there is one."""
        return [s for s in SORTS if s not in (SORTS[0], ADAPTERS) or any(e.of_sort(s) for e in self.engines)]

    @cached_property
    def anchors(self) -> list[str]:
        """A name for each record that is safe in an address and a path."""
        names = [re.sub(r"[^A-Za-z0-9_-]+", "-", e.name)[:80] for e in self.engines]
        return [n if names.count(n) == 1 else f"{n}-{names[: i + 1].count(n)}" for i, n in enumerate(names)]

    @property
    def has_versions(self) -> bool:
        """Whether some cache has more than one record."""
        return any(len(c.engines) > 1 for c in self.caches)

    def anchor(self, engine: Engine) -> str:
        """The name of a record in an address."""
        return next(a for a, e in zip(self.anchors, self.engines, strict=True) if e is engine)

    @property
    def chapters(self) -> list[str]:
        """The chapters that some engine claims."""
        return [c for c in TEXTS if any(c in e.chapters for e in self.engines)]

    @property
    def headline(self) -> str:
        """How many caches were judged, and how many bugs of each sort their newest versions have. A bug of several
        caches counts once, and what is no bug is told apart."""
        newest = [c.newest for c in self.caches]
        bugs = {(rank(b.first.sort, SORTS), b.first.sort, b.name) for e in newest for b in e.bugs}
        counted = Counter(sort for _, sort, _ in sorted(bugs))
        told = ", ".join(numbered(n, sort) for sort, n in counted.items() if sort not in NO_BUGS)
        beside = ", ".join(numbered(counted[sort], sort) for sort in NO_BUGS if counted[sort])
        clean = sum(all(d.sort in NO_BUGS for d in e.deviations) for e in newest)
        count = f"{len(newest)} cache{'s were' if len(newest) != 1 else ' was'}"
        judged = f"{count} judged, {clean} of them without a bug"
        return f"{judged}. Bugs by sort: {told or 'none'}{'; no bugs: ' * bool(beside)}{beside}"


def numbered(count: int, sort: str) -> str:
    """A number of bugs of a sort in words: 2 wrong results."""
    return f"{count} {SEVERAL.get(sort, sort) if count != 1 or sort == ADAPTERS else sort}"


def _limits(limits: Mapping[str, Any]) -> Iterator[str]:
    """The limits of an adapter in words."""
    yield from (f"at most {limits[name]} {what}" for name, what in AT_MOST.items() if limits.get(name))
    if "window" in limits:
        yield f"windows from {limits['window']['least']}"
    dims = limits.get("dims") or {}
    if dims.get("multiple", 1) > 1:
        yield f"widths are multiples of {dims['multiple']}"
    if dims.get("equal"):
        yield "keys and values of one width"
