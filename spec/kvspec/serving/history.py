"""Histories of requests, in words:

    ask a 20                   a request named a, of 20 new tokens; wait for its answer
    ask b a[:16] 3 new=4       the first 16 tokens of a's text, 3 new ones; answer with 4 tokens
    submit c a[:8] 1 a[9:]     begin a request that differs from a in one token, and do not wait
    ask f 9 vectors=2:6        hand in four of the nine tokens as vectors
    submit d up6 9 d[2:5]      6 tokens of which each follows the one before, 9 new ones, 3 of these again
    ask e 5 new=9 stop=2       9 tokens at most: what is likeliest as the second one ends the answer
    step 2; cancel c; wait     let the engine work, cancel a request, wait for all others

A request's text is its prompt, and behind it what it was answered, once somebody waited for that. `samples=2` asks
for several answers to one prompt, `salt=x` for rows that requests with another salt do not share, and `adapter=x`
for an answer by the model with this adapter. `vectors=2:6` hands in vectors in place of the tokens 2 to 5 of
the prompt; `vectors=:` does so for all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kvspec.errors import BadInput

MOST_TOKENS, MOST_STEPS, MOST_NEW, MOST_SAMPLES = 2048, 20_000, 256, 16
"""Tokens of a part of a prompt, steps of a history, tokens of an answer, and samples of a request."""

OPTIONS = ("new", "samples", "salt", "adapter", "vectors", "stop")

NONE = 0, 0
"""The place of vectors where there are none."""

DOES = ("ask", "submit", "step", "cancel", "wait")


@dataclass(frozen=True)
class Part:
    """Tokens of a prompt: `count` new ones, each following the one before if they are `up`. If a request is its
    `source`, they are those of a text from `start` to `stop` (None: to its end)."""

    count: int = 0
    up: bool = False
    source: str = ""
    start: int = 0
    stop: int | None = None

    def __str__(self) -> str:
        if not self.source:
            return f"{'up' * self.up}{self.count}"
        if self.start == 0 and self.stop is None:
            return self.source
        return f"{self.source}[{_slice(self.start, self.stop)}]"


@dataclass(frozen=True)
class Step:
    """One step of a history. `ask` and `submit` have a name and parts, `cancel` and `wait` a name (wait may have
    none: all), `step` a count. `stop` is the token of the answer, counted from 1, that ends it, or 0 for none.
    `vectors` says from where and up to where tokens are handed in as vectors (None: to the end of the prompt).
    Hashes of examples are made of its repr, which leaves out what no example has."""

    do: str
    name: str = ""
    parts: tuple[Part, ...] = ()
    new: int = 1
    samples: int = 1
    salt: str = ""
    count: int = 0
    stop: int = field(default=0, repr=False)
    adapter: str = ""
    vectors: tuple[int, int | None] = NONE

    def __str__(self) -> str:
        words = [self.do, *filter(None, (self.name,)), *map(str, self.parts)]
        words += [str(self.count)] * (self.do == "step") + [f"new={self.new}"] * (self.new != 1)
        words += [f"samples={self.samples}"] * (self.samples != 1) + [f"salt={self.salt}"] * bool(self.salt)
        words += [f"adapter={self.adapter}"] * bool(self.adapter) + [f"stop={self.stop}"] * bool(self.stop)
        words += [f"vectors={_slice(*self.vectors)}"] * (self.vectors != NONE)
        return " ".join(words)

    @property
    def begins(self) -> bool:
        """Whether it begins a request."""
        return self.do in ("ask", "submit")


History = tuple[Step, ...]


def told(history: Sequence[Step]) -> str:
    """Write a history in words."""
    return "; ".join(map(str, history))


def history(text: str) -> History:
    """Read a history. Raises BadInput."""
    parts = [part for part in re.split(r"[;\n]", text) if part.strip()]
    if len(parts) > MOST_STEPS:
        raise BadInput(f"a history of {len(parts)} steps; at most {MOST_STEPS} are read")
    return checked(tuple(map(_step, parts)))


def checked(steps: History) -> History:
    """Give a history if each request that it speaks of began before, once. Raises BadInput."""
    began = set[str]()
    for step in steps:
        if step.begins and step.name in began:
            raise BadInput(f"'{step}': a request named {step.name} began before")
        named = {part.source for part in step.parts if part.source} | {step.name} - {""}
        began |= {step.name} if step.begins else set()
        if strange := sorted(named - began):
            raise BadInput(f"'{step}': no request named {strange[0]} began before")
    return steps


def _step(text: str) -> Step:
    do, *words = text.split()
    if do not in DOES:
        raise BadInput(f"{do[:40]!r} is no step of a history; there are {', '.join(DOES)}")
    if do == "step":
        return Step(do, count=_number(text, " ".join(words), 1, 10_000))
    if do in ("cancel", "wait"):
        if len(words) != 1 and (do == "cancel" or words):
            raise BadInput(f"{text.strip()!r}: one request is named")
        return Step(do, _name(text, words[0]) if words else "")
    return _request(text, do, words)


def _request(text: str, do: str, words: list[str]) -> Step:
    given = dict(word.split("=", 1) for word in words if "=" in word)
    bare = [word for word in words if "=" not in word]
    if strange := sorted(set(given) - set(OPTIONS)):
        raise BadInput(f"{text.strip()!r}: {strange[0][:40]} is none of {', '.join(OPTIONS)}")
    if len(bare) < 2:
        raise BadInput(f"{text.strip()!r}: a request has a name and tokens, such as 'ask a 20'")
    salt, adapter = (_name(text, word) if (word := given.get(option, "")) else "" for option in ("salt", "adapter"))
    parts = tuple(_part(text, word) for word in bare[1:])
    new = _number(text, given.get("new", "1"), 1, MOST_NEW)
    samples = _number(text, given.get("samples", "1"), 1, MOST_SAMPLES)
    stop = _number(text, given.get("stop", "0"), 0, MOST_NEW)
    vectors = _vectors(text, given.get("vectors", "0:0"))
    return Step(do, _name(text, bare[0]), parts, new, samples, salt, stop=stop, adapter=adapter, vectors=vectors)


def _vectors(text: str, word: str) -> tuple[int, int | None]:
    found = re.fullmatch(r"(\d{0,9}):(\d{0,9})", word)
    if not found:
        raise BadInput(f"{text.strip()!r}: vectors={word[:40]} is no place; write 2:6, or : for the whole prompt")
    return int(found[1] or 0), int(found[2]) if found[2] else None


def _slice(start: int, stop: int | None) -> str:
    return f"{start or ''}:{'' if stop is None else stop}"


_PART = re.compile(
    r"(?P<up>up)?(?P<count>\d{1,9})|(?P<source>[a-z]\w{0,30})(\[(?P<start>\d{0,9}):(?P<stop>\d{0,9})\])?"
)


def _part(text: str, word: str) -> Part:
    found = _PART.fullmatch(word)
    if not found:
        raise BadInput(f"{text.strip()!r}: {word[:40]!r} is no part of a prompt, such as 3, up3, a or a[:16]")
    if found["source"]:
        stop = int(found["stop"]) if found["stop"] else None
        return Part(source=found["source"], start=int(found["start"] or 0), stop=stop)
    return Part(_number(text, found["count"], 1, MOST_TOKENS), bool(found["up"]))


def _name(text: str, word: str) -> str:
    if not re.fullmatch(r"[a-z]\w{0,30}", word) or re.fullmatch(r"up\d+", word):
        raise BadInput(f"{text.strip()!r}: {word[:40]!r} is no name; write a small letter, then letters and digits")
    return word


def _number(text: str, word: str, least: int, most: int) -> int:
    if not word.isdigit() or len(word) > 9 or not least <= int(word) <= most:
        raise BadInput(f"{text.strip()!r}: {word[:40]!r} is no number from {least} to {most}")
    return int(word)


def names() -> Iterator[str]:
    """Name requests: a to z, then a1 to z1, and so on."""
    number = 0
    while True:
        yield from (f"{chr(97 + i)}{number or ''}" for i in range(26))
        number += 1
