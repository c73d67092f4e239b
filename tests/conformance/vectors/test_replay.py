"""Exported vectors: the plain reader replays each of them on the reference, and sees what was changed in one."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvconform.vectors import export, files
from kvspec.reading.clauses import index
from support.plain_reader import CHANGES, FOLDER, Engine, changed, expected, flip, reader

LINES = 60


SOME = ("ring", "batch", "mem", "rope")


@pytest.fixture(scope="module", params=[SOME, pytest.param((), marks=pytest.mark.slow)], ids=["some", "all"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is frozen of some chapters, or of all, exported: which fails where the reference does something else."""
    out = tmp_path_factory.mktemp("vectors")
    export.export(out, chapters=request.param)
    return out


def test_every_vector_replays_on_the_reference(folder: Path) -> None:
    found = dict(reader.replay(folder, Engine))
    assert {id_: wrong[0] for id_, wrong in found.items() if wrong} == {}
    assert len(found) == json.loads((folder / "index.json").read_text())["counts"]["vectors"]
    exported = {file.stem.removeprefix("examples-") for file in folder.glob("examples-*.json")}
    assert {e.id for c in index().values() if c.chapter in exported for e in c.examples} <= set(found)


def test_the_engine_leaves_nothing_out(folder: Path) -> None:
    """What is left out is not looked at: so everything that is expected must be there."""
    for file in sorted(folder.glob("examples-*.json")):
        tensors = reader._tensors(file.with_suffix(".safetensors"))
        for vector in files.read(file)["vectors"][::7]:
            engine = Engine()
            for step in vector["steps"]:
                given = {n: x for n, x, _ in reader._read(step.get("given", {}), tensors)}
                names = {n for n, _, _ in reader._read(step["see"], tensors)}
                assert names <= set(engine(step["op"], given)), (vector["id"], step["do"])


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
