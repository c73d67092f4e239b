"""A captured step of a batch: replay by replay it is what each sequence does alone, layer by layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvgpu.captured import batch_step, step
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.pool_batch import PoolBatch
from kvgpu.memory.page_pool import Pool
from kvspec.contract import Rope
from kvspec.errors import Refused
from kvspec.rope.scaling import YaRN
from support.device.captured_batches import (
    HEADS,
    KINDS,
    LAYERS,
    WIDE,
    Growing,
    Kind,
    Paged,
    Window,
    compared,
    rows,
    stepped,
)
from support.device.warp_cases import with_bug
from support.slow import one_in

ROPES = {
    "plain": None,
    "norm": Rope(dims=16, base=500, pairing="norm"),
    "halves": Rope(),
    "scaled": Rope(scaling=YaRN(4, 64, 8, 1)),
}


@pytest.fixture(params=[CudaCPU, CudaCPUFast])
def caches(request: pytest.FixtureRequest) -> Caches:
    made: Callable[[], Caches] = request.param
    return made()


def check(many: Kind, turn: Rope | None) -> None:
    """Every step is one launch, and what sequences do alone."""
    captured = CapturedBatchStep(many.batch, HEADS, turn)
    for number in range(many.steps):
        spent = stepped(many, captured, number, turn)
        assert spent["launches"] == 1 and not {"allocations", "device_to_host"} & set(spent)
    compared(many)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("turn", ROPES)
@pytest.mark.parametrize("kind", KINDS)
def test_several_steps_are_what_sequences_do_alone(caches: Caches, kind: str, turn: str, dtype: str) -> None:
    check(KINDS[kind](caches, dtype), ROPES[turn])


@pytest.mark.parametrize("kind", WIDE)
def test_windows_and_pages_that_tiles_fit_into(caches: Caches, kind: str) -> None:
    check(WIDE[kind](caches), Rope())


@pytest.mark.parametrize(
    ("kind", "attend"),
    [
        (KINDS["growing"], "runs"),
        (KINDS["window"], "rows"),
        (KINDS["pages"], "rows"),
        (WIDE["window"], "pages"),
        (WIDE["pages"], "pages"),
    ],
)
def test_two_launches_a_layer_with_attention_on_tensor_cores(kind: type[Kind], attend: str) -> None:
    captured = CapturedBatchStep(kind(CudaCPUFast()).batch, HEADS, Rope())
    names = [launch.kernel for launch in captured.work._recording.launches]  # type: ignore[attr-defined]
    assert names == ["step_turned_f16", f"attend_warps_{attend}_f16_64_32_2_1"] * LAYERS


def test_sequences_that_are_rolled_back_are_followed(caches: Caches) -> None:
    many = Growing(caches)
    captured = CapturedBatchStep(many.batch, HEADS, Rope())
    for number in range(2):
        many.store.rollback_sequence(3, 2)
        many.stores[3].rollback(2)
        stepped(many, captured, number, Rope())


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_takes_as_many_sequences_as_were_captured(caches: Caches, kind: str) -> None:
    step = CapturedBatchStep(KINDS[kind](caches).batch, HEADS)
    queries = np.zeros((LAYERS, step.batch.sequences, HEADS, 1, step.config.k_dim), np.float32)
    rows = [np.zeros(r.shape, r.dtype) for r in step.batch.rows]
    step.take(queries, *rows)
    for taken in ((queries[:, 1:], *rows), (queries, *(r[:, 1:] for r in rows))):
        with pytest.raises(ValueError, match="this step was captured for"):
            step.take(*taken)


@pytest.mark.parametrize("kind", [Window, Paged])
def test_steps_pass_over_places_that_are_empty(caches: Caches, kind: type[Window | Paged]) -> None:
    many = kind(caches)
    step = CapturedBatchStep(many.batch, HEADS, Rope())
    for number in range(6):
        if number in (0, 2):
            many.gone |= {number, number + 1}
            many.batch.drop(number)
            many.batch.drop(number + 1)
        if number == 4:
            many.gone -= {0, 2}
            many.again(0, 6)
            many.again(2, 3)
        stepped(many, step, number, Rope())
    compared(many)
    assert many.batch.lengths.tolist() == [8, -1, 5, -1, 7]
    for refused in (many.batch.drop, many.batch.read):
        with pytest.raises(ValueError, match="sequence 1: nobody was admitted to its place"):
            refused(1)


def test_what_cannot_be_replayed_is_refused(caches: Caches) -> None:
    many = Growing(caches)
    whole, captured = many.store, CapturedBatchStep(many.batch, HEADS)
    for _ in range(3):
        captured.replay()
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
            captured.replay()
        assert refused.value.clause == clause
    with pytest.raises(Refused) as refused:
        batch_step.CapturedBatchStep(type(many.batch)(whole), HEADS)
    assert refused.value.clause == "BATCH-3"


PLANTED = {
    "a row too far": ("growing", "+ slot, first_query", "+ slot + 1, first_query"),
    "the line of the position before": ("growing", "angles + at * dims", "angles + (at ? at - 1 : 0) * dims"),
    "the length of the first sequence": ("growing", "+ s * lengths_stride", ""),
    "a window that comes round at the wrong row": (
        *("window", "slot = (u32)at - entry * (u32)slots"),
        "slot = (u32)(at - !!entry) % (u32)slots",
    ),
    "a length that stays": ("growing", "*length = at + 1", "*length = at"),
    "queries of the first kv head": ("growing", "queries_at + first_query", "queries_at"),
    "a page that is not noted": ("pages", "if (slot == 0) *its = begun;", ""),
    "a window that comes round in the page of the first": ("window", "following[s]", "following[0]"),
    "the first page throughout": ("pages", "* wide + entry", "* wide"),
    "the table of the sequence before": ("pages", "tables + s * wide", "tables + (s ? s - 1 : 0) * wide"),
    "a page begun a row late": ("pages", "slot ? *its", "slot != 1 ? *its"),
    "the page that the first sequence begins": ("pages", "following[s]", "following[0]"),
}
"""What was planted in the kernel that turns and appends: the kind of batch that shows it, a piece of the kernel,
and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(3, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, *change = PLANTED[bug]
    monkeypatch.setattr(batch_step, "source", with_bug(batch_step.source, *change))
    with pytest.raises(AssertionError):
        check(KINDS[kind](CudaCPU()), Rope())


def _a_row_wider(patch: pytest.MonkeyPatch) -> None:
    asked = step.asked
    patch.setattr(step, "asked", lambda logical, window: asked(logical, window and window + 1))


def _a_row_narrower(patch: pytest.MonkeyPatch) -> None:
    asked = step.asked
    patch.setattr(step, "asked", lambda logical, window: asked(logical, window and window - 1))


def _tables_as_they_were(patch: pytest.MonkeyPatch) -> None:
    """Attention through a copy of the tables, made before the step is captured."""
    capture = CapturedBatchStep._capture

    def first(self: CapturedBatchStep) -> None:
        runtime, lying, there = self.space.runtime, self.batch.lying, self.batch.tables.entries
        copy = runtime.allocate(there.nbytes)
        runtime.upload(runtime.download(there, 0, there.nbytes), copy)
        patch.setattr(self.batch, "lying", lambda layer: lying(layer)._replace(tables=copy))  # type: ignore[call-arg]
        capture(self)

    patch.setattr(CapturedBatchStep, "_capture", first)


def _the_first_layer(patch: pytest.MonkeyPatch) -> None:
    of_layer = PoolBatch._of_layer
    patch.setattr(PoolBatch, "_of_layer", lambda self, page, layer: of_layer(self, page, 0))


def _shared_pages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pool, "copy", lambda self, page, to, rows: None)


ON_THE_HOST = {
    "a window one row too wide": ("window", _a_row_wider),
    "a window one row too narrow": ("window", _a_row_narrower),
    "rows of the first layer": ("window", _the_first_layer),
    "a page that is shared is not copied": ("pages", _shared_pages),
    "tables as they were when captured": ("pages", _tables_as_they_were),
}
"""The same on the host: the kind of batch, and what plants the bug."""


@pytest.mark.parametrize("bug", ON_THE_HOST)
def test_a_bug_planted_on_the_host_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, plant = ON_THE_HOST[bug]
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(KINDS[kind](CudaCPU()), Rope())
