"""Failures that need a predecessor: a trace fails only after another one in the same process, as where caches share
a buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvconform.judge.trial_result import TrialResult
from kvspec.trace import Trace

LOOK_BACK = 8
"""Traces that ran last in a process, each of which may be the one that a failure needs."""

SEARCHES = 3
"""Searches for a predecessor in one check: each of them starts processes."""

Afresh = Callable[[Trace, Trace], TrialResult]
"""Runs a trace after another one in a process of its own."""


def predecessor(seen: TrialResult, earlier: Sequence[Trace], afresh: Afresh) -> tuple[TrialResult, Trace] | None:
    """Find the newest of the earlier traces after which a failing trace fails again, in a new process each; give
    that failure too. None if there is none."""
    cut = seen.trace.cut(len(seen.steps))
    for before in reversed(earlier):
        found = afresh(cut, before)
        if found.failed and found.verdict == seen.verdict:
            return found, before
    return None
