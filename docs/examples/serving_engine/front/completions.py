"""What OpenAI's completions say in JSON: a request's fields are checked, an answer is written as vLLM writes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

import numpy as np

from serving_engine.sequence import Output

FIELDS = (
    *("model", "prompt", "max_tokens", "n", "logprobs", "temperature", "logit_bias", "cache_salt", "user", "seed"),
    *("return_token_ids", "stop_token_ids", "stream", "echo", "ignore_eos", "add_special_tokens"),
)
"""Fields that are known. Others would change the answer, and are refused."""


@dataclass(frozen=True)
class Completion:
    """A request: what the engine is asked for, and how it is answered."""

    tokens: list[int]
    options: dict[str, Any]
    top: int
    """Logprobs a token that are answered; 0: none."""
    ids: bool
    """Whether ids are answered beside words."""


class Dialogue:
    """Reads requests and writes answers in the words of one checkpoint. An adapter is asked by its name, as a
    model."""

    def __init__(self, words: Mapping[str, int], model: str, adapters: Collection[str] = ()) -> None:
        self.ids, self.model, self.adapters = words, model, adapters
        self.words = {i: word for word, i in words.items()}

    @property
    def models(self) -> list[str]:
        """The names that a request may ask: the checkpoint's, and those of its adapters."""
        return [self.model, *self.adapters]

    def read(self, said: Any) -> Completion:
        """Read a request. Raises ValueError for what is not served."""
        if not isinstance(said, dict):
            raise ValueError("a request is an object of JSON")
        if unknown := said.keys() - set(FIELDS):
            raise ValueError(f"fields that are not served: {', '.join(sorted(unknown))}")
        for name in ("temperature", "stream", "echo"):
            if said.get(name):
                raise ValueError(f"{name} is {said[name]!r}; only 0 or false is served")
        stops = said.get("stop_token_ids") or []
        if not isinstance(stops, list) or len(stops) > 1:
            raise ValueError("stop_token_ids has at most one id here")
        top = _whole(said, "logprobs", 0)
        options = {
            "new": _whole(said, "max_tokens", 16),
            "samples": _whole(said, "n", 1),
            "salt": _text(said, "cache_salt"),
            "bias": {int(i): float(more) for i, more in (said.get("logit_bias") or {}).items()},
            "stop": stops[0] if stops else None,
            "adapter": said["model"] if said.get("model") in self.adapters else "",
        }
        top = len(self.words) if top == -1 else min(top, len(self.words))
        return Completion(self._prompt(said.get("prompt")), options, top, bool(said.get("return_token_ids")))

    def _prompt(self, prompt: Any) -> list[int]:
        """Give the ids of a prompt: a list of them, or words between blanks."""
        if isinstance(prompt, list) and all(type(i) is int for i in prompt):
            return prompt
        if not isinstance(prompt, str):
            raise ValueError("a prompt is a list of ids, or words between blanks")
        if unknown := [word for word in prompt.split() if word not in self.ids]:
            raise ValueError(f"the tokenizer has no word {unknown[0]!r}")
        return [self.ids[word] for word in prompt.split()]

    def write(self, asked: Completion, outputs: Sequence[Output]) -> dict[str, Any]:
        """Write an answer: one choice for each sample."""
        given = sorted(outputs, key=lambda output: output.sample)
        new = sum(len(output.tokens) for output in given)
        return {
            "id": f"cmpl-{given[0].id}",
            "object": "text_completion",
            "created": int(time()),
            "model": self.model,
            "choices": [self._choice(asked, output) for output in given],
            "usage": {
                "prompt_tokens": len(asked.tokens),
                "completion_tokens": new,
                "total_tokens": len(asked.tokens) + new,
                "prompt_tokens_details": {"cached_tokens": given[0].reused},
            },
        }

    def _choice(self, asked: Completion, output: Output) -> dict[str, Any]:
        choice = {
            "index": output.sample,
            "text": "".join(f" {self.words[token]}" for token in output.tokens),
            "finish_reason": output.finished,
            "logprobs": self._logprobs(output, asked.top) if asked.top else None,
        }
        if asked.ids:
            choice |= {"token_ids": output.tokens, "prompt_token_ids": asked.tokens}
        return choice

    def _logprobs(self, output: Output, top: int) -> dict[str, Any]:
        likeliest = [np.argsort(-row, kind="stable")[:top] for row in output.logprobs]
        words = [self.words[token] for token in output.tokens]
        return {
            "tokens": words,
            "token_logprobs": [float(row[t]) for row, t in zip(output.logprobs, output.tokens, strict=True)],
            "top_logprobs": [
                {self.words[int(i)]: float(row[i]) for i in ids}
                for row, ids in zip(output.logprobs, likeliest, strict=True)
            ],
            "text_offset": [sum(len(word) + 1 for word in words[:i]) for i in range(len(words))],
        }


def _whole(said: Mapping[str, Any], name: str, default: int) -> int:
    value = default if said.get(name) is None else said[name]
    if type(value) is not int:
        raise ValueError(f"{name} is {value!r}; it is a whole number")
    return value


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name) or ""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}; it is a text")
    return value
