"""Random lives of the sequences of one memory: they are copied, saved and loaded, computed together, rewound,
shifted and dropped. A life that fails is made short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

NAMES = "abcd"
"""Sequences that a life has at once."""
LONGEST = 12
"""Acts of a life."""
OFTEN = {"append": 5, "copy": 2, "load": 2, "rewind": 1, "shift": 1, "drop": 1}
"""What is done how often; a cache without an ability leaves its acts out."""


@dataclass(frozen=True)
class Act:
    """One operation of a life. `append a 3 b 1` is one batch, and opens those that are not there. `copy a b` and
    `load a b` make b like a, by a copy and from what is saved of it. `shift a 2` drops the oldest two tokens."""

    what: str
    of: tuple[str, ...]
    tokens: tuple[int, ...] = ()

    def __str__(self) -> str:
        words = [[name, str(n)] for name, n in zip(self.of, self.tokens, strict=True)] if self.tokens else [self.of]
        return " ".join([self.what, *(word for pair in words for word in pair)])


Acts = tuple[Act, ...]


def after(lengths: dict[str, int], act: Act) -> dict[str, int] | None:
    """Give the lengths of all sequences after an act; None if it makes no sense on these."""
    now, (first, *rest) = dict(lengths), act.of
    if len(set(act.of)) < len(act.of):
        return None
    if act.what == "append":
        return now | {name: now.get(name, 0) + n for name, n in zip(act.of, act.tokens, strict=True)}
    if first not in now or (act.tokens and act.tokens[0] >= now[first]) or any(name in now for name in rest):
        return None
    if act.what == "drop":
        del now[first]
    elif act.tokens:
        now[first] -= act.tokens[0]
    else:
        now[rest[0]] = now[first]
    return now or None


def sensible(acts: Sequence[Act]) -> bool:
    """Tell whether each act makes sense after those before it."""
    lengths = dict[str, int]()
    for act in acts:
        now = after(lengths, act)
        if now is None:
            return False
        lengths = now
    return True


def drawn(seed: int, sizes: Sequence[int], most: int, can: frozenset[str]) -> Acts:
    """Draw a life whose sequences have at most `most` tokens. `can` names the acts that there are, `batch` for
    appends to several, and `beside` for sequences that begin empty."""
    draw, lengths, found = np.random.default_rng(seed), dict[str, int](), list[Act]()
    words = [what for what, often in OFTEN.items() if what in can | {"append"} for _ in range(often)]
    while len(found) < LONGEST:
        what = str(draw.choice(words)) if lengths else "append"
        act = _drawn(draw, what, lengths, sizes, can)
        now = after(lengths, act) if act else None
        if act and now and max(now.values()) <= most:
            lengths, found = now, [*found, act]
    return tuple(found)


def _drawn(
    draw: np.random.Generator, what: str, lengths: dict[str, int], sizes: Sequence[int], can: frozenset[str]
) -> Act | None:
    """Draw an act; None if there is none of this sort now."""
    there, free = list(lengths), [name for name in NAMES if name not in lengths]
    one = str(draw.choice(there)) if there else NAMES[0]
    if what in ("copy", "load"):
        return Act(what, (one, free[0])) if free else None
    if what in ("rewind", "shift"):
        return Act(what, (one,), (int(draw.integers(1, max(2, min(lengths[one], 9)))),))
    if what == "drop":
        return Act(what, (one,))
    of = [one, *(n for n in there if n != one and "batch" in can and draw.random() < 0.5)]
    if not there or (free and "beside" in can and draw.random() < 0.2):
        of = [*of, free[0]] if there and "batch" in can else [free[0]]
    return Act(what, tuple(of), tuple(int(draw.choice(sizes)) for _ in of))


def shortened(acts: Acts, fails: Callable[[Acts], bool]) -> Acts:
    """Leave out what a life that fails does not need, act by act; then make its numbers smaller. Name its sequences
    in the order in which they come."""
    while shorter := next((each for each in _shorter(acts) if sensible(each) and fails(each)), None):
        acts = shorter
    names = dict(zip(dict.fromkeys(name for act in acts for name in act.of), NAMES, strict=False))
    return tuple(replace(act, of=tuple(names[name] for name in act.of)) for act in acts)


def _shorter(acts: Acts) -> Iterator[Acts]:
    for i in reversed(range(len(acts))):
        yield acts[:i] + acts[i + 1 :]
        if not acts[i].tokens and len(acts[i].of) > 1:
            yield (*acts[:i], *(_renamed(act, *acts[i].of) for act in acts[i + 1 :]))
    for i, act in enumerate(acts):
        yield from ((*acts[:i], less, *acts[i + 1 :]) for less in _less(act))


def _less(act: Act) -> Iterator[Act]:
    """Give acts on fewer sequences, then those of fewer tokens."""
    for i, n in enumerate(act.tokens):
        if len(act.of) > 1:
            yield Act(act.what, act.of[:i] + act.of[i + 1 :], act.tokens[:i] + act.tokens[i + 1 :])
        for fewer in sorted({1, n // 2, n - 1} & set(range(1, n))):
            yield replace(act, tokens=(*act.tokens[:i], fewer, *act.tokens[i + 1 :]))


def _renamed(act: Act, name: str, other: str) -> Act:
    """Do to one sequence what is done to another."""
    return replace(act, of=tuple(name if each == other else each for each in act.of))
