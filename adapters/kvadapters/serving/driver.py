"""What a serving engine is asked, what it answers, and what it says of itself.

A driver is a subclass of `Driver` with three methods: `submit`, `wait` and `cancel`. What the others do by default
is right for an engine that works by itself and tells nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kvadapters.probe.reader.answers import Answers
from kvspec.errors import BadInput
from kvspec.records.serving import SIZES

CAN = {
    "reuse": "rows of earlier requests are reused",
    "concurrent": "several requests at once",
    "cancel": "requests that are cancelled",
    "samples": "several answers to one prompt",
    "ranks": "answers to one prompt begin with the likeliest tokens in their order, and go on with the likeliest",
    "stop": "a token that ends an answer",
    "salt": "rows that are shared by requests of one salt",
    "adapters": "adapters that requests name: the probe has them by --adapters",
    "vectors": "tokens that are handed in as vectors, those that the model embeds them as, and not as ids",
    "cached": "it tells how many tokens of a prompt it did not compute",
    "reset": "it can begin anew, as if it had done nothing",
}
"""What an engine may be able to do or to tell."""
SPARED = {"no-whole": "no prompt is an earlier one with its whole answer, and nothing more"}
"""What is not asked of an engine that cannot bear it. It is declared as an ability is."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of an engine, by `kvspec.records.serving.SIZES`. 0: none, or not known."""

    block: int = 0
    blocks: int = 0
    chunk: int = 0
    drafts: int = 0
    sequences: int = 0
    longest: int = 0

    def sizes(self) -> dict[str, int]:
        """Give the sizes by name."""
        return {name: getattr(self, name) for name in SIZES}


@dataclass(frozen=True)
class Wanted(Sizes):
    """How to start an engine in this process. `folder` is that of its probe, and `dtype` what it computes in.
    `rows` is the form of its rows; None is as it computes. A size of 0 is as the engine has it itself."""

    folder: str
    dtype: str = "f32"
    rows: str | None = None

    def __str__(self) -> str:
        return f"{self.folder} in {self.dtype}"

    def only(self, *names: str) -> Wanted:
        """Give this, if it asks for no other size than these, or for `rows`. Raises BadInput."""
        asked = [*(name for name, size in self.sizes().items() if size), *(["rows"] if self.rows else [])]
        if other := [name for name in asked if name not in names]:
            raise BadInput(f"this engine cannot be started with {other[0]}; it takes {', '.join(names) or 'none'}")
        return self


@dataclass(frozen=True)
class Declared(Sizes):
    """What an engine says of itself. `tells` says what its answers hold: logprobs of `all` ids, of the `top` k, or
    the `tokens` alone. `computes` is the dtype that it computes in, where this is coarser than asked for."""

    name: str
    version: str = ""
    flags: str = ""
    tells: str = "all"
    can: frozenset[str] = frozenset()
    computes: str = ""

    def __post_init__(self) -> None:
        if strange := sorted(self.can - CAN.keys() - SPARED.keys()):
            raise BadInput(f"{self.name} says that it can {strange[0]!r}; there are {', '.join(CAN)}")
        if wrong := [(name, size) for name, size in self.sizes().items() if not 0 <= size <= 1 << 24]:
            raise BadInput(f"{self.name} declares {wrong[0][0]}={wrong[0][1]}; sizes are from 0 to {1 << 24}")

    def with_words(self, text: str) -> Declared:
        """Add sizes, what the engine can do or cannot, its name, its version: `block=16,blocks=64,salt,no-reuse`.
        Raises BadInput."""
        said, can = dict[str, Any](), set(self.can)
        for word in filter(None, text.replace(" ", "").split(",")):
            name, equals, value = word.partition("=")
            if word in SPARED:
                can = can | {word}
            elif not equals and (able := word.removeprefix("no-")) in CAN:
                can = can - {able} if word.startswith("no-") else can | {able}
            elif name in SIZES and value.isdigit() and len(value) < 9:
                said[name] = int(value)
            elif name in ("name", "version") and value:
                said[name] = value
            else:
                sizes = f"{', '.join(SIZES)} with a number, such as block=16"
                others = f"{', '.join(CAN)}, or no- before these; {', '.join(SPARED)}; name=, version="
                raise BadInput(f"{word!r} declares nothing; there are {sizes}; {others}")
        return replace(self, can=frozenset(can), **said)


@dataclass(frozen=True)
class Request:
    """Tokens, and how many are wanted behind them, each the likeliest. `bias` is added to logits before tokens are
    chosen; where several `samples` are asked for, it makes several tokens equally likely, or one after another in
    engines of `ranks`. The token `stop` ends an answer, and is part of it. `adapter` changes the
    model's weights. The tokens from the first number of `vectors` up to the second are handed in as vectors: see
    `ids`."""

    tokens: tuple[int, ...]
    new: int = 1
    samples: int = 1
    salt: str = ""
    bias: Mapping[int, float] = field(default_factory=dict)
    stop: int | None = None
    adapter: str = ""
    vectors: tuple[int, int] = (0, 0)

    @property
    def places(self) -> range:
        """Where tokens are handed in as vectors."""
        return range(*self.vectors)

    @property
    def ids(self) -> list[int]:
        """The tokens as an engine gets them: 0 stands for each that is handed in as a vector."""
        return [0 if at in self.places else token for at, token in enumerate(self.tokens)]

    @property
    def shares(self) -> tuple[str, str]:
        """What two requests must have alike to share rows, beside their tokens: a salt and an adapter."""
        return self.salt, self.adapter


@dataclass(frozen=True)
class Sample:
    """One answer has its tokens, and logits or logprobs of each of them before any bias. These are [new,
    vocabulary], a mapping of the ids that are known, or None."""

    tokens: tuple[int, ...]
    answers: Answers | None = None


@dataclass(frozen=True)
class Answer:
    """All samples of a request, and how many tokens of its prompt were not computed, as their rows were there."""

    samples: tuple[Sample, ...]
    cached: int | None = None


class EngineFailed(Exception):
    """An engine failed at a request that it had accepted, or its answer cannot be read. The message is its own."""


class Gone(Exception):
    """An engine cannot be asked any more: it has ended, or lets nobody in. Says where, and what to do."""


class Driver:
    """A whole engine. What `submit` gives is handed to `wait` and `cancel`."""

    declared: Declared

    def submit(self, request: Request) -> Any:
        """Begin a request, without waiting for it. Raises Refused if the engine does not take it, or Gone."""
        raise NotImplementedError

    def wait(self, handle: Any) -> Answer:
        """Wait for an answer. Raises Refused, EngineFailed or Gone."""
        raise NotImplementedError

    def cancel(self, handle: Any) -> None:
        """Let a request go, wherever it is."""
        raise NotImplementedError

    def step(self, count: int) -> None:
        """Let the engine work for `count` of its steps; where it works by itself, wait for a moment."""
        time.sleep(0.002 * count)

    def counts(self) -> Mapping[str, int]:
        """Give what the engine has counted since its start, by `COUNTED`; what it does not tell is left out."""
        return {}

    def reset(self) -> None:
        """Begin anew, as if nothing had been done; only of an engine that can `reset`."""
        raise NotImplementedError

    def close(self) -> None:
        """Let the engine go."""


COUNTED = ("cached tokens", "evictions", "preemptions", "drafts accepted", "drafts rejected")


def shared(text: Sequence[int], tokens: Sequence[int]) -> int:
    """Count the tokens with which two texts begin alike."""
    pairs = zip(text, tokens, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(text), len(tokens)))
