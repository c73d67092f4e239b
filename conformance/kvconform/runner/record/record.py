"""Makes the record of a run from its tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from kvconform.generate import frozen_covers
from kvconform.runner.record.provenance import machine, suite_digest
from kvconform.runner.record.redact import published
from kvconform.runner.verdict.known import gone
from kvconform.runner.verdict.tally import Tally
from kvconform.runner.verdict.verdict import (
    EARLY,
    Evidence,
    exit_status,
    judged_level,
    shortest_failure,
    verdict_on,
)
from kvconform.version import SUITE_VERSION
from kvreports.run import findings
from kvspec import SPEC_VERSION
from kvspec.contract import Description
from kvspec.reading import clauses
from kvspec.reading.clauses import Clause, index
from kvspec.records.document import Version
from kvspec.records.run import CAUSES, ClauseRecord, Failure, Record


def record(tally: Tally, adapter: Description, selected: Mapping[str, Clause], about: Mapping[str, Any]) -> Record:
    """The record of a run. `about` holds started, seconds, partial, partial_reason, command, selection, memory."""
    in_part = about["partial"] or "left out" in about["selection"]
    known = {} if in_part else gone(about["selection"].get("known", {}), tally.failures)
    evidence = [Evidence(c, tally, adapter, about["partial"], known.get(c.id, "")) for c in selected.values()]
    found = [_clause(e) for e in evidence]
    whole = Record(
        spec=Version(version=SPEC_VERSION, hash=clauses.digest()),
        suite=Version(version=SUITE_VERSION, hash=suite_digest()),
        vectors=frozen_covers.digest(),
        started=about["started"],
        seconds=about["seconds"],
        partial=about["partial"],
        partial_reason=about["partial_reason"],
        machine=machine(),
        command=list(about["command"]),
        adapter=adapter.to_json(),
        selection=about["selection"],
        exit_status=0,
        summary=dict(Counter(c.verdict for c in found)),
        clauses=found,
        failures=[_diagnosed(f, tally, adapter) for f in kept(tally)],
        coverage=dict(sorted(tally.coverage.items())),
        problems=[*dict.fromkeys(tally.problems), *_problems(found, about)],
        memory=about["memory"] | ({"restarts": tally.restarts} if tally.restarts else {}),
        shut_out=dict(sorted(tally.shut_out.items())),
        residency=[tally.spent[name] for name in sorted(tally.spent)],
    )
    whole.failures = [failure for failure, _ in findings.failures(whole)]
    whole.exit_status = exit_status(whole)
    return published(whole)


def kept(tally: Tally) -> list[Failure]:
    """The failures that a record tells: the shortest of each cause, the worst causes first, known ones last."""
    ranked = sorted(tally.failures, key=lambda f: (f.expected, CAUSES.index(f.cause), len(f.steps), len(f.words)))
    return _one_each(ranked)


def _diagnosed(failure: Failure, tally: Tally, adapter: Description) -> Failure:
    """The failure with its diagnosis and the entry that would make it known, its clauses by suspicion."""
    key = failure.key()
    ranked = replace(failure, clauses=sorted(failure.clauses, key=lambda c: -tally.suspicion(c)))
    entry = "" if failure.expected else tally.entries.get(key) or _entry(ranked, adapter)
    return replace(ranked, diagnosis=tally.diagnosis.get(key, UNSET), entry=entry or UNSET)


def _entry(failure: Failure, adapter: Description) -> str:
    from kvconform.runner.verdict.entry import of_outcome  # most runs have no failure

    return of_outcome(failure, adapter)


def _problems(found: list[ClauseRecord], about: Mapping[str, Any]) -> list[str]:
    """A claimed clause that nothing exercised is an error, never a pass: quick runs exercise all of them too. Only
    a run that was cut short, or that judged some checks again, has not tried to."""
    left = [c.id for c in found if c.verdict == "NOT_RUN" and not c.reason.startswith(EARLY)]
    if left and not about["partial"] and not about["selection"].get("again"):
        return [f"harness: {NOT_EXERCISED} {', '.join(left)}. {WHAT_TO_DO}"]
    return [] if found else ["harness: no clause was selected"]


NOT_EXERCISED = "claimed, and nothing exercised what they are about:"

WHAT_TO_DO = (
    "See why what their examples do is refused or left out (`kvconform explain CLAUSE` shows them), or claim less: "
    "a limit, a dialect, `without`"
)


def _clause(evidence: Evidence) -> ClauseRecord:
    clause, tally, adapter = evidence.clause, evidence.tally, evidence.adapter
    verdict, reason = verdict_on(evidence)
    judged = verdict not in ("NOT_CLAIMED", "NOT_RUN", "HARNESS_ERROR")
    failure = shortest_failure(clause.id, tally)
    return ClauseRecord(
        id=clause.id,
        chapter=clause.chapter,
        level=clause.level,
        verdict=verdict,
        judged_at=judged_level(clause, adapter) if judged else None,
        oracle=tally.oracles.get(clause.id) if judged else None,
        tests=tally.tests.get(clause.id, []) if judged else [],
        exercised=dict(tally.exercised.get(clause.id, {})) if judged else {},
        differed=tally.differed[clause.id],
        suspicion=round(tally.suspicion(clause.id), 4),
        reason=reason,
        trace=failure.trace if failure and verdict != "PASS" else None,
        text=clause.text,
        ended_early=tally.early.get(clause.id, {}),
        kinds=[kind for kind in clause.applies if kind in tally.kinds.get(clause.id, ())] if judged else [],
    )


def _on(clause: str, failure: Failure) -> str:
    """The clause; of a general one the kind too, as it may be broken on several."""
    known = index().get(clause)
    return f"{clause} {failure.trace.get('kind')}" if known and known.general else clause


def _one_each(failures: list[Failure]) -> list[Failure]:
    """Those that are the shortest of their cause for some clause, or of a known deviation."""
    kept, told = [], set[tuple[str, str]]()
    for f in failures:
        new = {(_on(clause, f), f.known.get(clause, f.cause)) for clause in f.clauses or [f.verdict]} - told
        told |= new
        kept += [f] if new else []
    return kept
