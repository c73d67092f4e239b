"""Geometry and dtypes: arrays of rows, their shape, and the configuration that opens a cache."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import ml_dtypes
import numpy as np
from msgspec import Struct, convert, defstruct, structs

from kvspec.chapters import CHAPTERS
from kvspec.chapters.record import LARGEST_SIZE, Field
from kvspec.forms import Form, parsed
from kvspec.tables import table

Array = np.ndarray[Any, np.dtype[Any]]


class Pair(NamedTuple):
    """Key rows `[B, H, T, k_dim]` and value rows `[B, H, T, v_dim]` of the same T positions."""

    keys: Array
    values: Array


DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
"""The dtypes rows may have, by their names in traces, on the wire and in reports."""

OWN: dict[str, Field] = {
    name: convert({"name": name, **row}, Field)
    for chapter in CHAPTERS
    for name, row in table("kvspec.chapters", chapter).get("fields", {}).items()
}
"""The fields of a Config that not every kind has, by name, in the order of the chapters that bring them."""


class Geometry(Struct, frozen=True):
    """What every cache is configured by: rows are `[batch, kv_heads, T, k_dim]` and `[batch, kv_heads, T, v_dim]`,
    and `step` is the number of rows by which storage grows."""

    batch: int = 1
    kv_heads: int = 2
    k_dim: int = 8
    v_dim: int = 6
    dtype: str = "f16"
    step: int = 256

    def shape(self, kind: str, rows: int) -> tuple[int, int, int, int]:
        """Give the shape of `rows` rows; `kind` is "k" or "v"."""
        return self.batch, self.kv_heads, rows, self.k_dim if kind == "k" else self.v_dim

    @property
    def row_bytes(self) -> int:
        """Count the bytes of one position as it is kept: its key and value rows over all heads and the whole
        batch."""
        widths, kept = (self.k_dim, self.v_dim), forms(self)
        if kept is not None:
            each = sum(form.row_bytes(dim) for form, dim in zip(kept, widths, strict=True))
            return self.batch * self.kv_heads * each
        return self.batch * self.kv_heads * sum(widths) * DTYPES[self.dtype].itemsize

    @property
    def beside_bytes(self) -> int:
        """Count the bytes of the newest rows, which a cache with a residual window keeps as they are beside those
        in a form."""
        return newest(self) * self.changed(form=None).row_bytes

    def to_json(self) -> dict[str, Any]:
        """Give all fields that are set."""
        return {k: v for k, v in structs.asdict(self).items() if v is not None}

    def changed(self, **fields: Any) -> Self:
        """Make a copy with some fields changed."""
        return structs.replace(self, **fields)


if TYPE_CHECKING:

    class Config(Geometry, frozen=True):
        """The configuration of a cache: its geometry, and the fields that chapters bring. Fields of other kinds
        are None. It may hold values that no cache accepts; see CACHE-3."""

        def __init__(self, *sizes: Any, **fields: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

else:
    Config = defstruct(
        "Config",
        [(name, (str if f.words or f.pattern else int) | None, None) for name, f in OWN.items()],
        bases=(Geometry,),
        frozen=True,
        module=__name__,
    )

OWN_SIZES = tuple(name for name, field in OWN.items() if not field.words and not field.pattern)
"""The fields that not every kind has and that are whole numbers."""

SIZES: dict[str, int] = {
    **dict.fromkeys(("batch", "kv_heads", "k_dim", "v_dim", "step"), LARGEST_SIZE),
    **{name: OWN[name].high for name in OWN_SIZES},
}
"""The fields of a Config that are whole numbers, and the largest that a trace may begin with."""

WORDS = {"dtype": tuple(DTYPES), **{name: field.words for name, field in OWN.items() if field.words}}
"""The fields of a Config that are words, and the allowed words."""

TEXTS = {name: field.pattern for name, field in OWN.items() if field.pattern}
"""The fields of a Config that are texts, and their patterns."""

MOST_LISTED = {name: int(TEXTS[name].rpartition("{0,")[2].rstrip("}$")) + 1 for name, f in OWN.items() if f.layered}
"""How many layers a text may name that says what each one is: its pattern ends with `{0,N}$`, behind the first."""

FIELDS = (*SIZES, *WORDS, *TEXTS)
"""All fields of a Config."""


@lru_cache(maxsize=1024)
def not_a_form(text: str, k_dim: int, v_dim: int) -> str:
    """Tell why rows of these widths cannot have the forms that a text names; empty if they can."""
    try:
        kept = parsed(text)
    except ValueError as e:
        return str(e)
    wrong = next((each for each in zip(kept, "kv", (k_dim, v_dim), strict=True) if not each[0].fits(each[2])), None)
    if wrong is None:
        wider = kept[1].latent and v_dim > k_dim
        return (
            f"form {text!r:.60}: v_dim={v_dim} is wider than k_dim={k_dim}, whose beginning it is" if wider else ""
        )
    form, part, dim = wrong
    return f"form {text!r:.60}: {part}_dim={dim} must be a multiple of the group of {form.group}, 1 at least"


def forms(config: Geometry) -> tuple[Form, Form] | None:
    """Give the forms of keys and of values; None for plain rows, and for a form that no cache accepts."""
    text: str | None = getattr(config, "form", None)
    if text is None or not_a_form(text, config.k_dim, config.v_dim):
        return None
    keys, values = parsed(text)
    return keys._replace(codes=config.dtype) if keys.plain else keys, values


def still(config: Geometry) -> int:
    """Count the elements at the beginning of a key that RoPE leaves alone: the value of a latent row."""
    kept = forms(config)
    return config.v_dim if kept is not None and kept[1].latent else 0


def newest(config: Geometry) -> int:
    """Count the newest rows that are kept as they are beside those in a form: none of one that changes no row."""
    kept, rows = forms(config), getattr(config, "residual", None)
    return rows if rows is not None and rows > 0 and kept is not None and not kept[0].plain else 0


class Heads(NamedTuple):
    """The heads of a cache among those of all ranks: the first, the one behind the last, and how many there are."""

    first: int
    behind: int
    all: int


def heads_of(config: Geometry) -> Heads:
    """Give the heads that a cache has: all of them, unless its config says which rank's they are."""
    rank: str | None = getattr(config, "rank", None)
    first, all_ = map(int, rank.split("/")) if rank else (0, config.kv_heads)
    return Heads(first, first + config.kv_heads, all_)


def of_all_ranks(config: Config) -> Config:
    """Give the config with the heads of all ranks."""
    heads = heads_of(config)
    return config.changed(kv_heads=max(heads.behind, heads.all))


def encoded_layers(config: Config) -> int:
    """Count the layers that see rows of an encoder, in a cache of layers of unlike views."""
    return (config.of or "").split(",").count("cross")


def same_geometry(a: Config, b: Config) -> bool:
    """Tell whether rows saved from one cache fit the other: all but the growth step must be equal."""
    return a.changed(step=0) == b.changed(step=0)


@lru_cache(maxsize=1024)
def valid(config: Config) -> bool:
    """Tell whether every given size is 1 or more, the dtype known, and a rank's heads among all that there are."""
    sizes = (getattr(config, name) for name in SIZES)
    heads = heads_of(config)
    return config.dtype in DTYPES and all(n >= 1 for n in sizes if n is not None) and heads.behind <= heads.all


def fits(config: Config, pair: Pair) -> bool:
    """Tell whether rows have the config's geometry, with as many keys as values."""
    n = pair.keys.shape[2] if pair.keys.ndim == 4 else -1
    right = (config.shape("k", n), config.shape("v", n))
    return (pair.keys.shape, pair.values.shape) == right and {a.dtype for a in pair} == {DTYPES[config.dtype]}
