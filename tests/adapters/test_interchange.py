"""What one adapter packs another unpacks; where one names its axes wrongly, clauses on what was packed say so."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import kvconform
from kvadapters.find import load
from kvspec.geometry import Config
from support import fakes
from support.engines import interchange
from support.engines.carriers import CARRIERS
from support.engines.carriers import name as through
from support.engines.interchange import Mislabelled
from support.engines.interchange import name as named
from support.slow import one_in
from tools.interchange import ADAPTERS, crossed, judged
from tools.interchange_page import ENGINES, PAGE, between, counted, fitting, held, kept, moving

PAIRS = [(a, b) for a in ADAPTERS for b in ADAPTERS]
CELL = r"(\d+) of (\d+) +\|"


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fakes.environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("first", "second"), one_in(7, PAIRS))
def test_every_parcel_of_one_adapter_comes_to_the_other(first: str, second: str) -> None:
    conforms, passed = crossed(first, second)
    assert conforms, passed


def test_axes_that_lie_in_another_order_than_they_are_named_in_are_seen() -> None:
    seen = kvconform.run("support.engines.interchange:Mislabelled", chapters=["parcels"], quick=True, processes=1)
    broken = {clause.id for clause in seen.clauses if clause.verdict == "FAIL"}
    assert not seen.conforms and {"MOVE-1", "MOVE-2"} & broken


def test_worked_examples_alone_see_scales_that_stay_behind() -> None:
    assert held("support.engines.interchange:reference__reference").right
    assert not held("support.engines.interchange:ScaleLeftBehind").right


def test_the_page_tells_of_all_examples_that_pack_something() -> None:
    """Else `python -m tools.interchange_page` makes it anew."""
    cells = re.findall(CELL, PAGE.read_text(encoding="utf-8").replace(kept(), ""))
    assert len(cells) >= len(PAIRS) and {*cells} == {(str(len(moving())),) * 2}


def test_engines_stand_on_the_page_and_take_parcels_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `python -m tools.interchange_page --engines` makes its part anew. What is lost on the way is seen."""
    cells = re.findall(CELL, kept())
    assert len(cells) == len(ENGINES) ** 2 and all(passed == of != "0" for passed, of in cells)
    assert between("reference", "reference") == (len(fit := fitting("reference", "reference")), len(fit), "")
    monkeypatch.setattr(
        interchange, "mislabelled", lambda part: part._replace(descriptor={**part.descriptor, "order": "HBPND"})
    )
    pair = Mislabelled()
    pair.adapters = pair.adapters[::-1]
    assert not counted(pair, fit).right


def test_scales_that_stay_behind_are_seen() -> None:
    adapter, chapters = "support.engines.interchange:ScaleLeftBehind", ["parcels", "forms"]
    seen = kvconform.run(adapter, chapters=chapters, quick=True, processes=1)
    broken = {clause.id for clause in seen.clauses if clause.verdict == "FAIL"}
    assert not seen.conforms and "MOVE-5" in broken and any(id_.startswith("ROW-") for id_ in broken), broken


def test_parcels_in_files_arrive_as_they_were() -> None:
    conforms, passed = judged(through("reference", "file"))
    assert conforms, passed


def test_a_file_that_lacks_its_last_byte_is_no_parcel(tmp_path: Path) -> None:
    cache = load("reference").open("growing", Config())
    cache.append(*(np.ones(Config().shape(kind, 1), np.float16) for kind in "kv"))
    arrived = CARRIERS["file"]()(cache.pack(), tmp_path)
    assert arrived == cache.pack() and arrived.damage() is None
    assert arrived._replace(values=arrived.values[:-1]).damage() is not None


def test_a_pair_is_named_by_both() -> None:
    assert named("opencl-fast", "cuda-cpu") == "support.engines.interchange:opencl_fast__cuda_cpu"
