"""Match heads: the key of a row is not that of its value's token, which no other head shows. Rows are at their
right places, and no value is missing or doubled."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from adapters.probe import engines
from adapters.probe.engines import CASES
from kvadapters.probe import Judgement, Precision, Probe, read, read_tokens
from kvadapters.probe.checkpoint import LARGEST
from kvadapters.probe.heads import codes, partners

ROWS, WRONG, FOREIGN = 20, 7, 50


@pytest.fixture(scope="module")
def probes() -> dict[str, Probe]:
    return {name: engines.small(name, layers, match=True) for name, layers in CASES.items()}


def told(judgement: Judgement) -> set[tuple[int, int, str, tuple[int, ...]]]:
    return {(r.layer, r.query, f.sort, f.rows) for r in judgement.wrong for f in r.findings}


def text(probe: Probe) -> list[int]:
    return [t for t in engines.text(probe, 55) if t != FOREIGN][:ROWS]


def stale(probe: Probe, tokens: list[int], layer: int, row: int = WRONG, key: int = FOREIGN) -> np.ndarray:
    """What the network answers if a layer's key of one row is that of another id."""
    below = probe.network.states([*tokens[:row], key, *tokens[row + 1 :]])[layer]
    right = probe.network.states(tokens)[layer].copy()
    right[row] = below[row]
    return engines.logits(probe, tokens, keys={layer: right})


def layer_of(probe: Probe) -> int:
    return next(n for n in (1, 0) if probe.layout.layers[n].kind != "linear")


@pytest.mark.parametrize("name", CASES)
def test_a_right_engine_is_not_accused(probes: dict[str, Probe], name: str) -> None:
    probe = probes[name]
    for ids in (None, 5):
        tokens = engines.text(probe, 14, ids=ids)
        logits = engines.logits(probe, tokens)
        for answers in (logits, engines.logprobs(logits), engines.top(logits, 30)):
            judgement = read(probe, tokens, answers)
            assert judgement.wrong == [], judgement.told()


@pytest.mark.parametrize("name", CASES)
def test_the_key_of_another_token_is_named_by_layer_query_and_row(probes: dict[str, Probe], name: str) -> None:
    """Each query that sees the row tells it, its own too, as the others agree."""
    probe, tokens = probes[name], text(probes[name])
    layer = layer_of(probe)
    judgement = read(probe, tokens, stale(probe, tokens, layer))
    sees = probe.layout.layers[layer].sees(ROWS)[:, WRONG]
    must = {q for q in range(WRONG, ROWS) if sees[q] and not same(probe, tokens[q], tokens[WRONG])}
    assert told(judgement) == {(layer, q, "match", (WRONG,)) for q in must}, judgement.told()
    assert f"layer {layer}: row {WRONG} (t{tokens[WRONG]}) has the key of t{FOREIGN}, as all" in judgement.told()


def same(probe: Probe, asking: int, token: int) -> bool:
    """Whether a query of this token cannot tell the two keys apart."""
    signs, asked = codes(probe.layout.ids), partners(probe.layout.ids)[asking]
    return bool(signs[asked] @ signs[token] == signs[asked] @ signs[FOREIGN])


@pytest.mark.parametrize("name", CASES)
def test_without_match_heads_it_is_not_seen(name: str) -> None:
    probe = engines.small(name, CASES[name])
    tokens = text(probe)
    assert read(probe, tokens, stale(probe, tokens, layer_of(probe))).wrong == []


def test_values_that_changed_places_are_seen_where_no_distance_shows_them(probes: dict[str, Probe]) -> None:
    """A full layer of Llama 4 has no RoPE. Two rows whose keys changed places are two whose values did."""
    for match, expected in ((False, set()), (True, {3, 9})):
        probe = engines.small("llama4", "full,full", match=match)
        tokens = engines.text(probe, ROWS)
        kept = probe.network.states(tokens)[0]
        kept = kept[[9 if row == 3 else 3 if row == 9 else row for row in range(ROWS)]]
        judgement = read(probe, tokens, engines.logits(probe, tokens, keys={0: kept}))
        assert {p for _, _, _, rows in told(judgement) for p in rows} == expected, judgement.told()
    assert "row 3 (t" in judgement.told() and f"has the key of t{tokens[9]}, as all" in judgement.told(20)


@pytest.mark.parametrize(("dtype", "rows"), [("bf16", None), ("f16", None), ("f32", "q8_0"), ("f16", "q8_0")])
def test_in_a_coarser_form_too(probes: dict[str, Probe], dtype: str, rows: str | None) -> None:
    """A right engine is not accused; of those queries whose scores differ by more than rounding one tells it."""
    probe, tokens = probes["qwen3"], text(probes["qwen3"])
    form = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}[dtype]
    precision = Precision(dtype, rows)
    right, wrong = (a.astype(form) for a in (engines.logits(probe, tokens), stale(probe, tokens, 0)))
    assert read(probe, tokens, right.astype(np.float32), precision).wrong == []
    judgement = read(probe, tokens, wrong.astype(np.float32), precision)
    assert {(layer, sort, rows) for layer, _, sort, rows in told(judgement)} == {(0, "match", (WRONG,))}


def test_rows_of_four_bits_do_not_tell_keys(probes: dict[str, Probe]) -> None:
    probe, tokens = probes["llama"], text(probes["llama"])
    judgement = read(probe, tokens, engines.logits(probe, tokens), Precision("f16", "q4_0"))
    assert judgement.wrong == [] and "keys, as the form of rows is too coarse" in judgement.untold


def test_tokens_alone_have_a_regret() -> None:
    probe = engines.small("llama", "full,full", "tokens", match=True)
    tokens = text(probe)
    right = engines.logits(probe, tokens).argmax(1)
    for row in range(0, ROWS, 3):
        chosen = stale(probe, tokens, 0, row).argmax(1)
        for query in (int(q) for q in np.flatnonzero(chosen != right)[:1]):
            assert read_tokens(probe, tokens[: query + 1], [int(right[query])]).wrong == []
            assert read_tokens(probe, tokens[: query + 1], [int(chosen[query])]).wrong == [0]
            return
    raise AssertionError("no token shows it")


def test_the_record_says_so_and_the_default_has_none(tmp_path: object) -> None:
    path = str(tmp_path)
    plain, matched = Probe.of("qwen3", "full,window 8"), Probe.of("qwen3", "full,window 8", match=True)
    assert "match" not in plain.record() and matched.record()["match"] is True
    matched.write(path)
    assert Probe.load(path) == matched != plain
    assert matched.layout.heads == 12 and matched.layout.ids == 223


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_stays_small(name: str) -> None:
    for layers in ("4*full", "6*full" if name == "phi3" else "8*full"):
        probe = Probe.of(name, layers, match=True)
        assert 8 * probe.layout.hidden * probe.layout.vocabulary < LARGEST
        assert len(set(map(tuple, codes(probe.layout.ids).tolist()))) == probe.layout.ids


def test_a_fault_of_the_network_is_not_hidden_by_the_anchor(probes: dict[str, Probe]) -> None:
    """The newest row has the wrong key: the others agree, and it is named."""
    probe, tokens = probes["llama"], text(probes["llama"])
    judgement = read(probe, tokens, stale(probe, tokens, 0, ROWS - 1))
    assert told(judgement) == {(0, ROWS - 1, "match", (ROWS - 1,))}, judgement.told()
    assert replace(judgement, notes=()).wrong
