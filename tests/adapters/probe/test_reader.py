"""What is read off answers: right engines are never accused, and a fault is named by its layer, query and row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from adapters.probe import engines
from adapters.probe.engines import CASES
from kvadapters.probe import Judgement, Precision, Probe, read
from kvadapters.probe.views import View
from kvspec.errors import BadInput


def found(judgement: Judgement) -> set[tuple[int, int, str, tuple[int, ...]]]:
    return {(r.layer, r.query, f.sort, f.rows) for r in judgement.wrong for f in r.findings}


@pytest.fixture(scope="module")
def probes() -> dict[str, Probe]:
    return {name: engines.small(name, layers) for name, layers in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_right_engine_is_not_accused(probes: dict[str, Probe], name: str) -> None:
    probe = probes[name]
    for seed, ids in ((1, None), (2, 5)):
        tokens = engines.text(probe, 14, seed, ids)
        logits = engines.logits(probe, tokens)
        for answers in (logits, engines.logprobs(logits), engines.top(logits, 20)):
            judgement = read(probe, tokens, answers)
            assert judgement.wrong == [], judgement.told()
    same = read(probe, [5] * 4, engines.logits(probe, [5] * 4))
    counts = [[row.count for row in reading.rows] for reading in same.readings]
    assert counts == [
        [1 if reading.view.kind == "linear" else int(reading.view.sees(4)[reading.query].sum())]
        for reading in same.readings
    ], "a state holds the newest row of an id"


@pytest.mark.parametrize("name", CASES)
def test_the_reading_is_what_the_view_shows(probes: dict[str, Probe], name: str) -> None:
    """Sets, counts, and the distance of every row, of ids that stand there once."""
    probe = probes[name]
    tokens = engines.text(probe, 20)
    for reading in read(probe, tokens, engines.logits(probe, tokens)).readings:
        visible = np.flatnonzero(reading.view.sees(20)[reading.query])
        assert {row.positions for row in reading.rows} == {(p,) for p in visible}
        assert reading.seen == len(visible) and {row.count for row in reading.rows} == {1}
        assert np.allclose([row.weight for row in reading.rows], 1 / len(visible), rtol=1e-4)
        if getattr(probe.network.layers[reading.layer], "rope", "a linear layer"):
            assert all(reading.query - row.positions[0] in row.distances for row in reading.rows)
            assert np.mean([len(row.distances) for row in reading.rows]) <= 1.5


@pytest.mark.parametrize("name", [name for name in CASES if name != "gemma3"])
def test_a_row_that_holds_nothing_is_told(probes: dict[str, Probe], name: str) -> None:
    """Its weight is missing in the sum. All else weighs as much as before, one with another."""
    probe = probes[name]
    tokens, block = engines.text(probe, 12), probe.layout.block(1)
    hidden, rows = probe.network.hidden(tokens), probe.layout.layers[1].sees(12).sum(1)
    hidden[:, block.seen.start : block.prints.stop] *= (rows / (rows + 1))[:, None]
    judgement = read(probe, tokens, probe.network.logits(hidden))
    assert found(judgement) == {(1, query, "share", ()) for query in range(12)}
    assert f"the weights of {rows[11]} rows sum to 0." in judgement.told(most=12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layer", [0, 1])
def test_a_broken_mask_is_named_by_layer_query_and_row(probes: dict[str, Probe], name: str, layer: int) -> None:
    probe, tokens = probes[name], engines.text(probes[name], 14)
    sees = probe.layout.layers[layer].sees(14)
    for query, row, sort in ((11, 9, "missing"), (4, 6, "extra")):
        answers = engines.logits(probe, tokens, masks={layer: engines.without(sees, query, row)})
        judgement = read(probe, tokens, answers)
        assert found(judgement) == {(layer, query, sort, (row,))}, judgement.told()


@pytest.mark.parametrize(("name", "shown"), [("mistral", View("window", 6)), ("gemma3", View("full"))])
def test_another_view_is_named(probes: dict[str, Probe], name: str, shown: View) -> None:
    probe, tokens = probes[name], engines.text(probes[name], 24)
    judgement = read(probe, tokens, engines.logits(probe, tokens, masks={1: shown.sees(24)}))
    assert {r.layer for r in judgement.wrong} == {1}
    assert judgement.notes == (f"layer 1: all of these queries see what a layer of {shown} shows",)


@pytest.mark.parametrize("name", [name for name in CASES if name != "llama4"])
def test_a_row_at_a_wrong_position_is_found(probes: dict[str, Probe], name: str) -> None:
    """Positions that jump by one: all queries behind the jump see the rows before it at wrong distances."""
    probe, tokens = probes[name], engines.text(probes[name], 12)
    positions = [*range(9), *range(10, 13)]
    judgement = read(probe, tokens, engines.logits(probe, tokens, positions=positions))
    assert {f.sort for r in judgement.wrong for f in r.findings} == {"distance"}
    assert {(r.layer, r.query) for r in judgement.wrong} == {(layer, q) for layer in (0, 1) for q in (9, 10, 11)}


def reused(probe: Probe, first: list[int], block: list[int], other: list[int], rest: list[int]) -> Any:
    """Answers to other + block + rest of an engine that takes the block's rows from first + block."""
    a, b, c = len(first), len(first) + len(block), len(first) + len(block) + len(other)
    tokens = [*first, *block, *other, *rest]
    positions = [*range(b), *range(len(other)), *range(b, b + len(rest))]
    at = np.arange(len(tokens))
    sees = at[None] <= at[:, None]
    sees[b:, :a] = False
    sees[b:c, a:b] = False
    masks = {n: sees & probe_view(view, positions, len(at)) for n, (_, view) in enumerate(probe.layout.blocks)}
    return engines.logits(probe, tokens, masks=masks, positions=positions)[c:]


def probe_view(view: View, positions: list[int], rows: int) -> Any:
    at = np.array(positions)
    return (
        view.sees(max(positions) + 1)[at[:, None], at[None]] if view.kind != "full" else np.ones((rows, rows), bool)
    )


@pytest.mark.parametrize("name", CASES)
def test_a_page_found_under_a_wrong_key_is_found(probes: dict[str, Probe], name: str) -> None:
    """The right ids at the right distances: only fingerprints show that they were computed in another context."""
    probe, tokens = probes[name], engines.text(probes[name], 30)
    first, block, other, rest = (tokens[a:b] for a, b in ((0, 6), (6, 10), (10, 16), (20, 23)))
    judgement = read(probe, other + block + rest, reused(probe, first, block, other, rest))
    assert {(layer, sort) for layer, _, sort, _ in found(judgement)} == {(1, "context")}, judgement.told()
    right = read(probe, first + block + rest, reused(probe, first, block, first, rest))
    assert right.wrong == [], right.told()


def test_a_token_that_the_text_does_not_have_is_named(probes: dict[str, Probe]) -> None:
    probe, tokens = probes["llama"], engines.text(probes["llama"], 10)
    foreign = next(t for t in range(50) if t not in tokens)
    sees = View("full").sees(11)
    sees[1:, 0] = np.arange(1, 11) == 8
    answers = engines.logits(
        probe, [foreign, *tokens], masks={0: sees, 1: View("full").sees(11) & (np.arange(11) > 0)}
    )
    judgement = read(probe, tokens, answers[1:])
    assert [(r.layer, r.query, r.findings[0].words) for r in judgement.wrong] == [
        (0, 7, f"sees 1 row too many: t{foreign}, which this text does not have")
    ]


def test_the_page_says_what_is_printed() -> None:
    page = (Path(__file__).parents[3] / "docs/probe.md").read_text(encoding="utf-8")
    probe, tokens = Probe.of("gemma3", "full,window 8"), list(range(40))
    assert f"`{read(probe, tokens, engines.logits(probe, tokens)).told()}`" in page
    wide = engines.logits(probe, tokens, masks={1: View("window", 9).sees(40)})
    first, second, third, *_, last = read(probe, tokens, wide).told(2).splitlines()
    assert [line for line in (first, second, third, last) if f"    {line}\n" not in page] == []


def test_a_sink_that_is_left_out_is_seen(probes: dict[str, Probe]) -> None:
    probe = probes["gpt-oss"]
    plain = replace(probe, architecture=replace(probe.architecture, sink=None))
    tokens = engines.text(probe, 10)
    judgement = read(probe, tokens, engines.logits(plain, tokens))
    assert {f.sort for r in judgement.wrong for f in r.findings} == {"share"}


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_answers_in_sixteen_bits_are_read_within_their_bounds(probes: dict[str, Probe], dtype: str) -> None:
    narrow = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
    for probe in (probes[name] for name in ("llama", "gemma3", "gpt-oss", "deepseek")):
        tokens = engines.text(probe, 12)
        right = engines.logits(probe, tokens)
        broken = engines.logits(probe, tokens, masks={1: engines.without(probe.layout.layers[1].sees(12), 10, 9)})
        judgement = read(probe, tokens, right.astype(narrow).astype(np.float64), Precision(dtype))
        assert judgement.wrong == [], judgement.told()
        judgement = read(probe, tokens, broken.astype(narrow).astype(np.float64), Precision(dtype))
        assert found(judgement) == {(1, 10, "missing", (9,))}, judgement.told()


def test_too_few_logprobs_are_said_and_accuse_nobody(probes: dict[str, Probe]) -> None:
    probe, tokens = probes["llama"], engines.text(probes["llama"], 60)
    judgement = read(probe, tokens[-60:], engines.top(engines.logits(probe, tokens), 20)[-1:])
    assert judgement.wrong == [] and judgement.untold


@pytest.mark.parametrize(
    ("tokens", "answers", "words"),
    [
        ([1, 999], np.zeros((2, 4000)), "tokens are content ids"),
        ([], np.zeros((0, 4000)), "tokens are content ids"),
        ([1] * 2049, np.zeros((1, 4000)), "at most 2048"),
        ([1, 2], np.zeros((3, 4000)), "3 answers for 3 queries"),
        ([1, 2], np.zeros((2, 100)), "shape"),
        ([1, 2], np.full((2, 4000), np.nan), "not finite"),
        ([1, 2], np.zeros((2, 4000)), "no answer of this probe"),
        ([1, 2], [{1: -0.5}], "no logprob is known"),
    ],
)
def test_what_cannot_be_answers_is_refused(probes: dict[str, Probe], tokens: Any, answers: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read(probes["llama"], tokens, answers)
