"""What all forms of a difference say."""

from __future__ import annotations

from itertools import groupby

from kvspec.records.difference import Change, Difference, Group, Side

TITLES: dict[Group, str] = {
    "broke anew": "Broke anew",
    "mended": "Mended",
    "no longer judged": "No longer judged",
    "new in the spec": "New in the spec",
    "newly judged": "Newly judged",
    "seen less of": "Holds, and less of it is seen",
    "still broken": "Still broken",
}
"""The heading of each group."""


def side(of: Side) -> str:
    """One record in a line."""
    return f"{of.engine} {of.version}, {of.started[:10]}: {of.result}"


def blocks(changes: list[Change]) -> list[list[Change]]:
    """The changes of one group that one trace shows, or that have one reason and the same verdicts, together."""

    def key(change: Change) -> tuple[str, ...]:
        return change.trace, change.why, change.before, change.now

    ordered = sorted(changes, key=key)
    found = [list(block) for _, block in groupby(ordered, key)]
    return sorted(found, key=lambda block: changes.index(block[0]))


def clauses(block: list[Change]) -> list[str]:
    """The ids of a block; one that has none is about no clause."""
    return [change.clause or "no clause" for change in block]


def verdicts(change: Change) -> str:
    """What became of the verdict: `PASS before, FAIL now`."""
    old, new = change.before or "not in the record", change.now or "not in the record"
    return f"{old} before and now" if old == new else f"{old} before, {new} now"


def headline(difference: Difference) -> str:
    """The answer in one sentence."""
    counts = [f"{len(found)} {group}" for group in TITLES if (found := difference.of(group))]
    told = "; ".join([*counts, f"{difference.unchanged} hold as before"])
    answer = {0: "Nothing broke anew", 1: "Something broke anew"}
    return f"{answer.get(difference.exit_status, 'No answer')}. Clauses: {told}."
