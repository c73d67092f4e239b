"""The verdict on a clause, and the exit status of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kvconform.generate.claims.fit_to_adapter import beyond
from kvconform.runner.verdict.observation import answered_by_adapter, exercisable, shown_with_rows, unobserved
from kvconform.runner.verdict.tally import Tally
from kvspec.contract import LEVELS, Description
from kvspec.reading.clauses import Clause
from kvspec.records.run import BROKEN, CAUSES, HELD, Failure, Record, VerdictName
from kvspec.registry import KINDS, LETTERS

WORST: tuple[VerdictName, ...] = ("CRASH", "HANG", "OOM", "PROTOCOL", "FAIL")
"""Verdicts of failures, the worst first: a clause gets the worst of its failures."""

EARLY = "its examples ended early in a failure of"
"""How the reason begins where failures of other clauses kept a clause from being judged."""

CLEARLY = 1.2
"""How many times better than the failing step's clauses an earlier clause must explain the failures, to be failed.
An append of no rows that moves an index, for example, shows only where the index is used."""


class Evidence(NamedTuple):
    """What a verdict follows from."""

    clause: Clause
    tally: Tally
    adapter: Description
    partial: bool
    """Whether the run was cut short."""
    known: str = ""
    """Why the clause is known to break, where that showed nowhere in a run of all traces; else empty."""


class Verdict(NamedTuple):
    """One of `kvspec.records.run.VERDICTS`, and the reason why it is not PASS."""

    name: VerdictName
    reason: str = ""


def verdict_on(evidence: Evidence) -> Verdict:
    """The verdict on one clause: that of the first rule that applies."""
    return next(verdict for rule in RULES if (verdict := rule(evidence)) is not None)


def _not_claimed(e: Evidence) -> Verdict | None:
    reason = lacks(e.clause, e.adapter) or _out_of_reach(e) or _out_of_sight(e)
    return Verdict("NOT_CLAIMED", reason) if reason else None


def _out_of_reach(e: Evidence) -> str:
    """Why nothing that is claimed exercises the clause; empty if something does."""
    if _exercised(e):
        return ""
    why = beyond(e.clause, e.adapter)
    return _beyond_laws(e) if not why or exercisable(e.clause, e.adapter) else why


def _out_of_sight(e: Evidence) -> str:
    """Which observables would show the clause, where none of them is claimed; empty if it differed nevertheless."""
    missing = unobserved(e.clause, e.adapter, judged_level(e.clause, e.adapter))
    if e.tally.differed[e.clause.id] or e.clause.id in e.tally.own or not set(e.clause.seen_in) <= set(missing):
        return ""
    return f"it is seen in {', '.join(missing)}, which the adapter does not claim"


def _exercised(e: Evidence) -> bool:
    """Whether traces say anything of the clause, in what it is about. For a law only its own pairs of traces do.
    Where the examples of a clause have rows, what was refused or had no rows says nothing."""
    if e.tally.differed[e.clause.id]:
        return True
    sources = set(e.tally.exercised.get(e.clause.id, ()))
    if e.clause.law:
        return "law" in sources
    return bool(sources) and (e.clause.id in e.tally.with_rows or not shown_with_rows(e.clause))


def _broken(e: Evidence) -> Verdict | None:
    return _breach(e.clause.id, e.tally) or _before(e)


def _breach(clause: str, tally: Tally) -> Verdict | None:
    """What the failures come to: XFAIL where known deviations explain all of them."""
    failure = shortest_failure(clause, tally)
    if failure and clause in failure.known:
        return Verdict("XFAIL", f"known: {failure.known[clause]}. {failure.message}")
    if failure:
        failures = [f for f in tally.failures if clause in f.clauses and clause not in f.known]
        return Verdict(min((f.verdict for f in failures), key=WORST.index), failure.message)
    if clause in tally.own:
        return Verdict(tally.ended.get(clause, "FAIL"), tally.own[clause])
    if tally.differed[clause]:
        return Verdict("FAIL", f"differed in {tally.differed[clause]} traces that failed for another clause too")
    return None


def _before(e: Evidence) -> Verdict | None:
    """FAIL for a clause whose own example ended early, if it explains the failures clearly better than the clauses
    of the failing step."""
    early, suspicion = ended_in(e), e.tally.suspicion
    better = e.tally.acted.get(e.clause.id, False)
    better = better and all(suspicion(e.clause.id) > CLEARLY * suspicion(other) for other in early)
    why = f"{EARLY} {', '.join(early)}, but what fails is what exercised this clause before"
    return Verdict("FAIL", why) if better and _unknown(early, e) else None


def ended_in(e: Evidence) -> list[str]:
    """The clauses in whose failures the clause's own examples and laws ended early."""
    return list(dict.fromkeys(other for blamed in e.tally.early.get(e.clause.id, {}).values() for other in blamed))


def _unknown(clauses: list[str], e: Evidence) -> bool:
    """Whether these clauses have a failure that known deviations do not explain."""
    return any(set(clauses) & set(f.clauses) - set(f.known) for f in e.tally.failures)


def _not_finished(e: Evidence) -> Verdict | None:
    why = e.tally.unfinished.get(e.clause.id)
    return Verdict("HARNESS_ERROR", why) if why else None


def _ended_early(e: Evidence) -> Verdict | None:
    """Where examples ended early, other traces decide. They say too little if most of them failed, or there are
    none."""
    clause, tally, early = e.clause.id, e.tally, ended_in(e)
    mostly = tally.present[clause] >= tally.agreed[clause] and _unknown(early, e)
    if early and (mostly or not _exercised(e)):
        return Verdict("NOT_RUN", f"{EARLY} {', '.join(early)}")
    return None


def _not_exercised(e: Evidence) -> Verdict | None:
    if _exercised(e):
        return None
    if e.partial:
        return Verdict("NOT_RUN", "the run was cut short before it")
    sources = e.tally.exercised.get(e.clause.id)
    return Verdict("NOT_RUN", f"exercised only {LESS[e.clause.law]}" if sources else "no trace exercised it")


LESS = {True: "by an example, and by no law", False: "by what was refused, or without rows"}
"""What is no exercise: of a law, and of a clause that its own example shows with rows."""


def _beyond_laws(e: Evidence) -> str:
    """Why the claim shuts out each law of the clause; empty if it does not. An example shows a law once: it is no
    substitute."""
    from kvconform.laws.registry import LAWS  # needs Hypothesis, which a reader of records may lack

    laws = [law for law in LAWS if law.clause == e.clause.id]
    missing = [sorted(set(law.needs) - set(e.adapter.chapters)) for law in laws]
    if laws and all(missing):
        fewest = min(missing, key=lambda names: len(names))
        return f"its law takes {', '.join(fewest)}, which the adapter does not declare"
    judged = [law.check for law, lacks in zip(laws, missing, strict=True) if not lacks]
    return e.tally.shut_out[judged[0]] if judged and set(judged) <= set(e.tally.shut_out) else ""


def _held(e: Evidence) -> Verdict:
    if e.known:
        return Verdict("XPASS", f"declared as known to break, but holds: {e.known}")
    level = judged_level(e.clause, e.adapter)
    missing = unobserved(e.clause, e.adapter, level)
    if gone := set(unobserved(e.clause, _found(e), level)) - set(missing):
        return Verdict("PARTLY_OBSERVED", f"claimed and not there: {', '.join(sorted(gone))}")
    if missing:
        return Verdict("PARTLY_OBSERVED", f"not looked at: {', '.join(missing)}")
    if answered_by_adapter(e.clause, e.adapter):
        return Verdict("BY_ADAPTER", f"the adapter answers {', '.join(sorted(e.adapter.answers))} for its engine")
    return Verdict("PASS")


def _found(e: Evidence) -> Description:
    """The adapter without the operations that it claims and that were not there."""
    lacking = [f.trace for f in e.tally.failures if f.cause == "claimed, not there" and f.trace]
    gone = {trace["ops"][-1]["op"] for trace in lacking if trace["ops"]}
    claims = {c: replace(claim, without=claim.without | gone) for c, claim in e.adapter.chapters.items()}
    return replace(e.adapter, chapters=claims) if gone else e.adapter


RULES: tuple[Callable[[Evidence], Verdict | None], ...] = (
    _not_claimed,
    _broken,
    _not_finished,
    _ended_early,
    _not_exercised,
    _held,
)
"""What a verdict is decided by, in this order; the last one always decides."""


def lacks(clause: Clause, adapter: Description) -> str:
    """Why a clause does not bind this adapter; empty if it does."""
    if not clause.claimed(adapter.chapters):
        return f"the adapter does not declare the chapter {' or '.join(clause.chapters)}"
    if not set(clause.applies) & set(adapter.chapters):
        return f"it speaks of the chapter {' or '.join(clause.applies)}, which the adapter does not declare"
    if set(clause.seen_in) == {"meter"} and "meter" not in adapter.observed():
        residency = LETTERS["RESIDENCY"]
        return f"it is seen in what a meter counts, and the adapter does not declare the chapter {residency}"
    hiding = [adapter.chapters[kind].hides(clause.id) for kind in clause.applies if kind in adapter.chapters]
    beside = [adapter.chapters[c].hides(clause.id) for c in {*clause.chapters} & {*adapter.chapters} - {*KINDS}]
    if (hiding and all(hiding)) or any(beside):
        return f"the adapter declares {next(filter(None, [*beside, *hiding]))}, which leaves nothing to show it"
    if judged_level(clause, adapter) != "storage" and clause.level == "storage":
        return "it is of level storage; the adapter claims level visible"
    return ""


def judged_level(clause: Clause, adapter: Description) -> str:
    """The level a clause is judged at: the adapter's, on the chapter and the best of the caches it speaks of."""
    own = max((adapter.chapters[c].level for c in clause.chapters if c in adapter.chapters), key=LEVELS.index)
    on = [adapter.chapters[c].level for c in clause.applies if c in adapter.chapters]
    return min(own, max(on, key=LEVELS.index), key=LEVELS.index)


def shortest_failure(clause: str, tally: Tally) -> Failure | None:
    """The failure of the worst cause that shows the clause broken in the fewest steps; a known deviation if there
    is no other."""
    failures = (f for f in tally.failures if clause in f.clauses)
    return min(failures, key=lambda f: (clause in f.known, CAUSES.index(f.cause), len(f.steps)), default=None)


def exit_status(whole: Record) -> int:
    """Give 0 if the adapter conforms. Give 1 if a clause is broken, a trace failed, or the adapter is not honest.
    Give 3 if the harness failed or nothing was judged."""
    verdicts = set(whole.summary)
    if verdicts & set(BROKEN) or whole.unexplained or any(p.startswith("adapter: ") for p in whole.problems):
        return 1
    if whole.partial or whole.problems or "HARNESS_ERROR" in verdicts:
        return 3
    return 0 if verdicts & {*HELD, "XFAIL"} else 3
