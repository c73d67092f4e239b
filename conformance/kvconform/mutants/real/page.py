"""Bugs of pages, block tables and shared prefixes, planted in the reference's paged cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakSet

from kvconform.mutants.planting import having, planted
from kvref.page import Numbered, Pages
from kvref.page_pool import Pool
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.refusals import page as refusals_page


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


class SlotOfAPageLeftOut(Pages):
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
        super()._gatherable([*table, *list(table[-1:]) * needed], needed, n)

    def gather(self, table: Sequence[int], n: int) -> Pair:
        return super().gather([*table, *list(table[-1:]) * (self.pool.entries(n) - len(table))], n)


class CountedToThePage(Pages):
    """A chunk that reaches into another page is stored, but counted only up to the end of the one before."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        before = self.in_use[sequence].length if sequence in self.in_use else 0
        super().append(keys, values, sequence)
        to, size = self.in_use.get(sequence), self.pool.size
        if to and to.length // size > before // size and to.length % size:
            to.length -= to.length % size


class PointerNotAdvanced(Pages):
    """All tables stand in one list, in which the third sequence is taken to begin where the second does."""

    def read_sequence(self, sequence: int) -> Pair:
        mine, others = self._of(sequence), [s for n, s in sorted(self.in_use.items()) if n < sequence]
        entries = [page for s in (*others, mine) for page in s.table]
        begin = len(others[0].table) if others else 0
        return self.pool.through(entries[begin:], mine.length)


class WholePagesShared(Pages):
    """A fork shares whole pages, and has as many rows as lie in them."""

    def fork(self, sequence: int, n: int) -> int:
        whole = n // self.pool.size * self.pool.size if n <= self._of(sequence).length else n
        return super().fork(sequence, whole)


class SlotByBits(Pool):
    """The slot of a position is looked up by its lowest bits, as if every page size were a power of two."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        for i in range(rows.keys.shape[1]):
            page, slot = table[(begin + i) // self.size], (begin + i) & (self.size - 1)
            self.keys[page][:, slot], self.values[page][:, slot] = rows.keys[:, i], rows.values[:, i]


class SmallestPage(Pool):
    """All pools that there are look rows up by the smallest of their page sizes."""

    alive: ClassVar[WeakSet[Pool]] = WeakSet()

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.alive.add(self)

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        least = min(pool.size for pool in self.alive)
        for i in range(rows.keys.shape[1]):
            page, slot = table[min((begin + i) // least, len(table) - 1)], (begin + i) % least
            self.keys[page][:, slot], self.values[page][:, slot] = rows.keys[:, i], rows.values[:, i]


class InOnePiece(Pages):
    """Pages that are free are found only where they lie side by side."""

    def _appendable(self, new: Pair, to: Numbered) -> None:
        super()._appendable(new, to)
        needed = self.pool.entries(to.length + new.keys.shape[2]) - len(to.table)
        free = "".join("x" if n else "." for n in self.pool.counts).split("x")
        if needed > max(map(len, free)):
            raise refusals_page.full("PAGE-13", new.keys.shape[2], needed, self.pool.free)


class GivenBackLater(Pages):
    """Pages behind the end of a sequence are given back when it gets rows again, not when it is cut."""

    def _cut(self, cut: Numbered, to: int) -> None:
        if to == 0:
            super()._cut(cut, to)
        cut.length = to

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        if sequence in self.in_use:
            super()._cut(self.in_use[sequence], self.in_use[sequence].length)
        super().append(keys, values, sequence)


class ForksWhatIsReserved(Pages):
    """Whoever forks may have rows up to the end of the last page, written or not."""

    def fork(self, sequence: int, n: int) -> int:
        parent = self._of(sequence)
        real, parent.length = parent.length, max(parent.length, min(n, len(parent.table) * self.pool.size))
        try:
            return super().fork(sequence, n)
        finally:
            parent.length = real


class EvictedFromTheParent(Pages):
    """A page that is cut off is free, whoever else has it."""

    def _cut(self, cut: Numbered, to: int) -> None:
        gone = cut.table[self.pool.entries(to) :]
        super()._cut(cut, to)
        for page in gone if to else ():
            self.pool.counts[page] = 0


PLANTED = [
    planted(
        "PAGE-18",
        "vllm-project/vllm/issues/55600",
        ("PAGE-11", "PAGE-6"),
        SmallestPage,
        having(page=over(SmallestPage)),
    ),
    planted(
        "POS-13",
        "turboderp-org/exllamav3/commit/0b898f2cc0e7e05ae283133f0ddd912faaf6a0c9",
        ("PAGE-6",),
        CountedToThePage,
        having(page=CountedToThePage),
    ),
    planted(
        "PAGE-13", "vllm-project/vllm/pull/5412", ("PAGE-6",), PointerNotAdvanced, having(page=PointerNotAdvanced)
    ),
    planted(
        "PAGE-15", "sgl-project/sglang/pull/28692", ("PAGE-14",), WholePagesShared, having(page=WholePagesShared)
    ),
    planted(
        "PAGE-17",
        "flashinfer-ai/flashinfer/issues/4347",
        ("PAGE-11", "PAGE-43"),
        SlotByBits,
        having(page=over(SlotByBits)),
    ),
    planted(
        "BOUND-01",
        "ollama/ollama/commit/08a832b4827b7fd5f489d72cef36de24f6fb3d36",
        ("PAGE-13", "PAGE-6"),
        InOnePiece,
        having(page=InOnePiece),
    ),
    planted(
        "MEM-03",
        "ollama/ollama/commit/1fc35f1260a525aca8b63fcc9ed953b54c5eaace",
        ("PAGE-22",),
        GivenBackLater,
        having(page=GivenBackLater),
    ),
    planted(
        "REUSE-01",
        "huggingface/text-generation-inference/commit/deec30f8",
        ("PAGE-16",),
        ForksWhatIsReserved,
        having(page=ForksWhatIsReserved),
    ),
    planted(
        "MERGE-02",
        "mlc-ai/mlc-llm/commit/0fb56095455a5641f7880f7ff9e0bfb76b9b01d7",
        ("PAGE-17", "PAGE-22"),
        EvictedFromTheParent,
        having(page=EvictedFromTheParent),
    ),
    planted(
        "SLOT-03",
        "turboderp-org/exllamav3/commit/8d38d4fcbd982ec14b3a60c398fda5a6574bd56a",
        ("PAGE-6",),
        TableOfTheFirst,
        having(page=TableOfTheFirst),
    ),
    planted(
        "PAGE-05",
        "Dao-AILab/flash-attention/commit/e3b2400a31e1a094411102dfd474b3c582a42305",
        ("PAGE-6",),
        AsWideAsKeys,
        having(page=over(AsWideAsKeys)),
    ),
    planted("PAGE-14", "pegainfer-project/pegainfer/pull/350", ("PAGE-10",), Eager, having(page=Eager)),
    planted("PAGE-09", "NVIDIA/TensorRT-LLM/issues/13320", ("PAGE-10",), FrozenTable, having(page=FrozenTable)),
    planted(
        "PAGE-07",
        "Dao-AILab/flash-attention/commit/77aacb68d194ba9af1010eda5eac3e7c0df8e6f6",
        ("PAGE-13",),
        Unbounded,
        having(page=Unbounded),
    ),
    planted(
        "MERGE-03",
        "mlc-ai/mlc-llm/commit/c7951ab4d384851445220a577b212b6e66e8a5d7",
        ("PAGE-14",),
        NextPage,
        having(page=NextPage),
    ),
    planted(
        "SPEC-03",
        "huggingface/text-generation-inference/commit/aadc9cb485e3837a2603da512d2a798ebb7db5ee",
        ("PAGE-11",),
        SideBySide,
        having(page=over(SideBySide)),
    ),
    planted(
        "PAGE-06",
        "flashinfer-ai/flashinfer/commit/103fcf862b902e100775ac781a0de36d067de3a4",
        ("PAGE-11",),
        OnceForTwo,
        having(page=over(OnceForTwo)),
    ),
    planted("PAGE-12", "xLLM-AI/xllm/pull/1984", ("PAGE-18",), InPlace, having(page=InPlace)),
    planted(
        "PAGE-03",
        "turboderp-org/exllamav2/commit/d053e9ea80d958062a5218206cff22a423b17801",
        ("PAGE-20",),
        KeysOnly,
        having(page=over(KeysOnly)),
    ),
    planted(
        "MEM-01",
        "mlc-ai/mlc-llm/commit/97df6979dee543f1d65649262aeaea9ea74ab70d",
        ("PAGE-17",),
        CountedOnce,
        having(page=CountedOnce),
    ),
    planted(
        "MEM-09",
        "EricLBuehler/mistral.rs/commit/b95c8ecb7253a60f5b7bba845a133be02bd921c5",
        ("PAGE-17",),
        NeverTakenBack,
        having(page=NeverTakenBack),
    ),
    planted(
        "ASYNC-08", "sgl-project/sglang/pull/38355", ("PAGE-26",), FreedWithTheFirst, having(page=FreedWithTheFirst)
    ),
    planted(
        "POS-16",
        "microsoft/onnxruntime-genai/commit/1cae16873b3d744a527b23bf85db343cdefc0f29",
        ("PAGE-27",),
        SlotOfAPageLeftOut,
        having(page=SlotOfAPageLeftOut),
    ),
    planted(
        "BOUND-07",
        "flashinfer-ai/flashinfer/issues/320",
        ("PAGE-30",),
        LastPageHoldsAll,
        having(page=LastPageHoldsAll),
    ),
]
"""Each with the clauses it breaks."""
