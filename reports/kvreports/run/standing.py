"""What a run says of its adapter in a few words: the standing, the counts, and why clauses did not pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kvreports.clauses import order
from kvspec.records.run import BROKEN, VERDICTS, ClauseRecord, Record

WORDS = {
    "PASS": "exercised, no difference",
    "FAIL": "differs from the spec",
    "UNSUPPORTED": "declared as not offered",
    "XFAIL": "known deviation, still there",
    "XPASS": "known deviation that is gone",
    "CRASH": "the adapter died",
    "HANG": "no answer before the deadline",
    "OOM": "ran out of memory",
    "PROTOCOL": "answered outside the protocol",
    "HARNESS_ERROR": "the harness failed",
    "NOT_RUN": "never exercised",
}
"""Each verdict in words."""

URGENCY = ("FAIL", "CRASH", "HANG", "OOM", "PROTOCOL", "XPASS", "HARNESS_ERROR", "XFAIL", "UNSUPPORTED", "NOT_RUN")
"""Verdicts that want a look, the most urgent first."""

KINDS: dict[str, str] = {
    "PASS": "good",
    **dict.fromkeys(BROKEN, "bad"),
    "HARNESS_ERROR": "bad",
    "XFAIL": "known",
    "UNSUPPORTED": "none",
    "NOT_RUN": "none",
}
"""How a verdict is coloured: good, bad, known, none."""


@dataclass(frozen=True)
class Standing:
    """The one-glance answer: `kind` is good, bad, known or none; `words` says it."""

    kind: str
    words: str
    because: str = ""


@dataclass(frozen=True)
class Group:
    """Clauses that share a verdict and its reason."""

    verdict: str
    reason: str
    ids: tuple[str, ...]


def counts(record: Record) -> dict[str, int]:
    """Clauses by verdict, counted afresh, in the order of the verdicts; zeros left out."""
    found = Counter(c.verdict for c in record.clauses)
    return {v: found[v] for v in VERDICTS if found[v]}


def standing(record: Record) -> Standing:
    """What the run says as a whole. Never better than its clauses, whatever its exit status."""
    found = counts(record)
    broken = sum(found.get(v, 0) for v in BROKEN)
    if broken:
        return Standing("bad", "Does not conform", f"{broken} of {_clauses(sum(found.values()))} broken")
    status = record.exit_status
    if record.partial and found.get("PASS") and not found.get("HARNESS_ERROR"):
        return Standing(
            "known", "No difference so far", f"{_clauses(found['PASS'])} passed; the run did not finish"
        )
    if status == 4:
        return Standing("none", "Cannot run here", _first(record))
    if status == 2:
        return Standing("none", "Did not start", _first(record))
    if not found.get("PASS") and not found.get("XFAIL"):
        return Standing("bad", "Nothing was exercised", _first(record))
    if status != 0 or found.get("HARNESS_ERROR"):
        return Standing("bad", "The harness failed", _first(record))
    return _unbroken(found)


def _unbroken(found: dict[str, int]) -> Standing:
    passed = f"{_clauses(found.get('PASS', 0))} passed"
    if found.get("XFAIL"):
        return Standing("known", "Conforms but for known deviations", f"{passed}, {found['XFAIL']} known to differ")
    if found.get("NOT_RUN"):
        return Standing("good", "Conforms", f"{passed}, {found['NOT_RUN']} not run")
    return Standing("good", "Conforms", passed)


def _first(record: Record) -> str:
    return record.problems[0] if record.problems else ""


def _clauses(n: int) -> str:
    return f"{n} clause" + "s" * (n != 1)


def groups(record: Record) -> list[Group]:
    """Every clause that did not pass, with its reason, most urgent verdicts first."""
    found: dict[tuple[str, str], list[str]] = {}
    for c in record.clauses:
        if c.verdict != "PASS":
            found.setdefault((c.verdict, c.reason), []).append(c.id)
    made = [Group(v, r, tuple(sorted(ids, key=order))) for (v, r), ids in found.items()]
    return sorted(made, key=lambda g: (urgency(g.verdict), order(g.ids[0])))


def urgency(verdict: str) -> int:
    """Sorts verdicts, the most urgent first."""
    return URGENCY.index(verdict) if verdict in URGENCY else len(URGENCY)


SUSPECTS = 8
"""Clauses named as those to look at first."""


def suspects(record: Record) -> list[ClauseRecord]:
    """The broken clauses that differing and agreeing traces single out, the likeliest first."""
    found = [c for c in record.clauses if c.suspicion > 0 and c.verdict in (*BROKEN, "XFAIL")]
    return sorted(found, key=lambda c: -c.suspicion)[:SUSPECTS]
