"""Tokens alone: a right engine has no regret, and what a wrong one saw explains all that it chose."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.probe import engines
from adapters.probe.engines import CASES
from kvadapters.probe import Precision, Probe, read, read_tokens
from kvadapters.probe.views import View
from kvspec.errors import BadInput


def greedy(probe: Probe, prompt: list[int], tokens: int, layer: int = 0, sees: Any = None) -> list[int]:
    """The likeliest tokens, one after another; `sees` makes a layer's mask of a number of rows."""
    text = list(prompt)
    for _ in range(tokens):
        masks = {layer: sees(len(text))} if sees else {}
        text.append(int(engines.logits(probe, text, masks=masks)[-1].argmax()))
    return text[len(prompt) :]


@pytest.mark.parametrize("name", CASES)
def test_a_right_engine_has_no_regret(name: str) -> None:
    probe = engines.small(name, CASES[name], "tokens")
    prompt = engines.text(probe, 12)
    chosen = greedy(probe, prompt, 6)
    judgement = read_tokens(probe, prompt, chosen)
    assert judgement.wrong == [] and max(judgement.regrets) == 0
    assert max(judgement.bounds) < judgement.spread / 100, "f32 tells nearly everything"
    assert len(set(chosen)) > 3 and max(chosen) < probe.layout.ids


def test_what_a_wrong_engine_saw_is_named() -> None:
    probe = engines.small("gemma3", "full,window 5", "tokens")
    prompt = engines.text(probe, 12)
    judgement = read_tokens(probe, prompt, greedy(probe, prompt, 8, 1, View("window", 6).sees))
    assert judgement.wrong and judgement.explanations == ("layer 1 sees what a layer of window 6 shows",)

    def dropped(rows: int) -> Any:
        sees = View("full").sees(rows)
        sees[4:, 3] = False
        return sees

    judgement = read_tokens(probe, prompt, greedy(probe, prompt, 8, 0, dropped))
    assert f"layer 0 does not see row 3 (t{prompt[3]})" in judgement.explanations, judgement.told()


def test_what_rounding_may_change_is_said() -> None:
    probe = engines.small("llama", "full,full", "tokens")
    prompt = engines.text(probe, 12)
    judgement = read_tokens(probe, prompt, [0, 1, 2], Precision("bf16", rows="q4_0"))
    assert judgement.wrong == [] and "cannot be told: 3 tokens" in judgement.told()


def test_a_probe_for_logits_is_not_read_by_tokens_nor_the_other_way() -> None:
    for output, ask in (
        ("weights", lambda probe: read_tokens(probe, [1], [2])),
        ("tokens", lambda probe: read(probe, [1], engines.logits(probe, [1]))),
    ):
        with pytest.raises(BadInput, match="output is for"):
            ask(engines.small("llama", "full", output))
