"""Implementations that share nothing with the reference: other libraries, or small ones written from the spec.

The suite must pass each of them, whole and without a known deviation. If it demands of them what the spec does not
say, that is a fault of the suite.
"""

from __future__ import annotations

from typing import NamedTuple


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


FOREIGN = (
    Foreign("attention:Float64", ("growing", "attention"), "a textbook's attention in numpy, in float64"),
    Foreign("attention:Float32", ("growing", "attention"), "the same in float32"),
    Foreign("torch_sdpa:SDPA", ("growing", "attention"), "torch's scaled_dot_product_attention", "torch"),
)
