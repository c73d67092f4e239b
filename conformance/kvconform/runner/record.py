"""From a tally to the run record: the verdict on every clause, and the exit status that follows."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvconform import SUITE_VERSION, vectors
from kvconform.diagnosis.diagnose import key
from kvconform.generate.fit_to_adapter import beyond
from kvconform.runner.tally import Tally
from kvspec import SPEC_VERSION
from kvspec.contract import LEVELS, Description
from kvspec.reading import clauses
from kvspec.reading.clauses import Clause
from kvspec.records.run import BROKEN, VERSION, ClauseRecord, Failure, Record

WORST = ("CRASH", "HANG", "OOM", "PROTOCOL", "FAIL")
PACKAGES = ("numpy", "ml_dtypes", "hypothesis", "pytest", "pyopencl", "cupy")


def record(tally: Tally, adapter: Description, selected: Mapping[str, Clause], about: Mapping[str, Any]) -> Record:
    """The record of a run. `about` holds started, seconds, partial, partial_reason, command, selection, memory."""
    found = [_clause(c, tally, adapter, about["partial"]) for c in selected.values()]
    summary = Counter(c["verdict"] for c in found)
    whole: Record = {
        "kvrecord": VERSION,
        "spec": {"version": SPEC_VERSION, "hash": clauses.digest()},
        "suite": {"version": SUITE_VERSION, "hash": suite_digest()},
        "vectors": vectors.digest(),
        "started": about["started"],
        "seconds": about["seconds"],
        "partial": about["partial"],
        "partial_reason": about["partial_reason"],
        "machine": machine(),
        "command": list(about["command"]),
        "adapter": adapter.to_json(),
        "selection": about["selection"],
        "exit_status": 0,
        "summary": dict(summary),
        "clauses": found,
        "failures": [_diagnosed(f, tally) for f in kept(tally)],
        "coverage": dict(sorted(tally.coverage.items())),
        "problems": [*tally.problems, *_problems(found, about["partial"])],
        "memory": about["memory"],
    }
    if tally.spent:
        whole["residency"] = [tally.spent[name] for name in sorted(tally.spent)]
    for f in whole["failures"]:
        f["clauses"].sort(key=lambda c: -tally.suspicion(c))
    whole["exit_status"] = exit_status(whole)
    return whole


def kept(tally: Tally) -> list[Failure]:
    """The failures that a record tells, shortest first."""
    return _one_each(sorted(tally.failures, key=lambda f: (len(f["steps"]), len(f["words"]))))


def _diagnosed(failure: Failure, tally: Tally) -> Failure:
    found = tally.diagnosis.get(key(failure))
    return failure if found is None else {**failure, "diagnosis": found}


def exit_status(whole: Record) -> int:
    """0 conforms; 1 a clause is broken or the adapter is not honest; 3 the harness failed or nothing was judged."""
    verdicts = set(whole["summary"])
    if verdicts & set(BROKEN) or any(p.startswith("adapter: ") for p in whole["problems"]):
        return 1
    if whole["partial"] or whole["problems"] or "HARNESS_ERROR" in verdicts:
        return 3
    return 0 if "PASS" in verdicts or "XFAIL" in verdicts else 3


def _problems(found: list[ClauseRecord], partial: bool) -> list[str]:
    """A declared chapter that nothing exercised is an error, never a pass."""
    left = [c["id"] for c in found if c["verdict"] == "NOT_RUN"]
    if left and not partial:
        return [f"harness: selected and supported, but exercised by no trace: {', '.join(left)}"]
    return [] if found else ["harness: no clause was selected"]


def _clause(clause: Clause, tally: Tally, adapter: Description, partial: bool) -> ClauseRecord:
    verdict, reason = _verdict(clause, tally, adapter, partial)
    judged = verdict not in ("UNSUPPORTED", "NOT_RUN")
    shortest = _shortest(clause.id, tally)
    return {
        "id": clause.id,
        "chapter": clause.chapter,
        "level": clause.level,
        "verdict": verdict,
        "judged_at": _level(clause, adapter) if judged else None,
        "oracle": tally.oracles.get(clause.id) if judged else None,
        "tests": tally.tests.get(clause.id, []) if judged else [],
        "exercised": dict(tally.exercised.get(clause.id, {})) if judged else {},
        "differed": tally.differed[clause.id],
        "suspicion": round(tally.suspicion(clause.id), 4),
        "reason": reason,
        "trace": shortest["trace"] if shortest and verdict != "PASS" else None,
        "text": clause.text,
    }


def _verdict(clause: Clause, tally: Tally, adapter: Description, partial: bool) -> tuple[str, str]:
    unsupported = lacks(clause, adapter)
    if unsupported:
        return "UNSUPPORTED", unsupported
    broken = _broken(clause, tally)
    known = adapter.known.get(clause.id)
    if broken:
        return ("XFAIL", f"known: {known}. {broken[1]}") if known and broken[0] == "FAIL" else broken
    if clause.id not in tally.exercised and beyond(clause, adapter):
        return "UNSUPPORTED", "what shows it lies beyond the limits that the adapter declares"
    if clause.id not in tally.exercised:
        return "NOT_RUN", "the run was cut short before it" if partial else "no trace exercised it"
    return ("XPASS", f"declared as known to break, but holds: {known}") if known else ("PASS", "")


def _broken(clause: Clause, tally: Tally) -> tuple[str, str] | None:
    failures = [f for f in tally.failures if clause.id in f["clauses"]]
    if failures:
        verdict = min((f["verdict"] for f in failures), key=WORST.index)
        shortest = _shortest(clause.id, tally)
        return verdict, shortest["message"] if shortest else ""
    if clause.id in tally.own:
        return "FAIL", tally.own[clause.id]
    if tally.differed[clause.id]:
        return "FAIL", f"differed in {tally.differed[clause.id]} traces that failed for another clause too"
    return None


def lacks(clause: Clause, adapter: Description) -> str:
    """Why a clause does not bind this adapter; empty if it does."""
    if clause.chapter not in adapter.chapters:
        return f"the adapter does not declare the chapter {clause.chapter}"
    if not set(clause.applies) & set(adapter.chapters):
        return f"it speaks of the chapter {' or '.join(clause.applies)}, which the adapter does not declare"
    if set(clause.seen_in) == {"meter"} and "residency" not in adapter.chapters:
        return "it is seen in what a meter counts, and the adapter does not declare the chapter residency"
    if clause.id in ("RING-10", "SNAP-13") and adapter.chapters["ring"].rewind == -1:
        return "the adapter declares that it can rewind past the window without limit"
    if _level(clause, adapter) != "storage" and clause.level == "storage":
        return "it is of level storage; the adapter claims level visible"
    return ""


def _level(clause: Clause, adapter: Description) -> str:
    """The level a clause is judged at: the adapter's, on the chapter and the best of the caches it speaks of."""
    own = adapter.chapters[clause.chapter].level
    on = [adapter.chapters[c].level for c in clause.applies if c in adapter.chapters]
    return min(own, max(on, key=LEVELS.index), key=LEVELS.index)


def _shortest(clause: str, tally: Tally) -> Failure | None:
    return min((f for f in tally.failures if clause in f["clauses"]), key=lambda f: len(f["steps"]), default=None)


def _one_each(failures: list[Failure]) -> list[Failure]:
    """Those that are the shortest for some clause; they come shortest first."""
    kept, told = [], set[str]()
    for f in failures:
        new = set(f["clauses"] or [f["verdict"]]) - told
        told |= new
        kept += [f] if new else []
    return kept


def suite_digest() -> str:
    """A hash of the suite's own text."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def machine() -> dict[str, Any]:
    """Where the run was made."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "packages": {p: v for p in PACKAGES if (v := _version(p))},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
