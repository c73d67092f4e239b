"""What common bugs of growing caches and rings are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.growing import Growing
from kvspec.geometry import Array
from kvspec.masks import Logical

if TYPE_CHECKING:
    Over = Growing
else:
    Over = object
"""What a fault of both kinds is laid over: either of them."""


class Changing(Over):
    """Rows are changed before they are appended."""

    def changed(self, rows: Array, kind: str) -> Array:
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        if keys.ndim == values.ndim == 4:
            keys, values = self.changed(keys, "k"), self.changed(values, "v")
        super().append(keys, values)


class Masking(Over):
    """The logical mask is changed before it is made."""

    def meant(self, logical: Logical) -> Logical:
        raise NotImplementedError

    def mask(self, logical: Logical) -> Array | None:
        super().mask(logical)
        return super().mask(self.meant(logical))
