"""Judging at level `visible`: the list model as oracle, and what each query sees as the thing compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvconform.judge import Difference, result
from kvconform.replay import Given, Supplies, cite_operation
from kvref import history
from kvref.cite import cited
from kvref.history import History, Saved, Seen
from kvspec import masks
from kvspec.contract import Description
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.operations import USES, Operation, argument, cache_of
from kvspec.rows import Book, letters
from kvspec.session import Step


@dataclass
class Expected(Step):
    """What the list model expects of one step."""

    sees: list[list[list[Seen]]] | None = None
    """`[sequence][head][query]` through the mask of this step; None where there is none to look through."""
    view: list[int] | None = None
    dims: int = 0
    cache: History | None = field(default=None, repr=False)


class Lists:
    """The list model, driven like a session. `description` holds the adapter's declared limits."""

    def __init__(self, description: Description, supplies: Supplies) -> None:
        self._description, self._supplies = description, supplies
        self.caches: dict[str, History] = {}
        self.saved: dict[str, Saved | None] = {}

    def do(self, op: Operation, given: Given) -> Expected:
        """Perform one operation."""
        cited()
        step, name = Expected(), cache_of(op)
        try:
            if op["op"] == "open":
                self._open(name, given)
            elif name not in self.caches or not self._named(op):
                return Expected("absent")
            else:
                getattr(self, f"_{op['op']}")(self.caches[name], op, step, given)
        except Refused as e:
            step.result, step.clause, step.message = "refused", e.clause, str(e)
        cache = self.caches.get(name)
        if cache is not None:
            step.values["offset"], step.cache = cache.offset, cache
            if step.result == "ok":
                cite_operation(op, cache.profile)
        step.cites = (step.clause,) if step.result == "refused" else cited()
        return step

    def _open(self, name: str, given: Given) -> None:
        assert given.opening is not None
        profile, config = given.opening
        self.caches[name] = History(profile, config, self._description.profiles[profile])

    def _named(self, op: Operation) -> bool:
        return all(op[a] in self.saved for a in USES.get(op["op"], ()))

    def _append(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        if op["n"] and not self._fits(op, cache.config):
            clause = "RING-13" if cache.ring else "GROW-10"
            raise Refused(clause, "rows of another geometry")
        first = self._supplies.book.next
        cache.append(list(range(first, first + op["n"])))
        self._look(cache, step, masks.CAUSAL)

    def _fits(self, op: Operation, config: Config) -> bool:
        names = ("batch", "kv_heads", "k_dim", "v_dim", "dtype")
        values = argument(op, "values")
        return all(op.get(n) in (None, getattr(config, n)) for n in names) and values in (None, op["n"])

    def _look(self, cache: History, step: Expected, logical: masks.Logical) -> None:
        heads = max([1, *(p.array.shape[1] for p in logical if isinstance(p, masks.Explicit))])
        step.sees = [
            [cache.sees(logical, sequence, head) for head in range(heads)] for sequence in range(cache.config.batch)
        ]

    def _mask(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        assert given.logical is not None
        cache.sees(given.logical)  # refuses what cannot be looked through at all
        self._look(cache, step, given.logical)

    def _view(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        step.view = cache.view()

    def _ask(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        step.values["can"] = cache.can_rewind(op["to"])

    def _rewind(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        step.values["can"] = cache.can_rewind(op["to"])
        cache.rewind(op["to"])

    def _free(self, cache: History, *_: Any) -> None:
        cache.free()

    def _scribble(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        step.values["intact"] = True

    def _snapshot(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        self._bind(step, "snapshot", op["name"], cache.snapshot(argument(op, "start")))

    def _restore(self, cache: History, op: Operation, *_: Any) -> None:
        cache.restore(self.saved[op["name"]], op["to"])

    def _merge(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        made = cache.merge(self.saved[op["parent"]], self.saved[op["child"]])
        self._bind(step, "snapshot", op["name"], made)

    def _split(self, cache: History, op: Operation, step: Expected, given: Given) -> None:
        parent, child = cache.split(self.saved[op["name"]], op["at"])
        self._bind(step, "parent", op["parent"], parent)
        self._bind(step, "child", op["child"], child)

    def _close(self, cache: History, op: Operation, *_: Any) -> None:
        saved = self.saved[op["name"]]
        if saved is not None:
            history.close(saved)

    def _bind(self, step: Expected, value: str, name: str, saved: Saved | None) -> None:
        self.saved[name] = saved
        seen = saved and ([saved.stop] if saved.kind == "ring" else [saved.start, saved.stop])
        step.values[value] = seen


class Judge:
    """Compares the steps of one trace. `masked`: whether the adapter makes masks itself."""

    def __init__(self, book: Book, masked: bool) -> None:
        self._book, self._masked = book, masked
        self._histories: dict[str, list[list[int]] | None] = {}

    def compare(self, op: Operation, want: Expected, got: Step) -> list[Difference]:
        """All differences at level `visible`."""
        found = result(want, got)
        if found:
            return found
        return [*_values(want, got), *_view(want, got, self._book), *self._sees(cache_of(op), want, got)]

    def _sees(self, cache: str, want: Expected, got: Step) -> Iterator[Difference]:
        if want.sees is None:
            return
        if "history.k" in got.arrays:
            rows = one_name_each(got.arrays["history.k"], got.arrays.get("history.v"), self._book)
            self._histories[cache] = rows
        names = self._histories.get(cache)
        if names is None or len(names) != len(want.sees):
            yield Difference("history", "history: keys and values, heads or sequences do not hold the same rows")
            return
        for sequence, heads in enumerate(want.sees):
            if not self._masked:
                yield from _all_there(heads[0], names[sequence])
                continue
            for head, queries in enumerate(heads):
                yield from _through(queries, names[sequence], got.arrays.get("mask"), (sequence, head))


def _values(want: Expected, got: Step) -> Iterator[Difference]:
    for name, expected in want.values.items():
        found = got.values.get(name)
        if name == "intact" and found is None:
            continue  # an engine behind the wire shares no array with the harness
        if name in ("snapshot", "parent", "child") and isinstance(found, list):
            found = found[1:2] if expected is not None and len(expected) == 1 else found[:2]
        if found != expected:
            field_ = "snapshot" if name in ("parent", "child") else name
            yield Difference(field_, f"{name}: expected {expected}, found {found}")
    retained, cache = got.values.get("retained"), want.cache
    if cache is not None and retained is not None:
        least = min(cache.offset, cache.config.window or cache.offset)
        if retained < least:
            yield Difference("retained", f"retained {retained} is less than the {least} rows a query may need")


def _view(want: Expected, got: Step, book: Book) -> Iterator[Difference]:
    if want.view is None:
        return
    found = one_name_each(got.arrays.get("view.k"), got.arrays.get("view.v"), book)
    if found is None or any(row != want.view for row in found):
        shown = "rows that do not agree over heads" if found is None else words(found[0])
        yield Difference("view", f"view: expected {words(want.view)}, found {shown}")


def one_name_each(keys: Array | None, values: Array | None, book: Book) -> list[list[int]] | None:
    """For each sequence the serials of the rows, where keys and values of all heads agree on them; else None."""
    if keys is None or values is None:
        return [[]] if keys is values else None
    if keys.ndim != 4 or values.ndim != 4 or keys.shape[:3] != values.shape[:3]:
        return None
    k, v = book.read(keys, "k"), book.read(values, "v")
    if not (k == k[:, :1]).all() or not (k == v).all():
        return None
    return [[int(s) for s in sequence] for sequence in k[:, 0]]


def _all_there(queries: list[Seen], names: list[int]) -> Iterator[Difference]:
    """Who leaves masking to the caller must still hold every row a query needs, and no row twice."""
    missing = [s for q in queries for s in q if names.count(s) != 1]
    if missing:
        yield Difference("history", f"history {words(names)} should hold {letters(missing[0])} once")


def _through(
    queries: list[Seen], names: list[int], mask: Array | None, at: tuple[int, int]
) -> Iterator[Difference]:
    for i, want in enumerate(queries):
        found = seen(names, mask, at, i)
        if found is None:
            yield Difference("mask", f"mask {None if mask is None else mask.shape} does not fit {len(names)} rows")
            return
        if sorted(want.items()) != sorted(found):
            text = f"query {i} sees {scored(found)}; expected {scored(list(want.items()))}"
            yield Difference("sees", text if at == (0, 0) else f"sequence {at[0]}, head {at[1]}: {text}")
            return


def seen(names: list[int], mask: Array | None, at: tuple[int, int], query: int) -> list[tuple[int, float]] | None:
    """Rows a query sees, each with its score, as often as they stand there; None if the mask does not fit."""
    if mask is None:
        return [(s, 0.0) for s in names]
    if mask.ndim != 4 or mask.shape[3] not in (1, len(names)) or query >= mask.shape[2]:
        return None
    row = mask[min(at[0], mask.shape[0] - 1), min(at[1], mask.shape[1] - 1), query]
    row = np.broadcast_to(row, (len(names),))
    if mask.dtype == bool:
        return [(s, 0.0) for s, allowed in zip(names, row, strict=True) if allowed]
    return [(s, float(x)) for s, x in zip(names, row, strict=True) if x != -np.inf]


def words(names: list[int]) -> str:
    """Rows as people read them."""
    return " ".join(letters(s) for s in names) or "nothing"


def scored(seen: list[tuple[int, float]]) -> str:
    """What a query sees, as people read it."""
    return " ".join(letters(s) + (f"{x:+g}" if x else "") for s, x in sorted(seen)) or "nothing"
