"""Clauses that became general: what one said of one kind of cache, `chapters/cache.md` says of every kind.

`moved_clauses.toml` lists their old ids. They are never used again, and lead to the clauses that say it now.
"""

from __future__ import annotations

from functools import cache

from kvspec.tables import table


@cache
def moved() -> dict[str, str]:
    """Give the general clause of each old id."""
    return {old: new for new, olds in table("kvspec.reading", "moved_clauses").items() for old in olds}


def now(id_: str) -> str:
    """Give the id of the clause that says today what this one said: a general one, or itself."""
    return moved().get(id_, id_)
