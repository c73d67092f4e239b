"""Implementations that share nothing with the reference: other libraries, or small ones written from the spec.

The suite must pass each of them, whole and without a known deviation. If it demands of them what the spec does not
say, that is a fault of the suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from kvspec.chapters import CHAPTERS


def named(adapter: str) -> str:
    """Name an adapter of this folder as `kvconform run` takes it."""
    return f"{__name__}.{adapter}"


class Foreign(NamedTuple):
    """One implementation."""

    adapter: str
    """`module:Class`, in this folder."""
    chapters: tuple[str, ...]
    """The chapters that it is here for."""
    what: str
    """What it is, in a few words."""
    needs: str = ""
    """The package that it is made of, if tests do not always have it."""

    @property
    def name(self) -> str:
        """As `kvconform run` takes it."""
        return named(self.adapter)


def brought(name: str) -> Iterator[Any]:
    """Give what the modules of this folder that are named like a chapter have under this name."""
    for chapter in CHAPTERS:
        if find_spec(f"{__name__}.{chapter}"):
            yield getattr(import_module(f"{__name__}.{chapter}"), name, ())


FOREIGN: tuple[Foreign, ...] = (
    Foreign("attention:Float64", ("attention",), "a textbook's attention in numpy, in float64"),
    Foreign("attention:Float32", ("attention",), "the same in float32"),
    Foreign("attention:HardwareTanh", ("attention",), "the same with the tanh of a GPU, a dialect"),
    Foreign("torch_sdpa:SDPA", ("attention",), "torch's `scaled_dot_product_attention`", "torch"),
    Foreign("gpt_oss:GptOss", ("attention",), "the attention of gpt-oss in transformers", "transformers"),
    Foreign(
        "remembering:Everything",
        ("growing", "ring", "bounded", "mask", "snapshot", "sink", "questions"),
        "a list that forgets nothing; a window is what queries are shown of it",
    ),
    Foreign("copying:Bytes", ("copy",), "`bytearray`, `memmove`, casts on whole numbers"),
    Foreign("drafting:DeepCopies", ("draft",), "rounds on deep copies of lists"),
    Foreign("branching:Cells", ("draft", "mask"), "branches by cells that say for which drafts they are"),
    Foreign("storing:Dictionaries", ("store", "batch"), "a dictionary of rows by layer and position"),
    Foreign("paging:Lists", ("page",), "pages are lists; Python knows who has one"),
    Foreign("padding:Padded", ("ragged",), "a list of rows for each sequence"),
    Foreign("layering:Remembered", ("layers",), "a list of tokens, and a set of positions for each layer"),
    Foreign("bucketing:Closures", ("bucket",), "a closure for each bound, in float64"),
    Foreign("rotating:Complex", ("rope",), "products of complex numbers"),
    Foreign("planning:Counting", ("mem",), "a buffer that doubles"),
    Foreign("counting:Counted", ("residency",), "a device that does not exist and counts"),
    *(each for listed in brought("FOREIGN") for each in listed),
)
"""All of them; a module that is named like a chapter lists its own."""
