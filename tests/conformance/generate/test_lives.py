"""Lives at real sizes: each kind has some, their lists are long, and they find what only such calls get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kvref.abilities.masks
from kvconform.checks import walks
from kvconform.generate import frozen_traces, lives
from kvref.abilities.batch import Batch
from kvref.abilities.draft import Layer
from kvref.caches.bucket import Bucket
from kvref.caches.copy import Buffer
from kvref.caches.growing import Growing
from kvref.caches.keyed import Keyed
from kvref.caches.layers import Layers
from kvref.caches.page import Pages
from kvref.caches.ragged import Ragged
from kvref.caches.ring import Ring
from kvref.caches.sink import Sink
from kvref.caches.store import Store
from kvref.memory.forms import Kept
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.operations.table import each_of, parts_of
from kvspec.registry import KINDS
from kvspec.trace import Trace
from tools.freezing.covers import answers

LONG = 9
"""Items of a list that is long: more than a tile of eight."""

LISTS = {
    "feed": "lengths",
    "trim": "counts",
    "filter": "order",
    "reorder": "order",
    "keep": "kept",
    "gather": "table",
    "draft": "on",
    "attend": "head_sinks",
}
"""The operations that take a list, and which argument it is."""


def _parts(kind: str) -> list[Any]:
    return [part for trace in lives.told(kind) for op in trace.ops for part in parts_of(op)]


def test_each_kind_has_lives_and_a_check_of_them() -> None:
    assert all(map(lives.told, KINDS))
    assert {f"{kind}/walk/lives" for kind in KINDS} <= {check.id for check in walks.checks()}


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_lives_are_those_that_are_told(kind: str) -> None:
    frozen = frozen_traces.walks(kind, frozen_traces.LIVES)
    assert [replace(trace, frozen=None) for trace in frozen] == list(lives.told(kind))


def test_each_list_is_a_long_one_in_some_life() -> None:
    lengths = dict.fromkeys(LISTS, 0)
    for part in (part for kind in KINDS for part in _parts(kind)):
        said = part.get(LISTS.get(part["op"], ""))
        items = len(str(said).split(",")) if said is not None else 0
        lengths[part["op"]] = max(lengths.get(part["op"], 0), items)
    assert all(lengths[op] >= LONG for op in LISTS), lengths


def test_lives_cost_little() -> None:
    """They are judged in each quick run: a few hundred operations in all."""
    assert sum(len(list(each_of(op))) for kind in KINDS for trace in lives.told(kind) for op in trace.ops) < 700


Patch = tuple[type, str, Callable[..., Any]]


def _memo(read: Any, cache: Growing, what: Any) -> Any:
    """Remembers a view by the length that it was read at."""
    memo = cache.__dict__.setdefault("memo", {})
    return memo.setdefault(cache.offset, read(cache, what)) if what == "view" else read(cache, what)


def _late(copied: Any, pool: Pool, page: int, rows: int) -> Any:
    """Copies a page that lacks one row without its last row."""
    new = copied(pool, page, rows)
    if rows == pool.size - 1 > LONG:
        pool.keys[new][:, rows - 1] = 0
    return new


def _twice(gather: Any, pages: Pages, table: list[int], n: int) -> Any:
    """Reads zeros through an entry that names a page again."""
    found, size = gather(pages, table, n), pages.pool.size
    for i in (i for i in range(LONG, len(table)) if table[i] in table[:i]):
        found.keys[:, i * size : (i + 1) * size] = 0
    return found


def _unsorted(keep: Any, cache: Sink, positions: list[int]) -> None:
    """Keeps a long choice in the order in which it was given."""
    slots = dict(zip(cache.positions_seen(), cache._newest(cache.recent), strict=True)) if cache.live else {}
    rows = cache.rows
    keep(cache, positions)
    if len(positions) >= LONG:
        cache.rows = rows.taken([slots[p] for p in positions])


def _plain(restore: Any, ring: Ring, saved: Any, to: int) -> None:
    """Restores codes of many heads with the scale of the first."""
    restore(ring, saved, to)
    if saved is not None and ring.config.form and ring.config.kv_heads >= LONG:
        ring.rows.keys[:, -1, :, -2:] = ring.rows.keys[:, 0, :, -2:]


def _numbered(branched: Any, layer: Layer, logical: Any, queries: int) -> Any:
    """Counts the window of a tree in a ring by drafts."""
    mask, rows = branched(layer, logical, queries), len(layer.rows)
    ages = np.arange(rows - queries, rows)[:, None] - np.arange(rows)
    return mask & (ages < layer.window)[None, None] if layer.window and queries else mask


def _empty(load: Any, store: Store, saved: Any) -> None:
    """Leaves the last of many layers empty where another one is."""
    load(store, saved)
    if len(saved) >= LONG and any(not pair.keys.shape[1] for pair in saved):
        store.lengths_[-1] = 0


def _full_cut(lower: Any, batch: Batch, sequence: int, to: int) -> None:
    """Goes back in 32 layers."""
    was = list(batch.held[sequence])
    lower(batch, sequence, to)
    batch.held[sequence][32:] = was[32:]


def _pending(cut: Any, bucket: Bucket, to: int) -> None:
    """Takes the row behind the padding for the newest after a cut by one."""
    pending = bucket.pending and to == bucket.past_ - 1 and to > 32
    cut(bucket, to)
    bucket.pending |= pending


def _source(copy: Any, buffer: Buffer, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
    """Copies the last row of a source that is much longer."""
    if 0 < n < len(keys) - 32:
        keys = keys[:n].copy()
        keys[-1] = 0
        values = values[:n]
    copy(buffer, keys, values, n, at, sliding)


def _forgotten(answer: Any, pool: Keyed, sequence: int, tokens: Any, keys: Array, values: Array) -> None:
    """Ends what can be found with a long answer."""
    answer(pool, sequence, tokens, keys, values)
    if len(tokens) > 16:
        pool.known[pool.in_use[sequence].table[-1]] = []


def _in_turn(restore: Any, cache: Layers, saved: Any, to: int) -> None:
    """Puts states back, each to the next layer that has one."""
    restore(cache, saved, to)
    if saved is not None and len(cache.folds) > 2:
        turned = [*cache.folds.values()]
        cache.folds = dict(zip(cache.folds, turned[1:] + turned[:1], strict=True))


def _again(repeat: Any, cache: Ragged, times: int) -> None:
    """Repeats a whole batch."""
    cache._copied((cache, s) for _ in range(times) for s in range(len(cache.lengths)))


def _behind(latent: Any, kept: Kept, keys: Array) -> Pair:
    """Takes latent values from the end of wide keys."""
    return Pair(keys, keys[..., -kept.config.v_dim :].copy())


PLANTED: tuple[Patch, ...] = (
    (Growing, "read", _memo),
    (Pool, "copied", _late),
    (Pages, "gather", _twice),
    (Sink, "keep", _unsorted),
    (Ring, "restore", _plain),
    (Layer, "_branched", _numbered),
    (Store, "load", _empty),
    (Batch, "lower", _full_cut),
    (Bucket, "cut", _pending),
    (Buffer, "copy", _source),
    (Keyed, "answer", _forgotten),
    (Layers, "restore", _in_turn),
    (Ragged, "repeat", _again),
    (Kept, "latent", _behind),
)
"""What is wrong at real sizes alone: a method of the reference, and what stands for it."""


def _differs(trace: Trace) -> bool:
    """Whether the reference, as it is now, answers otherwise than when the trace was frozen."""
    found = answers(trace, trace.ops)
    return found != trace.frozen


@pytest.mark.parametrize("patch", PLANTED, ids=lambda patch: patch[2].__name__.strip("_"))
def test_what_is_wrong_at_real_sizes_alone_is_found(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    of, name, wrong = patch
    right = getattr(of, name)
    monkeypatch.setattr(of, name, lambda *arguments: wrong(right, *arguments))
    assert any(_differs(trace) for kind in KINDS for trace in frozen_traces.walks(kind, frozen_traces.LIVES))


def test_a_mask_of_many_heads_or_sequences_is_read_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered, traces = kvref.abilities.masks.gathered, frozen_traces.walks("ring", frozen_traces.LIVES)
    monkeypatch.setattr(kvref.abilities.masks, "gathered", lambda *given: _first_heads(gathered(*given)))
    assert any(map(_differs, traces))


def _first_heads(mask: Array) -> Array:
    """The mask of head 0 for those behind the eighth."""
    made = mask.copy()
    made[:, 8:] = mask[:, :1]
    return made
