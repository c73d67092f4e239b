"""The result of a run in a few words: the standing, the counts, and why clauses did not pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kvreports.clauses import chapter_order, order, rank
from kvspec.contract import CHAPTERS
from kvspec.records.run import BROKEN, HELD, VERDICTS, Failure, Record

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
    """Clauses by verdict, counted again here, in the order of the verdicts; zeros left out."""
    verdicts = Counter(c.verdict for c in record.clauses)
    return {v: verdicts[v] for v in VERDICTS if verdicts[v]}


def standing(record: Record) -> Standing:
    """The result of the run as a whole. It is never better than its clauses, whatever the exit status."""
    verdicts = counts(record)
    if any(verdicts.get(v) for v in BROKEN):
        return Standing("bad", "Does not conform", score(record))
    if record.unexplained:
        traces = "a trace that breaks a clause" if len(record.unexplained) == 1 else "traces that break clauses"
        return Standing("bad", "Does not conform", f"{traces} outside the selection")
    if dishonest := _first(record, "adapter: "):
        return Standing("bad", "Does not conform", dishonest)
    status = record.exit_status
    held = sum(verdicts.get(v, 0) for v in HELD)
    if over := _first(record, "memory: "):
        return Standing("bad", "The limit of memory was reached", over)
    if record.partial and held and not verdicts.get("HARNESS_ERROR"):
        return Standing("known", "No difference so far", f"{score(record)}; the run did not finish")
    if status == 4:
        return Standing("none", "Cannot run here", _first(record))
    if status == 2:
        return Standing("none", "Did not start", _first(record))
    if not held and not verdicts.get("XFAIL"):
        unclaimed = "none of these clauses is claimed" if not verdicts.keys() - {"NOT_CLAIMED"} else ""
        return Standing("bad", "Nothing was exercised", _first(record) or unclaimed)
    if status == 3 and verdicts.get("NOT_RUN") and not verdicts.get("HARNESS_ERROR"):
        return Standing("bad", "Not all that it claims was exercised", score(record))
    if status != 0 or verdicts.get("HARNESS_ERROR"):
        return Standing("bad", "The harness failed", _first(record))
    if verdicts.get("XFAIL"):
        return Standing("known", "Conforms, except for known deviations", score(record))
    return Standing("good", "Conforms", score(record))


def score(record: Record) -> str:
    """How many of the claimed clauses hold: 61 of 64 clauses it claims, 3 of them partly observed, 2 of 17
    chapters."""
    verdicts, claimed = counts(record), len(record.clauses) - counts(record).get("NOT_CLAIMED", 0)
    held = sum(verdicts.get(v, 0) for v in HELD)
    less = [f"{verdicts[v]} of them {words}" for v, words in LESS.items() if v in verdicts]
    broken = sum(verdicts.get(v, 0) for v in BROKEN)
    rest = [f"{broken} broken"] * bool(broken)
    rest += [f"{verdicts[v]} {words}" for v, words in REST.items() if v in verdicts]
    judged = {c.chapter for c in record.clauses} & set(record.adapter.get("chapters") or ())
    chapters = f"{len(judged)} of {len(CHAPTERS)} chapters"
    part = ["a run of a part"] if "left out" in record.selection else []
    return ", ".join([f"{held} of {in_words(claimed)} it claims", *less, *rest, chapters, *part])


def verdict(failure: Failure) -> str:
    """The verdict on a failure."""
    return "XFAIL" if failure.expected else failure.verdict


LESS = {"PARTLY_OBSERVED": "partly observed", "BY_ADAPTER": "answered by the adapter"}
"""Verdicts that are less than PASS, in the words of the headline."""

REST = {"XFAIL": "known to differ", "NOT_RUN": "not run", "HARNESS_ERROR": "not finished"}
"""Verdicts that are neither, in the words of the headline."""


def _first(record: Record, start: str = "") -> str:
    """The first problem that begins with this; empty if none does."""
    return next((p.removeprefix(start) for p in record.problems if p.startswith(start)), "")


def in_words(n: int) -> str:
    """A number of clauses: `1 clause`, `2 clauses`."""
    return f"{n} clause" + "s" * (n != 1)


def groups(record: Record) -> list[Group]:
    """Every clause that neither passed nor is broken, with its reason, most urgent verdicts first. `findings` has
    the broken ones, `unclaimed_chapters` the chapters without a claim."""
    ids: dict[tuple[str, str], list[str]] = {}
    left_out = unclaimed_chapters(record)
    for c in record.clauses:
        if c.chapter not in left_out and c.verdict not in ("PASS", "XFAIL", *BROKEN):
            ids.setdefault((c.verdict, c.reason), []).append(c.id)
    unsorted = [Group(verdict, reason, tuple(sorted(of, key=order))) for (verdict, reason), of in ids.items()]
    return sorted(unsorted, key=lambda g: (rank(g.verdict, URGENCY), order(g.ids[0])))


def unclaimed_chapters(record: Record) -> dict[str, int]:
    """The chapters of the run that the adapter does not declare, each with the number of its clauses."""
    declared = record.adapter.get("chapters") or ()
    left = [c for c in record.clauses if c.verdict == "NOT_CLAIMED" and c.chapter not in declared]
    return dict(sorted(Counter(c.chapter for c in left).items(), key=lambda item: chapter_order(item[0])))
