"""Which rows a query saw too many or too few: counts of ids, beside those that its layer's view shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.reader.counts import Counts
from kvadapters.probe.reader.reading import Finding

Where = Mapping[int, Sequence[int]]
"""The positions of each id in a text."""


def compared(
    counts: Counts, likely: NDArray[np.int64], visible: NDArray[np.bool_], query: int, where: Where
) -> Iterator[Finding]:
    """Compare what a query saw with what it must see: `likely` counts ids, [ids], and `visible` rows, [n]."""
    extra, missing = counts.low - likely, likely - counts.high
    for sort, amount, wanted in (("extra", extra, False), ("missing", missing, True)):
        wrong = [(int(t), int(amount[t])) for t in np.flatnonzero(amount > 0)]
        rows = [(t, n, [p for p in where.get(t, ()) if visible[p] == wanted]) for t, n in wrong]
        if rows:
            about = tuple(sorted(p for _, n, places in rows if len(places) == n for p in places))
            yield Finding(sort, about, _words(sort, rows, query, where))


def _words(sort: str, rows: Sequence[tuple[int, int, list[int]]], query: int, where: Where) -> str:
    """Say which rows: an id, how many of it, and where they may be."""
    total = sum(n for _, n, _ in rows)
    counted = f"{total} row{'s' * (total > 1)}"
    verb = f"sees {counted} too many" if sort == "extra" else f"does not see {counted}"
    what = ", ".join(_named(t, n, places, query, t in where) for t, n, places in rows[:8])
    return f"{verb}: {what}" + (f" and {len(rows) - 8} more" if len(rows) > 8 else "")


def _named(token: int, count: int, places: list[int], query: int, here: bool) -> str:
    """Name rows of an id, as far as the text tells which they are."""
    if not here:
        return f"t{token}, which this text does not have"
    if not places:
        return f"t{token} {count} times more than it is there"
    if len(places) == count:
        return ", ".join(f"row {p} (t{token}, {_back(query - p)})" for p in places)
    return f"{count} of rows {', '.join(map(str, places))} (t{token})"


def _back(distance: int) -> str:
    return f"{distance} back" if distance > 0 else f"{-distance} ahead" if distance else "its own"


def vague(counts: Counts, tokens: Sequence[int]) -> Iterator[str]:
    """Say what counts do not tell."""
    if not counts.told:
        yield "how many rows of some ids were seen: the bounds allow several counts"
        return
    most, seen = Counter(tokens), np.flatnonzero(counts.low)
    factors = [total // counts.total for total in counts.others if total % counts.total == 0]
    if any(all(most[int(t)] >= factor * counts.low[t] for t in seen) for factor in factors):
        yield "counts of repeated ids, but for a common factor"
