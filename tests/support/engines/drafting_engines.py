"""Engines of several layers that take drafts one way on, as rows that they crop, and faults in that."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from kvadapters.layered import views
from kvadapters.layered_drafts import DraftedLayers
from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Array, Config, valid
from support.engines.layer_engines import Checked, put_back, trim_all, update


class Recording(Checked):
    """A layer that keeps all rows from the first draft on, until it is cropped."""

    recording = False

    def update(self, *new: Array) -> list[Array]:
        """Join rows to all that are kept."""
        if not self.recording:
            return super().update(*new)
        self.rows = [np.concatenate(pair, axis=2) for pair in zip(self.rows or new, new, strict=True)]
        self.rows = self.rows if self.offset else [*new]
        self.offset += new[0].shape[2]
        return self.rows

    def mask(self, n: int) -> Array:
        """Which rows of the next update its queries see."""
        if not self.recording:
            return super().mask(n)
        old = self.rows[0].shape[2] if self.offset else 0
        query, row = np.arange(old, old + n)[:, None], np.arange(old + n)
        return (row <= query) & (row > query - (self.window or old + n))

    def crop(self, n: int) -> None:
        """Drop the newest rows, and end the recording."""
        held = self.rows[0].shape[2] if self.rows else 0
        self.rows, self.offset = [a[:, :, : held - n] for a in self.rows], self.offset - n
        self.recording = False


def made(config: Config) -> list[Recording]:
    """A cache for each layer. Raises ValueError for a window of 0."""
    each = views(config, "full", "window")
    if not valid(config) or any(0 in sizes for _, sizes in each):
        raise ValueError("a size of 0")
    return [Recording(config, *sizes) for _, sizes in each]


def begin(each: list[Recording]) -> None:
    """Record in all layers."""
    for layer in each:
        layer.recording = True


def crop(each: list[Recording], n: int) -> None:
    """Crop all layers."""
    for layer in each:
        layer.crop(n)


def crop_the_first(each: list[Recording], n: int) -> None:
    """Crop the first layer; the others get their lengths alone."""
    each[0].crop(n)
    for layer in each[1:]:
        layer.crop(0)
        layer.offset -= n


def adapter(**functions: Any) -> UpdateAdapter:
    """The adapter of a list of layers."""
    given: dict[str, Any] = {
        "make": made,
        "length": lambda each: each[0].offset,
        "trim": trim_all,
        "mask": lambda each, layer, n: each[layer].mask(n),
        "state": deepcopy,
        "set_state": put_back,
        "begin": begin,
        "commit": crop,
        "also": ("full", "window", "unlike"),
        "dialect": {"layers.resumes": "whole"},
    }
    return from_update(
        "layers-with-drafts", kind="layers", update=update, cache=DraftedLayers, **{**given, **functions}
    )


drafts = adapter()
never_records = adapter(begin=lambda each: None)
keeps_all = adapter(commit=lambda each, n: crop(each, 0))
crops_the_first = adapter(commit=crop_the_first)
