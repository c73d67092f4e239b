"""What the suite says of paged caches that are right or wrong in a way of their own: laws, counts, a free order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.checks import covers, examples, laws
from kvconform.generate import frozen_covers
from kvconform.generate.strategies import page
from kvconform.judge import page_tables, trial
from kvconform.laws.registry import LAWS
from kvref.abilities.transfers import Numbered
from kvref.caches.page import Pages
from kvref.memory import meter
from kvspec import notation
from kvspec.contract import Pair, description
from kvspec.errors import BadInput
from kvspec.geometry import Array, Config
from kvspec.reading.clauses import index
from kvspec.session.driver import Session
from support.running.local_adapter import LocalAdapter, fails
from support.slow import counts


def having(pages: type[Any]) -> Reference:
    """The reference with these pages."""

    class Made(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": pages}

    return Made()


class LargePages(Pages):
    """Pages of more than 4 rows lose their last."""

    def read_sequence(self, sequence: int) -> Pair:
        found = super().read_sequence(sequence)
        if self.pool.size > 4:
            found.keys[:, self.pool.size - 1 :: self.pool.size] = 0
        return found


class PageByPage(Pages):
    """Attention goes page by page, so that its result depends on where pages end."""

    def attend(self, *arguments: Any) -> Array:
        found = super().attend(*arguments)
        size = self.config.page_size or 1
        return found if size > 32 or found.size == 0 else np.asarray(found + np.float32(2**-20 / size))


class InPlace(Pages):
    """What is shared is written where it is."""

    def _shared(self, to: Any) -> bool:
        return False


class FirstFreedFirst(Pages):
    """Who is dropped first takes the last row of the others along."""

    def drop(self, sequence: int) -> None:
        for other in self.in_use.values():
            if len(self.in_use) > 2 and other.length > self.in_use[sequence].length > 0:
                self.pool.keys[other.table[-1]] = 0
        super().drop(sequence)


BROKEN = {"PAGE-43": LargePages, "PAGE-44": PageByPage, "PAGE-45": InPlace, "PAGE-46": FirstFreedFirst}


@pytest.mark.parametrize(("clause", "cache"), BROKEN.items(), ids=BROKEN)
def test_a_fault_that_breaks_a_law_is_found_by_it(clause: str, cache: type[Any]) -> None:
    law = next(x for x in LAWS if x.clause == clause)
    under_test = LocalAdapter(having(cache), traces=150)
    with under_test.judging("law") as tally:
        laws.judge(under_test, law)
    assert fails(clause, tally)


CONFIG = Config(page_size=2, pages=3)
SOUND = {"sequences": [3, -1, 2], "table.0": [0, 1], "table.2": [0], "references": [2, 1, 0], "free": 1}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, ""),
        ({"free": 2}, "free"),
        ({"references": [1, 1, 0]}, "references"),
        ({"references": [2, 1, 1]}, "references"),
        ({"references": [2, 1]}, "references"),
        ({"table.0": [0, 1, 2], "references": [2, 1, 1], "free": 0}, "table"),
        ({"table.0": [0, 0], "references": [3, 0, 0], "free": 2}, "table"),
        ({"table.2": []}, "table"),
        ({"references": None, "free": 0}, ""),
        ({"references": None, "free": 2}, "free"),
        ({"references": None, "free": -1}, "free"),
    ],
)
def test_words_that_do_not_agree_are_noticed(changes: dict[str, Any], field: str) -> None:
    found = [what for what, _ in page_tables.unsound(CONFIG, {**SOUND, **changes})]
    assert found[:1] == ([field] if field else [])


class NewestFirst(Pages):
    """A cache that claims visible: pages are taken from the end, tables are nobody's business."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pool.take = self._take  # type: ignore[method-assign]

    def _take(self) -> int:
        page = max(p for p, n in enumerate(self.pool.counts) if n == 0)
        self.pool.counts[page] = 1
        return page


class Visible(Reference):
    """It claims no more than visible."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": NewestFirst}

    def describe(self) -> dict[str, Any]:
        said = super().describe()
        return {**said, "chapters": dict.fromkeys(said["chapters"], "visible")}


@pytest.mark.parametrize("share", counts(12, 1))
def test_whoever_takes_other_pages_can_claim_visible(share: int) -> None:
    under_test = LocalAdapter(Visible())
    for frozen in frozen_covers.load("page"):
        covers.judge(under_test, covers.sampled(frozen, 1 / share))
    for clause in (c for c in index().values() if c.chapter == "page"):
        for worked in clause.examples:
            examples.judge(under_test, worked)
    under_test.explore(partial(page.explored, ("attend",) * 4), "page")
    assert under_test.tally.failing == 0, under_test.tally.failures[:2]


def test_whoever_takes_other_pages_cannot_claim_storage() -> None:
    about = description(Reference().describe())
    worked = index()["PAGE-12"].examples[0]
    seen = trial.run(worked.trace, Session(having(NewestFirst)), about, "storage")
    assert seen.failed and "PAGE-12" in seen.blamed


class Mute(NewestFirst):
    """It does not even tell its tables."""

    table: Any = None
    references: Any = None

    def __getattribute__(self, name: str) -> Any:
        if name in ("table", "references"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    def attend(self, *arguments: Any) -> Any:
        raise NotImplementedError


def test_tables_need_not_be_told_at_level_visible() -> None:
    adapter = Visible()
    adapter.caches = {**Visible.caches, "page": Mute}  # type: ignore[misc]
    under_test = LocalAdapter(adapter)
    covers.judge(under_test, frozen_covers.load("page")[0])
    assert under_test.tally.failing == 0, under_test.tally.failures[:2]


@pytest.mark.parametrize(
    ("ops", "says"),
    [
        (["admit", "append 1000", *["fork 0 1000"] * 2000], "rows"),
        (["admit", "append 1000", *["gather " + ",".join("0" * 64) + " 64000"] * 3000], "bytes"),
        (["gather 0 -2000000000", "append 1000", *["gather " + ",".join("0" * 64) + " 64000"] * 3000], "bytes"),
    ],
)
def test_a_trace_that_would_cost_too_much_is_not_read(ops: Sequence[str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        notation.trace("page", "page_size=1000 pages=4", "; ".join(ops))


def test_a_pool_that_is_too_large_is_not_read() -> None:
    with pytest.raises(BadInput, match="bytes"):
        notation.trace("page", "page_size=65536 pages=65536", "admit")


class CopiesForks(Pages):
    """A fork reads its rows back and forth."""

    def fork(self, sequence: int, n: int) -> int:
        meter.fetched(self.pool.keys[:1])
        return super().fork(sequence, n)


class ByTheHost(Pages):
    """Rows that are on the device are fetched to be written."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(meter.fetched(keys), meter.fetched(values), sequence)


class FetchesThePool(Pages):
    """A gather brings the whole pool to the host."""

    def gather(self, table: Sequence[int], n: int) -> Pair:
        meter.fetched(self.pool.keys)
        return super().gather(table, n)


@pytest.mark.parametrize(
    ("clause", "pages"), [("PAGE-40", ByTheHost), ("PAGE-41", CopiesForks), ("PAGE-42", FetchesThePool)]
)
def test_what_costs_too_much_is_found_under_its_clause(clause: str, pages: type[Any]) -> None:
    under_test = LocalAdapter(having(pages))
    seen = under_test.run(index()[clause].examples[0].trace)
    assert seen.blamed == (clause,)


class CopiesWhole(Pages):
    """A page that is taken in the place of a shared one gets all slots of it, those without rows too."""

    def _make_room(self, to: Numbered, length: int) -> None:
        if self._shared(to):
            unwritten = self.pool.size - to.length % self.pool.size
            meter.meter.device_to_device += unwritten * self.config.row_bytes
        super()._make_room(to, length)


def test_a_pool_may_copy_a_shared_page_whole() -> None:
    under_test = LocalAdapter(having(CopiesWhole))
    for worked in index()["PAGE-40"].examples:
        assert not under_test.run(worked.trace).failed
