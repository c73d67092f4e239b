"""The oracle at level `visible`: the list model. Its steps say what it expects."""

from __future__ import annotations

from typing import Any, ClassVar

from kvconform.oracle.citing import CitingSession
from kvconform.oracle.expected import NOT_SAID, SAVED, Expected
from kvref.list_model.adapter import ListModel
from kvref.list_model.attention_bound import Rows as KeyAndValue
from kvref.list_model.caches import CacheModel
from kvref.list_model.layers import LayersModel
from kvref.list_model.rows import ANYTHING, UNKNOWN, Room, Rows
from kvref.list_model.unsaid import AnyCache, Unsaid
from kvspec.contract import Description
from kvspec.operations.table import ON_ROUNDS, OPERATIONS, Operation, cache_of, caches_named, each_of
from kvspec.session.arrays import Lent
from kvspec.session.step import NOTHING, Inputs, Step

OBSERVED = ("state", "positions", "mask", "sees", "fold", "offset", "free", "can")
"""What is observed: rows by name, what queries see, and what a cache says of itself."""


class ListModelSession(CitingSession):
    """The list model on one trace. It observes serials instead of arrays, and lends no arrays to a caller."""

    step_type: ClassVar[type[Step]] = Expected

    def __init__(
        self,
        description: Description,
        rows: dict[int, KeyAndValue] | None = None,
        observe: tuple[str, ...] = OBSERVED,
        model: type[ListModel] = ListModel,
    ) -> None:
        """`description` is that of the adapter to be judged. `rows` are those made so far, by serial. `model` is
        the list model, or that of a known deviation."""
        super().__init__(model(description.chapters, rows), observe)
        self._either, self._unknown, self._unsaid = set[int](), False, False
        self._claims = description.chapters

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Expected:
        """Perform one operation, with rows by name: see `TraceInputs.named`."""
        step = super().do(op, inputs)
        assert isinstance(step, Expected)
        if op["op"] == "scribble":
            self._overwritten(cache_of(op), step)
        lost = isinstance(self.caches.get(cache_of(op)), AnyCache)
        if lost or (step.result == "absent" and self._says_less()):  # it may be there in such a cache
            step.result, step.unsaid = "any", step.unsaid or "any"
            self._lose_what(op)
        return step

    def _lose_what(self, op: Operation) -> None:
        """Say nothing of the caches of an operation of which nothing is said, nor of what it made. Rows of one
        cache may be in another, and a name may stand for something new."""
        for name in {cache_of(op), *caches_named(op)} & set(self.caches):
            self.lose(name)
        record = OPERATIONS[op["op"]]
        for made in record.makes:
            self.names[record.names].pop(op[made], None)

    def _says_less(self) -> bool:
        """Whether there is a cache of which nothing is said."""
        return any(isinstance(cache, AnyCache) for cache in self.caches.values())

    def _open(self, name: str, inputs: Inputs) -> None:
        """Open a cache, also one of which nothing is said."""
        try:
            super()._open(name, inputs)
        except Unsaid as e:
            assert inputs.opening is not None
            if e.unless is None or name not in self.caches:
                self.kinds[name], self.configs[name] = inputs.opening
                self.lent.setdefault(name, Lent())
            raise

    def _run(self, op: Operation, inputs: Inputs) -> Step:
        """Note which operations may be refused or not; a run is not judged where one follows from storage."""
        self._either, self._unknown, self._unsaid = set(), False, False
        step = super()._run(op, inputs)
        assert isinstance(step, Expected)
        if self._unsaid and not step.unsaid:
            step.unsaid, step.either_way = "any", True
        step.may_fail = frozenset(self._either)
        if self._unknown:
            step.result = "any"
            self._lose_run(op, step)
        return step

    def _lose_run(self, op: Operation, step: Expected) -> None:
        """Say nothing of the caches of a run of which nothing is compared, where its end tells what they hold."""
        if step.either_way:
            step.either_way = False
            for name in {cache_of(part) for part in each_of(op)} & set(self.caches):
                self.lose(name)

    def _overwritten(self, name: str, step: Expected) -> None:
        """Have the caller overwrite its arrays. To the list model that is nothing; a model of a known deviation has
        a method `overwritten`."""
        cache: Any = self.caches.get(name)
        if not isinstance(cache, AnyCache) and hasattr(cache, "overwritten"):
            try:
                cache.overwritten()
            except Unsaid as e:
                self._now = name
                self.failed(step, e)

    def _take_back(self, name: str) -> None:
        """The same after an operation of a run, where arrays are the caller's."""
        claim = self._claims.get(self.kinds.get(name, ""))
        if claim is not None and "scribble" not in claim.without:
            step = Expected()
            self._overwritten(name, step)
            self._unsaid = self._unsaid or bool(step.unsaid)

    def _missed(self, step: Step, number: int) -> bool:
        assert isinstance(step, Expected)
        self._either |= {number} if step.either or step.either_way else set()
        self._unsaid = self._unsaid or step.either_way
        self._unknown = self._unknown or step.result == "any"
        for cache in self.caches.values() if step.result == "ok" else ():
            if isinstance(cache, CacheModel):
                cache.unseen = True
        return super()._missed(step, number) and not step.either

    def handed(self, op: Operation, inputs: Inputs) -> tuple[Any, ...]:
        """The queries and rows to hand in."""
        return (*(() if inputs.queries is None else (inputs.queries,)), *(inputs.rows or ()))

    def make_room(self, shape: tuple[int, ...], dtype: str, writeable: bool, resident: bool) -> Any:
        """An output to be written to."""
        return _Untouched(Room(shape, dtype, writeable))

    def take(self, step: Step, what: str, pair: Any, arranged: object = None) -> None:
        """Note serials, where all of them are known."""
        assert isinstance(step, Expected)
        if pair is ANYTHING:
            step.result = "any"
            return
        serials = pair[0].serials[0] if isinstance(pair, tuple) else pair
        if serials is not None and UNKNOWN not in serials:
            step.rows[what] = list(serials)

    def note(self, step: Step, what: str, array: Any, resident: bool = False) -> None:
        """Note what queries see, what states are made of, and what outputs should be."""
        if what.startswith(("fold.", "folded.")):
            assert isinstance(step, Expected)
            step.folds[what] = array
            return
        setattr(step, {"mask": "sees", "output": "outputs"}.get(what, what), array)

    def copied(self, pair: Any) -> Any:
        """What is saved does not change."""
        return pair

    def resized(self, array: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        """Rows of another size have no names."""
        rows: Rows = array
        same = (shape, dtype or rows.dtype) == (rows.shape, rows.dtype)
        serials = rows.serials if same else [[UNKNOWN] * shape[1]]
        return Rows(serials, shape, dtype or rows.dtype)

    def keep(self, array: Any) -> Any:
        """Nothing that is handed in or out changes."""
        return array

    def failed(self, step: Step, e: Exception, when: str = "") -> None:
        """An exception that the contract does not know is a defect of the list model itself."""
        if not isinstance(e, Unsaid):
            raise e
        assert isinstance(step, Expected)
        step.unsaid, step.message = step.unsaid or e.result, str(e)
        if e.unless is not None:
            step.result, step.clause, step.either_way = "refused", e.unless.clause, True
        else:
            step.result = "any"
            if not e.kept:
                self.lose(self._now)

    def _rewinds(self, op: Operation) -> bool:
        """Whether an operation is a rewind, by another name perhaps, or asks for one."""
        none = op["op"] == "restore" and self.snapshots.get(op["name"], op) is None
        return none or op["op"] in ("ask", "rewind")

    def lose(self, name: str) -> None:
        """Say nothing of a cache from now on."""
        self.caches[name] = AnyCache(getattr(self.caches.get(name), "owed", "any"))

    def _look(self, op: Operation, step: Step) -> None:
        super()._look(op, step)
        assert isinstance(step, Expected)
        cache: Any = self.caches.get(cache_of(op))
        if isinstance(cache, CacheModel) and op["op"] not in ON_ROUNDS:
            step.least = cache.least()
            step.handed_out, step.empty = cache.handed_out(), str(cache.claim.dialect("empty"))
            step.plain = frozenset() if op["op"] == "draft" else cache.plain()  # drafts see all rows in their form
        if isinstance(cache, LayersModel):
            step.parts = cache.shown_by
        if self._rewinds(op) and isinstance(cache, CacheModel | LayersModel) and cache.either(op["to"]):
            step.either = True
            step.values.pop("can", None)
        if "free" in step.values and getattr(cache, "follows", False):
            step.between["free"] = cache.free_between()
            del step.values["free"]
        for name in [name for name in step.values if name.partition(".")[0] in NOT_SAID]:
            del step.values[name]
        for name in SAVED:
            if step.values.get(name) is not None:
                start, stop, _ = step.values[name]
                step.values[name] = [stop] if isinstance(cache, CacheModel) and cache.saves_whole else [start, stop]


class _Untouched:
    """A given output that nothing is written to."""

    guarded = True

    def __init__(self, out: Room) -> None:
        self.out = out

    def answer(self, returned: Any) -> Any:
        """What the list model says of the output."""
        return returned

    def untouched(self) -> bool:
        """Whether nothing was written at all."""
        return True
