"""The bucketed cache: rows on the host, and in device handles padded to the bounds that graphs were compiled
for."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kvref.cite import cite
from kvref.memory import forms, meter
from kvref.memory.compiled_graph import Graph, Handles, asks, fits, over
from kvspec.contract import Pair, Ran
from kvspec.geometry import Array, Config
from kvspec.refusals import bucket as refusals_bucket
from kvspec.refusals import common as refusals


class Bucket:
    """Row p of the `past_` rows of each layer lies in slot p of the handles; the newest may still lie behind the
    padding (`pending`). Before anything is installed, and after a prefill over handles (`stale`), only the host has
    all rows."""

    kind = "bucket"
    graph: ClassVar[type[Graph]] = Graph
    """What its graphs are."""

    def __init__(self, config: Config) -> None:
        self.bounds = [int(b) for b in (config.bounds or "").split("-") if b]
        ascending = all(a < b for a, b in zip([0, *self.bounds], self.bounds, strict=False))
        if not refusals.valid(config) or not config.layers or not self.bounds or not ascending:
            raise refusals_bucket.config("BUCKET-1", config)
        cite("BUCKET-1")
        self.kept = forms.Kept(config)
        self.config, self.layers = config, config.layers
        self.graphs: dict[int, Graph] = {}
        self.rows = self._empty()
        self.past_ = 0
        self.handles: Handles | None = None
        self.bound_: int | None = None
        self.pending = self.stale = self.blocked = False
        self.encoded: Pair | None = None

    def _empty(self) -> Pair:
        """No rows, as they are kept."""
        return Pair(*(np.empty((self.layers, *a.shape), a.dtype) for a in self.kept.none()))

    def prefill(self, keys: Array, values: Array) -> None:
        """Replace the host's rows; existing handles have to be installed again."""
        new = self._taken(Pair(keys, values))
        cite("BUCKET-2")
        self.rows = Pair(*(np.array(a) for a in new))
        self.past_ = self._host_rows
        self.stale = self.handles is not None

    def _taken(self, new: Pair) -> Pair:
        """The rows handed in, any number of them, as they are kept. Refuses rows that do not fit."""
        if _count(new.keys) == 0:
            cite("BUCKET-26")
            return self._empty()
        if not fits(self.config, new):
            raise refusals_bucket.rows("CACHE-2", self.config, "n", *new)
        return self.kept.encoded(new)

    @property
    def _host_rows(self) -> int:
        return int(self.rows.keys.shape[3])

    def bind(self, refresh: bool) -> None:
        """Install handles, where a step would."""
        cite("BUCKET-13")
        self._ready(refresh)

    def decode(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        splits: int,
        refresh: bool,
        past: int | None,
        out: Array | None = None,
    ) -> Array:
        """One step: queries `[layers, batch, heads, 1, k_dim]` over the past rows and a new one of each layer."""
        self._demand(queries, Pair(keys, values), splits, (1, past), out)
        graph, handles = self._ready(refresh)
        cite("BUCKET-4", "BUCKET-29", "BUCKET-32")
        self._compact(handles)
        found = graph.run(handles, queries, Pair(keys, values), self.past_, splits)
        self._ran = Ran(graph.key, (graph.bound + 1, graph.bound + 1))
        self.pending = True
        self.past_ += 1
        return meter.handed(out, found, isinstance(queries, meter.Resident))

    def block(
        self, queries: Array, keys: Array, values: Array, splits: int, past: int | None, out: Array | None = None
    ) -> Array:
        """n rows and queries. Each query sees the past rows and the rows of the block up to its own."""
        n = _count(keys)
        if n == _count(queries) == 0:
            return _no_output(queries, self.config, out)
        self._demand(queries, Pair(keys, values), splits, (n, past), out)
        graph, handles = self._ready(False, n)
        end = self.past_ + n
        cite("BUCKET-14", "BUCKET-29", "BUCKET-35", *(["BUCKET-15"] if end > self.bounds[-1] else []))
        self._compact(handles)
        found = graph.run(handles, queries, Pair(keys, values), self.past_, splits)
        self._ran = Ran(graph.key, (end, graph.bound + n))
        self.blocked = True
        return meter.handed(out, found, isinstance(queries, meter.Resident))

    def _demand(
        self, queries: Array, new: Pair, splits: int, counts: tuple[int, int | None], out: Array | None
    ) -> None:
        """Refuse rows, then queries that do not fit, n of each; then a length that differs from the cache's."""
        n, past = counts
        if not fits(self.config, new, n):
            raise refusals_bucket.rows("CACHE-2", self.config, n, *new)
        if not asks(self.config, queries, splits, out, n):
            raise refusals_bucket.queries("BUCKET-6", self.config, n, queries, splits)
        if past is not None and past != self.past_:
            raise refusals_bucket.disagrees("BUCKET-7", past, self.past_)

    def _ready(self, refresh: bool, room: int = 1) -> tuple[Graph, Handles]:
        """The graph for the past rows, and handles of its bound, with room for `room` rows behind it; installs them
        if needed."""
        graph = self._graph()
        if refresh and self._host_rows < self.past_:
            raise refusals_bucket.short("BUCKET-11", self._host_rows, self.past_)
        if not refresh:
            self._demand_current()
        if refresh or self.handles is None:
            cite(*(["BUCKET-10"] if refresh else []))
            return graph, self._install([(0, self.rows)], graph.bound, room)
        if graph.bound == self.bound_ and room == 1:
            cite("BUCKET-34")
            return graph, self.handles
        cite(*(["BUCKET-17"] if self.bound_ is None else ["BUCKET-12"] if graph.bound != self.bound_ else []))
        return graph, self._install(self._carried(self.handles), graph.bound, room)

    def _graph(self) -> Graph:
        """The graph with the smallest bound that has room for the past rows."""
        bound = next((b for b in self.bounds if b >= self.past_), None)
        if bound is None:
            raise refusals_bucket.beyond("BUCKET-8", self.past_, self.bounds[-1])
        cite("BUCKET-8", "BUCKET-30")
        return self.graphs.setdefault(bound, self.graph(self.config, bound))

    def _demand_current(self) -> None:
        """Refuse handles that are older than the host's rows, or that still hold rows of a block."""
        if self.stale:
            raise refusals_bucket.stale("BUCKET-9", self.past_)
        if self.blocked and self.handles is not None:
            raise refusals_bucket.after_block("BUCKET-16", self.handles.behind)

    def _carried(self, handles: Handles) -> list[tuple[int, Pair]]:
        """The past rows as they lie in the handles, and the slots where they belong."""
        straight = self.past_ - self.pending
        newest = handles.part(handles.bound, handles.bound + self.pending)
        return [(0, handles.part(0, straight)), (straight, newest)]

    def _install(self, rows: list[tuple[int, Pair]], bound: int, room: int) -> Handles:
        """New handles of all layers, with the past rows and zeros elsewhere; the old ones are kept until these
        are there."""
        cite("BUCKET-31", "BUCKET-33")
        made = Handles(self.config, bound, room)
        for slot, part in rows:
            made.write(slot, part)
        self.handles, self.bound_ = made, bound
        self.pending = self.stale = self.blocked = False
        return made

    def _compact(self, handles: Handles) -> None:
        """Move the row of the previous step to the slot of its position, if it is still behind the padding."""
        cite(*(["BUCKET-33"] if self.pending else []))
        newest = handles.part(handles.bound, handles.bound + self.pending)
        handles.write(self.past_ - self.pending, newest)
        self.pending = False

    def ran(self) -> Ran:
        """What ran last."""
        cite("BUCKET-36")
        return self._ran

    def unbind(self) -> None:
        """Forget the bound, and the rows of a block; never past rows."""
        cite("BUCKET-17")
        self.bound_, self.blocked = None, False

    def sync(self) -> None:
        """Copy the past rows to the host, if it lacks the newest."""
        cite("BUCKET-18")
        self.rows = self._newest()

    def _newest(self) -> Pair:
        """Copies of the past rows of all layers."""
        if self.handles is None or self.stale:
            return Pair(*(a.copy() for a in self.rows))
        behind = [self.handles.bound] * self.pending
        return self.handles.fetched([*range(self.past_ - self.pending), *behind])

    def cut(self, to: int) -> None:
        """Make `to` the number of past rows; those beyond are dead, on the host as well."""
        if not 0 <= to <= self.past_:
            raise refusals_bucket.cut("CACHE-7", to, self.past_)
        cite("BUCKET-19")
        self.pending = self.pending and to == self.past_
        self.past_ = to
        self.rows = Pair(*(a[..., :to, :] for a in self.rows))

    def encode(self, keys: Array, values: Array) -> None:
        """Install the rows of an encoder; they replace the former ones."""
        new = self._taken(Pair(keys, values))
        cite("BUCKET-24")
        made = Pair(*(meter.allocated(a.shape, a.dtype) for a in new))
        for handle, rows in zip(made, new, strict=True):
            meter.write(handle, rows)
        self.encoded = made

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        """Queries `[layers, batch, heads, n, k_dim]` over all rows of the encoder."""
        if _count(queries) == 0:
            return _no_output(queries, self.config, out)
        if not asks(self.config, queries, splits, out):
            raise refusals_bucket.queries("BUCKET-6", self.config, "n", queries, splits)
        if self.encoded is None:
            raise refusals_bucket.no_encoding("BUCKET-25")
        cite("BUCKET-22", "BUCKET-23")
        forms.cite_attended(self.config)
        rows = self.kept.decoded(self.encoded)
        found = over(queries, *rows, splits, causal=False)
        return meter.handed(out, found, isinstance(queries, meter.Resident))

    def past(self) -> int:
        """Past rows of each layer."""
        return self.past_

    def bound(self) -> int | None:
        """The bound that the handles are installed for."""
        return self.bound_

    def read(self, layer: int) -> Pair:
        """The past rows of a layer, `[batch, kv_heads, past, dim]`."""
        cite("BUCKET-21")
        return self._shown(self._newest(), layer)

    def host(self, layer: int) -> Pair:
        """The host's rows of a layer."""
        return self._shown(self.rows, layer)

    def handle(self, layer: int) -> Pair | None:
        """A layer's handle: the slots of its bound, and the rows behind them."""
        if self.handles is None:
            return None
        whole = self.handles.fetched(list(range(self.handles.bound + self.handles.behind)))
        return self._shown(whole, layer)

    def _shown(self, rows: Pair, layer: int) -> Pair:
        """Copies of the rows of a layer as they are read."""
        return self.kept.decoded(Pair(*(a[layer].copy() for a in rows)))

    def held(self) -> int:
        """Bytes of rows on the device: of the handles, and of the encoder's rows."""
        cite("BUCKET-43")
        self.kept.cite_bytes()
        return (self.handles.nbytes if self.handles else 0) + sum(a.nbytes for a in self.encoded or ())


def _count(rows: Array) -> int:
    """The number of rows or queries of each layer; -1 if the arrays do not tell."""
    return int(rows.shape[3]) if rows.ndim == 5 else -1


def _no_output(queries: Array, config: Config, out: Array | None) -> Array:
    """The output of no queries."""
    cite("BUCKET-26")
    return np.zeros((*queries.shape[:3], 0, config.v_dim), np.float32) if out is None else out
