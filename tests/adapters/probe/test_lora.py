"""Adapters of a probe: each leaves its mark on the rows, and the reader names rows of another one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.probe.lora import ADAPTERS, SHARE, pattern
from kvadapters.probe.network import Layer
from kvadapters.probe.reader.queries import read
from kvadapters.probe.reader.tokens import read_tokens
from kvconform import cli
from kvspec.errors import BadInput

TEXT = list(range(3, 23))


def probe(output: str = "weights", layers: str = "full,window 6") -> Probe:
    return replace(engines.small("qwen3", layers, output), adapters=True)


def mixed(first: Probe, second: Probe, rows: int) -> Any:
    """The logits of the last query, where the first `rows` rows were computed with another adapter."""
    network, others = second.network, first.network.states(TEXT)
    x = network.embedding[TEXT].astype(np.float64) * network.embedding_factor
    for number, layer in enumerate(network.layers):
        assert isinstance(layer, Layer)
        x = np.concatenate([others[number][:rows], x[rows:]])
        kept = _Kept(layer, first.network.layers[number], rows)
        x = x + network._attention(kept, x, layer.view.sees(len(TEXT)), np.arange(len(TEXT)))  # type: ignore[arg-type]
    return network.logits(x[-1:])


class _Kept:
    """A layer of which the first rows have another adapter's values."""

    def __init__(self, mine: Any, foreign: Any, rows: int) -> None:
        self.mine, self.foreign, self.rows = mine, foreign, rows
        self.thin = (*mine.thin[:2], self, mine.thin[3])

    def of(self, h: Any) -> Any:
        return np.concatenate([self.foreign.thin[2].of(h[: self.rows]), self.mine.thin[2].of(h[self.rows :])])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mine, name)


def test_an_adapter_marks_each_row_and_changes_nothing_else() -> None:
    one = probe()
    plain, changed = (one.with_adapter(name).network.hidden(TEXT)[-1] for name in ("", "x"))
    prints = np.zeros(one.layout.hidden, bool)
    for number in range(len(one.layout.layers)):
        prints[one.layout.block(number).prints] = True
    assert np.abs(plain - changed)[~prints].max() < 0.01
    first = one.layout.block(0).prints
    assert np.allclose(changed[first], pattern(one.layout, "x"), atol=1e-3) and not plain[first].any()


def test_no_two_adapters_are_alike() -> None:
    layout = probe().layout
    patterns = [pattern(layout, name) for name in ("", *ADAPTERS)]
    assert all(np.abs(a - b).max() >= SHARE for i, a in enumerate(patterns) for b in patterns[:i])


@pytest.mark.parametrize("adapter", ["", *ADAPTERS])
@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "gpt-oss", "llama4"])
def test_what_is_computed_with_an_adapter_is_read_as_right_with_it_alone(name: str, adapter: str) -> None:
    layers = {"gemma3": "window 6,full", "gpt-oss": "window 6,full", "llama4": "chunk 8,full"}.get(
        name, "full,full"
    )
    one = replace(engines.small(name, layers), adapters=True)
    logits = one.with_adapter(adapter).network.logits(one.with_adapter(adapter).network.hidden(TEXT))
    for other in ("", *ADAPTERS):
        judgement = read(one.with_adapter(other), TEXT, logits)
        assert bool(judgement.wrong) == (other != adapter)


@pytest.mark.parametrize(("own", "other", "words"), [("x", "y", "with adapter y"), ("", "x", "with adapter x")])
def test_rows_of_another_adapter_are_counted_and_named(own: str, other: str, words: str) -> None:
    one = probe()
    judgement = read(one.with_adapter(own), TEXT, mixed(one.with_adapter(other), one.with_adapter(own), 8))
    said = [finding.words for reading in judgement.wrong for finding in reading.findings]
    assert said[0].startswith(f"sees 8 rows that were computed {words}; ")


def test_rows_without_an_adapter_are_named_in_a_layer_above_too() -> None:
    """The first layer shows six rows alone, none of which is wrong."""
    one = probe(layers="window 6,full")
    judgement = read(one.with_adapter("y"), TEXT, mixed(one, one.with_adapter("y"), 8))
    assert {reading.layer for reading in judgement.wrong} == {1}


def test_tokens_alone_tell_it_too() -> None:
    one = probe("tokens")
    chosen = [int(np.argmax(one.with_adapter("x").network.logits(one.with_adapter("x").network.hidden(TEXT))[-1]))]
    assert not read_tokens(one.with_adapter("x"), TEXT, chosen).wrong
    assert read_tokens(one, TEXT, chosen).wrong


def test_an_adapter_is_written_as_peft_and_as_llama_cpp_have_it(tmp_path: Path) -> None:
    one = probe()
    one.write(tmp_path / "peft")
    said = json.loads((tmp_path / "peft" / "adapters" / "x" / "adapter_config.json").read_text())
    assert said["peft_type"] == "LORA" and said["r"] == said["lora_alpha"] == 1
    probe(layers="full,full").write(tmp_path / "gguf", file_format="gguf")
    data = (tmp_path / "gguf" / "adapters" / "y.gguf").read_bytes()
    assert data[:4] == b"GGUF" and b"adapter.lora.alpha" in data and b"blk.1.attn_v.weight.lora_b" in data
    assert Probe.load(tmp_path / "peft").adapters


def test_what_has_no_adapters_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, why in (
        ("phi3", "no adapters of phi3"),
        ("deepseek", "no adapters of deepseek"),
        ("qwen3-next --layers linear,full", "no adapters of qwen3-next"),
        ("qwen3 --format mlx", "no adapters in the format mlx"),
    ):
        assert cli.main(["probe", *words.split(), "--adapters", "-o", str(tmp_path / "p")]) == 2
        assert why in capsys.readouterr().err
    with pytest.raises(BadInput, match="no adapter 'z'; there are x, y"):
        _ = probe().with_adapter("z").network
