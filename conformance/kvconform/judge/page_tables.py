"""Whether a paged cache's own words agree with each other: lengths, tables, references, free pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kvspec.geometry import Config

Values = Mapping[str, Any]


def unsound(config: Config, values: Values, shares: bool = False) -> Iterator[tuple[str, str]]:
    """What is wrong between the values of one step: the observable and a sentence. Where the adapter shows no
    tables, only the number of free pages is checked. `shares`: whether a page may stand in a table twice."""
    size, total = config.page_size or 1, config.pages or 0
    needed = {s: -(-n // size) for s, n in enumerate(values.get("sequences") or ()) if n >= 0}
    flying = [-(-n // size) for n in values.get("transfers") or () if n > 0]
    references = values.get("references")
    if references is None:
        least = total - sum(needed.values()) - sum(flying)
        fewest = max([*needed.values(), *flying], default=0)
        if not least <= values.get("free", -1) <= total - (min(fewest, 1) if shares else fewest):
            yield "free", f"free: {values.get('free')} of {total} pages; sequences need {needed}"
        return
    yield from _tables(needed, values, shares)
    counted = Counter(page for s in needed for page in values.get(f"table.{s}") or ())
    beside = [count - counted[page] for page, count in enumerate(references)]
    if len(beside) != total or min(beside) < 0 or sum(beside) != sum(flying):
        yield "references", f"references: {references}, but in tables pages stand {dict(counted)} times"
    if values.get("free") != references.count(0):
        yield "free", f"free: {values.get('free')}, but {references.count(0)} pages have no reference"


def _tables(needed: Mapping[int, int], values: Values, shares: bool) -> Iterator[tuple[str, str]]:
    for sequence, entries in needed.items():
        table = values.get(f"table.{sequence}") or []
        if len(table) != entries or (len(set(table)) != entries and not shares):
            each = "" if shares else ", each once"
            yield "table", f"table.{sequence}: {table} should be {entries} pages{each}"
