"""RoPE by the usual formula. Cosines and sines of all positions are made beforehand; halves or neighbours are
rotated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvprofile.operation import Job
from kvprofile.peers.host_arrays import Rows

BASE = 10000.0


class Angles:
    """Cosines and sines `[positions, dim / 2]` in f32, and which elements pair up."""

    def __init__(self, rows: Rows, first: int, count: int) -> None:
        half = rows.case.model.dim // 2
        angles = np.arange(first, first + count)[:, None] * BASE ** -(np.arange(half) / half)
        self.cos, self.sin = (rows.library.wrap(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        norm = rows.case.pairing == "norm"
        self.parts = (slice(0, None, 2), slice(1, None, 2)) if norm else (slice(half), slice(half, None))

    def turn(self, source: Any, target: Any, at: int = 0) -> None:
        """Rotate rows `[..., n, dim]` into a target of their shape; the first is at the position of angle `at`."""
        n = source.shape[-2]
        cos, sin = self.cos[at : at + n], self.sin[at : at + n]
        a, b = (source[..., part] for part in self.parts)
        target[..., self.parts[0]] = a * cos - b * sin
        target[..., self.parts[1]] = b * cos + a * sin


def rotate(rows: Rows) -> Job:
    """Rotate keys into other memory, at the same positions for all layers."""
    case, model, spans = rows.case, rows.case.model, 4
    angles = Angles(rows, case.context, spans * case.rows)
    sources = rows.caches(case.rows, 64)
    targets = rows.caches(case.rows, 64, 1)

    def do(i: int) -> None:
        at = i // model.layers % spans * case.rows
        angles.turn(sources[i % len(sources)][0], targets[i % len(targets)][0], at)

    return Job(do)


def attend(rows: Rows) -> Job:
    """Rotate new keys and queries, write the rows behind the context, then attend over all."""
    case, asked, turned = rows.case, rows.queries(), rows.queries(turn=4)
    caches, sources = rows.caches(case.context + case.rows), rows.caches(case.rows, 64, 1)
    angles, fresh = Angles(rows, case.context, case.rows), rows.caches(case.rows, 1, 2)[0][0]

    def do(i: int) -> Any:
        cache, (keys, values) = caches[i % len(caches)], sources[i % len(sources)]
        angles.turn(keys, fresh)
        angles.turn(asked, turned)
        rows.write(cache, 2, case.context, (fresh, values))
        return rows.library.attend(turned, *cache)

    return Job(do)


WORK: dict[str, Callable[[Rows], Job]] = {"rotate": rotate, "rope attention": attend}
"""The work of each operation."""
