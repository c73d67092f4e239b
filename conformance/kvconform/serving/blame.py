"""Names the clause that a short history breaks. It has nothing in it that the failure does not need, so that what
is in it tells: a cancel, company, tokens of an earlier request, more rows than the pool has."""

from __future__ import annotations

from collections.abc import Sequence

from kvconform.serving.judge import Wrong
from kvconform.serving.player import Asked
from kvconform.serving.recipes import Aim


def blamed(asked: Sequence[Asked], wrong: Sequence[Wrong], steps: set[str], a: Aim) -> str:
    """Give the clause. `steps` are what the history does beside requests."""
    first = wrong[0]
    one = asked[first.request]
    plain = {"computed": "SERVE-5", "salt": "SERVE-8"}
    if first.sort in plain:
        return plain[first.sort]
    for clause, found in (
        ("SERVE-13", "cancel" in steps),
        ("SERVE-14", any(o.request.samples > 1 for o in asked)),
        ("SERVE-8", len({o.request.salt for o in asked}) > 1),
    ):
        if found:
            return clause
    return _drafts(one, wrong, a) or _room(asked, a) or _reused(asked, one, wrong, a)


def _drafts(one: Asked, wrong: Sequence[Wrong], a: Aim) -> str:
    """A prompt that has its last tokens twice is drafted after; a draft that is kept is the text's next token."""
    ids = one.request.tokens
    if not a.declared.drafts or one.request.new < 2 or len(set(ids)) == len(ids):
        return ""
    places = [i for i, t in enumerate(ids[:-1]) if t == ids[-1]]
    follows = (ids[-1] + 1) % (a.ids or 1)
    right = any(ids[i + 1] == follows for i in places)
    return "SERVE-15" if right and not any(w.sort == "extra" for w in wrong) else "SERVE-16"


def _room(asked: Sequence[Asked], a: Aim) -> str:
    """Too little room: requests that are under way together are preempted, those that are not are evicted."""
    rows, size = a.declared.blocks * a.declared.block, a.declared.block
    together = any(not o.alone for o in asked)
    if rows and sum(-(-(len(o.request.tokens) + o.request.new) // size) for o in asked) * size > rows:
        return "SERVE-10" if together else "SERVE-9"
    return "SERVE-12" if together else ""


def _reused(asked: Sequence[Asked], one: Asked, wrong: Sequence[Wrong], a: Aim) -> str:
    """Rows of an earlier request, or nothing but the request itself."""
    ids, named = one.request.tokens, {p.source for p in one.step.parts if p.source} - {one.step.name}
    if not named:
        return _alone(asked, one, a)
    shared, prompt = 0, 0
    for other in asked[: one.number]:
        text = [
            *other.request.tokens,
            *(t for s in (other.answer.samples[:1] if other.answer else ()) for t in s.tokens),
        ]
        same = next(
            (i for i, (x, y) in enumerate(zip(text, ids, strict=False)) if x != y), min(len(text), len(ids))
        )
        if same > shared:
            shared, prompt = same, len(other.request.tokens)
    layers = {w.layer for w in wrong if w.layer is not None}
    if shared < a.block and (not a.declared.block or any(p.source and p.start for p in one.step.parts)):
        return "SERVE-3"
    if shared < min(a.block, len(ids) - 1) or (
        any(w.sort == "context" for w in wrong) and shared < len(ids) - a.block
    ):
        return "SERVE-3"
    if a.windows and layers and min(layers) > 0 and _windowed(wrong):
        return "SERVE-6"
    if shared > prompt:
        return "SERVE-7"
    if shared >= len(ids):
        return "SERVE-5"
    return "SERVE-4" if (shared + 1) % a.block <= 2 else "SERVE-2"


def _windowed(wrong: Sequence[Wrong]) -> bool:
    return any(f"layer {w.layer} (window" in w.words or f"layer {w.layer} (chunk" in w.words for w in wrong)


def _alone(asked: Sequence[Asked], one: Asked, a: Aim) -> str:
    """A request that shares nothing: of a long life, longer than a chunk, or the plain law."""
    if len(asked) > 1:
        return "SERVE-9" if a.declared.blocks else "SERVE-17"
    return "SERVE-11" if a.declared.chunk and len(one.request.tokens) > a.declared.chunk else "SERVE-1"
