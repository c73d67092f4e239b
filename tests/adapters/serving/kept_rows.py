"""The lives of stores that keep rows of earlier texts: what happens in one, what may be found, and how a life that
went wrong is made short."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from adapters.serving.lives import Prompts, next_token

Text = tuple[int, ...]
"""Tokens, from the first on."""
TAKE_TEXT = ("ask", "begin", "clear")
"""What happens with a text."""
BLOCK = 4
"""Tokens of a chunk, at whose ends texts often part."""


class Wrong(Exception):
    """What a store did that it must not do."""


class Event(NamedTuple):
    """What happens to a store. `name` is all that a row depends on beside its tokens."""

    verb: str
    text: Text = ()
    name: str = ""
    n: int = 0

    def __str__(self) -> str:
        words = (self.verb, self.name, "-".join(map(str, self.text)), str(self.n))
        return " ".join(word for word in words if word)


def row(part: str, name: str, text: Sequence[int]) -> int:
    """Give the row of a text's last token in a part of a cache: 32 bits that follow from all that it depends on."""
    return crc32(repr((part, name, tuple(text))).encode())


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens with which two texts begin alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


class Kept:
    """What was stored since the last reset, by name: a list of texts. It forgets nothing."""

    def __init__(self) -> None:
        self.texts: dict[str, set[Text]] = {}

    def store(self, name: str, text: Sequence[int]) -> None:
        """Remember a text."""
        self.texts.setdefault(name, set()).add(tuple(text))

    def most(self, name: str, text: Sequence[int]) -> int:
        """Count the tokens of a text whose rows may be there: those with which it begins as one that was stored."""
        return max((shared(text, each) for each in self.texts.get(name, ())), default=0)

    def whole(self, name: str, text: Sequence[int]) -> int:
        """Count the tokens of the longest stored text that a text begins with."""
        ends = (len(each) for each in self.texts.get(name, ()) if tuple(text[: len(each)]) == each)
        return max(ends, default=0)


class Store(ABC):
    """A store, and a list of what may be in it."""

    def __init__(self) -> None:
        self.kept, self.counts = Kept(), Counter[str]()

    @abstractmethod
    def do(self, event: Event) -> None:
        """Let something happen. Raises Wrong if the store does what it must not do."""

    @abstractmethod
    def end(self) -> None:
        """Let all that is under way end. Raises Wrong if the store has not what it says that it has."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the store has taken."""

    def demand(self, right: bool, what: str) -> None:
        """Fail unless something is right."""
        if not right:
            raise Wrong(what)


class Lives(NamedTuple):
    """Lives of a store: what makes one from a seed, which draws its settings, and what is drawn of what happens."""

    made: Callable[[int], Store]
    verbs: Mapping[str, int]
    names: Sequence[str]
    steps: int = 120

    def drawn(self, seed: int) -> list[Event]:
        """Draw what happens in a life: verbs by their weights, and texts that begin as earlier ones."""
        draw, events = random.Random(seed), list[Event]()
        prompts = Prompts(draw, BLOCK)
        for verb in draw.choices([*self.verbs], [*self.verbs.values()], k=self.steps):
            text = prompts.drawn() if verb in TAKE_TEXT else []
            events.append(Event(verb, tuple(text), draw.choice(self.names), draw.randrange(8)))
            if text:
                prompts.seen(answered(text, 1 + events[-1].n))
        return events

    def wrong(self, seed: int, events: Sequence[Event]) -> str:
        """Say what is wrong in a life in which this happens."""
        return judged(self.made(seed), events)

    def first_wrong(self, lives: int) -> tuple[int, str, list[Event]]:
        """Live until something is wrong: give the number of that life, from 1 on, what was wrong, and a short life
        that goes wrong; 0 if none does."""
        for seed in range(lives):
            if wrong := self.wrong(seed, events := self.drawn(seed)):
                return seed + 1, wrong, short(events, lambda less, seed=seed: bool(self.wrong(seed, less)))
        return 0, "", []

    def counted(self, lives: int) -> Counter[str]:
        """Count what happens in lives of a store that is right. Fails if it is not."""
        seen = Counter[str]()
        for seed in range(lives):
            store = self.made(seed)
            wrong = judged(store, self.drawn(seed))
            assert not wrong, (seed, wrong)
            seen += store.counts
        return seen


def answered(text: Sequence[int], n: int) -> list[int]:
    """Add n tokens to a text, as every model here chooses them."""
    longer = list(text)
    for _ in range(n):
        longer.append(next_token(longer))
    return longer


def judged(store: Store, events: Sequence[Event]) -> str:
    """Live a life to its end, and say what was wrong; nothing if all was right."""
    try:
        for event in events:
            store.counts[event.verb] += 1
            store.do(event)
        store.end()
    except Exception as e:  # a store may notice by itself that something is wrong, with any error
        return f"{type(e).__name__}: {e}"
    finally:
        store.close()
    return ""


def short(events: Sequence[Event], fails: Callable[[Sequence[Event]], bool]) -> list[Event]:
    """Leave out of a life that goes wrong what it goes wrong without, and cut texts where it still does."""
    kept, size = list(events), max(1, len(events) // 2)
    while size:
        before = len(kept)
        for start in range(before - size, -1, -size):
            less = kept[:start] + kept[start + size :]
            kept = less if fails(less) else kept
        size = size // 2 if size > 1 or len(kept) == before else 1
    for i, event in enumerate(kept):
        for end in (1, 2, 4, 8, 9, 16):
            cut = [*kept[:i], event._replace(text=event.text[:end]), *kept[i + 1 :]]
            if end < len(event.text) and fails(cut):
                kept = cut
                break
    return kept
