"""What the difference needs of a record, of a run or of a serving engine: each clause with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kvreports.drawing.text import draw
from kvreports.run.overview import adapter_name, engine_version
from kvreports.run.standing import standing
from kvreports.serving import parts
from kvspec.records.difference import Side
from kvspec.records.run import Failure, Record
from kvspec.records.serving import ServingFailure, ServingRecord

SERVE = "serve"
"""The chapter of whole engines, whose clauses a record of requests always has all."""

UNCLAIMED = "adapter: "
"""How a problem of a run record begins that is a breach: the adapter does something that it does not claim."""


@dataclass(frozen=True)
class Judged:
    """One clause of a record, or a breach of none that it is about: then it has no chapter. `ways` are the ways in
    which it is broken, beyond known deviations."""

    verdict: str
    why: str
    chapter: str = ""
    ways: frozenset[str] = frozenset()
    trace: str = ""
    drawing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """A whole record. `selection` names the part of the suite that it is about. `complete` tells whether it is an
    answer: it did not end early, and the harness did not fail."""

    side: Side
    clauses: Mapping[str, Judged]
    selection: Mapping[str, str]
    chapters: frozenset[str]
    """The chapters of which it judged every clause that there was."""
    complete: bool


def of_run(record: Record) -> Judgement:
    """Read a run record."""
    clauses = {c.id: Judged(c.verdict, c.reason, c.chapter) for c in record.clauses}
    for failure in sorted(record.failures, key=lambda f: (f.expected, len(f.steps), len(f.words)), reverse=True):
        for id_ in failure.clauses or ("",):
            clauses[id_] = _broken(clauses.get(id_) or Judged(failure.verdict, ""), failure)
    for problem in (p for p in record.problems if p.startswith(UNCLAIMED)):
        clauses[problem] = Judged("FAIL", problem)
    spec = f"{record.spec.version} ({record.spec.hash[:16]})"
    result = standing(record)
    told = f"{result.words} ({result.because})" if result.because else result.words
    side = Side(
        engine=adapter_name(record), version=engine_version(record), started=record.started, spec=spec, result=told
    )
    whole = (
        frozenset[str]() if record.selection.get("clauses") else frozenset(record.selection.get("chapters") or ())
    )
    return Judgement(side, clauses, _selection(record), whole, not record.partial and record.exit_status in (0, 1))


def _broken(judged: Judged, failure: Failure) -> Judged:
    """The clause with one more failure; the shortest comes last, and is the one that is shown."""
    if failure.expected and judged.ways:
        return judged
    way = () if failure.expected else (failure.cause if failure.verdict == "FAIL" else failure.verdict,)
    drawing = tuple(draw(failure.steps).splitlines())
    return replace(judged, ways=judged.ways.union(way), trace=failure.words, why=failure.message, drawing=drawing)


def _selection(record: Record) -> dict[str, str]:
    """What the run judged, in words."""
    said = record.selection
    named = {name: str(said.get(name)) for name in ("traces", "seed", "level", "log") if said.get(name) is not None}
    lists = {name: ", ".join(map(str, said.get(name) or ())) or "all" for name in ("chapters", "clauses")}
    return lists | named | {"part": "a quick run" if "left out" in said else "a whole run"}


def of_server(record: ServingRecord) -> Judgement:
    """Read the record of a serving engine."""
    clauses = {c.id: Judged(c.verdict, c.why, SERVE) for c in record.clauses}
    for failure in reversed(record.failures):
        clauses[failure.clause] = _wrong(clauses.get(failure.clause) or Judged("FAIL", ""), failure)
    spec = f"{record.spec.version} ({record.spec.hash[:16]})"
    engine, version = (said or "unknown" for said in (record.engine.name, record.engine.version))
    side = Side(engine=engine, version=version, started=record.started, spec=spec, result=parts.headline(record))
    asked = {"requests": str(record.asked.get("requests")), "seed": str(record.seed)}
    asked |= {name: str(record.precision.get(name)) for name in ("dtype", "rows")}
    asked |= {"probe": f"{record.probe.architecture} {record.probe.layers}"}
    asked |= {"flags": record.engine.flags or "none"}
    whole = frozenset({SERVE})
    return Judgement(side, clauses, asked, whole, not record.partial and record.exit_status in (0, 1))


def _wrong(judged: Judged, failure: ServingFailure) -> Judged:
    why = "; ".join(failure.found[:2])
    return replace(
        judged,
        ways=judged.ways | {failure.sort},
        trace=failure.history,
        why=why,
        drawing=tuple(failure.drawing),
    )


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> Iterable[str]:
    """The words for each setting that two records do not share."""
    for name in dict.fromkeys((*before, *now)):
        if before.get(name) != now.get(name):
            yield f"{name}: {before.get(name, 'not given')}; now {now.get(name, 'not given')}"
