"""Bugs of pages, block tables and shared prefixes, planted in the reference's paged cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvconform.mutants.mutant import Planted
from kvref.page import Numbered, Pages
from kvref.pool import Pool
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config


def having(pages: type[Pages]) -> Callable[[], Reference]:
    """Makes the reference with these pages."""

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": pages}

    return Faulty


def over(pool: type[Pool]) -> type[Pages]:
    """Pages over such a pool."""

    class Over(Pages):
        __qualname__ = pool.__qualname__

        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.pool = pool(config)

    return Over


class TableOfTheFirst(Pages):
    """Every sequence reads through the table of the first, where that is long enough."""

    def read_sequence(self, sequence: int) -> Pair:
        mine, first = self._of(sequence), self.in_use[min(self.in_use)]
        return self.pool.through(max(first.table, mine.table, key=len), mine.length)


class AsWideAsKeys(Pool):
    """Of values as many elements are written as a key has."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        whole = rows.values.copy()
        whole[..., rows.keys.shape[-1] :] = 0
        super().write(table, begin, Pair(rows.keys, whole))


class Eager(Pages):
    """The next page is taken as soon as the last one is full."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys, values, sequence)
        to = self.in_use.get(sequence)
        if (
            to
            and to.length % self.pool.size == 0
            and self.pool.free
            and len(to.table) * self.pool.size == to.length
        ):
            to.table.append(self.pool.take())


class FrozenTable(Pages):
    """A table is what it was after the first append; rows beyond go round in the last page."""

    def _make_room(self, to: Numbered, length: int) -> None:
        if not to.table:
            super()._make_room(to, length)
        to.table += to.table[-1:] * (self.pool.entries(length) - len(to.table))


class Unbounded(Pages):
    """Nobody asks whether there are pages enough: beyond the last entry that was taken stands page 0."""

    def _appendable(self, new: Pair, to: Numbered) -> None:
        try:
            super()._appendable(new, to)
        except Refused as refused:
            if refused.clause != "PAGE-13":
                raise

    def _make_room(self, to: Numbered, length: int) -> None:
        there = len(to.table) + self.pool.free
        super()._make_room(to, min(length, there * self.pool.size))
        to.table += [0] * (self.pool.entries(length) - len(to.table))


class NextPage(Pages):
    """A fork at the end of a page begins in the page behind it."""

    def fork(self, sequence: int, n: int) -> int:
        made = super().fork(sequence, n)
        parent, child = self.in_use[sequence], self.in_use[made]
        if n and n % self.pool.size == 0 and len(parent.table) > len(child.table):
            self.pool.give(child.table[-1:])
            child.table[-1] = parent.table[len(child.table)]
            self.pool.share(child.table[-1:])
        return made


class SideBySide(Pool):
    """Slots are counted on from the first page, as if pages lay side by side."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        first, total = begin // self.size, len(self.counts)
        beside = [*table[: first + 1], *((table[first] + i) % total for i in range(1, len(table) - first))]
        super().write(beside, begin, rows)


class OnceForTwo(Pool):
    """A page is looked up for every second one."""

    def seen(self, table: Sequence[int], n: int) -> Pair:
        return super().seen([table[i // 2 * 2] for i in range(len(table))], n)


class InPlace(Pages):
    """A page that is shared is written where it is."""

    def _shared(self, to: Numbered) -> bool:
        return False


class KeysOnly(Pool):
    """A copy leaves the values."""

    def copied(self, page: int, rows: int) -> int:
        new, values = super().copied(page, rows), self.values
        values[new] = 0
        return new


class CountedOnce(Pages):
    """Free pages are counted when some are taken, and not when some are given back."""

    counted: int | None = None

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys, values, sequence)
        self.counted = self.pool.free

    def free_pages(self) -> int:
        return self.pool.free if self.counted is None else self.counted


class NeverTakenBack(Pages):
    """Who is dropped keeps a reference."""

    def drop(self, sequence: int) -> None:
        kept = self._of(sequence).table[:1]
        super().drop(sequence)
        self.pool.share(kept)


class FreedWithTheFirst(Pages):
    """A drop frees pages that others still have."""

    def drop(self, sequence: int) -> None:
        table = list(self._of(sequence).table)
        super().drop(sequence)
        for page in table:
            self.pool.counts[page] = 0


class OneTooFar(Pages):
    """A row that is appended by itself leaves a slot out, which nobody has written."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        to = self.in_use.get(sequence)
        super().append(keys, values, sequence)
        if to and keys.shape[2] == 1 and to.length % self.pool.size and keys.ndim == 4:
            page, slot = to.table[-1], to.length % self.pool.size
            for pool in (self.pool.keys, self.pool.values):
                pool[page][:, slot] = pool[page][:, slot - 1]
                pool[page][:, slot - 1] = 0


class LastPageHoldsAll(Pages):
    """A table that is too short ends in a page as long as need be."""

    def _gatherable(self, table: Sequence[int], needed: int, n: int) -> None:
        super()._gatherable([*table, *table[-1:] * needed], needed, n)

    def gather(self, table: Sequence[int], n: int) -> Pair:
        return super().gather([*table, *table[-1:] * (self.pool.entries(n) - len(table))], n)


GITHUB = "https://github.com/"


def _planted() -> Iterator[tuple[str, str, tuple[str, ...], type[Pages]]]:
    """Entry, where it was seen, the clauses it breaks, and the pages that have it."""
    exllama, flash = "turboderp-org/exllamav", "Dao-AILab/flash-attention/commit/"
    mlc = "mlc-ai/mlc-llm/commit/"
    yield "SLOT-03", f"{exllama}3/commit/8d38d4fcbd982ec14b3a60c398fda5a6574bd56a", ("PAGE-6",), TableOfTheFirst
    yield "PAGE-05", f"{flash}e3b2400a31e1a094411102dfd474b3c582a42305", ("PAGE-6",), over(AsWideAsKeys)
    yield "PAGE-14", "pegainfer-project/pegainfer/pull/350", ("PAGE-10",), Eager
    yield "PAGE-09", "NVIDIA/TensorRT-LLM/issues/13320", ("PAGE-10",), FrozenTable
    yield "PAGE-07", f"{flash}77aacb68d194ba9af1010eda5eac3e7c0df8e6f6", ("PAGE-13",), Unbounded
    yield "MERGE-03", f"{mlc}c7951ab4d384851445220a577b212b6e66e8a5d7", ("PAGE-14",), NextPage
    tgi = "huggingface/text-generation-inference/commit/aadc9cb485e3837a2603da512d2a798ebb7db5ee"
    yield "SPEC-03", tgi, ("PAGE-11",), over(SideBySide)
    infer = "flashinfer-ai/flashinfer/commit/103fcf862b902e100775ac781a0de36d067de3a4"
    yield "PAGE-06", infer, ("PAGE-11",), over(OnceForTwo)
    yield "PAGE-12", "xLLM-AI/xllm/pull/1984", ("PAGE-18",), InPlace
    yield "PAGE-03", f"{exllama}2/commit/d053e9ea80d958062a5218206cff22a423b17801", ("PAGE-20",), over(KeysOnly)
    yield "MEM-01", f"{mlc}97df6979dee543f1d65649262aeaea9ea74ab70d", ("PAGE-17",), CountedOnce
    mistral = "EricLBuehler/mistral.rs/commit/b95c8ecb7253a60f5b7bba845a133be02bd921c5"
    yield "MEM-09", mistral, ("PAGE-17",), NeverTakenBack
    yield "ASYNC-08", "sgl-project/sglang/pull/38355", ("PAGE-26",), FreedWithTheFirst
    genai = "microsoft/onnxruntime-genai/commit/1cae16873b3d744a527b23bf85db343cdefc0f29"
    yield "POS-16", genai, ("PAGE-27",), OneTooFar
    yield "BOUND-07", "flashinfer-ai/flashinfer/issues/320", ("PAGE-30",), LastPageHoldsAll


PLANTED = [Planted(entry, GITHUB + path, clauses, having(pages)) for entry, path, clauses, pages in _planted()]
"""Each with the clauses it breaks."""
