"""One cache of an engine, as its functions show it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kvadapters.update.functions import Functions
from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config, same_geometry
from kvspec.masks import Logical
from kvspec.parcels import Parcel, fits, packed

NAMES = {dtype.name: name for name, dtype in DTYPES.items()}
"""Dtypes by the names that libraries have for them."""


@dataclass(frozen=True)
class Saved:
    """What the engine saved of a cache of a config, at an offset."""

    config: Config
    state: Any
    stop: int
    start: int = 0
    nbytes: int = 0
    """Not known."""


INSTEAD = ": give can_trim, or claim without=('ask',)"
"""What to do where a trim cannot be tried on a copy."""


class Declaring(Protocol):
    """The adapter: an engine, and what is declared of it."""

    @property
    def engine(self) -> Functions:
        """The engine's functions."""

    @property
    def most_rows(self) -> int | None:
        """The most rows that one cache is given."""

    def says(self, name: str) -> int | str:
        """Give the value of a dialect."""


class UpdateCache:
    """One cache of the engine, and what its last `update` returned."""

    def __init__(self, adapter: Declaring, config: Config) -> None:
        self.adapter, self.engine, self.config = adapter, adapter.engine, config
        self.cache = self._fresh()
        self._returned: Any = None
        self._mask: Any = None
        self._counted = self._queries = self._given = 0
        self._shaped = self.adapter.says("shape") != "first append"
        self.drafting = False

    def _fresh(self) -> Any:
        left = self.adapter.says("counts") == "left only" and self.config.window is not None
        return self.engine.make(self.config.changed(window=(self.config.window or 0) - 1) if left else self.config)

    def append(self, keys: Any, values: Any) -> None:
        """Update the engine's cache; make the mask before that, or after, as the engine does."""
        engine, n = self.engine, keys.shape[2]
        self._demand_room(n)
        first = (self._counted,) if self.adapter.says("positions") == "caller" else ()
        late = self.adapter.says("made") == "after"
        mask = engine.mask(self.cache, n) if engine.mask and not late else None
        self._returned = engine.update(self.cache, self._own(keys), self._own(values), *first)
        self._mask = engine.mask(self.cache, n) if engine.mask and late else mask
        self._queries = n
        self._took(keys, values)

    def _took(self, keys: Any, values: Any) -> None:
        """Count rows; the first give the cache its geometry where they do that in the engine."""
        n = keys.shape[2]
        if n and not self._shaped and len(keys.shape) == len(values.shape) == 4:
            dtype = NAMES.get(str(keys.dtype).rpartition(".")[2], self.config.dtype)
            widths = {"k_dim": keys.shape[3], "v_dim": values.shape[3]}
            self.config = self.config.changed(kv_heads=keys.shape[1], dtype=dtype, **widths)
        self._shaped = self._shaped or n > 0
        self._counted += n
        self._given += n

    def _demand_room(self, n: int) -> None:
        """Raise Unsupported for more rows than the adapter declares that a cache is given."""
        if self._given + n > (self.adapter.most_rows or self._given + n):
            raise Unsupported("more rows than the adapter declares that a cache is given")

    def _own(self, array: Any) -> Any:
        """An array of the engine, from numpy; an array of the engine stays as it is."""
        return self.engine.to_engine(array) if isinstance(array, np.ndarray) else array

    def read(self, what: str) -> Pair | None:
        """Give the history, which the last update returned; or ask the engine for its view. Arrays are the
        engine's."""
        if what == "view" and self.engine.view:
            rows = self.engine.view(self.cache)
            return None if rows is None else Pair(*rows)
        if what != "history" or self._returned is None:
            raise Unsupported(f"no {what}")
        return Pair(*self._returned)

    def lengths(self) -> Lengths:
        """Give the offset, and the other lengths that the engine tells."""
        ask = {"retained": self.engine.retained, "capacity": self.engine.capacity}
        return Lengths(self._offset, **{name: int(of(self.cache)) for name, of in ask.items() if of})

    @property
    def _offset(self) -> int:
        told = self.engine.length(self.cache) if self.engine.length else None
        return self._counted if told is None else int(told)

    def can_rewind(self, to: int) -> bool:
        """Ask the engine whether it can trim so far, or try it on a deep copy. Raises Unsupported where no copy can
        be made: "no" would be a wrong answer of an engine that trims."""
        offset = self._offset
        if self.engine.can_trim:
            return bool(self.engine.can_trim(self.cache, offset - to))
        twin, can = self._copy(), True
        try:
            self._trim(twin, offset - to)
        except Exception:
            can = False
        if self._offset != offset:
            raise Unsupported("the engine's cache is cut where its deep copy is" + INSTEAD)
        return can

    def _copy(self) -> Any:
        """A deep copy of the engine's cache. Raises Unsupported."""
        try:
            twin = copy.deepcopy(self.cache)
        except Exception as e:
            raise Unsupported(f"the engine's cache cannot be copied ({type(e).__name__}: {e}){INSTEAD}") from e
        if twin is self.cache:
            raise Unsupported("the engine's cache is its own deep copy" + INSTEAD)
        return twin

    def rewind(self, to: int) -> None:
        """Trim the rows behind the target."""
        self._trim(self.cache, self._offset - to)
        self._counted = min(max(0, to), self._counted)

    def _trim(self, cache: Any, n: int) -> None:
        if self.engine.trim is not None:
            self.engine.trim(cache, n)
        elif self.adapter.says("positions") != "caller":
            raise Unsupported("no trim")
        elif not 0 <= n <= self._counted:
            raise ValueError(f"the caller has {self._counted} rows and cannot drop {n}")

    def can_append(self, n: int) -> bool:
        """Ask the engine whether n more rows would be accepted."""
        if self.engine.accepts is None:
            raise Unsupported("no questions about appends")
        return self.engine.accepts(self.cache, n)

    def held(self) -> int:
        """Ask the engine for the bytes of rows that it has allocated."""
        if self.engine.held is None:
            raise Unsupported("no bytes")
        return self.engine.held(self.cache)

    def begin_round(self) -> None:
        """Begin a round of drafts."""
        if self.engine.begin:
            self.engine.begin(self.cache)

    def end_round(self, drop: int) -> None:
        """End it, and drop the newest rows."""
        if self.engine.commit is None:
            raise Unsupported("no commit")
        self.engine.commit(self.cache, drop)
        self._counted -= drop
        self._returned = None

    def keep(self, positions: Sequence[int]) -> None:
        """Drop all rows but those of these positions."""
        if self.engine.keep is None:
            raise Unsupported("no keep")
        self.engine.keep(self.cache, positions)

    def free(self) -> None:
        """Empty the cache."""
        if self.engine.reset is None:
            raise Unsupported("no reset")
        self.engine.reset(self.cache)
        self._counted, self._returned = 0, None

    def snapshot(self, start: int) -> Saved | None:
        """Have the engine save the cache; None if it has no rows."""
        if self.engine.state is None:
            raise Unsupported("no state")
        return Saved(self.config, self.engine.state(self.cache), self._offset) if self._offset else None

    def restore(self, saved: Saved | None, to: int) -> None:
        """Put what was saved into a fresh cache and trim it; it then replaces this cache. Raises ValueError for a
        row that was not saved, and for a cache of another geometry, for which no engine is asked."""
        if saved is None:
            return self.rewind(to)
        if not same_geometry(saved.config, self.config):
            raise ValueError("it was saved of a cache of another geometry")
        if not 0 <= to <= saved.stop:
            raise ValueError(f"{saved.stop} rows were saved")
        if self.engine.set_state is None:
            raise Unsupported("no set_state")
        fresh = self._fresh()
        other = self.engine.set_state(fresh, saved.state)
        cache = fresh if other is None else other
        if to != saved.stop:
            self._trim(cache, saved.stop - to)
        self.cache, self._counted, self._returned, self._shaped = cache, to, None, True
        return None

    def pack(self, sequence: int = 0) -> Parcel:
        """Have the engine give all rows, and say what they are: their axes are those of an update."""
        if self.engine.pack is None:
            raise Unsupported("no pack")
        n, made = self._offset, [np.zeros(self.config.shape(p, 0), DTYPES[self.config.dtype]) for p in "kv"]
        rows = [self.engine.from_engine(a) for a in self.engine.pack(self.cache)] if n else made
        return packed(self.config, n, range(n), Pair(*rows))

    def unpack(self, *parts: Parcel) -> None:
        """Have the engine make a cache of rows; it then replaces this cache. Raises ValueError for rows of another
        geometry, for which no engine is asked, and where bytes are missing."""
        (part,) = parts
        if self.engine.unpack is None:
            raise Unsupported("no unpack")
        if not fits(self.config, part.descriptor):
            raise ValueError("rows of another geometry")
        rows, fresh = part.rows(), self._fresh()
        other = self.engine.unpack(fresh, *map(self._own, rows)) if part.offset else None
        self.cache, self._counted = fresh if other is None else other, part.offset
        self._returned, self._shaped = None, True

    def mask(self, logical: Logical) -> Array | None:
        """Give the mask that was made before the last update, `[1 or B, 1 or heads, L, K]`."""
        if self.engine.mask is None:
            raise Unsupported("no mask")
        if self._mask is None:
            return None
        if self.adapter.says("owner") == "kernel" and not isinstance(self._mask, str):
            raise TypeError("the kernel makes masks, as declared; the cache made one too")
        if isinstance(self._mask, str):
            columns = self._returned[0].shape[2]
            return np.tri(self._queries, columns, columns - self._queries, dtype=bool)[None, None]
        mask = np.array(self.engine.from_engine(self._mask))
        return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
