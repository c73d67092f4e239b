"""llama.cpp in this process is judged by requests; faults that are planted in how its memory is used are found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kvadapters.serving.slots import Slot
from kvconform import cli
from kvreports import json_file
from kvspec.records.serving import ServingRecord

llama = pytest.importorskip("llama_cpp")
drivers = pytest.importorskip("kvadapters.serving.drivers.llama_cpp")

RUN = ["run", "--engine", f"{drivers.__name__}:streams", "--declare", "chunk=16,drafts=3", "--dtype", "f16"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("llama") / "probe"
    assert cli.main(["probe", "gemma3", "--layers", "window 8,full", "--format", "gguf", "-o", str(into)]) == 0
    return into


def judged(folder: Path, into: Path, *words: str) -> tuple[int, ServingRecord]:
    status = cli.main([*RUN, "--model", str(folder), "--report", str(into), "-x", *words])
    return status, json_file.load(into / "record.json", ServingRecord)


def test_llama_cpp_is_judged(folder: Path, tmp_path: Path) -> None:
    status, record = judged(folder, tmp_path, "--requests", "60")
    assert status == 3 and record.wrong_histories == 0  # so few requests do not exercise everything
    assert record.engine.name == "llama.cpp" and record.engine.version.endswith(llama.__version__)
    assert record.counted["cached tokens"] > 100 and record.counted["drafts accepted"] > 0


def test_a_row_too_many_of_a_prefix_is_found_and_drawn(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row behind what two texts share is reused: it is that of another token."""
    shared = Slot.shared

    def more(self: Slot, text: Sequence[int]) -> int:
        found = shared(self, text)
        return min(found + 1, len(self.held), len(text) - 1) if found else 0

    monkeypatch.setattr(Slot, "shared", more)
    status, record = judged(folder, tmp_path, "--requests", "60")
    assert status == 1
    assert record.failures[0].clause in ("SERVE-2", "SERVE-3", "SERVE-4")
    assert "of the second request" in record.failures[0].found[0] and "of the first" in record.failures[0].found[0]
    assert any("^ query" in line for line in record.failures[0].drawing)


def test_rows_that_are_not_removed_are_found(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands behind a reused prefix stays: llama.cpp itself then refuses the positions of the next batch."""
    keep = drivers.Context.keep
    monkeypatch.setattr(drivers.Context, "keep", lambda self, s, count: count or keep(self, s, count))
    status, record = judged(folder, tmp_path, "--requests", "60")
    assert status == 1 and "llama_decode returned -1" in record.failures[0].found[0]


@pytest.mark.parametrize("words", ["block=16", "block=16,blocks=17", "longest=9"])
def test_sizes_that_llama_cpp_does_not_have_are_refused(words: str, folder: Path) -> None:
    assert cli.main(["run", "--engine", "llama_cpp", "--model", str(folder), "--declare", words]) == 2


def test_rows_that_llama_cpp_does_not_have_are_refused(folder: Path) -> None:
    assert cli.main(["run", "--engine", "llama_cpp", "--model", str(folder), "--rows", "fp8_e4m3"]) == 2
