"""node-llama-cpp, judged whole: its sequences are right, a planted fault is found.

Run by `nox -s engines-node-llama-cpp`; where the package is not there, these tests are skipped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving.driver import Request, Wanted
from kvadapters.serving.drivers.node_llama_cpp import PACKAGE, driver
from kvadapters.serving.node import WHERE
from kvspec.errors import BadInput, Refused
from support.running.whole_engines import judged

if not Path(os.environ.get(WHERE, "."), "node_modules", PACKAGE).is_dir():
    pytest.skip("node-llama-cpp is not installed", allow_module_level=True)

PROBE: Probe = engines.small("gemma3", "window 8,full")
FORMAT = "gguf"

PLANT = """
import {join} from "node:path";
import {pathToFileURL} from "node:url";
if (process.argv[1].endsWith("node_llama_cpp.mjs")) {  // the package forks a process to try whether it runs
    const home = join(process.cwd(), "node_modules", "node-llama-cpp", "dist", "index.js");
    const {LlamaContextSequence} = await import(pathToFileURL(home).href);
    LlamaContextSequence.prototype.adaptStateToTokens = async function (tokens) {
        const [start, end] = [Math.min(tokens.length, this.nextTokenIndex), this.nextTokenIndex];
        if (start < end)
            await this.eraseContextTokenRanges([{start, end}]);
    };
}
"""
"""Rows are kept by how many there are, whichever tokens they are of."""


def test_its_sequences_are_right_and_reuse_rows_and_accept_drafts(folder: Path) -> None:
    started = driver(Wanted(str(folder), drafts=3))
    run = judged(started, PROBE, 150)
    counts = started.counts()
    started.close()
    assert not run.wrong_histories
    assert counts["cached tokens"] > 100 and counts["drafts accepted"] > 0 and counts["drafts rejected"] > 0


def test_rows_of_another_text_are_found(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = tmp_path / "plant.mjs"
    plant.write_text(PLANT, encoding="utf-8")
    monkeypatch.setenv("NODE_OPTIONS", f"--import={plant.as_uri()}")
    started = driver(Wanted(str(folder)))
    run = judged(started, PROBE, 100)
    started.close()
    assert run.failures and run.failures[0].history.count("ask") <= 3


def test_a_request_that_has_no_room_is_refused(folder: Path) -> None:
    started = driver(Wanted(str(folder), longest=256))
    with pytest.raises(Refused, match="256 tokens"):
        started.submit(Request(tuple(range(100)) * 3))
    started.close()


@pytest.mark.parametrize("wanted", [{"rows": "q8"}, {"blocks": 16}], ids=lambda w: next(iter(w)))
def test_what_it_cannot_be_is_refused(folder: Path, wanted: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"has rows of|cannot be started with"):
        driver(Wanted(str(folder), **wanted))


def test_a_model_that_does_not_load_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not start"):
        driver(Wanted(str(tmp_path)))
