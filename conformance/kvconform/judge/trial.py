"""A trial: one trace on the oracle here and on the adapter there, in lockstep, up to the first difference."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import Struct

from kvconform.judge import frozen_answers, storage, visible
from kvconform.judge.kept_arrays import KeptArrays
from kvconform.judge.ledger import Accounts
from kvconform.judge.mask_columns import HANDING_OUT, Widths
from kvconform.judge.planted import Planted
from kvconform.judge.storage import Difference
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.abstract_state import Key, key
from kvconform.oracle.citing import CitingSession
from kvconform.oracle.deviating import PLAIN, Deviating
from kvconform.oracle.expected import Expected
from kvconform.oracle.list_model import OBSERVED, ListModelSession
from kvconform.oracle.reference import CitingReference, Performs
from kvconform.oracle.trace_inputs import RunInputs, TraceInputs
from kvconform.worker.remote_session import RemoteSession
from kvref.list_model.caches import CacheModel
from kvspec.contract import Claim, Description
from kvspec.geometry import Config
from kvspec.moved_clauses import now
from kvspec.operations.table import Operation, argument, cache_of, each_of, last_of, length_of, parts_of
from kvspec.reading.clauses import index
from kvspec.registry import opened
from kvspec.session.step import NOTHING, Inputs, Listed, Step
from kvspec.trace import Trace, looked_at, used_chapters


def level_of(trace: Trace, adapter: Description) -> str:
    """The level a trace is judged at: the lowest that the adapter claims of what the trace uses."""
    return adapter.lowest(looked_at(trace))


def run(
    trace: Trace,
    session: Performs,
    adapter: Description,
    level: str | None = None,
    watch: bool = False,
    past: bool = False,
    trace_inputs: TraceInputs | None = None,
    deviating: Deviating = PLAIN,
) -> TrialResult:
    """Judge an adapter's session on one trace, at the level claimed or at a lower one asked for.

    With `watch` the states that the oracle passes through are noted, to count what a source has exercised. With
    `past` the trial goes on past the first difference, to the end of the trace. `trace_inputs` makes the rows of a
    log by their names. `deviating` changes the oracle as known deviations do.
    """
    level = level or level_of(trace, adapter)
    plain = deviating is PLAIN and trace_inputs is None and not watch and not past
    if plain and frozen_answers.suffice(trace, adapter, level):
        known = _Frozen(trace, session, adapter, level, TraceInputs(trace), deviating)
        if known.agrees():
            return known.result
        session = session if known.kept.dropped else Recorded(known.result)
    inputs, claimed = trace_inputs or TraceInputs(trace), deviating.claimed(adapter)
    judged = (_Storage if level == "storage" else _Visible)(trace, session, claimed, level, inputs, deviating)
    judged.watch, judged.past = watch, past
    return judged.run()


def on(
    trace: Trace,
    performs: Callable[[tuple[str, ...]], Performs],
    adapter: Description,
    level: str | None = None,
    watch: bool = False,
    past: bool = False,
    deviating: Deviating = PLAIN,
) -> TrialResult:
    """Judge an adapter on one trace, as `run` does. `performs` makes a session that observes these observables."""
    level = level or level_of(trace, adapter)
    session = performs(observables(trace, adapter, level))
    return run(trace, session, adapter, level, watch, past, deviating=deviating)


class Recorded:
    """The answers of a trial again, as a session."""

    def __init__(self, seen: TrialResult) -> None:
        self._begun, self._answers = seen.begun, iter([got for _, got in seen.steps])

    def begin(self, kind: str, config: Config) -> Step:
        """What was answered when cache A was opened."""
        return self._begun

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """What was answered to the next operation."""
        return next(self._answers)


def explained(
    seen: TrialResult, deviating: Deviating, adapter: Description, trace_inputs: TraceInputs | None = None
) -> bool:
    """Whether an adapter that deviates in this way answers as was seen, up to the first difference."""
    trace, again = seen.trace.cut(len(seen.steps)), Recorded(seen)
    return not run(trace, again, adapter, seen.level, trace_inputs=trace_inputs, deviating=deviating).failed


def asked(session: Performs, op: Operation, inputs: Inputs) -> Callable[[], Step]:
    """The step, asked for now and waited for later where the adapter lives in another process."""
    if isinstance(session, RemoteSession):
        return session.later(op, inputs)
    return lambda: session.do(op, inputs)


CHANGE_CLAIMS = ("open", "init", "free", "speculate")
"""Operations after which something else may be claimed of a cache."""


class _Asked(Struct, frozen=True):
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


class _Trial:
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
        opening = self.trace.kind, self.trace.config
        begun, want = self.session.begin(*opening), self.begin(*opening)
        self.result.begun = begun
        if want.result != "ok":
            return self.result  # nothing can be done to what is never opened: shrinking tries such sizes
        if begun.result != "ok":
            message = f"opening {opening[0]}: expected ok, found {storage.outcome(begun)} ({begun.message})"
            self.result.steps.append((Step(), begun))
            self.result.differences.append(Difference("result", message, opened(opening[0]).opens))
            return self.result
        self.told("A", begun)
        self.accounts.open("A", self.trace.config, begun)
        self._walk()
        return self.result

    def begin(self, kind: str, config: Config) -> Step:
        """Open the oracle's cache A."""
        return self.oracle.begin(kind, config)

    def _walk(self) -> None:
        """Ask ahead, so that the worker works while the oracle does; look at the answers in order."""
        waiting: deque[_Asked] = deque()
        for op in self.trace.ops:
            waiting.append(self._asked(op))
            if len(waiting) >= self.AHEAD and not self._agrees(waiting.popleft()) and not self.past:
                break
        while waiting and (self.past or not self.result.failed):
            self._agrees(waiting.popleft())
        for left in waiting:
            left.answer()  # nobody looks at what came after a difference, but it has to be out of the way

    def _asked(self, op: Operation) -> _Asked:
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
        return _Asked(op, last, kind, config, claims.get(cache_of(op), claims["A"]), claims, want, answer)

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

    def _agrees(self, asked: _Asked) -> bool:
        got = self._refused(asked.want, asked.answer())
        self.result.steps.append((asked.want, got))
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

    def _account(self, asked: _Asked, got: Step) -> None:
        """Plans and costs, judged by what the adapter said before."""
        found = self.accounts.judge(asked.op, asked.kind, asked.config, got)
        asked.want.cites = tuple(dict.fromkeys((*asked.want.cites, *found.cites)))
        self.result.differences += found.differences
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

    def compare(self, asked: _Asked, got: Step) -> list[Difference]:
        """How the adapter differs."""
        raise NotImplementedError


class _Storage(_Trial):
    """Judged by the reference, slot by slot."""

    AHEAD = 16

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        observe = observables(self.trace, self.adapter, "storage")
        self.oracle = CitingReference(self.deviating.reference(), observe)

    def let_go(self, want: Step, got: Step) -> None:
        got.arrays = dict(want.arrays)  # they are equal, and the oracle keeps its own

    def state(self) -> Key:
        return key(self.oracle, self.result.book)

    def compare(self, asked: _Asked, got: Step) -> list[Difference]:
        return storage.storage(asked.want, got, self.result.book, asked.claim, asked.claims)


class _Frozen(_Trial):
    """Judged by what the reference is known to answer: results step by step, and in the end a hash of all the rest.
    It tells whether the adapter agrees. If not, the reference tells how, from the answers that were noted."""

    AHEAD = _Storage.AHEAD

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.past = True  # so that all answers are there to be judged again
        assert self.trace.frozen is not None
        self._outcomes, self._asked_for = iter(self.trace.frozen.outcomes), list[_Asked]()
        self._digest = frozen_answers.Digest()

    def agrees(self) -> bool:
        """Whether the adapter does what the reference does, and costs and plans are within bounds."""
        assert self.trace.frozen is not None
        steps = self.run().steps
        whole = not self.result.failed and len(steps) == len(self.trace.ops)
        if not whole or str(self._digest) != self.trace.frozen.digest:
            return False
        for asked, (want, got) in zip(self._asked_for, steps, strict=True):
            want.values, want.arrays = got.values, got.arrays
            super()._account(asked, got)
        return not self.result.failed

    def begin(self, kind: str, config: Config) -> Step:
        return Step()

    def expect(self, op: Operation, inputs: Inputs) -> Step:
        result, clause, cites, failed = next(self._outcomes)
        if isinstance(inputs.each, RunInputs):
            for number, part in enumerate(each_of(op), 1):
                inputs.each.make(part)
                last = number == length_of(op)
                inputs.each.done(part, result if last else "refused" if number - 1 in failed else "ok")
        return Step(result, clause, cites=cites)

    def compare(self, asked: _Asked, got: Step) -> list[Difference]:
        self._asked_for.append(asked)
        self._digest.add(got)
        return storage.result(asked.want, got)

    def _account(self, asked: _Asked, got: Step) -> None:
        """Costs follow from answers that are right: they are judged in the end."""


class _Visible(_Trial):
    """Judged by the list model, by what each query sees."""

    oracle: ListModelSession

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        looks = observables(self.trace, self.adapter, self.result.level)
        observe = tuple(o for o in OBSERVED if o in (*looks, "state", "mask", "sees"))
        rows, deviating = self.trace_inputs.keep_rows(), self.deviating
        self.oracle = ListModelSession(self.adapter, rows, observe, deviating.list_model())
        seen = tuple(dict.fromkeys((*looks, "history", "mask")))
        self.planted = None
        if deviating.references:
            both = CitingReference(observe=seen), CitingReference(deviating.reference(), seen)
            self.planted = Planted(both, self.result.book, self.adapter)
        self.judge = visible.Judge(self.result.book, looks)
        self.widths = Widths()

    def begin(self, kind: str, config: Config) -> Step:
        want = super().begin(kind, config)
        return want if self.planted is None else self.planted.begin(kind, config, want)

    def expect(self, op: Operation, inputs: Inputs) -> Step:
        want = super().expect(op, self.trace_inputs.named(op, inputs))
        assert isinstance(want, Expected)
        if self.planted is not None:
            want = self.planted.expect(op, inputs, want)
        if want.unsaid:
            return want
        op = last_of(op)
        judged = want.result == "ok" or want.clause == "MASK-12"
        if op["op"] == "mask" and judged and self.widths.unknown(op, inputs.logical or ()):
            want.result, want.cites = "any", ()
        return want

    def state(self) -> Key:
        key: Key = self.oracle.caches["A"].key()
        return key

    def leave_out(self, want: Step) -> None:
        assert isinstance(want, Expected)
        shown = visible.shown_by_bounds(want)
        self.result.bounded |= {name: shown[name] or self.result.bounded.get(name, False) for name in shown}
        empty = {name for name, says in shown.items() if not says}
        if empty:
            want.cites = tuple(c for c in want.cites if not set(index()[c].seen_in) <= empty)

    def compare(self, asked: _Asked, got: Step) -> list[Difference]:
        op, want = asked.last, asked.want
        assert isinstance(want, Expected)
        if want.unsaid and not want.either_way:
            return storage.unsaid(want.unsaid, got)
        found = self._compare(asked, want, got)
        if found and want.unsaid and not storage.unsaid(want.unsaid, got):
            for name in {cache_of(part) for part in (op, *parts_of(asked.op))} & set(self.oracle.caches):
                self.oracle.lose(name)
            return []
        return found

    def _compare(self, asked: _Asked, want: Expected, got: Step) -> list[Difference]:
        op = asked.last
        if any(getattr(cache, "unsure", False) for cache in self.oracle.caches.values()):
            return []
        for part in parts_of(asked.op) if asked.op is not op else ():
            self._unseen(part)
        self.told(cache_of(op), got)
        history = got.arrays.get("history.k")
        if history is not None and history.ndim == 4:
            self.widths.note(op, self._width(op), int(history.shape[2]))
        elif op["op"] in HANDING_OUT and want.result == "ok":
            self.widths.forget(op)
        cache = self.oracle.caches.get(cache_of(op))
        live = cache.tokens if isinstance(cache, CacheModel) and op["op"] == "append" else ()
        return self.judge.compare(op, want, got, asked.config.window is not None, asked.config.max_len, live)

    def _unseen(self, op: Operation) -> None:
        """A history that was handed out within a run is not known."""
        if op["op"] in HANDING_OUT:
            self.widths.note(op, 0, 0)
            self.judge.forget(op)

    def told(self, letter: str, step: Step) -> None:
        cache: Any = self.oracle.caches.get(letter)
        if isinstance(cache, CacheModel):
            cache.capacity = step.values.get("capacity", cache.capacity)
            cache.unseen = cache.unseen and "capacity" not in step.values
        elif getattr(cache, "follows", False):
            cache.said = step.values.get("free")

    def answered(self, op: Operation, answer: Callable[[], Step]) -> Callable[[], Step]:
        cache: Any = self.oracle.caches.get(cache_of(op))
        if not getattr(cache, "follows", False):
            return answer
        got = answer()
        cache.took, cache.answered = got.result == "ok", got.values
        return lambda: got

    def unseen(self) -> None:
        for cache in self.oracle.caches.values():
            if getattr(cache, "follows", False):
                cache.said = cache.took = cache.answered = None

    def _width(self, op: Operation) -> int:
        """Rows of the history that an operation made, by the spec."""
        if op["op"] == "draft":
            round_ = self.oracle.rounds[op["name"]]
            return int(round_.inner.layers[round_.layer(cache_of(op))].width)
        return int(self.oracle.caches[cache_of(op)].width)

    def fitted(self, op: Operation, inputs: Inputs) -> Inputs:
        """Explicit masks are as wide as the reference's history; make them as wide as this adapter's."""
        if op["op"] != "mask" or inputs.logical is None:
            return inputs
        room = self.trace_inputs.opened_as(op)[1].max_len
        return Inputs(logical=self.widths.fitted(op, inputs.logical, room))


def observables(trace: Trace, adapter: Description, level: str) -> tuple[str, ...]:
    """What to observe of an adapter's caches on a trace, at this level."""
    state = ("state",) if level == "storage" else ()
    return (*state, *adapter.observed(used_chapters(trace)))
