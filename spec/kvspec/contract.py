"""The contract an adapter implements. No base class: whatever has these methods is an adapter.

An adapter says what it is (`describe`) and opens caches (`open`). A cache of the profile `growing` or `ring`
has the methods of `Cache`; those of `Masking` are owed by who declares the profile `mask`, those of
`Snapshotting` by who declares `snapshot`. Arrays at this boundary are host arrays (numpy).

Every method either does the whole of its work, or raises `Refused` or `Unsupported` and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, cast

from kvspec.errors import BadInput
from kvspec.geometry import CACHES, DTYPES, Array, Config
from kvspec.masks import Logical

PROFILES = ("growing", "ring", "mask", "snapshot")
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


class Adapter(Protocol):
    """What stands for an engine."""

    def describe(self) -> Mapping[str, Any]:
        """What it is and claims, as JSON: see `Description`."""

    def open(self, profile: str, config: Config) -> Cache:
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
    _want(bool(set(CACHES) & set(claims)), f"profiles must hold one of {', '.join(CACHES)}")
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
