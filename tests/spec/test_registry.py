"""The registry is the one list of chapters: no code names them, but the registry and the chapters' own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvspec.chapters import CHAPTERS
from kvspec.geometry import OWN
from kvspec.operations.table import ARGUMENTS, CHAPTER_OF, OF_ALL, OF_KIND, OPERATIONS
from kvspec.reading.clauses import index
from kvspec.registry import KINDS, RECORDS, TENSORS, VALUES, fields_of
from support.chapter_words import named, own
from tools.floors import PACKAGES

ROOT = Path(__file__).parents[2]

REGISTRY = {"spec/kvspec/chapters/__init__.py"}

ADAPTERS = (
    "kvgpu/adapter",
    *("kvadapters/attending", "kvadapters/stores", "kvadapters/update/claims"),
    *(f"kvadapters/probe/sessions/{name}" for name in ("__init__", "llama_cpp", "mlx_lm", "transformers")),
)
SAYS_WHAT_IT_CLAIMS = {f"adapters/{name}.py" for name in ADAPTERS}
"""Adapters: what they claim is theirs to say."""

MIXES_CHAPTERS = {
    "conformance/kvconform/generate/large/beside.py",
    "conformance/kvconform/generate/large/caches.py",
    "conformance/kvconform/generate/large/calls.py",
    "conformance/kvconform/generate/strategies/cache_moves.py",
    "conformance/kvconform/generate/strategies/caches.py",
    "conformance/kvconform/generate/strategies/whole_system/__init__.py",
    "conformance/kvconform/laws/caches.py",
    "conformance/kvworkshop/prove/configurations.py",
    "conformance/kvconform/vectors/languages/numbered_traces.py",
    "conformance/kvconform/vectors/strict_hash.py",
}
"""Traces and models of several kinds together: they are about these kinds."""

WRONG_ON_PURPOSE = {
    "conformance/kvconform/bugs/common/operations.py",
    "conformance/kvworkshop/controls.py",
    *(
        f"conformance/kvworkshop/correct_variants/{name}.py"
        for name in ("__init__", "head_major", "lazy_writes", "linked", "row_limit", "whole")
    ),
    "conformance/kvworkshop/fakes.py",
    "conformance/kvworkshop/systematic/kernels.py",
}
"""Adapters made for the tests of the suite: each is about some chapters."""

MEASURES = {
    "conformance/kvprofile/peers/array_work.py",
    "conformance/kvprofile/peers/flex_peer.py",
    "conformance/kvprofile/peers/ggml_peer.py",
    "conformance/kvprofile/peers/gpu/flashinfer_peer.py",
    "conformance/kvprofile/peers/gpu/jax_peer.py",
    "conformance/kvprofile/peers/gpu/triton_peer.py",
    "conformance/kvprofile/peers/onnxruntime_peer.py",
    "conformance/kvprofile/peers/int8_peer.py",
    "conformance/kvprofile/peers/openvino_peer.py",
    "conformance/kvprofile/workloads/cache.py",
    "reports/kvreports/profile/findings.py",
    "reports/kvreports/profile/roofline.py",
}
"""What is measured is a choice of operations, some of which are called like a chapter."""

ALLOWED = REGISTRY | SAYS_WHAT_IT_CLAIMS | MIXES_CHAPTERS | WRONG_ON_PURPOSE | MEASURES


ENGINES = ROOT / "adapters" / "kvadapters" / "engines"
"""Adapters of released engines: what each claims is its own."""


def naming() -> dict[str, set[str]]:
    """The files, beside the chapters' own and the engines' adapters, that name chapters, and which."""
    everywhere = [f for p in PACKAGES for f in sorted((ROOT / p).rglob("*.py"))]
    files = [f for f in everywhere if not own(f) and not f.is_relative_to(ENGINES)]
    words = {f.relative_to(ROOT).as_posix(): {word for _, word in named(f)} for f in files}
    return {file: found for file, found in words.items() if found}


def test_chapters_are_named_in_the_registry_and_in_their_own_files() -> None:
    found = naming()
    assert {file: words for file, words in found.items() if file not in ALLOWED} == {}
    assert ALLOWED - set(found) == set(), "these name none any more: take them out"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_a_record_names_is_there(chapter: str) -> None:
    record = RECORDS[chapter]
    assert {*record.on, *record.speaks_of, *(k for p in record.probes for k in p.kinds)} <= set(KINDS)
    assert set(record.kind.also if record.kind else ()) <= set(OPERATIONS)
    assert set(record.kind.answers if record.kind else ()) <= set(TENSORS)
    assert set(fields_of(chapter) if record.kind else ()) <= set(OWN)
    assert {n for o in record.operations for n in (*o.needs, *(a.needs for a in o.arguments if a.needs))} <= set(
        CHAPTERS
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_abilities_dialects_and_kinds_name_what_is_there(chapter: str) -> None:
    record, clauses = RECORDS[chapter], set(index())
    of_abilities = [c for a in record.abilities for c in a.clauses]
    of_dialects = [c for d in record.dialects for group in (d.see, *d.hides.values()) for c in group]
    kind = record.kind
    of_kind = [*kind.general, *kind.unchanged.values(), kind.opens, kind.ownership, kind.bits] if kind else []
    assert {*of_abilities, *of_dialects, *of_kind} - {""} <= clauses
    assert {o for a in record.abilities for o in a.operations} <= set(OPERATIONS)
    named = [(a.argument, ARGUMENTS[o]) for a in record.abilities for o in a.operations if a.argument]
    assert [argument for argument, there in named if argument not in there] == []
    values = [(d, v) for d in record.dialects for v in (*d.hides, *d.answers)]
    assert [v for d, v in values if not d.allows(int(v) if v.lstrip("-").isdigit() else v)] == []
    assert set(kind.unchanged if kind else ()) | set(kind.begin if kind else ()) <= set(OPERATIONS)


def test_every_operation_value_and_tensor_is_one_chapters() -> None:
    records = RECORDS.values()
    assert len(OPERATIONS) == len(OF_ALL) + sum(len(r.operations) for r in records)
    assert len(VALUES) == sum(len(r.values) for r in records)
    assert len(TENSORS) == sum(len(r.tensors) for r in records)
    assert len(OWN) == sum(len(r.fields) for r in records)
    assert len({r.letters for r in records}) == len(CHAPTERS)


def test_every_operation_is_some_kinds() -> None:
    assert set().union(*OF_KIND.values()) == {*OF_ALL, *CHAPTER_OF} == set(OPERATIONS)
