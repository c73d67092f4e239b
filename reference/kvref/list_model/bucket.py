"""The list model of a bucketed cache: for each layer the list of its rows. What a query sees is all of them.

It knows three things about the device, because steps are refused for them. Are there handles? Does the host have
newer rows than they hold? Was a block left in them?
"""

from __future__ import annotations

from kvref.cite import cite
from kvref.list_model.attention import KnownRows
from kvref.list_model.attention_bound import Output
from kvref.list_model.rows import Out, Queries, Rows, fit
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.refusals import bucket, common

Serials = list[list[int]]
"""Those of each layer."""


class BucketModel:
    """One cache: `layers` are its past rows, `on_host` those of them that the host has."""

    kind = "bucket"

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        words = (config.bounds or "0").split("-")
        bounds = [int(word) for word in words]
        if not common.valid(config) or bounds[0] < 1 or bounds != sorted(set(bounds)):
            raise bucket.config("BUCKET-1", config)
        cite("BUCKET-1")
        self.config, self.bounds, self.largest, self.known = config, bounds, bounds[-1], known
        self.made_for: int | None = None
        """That of the handles; None where they are for none."""
        self.layers: Serials = [[] for _ in range(config.layers or 0)]
        self.on_host: Serials = self.layers
        self.installed = self.stale = self.blocked = False
        self.encoded: Serials | None = None

    def past(self) -> int:
        """Rows of each layer."""
        return len(self.layers[0])

    def key(self) -> tuple[int | bool | None, ...]:
        """The state up to renaming rows."""
        encoded = None if self.encoded is None else len(self.encoded[0])
        return self.past(), len(self.on_host[0]), self.installed, self.stale, self.blocked, encoded

    def read(self, layer: int) -> list[int]:
        """The past rows of a layer."""
        cite("BUCKET-21")
        return self.layers[layer]

    def host(self, layer: int) -> list[int]:
        """Those of them that the host has."""
        return self.on_host[layer]

    def _serials(self, keys: Rows, values: Rows) -> Serials:
        """The serials of what is handed over, layer upon layer. Refuses what does not fit."""
        front = len(self.layers), self.config.batch, self.config.kv_heads, keys.n
        if keys.n and not fit(keys, values, self.config, *front):
            raise Refused("CACHE-2", "rows of another geometry")
        cite(*([] if keys.n else ["BUCKET-26"]))
        return keys.serials if keys.n else [[] for _ in self.layers]

    def _demand(self, queries: Queries, n: int, splits: int, out: Out) -> None:
        """Refuse queries or an output that do not fit."""
        layers, batch, heads, rows, dim = queries.shape
        config = self.config
        right = heads and heads % config.kv_heads == 0 and splits > 0 and queries.dtype == "f32"
        right = right and (layers, batch, rows, dim) == (len(self.layers), config.batch, n, config.k_dim)
        if not right or (out is not None and out != ((*queries.shape[:4], config.v_dim), "f32", True)):
            raise Refused("BUCKET-6", "queries or an output that do not fit")

    def _output(self, queries: Queries, sees: list[list[list[int]]]) -> Output | None:
        """The outputs of queries that see so much, layer by layer."""
        through = [[[[dict.fromkeys(query, ()) for query in layer]]] * self.config.batch for layer in sees]
        return self.known.stacked(queries.array, through, self.config)

    def prefill(self, keys: Rows, values: Rows) -> None:
        """These rows replace all others."""
        serials = self._serials(keys, values)
        cite("BUCKET-2")
        self.layers = self.on_host = serials
        self.stale = self.installed

    def bind(self, refresh: bool) -> None:
        """Handles, and no step."""
        cite("BUCKET-13")
        self._ready(refresh)

    def _ready(self, refresh: bool) -> None:
        """Handles are there for a step; or it is refused."""
        if self.past() > self.largest:
            raise bucket.beyond("BUCKET-8", self.past(), self.largest)
        due = next(bound for bound in self.bounds if bound >= self.past())
        if refresh:
            self._refresh()
        elif self.stale:
            raise bucket.stale("BUCKET-9", self.past())
        elif self.blocked:
            raise Refused("BUCKET-16", "a block was not unbound")
        elif self.installed and due != self.made_for:
            cite("BUCKET-17" if self.made_for is None else "BUCKET-12")
        cite("BUCKET-8")
        self.installed, self.made_for = True, due

    def _refresh(self) -> None:
        if len(self.on_host[0]) < self.past():
            raise bucket.short("BUCKET-11", len(self.on_host[0]), self.past())
        cite("BUCKET-10")
        self.layers = self.on_host
        self.stale = self.blocked = False

    def _agreed(self, past: int | None) -> None:
        """Refuse a caller that counts on another length."""
        if past is not None and past != self.past():
            raise bucket.disagrees("BUCKET-7", past, self.past())

    def _seen(self, new: Serials) -> list[list[list[int]]]:
        """For each layer what each query of new rows sees: all past ones, and the new ones up to its own."""
        cite("BUCKET-29", *(["BUCKET-5"] if self.past() != self.made_for else []))
        cite(*["ROW-16"] * (self.config.form is not None))
        return [
            [before + own[: i + 1] for i in range(len(own))] for before, own in zip(self.layers, new, strict=True)
        ]

    def decode(
        self,
        queries: Queries,
        keys: Rows,
        values: Rows,
        splits: int,
        refresh: bool,
        past: int | None,
        out: Out = None,
    ) -> Output | None:
        """Append a row to each layer."""
        new = self._serials(keys, values)
        self._demand(queries, 1, splits, out)
        self._agreed(past)
        self._ready(refresh)
        output = self._output(queries, self._seen(new))
        cite("BUCKET-4")
        self.layers = [before + own for before, own in zip(self.layers, new, strict=True)]
        return output

    def block(
        self, queries: Queries, keys: Rows, values: Rows, splits: int, past: int | None, out: Out = None
    ) -> Output | None:
        """A block appends no row."""
        if not keys.n and not queries.shape[3]:
            cite("BUCKET-26")
            return None
        new = self._serials(keys, values)
        self._demand(queries, keys.n, splits, out)
        self._agreed(past)
        self._ready(False)
        output = self._output(queries, self._seen(new))
        cite("BUCKET-14", *(["BUCKET-15"] if self.past() + keys.n > self.largest else []))
        self.blocked = True
        return output

    def unbind(self) -> None:
        """Forget the rows that a block left."""
        cite("BUCKET-17")
        self.blocked, self.made_for = False, None

    def sync(self) -> None:
        """The host has all rows."""
        cite("BUCKET-18")
        self.on_host = self.layers

    def cut(self, to: int) -> None:
        """The first rows only, here and on the host."""
        if to not in range(self.past() + 1):
            raise bucket.cut("CACHE-7", to, self.past())
        cite("BUCKET-19")
        self.layers, self.on_host = ([rows[:to] for rows in layers] for layers in (self.layers, self.on_host))

    def encode(self, keys: Rows, values: Rows) -> None:
        """These rows replace all others."""
        serials = self._serials(keys, values)
        cite("BUCKET-24")
        self.encoded = serials

    def cross(self, queries: Queries, splits: int = 1, out: Out = None) -> Output | None:
        """Every query sees all of these."""
        n = queries.shape[3]
        if not n:
            cite("BUCKET-26")
            return None
        self._demand(queries, n, splits, out)
        if self.encoded is None:
            raise bucket.no_encoding("BUCKET-25")
        cite("BUCKET-22", "BUCKET-23", *["ROW-16"] * (self.config.form is not None))
        return self._output(queries, [[rows] * n for rows in self.encoded])


model = BucketModel
