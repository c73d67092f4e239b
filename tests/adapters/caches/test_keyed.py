"""Pools on a device that find rows again: as the reference has them, at a cost that is counted, unharmed when
memory runs out, and with nothing left of what was forgotten."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvconform.generate.strategies import keyed
from kvconform.judge import trial
from kvgpu.adapter import Caches
from kvspec.contract import Pair, Request, description
from kvspec.contract.pools import tokens_in
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from kvworkshop.systematic import modules, patched_modules
from support import random_traces, slow
from support.device.device_costs import cost, raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter


@pytest.mark.parametrize("granule", [None, "row"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", slow.counts(8, 80))
def test_random_operations_observe_the_same(count: int, name: str, granule: str | None) -> None:
    drawn = random_traces.drawn(keyed.explored, count=2 * count)
    traces = [trace for trace in drawn if trace.config.granule == granule]
    assert len(traces) > count // 4
    random_traces.observe_the_same(ADAPTERS[name](), traces)


CONFIG = Config(kv_heads=2, k_dim=8, v_dim=6, page_size=4, pages=8, granule="row")
ROW, ENTRY = 2 * 2 * (8 + 6), 4
"""Bytes of a row of CONFIG, keys and values of both heads, and of an entry of a table."""


def rows(n: int) -> Pair:
    """Rows of arbitrary bits: those of fewer tokens are the first of those of more."""
    drawn = (np.random.default_rng(d).integers(0, 256, (1, n, 2, 2 * d), np.uint8) for d in (8, 6))
    return Pair(*(np.ascontiguousarray(a.swapaxes(1, 2)).view(DTYPES["f16"]) for a in drawn))


def asked(text: str) -> Request:
    """A request of these tokens."""
    return Request(tokens_in(text))


def begun(pool: Any, text: str, of: Pair | None = None) -> Any:
    """Begin a sequence, with rows on the host or those that were placed: its number, and what was found."""
    return pool.request(asked(text), None, *(of or rows(len(asked(text).tokens))))


def opened(on: Caches | None = None, **more: Any) -> Any:
    """A pool with sequence 0 of six rows, in two pages."""
    pool = (on or adapter()).open("keyed", CONFIG.changed(**more))
    begun(pool, "abcdef")
    return pool


def test_rows_that_are_found_are_neither_uploaded_nor_written() -> None:
    pool = opened(page_size=2)
    table = CONFIG.pages * ENTRY
    found = cost(pool, lambda: begun(pool, "abcdx"))
    assert found.pop("host_to_device") - 2 * ENTRY == -(-4 * ROW // 2 // 16) * 16 // 2
    assert found == {
        "launches": 2,
        "allocations": 1,
        "live_bytes": table,
        "synchronisations": 2,
        "device_to_device": ROW,
    }
    assert pool.table(1) == [0, 1, 3]


def test_a_question_costs_nothing() -> None:
    pool = opened()
    assert cost(pool, lambda: pool.match(asked("abcdefg"))) == {}
    assert pool.match(asked("abcdefg")) == 6


def test_placed_rows_are_cut_where_they_are() -> None:
    ours = adapter()
    pool = opened(ours)
    pool.answer(0, tokens_in("g"), *ours.place(*rows(7)))
    there = ours.place(*rows(8))
    found = cost(pool, lambda: pool.answer(0, tokens_in("h"), *there))
    assert found == {"launches": 2, "device_to_device": 2 * ROW}
    assert _bytes(pool.read_sequence(0)) == _bytes(Pair(*(a[0] for a in rows(8))))


def test_the_page_in_which_a_hit_ends_is_copied_and_the_next_sequence_gets_the_table() -> None:
    pool = opened()
    copied = cost(pool, lambda: begun(pool, "abcdex"))
    assert (copied["launches"], copied["device_to_device"], copied["allocations"]) == (3, 2 * ROW, 1)
    assert [pool.table(n) for n in (0, 1)] == [[0, 1], [0, 2]]
    assert cost(pool, lambda: pool.finish(1)) == {}
    assert "allocations" not in cost(pool, lambda: begun(pool, "abcdex"))


@pytest.mark.parametrize("wrong", [rows(2), Pair(*(a[..., :4] for a in rows(3))), Pair(*rows(3)[::-1])])
def test_rows_that_do_not_fit_are_refused_and_nothing_changes(wrong: Pair) -> None:
    pool = opened()
    before = _seen(pool)
    for of in (wrong, adapter().place(*wrong)):
        with pytest.raises((ValueError, Refused), match=r"and 3 are to have some|expected f16"):
            begun(pool, "xyz", of)
    assert _seen(pool) == before


def test_rows_in_two_places_are_refused_and_nothing_changes() -> None:
    pool, host = opened(), rows(8)
    before = _seen(pool)
    with pytest.raises(ValueError, match="both"):
        pool.answer(0, tokens_in("gh"), adapter().place(host.keys)[0], host.values)
    assert _seen(pool) == before


OPERATIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "match": (lambda pool: pool.match(asked("abcdeg")), 0),
    "request": (lambda pool: begun(pool, "abcdex"), 2),
    "answer": (lambda pool: pool.answer(0, tokens_in("g200"), *rows(206)), 1),
    "propose": (lambda pool: pool.propose(0, tokens_in("g200"), *rows(206)), 1),
    "abort": (lambda pool: pool.abort(0), 0),
    "clear": (lambda pool: (pool.finish(0), pool.clear()), 0),
}
"""Each with how many allocations it makes at first: scratch space is kept."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_nth_allocation_fails(operation: str) -> None:
    do, expected = OPERATIONS[operation]
    assert [_fails(do, nth) for nth in range(expected + 1)] == [True] * expected + [False]


def _fails(do: Callable[[Any], Any], nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed."""
    runtime = Scarce(adapter().runtime)
    pool = opened(Caches("scarce", runtime), pages=60)
    before, pool.space._blocks = _seen(pool), {}
    runtime.left = nth
    failed = raises(lambda: do(pool))
    runtime.left = 1 << 30
    if failed:
        assert _seen(pool) == before
    return failed


def _seen(pool: Any) -> Any:
    """All that can be told of a pool."""
    gc.collect()
    numbers = [n for n, length in enumerate(pool.sequences()) if length >= 0]
    contents = [_bytes(pool.read_sequence(n)) for n in numbers]
    hits = [pool.match(asked(text)) for text in ("abcdefgh", "abcdex", "gg", "xyzz")]
    return pool.sequences(), [pool.table(n) for n in numbers], pool.references(), pool.free_pages(), contents, hits


def _bytes(pair: Pair) -> list[bytes]:
    return [a.tobytes() for a in pair]


@pytest.mark.parametrize("granule", ["page", "row"])
def test_what_is_forgotten_is_kept_nowhere(granule: str) -> None:
    pool = opened(granule=granule, page_size=2)
    for text in ("abxy", "abcdabcd", "abcdabcdab"):
        begun(pool, text)
    for number in (2, 0, 3, 1):
        pool.finish(number)
    begun(pool, "x16")
    pool.abort(0)
    pool.clear()
    known = pool.pool.known
    assert [*known._roots] == [] and not any((*known.rows, *known.behind, *known.whole))


def test_everything_a_pool_allocates_is_given_back() -> None:
    ours = adapter()
    gc.collect()
    before = ours.runtime.meter.live_bytes
    pool = opened(ours)
    begun(pool, "abcdex")
    pool.finish(0)
    del pool
    gc.collect()
    assert ours.runtime.meter.live_bytes - before < 1 << 13, "scratch space alone is kept"


CACHE, POOL, KNOWN = "kvgpu.caches.keyed", "kvgpu.memory.keyed_pool", "kvgpu.memory.known_pages"
COPIED = "copied = hit % self.pool.size > 0 and bool(self.pool.tables[pages[-1]])"
FAULTS = {
    "a page that was taken for others keeps its key": (
        POOL,
        "del self.idle[page]\n            self._emptied(page)",
        "del self.idle[page]\n            heappush(self.free, page)",
    ),
    "a page that another table has is written": (CACHE, COPIED, "copied = False"),
    "no rows are copied to the page that is written instead": (POOL, "self.copy(page, taken, rows)\n", "pass\n"),
    "the last token of a whole hit is written to the page that another table has": (
        CACHE,
        COPIED,
        f"{COPIED} and hit + 1 < tokens",
    ),
    "a reset forgets all pages but one": (CACHE, "forget(self.pool.total)", "forget(len(self.pool.idle) - 1)"),
    "a page that is found may still be evicted": (POOL, "self.idle.pop(page, None)", "pass"),
    "pages are known by their own tokens": (
        POOL,
        "self.known.whole[table[entry - 1]] if entry else self.known.root(request)",
        "self.known.root(request)",
    ),
    "the salt is left out": (KNOWN, "key = request.salt, request.adapter", 'key = "", request.adapter'),
    "the adapter is left out": (KNOWN, "key = request.salt, request.adapter", 'key = request.salt, ""'),
    "items count wherever they stand": (KNOWN, "if at == p)", "if at <= request.media[0][1])"),
    "what was aborted is found": (CACHE, "self.pool.known.cut(page, 0)", "pass"),
    "the page that was given up last is evicted first": (
        POOL,
        "islice(self.idle, pages)",
        "islice(reversed(self.idle), pages)",
    ),
}
"""Faults of the bookkeeping, each as a change to the text of a module."""


@pytest.mark.parametrize("fault", slow.one_in(3, FAULTS))
def test_a_fault_of_the_bookkeeping_is_found(fault: str) -> None:
    module, old, new = FAULTS[fault]
    text = patched_modules.text(module)
    assert text.count(old) == 1
    ours = modules.adapter({module: text.replace(old, new)}, gpu=True)
    about = description(ours.describe())
    examples = [e.trace for e in examples_of("keyed")]
    observed = trial.observables(examples[0], about, "storage")
    failed = [trace for trace in examples if trial.run(trace, Session(ours, observed), about, "storage").failed]
    assert failed
