"""What a trial showed: its steps, its differences, and the clauses that these blame."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any

from kvconform.judge.ledger import Spent
from kvconform.judge.storage import ROWS, SEEN, Difference
from kvspec.contract import Lengths
from kvspec.operations.table import OPERATIONS, RUN, Operation, chapters_of, each_of, takes_rows
from kvspec.reading.clauses import index
from kvspec.records.run import Cause, VerdictName
from kvspec.rows.book import SerialBook
from kvspec.session.step import Step
from kvspec.trace import Trace

SIZES = (*Lengths._fields, "lengths", "sequences", "bytes", "held", "plan", "fit")
"""Observables that are sizes."""

VERDICT_OF: dict[str, VerdictName] = {"crash": "CRASH", "hang": "HANG", "oom": "OOM", "protocol": "PROTOCOL"}


@dataclass
class TrialResult:
    """What a trial showed. `steps` has one pair for each operation done: the expected values and the found ones."""

    trace: Trace
    level: str
    steps: list[tuple[Step, Step]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    book: SerialBook = field(default_factory=SerialBook)
    states: list[Hashable] = field(default_factory=list)
    """States the oracle passed through, where they were asked for."""
    spent: list[Spent] = field(default_factory=list)
    """What the operations cost, where that is metered."""
    first: str = ""
    """For a shortened trace with large numbers: the numbers from which on it fails, as in `window from 1025 on`."""
    bounded: dict[str, bool] = field(default_factory=dict)
    """The observables that have bounds, and whether agreeing with them showed anything at some step."""
    known: dict[str, str] = field(default_factory=dict)
    """Clauses that its first difference fails, each with the reason, where known deviations explain all of it."""
    later: list[tuple[Step, Step]] = field(default_factory=list)
    """The steps behind a known deviation, judged by what is known."""
    behind: str = ""
    """Why the adapter deviates earlier in the trace, where that is known: then it is judged by that."""
    over_memory: str = ""
    """Why nothing behind its last step was judged: the limit of memory, which no clause speaks of."""
    by_hash: bool = False
    """Whether it agreed with what is frozen of the trace."""
    begun: Step = field(default_factory=Step)
    """What the adapter answered when cache A was opened."""
    session: Any = None
    """The session, where it was asked for nothing behind the last step, and all its answers are kept."""

    @property
    def failed(self) -> bool:
        """Whether the adapter differed."""
        return bool(self.differences)

    @property
    def goes_on(self) -> bool:
        """Whether its session can go on behind the difference, as what operations take does not follow from it."""
        return self.session is not None and {d.field for d in self.differences}.isdisjoint(("result", "failed"))

    def shows(self, clause: str) -> bool:
        """Whether bounds were narrow enough to show a breach of a clause."""
        empty = {name for name, shown in self.bounded.items() if not shown}
        return not empty or not set(index()[clause].seen_in) <= empty

    @property
    def unexplained(self) -> bool:
        """Whether the adapter differed, and no known deviation explains it."""
        return self.failed and not self.known

    @property
    def oracle(self) -> str:
        """Who judged."""
        return "reference" if self.level == "storage" else "list model"

    @property
    def verdict(self) -> VerdictName:
        """PASS, FAIL, or how the worker ended."""
        return VERDICT_OF.get(self.steps[-1][1].result, "FAIL") if self.failed else "PASS"

    @property
    def blamed(self) -> tuple[str, ...]:
        """Clauses the differing step fails: those it exercised that govern what differed, else all it exercised."""
        if not self.failed:
            return ()
        if all(d.clause for d in self.differences):
            return tuple(dict.fromkeys(d.clause for d in self.differences))
        from kvconform.judge import conditions  # few traces differ

        found = self._governing()
        return conditions.at_fault(found, self.steps, self.differences, self.book)

    @property
    def ruled_out(self) -> set[str]:
        """Clauses that govern what differed, and are not at fault, because their condition does not hold."""
        return set(self._governing()) - set(self.blamed)

    def _governing(self) -> tuple[str, ...]:
        """Clauses that the differing step exercised and that govern what differed, else all it exercised."""
        cites = self.steps[-1][0].cites if self.failed else ()
        fields = {d.field for d in self.differences}
        if fields == {"failed"} and (taken := self._taken_in_a_run()):
            return (taken,)
        fields |= {"history"} if "sees" in fields else set()  # wrong rows, or a wrong mask
        wider = SEEN if fields & SEEN else set()
        governing = _governing(cites, fields) or _governing(cites, wider) or self._about(fields)
        return governing or self._of_operation(cites, fields) or cites

    def _taken_in_a_run(self) -> str:
        """The clause that refuses the first operation of a run that ended otherwise, or empty if none does."""
        want, got = (set(step.values.get("failed") or ()) for step in self.steps[-1])
        return self.steps[-1][0].missed.get(min(want ^ got, default=-1), "")

    def _of_operation(self, cites: tuple[str, ...], fields: set[str]) -> tuple[str, ...]:
        """The clauses on an operation that went wrong: not those on what is seen in passing."""
        last = self.trace.ops[len(self.steps) - 1 : len(self.steps)]
        chapters = {self.trace.kind}.union(*(chapters_of(op) for op in last))
        if fields != {"result"}:
            return ()
        from kvconform.judge import conditions

        return conditions.of_operation(cites, chapters)

    def _about(self, fields: set[str]) -> tuple[str, ...]:
        """The clause of this kind of cache on what it says of a rewind: a refused step cites only why."""
        own = (c for c in index().values() if self.trace.kind in c.chapters and not c.law)
        return tuple(c.id for c in own if set(c.seen_in) == fields) if fields == {"can"} else ()

    @property
    def cause(self) -> Cause:
        """What went wrong, in general."""
        want, got = self.steps[-1]
        if "result" in {d.field for d in self.differences}:
            if got.result == "unsupported":
                return "claimed, not there"
            return "taken though refused" if got.result == "ok" else "refused though owed"
        fields = {d.field for d in self.differences}
        if fields == {"failed"}:
            return "taken though refused" if self._taken_in_a_run() else "refused though owed"
        if fields in ({"can"}, {"accepts"}):
            return "wrong answer"
        if want.result == "refused":
            return "changed though refused"
        if "intact" in fields:
            return "alias"
        return "wrong length" if fields <= {*SIZES} else "wrong row"

    @property
    def lacks(self) -> bool:
        """Whether it ended at an operation that is claimed and not there, which says nothing of other clauses."""
        opening = any(d.clause for d in self.differences)
        return self.failed and not opening and self.cause == "claimed, not there"

    @property
    def wrote(self) -> tuple[str, ...]:
        """Clauses of the newest earlier operation that put named rows back, such as a restore or a commit. None
        unless the failing step reads wrong rows and nobody looked at them before.

        It may be to blame in a trace from which no operation can be left out.
        """
        if not self.failed or not ROWS & {d.field for d in self.differences}:
            return ()
        earlier = zip(self.trace.ops, self.steps[:-1], strict=False)
        steps = [want for op, (want, _) in earlier if OPERATIONS[op["op"]].uses]
        unseen = [_unseen(want) for want in reversed(steps) if want.result == "ok"]
        return next((clauses for clauses in unseen if clauses), ())

    @property
    def implicated(self) -> tuple[str, ...]:
        """Clauses that earlier steps exercised."""
        earlier = dict.fromkeys(c for want, _ in self.steps[:-1] for c in want.cites)
        return tuple(c for c in earlier if c not in self.blamed)

    def exercised(self) -> list[str]:
        """Clauses, once for each step that exercised them."""
        return [c for want, _ in self.steps for c in want.cites]

    def judged(self) -> list[str]:
        """Clauses, once for each step that says whether they hold. The step that differs says it only of those that
        it fails."""
        agreed = self.steps[:-1] if self.failed else self.steps
        return [*(c for want, _ in (*agreed, *self.later) for c in want.cites), *self.blamed]

    @property
    def whole(self) -> bool:
        """Whether all of the trace was judged, though what differs in it is known."""
        return bool(self.known) and len(self.steps) + len(self.later) == len(self.trace.ops)

    def with_rows(self) -> set[str]:
        """Clauses that an operation exercised which was done, and not refused, after rows were taken."""
        agreed = len(self.steps) - self.failed
        done = self._done(agreed)
        return {c for _, (want, _) in dropwhile(lambda pair: not _took(*pair), done) for c in want.cites}

    @property
    def took_rows(self) -> bool:
        """Whether an operation took rows, be it wrongly: what a cache shows of them may be what differs."""
        return any(_took(*each) for each in self._done(len(self.steps)))

    def _done(self, judged: int) -> list[tuple[Operation, tuple[Step, Step]]]:
        """The operations that were done: of the first `judged` steps, and of those behind a known deviation."""
        ops = [*self.trace.ops[:judged], *self.trace.ops[len(self.steps) :]]
        each = zip(ops, (*self.steps[:judged], *self.later), strict=False)
        return [(op, step) for op, step in each if step[1].result == "ok"]

    def suspected(self) -> set[str]:
        """Clauses that may be why it failed, if it did. These are all that it exercised. None of them is a refusal
        that was as it should be, at the step that differs or at an earlier one that showed the whole state."""
        if not self.failed or "result" in {d.field for d in self.differences}:
            return {*self.exercised(), *self.blamed}
        told = [*map(_showed_all, self.steps[:-1]), True]
        each = ((c, done) for (want, _), done in zip(self.steps, told, strict=True) for c in want.cites)
        return {c for c, done in each if not done or not _of_results(c)} | set(self.blamed)


def _of_results(clause: str) -> bool:
    """Whether a clause speaks of what is refused, and of nothing else."""
    return clause in index() and index()[clause].seen_in == ("result",)


def _showed_all(step: tuple[Step, Step]) -> bool:
    """Whether a refusal showed all that a cache keeps, so that nothing was changed unseen."""
    want, got = step
    return want.result == "refused" and any(name.partition(".")[0] == "state" for name in got.arrays)


def _governing(cites: tuple[str, ...], fields: Collection[str]) -> tuple[str, ...]:
    """The clauses that speak of one of these observables."""
    return tuple(c for c in cites if c in index() and set(fields) & set(index()[c].seen_in))


def _unseen(want: Step) -> tuple[str, ...]:
    """The clauses of a step that speak of rows, if it showed none."""
    shown = {name.partition(".")[0] for name in (*want.arrays, *getattr(want, "rows", ()))} & ROWS
    if shown or getattr(want, "sees", None) is not None:
        return ()
    return tuple(c for c in want.cites if c in index() and ROWS & set(index()[c].seen_in))


def _took(op: Operation, step: tuple[Step, Step]) -> bool:
    """Tell whether an operation that was done took rows; of a run, whether one of its operations did."""
    if op["op"] != RUN.name:
        return takes_rows(op)
    missed = set(step[1].values.get("failed") or ())
    return any(takes_rows(part) and number not in missed for number, part in enumerate(each_of(op)))
