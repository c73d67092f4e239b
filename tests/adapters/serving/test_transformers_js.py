"""transformers.js, judged whole: caches that are cut and gone on from are right, a planted fault is found.

Run by `nox -s engines-transformers-js`; where the package is not there, these tests are skipped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving.driver import Wanted
from kvadapters.serving.node import WHERE
from kvspec.errors import BadInput
from support.running.whole_engines import judged

pytest.importorskip("onnxruntime_genai", reason="the builder of ONNX models is not installed")

from kvadapters.serving.drivers.transformers_js import PACKAGE, driver

if not Path(os.environ.get(WHERE, "."), "node_modules", PACKAGE).is_dir():
    pytest.skip("transformers.js is not installed", allow_module_level=True)

PROBE: Probe = engines.small("qwen3", "full,full")

PLANT = """
import {join} from "node:path";
import {pathToFileURL} from "node:url";
const home = join(process.cwd(), "node_modules", "@huggingface", "transformers", "dist", "transformers.node.mjs");
const {Tensor} = await import(pathToFileURL(home).href);
const {slice} = Tensor.prototype;
Tensor.prototype.slice = function (...places) {
    const [, , rows] = places, off = Number(Array.isArray(rows) && rows[1] < this.dims[2]);
    return slice.apply(this, off ? places.map((p) => p === rows ? [rows[0] + 1, rows[1] + 1] : p) : places);
};
"""
"""What is cut out of rows begins one row too late."""


def test_caches_that_are_gone_on_from_are_right(folder: Path) -> None:
    started = driver(Wanted(str(folder)))
    run = judged(started, PROBE, 100)
    counts = started.counts()
    started.close()
    assert not run.wrong_histories and counts["cached tokens"] > 100


def test_a_cut_that_is_off_by_one_is_found(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = tmp_path / "plant.mjs"
    plant.write_text(PLANT, encoding="utf-8")
    monkeypatch.setenv("NODE_OPTIONS", f"--import={plant.as_uri()}")
    started = driver(Wanted(str(folder)))
    run = judged(started, PROBE, 100)
    started.close()
    assert run.failures and run.failures[0].history.count("ask") <= 3


@pytest.mark.parametrize("wanted", [{"dtype": "bf16"}, {"chunk": 16}], ids=lambda w: next(iter(w)))
def test_what_it_cannot_be_is_refused(folder: Path, wanted: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"computes in f32|cannot be started with"):
        driver(Wanted(str(folder), **wanted))
