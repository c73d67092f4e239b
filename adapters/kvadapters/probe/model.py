"""A whole engine, as its functions: tokens in, logits out, through its own cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Model:
    """An engine that has loaded a probe. A cache is whatever the engine makes of it."""

    open: Callable[[], Any]
    """Make a cache that holds nothing."""
    decode: Callable[[Any, list[int]], Any]
    """Append tokens to a cache; give the logits or logprobs of each, [n, vocabulary]."""
    rewind: Callable[[Any, int], None] | None = None
    """Drop the newest n tokens. What it raises is a refusal."""
    copy: Callable[[Any], Any] | None = None
    """Copy a cache: whatever is done to one must not show in the other."""
    beside: Callable[[Any], Any] | None = None
    """Make a cache that holds nothing in the memory of another one."""
    load: Callable[[Any], Any] | None = None
    """Save a cache, and load what was saved as another one in the same memory."""
    batch: Callable[[Sequence[Any], Sequence[list[int]]], Sequence[Any]] | None = None
    """Append tokens to several caches of one memory at once; give for each what `decode` gives."""
    shift: Callable[[Any, int], None] | None = None
    """Drop the oldest n tokens; the others move to the front, and keep what they saw."""
    drop: Callable[[Any], None] | None = None
    """Let a cache go."""

    @property
    def abilities(self) -> frozenset[str]:
        """What it has beside appends."""
        return frozenset(name for name, given in vars(self).items() if given and name not in ("open", "decode"))


def from_model(
    open: Callable[[], Any],
    decode: Callable[[Any, list[int]], Any],
    rewind: Callable[[Any, int], None] | None = None,
    copy: Callable[[Any], Any] | None = None,
    **sequences: Any,
) -> Model:
    """Make a model of an engine's functions. `sequences` are those of an engine whose memory has several: `beside`,
    `load`, `batch`, `shift`, `drop`."""
    return Model(open, decode, rewind, copy, **sequences)


@dataclass(frozen=True)
class Batched:
    """An engine that has loaded a probe, and computes batches. A batch is whatever the engine makes of it."""

    open: Callable[[int], Any]
    """Make a batch of so many sequences, which hold nothing."""
    feed: Callable[[Any, Sequence[list[int]], str], Sequence[Any]]
    """Append tokens to each sequence, none to some, with padding on this side where the engine has any. Give for
    each sequence the logits or logprobs of its new tokens, [n, vocabulary]."""
    trim: Callable[[Any, Sequence[int]], None]
    """Drop the newest tokens of each sequence."""
    arrange: Callable[[Any, Sequence[int]], Any]
    """Give the batch of these sequences, in this order; the batch before is not used any more."""
    copy: Callable[[Any], Any]
    """Copy a batch: whatever is done to one must not show in the other."""
    drop: Callable[[Any], None] = lambda _: None
    """Let a batch go."""
