"""Decode steps of a whole batch: each is captured once, and then one replay a token.

    python docs/examples/captured_steps.py

Three sequences of different lengths grow, slide in windows, or lie in pages. It needs g++ and no GPU:
`cuda-cpu-fast` runs the kernels of `cupy-fast` on the CPU. On an NVIDIA GPU write CuPyFast instead of CudaCPUFast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPUFast
from kvgpu.captured.batch import Batch
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.growing_batch import GrowingBatch
from kvgpu.captured.page_batch import PageBatch
from kvgpu.captured.window_batch import WindowBatch
from kvgpu.memory.device_arrays import fetched
from kvspec.contract import Rope
from kvspec.geometry import Array, Config

LAYERS, HEADS, KV_HEADS, DIM = 2, 8, 2, 64
CONFIG = Config(k_dim=DIM, v_dim=DIM, kv_heads=KV_HEADS, dtype="f16")
PROMPTS, TOKENS, MAX_LEN, WINDOW = (3, 40, 21), 6, 64, 16


def prompt(caches: Caches, n: int) -> tuple[Array, Array]:
    """Give the rows of a prompt, `[layers, kv_heads, n, dim]`, with the keys turned by RoPE."""
    random = np.random.default_rng(n)
    keys, values = (random.standard_normal((LAYERS, KV_HEADS, n, DIM)).astype(np.float16) for _ in "kv")
    return caches.rotate(keys, np.arange(n), Rope()), values


def growing(caches: Caches) -> Batch:
    """Each sequence has a place of its own in a store's batch; prompts go through the store."""
    store: Any = caches.open("store", CONFIG.changed(layers=LAYERS, max_len=MAX_LEN))
    store.batch(len(PROMPTS))
    for sequence, n in enumerate(PROMPTS):
        store.append(*prompt(caches, n))
        store.scatter(sequence, n)
        store.reset()
    return GrowingBatch(store)


def windows(caches: Caches) -> Batch:
    """Each sequence sees the newest rows; prompts come from rings, one for each layer."""
    config = CONFIG.changed(window=WINDOW)
    batch = WindowBatch(caches.space, config.changed(layers=LAYERS, max_len=MAX_LEN), len(PROMPTS))
    for sequence, n in enumerate(PROMPTS):
        rings: list[Any] = [caches.open("ring", config) for _ in range(LAYERS)]
        for ring, keys, values in zip(rings, *prompt(caches, n), strict=True):
            ring.append(keys[None], values[None])
        batch.admit(sequence, rings)
    return batch


def pages(caches: Caches) -> Batch:
    """Sequences share a pool of pages, which hold the heads of all layers; prompts come from a paged cache."""
    cache: Any = caches.open("page", CONFIG.changed(kv_heads=LAYERS * KV_HEADS, page_size=16, pages=12))
    batch = PageBatch(cache, LAYERS, len(PROMPTS), MAX_LEN)
    for sequence, n in enumerate(PROMPTS):
        source = cache.admit()
        cache.append(*(rows.reshape(1, -1, n, DIM) for rows in prompt(caches, n)), source)
        batch.admit(sequence, source)
        cache.drop(source)
    return batch


def decode(caches: Caches, batch: Batch) -> Array:
    """Capture a step, and replay it for each token; give the last outputs, `[layers, sequences, heads, dim]`."""
    step, random = CapturedBatchStep(batch, HEADS, Rope()), np.random.default_rng(0)
    for _ in range(TOKENS):
        queries = random.standard_normal((LAYERS, len(PROMPTS), HEADS, 1, DIM), np.float32)
        keys, values = random.standard_normal((2, LAYERS, len(PROMPTS), KV_HEADS, DIM)).astype(np.float16)
        step.take(*caches.place(queries, keys, values))
        before = caches.meter()["launches"]
        step.replay()
        assert caches.meter()["launches"] == before + 1
    return fetched(step.out).reshape(LAYERS, len(PROMPTS), HEADS, DIM)


def main() -> None:
    """Decode with each kind of batch, and compare: only windows hide rows, and only of long sequences."""
    caches = CudaCPUFast()
    outputs = {make.__name__: decode(caches, make(caches)) for make in (growing, windows, pages)}
    print(f"{TOKENS} tokens, a replay each, after prompts of {PROMPTS} rows. Largest difference from growing:")
    for kind, found in outputs.items():
        off = np.abs(found - outputs["growing"]).max(axis=(0, 2, 3))
        print(f"  {kind:8}", *(f"{one:.3f}" for one in off))


if __name__ == "__main__":
    main()
