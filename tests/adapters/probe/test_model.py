"""A whole engine, asked in many histories: a right one is never accused; of a wrong one the shortest is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.probe import engines
from adapters.probe.engines import CASES
from kvadapters.probe import Precision, Probe
from kvadapters.probe.asked import asked
from kvadapters.probe.model import Model, from_model
from kvconform import cli


def engine(probe: Probe, rewound: int = 0, copy: Callable[[Any], Any] = list, chunk: Any = None) -> Model:
    """The probe's own network, whose cache is a list of tokens. A rewind drops `rewound` tokens too few; `chunk`
    changes the mask of an append: [rows, rows], and how many of them are new."""

    def decode(cache: list[int], tokens: list[int]) -> Any:
        cache += tokens
        layers = probe.layout.layers
        masks = {n: chunk(v.sees(len(cache)), len(tokens)) for n, v in enumerate(layers) if chunk and v.size}
        return engines.logits(probe, cache, masks=masks)[-len(tokens) :]

    def rewind(cache: list[int], tokens: int) -> None:
        del cache[len(cache) - tokens + rewound :]

    return from_model(list, decode, rewind, copy)


@pytest.mark.parametrize("name", ["gemma3"])
def test_a_right_engine_is_not_accused(name: str) -> None:
    probe = engines.small(name, CASES[name])
    verdict = asked(probe, engine(probe), most=14)
    assert verdict.failures == () and verdict.refused == 0, verdict.told()
    assert verdict.histories > 20 and verdict.queries > 150


def shown(probe: Probe, model: Model) -> str:
    verdict = asked(probe, model, most=14)
    return verdict.told(1)


def test_a_rewind_of_too_few_tokens_is_drawn() -> None:
    probe = engines.small("llama", "full,full")
    told = shown(probe, engine(probe, rewound=1))
    assert "after append 1; append 2; rewind 1; append 3:" in told
    assert "sees 1 row too many: t" in told and "which this text does not have" in told


def test_a_copy_that_shares_its_rows_is_drawn() -> None:
    probe = engines.small("llama", "full,full")
    told = shown(probe, engine(probe, copy=lambda cache: cache))
    assert "after append 1; copy 3; append 1:" in told
    assert "sees 3 rows too many: t" in told


def test_a_window_that_is_wrong_in_chunks_alone_is_drawn() -> None:
    """The first query of a chunk behind a full window sees one row too many."""

    def wide(sees: Any, new: int) -> Any:
        first = len(sees) - new
        if new > 1 and first > 5:
            sees[first, first - 5] = True
        return sees

    probe = engines.small("gemma3", "full,window 5")
    told = shown(probe, engine(probe, chunk=wide))
    assert "layer 1 (window 5), query" in told and "5 back)" in told
    assert "layer 0" not in told


def test_a_refused_rewind_is_counted_and_accuses_nobody() -> None:
    probe = engines.small("llama", "full,full")
    right = engine(probe)

    def refuse(cache: Any, tokens: int) -> None:
        raise RuntimeError("no")

    verdict = asked(probe, from_model(right.open, right.decode, refuse), most=8)
    assert verdict.failures == () and verdict.refused > 0


def loads(folder: str, dtype: str) -> Model:
    return engine(Probe.load(folder))


def too_wide(folder: str, dtype: str) -> Model:
    return engine(Probe.load(folder), rewound=1)


def test_the_command_asks_an_engine_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvconform.commands.ask.MOST_TOKENS", 6)
    assert cli.main(["probe", "llama", "--layers", "full", "-o", str(tmp_path)]) == 0
    assert cli.main(["ask", f"{__name__}:loads", str(tmp_path)]) == 0
    assert "0 wrong" in capsys.readouterr().out
    assert cli.main(["ask", f"{__name__}:too_wide", str(tmp_path)]) == 1
    assert "sees 1 row too many" in capsys.readouterr().out
    for name, words in (
        ("vlm", "unknown engine 'vlm'"),
        ("no:thing", "cannot be imported"),
        ("os:getcwd", "cannot load"),
    ):
        assert cli.main(["ask", name, str(tmp_path)]) == 2
        assert words in capsys.readouterr().err
    assert cli.main(["ask", "transformers", str(tmp_path / "nothing")]) == 2


def test_precision_is_that_of_the_engine() -> None:
    probe = engines.small("llama", "full,full")
    right = engine(probe)
    coarse = from_model(right.open, lambda cache, t: right.decode(cache, t).astype(np.float16))
    assert asked(probe, coarse, Precision("f16"), most=8).failures == ()
