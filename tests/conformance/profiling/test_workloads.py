"""What a profile measures is what it says: every operation is reached and called, on the rows of its formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvprofile import cases
from kvprofile.case import Case
from kvprofile.measure import Party, metered
from kvprofile.model_shapes import GPT2, MODELS, Model
from kvprofile.operation import Job
from kvprofile.subject import Subject
from kvprofile.workloads import OPERATIONS, attention, page
from kvspec.contract import Attention, Rope
from kvspec.operations.table import OF_KIND
from kvspec.registry import RECORDS
from kvspec.tables import table
from kvspec.traffic import QUERY

MODEL = Model("tiny", 4, 2, 8, 3, None, "")
MEMORY = 1 << 13
TABLES = table("kvprofile.workloads", "measured")
MEASURED: dict[str, list[str]] = TABLES["measured"]
UNMEASURED: dict[str, str] = {
    op: why
    for table in (TABLES["unmeasured"], *(record.unmeasured for record in RECORDS.values()))
    for why, operations in table.items()
    for op in operations
}
CONTEXT = {"grow": 256}
"""Rows, where not 64: storage that is full."""

SEVERAL = ("copy", "scatter", "bucket block")
BATCHED = (
    "batch step",
    "captured step",
    "scatter",
    "batch attention",
    "ragged attention",
    "ragged paged attention",
)


def small(name: str) -> Case:
    """A small case of an operation."""
    operation = OPERATIONS[name]
    return Case(
        name,
        MODEL,
        CONTEXT.get(name, 64),
        2 if name in SEVERAL else 1,
        2 if name in BATCHED else 1,
        layout="head" if name == "copy" else None,
        page=16 if "page" in operation.needs else None,
        pairing="norm" if "rope" in operation.needs else None,
    )


def made(name: str, adapter: Any) -> Job:
    """Its job."""
    case = small(name)
    return OPERATIONS[name].job(Subject(adapter, case, OPERATIONS[name].config(case), MEMORY))


def test_the_models_of_today_are_a_list_of_their_own() -> None:
    """Every line of the grid makes a case of each model, context and ending; the usual list stays as short."""
    ids = [case.id for case in cases.cases("models")]
    assert len(ids) == len(set(ids)) and "attention/qwen3-8b/bf16/32768/b32" in ids
    assert {case.dtype for case in cases.cases("models")} == {"bf16"} and len(cases.cases()) < 120
    windows = {(case.model.name, case.context) for case in cases.cases("models") if case.operation[:4] == "ring"}
    assert windows == {(m.name, m.window) for m in MODELS if m.name.startswith(("Gemma-3", "gpt-oss"))}


def test_an_id_says_all_of_a_case_its_form_too() -> None:
    for case in (*cases.cases(), *cases.cases("quick"), *cases.cases("models")):
        assert cases.read(case.id) == case
    formed = cases.read("attention/llama-3.1-8b/f16/4096/b8/int8-1")
    assert (formed.form, formed.batch, formed.config().form) == ("int8/1", 8, "int8/1")
    assert (
        OPERATIONS["attention"].traffic(formed).read
        < OPERATIONS["attention"].traffic(replace(formed, form=None)).read
    )
    with pytest.raises(ValueError, match="int9"):
        cases.read("attention/llama-3.1-8b/f16/4096/int9-1")


def test_layers_are_those_of_their_models() -> None:
    views = {model.name: model.views.split(",") for model in MODELS}
    assert views["Gemma-3-4B"][:7] == [*["window:1024"] * 5, "full", "window:1024"]
    assert views["gpt-oss-120b"][:3] == ["window:128", "full", "window:128"]
    assert {*views["Mistral-7B-v0.1"]} == {"window:4096"} and {*views["GPT-2 small"]} == {"full"}
    assert all(len(views[model.name]) == model.layers for model in MODELS)


def measured_of(kind: str, operation: str) -> list[str]:
    """The operations of a profile by which one of a trace is measured on a kind; those of RoPE open nothing."""
    by = MEASURED.get(operation, ())
    return [name for name in by if OPERATIONS[name].needs[0] in (kind, "rope")]


@pytest.mark.parametrize("kind", OF_KIND)
def test_every_operation_of_a_trace_is_measured_or_it_is_said_why_not(kind: str) -> None:
    for operation in OF_KIND[kind]:
        why = UNMEASURED.get(f"{kind} {operation}", UNMEASURED.get(operation))
        assert bool(measured_of(kind, operation)) != bool(why), (kind, operation)


def test_nothing_is_said_of_what_there_is_not() -> None:
    known = {op for ops in OF_KIND.values() for op in ops} | {
        f"{k} {op}" for k, ops in OF_KIND.items() for op in ops
    }
    assert set(UNMEASURED) | set(MEASURED) <= known
    assert {name for names in MEASURED.values() for name in names} == set(OPERATIONS)
    assert {case.operation for case in cases.cases()} == set(OPERATIONS)


class Spied:
    """Whatever is called of an adapter, and of what it opens, is noted: who was asked, what, with what answer."""

    def __init__(self, inner: Any, calls: list[tuple[Any, str, tuple[Any, ...]]]) -> None:
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._noted(name, found) if callable(found) else found

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self._calls.append((self._inner, name, given))
            answer = method(*given)
            return Spied(answer, self._calls) if name in ("open", "capture", "capture_attend") else answer

        return call


CALLED = {"view": "read", "attendbatch": "attend_batch", "replayattend": "replay"}
"""The methods of operations of traces that have other names."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_said_to_be_measured_is_called_while_the_clock_runs(name: str) -> None:
    calls: list[tuple[Any, str, tuple[Any, ...]]] = []
    job = made(name, Spied(Reference(), calls))
    calls.clear()
    job.do(0)
    wanted = {CALLED.get(op, op) for op, names in MEASURED.items() if name in names}
    assert wanted <= {called for _, called, _ in calls}


MOVED = [n for n, o in OPERATIONS.items() if o.traffic(small(n)).limit in ("copy", "download")]


@pytest.mark.parametrize("name", MOVED)
def test_as_many_bytes_move_as_the_formula_says(name: str) -> None:
    """The reference moves nothing twice, so its meter counts what is written, to the byte; but rows of its layers
    move with each append."""
    adapter = CudaCPU() if name == "layers append" else Reference()
    job = made(name, adapter)
    party = Party(name, job, operations=min(3, job.most))
    found = metered(adapter, party)
    assert found is not None and len(MOVED) >= 18
    moved = sum(found[way] for way in ("device_to_device", "device_to_host", "host_to_device"))
    assert moved == OPERATIONS[name].traffic(small(name)).written


HELD: dict[str, Callable[[Any, tuple[Any, ...]], int]] = {
    "attention": lambda cache, given: cache.lengths().offset + 1,
    "rope attention": lambda cache, given: cache.lengths().offset + 1,
    "ring attention": lambda cache, given: cache.config.window,
    "paged attention": lambda cache, given: cache.sequences()[given[-1]] + 1,
    "ragged paged attention": lambda cache, given: cache.sequences()[given[-1]] + 1,
    "batch attention": lambda cache, given: sum(cache.sequences()) // 2,
    "ragged attention": lambda cache, given: sum(cache.sequences()) // 2,
    "captured attention": lambda captured, given: captured.store.lengths()[0] + 1,
    "bucket decode": lambda cache, given: cache.past() + 1,
    "bucket block": lambda cache, given: cache.past() + 2,
    "cross attention": lambda cache, given: cache.encoded.keys.shape[3],
}
"""The rows that the last query sees, told before it is asked."""

ASKED = ("attend", "attend_batch", "replay", "decode", "block", "cross")


class Telling(Spied):
    """Notes how many rows queries see."""

    def __init__(self, inner: Any, seen: list[int], held: Callable[[Any, tuple[Any, ...]], int]) -> None:
        super().__init__(inner, [])
        self._seen, self._held = seen, held

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if name in ASKED:
                self._seen.append(self._held(self._inner, given))
            answer = method(*given)
            return Telling(answer, self._seen, self._held) if name in ("open", "capture_attend") else answer

        return call


def layers(name: str) -> int:
    """Those that one operation asks."""
    return MODEL.layers if "bucket" in OPERATIONS[name].needs else 1


@pytest.mark.parametrize("name", HELD)
def test_queries_see_as_many_rows_as_the_formula_counts(name: str) -> None:
    """Where a cache grows while it is measured, on average: half a row more or less."""
    seen: list[int] = []
    job, case = made(name, Telling(Reference(), seen, HELD[name])), small(name)
    job.reset()
    seen.clear()
    each = layers(name) * case.batch * case.rows * MODEL.heads
    for i in range(min(job.most, 128)):
        job.do(i)
    counted = OPERATIONS[name].traffic(case).flops / (2 * each * 2 * MODEL.dim)
    assert abs(sum(seen) / len(seen) - counted) <= 0.5


def test_every_attention_is_looked_at() -> None:
    assert set(HELD) == {n for n, o in OPERATIONS.items() if o.traffic(small(n)).flops}


@pytest.mark.parametrize("name", sorted({*HELD} - {"captured attention"}))
def test_an_output_is_written_for_every_head(name: str) -> None:
    calls: list[tuple[Any, str, tuple[Any, ...]]] = []
    job, case = made(name, Spied(Reference(), calls)), small(name)
    calls.clear()
    job.do(0)
    queries, *others = next(given for _, called, given in calls if called in ASKED)
    batch = 1 if name == "ragged paged attention" else case.batch  # it asks one sequence after the other
    assert queries.nbytes == layers(name) * batch * case.rows * MODEL.heads * MODEL.dim * QUERY
    (out,) = (a for a in others if getattr(a, "shape", None) == queries.shape and a.dtype == queries.dtype)
    out[...] = 0
    job.do(1)
    assert (out != 0).all()


@pytest.mark.parametrize(("name", "rope"), [("attention", None), ("rope attention", Rope("norm"))])
def test_rows_and_queries_are_turned_where_the_operation_says_so(name: str, rope: Rope | None) -> None:
    calls: list[tuple[Any, str, tuple[Any, ...]]] = []
    job = made(name, Spied(Reference(), calls))
    calls.clear()
    job.do(0)
    assert [given[3].rope for _, called, given in calls if called == "attend"] == [rope]
    assert job.about.get("pairing") == (rope and rope.pairing)


@pytest.mark.parametrize("name", ["ragged attention", "ragged paged attention"])
def test_the_sequences_of_a_ragged_batch_have_unequal_lengths(name: str) -> None:
    calls: list[tuple[Any, str, tuple[Any, ...]]] = []
    case, work, memory = small(name), OPERATIONS[name], 1 << 16
    subject = Subject(Spied(Reference(), calls), case, work.config(case), memory)
    work.job(subject).do(0)
    cache = calls[-1][0]
    each = [n + ("paged" in name) for n in cache.sequences() if n > 0]
    assert case.lengths == [32, 64] == sorted(set(each)) and each[: len(each)] == len(each) // 2 * [32, 64]
    traffic = OPERATIONS[name].traffic(case)
    assert subject.opened * traffic.read >= memory // 2, "so many rows are read before any is read again"
    assert traffic.read > 96 * case.config().row_bytes and traffic.flops == 2 * 4 * 96 * 16


def test_a_ragged_batch_of_pages_is_one_captured_step_where_there_is_such() -> None:
    """On the emulated CUDA runtime: lengths come back after a reset, so that there is always room."""
    case = replace(small("ragged paged attention"), model=MODEL._replace(dim=64, value_dim=32))
    adapter, steps = CudaCPUFast(), list[Any]()
    capture = adapter.capture_pages
    adapter.capture_pages = lambda *a, **b: steps.append(capture(*a, **b)) or steps[-1]  # type: ignore
    work = OPERATIONS[case.operation]
    job = work.job(Subject(adapter, case, work.config(case), 1 << 17))
    before = adapter.meter()["launches"]
    job.do(0)
    assert steps[0].batch.lengths.tolist() == case.lengths and steps[1].batch.lengths.tolist() == [31, 63]
    assert adapter.meter()["launches"] - before < 4, "a replay, and the copies of what it works on"
    job.reset()
    assert [step.batch.lengths.tolist() for step in steps] == len(steps) * [[31, 63]]
    assert job.about["captured"] and job.most == attention.AROUND * len(steps)
    for i in range(job.most):
        job.do(i)
    job.reset()


def neighbours(pages: list[int]) -> float:
    """How many of the pages stand behind the one with the number before theirs."""
    return sum(b == a + 1 for a, b in pairwise(pages)) / (len(pages) - 1)


def pools() -> Iterator[page.Scattered]:
    for context in (64, 1024):
        case = Case("gather", GPT2, context, page=16)
        row = case.config().row_bytes
        subject = Subject(Reference(), case, OPERATIONS["gather"].config(case), 8 * context * row)
        yield page.scattered(subject, context)


def test_pages_lie_scattered_and_so_do_free_ones() -> None:
    for pool in pools():
        tables = [pool.cache.table(sequence) for sequence in pool.sequences]
        used = {p for table in tables for p in table}
        assert len(tables) == 4 and pool.cache.free_pages() == len(used) == pool.pages // 2
        assert max(neighbours(table) for table in tables) < 0.35
        assert neighbours(sorted(set(range(pool.pages)) - used)) < 0.75
        assert {pool.cache.sequences()[s] for s in pool.sequences} == {len(tables[0]) * 16}


def test_splits_are_tried_and_the_fastest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {1: 5.0, 2: 3.0, 4: 1.0, 8: 2.0, 16: 4.0, 32: 6.0}
    monkeypatch.setattr(attention, "PATIENCE", 100.0)
    monkeypatch.setattr(attention, "_seconds", lambda subject, work: taken[work.args[1].splits])
    done: list[tuple[int, int]] = []
    resets: list[int] = []

    def do(i: int, how: Attention) -> None:
        done.append((i, how.splits))

    subject = Subject(None, small("attention"), small("attention").config(), MEMORY)
    job = attention.fastest(subject, do, 7, lambda: resets.append(1), {"pages": 3})
    job.do(5)
    assert done == [(5, 4)] and len(resets) == 6, "what was tried is taken back before anything counts"
    assert job.most == 7 and job.about == {"pages": 3, "splits": 4}
