"""Names the clause that a short history breaks. Such a history has nothing that the failure does not need. So its
content names the clause: a cancel, company, tokens of an earlier request, or more rows than the pool has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvadapters.serving.driver import shared
from kvconform.serving.judge import Wrong
from kvconform.serving.player import Asked
from kvconform.serving.recipes import Aim

LONG = 8
"""Requests of a history that could not be made short."""


def blamed(
    asked: Sequence[Asked], wrong: Sequence[Wrong], steps: set[str], aim: Aim, counted: Mapping[str, int]
) -> str:
    """Give the clause. `steps` are what the history does beside requests, `counted` what was counted meanwhile."""
    first = wrong[0]
    one = asked[first.request]
    if len(asked) > LONG:  # much in it has nothing to do with the failure
        related = _related(asked, one)
        if len(related) == 1 and (one.alone or first.sort == "failed"):
            return "SERVE-17"
        asked = [o for o in asked if o.number in related]
        steps = {"cancel"} if any(o.outcome == "cancelled" for o in asked) else set()
    salts, adapters = {o.request.salt for o in asked}, {o.request.adapter for o in asked}
    vectors = any(o.request.places for o in asked)
    plain = {"computed": "SERVE-5", "reused": _kept_apart(len(salts) > 1, len(adapters) > 1, vectors)}
    if first.sort in plain:
        return plain[first.sort]
    for clause, found in (
        ("SERVE-19", any(adapters)),
        ("SERVE-20", vectors),
        ("SERVE-13", "cancel" in steps),
        ("SERVE-10", _company(asked, counted) == "SERVE-10"),
        ("SERVE-14", any(o.request.samples > 1 for o in asked)),
        ("SERVE-8", len(salts) > 1),
        ("SERVE-18", first.sort == "answer" and one.request.stop is not None),
    ):
        if found:
            return clause
    last = max((w.query for w in wrong if w.query is not None), default=len(one.request.tokens) - 1)
    return _company(asked, counted) or _drafts(one, last, aim) or _reused(asked, wrong, aim, counted)


def _kept_apart(salts: bool, adapters: bool, vectors: bool) -> str:
    """Rows of another text: by what should have kept the two apart."""
    return "SERVE-8" if salts else "SERVE-19" if adapters else "SERVE-20" if vectors else "SERVE-3"


def _drafts(one: Asked, last: int, aim: Aim) -> str:
    """Tokens that stood in a text before are drafted after, up to its `last` query: a draft is right if what
    followed then follows now."""
    if not aim.declared.drafts or one.request.new < 2 or one.answer is None or not one.answer.samples:
        return ""
    text, first = one.texts[0], len(one.request.tokens) - 1
    drafts = [
        (text[before + 1], text[at + 1])
        for at in range(first, min(last + 1, len(text) - 1))
        for before in range(at)
        if text[before] == text[at]
    ]
    if not drafts:
        return ""
    return "SERVE-15" if all(draft == right for draft, right in drafts) else "SERVE-16"


def _company(asked: Sequence[Asked], counted: Mapping[str, int]) -> str:
    """Requests that are under way together, with or without one that was preempted."""
    if all(o.alone for o in asked):
        return ""
    return "SERVE-10" if counted.get("preemptions") else "SERVE-12"


def _reused(asked: Sequence[Asked], wrong: Sequence[Wrong], aim: Aim, counted: Mapping[str, int]) -> str:
    """Rows of an earlier request; or those of others, which are there because the pool has no room for both."""
    one = next(o for o in asked if o.number == wrong[0].request)
    related = _related(asked, one)
    if any(o.number not in related for o in asked[: one.number]):
        return "SERVE-9" if aim.declared.blocks else "SERVE-17"
    if len(related) == 1:
        return "SERVE-11" if aim.declared.chunk and len(one.request.tokens) > aim.declared.chunk else "SERVE-1"
    first, *others = one.step.parts
    if not first.source or first.start or any(p.source and p.source != one.step.name for p in others):
        return "SERVE-3"
    layers = [w.words for w in wrong if w.layer is not None]
    if aim.windows and layers and not any("(full)" in words for words in layers):
        return "SERVE-6"
    if counted.get("evictions"):  # a history as short as this one evicts only where a failure needs it
        return "SERVE-9"
    return _prefix(next(o for o in asked if o.step.name == first.source), one, aim)


def _related(asked: Sequence[Asked], one: Asked) -> set[int]:
    """Give a request and all that have tokens of each other, directly or through others."""
    by_name = {o.step.name: o.number for o in asked}
    groups = [{o.number, *(by_name[p.source] for p in o.step.parts if p.source)} for o in asked]
    found = {one.number}
    while more := set[int]().union(*(group for group in groups if group & found)) - found:
        found |= more
    return found


def _prefix(source: Asked, one: Asked, aim: Aim) -> str:
    """A plain prefix: by where it ends. Rows of an answer may be those of drafts that were refused."""
    ids = one.request.tokens
    rows = shared(source.texts[0], ids)
    cached = one.answer.cached if one.answer else None
    if rows == len(ids):
        return "SERVE-5"
    if min(rows, cached or rows) > len(source.request.tokens):
        return "SERVE-16" if _drafts(source, rows, aim) == "SERVE-16" else "SERVE-7"
    # what is shared ends at a block in each shortest history of a hit; beside one, where that matters
    return "SERVE-4" if rows % aim.block in (1, aim.block - 1) else "SERVE-2"
