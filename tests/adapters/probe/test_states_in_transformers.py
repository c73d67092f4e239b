"""States that are broken by hand in transformers: the reader names layer, query and token.

Run by `nox -s probe`; elsewhere torch is not there, and these tests are skipped."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.probe import engines
from adapters.probe.test_transformers import ask, model, transformers
from kvadapters.probe import Precision, Probe, read
from kvadapters.probe.asked import asked
from kvadapters.probe.engines import loaded

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

LAYERS, FIRST, ROWS, FOREIGN = ("linear,full", "full,linear"), 20, 30, 7
DTYPES = ("f32", "bf16", "f16")
STRANGE = f"sees 1 row too many: t{FOREIGN}, which this text does not have"


class Case:
    """An engine that has computed the first 20 tokens of a text of 30."""

    def __init__(self, folder: Path, layers: str, dtype: str) -> None:
        self.probe = Probe.of("qwen3-next", layers)
        self.probe.write(folder)
        self.layer = layers.split(",").index("linear")
        self.engine, self.dtype = model(folder, dtype), dtype
        self.tokens = [t for t in engines.text(self.probe, ROWS + 4) if t != FOREIGN][:ROWS]
        self.cache = self.run(self.fresh(), self.tokens[:FIRST])

    def fresh(self) -> Any:
        return transformers.DynamicCache(config=self.engine.config)

    def run(self, cache: Any, tokens: list[int]) -> Any:
        self.answers = ask(self.engine, tokens, past_key_values=cache, use_cache=True)
        return cache

    def found(self, chunk: int) -> dict[tuple[str, int], str]:
        """Go on to the end, so many tokens at once; give what is wrong first in each view of a layer, in words."""
        answers = []
        for at in range(FIRST, ROWS, chunk):
            self.run(self.cache, self.tokens[at : at + chunk])
            answers.append(self.answers)
        judgement = read(self.probe, self.tokens, np.concatenate(answers), Precision(self.dtype))
        found = dict[tuple[str, int], str]()
        for reading in judgement.wrong:
            found.setdefault((str(reading.view), reading.layer), f"{reading.query}: {reading.findings[0].words}")
        return found

    @property
    def state(self) -> Any:
        return self.cache.layers[self.layer]


@pytest.fixture(params=[(layers, dtype) for layers in LAYERS for dtype in DTYPES], ids=str)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(tmp_path, *request.param)


CHUNKS = pytest.mark.parametrize("chunk", [1, 5])


@CHUNKS
def test_a_state_that_is_right(case: Case, chunk: int) -> None:
    assert case.found(chunk) == {}


@CHUNKS
def test_a_token_too_many_entered_the_state(case: Case, chunk: int) -> None:
    other = case.run(copy.deepcopy(case.cache), [FOREIGN])
    case.state.recurrent_states = other.layers[case.layer].recurrent_states
    found = case.found(chunk)
    assert found["linear", case.layer] == f"{FIRST}: {STRANGE}" and ("conv 4", case.layer) not in found


@CHUNKS
def test_a_state_that_was_not_reset(case: Case, chunk: int) -> None:
    old = case.run(case.fresh(), [FOREIGN]).layers[case.layer]
    case.cache = case.fresh()
    case.cache.layers[case.layer] = old
    case.run(case.cache, case.tokens[:FIRST])
    found = case.found(chunk)
    assert found["linear", case.layer] == f"{FIRST}: {STRANGE}" and ("conv 4", case.layer) not in found


@CHUNKS
def test_a_state_that_a_rewind_does_not_restore(case: Case, chunk: int) -> None:
    """`crop` of a cache that records its past goes back in the convolution, not in the state."""
    case.cache = case.fresh()
    case.cache.activate_past_recording()
    case.run(case.cache, [*case.tokens[:FIRST], FOREIGN])
    case.cache.crop(-1)
    found = case.found(chunk)
    assert found["linear", case.layer] == f"{FIRST}: {STRANGE}" and ("conv 4", case.layer) not in found


@CHUNKS
def test_a_state_that_was_lost(case: Case, chunk: int) -> None:
    case.state.recurrent_states[0].zero_()
    found = case.found(chunk)["linear", case.layer]
    assert found.startswith(f"{FIRST}: does not see 20 rows: row "), found


@CHUNKS
def test_a_convolution_that_holds_a_token_too_few(case: Case, chunk: int) -> None:
    case.state.conv_states[0][..., 1] = 0
    row = FIRST - 3
    words = f"{FIRST}: does not see 1 row: row {row} (t{case.tokens[row]}, 3 back)"
    assert case.found(chunk) == {("conv 4", case.layer): words}


@pytest.mark.parametrize("dtype", DTYPES)
def test_its_caches_are_asked_in_many_histories(tmp_path: Path, dtype: str) -> None:
    """A rewind is refused: transformers has no earlier state. Copies whose linear layers are shared are found."""
    Probe.of("qwen3-next", "linear,full").write(tmp_path)
    probe, engine = Probe.load(tmp_path), loaded("transformers", str(tmp_path), dtype)
    verdict = asked(probe, engine, Precision(dtype), most=12)
    assert verdict.failures == () and verdict.queries > 50 and verdict.refused > 1, verdict.told()
    broken = asked(probe, replace(engine, copy=_shared(engine.copy)), Precision(dtype), most=12)
    assert "which this text does not have" in broken.told(), broken.told()


def _shared(right: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    assert right is not None

    def copied(cache: Any) -> Any:
        found = right(cache)
        found.layers[0] = cache.layers[0]
        return found

    return copied
