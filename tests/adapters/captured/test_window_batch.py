"""A batch of sequences that slide in windows: rings come in, and what does not fit is refused."""

from __future__ import annotations

import pytest

from kvgpu.adapters import CudaCPU
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.window_batch import WindowBatch
from kvspec.contract import Rope
from kvspec.errors import Refused
from support.device.captured_batches import HEADS, LAYERS, Window, compared, stepped


@pytest.fixture
def window() -> Window:
    return Window(CudaCPU())


def test_other_rings_come_in_between_replays(window: Window) -> None:
    step = CapturedBatchStep(window.batch, HEADS, Rope())
    for number, (sequence, n) in enumerate(((0, 9), (3, 0), (1, 2), (0, 5))):
        window.again(sequence, n)
        stepped(window, step, number, Rope())
    compared(window)


def test_what_does_not_fit_is_refused(window: Window) -> None:
    for rings in (window.rings[0][1:], [*window.rings[0][1:], window.ring()]):
        with pytest.raises(ValueError, match="sequence 1: expected 3 rings of one length"):
            window.batch.admit(1, rings)
    for change in ({"window": 6}, {"k_dim": 32}, {"batch": 2}, {"dtype": "bf16"}):
        other = window.caches.open("ring", window.config.changed(**{"window": 5, **change}))
        with pytest.raises(ValueError, match="sequence 1: expected 3 rings of one length"):
            window.batch.admit(1, [other] * LAYERS)
    with pytest.raises(ValueError, match="sequence 5: the batch has places for 5"):
        window.batch.admit(5, window.rings[0])
    short = WindowBatch(window.caches.space, window.batch.config.changed(max_len=6), 1)
    with pytest.raises(ValueError, match="sequence 0: 7 rows, more than the 6 that it may have"):
        short.admit(0, window.rings[3])


def test_a_sequence_at_its_last_position_is_refused(window: Window) -> None:
    step = CapturedBatchStep(window.batch, HEADS)
    for _ in range(window.steps):
        step.replay()
    with pytest.raises(Refused) as refused:
        step.replay()
    assert refused.value.clause == "BATCH-15" and "sequence 3" in str(refused.value)
