"""The catalogue's classes of bugs: what each is called there, and what goes wrong in it."""

from __future__ import annotations

from typing import NamedTuple


class Class(NamedTuple):
    """A class of bugs."""

    name: str
    """What the catalogue calls it."""
    says: str
    """What goes wrong."""


CLASSES: dict[str, Class] = {
    "POS": Class(
        "Offset / position / token ledger",
        "what counts the tokens and what stores them disagree, so a row stands at another position",
    ),
    "RING": Class(
        "Ring order, wrap, windowed eviction",
        "once the window is full, rows are overwritten, read or put in order at the wrong slot",
    ),
    "MASK": Class(
        "Mask alignment & shape",
        "a mask is not about the rows that are there: another width, another order, another layer's, or left out",
    ),
    "WIN": Class(
        "Window off-by-one",
        "a window has a row more or fewer than it says, mostly the query's own",
    ),
    "GROW": Class(
        "Growth, realloc, capacity-vs-length",
        "the space there is and the rows in it are mixed up, or space is made for fewer rows than are to come",
    ),
    "TRIM": Class(
        "Rollback / trim / resume",
        "going back drops too few or too many rows, does nothing, or goes back to rows that were overwritten",
    ),
    "SPEC": Class(
        "Speculation commit",
        "after drafts were verified the cache keeps one that was rejected, or loses one that was accepted",
    ),
    "SNAP": Class(
        "Snapshot / restore / clone aliasing",
        "what was saved lacks a part, a length or an index, or changes with the cache that it was taken from",
    ),
    "MERGE": Class(
        "Merge / split / extract / filter / radix tree",
        "pieces that were cut apart, shared or put together are not the rows that they were made of",
    ),
    "SLOT": Class(
        "Batch row & slot scatter",
        "a row, a length or a table of one sequence is taken for that of another",
    ),
    "PAGE": Class(
        "Paged / block table",
        "positions lead through the block table to another page or slot, or pages are taken and given back wrongly",
    ),
    "PAD": Class(
        "Padding / bucket / left-pad",
        "rows that stand only for alignment are counted, attended to, or take the place of real ones",
    ),
    "DTYPE": Class(
        "dtype / cast / quantisation tiers",
        "numbers are rounded twice, indices are too narrow, or one of two kinds of storage is forgotten",
    ),
    "ASYNC": Class(
        "Concurrency, async copy, graph capture",
        "work that was captured or is under way reads lengths, memory or rows as they were at another moment",
    ),
    "BOUND": Class(
        "Bounds, overflow, validation, unsupported ops",
        "what does not fit is let in, what fits is refused, or a sum overflows on the way to the check",
    ),
    "GQA": Class(
        "GQA / head geometry",
        "query heads and the heads of keys and values are shared out, counted or shaped wrongly",
    ),
    "ROPE": Class(
        "RoPE vs offset, shift",
        "a row is turned at another position than its own, twice, or with another layer's base",
    ),
    "XATTN": Class(
        "Cross attention & beam reorder",
        "the rows of an encoder are masked, windowed or appended to as if they were the decoder's",
    ),
    "MEM": Class(
        "Memory accounting / leaks / double free",
        "what is held, free or referenced is not what the counts say, or is never given back",
    ),
    "REUSE": Class(
        "Prefix-reuse admission & identity",
        "rows are taken for a prefix that they are not, that was never written, or that not every layer still has",
    ),
    "LAYER": Class(
        "Per-layer cache kind (hybrid models)",
        "layers of different kinds, windows or lengths are treated as if all were like one of them",
    ),
}
"""By the letters with which their entries begin."""
