"""The verdict on each clause: what was not exercised is not a pass."""

from __future__ import annotations

from collections import Counter

from kvadapters.serving.driver import SPARED
from kvconform.serving.judge import SAMPLES_ALONE
from kvconform.serving.recipes import LIFE
from kvconform.serving.run import Run
from kvspec.records.serving import ServingClause, ServingVerdict
from kvspec.serving import clauses
from kvspec.serving.clauses import Clause

REUSE = tuple(f"SERVE-{n}" for n in range(2, 8))
DRAFTS = {"SERVE-15": "drafts accepted", "SERVE-16": "drafts rejected"}
ROOM = {"SERVE-9": "evictions", "SERVE-10": "preemptions"}

Judged = tuple[ServingVerdict, str]


def verdicts(run: Run) -> list[ServingClause]:
    """Judge all clauses."""
    return [_clause(run, clause) for clause in clauses.index().values()]


def _clause(run: Run, clause: Clause) -> ServingClause:
    requests = run.asked if clause.id == "SERVE-18" else run.aimed[clause.id]
    verdict, why = _verdict(run, clause, requests)
    return ServingClause(id=clause.id, verdict=verdict, requests=requests, why=why)


def _verdict(run: Run, clause: Clause, requests: int) -> Judged:
    declared = run.driver.declared
    if found := sum(f.clause == clause.id for f in run.failures):
        return "FAIL", f"{found} shortest histor{'y' if found == 1 else 'ies'}"
    if clause.needs != "any" and clause.needs not in declared.can:
        return "NOT_CLAIMED", f"the engine does not have this: {clause.needs}"
    if clause.id in REUSE and "reuse" not in declared.can:
        return "NOT_CLAIMED", "the engine does not reuse rows"
    if clause.id == "SERVE-6" and not run.aim.windows:
        return "NOT_CLAIMED", "no layer of this probe has a window"
    if clause.id in DRAFTS and not declared.drafts:
        return "NOT_CLAIMED", "no drafts are declared: --declare drafts=3 says that there are"
    if not requests:
        return "NOT_RUN", _unasked(run, clause)
    if not run.judge.queries:
        return "NOT_RUN", "no answer could be read"
    return _exercised(run, clause.id, run.seen.get(clause.id, Counter()))


def _unasked(run: Run, clause: Clause) -> str:
    if clause.id in ROOM and not run.aim.filling():
        sizes = f"{run.driver.declared.blocks} blocks of {run.driver.declared.block}"
        return f"a pool of {sizes} is not filled: start the engine with fewer blocks, or declare how many it has"
    return "no request was left for it: ask for more requests"


def _exercised(run: Run, clause: str, seen: Counter[str]) -> Judged:
    """Tell whether an engine did what a clause is about, as far as it tells."""
    counted, can = {**DRAFTS, **ROOM}.get(clause, ""), run.driver.declared.can
    if clause == "SERVE-5" and "no-whole" in can:
        return "PARTLY_OBSERVED", f"it is spared: {SPARED['no-whole']}"
    if clause in REUSE:
        hits = max(seen["cached tokens told"], seen["cached tokens"])
        if hits:
            return "PASS", f"{hits} tokens reused"
        told = "cached" in can or "cached tokens" in run.driver.counts()
        return ("NOT_RUN", "nothing was reused") if told else ("PARTLY_OBSERVED", "it does not tell what it reuses")
    if counted:
        if counted not in run.driver.counts():
            return "PARTLY_OBSERVED", f"the engine does not count {counted}"
        all_seen = sum(each[counted] for each in run.seen.values())
        return ("PASS", f"{all_seen} {counted}") if all_seen else ("NOT_RUN", f"there were no {counted}")
    if clause == "SERVE-11" and not run.driver.declared.chunk:
        return "PARTLY_OBSERVED", "it is not known how much is computed at once: --declare chunk=64 says it"
    if clause == "SERVE-13" and not run.player.counts["cancelled"]:
        return "NOT_RUN", "none was cancelled: each was answered before another one was asked"
    if clause == "SERVE-14" and run.judge.untold[SAMPLES_ALONE]:
        return "PARTLY_OBSERVED", "of samples that are tokens alone, only what follows them is judged"
    if clause == LIFE:
        return "PASS", f"{run.asked} requests in all"
    return "PASS", ""


def exit_status(judged: list[ServingClause], wrong: int) -> int:
    """Give 0 if the engine conforms, 1 if a clause is broken, 3 if one was not exercised."""
    if wrong or any(clause.verdict == "FAIL" for clause in judged):
        return 1
    return 3 if any(clause.verdict == "NOT_RUN" for clause in judged) else 0
