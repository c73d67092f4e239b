"""Judging at level `visible`: the list model (`kvconform.oracle.list_model`) as oracle, what is seen as the thing
compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kvconform.judge.levels import folds, whole_buffer
from kvconform.judge.levels.mask_columns import Looked, looked
from kvconform.judge.storage import Difference, agree, observable, result
from kvconform.oracle.expected import SAVED, Expected
from kvspec.geometry import DTYPES, Array
from kvspec.operations.table import Operation
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import letters, plain
from kvspec.session.step import Step

if TYPE_CHECKING:
    from kvref.list_model.tokens import Scores


class Judge:
    """Compares the steps of one trace. `looks`: what is observed of the adapter, among it `history`, `mask` of a
    history and `sees` of a padded block."""

    def __init__(self, book: SerialBook, looks: Collection[str]) -> None:
        self._book, self._handed_out = book, "history" in looks
        self._masked, self._padded = "mask" in looks, "sees" in looks
        self._histories: dict[Looked, list[list[int]] | None] = {}
        self._unseen = set[Looked]()

    def forget(self, op: Operation) -> None:
        """Note that an append or a draft within a run handed out a history that was not observed."""
        self._unseen.add(looked(op))

    def compare(
        self,
        op: Operation,
        want: Expected,
        got: Step,
        windowed: bool,
        room: int | None = None,
        live: Collection[int] = (),
    ) -> list[Difference]:
        """All differences at level `visible`. `windowed` tells whether rows may be there that no query needs.
        `room` is the number of slots of a buffer that may be handed out as it is. `live` are the rows that the
        cache may still have."""
        if want.result == "any":
            return []  # what this comes to follows from where rows are stored
        found = result(want, got)
        if found:
            return found
        seen = [*self._sees(looked(op), want, got, windowed, room, live), *_numbers(want, got)]
        appended = op["op"] == "append" and op["n"] > 0 and want.result == "ok"
        if appended and want.handed_out is not None and self._handed_out:
            seen += _handed_out(want.handed_out, self._histories.get(looked(op)) or (), self._book)
        seen += folds.differences(want, got, self._book)
        return [*_values(want, got), *_rows(want, got, self._book), *seen]

    def _history(
        self, cache: Looked, got: Step, sequences: int, room: int | None, held: int | None
    ) -> Iterator[Difference]:
        """Note the names of the rows in a history; of a whole buffer the names in its spare slots do not count.
        Where there is no history, no sequence has rows."""
        spare = whole_buffer.NONE
        if room is not None and held is not None:
            yield from whole_buffer.width(got, room, held)
            spare = whole_buffer.spare(got, room, held, self._masked)
            yield from whole_buffer.not_finite(got, spare, self._book)
        names = history_names(got, spare, self._book)
        if names is None and self._masked:  # what a refused append left in slots that the mask hides
            names = history_names(got, whole_buffer.hidden(got), self._book)
        none = got.arrays["history.k"] is got.arrays.get("history.v") is None
        self._histories[cache] = [[] for _ in range(sequences)] if none else names

    def _sees(
        self, cache: Looked, want: Expected, got: Step, windowed: bool, room: int | None, live: Collection[int]
    ) -> Iterator[Difference]:
        if want.sees is None or not self._handed_out:
            return
        masked = self._masked or "mask" in got.arrays
        if "history.k" in got.arrays:
            yield from self._history(cache, got, len(want.sees), room, want.least)
        elif "history.0.k" in got.arrays:
            if not self._padded:
                return  # nothing says which columns are padding; the rows of each sequence are seen by themselves
            masked = True
            self._histories[cache] = padded(got, len(want.sees), self._book)
        if "history.k" in got.arrays or "history.0.k" in got.arrays:
            self._unseen.discard(cache)
        if cache in self._unseen:
            return  # what its columns are is not known
        names = self._histories.get(cache)
        if names is None or len(names) != len(want.sees):
            yield Difference("history", "history: keys and values, heads or sequences do not hold the same rows")
            return
        handed = bool(live) and "history.k" in got.arrays
        for sequence, heads in enumerate(want.sees):
            if not masked:
                there = names[sequence][: want.least if room else None]
                yield from _all_there(heads[0], there, windowed, self._book, sequence)
                continue
            for head, queries in enumerate(heads):
                named = [None if q is None else _named(q, self._book, sequence) for q in queries]
                stand = _Stand(names[sequence], set(self._book.named(list(live), sequence)), windowed, handed)
                found = _through(named, stand, got.arrays.get("mask"), (sequence, head))
                yield from (_of_part(difference, want.parts, sequence) for difference in found)


def shown(name: str, value: Any, expected: Any) -> Any:
    """Give the part of a value that is compared. Of a snapshot that is its start and stop, or only the stop for a
    ring."""
    if name in SAVED and isinstance(value, list):
        return value[1:2] if expected is not None and len(expected) == 1 else value[:2]
    return value


def _values(want: Expected, got: Step) -> Iterator[Difference]:
    for name, expected in want.values.items():
        found = shown(name, got.values.get(name), expected)
        if name in ("intact", "moved") and found is None:
            continue  # an engine behind the wire shares no array with the harness; addresses are storage
        if not agree(observable(name), expected, found) and not (name == "moved" and expected):
            yield Difference(observable(name), f"{name}: expected {expected}, found {found}", name=name)
    for name, (least, most) in want.between.items():
        found = got.values.get(name)
        if found is None or not least <= found <= most:
            yield Difference(observable(name), f"{name}: expected {least} to {most}, found {found}")
    retained = got.values.get("retained")
    if want.least is not None and retained is not None and retained < want.least:
        yield Difference("retained", f"retained {retained} is less than the {want.least} rows a query may need")


class _Bounded(NamedTuple):
    """Numbers that may differ from exact ones by a bound, and wrong ones beside zeros and twice the exact ones."""

    name: str
    middle: Array
    bound: Array
    dtype: np.dtype[Any]
    wrong: tuple[Array, ...] = ()


def _bounded(want: Expected) -> Iterator[_Bounded]:
    """Outputs of attention, and rows that were turned."""
    if want.outputs is not None:
        middle, bound, fewer = want.outputs
        yield _Bounded("output", middle, bound, DTYPES["f32"], (fewer,))
    if want.rotated is not None:
        middle, bound, dtype = want.rotated
        yield _Bounded("rotated", middle, bound, DTYPES[dtype])


def shown_by_bounds(want: Expected) -> dict[str, bool]:
    """The observables of a step that have bounds, and whether agreeing with each shows anything. It does not where
    zeros, twice the numbers, or an output over one row fewer lie within the bound everywhere."""
    return {one.name: _says(one) for one in _bounded(want) if one.middle.size}


def _says(one: _Bounded) -> bool:
    """Whether no wrong numbers lie within a bound everywhere; numbers that are the exact ones are not wrong."""
    with np.errstate(invalid="ignore", over="ignore"):
        wrong = [w for w in (np.zeros(()), 2 * one.middle, *one.wrong) if not (w == one.middle).all()]
        return not any((np.isposinf(one.bound) | (np.abs(w - one.middle) <= one.bound)).all() for w in wrong)


def _numbers(want: Expected, got: Step) -> Iterator[Difference]:
    for one in _bounded(want):
        yield from _within(one, got.arrays.get(one.name))


def _within(one: _Bounded, found: Array | None) -> Iterator[Difference]:
    """Numbers, each within its bound; where the bound is infinite, any. A bound that is NaN holds nothing."""
    name, middle, bound, dtype, _ = one
    if found is None or found.shape != middle.shape or found.dtype != dtype:
        shown = "none" if found is None else f"{found.dtype}{list(found.shape)}"
        yield Difference(name, f"{name}: expected {dtype}{list(middle.shape)}, found {shown}")
        return
    with np.errstate(invalid="ignore"):
        wide = found.astype(np.float64)
        off = np.abs(wide - middle)
        same = (wide == middle) | (np.isnan(wide) & np.isnan(middle))
        wrong = np.argwhere(~(off <= bound) & ~np.isposinf(bound) & ~same)
    if len(wrong):
        at = tuple(wrong[0])
        text = f"{wide[at]:.9g} is off by {off[at]:.3g}, more than the {bound[at]:.3g} it may be"
        yield Difference(name, f"{name} at {[int(i) for i in at]}: expected {middle[at]:.9g}, found {text}")


def _rows(want: Expected, got: Step, book: SerialBook) -> Iterator[Difference]:
    """Rows that must be there in this order, whatever else an array holds its rows in."""
    none = got.arrays.get("view.k") is None
    if want.rows.get("view") == [] and want.empty != "either" and none != (want.empty == "none"):
        yield Difference("view", f"view: expected {want.empty}, found {'none' if none else 'zero rows'}")
    for name, expected in want.rows.items():
        found = one_name_each(got.arrays.get(f"{name}.k"), got.arrays.get(f"{name}.v"), book)
        named = [book.named(expected, sequence) for sequence in range(len(found or [[]]))]
        if found != named:
            text = f"{name}: expected {words(named[0])}, found {_shown(found)}"
            yield Difference(name.partition(".")[0], text, name=name)


def _shown(found: list[list[int]] | None) -> str:
    if found is None:
        return "rows that do not agree over heads"
    return words(found[0]) if found else "an array of no sequences"


DISAGREE = -5
"""Instead of a name: keys and values, or heads, hold different rows."""


def one_name_each(keys: Array | None, values: Array | None, book: SerialBook) -> list[list[int]] | None:
    """For each sequence the names of the rows, where keys and values of all heads agree on them; else None. Equal
    rows have one name, see `kvspec.rows.contents`. A row of no known content has what it spells."""
    if keys is None or values is None:
        return [[]] if keys is values else None
    if keys.ndim != 4 or values.ndim != 4 or keys.shape[:3] != values.shape[:3] or not keys.shape[1]:
        return None
    names = _spelled(keys, values, book) if book.contents is None else book.contents.read(keys, values, UNREAD)
    unread = np.flatnonzero((names == UNREAD).any(0))
    if len(unread):
        spelled = _spelled(keys[:, :, unread], values[:, :, unread], book)
        names[:, unread] = np.where(names[:, unread] == UNREAD, spelled, names[:, unread])
    return None if (names == DISAGREE).any() else [[int(s) for s in sequence] for sequence in names]


UNREAD = -6
"""Instead of a name, until it is spelled: the content of the row is that of none."""


def _spelled(keys: Array, values: Array, book: SerialBook) -> Array:
    """What the rows of each sequence spell, `[B, n]`; DISAGREE where keys and values or heads do."""
    k, v = book.read(keys, "k"), book.read(values, "v")
    k = np.where(np.isin(v, list(book.by_value)), v, k) if book.by_value else k
    agree = (k == k[:, :1]).all(1) & (k == v).all(1)
    return np.where(agree, k[:, 0], DISAGREE)


def padded(got: Step, sequences: int, book: SerialBook) -> list[list[int]] | None:
    """For each sequence of a padded block the serials of its columns; None where keys, values or heads disagree."""
    found: list[list[int]] = []
    for name in (f"history.{s}" for s in range(sequences)):
        rows = one_name_each(got.arrays.get(f"{name}.k"), got.arrays.get(f"{name}.v"), book)
        if rows is None:
            return None
        found += rows
    return found


def _named(query: Scores, book: SerialBook, sequence: int) -> list[tuple[int, float]]:
    """The rows that a query sees, each by its name with its score; equal rows as often as there are."""
    return list(zip(map(plain, book.named(query, sequence)), query.values(), strict=True))


def _all_there(
    queries: list[Scores | None], names: list[int], windowed: bool, book: SerialBook, sequence: int
) -> Iterator[Difference]:
    """Check the history where masking is left to the caller. It must hold every row that a query needs, and no row
    twice. Without a window it must hold no other row, if there is a query at all."""
    needed = Counter(book.named(dict.fromkeys(s for q in queries for s in q or ()), sequence))
    found = Counter(names)
    wrong = [s for s, n in needed.items() if not n <= found[s] <= (_copies(s, book, sequence) if windowed else n)]
    if wrong:
        times = "once" if needed[wrong[0]] == 1 else f"{needed[wrong[0]]} times"
        yield Difference("history", f"history {words(names)} should hold {letters(wrong[0])} {times}")
    elif queries and not windowed and len(names) > needed.total():
        yield Difference(
            "history", f"history {words(names)} should hold {words([*needed.elements()])} and nothing else"
        )


def _copies(name: int, book: SerialBook, sequence: int) -> int:
    """How many rows of one name a history with rows that no query needs may hold."""
    return book.contents.copies(name, sequence) if book.contents else 1


def _handed_out(expected: list[int], histories: Iterable[list[int]], book: SerialBook) -> Iterator[Difference]:
    """The rows of a history, where it is declared which are there."""
    for sequence, names in enumerate(histories):
        named = book.named(expected, sequence)
        if sorted(names) != sorted(named):
            yield Difference("history", f"history {words(names)} should be {words(named)}, in any order")
            return


class _Stand(NamedTuple):
    """The rows of a history, and which of them may stand there."""

    names: list[int]
    live: Collection[int]
    """Those that the cache may still have. Others should stand nowhere."""
    windowed: bool
    handed: bool
    """Whether this step handed the history out."""

    def at_fault(self, wanted: list[int], found: list[int], several: bool) -> str:
        """Tell what is wrong if a query, one of `several` or the only one, sees other rows than it should.
        `history`: a row is not there, or one is there that should be nowhere. `mask`: only the mask shows or hides
        wrongly. `sees`: it may be either, since old rows of a single query may be hidden or be gone."""
        missing, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        twice = [s for s in more if s in wanted]
        if self.handed and (twice or set(missing) - set(self.names) or set(more) - set(self.live)):
            return "history"
        past = self.windowed and not several and any(s < max(wanted, default=0) for s in more)
        return "mask" if (missing or more) and not past and not twice else "sees"


def _through(
    queries: Sequence[list[tuple[int, float]] | None], stand: _Stand, mask: Array | None, at: tuple[int, int]
) -> Iterator[Difference]:
    for i, want in enumerate(queries):
        if want is None:
            continue  # it is padding, and may see anything
        found = seen(stand.names, mask, at, i)
        if found is None:
            shape = None if mask is None else mask.shape
            yield Difference("mask", f"mask {shape} does not fit {len(stand.names)} rows")
            return
        if sorted(want) != sorted(found):
            text = f"query {i} sees {scored(found)}; expected {scored(want)}"
            wanted, shown = ([s for s, _ in side] for side in (want, found))
            fault = stand.at_fault(wanted, shown, len(queries) > 1)
            text = text if at == (0, 0) else f"sequence {at[0]}, head {at[1]}: {text}"
            yield Difference(fault, text, name=_which(wanted, shown, queries[-1] or []))
            return


def _of_part(difference: Difference, parts: tuple[str, ...], part: int) -> Difference:
    """A difference of one of several parts spares the clauses on the others."""
    return replace(difference, spares=frozenset(parts) - {parts[part]}) if parts else difference


def _which(wanted: list[int], found: list[int], last: list[tuple[int, float]]) -> str:
    """Tell which rows differ. `kept`: the `last` query sees all missing rows too, so no append drops them.
    `future` or `past`: only rows newer, or older, than all wanted rows are seen besides. Empty otherwise."""
    more, missing = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    if missing:
        return "kept" if set(missing) <= {serial for serial, _ in last} else ""
    if not more or not wanted:
        return ""
    return "future" if min(more) > max(wanted) else "past" if max(more) < min(wanted) else ""


def seen(names: list[int], mask: Array | None, at: tuple[int, int], query: int) -> list[tuple[int, float]] | None:
    """The rows that a query sees, each with its score, repeated rows too, or None if the mask does not fit."""
    if mask is None:
        return [(s, 0.0) for s in names]
    if mask.ndim != 4 or mask.shape[3] not in (1, len(names)) or query >= mask.shape[2]:
        return None
    row = mask[min(at[0], mask.shape[0] - 1), min(at[1], mask.shape[1] - 1), query]
    row = np.broadcast_to(row, (len(names),))
    if mask.dtype == bool:
        return [(s, 0.0) for s, allowed in zip(names, row, strict=True) if allowed]
    return [(s, float(x)) for s, x in zip(names, row, strict=True) if x != -np.inf]


def history_names(got: Step, hidden: Array, book: SerialBook) -> list[list[int]] | None:
    """The names of the rows in a history, as `one_name_each` gives them. In hidden slots anything may be."""
    rows = (got.arrays.get(f"history.{kind}") for kind in "kv")
    keys, values = (whole_buffer.without(array, hidden) for array in rows)
    return whole_buffer.with_spare(one_name_each(keys, values, book), hidden)


def words(names: list[int]) -> str:
    """Rows as people read them."""
    return " ".join(letters(s) for s in names) or "nothing"


def scored(seen: list[tuple[int, float]]) -> str:
    """What a query sees, as people read it."""
    return " ".join(letters(s) + (f"{x:+g}" if x else "") for s, x in sorted(seen)) or "nothing"
