"""Linear layers: what their states and convolutions hold is read, and what is wrong with it is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adapters.probe import engines
from kvadapters.probe import Probe, read
from kvadapters.probe.views import View

ROWS = 14


@pytest.fixture(scope="module")
def probe() -> Probe:
    return engines.small("qwen3-next", "linear,full,linear")


def found(probe: Probe, tokens: list[int], **faults: Any) -> set[Any]:
    judgement = read(probe, tokens, engines.logits(probe, tokens, **faults))
    return {(str(r.view), r.layer, r.query, f.sort, f.rows) for r in judgement.wrong for f in r.findings}


def block(probe: Probe, layer: int) -> int:
    """The number of the block that shows a layer's convolution."""
    return probe.layout.blocks.index((layer, View("conv", 4)))


@pytest.mark.parametrize("layer", [0, 2])
def test_what_a_convolution_holds_is_read_apart_from_the_state(probe: Probe, layer: int) -> None:
    """A window that is one too narrow, from one query on."""
    tokens, sees = engines.text(probe, ROWS), View("conv", 4).sees(ROWS)
    sees[10:] &= View("conv", 3).sees(ROWS)[10:]
    wrong = found(probe, tokens, masks={block(probe, layer): sees})
    assert wrong == {("conv 4", layer, query, "missing", (query - 3,)) for query in range(10, ROWS)}


@pytest.mark.parametrize("layer", [0, 2])
def test_a_state_that_lost_what_it_held_is_read(probe: Probe, layer: int) -> None:
    """It begins anew at row 9, where its convolution goes on."""
    tokens, sees = engines.text(probe, ROWS), View("full").sees(ROWS)
    sees[9:, :9] = False
    wrong = found(probe, tokens, masks={layer: sees})
    assert {w for w in wrong if w[1] == layer} == {
        ("linear", layer, query, "missing", tuple(range(9))) for query in range(9, ROWS)
    }
    assert not layer or wrong == {w for w in wrong if w[1] == layer}


def test_a_step_too_many_of_its_decay_is_read(probe: Probe) -> None:
    """All rows before it are a token further back than they must be; what entered is right."""
    tokens = engines.text(probe, ROWS)
    positions = [*range(9), *range(10, ROWS + 1)]
    wrong = found(probe, tokens, positions=positions)
    assert {(layer, query, sort) for view, layer, query, sort, _ in wrong if view == "linear"} == {
        (layer, query, "distance") for layer in (0, 2) for query in range(9, ROWS)
    }


def test_a_repeated_id_takes_the_place_of_the_earlier_one(probe: Probe) -> None:
    """A state that kept the earlier row is seen by that row's fingerprint and age."""
    tokens = engines.text(probe, ROWS)
    tokens[10] = tokens[3]
    assert found(probe, tokens) == set()
    sees = View("full").sees(ROWS)
    sees[10:, 10] = False
    wrong = found(probe, tokens, masks={2: sees})
    assert {(view, layer, sort) for view, layer, _, sort, _ in wrong} == {("linear", 2, "context")}


def test_the_network_is_a_gated_delta_rule(probe: Probe) -> None:
    """One token after another, as the rule is written: its state fades, a row replaces what its key held, and the
    query reads."""
    tokens = [*engines.text(probe, 9), *engines.text(probe, 4)]
    tensors = {k: v.astype(np.float64) for k, v in probe.architecture.tensors(probe.network).items()}
    x = probe.network.states(tokens)[0]
    h = x / np.sqrt((x**2).mean(-1, keepdims=True) + probe.network.eps)
    prefix = "model.layers.0.linear_attn."
    given = Recurrent({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
    want = probe.network.states(tokens)[1] - x
    assert np.abs(given.of(h) - want).max() < 1e-8


class Recurrent:
    """Qwen3-Next's linear layer from its tensors alone: two heads of keys, each for two heads of values."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors
        self.wide = len(tensors["norm.weight"])
        self.keys = (len(tensors["in_proj_qkvz.weight"]) - 8 * self.wide) // 4

    def of(self, h: Any) -> Any:
        keys, wide, t = self.keys, self.wide, self.tensors
        groups = (h @ t["in_proj_qkvz.weight"].T).reshape(len(h), 2, -1)
        query, key, value, gate = np.split(groups, np.cumsum([keys, keys, 2 * wide]), axis=2)
        channels = np.concatenate([part.reshape(len(h), -1) for part in (query, key, value)], axis=1)
        padded = np.concatenate([np.zeros((3, channels.shape[1])), channels])
        mixed = sum(padded[i : i + len(h)] * t["conv1d.weight"][:, 0, i] for i in range(4))
        mixed = mixed / (1 + np.exp(-mixed))
        query, key, value = np.split(mixed, np.cumsum([2 * keys, 2 * keys]), axis=1)
        query, key = (np.repeat(self._unit(p.reshape(len(h), 2, keys)), 2, axis=1) for p in (query, key))
        writes, rates = np.split((h @ t["in_proj_ba.weight"].T).reshape(len(h), 2, 4), 2, axis=2)
        fades = np.exp(-np.exp(t["A_log"]) * np.log1p(np.exp(rates.reshape(len(h), 4) + t["dt_bias"])))
        writes = 1 / (1 + np.exp(-writes.reshape(len(h), 4)))
        out = self._read(query, key, value.reshape(len(h), 4, wide), fades, writes)
        out = out / np.sqrt((out**2).mean(-1, keepdims=True) + 1e-6) * t["norm.weight"]
        gate = gate.reshape(len(h), 4, wide)
        return (out * gate / (1 + np.exp(-gate))).reshape(len(h), -1) @ t["out_proj.weight"].T

    def _unit(self, x: Any) -> Any:
        return x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)

    def _read(self, query: Any, key: Any, value: Any, fades: Any, writes: Any) -> Any:
        state, found = np.zeros((4, self.keys, self.wide)), []
        for q, k, v, fade, write in zip(query, key, value, fades, writes, strict=True):
            state = state * fade[:, None, None]
            held = np.einsum("hkv,hk->hv", state, k)
            state = state + np.einsum("hk,hv->hkv", k, (v - held) * write[:, None])
            found.append(np.einsum("hkv,hk->hv", state, q) / self.keys**0.5)
        return np.array(found)
