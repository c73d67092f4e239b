"""The texts of refusals of paged caches; only the words are shared, as in `kvspec.refusals.common`."""

from __future__ import annotations

from kvspec.errors import Refused
from kvspec.geometry import Config


def config(clause: str, config: Config) -> Refused:
    """A config no pool may have."""
    sizes = ", ".join(f"{k}={v}" for k, v in config.to_json().items())
    return Refused(clause, f"page cannot be opened with {sizes}: sizes must be 1 or more, batch and debug 1")


def sequence(clause: str, sequence: int) -> Refused:
    """A number that no sequence has."""
    return Refused(clause, f"sequence {sequence} is not in use")


def full(clause: str, n: int, needed: int, free: int) -> Refused:
    """Rows for which there are not enough pages."""
    return Refused(clause, f"append of {n} rows: it needs {needed} pages, {free} are free")


def no_copy(clause: str, n: int, needed: int, free: int) -> Refused:
    """Rows for which there are pages, but none for the copy of a shared one."""
    return Refused(clause, f"append of {n} rows: it needs {needed} pages and one for a copy, {free} are free")


def fork(clause: str, n: int, sequence: int, length: int) -> Refused:
    """Rows that cannot be shared, because they do not exist."""
    return Refused(clause, f"fork of {n} rows: it must be 0..{length} of sequence {sequence}")


def truncate(clause: str, to: int, sequence: int, length: int) -> Refused:
    """A length that a sequence cannot be cut to."""
    return Refused(clause, f"truncate to {to}: it must lie in 0..{length} for sequence {sequence}")


def short(clause: str, n: int, entries: int, page_size: int) -> Refused:
    """A block table that ends too early, or a negative number of rows."""
    most = entries * page_size
    return Refused(clause, f"gather of {n} rows: it must be 0..{most}, what {entries} pages of {page_size} hold")


def entry(clause: str, entry: int, page: int, pages: int) -> Refused:
    """A needed entry that names no page."""
    return Refused(clause, f"gather: entry {entry} is {page}; pages are 0..{pages - 1}")


def dead(clause: str, page: int, rows: int, live: int) -> Refused:
    """Rows that no sequence has."""
    return Refused(clause, f"gather: {rows} rows of page {page} are asked for, sequences have {live} there")


def peek(clause: str, page: int, pages: int) -> Refused:
    """A page that does not exist."""
    return Refused(clause, f"peek at page {page}: pages are 0..{pages - 1}")


def no_debug(clause: str) -> Refused:
    """A look at a page in a pool without `debug`."""
    return Refused(clause, "peek: only a pool opened with debug=1 says what lies in its pages")
