"""A claim to propose: each ability of the kinds that an adapter opens is tried once, and what was done is claimed.

A wrong result is proposed only if it is claimed already: a fault stays in the claim, and what the engine never
promised stays out. Dialects, limits, and claims on chapters that are more than their abilities are taken as given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from kvconform.generate.claims.ability_traces import AbilityTrace, ability_traces, first_operation, named_by
from kvconform.generate.claims.fit_to_adapter import suits, within
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.worker.client import Worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import CHAPTERS, LEVELS, Claim, Description, Level
from kvspec.notation import sentence
from kvspec.registry import CACHES, KINDS, RECORDS, Needed, abilities, named_abilities
from kvspec.trace import Trace, used_chapters


@dataclass(frozen=True)
class Attempt:
    """How it went to try an ability."""

    level: Level = "visible"
    """The level at which nothing differed, if nothing did."""
    done: bool = False
    """Whether it was done, rightly or not."""
    message: str = "no worked example shows it within the limits"
    """What differed first, or empty if nothing did."""
    words: str = ""
    """The trace."""
    in_storage: str = ""
    """The first difference at level storage, if level visible had none."""


class Proposal:
    """Tries every ability of an adapter's caches, and proposes a claim. Abilities that others need come first."""

    def __init__(self, worker: Worker, adapter: Description) -> None:
        self.worker, self.adapter = worker, adapter
        self.attempts: dict[Needed, Attempt] = {}
        """Every ability that was tried. An ability is not tried if every trace that shows it needs a missing
        one."""
        self.able: set[Needed] = set()
        """Abilities to claim."""
        self._left = [ability for ability in _everything() if self._may_have(ability)]
        while (ability := self._next()) is not None:
            self._left.remove(ability)
            self.attempts[ability] = attempt = self._try(ability)
            if attempt.done and (not attempt.message or self._claimed(ability)):
                self.able.add(ability)

    def description(self) -> Description:
        """Give the description of the adapter with the claims to propose."""
        found = [chapter for chapter in CHAPTERS if self._has_any(chapter)]
        given = [chapter for chapter in self.adapter.chapters if _is_more(chapter) and chapter not in found]
        return replace(self.adapter, chapters={chapter: self._claim(chapter) for chapter in [*found, *given]})

    def _may_have(self, ability: Needed) -> bool:
        """Tell whether the adapter opens the kind; masks that are made early are not asked for later."""
        chapter, name = ability
        claim = self.adapter.chapters.get(chapter)
        early = claim is not None and claim.dialects.get("made") == "before"
        return (chapter not in KINDS or claim is not None) and not (early and name == chapter)

    def _claimed(self, ability: Needed) -> bool:
        return ability[0] in self.adapter.chapters and self.adapter.able([ability])

    def _next(self) -> Needed | None:
        """Give the next ability to try: one whose traces need only abilities found or still to be tried."""
        alone = (a for a in self._left if any(self._traces(a)))
        return next(alone, None) or next((a for a in self._left if any(self._traces(a, self._left))), None)

    def _traces(self, ability: Needed, untried: Iterable[Needed] = ()) -> Iterator[AbilityTrace]:
        """Give the traces that show an ability and need only abilities that are there, or these."""
        anything = replace(self.adapter, chapters=dict.fromkeys(CHAPTERS, Claim("visible")))
        takes = {ability, *self.able, *untried}
        for each in (each for shown in self._shown_by(ability) for each in ability_traces().get(shown, ())):
            claimed = _always_claimed(each.trace) <= set(self.adapter.chapters)
            if each.takes <= takes and claimed and _shows(each, ability):
                trace = within(each.trace, self.adapter)
                yield from [replace(each, trace=trace)] if suits(trace, anything) else []

    def _shown_by(self, ability: Needed) -> Iterable[Needed]:
        """What is observed is also shown by the operation by which rows come into a cache."""
        chapter, name = ability
        observed = name in RECORDS[chapter].observe.values()
        kinds = (chapter,) if chapter in KINDS else CACHES
        return (ability, *(first_operation(kind) for kind in kinds if observed))

    def _try(self, ability: Needed) -> Attempt:
        """Try the best of the traces on which the spec lets the last operation succeed. For an ability that is
        named by clauses, try the best trace of each clause until one differs."""
        attempts, shown = list[Attempt](), set[str]()
        for each in (*self._traces(ability), *self._traces(ability, self._left)):
            if each.clause in shown or (attempts and not named_by(ability)):
                continue
            if attempt := self._tried(each, ability):
                attempts.append(attempt)
                shown.add(each.clause)
                if attempt.message:
                    break
        return attempts[-1] if attempts else Attempt()

    def _tried(self, each: AbilityTrace, ability: Needed) -> Attempt | None:
        """How a trace went, or None if its last operation is refused, unless that is what the ability is about."""
        seen = self._judged(each.trace, {*each.takes, ability})
        want, got = seen[-1].steps[-1] if seen[-1].steps else (None, None)
        if want is not None and want.result != ("refused" if each.refused and named_by(ability) else "ok"):
            return None
        done = not seen[-1].failed if got is None else got.result == "ok" or each.refused
        level: Level = "storage" if seen[-1].level == "storage" else "visible"
        return Attempt(level, done, _first(seen[-1]), sentence(each.trace), _first(seen[0]))

    def _judged(self, trace: Trace, takes: set[Needed]) -> list[TrialResult]:
        """Judge a trace at level storage, unless a dialect is declared; where that differs at level visible too."""
        trying = self._trying(trace, takes, "storage")
        first = [self._run(trace, trying, "storage")] if trying.plain else []
        if first and not first[0].failed:
            return first
        return [*first, self._run(trace, self._trying(trace, takes, "visible"), "visible")]

    def _run(self, trace: Trace, trying: Description, level: Level) -> TrialResult:
        return trial.on(trace, partial(RemoteSession, self.worker), trying, level, past=True)

    def _trying(self, trace: Trace, takes: set[Needed], level: Level) -> Description:
        """The adapter, as if it claimed the abilities found and those that a trace needs, in these chapters."""
        chapters = {*used_chapters(trace), *(chapter for chapter, _ in takes)}
        claims = {chapter: self._claim(chapter, self.able | takes) for chapter in chapters}
        return replace(self.adapter, chapters={c: replace(claim, level=level) for c, claim in claims.items()})

    def _claim(self, chapter: str, able: set[Needed] | None = None) -> Claim:
        """A claim on a chapter as it is declared, with these abilities alone; by default those to propose."""
        having = self.able if able is None else able
        without = frozenset(name for name in abilities(chapter) if (chapter, name) not in having)
        right = {of: attempt.level for of, attempt in self.attempts.items() if not attempt.message}
        levels = [level for (of, _), level in right.items() if of == chapter]
        claim = self.adapter.chapters.get(chapter, Claim("visible"))
        return replace(claim, level=min(levels, key=LEVELS.index, default=claim.level), without=without)

    def _has_any(self, chapter: str) -> bool:
        """Tell whether something of a chapter is there; of a kind, whether rows come into it."""
        any_of_it = any(of == chapter for of, _ in self.able)
        return first_operation(chapter) in self.able if chapter in KINDS else any_of_it


def _shows(each: AbilityTrace, ability: Needed) -> bool:
    """Tell whether a trace does something with what an ability opens. Opening a cache with a field of another
    chapter is not enough: without an operation of that chapter, the cache may just ignore the field."""
    chapter, name = ability
    field = any(named.name == name and named.config for named in named_abilities(chapter))
    other = any(of == chapter and a != name for of, a in each.takes)
    return chapter in KINDS or not field or other or _is_more(chapter)


def _is_more(chapter: str) -> bool:
    """Tell whether a chapter that is no kind also binds caches with none of its abilities. It does if it has no
    abilities, or if each is a field that a cache may be opened with."""
    fields = {named.name for named in named_abilities(chapter) if named.config}
    return chapter not in KINDS and set(abilities(chapter)) <= fields


def _always_claimed(trace: Trace) -> set[str]:
    """The kinds that a trace opens, and the chapters it uses that say something of caches with no ability."""
    return {chapter for chapter in used_chapters(trace) if chapter in KINDS or _is_more(chapter)}


def _first(seen: TrialResult) -> str:
    return seen.differences[0].message if seen.failed else ""


def _everything() -> list[Needed]:
    """List all abilities in the order to try them. First come those that put rows into caches, then what is
    observed, because the rest is tried with it."""
    rows = [first_operation(kind) for kind in KINDS]
    observed = [(chapter, name) for chapter in CHAPTERS for name in RECORDS[chapter].observe.values() if name]
    every = [(chapter, name) for chapter in CHAPTERS for name in abilities(chapter)]
    return list(dict.fromkeys([*rows, *observed, *every]))
