"""`kvconform vectors`: what is frozen is what the reference gives; what differs is named by id, step and field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.cli import main
from kvconform.vectors import export, files, verify
from kvref.caches.ring import Ring
from kvspec.errors import BadInput
from support.readers.plain_reader import CHANGES, changed, expected, flip
from support.slow import one_in

CHAPTERS = ("mask", "store", "rope", "copy")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vectors")
    export.export(out, ["examples"], CHAPTERS)
    return out


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A folder that a test may spoil."""
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kvconform(capsys: pytest.CaptureFixture[str]) -> Said:
    """The command line: status, standard output, standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["vectors", *words])
        return status, *capsys.readouterr()

    return run


def test_what_was_exported_is_verified(kvconform: Said, exported: Path) -> None:
    status, out, err = kvconform("verify", str(exported))
    assert (status, err) == (0, "") and out.endswith("4 files: exactly what the reference gives\n")


def test_what_was_exported_follows_the_schema(exported: Path) -> None:
    schema = jsonschema.Draft202012Validator(json.loads((exported / "schema.json").read_text()))
    for file in exported.glob("examples-*.json"):
        document = files.read(file)
        document["vectors"] = document["vectors"][::5]
        schema.validate(document)


def test_an_exported_vector_says_what_it_asks_and_what_queries_see(exported: Path) -> None:
    vectors = {v["id"]: v for v in files.read(exported / "examples-mask.json")["vectors"]}
    scored = vectors["MASK-6.1"]
    assert (scored["kinds"], scored["dtypes"]) == (["growing"], ["f16"])
    assert scored["operations"] == ["append", "mask", "open"]
    see = scored["steps"][2]["see"]
    assert see["sees"] == [[[[0, 1, 2], [1, 2], [0, 2]]]]
    assert see["scores"] == [[[[0.0, -1.0, 2.0], [0.0, 0.0], [0.5, -3.0]]]]
    assert vectors["MASK-2.1"]["steps"][1]["see"]["sees"] == [[[[0], [0, 1]]]]


def test_one_changed_row_that_a_query_sees_is_named(kvconform: Said, folder: Path) -> None:
    id_ = changed(folder / "examples-mask.json", '"sees": [[[[0], [0, 1]', '"sees": [[[[0], [0]')
    status, out, _ = kvconform("verify", str(folder), "--chapter", "mask")
    assert status == 1 and out.startswith(f"examples-mask.json: {id_}: step ") and "sees is [[[[0], [0]" in out


def test_what_is_frozen_is_verified(kvconform: Said) -> None:
    status, out, _ = kvconform("verify", "--chapter", "mem", "--chapter", "residency")
    assert status == 0 and out == "the frozen vectors, 6 files: exactly what the reference gives\n"


def test_an_export_says_what_it_wrote(kvconform: Said, tmp_path: Path) -> None:
    status, out, _ = kvconform(
        "export", "--out", str(tmp_path / "a" / "b"), "--source", "mutants", "--chapter", "mem"
    )
    document = files.read(tmp_path / "a" / "b" / "mutants-mem.json")
    assert status == 0 and f"{document['counts']['vectors']} vectors" in out and "in 1 files" in out


STEP = {
    "a value": "offset is 4; the reference gives 3",
    "a row": "state.0 is {'rows': [0, 1, 3]",
    "a mask": "mask is {'bits': ['110",
    "a clause": "clause is 'STORE-9'; the reference gives 'STORE-8'",
    "a result": "result is 'ok'; the reference gives 'refused'",
    "a sum": "fingerprint is {'number': '1.0'",
}


@pytest.mark.parametrize("what", one_in(2, CHANGES))
def test_one_changed_expectation_is_named(kvconform: Said, folder: Path, what: str) -> None:
    chapter, was, now = CHANGES[what]
    id_ = changed(folder / files.name("examples", chapter), was, now)
    status, out, _ = kvconform("verify", str(folder), "--chapter", chapter)
    first, last = out.splitlines()
    assert status == 1 and first.startswith(f"examples-{chapter}.json: {id_}: step ") and STEP[what] in first
    assert last.endswith("1 differ from what the reference gives")


def test_one_changed_byte_of_a_tensor_is_named(kvconform: Said, folder: Path) -> None:
    document = folder / "examples-rope.json"
    name = expected(document)
    naming = [v["id"] for v in files.read(document)["vectors"] if name in json.dumps(v)]
    flip(document, name)
    status, out, _ = kvconform("verify", str(folder), "--chapter", "rope")
    lines = out.splitlines()[:-1]
    assert status == 1 and [line.split(": ")[1] for line in lines] == naming
    assert all("the tensor holds" in line and ": step " in line for line in lines)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("words", "ring: append 9", "words is 'ring: append 9'; the reference gives"),
        ("needs", [], "needs is []; the reference gives ['mask"),
        ("steps", [], "not a vector: ValueError"),
        ("kind", "torus", "not a vector: BadInput: trace: kind is 'torus'"),
        ("surprise", 1, "surprise is 1; the reference gives missing"),
    ],
)
def test_what_is_about_a_vector_is_compared_too(folder: Path, field: str, value: Any, said: str) -> None:
    file = folder / "examples-mask.json"
    document = files.read(file)
    at = next(i for i, v in enumerate(document["vectors"]) if v["kind"] == "ring")
    document["vectors"][at][field] = value
    file.write_text(files.text(document))
    id_ = document["vectors"][at]["id"]
    found = list(verify.differences(file, with_tensors=True))
    assert any(line.startswith(f"examples-mask.json: {id_}: ") and said in line for line in found), found


def test_a_vector_that_was_taken_out_is_missed(folder: Path) -> None:
    file = folder / "examples-copy.json"
    document = files.read(file)
    del document["vectors"][3]
    file.write_text(files.text(document))
    assert "the header counts" in next(verify.differences(file, with_tensors=True))


def test_the_index_counts_its_files(kvconform: Said, folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    index["files"][0]["vectors"] += 1
    (folder / "index.json").write_text(json.dumps(index))
    status, out, _ = kvconform("verify", str(folder), "--chapter", "mask")
    assert status == 1 and "index.json: counts" in out and "index.json says that examples-mask.json holds" in out


@pytest.mark.parametrize("name", ["schema.json", "trace.schema.json", "clauses.json", "README.md", "LICENSE"])
def test_a_file_beside_the_vectors_that_was_changed_is_named(kvconform: Said, folder: Path, name: str) -> None:
    (folder / name).write_text((folder / name).read_text() + " ")
    status, out, _ = kvconform("verify", str(folder), "--chapter", "copy")
    assert status == 1 and out.startswith(f"{name}: not as it was exported: its sha256 is ")


def test_an_index_that_leaves_out_a_hash_differs(kvconform: Said, folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    del index["sha256"]["schema.json"]
    (folder / "index.json").write_text(json.dumps(index))
    status, out, _ = kvconform("verify", str(folder), "--chapter", "copy")
    assert status == 1 and out.startswith("index.json: no hash of schema.json\n")


def test_an_export_that_fails_leaves_the_one_before_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full(named: Any, file: Path) -> None:
        if "rope" in file.name:
            raise OSError(28, "No space left on device")
        file.with_suffix(".safetensors").write_bytes(b"")

    monkeypatch.setattr(files, "write_tensors", full)
    with pytest.raises(BadInput, match="cannot be written: No space left on device"):
        export.export(folder, ["examples"], CHAPTERS)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_other_clauses_are_mentioned(kvconform: Said, folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text()) | {"spec": "0123"}
    (folder / "index.json").write_text(json.dumps(index))
    status, _, err = kvconform("verify", str(folder), "--chapter", "copy")
    assert status == 0 and "was made from other clauses (0123)" in err


def half(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def text(what: str) -> Callable[[Path], None]:
    return lambda file: file.write_text(what) and None


BROKEN = [
    ("examples-mask.json", half, "examples-mask.json: not complete JSON: "),
    ("examples-mask.json", text("[]"), "examples-mask.json: not vectors of version 3"),
    ("examples-mask.json", text('{"kvvectors": 3}'), "not vectors: no source, chapter, counts, vectors"),
    ("examples-mask.json", Path.unlink, "examples-mask.json: cannot be read: No such file"),
    ("examples-rope.safetensors", half, "examples-rope.safetensors: "),
    ("examples-rope.safetensors", text("short"), "5 bytes, too few for its header; was it cut off?"),
    ("examples-rope.safetensors", text("\x02" + "\0" * 7 + "??"), "its header is no JSON object"),
    ("examples-rope.safetensors", Path.unlink, "examples-rope.safetensors: cannot be read: No such file"),
    ("index.json", half, "index.json: not the index of a folder of vectors"),
    (
        "index.json",
        text('{"files": [{"file": "../x", "vectors": 1}], "sha256": {}}'),
        "'../x' is not the name of a file in that",
    ),
    ("index.json", text('{"files": [], "sha256": ["../x"]}'), "index.json: not the index of a folder of vectors"),
    ("index.json", text('{"files": [], "sha256": {"../x": ""}}'), "'../x' is not the name of a file in that"),
    ("clauses.json", Path.unlink, "clauses.json: cannot be read: No such file"),
    ("index.json", Path.unlink, "index.json: cannot be read: No such file"),
]


@pytest.mark.parametrize(("name", "spoil", "said"), one_in(3, BROKEN))
def test_a_broken_file_says_what_is_wrong_and_where(
    kvconform: Said, folder: Path, name: str, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(folder / name)
    status, _, err = kvconform("verify", str(folder))
    assert status == 2 and err.startswith("kvconform: ") and said in err


def test_nothing_to_verify_is_no_success(kvconform: Said) -> None:
    status, _, err = kvconform("verify", "--chapter", "torus")
    assert status == 2 and "unknown chapter 'torus'" in err


def test_an_export_tells_how_far_it_is(exported: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    export.export(tmp_path, ["examples"], CHAPTERS, progress=lambda file, n: told.append((file.name, n)))
    assert told == [(entry["file"], 4) for entry in json.loads((exported / "index.json").read_text())["files"]]


class Late(Ring):
    """A rewind to 0 leaves the offset."""

    def rewind(self, to: int) -> None:
        super().rewind(to)
        self.offset = max(self.offset, 1)


def test_a_changed_reference_is_noticed(kvconform: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Reference, "caches", {**Reference.caches, "ring": Late})
    status, out, _ = kvconform("verify", "--chapter", "ring", "--source", "examples")
    assert status == 1 and "rewind 0): offset is 0; the reference gives 1" in out
    with pytest.raises(BadInput, match="the reference does not do what a frozen vector says: examples-ring"):
        export.export(tmp_path, ["examples"], ["ring"], verified=True)


def test_tensors_that_the_reference_no_longer_gives_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Reference, "rotate", lambda self, rows, positions, rope: rows * 0)
    with pytest.raises(BadInput, match=r"examples-rope.json: ROPE-\d+.1: step .*: rotated: the reference"):
        export.export(tmp_path, ["examples"], ["rope"])


def test_tensors_of_another_shape_or_dtype_differ(folder: Path) -> None:
    """A safetensors file that is whole, and holds something else."""
    file = folder / "examples-rope.json"
    whole, name = files.read_tensors(file), expected(file)
    whole[name] = np.zeros((1, *whole[name].shape), whole[name].dtype)
    files.write_tensors(whole, file)
    assert any("the tensor is" in line for line in verify.differences(file, with_tensors=True))
    del whole[name]
    files.write_tensors(whole, file)
    assert any(f"there is no tensor {name}" in line for line in verify.differences(file, with_tensors=True))
    whole |= {name: np.zeros(1, np.float32), "more": np.zeros(1, np.float32)}
    files.write_tensors(whole, file)
    assert any("tensors lie beside it" in line for line in verify.differences(file, with_tensors=True))
