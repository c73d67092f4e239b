"""The frozen vectors themselves: their form, what is among them, and that they find the bugs they are there for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from kvconform.bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.generate import frozen_covers
from kvconform.vectors import arrays, export, files
from kvconform.vectors.vector import OBSERVED, Vector, read
from kvspec import notation
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.geometry import Config
from kvspec.operations.table import OPERATIONS, argument, cache_of
from kvspec.reading.clauses import index
from kvspec.rows.book import SerialBook
from kvspec.rows.fills import MAKE
from kvspec.rows.legible import legible
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.readers.plain_reader import Engine, reader
from support.running.local_adapter import LocalAdapter
from tools import freeze_vectors as freezing
from tools.freeze_vectors import written
from tools.freezing import sources as vector_sources
from tools.freezing.mutants import of_matrix

FROZEN = list(files.there(files.FROZEN))
SCHEMA = jsonschema.Draft202012Validator(
    json.loads(resources.files("kvspec").joinpath("schemas", "vectors.json").read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("file", FROZEN, ids=lambda f: f.stem)
def test_a_frozen_file_is_text_with_a_step_a_line(file: Path) -> None:
    text, document = file.read_text(encoding="utf-8"), files.read(file)
    assert files.text(document) == text
    assert text.count("\n") >= document["counts"]["steps"]
    assert document["licence"] == "CC0-1.0" and file.name == files.name(document["source"], document["chapter"])


def test_every_source_is_frozen_for_every_chapter_and_no_id_twice() -> None:
    assert {f.name for f in FROZEN} == set(files.names())
    ids = [v["id"] for f in FROZEN for v in files.read(f)["vectors"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("file", FROZEN, ids=lambda f: f.stem)
def test_frozen_files_follow_the_schema(file: Path) -> None:
    document = files.read(file)
    document["vectors"] = document["vectors"][::36]
    SCHEMA.validate(document)


SPOILED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no counts": lambda d: d.pop("counts"),
    "another licence": lambda d: d.update(licence="MIT"),
    "no steps": lambda d: d["vectors"][0].update(steps=[]),
    "no result": lambda d: d["vectors"][0]["steps"][0]["see"].pop("result"),
    "a refusal without its clause": lambda d: d["vectors"][0]["steps"][0]["see"].update(result="refused"),
    "rows of no dtype": lambda d: d["vectors"][0]["steps"][1]["given"]["rows"]["k"].pop(0),
    "a stranger": lambda d: d["vectors"][0].update(stranger=1),
}


@pytest.mark.parametrize("what", SPOILED)
def test_the_schema_refuses_what_is_none(what: str) -> None:
    document = files.read(files.FROZEN / "examples-ring.json")
    document["vectors"] = document["vectors"][:1]
    assert SCHEMA.is_valid(document)
    SPOILED[what](document)
    assert not SCHEMA.is_valid(document)


def test_every_worked_example_is_frozen() -> None:
    found = {v["id"]: read(v) for p in CHAPTERS for v in frozen("examples", p)}
    for clause in index().values():
        for example in clause.examples:
            assert found[example.id].trace == example.trace and found[example.id].clause == clause.id


def frozen(source: str, chapter: str) -> list[dict[str, Any]]:
    return list(files.read(files.FROZEN / files.name(source, chapter))["vectors"])


def test_the_covering_set_is_chosen_as_it_is_frozen() -> None:
    """Of a small cover; and everything that happens in it happens in the traces chosen."""
    chosen, all_ = (
        list(vector_sources.covering("residency")),
        frozen_covers.load("residency"),
    )
    assert [v.id for v in chosen] == [v["id"] for v in frozen("covering", "residency")]
    happens = [vector_sources.happens(t.one_by_one()) for cover in all_ for t in cover.traces()]
    assert set().union(*map(vector_sources.happens, (v.trace for v in chosen))) == set().union(*happens)
    assert len(chosen) < len(happens) / 10


def test_sentences_of_traces_are_read_back() -> None:
    for clause in index().values():
        for e in clause.examples:
            assert filled(notation.from_sentence(notation.sentence(e.trace))) == filled(e.trace)


def filled(trace: Trace) -> Any:
    """A trace with every argument, said or not."""
    named = [{a.name: argument(op, a.name) for a in OPERATIONS[op["op"]].arguments} for op in trace.ops]
    return trace.kind, trace.config, [(op["op"], cache_of(op)) for op in trace.ops], named


def test_each_real_bug_is_found_by_its_vector(tmp_path: Path) -> None:
    """By the plain reader, on the reference with the bug: but for bugs that show in what operations cost alone."""
    export.export(tmp_path, ["mutants"])
    at = {v["id"]: (v, file) for file in tmp_path.glob("mutants-*.json") for v in files.read(file)["vectors"]}
    listed = {id_: vector for id_, (vector, _) in at.items()}
    planted = {m.id: m for m in known_bugs.real() if m.id in listed}
    missed = {id_ for id_, m in planted.items() if not seen(*at[id_], m.adapter())}
    assert {id_: listed[id_]["words"] for id_ in missed if not costs_alone(planted[id_], listed[id_])} == {}
    assert len(planted) > 100 > 10 > len(missed)


def costs_alone(m: Mutant, vector: dict[str, Any]) -> bool:
    """Whether a bug shows on its trace in nothing but what the meter counts."""
    differences = LocalAdapter(m.adapter()).run(notation.from_sentence(vector["words"])).differences
    return {d.field for d in differences} == {"meter"}


def seen(vector: dict[str, Any], file: Path, adapter: Any) -> bool:
    """Whether a vector of a file shows that something is wrong with an adapter."""

    def make() -> Any:
        made = Engine(vector)
        made.session = Session(adapter, observe=OBSERVED)
        return made

    tensors = reader._tensors(file.with_suffix(".safetensors"))
    try:
        return any(reader._differences(vector, tensors, make(), False))
    except Exception:
        return True  # what it gave could not even be read


MATRIX = [
    {
        "id": "RING-01/WrapsOneLate",
        "class": "RING",
        "link": "https://example.org/1",
        "says": "It errs.",
        "clauses": ["RING-2"],
    },
    {"id": "a #1", "class": "systematic", "link": "", "says": "", "clauses": []},
    {"id": "a #2", "class": "systematic", "link": "", "says": "", "clauses": []},
    {"id": "b", "class": "systematic", "link": "", "says": "", "clauses": []},
]
FOUND = {"killed": True, "operations": 1, "control": "", "message": "slot 0 is wrong", "by": ["RING-1", "RING-2"]}


def matrix(file: Path) -> Path:
    traces = ("ring window=2: append 1", *["ring window=3: append 2"] * 2, "growing: append 1")
    listed = [{**m, **FOUND, "trace": t} for m, t in zip(MATRIX, traces, strict=True)]
    listed[3]["by"] = ["GROW-1"]
    others = {"killed": False}, {"by": []}, {"operations": 0}, {"control": "dies"}
    file.write_text(json.dumps({"mutants": [*listed, *({**listed[0], **o} for o in others)]}))
    return file


def test_mutants_are_read_from_a_matrix(tmp_path: Path) -> None:
    found, left_out = of_matrix(matrix(tmp_path / "mutants.json"))
    assert left_out == {} and {p: [v.clause for v in each] for p, each in found.items() if each} == {
        "growing": ["GROW-1"],
        "ring": ["RING-2", "RING-1"],
    }
    real, systematic = found["ring"]
    assert real.id == "RING-01/WrapsOneLate"
    assert real.notes["links"] == ["https://example.org/1"] and real.notes["effect"]
    assert systematic.notes["finds"] == ["a #1", "a #2"] and systematic.bug_class == "systematic"
    assert notation.sentence(systematic.trace) == "ring window=3: append 2"
    with pytest.raises(BadInput, match="not what `kvconform mutants --report` writes"):
        of_matrix(tmp_path / "other.json")


WRITTEN_OUT = {
    "POS-02/LastOneStays": ("growing step=3: run 2 {append 1}; rewind 1", ""),
    "lost-rows/QueueOfThree": ("growing: run 4 {append 1}", "its trace shows it only unobserved"),
    "TRIM-14/RebasedOnce": ("ring window=2: run 36 {append 1; rewind 0}", "its trace has 72 operations"),
    "MASK-20/RecordsMoreThanItSays": ("ring window=1: append 1026", "its trace has 1026 rows or slots"),
    "a #1": ("ring window=2: run 2 {append 1}", ""),
    "a #2": ("copy capacity=1026 layout=head: copy 1 0", "its trace has 1026 rows or slots"),
}
"""Traces of bugs, and why there is no vector of them."""


def of_runs(file: Path) -> Path:
    about = {"link": "", "says": "", "clauses": [], **FOUND}
    sorts = {id_: "systematic" if " " in id_ else id_.partition("-")[0] for id_ in WRITTEN_OUT}
    traces = ({"id": id_, "class": sorts[id_], "trace": trace, **about} for id_, (trace, *_) in WRITTEN_OUT.items())
    file.write_text(json.dumps({"mutants": list(traces)}))
    return file


def test_runs_are_written_out_and_what_is_too_long_for_it_is_left_out_by_name(tmp_path: Path) -> None:
    file = of_runs(tmp_path / "mutants.json")
    found, left_out = of_matrix(file)
    assert {id_: why.split(",")[0] for id_, why in left_out.items()} == {
        id_: why for id_, (_, why) in WRITTEN_OUT.items() if why
    }
    vectors = {v.id: v for each in found.values() for v in each}
    assert sorted(len(v.trace.ops) for v in vectors.values()) == [2, 3]
    assert notation.sentence(vectors["POS-02/LastOneStays"].trace) == "growing step=3: append 1; append 1; rewind 1"
    was = replace(vectors["POS-02/LastOneStays"], id="TRIM-14/RebasedOnce")
    again, left_out = of_matrix(file, {was.id: was})
    assert was.id not in left_out and was.trace in [v.trace for v in again["growing"] if v.id == was.id]
    long = replace(was, trace=notation.from_sentence("growing: append 1026"))
    assert of_matrix(file, {was.id: long}).left_out.keys() >= {was.id}


def test_what_has_no_vector_is_said(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert freezing.main(["mutants", "--write", "--mutants", str(of_runs(elsewhere / "matrix.json"))]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no vector of ")]
    assert "no vector of lost-rows/QueueOfThree: its trace shows it only unobserved" in said
    assert len(said) == sum(bool(why) for _, why in WRITTEN_OUT.values()) - 1  # one has a vector that is frozen


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder of frozen vectors."""
    monkeypatch.setattr(files, "FROZEN", tmp_path)
    for chapter in ("mem", "ring"):
        shutil.copy(FROZEN[0].parent / files.name("mutants", chapter), tmp_path)
    return tmp_path


def test_what_is_frozen_is_computed_anew(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a matrix the mutants' vectors are those that are frozen, with what the reference does now."""
    assert freezing.main(["mutants"]) == 0
    assert capsys.readouterr().out == "mutants-ring.json: as frozen\nmutants-mem.json: as frozen\n"
    file = elsewhere / "mutants-mem.json"
    was = file.read_text()
    file.write_text(was.replace('"held": 56', '"held": 57'))
    assert freezing.main(["mutants"]) == 1
    assert "mutants-mem.json: DIFFERS from what is frozen" in capsys.readouterr().out
    assert freezing.main(["mutants", "--write"]) == 0 and file.read_text() == was


def test_one_chapter_is_computed_alone(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert freezing.main(["mutants", "--chapter", "mem"]) == 0
    assert capsys.readouterr().out == "mutants-mem.json: as frozen\n"


def test_a_new_matrix_is_frozen_as_a_whole(elsewhere: Path) -> None:
    assert freezing.main(["mutants", "--write", "--mutants", str(matrix(elsewhere / "matrix.json"))]) == 0
    assert [f.name for f in files.there(elsewhere)] == ["mutants-growing.json", "mutants-ring.json"]


SHAPES = {
    "bhtd": lambda k: k,
    "thd": lambda k: np.ascontiguousarray(k[0].transpose(1, 0, 2)),
}


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("axes", SHAPES)
def test_legible_rows_are_written_by_their_serials(axes: str, dtype: str) -> None:
    config = Config(batch=1 if axes == "thd" else 2, kv_heads=3, k_dim=7, v_dim=4, dtype=dtype)
    rows = [SHAPES[axes](legible(config, kind, 126, 4)) for kind in "kv"]
    found = arrays.by_serials(*rows)
    assert found is not None and found["rows"] == [126, 127, 128, 129] and found.get("axes", "bhtd") == axes
    for kind, array in zip("kv", rows, strict=True):
        assert arrays.made(found["rows"], axes, array.shape, dtype, kind).tobytes() == array.tobytes()


def test_each_layer_has_serials_of_its_own() -> None:
    config = Config(k_dim=5, v_dim=5)
    pair = [np.concatenate([legible(config, kind, first, 2) for first in (0, 9)]) for kind in "kv"]
    found = arrays.by_serials(*pair)
    assert found is not None and (found["axes"], found["rows"]) == ("lhtd", [0, 1, 9, 10])


@pytest.mark.parametrize("what", ["bit", "values", "bits", "dim", "poison", "minus zero"])
def test_whatever_is_not_told_by_serials_is_a_tensor(what: str) -> None:
    config = Config(k_dim=2 if what == "dim" else 8)
    make = MAKE["bits" if what == "bits" else "legible"]
    keys, values = (make(config, kind, 0, 3) for kind in "kv")
    if what == "bit":
        keys[0, 1, 2, 3] += 1
    elif what == "values":
        values[:, :, [0, 1]] = values[:, :, [1, 0]]
    elif what in ("poison", "minus zero"):
        keys[:, :, 1] = np.nan if what == "poison" else -0.0
    written_ = arrays.Arrays(SerialBook()).pair("rows", keys, values)
    assert set(written_) == {"rows.k", "rows.v"}
    assert written_["rows.k"]["as"] == ["f16", *keys.shape]


def test_rows_of_zeros_are_null() -> None:
    keys, values = (legible(Config(), kind, 0, 3) for kind in "kv")
    keys[:, :, 1] = values[:, :, 1] = 0
    found = arrays.by_serials(keys, values)
    assert found is not None and found["rows"] == [0, None, 2]


def test_bounds_are_powers_of_two_that_hold_the_reference() -> None:
    """What another implementation may be off by, from the reference's own output."""
    made = written(
        "examples", "attention", [Vector("x", "examples", notation.from_sentence("growing dtype=f32: attend 3"))]
    )
    output = made.document["vectors"][0]["steps"][1]["see"]["output"]
    within = made.tensors[output["within"]["tensor"]]
    assert within.dtype == np.float32 and within.shape == made.tensors[output["tensor"]].shape
    assert set(np.frexp(within)[0].ravel()) == {0.5} and 0 < within.max() < 1e-4
