"""The result of a run in a few words: the standing, the counts, and why clauses did not pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kvreports.clauses import order
from kvspec.contract import CHAPTERS
from kvspec.records.run import BROKEN, HELD, VERDICTS, ClauseRecord, Failure, Record

WORDS = {
    "PASS": "exercised, no difference",
    "PARTLY_OBSERVED": "no difference in what was looked at",
    "BY_ADAPTER": "no difference, but the adapter answered for its engine",
    "FAIL": "differs from the spec",
    "NOT_CLAIMED": "not offered by the adapter",
    "XFAIL": "known deviation, still there",
    "XPASS": "known deviation that is gone",
    "CRASH": "the adapter died",
    "HANG": "no answer before the deadline",
    "OOM": "ran out of memory",
    "PROTOCOL": "broke the protocol",
    "HARNESS_ERROR": "the harness failed",
    "NOT_RUN": "never exercised",
}
"""Each verdict in words."""

URGENCY = (
    *("FAIL", "CRASH", "HANG", "OOM", "PROTOCOL", "XPASS", "HARNESS_ERROR", "XFAIL"),
    *("PARTLY_OBSERVED", "BY_ADAPTER", "NOT_CLAIMED", "NOT_RUN"),
)
"""Verdicts that need attention, the most urgent first."""

KINDS: dict[str, str] = {
    "PASS": "good",
    "PARTLY_OBSERVED": "known",
    "BY_ADAPTER": "known",
    **dict.fromkeys(BROKEN, "bad"),
    "HARNESS_ERROR": "bad",
    "XFAIL": "known",
    "NOT_CLAIMED": "none",
    "NOT_RUN": "none",
}
"""How a verdict is coloured: good, bad, known, none."""


@dataclass(frozen=True)
class Standing:
    """The result of a run at a glance; `kind` is good, bad, known or none."""

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
    verdicts = Counter(c.verdict for c in record.clauses)
    return {v: verdicts[v] for v in VERDICTS if verdicts[v]}


def standing(record: Record) -> Standing:
    """The result of the run as a whole. It is never better than its clauses, whatever the exit status."""
    verdicts = counts(record)
    broken = sum(verdicts.get(v, 0) for v in BROKEN)
    if broken:
        return Standing("bad", "Does not conform", f"{broken} of {_clauses(sum(verdicts.values()))} broken")
    if record.unexplained:
        traces = "a trace that breaks a clause" if len(record.unexplained) == 1 else "traces that break clauses"
        return Standing("bad", "Does not conform", f"{traces} outside the selection")
    if dishonest := _first(record, "adapter: "):
        return Standing("bad", "Does not conform", dishonest)
    status = record.exit_status
    held = sum(verdicts.get(v, 0) for v in HELD)
    if record.partial and held and not verdicts.get("HARNESS_ERROR"):
        passed = _clauses(held)
        return Standing("known", "No difference so far", f"{passed} passed; the run did not finish")
    if status == 4:
        return Standing("none", "Cannot run here", _first(record))
    if status == 2:
        return Standing("none", "Did not start", _first(record))
    if not held and not verdicts.get("XFAIL"):
        return Standing("bad", "Nothing was exercised", _first(record))
    if status != 0 or verdicts.get("HARNESS_ERROR"):
        return Standing("bad", "The harness failed", _first(record))
    return _unbroken(verdicts)


def score(record: Record) -> str:
    """How much holds of what it claims: conforms in 61 of 64 clauses it claims, 3 partly observed, 2 of 14
    chapters."""
    verdicts, claimed = counts(record), len(record.clauses) - counts(record).get("NOT_CLAIMED", 0)
    partly = verdicts.get("PARTLY_OBSERVED", 0)
    chapters = set(CHAPTERS) & set(record.adapter.get("chapters") or ())
    parts = [f"conforms in {sum(verdicts.get(v, 0) for v in HELD)} of {_clauses(claimed)} it claims"]
    parts += [f"{partly} partly observed"] if partly else []
    return ", ".join([*parts, f"{len(chapters)} of {len(CHAPTERS)} chapters"])


def cause(failure: Failure) -> str:
    """What went wrong in a failure, or that it is known."""
    return "known deviation" if failure.expected else failure.cause


def verdict(failure: Failure) -> str:
    """The verdict on a failure."""
    return "XFAIL" if failure.expected else failure.verdict


def causes(record: Record) -> dict[str, list[Failure]]:
    """The failures by cause: wrong rows first, known deviations last."""
    by_cause: dict[str, list[Failure]] = {}
    for failure in record.failures:
        by_cause.setdefault(cause(failure), []).append(failure)
    return by_cause


LESS = {"PARTLY_OBSERVED": "partly observed", "BY_ADAPTER": "answered by the adapter"}
"""Verdicts that are less than PASS, in the words of the headline."""


def _unbroken(verdicts: dict[str, int]) -> Standing:
    passed = f"{_clauses(verdicts.get('PASS', 0))} passed"
    passed += "".join(f", {verdicts[v]} {words}" for v, words in LESS.items() if v in verdicts)
    if verdicts.get("XFAIL"):
        return Standing(
            "known", "Conforms, except for known deviations", f"{passed}, {verdicts['XFAIL']} known to differ"
        )
    if verdicts.get("NOT_RUN"):
        return Standing("good", "Conforms", f"{passed}, {verdicts['NOT_RUN']} not run")
    return Standing("good", "Conforms", passed)


def _first(record: Record, start: str = "") -> str:
    """The first problem that begins so; empty if none does."""
    return next((p.removeprefix(start) for p in record.problems if p.startswith(start)), "")


def _clauses(n: int) -> str:
    return f"{n} clause" + "s" * (n != 1)


def groups(record: Record) -> list[Group]:
    """Every clause that did not pass, with its reason, most urgent verdicts first."""
    ids: dict[tuple[str, str], list[str]] = {}
    for c in record.clauses:
        if c.verdict != "PASS":
            ids.setdefault((c.verdict, c.reason), []).append(c.id)
    unsorted = [Group(verdict, reason, tuple(sorted(of, key=order))) for (verdict, reason), of in ids.items()]
    return sorted(unsorted, key=lambda g: (urgency(g.verdict), order(g.ids[0])))


def urgency(verdict: str) -> int:
    """Sorts verdicts, the most urgent first."""
    return URGENCY.index(verdict) if verdict in URGENCY else len(URGENCY)


SUSPECTS = 8
"""Clauses that a report names as those to look at first."""


def suspects(record: Record) -> list[ClauseRecord]:
    """The broken clauses that the differing traces point at, the likeliest first."""
    broken = [c for c in record.clauses if c.suspicion > 0 and c.verdict in (*BROKEN, "XFAIL")]
    return sorted(broken, key=lambda c: -c.suspicion)[:SUSPECTS]
