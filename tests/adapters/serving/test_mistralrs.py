"""mistral.rs, judged whole by its tokens: its cache of prefixes is right, a planted fault is found.

Run by `nox -s engines-mistralrs`; elsewhere it is not there, and these tests are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving.driver import Wanted
from kvspec.errors import BadInput
from support.running.whole_engines import judged

pytest.importorskip("mistralrs", reason="mistral.rs is not installed")

PROBE: Probe = engines.small("qwen3", "full,full", "tokens")


def started(folder: Path, **wanted: Any) -> Any:
    from kvadapters.serving.drivers.mistralrs import driver

    return driver(Wanted(str(folder), **wanted))


def test_its_cache_of_prefixes_is_right(folder: Path) -> None:
    run = judged(started(folder), PROBE, 60)
    assert not run.wrong_histories and run.player.counts["cached tokens told"] > 100


def test_a_prefix_of_another_text_is_found(folder: Path) -> None:
    """As if rows were found by how many there are: each prompt has the first tokens of one that was there first."""
    driver, first = started(folder), list[int]()
    answered = driver.answered

    def confused(batch: Any) -> Any:
        tokens = batch[0].request.tokens
        if len(tokens) > 4:
            first.extend(tokens[:4] if not first else ())
            batch[0].request = replace(batch[0].request, tokens=(*first, *tokens[4:]))
        return answered(batch)

    driver.answered = confused
    assert judged(driver, PROBE, 200).failures


@pytest.mark.parametrize("wanted", [{"dtype": "f64"}, {"rows": "q8"}, {"block": 16}], ids=lambda w: next(iter(w)))
def test_what_it_cannot_be_is_refused(folder: Path, wanted: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"mistral.rs computes in|cannot be started with"):
        started(folder, **wanted)
