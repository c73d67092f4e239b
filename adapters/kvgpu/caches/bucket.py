"""The bucketed cache on a device: rows on the host, handles padded to bounds, and graphs that run on the
handles."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Any

import numpy as np

from kvgpu.caches.attention import Ready, prepare
from kvgpu.caches.compiled_graph import Encoded, Handles, encoded, kept, shown, together
from kvgpu.caches.queries import FLOAT, Asking, writable
from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import acceptable
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair, Ran
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import bucket as refusals


class Bucket:
    """`rows` are the host's, all layers in one array. While `fresh`, the device has the past rows; while
    `behind`, the newest of them lies behind the padding. After a block its `left` rows lie there until they are
    unbound."""

    kind = "bucket"
    last: Ran
    """What ran last, once something has."""

    def __init__(self, config: Config, space: Workspace) -> None:
        self.bounds = [int(word) for word in (config.bounds or "0").split("-")]
        climbing = self.bounds == sorted(set(self.bounds)) and self.bounds[0] > 0
        if not climbing or not config.layers or not acceptable(config):
            raise refusals.config("BUCKET-1", config)
        row_forms.demand(config)
        self.config, self.space, self.layers = config, space, config.layers
        self.rows = self._none()
        self.length = 0
        self.handles: Handles | None = None
        self.installed: int | None = None
        self.fresh = self.behind = False
        self.left = 0
        self.encoded: Encoded | None = None

    def _none(self) -> Pair:
        each = (kept(self.config, kind, 0) for kind in "kv")
        return Pair(*(np.empty((self.layers, *shape), dtype) for shape, dtype in each))

    def prefill(self, keys: Array, values: Array) -> None:
        """Keep these rows on the host. The device keeps its rows, but they are not used again."""
        new = self._none()
        if _count(keys):
            self._demand_rows(keys, values, None)
            new = self._on_host(keys, values)
        self.rows, self.length = new, new.keys.shape[3]
        self.fresh = self.behind = False

    def _on_host(self, keys: Any, values: Any) -> Pair:
        """Give rows as the host keeps them."""
        if self.config.form is None:
            return Pair(np.array(keys), np.array(values))
        return encoded(self.space, self.config, keys, values)

    def bind(self, refresh: bool) -> None:
        """Install handles where a step would."""
        bound = self._bound_for(refresh)
        if self._due(bound, refresh):
            self._adopt(self._made(bound, refresh))

    def decode(
        self, queries: Any, keys: Any, values: Any, splits: int, refresh: bool, past: int | None, out: Any = None
    ) -> Any:
        """Run the graph on one row and one query of each layer."""
        self._demand(queries, keys, values, splits, (1, past), out)
        bound = self._bound_for(refresh)
        found = self._run(queries, keys, values, splits, (bound, refresh), out)
        self.last = Ran(self._key(bound), (bound + 1, bound + 1))
        self.length, self.behind = self.length + 1, True
        return found

    def block(self, queries: Any, keys: Any, values: Any, splits: int, past: int | None, out: Any = None) -> Any:
        """Run the graph on n rows and queries of each layer. The rows stay in the handles and are not counted."""
        n = _count(keys)
        if n == 0 and _count(queries) == 0:
            return _no_output(queries, self.config, out)
        self._demand(queries, keys, values, splits, (n, past), out)
        bound = self._bound_for(False)
        found = self._run(queries, keys, values, splits, (bound, False), out)
        self.last = Ran(self._key(bound), (self.length + n, bound + n))
        self.left = n
        return found

    def _run(self, queries: Any, keys: Any, values: Any, splits: int, to: tuple[int, bool], out: Any) -> Any:
        """Do first what can fail. Then move the previous row to its slot, write the new rows behind the padding,
        and attend."""
        n, handles = _count(keys), self.handles
        if self._due(*to) or n > 1 or handles is None:
            handles = self._made(*to, room=n)
        new = Codec(self.space, together(self.config)).staged(keys, values)
        ready = self._ready(queries, splits, self.length + n, True, out)
        self._adopt(handles)
        if self.behind:
            handles.compact(self.length - 1)
            self.behind = False
        return handles.run(ready, new, self.length)

    def _demand(
        self, queries: Any, keys: Any, values: Any, splits: int, counts: tuple[int, int | None], out: Any
    ) -> None:
        """Refuse what does not fit, before anything is done."""
        n, past = counts
        self._demand_rows(keys, values, n)
        self._demand_queries(queries, splits, n, out)
        if past is not None and past != self.length:
            raise refusals.disagrees("BUCKET-7", past, self.length)

    def _demand_rows(self, keys: Any, values: Any, n: int | None) -> None:
        count = _count(keys) if n is None else n
        for array, kind in ((keys, "k"), (values, "v")):
            fits = array.shape == (self.layers, *self.config.shape(kind, count))
            if not fits or array.dtype != DTYPES[self.config.dtype]:
                raise refusals.rows("CACHE-2", self.config, "n" if n is None else n, keys, values)

    def _demand_queries(self, queries: Any, splits: int, n: int | None, out: Any) -> None:
        shape, count = tuple(queries.shape), _count(queries) if n is None else n
        wanted = self.layers, self.config.batch, *shape[2:3], count, self.config.k_dim
        shared = shape == wanted and shape[2] > 0 and shape[2] % self.config.kv_heads == 0
        room = out is None or (out.shape == (*shape[:4], self.config.v_dim) and out.dtype == FLOAT)
        if not shared or not room or not writable(out) or queries.dtype != FLOAT or splits < 1:
            raise refusals.queries("BUCKET-6", self.config, "n" if n is None else n, queries, splits)

    def _bound_for(self, refresh: bool) -> int:
        """Give the bound that the past rows need, if its handles can be made."""
        at = bisect_left(self.bounds, self.length)
        if at == len(self.bounds):
            raise refusals.beyond("BUCKET-8", self.length, self.bounds[-1])
        if refresh:
            rows = self.rows.keys.shape[3]
            if rows < self.length:
                raise refusals.short("BUCKET-11", rows, self.length)
        elif self.handles is not None and not self.fresh:
            raise refusals.stale("BUCKET-9", self.length)
        elif self.left:
            raise refusals.after_block("BUCKET-16", self.left)
        return self.bounds[at]

    def _due(self, bound: int, refresh: bool) -> bool:
        """Whether handles have to be installed."""
        return refresh or self.installed != bound

    def _key(self, bound: int) -> int:
        return bound if self.config.batch == 1 else (self.config.batch << 32) + bound

    def _made(self, bound: int, refresh: bool, room: int = 1) -> Handles:
        """Make handles with the past rows in order: the device's rows, or the host's on a refresh and where the
        device has none."""
        made, old = Handles(self.space, self.config, bound, room), self.handles
        if refresh or old is None:
            if self.length:
                source = self.space.staged(made.geometry, *self.rows)
                made.put(self.length, source.span(), 0)
            return made
        straight = self.length - self.behind
        made.put(straight, old.slots(0), 0)
        if self.behind:
            made.put(1, old.slots(old.bound), straight)
        return made

    def _adopt(self, handles: Handles) -> None:
        """Make these the handles if they are not yet, and free the former ones."""
        if handles is self.handles:
            return
        if self.handles is not None:
            self.handles.release()
        self.handles, self.installed = handles, handles.bound
        self.fresh, self.behind, self.left = True, False, 0

    def _ready(self, queries: Any, splits: int, rows: int, causal: bool, out: Any) -> Ready:
        """Prepare an attend, which then lacks only its rows."""
        plain = self.config.changed(form=None)
        return prepare(self.space, plain, queries, Asking(causal), splits, rows, out)

    def ran(self) -> Ran:
        """What ran last."""
        return self.last

    def unbind(self) -> None:
        """Forget the bound of the handles, and what a block left in them."""
        self.installed, self.left = None, 0

    def sync(self) -> None:
        """Download the past rows of all layers if the device has the newest."""
        if self.handles is not None and self.fresh:
            self.rows = self.handles.fetched(*self._parts(self.handles))

    def _parts(self, handles: Handles) -> list[tuple[int, int]]:
        """The slots of the past rows: the first ones, and the slot behind the padding if the newest row lies
        there."""
        newest = [(handles.bound, 1)] if self.behind else []
        return [(0, self.length - len(newest)), *newest]

    def cut(self, to: int) -> None:
        """Count fewer rows, and keep fewer on the host; nothing moves."""
        if to < 0 or to > self.length:
            raise refusals.cut("CACHE-7", to, self.length)
        if to < self.length:
            self.behind = False
        self.length = to
        self.rows = Pair(*(a[:, :, :, :to] for a in self.rows))

    def encode(self, keys: Any, values: Any) -> None:
        """Install the rows of an encoder in memory of their own. The former rows are freed after that."""
        n = _count(keys)
        if n:
            self._demand_rows(keys, values, None)
        self.encoded = Encoded.of(self.space, self.config, n, keys, values)

    def cross(self, queries: Any, splits: int = 1, out: Any = None) -> Any:
        """Attend to all rows of the encoder."""
        if _count(queries) == 0:
            return _no_output(queries, self.config, out)
        self._demand_queries(queries, splits, None, out)
        if self.encoded is None:
            raise refusals.no_encoding("BUCKET-25")
        ready = self._ready(queries, splits, self.encoded.place.slots, False, out)
        return self.encoded.answer(ready, self.config)

    def past(self) -> int:
        """Give the number of past rows of each layer, as the host knows it."""
        return self.length

    def bound(self) -> int | None:
        """The bound that the handles are installed for."""
        return self.installed

    def read(self, layer: int) -> Pair:
        """The past rows of a layer, downloaded if the device has the newest."""
        if self.handles is None or not self.fresh:
            return self.host(layer)
        return self._shown(self.handles.fetched(*self._parts(self.handles), layer=layer))

    def host(self, layer: int) -> Pair:
        """Copies of the host's rows of a layer."""
        return self._shown(Pair(*(a[layer] for a in self.rows)))

    def _shown(self, rows: Pair) -> Pair:
        """Copies of a layer's rows, as they are read."""
        return shown(self.space, self.config, rows)

    def handle(self, layer: int) -> Pair | None:
        """Download a layer's whole handle, padding included."""
        if self.handles is None:
            return None
        return self._shown(self.handles.fetched((0, self.handles.bound + self.handles.behind), layer=layer))

    def held(self) -> int:
        """Bytes of rows on the device: handles, and rows of an encoder."""
        found = self.handles.nbytes if self.handles else 0
        return found + (self.encoded.nbytes if self.encoded else 0)


def _count(rows: Any) -> int:
    """The number of rows or queries of each layer; -1 where the arrays do not tell."""
    return int(rows.shape[3]) if rows.ndim == 5 else -1


def _no_output(queries: Any, config: Config, out: Any) -> Any:
    """The output of no queries, on the host or the device as they are: nothing is allocated for it."""
    shape = (*queries.shape[:3], 0, config.v_dim)
    if out is not None:
        return out
    return replace(queries, shape=shape) if isinstance(queries, DeviceRows) else np.zeros(shape, FLOAT)
