"""Makes an adapter for an engine's cache in a few lines, from a function that most engines have: `update(keys,
values)`.

The adapter translates and answers nothing by itself: it checks no range and no shape, and what the engine raises
goes on to the harness. It claims exactly what it is given; see `spec/README.md` for abilities.

    Adapter = from_update(
        "my-engine",
        kind="ring",
        make=lambda config: engine.RotatingCache(size=config.window),
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        length=lambda cache: cache.offset,
        trim=lambda cache, n: cache.trim(n),
    )
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from kvadapters.arrays import LIBRARIES
from kvadapters.rounds import RowsRound
from kvspec.contract import Description, Lengths, Pair, description
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config, same_geometry, valid
from kvspec.masks import Logical
from kvspec.operations.table import OF_KIND
from kvspec.parcels import Parcel, fits, packed
from kvspec.registry import CACHES, LETTERS, abilities

Make = Callable[[Config], Any]
Update = Callable[..., tuple[Any, Any]]

USUAL: dict[str, int | str] = {"made": "before"}
"""What most engines do of the dialects of masks."""

NAMES = {dtype.name: name for name, dtype in DTYPES.items()}
"""Dtypes by the names that libraries have for them."""

FORMS = LETTERS["ROW"]
"""The chapter that is claimed where the limits name forms of rows."""

ROUNDS: dict[str, Any] = {"level": "visible", "without": ["tree"], "rounds": "rows"}
"""The claim on rounds of an engine that has none."""

SHOWN = frozenset({"history", "offset", "bits", "view", "rewind", "ask", "free", "sees"})
"""Abilities that a function shows, so that they are claimed where it is given; others are named in `also`."""

BESIDE = frozenset({"mask", "snapshot"})
"""Chapters that are claimed beside the kind where their functions are given."""


@dataclass(frozen=True)
class Functions:
    """What an engine offers. Functions on a cache take the engine's cache first. Arrays are the engine's,
    `[B, H, n, dim]`."""

    make: Make
    """Make a fresh cache of a config."""
    update: Update
    """Take a cache, keys and values; append these rows, and return the keys and values that their queries attend
    to. If the caller counts positions, the last argument is the position of the first row. An engine that attends
    by itself returns anything, and is claimed `without=("history",)`; then `view` shows its rows."""
    view: Callable[[Any], tuple[Any, Any] | None] | None = None
    """Give the rows that the next query may see, keys and values, oldest first; None if there are none."""
    length: Callable[[Any], int | None] | None = None
    """Give the offset: rows appended and not trimmed; None where a cache of layers that only fold tokens has none.
    Without it the adapter counts, and says so (`by_adapter`)."""
    trim: Callable[[Any, int], Any] | None = None
    """Drop the newest n rows."""
    can_trim: Callable[[Any, int], bool] | None = None
    """Tell whether the newest n rows can be dropped. Without it a trim is tried on a deep copy."""
    accepts: Callable[[Any, int], bool] | None = None
    """Tell whether n more rows would be accepted."""
    held: Callable[[Any], int] | None = None
    """Tell the bytes of rows that are allocated."""
    begin: Callable[[Any], Any] | None = None
    """Begin a round of drafts, which are appended as rows: have the cache keep what it takes to drop them."""
    commit: Callable[[Any, int], Any] | None = None
    """End a round: drop the newest n drafts. With this, rounds are claimed (`kvadapters.rounds`)."""
    pack: Callable[[Any], tuple[Any, Any]] | None = None
    """Give all rows as the engine hands them to another process, keys and values, where there are some."""
    unpack: Callable[[Any, Any, Any], Any] | None = None
    """Have a fresh cache hold such rows, or give the cache that does. With both, parcels are claimed."""
    keep: Callable[[Any, Sequence[int]], Any] | None = None
    """Drop all rows but those that were appended at these positions; of a cache with sinks."""
    mask: Callable[..., Any] | None = None
    """Make the causal mask for n rows, before they are appended, or after, if `mask.made` says so. It is an array
    of the engine, whose last two axes are queries and keys. It is None for no mask, and "causal" if the kernel
    makes it."""
    reset: Callable[[Any], Any] | None = None
    """Empty the cache."""
    state: Callable[[Any], Any] | None = None
    """Save the whole cache, as the engine does. Nothing is copied: what is saved must not change by itself."""
    set_state: Callable[[Any, Any], Any] | None = None
    """Put what was saved into a fresh cache, or give the cache that takes its place. With this, `state` and `trim`,
    whole snapshots are claimed."""
    states: Callable[[Any], Mapping[int, Any]] | None = None
    """Give the state of each layer that folds its tokens, by its number: `[kv_heads, k_dim, v_dim]` in f32; None
    for that of no tokens."""
    encode: Callable[[Any, int, Any, Any], Any] | None = None
    """Hand the rows of an encoder to a layer of a model, by its number: keys and values."""
    encoded: Callable[[Any, int], tuple[Any, Any] | None] | None = None
    """Give the rows of an encoder that a layer shows, keys and values; None if there are none."""
    retained: Callable[[Any], int] | None = None
    """Count the rows that can still be read."""
    capacity: Callable[[Any], int] | None = None
    """Count the rows that are allocated."""
    to_engine: Callable[[Array], Any] = np.asarray
    """Make an array of the engine from one of numpy; a copy or a view."""
    from_engine: Callable[[Any], Any] = np.asarray
    """Make an array of numpy from one of the engine. The harness reads the engine's arrays again later, to see
    whether they changed."""
    synchronise: Callable[[], Any] | None = None
    """Wait until the engine has done everything, if its calls return before that. Takes no argument."""


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


class UpdateCache:
    """One cache of the engine, and what its last `update` returned."""

    def __init__(self, adapter: UpdateAdapter, config: Config) -> None:
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
        """Ask the engine whether it can trim so far, or try it on a deep copy of the cache. Raises Unsupported
        where there is no such copy: the answer "no" would accuse an engine that trims."""
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


@dataclass(frozen=True)
class UpdateAdapter:
    """The adapter: opens caches of one kind."""

    name: str
    kind: str
    engine: Functions
    also: Collection[str] = ()
    without: Collection[str] = ()
    dialect: Mapping[str, int | str] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)
    cache: type[UpdateCache] = UpdateCache

    def says(self, name: str) -> int | str:
        """Give the declared value of a dialect, or what most engines do."""
        declared = {key.rpartition(".")[2]: value for key, value in self.dialect.items()}
        return declared.get(name, USUAL.get(name, ""))

    def describe(self) -> dict[str, Any]:
        """Claim what the given functions offer, and nothing else."""
        engine = self.engine
        given: dict[str, Any] = {"history": True, "offset": True, "bits": True, "view": engine.view}
        given |= {"rewind": engine.trim, "ask": engine.trim, "free": engine.reset}
        given |= {"keep": engine.keep} if engine.keep else {}
        if self.kind not in CACHES:
            known, given = abilities(self.kind), given | {"sees": engine.mask}
            given = {name: there for name, there in given.items() if name in known}
        if wrong := sorted(set(self.without) - set(given)):
            raise TypeError(f"without: unknown ability {wrong[0]!r}; known: {', '.join(given)}")
        able = [ability for ability, there in given.items() if there and ability not in self.without]
        formed = [name for name in self.also if name in abilities(FORMS)]
        also = [name for name in self.also if name not in formed]
        chapters: dict[str, Any] = {self.kind: {"level": "visible", "with": [*able, *also]}}
        if "form" in self.said.get("limits", {}):
            chapters[FORMS] = {"level": "visible", "with": formed}
        if engine.mask and self.kind in CACHES:
            chapters["mask"] = {"level": "visible", "with": ["causal"], **USUAL}
        if engine.state and engine.set_state and engine.trim and "restore" in OF_KIND[self.kind]:
            chapters["snapshot"] = {"level": "visible", "with": ["snapshot", "restore"]}
        if engine.pack and engine.unpack:
            chapters["parcels"] = {"level": "visible", "with": ["pack", "unpack"]}
        chapters |= {"draft": dict(ROUNDS)} if engine.commit else {}
        chapters |= {"questions": {"level": "visible", "with": ["askappend"]}} if engine.accepts else {}
        chapters |= {"mem": {"level": "visible", "with": []}} if engine.held else {}
        for name, value in self.dialect.items():
            chapter, _, own = name.partition(".")
            if chapter not in chapters:
                named = f"the adapter claims {', '.join(chapters)}"
                raise TypeError(f"dialect {name}: {named if own else f'write its chapter too: {self.kind}.{name}'}")
            chapters[chapter][own] = value
        counted = {} if engine.length else {"by_adapter": ["offset"]}
        return {"name": self.name, "chapters": chapters, **counted, **self.said}

    def to_engine(self, array: Array) -> Any:
        """Make an array of the engine."""
        return self.engine.to_engine(array)

    def from_engine(self, array: Any) -> Array:
        """Give the elements of an array of the engine."""
        return np.asarray(self.engine.from_engine(array))

    def synchronise(self) -> None:
        """Wait for the engine before something is observed."""
        if self.engine.synchronise:
            self.engine.synchronise()

    def open(self, kind: str, config: Config) -> UpdateCache:
        """Open a fresh cache of the engine. Raises Unsupported for a config that the description excludes."""
        if kind != self.kind:
            raise Unsupported(f"no kind {kind}")
        if valid(config) and not self._description.supports(config):
            raise Unsupported("beyond the dtypes or limits that the adapter declares")
        return self.cache(self, config)

    def speculate(self, caches: Sequence[UpdateCache | None], isolated: bool) -> RowsRound:
        """Begin a round over caches, whose drafts are rows."""
        return RowsRound(caches, isolated)

    @property
    def most_rows(self) -> int | None:
        """The most rows that one cache is given, as declared."""
        return self._description.most_rows

    @cached_property
    def _description(self) -> Description:
        return description(self.describe())


def from_update(
    name: str,
    *,
    kind: str,
    make: Make,
    update: Update,
    also: Collection[str] = ("batch",),
    without: Collection[str] = (),
    dialect: Mapping[str, int | str] | None = None,
    said: Mapping[str, Any] | None = None,
    arrays: str = "",
    cache: type[UpdateCache] = UpdateCache,
    **functions: Any,
) -> UpdateAdapter:
    """Make an adapter of an engine's functions: those of `Functions`, by name.

    `kind` is `growing`, `ring`, `bounded` or `sink`; or `layers`, with the `cache` of `kvadapters.layered`, whose
    `update` and `mask` take the number of a layer too. `also` names abilities that no function shows. `batch` is
    several sequences, and `zero` is appends of no rows. `scribble`: the caller may overwrite arrays that it handed
    in or got out. `residual`: the newest rows stay as they are beside a form. Where the limits in `said` name
    forms, the chapter on them is claimed too. `without` names abilities that are not claimed although their
    function is given, such as `ask`. `dialect` says where the engine differs from the spec's default, by chapter
    and name, such as `ring.rewind`. `said` holds more fields of the description: version, dtypes, limits, known.
    The adapter opens nothing that its dtypes and limits exclude. `arrays` names a library whose arrays the engine
    takes, torch or mlx; it stands for `to_engine` and `from_engine`. Raises TypeError for an unknown function or
    library, and for a dialect of a chapter that is not claimed.
    """
    if arrays:
        if arrays not in LIBRARIES:
            raise TypeError(f"arrays: unknown library {arrays!r}; known: {', '.join(LIBRARIES)}")
        made = import_module(f"kvadapters.arrays.{arrays}")
        functions = {"to_engine": made.to_engine, "from_engine": made.from_engine, **functions}
    if unknown := functions.keys() - {known.name for known in fields(Functions)}:
        said_by = "what the adapter describes, such as limits, goes into `said`"
        raise TypeError(f"unknown function {', '.join(sorted(unknown))}; {said_by}")
    adapter = UpdateAdapter(
        name, kind, Functions(make, update, **functions), also, without, dialect or {}, said or {}, cache
    )
    adapter.describe()
    return adapter
