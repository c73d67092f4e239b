"""The list model of a store: for each layer the list of all that was ever written to it, and a length.

The row at a position is the one written there last; where nothing was written since the layer was cleared, zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvref.cite import cite
from kvref.list_model import forms
from kvref.list_model.attention import KnownRows
from kvref.list_model.attention_store import AttendingModel
from kvref.list_model.batch import BatchModel
from kvref.list_model.layer import Layer
from kvref.list_model.rows import UNKNOWN, Rows, fit, fitting
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import Config, same_geometry
from kvspec.refusals import common
from kvspec.rows import fingerprint as sums
from kvspec.rows.serials import ZEROED

SavedLayer = tuple[Rows, Rows]
"""Keys and values of a layer's rows in a host snapshot, `[kv_heads, n, dim]`."""


class StoreModel(AttendingModel):
    """One store. `rule` says why rows that were never written are zeros."""

    kind = "store"

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        self._refuse(config)
        self.known = known
        self._open(config, "STORE-2")
        self.batched: BatchModel | None = None

    def _refuse(self, config: Config) -> None:
        if not common.valid(config) or config.batch > 1 or config.layers is None or config.max_len is None:
            raise common.config("CACHE-3", self.kind, config)
        forms.demand(config)

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

    def init(self, config: Config) -> None:
        """Initialise again, with new rows where the geometry is another one."""
        self._refuse(config)
        if same_geometry(config, self.config):
            cite("STORE-25")
            return
        self._open(config, "STORE-26")
        self.end_batch()

    def lengths(self) -> list[int]:
        """The length of each layer."""
        return [layer.length for layer in self.layers]

    def live(self) -> list[list[int]]:
        """The serials of each layer's live rows."""
        return [layer.live() for layer in self.layers]

    def read(self, layer: int) -> list[int]:
        """The serials of a layer's live rows."""
        return self.layers[layer].live()

    def meant(self, layer: int | None) -> list[Layer]:
        """The layers that an operation is for."""
        if layer is None:
            return self.layers
        if layer not in range(len(self.layers)):
            raise common.layer("STORE-9", layer, len(self.layers))
        return [self.layers[layer]]

    def append(self, keys: Rows, values: Rows, layer: int | None = None) -> None:
        """A new row for each of the layers meant, layer upon layer."""
        if not keys.n:
            cite("CACHE-1")
            return
        self.demand_rows(keys, values, layer, "append")
        self.write(keys.serials, layer)

    def demand_rows(self, keys: Rows, values: Rows, layer: int | None, what: str) -> list[Layer]:
        """The layers meant; refuse rows that do not fit them, or have no room."""
        meant = self.meant(layer)
        if not fit(keys, values, self.config, len(meant), self.config.kv_heads, keys.n):
            raise common.geometry("CACHE-2", what)
        for i, each in enumerate(meant):
            if each.length + keys.n > self.room:
                raise common.overflow("STORE-8", layer or i, each.length, keys.n, self.room)
        return meant

    def write(self, serials: Sequence[Sequence[int]], layer: int | None) -> None:
        """Rows behind those there are of each of the layers meant."""
        cite("STORE-4" if layer is not None else "STORE-3", "STORE-5")
        for each, new in zip(self.meant(layer), serials, strict=True):
            each.writes += [(each.length + i, serial) for i, serial in enumerate(new)]
            each.length += len(new)

    def plan(self, n: int) -> tuple[int, ...]:
        """How many bytes is for the adapter to say; whether there is room at all is known."""
        if n and max(self.lengths()) + n > self.room:
            raise Refused("STORE-8", "no room for these rows")
        cite("MEM-18")
        return ()

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

    def save(self) -> list[SavedLayer]:
        """What is live now."""
        cite("STORE-18", "STORE-19")
        return [self._saved(serials) for serials in self.live()]

    def _saved(self, serials: list[int]) -> SavedLayer:
        keys, values = ((self.config.kv_heads, len(serials), self.config.shape(kind, 0)[3]) for kind in "kv")
        return Rows([serials], keys, self.config.dtype), Rows([serials], values, self.config.dtype)

    def load(self, saved: Sequence[SavedLayer]) -> None:
        """As if nothing but these rows had been written."""
        self._demand_loadable(saved)
        cite("STORE-20", "STORE-24")
        cite(*["ROW-18"] * (self.config.form is not None and any(keys.n for keys, _ in saved)))
        layers = [[UNKNOWN] * keys.n if UNKNOWN in values.serials[0] else keys.serials[0] for keys, values in saved]
        self._empty([Layer(list(enumerate(serials)), len(serials)) for serials in layers], "STORE-21")

    def _demand_loadable(self, saved: Sequence[SavedLayer]) -> None:
        if len(saved) != len(self.layers):
            raise common.saved_layers("STORE-22", len(saved), len(self.layers))
        if not all(fitting(keys, values, self.config, self.config.kv_heads, keys.n) for keys, values in saved):
            raise common.geometry("STORE-22", "load")
        for i, (keys, _) in enumerate(saved):
            if keys.n > self.room:
                raise common.saved_length("STORE-23", i, keys.n, self.room)

    def fingerprint(self, position: int) -> float | None:
        """The sum that the row at a position of layer 0 has; None where the row is not known."""
        if position not in range(self.room):
            raise common.fingerprint("STORE-28", position, self.room)
        cite("STORE-27", *(["STORE-16", self.rule] if position >= self.layers[0].length else []))
        serial = self.layers[0].rows(position + 1)[position]
        if serial == ZEROED:
            return 0.0
        row = None if serial in self.known.key_errors else self.known.get(serial)
        return None if row is None else sums.exact(row[0][0, 0])


model = StoreModel
