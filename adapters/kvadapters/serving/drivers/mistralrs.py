"""mistral.rs in this process: its `Runner`, with its cache of prefixes, one request after another.

It takes and gives text: take a probe of `--output tokens`, whose words stand for ids. Its Python package takes no
request while it computes one. Its reader of tokenizers asks how ids become bytes. A second tokenizer file says so,
which a probe does not need otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mistralrs

from kvadapters.serving.driver import Answer, Declared, Driver, Sample, Wanted
from kvadapters.serving.together import Asked, Together
from kvspec.errors import BadInput

DTYPES = {"f32": "F32", "bf16": "BF16", "f16": "F16"}
COMPUTES = {"f32": "tf32"}
"""In f32, logits of 123 are up to 0.05 off, which are roundings to eleven bits and not to 24."""
KEPT = 16
"""Prefixes that it keeps: its default."""


def driver(wanted: Wanted) -> Driver:
    """Load a probe. Raises BadInput for a dtype that it does not have."""
    if wanted.dtype not in DTYPES:
        raise BadInput(f"mistral.rs computes in {', '.join(DTYPES)}, not in {wanted.dtype}")
    return MistralRs(wanted.only())


class MistralRs(Together):
    """Sends a request once somebody waits for it."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(1)
        self.folder, self.dtype = Path(wanted.folder), DTYPES[wanted.dtype]
        said = json.loads((self.folder / "tokenizer.json").read_text(encoding="utf-8"))
        self.ids: dict[str, int] = said["model"]["vocab"]
        self.words = sorted(self.ids, key=self.ids.__getitem__)
        self.tokenizer = self.folder / "tokenizer-mistralrs.json"
        bytes_of = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        self.tokenizer.write_text(json.dumps({**said, "decoder": bytes_of}), encoding="utf-8")
        self.word = re.compile(r"t\d+|<\w+>|layer\d+\.\w+\.\d+")
        self.reset()
        self.declared = Declared(
            "mistral.rs",
            version("mistralrs"),
            f"prefix_cache_n={KEPT}",
            tells="tokens",
            can=frozenset({"reuse", "cancel", "cached", "reset"}),
            sequences=1,
            computes=COMPUTES.get(wanted.dtype, ""),
        )

    def reset(self) -> None:
        """Load the model again."""
        self.open = []
        files = {"model_id": str(self.folder), "tokenizer_json": str(self.tokenizer)}
        which = mistralrs.Which.Plain(**files, dtype=getattr(mistralrs.ModelDType, self.dtype))
        self.runner: Any = mistralrs.Runner(which=which, prefix_cache_n=KEPT, max_seqs=1)

    def company(self, one: Asked) -> Sequence[Asked]:
        """Choose none: a request is computed alone."""
        return ()

    def answered(self, batch: Sequence[Asked]) -> list[Answer]:
        """Send a request, and read the words of its answer."""
        (one,) = batch
        how = {"model": "default", "max_tokens": one.request.new, "temperature": 0.0, "ignore_eos": True}
        prompt = " ".join(self.words[t] for t in one.request.tokens)
        said = self.runner.send_completion_request(mistralrs.CompletionRequest(prompt, **how))
        tokens = tuple(self.ids[word] for word in self.word.findall(said.choices[0].text))
        details = said.usage.prompt_tokens_details
        return [Answer((Sample(tokens),), int(details.cached_tokens) if details else 0)]
