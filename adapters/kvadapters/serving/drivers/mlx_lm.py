"""mlx-lm in this process, put together as its server does. A `BatchGenerator` computes requests together. An
`LRUPromptCache` finds the cache of an earlier request, trims it and keeps new ones.

`rows` asks for quantised rows. `generate_step` alone quantises caches, and computes requests one after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.generate import BatchGenerator, generate_step
from mlx_lm.models.cache import LRUPromptCache, make_prompt_cache, trim_prompt_cache
from mlx_lm.utils import load_model

from kvadapters.probe.engines.mlx_lm import DTYPES
from kvadapters.serving.driver import Answer, Declared, Driver, EngineFailed, Request, Sample, Wanted
from kvspec.errors import BadInput, Refused

ROWS = {"q8": 8, "q4": 4}
GROUP = 32
"""Elements that share a scale and an offset."""
KEPT = 10
"""Caches of earlier requests that are kept, as in its server."""


def driver(wanted: Wanted) -> Driver:
    """Load a probe."""
    if wanted.rows not in (None, *ROWS):
        raise BadInput(f"mlx-lm has no rows {wanted.rows}; it has {', '.join(ROWS)}")
    return Mlx(wanted.only("chunk", "sequences", "rows"))


@dataclass(eq=False)
class _Asked:
    """A request under way: how much of its prompt was cached, and what is there of its answer. Logits are taken
    before they become logprobs, which would be rounded to bf16 once more; there may be some of a token too many."""

    request: Request
    cached: int
    tokens: list[int] = field(default_factory=list)
    logits: list[Any] = field(default_factory=list)
    ended: bool = False

    def seen(self, tokens: Any, logits: Any) -> Any:
        """Keep logits, [1, vocabulary], as a processor of them."""
        self.logits.append(logits)
        return logits

    def sample(self) -> Sample:
        """Give the answer."""
        rows = [np.array(row[0].astype(mx.float32)) for row in self.logits[: len(self.tokens)]]
        return Sample(tuple(self.tokens), np.stack(rows))


class Mlx(Driver):
    """Steps the generator while somebody waits."""

    def __init__(self, wanted: Wanted) -> None:
        self.model, _ = load_model(Path(wanted.folder))
        self.model.set_dtype(DTYPES[wanted.dtype])
        self.bits, self.chunk = ROWS.get(wanted.rows or ""), wanted.chunk or 2048
        self.sequences = 1 if self.bits else wanted.sequences or 8
        can = {"reuse", "cached", "reset"} | (set() if self.bits else {"concurrent", "cancel"})
        self.declared = Declared(
            "mlx-lm",
            version("mlx-lm"),
            f"LRUPromptCache({KEPT})",
            can=frozenset(can),
            chunk=self.chunk,
            sequences=self.sequences,
        )
        self.reset()

    def reset(self) -> None:
        """Forget all caches and requests."""
        self.kept = LRUPromptCache(KEPT)
        size = {"completion_batch_size": self.sequences, "prefill_batch_size": self.sequences}
        self.generator = BatchGenerator(self.model, prefill_step_size=self.chunk, **size)
        self.open = dict[int, _Asked]()

    def submit(self, request: Request) -> Any:
        """Begin a request with the nearest cache that is kept."""
        tokens = list(request.tokens)
        cache, rest = self.kept.fetch_nearest_cache("probe", tokens)
        if not rest:  # all rows are there: the last token is computed again, if its row can be taken back
            rest = tokens[-1:] if trim_prompt_cache(cache, 1) else tokens
            cache = cache if len(rest) < len(tokens) else None
        one = _Asked(request, len(tokens) - len(rest))
        if self.bits:
            self._alone(one, cache or make_prompt_cache(self.model), rest)
            return one
        try:
            (number,) = self.generator.insert(
                [rest], [request.new], [cache], [tokens[: one.cached]], None, [[one.seen]]
            )
        except ValueError as e:
            raise Refused("", str(e)) from None
        self.open[number] = one
        return one

    def _alone(self, one: _Asked, cache: Any, rest: list[int]) -> None:
        """Answer one request, with a cache whose rows are quantised."""
        how = {
            "kv_bits": self.bits,
            "kv_group_size": GROUP,
            "prefill_step_size": self.chunk,
            "quantized_kv_start": 0,
            "logits_processors": [one.seen],
        }
        for token, _ in generate_step(
            mx.array(rest), self.model, max_tokens=one.request.new, prompt_cache=cache, **how
        ):
            one.tokens.append(int(token))
        one.ended = True
        text = [*one.request.tokens, *one.tokens]
        self.kept.insert_cache("probe", text[: cache[0].offset], cache)

    def step(self, count: int) -> None:
        """Let the generator work."""
        for _ in range(count):
            try:
                _, answers = self.generator.next()
            except (ValueError, RuntimeError, IndexError, TypeError, AttributeError) as e:
                self.reset()
                raise EngineFailed(f"{type(e).__name__}: {e}") from e
            for said in answers:
                one = self.open[said.uid]
                one.tokens.append(int(said.token))
                if said.finish_reason:
                    one.ended = True
                    self.kept.insert_cache("probe", said.all_tokens[:], said.prompt_cache)
                    del self.open[said.uid]

    def wait(self, handle: Any) -> Answer:
        """Step until the answer is there."""
        while not handle.ended:
            if handle not in self.open.values():
                raise EngineFailed("the generator has failed at a request beside this one")
            self.step(1)
        return Answer((handle.sample(),), handle.cached)

    def cancel(self, handle: Any) -> None:
        """Remove a request."""
        for number in [number for number, one in self.open.items() if one is handle]:
            self.generator.remove([number])
            del self.open[number]
