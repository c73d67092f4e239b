"""Engines of several layers for `from_update`: a list of caches, as engines have it, and faults in it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from kvadapters.layered import LayeredCache, views
from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import DTYPES, Array, Config, valid


class Layer:
    """All rows of a layer, and how many of the newest a query sees; 0 for all."""

    def __init__(self, window: int = 0) -> None:
        self.window, self.offset = window, 0
        self.rows: list[Array] = []

    def update(self, *new: Array) -> list[Array]:
        """Join rows to those that a first new query sees."""
        kept = [a[:, :, max(0, a.shape[2] - self.window + 1) if self.window else 0 :] for a in self.rows]
        joined = [np.concatenate(pair, axis=2) for pair in zip(kept, new, strict=True)] if kept else [*new]
        self.rows, self.offset = joined, self.offset + new[0].shape[2]
        return joined

    def mask(self, n: int) -> Array:
        """Which rows of the next update its queries see."""
        old = min(self.offset, self.window - 1) if self.window else self.offset
        query, row = np.arange(old, old + n)[:, None], np.arange(old + n)
        return (row <= query) & (row > query - (self.window or old + n))

    def trim(self, n: int) -> None:
        """Drop the newest rows; refused once the window is full."""
        if self.full or not 0 <= n <= self.offset:
            raise ValueError("rows are gone")
        self.rows, self.offset = [a[:, :, : self.offset - n] for a in self.rows], self.offset - n

    @property
    def full(self) -> bool:
        """Whether rows were dropped, or will be by the next append."""
        return 0 < self.window <= self.offset


class Folding(Layer):
    """A layer that folds its tokens. `state` is None until there are some."""

    state: Array | None = None

    def update(self, *new: Array) -> list[Array]:
        """Each token on top of half of those before it."""
        keys, values = (a[0].astype(np.float32) for a in new)
        state = (
            np.zeros((len(keys), keys.shape[2], values.shape[2]), np.float32) if self.state is None else self.state
        )
        for t in range(keys.shape[1]):
            state = state / 2 + keys[:, t, :, None] * values[:, t, None, :]
        self.state, self.offset = state, self.offset + keys.shape[1]
        return [a[:, :, :0] for a in new]

    def mask(self, n: int) -> Array:
        """It has no rows."""
        return np.zeros((n, 0), bool)

    @property
    def full(self) -> bool:
        """Whether a token went in: none comes out."""
        return self.offset > 0


class CheckedFolding(Folding):
    """One that knows the geometry of its rows."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def demand(self, keys: Array, values: Array) -> None:
        """Raise ValueError for other rows."""
        Checked.demand(self, keys, values)  # type: ignore[arg-type]


def folding(config: Config) -> list[Any]:
    """A cache for each layer, also for those that fold. Raises ValueError for a window of 0."""
    each = views(config, "full", "window", "state")
    if not valid(config) or any(0 in sizes for _, sizes in each):
        raise ValueError("a size of 0")
    return [CheckedFolding(config) if name == "state" else Checked(config, *sizes) for name, sizes in each]


def states(each: list[Any]) -> dict[int, Any]:
    """The state of each layer that folds."""
    return {i: layer.state for i, layer in enumerate(each) if isinstance(layer, Folding)}


def crop_rows(each: list[Any], n: int) -> None:
    """Trim the layers with rows, and set the lengths of others."""
    if any(layer.full for layer in each if not isinstance(layer, Folding)):
        raise ValueError("a layer is full")
    for layer in each:
        if isinstance(layer, Folding):
            layer.offset -= n
        else:
            layer.trim(n)


def opened(config: Config) -> list[Layer]:
    """A cache for each layer. Raises ValueError for a window of 0."""
    each = views(config, "full", "window")
    if not valid(config) or any(0 in sizes for _, sizes in each):
        raise ValueError("a size of 0")
    return [Checked(config, *sizes) for _, sizes in each]


class Checked(Layer):
    """A layer that knows the geometry of its rows."""

    def __init__(self, config: Config, window: int = 0) -> None:
        super().__init__(window)
        self.config = config

    def demand(self, keys: Array, values: Array) -> None:
        """Raise ValueError for other rows."""
        n = keys.shape[2]
        if keys.shape != self.config.shape("k", n) or values.shape != self.config.shape("v", n):
            raise ValueError("other rows")
        if {keys.dtype, values.dtype} != {DTYPES[self.config.dtype]}:
            raise ValueError("another dtype")


def update(each: list[Any], layer: int, keys: Array, values: Array) -> Any:
    """Update a layer."""
    each[layer].demand(keys, values)
    return each[layer].update(keys, values)


def trim_all(each: list[Any], n: int) -> None:
    """Ask all layers, then trim them."""
    if any(layer.full for layer in each):
        raise ValueError("a layer is full")
    for layer in each:
        layer.trim(n)


def one_by_one(each: list[Any], n: int) -> None:
    """Trim the layers until one refuses."""
    for layer in each:
        layer.trim(n)


def put_back(each: list[Any], saved: list[Any]) -> None:
    """Take a copy of what was saved."""
    each[:] = deepcopy(saved)


def put_back_one(each: list[Any], saved: list[Any]) -> None:
    """Take a copy of the first layer; the others get their lengths alone."""
    each[0] = deepcopy(saved[0])
    for layer, was in zip(each, saved, strict=True):
        layer.offset = was.offset


def first_mask(each: list[Any], layer: int, n: int) -> Array:
    """The mask of the first layer, cut or filled to the width of the layer."""
    mine, first = each[layer].mask(n), each[0].mask(n)
    width = min(mine.shape[1], first.shape[1])
    return np.pad(first[:, -width:], ((0, 0), (mine.shape[1] - width, 0)))


def adapter(**functions: Any) -> UpdateAdapter:
    """The adapter of a list of layers."""
    given: dict[str, Any] = {
        "length": lambda each: each[0].offset,
        "trim": trim_all,
        "mask": lambda each, layer, n: each[layer].mask(n),
        "state": deepcopy,
        "set_state": put_back,
        "dialect": {"layers.resumes": "whole"},
    }
    return from_update(
        "list-of-layers",
        kind="layers",
        update=update,
        cache=LayeredCache,
        **{"also": ("full", "window", "unlike"), "make": opened, **given, **functions},
    )


right = adapter()
chooses = adapter(dialect={"layers.resumes": "whole", "layers.spare": "any"})
cuts_one_by_one = adapter(trim=one_by_one)
masks_by_the_first = adapter(mask=first_mask)
counts_the_last = adapter(length=lambda each: min(each[-1].offset, each[-1].window or each[-1].offset))
forgets_layers = adapter(set_state=put_back_one)
says_it_goes = adapter(dialect={})
FOLDS: dict[str, Any] = {"make": folding, "states": states, "also": ("full", "window", "unlike", "state")}
folds = adapter(**FOLDS)
crops_rows_alone = adapter(trim=crop_rows, **FOLDS)
