"""Right caches that share no storage with the reference: rows in lists, deques, dictionaries and chained pages.

Each claims level visible, and refuses by any exception, as engines do.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hostile.attacks.layer_designs import KeepsAll, LayerDicts, TokenList
from kvref import masks
from kvref.arithmetic.casts import narrowed, narrows
from kvspec.contract import Lengths, Pair
from kvspec.geometry import DTYPES, SIZES, WORDS, Array, Config, fits
from kvspec.masks import Logical, Window


class Row(NamedTuple):
    """The key and the value of one position: `[..., kv_heads, dim]`."""

    key: Array
    value: Array


def demand(right: bool, what: str = "arguments that no cache takes") -> None:
    """Refuse by an exception of one's own."""
    if not right:
        raise ValueError(what)


def check(config: Config, *needed: str) -> None:
    """Refuse a config that no cache may accept."""
    given = {name: getattr(config, name) for name in SIZES}
    sizes = all(n >= 1 for n in given.values() if n is not None)
    demand(sizes and all(getattr(config, name) is not None for name in needed), "no such cache")


def rows_of(pair: Pair) -> list[Row]:
    """The rows of arrays `[..., n, dim]`, position by position, copied."""
    return [Row(*(np.array(a[..., i, :]) for a in pair)) for i in range(pair[0].shape[-2])]


def arrays_of(rows: Iterable[Row], config: Config, *front: int) -> Pair:
    """The rows side by side, `[..., kv_heads, n, dim]`."""
    rows, dtype = list(rows), DTYPES[config.dtype]
    empty = [np.zeros((*front, config.kv_heads, 0, d), dtype) for d in (config.k_dim, config.v_dim)]
    return Pair(*(np.stack(parts, axis=-2) for parts in zip(*rows, strict=True)) if rows else empty)


class Sequenced:
    """A cache of one sequence, or of a uniform batch. `held`: the rows that queries of the last append find."""

    needed: ClassVar[tuple[str, ...]] = ()
    kind = "growing"

    def __init__(self, config: Config) -> None:
        check(config, *self.needed)
        self.config = config
        self.free()

    def free(self) -> None:
        """Forget all."""
        self.offset, self.written = 0, False
        self.queries: int | None = None
        self.clear()

    def clear(self) -> None:
        """Hold no rows."""
        raise NotImplementedError

    def add(self, rows: list[Row]) -> None:
        """Hold more rows."""
        raise NotImplementedError

    def held(self) -> list[Row]:
        """What queries of the last append find, oldest first."""
        raise NotImplementedError

    def cut(self, to: int) -> None:
        """Forget the rows from a position on."""
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        """Add rows behind the offset."""
        n = keys.shape[2]
        demand(n == 0 or fits(self.config, Pair(keys, values)), "rows of another geometry")
        if n:
            self.demand_room(n)
            self.add(rows_of(Pair(keys, values)))
            self.offset, self.written = self.offset + n, True
        self.queries = n

    def demand_room(self, n: int) -> None:
        """There is room for any number of rows."""

    def read(self, what: str) -> Pair | None:
        """Rows as arrays of the caller's."""
        if what != "history" and not self.written:
            return None
        return arrays_of(self.seen() if what == "view" else self.held(), self.config, self.config.batch)

    def seen(self) -> list[Row]:
        """What a next query sees beside itself."""
        return self.held()

    def lengths(self) -> Lengths:
        """The offset: how much is allocated is nobody's business."""
        return Lengths(self.offset)

    def can_rewind(self, to: int) -> bool:
        """Any position that was reached."""
        return 0 <= to <= self.offset

    def rewind(self, to: int) -> None:
        """Go back."""
        demand(self.can_rewind(to), "it cannot go there")
        self.cut(to)
        self.offset, self.queries = to, None

    def mask(self, logical: Logical) -> Array | None:
        """The mask over what is held."""
        demand(self.queries is not None, "no queries")
        return masks.in_position_order(logical, self.config.batch, self.queries or 0, len(self.held()))


class RowList(Sequenced):
    """A growing cache that is a Python list of rows."""

    def clear(self) -> None:
        self.rows: list[Row] = []

    def add(self, rows: list[Row]) -> None:
        self.rows += rows

    def held(self) -> list[Row]:
        return self.rows

    def cut(self, to: int) -> None:
        del self.rows[to:]


class HeadLists(RowList):
    """A growing cache that is a list for each head of each sequence: heads lie outermost."""

    def clear(self) -> None:
        self.places = [(b, h) for b in range(self.config.batch) for h in range(self.config.kv_heads)]
        self.of: dict[tuple[int, int], list[Row]] = {place: [] for place in self.places}

    def add(self, rows: list[Row]) -> None:
        for place in self.places:
            self.of[place] += [Row(*(part[place] for part in row)) for row in rows]

    def held(self) -> list[Row]:
        shape = self.config.batch, self.config.kv_heads, -1
        together = zip(*(self.of[place] for place in self.places), strict=True)
        return [Row(*(np.stack(p).reshape(shape) for p in zip(*heads, strict=True))) for heads in together]

    def cut(self, to: int) -> None:
        for place in self.places:
            del self.of[place][to:]


class Node(NamedTuple):
    """A row, and the node of the row before it."""

    row: Row
    before: Node | None


class Chain(RowList):
    """A growing cache that is an immutable chain of rows, the newest first: to go back is to follow it."""

    def clear(self) -> None:
        self.newest: Node | None = None

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            self.newest = Node(row, self.newest)

    def held(self) -> list[Row]:
        return list(self._rows())[::-1]

    def _rows(self) -> Iterator[Row]:
        node = self.newest
        while node is not None:
            yield node.row
            node = node.before

    def cut(self, to: int) -> None:
        for _ in range(self.offset - to):
            assert self.newest is not None
            self.newest = self.newest.before


class SharedVersions(RowList):
    """A growing cache whose rows are a tuple that each append replaces: what was read before stays as it was."""

    def clear(self) -> None:
        self.version: tuple[Row, ...] = ()

    def add(self, rows: list[Row]) -> None:
        self.version = (*self.version, *rows)

    def held(self) -> list[Row]:
        return list(self.version)

    def cut(self, to: int) -> None:
        self.version = self.version[:to]


class DequeRing(Sequenced):
    """A ring that is a deque of the newest rows, and goes nowhere back."""

    needed = ("window",)
    kind = "ring"

    def clear(self) -> None:
        self.rows: deque[Row] = deque()

    def add(self, rows: list[Row]) -> None:
        window = self.config.window or 0
        while len(self.rows) > window - 1:
            self.rows.popleft()
        self.rows.extend(rows)

    def held(self) -> list[Row]:
        return list(self.rows)

    def seen(self) -> list[Row]:
        window = self.config.window or 0
        return list(self.rows)[max(0, len(self.rows) - window + 1) :]

    def cut(self, to: int) -> None:
        """Nothing: it only goes where it is."""

    def can_rewind(self, to: int) -> bool:
        return to == self.offset

    def mask(self, logical: Logical) -> Array | None:
        return super().mask((*logical, Window(self.config.window or 0)))


class ByPosition(Sequenced):
    """A bounded cache that is a dictionary from positions to rows."""

    needed = ("max_len",)
    kind = "bounded"

    def clear(self) -> None:
        self.rows: dict[int, Row] = {}

    def add(self, rows: list[Row]) -> None:
        self.rows |= {self.offset + i: row for i, row in enumerate(rows)}

    def held(self) -> list[Row]:
        return [self.rows[position] for position in range(len(self.rows))]

    def cut(self, to: int) -> None:
        for position in range(to, self.offset):
            del self.rows[position]

    def demand_room(self, n: int) -> None:
        demand(self.offset + n <= (self.config.max_len or 0), "no room")


class ListStore:
    """A store that is a list of rows for each layer; a length may lie beyond the rows, which are zeros there."""

    kind = "store"

    def __init__(self, config: Config) -> None:
        check(config, "layers", "max_len")
        demand(config.batch == 1, "a store of one sequence")
        self.config, self.room = config, config.max_len or 0
        self.zero()

    def init(self, config: Config) -> None:
        """Anew, if the geometry is another."""
        if config.changed(step=0) != self.config.changed(step=0):
            self.__init__(config)  # type: ignore[misc]

    def zero(self) -> None:
        """Nothing is held."""
        self.rows: list[dict[int, Row]] = [{} for _ in range(self.config.layers or 0)]
        self.reset()

    def reset(self) -> None:
        """Lengths of 0."""
        self.ends = [0] * (self.config.layers or 0)

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Write behind the length of each layer, or of one."""
        if keys.ndim == 4 and keys.shape[2] == 0:
            return
        layers = range(len(self.ends)) if layer is None else [layer]
        demand(all(0 <= each < len(self.ends) for each in layers), "no such layer")
        demand(fits(self.config.changed(batch=len(layers)), Pair(keys, values)), "rows of another geometry")
        demand(all(self.ends[each] + keys.shape[2] <= self.room for each in layers), "no room")
        for i, each in enumerate(layers):
            self._put(each, self.ends[each], Pair(keys[i], values[i]))

    def _put(self, layer: int, at: int, pair: Pair) -> None:
        rows = rows_of(pair)
        self.rows[layer] |= {at + i: row for i, row in enumerate(rows)}
        self.ends[layer] = at + len(rows)

    def lengths(self) -> list[int]:
        """The length of each layer."""
        return list(self.ends)

    def read(self, layer: int) -> Pair:
        """The rows of a layer."""
        return arrays_of((self._row(layer, p) for p in range(self.ends[layer])), self.config)

    def _row(self, layer: int, position: int) -> Row:
        dims, dtype = (self.config.k_dim, self.config.v_dim), DTYPES[self.config.dtype]
        empty = Row(*(np.zeros((self.config.kv_heads, dim), dtype) for dim in dims))
        return self.rows[layer].get(position, empty)

    def set_length(self, layer: int, n: int) -> None:
        """Say how long a layer is."""
        demand(0 <= layer < len(self.ends) and 0 <= n <= self.room, "no such length")
        self.ends[layer] = n

    def rollback(self, to: int) -> None:
        """Shorten what is longer."""
        demand(to >= 0, "below 0")
        self.ends = [min(end, to) for end in self.ends]

    def save(self) -> list[Pair]:
        """Copies of all layers."""
        return [self.read(layer) for layer in range(len(self.ends))]

    def load(self, saved: Sequence[Pair]) -> None:
        """Copies back."""
        demand(len(saved) == len(self.ends), "other layers")
        demand(all(fits(self.config, Pair(*(a[None] for a in pair))) for pair in saved), "other rows")
        demand(all(pair[0].shape[1] <= self.room for pair in saved), "no room")
        self.zero()
        for layer, pair in enumerate(saved):
            self._put(layer, 0, pair)

    def fingerprint(self, position: int) -> float:
        """The sum of a key row."""
        demand(0 <= position < self.room, "no such position")
        with np.errstate(all="ignore"):
            return float(np.sum(self._row(0, position).key[0].astype(np.float64)))


class DictPages:
    """A paged cache whose pages are lists of rows in a dictionary; the last page freed is the next one taken."""

    kind = "page"

    def __init__(self, config: Config) -> None:
        check(config, "page_size", "pages")
        demand(config.batch == 1 and config.debug in (None, 1), "no such pool")
        self.config, self.size = config, config.page_size or 0
        self.pages: dict[int, list[Row]] = {}
        self.unused = list(range(config.pages or 0))
        self.tables: dict[int, list[int]] = {}
        self.ends: dict[int, int] = {}

    def _counts(self) -> Counter[int]:
        return Counter(page for table in self.tables.values() for page in table)

    def _end(self, sequence: int) -> int:
        demand(sequence in self.ends, "no such sequence")
        return self.ends[sequence]

    def admit(self) -> int:
        """The lowest number that is not in use."""
        number = next(n for n in range(len(self.ends) + 1) if n not in self.ends)
        self.tables[number], self.ends[number] = [], 0
        return number

    def fork(self, sequence: int, n: int) -> int:
        """The same pages in another table."""
        demand(0 <= n <= self._end(sequence), "no such prefix")
        number = self.admit()
        self.tables[number] = self.tables[sequence][: -(-n // self.size)]
        self.ends[number] = n
        return number

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Row by row; a shared page is copied when it is written to."""
        if keys.ndim == 4 and keys.shape[2] == 0:
            return
        end = self._end(sequence)
        demand(fits(self.config, Pair(keys, values)), "rows of another geometry")
        shared = bool(end % self.size) and self._counts()[self.tables[sequence][-1]] > 1
        more = -(-(end + keys.shape[2]) // self.size) - len(self.tables[sequence])
        demand(more + shared <= len(self.unused), "no pages")
        self._own(sequence, end, shared)
        for row in rows_of(Pair(keys[0], values[0])):
            if self.ends[sequence] % self.size == 0:
                self.tables[sequence].append(self._take([]))
            self.pages[self.tables[sequence][-1]].append(row)
            self.ends[sequence] += 1

    def _own(self, sequence: int, end: int, shared: bool) -> None:
        """Have the last page alone, and no rows in it behind the end."""
        if end % self.size:
            rows = self.pages[self.tables[sequence][-1]][: end % self.size]
            if shared:
                self.tables[sequence][-1] = self._take(rows)
            else:
                self.pages[self.tables[sequence][-1]] = rows

    def _take(self, rows: list[Row]) -> int:
        page = self.unused.pop()
        self.pages[page] = rows
        return page

    def truncate(self, sequence: int, to: int) -> None:
        """Give back the pages behind."""
        demand(0 <= to <= self._end(sequence), "no such length")
        kept = -(-to // self.size)
        gone, self.tables[sequence] = self.tables[sequence][kept:], self.tables[sequence][:kept]
        self.ends[sequence] = to
        self.unused += [page for page in gone if page not in self._counts()]

    def drop(self, sequence: int) -> None:
        """Give back all."""
        self.truncate(sequence, 0)
        del self.tables[sequence], self.ends[sequence]

    def sequences(self) -> list[int]:
        """The lengths, by number."""
        return [self.ends.get(n, -1) for n in range(max(self.ends, default=-1) + 1)]

    def read_sequence(self, sequence: int) -> Pair:
        """All rows of its pages, as far as it goes."""
        rows = [row for page in self.tables[sequence] for row in self._full(page)]
        return arrays_of(rows[: self._end(sequence)], self.config)

    def _full(self, page: int) -> list[Row]:
        """The slots of a page; behind what was written is whatever is there."""
        rows = self.pages[page]
        return rows + rows[-1:] * (self.size - len(rows))

    def free_pages(self) -> int:
        """Pages in no table."""
        return len(self.unused)


class ListRagged:
    """A ragged cache that is a list of rows for each sequence, of which a window shows the newest; blocks are made
    when somebody asks."""

    kind = "ragged"

    def __init__(self, config: Config) -> None:
        check(config, "padding")
        self.config, self.left = config, config.padding == "left"
        self._become([[] for _ in range(config.batch)])

    def _become(self, rows: list[list[Row]]) -> None:
        self.rows = [list(each) for each in rows]
        self.fed: Array | None = None

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        """Add to each sequence the columns that it owns."""
        config, n = self.config.changed(batch=len(self.rows)), keys.shape[2] if keys.ndim == 4 else 0
        demand(fits(config, Pair(keys, values)) and len(lengths) == len(self.rows), "another block")
        demand(all(0 <= own <= n for own in lengths), "no such columns")
        self.fed = np.full((len(lengths), n), -1)
        for s, own in enumerate(lengths):
            columns = slice(n - own, n) if self.left else slice(0, own)
            self.fed[s, columns] = range(len(self.rows[s]), len(self.rows[s]) + own)
            self.rows[s] += rows_of(Pair(keys[s][:, columns], values[s][:, columns]))

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest rows of each."""
        demand(len(counts) == len(self.rows), "a count for each sequence")
        demand(all(0 <= n <= len(each) for n, each in zip(counts, self.rows, strict=True)), "too many")
        outgrown = [self.config.window is not None and len(each) > self.config.window for each in self.rows]
        demand(not any(n and past for n, past in zip(counts, outgrown, strict=True)), "some may be gone")
        self._become([each[: len(each) - n] for n, each in zip(counts, self.rows, strict=True)])

    def filter(self, order: Sequence[int]) -> None:
        """These, in this order."""
        demand(bool(order) and all(0 <= s < len(self.rows) for s in order), "no such sequence")
        self._become([self.rows[s] for s in order])

    def reorder(self, order: Sequence[int]) -> None:
        """As many, from these."""
        demand(len(order) == len(self.rows), "as many as there are")
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Each several times."""
        demand(times >= 1, "not at all")
        self._become([each for each in self.rows for _ in range(times)])

    def extend(self, other: Any) -> None:
        """The sequences of another behind these."""
        names = ("kv_heads", "k_dim", "v_dim", "dtype", "window")
        same = isinstance(other, ListRagged)
        demand(same and all(getattr(other.config, n) == getattr(self.config, n) for n in names), "another cache")
        self._become(self.rows + other.rows)

    def sequences(self) -> list[int]:
        """The length of each."""
        return [len(each) for each in self.rows]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of one that its next query would see."""
        rows, window = self.rows[sequence], self.config.window
        return arrays_of(rows if window is None else rows[max(0, len(rows) - window + 1) :], self.config)

    def holds(self) -> list[int]:
        """All that there are."""
        return self.sequences()

    def positions(self) -> Array | None:
        """Where the columns fed last stand."""
        return self.fed

    def starts(self) -> list[int]:
        """Where each begins in a block."""
        width = max(self.sequences())
        return [width - len(each) if self.left else 0 for each in self.rows]

    def history(self) -> Pair:
        """A block, padded with zeros."""
        config, width = self.config.changed(batch=len(self.rows)), max(self.sequences())
        block = Pair(*(np.zeros(config.shape(kind, width), DTYPES[config.dtype]) for kind in "kv"))
        for s, start in enumerate(self.starts()):
            for array, rows in zip(block, arrays_of(self.rows[s], self.config), strict=True):
                array[s, :, start : start + len(self.rows[s])] = rows
        return block

    def mask(self) -> Array:
        """Each query sees its own sequence up to itself, and no further back than its window."""
        assert self.fed is not None
        queries = self.fed[:, :, None]
        place = np.arange(max(self.sequences())) - np.array(self.starts())[:, None, None]
        oldest = np.maximum(0, queries + 1 - (self.config.window or 1 << 31))
        return np.asarray((place >= oldest) & (place <= queries))[:, None]


class SlotBuffer:
    """A copy buffer that is a dictionary from slots to rows `[kv_heads, dim]`."""

    kind = "copy"

    def __init__(self, config: Config) -> None:
        check(config, "capacity", "layout")
        demand(config.batch == 1 and config.layout in WORDS["layout"], "no such buffer")
        self.config, self.room = config, config.capacity or 0
        dims, dtype = (config.k_dim, config.v_dim), DTYPES[config.dtype]
        self.slots = {i: Row(*(np.zeros((config.kv_heads, d), dtype) for d in dims)) for i in range(self.room)}

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Row by row."""
        if n == 0 or not any(a.shape[1] * a.shape[2] for a in (keys, values)):
            return
        dims = (self.config.k_dim, self.config.v_dim)
        right = [(self.config.kv_heads, d) for d in dims] == [a.shape[1:] for a in (keys, values)]
        demand(right and n <= len(keys) == len(values) and keys.dtype == values.dtype, "another source")
        wider = any(keys.dtype == DTYPES[d] and narrows(d, self.config.dtype) for d in DTYPES)
        demand(wider and type(keys) is not Own, "another source")
        demand(at >= 0 and (sliding or at + n <= self.room), "no such slots")
        keys, values = (np.array(a[:n]) for a in (keys, values))
        if keys.dtype != DTYPES[self.config.dtype]:
            keys, values = (narrowed(a, self.config.dtype) for a in (keys, values))
        self.slots |= {(at + i) % self.room: Row(keys[i], values[i]) for i in range(n)}

    def alias(self, source: int, n: int) -> tuple[Any, Any]:
        """The buffer's own rows: no source for it."""
        pair = (a[source : source + n] for a in self._tokens())
        return tuple(np.array(a).view(Own) for a in pair)  # type: ignore[return-value]

    def _tokens(self) -> Pair:
        rows = [self.slots[i] for i in range(self.room)]
        return Pair(*(np.stack(parts) for parts in zip(*rows, strict=True)))

    def read(self, what: str) -> Pair:
        """All slots, as the layout says."""
        tokens = self._tokens()
        return tokens if self.config.layout == "token" else Pair(*(a.transpose(1, 0, 2) for a in tokens))


class Own(np.ndarray[Any, np.dtype[Any]]):
    """An array that says that it is the buffer's own."""


CLAIMS: dict[type[Any], dict[str, Any]] = {
    RowList: {"growing": "visible", "mask": "visible"},
    HeadLists: {"growing": "visible", "mask": "visible"},
    Chain: {"growing": "visible", "mask": "visible"},
    SharedVersions: {"growing": "visible", "mask": "visible"},
    DequeRing: {"ring": {"level": "visible", "rewind": "never"}, "mask": "visible"},
    ByPosition: {"bounded": "visible", "mask": "visible"},
    ListStore: {"store": "visible"},
    DictPages: {"page": {"level": "visible", "without": ["gather", "peek"]}},
    ListRagged: {"ragged": {"level": "visible", "without": ["join", "extract"]}},
    SlotBuffer: {"copy": "visible"},
    TokenList: {"layers": "visible"},
    KeepsAll: {"layers": {"level": "visible", "spare": "all"}},
    LayerDicts: {"layers": {"level": "visible", "without": ["state", "conv"]}},
}
"""Each design, and what it claims."""


class Design:
    """One of these designs as an adapter."""

    def __init__(self, cache: type[Any]) -> None:
        self.cache = cache

    def describe(self) -> dict[str, Any]:
        """Its claims."""
        return {"name": self.cache.__name__, "chapters": CLAIMS[self.cache]}

    def open(self, kind: str, config: Config) -> Any:
        """A fresh cache. Raises ValueError for another kind."""
        demand(kind == self.cache.kind, f"no {kind}")
        return self.cache(config)
