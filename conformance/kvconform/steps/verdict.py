"""The verdict on a log: which clauses it was judged by, and its exit status."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kvconform.steps.broken import Broken
from kvconform.steps.judge import Judge
from kvconform.steps.log_file import Line, opened
from kvconform.steps.shorten import shortened
from kvspec.errors import BadInput
from kvspec.steps.clauses import index

EXERCISES = ("hits", "evictions", "preemptions", "forks", "drafts", "copies", "loads")
"""What an engine does with pages beside filling them. A log with nothing of it shows nothing."""


@dataclass(frozen=True)
class Verdict:
    """What a log showed. `broken` is None if it breaks no clause; `shortest` are the events that break it."""

    counts: Counter[str]
    broken: Broken | None
    shortest: tuple[Line, ...] = ()

    @property
    def exercised(self) -> bool:
        """Whether anything was done that can go wrong."""
        return any(self.counts[name] for name in EXERCISES)

    @property
    def exit_status(self) -> int:
        """Give 0 for a log that breaks nothing, 1 for one that breaks a clause, 3 where nothing was exercised."""
        return 1 if self.broken else 0 if self.exercised else 3

    @property
    def not_judged(self) -> list[str]:
        """Give the clauses that the log has nothing for, in their order."""
        return [id_ for id_, clause in index().items() if not all(self._has(need) for need in clause.needs)]

    def _has(self, need: str) -> bool:
        return self.counts[need] > (need == "groups")


def judged(path: Path) -> Verdict:
    """Judge a log. Raises BadInput for what cannot be read."""
    with opened(path) as (header, lines):
        judge = Judge(header)
        try:
            broken = judge.judge(lines)
        except BadInput as e:
            raise BadInput(str(e) if str(e).startswith(str(path)) else f"{path}, {e}") from None
    judge.counts["drafts"] = judge.counts["accepted"] + judge.counts["rejected"]
    return Verdict(judge.counts, broken, tuple(shortened(path, broken)) if broken else ())
