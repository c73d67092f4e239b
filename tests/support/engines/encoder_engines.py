"""Engines with layers that see the rows of an encoder: what becomes of those of a second encoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.layered import views
from kvadapters.update import UpdateAdapter
from kvspec.geometry import Array, Config, valid
from support.engines.layer_engines import Checked, adapter, trim_all


class Crossing:
    """The rows of an encoder, `[keys, values]`, and what becomes of others, by the words of the dialect."""

    window = offset = 0
    full = False

    def __init__(self, config: Config, again: str) -> None:
        self.config, self.again = config, again
        self.rows: list[Array] = []

    def encode(self, *new: Array) -> None:
        """Take rows."""
        Checked.demand(self, *new)  # type: ignore[arg-type]
        if not new[0].shape[2]:
            return
        if self.rows and self.again == "refused":
            raise ValueError("there are some already")
        if self.rows and self.again == "joined":
            new = tuple(np.concatenate(pair, axis=2) for pair in zip(self.rows, new, strict=True))
        if not self.rows or self.again != "kept":
            self.rows = [*new]

    def mask(self, n: int) -> Array:
        """It hides none."""
        return np.ones((n, self.rows[0].shape[2] if self.rows else 0), bool)

    def trim(self, n: int) -> None:
        """What becomes of tokens does not touch it."""


def encoding(again: str, declared: str = "refused", **functions: Any) -> UpdateAdapter:
    """The adapter of a list with layers that see the rows of an encoder."""

    def made(config: Config) -> list[Any]:
        each = views(config, "full", "window", "cross")
        if not valid(config) or any(0 in sizes for _, sizes in each):
            raise ValueError("a size of 0")
        return [Crossing(config, again) if name == "cross" else Checked(config, *sizes) for name, sizes in each]

    return adapter(
        make=made,
        length=lambda each: max(layer.offset for layer in each),
        encode=lambda each, layer, keys, values: each[layer].encode(keys, values),
        encoded=lambda each, layer: each[layer].rows or None,
        also=("full", "window", "cross", "unlike", "encode"),
        dialect={"layers.resumes": "whole"} | ({"layers.again": declared} if declared != "refused" else {}),
        **functions,
    )


def trim_encoded(each: list[Any], n: int) -> None:
    """Trim the rows of an encoder too."""
    trim_all(each, n)
    for layer in each:
        if isinstance(layer, Crossing):
            layer.rows = [a[:, :, : max(0, a.shape[2] - n)] for a in layer.rows]


encodes = encoding("refused")
replaces = encoding("replaced", "replaced")
keeps_the_first = encoding("kept", "kept")
joins = encoding("joined", "joined")
joins_and_says_it_replaces = encoding("joined", "replaced")
keeps_and_says_it_joins = encoding("kept", "joined")
replaces_and_says_nothing = encoding("replaced")
trims_the_encoder = encoding("refused", trim=trim_encoded)
