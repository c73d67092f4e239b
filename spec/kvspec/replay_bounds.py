"""Bounds on the cost of replaying a trace: its file may be hostile and must not make the reader allocate freely.

Costs are upper bounds, counted before the replay, as if nothing were refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvspec.errors import BadInput
from kvspec.geometry import Config, encoded_layers, still, valid
from kvspec.registry import CACHES
from kvspec.rows import form_rows
from kvspec.rows.legible import form_of
from kvspec.rows.serials import largest, places

LARGEST_BYTES = 64 << 20
"""Bytes of rows that caches may take or allocate, all together."""
LARGEST_ROWS = 1 << 20
"""Rows that a trace may append, counted for each head of each sequence."""
LARGEST_SAVED = 256 << 20
"""Bytes that snapshots may hold, all together."""
LARGEST_LOOK = 1 << 22
"""Pairs of a query and a row that one step may have to look at."""

MOST_SEQUENCES = 256
"""Sequences that a ragged cache may have in a trace."""

LARGEST_BATCH = 32
"""Sequences a batch may have unless configured otherwise."""

LEAST_LATENT = 3
"""Elements that the value of a latent row must have, so that it is not taken for a row that is not latent."""

FLOAT = 4
"""Bytes of an element of a query and of an output."""


@dataclass
class Budget:
    """The cost of a trace so far."""

    bytes: int = 0
    rows: int = 0
    saved: int = 0
    positions: int = 0
    queries: int = 0
    widest: int = 1
    seen: bool = True
    """Whether the operation at hand is observed: no mask is made of one that is not."""
    sequences: dict[str, int] = field(default_factory=dict)
    """Sequences of the batch of each store, and of each ragged cache."""
    tokens: dict[tuple[str, int | None], int] = field(default_factory=dict)
    """Of each pool that finds rows by content: the tokens of the longest request, and by the number of a sequence
    those that it was given more."""

    def open(self, kind: str, config: Config, name: str, where: str) -> None:
        """Count what a cache allocates: at most one step of rows beyond its input, or all its rows."""
        if not valid(config):
            return
        self.widest = max(self.widest, config.batch)
        if config.padding is not None:
            self.sequences[name] = config.batch
        slots = min(config.step, config.window or config.step) if kind in CACHES else 0
        self.bytes += (slots + (config.capacity or 0) + _stored(config)) * config.row_bytes
        self._within(where)

    def batch(self, name: str, config: Config, m: int, most: int | None, where: str) -> None:
        """Count a batch of m sequences; a batch over the limit is refused and costs nothing."""
        if not valid(config) or not 1 <= m <= (LARGEST_BATCH if most is None else most):
            return
        self.sequences[name] = max(m, self.sequences.get(name, 0))
        self.bytes += m * _stored(config) * config.row_bytes
        self._within(where)

    def append(self, config: Config, rows: Config, n: int, where: str) -> None:
        """Count rows of some geometry, of tokens or of an encoder, for each layer of a cache of this config."""
        layers = max(1, config.layers or 1, encoded_layers(config))
        self.bytes += n * layers * rows.row_bytes
        self.rows += n * layers * rows.batch * rows.kv_heads
        self.positions += n * layers
        self.queries = max(self.queries, n if self.seen else 0)
        self._within(where)
        if self.seen:
            self.look(1, where)
        if valid(config):
            self._named(config, where)

    def request(self, name: str, config: Config, sequence: int | None, n: int, where: str) -> None:
        """Count the rows of all tokens of a request. A new request has those it brings. Another one has at most
        those of the longest request, and all that its number was given more."""
        longest, more = self.tokens.get((name, None), 0), self.tokens.get((name, sequence), 0)
        self.tokens[name, sequence] = max(longest, n) if sequence is None else more + n
        self.append(config, config.changed(batch=1), n if sequence is None else longest + more + n, where)

    def _named(self, config: Config, where: str) -> None:
        """Hold that the name of each row fits into the row."""
        dim = min(config.k_dim, config.v_dim)
        if self.positions > largest(dim):
            raise BadInput(f"{where}: rows of {dim} elements can name only {largest(dim)}; the trace appends more")
        beginning = still(config)
        if 0 < beginning < LEAST_LATENT:
            raise BadInput(f"{where}: latent rows are named by {LEAST_LATENT} elements of values at least")
        for kind, width in (("k", beginning or config.k_dim), ("v", config.v_dim)):
            form = None if beginning and kind == "v" else form_of(config, kind)
            if form is not None and self.positions > (names := form_rows.most(form, width)):
                raise BadInput(f"{where}: rows of {width} elements in {config.form} can name only {names}")
        heads, sequences = places(dim)
        if config.kv_heads > heads or config.batch > sequences:
            most = f"{heads} heads and {sequences} sequences"
            raise BadInput(f"{where}: rows of {dim} elements can name only {most}; the cache has more")

    def step(self, name: str, config: Config, rows: Config, where: str) -> None:
        """Count one row for each sequence of a store's batch, in each layer."""
        for _ in range(self.sequences.get(name, 1)):
            self.append(config, rows, 1, where)

    def arrange(self, name: str, now: int, config: Config, where: str) -> None:
        """Count the sequences that a ragged cache then has; each may have all rows appended so far."""
        if now > MOST_SEQUENCES:
            raise BadInput(f"{where}: the cache may have {now} sequences; a trace has at most {MOST_SEQUENCES}")
        self.sequences[name] = now
        self.bytes += now * self.positions * config.changed(batch=1).row_bytes
        self._within(where)

    def share(self, config: Config, n: int, where: str) -> None:
        """Count a sequence that shares rows of another: it is observed like any other but adds no rows."""
        rows = min(max(0, n), self.positions)
        self.bytes += rows * config.row_bytes
        self.rows += rows * config.kv_heads
        self._within(where)

    def gather(self, config: Config, entries: int, n: int, where: str) -> None:
        """Count rows through a table; no page has more rows than the page size."""
        self.saved += min(max(0, n), entries * self.positions) * config.row_bytes
        self._saved_within(where)

    def save(self, where: str) -> None:
        """Count a snapshot: no larger than all rows appended so far."""
        self.saved += self.bytes
        self._saved_within(where)

    def _saved_within(self, where: str) -> None:
        if self.saved > LARGEST_SAVED:
            raise BadInput(f"{where}: the snapshots of the trace may hold more than {LARGEST_SAVED} bytes")

    def ask(self, name: str, op: Mapping[str, Any], config: Config, where: str) -> None:
        """Count queries in each head, of every sequence and layer, and their outputs; they may see every row."""
        queries = max(op.get("n", 0), op.get("q_rows") or 0, 0 if "n" in op else 1)
        heads, layers = op.get("heads", max(0, config.kv_heads)), max(1, config.layers or 1)
        sequences = max(0, config.batch, op.get("q_batch") or 0, self.sequences.get(name, 0))
        widths = (max(0, d, op.get(n) or 0) for d, n in ((config.k_dim, "q_dim"), (config.v_dim, "out_dim")))
        rows = queries, max(queries, op.get("out_rows") or 0)
        elements = sum(n * width for n, width in zip(rows, widths, strict=True))
        self.bytes += layers * sequences * heads * elements * FLOAT
        self._within(where)
        self.queries = max(self.queries, queries)
        self.look(max(1, heads) * layers, where)

    def look(self, heads: int, where: str) -> None:
        """Count what each query of an append sees, in these heads."""
        if self.widest * heads * self.queries * self.positions > LARGEST_LOOK:
            raise BadInput(f"{where}: queries, rows, batch and heads make more than {LARGEST_LOOK} pairs")

    def _within(self, where: str) -> None:
        if self.bytes > LARGEST_BYTES:
            raise BadInput(f"{where}: the trace needs more than {LARGEST_BYTES} bytes of rows")
        if self.rows > LARGEST_ROWS:
            raise BadInput(f"{where}: the trace appends more than {LARGEST_ROWS} rows, heads and sequences counted")


def _stored(config: Config) -> int:
    """Count the rows of a store over all layers, or of a pool over all pages. Of handles, count the rows at the
    largest bound, twice: one set may replace the other."""
    bound = max((int(word) + 1 for word in (config.bounds or "").split("-") if word), default=0)
    each_layer = max(0, config.max_len or 0) + 2 * bound
    return max(0, config.layers or 0) * each_layer + (config.pages or 0) * (config.page_size or 0)
