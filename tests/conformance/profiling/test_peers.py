"""What the peers do to pages, padded rows and turned rows is what the caches do, in numbers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvprofile.case import Case
from kvprofile.model_shapes import Model
from kvprofile.peers import bucket, page
from kvprofile.peers import rope as turned
from kvprofile.peers.array_work import WORK
from kvprofile.peers.host_arrays import Rows, shared
from kvprofile.peers.numpy_peer import Arrays, Numpy
from kvprofile.random_rows import noise
from kvprofile.subject import Subject
from kvprofile.workloads import OPERATIONS
from kvprofile.workloads.attention import queries
from kvprofile.workloads.bucket import STEPS
from kvspec.contract import Rope
from kvspec.forms import parsed, step
from kvspec.geometry import DTYPES, Array

MODEL = Model("tiny", 4, 2, 8, 3, None, "")
MEMORY = 1 << 16


def rows_of(case: Case) -> Rows:
    return Rows(Arrays(), case, MEMORY)


def held(pool: Array, table: Array, n: int) -> Array:
    """The first n rows of a table, `[kv_heads, n, dim]`, one by one."""
    return np.stack([pool[table[p // 16], :, p % 16] for p in range(n)], 1)


def test_a_pool_is_gathered_in_the_order_of_its_table() -> None:
    pool = page.Pool(rows_of(Case("gather", MODEL, 64, page=16)))
    found = pool.gathered(pool.contexts()[1])
    for part, rows in zip(pool.pool, found, strict=True):
        assert np.array_equal(rows[0], held(part, pool.tables[1], 64))
    assert sorted(pool.tables.ravel()) == list(range(len(pool.pool[0]))), "no page stands in two tables"
    assert (np.diff(pool.tables) != 1).mean() > 0.7


def test_rows_go_to_the_pages_and_slots_of_their_positions() -> None:
    case = Case("page append", MODEL, 64, 5, page=16)
    pool, new = page.Pool(rows_of(case)), rows_of(case).caches(5, 1, 1)[0]
    before = [held(part, pool.tables[2], 96) for part in pool.pool]
    pool.write(pool.places(2, 62, 5), new)
    for part, old, rows in zip(pool.pool, before, new, strict=True):
        after = held(part, pool.tables[2], 96)
        assert np.array_equal(after[:, 62:67], rows[0])
        assert np.array_equal(np.delete(after, range(62, 67), 1), np.delete(old, range(62, 67), 1))


def test_a_fork_copies_half_of_a_page_and_writes_a_row_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    init = page.Pool.__init__

    def noted(pool: Any, rows: Rows) -> None:
        init(pool, rows)
        made.append(pool)

    monkeypatch.setattr(page.Pool, "__init__", noted)
    rows = rows_of(Case("fork", MODEL, 64, page=16))
    job, (pool,) = page.fork(rows), made
    before = [part.copy() for part in pool.pool]
    job.do(1)
    old, to = pool.tables[1][3], pool.tables[1][4]
    for part, was, row in zip(pool.pool, before, rows.caches(1, 64, 1)[1], strict=True):
        assert np.array_equal(part[to, :, :8], was[old, :, :8]) and np.array_equal(part[to, :, 8], row[0, :, 0])
        assert np.array_equal(np.delete(part, to, 0), np.delete(was, to, 0))
        assert np.array_equal(part[to, :, 9:], was[to, :, 9:])


class Looking(Arrays):
    """Notes what is attended to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def attend(self, queries: Array, keys: Array, values: Array, seen: int | None = None) -> Array:
        self.asked.append((queries, keys.copy(), values.copy(), seen))
        return super().attend(queries, keys, values, seen)


def test_paged_attention_sees_the_context_with_its_newest_row() -> None:
    case, library = Case("paged attention", MODEL, 56, page=16), Looking()
    rows = Rows(library, case, MEMORY)
    page.attend(rows).do(0)
    _, keys, values, _ = library.asked[0]
    assert keys.shape == values.shape == (1, 2, 56, 8)
    for found, new in zip((keys, values), rows.caches(1, 64, 1)[0], strict=True):
        assert np.array_equal(found[:, :, 55:], new)


def test_what_lies_beyond_what_is_seen_weighs_nothing() -> None:
    q, k, v = (noise(shape, "f32", i) for i, shape in enumerate([(3, 4, 1, 8), (3, 2, 20, 8), (3, 2, 20, 8)]))
    for n in (1, 4):
        asked = np.repeat(q, n, 2)
        found = Arrays().attend(asked, k, v, 13)
        assert np.allclose(found, Arrays().attend(asked, k[:, :, :13], v[:, :, :13]), atol=1e-6)
        assert not np.allclose(found, Arrays().attend(asked, k, v), atol=1e-2)


def test_steps_go_up_to_the_bound_and_begin_anew() -> None:
    library = Looking()
    rows = Rows(library, Case("bucket decode", MODEL, 64), 1)
    job = bucket.decode(rows)
    for i in range(STEPS + 1):
        job.do(i)
    assert [seen for *_, seen in library.asked] == [*range(64 - STEPS + 1, 65), 64 - STEPS + 1]
    queries, keys, _, seen = library.asked[4]
    assert queries.shape == (3, 4, 1, 8) and keys.shape == (3, 2, 64, 8), "all layers, all rows of the bound"
    assert np.array_equal(keys[:, :, seen - 1 : seen], rows.pairs((3, 2, 1), kind=1)[0][0])


@pytest.mark.parametrize("pairing", ["norm", "neox"])
def test_rows_are_turned_as_the_reference_turns_them(pairing: Literal["norm", "neox"]) -> None:
    case = Case("rotate", MODEL, 40, 6, dtype="f32", pairing=pairing)
    rows = rows_of(case)
    job = turned.rotate(rows)
    job.do(MODEL.layers)
    source, target = (rows.caches(6, 64, kind)[MODEL.layers][0] for kind in (0, 1))
    wanted = Reference().rotate(source, np.arange(46, 52), Rope(pairing))
    assert np.allclose(target, wanted, atol=1e-5) and not np.allclose(target, source, atol=0.1)


def test_queries_and_new_keys_are_turned_before_they_meet() -> None:
    case, library = Case("rope attention", MODEL, 40, dtype="f32", pairing="neox"), Looking()
    rows = Rows(library, case, MEMORY)
    turned.attend(rows).do(0)
    queries, keys, _, _ = library.asked[0]
    new, position, rope = rows.caches(1, 64, 1)[0][0], np.array([40]), Rope("neox")
    assert np.allclose(keys[:, :, 40:], Reference().rotate(new, position, rope), atol=1e-5)
    assert np.allclose(queries, Reference().rotate(noise((1, 4, 1, 8), "f32", 3), position, rope), atol=1e-5)


@pytest.mark.parametrize(
    ("operation", "shape"),
    [("batch attention", (2, 2, 64, 8)), ("captured attention", (2, 2, 64, 8)), ("cross attention", (6, 2, 64, 8))],
)
def test_attention_is_over_the_whole_context(operation: str, shape: tuple[int, ...]) -> None:
    library = Looking()
    WORK[operation](Rows(library, Case(operation, MODEL, 64, batch=2), MEMORY)).do(1)
    queries, keys, values, _ = library.asked[0]
    assert keys.shape == values.shape == shape and queries.shape == (shape[0], 4, 1, 8)


def test_sequences_of_a_ragged_batch_are_attended_to_over_their_own_rows() -> None:
    library = Looking()
    rows = Rows(library, Case("ragged attention", MODEL, 60, batch=3), MEMORY)
    WORK["ragged attention"](rows).do(1)
    keys, values = rows.caches(60)[1]
    assert [(k.shape[2], v.shape[2]) for _, k, v, _ in library.asked] == [(20, 20), (40, 40), (60, 60)]
    for s, (asked, k, v, seen) in enumerate(library.asked):
        assert seen is None and np.array_equal(asked, rows.queries()[s : s + 1])
        assert np.array_equal(k[0], keys[s, :, : k.shape[2]]) and np.array_equal(v[0], values[s, :, : v.shape[2]])


def test_sequences_of_a_ragged_batch_of_pages_have_tables_of_their_own() -> None:
    """Each sees its rows with the newest behind them; another turn takes other sequences."""
    library = Looking()
    case = Case("ragged paged attention", MODEL, 60, batch=3, page=16)
    rows = Rows(library, case, 3 * MEMORY)
    job = page.attend_ragged(rows)
    job.do(0)
    job.do(1)
    assert [k.shape for _, k, _, _ in library.asked] == 2 * [(1, 2, n, 8) for n in case.lengths]
    news = [rows.one().caches(1, 64, 1)[i] for i in (0, 0, 0, 1, 1, 1)]
    for (_, k, v, _), (new_k, new_v) in zip(library.asked, news, strict=True):
        assert np.array_equal(k[:, :, -1:], new_k) and np.array_equal(v[:, :, -1:], new_v)
    firsts = [k[0, 0, 0].tobytes() for _, k, _, _ in library.asked]
    assert len(set(firsts)) == 6, "no two sequences have the same page"


def test_a_crossing_joins_the_rows_with_padding_up_to_the_next_bound() -> None:
    class Joining(Arrays):
        def __init__(self) -> None:
            self.found: list[Array] = []

        def cat(self, arrays: Any, axis: int) -> Array:
            self.found.append(super().cat(arrays, axis))
            return self.found[-1]

    library = Joining()
    WORK["bucket crossing"](Rows(library, Case("bucket crossing", MODEL, 16), MEMORY)).do(0)
    assert [a.shape for a in library.found] == [(3, 2, 32, 8)] * 2


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    shared.cache_clear()


def test_values_may_be_narrower_than_keys() -> None:
    latent = Model("latent", 4, 1, 24, 3, None, "", 16)
    case = Case("attention", latent, 40)
    assert (latent.v_dim, MODEL.v_dim) == (16, MODEL.dim) and case.config().v_dim == 16
    for keys, values in rows_of(case).caches(40, 2):
        assert (keys.shape, values.shape) == ((1, 1, 40, 24), (1, 1, 40, 16))
    subject = Subject(Reference(), case, case.config(), MEMORY)
    assert [a.shape for a in queries(subject)] == [(1, 4, 1, 24), (1, 4, 1, 16)]


@pytest.mark.parametrize("form", ["q8_0", "int8/1", "int8/8", "e4m3/t", "e5m2/h:2:0.5"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_rows_in_a_form_are_decoded_to_what_the_form_owes(library: str, form: str) -> None:
    """Each element within the step of its form; what lies behind the context is what was written last."""
    (keys, _), width = parsed(form), 2.0**-7
    if library == "torch":
        pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
        from kvprofile.peers.torch_peer import Tensors

        arrays: Any = Tensors()
    else:
        arrays = Arrays()
    plain = noise((1, 2, 5, 64), "f16")
    read = arrays.host(arrays.decoded(keys, arrays.encoded(keys, arrays.wrap(plain)), "f16"))
    allowed = step(keys, plain) + np.abs(plain.astype(np.float64)) * width  # f16 products of torch
    assert (np.abs(read.astype(np.float64) - plain) <= allowed).all() and not np.array_equal(read, plain)


def test_attention_over_a_form_sees_the_context_with_its_newest_rows() -> None:
    library, case = Looking(), Case("attention", MODEL, 40, 3, form="int8/8")
    rows = Rows(library, case, MEMORY)
    WORK["attention in a form"](rows).do(1)
    _, keys, values, _ = library.asked[0]
    assert keys.shape == values.shape == (1, 2, 43, 8)
    for form, read, new in zip(rows.forms, (keys, values), rows.caches(3, 64, 1)[1], strict=True):
        assert (np.abs(read[:, :, 40:] - new.astype(np.float64)) <= step(form, new)).all()


def test_a_peer_takes_no_form_that_it_does_not_have() -> None:
    assert Numpy().job(Case("attention", MODEL, 40, form="int8/8"), MEMORY) is not None
    assert Numpy().job(Case("append", MODEL, 40, form="int8/8"), MEMORY) is None
    assert Numpy().job(Case("attention", MODEL, 40, form="int4/8"), MEMORY) is None


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_queries_are_what_the_dtype_of_the_rows_holds(dtype: str) -> None:
    """As peers take them: three parts of a query that no model has would be work that no peer does."""
    case = Case("attention", MODEL, 40, dtype=dtype)
    asked, out = queries(Subject(Reference(), case, case.config(), MEMORY))
    assert asked.dtype == out.dtype == np.float32
    assert np.array_equal(asked, asked.astype(DTYPES[dtype]).astype(np.float32)) and len(np.unique(asked)) > 8
    work = OPERATIONS["attention"]
    work.job(Subject(Reference(), case, work.config(case), MEMORY)).do(0)
    Numpy().job(case, MEMORY).do(0)  # type: ignore[union-attr]
