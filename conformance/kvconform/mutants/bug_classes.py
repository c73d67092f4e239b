"""The catalogue's classes of bugs: what each is called there, and what goes wrong in it."""

from __future__ import annotations

from typing import NamedTuple


class BugClass(NamedTuple):
    """A class of bugs."""

    name: str
    """What the catalogue calls it."""
    says: str
    """What goes wrong."""
    anomaly: str
    """The anomaly that most of them are; the others say theirs where they are planted."""


CLASSES: dict[str, BugClass] = {
    "POS": BugClass(
        "Offset / position / token ledger",
        "what counts the tokens and what stores them disagree, so a row stands at another position",
        "wrong-position",
    ),
    "RING": BugClass(
        "Ring order, wrap, windowed eviction",
        "once the window is full, rows are overwritten, read or put in order at the wrong slot",
        "slot-order",
    ),
    "MASK": BugClass(
        "Mask alignment & shape",
        "a mask is not about the rows that are there: another width, another order, another layer's, or left out",
        "wrong-mask",
    ),
    "WIN": BugClass(
        "Window off-by-one",
        "a window has a row more or fewer than it says, mostly the query's own",
        "window-off-by-one",
    ),
    "GROW": BugClass(
        "Growth, realloc, capacity-vs-length",
        "the space there is and the rows in it are mixed up, or space is made for fewer rows than are to come",
        "lost-rows",
    ),
    "TRIM": BugClass(
        "Rollback / trim / resume",
        "going back drops too few or too many rows, does nothing, or goes back to rows that were overwritten",
        "missing-refusal",
    ),
    "SPEC": BugClass(
        "Speculation commit",
        "after drafts were verified the cache keeps one that was rejected, or loses one that was accepted",
        "stale-tail",
    ),
    "SNAP": BugClass(
        "Snapshot / restore / clone aliasing",
        "what was saved lacks a part, a length or an index, or changes with the cache that it was taken from",
        "half-restored",
    ),
    "MERGE": BugClass(
        "Merge / split / extract / filter / radix tree",
        "pieces that were cut apart, shared or put together are not the rows that they were made of",
        "lost-rows",
    ),
    "SLOT": BugClass(
        "Batch row & slot scatter",
        "a row, a length or a table of one sequence is taken for that of another",
        "wrong-sequence",
    ),
    "PAGE": BugClass(
        "Paged / block table",
        "positions lead through the block table to another page or slot, or pages are taken and given back wrongly",
        "wrong-page",
    ),
    "PAD": BugClass(
        "Padding / bucket / left-pad",
        "rows that stand only for alignment are counted, attended to, or take the place of real ones",
        "padding-seen",
    ),
    "DTYPE": BugClass(
        "dtype / cast / quantisation tiers",
        "numbers are rounded twice, indices are too narrow, or one of two kinds of storage is forgotten",
        "wrong-rounding",
    ),
    "ASYNC": BugClass(
        "Concurrency, async copy, graph capture",
        "work that was captured or is under way reads lengths, memory or rows as they were at another moment",
        "stale-capture",
    ),
    "BOUND": BugClass(
        "Bounds, overflow, validation, unsupported ops",
        "what does not fit is let in, what fits is refused, or a sum overflows on the way to the check",
        "missing-refusal",
    ),
    "GQA": BugClass(
        "GQA / head geometry",
        "query heads and the heads of keys and values are shared out, counted or shaped wrongly",
        "wrong-head",
    ),
    "ROPE": BugClass(
        "RoPE vs offset, shift",
        "a row is turned at another position than its own, twice, or with another layer's base",
        "wrong-position",
    ),
    "XATTN": BugClass(
        "Cross attention & beam reorder",
        "the rows of an encoder are masked, windowed or appended to as if they were the decoder's",
        "wrong-mask",
    ),
    "MEM": BugClass(
        "Memory accounting / leaks / double free",
        "what is held, free or referenced is not what the counts say, or is never given back",
        "miscounted-memory",
    ),
    "REUSE": BugClass(
        "Prefix-reuse admission & identity",
        "rows are taken for a prefix that they are not, that was never written, or that not every layer still has",
        "missing-refusal",
    ),
    "LAYER": BugClass(
        "Per-layer cache kind (hybrid models)",
        "layers of different kinds, windows or lengths are treated as if all were like one of them",
        "desynchronised-layers",
    ),
}
"""By the letters with which their entries begin."""
