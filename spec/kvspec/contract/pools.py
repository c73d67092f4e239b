"""The methods of pools of pages and of compiled graphs, and the requests that a pool finds again by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kvspec.geometry import Pair
from kvspec.operations.texts import tokens_in


class Pool(Protocol):
    """What any pool of pages shows: sequences, their rows and their block tables."""

    def sequences(self) -> Sequence[int]:
        """Give the length of each sequence, up to the highest number in use; -1 for a number not in use."""

    def read_sequence(self, sequence: int) -> Pair:
        """Read the rows of a sequence, `[kv_heads, n, dim]`."""

    def free_pages(self) -> int:
        """Count the pages that no sequence has."""

    def table(self, sequence: int) -> Sequence[int]:
        """Give the block table of a sequence: its pages, in order. Adapters below level storage may leave out this
        method and `references`."""

    def references(self) -> Sequence[int]:
        """Count, for each page of the pool, the tables that contain it."""


class Paged(Pool, Protocol):
    """A cache opened as `page`: a pool of pages `[kv_heads, page_size, dim]`, and sequences with block tables."""

    def admit(self) -> int:
        """Add a sequence of no rows; return its number, the lowest not in use."""

    def fork(self, sequence: int, n: int) -> int:
        """Add a sequence that shares the first n rows of another; return its number."""

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Append rows `[1, kv_heads, n, dim]` to a sequence."""

    def truncate(self, sequence: int, to: int) -> None:
        """Drop the rows of a sequence from `to` on."""

    def drop(self, sequence: int) -> None:
        """Drop a sequence and free its number."""

    def gather(self, table: Sequence[int], n: int) -> Pair:
        """The first n rows, `[kv_heads, n, dim]`, through the given block table. Raises TypeError if an entry or n
        is not a whole number."""

    def peek(self, page: int) -> Pair:
        """Give a page's raw content, `[kv_heads, page_size, dim]`; only a pool opened with `debug` offers this."""


class Ran(NamedTuple):
    """The graph that ran, and how much of it was used."""

    key: int
    """The bound it was compiled for; for a batch larger than 1, batch << 32 | bound."""
    extent: tuple[int, int]
    """Rows that were used, and rows that the graph has room for."""


class Bucketed(Protocol):
    """A cache opened as `bucket`: rows of all layers, on the host and in handles padded to a bound."""

    def prefill(self, keys: Any, values: Any) -> None:
        """Replace the host's rows by these, `[layers, batch, kv_heads, n, dim]`; the handles do not change."""

    def bind(self, refresh: bool) -> None:
        """Install handles as the next step would, without the step. `refresh`: take the host's rows."""

    def decode(
        self, queries: Any, keys: Any, values: Any, splits: int, refresh: bool, past: int | None, out: Any = None
    ) -> Any:
        """Run one step of the graph on queries `[layers, batch, heads, 1, k_dim]` and one new row of each layer;
        return the output `[layers, batch, heads, 1, v_dim]`. `past` is the length that the caller expects, if
        given; `refresh` as for `bind`."""

    def block(self, queries: Any, keys: Any, values: Any, splits: int, past: int | None, out: Any = None) -> Any:
        """Run a block of n rows and queries, which commits nothing."""

    def unbind(self) -> None:
        """Forget the bounds of the installed handles, never rows."""

    def sync(self) -> None:
        """Copy the device's rows to the host."""

    def cut(self, to: int) -> None:
        """Reduce the past rows to `to`."""

    def encode(self, keys: Any, values: Any) -> None:
        """Install rows for cross-attention, `[layers, batch, kv_heads, n, dim]`."""

    def cross(self, queries: Any, splits: int = 1, out: Any = None) -> Any:
        """Attend with queries `[layers, batch, heads, n, k_dim]` over all of those rows; return `[layers, batch,
        heads, n, v_dim]`."""

    def past(self) -> int:
        """Count the past rows of each layer."""

    def bound(self) -> int | None:
        """Give the bound that the handles are installed for; None if there is none. A cache that claims less than
        storage may leave this out, and `handle` and `ran` with it."""

    def read(self, layer: int) -> Pair:
        """Read the past rows of a layer, `[batch, kv_heads, past, dim]`, from where they are newest."""

    def host(self, layer: int) -> Pair:
        """Read the host's rows of a layer, `[batch, kv_heads, n, dim]`."""

    def handle(self, layer: int) -> Pair | None:
        """Read a layer's raw handle on the device, `[batch, kv_heads, rows, dim]`: the rows of its bound, then
        those that the last graph wrote behind them. None if nothing was installed yet."""

    def ran(self) -> Ran:
        """Tell what ran last; asked only right after a decode or block of one row or more."""


Media = tuple[tuple[str, int], ...]
"""Items such as images by name, each with the position of the token that it stands behind."""


def media_in(text: str | None) -> Media:
    """Read the items of an argument, `p@2,q@5`."""
    items = (item.split("@") for item in (text or "").split(",") if item)
    return tuple(sorted((name, int(at)) for name, at in items))


class Request(NamedTuple):
    """All that the rows of a request depend on, and its salt, which keeps it apart from others with equal rows."""

    tokens: tuple[int, ...]
    adapter: str = ""
    """The adapter of weights that it runs under; none if it is empty."""
    salt: str = ""
    """Only requests of one salt share rows; none if it is empty."""
    media: Media = ()

    @classmethod
    def of(cls, op: Mapping[str, Any]) -> Request:
        """Read the request of an operation."""
        adapter, salt = op.get("adapter") or "", op.get("salt") or ""
        return cls(tokens_in(op["tokens"]), adapter, salt, media_in(op.get("media")))

    def longer(self, tokens: Sequence[int]) -> Request:
        """Make the request with more tokens behind."""
        return self._replace(tokens=(*self.tokens, *tokens))

    def depends(self, p: int) -> tuple[Any, ...]:
        """Give all that the row of position p depends on: the adapter, the tokens and the items up to p."""
        return self.adapter, self.tokens[: p + 1], tuple(item for item in self.media if item[1] <= p)


class PrefixCache(Pool, Protocol):
    """A pool opened as `keyed`. Rows that are handed in are `[1, kv_heads, n, dim]` for all n tokens of a request;
    the pool stores those of the tokens that it computes, and no others. `read_sequence` gives the rows of proposed
    tokens too."""

    def match(self, request: Request) -> int:
        """Say how many of the first tokens have rows that were computed for them; change nothing."""

    def request(self, request: Request, chunk: int | None, keys: Any, values: Any) -> tuple[int, int]:
        """Begin a sequence with the rows that are found, and compute the rest, at most `chunk` tokens of it. Return
        its number, the lowest not in use, and how many rows were found."""

    def compute(self, sequence: int, n: int, keys: Any, values: Any) -> None:
        """Compute the next n tokens of a request, or as many as are left."""

    def answer(self, sequence: int, tokens: Sequence[int], keys: Any, values: Any) -> None:
        """Add tokens to a request, and compute all that are not computed."""

    def propose(self, sequence: int, tokens: Sequence[int], keys: Any, values: Any) -> None:
        """Compute tokens behind those of a request that nobody has chosen yet."""

    def accept(self, sequence: int, n: int) -> None:
        """Make the first n proposed tokens tokens of the request; drop the others."""

    def finish(self, sequence: int) -> None:
        """End a sequence, and keep its rows as long as their pages are not needed."""

    def abort(self, sequence: int) -> None:
        """End a sequence; what no other sequence has of it is found by nobody."""

    def evict(self, n: int) -> None:
        """Make n pages that no sequence has forget their rows, or as many as there are."""

    def clear(self) -> None:
        """Make all pages forget their rows."""
