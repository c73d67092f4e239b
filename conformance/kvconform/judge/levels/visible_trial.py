"""Trials at level visible: judged by the list model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kvconform.judge import storage
from kvconform.judge.levels import visible
from kvconform.judge.levels.mask_columns import HANDING_OUT, Widths
from kvconform.judge.lockstep import PendingStep, Trial, observables
from kvconform.judge.storage import Difference
from kvconform.oracle.expected import Expected
from kvconform.oracle.list_model import OBSERVED, ListModelSession
from kvconform.oracle.named_inputs import named
from kvconform.oracle.reference import CitingReference
from kvref.list_model.caches import CacheModel
from kvref.list_model.unsaid import AnyCache
from kvspec.geometry import Config
from kvspec.operations.table import Operation, cache_of, last_of, parts_of
from kvspec.reading.clauses import index
from kvspec.session.step import Inputs, Step

if TYPE_CHECKING:
    from kvconform.oracle.abstract_state import Key


class VisibleTrial(Trial):
    """Judged by the list model, by what each query sees."""

    oracle: ListModelSession

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        looks = observables(self.trace, self.adapter, self.result.level)
        observe = tuple(o for o in OBSERVED if o in (*looks, "mask", "sees"))
        rows, deviating = self.trace_inputs.keep_rows(), self.deviating
        self.oracle = ListModelSession(self.adapter, rows, observe, deviating.list_model())
        seen = tuple(dict.fromkeys((*looks, "history", "mask")))
        self.planted = None
        if deviating.references:
            from kvconform.judge.levels.planted import Planted  # few engines have known deviations

            both = CitingReference(observe=seen), CitingReference(deviating.reference(), seen)
            self.planted = Planted(both, self.result.book, self.adapter)
        self.judge = visible.Judge(self.result.book, looks)
        self.widths = Widths()

    def begin(self, kind: str, config: Config) -> Step:
        """Open cache A, with what is planted."""
        want = super().begin(kind, config)
        return want if self.planted is None else self.planted.begin(kind, config, want)

    def expect(self, op: Operation, inputs: Inputs) -> Step:
        """What the list model does, or what a planted deviation makes of it."""
        want = super().expect(op, named(self.trace_inputs, op, inputs))
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
        """The state of the list model's cache A; that of one of which nothing is said is any."""
        cache = self.oracle.caches["A"]
        key: Key = () if isinstance(cache, AnyCache) else cache.key()
        return key

    def leave_out(self, want: Step) -> None:
        """Leave out the clauses that a bound so wide shows nothing of."""
        assert isinstance(want, Expected)
        shown = visible.shown_by_bounds(want)
        self.result.bounded |= {name: shown[name] or self.result.bounded.get(name, False) for name in shown}
        empty = {name for name, says in shown.items() if not says}
        if empty:
            want.cites = tuple(c for c in want.cites if not set(index()[c].seen_in) <= empty)

    def compare(self, asked: PendingStep, got: Step) -> list[Difference]:
        """How the adapter differs from what is visible."""
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

    def _compare(self, asked: PendingStep, want: Expected, got: Step) -> list[Difference]:
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
        """Take in the capacity, and which pages are free."""
        cache: Any = self.oracle.caches.get(letter)
        if isinstance(cache, CacheModel):
            cache.capacity = step.values.get("capacity", cache.capacity)
            cache.unseen = cache.unseen and "capacity" not in step.values
        elif getattr(cache, "follows", False):
            cache.said = step.values.get("free")

    def answered(self, op: Operation, answer: Callable[[], Step]) -> Callable[[], Step]:
        """Wait where the oracle follows the engine."""
        cache: Any = self.oracle.caches.get(cache_of(op))
        if not getattr(cache, "follows", False):
            return answer
        got = answer()
        cache.took, cache.answered = got.result == "ok", got.values
        return lambda: got

    def unseen(self) -> None:
        """Forget what the engine chose: in a run nobody tells."""
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
