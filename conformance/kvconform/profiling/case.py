"""One line of a profile: an operation, the shape of a model, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvconform.profiling.model_shapes import Model
from kvspec.geometry import Config


@dataclass(frozen=True)
class Case:
    """`rows` are what one operation appends or copies, `context` the rows that are there: what it reads, saves or
    writes behind; of a ring its window, of a store or a buffer its room, of a bucketed cache its bound. `source` is
    the dtype copied from, `page` the rows of a page, `pairing` which elements RoPE turns together."""

    operation: str
    model: Model
    context: int = 4096
    rows: int = 1
    batch: int = 1
    dtype: str = "f16"
    source: str = ""
    layout: str | None = None
    page: int | None = None
    pairing: Literal["norm", "neox"] | None = None

    @property
    def id(self) -> str:
        """What names it in records and on the command line."""
        words = [self.operation, self.model.name.replace(" ", "-").lower(), self.cast, f"{self.context}"]
        words += [f"n{self.rows}"] if self.rows != 1 else []
        words += [f"b{self.batch}"] if self.batch != 1 else []
        words += [f"p{self.page}"] if self.page is not None else []
        return "/".join([*words, *(word for word in (self.layout, self.pairing) if word)])

    @property
    def cast(self) -> str:
        """The dtype, or both where they differ."""
        return f"{self.source}-{self.dtype}" if self.source and self.source != self.dtype else self.dtype

    def config(self, **fields: int | str | None) -> Config:
        """Rows of this case's geometry, and whatever else the cache is opened with."""
        model = self.model
        made = Config(1, model.kv_heads, model.dim, model.dim, self.dtype)
        return made.changed(**fields)
