"""How positions are dealt out to blocks, by lengths on the device; and batches of sequences of any lengths."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from kvgpu.adapters import CudaCPUFast
from kvgpu.caches.attention import Pages, Positions
from kvgpu.memory.device_arrays import fetched, placed
from kvgpu.memory.layout import Place
from kvgpu.runtime import Block
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.fast import attention as fast_attention
from kvgpu.runtimes.fast import warp_attention, warp_kernels, warp_prefill
from kvgpu.runtimes.fast.attention import Call, Geometry, Ragged
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from support.device.attention_case import Case
from support.device.warp_cases import runtime, with_bug, worst
from support.slow import one_in

QUERIES, KV_HEADS = 4, 3

DEALT = """
extern "C" __global__ void dealt(const i64 *lengths, const i64 *starts, int *pieces, i64 entries, i64 count,
                                 i64 workers, i64 worth, i64 ragged, i64 window) {
  __shared__ Piece piece;
  const Entries of = {lengths, ragged ? starts : nullptr, 1, 0, (int)count, KV_HEADS, 0, (int)window, 1};
  deal(&piece, of, (int)entries, (int)workers, (int)worth, blockIdx.x, threadIdx.x);
  __syncthreads();
  if (threadIdx.x) return;
  int *to = pieces + blockIdx.x * 5;
  to[0] = piece.entry, to[1] = piece.cell, to[2] = piece.split, to[3] = piece.splits, to[4] = piece.slot;
}
"""


@cache
def dealer() -> CudaCPURuntime:
    sizes: dict[str, str | int] = {"K_DIM": 64, "V_DIM": 64, "QUERY_HEADS": 1, "PER_PASS": 1, "PASSES": 1}
    sizes |= {"COLUMNS": QUERIES, "QUERIES": QUERIES, "WARPS": 1, "COUNTERS": 1, "KV_HEADS": KV_HEADS}
    names = "prelude_cuda.h", "fast/warp_cuda.h", "fast/warp_rows.cu", "fast/warp_deal.cu"
    runtime = CudaCPURuntime()
    runtime.learn(fast_attention.text(sizes, *names) + DEALT, {"dealt": 3}, shared=1024)
    return runtime


def dealt(lengths: Array, counts: Array, blocks: int, workers: int, worth: int, window: int = 0) -> Array:
    """What each block was dealt, `[blocks, 5]`."""
    runtime = dealer()
    starts, to = np.concatenate([[0], np.cumsum(counts)]), runtime.allocate(blocks * 20)
    given = [uploaded(runtime, a) for a in (lengths, starts)]
    ragged = int((counts != counts[0]).any())
    total = int(starts[-1]) if ragged else int(counts[0])
    sizes = len(lengths), total, workers, worth, ragged, window
    runtime.run("dealt", (32, 1, 1), (blocks, 1, 1), *given, to, *sizes)
    found: Array = runtime.download(to, 0, blocks * 20).view(np.int32).reshape(blocks, 5)
    return found


def uploaded(runtime: CudaCPURuntime, numbers: Array) -> Block:
    block = runtime.allocate(8 * len(numbers))
    runtime.upload(numbers.astype(np.int64), block)
    return block


@pytest.mark.parametrize("seed", range(40))
def test_every_piece_is_dealt_once_and_none_is_long(seed: int) -> None:
    check(seed)


def check(seed: int) -> None:
    random = np.random.default_rng(seed)
    entries, workers = int(random.integers(1, 90)), int(random.choice([8, 40, 264]))
    worth, window = int(random.choice([1, 4])), int(random.choice([0, 0, 700]))
    lengths = random.integers(1, random.choice([40, 5000], entries))
    counts = random.integers(0, 9, entries) if seed % 2 else np.full(entries, random.integers(1, 9))
    runs = -(-counts // QUERIES)
    cells = KV_HEADS * int(runs.sum())
    room = max(workers, cells + workers // 2)
    found = dealt(lengths, counts, room + 5, workers, worth, window)
    pieces, none = found[found[:, 3] > 0], found[found[:, 3] == 0]
    assert len(none) >= 5 and not none.any()
    split = pieces[pieces[:, 3] > 1]
    slots = split[:, 4] + split[:, 2]
    assert len(set(slots.tolist())) == len(slots) <= workers and (not len(slots) or slots.max() < len(slots))
    assert all(_splits(pieces, e) > 0 for e in np.flatnonzero(runs))
    seen = [(e, c, s) for e in range(entries) for c in range(KV_HEADS * runs[e]) for s in range(_splits(pieces, e))]
    assert sorted(map(tuple, pieces[:, :3].tolist())) == seen
    low = np.where(window > 0, np.maximum(lengths - counts + 1 - window, 0), 0) // 16
    tiles = np.maximum(-(-lengths // 16) - low, 0)
    even = (KV_HEADS * runs * tiles).sum() / (room - cells)
    longest = max((tiles[e] / _splits(pieces, e) for e in range(entries) if runs[e]), default=0)
    assert longest <= max(worth, np.ceil(even))


def _splits(pieces: Array, entry: int) -> int:
    return int(max(pieces[pieces[:, 0] == entry, 3], default=0))


def test_a_long_sequence_among_short_ones_is_split_and_they_are_not() -> None:
    lengths = np.array([30, 30000, 40, 20])
    found = dealt(lengths, np.full(4, 1), 60, 40, 4)
    assert [_splits(found, e) for e in range(4)] == [1, 10, 1, 1]
    assert (found[:, 3] > 0).sum() <= 40


def test_equal_sequences_fill_the_workers() -> None:
    found = dealt(np.full(4, 4096), np.full(4, 1), 30, 24, 4)
    assert (found[:, 3] == 2).sum() == 24


def batch(dtype: str, group: int, kv_heads: int, lengths: tuple[int, ...], counts: tuple[int, ...]) -> list[Case]:
    """A case for each sequence of a batch."""
    return [
        Case(dtype, 32, 64, group, kv_heads, held=n, wrap=n, count=count, together=count, seed=n)
        for n, count in zip(lengths, counts, strict=True)
    ]


def paged(sequences: list[Case], slots: int, wide: int) -> tuple[Pages, Positions]:
    """The rows of sequences in one pool of pages, NaN in all other slots; tables `[sequences, wide]`; lengths."""
    kv_heads, random = sequences[0].kv_heads, np.random.default_rng(0)
    needed = [-(-one.held // slots) for one in sequences]
    free = iter(random.permutation(sum(needed) + 3).tolist())
    tables = np.full((len(sequences), wide), -1, np.int32)
    pools = [np.full((sum(needed) + 3, kv_heads, slots, d), np.nan, DTYPES[sequences[0].dtype]) for d in (32, 64)]
    for one, table, n in zip(sequences, tables, needed, strict=True):
        table[:n] = [next(free) for _ in range(n)]
        for t in range(one.held):
            for pool, rows in zip(pools, (one.keys, one.values), strict=True):
                pool[table[t // slots], :, t % slots] = rows[0, :, t]
    keys, values = placed(runtime(), *pools)
    block = runtime().allocate(tables.nbytes)
    runtime().upload(tables, block)
    lengths = uploaded(runtime(), np.array([one.held for one in sequences]))
    place = Place(keys.block, values.block, keys.at, values.at, slots)
    return Pages(place, kv_heads * slots, block, 0, wide), Positions(lengths=lengths)


PLANTED = {
    "pieces as long as those of all would be if full": ("enough = few;", "enough = few / 2;"),
    "parts of one cell at those of another": ("- parts, it) + cell * its", "- parts, it) + cell"),
    "parts of the entries before forgotten": ("= slots + __shfl_sync", "= 0 * slots + __shfl_sync"),
    "a piece of the next entry": ("block < before + until", "block <= before + until"),
    "an entry beyond 32 that begins at 0": ("before += __shfl_sync", "before = __shfl_sync"),
    "a window forgotten": ("- all.from(0) / TILE", "- 0"),
    "queries of the entry before": ("starts[entry + 1] - starts[entry]", "starts[entry] - starts[entry - !!entry]"),
}  # fmt: skip
"""What was planted in the text that deals: a piece of it, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(3, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_attention, "text", with_bug(fast_attention.text, *PLANTED[bug]))
    monkeypatch.setitem(globals(), "dealer", cache(dealer.__wrapped__))
    with pytest.raises(AssertionError):
        list(map(check, range(40)))


LENGTHS = (700, 3, 64, 129, 17, 1)


@pytest.mark.parametrize("slots", [16, 6])
@pytest.mark.parametrize("worth", [16, 1 << 20], ids=["split", "whole"])
def test_a_batch_of_any_lengths_is_one_launch(slots: int, worth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paged decode: every sequence has its table and its length on the device. It may be captured: replays follow
    the lengths."""
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", worth)
    sequences = batch("bf16", 4, 2, LENGTHS, (1,) * len(LENGTHS))
    rows, positions = paged(sequences, slots, 120)
    lie = "rows" if slots % 16 else "pages"
    attention = warp_attention.WarpAttention(runtime(), Geometry("bf16", 32, 64, 8, 2, lie, 1))
    asked = np.concatenate([one.queries for one in sequences])
    queries, out = placed(runtime(), asked, np.full((len(LENGTHS), 8, 1, 64), np.nan, np.float32))
    before = runtime().meter.reading()
    captured = runtime().capture(lambda: attention.attend(Call(queries, rows, positions, out, most=1920)))
    captured.replay()
    assert runtime().meter.since(before) == {"launches": 1}
    for i, one in enumerate(sequences):
        assert worst(one, fetched(out)[i : i + 1]) <= 1.0
    assert positions.lengths is not None
    runtime().upload(np.array([1, 3, 64, 129, 17, 1]), positions.lengths)
    captured.replay()
    for i, one in enumerate(sequences[1:], 1):
        assert worst(one, fetched(out)[i : i + 1]) <= 1.0


@pytest.mark.parametrize("window", [0, 20])
@pytest.mark.parametrize("worth", [16, 1 << 20], ids=["split", "whole"])
@pytest.mark.parametrize("prefill", [False, True], ids=["attend", "prefill"])
def test_ragged_queries_are_one_launch(
    prefill: bool, worth: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch in which one sequence begins, one decodes, one has no queries: starts `[sequences + 1]` say who has
    which of the queries `[heads, n, dim]`."""
    module = warp_prefill if prefill else warp_attention
    monkeypatch.setattr(module, "WORTH_SPLITTING", worth)
    counts = (70, 1, 0, 5, 17, 1)
    sequences = batch("f16", 3, 2, LENGTHS, counts)
    for one in sequences:
        one.window = window
    rows, positions = paged(sequences, 16, 50)
    one = Geometry("f16", 32, 64, 6, 2, "pages", 1)
    geometry = one._replace(queries=warp_prefill.QUERIES if prefill else warp_attention.together(one))
    attention = warp_kernels.made(runtime(), geometry)
    asked = np.concatenate([one.queries[0] for one in sequences], axis=1)
    nothing = np.full((6, sum(counts), 64), np.nan, np.float32)
    queries, out = placed(runtime(), asked, nothing)
    starts = uploaded(runtime(), np.concatenate([[0], np.cumsum(counts)]))
    before = runtime().meter.reading()
    ragged = Ragged(starts, len(counts))
    attention.attend(Call(queries, rows, positions, out, window=window, most=800, ragged=ragged))
    assert runtime().meter.since(before) == {"launches": 1}
    ends = np.cumsum(counts)
    found = fetched(out)
    for case, end, n in zip(sequences, ends, counts, strict=True):
        assert not n or worst(case, found[None, :, end - n : end]) <= 1.0


def test_a_batch_of_a_store_is_one_launch() -> None:
    """What the contract has over sequences of different lengths: `attend_batch`."""
    config = Config(k_dim=32, v_dim=64, kv_heads=2, layers=2, max_len=300)
    store = CudaCPUFast().open("store", config)
    random = np.random.default_rng(0)
    rows = Pair(*(random.standard_normal((1, 2, 290, d)).astype(np.float16) for d in (32, 64)))
    for layer in (0, 1):
        store.append(*rows, layer)  # type: ignore[attr-defined]
    store.batch(3)  # type: ignore[attr-defined]
    for sequence, n in enumerate((290, 5, 40)):
        store.scatter(sequence, n)  # type: ignore[attr-defined]
    queries = random.standard_normal((3, 8, 1, 32), np.float32)
    store.attend_batch(queries, 1)  # type: ignore[attr-defined]
    meter = store.space.runtime.meter  # type: ignore[attr-defined]
    before = meter.reading()
    found = store.attend_batch(queries, 1)  # type: ignore[attr-defined]
    assert meter.since(before)["launches"] == 1
    for sequence, n in enumerate((290, 5, 40)):
        case = Case("f16", 32, 64, group=4, kv_heads=2, held=n, wrap=n)
        case.keys, case.values = (a[:, :, :n] for a in rows)
        case.queries = queries[sequence : sequence + 1]
        assert worst(case, found[sequence : sequence + 1]) <= 1.0
