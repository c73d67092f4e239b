"""CTranslate2 in this process: `generate_batch`, which keeps the rows of static prompts.

A request begins with a static prompt: the longest one that is kept and fits, or else all its whole blocks. `block`
says how long a block is. At least one token is left behind a static prompt. Requests with one static prompt are a
batch. CTranslate2 computes token by token what a prompt has beyond the shortest one of its batch. A checkpoint is
converted to CTranslate2's format once, into the probe's own folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from kvadapters.probe.formats.tokenizer import END
from kvadapters.serving.driver import Answer, Declared, Driver, Sample, Wanted
from kvadapters.serving.together import Asked, Together
from kvspec.errors import BadInput

BLOCK, SEQUENCES = 16, 8
"""Sizes that are taken where none are asked for."""


def driver(wanted: Wanted) -> Driver:
    """Load a probe. Raises BadInput for a dtype that CTranslate2 does not compute in on a CPU."""
    if wanted.dtype != "f32":
        raise BadInput(f"CTranslate2 computes in f32 on a CPU, not in {wanted.dtype}")
    return CTranslate2(wanted.only("block", "sequences"))


def converted(folder: Path) -> Path:
    """Convert a checkpoint to CTranslate2's format, unless that was done before. Give its folder."""
    into = folder / "ctranslate2"
    if not (into / "config.json").exists():
        from ctranslate2.converters import TransformersConverter

        TransformersConverter(str(folder)).convert(str(into), force=True)
        said = json.loads((into / "config.json").read_text(encoding="utf-8"))
        said["bos_token"] = said["bos_token"] or END  # null where a tokenizer has none; then it is not loaded
        (into / "config.json").write_text(json.dumps(said), encoding="utf-8")
    return into


class CTranslate2(Together):
    """Calls `generate_batch` once somebody waits."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted.sequences or SEQUENCES)
        self.folder, self.block = converted(Path(wanted.folder)), wanted.block or BLOCK
        self.words: list[str] = json.loads((self.folder / "vocabulary.json").read_text(encoding="utf-8"))
        self.reset()
        self.declared = Declared(
            "ctranslate2",
            ctranslate2.__version__,
            f"compute_type={self.generator.compute_type} cache_static_prompt=True",
            can=frozenset({"reuse", "concurrent", "cancel", "cached", "reset"}),
            block=self.block,
            sequences=self.sequences,
        )

    def reset(self) -> None:
        """Load the model again: it keeps its static prompts for as long as it is loaded."""
        self.open, self.kept = [], set[tuple[int, ...]]()
        self.generator: Any = ctranslate2.Generator(str(self.folder), compute_type="float32", intra_threads=1)

    def static(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Choose a static prompt. It leaves at least one token of the request."""
        begun = [text for text in self.kept if tokens[: len(text)] == text and len(text) < len(tokens)]
        return max(begun, key=len, default=tokens[: (len(tokens) - 1) // self.block * self.block])

    def company(self, one: Asked) -> Sequence[Asked]:
        """Choose those with the same static prompt. With one token behind it a request has no company: where the
        shortest prompt has one token, CTranslate2 gives parts of the others' prompts as their answers."""
        size = len(static := self.static(one.request.tokens))
        longer = [each for each in (one, *self.open) if len(each.request.tokens) > size + 1]
        same = [each for each in longer if each.request.tokens[:size] == static]
        return [each for each in same if each is not one] if one in same else []

    def answered(self, batch: Sequence[Asked]) -> list[Answer]:
        """Generate a batch behind one static prompt."""
        static = self.static(batch[0].request.tokens)
        prompts = [[self.words[t] for t in one.request.tokens[len(static) :]] for one in batch]
        wanted, made = [one.request.new for one in batch], Counter[Any]()

        def stop(step: Any) -> bool:
            made[step.batch_id] += 1
            return bool(made[step.batch_id] >= wanted[step.batch_id])

        results = self.generator.generate_batch(
            prompts,
            max_length=max(wanted),
            static_prompt=[self.words[t] for t in static] or None,
            include_prompt_in_result=False,
            return_logits_vocab=True,
            callback=stop,
        )
        cached = len(static) if static in self.kept else 0
        self.kept |= {static} - {()}
        return [Answer((_sample(result),), cached) for result in results]


def _sample(result: Any) -> Sample:
    """Read a result. Its logits begin with those of the prompt's last steps; the answer's follow."""
    tokens, logits = tuple(result.sequences_ids[0]), result.logits[0]
    return Sample(tokens, np.stack([np.array(each).reshape(-1) for each in logits[len(logits) - len(tokens) :]]))
