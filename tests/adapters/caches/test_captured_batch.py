"""A captured step of a batch: replay by replay it is what each sequence does alone, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvadapters.gpu.adapter import Caches
from kvadapters.gpu.adapters import CudaCPU, CudaCPUFast
from kvadapters.gpu.caches import captured_batch
from kvadapters.gpu.caches.captured_batch import CapturedBatchStep
from kvadapters.gpu.memory.device_arrays import fetched
from kvspec.contract import Attention, Pair, Rope
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array, Config
from support.device.warp_cases import with_bug

LAYERS, HEADS, KV_HEADS, LENGTHS = 3, 4, 2, (6, 0, 3, 6, 1)
CONFIG = Config(k_dim=64, v_dim=32, kv_heads=KV_HEADS, layers=LAYERS, max_len=9)
ROPES = {"plain": None, "norm": Rope(dims=16, base=500, pairing="norm"), "halves": Rope()}


@pytest.fixture(params=[CudaCPU, CudaCPUFast])
def caches(request: pytest.FixtureRequest) -> Caches:
    made: Callable[[], Caches] = request.param
    return made()


def rows(random: np.random.Generator, n: int, dtype: str) -> Pair:
    """Rows `[layers, kv_heads, n, dim]`."""
    return Pair(
        *(
            random.standard_normal((LAYERS, KV_HEADS, n, d)).astype(np.float32).astype(DTYPES[dtype])
            for d in (64, 32)
        )
    )


def opened(caches: Caches, dtype: str = "f16") -> tuple[Any, list[Any]]:
    """A store with a batch, and for each sequence of it a store of its own with the same rows."""
    config, random = CONFIG.changed(dtype=dtype), np.random.default_rng(1)
    whole: Any = caches.open("store", config)
    whole.batch(len(LENGTHS))
    alone: list[Any] = [caches.open("store", config) for _ in LENGTHS]
    for sequence, (n, one) in enumerate(zip(LENGTHS, alone, strict=True)):
        given = rows(random, n, dtype)
        for store in (whole, one) if n else ():
            store.append(*given)
        whole.scatter(sequence, n)
        whole.reset()
    return whole, alone


def inputs(step: int, dtype: str = "f16") -> tuple[Array, list[Pair]]:
    """Queries `[layers, sequences, heads, 1, k_dim]`, and for each sequence a row of every layer."""
    random = np.random.default_rng(step + 10)
    queries = random.standard_normal((LAYERS, len(LENGTHS), HEADS, 1, 64), np.float32)
    return queries, [rows(random, 1, dtype) for _ in LENGTHS]


def taken(step: CapturedBatchStep, queries: Array, given: list[Pair]) -> None:
    """Rows of sequences as a batch takes them, `[layers, sequences, kv_heads, dim]`."""
    step.take(queries, *(np.stack([a[:, :, 0] for a in arrays], 1) for arrays in zip(*given, strict=True)))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("turn", ROPES)
def test_several_steps_are_what_sequences_do_alone(caches: Caches, turn: str, dtype: str) -> None:
    whole, alone = opened(caches, dtype)
    step = CapturedBatchStep(whole, HEADS, ROPES[turn])
    meter = whole.space.runtime.meter
    for i in range(3):
        queries, given = inputs(i, dtype)
        taken(step, queries, given)
        before = meter.reading()
        step.replay()
        spent = meter.since(before)
        assert spent.pop("device_to_device") > 0 and spent == {"launches": 1}
        found = fetched(step.out).reshape(LAYERS, len(LENGTHS), HEADS, 1, 32)
        for layer, s in np.ndindex(LAYERS, len(LENGTHS)):
            its = (a[layer : layer + 1] for a in given[s])
            wanted = alone[s].attend(queries[layer, s : s + 1], *its, Attention(rope=ROPES[turn]), of=layer)
            assert found[layer, s].tobytes() == wanted.tobytes(), (i, layer, s)
    assert whole.sequences() == [n + 3 for n in LENGTHS]
    for layer, s in np.ndindex(LAYERS, len(LENGTHS)):
        for mine, same in zip(whole.read_sequence(layer, s), alone[s].read(layer), strict=True):
            assert mine.tobytes() == same.tobytes()


def test_two_launches_a_layer_with_attention_on_tensor_cores() -> None:
    step = CapturedBatchStep(opened(CudaCPUFast())[0], HEADS, Rope())
    names = [launch.kernel for launch in step.work._recording.launches]  # type: ignore[attr-defined]
    assert names == ["step_turned_f16", "attend_warps_runs_f16_64_32_2_1"] * LAYERS


def test_sequences_that_are_rolled_back_are_followed(caches: Caches) -> None:
    whole, alone = opened(caches)
    step = CapturedBatchStep(whole, HEADS, Rope())
    for i in range(2):
        whole.rollback_sequence(3, 2)
        alone[3].rollback(2)
        queries, given = inputs(i)
        taken(step, queries, given)
        step.replay()
        for layer in range(LAYERS):
            its = (a[layer : layer + 1] for a in given[3])
            wanted = alone[3].attend(queries[layer, 3:4], *its, Attention(rope=Rope()), of=layer)
            assert fetched(step.of_layer(step.out, layer))[3:4].tobytes() == wanted.tobytes()


def test_what_cannot_be_replayed_is_refused(caches: Caches) -> None:
    whole, _ = opened(caches)
    step = CapturedBatchStep(whole, HEADS)
    for _ in range(3):
        step.replay()
    for change, clause in (
        (lambda: None, "BATCH-15"),
        (
            lambda: [
                whole.reset_batch(),
                whole.append(*rows(np.random.default_rng(0), 2, "f16")),
                whole.scatter(0, 2, 1),
            ],
            "BATCH-16",
        ),
        (lambda: whole.batch(2), "BATCH-27"),
        (whole.free_batch, "BATCH-26"),
    ):
        change()
        with pytest.raises(Refused) as refused:
            step.replay()
        assert refused.value.clause == clause
    with pytest.raises(Refused) as refused:
        CapturedBatchStep(whole, HEADS)
    assert refused.value.clause == "BATCH-3"


PLANTED = {
    "a row too far": ("* slots + at, first", "* slots + at + 1, first"),
    "the line of the position before": ("table + at * dims", "table + (at ? at - 1 : 0) * dims"),
    "the length of the first sequence": ("+ s * lengths_stride", ""),
    "a length that stays": ("*length = at + 1", "*length = at"),
    "queries of the first kv head": ("queries_at + first_query", "queries_at"),
}
"""What was planted in the kernel that turns and appends: a piece of it, and what stands there instead."""


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_batch, "source", with_bug(captured_batch.source, *PLANTED[bug]))
    with pytest.raises(AssertionError):
        test_several_steps_are_what_sequences_do_alone(CudaCPU(), "halves", "f16")
