"""A batch of sequences in pages: what it takes from the cache and gives back, and when the host says something."""

from __future__ import annotations

import numpy as np
import pytest

from kvgpu.adapters import CudaCPU
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.page_batch import PageBatch
from kvspec.contract import Rope
from kvspec.errors import Refused
from support.device.captured_batches import HEADS, LAYERS, Paged, compared, stepped


class Long(Paged):
    """More steps than pages have slots."""

    steps = 13


class Scarce(Paged):
    """The pages that sequences need, and two: the second needs one now, the last one two steps later, the first one
    a step after that."""

    pages, lengths = 6, (5, 4, 2)


@pytest.fixture
def long() -> Long:
    return Long(CudaCPU())


def test_the_host_uploads_once_in_as_many_steps_as_a_page_has_slots(long: Long) -> None:
    step = CapturedBatchStep(long.batch, HEADS)
    costs = [stepped(long, step, number, None) for number in range(long.steps)]
    uploads = [number for number, cost in enumerate(costs) if "host_to_device" in cost]
    assert uploads == [0, 4, 8, 12]
    assert {costs[number]["host_to_device"] for number in uploads} == {4 * len(long.lengths)}


def test_sequences_are_cut_and_others_come_in_their_place(long: Long) -> None:
    """In pages that are shared, within a page, to nothing; the captured step goes on."""
    step = CapturedBatchStep(long.batch, HEADS, Rope())
    stepped(long, step, 0, Rope())
    for sequence, to in ((3, 2), (0, 4), (2, 0), (1, 9)):
        long.batch.cut(sequence, to)
        for cache in long.layers:
            cache.truncate(sequence, min(to, cache.sequences()[sequence]))
    for number in range(1, 6):
        stepped(long, step, number, Rope())
    long.again(4, 7)
    for number in range(6, 10):
        stepped(long, step, number, Rope())
    compared(long)


def test_the_cache_keeps_what_it_had(long: Long) -> None:
    before = [long.whole.read_sequence(s) for s in (1, 3)]
    step = CapturedBatchStep(long.batch, HEADS)
    for number in range(6):
        stepped(long, step, number, None)
    for s, was in zip((1, 3), before, strict=True):
        for mine, same in zip(long.whole.read_sequence(s), was, strict=True):
            assert mine.tobytes() == same.tobytes()


def test_pages_come_back(long: Long) -> None:
    step = CapturedBatchStep(long.batch, HEADS)
    for number in range(5):
        stepped(long, step, number, None)
    for sequence in range(len(long.lengths)):
        long.batch.drop(sequence)
    for sequence in (1, 3):
        long.whole.drop(sequence)
    assert long.whole.free_pages() == long.pages and not any(long.whole.references())


def test_an_empty_place_takes_no_pages(long: Long) -> None:
    step = CapturedBatchStep(long.batch, HEADS)
    long.batch.drop(2)
    long.gone.add(2)
    for number in range(6):
        stepped(long, step, number, None)
    assert long.batch.pages(2) == [] and long.batch.reserve[2] < 0


def test_a_page_in_reserve_goes_to_a_sequence_that_needs_it_now() -> None:
    scarce = Scarce(CudaCPU())
    step = CapturedBatchStep(scarce.batch, HEADS)
    reserved = []
    for number in range(3):
        stepped(scarce, step, number, None)
        reserved.append((scarce.batch.reserve >= 0).tolist())
    assert reserved == [[True, True, False], [True, True, False], [False, False, True]]
    compared(scarce)


def test_too_few_pages_are_refused_and_nothing_is_changed() -> None:
    scarce = Scarce(CudaCPU())
    step = CapturedBatchStep(scarce.batch, HEADS)
    with pytest.raises(Refused) as refused:  # noqa: PT012
        for number in range(4):
            lengths = scarce.batch.lengths.tolist()
            stepped(scarce, step, number, None)
    assert (refused.value.clause, scarce.batch.lengths.tolist()) == ("PAGE-13", lengths)
    compared(scarce)
    scarce.batch.cut(0, 0)
    for cache in scarce.layers:
        cache.truncate(0, 0)
    stepped(scarce, step, number, None)
    compared(scarce)


def test_what_does_not_fit_is_refused(long: Long) -> None:
    with pytest.raises(ValueError, match="pages of 6 heads do not hold 4 layers"):
        PageBatch(long.whole, 4, 1, 9)
    with pytest.raises(ValueError, match="sequence 5: the batch has places for 5"):
        long.batch.admit(5, 1)
    with pytest.raises(Refused, match="rollback to -1"):
        long.batch.cut(0, -1)
    with pytest.raises(ValueError, match="sequence 0: 7 rows, more than the 6 that it may have"):
        PageBatch(long.whole, LAYERS, 1, 6).admit(0, 3)
    step = CapturedBatchStep(long.batch, HEADS)
    for _ in range(long.steps):
        step.replay()
    with pytest.raises(Refused) as refused:
        step.replay()
    assert refused.value.clause == "BATCH-15" and "sequence 3" in str(refused.value)


def test_a_copy_for_which_there_is_no_page_is_refused() -> None:
    long = Long(CudaCPU())
    other = long.whole.admit()
    n = long.whole.free_pages() * 4
    long.whole.append(*(np.zeros((1, 6, n, d), np.float16) for d in (64, 32)), other)
    for refused in (lambda: long.batch.admit(1, 3), lambda: long.batch.cut(3, 3)):
        with pytest.raises(Refused, match=r"append of \d rows: it needs 1 pages, 0 are free"):
            refused()
    long.batch.cut(3, 4)
    assert [len(a[0, 0]) for a in long.batch.read(3)] == [4, 4]
