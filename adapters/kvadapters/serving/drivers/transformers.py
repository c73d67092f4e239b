"""Hugging Face transformers, `generate`: caches of earlier requests are copied, cropped and used again.

Requests that are under way together are a padded batch. `drafts` turns the lookup of prompts on. `generate` has no
server: this driver chooses what a request goes on from, as the documentation of prefix reuse does. It takes a deep
copy of an earlier cache, which records the past of its windows. Where `crop` raises, it computes the request whole.
`--declare no-reuse` lets each request begin with no cache."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache

from kvadapters.probe.engines.transformers import DTYPES
from kvadapters.serving.driver import Answer, Declared, Driver, Request, Sample, Wanted, shared
from kvadapters.serving.together import Asked, Together

KEPT = 12
"""Caches of earlier requests that are kept."""


def driver(wanted: Wanted) -> Driver:
    """Load a probe."""
    return Generate(wanted.only("chunk", "drafts", "sequences"))


class Generate(Together):
    """Calls `generate` once somebody waits, for all requests that are under way."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted.sequences or 8)
        self.model = AutoModelForCausalLM.from_pretrained(
            wanted.folder, dtype=DTYPES[wanted.dtype], local_files_only=True
        ).eval()
        self.more = {"prefill_chunk_size": wanted.chunk} if wanted.chunk else {}
        self.more |= {"prompt_lookup_num_tokens": wanted.drafts} if wanted.drafts else {}
        self.declared = Declared(
            "transformers generate",
            transformers.__version__,
            " ".join(f"{name}={value}" for name, value in self.more.items()),
            can=frozenset({"reuse", "concurrent", "cancel", "samples", "cached", "reset"}),
            chunk=wanted.chunk,
            drafts=wanted.drafts,
            sequences=self.sequences,
        )
        self.reset()

    def reset(self) -> None:
        """Forget all caches."""
        self.open = []
        self.kept: deque[tuple[list[int], Any]] = deque(maxlen=KEPT)

    def company(self, one: Asked) -> Sequence[Asked]:
        """Choose others. Drafts and samples are for one request at a time."""
        alone = self.more.get("prompt_lookup_num_tokens") or one.request.samples > 1
        return [each for each in self.open if each is not one and each.request.samples == 1 and not alone]

    def answered(self, batch: Sequence[Asked]) -> list[Answer]:
        """Answer one request with what is kept, or several as a padded batch."""
        return [self._one(batch[0].request)] if len(batch) == 1 else self._batch(batch)

    def _one(self, request: Request) -> Answer:
        """Answer one request, behind the longest cache that its prompt begins with."""
        cache, cached = self._begun(request.tokens)
        if request.samples > 1:
            cache.batch_repeat_interleave(request.samples)
        said = self._generated([list(request.tokens)], request, past_key_values=cache)
        size = len(request.tokens)
        samples = tuple(_sample(said, i, size, request.new) for i in range(request.samples))
        if request.samples == 1:
            text = [*request.tokens, *samples[0].tokens]
            self.kept.append((text[: said.past_key_values.get_seq_length()], said.past_key_values))
        return Answer(samples, cached)

    def _begun(self, tokens: Sequence[int]) -> tuple[Any, int]:
        """Copy and crop the cache that has most of a prompt's tokens, but for its last one."""
        tries = sorted(((shared(text, tokens[:-1]), text, cache) for text, cache in self.kept), key=lambda t: -t[0])
        for cached, text, cache in tries if "reuse" in self.declared.can else ():
            if not cached:
                break
            found = copy.deepcopy(cache)
            try:
                if cached < len(text):
                    found.crop(cached - len(text))
            except RuntimeError:  # rows that a window no longer shows are gone
                continue
            return found, cached
        return self._new(), 0

    def _new(self) -> Any:
        cache = DynamicCache(config=self.model.config)
        if any(cache.is_sliding):
            cache.activate_past_recording()
        return cache

    def _batch(self, batch: Sequence[Asked]) -> list[Answer]:
        """Answer requests together: prompts are padded on their left."""
        longest = max(len(one.request.tokens) for one in batch)
        pad = self.model.generation_config.pad_token_id
        rows = [[pad] * (longest - len(one.request.tokens)) + list(one.request.tokens) for one in batch]
        mask = torch.tensor(
            [[int(at >= longest - len(one.request.tokens)) for at in range(longest)] for one in batch]
        )
        most = max(batch, key=lambda one: one.request.new).request
        said = self._generated(rows, most, attention_mask=mask, past_key_values=self._new())
        return [Answer((_sample(said, i, longest, one.request.new),), 0) for i, one in enumerate(batch)]

    def _generated(self, rows: list[list[int]], request: Request, **more: Any) -> Any:
        chance = {"num_return_sequences": request.samples, "do_sample": True, "top_k": 0}
        if request.samples > 1:
            more |= chance | {"sequence_bias": [[[token], bias] for token, bias in request.bias.items()]}
        return self.model.generate(
            torch.tensor(rows),
            max_new_tokens=request.new,
            return_dict_in_generate=True,
            output_logits=True,
            **{"do_sample": False, **({} if request.samples > 1 else self.more), **more},
        )


def _sample(said: Any, row: int, size: int, new: int) -> Sample:
    """Give the first `new` tokens of a row behind its prompt, and their logits."""
    tokens = tuple(map(int, said.sequences[row, size : size + new]))
    return Sample(tokens, torch.stack([step[row] for step in said.logits[:new]]).float().numpy())
