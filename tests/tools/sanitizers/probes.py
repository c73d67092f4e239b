"""Small kernels in which threads meet, added to the real text: for what a sanitizer must see and few kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kvgpu.runtime import Block
from kvspec.geometry import Array

SUM = """
KERNEL probe_sum(GLOBAL const u32 *from, GLOBAL u32 *to) {
  SHARED u32 part[64];
  const i64 i = ITEM(0);
  part[i] = from[GROUP(0) * 64 + i];
  MEET_NEAR();
  for (i64 by = 32; by > 0; by /= 2) {
    if (i < by)
      part[i] += part[i + by];
    MEET_NEAR();
  }
  if (i == 0) to[GROUP(0)] = part[0];
}
"""
"""Each group of 64 adds up 64 words in shared memory."""

SHUFFLE = """
KERNEL probe_shuffle(GLOBAL const u32 *from, GLOBAL u32 *to) {
  u32 sum = from[GROUP(0) * 64 + ITEM(0)];
  for (i64 flip = 16; flip > 0; flip /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, flip);
  if (ITEM(0) % 32 == 0) atomicAdd(to + GROUP(0), sum);
}
"""
"""The same by shuffles within a warp, and an atomic between warps."""

LAST = """
KERNEL probe_last(GLOBAL const u32 *from, GLOBAL u32 *to, GLOBAL u32 *part, GLOBAL u32 *done) {
  if (ITEM(0) != 0) return;
  part[GROUP(0)] = from[GROUP(0) * 64];
  __threadfence();
  if (atomicAdd(done, 1) + 1 < GROUPS(0)) return;
  __threadfence();
  for (i64 g = 0; g < GROUPS(0); ++g) to[0] += part[g];
}
"""
"""Whichever block comes last adds up what all have written."""

GROUPS, ITEMS = 3, 64


class Probe(NamedTuple):
    """A kernel, the number of its buffers beside `from` and `to`, and what `to` holds in the end."""

    text: str
    name: str
    others: int
    expected: Callable[[Array], Array]


def _sums(words: Array) -> Array:
    sums: Array = words.reshape(GROUPS, ITEMS).sum(1, dtype=np.uint32)
    return sums


def _firsts(words: Array) -> Array:
    return np.array([words[::ITEMS].sum(), 0, 0], np.uint32)


PROBES = {
    "cl": (Probe(SUM, "probe_sum", 0, _sums),),
    "cuda": (
        Probe(SUM, "probe_sum", 0, _sums),
        Probe(SHUFFLE, "probe_shuffle", 0, _sums),
        Probe(LAST, "probe_last", 2, _firsts),
    ),
}


def text(dialect: str) -> str:
    """All probes of a dialect; they use the words of the common text."""
    return "".join(p.text for p in PROBES[dialect])


def names(dialect: str) -> dict[str, int]:
    """The kernels and their buffers, as in `kernels.KERNELS`."""
    return {p.name: 2 + p.others for p in PROBES[dialect]}


def run(runtime: Any, probe: Probe) -> tuple[Array, Array]:
    """Run it on buffers of exactly its size: what came out, and what should."""
    words = np.arange(GROUPS * ITEMS, dtype=np.uint32) * 7919
    blocks = [_uploaded(runtime, words)] + [
        _uploaded(runtime, np.zeros(GROUPS, np.uint32)) for _ in range(1 + probe.others)
    ]
    runtime.run(probe.name, (ITEMS, 1, 1), (GROUPS, 1, 1), *blocks)
    return runtime.download(blocks[1], 0, 4 * GROUPS)[0].view(np.uint32), probe.expected(words)


def _uploaded(runtime: Any, array: Array) -> Block:
    block: Block = runtime.allocate(array.nbytes)
    runtime.upload(array, block)
    return block
