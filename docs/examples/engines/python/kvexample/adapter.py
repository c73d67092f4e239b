"""The kvconform adapter of `kvexample.cache`: it translates, and answers nothing by itself.

`pip install -e docs/examples/engines/python && kvconform run example-python`. It claims level visible: kvconform
judges what each query sees, and not where the rows lie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvexample.cache import Array, Cache
from kvspec.contract import Lengths, Pair
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import DTYPES, Config
from kvspec.masks import Causal, Explicit, Logical, Window


class AdaptedCache:
    """A cache by the contract (`kvspec.contract.Cache` and `Masking`)."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows."""
        _refusing(self.cache.append, keys, values)

    def read(self, what: str) -> Pair | None:
        """Give the history or the view; the state is only asked for at level storage."""
        rows = self.cache.view() if what == "view" else self.cache.history()
        return None if rows is None else Pair(*rows)

    def lengths(self) -> Lengths:
        """Give the offset, and how many rows are held."""
        return Lengths(self.cache.offset, self.cache.held, self.cache.held, self.cache.held)

    def can_rewind(self, to: int) -> bool:
        """Tell whether a rewind would be accepted."""
        return self.cache.can_rewind(to)

    def rewind(self, to: int) -> None:
        """Make `to` the offset."""
        _refusing(self.cache.rewind, to)

    def free(self) -> None:
        """Forget everything."""
        self.cache.free()

    def mask(self, logical: Logical) -> Array | None:
        """Make the mask for the last append from its parts."""
        windows = [part.size for part in logical if isinstance(part, Window)]
        arrays = [part.array for part in logical if isinstance(part, Explicit)]
        causal = any(isinstance(part, Causal) for part in logical)
        mask: Array | None = _refusing(self.cache.mask, causal, windows, arrays)
        return mask


def _refusing(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call the engine. Its ValueError is a refusal. The adapter need not say which clause of the spec allows it."""
    try:
        return work(*arguments)
    except ValueError as e:
        raise Refused("", str(e)) from e


class Adapter:
    """The adapter that `kvconform run example-python` judges."""

    def describe(self) -> dict[str, Any]:
        """Say what is claimed."""
        return {"name": "example-python", "version": "0.1.0", "chapters": dict.fromkeys(CHAPTERS, "visible")}

    def open(self, kind: str, config: Config) -> AdaptedCache:
        """Open a cache; a ring has a window."""
        if kind not in CHAPTERS:
            raise Unsupported(f"no kind {kind}")
        if config.step < 1 or config.dtype not in DTYPES or (config.window is None) != (kind == "growing"):
            raise Refused("", f"no {kind} of {config}")
        shapes = (config.shape(part, 0) for part in ("k", "v"))
        keys, values = (np.empty([max(0, n) for n in shape], DTYPES[config.dtype]) for shape in shapes)
        return AdaptedCache(_refusing(Cache, keys, values, config.window))


CHAPTERS = ("growing", "ring", "mask")
