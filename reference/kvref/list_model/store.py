"""The list model of a store: for each layer the list of all that was ever written to it, and a length.

The row at a position is the one written there last; where nothing was written since the layer was cleared, zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvref.cite import cite
from kvref.list_model import batch
from kvspec import fingerprint as sums
from kvspec import rows
from kvspec.geometry import Config, same_geometry
from kvspec.refusals import common

UNKNOWN = -4
"""Stands for a row that has no serial: one that was changed on its way through a host snapshot."""


@dataclass
class Layer:
    """One layer: what was written where, in order, and up to where its rows are live."""

    writes: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0

    def row(self, position: int) -> int:
        """The serial of the row at a position: the newest that was written there."""
        return next((serial for at, serial in reversed(self.writes) if at == position), rows.ZEROED)

    def live(self) -> list[int]:
        """The serials of the live rows."""
        return [self.row(position) for position in range(self.length)]


@dataclass(frozen=True)
class Saved:
    """A host snapshot: serials of each layer's rows, how many values if that is another number; their geometry."""

    layers: list[list[int]]
    config: Config
    values: int | None = None


class Listed:
    """One store. `odd` are the serials of rows of arbitrary bits, `rule` why rows are zeros that nobody wrote."""

    kind = "store"

    def __init__(self, config: Config) -> None:
        self._refuse(config)
        self._open(config, "STORE-2")
        self.odd: set[int] = set()
        self.batch: batch.Sequences | None = None

    def _refuse(self, config: Config) -> None:
        if not common.valid(config) or config.batch > 1 or config.layers is None or config.max_len is None:
            raise common.config("STORE-1", self.kind, config)

    def _open(self, config: Config, rule: str) -> None:
        self.config, self.began = config, object()
        self._empty([Layer() for _ in range(config.layers or 0)], rule)
        self.room = config.max_len or 0

    def _empty(self, layers: list[Layer], rule: str) -> None:
        """These layers and nothing else; `rule` says why all other rows are zeros."""
        cite(rule)
        self.layers, self.rule = layers, rule

    def key(self) -> tuple[int, ...]:
        """The state up to renaming rows: the lengths."""
        return tuple(layer.length for layer in self.layers)

    def init(self, config: Config) -> bool:
        """Whether it began anew."""
        self._refuse(config)
        anew = not same_geometry(config, self.config)
        if anew:
            self._open(config, "STORE-26")
            batch.ended(self.batch)
            self.batch = None
        else:
            cite("STORE-25")
        return anew

    def meant(self, layer: int | None) -> list[Layer]:
        """The layers that an operation is for."""
        if layer is None:
            return self.layers
        if layer not in range(len(self.layers)):
            raise common.layer("STORE-9", layer, len(self.layers))
        return [self.layers[layer]]

    def nothing(self) -> None:
        """An append of no rows."""
        cite("STORE-7")

    def append(self, layer: int | None, serials: list[list[int]]) -> None:
        """Serials for each of the layers meant."""
        meant = self.meant(layer)
        for i, (each, new) in enumerate(zip(meant, serials, strict=True)):
            if each.length + len(new) > self.room:
                raise common.overflow("STORE-8", layer or i, each.length, len(new), self.room)
        cite("STORE-4" if layer is not None else "STORE-3", "STORE-5")
        for each, new in zip(meant, serials, strict=True):
            each.writes += [(each.length + i, serial) for i, serial in enumerate(new)]
            each.length += len(new)

    def set_length(self, layer: int, n: int) -> None:
        """One layer's length."""
        (meant,) = self.meant(layer)
        if n not in range(self.room + 1):
            raise common.length("STORE-17", layer, n, self.room)
        cite("STORE-16", *([self.rule] if n > meant.length else []))
        meant.length = n

    def rollback(self, to: int) -> None:
        """No layer is longer than this."""
        if to < 0:
            raise common.rollback("STORE-15", to)
        cite("STORE-14", "STORE-16")
        for layer in self.layers:
            layer.length = min(layer.length, to)

    def reset(self) -> None:
        """Lengths only."""
        cite("STORE-12")
        for layer in self.layers:
            layer.length = 0

    def zero(self) -> None:
        """As if nothing had been written."""
        self._empty([Layer() for _ in self.layers], "STORE-13")

    def save(self) -> Saved:
        """What is live now."""
        cite("STORE-18", "STORE-19")
        return Saved([layer.live() for layer in self.layers], self.config)

    def load(self, saved: Saved) -> None:
        """As if nothing but these rows had been written."""
        self._loadable(saved)
        cite("STORE-20", "STORE-24")
        self._empty([Layer(list(enumerate(serials)), len(serials)) for serials in saved.layers], "STORE-21")

    def _loadable(self, saved: Saved) -> None:
        if len(saved.layers) != len(self.layers):
            raise common.saved_layers("STORE-22", len(saved.layers), len(self.layers))
        same = same_geometry(_loose(saved.config), _loose(self.config))
        if not same or any(saved.values not in (None, len(serials)) for serials in saved.layers):
            raise common.geometry("STORE-22", "load")
        for i, serials in enumerate(saved.layers):
            if len(serials) > self.room:
                raise common.saved_length("STORE-23", i, len(serials), self.room)

    def fingerprint(self, position: int) -> str | None:
        """The sum that the row at a position of layer 0 has; None where the row is not known."""
        if position not in range(self.room):
            raise common.fingerprint("STORE-28", position, self.room)
        cite("STORE-27", *(["STORE-16", self.rule] if position >= self.layers[0].length else []))
        serial = self.layers[0].row(position)
        if serial == UNKNOWN:
            return None
        if serial == rows.ZEROED:
            return sums.text(0.0)
        make = rows.bits if serial in self.odd else rows.legible
        return sums.text(sums.exact(make(self.config, "k", serial, 1)[0, 0, 0]))


def _loose(config: Config) -> Config:
    """A geometry whatever its number of layers and its room."""
    return config.changed(layers=None, max_len=None)
