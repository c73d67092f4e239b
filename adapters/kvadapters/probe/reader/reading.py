"""What is read off one query of one layer, and what is wrong with it, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from kvadapters.probe.views import View


class Row(Struct, frozen=True):
    """Rows of one content id that a query saw. `weight` is the weight of all of them, as the seen heads show it.
    If it is one row, `distances` are those that fit what the distance heads show."""

    token: int
    count: int
    positions: tuple[int, ...]
    """Where the text has this id. Empty: nowhere."""
    weight: float
    distances: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    """If its key is wrong: the ids whose key it may be."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its sort, the rows that it is about, and a line of words."""

    sort: str
    rows: tuple[int, ...]
    words: str


@dataclass(frozen=True)
class Reading:
    """What one query of one layer saw, as far as the answers tell."""

    layer: int
    view: View
    query: int
    rows: tuple[Row, ...] = ()
    seen: int | None = None
    """The number of rows it saw. None if that cannot be told."""
    share: float = 1.0
    """What the weights sum to."""
    share_error: float = 0.0
    """How far this may be off, relative to it."""
    fingerprint: float | None = None
    """How far the fingerprint is from the one that these rows must give; None if that cannot be told."""
    findings: tuple[Finding, ...] = ()
    untold: tuple[str, ...] = ()
    """What could not be told, and why."""

    @property
    def place(self) -> str:
        """Name the place."""
        return f"layer {self.layer} ({self.view}), query {self.query}"


SORTS = {
    "extra": "sees what it must not see",
    "missing": "does not see what it must see",
    "weights": "weighs rows unequally",
    "distance": "sees a row at a wrong distance",
    "match": "reads a value under the key of another token",
    "share": "gives all rows together a wrong share",
    "context": "sees a row that was computed in another context",
}
"""The sorts of findings."""


@dataclass(frozen=True)
class Judgement:
    """The readings of a text's queries, and what they say together."""

    tokens: Sequence[int]
    readings: tuple[Reading, ...]
    lost: tuple[str, ...] = ()
    """What this architecture cannot show."""
    notes: tuple[str, ...] = field(default=())
    """What findings have in common."""

    @property
    def wrong(self) -> list[Reading]:
        """The readings with findings, the lowest layer first."""
        return sorted((r for r in self.readings if r.findings), key=lambda r: (r.layer, r.query))

    @property
    def untold(self) -> Mapping[str, int]:
        """What could not be told, and of how many queries."""
        found = dict[str, int]()
        for text in (text for reading in self.readings for text in reading.untold):
            found[text] = found.get(text, 0) + 1
        return found

    def told(self, most: int = 8) -> str:
        """Write it in lines: at most so many findings of each layer, then what findings have in common, then what
        cannot be told."""
        lines = [self._headline(), *self._found(most), *self.notes]
        lines += [
            f"cannot be told: {text} ({count} of {len(self.readings)})" for text, count in self.untold.items()
        ]
        return "\n".join([*lines, *(f"cannot be shown: {text}" for text in self.lost)])

    def _headline(self) -> str:
        layers = {reading.layer for reading in self.readings}
        queries = {reading.query for reading in self.readings}
        what = f"{len(queries)} queries in {len(layers)} layers"
        if not self.wrong:
            return f"{what}: every query sees what it must see"
        wrong = sorted({reading.layer for reading in self.wrong})
        counted = "1 reading is" if len(self.wrong) == 1 else f"{len(self.wrong)} readings are"
        return f"{what}: {counted} wrong, in layer {', '.join(map(str, wrong))}"

    def _found(self, most: int) -> list[str]:
        lines = []
        for layer in sorted({reading.layer for reading in self.wrong}):
            found = [f"{r.place}: {f.words}" for r in self.wrong if r.layer == layer for f in r.findings]
            lines += found[:most]
            if len(found) > most:
                lines += [f"layer {layer}: {len(found) - most} more"]
        return lines
