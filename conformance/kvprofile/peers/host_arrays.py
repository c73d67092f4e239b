"""The arrays of peers: random, used in rotation, and made once for all peers of a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any, Protocol

import numpy as np

from kvprofile.case import Case
from kvprofile.random_rows import noise, turns
from kvspec.forms import Form, parsed
from kvspec.geometry import DTYPES, Array


class Library(Protocol):
    """The functions that array libraries name differently."""

    form: str
    """How it attends, for the record; empty where there is one way only."""

    def wrap(self, array: Array) -> Any:
        """Make an array of the library with these elements."""

    def queries(self, array: Array, dtype: str) -> Any:
        """Make queries of these, in the dtype that the library attends in over rows of a dtype."""

    def host(self, array: Any) -> Array:
        """Give the elements as an array of the host, in any dtype that holds them all."""

    def copy(self, array: Any) -> Any:
        """Copy into new memory."""

    def landed(self, array: Any) -> Any:
        """Copy to the host, if the library's memory is not the host's; else give the array itself."""

    def cat(self, arrays: Sequence[Any], axis: int) -> Any:
        """Join arrays in new memory."""

    def write(self, target: Any, axis: int, at: int, source: Any) -> None:
        """Write the source into the target, from index `at` of an axis on."""

    def take(self, array: Any, entries: Any) -> Any:
        """Take entries of the first axis, in new memory."""

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend causally: the last query sees this many rows, by default all."""

    def encoded(self, form: Form, rows: Any) -> tuple[Any, ...]:
        """Give the codes of rows `[..., n, dim]`, in their dtype, and their scales `[..., n, groups]` unless these
        are given."""

    def decoded(self, form: Form, kept: tuple[Any, ...], dtype: str) -> Any:
        """Give the rows of codes and scales, in the dtype that the library attends in over rows of a dtype."""


@cache
def shared(shape: tuple[int, ...], dtype: str, turn: int) -> Array:
    """Random numbers, made once for all peers of a case: `cache_clear` drops them when it was measured."""
    return noise(shape, dtype, turn)


def given(form: Form, heads: int) -> Array:
    """Give the scale of each head of a form whose scales are given, `[heads, 1, 1]`, in f32."""
    return np.resize(np.array(form.given, np.float32), heads)[:, None, None]


class Rows:
    """Keys and values of a case, in rotation, and how to move them."""

    def __init__(self, library: Library, case: Case, memory: int, layers: int = 1) -> None:
        self.library, self.case, self.memory, self.layers = library, case, memory, layers

    def layered(self) -> Rows:
        """Give the same for all layers of the model at once, each with its own sequences."""
        return Rows(self.library, self.case, self.memory, self.case.model.layers)

    def one(self) -> Rows:
        """Give the same for one sequence of a batch."""
        return Rows(self.library, replace(self.case, batch=1), self.memory)

    def pairs(
        self, shape: tuple[int, ...], most: int = 64, dtype: str = "", kind: int = 0
    ) -> list[tuple[Any, Any]]:
        """Make keys and values `[*shape, dim]` in rotation, as wide as the model has them; `kind` separates two
        sets of one shape."""
        dtype, model = dtype or self.case.dtype, self.case.model
        shapes = (*shape, model.dim), (*shape, model.v_dim)
        count = turns(self.memory, DTYPES[dtype].itemsize * sum(map(prod, shapes)), most)
        first = 2 * count * kind
        made = [self.library.wrap(shared(shapes[i % 2], dtype, first + i)) for i in range(2 * count)]
        return list(zip(made[::2], made[1::2], strict=True))

    def caches(self, rows: int, most: int = 256, kind: int = 0) -> list[tuple[Any, Any]]:
        """Make keys and values `[layers * B, H, rows, dim]` in rotation."""
        return self.pairs((self.layers * self.case.batch, self.case.model.kv_heads, rows), most, "", kind)

    @property
    def forms(self) -> tuple[Form, Form]:
        """Give the forms of keys and of values of a case that has a form."""
        assert self.case.form is not None
        return parsed(self.case.form)

    def formed(self, rows: int, most: int = 256) -> list[tuple[tuple[Any, ...], ...]]:
        """Make keys and values in their form, `[B, H, rows, ...]`, in rotation: codes, and scales unless they are
        given. They are copies of one: making codes takes long."""
        case, library = self.case, self.library
        count = turns(self.memory, rows * case.config(batch=case.batch).row_bytes, most)
        (plain, *_) = self.pairs((case.batch, case.model.kv_heads, rows), 1)
        first = tuple(library.encoded(form, part) for form, part in zip(self.forms, plain, strict=True))
        return [tuple(tuple(map(library.copy, kept)) for kept in first) for _ in range(count)]

    def queries(self, turn: int = 3) -> Any:
        """Make queries `[layers * B, heads, n, dim]` as the library wants them; another `turn` gives others."""
        case, model = self.case, self.case.model
        shape = self.layers * case.batch, model.heads, case.rows, model.dim
        return self.library.queries(noise(shape, "f32", turn), case.dtype)

    def write(self, target: tuple[Any, Any], axis: int, at: int, source: tuple[Any, Any]) -> None:
        """Write both keys and values."""
        for to, rows in zip(target, source, strict=True):
            self.library.write(to, axis, at, rows)
