"""A run: worked examples and histories that aim, then random lives, until the requests are used up. Each failing
history is made short, blamed and drawn."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.reader.precision import UNITS, Precision
from kvadapters.serving.driver import Driver, Gone
from kvconform.serving.blame import blamed
from kvconform.serving.drawing import drawn
from kvconform.serving.judge import Judge, Wrong
from kvconform.serving.lives import lives
from kvconform.serving.player import Asked, Player
from kvconform.serving.recipes import aim, histories
from kvconform.serving.shrink import joined, shrunk
from kvspec.errors import BadInput
from kvspec.records.serving import ServingFailure
from kvspec.serving.history import History, told

FIRST, SUSPECT = "first verdict:", "not made short yet:"
TRIES, SECONDS = 300, 40.0
"""How much is done to make one failure short, if a run does not say otherwise."""
RARE = 20
"""One wrong history in so many is no matter of the dtype."""
MOST_FAILURES = 6
"""Failures that are made short; others are counted."""
SERVED_LOGPROB = 2.0**-19
"""The error of a logprob up to 32 in f32: one rounding as the largest logit is taken off, one of the logarithm."""


@dataclass
class Run:
    """What a run has found so far."""

    probe: Probe
    driver: Driver
    precision: Precision
    seed: int = 0
    tell: Callable[[str], None] = lambda text: None
    seconds: float = SECONDS
    """How long is taken to make a failure short, at most."""
    failures: list[ServingFailure] = field(default_factory=list)
    wrong_histories: int = 0
    partial: bool = False
    gone: str = ""
    """Why the engine could not be asked any more, and when."""
    aimed: Counter[str] = field(default_factory=Counter)
    """Requests by the clause that their history aims at."""
    seen: dict[str, Counter[str]] = field(default_factory=dict)
    """What was counted while histories of a clause were played."""

    def __post_init__(self) -> None:
        dtype = self.driver.declared.computes or self.precision.dtype
        self.precision = replace(self.precision, dtype=dtype, logprob=max(SERVED_LOGPROB, self.precision.logprob))
        if "adapters" in self.driver.declared.can and not self.probe.adapters:
            raise BadInput("the engine has adapters, and this probe has none: write it with --adapters")
        self.player = Player(self.driver, self.probe.layout.ids, self.seed)
        self.judge = Judge(self.probe, self.precision, "ranks" in self.driver.declared.can)
        self.aim = aim(self.driver.declared, self.probe.layout.layers, self.probe.layout.ids)
        self.past = list[History]()
        self.shortest = Shortest((), [], [], Counter())
        self.began, self.told_first = time.monotonic(), False

    def go(self, requests: int, most_failures: int = MOST_FAILURES) -> None:
        """Ask so many requests; an interruption ends the run and keeps what was found."""
        try:
            for clause, history in self._histories():
                if self.gone or self.asked >= requests or len(self.failures) >= most_failures:
                    return
                if clause in self.aimed and not self.told_first:
                    self._first_verdict()
                self._history(clause, history)
                self.tell(
                    f"{self.asked} of {requests} requests{self._left(requests)}, {self.wrong_histories} wrong"
                )
        except Gone as e:
            self._went(e, history)
        except KeyboardInterrupt:
            self.partial = True

    def _went(self, error: Gone, history: History) -> None:
        """Note that the engine is gone: it may have been ended, or have failed at something of a history."""
        self.partial = True
        self.gone = f"{error}; {self.asked} requests were judged; it went while this was asked: {told(history)}"
        self.judge.untold["all behind the last request: the engine was gone"] += 1

    @property
    def asked(self) -> int:
        """Requests that the run has asked, without those that made failures short."""
        return sum(self.aimed.values())

    def _first_verdict(self) -> None:
        """Tell how it stands once each clause was tried once."""
        self.told_first = True
        found = f"{self.wrong_histories} of {len(self.past)} histories wrong"
        tried = f"{len(self.aimed)} clauses tried once, {self.asked} requests"
        self.tell(f"{FIRST} {found if self.wrong_histories else 'nothing is wrong'}; {tried}")

    def _left(self, requests: int) -> str:
        spent = time.monotonic() - self.began
        left = spent / max(1, self.asked) * (requests - self.asked)
        return f", {left:.0f} s left" if spent > 1 and left >= 1 else ""

    def _histories(self) -> Iterator[tuple[str, History]]:
        yield from histories(self.aim, lives(self.aim, self.seed))

    def _history(self, clause: str, history: History) -> None:
        before = Counter(self._counts())
        asked = self.player.play(history)
        self.aimed[clause] += len(asked)
        wrong = self.judge.judged(asked)
        more = _more(self._counts(), before)
        self.seen.setdefault(clause, Counter()).update(more)
        self.past.append(history)
        if wrong:
            self.wrong_histories += 1
            self._failure(history, asked, wrong, more)

    def _counts(self) -> dict[str, int]:
        return {**self.player.counts, **self.driver.counts()}

    def _failure(self, history: History, asked: list[Asked], wrong: list[Wrong], told_of: Counter[str]) -> None:
        """Make a failure short, unless one like it is known, or another dtype explains it and one before it."""
        if hints := self._coarser(asked):
            if any(hints[0] in failure.found for failure in self.failures):
                return
            self.tell("; ".join([f"{SUSPECT} {wrong[0].words}", *hints]))
        self.shortest = Shortest(history, asked, wrong, told_of)
        try:
            alone = self._shorten(history)
        except Gone as e:
            alone = False
            self._went(e, history)
        short = self.shortest
        clause = blamed(short.asked, short.wrong, {step.do for step in short.history}, self.aim, short.counted)
        if any(f.clause == clause and f.sort == short.wrong[0].sort for f in self.failures):
            return
        hints = self._coarser(short.asked)
        found = [short.wrong[0].explained(), *short.wrong[1:]]
        self.failures.append(
            ServingFailure(
                clause=clause,
                sort=short.wrong[0].sort,
                history=told(short.history),
                alone=alone,
                found=[*[wrong.words for wrong in found][:8], *hints],
                drawing=[*drawn(short.asked, found, self.aim), *hints],
                first_seen=told(history),
                after=self.asked,
            )
        )
        self.tell("; ".join([f"{clause}: {found[0].words}", *hints]))

    def _coarser(self, asked: list[Asked]) -> list[str]:
        """Name the coarser dtypes in which none of these answers would be wrong: some engines compute in another
        one than their checkpoint has. That shows in many histories."""
        if self.wrong_histories * RARE < len(self.past):
            return []
        coarser = [d for d in ("f16", "bf16") if UNITS[d] > UNITS[self.precision.dtype]]
        judges = {d: Judge(self.probe, replace(self.precision, dtype=d)) for d in coarser}
        fits = " or ".join(dtype for dtype, judge in judges.items() if not judge.judged(asked))
        return (
            [f"nothing is wrong if the engine computes in {fits}: --dtype says what it computes in"] if fits else []
        )

    def _shorten(self, history: History) -> bool:
        """Find the shortest history that fails, and keep what was wrong with it. Tell whether it fails with nothing
        of this run before it: by itself, or behind the histories before it."""
        count = 1
        while count < 2 * len(self.past):
            longer = history if count == 1 else joined(self.past[-count:])
            if self._fails(longer):
                shrunk(longer, self._fails, TRIES, self.seconds)
                return True
            count *= 2
        return False

    def _fails(self, history: History) -> bool:
        """Tell whether a history fails, and keep what is wrong with it. If requests are under way together, one of
        two tries must fail. If the engine cannot begin anew, both must: it may have found rows of earlier ones by
        luck."""
        found = self._wrong_in(history)
        if any(step.do == "submit" for step in history):
            found = found or self._wrong_in(history)
        elif "reset" not in self.driver.declared.can:
            found = found and self._wrong_in(history)
        self.shortest = found or self.shortest
        return found is not None

    def _wrong_in(self, history: History) -> Shortest | None:
        """Play a history, and give what is wrong with it."""
        self._begin_anew()
        before = Counter(self._counts())
        try:
            asked = self.player.play(history)
        except BadInput:  # a prompt that is empty now
            return None
        wrong = self.judge.judged(asked)
        return Shortest(history, asked, wrong, _more(self._counts(), before)) if wrong else None

    def _begin_anew(self) -> None:
        """Begin on an engine that has done nothing, with the same tokens for the same words, if it can begin anew.
        Else take new tokens, which no request had before."""
        if "reset" in self.driver.declared.can:
            self.driver.reset()
            self.judge.past.clear()
            self.player.drawn.seed(self.seed)


@dataclass
class Shortest:
    """The shortest history so far that fails, its requests, what is wrong, and what was counted meanwhile."""

    history: History
    asked: list[Asked]
    wrong: list[Wrong]
    counted: Counter[str]


def _more(after: Mapping[str, int], before: Mapping[str, int]) -> Counter[str]:
    return Counter({name: count - before.get(name, 0) for name, count in after.items()})
