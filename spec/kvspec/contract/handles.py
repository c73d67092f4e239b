"""What paged and bucketed caches have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from kvspec.contract.vocabulary import Pair


class Paged(Protocol):
    """What is opened as `page`: a pool of pages `[kv_heads, page_size, dim]`, and sequences with block tables."""

    def admit(self) -> int:
        """A new sequence of no rows: the lowest number not in use."""

    def fork(self, sequence: int, n: int) -> int:
        """A new sequence that shares the first n rows of another."""

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Append rows `[1, kv_heads, n, dim]` to a sequence."""

    def truncate(self, sequence: int, to: int) -> None:
        """Drop the rows of a sequence from `to` on."""

    def drop(self, sequence: int) -> None:
        """Give a sequence up."""

    def sequences(self) -> Sequence[int]:
        """The length of each sequence, up to the highest number in use; -1 for a number that is not."""

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of a sequence, `[kv_heads, n, dim]`."""

    def free_pages(self) -> int:
        """How many pages no sequence has."""

    def table(self, sequence: int) -> Sequence[int]:
        """The block table of a sequence: the pages it has, in order. Who claims less than storage may leave this
        out, and `references` with it."""

    def references(self) -> Sequence[int]:
        """In how many tables each page of the pool stands."""

    def gather(self, table: Sequence[int], n: int) -> Pair:
        """The first n rows, `[kv_heads, n, dim]`, through a block table that is handed in. Raises TypeError where
        an entry or n is no whole number."""

    def peek(self, page: int) -> Pair:
        """A page as it lies in the pool, `[kv_heads, page_size, dim]`; only a pool opened with `debug` says it."""


class Ran(NamedTuple):
    """Which graph ran, and on how much of it."""

    key: int
    """The bound it was compiled for; where the batch is larger than 1, batch << 32 | bound."""
    extent: tuple[int, int]
    """Rows that took part, and rows that the graph has for them."""


class Bucketed(Protocol):
    """What is opened as `bucket`: rows of all layers, on the host and in handles that are padded to a bound."""

    def prefill(self, keys: Any, values: Any) -> None:
        """The host's rows become these, `[layers, batch, kv_heads, n, dim]`; the handles are as they were."""

    def bind(self, refresh: bool) -> None:
        """Install handles as a step would that came now, and do no step. `refresh`: from the host's rows."""

    def decode(
        self, queries: Any, keys: Any, values: Any, splits: int, refresh: bool, past: int | None, out: Any = None
    ) -> Any:
        """One step of the graph: queries `[layers, batch, heads, 1, k_dim]` and one new row of each layer give the
        output `[layers, batch, heads, 1, v_dim]`. `past` is the length that the caller counts on, if it says so;
        `refresh` as for `bind`."""

    def block(self, queries: Any, keys: Any, values: Any, splits: int, past: int | None, out: Any = None) -> Any:
        """A block of n rows and queries, which commits nothing."""

    def unbind(self) -> None:
        """Forget the bounds the handles were installed for, never rows."""

    def sync(self) -> None:
        """The device's rows to the host."""

    def cut(self, to: int) -> None:
        """Make `to` the number of past rows."""

    def encode(self, keys: Any, values: Any) -> None:
        """Install rows for cross-attention, `[layers, batch, kv_heads, n, dim]`."""

    def cross(self, queries: Any, splits: int = 1, out: Any = None) -> Any:
        """Queries `[layers, batch, heads, n, k_dim]` over all of those: `[layers, batch, heads, n, v_dim]`."""

    def past(self) -> int:
        """Rows of each layer."""

    def bound(self) -> int | None:
        """The bound that the handles are installed for; None where there is none. A cache that claims less than
        storage may leave this out, and `handle` and `ran` with it."""

    def read(self, layer: int) -> Pair:
        """The past rows of a layer, `[batch, kv_heads, past, dim]`, wherever they are newest."""

    def host(self, layer: int) -> Pair:
        """The host's rows of a layer, `[batch, kv_heads, n, dim]`."""

    def handle(self, layer: int) -> Pair | None:
        """A layer's handle as it lies on the device, `[batch, kv_heads, rows, dim]`: the rows of its bound, then
        those that the last graph wrote behind them. None where nothing was installed yet."""

    def ran(self) -> Ran:
        """What ran last; asked for right after a decode or a block of one row or more."""
