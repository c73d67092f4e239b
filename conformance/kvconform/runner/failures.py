"""Failures of the check at hand: each confirmed, made short, and kept once for each clause and cause.

Some need a predecessor: the trace fails only after another one in the same process, as where caches share a buffer.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import UNSET

from kvconform.generate.claims.fit_to_adapter import claimed
from kvconform.judge.trial_result import TrialResult
from kvspec.contract import Description
from kvspec.notation import sentence
from kvspec.records.run import Cause, Failure, Predecessor
from kvspec.trace import Trace

ATTEMPTS = {"FAIL": 300, "CRASH": 30, "PROTOCOL": 30, "OOM": 4, "HANG": 3}
"""Replays spent on making a failing trace short, by verdict: a hang costs its deadline each time."""

OF_KNOWN = 60
"""Replays spent on making a trace short that shows a known deviation, once for each clause in a process."""

SHORTENED = 3
"""Failures of one clause and cause that a process shortens; it only counts further ones. A record shows only the
shortest, and shortening takes most of the time of a failing run."""

SHORT = 2
"""Operations of a failing trace that need not be made shorter by finding another one for its clause and cause."""

LOOK_BACK = 8
"""How many of the newest traces of a process are tried as the predecessor that a failure needs."""

SEARCHES = 3
"""Searches for a predecessor in one check, at most: each of them starts processes."""


class Replays(Protocol):
    """The part of the adapter under test that its failures need."""

    adapter: Description
    ran: deque[Trace]

    @property
    def kept(self) -> list[Failure]:
        """The failures that this check keeps."""

    def trial(self, trace: Trace, *, reasons: bool = True) -> TrialResult:
        """One trial, counted nowhere. Without `reasons` it does not say why what differs is known."""

    def known_by(self, trace: Trace, why: str) -> TrialResult:
        """One trial up to its first difference, counted nowhere. The difference is known where the deviation with
        this reason alone explains it."""

    def afresh(self, trace: Trace, *before: Trace) -> TrialResult:
        """One trial in a new process, after these traces."""

    def repeats(self, seen: TrialResult) -> None:
        """Count a failure like others that were shortened before."""

    def failure(self, seen: TrialResult, source: str, deterministic: bool = True) -> Failure:
        """The record's entry of a failed trial."""


@dataclass
class Failures:
    """Keeps the failures of one check after another."""

    under_test: Replays
    confirmed: set[tuple[str, str]] = field(default_factory=set)
    """Verdict and clause of every failure that repeated and was shortened, in any check."""
    shortened: Counter[tuple[str, Cause]] = field(default_factory=Counter)
    """How many failures of a clause and a cause were made short, in all checks."""
    shortest: dict[tuple[str, Cause], int] = field(default_factory=dict)
    """Operations of the shortest of them."""
    alone: set[tuple[str, Cause]] = field(default_factory=set)
    """Clause and cause of every failure that repeated in a new process, in any check."""
    known: dict[tuple[str, str], TrialResult] = field(default_factory=dict)
    """A short trace of each known deviation, by the clause that it shows broken and the reason, in any check."""
    searches: int = 0
    """Searches of this check for a trace that a failure needs before it."""

    def begin_check(self) -> None:
        """Forget what concerns one check alone."""
        self.searches = 0

    def keep_known(self, seen: TrialResult, source: str) -> None:
        """Keep a trace for each clause and reason of a known deviation that has none yet in this check. It is made
        short once in all checks."""
        kept = {(clause, why) for f in self.under_test.kept for clause, why in f.known.items()}
        for shows in [shows for shows in seen.known.items() if shows not in kept]:
            if shows not in self.known:
                self.known[shows] = self._shortest_known(seen, shows)
                self._add(self.known[shows], source)
            else:
                self._add(seen, source)

    def _shortest_known(self, seen: TrialResult, shows: tuple[str, str]) -> TrialResult:
        """The known deviation on a shorter trace of what the adapter claims."""

        def fails(trace: Trace) -> int:
            if not self._claimed(trace):
                return 0
            other = self.under_test.known_by(trace, shows[1])
            same = (other.verdict, other.cause) == (seen.verdict, seen.cause) if other.known else False
            return max(1, len(other.steps)) if same and shows in other.known.items() else 0

        from kvconform.generate.shrink.shrink import shrink  # few runs fail

        attempts = min(OF_KNOWN, ATTEMPTS[seen.verdict])
        final = self.under_test.trial(shrink(seen.trace.cut(len(seen.steps)), fails, attempts))
        return final if shows in final.known.items() else seen

    def keep(self, seen: TrialResult, source: str) -> None:
        """Keep the shortest trace for each clause and cause of this failure that has none yet in this check.

        What kills the worker is confirmed and shortened once for each clause in the whole run.
        """
        if seen.verdict != "FAIL" and self.confirmed >= {(seen.verdict, c) for c in seen.blamed or ("",)}:
            if not self.under_test.kept:
                self._add(seen, source)
            return
        needy = [c for c in seen.blamed or ("",) if not self._needs_no_other(c, seen.cause)]
        if not needy:
            self.under_test.repeats(seen)
            return
        earlier = [*self.under_test.ran][:-1]
        again = self.under_test.trial(seen.trace.cut(len(seen.steps)))
        if not again.unexplained:
            self._keep_after(seen, source, earlier)
            return
        for clause in needy:
            self._keep_one(seen, clause, source, earlier)

    def _needs_no_other(self, clause: str, cause: Cause) -> bool:
        """Whether failures of this clause and cause were made short often enough, or one is short already."""
        of = clause, cause
        return self.shortened[of] >= SHORTENED or self.shortest.get(of, SHORT + 1) <= SHORT

    def _keep_one(self, seen: TrialResult, clause: str, source: str, earlier: Sequence[Trace]) -> None:
        """Keep this failure for one clause."""
        if clause in self._kept(seen.cause):
            return
        short = self._shortest(seen, clause)
        if not self._repeats(short, clause):
            if not self.under_test.afresh(seen.trace.cut(len(seen.steps))).unexplained:
                self._keep_after(seen, source, earlier)
                return
            short = seen  # only what ran before made its shorter traces fail
        kept = self._add(short, source)
        for of in ((c, short.cause) for c in short.blamed or ("",)):
            self.shortened[of] += 1
            self.shortest[of] = min(len(short.trace.ops), self.shortest.get(of, len(short.trace.ops)))
        kept.clauses += [c for c in short.wrote if c not in kept.clauses]
        kept.implicated = [c for c in kept.implicated if c not in kept.clauses]
        self.confirmed |= {(short.verdict, c) for c in short.blamed or ("",)}

    def _repeats(self, short: TrialResult, clause: str) -> bool:
        """Tell whether it fails in a new process too. Tried until it did once for the clause and cause."""
        failing = clause, short.cause
        if failing not in self.alone and self.under_test.afresh(short.trace).unexplained:
            self.alone.add(failing)
        return failing in self.alone

    def _keep_after(self, seen: TrialResult, source: str, earlier: Sequence[Trace]) -> None:
        """Keep a failure that does not repeat alone, with its predecessor if one is found."""
        needy = {c for f in self.under_test.kept if f.after is not UNSET for c in f.clauses or ("",)}
        if needy >= set(seen.blamed or ("",)):
            return
        self.searches += 1
        found = predecessor(seen, earlier, self.under_test.afresh) if self.searches <= SEARCHES else None
        if found is None:
            self._add(seen, source, deterministic=False)
            return
        again, before = found
        self._add(again, source).after = Predecessor(words=sentence(before), trace=before.to_json())

    def _kept(self, cause: Cause) -> set[str]:
        """Clauses for which this check keeps an unknown failure of this cause; without a clause, any failure."""
        clauses = {c for f in self.under_test.kept if f.cause == cause for c in f.clauses if c not in f.known}
        return clauses | ({""} if any(not f.expected for f in self.under_test.kept) else set())

    def _shortest(self, seen: TrialResult, clause: str) -> TrialResult:
        """The same failure, of the same cause, on a shorter trace of what the adapter claims."""

        def fails(trace: Trace) -> int:
            if not self._claimed(trace):
                return 0
            other = self.under_test.trial(trace, reasons=False)  # what is known by itself is another failure
            same = other.unexplained and (other.verdict, other.cause) == (seen.verdict, seen.cause)
            same = same and (not clause or clause in other.blamed)
            return max(1, len(other.steps)) if same else 0

        from kvconform.generate.shrink.shrink import first_of, shrink  # few runs fail

        short = shrink(seen.trace.cut(len(seen.steps)), fails, ATTEMPTS[seen.verdict])
        final = self.under_test.trial(short)
        if not final.unexplained:
            return seen
        final.first = ", ".join(first_of(short, fails)) if seen.verdict == "FAIL" else ""
        return final

    def _claimed(self, trace: Trace) -> bool:
        """Whether the adapter claims all of a trace."""
        adapter = self.under_test.adapter
        return claimed(trace, adapter) == trace and adapter.supports(trace.config)

    def _add(self, seen: TrialResult, source: str, deterministic: bool = True) -> Failure:
        kept = self.under_test.failure(seen, source, deterministic)
        if not kept.expected or all(kept.words != f.words for f in self.under_test.kept):
            self.under_test.kept.append(kept)
        return kept


def predecessor(
    seen: TrialResult, earlier: Sequence[Trace], afresh: Callable[[Trace, Trace], TrialResult]
) -> tuple[TrialResult, Trace] | None:
    """Find the newest of the earlier traces after which a failing trace fails again, in a new process each; give
    that failure too. None if there is none."""
    cut = seen.trace.cut(len(seen.steps))
    for before in reversed(earlier):
        found = afresh(cut, before)
        if found.unexplained and found.verdict == seen.verdict:
            return found, before
    return None
