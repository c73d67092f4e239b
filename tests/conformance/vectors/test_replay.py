"""Exported vectors: the plain reader replays each of them on the reference, and sees what was changed in one."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvconform.vectors import export, files
from kvspec.reading.clauses import examples_of
from support.readers.plain_reader import CHANGES, FOLDER, Engine, changed, expected, flip, reader, visible

LINES = 65


SEES = {"growing", "ring", "bounded", "sink"}
"""Kinds of caches of which `visible.Visible` tells what queries see."""

SOME = ("ring", "batch", "mem", "rope", "bounded")


@pytest.fixture(scope="module", params=[SOME, pytest.param((), marks=pytest.mark.slow)], ids=["some", "all"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is frozen of some chapters, or of all, exported."""
    out = tmp_path_factory.mktemp("vectors")
    export.export(out, chapters=request.param)
    return out


def test_every_vector_replays_on_the_reference(folder: Path) -> None:
    found = dict(reader.replay(folder, Engine))
    assert {id_: wrong[0] for id_, wrong in found.items() if wrong} == {}
    assert len(found) == json.loads((folder / "index.json").read_text())["counts"]["vectors"]
    exported = {file.stem.removeprefix("examples-") for file in folder.glob("examples-*.json")}
    assert {e.id for c in exported for e in examples_of(c)} <= set(found)


def test_the_engine_leaves_nothing_out(folder: Path) -> None:
    """What is left out is not looked at: so everything that is expected must be there."""
    for file in sorted(folder.glob("examples-*.json")):
        tensors = reader._tensors(file.with_suffix(".safetensors"))
        for vector in files.read(file)["vectors"][::7]:
            engines = [Engine(vector)]
            sees = set(vector["kinds"]) <= SEES
            engines += [visible.Visible(Engine(vector))] if sees else []
            for step in vector["steps"]:
                given = {n: x for n, x, _ in reader._read(step.get("given", {}), tensors)}
                names = {n for n, _, _ in reader._read(step["see"], tensors)} - (set() if sees else {"sees"})
                found = {name for engine in engines for name in engine(step["op"], given)}
                assert names <= found, (vector["id"], step["do"])


def test_the_reader_needs_nothing_but_python_and_few_lines() -> None:
    text = (FOLDER / "replay.py").read_text()
    imported = {n.names[0].name if isinstance(n, ast.Import) else n.module for n in _imports(text)}
    assert imported <= sys.stdlib_module_names
    assert len([line for line in text.splitlines() if line.strip()]) <= LINES


def _imports(text: str) -> Iterator[Any]:
    yield from (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom))


def test_the_folder_tells_all_that_is_needed(folder: Path) -> None:
    assert "@" not in (folder / "README.md").read_text()
    assert "CC0-1.0" in (folder / "LICENSE").read_text()
    clauses = json.loads((folder / "clauses.json").read_text())
    listed = [entry["file"] for entry in json.loads((folder / "index.json").read_text())["files"]]
    assert sorted(listed) == sorted(f.name for f in folder.glob("*-*.json"))
    for file in sorted(folder.glob("covering-*.json")):
        assert {c for v in files.read(file)["vectors"] for c in v["exercises"]} <= set(clauses)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples of the chapters in which the tests change something."""
    out = tmp_path_factory.mktemp("examples")
    export.export(out, ["examples"], ["mask", "store", "rope", "copy"])
    return out


@pytest.fixture
def small(examples: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return Path(shutil.copytree(examples, tmp_path / "examples"))


@pytest.mark.parametrize("what", CHANGES)
def test_the_reader_sees_what_was_changed(small: Path, what: str) -> None:
    chapter, was, now = CHANGES[what]
    id_ = changed(small / files.name("examples", chapter), was, now)
    assert [id_] == [name for name, wrong in reader.replay(small, Engine) if wrong]


@pytest.mark.parametrize("chapter", ["rope", "copy"])
def test_the_reader_sees_one_changed_byte_of_a_tensor(small: Path, chapter: str) -> None:
    """Of an expected one, to the bit; a small change of what RoPE gives lies within its bound."""
    document = small / files.name("examples", chapter)
    flip(document, expected(document))
    wrong = [name for name, texts in reader.replay(small, Engine) if texts]
    assert wrong
    loosely = [name for name, texts in reader.replay(small, Engine, within=True) if texts]
    assert loosely == ([] if chapter == "rope" else wrong)


def test_outputs_beyond_their_bounds_are_seen(small: Path) -> None:
    class Twice(Engine):  # type: ignore[misc]
        """What RoPE gives is zeros."""

        def __call__(self, op: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
            found = super().__call__(op, given)
            dtype, shape, data = found.get("rotated") or ("", [], b"")
            return found | ({"rotated": (dtype, shape, bytes(len(data)))} if dtype else {})

    wrong = [id_ for id_, texts in reader.replay(small, Twice, within=True) if texts]
    assert wrong and all(id_.startswith("ROPE-") for id_ in wrong)


SEEN = ("ring", "draft", "growing", "mask", "snapshot")


@pytest.fixture(scope="module", params=[SEEN[:2], pytest.param(SEEN, marks=pytest.mark.slow)], ids=["some", "all"])
def masked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of chapters in which queries see rows through masks: of some, or of all."""
    out = tmp_path_factory.mktemp("seen")
    export.export(out, ["examples", "covering"], request.param)
    return out


class Turned(Engine):  # type: ignore[misc]
    """Rows lie newest first, which no query can see."""

    def __call__(self, op: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        found = super().__call__(op, given)
        for name in ("history.k", "history.v"):
            found |= {name: _turned(found[name], 2)} if found.get(name) else {}
        wide = found.get("mask") and found["mask"][1][3] > 1
        return found | ({"mask": _turned(found["mask"], 3)} if wide else {})


def _turned(raw: Any, axis: int) -> Any:
    dtype, shape, data = raw
    cells = np.frombuffer(data, {"bool": "?", "f32": "<u4"}.get(dtype, "<u2")).reshape(shape)
    return dtype, shape, np.flip(cells, axis).tobytes()


@pytest.mark.parametrize("engine", [Engine, Turned])
def test_at_level_visible_the_rows_of_each_query_are_compared(masked: Path, engine: Any) -> None:
    """In whatever order they lie."""
    found = dict(reader.replay(masked, lambda vector: visible.Visible(engine(vector))))
    assert len(found) > 100 and {id_: wrong[0] for id_, wrong in found.items() if wrong} == {}
    assert any(wrong for _, wrong in reader.replay(masked, engine)) == (engine is Turned)


class Wide(Engine):  # type: ignore[misc]
    """A mask that lets every query see the newest row, its own future among it."""

    def __call__(self, op: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        found = super().__call__(op, given)
        dtype, shape, data = found.get("mask") or ("", [], b"")
        if dtype == "bool" and shape[2] > 1:
            cells = np.frombuffer(data, "?").reshape(shape).copy()
            cells[..., -1] = True
            found["mask"] = dtype, shape, cells.tobytes()
        return found


class Twice(Engine):  # type: ignore[misc]
    """The oldest row stands in the history twice, and no mask hides it."""

    def __call__(self, op: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        found = super().__call__(op, given)
        if op["op"] == "append" and op["n"] == 1 and found.get("history.k") and found["history.k"][1][2]:
            for name in ("history.k", "history.v"):
                dtype, shape, data = found[name]
                rows = np.frombuffer(data, "<u4" if dtype == "f32" else "<u2").reshape(shape)
                rows = np.concatenate([rows[:, :, :1], rows], axis=2)
                found[name] = dtype, list(rows.shape), rows.tobytes()
        return found


@pytest.mark.parametrize("engine", [Wide, Twice])
def test_a_row_that_is_seen_and_should_not_be_is_told(masked: Path, engine: Any) -> None:
    found = dict(reader.replay(masked, lambda vector: visible.Visible(engine(vector))))
    wrong = [texts[0] for texts in found.values() if texts]
    assert len(wrong) > 50 and all(": sees is " in text for text in wrong)


def test_an_engine_takes_only_the_vectors_that_it_can(masked: Path) -> None:
    """It is told what a vector needs before it makes a cache."""

    def make(vector: dict[str, Any]) -> Any:
        few = set(vector["operations"]) <= {"open", "append", "view"}
        return Engine(vector) if few and vector["kinds"] == ["ring"] and vector["dtypes"] == ["f16"] else None

    taken = dict(reader.replay(masked, make))
    told = {v["id"]: v for file in masked.glob("*-*.json") for v in files.read(file)["vectors"]}
    assert 5 < len(taken) < len(told) and not any(taken.values())
    for id_ in taken:
        assert told[id_]["kind"] == "ring" and told[id_]["needs"] == ["ring"]
        assert {step["op"]["op"] for step in told[id_]["steps"]} <= {"open", "append", "view"}
