"""Rows in a form: encoded on the device where they are appended, decoded where they are read or attended to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.layout import Geometry, Place, Span, behind
from kvgpu.runtime import Block, Work
from kvspec.forms import CODES, Form
from kvspec.forms import PLAIN as UNCODED
from kvspec.geometry import DTYPES, Array, Config, forms, not_a_form, still
from kvspec.refusals import forms as refusals

NUMBERS = {name: number for number, name in enumerate(CODES)} | dict.fromkeys(UNCODED, len(CODES))
"""The numbers of codes in the kernels; the last one is that of rows which are kept as they are."""

PLAIN = {"f32": 0, "f16": 1, "bf16": 2}
"""The numbers of the dtypes of plain rows in the kernels."""


def demand(config: Config) -> None:
    """Refuse a form that rows of this config cannot have: by the clause on widths, or by that on its text."""
    if config.form is not None and (why := not_a_form(config.form, config.k_dim, config.v_dim)):
        raise refusals.form("ROW-2" if "multiple" in why else "ROW-19" if "wider" in why else "ROW-32", why)


class Codec:
    """Makes rows of a config into bytes of its form and back, in scratch space: one launch for keys and values."""

    def __init__(self, space: Workspace, config: Config) -> None:
        self.space, self.config = space, config
        self.plain, self.kept = Geometry.of(config.changed(form=None)), Geometry.of(config)
        self._tables: dict[str, tuple[Block, Block]] = {}
        self._latent = still(config) > 0

    def staged(self, keys: Array, values: Array) -> Place:
        """Bring rows to the device, and into their form if they have one."""
        return self.in_form(self.space.staged(self.plain, keys, values))

    def in_form(self, handed: Place) -> Place:
        """Bring packed rows that are on the device into their form if they have one."""
        return handed if self.config.form is None else self.encoded(handed)

    def shown(self, rows: int, source: Span) -> Span:
        """Give contiguous rows as they are read."""
        if self.config.form is None:
            return source
        return self.decoded(behind(source.place, self.kept, source.first + source.turn), rows).span()

    def encoded(self, source: Place, block: Block | None = None) -> Place:
        """Give the bytes of packed rows, packed, in a block, or until the next call."""
        block = block or self.space.scratch("codes", self.kept.packed(source.slots)[1])
        return self._made("encode", source, Place.packed(block, self.kept, source.slots))

    def decoded(self, source: Place, rows: int) -> Place:
        """Give the rows of the first so many slots of bytes, packed, until the next call."""
        block = self.space.scratch("decoded", self.plain.packed(rows)[1])
        return self._made("decode", source, Place.packed(block, self.plain, rows))

    def _made(self, kernel: str, source: Place, to: Place) -> Place:
        """Launch a kernel over as many rows as the packed one of both places has."""
        rows = min(source.slots, to.slots)
        if self._latent and kernel == "decode":  # both are read of the keys' bytes
            source = source._replace(values=source.keys, values_at=source.keys_at)
        blocks = source.keys, source.values, to.keys, to.values, *self.given(kernel)
        ends = (number for at in (source, to) for number in (at.keys_at, at.values_at, at.slots))
        work = Work(1, rows, self.kept.heads, 2)
        what = self.kept.heads, self.config.kv_heads, rows
        self.space.runtime.launch(kernel, work, *blocks, *what, *ends)
        self.space.runtime.meter.device_to_device += (
            rows * (self.plain if kernel == "decode" else self.kept).row_bytes
        )
        return to

    def given(self, kernel: str) -> tuple[Block, Block]:
        """Give what a kernel knows of the forms, and the scales that are given; uploaded once."""
        if kernel not in self._tables:
            both = forms(self.config)
            assert both is not None, "rows without a form are not encoded"
            numbers = np.array([*self._parts(*both, kernel)], np.int64)
            scales = np.array([*both[0].given, *both[1].given, 1.0], np.float32)
            self._tables[kernel] = self._uploaded(numbers), self._uploaded(scales)
        return self._tables[kernel]

    def _parts(self, keys: Form, values: Form, kernel: str) -> Iterator[tuple[int, ...]]:
        """The numbers of keys and of values. Those of latent values are the keys', but for how many elements they
        have: none where they would be written."""
        yield (first := self._numbers(keys, self.config.k_dim, 0))
        if values.latent:
            yield first[0], self.config.v_dim if kernel == "decode" else 0, *first[2:]
        else:
            yield self._numbers(values, self.config.v_dim, len(keys.given))

    def _numbers(self, form: Form, dim: int, first: int) -> tuple[int, ...]:
        """The ten numbers of a part: see `forms.inc`."""
        dtype = self.config.dtype
        sizes = form.row_bytes(dim), form.code_bytes(dim), PLAIN[dtype], first, DTYPES[dtype].itemsize
        group = 1 if form.channels else dim // max(1, form.groups(dim))
        return NUMBERS[form.codes], dim, group, len(form.given), *sizes, dim if form.channels else 1

    def _uploaded(self, numbers: Array) -> Block:
        block = self.space.runtime.allocate(numbers.nbytes)
        self.space.runtime.upload(numbers, block)
        return block
