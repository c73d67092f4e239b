"""What the engine is told, what it answers, and what it knows of a sequence between steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

UNKNOWN = -1
"""A token that is being chosen, at the end of a sequence whose next step is decided ahead."""


@dataclass(frozen=True)
class Settings:
    """How an engine serves. `blocks` blocks of `block_size` rows each are all there are; a step computes at most
    `budget` tokens, of one sequence at most `chunk`, and of at most `sequences` sequences. `drafts` tokens are
    speculated a step. `rows` are stored in `f32` or `int8`. `host_blocks` that were evicted are kept in
    the host's memory. Each step is decided one `ahead`, before the tokens of the step before it are known."""

    block_size: int = 16
    blocks: int = 64
    chunk: int = 64
    budget: int = 128
    sequences: int = 8
    prefix_cache: bool = True
    drafts: int = 0
    rows: str = "f32"
    host_blocks: int = 0
    ahead: bool = False


@dataclass(frozen=True)
class Output:
    """One finished sample of a request: its new tokens, and for each of them the logprobs that it was chosen from,
    float32 [new, vocabulary], without the request's bias. `reused` prompt rows were found in the prefix cache.
    `finished` is `length` or `stop`."""

    id: int
    sample: int
    tokens: list[int]
    logprobs: NDArray[np.float32]
    reused: int
    finished: str


@dataclass(frozen=True)
class Request:
    """What a client asks for. Samples differ in their first token: sample s begins with the s-th likeliest."""

    id: int
    prompt: tuple[int, ...]
    new: int
    samples: int
    salt: str
    bias: Mapping[int, float]
    logprobs: int | None
    stop: int | None
    adapter: str = ""
    vectors: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)
    """What is embedded at some places of the prompt; an id that stands there means nothing."""


@dataclass(eq=False)
class Sequence:
    """One text in the engine. The rows of its first `computed` tokens lie in its blocks; `tables` has them for each
    group of layers. The first `published` blocks were offered to the prefix cache, under `keys`."""

    request: Request
    tokens: list[int]
    tables: list[list[int]]
    sample: int = 0
    waiting_samples: int = 1
    """How many samples begin when its prompt is computed."""
    computed: int = 0
    published: int = 0
    keys: list[bytes] = field(default_factory=list)
    reused: int | None = None
    logprobs: list[NDArray[np.float32]] = field(default_factory=list)

    @property
    def chosen(self) -> list[int]:
        """The new tokens."""
        return self.tokens[len(self.request.prompt) :]

    def await_token(self) -> None:
        """Go on as if the next token were known."""
        self.computed = len(self.tokens)
        self.tokens.append(UNKNOWN)

    @property
    def known(self) -> list[int]:
        """The tokens without one that is being chosen."""
        return self.tokens[:-1] if self.tokens[-1] == UNKNOWN else self.tokens

    @property
    def finished(self) -> str:
        """Why it has ended; empty while it has not."""
        if self.chosen and self.chosen[-1] == self.request.stop:
            return "stop"
        return "length" if len(self.chosen) == self.request.new else ""

    def output(self) -> Output:
        """Give what the client gets."""
        logprobs = np.stack(self.logprobs)
        return Output(self.request.id, self.sample, self.chosen, logprobs, self.reused or 0, self.finished)
