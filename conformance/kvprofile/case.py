"""One line of a profile: an operation, the shape of a model, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvprofile.model_shapes import Model
from kvspec.geometry import Config


@dataclass(frozen=True)
class Case:
    """`rows` is how many rows one operation appends or copies. `context` is how many exist before it: those that
    it reads, saves or appends to. For a ring `context` is its window, for a store or buffer its capacity, for a
    bucketed cache its bound. `source` is the dtype copied from, `page` the rows of a page, `pairing` which
    elements RoPE turns together, `form` what the cache keeps of a row."""

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
    form: str | None = None

    @property
    def id(self) -> str:
        """Give the case's id, for records and the command line."""
        words = [self.operation, self.model.id, self.cast, f"{self.context}"]
        words += [f"n{self.rows}"] if self.rows != 1 else []
        words += [f"b{self.batch}"] if self.batch != 1 else []
        words += [f"p{self.page}"] if self.page is not None else []
        words += [self.form.replace("/", "-")] if self.form is not None else []
        return "/".join([*words, *(word for word in (self.layout, self.pairing) if word)])

    @property
    def cast(self) -> str:
        """Give the dtype, or both if they differ."""
        return f"{self.source}-{self.dtype}" if self.source and self.source != self.dtype else self.dtype

    @property
    def lengths(self) -> list[int]:
        """Give the rows of each sequence of a batch whose lengths differ: evenly spread, up to the context."""
        return [-(-self.context * (s + 1) // self.batch) for s in range(self.batch)]

    def config(self, **fields: int | str | None) -> Config:
        """Give the config of this case: the geometry of rows, and the fields of the kind."""
        model = self.model
        made = Config(1, model.kv_heads, model.dim, model.v_dim, self.dtype, form=self.form)
        return made.changed(**fields)
