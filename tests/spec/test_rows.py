"""Rows can be read: each tells whose it is and which, exactly, in every dtype and dimension."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec import notation
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array, Config
from kvspec.operations.arguments import IN_RUNS
from kvspec.rows import fills
from kvspec.rows.book import SerialBook, describe
from kvspec.rows.legible import legible, read
from kvspec.rows.serials import ILLEGIBLE, POISONED, ZEROED, largest, letters, places, serial
from kvspec.trace import from_json

DIMS = (1, 2, 3, 4, 5, 6, 8, 16, 33)


def config(dim: int, dtype: str = "f16", **fields: int) -> Config:
    return Config(k_dim=dim, v_dim=dim, dtype=dtype, **fields)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", ["k", "v"])
def test_every_serial_is_read_back_from_every_dtype_and_dimension(dtype: str, dim: int, kind: str) -> None:
    c = config(dim, dtype, batch=min(17, places(dim)[1]), kv_heads=min(19, places(dim)[0]))
    for first in (0, 5, 120, largest(dim) - 8):
        made = legible(c, kind, first, 8)
        assert made.shape == c.shape(kind, 8) and made.dtype == DTYPES[dtype]
        assert (read(made, kind) == np.arange(first, first + 8)).all()


@pytest.mark.parametrize("size", [1, 1 << 15])
def test_rows_are_the_same_whether_they_come_from_a_table_or_not(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = config(7, batch=2)
    tabled = legible(c, "k", 100, 5)
    monkeypatch.setattr("kvspec.rows.legible.LARGEST_TABLE", size)
    assert legible(c, "k", 100, 5).tobytes() == tabled.tobytes()


def test_rows_are_the_callers_to_write_on() -> None:
    first = legible(config(8), "k", 0, 2)
    first[...] = 0
    assert (read(legible(config(8), "k", 0, 2), "k") == [0, 1]).all()


HEADS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 119, 127)
SEQUENCES = (0, 1, 3, 7, 8, 9, 16, 31, 33, 64, 65, 127, 128, 129, 248, 255)
"""Places on both sides of what tiles, digits and batches are made of."""

LAYERS = 61


def rows_at_all_places(dim: int, dtype: str, fill: str) -> Iterator[bytes]:
    """The rows of six serials in a cache of 128 heads and 256 sequences, or of as many as the width names."""
    most_heads, most_sequences = places(dim)
    c = config(dim, dtype, kv_heads=min(128, most_heads), batch=min(256, most_sequences))
    heads, sequences = ([x for x in at if x < n] for at, n in ((HEADS, c.kv_heads), (SEQUENCES, c.batch)))
    for first in (0, 5, largest(dim) - 2):
        book = SerialBook()
        book.next = first
        op = {"op": "append", "n": 2, "fill": fill}
        for made in book.rows(op, c, 2):
            yield from (row.tobytes() for row in made[np.ix_(sequences, heads)].reshape(-1, dim))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [*DIMS[:-2], 64])
@pytest.mark.parametrize("fill", ["legible", "edges"])
def test_no_two_places_have_the_same_row(dim: int, dtype: str, fill: str) -> None:
    """Serial, head, sequence, key or value: whatever differs, the bytes differ."""
    made = list(rows_at_all_places(dim, dtype, fill))
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", ["bits", "random"])
def test_no_two_places_have_the_same_arbitrary_row(dtype: str, fill: str) -> None:
    made = list(rows_at_all_places(16, dtype, fill))
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("dim", [5, 6, 192, 576])
@pytest.mark.parametrize("fill", ["legible", "bits", "edges"])
def test_no_two_layers_and_heads_of_a_step_have_the_same_row(dim: int, fill: str) -> None:
    c = config(dim, kv_heads=33, layers=LAYERS)
    made = SerialBook().stacked({"op": "append", "n": 2, "fill": fill}, c, 2, LAYERS)
    rows = [row.tobytes() for a in made for row in a.reshape(-1, dim)]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", [f for f in fills.MAKE if f not in ("even", "ramp", "copies")])
def test_rows_read_elsewhere_than_they_were_handed_in_spell_nothing(dtype: str, fill: str) -> None:
    """Heads or sequences 8 apart, as where a kernel reads the first tile for all, and keys as values."""
    book, c = SerialBook(), config(8, dtype, batch=17, kv_heads=17)
    keys, values = book.rows({"op": "append", "n": 3, "fill": fill}, c, 3)
    for read_back in (book.read(keys, "k"), book.read(values, "v")):
        own = read_back == np.arange(3)
        assert (own | (read_back == 0) if fill in IN_RUNS else own).all()  # of equal rows each is read as the first
    assert (book.read(np.roll(keys, 8, 1), "k") == ILLEGIBLE).all()
    assert (book.read(np.roll(keys, 8, 0), "k") == ILLEGIBLE).all()
    assert (book.read(keys, "v") == ILLEGIBLE).all()


@pytest.mark.parametrize("dim", DIMS)
def test_keys_values_heads_and_sequences_are_told_apart(dim: int) -> None:
    c = config(dim, batch=min(3, places(dim)[1]), kv_heads=3)
    made = legible(c, "k", 4, 2)
    others = {"values": legible(c, "v", 4, 2), "heads": np.roll(made, 1, 1), "sequences": np.roll(made, 1, 0)}
    for name, other in others.items():
        assert c.batch == 1 or (read(other, "k") == ILLEGIBLE).all(), name


@pytest.mark.parametrize(
    ("dim", "beyond"), [(1, "batch=2"), (1, "kv_heads=9"), (2, "batch=129"), (3, "kv_heads=2049")]
)
def test_a_trace_of_more_heads_or_sequences_than_rows_can_name_is_refused(dim: int, beyond: str) -> None:
    with pytest.raises(BadInput, match=f"rows of {dim} elements can name only"):
        from_json(notation.trace("growing", f"v_dim={dim} {beyond}", "append 1").to_json())


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_was_never_appended_spells_nothing(dim: int, dtype: str) -> None:
    shape = config(dim).shape("k", 2)
    assert (read(np.full(shape, np.nan, DTYPES[dtype]), "k") == POISONED).all()
    assert (read(np.zeros(shape, DTYPES[dtype]), "k") == ZEROED).all()
    for value in (0.5, 257, np.inf, *((-1, 129) if dim > 1 else ())):  # one element alone: the range names its head
        assert (read(np.full(shape, value, DTYPES[dtype]), "k") == ILLEGIBLE).all()


@pytest.mark.parametrize("dim", [d for d in DIMS if d > 2])
def test_a_row_that_is_half_of_another_spells_nothing(dim: int) -> None:
    """Of 1000 pairs of rows spliced at every element, none may pass for a row; the check element sees to it."""
    c, wrong = config(dim, kv_heads=1), 0
    for a in range(0, 100, 7):
        for b in range(50, 150, 11):
            for cut in range(1, min(dim, 5)):
                spliced = legible(c, "k", a, 1)
                spliced[..., cut:] = legible(c, "k", b % largest(dim), 1)[..., cut:]
                wrong += int(read(spliced, "k")[0, 0, 0]) not in (ILLEGIBLE, a, b % largest(dim))
    assert wrong == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_arbitrary_and_known_by_their_bytes(dtype: str) -> None:
    c, book = config(16, dtype, batch=2), SerialBook()
    op = {"op": "append", "n": 200, "fill": "bits"}
    keys, values = book.rows(op, c, 200)
    for array, kind in ((keys, "k"), (values, "v")):
        assert (book.read(array, kind) == np.arange(200)).all()
        assert not np.isfinite(array.astype(np.float32)).all()
        assert (np.signbit(array.astype(np.float32))).any()
    assert len({row.tobytes() for row in keys.reshape(-1, 16)}) == 2 * 2 * 200


def test_serials_are_used_up_only_by_rows_that_were_taken() -> None:
    book, op = SerialBook(), {"op": "append", "n": 2}
    assert (read(book.rows(op, config(8), 2)[0], "k") == [0, 1]).all()
    assert (read(book.rows(op, config(8), 2)[0], "k") == [0, 1]).all()
    book.took(2)
    assert (read(book.rows(op, config(8), 2)[0], "k") == [2, 3]).all()


@given(st.integers(0, 1 << 21))
def test_letters_name_a_serial_and_are_read_back(number: int) -> None:
    assert serial(letters(number)) == number


@pytest.mark.parametrize("name", ["", "A", "1", "ab", "a-1", "a1b", "é", "a "])
def test_what_names_no_row_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names no row"):
        serial(name)


C = config(8, batch=2, kv_heads=2)
SAID: dict[str, tuple[Array, str]] = {
    "itself": (legible(C, "k", 3, 1), "row d"),
    "a value": (legible(C, "v", 3, 1), "the value of row d of head 1, sequence 0"),
    "another head": (np.roll(legible(C, "k", 3, 1), 1, 1), "the key of row d of head 0, sequence 0"),
    "another sequence": (np.roll(legible(C, "k", 30, 1), 1, 0), "the key of row e1 of head 1, sequence 1"),
    "nothing written": (np.full(C.shape("k", 1), np.nan, np.float16), "an unwritten row (NaN)"),
    "zeros": (np.zeros(C.shape("k", 1), np.float16), "a row of zeros"),
    "other numbers": (np.full(C.shape("k", 1), 0.5, np.float16), "a row that was never appended"),
}


@pytest.mark.parametrize(("array", "words"), SAID.values(), ids=SAID)
def test_a_row_is_described_as_a_person_would(array: Array, words: str) -> None:
    assert describe(array, "k", (0, 1, 0)) == words


def test_rows_that_were_refused_are_not_kept_in_the_place_of_those_that_a_form_rounds() -> None:
    """A form rounds `bits`, which are not kept: attention would be compared with the rows of the refused append."""
    book, config = SerialBook(), Config(k_dim=8, v_dim=8, form="int8/8")
    book.kept = {}
    book.rows({"op": "append", "n": 2, "k_dim": 11}, config, 2)
    assert set(book.kept) == {0, 1}
    book.rows({"op": "append", "n": 1, "fill": "bits"}, config, 1)
    assert set(book.kept) == {1}


def test_rows_that_were_refused_are_not_among_those_that_a_form_may_be_read_as() -> None:
    book, config = SerialBook(), Config(k_dim=8, v_dim=8, form="int8/8")
    refused, _ = book.rows({"op": "append", "n": 2, "fill": "fine"}, config, 2)
    assert (book.read(refused, "k") == [0, 1]).all()
    book.rows({"op": "append", "n": 1, "fill": "fine"}, config, 1)
    assert (book.read(refused, "k") == [0, ILLEGIBLE]).all()


def test_codes_that_a_cache_hands_out_in_place_of_its_rows_spell_nothing() -> None:
    book, config = SerialBook(), Config(k_dim=8, v_dim=8, form="int8/8")
    book.rows({"op": "append", "n": 2, "fill": "fine"}, config, 2)
    codes = np.full((1, config.kv_heads, 2, 12), 7, np.uint8)
    assert (book.read(codes, "k") == ILLEGIBLE).all()
    assert not book.alike(codes[0, 0, 0], codes[0, 0, 1] + np.uint8(1))


def test_rows_that_are_kept_outlive_a_scribble_on_those_handed_out() -> None:
    book = SerialBook()
    book.kept = {}
    keys, values = book.rows({"op": "attend", "n": 2, "fill": "random"}, Config(), 2)
    before = {number: [row.copy() for row in pair] for number, pair in book.kept.items()}
    keys[...], values[...] = np.nan, np.nan
    for number, pair in before.items():
        assert all(np.array_equal(a, b) for a, b in zip(pair, book.kept[number], strict=True))


def test_rows_that_were_changed_since_are_read_anew() -> None:
    rows = legible(config(8), "k", 0, 2)
    assert (read(rows, "k") == [0, 1]).all()
    rows[..., 0] = np.nan
    assert (read(rows, "k") == ILLEGIBLE).all() and not read(rows, "k").flags.writeable


def test_a_book_knows_by_their_bytes_what_reads_alike() -> None:
    """What was read before, without a book or by another, is not changed by one that knows more."""
    book = SerialBook()
    keys, _ = book.rows({"op": "append", "n": 3, "fill": "bits"}, config(8), 3)
    assert (read(keys, "k") < 0).all() and (book.read(keys, "k") == np.arange(3)).all()
    assert (read(keys, "k") < 0).all() and (SerialBook().read(keys, "k") < 0).all()
