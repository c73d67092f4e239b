"""The refusals of paged caches: `page.toml` has their words."""

from __future__ import annotations

from kvspec.errors import Refused
from kvspec.refusals import Text, Texts

_TEXTS = Texts("page")


def __getattr__(name: str) -> Text:
    text: Text = getattr(_TEXTS, name)
    return text


def short(clause: str, n: int, entries: int, page_size: int) -> Refused:
    """A block table that ends too early, or a negative number of rows."""
    most = entries * page_size
    return Refused(clause, f"gather of {n} rows: it must be 0..{most}, what {entries} pages of {page_size} hold")
