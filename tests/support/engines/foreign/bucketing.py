"""BUCKET by closures: a graph is a Python function that is made for a bound, and attends in float64.

Written from the text of the chapter alone. Rows on the device and on the host are lists of arrays, one a layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign.demands import want, want_rows, want_sizes

Graph = Callable[[Any, Any, Any, int, bool], Any]


@cache
def graph(bound: int) -> Graph:
    """Compile attention over at most so many past rows and what comes behind them."""

    def run(queries: Any, keys: Any, values: Any, past: int, causal: bool) -> Any:
        """Queries `[B, heads, n, k_dim]` over rows, the first `past` of which all of them see."""
        want(past <= bound, f"{past} past rows in a graph for {bound}")
        group = queries.shape[1] // keys.shape[1]
        out = np.zeros((*queries.shape[:3], values.shape[3]), np.float32)
        for b, h, i in np.ndindex(*queries.shape[:3]):
            seen = past + i + 1 if causal else keys.shape[2]
            if seen == 0:
                continue
            k, v = (a[b, h // group, :seen].astype(np.float64) for a in (keys, values))
            with np.errstate(all="ignore"):
                scores = k @ queries[b, h, i].astype(np.float64) / np.sqrt(queries.shape[3])
                weights = np.exp(scores - scores.max())
                out[b, h, i] = weights @ v / weights.sum()
        return out

    return run


class Bucket:
    """Rows of all layers."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "layers")
        self.bounds = [int(bound) for bound in (config.bounds or "0").split("-")]
        increasing = all(a < b for a, b in zip(self.bounds, self.bounds[1:], strict=False))
        want(self.bounds[0] >= 1 and increasing, f"bounds {config.bounds}")
        self.config, self.count = config, 0
        self.none = Pair(*(np.zeros((config.layers, *config.shape(w, 0)), DTYPES[config.dtype]) for w in "kv"))
        self.on_host = self.none
        self.on_device: Pair | None = None
        self.encoded: Pair | None = None
        self.host_is_newer = self.has_block = False

    def rows(self, keys: Any, values: Any) -> Pair:
        """Rows of all layers, copied."""
        if keys.shape[3] == 0:
            return self.none
        want_rows(self.config, keys, values, self.config.layers, self.config.batch)
        return Pair(keys.copy(), values.copy())

    def prefill(self, keys: Any, values: Any) -> None:
        """These are the rows, on the host."""
        self.on_host = self.rows(keys, values)
        self.count, self.host_is_newer = keys.shape[3], self.on_device is not None

    def install(self, refresh: bool) -> Pair:
        """The rows on the device, from the host where they are not there or are to be taken anew."""
        want(self.count <= self.bounds[-1], f"{self.count} past rows")
        first = self.on_device is None
        want(not (refresh or first) or self.on_host.keys.shape[3] == self.count, "the host lacks rows")
        want(
            refresh or not (self.host_is_newer or self.has_block), "the host's rows are newer, or a block is there"
        )
        if refresh or self.on_device is None:
            self.on_device = Pair(*(a.copy() for a in self.on_host))
        self.host_is_newer = self.has_block = False
        return self.on_device

    def bind(self, refresh: bool) -> None:
        """Install them and do nothing."""
        self.install(refresh)

    def asked(self, queries: Any, rows: int | None, splits: int, out: Any) -> None:
        """Refuse queries or an output that do not fit."""
        config = self.config
        want(queries.ndim == 5 and queries.dtype == np.float32 and splits >= 1, f"{queries.dtype}, {splits} splits")
        layers, batch, heads, n, dim = queries.shape
        want((layers, batch, dim) == (config.layers, config.batch, config.k_dim), f"queries are {queries.shape}")
        want(heads > 0 and heads % config.kv_heads == 0 and rows in (None, n), f"queries are {queries.shape}")
        fits = out is None or (out.shape == (layers, batch, heads, n, config.v_dim) and out.dtype == np.float32)
        want(fits and (out is None or out.flags.writeable), "the output does not fit")

    def answer(self, queries: Any, rows: Pair, past: int, causal: bool, out: Any) -> Any:
        """What each layer's graph gives."""
        run = graph(next((bound for bound in self.bounds if bound >= past), past))
        found = np.stack([run(q, k, v, past, causal) for q, k, v in zip(queries, *rows, strict=True)])
        if out is None:
            return found
        out[...] = found
        return out

    def decode(
        self, queries: Any, keys: Any, values: Any, splits: int, refresh: bool, past: int | None, out: Any = None
    ) -> Any:
        """A block of one row, which is kept."""
        new = self.rows(keys, values)
        want(new.keys.shape[3] == 1, "a step takes one row")
        self.asked(queries, 1, splits, out)
        want(past in (None, self.count), f"the caller counts on {past} rows")
        old = self.install(refresh)
        rows = Pair(*(np.concatenate(both, 3) for both in zip(old, new, strict=True)))
        found = self.answer(queries, rows, self.count, True, out)
        self.on_device, self.count = rows, self.count + 1
        return found

    def block(self, queries: Any, keys: Any, values: Any, splits: int, past: int | None, out: Any = None) -> Any:
        """Several rows, none of which is kept."""
        if keys.shape[3] == queries.shape[3] == 0:
            return np.zeros((*queries.shape[:4], self.config.v_dim), np.float32) if out is None else out
        new = self.rows(keys, values)
        self.asked(queries, new.keys.shape[3], splits, out)
        want(past in (None, self.count), f"the caller counts on {past} rows")
        old = self.install(False)
        self.has_block = True
        rows = Pair(*(np.concatenate(both, 3) for both in zip(old, new, strict=True)))
        return self.answer(queries, rows, self.count, True, out)

    def unbind(self) -> None:
        """Forget a block."""
        self.has_block = False

    def newest(self) -> Pair:
        """The past rows, from where they are newest."""
        return self.on_host if self.on_device is None or self.host_is_newer else self.on_device

    def sync(self) -> None:
        """Bring them to the host."""
        self.on_host = Pair(*(a.copy() for a in self.newest()))

    def cut(self, to: int) -> None:
        """Drop the newest rows."""
        want(0 <= to <= self.count, f"cut to {to} of {self.count}")
        self.count = to
        self.on_host = Pair(*(a[:, :, :, :to] for a in self.on_host))
        if self.on_device is not None:
            self.on_device = Pair(*(a[:, :, :, :to] for a in self.on_device))

    def encode(self, keys: Any, values: Any) -> None:
        """Rows for cross-attention."""
        self.encoded = self.rows(keys, values)

    def cross(self, queries: Any, splits: int = 1, out: Any = None) -> Any:
        """Every query sees all of them."""
        if queries.shape[3] == 0:
            return np.zeros((*queries.shape[:4], self.config.v_dim), np.float32) if out is None else out
        self.asked(queries, None, splits, out)
        want(self.encoded is not None, "nothing was encoded")
        assert self.encoded is not None
        return self.answer(queries, self.encoded, 0, False, out)

    def past(self) -> int:
        """How many past rows there are."""
        return self.count

    def read(self, layer: int) -> Pair:
        """The past rows of a layer."""
        return Pair(*(a[layer].copy() for a in self.newest()))

    def host(self, layer: int) -> Pair:
        """Those that the host has."""
        return Pair(*(a[layer].copy() for a in self.on_host))


class Closures:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "closures", "chapters": {"bucket": "visible"}}

    def open(self, kind: str, config: Any) -> Bucket:
        """A fresh cache."""
        if kind != "bucket":
            raise Unsupported(f"no kind {kind}")
        return Bucket(config)
