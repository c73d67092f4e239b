"""The tokenizer of a probe: words between blanks, one for each id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

END = "<zero>"
"""The end of a text: an id that no context makes likely."""


def files(words: Sequence[str]) -> dict[str, Any]:
    """Give the two files that Hugging Face's tokenizers read. A word that it does not know is the end of a text:
    servers encode words of their own when they start."""
    special = {
        "id": words.index(END),
        "content": END,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [special],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "WordLevel",
                "vocab": {word: i for i, word in enumerate(words)},
                "unk_token": END,
            },
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "unk_token": END,
            "pad_token": END,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 1 << 17,
        },
    }
