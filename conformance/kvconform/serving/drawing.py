"""Draws a history: each request with its tokens in blocks, what it has of earlier requests, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from kvconform.serving.judge import Wrong
from kvconform.serving.player import Asked
from kvconform.serving.recipes import Aim

WIDEST = 96


def drawn(asked: Sequence[Asked], wrong: Sequence[Wrong], aim: Aim) -> list[str]:
    """Draw a history in lines. A token is the letter of the request that has it first; bars part blocks."""
    lines = list[str]()
    for one in asked[:24]:
        cached = one.answer.cached if one.answer else None
        notes = [f"{len(one.request.tokens)} tokens", *([f"{cached} reused"] if cached else [])]
        notes += [one.outcome] * (one.outcome != "answered")
        lines += [f"{one.step}", f"  {_tokens(one, asked, aim)}  {', '.join(notes)}"]
        lines += [f"  ^ {w.words}" for w in wrong if w.request == one.number][:4]
    return lines


def _tokens(one: Asked, asked: Sequence[Asked], aim: Aim) -> str:
    """Write each token as the letter of the request that had it first; an answer stands behind an arrow."""
    first = dict[int, str]()
    for other in asked[: one.number + 1]:
        for token in other.request.tokens:
            first.setdefault(token, other.step.name[0])
    size = aim.block if aim.declared.block else 1 << 30
    letters = "".join("|" * (i % size == 0 and i > 0) + first[t] for i, t in enumerate(one.request.tokens))
    answer = one.answer.samples[0].tokens if one.answer and one.answer.samples else ()
    whole = letters + " > " + "." * len(answer)
    return whole if len(whole) <= WIDEST else whole[: WIDEST // 2] + "..." + whole[-WIDEST // 2 :]
