"""Bugs of pages, block tables and shared prefixes, planted in the reference's paged cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar
from weakref import WeakSet

from kvadapters.reference import Reference
from kvconform.mutants.planting import having, planted
from kvref.page import Numbered, Pages
from kvref.page_pool import Pool
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.refusals import page as refusals_page


def over(pool: type[Pool]) -> Callable[[], Reference]:
    """Makes the reference whose paged cache is over such a pool."""

    class Over(Pages):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.pool = pool(config)

    return having(page=Over)


@planted("PAGE-18", breaks="PAGE-11 PAGE-6", into=over, seen="vllm-project/vllm/issues/55600")
class SmallestPage(Pool):
    """Every pool looks rows up by the smallest page size of all pools."""

    alive: ClassVar[WeakSet[Pool]] = WeakSet()

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.alive.add(self)

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        least = min(pool.size for pool in self.alive)
        for i in range(rows.keys.shape[1]):
            page, slot = table[min((begin + i) // least, len(table) - 1)], (begin + i) % least
            self.keys[page][:, slot], self.values[page][:, slot] = rows.keys[:, i], rows.values[:, i]


@planted(
    "POS-13",
    breaks="PAGE-6",
    anomaly="lost-rows",
    seen="turboderp-org/exllamav3/commit/0b898f2cc0e7e05ae283133f0ddd912faaf6a0c9",
)
class CountedToThePage(Pages):
    """A chunk that continues in another page is stored, but counted only up to the end of the page before."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        before = self.in_use[sequence].length if sequence in self.in_use else 0
        super().append(keys, values, sequence)
        to, size = self.in_use.get(sequence), self.pool.size
        if to and to.length // size > before // size and to.length % size:
            to.length -= to.length % size


@planted("PAGE-13", breaks="PAGE-6", seen="vllm-project/vllm/pull/5412")
class PointerNotAdvanced(Pages):
    """All tables stand in one list, and the third sequence is read from where the second begins."""

    def read_sequence(self, sequence: int) -> Pair:
        mine, others = self._of(sequence), [s for n, s in sorted(self.in_use.items()) if n < sequence]
        entries = [page for s in (*others, mine) for page in s.table]
        begin = len(others[0].table) if others else 0
        return self.pool.through(entries[begin:], mine.length)


@planted("PAGE-15", breaks="PAGE-14", anomaly="lost-rows", seen="sgl-project/sglang/pull/28692")
class WholePagesShared(Pages):
    """A fork shares only whole pages, and has only the rows in them."""

    def fork(self, sequence: int, n: int) -> int:
        whole = n // self.pool.size * self.pool.size if n <= self._of(sequence).length else n
        return super().fork(sequence, whole)


@planted("PAGE-17", breaks="PAGE-11 PAGE-43", into=over, seen="flashinfer-ai/flashinfer/issues/4347")
class SlotByBits(Pool):
    """The slot of a position is taken from its lowest bits, as if every page size were a power of two."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        for i in range(rows.keys.shape[1]):
            page, slot = table[(begin + i) // self.size], (begin + i) & (self.size - 1)
            self.keys[page][:, slot], self.values[page][:, slot] = rows.keys[:, i], rows.values[:, i]


@planted(
    "BOUND-01",
    breaks="PAGE-13 PAGE-6",
    anomaly="needless-refusal",
    seen="ollama/ollama/commit/08a832b4827b7fd5f489d72cef36de24f6fb3d36",
)
class InOnePiece(Pages):
    """Free pages are usable only where they lie side by side."""

    def _appendable(self, new: Pair, to: Numbered) -> None:
        super()._appendable(new, to)
        needed = self.pool.entries(to.length + new.keys.shape[2]) - len(to.table)
        free = "".join("x" if n else "." for n in self.pool.counts).split("x")
        if needed > max(map(len, free)):
            raise refusals_page.full("PAGE-13", new.keys.shape[2], needed, self.pool.free)


@planted("MEM-03", breaks="PAGE-22", seen="ollama/ollama/commit/1fc35f1260a525aca8b63fcc9ed953b54c5eaace")
class GivenBackLater(Pages):
    """Pages behind the end of a sequence are given back at its next append instead of when it is cut."""

    def _cut(self, cut: Numbered, to: int) -> None:
        if to == 0:
            super()._cut(cut, to)
        cut.length = to

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        if sequence in self.in_use:
            super()._cut(self.in_use[sequence], self.in_use[sequence].length)
        super().append(keys, values, sequence)


@planted(
    "REUSE-01",
    breaks="PAGE-16",
    anomaly="padding-seen",
    seen="huggingface/text-generation-inference/commit/deec30f8",
)
class ForksWhatIsReserved(Pages):
    """A fork may take rows up to the end of the last page, written or not."""

    def fork(self, sequence: int, n: int) -> int:
        parent = self._of(sequence)
        real, parent.length = parent.length, max(parent.length, min(n, len(parent.table) * self.pool.size))
        try:
            return super().fork(sequence, n)
        finally:
            parent.length = real


@planted(
    "MERGE-02",
    breaks="PAGE-17 PAGE-22",
    anomaly="overwritten-rows",
    seen="mlc-ai/mlc-llm/commit/0fb56095455a5641f7880f7ff9e0bfb76b9b01d7",
)
class EvictedFromTheParent(Pages):
    """A page that is cut off becomes free, even if another sequence has it."""

    def _cut(self, cut: Numbered, to: int) -> None:
        gone = cut.table[self.pool.entries(to) :]
        super()._cut(cut, to)
        for page in gone if to else ():
            self.pool.counts[page] = 0


@planted("SLOT-03", breaks="PAGE-6", seen="turboderp-org/exllamav3/commit/8d38d4fcbd982ec14b3a60c398fda5a6574bd56a")
class TableOfTheFirst(Pages):
    """Every sequence reads through the table of the first, if that is long enough."""

    def read_sequence(self, sequence: int) -> Pair:
        mine, first = self._of(sequence), self.in_use[min(self.in_use)]
        return self.pool.through(max(first.table, mine.table, key=len), mine.length)


@planted(
    "PAGE-05",
    breaks="PAGE-6",
    anomaly="keys-without-values",
    into=over,
    seen="Dao-AILab/flash-attention/commit/e3b2400a31e1a094411102dfd474b3c582a42305",
)
class AsWideAsKeys(Pool):
    """Only as many elements of a value are written as a key has."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        whole = rows.values.copy()
        whole[..., rows.keys.shape[-1] :] = 0
        super().write(table, begin, Pair(rows.keys, whole))


@planted("PAGE-14", breaks="PAGE-10", anomaly="miscounted-memory", seen="pegainfer-project/pegainfer/pull/350")
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


@planted("PAGE-09", breaks="PAGE-10", anomaly="overwritten-rows", seen="NVIDIA/TensorRT-LLM/issues/13320")
class FrozenTable(Pages):
    """A table does not grow after the first append; later rows wrap in the last page."""

    def _make_room(self, to: Numbered, length: int) -> None:
        if not to.table:
            super()._make_room(to, length)
        to.table += to.table[-1:] * (self.pool.entries(length) - len(to.table))


@planted(
    "PAGE-07",
    breaks="PAGE-13",
    anomaly="overwritten-rows",
    seen="Dao-AILab/flash-attention/commit/77aacb68d194ba9af1010eda5eac3e7c0df8e6f6",
)
class Unbounded(Pages):
    """The number of free pages is not checked: entries beyond the last page taken lead to page 0."""

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


@planted(
    "MERGE-03",
    breaks="PAGE-14",
    anomaly="wrong-page",
    seen="mlc-ai/mlc-llm/commit/c7951ab4d384851445220a577b212b6e66e8a5d7",
)
class NextPage(Pages):
    """A fork at the end of a page starts in the page behind it."""

    def fork(self, sequence: int, n: int) -> int:
        made = super().fork(sequence, n)
        parent, child = self.in_use[sequence], self.in_use[made]
        if n and n % self.pool.size == 0 and len(parent.table) > len(child.table):
            self.pool.give(child.table[-1:])
            child.table[-1] = parent.table[len(child.table)]
            self.pool.share(child.table[-1:])
        return made


@planted(
    "SPEC-03",
    breaks="PAGE-11",
    anomaly="wrong-page",
    into=over,
    seen="huggingface/text-generation-inference/commit/aadc9cb485e3837a2603da512d2a798ebb7db5ee",
)
class SideBySide(Pool):
    """Slots are counted from the first page, as if all pages lay side by side."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        first, total = begin // self.size, len(self.counts)
        beside = [*table[: first + 1], *((table[first] + i) % total for i in range(1, len(table) - first))]
        super().write(beside, begin, rows)


@planted(
    "PAGE-06",
    breaks="PAGE-11",
    into=over,
    seen="flashinfer-ai/flashinfer/commit/103fcf862b902e100775ac781a0de36d067de3a4",
)
class OnceForTwo(Pool):
    """The table is looked up only for every second page."""

    def seen(self, table: Sequence[int], n: int) -> Pair:
        return super().seen([table[i // 2 * 2] for i in range(len(table))], n)


@planted("PAGE-12", breaks="PAGE-18", anomaly="overwritten-rows", seen="xLLM-AI/xllm/pull/1984")
class InPlace(Pages):
    """A shared page is written in place instead of copied first."""

    def _shared(self, to: Numbered) -> bool:
        return False


@planted(
    "PAGE-03",
    breaks="PAGE-20",
    anomaly="keys-without-values",
    into=over,
    seen="turboderp-org/exllamav2/commit/d053e9ea80d958062a5218206cff22a423b17801",
)
class KeysOnly(Pool):
    """The copy of a page has the keys but not the values."""

    def copied(self, page: int, rows: int) -> int:
        new, values = super().copied(page, rows), self.values
        values[new] = 0
        return new


@planted("MEM-01", breaks="PAGE-17", seen="mlc-ai/mlc-llm/commit/97df6979dee543f1d65649262aeaea9ea74ab70d")
class CountedOnce(Pages):
    """The count of free pages is updated when pages are taken, but not when they are given back."""

    counted: int | None = None

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys, values, sequence)
        self.counted = self.pool.free

    def free_pages(self) -> int:
        return self.pool.free if self.counted is None else self.counted


@planted("MEM-09", breaks="PAGE-17", seen="EricLBuehler/mistral.rs/commit/b95c8ecb7253a60f5b7bba845a133be02bd921c5")
class NeverTakenBack(Pages):
    """A dropped sequence keeps a reference to its first page."""

    def drop(self, sequence: int) -> None:
        kept = self._of(sequence).table[:1]
        super().drop(sequence)
        self.pool.share(kept)


@planted("ASYNC-08", breaks="PAGE-26", anomaly="overwritten-rows", seen="sgl-project/sglang/pull/38355")
class FreedWithTheFirst(Pages):
    """A drop frees pages that others still have."""

    def drop(self, sequence: int) -> None:
        table = list(self._of(sequence).table)
        super().drop(sequence)
        for page in table:
            self.pool.counts[page] = 0


@planted(
    "POS-16",
    breaks="PAGE-27",
    anomaly="hole",
    seen="microsoft/onnxruntime-genai/commit/1cae16873b3d744a527b23bf85db343cdefc0f29",
)
class SlotOfAPageLeftOut(Pages):
    """A row that is appended alone skips a slot, which stays unwritten."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        to = self.in_use.get(sequence)
        super().append(keys, values, sequence)
        if to and keys.shape[2] == 1 and to.length % self.pool.size and keys.ndim == 4:
            page, slot = to.table[-1], to.length % self.pool.size
            for pool in (self.pool.keys, self.pool.values):
                pool[page][:, slot] = pool[page][:, slot - 1]
                pool[page][:, slot - 1] = 0


@planted("BOUND-07", breaks="PAGE-30", seen="flashinfer-ai/flashinfer/issues/320")
class LastPageHoldsAll(Pages):
    """A table that is too short is accepted: its last page is read again and again."""

    def _gatherable(self, table: Sequence[int], needed: int, n: int) -> None:
        super()._gatherable([*table, *list(table[-1:]) * needed], needed, n)

    def gather(self, table: Sequence[int], n: int) -> Pair:
        return super().gather([*table, *list(table[-1:]) * (self.pool.entries(n) - len(table))], n)
