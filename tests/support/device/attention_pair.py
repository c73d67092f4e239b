"""Two adapters driven alike through attention, whatever the arrays hold, and compared to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.reference import Reference
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Causal, Explicit, Logical, Window
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step

Op = dict[str, Any]


def settled(array: Array) -> bytes:
    """The bytes of f32 numbers, every NaN alike."""
    return np.where(np.isnan(array), np.float32(np.nan), array).tobytes()


class Pairs:
    """The reference and an adapter: the same operations on both, and every output the same."""

    def __init__(self, adapter: Any, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.sessions = Session(Reference(), ("state", "offset")), Session(adapter, ("state", "offset"))
        self.log: list[Op] = []
        self.captured: dict[str, int] = {}

    def open(self, kind: str, config: Config) -> None:
        self.kind, self.config = kind, config
        self.do({"op": "open"}, Inputs(opening=(kind, config)))

    @property
    def cache(self) -> Any:
        """The reference's."""
        return self.sessions[0].caches["A"]

    def do(self, op: Op, given: Inputs = NOTHING) -> Step:
        self.log.append({**op, "logical": given.logical})
        theirs, ours = (session.do(op, given) for session in self.sessions)
        assert (ours.result, ours.clause) == (theirs.result, theirs.clause), (self.log, ours, theirs)
        for name, array in theirs.arrays.items():
            found = ours.arrays[name]
            assert (array is None) == (found is None), (self.log, name)
            if array is not None and found is not None:
                assert (found.dtype, found.shape) == (array.dtype, array.shape), (self.log, name)
                same = settled(found) == settled(array) if name == "output" else found.tobytes() == array.tobytes()
                assert same, (self.config, self.log, name, found, array)
        return ours

    # ---- What goes with operations ----

    def rows(self, n: int, layers: int | None = None) -> Pair:
        """Rows of numbers of some magnitude; one time in four of arbitrary bits, NaN and infinities among them."""
        config = self.config if layers is None else self.config.changed(batch=layers)
        made = [self._numbers(config.shape(kind, n)).astype(DTYPES[config.dtype]) for kind in "kv"]
        if self.random.random() < 0.25:
            made = [self._bits(a) for a in made]
        return Pair(*made)

    def _numbers(self, shape: tuple[int, ...]) -> Array:
        with np.errstate(over="ignore"):
            scale = self.random.choice(np.array([1e-40, 1e-3, 1, 1, 30, 1e4], np.float32))
            return self.random.standard_normal(shape).astype(np.float32) * scale

    def _bits(self, like: Array) -> Array:
        bits = self.random.integers(0, 256, (*like.shape, like.dtype.itemsize), np.uint8)
        return bits.view(like.dtype).reshape(like.shape)

    def queries(self, n: int, batch: int) -> Array:
        """Queries of one to three heads for each kv head."""
        heads = self.config.kv_heads * int(self.random.integers(1, 4))
        return self._numbers((batch, heads, n, self.config.k_dim))

    def logical(self, n: int, rows: int, heads: int) -> Logical:
        """A mask of up to three parts."""
        kinds = [Causal(), Window(int(self.random.integers(1, rows + 2))), None, None]
        return tuple(
            self._explicit(n, rows, heads) if part is None else part
            for part in self.random.choice(np.array(kinds, object), self.random.integers(0, 4))
        )

    def _explicit(self, n: int, rows: int, heads: int) -> Explicit:
        several = self.random.integers(0, 2, 3)
        shape = self.config.batch if several[0] else 1, heads if several[1] else 1, n, rows if several[2] else 1
        seen = self.random.random(shape) < 0.7
        if self.random.random() < 0.5:
            return Explicit(seen)
        return Explicit(np.where(seen, self._numbers(shape), np.float32(-np.inf)))

    def asking(self) -> Op:
        """Arguments of an operation that asks."""
        return {
            "splits": int(self.random.integers(1, 6)),
            **{name: 1 for name in ("into", "resident") if self.random.random() < 0.4},
        }

    def attend(self, n: int, rows: int, **changed: Any) -> Step:
        """n new rows and queries; afterwards so many rows are held."""
        queries = self.queries(n, self.config.batch)
        logical = self.logical(n, rows, queries.shape[1])
        op = {"op": "attend", "n": n, **self.asking(), **changed}
        return self.do(op, Inputs(self.rows(n), queries, logical))
