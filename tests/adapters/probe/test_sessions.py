"""Whole engines are judged by the chapters on caches: a right one conforms, and a fault is found by its clause."""

from __future__ import annotations

import numpy as np
import pytest

from adapters.probe import whole
from kvspec.geometry import Config
from support.running.judging import broken, record_of, verdicts

ROWS = ("GROW-1", "GROW-2", "GROW-5", "CACHE-1", "CACHE-7", "CACHE-8", "CACHE-9")
WINDOWS = ("RING-1", "RING-2", "RING-7", "RING-10", "CACHE-8")
FORKS = ("CACHE-1", "PAGE-3", "PAGE-5", "PAGE-6", "PAGE-14", "PAGE-16", "PAGE-18", "PAGE-22", "PAGE-27")
LENGTHS = ("RAGGED-2", "RAGGED-3", "RAGGED-5", "RAGGED-14", "RAGGED-16", "RAGGED-17", "RAGGED-18", "RAGGED-24")
KEPT = ("SINK-1", "SINK-2", "SINK-3", "SINK-5", "SINK-8", "CACHE-8")
BESIDE = ("MASK-8", "SNAP-1", "SNAP-3", "SNAP-4", "SNAP-10", "DRAFT-1", "DRAFT-2", "DRAFT-6", "DRAFT-13")


@pytest.mark.must("no clause broken")
@pytest.mark.parametrize(
    ("name", "clauses"),
    [
        ("growing", (*ROWS, *BESIDE)),
        ("ring", WINDOWS),
        ("hybrid", WINDOWS),
        ("pool", FORKS),
        ("batch", LENGTHS),
        ("sink", KEPT),
    ],
)
def test_a_right_engine_conforms(name: str, clauses: tuple[str, ...]) -> None:
    record = record_of(f"adapters.probe.whole:{name}", only=clauses)
    assert broken(record) == set(), [f.message for f in record.failures]
    assert "NOT_RUN" not in verdicts(record).values()
    assert sum(verdict != "NOT_CLAIMED" for verdict in verdicts(record).values()) > len(clauses) / 2


@pytest.mark.must("found, by the clause that says it")
@pytest.mark.parametrize(
    ("name", "clauses", "by"),
    [
        ("too_wide", WINDOWS, "RING-1"),
        ("keeps_a_row", ROWS, "GROW-2"),
        ("shares", ROWS, "GROW-5"),
        ("jumps", ROWS, "GROW-2"),
        ("forks_share", FORKS, "PAGE-14"),
        ("trims_alike", LENGTHS, "RAGGED-14"),
        ("sees_others", LENGTHS, "RAGGED-5"),
        ("keeps_its_order", LENGTHS, "RAGGED-16"),
        ("forgets_a_sink", KEPT, "SINK-3"),
    ],
)
def test_a_fault_is_found_by_its_clause(name: str, clauses: tuple[str, ...], by: str) -> None:
    assert by in broken(record_of(f"adapters.probe.whole:{name}", only=clauses))


@pytest.mark.must("the row stands in the history, and its elements are zeros")
def test_a_row_at_a_wrong_place_is_none_that_was_appended() -> None:
    cache = whole.jumps.open("growing", Config(batch=1, kv_heads=1, k_dim=2, v_dim=2, dtype="f32", step=1))
    for n in (3, 2):
        rows = np.full((1, 1, n, 2), n, np.float32)
        cache.append(rows, rows)
    history = cache.read("history")
    assert history is not None
    assert history[0][0, 0, :, 0].tolist().count(0) == 3, "three rows are not where they were"


@pytest.mark.must("refused")
def test_rows_that_no_engine_can_have_are_refused() -> None:
    config = Config(batch=1, kv_heads=1, k_dim=2, v_dim=2, dtype="f32", step=1)
    cache = whole.growing.open("growing", config)
    for shape in ((1, 1, 1, 3), (1, 2, 1, 2), (2, 1, 1, 2)):
        with pytest.raises(ValueError, match="another shape"):
            cache.append(np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    rows = np.zeros((1, 1, 56, 2), np.float32)
    with pytest.raises(Exception, match=r"55 ids|more rows"):
        cache.append(rows, rows)
