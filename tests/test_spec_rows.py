"""Legible rows: each spells whose it is and which, exactly, in every dtype."""

from __future__ import annotations

import numpy as np
import pytest

from kvspec import rows
from kvspec.geometry import DTYPES, Config

DIMS = (1, 2, 3, 4, 5, 8, 13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", DIMS)
def test_rows_are_read_back(dtype: str, dim: int) -> None:
    config = Config(batch=3, kv_heads=4, k_dim=dim, v_dim=dim, dtype=dtype)
    for kind in ("k", "v"):
        written = rows.legible(config, kind, 100, 60)
        assert written.dtype == DTYPES[dtype]
        expected = np.arange(100, 160) % rows.largest(dim)
        assert (rows.read(written, kind) == expected).all()


@pytest.mark.parametrize("dim", DIMS[2:])
def test_whose_a_row_is_can_be_told(dim: int) -> None:
    config = Config(batch=2, kv_heads=3, k_dim=dim, v_dim=dim)
    keys, values = rows.legible(config, "k", 0, 9), rows.legible(config, "v", 0, 9)
    assert (rows.read(values, "k") == rows.ILLEGIBLE).all()
    assert (rows.read(keys[:, ::-1], "k")[:, 0] == rows.ILLEGIBLE).all()
    assert (rows.read(keys[::-1], "k") == rows.ILLEGIBLE).all()


def test_unwritten_rows_are_known() -> None:
    assert (rows.read(np.full((1, 2, 3, 8), np.nan, np.float32), "k") == rows.POISONED).all()
    assert (rows.read(np.zeros((1, 2, 3, 8), np.float32), "k") == rows.ILLEGIBLE).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_changed_element_makes_a_row_illegible(dtype: str) -> None:
    written = rows.legible(Config(k_dim=8, dtype=dtype), "k", 5, 1)
    for i in range(8):
        broken = written.copy()
        broken[0, 0, 0, i] += 1
        assert rows.read(broken, "k")[0, 0, 0] == rows.ILLEGIBLE


def test_a_person_is_told_what_a_row_holds() -> None:
    config = Config(batch=2, kv_heads=3)
    keys, values = rows.legible(config, "k", 28, 2), rows.legible(config, "v", 28, 2)
    assert rows.describe(keys, "k", (1, 2, 1)) == "row d1"
    assert rows.describe(values, "k", (0, 1, 0)) == "the value of row c1 of head 1, sequence 0"
    assert rows.describe(keys[::-1], "k", (0, 0, 0)) == "the key of row c1 of head 0, sequence 1"
    assert rows.describe(keys * np.float16(np.nan), "k", (0, 0, 0)) == "an unwritten row (NaN)"
    assert rows.describe(keys * 0, "k", (0, 0, 0)) == "a row that was never appended"


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_bits_hold_what_arithmetic_would_lose_and_are_known_by_their_bytes(dtype: str) -> None:
    config, book = Config(k_dim=16, v_dim=16, kv_heads=4, dtype=dtype), rows.Book()
    keys, values = book.rows({"op": "append", "n": 200, "fill": "bits"}, config)
    with np.errstate(invalid="ignore"):
        assert np.isnan(keys.astype(np.float32)).any()
        assert (keys.astype(np.float32) < 0).any()
    assert len({r.tobytes() for r in keys.reshape(-1, 16)}) == 4 * 200
    assert (book.read(keys, "k") == np.arange(200)).all()
    assert (book.read(values, "v") == np.arange(200)).all()


def test_letters_name_serials() -> None:
    assert [rows.letters(s) for s in (0, 25, 26, 53, -1)] == ["a", "z", "a1", "b2", "?"]
    assert all(rows.serial(rows.letters(s)) == s for s in range(200))
    for wrong in ("", "A", "1", "ab", "a-1"):
        with pytest.raises(ValueError, match="names no row"):
            rows.serial(wrong)
