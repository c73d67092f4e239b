"""What the queries of a layer see: all rows, a window, a chunk, or a state that rows entered."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvspec.errors import BadInput

MOST_LAYERS, LARGEST = 16, 1 << 20


@dataclass(frozen=True)
class View:
    """A rule of what a query sees. `full`: all rows up to its own. `window`: the newest `size` rows, its own among
    them. `chunk`: rows of its own chunk of `size` positions. `linear`: a state that all rows entered, each in
    place of an earlier one of its id. `conv`: the window of the convolution before a state."""

    kind: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.size}" if self.size else self.kind

    def sees(self, rows: int) -> NDArray[np.bool_]:
        """Give which rows each query sees: bool [rows, rows], a line for each query."""
        query, row = np.arange(rows)[:, None], np.arange(rows)[None]
        causal: NDArray[np.bool_] = row <= query
        if self.kind in ("window", "conv"):
            causal &= query - row < self.size
        if self.kind == "chunk":
            causal &= query // self.size == row // self.size
        return causal


FULL, CONVOLUTION = View("full"), View("conv", 4)


def parsed(text: str) -> tuple[View, ...]:
    """Read views in words, such as `full,window 8`; `3*full` is three layers. Raises BadInput."""
    views = tuple(view for part in text.split(",") for view in _layers(part.strip()))
    if len(views) > MOST_LAYERS:
        raise BadInput(f"{len(views)} layers; a probe has at most {MOST_LAYERS}")
    return views


def _layers(part: str) -> tuple[View, ...]:
    found = re.fullmatch(r"(?:(\d{1,3}) *\* *)?(?:(full|linear)|(window|chunk) +(\d{1,9}))", part)
    if not found:
        raise BadInput(
            f"{part!r} is no view of a layer; write full, linear, window N or chunk N, such as 'full,window 8'"
        )
    view = View(found[2] or found[3], int(found[4] or 0))
    times = int(found[1] or 1)
    if not 1 <= times <= MOST_LAYERS or (view.kind in ("window", "chunk") and not 1 <= view.size <= LARGEST):
        raise BadInput(f"{part!r}: a size is from 1 to {LARGEST}, and there are 1 to {MOST_LAYERS} layers")
    return (view,) * times
