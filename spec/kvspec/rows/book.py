"""The rows of a trace by their serials: which were handed in, and which row an engine hands out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import numpy as np

from kvspec.forms import Form, Owed, owed
from kvspec.geometry import DTYPES, Array, Config, forms, heads_of, newest, of_all_ranks, still
from kvspec.operations.table import Operation, argument, overridden
from kvspec.rows.contents import Contents
from kvspec.rows.fills import EXACT, MAKE, PARTS, beginnings, cast, fine, settled, signed, tiny, with_tail
from kvspec.rows.form_rows import beside_turned
from kvspec.rows.legible import Name, Place, form_of, legible, name, read, spelled
from kvspec.rows.serials import ILLEGIBLE, POISONED, ZEROED, letters


def _far(row: Array, read: Array) -> float:
    """How far all of a row is from what was read."""
    with np.errstate(all="ignore"):
        off = np.abs(row - read.astype(np.float64))
        return float(np.nan_to_num(off, posinf=0).sum())


def _same(rows: Array, read: Array) -> Array:
    """Which of the rows `[n, dim]` was read as it is; NaN may have any bits."""
    with np.errstate(invalid="ignore"):  # of a NaN that signals
        wide = read.astype(np.float64)
    return np.asarray(((rows == wide) | (np.isnan(rows) & np.isnan(wide))).all(-1))


def mixed(op: Operation, config: Config) -> bool:
    """Tell whether latent values share a scale with elements that RoPE turns before they are encoded."""
    form = form_of(config, "k")
    if not still(config) or op.get("rope") is None or form is None or form.given:
        return False
    return form.group == 0 or config.v_dim % form.group > 0


def _by_layer(rows: Array, layers: int) -> Array:
    """Rows `[B, H, layers * n, dim]` as `[layers * B, H, n, dim]`."""
    batch, heads, all_, dim = rows.shape
    each = rows.reshape(batch, heads, layers, all_ // layers, dim).transpose(2, 0, 1, 3, 4)
    return each.reshape(layers * batch, heads, all_ // layers, dim)


class SerialBook:
    """Hands out the rows of one trace, a new serial to each position, and reads them back."""

    def __init__(self, any_nan: bool = False, reads: bool = True) -> None:
        self.next, self.any_nan, self.reads = 0, any_nan, reads
        """The next serial; whether any NaN is as good as another, as in caches in a form; and whether rows are read
        back: if not, none is noted."""
        self.kept: dict[int, tuple[Array, Array]] | None = None
        """Key and value row `[B, H, dim]` of each serial, in the cache's dtype, if needed later."""
        self.by_value: set[int] = set()
        """Serials of rows known by their values alone, because their keys are zeros or were rotated by RoPE."""
        self.settled: set[int] = set()
        """Serials of rows that were cast: their NaN may have any bits."""
        self._known: dict[bytes, dict[Place, int]] = {}
        self._cast: dict[bytes, dict[Place, int]] = {}
        self._rounded: list[tuple[str, int, Owed]] = []
        """Rows that a form rounds: keys or values, the first serial, and what may be read of them."""
        self.plain: frozenset[int] = frozenset()
        """Serials of rows that are to be read to the bit, though the form of the cache rounds rows."""
        self._beside = False
        """Whether the cache that is looked at keeps some rows as they are beside those in a form."""
        self._times = 1
        """How often rows may have been rounded."""
        self._unread: list[Callable[[], None]] = []
        self._heads: tuple[int, int | None] = (0, None)
        """The heads of the cache that is looked at: the first, and the one behind the last, if it is a rank's."""
        self._contents: dict[tuple[int, int | None], Contents] = {}
        self._made_to = 0
        """The serial behind those of the rows that were made last."""

    def look_at(self, config: Config) -> None:
        """Read from now on what a cache of this config hands out: a rank has some of the heads of every row."""
        first, behind, _ = heads_of(config)
        self._heads = (0, None) if config.rank is None else (first, behind)
        self._beside = newest(config) > 0

    @property
    def own_heads(self) -> slice:
        """Give the heads of the cache that is looked at, among those of a row."""
        return slice(*self._heads)

    @property
    def contents(self) -> Contents | None:
        """The names of all rows taken so far, by the content of the heads that are looked at; None where rows are
        not kept."""
        if self.kept is None:
            return None
        if self._heads not in self._contents:
            rows = self.kept, self.settled, self.by_value
            self._contents[self._heads] = Contents(*rows, settled, self.own_heads)
        self._contents[self._heads].enter(self.next)
        return self._contents[self._heads]

    @contextmanager
    def handed_in(self) -> Iterator[None]:
        """Meanwhile the rows that were made last have names too, though it is not known yet if they are taken."""
        contents = self.contents
        if contents is not None:
            contents.enter(self._made_to)
        yield
        if contents is not None:
            contents.leave(self.next)

    def named(self, serials: Iterable[int], sequence: int = 0) -> list[int]:
        """The names of rows of a sequence of a batch: equal rows have one name, where rows are kept."""
        return self.contents.named(serials, sequence) if self.contents else list(serials)

    def rows(self, op: Operation, config: Config, n: int, ahead: int = 0) -> tuple[Array, Array]:
        """Make n key and value rows for an operation on a cache of this config, `ahead` serials on."""
        shape, first = overridden(config, op), self.next + ahead
        self._made_to = first + n
        self._rounded = [each for each in self._rounded if each[1] < first]  # others were refused
        n_values = op.get("values")
        for refused in (self.settled, self.by_value):
            refused.difference_update(range(first, first + n) if refused else ())
        own, shape = slice(*heads_of(shape)[:2]), of_all_ranks(shape)
        n_values = n if n_values is None else n_values
        keys = self._made(op, config, shape, "k", first, n)
        if still(shape):
            values = self._beginnings(op, keys, shape, first, n_values, config.dtype)
        else:
            values = self._made(op, config, shape, "v", first, n_values)
        exact = form_of(config, "k") is None or (argument(op, "fill") in EXACT and not mixed(op, config))
        if self.kept is not None:
            for serial in range(first, first + n):
                self.kept.pop(serial, None)  # rows that were refused had these serials
            if keys.shape[:3] == values.shape[:3] and exact:
                self._keep(first, config.dtype, keys, values)
        return (keys, values) if config.rank is None else (keys[:, own], values[:, own])

    def of_serials(self, config: Config, serials: list[int]) -> tuple[Array, Array]:
        """Make legible key and value rows with these serials, which need not follow each other."""
        shape, each = config.changed(batch=1), np.array(serials, np.int64)
        keys, values = (
            spelled(kind, 1, shape.kv_heads, each, shape.shape(kind, 0)[3], shape.dtype) for kind in "kv"
        )
        return keys, values

    def _keep(self, first: int, dtype: str, *rows: Array) -> None:
        """Keep copies of rows as the cache will hold them: a scribble overwrites what was handed in."""
        keys, values = (a.copy() if a.dtype == DTYPES[dtype] else cast(a, dtype) for a in rows)
        assert self.kept is not None
        self.kept |= {first + i: (keys[:, :, i], values[:, :, i]) for i in range(keys.shape[2])}

    def _made(self, op: Operation, config: Config, shape: Config, kind: str, first: int, n: int) -> Array:
        fill = argument(op, "fill")
        fill = "legible" if still(shape) and fill in ("even", "ramp") else fill
        if (form := form_of(shape, kind)) is not None:
            return self._in_form(form, fill, shape, kind, first, n, config.dtype)
        made = MAKE[fill](shape, kind, first, n)
        if fill in PARTS:
            return made
        if fill in ("even", "ramp") and kind == "k":
            self.by_value |= set(range(first, first + n))
        elif fill != "legible":
            if fill == "edges" or shape.dtype != config.dtype:
                digits = signed(shape, first + n)
                made[..., :digits] = legible(shape, kind, first, n)[..., :digits]
            if made.dtype != DTYPES[config.dtype]:
                self.settled |= set(range(first, first + n))
            self._note(kind, first, config.dtype, made)
        return made

    def _in_form(self, form: Form, fill: str, shape: Config, kind: str, first: int, n: int, dtype: str) -> Array:
        """Make rows for a cache in a form, and note them in its dtype: those that it keeps to the bit, or those
        that it rounds."""
        zeros = fill == "even" and kind == "k"
        if fill in ("even", "ramp") and kind == "k":
            self.by_value |= set(range(first, first + n))
        if fill in EXACT or (fill == "ramp" and kind == "v"):
            made = MAKE[fill if fill in (*PARTS, "random") or zeros else "legible"](shape, kind, first, n)
            self._note(kind, first, dtype, made)
            return made
        made = (tiny if fill == "hay" else MAKE[fill])(shape, kind, first, n)
        if fill in ("bits", "edges", "hay"):
            made = with_tail(form, fine(shape, kind, first, n), made)
        if self.reads:
            rows = made if made.dtype == DTYPES[dtype] else cast(made, dtype)
            self._rounded.append((kind, first, owed(form, rows)))
        return made

    def _beginnings(self, op: Operation, keys: Array, shape: Config, first: int, n: int, dtype: str) -> Array:
        """Make the values of latent rows, the first elements of their keys, and note them as these were noted."""
        made = beginnings(keys, shape, n)
        if not self.reads:
            return made
        if self._rounded and self._rounded[-1][:2] == ("k", first):
            owed_ = Owed(*(part[..., : shape.v_dim] for part in self._rounded[-1][2]))
            self._rounded.append(("v", first, owed_))
        elif (form := form_of(shape, "k")) is not None and mixed(op, shape):
            self._rounded.append(("v", first, beside_turned(form, keys, shape.v_dim)))
        else:
            self._note("v", first, dtype, made)
        return made

    def stacked(self, op: Operation, config: Config, n: int, layers: int) -> tuple[Array, Array]:
        """Make n rows for each layer, `[layers, H, n, dim]`; the first layer has the first serials."""
        if layers == 1:
            return self.rows(op, config, n)
        if argument(op, "fill") == "legible" and op.get("values") is None and forms(config) is None:
            rows = self.rows(op, config, layers * n)
            return _by_layer(rows[0], layers), _by_layer(rows[1], layers)
        each = [self.rows(op, config, n, layer * n) for layer in range(layers)]
        keys, values = zip(*each, strict=True)
        return np.concatenate(keys), np.concatenate(values)

    def rounded_again(self) -> None:
        """Note that rows of a cache in a form were rounded once more, those that were loaded: by ROW-18 each may be
        a step further off."""
        self._times += 1

    def took(self, n: int) -> None:
        """Use up n serials, because the cache accepted their rows."""
        self.next += n

    def _note(self, kind: str, first: int, dtype: str, made: Array) -> None:
        """Note rows, to be remembered when something is read."""
        if self.reads:
            self._unread.append(partial(self._remember, kind, first, dtype, made.copy()))

    def _remember(self, kind: str, first: int, dtype: str, made: Array) -> None:
        """Remember these rows, in the cache's dtype, to recognise them later."""
        known, rows = self._known, made
        if made.dtype != DTYPES[dtype]:
            known, rows = self._cast, cast(made, dtype)
        for sequence, head, n in np.ndindex(rows.shape[:3]):
            places = known.setdefault(rows[sequence, head, n].tobytes(), {})
            places.setdefault((kind, head, sequence), first + n)

    def _recall(self) -> None:
        """Remember all rows that were made: few traces ask, and a long one has many rows."""
        for remember in self._unread:
            remember()
        self._unread.clear()

    def alike(self, a: Array, b: Array) -> bool:
        """Tell whether two rows are equal to the bit. In rows that were cast, rotated or encoded a NaN is any."""
        self._recall()
        settled_ = settled(a).tobytes()
        changed = self.any_nan or settled_ in self._cast or (bool(self.by_value) and a.tobytes() not in self._known)
        return a.tobytes() == b.tobytes() or (changed and settled_ == settled(b).tobytes())

    def places(self, row: Array) -> Mapping[Place, int]:
        """Give the serials of a row that is known by its bytes, by the places where it was handed in."""
        return self._known.get(row.tobytes()) or self._cast.get(settled(row).tobytes()) or self._near(row)

    def _serial(self, row: Array, place: Place, otherwise: int) -> int:
        """Give the serial of a row that is known by its bytes, or by lying near one, and was handed in at this
        place."""
        known = self._known.get(row.tobytes()) or self._cast.get(settled(row).tobytes())
        if known or not self._rounded:
            return (known or {}).get(place, otherwise)
        near = self._nearest(row, place)
        return otherwise if near == ILLEGIBLE else near

    def _near(self, row: Array) -> dict[Place, int]:
        """Give the serials of rows in a form that may be read as this, by the places where they were handed in."""
        heads = {(kind, h, s) for kind, _, made in self._rounded for s, h in np.ndindex(made.rows.shape[:2])}
        found = ((place, self._nearest(row, place)) for place in heads)
        return {place: serial for place, serial in found if serial >= 0}

    def _nearest(self, row: Array, place: Place) -> int:
        """Give the serial of the row in a form, handed in at this place, that may be read as this; of several
        that of the nearest. ILLEGIBLE if there is none."""
        kind, head, sequence = place
        near = list[tuple[float, int]]()
        for part, first, made in self._rounded:
            if part != kind or made.rows.shape[-1] != row.shape[-1] or made.rows.shape[0] <= sequence:
                continue
            if head < made.rows.shape[1]:
                here = made.at(sequence, head)
                here = here._replace(step=here.step * self._times * (1 + 2.0**-8 * (self._times > 1)))
                right = np.asarray(here.allows(row).all(-1))
                if self._beside:
                    rounded = np.array([first + n not in self.plain for n in range(len(right))], bool)
                    right = _same(here.rows, row) | (right & rounded)
                near += ((_far(here.rows[n], row), first + int(n)) for n in np.flatnonzero(right))
        return min(near)[1] if near else ILLEGIBLE

    def lost(self, array: Array, kind: str) -> bool:
        """Tell whether a row `[B, H, n, dim]` is there that was handed in nowhere, and is neither zeros nor NaN."""
        illegible = np.argwhere(self.read(array, kind) == ILLEGIBLE)
        rows = (array[tuple(at)] for at in illegible)
        return any(not self.places(row) and name(row) is None for row in rows)

    def read(self, array: Array, kind: str) -> Array:
        """Read the serials `[B, H, n]` of rows made by this book; ILLEGIBLE or POISONED for others."""
        first = self._heads[0]
        out = read(array, kind, first)
        self._recall()
        if self._known or self._cast or self._rounded:
            out = out.copy()
            for at in zip(*np.nonzero(out < 0), strict=True):
                sequence, head = map(int, at[:2])
                out[at] = self._serial(array[at], (kind, first + head, sequence), int(out[at]))
        return out


def describe(array: Array, kind: str, place: tuple[int, int, int], book: SerialBook | None = None) -> str:
    """Describe the row at (sequence, head, slot) in words: its letter, and its head and sequence."""
    serial = int((book.read if book else read)(array, kind)[place])
    if serial >= 0:
        return f"row {letters(serial)}"
    if serial in (POISONED, ZEROED):
        return "an unwritten row (NaN)" if serial == POISONED else "a row of zeros"
    row = np.asarray(array[place])
    handed_in = [Name(*place, serial) for place, serial in (book.places(row) if book else {}).items()]
    for found in filter(None, [*handed_in, name(row)]):
        which = {"k": "key", "v": "value"}[found.kind]
        return f"the {which} of row {letters(found.serial)} of head {found.head}, sequence {found.sequence}"
    return "a row that was never appended"
