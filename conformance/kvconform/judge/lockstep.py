"""A trial's walk through its trace: the oracle here and the adapter there, in lockstep, asked ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from kvconform.judge import storage
from kvconform.judge.kept_arrays import KeptArrays
from kvconform.judge.ledger import Accounts
from kvconform.judge.storage import Difference
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.deviating import Deviating
from kvconform.oracle.expected import Expected
from kvconform.oracle.trace_inputs import RunInputs, TraceInputs
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Claim, Description
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument, cache_of, last_of
from kvspec.reading.moved_clauses import now
from kvspec.registry import opened
from kvspec.session.step import NOTHING, Inputs, Listed, Step
from kvspec.trace import Trace, used_chapters

if TYPE_CHECKING:
    from kvconform.oracle.abstract_state import Key
    from kvconform.oracle.citing import CitingSession


class Performs(Protocol):
    """A session, here or in a worker."""

    def begin(self, kind: str, config: Config) -> Step:
        """Open cache A, and forget all that was."""

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation."""


def asked(session: Performs, op: Operation, inputs: Inputs) -> Callable[[], Step]:
    """The step, asked for now and waited for later where the adapter lives in another process."""
    if isinstance(session, RemoteSession):
        return session.later(op, inputs)
    return lambda: session.do(op, inputs)


def begun(session: Performs, kind: str, config: Config) -> Callable[[], Step]:
    """The same of opening cache A."""
    if isinstance(session, RemoteSession):
        return session.begin_later(kind, config)
    return lambda: session.begin(kind, config)


CHANGE_CLAIMS = ("open", "init", "free", "speculate")
"""Operations after which something else may be claimed of a cache."""


FAR_AHEAD = 16
"""Operations asked for ahead where nothing that is right follows from the answers."""


class PendingStep(Struct, frozen=True):
    """An operation asked for: its cache, the claim on it, what the oracle did, and what waits for the answer."""

    op: Operation
    """As in the trace."""
    last: Operation
    """After which it is observed: the last one of a run."""
    kind: str
    config: Config
    claim: Claim
    claims: dict[str, Claim]
    """Those on all caches, by their letters."""
    want: Step
    answer: Callable[[], Step]


class Trial:
    """What both levels share: the walk through the trace."""

    AHEAD = 1
    """Operations asked for before the first answer is looked at."""

    oracle: CitingSession

    def __init__(
        self,
        trace: Trace,
        session: Performs,
        adapter: Description,
        level: str,
        trace_inputs: TraceInputs,
        deviating: Deviating,
    ) -> None:
        self.trace, self.session, self.adapter = trace, session, adapter
        self.trace_inputs, self.deviating = trace_inputs, deviating
        self.result = TrialResult(trace, level, book=self.trace_inputs.book)
        self.accounts = Accounts(adapter, level)
        self.kept = KeptArrays()
        self.watch = self.past = False
        self.speculated: set[str] = set()
        """Caches that were in a round: drafts that were not kept may have made them grow."""
        self.claims: dict[str, Claim] = {}
        """Those on all caches, by their letters; made anew where they may have changed."""

    def run(self) -> TrialResult:
        """The result: open cache A on both sides, then walk through the trace."""
        opening = self.trace.kind, self.trace.config
        answer, want = begun(self.session, *opening), self.begin(*opening)
        if want.result != "ok":  # nothing can be done to what is never opened: shrinking tries such sizes
            self.result.begun = answer()
        else:
            self._walk(answer)
        return self.result

    def _opened(self, begun: Step) -> bool:
        """Tell whether the adapter opened cache A, as the oracle did."""
        self.result.begun = begun
        if begun.result != "ok":
            kind = self.trace.kind
            message = f"opening {kind}: expected ok, found {storage.outcome(begun)} ({begun.message})"
            self.result.steps.append((Step(), begun))
            self.result.differences.append(Difference("result", message, opened(kind).opens))
            self.result.states.clear()
            return False
        self.told("A", begun)
        self.accounts.open("A", self.trace.config, begun)
        return True

    def begin(self, kind: str, config: Config) -> Step:
        """Open the oracle's cache A."""
        return self.oracle.begin(kind, config)

    def _walk(self, begun: Callable[[], Step]) -> None:
        """Ask ahead, so that the worker works while the oracle does. Look at the answers in order."""
        ops = iter(self.trace.ops)
        waiting = deque(map(self._asked, islice(ops, self.AHEAD - 1)))
        is_open = self._opened(begun())
        for op in ops if is_open else ():
            waiting.append(self._asked(op))
            if not self._agrees(waiting.popleft()) and not self.past:
                break
        while is_open and waiting and (self.past or not self.result.failed):
            self._agrees(waiting.popleft())
        for left in waiting:
            left.answer()  # nobody looks at what came after a difference, but it has to be out of the way
        if is_open and self.AHEAD == 1 and not self.kept.dropped:
            self.result.session = self.session

    def _asked(self, op: Operation) -> PendingStep:
        inputs, last = self.trace_inputs.make(op), last_of(op)
        if isinstance(inputs.each, RunInputs):  # what it takes follows from what the oracle takes of it
            self.unseen()
            want = self.expect(op, inputs)
            answer = asked(self.session, op, Inputs(each=Listed(inputs.each.made)))
        else:
            answer = self.answered(op, asked(self.session, op, self.fitted(op, inputs)))
            want = self.expect(op, inputs)
        kind, config = inputs.opening if inputs.opening and op["op"] == "open" else self.trace_inputs.opened_as(op)
        self.trace_inputs.done(op, want.result)
        if self.watch:
            start = self.trace.config
            self.result.states.append((self.trace.kind, start.window, start.step, *self.state()))
        alone = [op] if want.result == "ok" else []
        for part in inputs.each.performed if isinstance(inputs.each, RunInputs) else alone:
            self._note_rounds(part)
        claims = self.claims = self.claims or {x: self._claim(x) for x in self.trace_inputs.opened}
        return PendingStep(op, last, kind, config, claims.get(cache_of(op), claims["A"]), claims, want, answer)

    def _note_rounds(self, op: Operation) -> None:
        if op["op"] not in CHANGE_CLAIMS:
            return
        self.claims = {}
        if op["op"] == "speculate" and not argument(op, "isolated"):
            kinds = {letter: self.trace_inputs.opened[letter][0] for letter in op["layers"].replace("-", "")}
            self.speculated |= {letter for letter, kind in kinds.items() if opened(kind).grows_with_drafts}
        elif op["op"] in ("open", "free"):
            self.speculated.discard(cache_of(op))

    def _claim(self, letter: str) -> Claim:
        """What is claimed of a cache; after a round only the least is owed of its capacity."""
        claim = self.adapter.chapters[self.trace_inputs.opened[letter][0]]
        return replace(claim, grows="free") if letter in self.speculated else claim

    def _agrees(self, asked: PendingStep) -> bool:
        got = self._refused(asked.want, asked.answer())
        self.result.steps.append((asked.want, got))
        self.result.book.look_at(asked.config)
        self.result.book.plain = asked.want.plain if isinstance(asked.want, Expected) else frozenset()
        self.result.differences += self.compare(asked, got)
        if got.result == asked.want.result:
            self._account(asked, got)
        if not self.result.failed:
            self.leave_out(asked.want)
            self.let_go(asked.want, got)
        self.kept.keep(got)
        return not self.result.failed and got.result not in storage.ENDS

    def _refused(self, want: Step, got: Step) -> Step:
        """An engine's own error is a refusal where the spec refuses; whether it changed something is looked at."""
        either = isinstance(want, Expected) and want.either
        got.clause = now(got.clause)  # an engine may be older than the spec
        if (want.result == "refused" or either) and got.result == "error" and self.adapter.refusals == "own":
            got.result = "refused"
        if either and got.result == "refused":
            got.result = want.result
        if isinstance(want, Expected) and want.may_fail and isinstance(failed := got.values.get("failed"), list):
            got.values["failed"] = [number for number in failed if number not in want.may_fail]
        return got

    def _account(self, asked: PendingStep, got: Step) -> None:
        """Plans and costs, judged by what the adapter said before."""
        found = self.accounts.judge(asked.op, asked.kind, asked.config, got)
        asked.want.cites = tuple(dict.fromkeys((*asked.want.cites, *found.cites)))
        unsaid = isinstance(asked.want, Expected) and asked.want.unsaid  # a known deviation: its books may be wrong
        self.result.differences += [] if unsaid else found.differences
        self.result.spent += [found.spent] if found.spent else []

    def expect(self, op: Operation, inputs: Inputs) -> Step:
        """What the oracle does."""
        return self.oracle.do(op, inputs)

    def answered(self, op: Operation, answer: Callable[[], Step]) -> Callable[[], Step]:
        """Wait for the answer before the oracle is asked, where what is right follows from it."""
        return answer

    def unseen(self) -> None:
        """A run begins: what the adapter does in it is not told operation by operation."""

    def told(self, letter: str, step: Step) -> None:
        """Take in what the adapter says of a cache and the oracle cannot know."""

    def leave_out(self, want: Step) -> None:
        """Leave out the clauses of a step that agrees, if bounds are so wide that it would agree without them."""

    def let_go(self, want: Step, got: Step) -> None:
        """Drop what need not be kept of an answer that agrees."""

    def state(self) -> Key:
        """The state of the oracle's cache A, up to renaming rows and shifting positions."""
        raise NotImplementedError

    def fitted(self, op: Operation, inputs: Inputs) -> Inputs:
        """What the adapter is given, where that differs."""
        return inputs

    def compare(self, asked: PendingStep, got: Step) -> list[Difference]:
        """How the adapter differs."""
        raise NotImplementedError


def observables(trace: Trace, adapter: Description, level: str) -> tuple[str, ...]:
    """What to observe of an adapter's caches on a trace, at this level."""
    state = ("state",) if level == "storage" else ()
    return (*state, *adapter.observed(used_chapters(trace)))
