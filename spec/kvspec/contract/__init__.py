"""The contract an adapter implements. There is no base class: any object with these methods is an adapter.

An adapter says what it is (`describe`) and opens caches (`open`). A `growing`, `ring` or `bounded` cache has the
methods of `Cache`, a `sink` those of `Positioned` and `Keeping` too. A `copy` buffer has those of `Buffer`, a
`store` those of `Store`, a `page` cache those of `Paged`. A `ragged` cache has those of `Ragged`, a `bucket` cache
those of `Bucketed`, a `layers` cache those of `Layered`, a `keyed` pool those of `PrefixCache`. Further chapters
need further methods. A cache needs those of `Masking` (chapter `mask`), `Snapshotting` (`snapshot`), `Questioning`
(`questions`) and `Planning` (`mem`). It needs those of `Packing` (`parcels`) and `Attending` (`attention`), which
paged caches need too, and stores `Attending`. A pool whose rows are on their way needs those of `Transferring`
(`parcels`), a store those of `Batching` (`batch`). The adapter itself needs those of `Speculating` (`draft`),
`Fitting` (`mem`), `Rotating` (`rope`), `Metered` (`residency`). Arrays at this boundary are host arrays (numpy),
what the adapter's own `place` made of them, or arrays of its engine (`OwnArrays`). Calls may return before their
work is done, if it can be waited for (`Asynchronous`).

Every method either does all of its work, or raises `Refused` or `Unsupported` and changes nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvspec.chapters import CHAPTERS
from kvspec.chapters.record import METERED
from kvspec.contract.description import Claim, Description, description
from kvspec.contract.vocabulary import LEVELS, Lengths, Level, Readable
from kvspec.geometry import Pair

if TYPE_CHECKING:
    from kvspec.contract.adapters import Adapter, Asynchronous, Fitting, Metered, OwnArrays, Planning
    from kvspec.contract.attention import Attending, AttendingBatch, Attention, CapturedAttention, Rope, Rotating
    from kvspec.contract.caches import (
        Buffer,
        Cache,
        Keeping,
        Masking,
        Packing,
        Positioned,
        Questioning,
        Round,
        Snapshot,
        Snapshotting,
        Speculating,
        Transferring,
    )
    from kvspec.contract.pools import Bucketed, Paged, PrefixCache, Ran, Request
    from kvspec.contract.stores import Batching, Captured, Layered, Ragged, Store

_METHODS = (
    "kvspec.contract.adapters",
    "kvspec.contract.attention",
    "kvspec.contract.caches",
    "kvspec.contract.pools",
    "kvspec.contract.stores",
)
"""The modules that say which methods there are. Most of the suite asks only what an adapter claims."""


def __getattr__(name: str) -> Any:
    """Give what one of these modules has by this name, which is read when it is first asked for."""
    for module in _METHODS:
        found = import_module(module)
        if getattr(found.__dict__.get(name), "__module__", "") == found.__name__:
            return found.__dict__[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
