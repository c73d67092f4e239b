"""The contract an adapter implements. No base class: whatever has these methods is an adapter.

An adapter says what it is (`describe`) and opens caches (`open`). What is opened as `growing` or `ring` has the
methods of `Cache`, as `copy` those of `Buffer`, as `store` those of `Store`, as `page` those of `Paged`, as
`bucket` those of `Bucketed`. Whoever declares more owes more: a cache the methods of `Masking` (profile `mask`),
`Snapshotting` (`snapshot`), `Planning` (`mem`), `Attending` (`attention`, stores and paged caches too); a store
those of `Batching` (`batch`); the adapter itself those of `Speculating` (`draft`), `Fitting` (`mem`), `Rotating`
(`rope`), `Metered` (`residency`). Arrays at this boundary are host arrays (numpy), or what the adapter's own
`place` made of them.

Every method either does the whole of its work, or raises `Refused` or `Unsupported` and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, cast

from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, KINDS, Array, Config
from kvspec.masks import CAUSAL, Logical

PROFILES = (
    *("growing", "ring", "mask", "snapshot", "copy", "draft", "store", "batch", "mem", "residency"),
    *("attention", "page", "bucket", "rope"),
)
"""The profiles there are; each has a chapter of its own."""

LEVELS = ("visible", "storage")
"""What a profile can be claimed at; `storage` includes `visible`."""

Level = Literal["visible", "storage"]
Readable = Literal["history", "view", "state"]


class Pair(NamedTuple):
    """Key rows `[B, H, T, k_dim]` and value rows `[B, H, T, v_dim]` of the same T positions."""

    keys: Array
    values: Array


class Lengths(NamedTuple):
    """The four lengths that engines confuse. What an adapter cannot know (below level storage) is None."""

    offset: int
    """Tokens appended and not rolled back: the next token's position."""
    retained: int | None = None
    """Rows that can still be read."""
    buffered: int | None = None
    """Rows on the storage axis that the state returns."""
    capacity: int | None = None
    """Rows allocated."""


class Snapshot(Protocol):
    """Rows saved from a cache: an immutable value until it is closed or consumed."""

    @property
    def start(self) -> int:
        """Position of the first row it holds."""

    @property
    def stop(self) -> int:
        """The offset it was taken at."""

    @property
    def nbytes(self) -> int:
        """Bytes of its rows; 0 once it is closed or consumed."""

    def close(self) -> None:
        """Return the memory. Refused when it is closed or consumed already."""


class Cache(Protocol):
    """A growing cache or a ring."""

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows, `[B, H, n, k_dim]` and `[B, H, n, v_dim]`, at positions offset..offset+n-1."""

    def read(self, what: Readable) -> Pair | None:
        """Rows, owned by the caller: the history (what the queries of the append just done attend to; asked for
        right after it only), the view, or the state."""

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""

    def can_rewind(self, to: int) -> bool:
        """Whether `rewind(to)` would be accepted now; changes nothing."""

    def rewind(self, to: int) -> None:
        """Make `to` the offset; rows at and beyond it are dead."""

    def free(self) -> None:
        """Return to never written."""


class Masking(Protocol):
    """What the profile `mask` adds to a cache."""

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the history of the append just before, its columns in the history's order.

        `[1 or B, 1 or heads, L, K or 1]`, boolean (True means may attend) or f32 (added to the scores);
        None when no mask is needed.
        """


class Snapshotting(Protocol):
    """What the profile `snapshot` adds to a cache. A snapshot that would hold nothing is None."""

    def snapshot(self, start: int) -> Snapshot | None:
        """Save the rows from position `start` on (a ring: all buffered rows)."""

    def restore(self, snapshot: Any, to: int) -> None:
        """Bring the cache to offset `to` with the rows saved; with None, a rewind."""

    def merge(self, parent: Any, child: Any) -> Snapshot | None:
        """One snapshot of two that meet; consumes both."""

    def split(self, snapshot: Any, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """Two snapshots of one, parent and child; consumes it."""


class Buffer(Protocol):
    """What is opened as `copy`: preallocated keys and values, `[capacity, kv_heads, dim]` in layout token,
    `[kv_heads, capacity, dim]` in layout head."""

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Copy the first n rows of sources `[rows, kv_heads, dim]`, of any dtype that narrows to the buffer's or is
        the same, into the slots from `at` on; with `sliding`, modulo the capacity."""

    def alias(self, source: int, n: int) -> tuple[Any, Any]:
        """The buffer's own n slots from `source` on, as a source for `copy`."""

    def read(self, what: Readable) -> Pair:
        """Copies of the whole buffers, in their own layout ("state" is all there is to read)."""


class Round(Protocol):
    """A round of speculation over one cache a layer. Layers count from 0, those that have no cache included."""

    def draft(self, layer: int, keys: Any, values: Any) -> None:
        """Append drafts, rows as for `Cache.append`, on one layer."""

    def read(self, layer: int) -> Pair | None:
        """The history of the draft just before on that layer: what its queries attend to."""

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """The mask for that history, as `Masking.mask`."""

    def offset(self, layer: int) -> int:
        """The position after the last draft on that layer."""

    def commit(self, n: int) -> None:
        """Keep the first n drafts on every layer, drop the others, end the round."""

    def abandon(self) -> None:
        """End the round; every draft is dropped."""


class Speculating(Protocol):
    """What the profile `draft` adds to an adapter."""

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """A round over these caches, None for a layer that has none."""


class Store(Protocol):
    """What is opened as `store`: for each layer keys and values `[kv_heads, max_len, dim]`, and a length."""

    def init(self, config: Config) -> None:
        """Initialise again."""

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        """Write rows `[layers, kv_heads, n, dim]` behind the length of every layer; or `[1, ...]` of one."""

    def lengths(self) -> Sequence[int]:
        """The length of each layer."""

    def read(self, layer: int) -> Pair:
        """The rows of a layer up to its length, `[kv_heads, length, dim]`."""

    def set_length(self, layer: int, n: int) -> None:
        """Set the length of a layer."""

    def rollback(self, to: int) -> None:
        """Lower the length of every longer layer to `to`."""

    def reset(self) -> None:
        """Every length to 0."""

    def zero(self) -> None:
        """Every length to 0, every row to zeros."""

    def save(self) -> Sequence[Pair]:
        """A snapshot on the host: for each layer rows `[kv_heads, length, dim]`, contiguous."""

    def load(self, saved: Sequence[Pair]) -> None:
        """Such a snapshot back, and its lengths."""

    def fingerprint(self, position: int) -> float:
        """The sum over the key row of layer 0, head 0, at a position."""


class Captured(Protocol):
    """A captured step of a batch."""

    def replay(self, keys: Any, values: Any) -> None:
        """Do it again, on these rows `[layers, m, kv_heads, dim]`."""


class Batching(Protocol):
    """What the profile `batch` adds to a store: m sequences, per layer `[m, kv_heads, max_len, dim]`."""

    def batch(self, m: int, most: int | None = None) -> None:
        """Allocate for m sequences, all of length 0; `most` is how many are allowed, if not 32."""

    def sequences(self) -> Sequence[int] | None:
        """The length of each sequence; None where there is no batch."""

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """The rows of a sequence in a layer, `[kv_heads, n, dim]`: up to its length, or what the layer holds."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Copy the store's first n rows into a sequence's place, of one layer or of all, and set its length."""

    def step(self, keys: Any, values: Any) -> None:
        """Append one row `[layers, m, kv_heads, dim]` to every sequence in every layer."""

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Lower the length of one sequence to `to`, if it is longer."""

    def reset_batch(self) -> None:
        """Every sequence's length to 0."""

    def free_batch(self) -> None:
        """Return the batch's memory."""

    def addresses(self) -> Sequence[int]:
        """Where the batch's buffers lie; empty where there is none."""

    def capture(self) -> Captured:
        """A step of this batch, captured."""


class Rope(NamedTuple):
    """How rows are turned: which elements together, the base of the frequencies, and how many elements of a row
    (None: all)."""

    pairing: Literal["norm", "neox"] = "neox"
    base: int = 10000
    dims: int | None = None


class Attention(NamedTuple):
    """What goes with queries: the mask they look through, in position order; into how many splits their tiles are
    parted; how queries and keys are turned first, at their positions."""

    through: Logical = CAUSAL
    splits: int = 1
    rope: Rope | None = None


class Attending(Protocol):
    """What the profile `attention` adds to caches, stores (`of`: the layer) and paged caches (the sequence)."""

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Append rows as `append` takes them, n of each sequence; then n queries `[B, heads, n, k_dim]` in f32, the
        first at the position of the first row, attend to what they see. The output `[B, heads, n, v_dim]` in f32 is
        `out` where that is given. B is 1 for stores and paged caches."""


class CapturedAttention(Protocol):
    """A captured attend of one row on a layer."""

    def replay(self, queries: Any, keys: Any, values: Any) -> Any:
        """Do it again, on these queries `[1, heads, 1, k_dim]` and rows `[1, kv_heads, 1, dim]`: the output."""


class AttendingBatch(Protocol):
    """What the profile `attention` adds to a store that has batches."""

    def attend_batch(self, queries: Any, layer: int, how: Attention, out: Any = None) -> Any:
        """A query `[m, heads, 1, k_dim]` at the last position of each sequence attends to what a layer holds of it:
        the output `[m, heads, 1, v_dim]`; zeros for a sequence of length 0."""

    def capture_attend(self, layer: int, heads: int, how: Attention) -> CapturedAttention:
        """An attend of one row on a layer of the store, captured."""


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
        """The block table of a sequence: the pages it has, in order. Who claims less than storage may leave this out,
        and `references` with it."""

    def references(self) -> Sequence[int]:
        """In how many tables each page of the pool stands."""

    def gather(self, table: Sequence[int], n: int) -> Pair:
        """The first n rows, `[kv_heads, n, dim]`, through a block table that is handed in."""

    def peek(self, page: int) -> Pair:
        """A page as it lies in the pool, `[kv_heads, page_size, dim]`; only a pool opened with `debug` says it."""


class Ran(NamedTuple):
    """Which graph ran, and on how much of it."""

    key: int
    """The bound it was compiled for; where the batch is larger than 1, batch << 32 | bound."""
    extent: tuple[int, int]
    """Rows that took part, and rows that the graph has for them."""


class Bucketed(Protocol):
    """What is opened as `bucket`: rows of all layers on the host and, padded to a bound, in the device's handles."""

    def fill(self, keys: Any, values: Any) -> None:
        """The host's rows become these, `[layers, batch, kv_heads, n, dim]`; the handles are as they were."""

    def bind(self, refresh: bool) -> None:
        """Install handles as a step would that came now, and do no step. `refresh`: from the host's rows."""

    def decode(
        self, queries: Any, keys: Any, values: Any, how: Attention, refresh: bool, past: int | None, out: Any = None
    ) -> Any:
        """One step of the graph: queries `[layers, batch, heads, 1, k_dim]` and one new row of each layer give the
        output `[layers, batch, heads, 1, v_dim]`. `past` is the length that the caller counts on, if it says so;
        `refresh` as for `bind`."""

    def block(self, queries: Any, keys: Any, values: Any, how: Attention, past: int | None, out: Any = None) -> Any:
        """A block of n rows and queries, which commits nothing."""

    def unbind(self) -> None:
        """Forget the bounds the handles were installed for, never rows."""

    def sync(self) -> None:
        """The device's rows to the host."""

    def cut(self, to: int) -> None:
        """Make `to` the number of past rows."""

    def encode(self, keys: Any, values: Any) -> None:
        """Install rows for cross-attention, `[layers, batch, kv_heads, n, dim]`."""

    def cross(self, queries: Any, how: Attention, out: Any = None) -> Any:
        """Queries `[layers, batch, heads, n, k_dim]` over all of those: `[layers, batch, heads, n, v_dim]`."""

    def past(self) -> int:
        """Rows of each layer."""

    def bound(self) -> int | None:
        """The bound that the handles are installed for; None where there is none."""

    def read(self, layer: int) -> Pair:
        """The past rows of a layer, `[batch, kv_heads, past, dim]`, wherever they are newest."""

    def host(self, layer: int) -> Pair:
        """The host's rows of a layer, `[batch, kv_heads, n, dim]`."""

    def handle(self, layer: int) -> Pair | None:
        """A layer's handle as it lies on the device, `[batch, kv_heads, rows, dim]`: the rows of its bound, then those
        that the last graph wrote behind them. None where nothing was installed yet."""

    def ran(self) -> Ran:
        """What ran last; asked for right after a decode or a block of one row or more."""


class Rotating(Protocol):
    """What the profile `rope` adds to an adapter."""

    def rotate(self, rows: Any, positions: Array, rope: Rope) -> Any:
        """Rows `[B, H, n, dim]` turned each by its position, `[n]` in i64: new rows of the same dtype."""


class Planning(Protocol):
    """What the profile `mem` adds to what is opened."""

    def plan(self, n: int) -> tuple[int, int]:
        """Bytes of rows allocated after an append of n rows, and at most at any moment of it."""

    def held(self) -> int:
        """Bytes of rows allocated now."""


class Fitting(Protocol):
    """What the profile `mem` adds to an adapter."""

    def fit(
        self, profile: str, config: Config, free: int, reserve: int | None, most: int | None
    ) -> tuple[int, bool]:
        """How many sequences of this config fit into `free` bytes, and whether even one does."""


class Metered(Protocol):
    """What the profile `residency` adds to an adapter."""

    def meter(self) -> Mapping[str, int]:
        """What was counted so far: see `METERED`."""

    def place(self, *arrays: Array) -> tuple[Any, ...]:
        """Copies on the device, to be handed to whatever takes rows, queries or an output."""

    def fetch(self, placed: Any) -> Array:
        """What an array on the device holds; counted as any download is."""


METERED = (
    "host_to_device",
    "device_to_host",
    "device_to_device",
    "launches",
    "allocations",
    "synchronisations",
)
"""What a meter counts: bytes each way, and how often."""


class Adapter(Protocol):
    """What stands for an engine."""

    def describe(self) -> Mapping[str, Any]:
        """What it is and claims, as JSON: see `Description`."""

    def open(self, profile: str, config: Config) -> Any:
        """A fresh cache. Raises Refused for a config no cache may have, Unsupported beyond what is declared."""


@dataclass(frozen=True)
class Claim:
    """What an adapter claims of one profile.

    `grows` (growing and ring): "step" if capacity follows the spec's growth rule row by row, else "free".
    `rewind` (ring): rows back to which it can rewind past the window, 0 as the spec demands, -1 without limit.
    """

    level: Level
    grows: Literal["step", "free"] = "free"
    rewind: int = 0


@dataclass(frozen=True)
class Description:
    """What `describe` says, checked. `limits` bound what can be opened and appended: None is no bound."""

    name: str
    profiles: Mapping[str, Claim]
    version: str = ""
    device: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = tuple(DTYPES)
    largest_append: int | None = None
    largest_batch: int | None = None
    known: Mapping[str, str] = field(default_factory=dict)
    """Clauses it is known to break (expected failures), each with the reason."""

    def claims(self, profile: str, level: str = "visible") -> bool:
        """Whether the profile is declared, at this level or above."""
        claim = self.profiles.get(profile)
        return claim is not None and LEVELS.index(claim.level) >= LEVELS.index(level)

    def supports(self, config: Config) -> bool:
        """Whether a valid config lies within the declared limits."""
        return config.dtype in self.dtypes and config.batch <= (self.largest_batch or config.batch)

    def at_most(self, level: Level) -> Description:
        """The same adapter, with no profile claimed above this level."""
        lower = {p: replace(c, level=min(c.level, level, key=LEVELS.index)) for p, c in self.profiles.items()}
        return replace(self, profiles=lower)

    def to_json(self) -> dict[str, Any]:
        """As it stands on the wire and in the run record."""
        return {
            "name": self.name,
            "version": self.version,
            "device": self.device,
            "details": dict(self.details),
            "profiles": {p: vars(c) for p, c in self.profiles.items()},
            "dtypes": list(self.dtypes),
            "limits": {"append": self.largest_append, "batch": self.largest_batch},
            "known": dict(self.known),
        }


def description(said: Any) -> Description:
    """Check what an adapter says of itself. Raises BadInput that names the field."""
    if not isinstance(said, Mapping):
        raise BadInput(f"describe: expected an object, found {said!r:.60}")
    known = {"name", "version", "device", "details", "profiles", "dtypes", "limits", "known"}
    for name in said:
        _want(name in known, f"unknown field {name!r:.40}; known: {', '.join(sorted(known))}")
    _want(isinstance(said.get("name"), str) and said["name"] != "", "name must be a text, not empty")
    for name in ("version", "device"):
        _want(isinstance(said.get(name, ""), str), f"{name} must be a text")
    for name in ("details", "known", "limits"):
        _want(isinstance(said.get(name, {}), Mapping), f"{name} must be an object")
    dtypes: Any = said.get("dtypes", list(DTYPES))
    _want(isinstance(dtypes, list | tuple) and len(dtypes) > 0, f"dtypes must list some of {', '.join(DTYPES)}")
    for d in dtypes:
        _want(d in DTYPES, f"unknown dtype {d!r:.40}; known: {', '.join(DTYPES)}")
    limits = said.get("limits", {})
    for name in limits:
        _want(name in ("append", "batch"), f"unknown limit {name!r:.40}; known: append, batch")
        ok = limits[name] is None or (type(limits[name]) is int and limits[name] >= 1)
        _want(ok, f"limit {name} must be a whole number above 0, or null")
    for clause, reason in said.get("known", {}).items():
        _want(isinstance(reason, str) and reason != "", f"known deviation {clause!r:.40} must give its reason")
    return Description(
        said["name"],
        _claims(said.get("profiles")),
        said.get("version", ""),
        said.get("device", ""),
        dict(said.get("details", {})),
        tuple(dtypes),
        limits.get("append"),
        limits.get("batch"),
        dict(said.get("known", {})),
    )


def _claims(profiles: Any) -> dict[str, Claim]:
    _want(isinstance(profiles, Mapping) and len(profiles) > 0, "profiles must be an object with at least one")
    claims = {p: _claim(p, c) for p, c in profiles.items()}
    _want(bool(set(KINDS) & set(claims)), f"profiles must hold one of {', '.join(KINDS)}")
    return claims


def _claim(profile: Any, claim: Any) -> Claim:
    _want(profile in PROFILES, f"unknown profile {profile!r:.40}; known: {', '.join(PROFILES)}")
    fields = {"level": claim} if isinstance(claim, str) else claim
    _want(isinstance(fields, Mapping), f"profile {profile} must be a level or an object with one")
    unknown = set(fields) - {"level", "grows", "rewind"}
    _want(not unknown, f"profile {profile}: unknown field {min(map(str, unknown), default='')!r:.40}")
    level = fields.get("level")
    _want(level in LEVELS, f"profile {profile}: level must be visible or storage, is {level!r:.40}")
    grows, rewind = fields.get("grows", "free"), fields.get("rewind", 0)
    _want(grows in ("step", "free"), f"profile {profile}: grows must be step or free, is {grows!r:.40}")
    _want(type(rewind) is int and rewind >= -1, f"profile {profile}: rewind must be -1 or more")
    _want(rewind == 0 or level == "visible", f"profile {profile}: at level storage rewind is 0")
    return Claim(cast(Level, level), cast(Any, grows), int(rewind))


def _want(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BadInput(f"describe: {otherwise}")
