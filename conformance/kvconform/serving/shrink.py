"""Makes a failing history short: fewer requests, fewer tokens, less at once, as long as it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from kvspec.serving.history import NONE, History, Part, Step, checked, names

Fails = Callable[[History], bool]


def shrunk(history: History, fails: Fails, tries: int, seconds: float) -> History:
    """Give the shortest history that is found to fail, within so many tries and seconds."""
    until, left, at = time.monotonic() + seconds, tries, 0
    while True:
        begun = at
        for number, shorter in enumerate(_shorter(history)):
            if number < begun:  # the same place of a longer history was tried before
                continue
            if left <= 0 or time.monotonic() > until:
                return history
            left -= 1
            if fails(shorter):
                history, at = shorter, number
                break
        else:
            if not begun:
                return history
            at = 0


def _shorter(history: History) -> Iterator[History]:
    """Give shorter histories, those first from which most is gone."""
    if any(step.do == "submit" for step in history):
        yield checked(tuple(replace(step, do="ask") for step in history if step.begins))
    size = len(history)
    width = size // 2
    while width > 1:
        yield from (_without(history, set(range(at, at + width))) for at in range(0, size, width) if width < size)
        width //= 2
    yield from (_without(history, {at}) for at in reversed(range(size)) if size > 1)
    lengths = _lengths(history)
    prompts = {step.name: lengths[step.name] - step.new for step in history if step.begins}
    for at, step in enumerate(history):
        others = (*_simpler(step, prompts), *_behind_a_newer(history[:at], step, lengths))
        yield from (checked((*history[:at], other, *history[at + 1 :])) for other in others)


def _behind_a_newer(before: History, step: Step, lengths: Mapping[str, int]) -> Iterator[Step]:
    """Begin with the tokens of a newer request that begins with the same ones, so that the older one may go."""
    first, *more = step.parts or (Part(0),)
    end = lengths.get(first.source, 0) if first.stop is None else first.stop
    at = next((n for n, other in enumerate(before) if other.name == first.source), len(before))
    for newer in before[at + 1 :] if first.source and not first.start else ():
        begins = newer.begins and newer.parts[0]
        if begins and begins.source == first.source and not begins.start and (begins.stop or end) >= end:
            yield replace(step, parts=(Part(source=newer.name, stop=end), *more))


def _without(history: History, gone: set[int]) -> History:
    """Leave steps out. Tokens of requests that are gone are new ones elsewhere."""
    left = {step.name for at, step in enumerate(history) if at not in gone and step.begins}
    lost = {step.name for step in history if step.begins} - left
    lengths = _lengths(history)
    kept = []
    for at, step in enumerate(history):
        if at not in gone and not (step.do in ("cancel", "wait") and step.name in lost):
            parts = tuple(_fresh(p, lengths) if p.source in lost else p for p in step.parts)
            kept.append(replace(step, parts=tuple(p for p in parts if p.source or p.count)))
    found = [step for step in kept if not step.begins or step.parts]
    return checked(tuple(found)) if any(step.begins for step in found) else history[:0]


def _fresh(part: Part, lengths: dict[str, int]) -> Part:
    """Give as many new tokens as a part of a request has."""
    stop = lengths[part.source] if part.stop is None else min(part.stop, lengths[part.source])
    return Part(max(0, stop - part.start))


def _lengths(history: History) -> dict[str, int]:
    """Give how many tokens the text of each request has, if all of its answer is there."""
    found = dict[str, int]()
    for step in history:
        if step.begins:
            found[step.name] = 0
            for part in step.parts:
                found[step.name] += _fresh(part, found).count if part.source else part.count
            found[step.name] += step.new
    return found


def _simpler(step: Step, prompts: Mapping[str, int]) -> Iterator[Step]:
    """Give simpler steps in place of one. `prompts` are the tokens of each request's prompt."""
    if step.do == "step" and step.count > 1:
        yield replace(step, count=step.count // 2)
    if step.do == "submit":
        yield replace(step, do="ask")
    yield from (replace(step, salt="") for _ in step.salt[:1])
    yield from (replace(step, adapter="") for _ in step.adapter[:1])
    yield from (replace(step, vectors=NONE) for _ in "x" * (step.vectors != NONE))
    yield from (replace(step, stop=0) for _ in "x" * (step.stop > 0))
    yield from (replace(step, samples=n) for n in {1, step.samples - 1} if 0 < n < step.samples)
    yield from _drafting(step, prompts) if step.samples > 1 else ()
    yield from (replace(step, new=n) for n in (1, step.new // 2, step.new - 1) if 0 < n < step.new)
    for at, part in enumerate(step.parts):
        others = [p for p in (None, *_smaller(part, prompts)) if p is not None or len(step.parts) > 1]
        yield from (
            replace(step, parts=(*step.parts[:at], *filter(None, [p]), *step.parts[at + 1 :])) for p in others
        )
    yield from _shared_less(step)


def _drafting(step: Step, prompts: Mapping[str, int]) -> Iterator[Step]:
    """Ask for one sample behind a prompt that repeats itself, so that drafts are right or wrong: what samples
    choose repeats itself too."""
    start = prompts[step.name]
    for up in (True, False):
        again = Part(source=step.name, start=start + 1, stop=start + 4)
        yield replace(step, samples=1, parts=(*step.parts, Part(12, up=up), Part(1), again))


def _shared_less(step: Step) -> Iterator[Step]:
    """Share less of an earlier text, and have new tokens in its place."""
    for at, (part, behind) in enumerate(pairwise((*step.parts, Part(0)))):
        size = part.stop - part.start if part.source and part.stop is not None else 0
        if behind.source or behind.up or part.source == step.name:
            continue
        for less in sorted({size // 2, 1}, reverse=True):
            if 0 < less < size:
                shared, new = replace(part, stop=part.start + size - less), Part(behind.count + less)
                yield replace(step, parts=(*step.parts[:at], shared, new, *step.parts[at + 2 :]))


def _smaller(part: Part, prompts: Mapping[str, int]) -> Iterator[Part]:
    if not part.source:
        yield from (replace(part, count=n) for n in (1, part.count // 2, part.count - 1) if 0 < n < part.count)
        yield from (replace(part, up=False) for _ in "x" * part.up)
        return
    if part.stop is None:  # without the answer
        if part.start < prompts[part.source]:
            yield replace(part, stop=prompts[part.source])
        return
    size = part.stop - part.start
    yield from (Part(size) for _ in "x" * (size > 0))
    for less in {size // 2, 1}:
        if 0 < less < size:
            yield replace(part, stop=part.stop - less)
            yield replace(part, start=part.start + less)


def joined(histories: list[History]) -> History:
    """Make one history of several, with names of their own."""
    name = names()
    steps = list[Step]()
    for history in histories:
        new = {step.name: next(name) for step in history if step.begins}
        for step in (*history, Step("wait")):
            parts = tuple(replace(p, source=new.get(p.source, "")) for p in step.parts)
            steps.append(replace(step, name=new.get(step.name, ""), parts=parts))
    return checked(tuple(steps))
