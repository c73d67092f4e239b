"""Correct caches whose storage differs from the reference's. The suite must pass them all."""

from __future__ import annotations

from typing import Any

from kvworkshop.correct_variants.from_the_top import FromTheTop
from kvworkshop.correct_variants.head_major import HeadMajor
from kvworkshop.correct_variants.lazy_writes import LazyWrites
from kvworkshop.correct_variants.linked import Linked
from kvworkshop.correct_variants.more_than_ragged import MoreThanRagged
from kvworkshop.correct_variants.paged_ring import PagedRing
from kvworkshop.correct_variants.row_limit import RowLimit
from kvworkshop.correct_variants.shares_pages import SharesPages
from kvworkshop.correct_variants.strided import FromTheEnd, Transposed
from kvworkshop.correct_variants.whole import Whole, WholeRing

__all__ = [
    "VARIANTS",
    "FromTheEnd",
    "FromTheTop",
    "HeadMajor",
    "LazyWrites",
    "Linked",
    "MoreThanRagged",
    "PagedRing",
    "RowLimit",
    "SharesPages",
    "Transposed",
    "Whole",
    "WholeRing",
]

OF_POSITIONS = ("growing", "ring", "bounded", "sink", "store", "mask", "snapshot", "draft", "attention", "mem")

VARIANTS: dict[type[Any], tuple[str, ...]] = {
    Linked: ("growing", "mask", "snapshot"),
    Whole: ("ring", "mask", "snapshot"),
    HeadMajor: ("store", "batch", "mem", "attention"),
    FromTheTop: ("page",),
    MoreThanRagged: ("ragged",),
    Transposed: OF_POSITIONS,
    FromTheEnd: OF_POSITIONS,
    PagedRing: ("ring", "mask", "snapshot", "draft", "attention", "rope"),
    RowLimit: ("bounded", "mask"),
    SharesPages: ("page",),
    LazyWrites: ("growing", "mask", "snapshot", "draft", "attention", "rope"),
}
"""Each correct variant, and the chapters whose traces are tried on it."""
