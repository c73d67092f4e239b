"""What the suite says of copies: which faults it finds and under which clause, and what it leaves free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.checks import covers, examples, laws
from kvconform.generate import frozen_covers
from kvconform.generate.claims.fit_to_adapter import suits, within
from kvconform.generate.strategies import copy
from kvconform.laws import registry
from kvref.caches.copy import Buffer
from kvspec.contract import Pair, description
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import DTYPES, Array, Config
from kvspec.notation import trace
from kvspec.reading.clauses import index
from kvspec.rows.fills import settled
from support.running.local_adapter import LocalAdapter, fails, judge_examples
from support.slow import one_in


def adapter(buffer: type[Buffer], **said: Any) -> Any:
    """A reference with another buffer, and that says something else of itself."""

    class Changed(Reference):
        caches = {**Reference.caches, "copy": buffer}  # noqa: RUF012

        def describe(self) -> dict[str, Any]:
            return {**super().describe(), **said}

    return Changed()


def judged(buffer: type[Buffer], **said: Any) -> LocalAdapter:
    """Examples, some of the covers, laws and exploration."""
    under_test = LocalAdapter(adapter(buffer, **said), traces=20)
    judge_examples(under_test, "copy")
    for frozen in frozen_covers.load("copy"):
        covers.judge(under_test, replace(frozen, lines=frozen.lines[::5]))
    laws.judge(under_test, next(law for law in registry.LAWS if law.clause == "COPY-23"))
    under_test.explore(copy.explored, "copy")
    return under_test


class OtherNaN(Buffer):
    """Casts NaN to another NaN than the reference does, with the sign of the element beside it."""

    def _cast(self, array: Array) -> Array:
        made = super()._cast(array)
        bits = made.view(f"u{made.itemsize}")
        return made if made is array else np.where(np.isnan(made), bits | bits.dtype.type(1), bits).view(made.dtype)


def test_which_nan_a_cast_makes_is_free() -> None:
    tally = judged(OtherNaN).tally
    assert not tally.failures and not tally.own


class QuietNaN(Buffer):
    def _cast(self, array: Array) -> Array:
        made = super()._cast(array)
        return settled(made) if made is array else made


class Truncates(Buffer):
    def _cast(self, array: Array) -> Array:
        made = super()._cast(array)
        if made is array:
            return made
        with np.errstate(invalid="ignore"):
            over = np.isfinite(made) & (np.abs(made.astype(np.float64)) > np.abs(array.astype(np.float64)))
        bits = made.view(np.uint16)
        return np.where(over, bits - np.uint16(1), bits).view(made.dtype)


class Clamps(Buffer):
    def _cast(self, array: Array) -> Array:
        made = super()._cast(array)
        bits = made.view(f"u{made.itemsize}")
        return made if made is array else np.where(np.isinf(made), bits - bits.dtype.type(1), bits).view(made.dtype)


class InfiniteNaN(Buffer):
    def _cast(self, array: Array) -> Array:
        made = super()._cast(array)
        return made if made is array else np.where(np.isnan(made), made.dtype.type(np.inf), made)


class Flushes(Buffer):
    def _cast(self, array: Array) -> Array:
        made = super()._cast(array)
        least = made.dtype.type(2.0**-14 if self.config.dtype == "f16" else 2.0**-126)
        return made if made is array else np.where(np.abs(made) < least, made.dtype.type(0), made)


class Dirty(Buffer):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.keys[...], self.values[...] = np.nan, np.nan


class WholeSource(Buffer):
    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, max(n, len(keys)) if n and sliding else n, at, sliding)


class NoEmptyCopies(Buffer):
    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        if n == 0 and at > self.capacity:
            raise Refused("COPY-22", "beyond the capacity")
        super().copy(keys, values, n, at, sliding)


class WholeBlocks(Buffer):
    """The slot behind the last is written too."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        super()._write(slot, rows, i)
        if i + 1 == len(rows.keys) and slot + 1 < self.capacity:
            self.slots.values[slot + 1, -1, -1:] = 0


class OtherLayout(Buffer):
    """Rows of a token-major buffer are written head by head."""

    def read(self, what: Any) -> Pair:
        found = super().read(what)
        if self.config.layout == "head":
            return found
        return Pair(*(np.ascontiguousarray(a.transpose(1, 0, 2)).reshape(a.shape) for a in found))


class AnyBatch(Buffer):
    def __init__(self, config: Config) -> None:
        super().__init__(config.changed(batch=1))


class Widens(Buffer):
    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        if self.config.dtype == "f32":
            keys, values = keys.astype(np.float32), values.astype(np.float32)
        super().copy(keys, values, n, at, sliding)


class FarAliases(Buffer):
    """A source in the buffer is taken where the slots are others."""

    def alias(self, source: int, n: int) -> tuple[Array, Array]:
        self.source = range(source, source + n)
        return super().alias(source, n)

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        if np.shares_memory(keys, self.keys) and not set(self.source) & set(range(at, at + n)):
            keys, values = keys.copy(), values.copy()
        super().copy(keys, values, n, at, sliding)


class FromTheEnd(Buffer):
    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at % self.capacity if sliding else at, sliding)


FAULTS: dict[str, type[Buffer]] = {
    "COPY-1": Dirty,
    "COPY-2": OtherLayout,
    "COPY-7": WholeSource,
    "COPY-8": NoEmptyCopies,
    "COPY-9": WholeBlocks,
    "COPY-11": QuietNaN,
    "COPY-12": Truncates,
    "COPY-13": Clamps,
    "COPY-14": InfiniteNaN,
    "COPY-15": Flushes,
    "CACHE-3": AnyBatch,
    "COPY-18": Widens,
    "COPY-19": FarAliases,
    "COPY-21": FromTheEnd,
}
"""A fault for each clause that no bug of the catalogue breaks."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("clause", "buffer"), FAULTS.items(), ids=FAULTS)
def test_a_fault_is_found_by_the_clause_s_own_example(clause: str, buffer: type[Buffer]) -> None:
    under_test = LocalAdapter(adapter(buffer), traces=0)
    for worked in index()[clause].examples:
        examples.judge(under_test, worked)
    assert fails(clause, under_test.tally)


class SplitShows(Buffer):
    """Several rows at once change places with the row before the last."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if n > 2 and self.capacity > 2:
            a, b = (at + n - 1) % self.capacity, (at + n - 2) % self.capacity
            for mine in self.slots:
                mine[[a, b]] = mine[[b, a]]


def test_a_fault_that_breaks_the_law_is_found_by_it() -> None:
    under_test = LocalAdapter(adapter(SplitShows), traces=100)
    laws.judge(under_test, next(law for law in registry.LAWS if law.clause == "COPY-23"))
    assert fails("COPY-23", under_test.tally)


SUBSETS = [("f32",), ("f16",), ("bf16",), ("f16", "f32"), ("bf16", "f32"), ("bf16", "f16")]


def fewer(dtypes: tuple[str, ...]) -> type[Buffer]:
    """Buffers and sources of these dtypes alone."""

    class Fewer(Buffer):
        def __init__(self, config: Config) -> None:
            if config.dtype not in dtypes:
                raise Unsupported(f"dtypes are {dtypes}")
            super().__init__(config)

        def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
            if not {keys.dtype, values.dtype} <= {DTYPES[d] for d in dtypes}:
                raise Unsupported(f"dtypes are {dtypes}")
            super().copy(keys, values, n, at, sliding)

    return Fewer


@pytest.mark.parametrize("dtypes", one_in(3, [(s,) for s in SUBSETS]), ids=" ".join)
def test_who_declares_fewer_dtypes_is_judged_on_those_alone(dtypes: tuple[str, ...]) -> None:
    under_test = judged(fewer(dtypes), dtypes=list(dtypes))
    assert not under_test.tally.failures and not under_test.tally.own
    held = {c for c in under_test.tally.agreed if c.startswith("COPY")}
    casts = {"COPY-12", "COPY-13", "COPY-14", "COPY-15"}
    assert held >= {f"COPY-{n}" for n in (2, 3, 4, 5, 6, 7, 9, 11, 17, 20, 22)}
    assert bool(held & casts) == ("f32" in dtypes and len(dtypes) > 1)


def test_a_trace_that_names_dtypes_keeps_that_of_its_buffer() -> None:
    """Else a refused cast could become a copy that is right, and the table would fail the adapter."""
    said = description({"name": "few", "chapters": {"copy": "storage"}, "dtypes": ["bf16", "f32"]})
    for words, suited in (("copy 1 0", True), ("copy 1 0 dtype=f32", False), ("copy 1 0 dtype=bf16", False)):
        fitted = within(trace("copy", "capacity=2 layout=token dtype=f16", words), said)
        assert fitted.config.dtype == ("bf16" if suited else "f16") and suits(fitted, said) == suited
    assert suits(within(trace("copy", "capacity=2 layout=token dtype=bf16", "copy 1 0 dtype=f32"), said), said)
