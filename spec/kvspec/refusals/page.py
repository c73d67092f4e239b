"""The refusals of paged caches: see `kvspec.refusals.common`."""

from __future__ import annotations

from kvspec.errors import Refused
from kvspec.refusals.texts import Text, text


def __getattr__(name: str) -> Text:
    return text("page", name)


def short(clause: str, n: int, entries: int, page_size: int) -> Refused:
    """A block table that ends too early, or a negative number of rows."""
    most = entries * page_size
    return Refused(clause, f"gather of {n} rows: it must be 0..{most}, what {entries} pages of {page_size} hold")
