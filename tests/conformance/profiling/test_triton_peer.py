"""Triton's kernels compute what they must, by Triton's interpreter, on the CPU.

That is their text, read as numpy: what a compiler makes of it is not tried here, nor memory, nor races. Triton is
interpreted in a process of its own, since it decides when it is imported.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton is not installed; `nox -s peers` installs it")
pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("Triton is not interpreted in this process; `nox -s peers` has one", allow_module_level=True)

from kvprofile.case import Case
from kvprofile.model_shapes import Model
from kvprofile.peers import correct
from kvprofile.peers.gpu import paged, triton_peer
from kvprofile.peers.gpu.triton_peer import Kernels, Triton
from kvprofile.peers.host_arrays import Rows, shared
from kvprofile.random_rows import noise

TINY = Model("tiny", 4, 2, 8, 3, None, "")
ODD = Model("odd", 6, 2, 96, 3, None, "")
LATENT = Model("latent", 20, 1, 72, 3, None, "", 64)
MEMORY = 1 << 14


@pytest.fixture(autouse=True)
def _few_forms(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Try two forms; multiply bf16 as numbers, where the interpreter takes their bits for integers."""
    from triton.runtime import interpreter

    dot = interpreter.InterpreterBuilder.create_dot

    def widened(self: Any, a: Any, b: Any, *more: Any) -> Any:
        f32 = interpreter.tl.float32
        a, b = (self.create_fp_ext(x, f32) if x.dtype == interpreter.tl.bfloat16 else x for x in (a, b))
        return dot(self, a, b, *more)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", widened)
    monkeypatch.setattr(triton_peer, "SPLITS", (1, 3))
    yield
    shared.cache_clear()


def made(library: Kernels, dtype: str, *shapes: tuple[int, ...]) -> list[Any]:
    return [library.wrap(noise(shape, dtype, i)) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("splits", [1, 3, 8])
@pytest.mark.parametrize(("n", "seen"), [(1, None), (1, 37), (3, None), (3, 101)])
@pytest.mark.parametrize("model", [TINY, ODD, LATENT], ids=lambda model: model.name)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_attention_in_place_is_right(dtype: str, model: Model, n: int, seen: int | None, splits: int) -> None:
    library, rows = Kernels(splits), (2, model.kv_heads, 150)
    asked, keys, values = made(
        library, dtype, (2, model.heads, n, model.dim), (*rows, model.dim), (*rows, model.v_dim)
    )
    out = library.attend(asked, keys, values, seen)
    correct.demand(dtype, *map(library.host, (out, asked, keys, values)), seen)


def test_many_queries_take_several_tiles() -> None:
    library = Kernels()
    asked, keys, values = made(library, "f16", (1, 4, 100, 8), (1, 2, 160, 8), (1, 2, 160, 8))
    assert triton_peer.tile(8, 2, 200, 0).asked < 200
    correct.demand("f16", *map(library.host, (library.attend(asked, keys, values), asked, keys, values)))


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize(("n", "dtype"), [(1, "f16"), (3, "bf16"), (1, "f32")])
@pytest.mark.parametrize("model", [TINY, LATENT], ids=lambda model: model.name)
def test_a_batch_of_unequal_lengths_is_attended_to_through_its_tables(
    model: Model, n: int, dtype: str, splits: int
) -> None:
    library, size, order = Kernels(splits), 16, np.random.default_rng(7)
    lengths = np.array([5, 90, 48], np.int32)
    tables = order.permutation(24)[:18].reshape(3, 6).astype(np.int32)
    pages, fresh = (24, model.kv_heads, size), (3, model.kv_heads, n)
    asked, *arrays = made(
        *(library, dtype, (3, model.heads, n, model.dim), (*pages, model.dim), (*pages, model.v_dim)),
        *((*fresh, model.dim), (*fresh, model.v_dim)),
    )
    before, plan = [library.host(a) for a in arrays[:2]], library.plan(paged.Batch(tables, lengths, n), None)
    library.append_pages(arrays[:2], plan, arrays[2:])
    for part, was, new in zip(arrays[:2], before, arrays[2:], strict=True):
        for b, i in np.ndindex(3, n):
            at = lengths[b] - n + i
            was[tables[b, at // size], :, at % size] = library.host(new)[b, :, i]
        assert np.array_equal(library.host(part), was), "the new rows are written, and nothing else"
    out = library.host(library.attend_pages(asked, arrays[:2], plan))
    for b, length in enumerate(lengths):
        keys, values = (correct._in_order(library.host(part)[tables[b]], length)[None] for part in arrays[:2])
        correct.demand(dtype, out[b : b + 1], library.host(asked)[b : b + 1], keys, values)


@pytest.mark.parametrize("operation", Triton.work)
@pytest.mark.parametrize("context", [64, 56])
def test_the_peer_does_its_work(operation: str, context: int) -> None:
    batch = 3 if operation in ("batch attention", "ragged attention", "ragged paged attention") else 1
    case = Case(operation, TINY, context, batch=batch, page=16 if "paged" in operation else None)
    job = Triton().job(case, MEMORY)
    assert job is not None and job.about["form"] in ("1 splits", "3 splits")
    job.do(1)


@pytest.mark.parametrize(("operation", "first"), [("attention", 40), ("ring attention", 37)])
def test_new_rows_are_the_last_of_those_in_place(
    operation: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    class Looking(Kernels):
        def attend(self, queries: Any, keys: Any, values: Any, seen_: int | None = None) -> Any:
            seen.append((self.host(keys), self.host(values)))
            return super().attend(queries, keys, values, seen_)

    case = Case(operation, TINY, 40, 3, batch=2)
    rows = Rows(Looking(), case, MEMORY)
    Triton.work[operation](rows).do(1)
    before, new = rows.caches(first + 3)[1], rows.caches(3, 64, 1)[1]
    for part, was, fresh in zip(seen[0], before, new, strict=True):
        assert np.array_equal(part[:, :, first:], rows.library.host(fresh))
        assert np.array_equal(part[:, :, :first], rows.library.host(was)[:, :, :first])


PLANTED = {
    "a row too many": ("length - n + i + 1", "length - n + i + 2"),
    "a row too few": ("(split * each + each, length)", "(split * each + each, length - 1)"),
    "another head's queries": ("queries + line[:, None] * K + d", "queries + (line ^ 2)[:, None] * K + d"),
    "another key-value head": ("head.to(tl.int64) * key_head\n    values", "0 * key_head\n    values"),
    "a table ignored": ("page = tl.load(table + at // PAGE)", "page = b * 0 + at // PAGE"),
    "another sequence's length": ("(2), tl.load(lengths + b)", "(2), tl.load(lengths)"),
    "splits of equal weight": ("tl.exp2(total - tl.max(total, 0))", 'tl.where(total > float("-inf"), 1.0, 0.0)'),
    "sums that are not scaled down": ("total * shrunk + tl.sum", "total + tl.sum"),
    "keys behind a width of a power of two left out": ("score += _dot(q_rest, _key(row, f, K))", "score += 0.0"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_get_no_time(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a case of its kind: several queries, pages, widths that are no powers of two, splits without rows."""
    old, new = PLANTED[bug]
    text = Path(str(triton_peer.triton_kernels.__file__)).read_text(encoding="utf-8")
    assert text.count(old) == 1
    monkeypatch.setattr(triton_peer, "triton_kernels", imported(tmp_path / "planted.py", text.replace(old, new)))
    library, lengths, n = Kernels(2), np.array([20, 200], np.int32), 2
    tables = np.random.default_rng(7).permutation(26).reshape(2, 13).astype(np.int32)
    asked, *pool = made(library, "f16", (2, 6, n, 96), (26, 2, 16, 96), (26, 2, 16, 96))
    plan = library.plan(paged.Batch(tables, lengths, n), None)
    with pytest.raises(correct.Wrong, match="times its bound away"):
        correct.Checked(library, correct.Checks("f16")).attend_pages(asked, pool, plan)


def imported(file: Path, text: str) -> Any:
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_splits_that_nothing_needs_take_no_part() -> None:
    library = Kernels(64)
    asked, keys, values = made(library, "f16", (2, 4, 4096, 8), (2, 2, 4096, 8), (2, 2, 4096, 8))
    with pytest.raises(ValueError, match="256 programs need no 64 splits"):
        library.attend(asked, keys, values)
