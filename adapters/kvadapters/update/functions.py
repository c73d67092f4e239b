"""What an engine offers to `from_update`: functions on its caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvspec.geometry import Array, Config

Make = Callable[[Config], Any]
Update = Callable[..., tuple[Any, Any]]


@dataclass(frozen=True)
class Functions:
    """What an engine offers. Functions on a cache take the engine's cache first. Arrays are the engine's,
    `[B, H, n, dim]`."""

    make: Make
    """Make a fresh cache of a config."""
    update: Update
    """Take a cache, keys and values; append these rows, and return the keys and values that their queries attend
    to. If the caller counts positions, the last argument is the position of the first row. An engine that attends
    by itself returns anything, and is claimed `without=("history",)`; then `view` shows its rows."""
    view: Callable[[Any], tuple[Any, Any] | None] | None = None
    """Give the rows that the next query may see, keys and values, oldest first; None if there are none."""
    length: Callable[[Any], int | None] | None = None
    """Give the offset: rows appended and not trimmed; None where a cache of layers that only fold tokens has none.
    Without it the adapter counts, and says so (`by_adapter`)."""
    trim: Callable[[Any, int], Any] | None = None
    """Drop the newest n rows."""
    can_trim: Callable[[Any, int], bool] | None = None
    """Tell whether the newest n rows can be dropped. Without it a trim is tried on a deep copy."""
    accepts: Callable[[Any, int], bool] | None = None
    """Tell whether n more rows would be accepted."""
    held: Callable[[Any], int] | None = None
    """Tell the bytes of rows that are allocated."""
    begin: Callable[[Any], Any] | None = None
    """Begin a round of drafts, which are appended as rows: have the cache keep what it takes to drop them."""
    commit: Callable[[Any, int], Any] | None = None
    """End a round: drop the newest n drafts. With this, rounds are claimed (`kvadapters.rounds`)."""
    pack: Callable[[Any], tuple[Any, Any]] | None = None
    """Give all rows as the engine hands them to another process, keys and values, where there are some."""
    unpack: Callable[[Any, Any, Any], Any] | None = None
    """Have a fresh cache hold such rows, or give the cache that does. With both, parcels are claimed."""
    keep: Callable[[Any, Sequence[int]], Any] | None = None
    """Drop all rows but those that were appended at these positions; of a cache with sinks."""
    mask: Callable[..., Any] | None = None
    """Make the causal mask for n rows, before they are appended, or after, if `mask.made` says so. It is an array
    of the engine, whose last two axes are queries and keys. It is None for no mask, and "causal" if the kernel
    makes it."""
    reset: Callable[[Any], Any] | None = None
    """Empty the cache."""
    state: Callable[[Any], Any] | None = None
    """Save the whole cache, as the engine does. Nothing is copied: what is saved must not change by itself."""
    set_state: Callable[[Any, Any], Any] | None = None
    """Put what was saved into a fresh cache, or give the cache that takes its place. With this, `state` and `trim`,
    whole snapshots are claimed."""
    states: Callable[[Any], Mapping[int, Any]] | None = None
    """Give the state of each layer that folds its tokens, by its number: `[kv_heads, k_dim, v_dim]` in f32; None
    for that of no tokens."""
    encode: Callable[[Any, int, Any, Any], Any] | None = None
    """Hand the rows of an encoder to a layer of a model, by its number: keys and values."""
    encoded: Callable[[Any, int], tuple[Any, Any] | None] | None = None
    """Give the rows of an encoder that a layer shows, keys and values; None if there are none."""
    retained: Callable[[Any], int] | None = None
    """Count the rows that can still be read."""
    capacity: Callable[[Any], int] | None = None
    """Count the rows that are allocated."""
    to_engine: Callable[[Array], Any] = np.asarray
    """Make an array of the engine from one of numpy; a copy or a view."""
    from_engine: Callable[[Any], Any] = np.asarray
    """Make an array of numpy from one of the engine. The harness reads the engine's arrays again later, to see
    whether they changed."""
    synchronise: Callable[[], Any] | None = None
    """Wait until the engine has done everything, if its calls return before that. Takes no argument."""
